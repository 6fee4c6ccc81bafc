/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of the fair lock, for who drives it: bytes in, bytes out, time in, deadline out.
 *
 * The engine keeps all guarantees of the lock. It does no I/O, reads no clock, never blocks and
 * never allocates. Programs, also with an event loop (fairlock_wants()), use fairlock.h. Use the
 * engine to fit the lock into a runtime that does its own I/O, as another language's, a simulator,
 * or a fuzzer. What has the same name there means the same; options without a function here are for
 * fairlock.h alone.
 *
 * One engine is one client: one connection to one server, any number of handles. Their memory is
 * the program's, stays where it is, and is looked at by functions alone.
 *
 * Driving it:
 *     for (;;) {
 *       fairlock_engine_tick(e, now);
 *       if wants & FAIRLOCK_CLOSE    close, then fairlock_engine_closed()
 *       if wants & FAIRLOCK_CONNECT  fairlock_engine_opening(), so that connect_ms counts; connect,
 *                                    or look whether that has ended; then fairlock_engine_opened()
 *                                    or _closed(), or neither yet
 *       if connected                 send what fairlock_engine_output() gives, and tell
 *                                    fairlock_engine_sent(); receive to where
 *                                    fairlock_engine_input() says, and tell
 *                                    fairlock_engine_received(), with size 0 when there was
 *                                    nothing: only then does a late answer count against the
 *                                    server
 *       wait for bytes, at most fairlock_engine_deadline(e, now) ms
 *     }
 *
 * Times are uint32_t milliseconds of one clock that never jumps, never goes back, not even by 1 ms
 * from one call to the next, and wraps around at 2^32; only their differences count, so no interval may be longer than FAIRLOCK_DURATION_MAX_MS. While a
 * handle waits or holds, tick at least once a month: after 49 days a hold that ended long ago would
 * seem to go on.
 *
 * Two tasks must not be inside functions of one engine at the same time. Callbacks of the
 * configuration are called inside these functions. They may call fairlock_engine_result(),
 * _token(), _hold_count() and _remaining_ms(), also of a handle whose operation has just ended, and
 * nothing else here.
 */
#ifndef FAIRLOCK_DRIVER_H
#define FAIRLOCK_DRIVER_H

#include "fairlock.h"

/* As in fairlock.h. */
#define fairlock_engine_init       PORT_RELEASED(fairlock_engine_init)
#define fairlock_engine_add        PORT_RELEASED(fairlock_engine_add)
#define fairlock_engine_add_shared PORT_RELEASED(fairlock_engine_add_shared)

#ifdef __cplusplus
extern "C" {
#endif

struct fairlock_rest;
struct fairlock_shared;
struct fairlock_downgrading;

/* Makes engine ready. Returns FAIRLOCK_OK, _INVALID or _TOO_LONG. */
int fairlock_engine_init(struct fairlock_engine *engine, const struct fairlock_config *config);

/*
 * Makes handle a view of the lock called name, which stays the caller's and valid, as
 * fairlock_init_bytes(). A handle that is in an engine is taken out before it is added again.
 */
int fairlock_engine_add(struct fairlock_engine *engine, struct fairlock *handle, const char *name,
                        size_t size);

/* The same for shared->handle, which shares the lock with others: see fairlock_init_shared(). */
int fairlock_engine_add_shared(struct fairlock_engine *engine, struct fairlock_shared *shared,
                               const char *name, size_t size, uint32_t limit);

/*
 * Takes handle out. Returns
 *   FAIRLOCK_OK           its memory is the caller's again. If its request was being written, the
 *       engine wants the connection to be closed, and stores the handle's address until then, but
 *       does not access it
 *   FAIRLOCK_PENDING      the server has to be told first. Call again when result is no longer
 *       FAIRLOCK_PENDING, or at any time. Without a connection, result becomes FAIRLOCK_UNREACHABLE
 *       after offline_ms, and the handle leaves when there is a connection again, or when its place
 *       or hold on the server has expired
 *   FAIRLOCK_IN_PROGRESS  it is held, or an operation is under way
 */
int fairlock_engine_remove(struct fairlock *handle, uint32_t now);

/*
 * As fairlock_abandon(). rest is needed until it is freed, which fairlock_engine_received(),
 * _closed() and _deinit() tell. Returns FAIRLOCK_OK or _TOO_LONG.
 */
int fairlock_engine_abandon(struct fairlock *handle, struct fairlock_rest *rest, uint32_t now);

/* The engine is not used any more: frees each rest of a handle that was abandoned. */
void fairlock_engine_deinit(struct fairlock_engine *engine);

/*
 * Operations of a handle that is in an engine, as the functions without `engine` in their names.
 * They return FAIRLOCK_PENDING if the operation was begun, whose result fairlock_engine_result()
 * has, otherwise the final status; FAIRLOCK_IN_PROGRESS: another one is under way. A re-entry never
 * shortens the lease. A downgrade is an operation of both handles, with a result in each.
 */
int fairlock_engine_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms,
                            uint32_t now);
int fairlock_engine_release(struct fairlock *handle, uint32_t now);
int fairlock_engine_cancel(struct fairlock *handle, uint32_t now);
void fairlock_engine_use_downgrading(struct fairlock_engine *engine,
                                     struct fairlock_downgrading *option);
int fairlock_engine_downgrade(struct fairlock *exclusive, struct fairlock_shared *shared,
                              uint32_t lease_ms, uint32_t now);

/* As fairlock_result(). */
int fairlock_engine_result(const struct fairlock *handle);

/*
 * The fencing token of the hold, how many times it has to be released, and how long it is safe; 0:
 * not held.
 */
uint64_t fairlock_engine_token(const struct fairlock *handle, uint32_t now);
uint32_t fairlock_engine_hold_count(const struct fairlock *handle, uint32_t now);
uint32_t fairlock_engine_remaining_ms(const struct fairlock *handle, uint32_t now);

/* What the engine wants to be done with the connection now: bits of enum fairlock_want. */
unsigned fairlock_engine_wants(const struct fairlock_engine *engine, uint32_t now);

/* Asks for a connection even if no operation needs one. */
void fairlock_engine_connect(struct fairlock_engine *engine, uint32_t now);

/* True when the connection is up and the server has answered the greeting. */
bool fairlock_engine_ready(const struct fairlock_engine *engine);

/*
 * Opening the connection begins; has succeeded; and the connection is closed, or opening it has
 * failed. connect_ms begins with the first call of fairlock_engine_opening(), which may be repeated
 * until opening has ended. Call fairlock_engine_opened() once, between the two others. status: why,
 * FAIRLOCK_UNTRUSTED or a greater one below FAIRLOCK_OK; that of fairlock_engine_fail(), if it has
 * ended the connection, counts more.
 */
void fairlock_engine_opening(struct fairlock_engine *engine, uint32_t now);
void fairlock_engine_opened(struct fairlock_engine *engine, uint32_t now);
void fairlock_engine_closed(struct fairlock_engine *engine, int status, uint32_t now);

/*
 * Bytes to send: *size of them, 0 for none. They stay valid until fairlock_engine_sent() or
 * _closed(). Call fairlock_engine_tick() with the same `now` before, so that a hold which ended in
 * a freeze of the device is not renewed. A request is shorter than SIZE_MAX.
 */
const uint8_t *fairlock_engine_output(struct fairlock_engine *engine, size_t *size, uint32_t now);

/*
 * The first size bytes of the output were sent: 1 up to what fairlock_engine_output() has returned.
 */
void fairlock_engine_sent(struct fairlock_engine *engine, size_t size);

/*
 * Ends the connection for this reason, as in fairlock_engine_closed(): the engine wants it to be
 * closed.
 */
void fairlock_engine_fail(struct fairlock_engine *engine, int status);

/* Where to put received bytes, *size at most: 1 or more, unless the connection has to be closed. */
uint8_t *fairlock_engine_input(struct fairlock_engine *engine, size_t *size);

/*
 * size bytes were received, on an open connection, to where fairlock_engine_input() said. size 0:
 * there was nothing to receive. Only after that does a late answer count against the server,
 * because what arrived during a freeze of this device is read first. Call fairlock_engine_tick() at
 * least once between two calls, so that an answer does not renew a hold which has ended unnoticed.
 */
void fairlock_engine_received(struct fairlock_engine *engine, size_t size, uint32_t now);

/* Does what is due. It is cheap if nothing is. */
void fairlock_engine_tick(struct fairlock_engine *engine, uint32_t now);

/*
 * In how many ms to call fairlock_engine_tick() again, if nothing else happens before; 0: now. At
 * most about 19 hours.
 */
uint32_t fairlock_engine_deadline(const struct fairlock_engine *engine, uint32_t now);

#ifdef __cplusplus
}
#endif

#endif
