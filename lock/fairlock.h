/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fair distributed lock over Redis: whoever asks first is served first, whether it is a
 * microcontroller, a Linux process, or a Java service that uses Redisson's fair lock.
 *
 *     #include <fairlock/fairlock.h>         firmware, which compiles the sources: "fairlock.h"
 *     #include <fairlock/port_posix.h>
 *
 *     struct port_posix socket;
 *     struct fairlock_client client;
 *     struct fairlock door;
 *
 *     port_posix_tcp(&socket, "127.0.0.1", "6379");
 *     fairlock_client_init(&client, &config, &socket.transport);
 *     fairlock_init(&door, &client, "door:7");
 *
 *     if (fairlock_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) == FAIRLOCK_OK) {
 *       ...                                  pass fairlock_token(&door) on to what you write to
 *       fairlock_release(&door);
 *     }
 *
 * Memory. All of it is the caller's; the library allocates nothing. What you pass by pointer (client,
 * handles, configuration, buffers, transport, names, options) is kept, not copied: it stays where it
 * is, and valid, until fairlock_deinit() and fairlock_client_deinit().
 *
 * Tasks. Several tasks may share a client, and with it one connection; any of them may call every
 * function, at any time, but never from an interrupt. A handle is one holder: use one for each task
 * that wants the lock. Only the task that has acquired a hold may release it, or one that has adopted
 * it. The functions that block service the client (send, receive, keep time) for all of its
 * tasks; if a task is inside fairlock_run(), that one does. A client of an event loop is the loop's
 * alone: see fairlock_wants(). A POSIX thread that is cancelled inside a function finishes that first,
 * however long it waits: so end a wait by fairlock_cancel(), and fairlock_run() by fairlock_stop().
 *
 * Callbacks. Your functions are called in whichever task is inside a function of the client, with
 * the client's mutex locked. So they must be short, must not wait, and must not call the library:
 * with this client, that would never return. Set a flag, or cut the motor's power.
 *
 * Options. A log, credentials that change, servers that move, locks that are kept, or shared, have a
 * struct and a function each. Fill in the struct, and call the function after fairlock_client_init(),
 * before the first operation. It returns FAIRLOCK_OK, or why the option is not used: look at it, as a
 * later release may find more to refuse. A second call replaces the first, but fairlock_follow()
 * refuses it. Who does not call it links none of it.
 *
 * Leases. A hold ends by itself when its lease runs out, so that a crash blocks nobody for ever.
 * With FAIRLOCK_RENEW the lease is renewed at each third of it, but only while some task services
 * the client: one inside fairlock_run(), inside a blocking call, or calling fairlock_poll(). A
 * program that computes for longer without any of them loses the lock; `lost`,
 * fairlock_remaining_ms() and fairlock_release() report it.
 *
 * Processes. After a fork() the client and its handles stay the parent's; in the child all their
 * functions return at once, with FAIRLOCK_FORKED or with 0 or "" (fairlock_poll(): about 19 hours),
 * and send nothing. Call fairlock_client_deinit() there, or exec(): until then, the server does not
 * notice when the parent ends. The child may use the memory of the handles for something else, and
 * make a new client. A program that calls daemon() has to do so before fairlock_client_init().
 *
 * Mistakes. The library does not check for NULL, or for a client or handle that was never
 * initialised. While you develop, compile it with a macro FAIRLOCK_ASSERT(condition) that stops the
 * program when that does not hold, in a header without system headers, by -include. It may miss
 * uninitialised memory, and a handle that is initialised again for another client.
 *
 * How long calls block, at most, by the configuration:
 *   acquire           wait_ms, or offline_ms if the server gives no useful answer for that long;
 *                     and response_ms to leave the queue
 *   try_acquire       an answer; without one, connect_ms and twice response_ms
 *   release, downgrade, deinit, force_release, ask_release, inspect
 *                     an answer; without one, offline_ms
 *   connect           twice connect_ms, and response_ms; with fairlock_follow() at each seed
 *   wait              wait_ms
 *   start_..., remaining_ms, token, hold_count, result, cancel, abandon  never, except for the mutex
 */
#ifndef FAIRLOCK_H
#define FAIRLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port.h"
#include "resp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Statuses */

/*
 * The result of an operation. "Failed", "timed out", "lost" and "unknown" are different things:
 * after a time-out or a failure the caller does not hold the lock and no longer waits; after LOST
 * others may already hold it; after UNKNOWN the request may or may not have been carried out.
 */
enum fairlock_status {
  FAIRLOCK_PENDING = 1,       /* the operation is still under way: service the client */
  FAIRLOCK_OK = 0,            /* done */
  FAIRLOCK_BUSY = -1,         /* a try: somebody else holds or is first in line. Try later */
  FAIRLOCK_TIMEOUT = -2,      /* the wait has ended without the lock */
  FAIRLOCK_CANCELLED = -3,    /* fairlock_cancel() has ended the wait */
  FAIRLOCK_LOST = -4,         /* the hold had ended before it was released: its lease ran out,
                                 somebody forced its release, or the key was deleted. Undo what was
                                 done, or let the token protect it */
  FAIRLOCK_NOT_HELD = -5,     /* nothing to release or to cancel: a mistake of the caller */
  FAIRLOCK_WRONG_TASK = -6,   /* another task has acquired with this handle, or is still releasing.
                                 Use a handle for each task */
  FAIRLOCK_IN_PROGRESS = -7,  /* the handle has an operation under way, or still holds: wait */
  FAIRLOCK_UNKNOWN = -8,      /* a release was not answered: it was carried out, or the lease will
                                 end the hold */
  FAIRLOCK_UNREACHABLE = -9,  /* no connection to the server. Check address and network */
  FAIRLOCK_DENIED = -10,      /* NOAUTH, WRONGPASS, NOPERM: the server refuses this user. Check the
                                 ACL. Or a function that gives credentials has none */
  FAIRLOCK_UNSUPPORTED = -11, /* the server lacks RESP3 or a command. Use Redis 6.2 or newer */
  FAIRLOCK_UNAVAILABLE = -12, /* try later: LOADING, BUSY, MASTERDOWN, CLUSTERDOWN, maxclients
                                 reached; with fairlock_follow() also a slot that moves (TRYAGAIN,
                                 ASK); without the scripts' texts (boards/README.md) NOSCRIPT */
  FAIRLOCK_READONLY = -13,    /* the server is a replica. Connect to the master */
  FAIRLOCK_OOM = -14,         /* the server is out of memory (maxmemory) */
  FAIRLOCK_MISCONF = -15,     /* the server refuses writes: MISCONF, NOREPLICAS. See its log */
  FAIRLOCK_UNSYNCED = -16,    /* too few replicas acknowledged in time: not taken. Check them */
  FAIRLOCK_REFUSED = -17,     /* any other error of the server: see fairlock_error() */
  FAIRLOCK_PROTOCOL = -18,    /* the server's bytes are not RESP, or no answer to what was asked */
  FAIRLOCK_INVALID = -19,     /* an argument is out of its range: a mistake of the caller */
  FAIRLOCK_TOO_LONG = -20,    /* a name or an id is too long, or a buffer is too small */
  FAIRLOCK_WRONG_SHARD = -21, /* MOVED: another node of the cluster has this lock, and the client
                                 does not go there while another of its locks is in use. A release
                                 goes on in the background until it can, or the lease ends */
  FAIRLOCK_UNTRUSTED = -22,   /* TLS: a certificate or key, the server's or ours, is not trusted.
                                 Check CA, name, dates. The transport has an error text */
  FAIRLOCK_FORKED = -23,      /* the client was made before a fork(). Make a new one here */

  /* the holder does not listen, so it cannot be asked to release: fairlock_ask_release() */
  FAIRLOCK_NOT_LISTENING = -24,

  /* a later release uses the lock in a way that this one does not know: nothing was done. See
     fairlock_error(), and use that release */
  FAIRLOCK_OUTDATED = -25
};

/*
 * Returns a status in plain words, or its name without FAIRLOCK_, in constant memory. On an AVR the
 * next call replaces the words.
 */
const char *fairlock_status_text(int status);
const char *fairlock_status_name(int status);

/* Times in ms, sizes in bytes */

#define FAIRLOCK_FOREVER         UINT32_MAX  /* a wait without a limit; a time that never comes */
#define FAIRLOCK_RENEW           0x7e7e7e7eU /* as a lease: that of the configuration, renewed */
#define FAIRLOCK_LEASE_MIN_MS    100U        /* the shortest lease */
#define FAIRLOCK_DURATION_MAX_MS 0x3fffffffU /* the longest lease or wait: 12.4 days */
#define FAIRLOCK_CLAIM_MIN_MS    1000U       /* the shortest claim_ms */
#define FAIRLOCK_WAITER_MIN_MS   2000U       /* the shortest waiter_ms */
#define FAIRLOCK_WAITER_MAX_MS   600000U     /* the longest waiter_ms */
#define FAIRLOCK_NAME_MAX        4096U       /* the longest name, if the receive buffer has room */
#define FAIRLOCK_ID_MAX          40U         /* the longest client_id, in characters */
#define FAIRLOCK_ID_SUFFIX       23U         /* what the server's numbers add to it */
#define FAIRLOCK_SEND_MIN        32U         /* the smallest send buffer */

/* Room in the receive buffer for a name and a client_id of these sizes (0: none). */
#define FAIRLOCK_RECEIVE_SIZE(name, id) ((name) + (id) + FAIRLOCK_ID_SUFFIX + 37U + RESP_OVERHEAD)

/* The configuration */

/* For port.h: what does not link with a library of another release, or for other threads. */
#define fairlock_client_init PORT_NAMED(fairlock_client_init)
#define fairlock_init        PORT_NAMED(fairlock_init)
#define fairlock_init_bytes  PORT_NAMED(fairlock_init_bytes)

struct fairlock;
struct fairlock_client;

/* Why a hold is lost, as far as is known. */
enum fairlock_loss_reason {
  FAIRLOCK_LOSS_ENDED, /* the server does not have it any more: somebody forced its release, its key was
                          deleted, its lease ran out there, or a fail-over has lost it */
  FAIRLOCK_LOSS_TIME /* its lease has run out here: it is not renewed, or no renewal was answered in
                          time. The server may still have it for a moment */
};

/* A hold that is lost. Valid during the call only, as are those below; later releases add members. */
struct fairlock_loss {
  uint64_t token;                   /* that of the hold */
  enum fairlock_loss_reason reason; /* take one that you do not know for _ENDED */
};

/* How an operation has ended. */
struct fairlock_end {
  uint64_t token; /* that of the hold; if there is none now, of the handle's last one, or 0 */
  int status;     /* its result */
};

/* A message that asks for a lock. */
struct fairlock_asking {
  uint64_t token; /* that of the hold */
  const char
      *words;  /* who asks, a word, and perhaps a space and why: any bytes, without a NUL, which
                        anybody may have sent: escape what you show */
  size_t size; /* how many; 0: the message does not say it */
};

/* A callback: a hold is lost. Called once for each, also if the release finds it. */
typedef void (*fairlock_lost_fn)(struct fairlock *handle, const struct fairlock_loss *loss,
                                 void *context);

/*
 * A callback: an operation has ended that was begun with FAIRLOCK_PENDING; fairlock_result() has
 * the same status from now on. Called once for each, after `lost` if a loss ends it, but not for
 * one for which a call waits, as fairlock_acquire() does. Any call that services the client, begins
 * an operation or cancels one may end operations of any handle, so this may be called before the
 * call that began it has returned. Put the handle on a list, or wake a task, and act on it later: a
 * loop looks at its list before it sleeps, also after it has begun something.
 */
typedef void (*fairlock_ended_fn)(struct fairlock *handle, const struct fairlock_end *end,
                                  void *context);

/*
 * A callback: an operator asks the holder to release, by fairlock_ask_release() or `fairlock break
 * --ask`. The hold goes on until the program releases it. Called once for each message; a message may
 * be lost, as is one for which the receive buffer has no room: with words, up to 215 bytes.
 */
typedef void (*fairlock_asked_fn)(struct fairlock *handle, const struct fairlock_asking *asking,
                                  void *context);

/*
 * What a client needs to know. It stays unchanged as long as the client, and may be const, in
 * flash. Where a member may be 0 or NULL, its comment says what that means.
 */
struct fairlock_config {
  void *receive_buffer; /* for this client alone */
  size_t receive_size;  /* at least FAIRLOCK_RECEIVE_SIZE of the longest name; at most INT32_MAX */
  void *send_buffer;    /* for this client alone */
  size_t send_size;     /* FAIRLOCK_SEND_MIN to INT32_MAX: what does not fit is sent in pieces, and
                           1 KB or more saves system calls */

  const char *client_id;   /* the beginning of the ids of this client's handles, for people who look
                              at the queue: printable, no colon, at most FAIRLOCK_ID_MAX characters.
                              The number and the time of the first connection, both from the server,
                              make it unique. NULL: these two alone */
  const char *user;        /* NULL: the default user. If it changes: fairlock_use_credentials() */
  const char *password;    /* NULL: no authentication. Redis takes at most 16 KB */
  const char *client_name; /* shown by CLIENT LIST; no spaces. NULL: none */
  uint32_t database;       /* SELECT; 0: the default one */

  uint32_t lease_ms;    /* the lease for FAIRLOCK_RENEW. 0: 30000 */
  uint32_t waiter_ms;   /* the waiter timeout: a waiter that is silent for this long loses its
                           place. It sends a heartbeat every two fifths of this. Raised to three
                           round trips if those are longer. FAIRLOCK_WAITER_MIN_MS to _MAX_MS;
                           0: 5000 */
  uint32_t claim_ms;    /* the claim: a handover to a waiter that is not confirmed within this goes
                           to the next. At least what the message and the answer to its confirmation
                           take, or a live waiter loses its turn; raised to three round trips.
                           FAIRLOCK_CLAIM_MIN_MS to waiter_ms; 0: the waiter timeout */
  uint32_t response_ms; /* the connection is dead if an answer takes longer than this. Raised to
                           half of itself plus two measured round trips if that is longer. At most
                           one and a half waiter_ms. 0: two fifths of waiter_ms */
  uint32_t connect_ms;  /* connecting fails if it takes longer; the greeting after it may take this
                           plus response_ms. At most FAIRLOCK_DURATION_MAX_MS / 4. 0: waiter_ms,
                           with fairlock_follow() 1000 */
  uint32_t offline_ms;  /* an operation fails if there is no useful answer for this long, even if
                           its wait is longer. Four measured round trips are added. Attempts to
                           connect are up to 5 s apart after failures, so with less, an operation
                           may fail without any. 0: twice waiter_ms, with fairlock_follow() 60000;
                           FAIRLOCK_FOREVER: only the limit of its wait ends it */

  fairlock_lost_fn lost;   /* NULL: none */
  void *lost_context;      /* passed to lost */
  fairlock_ended_fn ended; /* NULL: none */
  void *ended_context;     /* passed to ended */
  fairlock_asked_fn asked; /* NULL: none. With it, handles listen while they hold, also after a try;
                              with a fixed lease, only until the connection breaks */
  void *asked_context;     /* passed to asked */
};

/* Clients */

/* Makes client ready; connects to nothing yet. Returns FAIRLOCK_OK, _INVALID or _TOO_LONG. */
int fairlock_client_init(struct fairlock_client *client, const struct fairlock_config *config,
                         struct port_transport *transport);

/*
 * Closes the connection; in a forked process, that process's copy. No task may be inside a function
 * of the client. Handles that were not taken out are gone with it: what they have on the server
 * ends with its lease, or no longer counts after its waiter timeout. The memory of those that were
 * abandoned is free: `freed` is called for each, but not in a forked process.
 */
void fairlock_client_deinit(struct fairlock_client *client);

/*
 * Checks that the server can be reached and accepts us, as at a program's start. Tries once; if the
 * connection is up, sends nothing. Other functions connect by themselves. Returns FAIRLOCK_OK,
 * _UNREACHABLE, _UNTRUSTED, _DENIED, _UNSUPPORTED, _UNAVAILABLE, _REFUSED or _PROTOCOL.
 */
int fairlock_connect(struct fairlock_client *client);

/* Handles */

/*
 * Makes handle a view of the lock called name, a string; fairlock_init_bytes() takes any bytes. The
 * name is also a key: it must not be one that something else uses, such as another lock's notes
 * ("fairlock:{x}"). Returns FAIRLOCK_OK, _TOO_LONG (more than FAIRLOCK_NAME_MAX, or than the
 * receive buffer has room for), or _INVALID: the name is empty, or wholly in braces, as "{x}" is,
 * which has the queue of "x": take "{x}:lock".
 */
int fairlock_init(struct fairlock *handle, struct fairlock_client *client, const char *name);
int fairlock_init_bytes(struct fairlock *handle, struct fairlock_client *client, const void *name,
                        size_t size);

/*
 * Takes handle out of its client. Only after FAIRLOCK_OK its memory is the caller's again:
 *   FAIRLOCK_IN_PROGRESS  it is held, an operation is under way, or another task is inside one
 *   FAIRLOCK_UNREACHABLE, _UNAVAILABLE, _READONLY, _OOM, _MISCONF
 *                         for this reason, the server could not be told for offline_ms that the
 *                         handle no longer waits or holds. The client goes on trying while it is
 *                         serviced; call again. Returns FAIRLOCK_OK at the latest when that has
 *                         expired there: after its lease, a waiter timeout and response_ms
 */
int fairlock_deinit(struct fairlock *handle);

/* Without blocking: FAIRLOCK_PENDING (service the client, call again), _OK or _IN_PROGRESS. */
int fairlock_start_deinit(struct fairlock *handle);

/* Acquiring and releasing */

/*
 * Acquires the lock, waiting in line for up to wait_ms: 0 does not wait, FAIRLOCK_FOREVER waits
 * without a limit, otherwise at most FAIRLOCK_DURATION_MAX_MS. The hold ends by itself after
 * lease_ms: FAIRLOCK_LEASE_MIN_MS to FAIRLOCK_DURATION_MAX_MS, or FAIRLOCK_RENEW; anything else, so also
 * 0 or -1 that was computed, is FAIRLOCK_INVALID. One that is
 * shorter than the round trip to the server is over when we learn of it: wait_ms 0 then ends with
 * FAIRLOCK_TIMEOUT, and a longer wait asks again every half second. The holder re-enters at once,
 * up to a hold count of 65535, and has to release as many times. Returns
 *   FAIRLOCK_OK           held
 *   FAIRLOCK_BUSY         wait_ms was 0, and the lock is held or somebody is before us
 *   FAIRLOCK_TIMEOUT      not granted within wait_ms. Without a connection, the place in the queue
 *                         lasts until the client is back, or for waiter_ms
 *   FAIRLOCK_CANCELLED    by fairlock_cancel(). The rest as for a time-out
 *   FAIRLOCK_LOST         the hold to re-enter is gone: release as often as acquired, begin again. Or
 *                         this hold was lost before the caller ran again: it has nothing to release
 *   FAIRLOCK_WRONG_TASK   another task holds the lock with this handle
 *   FAIRLOCK_IN_PROGRESS  another task is inside an operation of this handle
 *   FAIRLOCK_INVALID      an argument is out of its range
 *   FAIRLOCK_UNREACHABLE, _UNAVAILABLE, _READONLY, _OOM, _MISCONF, _UNSYNCED
 *                         for this reason, no useful answer came for offline_ms, or until the end
 *                         of the wait; for wait_ms 0, a refusal, or a connection that failed
 *   FAIRLOCK_DENIED, _UNSUPPORTED, _REFUSED, _PROTOCOL
 *                         the server does not serve us; see fairlock_error(). With credentials that
 *                         change, a wait ends by WRONGPASS or NOAUTH only after offline_ms
 *   FAIRLOCK_OUTDATED     a later release uses the lock in a way that this one does not know; for a
 *                         wait that is in the queue, only if it has lost its place
 *   FAIRLOCK_UNTRUSTED    TLS: at once; but a wait that is in the queue ends after offline_ms
 */
int fairlock_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms);

/* Acquires the lock only if that takes no wait and passes nobody who waits: the same with wait_ms 0. */
int fairlock_try_acquire(struct fairlock *handle, uint32_t lease_ms);

/*
 * Releases one level. After the last one the lock goes to the next in line, and the caller must no
 * longer act as its holder, whatever is returned:
 *   FAIRLOCK_OK           released
 *   FAIRLOCK_LOST         the hold had ended before
 *   FAIRLOCK_NOT_HELD, _WRONG_TASK, _IN_PROGRESS
 *                         not held, or another task's, or that is inside an operation of this handle
 *   FAIRLOCK_UNKNOWN      sent, but not answered in time. The client repeats it while it is
 *                         serviced, and the lease ends the hold at the latest
 *   others                not released, for this reason; the next operation with handle will end the
 *                         hold, or the lease will
 */
int fairlock_release(struct fairlock *handle);

/*
 * Makes the hold that of the calling task, for thread pools and coroutines: this task releases and
 * re-enters, and every other gets FAIRLOCK_WRONG_TASK. A lost hold, or one that is still being
 * released, can be adopted, too. The token stays the same. No I/O.
 *
 * The former task must have made its last call with handle, must no longer act as the holder, and
 * must have passed handle on by something that synchronises the two: a queue, a mutex, the start or
 * the end of a thread. Nothing checks that. Meanwhile some task has to service the client.
 *   FAIRLOCK_OK           the hold is the calling task's
 *   FAIRLOCK_NOT_HELD     there is none: any task may acquire
 *   FAIRLOCK_IN_PROGRESS  an operation is under way, or another task is inside one
 */
int fairlock_adopt(struct fairlock *handle);

/*
 * Milliseconds for which it is still safe to act as the holder; 0: not held. No I/O. Ask before each
 * step that must not be done twice, and still pass the token on: a task may be paused after asking.
 * A lock that was handed over has what is left of its claim until the server confirms it, one round
 * trip later, and then its lease.
 */
uint32_t fairlock_remaining_ms(struct fairlock *handle);

/* How many times the handle has acquired and not yet released; 0: not held. No I/O. */
uint32_t fairlock_hold_count(struct fairlock *handle);

/*
 * The fencing token of the hold: larger than that of each hold before it. 0: not held. Pass it to
 * whatever the lock protects, which should refuse a token smaller than one it has seen. No I/O.
 */
uint64_t fairlock_token(struct fairlock *handle);

/*
 * Ends a wait from another task: the acquire returns FAIRLOCK_CANCELLED, or FAIRLOCK_OK if it was
 * just granted. Returns FAIRLOCK_OK, or FAIRLOCK_NOT_HELD when the handle is not waiting.
 */
int fairlock_cancel(struct fairlock *handle);

/* Servicing the client: without blocking, or in a task of its own */

/*
 * Without blocking, for a superloop: begin an operation, service the client with fairlock_poll(),
 * and look at the result of each handle, or, with many, at what `ended` of the configuration was told.
 * Each returns FAIRLOCK_PENDING when the operation was begun, or its final status.
 */
int fairlock_start_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms);
int fairlock_start_release(struct fairlock *handle);

/*
 * The result of the handle's last operation; FAIRLOCK_PENDING while it is under way. It stays as it
 * is when a hold is lost: fairlock_remaining_ms() is 0 then, and `lost` was called.
 */
int fairlock_result(struct fairlock *handle);

/*
 * Waits for the end of an operation that was begun with handle, for up to wait_ms, as the calls that
 * block do, and services the client meanwhile. Returns its result, or
 *   FAIRLOCK_PENDING      wait_ms has passed, and the operation goes on: call it again, or end that by
 *                         fairlock_cancel() or fairlock_abandon(). POSIX: also if the calling thread
 *                         has handled a signal while it slept, with SA_RESTART or without; but not for
 *                         one that came just before it slept, nor while a host's name is resolved
 *   FAIRLOCK_IN_PROGRESS  another task is waiting for it
 * If it returns the result, `ended` is not called for it; otherwise that will be.
 */
int fairlock_wait(struct fairlock *handle, uint32_t wait_ms);

/*
 * Services the client once: sends requests, receives what has arrived, does what is due. If there
 * is nothing to do, blocks for up to timeout_ms, and never for more than PORT_WAIT_MAX_MS. If
 * another task services the client, blocks until that one has received something.
 *
 * Returns in how many ms to call it again, at most about 19 hours; a device may sleep for that
 * long, if arriving bytes wake it. 0: at once, because there may be more to receive. At most 10,
 * for devices that do not wake when the transport can go on: while bytes are unsent, or a
 * connection is being opened, unless the transport waits for bytes to open it (PORT_NEEDS_INPUT).
 */
uint32_t fairlock_poll(struct fairlock_client *client, uint32_t timeout_ms);

/* What the client wants of its connection: bits of fairlock_wants(). */
enum fairlock_want {
  FAIRLOCK_CONNECT = 1, /* it is being opened, or should be: wake me when it is writable */
  FAIRLOCK_CLOSE = 2,   /* it has to be closed: call fairlock_poll() at once */
  FAIRLOCK_SEND = 4,    /* there is more to send: wake me when it is writable, too */
  FAIRLOCK_RECEIVE = 8  /* wake me when it is readable. Also alone, while it is being opened and the
                           server has to answer first, as in the handshake of TLS */
};

/*
 * For your event loop: what the client waits for, after fairlock_poll(client, 0), as bits of enum
 * fairlock_want; 0: there is no connection, only the time counts. Call fairlock_poll() again when
 * that has happened, when the time that it returned has passed, and after you have begun an operation
 * or called fairlock_cancel(). port_posix_fd() returns the socket to watch, also below TLS.
 *
 * Such a client is the loop's alone: no other task may be inside fairlock_run() or a call that waits
 * for it. That task would read what the loop waits for, and the loop would hear of it at its next
 * heartbeat only. Other tasks, such as a pool, have a client of their own. Or a task is inside
 * fairlock_run(), and the loop only begins operations; `ended` wakes it, for instance by an eventfd.
 */
unsigned fairlock_wants(struct fairlock_client *client);

/*
 * Services the client until fairlock_stop(), to keep leases alive, in one task at a time. Returns
 * FAIRLOCK_OK when it was stopped; FAIRLOCK_IN_PROGRESS, at once, if another task is inside it.
 */
int fairlock_run(struct fairlock_client *client);

/*
 * Makes fairlock_run() return at once if the transport can wake it, as POSIX's can, within 32 ms, also
 * below TLS; otherwise within PORT_WAIT_MAX_MS. If no task is inside it, its next call returns.
 */
void fairlock_stop(struct fairlock_client *client);

/* What happened */

/*
 * Copies the server's last error text into size bytes (1 or more), with a NUL, cut off if it is longer;
 * "": there was none. FAIRLOCK_ERROR_SIZE has room for all of it.
 */
#define FAIRLOCK_ERROR_SIZE 64
void fairlock_error(struct fairlock_client *client, char *text, size_t size);

/*
 * Why the server gives no useful answers at present, as a status; FAIRLOCK_OK: it does, or nothing
 * is known yet. A server that only sends us elsewhere gives none, and the last reason stays. While a
 * lock is held, this is the reason for which its lease is not renewed.
 */
int fairlock_server_status(struct fairlock_client *client);

/*
 * Copies the id under which handle holds and waits, "<client id>:<number>", into size bytes (1 or more),
 * with a NUL; "" before the first connection, when the client makes its id, which it never changes, and
 * if there is not room for all of it, as in FAIRLOCK_HOLDER_ID_SIZE.
 */
#define FAIRLOCK_HOLDER_ID_SIZE (FAIRLOCK_ID_MAX + FAIRLOCK_ID_SUFFIX + 12U)
void fairlock_id(struct fairlock *handle, char *text, size_t size);

/* Counts since fairlock_client_init(). Each counter wraps around at 2^32. */
struct fairlock_counters {
  uint32_t acquisitions; /* new holds */
  uint32_t waits;        /* acquisitions that had to wait: granted and polled together */
  uint32_t granted;      /* handovers that came as a message */
  uint32_t polled;       /* handovers found by asking */
  uint32_t renewals;     /* leases renewed; the confirmation of a handover does not count */
  uint32_t losses;       /* holds lost */
  uint32_t connections;  /* connections made */
  uint32_t requests;     /* scripts sent, and AUTHs on open connections */
};

/*
 * Copies what happened so far. size: sizeof *counters, as your program was compiled; members that the
 * library does not have are 0.
 */
void fairlock_read_counters(struct fairlock_client *client, struct fairlock_counters *counters,
                            size_t size);

/* The memory of struct fairlock_client and struct fairlock, a handle: all of it private. */
#include "state.h"

/* The version. The Makefile, the command and the tarball take it from here. */
#define FAIRLOCK_VERSION       "1.0.0-rc3"
#define FAIRLOCK_VERSION_MAJOR 1
#define FAIRLOCK_VERSION_MINOR 0
#define FAIRLOCK_VERSION_PATCH 0

/* To compare: major, then two digits each for minor, patch, and 99 or the candidate's number. */
#define FAIRLOCK_VERSION_NUMBER 1000003L

/* The format of what stands in Redis: lock/FORMAT.md. All releases of one format share queues. */
#define FAIRLOCK_FORMAT 1

/* Returns FAIRLOCK_VERSION of the library that is linked. In constant memory. */
const char *fairlock_version(void);

#ifdef __cplusplus
}
#endif

#endif
