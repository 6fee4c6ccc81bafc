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
 * Options. A log, credentials that change, servers that move, locks that are kept, and downgrades have a
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
#define fairlock_client_init         PORT_NAMED(fairlock_client_init)
#define fairlock_init                PORT_NAMED(fairlock_init)
#define fairlock_init_bytes          PORT_NAMED(fairlock_init_bytes)
#define fairlock_init_shared         PORT_NAMED(fairlock_init_shared)
#define fairlock_init_shared_bytes   PORT_NAMED(fairlock_init_shared_bytes)
#define fairlock_follow              PORT_NAMED(fairlock_follow)
#define fairlock_set_log             PORT_NAMED(fairlock_set_log)
#define fairlock_use_credentials     PORT_NAMED(fairlock_use_credentials)
#define fairlock_use_keeping         PORT_NAMED(fairlock_use_keeping)
#define fairlock_use_downgrading     PORT_NAMED(fairlock_use_downgrading)
#define fairlock_abandon             PORT_NAMED(fairlock_abandon)
#define fairlock_start_force_release PORT_NAMED(fairlock_start_force_release)
#define fairlock_start_ask_release   PORT_NAMED(fairlock_start_ask_release)

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

/* A log */

/* The events of a log. */
enum fairlock_log_event {
  FAIRLOCK_LOG_CONNECTED = 1, /* the server has accepted us */
  FAIRLOCK_LOG_NOT_CONNECTED, /* no connection could be made, or the server did not accept us.
                                 status: why; text: fairlock_status_text(status). The transport may
                                 have a better text: port_posix_error() */
  FAIRLOCK_LOG_DISCONNECTED,  /* an established connection was given up, and another will be made.
                                 status, text: as above */
  FAIRLOCK_LOG_REDIRECTED,    /* a Sentinel or a node sends us elsewhere. text: "host:port" */
  FAIRLOCK_LOG_REFUSED,       /* the server has refused a request, for now or for good. text: its
                                 message, which begins with a code such as NOPERM, as
                                 fairlock_error() gives it */
  FAIRLOCK_LOG_ASKED /* see fairlock_asked_fn. text: the token of the hold, and who asks and
                                 why, as they were sent, cut off to FAIRLOCK_ERROR_SIZE. Without
                                 `asked` in the configuration, only a holder that has waited in the
                                 queue, or keeps its locks, listens */
};

/*
 * A callback: an event. text is valid during the call only; NULL: none, as for FAIRLOCK_LOG_CONNECTED.
 * Of a hold that is lost, only `lost` tells.
 */
typedef void (*fairlock_log_fn)(enum fairlock_log_event event, int status, const char *text,
                                void *context);

/* An option: a log. */
struct fairlock_log {
  fairlock_log_fn function; /* called for each event */
  void *context;            /* passed to function */

  /* the rest is private */
  struct fairlock_log_state own;
};

/*
 * Logs each connection that is made, refused, redirected or ended, with the reason. Returns
 * FAIRLOCK_OK.
 */
int fairlock_set_log(struct fairlock_client *client, struct fairlock_log *log);

/* Credentials that change */

/* User and password for a connection. The client sets the first part, your function the rest. */
struct fairlock_login {
  bool sentinel; /* they are for a Sentinel, which has other users than the master */
  bool refused;  /* the server has refused the last ones: do not give the same again */

  const char *user;     /* NULL, as it is before: the default user */
  const char *password; /* NULL, as it is before: no authentication */
  uint32_t valid_ms;    /* for how long from now they are valid; more than FAIRLOCK_DURATION_MAX_MS
                           counts as that. 0, as it is before: they do not expire */
};

/*
 * A callback: fills in login and returns true; false: there are no user and password now. The
 * strings stay unchanged until it is called again. Fetch a token in a task of your own.
 */
typedef bool (*fairlock_credentials_fn)(struct fairlock_login *login, void *context);

/* An option: credentials that change. */
struct fairlock_credentials {
  fairlock_credentials_fn function; /* called when user and password are needed */
  void *context;                    /* passed to function */

  /* the rest is private */
  struct fairlock_credentials_state own;
};

/*
 * Makes the client ask credentials->function for user and password, at each connection, instead of
 * the configuration and the topology: for tokens that expire, and passwords that are rotated. If it
 * gives nothing, or the server answers WRONGPASS or NOAUTH, then or later, the connection is closed,
 * and another is made after the usual pause; meanwhile holds and waits go on. A wait ends with
 * FAIRLOCK_DENIED after offline_ms; what does not wait, at once.
 *
 * If credentials expire, it is called again when three quarters of their time have passed, for an
 * AUTH on the open connection. If it gives nothing, or the server refuses, the connection goes on
 * with the former user, and this is tried again after half of the remaining time, but not sooner
 * than in 1 s; when they have expired, every 5 s, until the server closes the connection. Returns
 * FAIRLOCK_OK.
 */
int fairlock_use_credentials(struct fairlock_client *client,
                             struct fairlock_credentials *credentials);

/* Servers that move */

/*
 * An option: servers that move. The transport's addresses are seeds, of one kind:
 *   with `service`   Sentinels, which are asked for the master
 *   with `cluster`   nodes of one cluster. If no seed is one: FAIRLOCK_REFUSED
 *   otherwise        nodes of a cluster, one server, or several servers of one master, because with
 *                    unrelated masters, two clients could hold one lock. So each master has to show
 *                    by ROLE (the user needs +role) that it has or had a replica, or was one, since
 *                    it started. Otherwise it counts as FAIRLOCK_UNAVAILABLE
 * The client is connected to one server at a time: where a Sentinel or a MOVED sends it, up to four
 * times in a row without a pause; and at the next seed if its server is gone, is read-only, or says
 * that it is a replica. It pauses for a second at most between two rounds of the seeds.
 */
struct fairlock_topology {
  char *address;                 /* room for "host:port". NULL: redirections are not followed */
  size_t address_size;           /* at least 2: 22 for any IPv4 address, 54 for IPv6, 263 for any
                                    host name. Without address, 0 */
  const char *service;           /* the master's name at Sentinels. NULL: the seeds are others */
  bool cluster;                  /* the seeds are nodes of a cluster; not with service */
  const char *sentinel_user;     /* for the Sentinels. NULL: the default user */
  const char *sentinel_password; /* for the Sentinels. NULL: no authentication */
  uint32_t replicas;             /* a hold begins, and a lease is extended, only when so many
                                    replicas have acknowledged it (WAIT): if all, any that becomes
                                    the master knows the hold. 0: none */
  uint32_t replicas_ms;          /* how long they may take, at most half of response_ms. 0: half of
                                    response_ms, at most 500 */

  /* the rest is private */
  struct fairlock_topology_state own;
};

/*
 * Makes the client follow servers that move (Sentinel, Cluster, a promoted replica). If `aim` of
 * the transport is NULL, it has one address, and a redirected operation ends with
 * FAIRLOCK_WRONG_SHARD or _READONLY. Returns FAIRLOCK_OK, or FAIRLOCK_INVALID: a service without
 * room for an address or without `aim`, replicas_ms above half of response_ms, or a second call.
 */
int fairlock_follow(struct fairlock_client *client, struct fairlock_topology *topology);

/*
 * The cluster slot of the lock called name, 0 to 16383, by the specification of Redis cluster.
 * Locks whose slots are on one node can share a client; names with the same part in braces have the
 * same slot: "{line:4}door". A name with "{}", with a brace that is not closed, or with a "}"
 * alone, cannot be locked in a cluster.
 */
unsigned fairlock_slot(const void *name, size_t size);

/* Locks that are kept */

/* An option: locks that are kept. */
struct fairlock_keeping {
  uint32_t keep_ms; /* at most, after the last acquire that was sent: 1 to two thirds of lease_ms */

  /* the rest is private */
  struct fairlock_keeping_state own;
};

/*
 * Makes the client keep its locks. If a lock was acquired with FAIRLOCK_RENEW, and nobody waits when
 * it is released, that release and the next acquire with FAIRLOCK_RENEW are answered here, and
 * nothing is sent: the hold goes on, with its token. An acquire that would have less than two thirds
 * of the lease asks the server, and begins another hold. The keep ends when a client of any release
 * queues, which then holds two round trips later, or an operator asks (fairlock_ask_release()).
 * While a lock is kept it is not held: fairlock_remaining_ms(), fairlock_hold_count() and
 * fairlock_token() are 0, any task may acquire, and `lost` is not called. Other clients still see a
 * holder. One that only tries is refused until the keep ends, and a fairlock_force_release() is not
 * noticed until then: keep_ms after the last acquire that went to the server, at the latest.
 *
 * Some task has to service the client, as for FAIRLOCK_RENEW, and a program calls fairlock_deinit()
 * for each handle before it exits: otherwise what is kept stays held until its lease ends. If
 * nobody has serviced the client for 100 ms, an acquire or a release takes up to a millisecond
 * longer, because it receives first. Without blocking, they return FAIRLOCK_PENDING as usual, and the
 * result is there at once, or, if they have to receive first, after a later fairlock_poll().
 *
 * The server has to know CLIENT TRACKING (Redis since 6.0), and the user needs client|tracking,
 * client|caching and exists; otherwise the log says so, and nothing is kept. Returns FAIRLOCK_OK,
 * or FAIRLOCK_INVALID: keep_ms is out of its range.
 */
int fairlock_use_keeping(struct fairlock_client *client, struct fairlock_keeping *keeping);

/* Locks that are shared */

#define FAIRLOCK_LIMIT_MAX 1000U /* the largest limit */

/* A handle that shares its lock. */
struct fairlock_shared {
  struct fairlock handle; /* for all functions of a handle */

  /* the rest is private */
  uint16_t limit;
  struct fairlock_shared_state own;
};

/*
 * Makes shared->handle a view of the lock called name, a string, that shares it;
 * fairlock_init_shared_bytes() takes any bytes. Up to limit such handles hold it at a time, 1 to
 * FAIRLOCK_LIMIT_MAX; 0: any number. Whoever wants it exclusively, by fairlock_init() or in Redisson,
 * waits until none of them holds it. All wait in the same queue: first come, first served. Where they
 * name different limits, the smallest one in use binds all: each is in use until the lease of who
 * named it would end, or its waiter timeout if that is longer, unless nobody else holds any more. So a
 * limit is changed by programs that start with the new one. The token is larger than that of each exclusive hold before it; of two who share,
 * the later may have the smaller one, because its share was kept, or was given to a request whose
 * answer was lost.
 *
 * A program that wants the lock exclusively at times has a second handle for that, and does not wait
 * by the one while it holds by the other: two who do would wait for each other. So there is no
 * upgrade: release, acquire exclusively, and look again at what was read. Returns FAIRLOCK_OK,
 * _TOO_LONG, or _INVALID: a name or a limit out of its range.
 */
int fairlock_init_shared(struct fairlock_shared *shared, struct fairlock_client *client,
                         const char *name, uint32_t limit);
int fairlock_init_shared_bytes(struct fairlock_shared *shared, struct fairlock_client *client,
                               const void *name, size_t size, uint32_t limit);

/* An option: holds that are exclusive become shared ones. */
struct fairlock_downgrading {
  struct fairlock_downgrading_state own; /* private */
};

/* Lets the client downgrade. Returns FAIRLOCK_OK. */
int fairlock_use_downgrading(struct fairlock_client *client, struct fairlock_downgrading *option);

/*
 * From exclusive to shared: shared, of the same client and lock, gets the hold of exclusive, with a
 * larger token and this lease. Others may join, but nobody gets in between. If exclusive is not held
 * exactly once, by the calling task, or shared is in use, or the client does not use downgrading, nothing is
 * done: FAIRLOCK_NOT_HELD, _INVALID, _WRONG_TASK, _IN_PROGRESS. Otherwise exclusive holds no longer, whatever is returned:
 *   FAIRLOCK_OK    shared holds
 *   FAIRLOCK_LOST  the hold had ended before, or the new one by the time the call returned
 *   others         as for fairlock_acquire() without a limit. If something is left of a hold,
 *                  the client ends it while it is serviced, or its lease does
 * Without blocking, both handles have a result: shared's as of an acquire, which fairlock_cancel()
 * may end, exclusive's as of a release.
 */
int fairlock_downgrade(struct fairlock *exclusive, struct fairlock_shared *shared,
                       uint32_t lease_ms);
int fairlock_start_downgrade(struct fairlock *exclusive, struct fairlock_shared *shared,
                             uint32_t lease_ms);

/* Giving up */

struct fairlock_rest;

/*
 * A callback: the memory of rest is the program's again. Called once for each, in whichever task
 * services the client, and perhaps before fairlock_abandon() returns. It may free the memory.
 */
typedef void (*fairlock_freed_fn)(struct fairlock_rest *rest, void *context);

/* What is left of a handle that was given up, until the server has been told. */
struct fairlock_rest {
  fairlock_freed_fn freed; /* called when this memory is free. NULL: nobody is told */
  void *context;           /* passed to freed */
  char *name;              /* room for a copy of the lock's name. NULL: the name stays unchanged for
                              as long as this memory, and is not copied */
  size_t name_size;        /* bytes of that room, at least those of the name */

  /* the rest is private */
  struct fairlock_rest_state own;
  struct fairlock_shared handle;
};

/*
 * Gives up whatever handle is doing, and takes it out of its client, without waiting: for destructors
 * and finalizers, and for a wait that nobody needs any more. It may wait, try, hold, re-enter, release,
 * have lost its hold, be kept, be taken out, inspect or break, or do nothing. Its memory is the caller's
 * again at once. What the server has of it, a place or a hold of whatever hold count, is ended in the
 * background while some task services the client; the memory of rest is needed until then. That takes a
 * round trip, and without a connection at most as long as fairlock_deinit() may need: the lease, a waiter
 * timeout and response_ms, and then until the next attempt to connect has failed. If the server refuses
 * it for good, rest is freed, and what is left ends with its time there. None of `ended`, `lost` and
 * `asked` is called for handle any more.
 *
 * Any task may call it, also for a hold of another one, which must have made its last call with handle.
 * Not for a handle for which a call in another task is waiting: end that by fairlock_cancel(), and let
 * the task abandon it that was in the call. fairlock_client_deinit() frees each rest, told or not.
 *   FAIRLOCK_OK           the handle is out, and `freed` was called or will be
 *   FAIRLOCK_IN_PROGRESS  nothing was done: a call is waiting for the handle
 *   FAIRLOCK_TOO_LONG     nothing was done: the name needs more room
 *   FAIRLOCK_FORKED       all memory is free; `freed` is not called
 */
int fairlock_abandon(struct fairlock *handle, struct fairlock_rest *rest);

/* For operators: looking at a lock, and ending its hold */

/* What a holder or a waiter uses. */
enum fairlock_kind {
  FAIRLOCK_KIND_NONE,     /* there is nobody: the lock is free */
  FAIRLOCK_KIND_REDISSON, /* a fair lock of Redisson */
  FAIRLOCK_KIND_FAIRLOCK  /* this library, of any release */
};

/* Whether a holder or a waiter seems to be alive. */
enum fairlock_life {
  FAIRLOCK_LIFE_UNKNOWN, /* nothing tells: a holder that does not renew, such as Redisson's; a waiter
                            of a later release, whose note cannot be read here; a free lock */
  FAIRLOCK_LIFE_ALIVE,   /* heard in time */
  FAIRLOCK_LIFE_DEAD     /* a waiter not heard within its timeout, or a holder that has missed two
                            renewals */
};

/* One entry of an inspection. Valid during the call only. The second part is for place 0 alone. */
struct fairlock_report {
  const char *id; /* the id of the holder or of a waiter, without a NUL; NULL: the lock is free */
  size_t id_size; /* bytes at id. One that the receive buffer has no room for is "?" */
  enum fairlock_kind kind; /* of client */
  enum fairlock_life life; /* as far as is known */
  bool listens;   /* it listens: a handover would reach a waiter, and fairlock_ask_release() the
                     holder */
  bool shares;    /* it shares the lock, or waits to */
  uint32_t place; /* 0: a holder (or nobody holds), 1: first in line, and so on */

  uint32_t waiter_count; /* how many wait */
  uint32_t holder_count; /* how many hold; 0: the lock is free */
  uint32_t holder_index; /* which of them this is, from 0: the one whose lease ends last is first */
  uint32_t limit; /* how many may share: the smallest limit in use; 0: none is, or exclusive */
  int64_t ttl_ms; /* how much of the lease is left; -1: it does not end; -2: the lock is free */
  uint32_t hold_count; /* 0: the lock is free, or was handed over and is not confirmed yet */
  uint64_t token;      /* the fencing token; 0: free, or none, or it cannot be read */
  uint32_t lease_ms;   /* the whole lease; 0: free, or not known: Redisson's, of an earlier release,
                         re-entered */
  int64_t unheard_ms;  /* since the holder was last heard, by the server's clock; -1: not known */
  bool renews;         /* as with FAIRLOCK_RENEW; false: or not known */
  bool outdated; /* a later release uses the lock in a way that this one does not know: whoever
                          comes now gets FAIRLOCK_OUTDATED */

  /* Of the first holder, where several limits are in use: up to nine of them, the smallest first, in decimal,
   * a space between them, without a NUL. 0 bytes: there are not so many, or the id is "?" */
  const char *limits;
  size_t limits_size;
};

/*
 * A callback: one entry. The holders come first (place 0), one if the lock is not shared, then each
 * waiter in order. Returns whether to go on: after false it is not called again, and the inspection
 * ends with FAIRLOCK_OK when the rest of the answer was read. If the connection breaks meanwhile, all begins again
 * with the first holder.
 */
typedef bool (*fairlock_report_fn)(const struct fairlock_report *report, void *context);

/*
 * Reports who holds the lock called name, and who waits, in order, and changes nothing. Returns
 * FAIRLOCK_OK, FAIRLOCK_IN_PROGRESS (another task is inspecting with this client), or a failure as
 * for fairlock_acquire(), after which the report may be incomplete.
 */
int fairlock_inspect(struct fairlock_client *client, const void *name, size_t size,
                     fairlock_report_fn report, void *context);

/*
 * Ends the hold of the lock called name, and hands the lock to the next in line. token: only a hold
 * with this fencing token, as fairlock_inspect() has reported it; FAIRLOCK_ANY_TOKEN: whoever holds,
 * or all who share it. The holder finds out at its next renewal or release, and until then believes
 * that it holds; so does a waiter whose grant is on its way. Where that matters, fence with the token.
 *   FAIRLOCK_OK        that hold has ended; during a fail-over, perhaps on the old master alone: inspect
 *                      once more
 *   FAIRLOCK_NOT_HELD  the lock is free, or has another hold by now: nothing was done. Also if that
 *                      hold was ended, but the connection broke before the answer came
 *   FAIRLOCK_INVALID   token is 0, or larger than 2^53. A hold that was reported with token 0, such
 *                      as Redisson's, is named by its holder: fairlock_start_force_release()
 *   others             as for fairlock_acquire(). With FAIRLOCK_ANY_TOKEN, if the connection breaks,
 *                      the request is sent again, and may then end the next hold, too
 */
#define FAIRLOCK_ANY_TOKEN UINT64_MAX /* of no hold: stands for each */
int fairlock_force_release(struct fairlock_client *client, const void *name, size_t size,
                           uint64_t token);

/*
 * Asks the holder of the lock called name to release it: its client calls `asked` of its
 * configuration, and decides. Does not wait for the end of the hold. As above, but for
 *   FAIRLOCK_OK             the message was sent to a holder that listens. It may be lost, or ignored
 *   FAIRLOCK_NOT_LISTENING  its holder cannot be asked: it does not listen, or is Redisson's
 */
int fairlock_ask_release(struct fairlock_client *client, const void *name, size_t size,
                         uint64_t token);

/* The hold that is meant: one that has this token and this holder. */
struct fairlock_target {
  uint64_t token;     /* its fencing token, at most 2^53; FAIRLOCK_ANY_TOKEN: any, or none. So is 0
                         with a holder, as in a report; without one it is FAIRLOCK_INVALID */
  const char *holder; /* the id of its holder, as in struct fairlock_report, with a NUL; NULL: any
                         holder. An id that is empty, is *, or has white space is FAIRLOCK_INVALID:
                         no client makes it. If a holder without tokens, such as Redisson's, has
                         acquired the lock again, the new hold is meant, too */

  /* the rest is private */
  struct fairlock_inquiry own;
};

/*
 * The same without blocking, as fairlock_start_acquire(), with a handle that neither holds nor
 * waits. target stays unchanged until the operation has ended.
 */
int fairlock_start_force_release(struct fairlock *handle, struct fairlock_target *target);
int fairlock_start_ask_release(struct fairlock *handle, struct fairlock_target *target);
int fairlock_start_inspect(struct fairlock *handle, fairlock_report_fn report, void *context);

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
