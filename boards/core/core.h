/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of the lock with the memory of its handles, for a language that has a loop, sockets, TLS
 * and a clock of its own, but no C compiler's knowledge of structs. Its functions take and return
 * integers and pointers, and call nothing of the language: what has happened stands in a queue, which
 * the language reads after each call. boards/core/README.md shows a loop.
 *
 * `make wasm` makes build/core/core.wasm of it, which imports nothing. There each function is exported
 * without the `fairlock_core_` in its name, a pointer is an i32, a uint64_t an i64, and the memory, which
 * grows, is exported as `memory`: look at where it is anew after each call that may allocate. Compiled
 * for other targets, core.c needs fairlock_core_allocate() and fairlock_core_free() of the program.
 *
 * A core is one client: one connection, any number of locks. Locks and cores are known by their
 * addresses; a lock's is valid until fairlock_core_drop(), a core's until fairlock_core_destroy().
 * Functions of one core must not be called at the same time, and in WebAssembly no two of one instance.
 *
 * Times are ms. `now` is a clock that never jumps, goes on while the machine sleeps, and wraps around at
 * 2^32; one that is up to a minute before the last that was passed counts as that. What has the name of
 * a function in lock/driver.h is that function.
 */
#ifndef FAIRLOCK_CORE_H
#define FAIRLOCK_CORE_H

#include <stddef.h>
#include <stdint.h>

struct fairlock_core;
struct fairlock_core_lock;

/* As struct fairlock_config (lock/fairlock.h) has them; 0 or NULL: its defaults. */
struct fairlock_core_options {
  const char *client_id, *user, *password, *client_name; /* ended by a NUL, and copied */
  uint32_t database;
  uint32_t lease_ms, waiter_ms, claim_ms, response_ms, connect_ms, offline_ms;
  uint32_t name_max; /* bytes of the longest name; 0: 4096, the most there is */
  uint32_t listens;  /* not 0: holders can be asked to release, which FAIRLOCK_CORE_ASKED tells */
  int32_t status;    /* set by fairlock_core_create() */
};

enum fairlock_core_kind {
  FAIRLOCK_CORE_ENDED = 1, /* an operation that had returned FAIRLOCK_PENDING; status: its result */
  FAIRLOCK_CORE_LOST = 2,  /* a hold is lost; status: enum fairlock_loss_reason */
  FAIRLOCK_CORE_ASKED = 3, /* a holder is asked to release, by words; they may be cut off */
  FAIRLOCK_CORE_FREED =
      4 /* of a lock that was dropped: nothing of it is left on the server, or that
                              cannot be known. The last of its events */
};

/* What has happened to a lock. In wasm32 the members are at 0, 4, 8, 12, 16 and 24. */
struct fairlock_core_event {
  uint32_t kind; /* enum fairlock_core_kind */
  uint32_t key;  /* of the lock, as the program has given it */
  int32_t status;
  uint32_t words_size; /* bytes at words; 0: none */
  uint64_t token;      /* of the hold; 0: none */
  const char *words;   /* any bytes, valid until the next call of fairlock_core_next() */
};

/* size bytes of memory, aligned for all types; NULL: there is none. */
void *fairlock_core_allocate(size_t size);
void fairlock_core_free(void *memory);

/* NULL: options->status says why: FAIRLOCK_INVALID, _TOO_LONG, or _OOM without memory. */
struct fairlock_core *fairlock_core_create(struct fairlock_core_options *options);

/* Frees core and all its locks, and tells the server nothing. Close the connection before. */
void fairlock_core_destroy(struct fairlock_core *core);

/*
 * A view of the lock called name, which is copied: one holder. limit: -1: exclusive, 0: shared by any
 * number, otherwise by at most so many. NULL: fairlock_core_status() says why: FAIRLOCK_INVALID,
 * _TOO_LONG, or _OOM without memory.
 */
struct fairlock_core_lock *fairlock_core_lock(struct fairlock_core *core, const char *name,
                                              size_t size, int32_t limit, uint32_t key);
int32_t fairlock_core_status(const struct fairlock_core *core);

/*
 * Gives the lock up, whatever it is doing: its place or hold ends in the background, while the core
 * is serviced. Its address is invalid at once, and of its events only FAIRLOCK_CORE_FREED comes.
 * fairlock_core_leaving(): how many were dropped whose FAIRLOCK_CORE_FREED was not read.
 */
void fairlock_core_drop(struct fairlock_core_lock *lock, uint32_t now);
uint32_t fairlock_core_leaving(const struct fairlock_core *core);

/*
 * Operations: FAIRLOCK_PENDING if one was begun, of which FAIRLOCK_CORE_ENDED tells, otherwise the
 * final status. wait_ms and lease_ms: as fairlock_acquire().
 */
int32_t fairlock_core_acquire(struct fairlock_core_lock *lock, uint32_t wait_ms, uint32_t lease_ms,
                              uint32_t now);
int32_t fairlock_core_release(struct fairlock_core_lock *lock, uint32_t now);
int32_t fairlock_core_cancel(struct fairlock_core_lock *lock, uint32_t now);

/* Of the hold; 0: not held. */
uint64_t fairlock_core_token(const struct fairlock_core_lock *lock, uint32_t now);
uint32_t fairlock_core_hold_count(const struct fairlock_core_lock *lock, uint32_t now);
uint32_t fairlock_core_remaining(const struct fairlock_core_lock *lock, uint32_t now);

/* The id of its holds and waits, ended by a NUL; "": not before the first connection. */
const char *fairlock_core_id(struct fairlock_core_lock *lock);

/*
 * The next event of the queue, in the order in which they came; NULL: none. Read all of them after
 * each call of a function that has `now`. Of two that were not read, of one lock and of one kind, only
 * the later one is there.
 */
const struct fairlock_core_event *fairlock_core_next(struct fairlock_core *core);

/*
 * Does what is due, and returns what is wanted of the connection: bits of enum fairlock_want. Call it
 * after each operation and each event of the connection, then send, then ask for the deadline.
 */
uint32_t fairlock_core_wants(struct fairlock_core *core, uint32_t now);

/* In how many ms to call fairlock_core_wants() again; 0: now. At most about 19 hours. */
uint32_t fairlock_core_deadline(struct fairlock_core *core, uint32_t now);

/* The connection: status is FAIRLOCK_UNREACHABLE or _UNTRUSTED. */
void fairlock_core_connect(struct fairlock_core *core, uint32_t now);
void fairlock_core_opening(struct fairlock_core *core, uint32_t now);
void fairlock_core_opened(struct fairlock_core *core, uint32_t now);
void fairlock_core_closed(struct fairlock_core *core, int32_t status, uint32_t now);

/* 1: connected, and the server has answered the greeting. */
uint32_t fairlock_core_ready(const struct fairlock_core *core);

/*
 * How many bytes there are to send, from fairlock_core_output_at(), until fairlock_core_sent() or
 * _closed(). Does what is due before. 0: none.
 */
uint32_t fairlock_core_output(struct fairlock_core *core, uint32_t now);
const uint8_t *fairlock_core_output_at(const struct fairlock_core *core);
void fairlock_core_sent(struct fairlock_core *core, uint32_t size);

/*
 * How many bytes may be put to fairlock_core_input_at(); 0: the connection has to be closed. Then say
 * how many were: 0 if there was nothing to receive, as lock/driver.h says. Does what is due before.
 */
uint32_t fairlock_core_input(struct fairlock_core *core);
uint8_t *fairlock_core_input_at(const struct fairlock_core *core);
void fairlock_core_received(struct fairlock_core *core, uint32_t size, uint32_t now);

/* As fairlock_server_status() and fairlock_error(), whose text is valid until the next call. */
int32_t fairlock_core_server_status(const struct fairlock_core *core);
const char *fairlock_core_error(const struct fairlock_core *core);

/* As fairlock_status_name(), fairlock_status_text() and fairlock_version(): constant texts. */
const char *fairlock_core_status_name(int32_t status);
const char *fairlock_core_status_text(int32_t status);
const char *fairlock_core_version(void);

#endif
