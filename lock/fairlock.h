/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fair distributed lock over Redis: whoever asks first is served first, whether it is a
 * microcontroller, a Linux process, or a Java service that uses Redisson's fair lock.
 *
 *     #include <fairlock/fairlock.h>         firmware, which compiles the sources: "fairlock.h"
 *     #include <fairlock/port_posix.h>
 *     struct port_posix socket;   struct fairlock_client client;   struct fairlock door;
 *     port_posix_tcp(&socket, "127.0.0.1", "6379");
 *     fairlock_client_init(&client, &config, &socket.transport);
 *     fairlock_init(&door, &client, "door:7");
 *     if (fairlock_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) == FAIRLOCK_OK) {
 *       ...                                  pass fairlock_token(&door) on to what you write to
 *       fairlock_release(&door);
 *     }
 *
 * Options. Each has a header, which includes this one; a program links only those that it uses:
 *     fairlock_share.h        locks that are shared, up to a limit or without one
 *     fairlock_keep.h         locks that the client keeps while nobody else wants them
 *     fairlock_follow.h       servers that move (Sentinel, Cluster), and replicas
 *     fairlock_credentials.h  user and password that change
 *     fairlock_log.h          what happens to the connection
 *     fairlock_abandon.h      gives up a handle without waiting, as in a destructor
 *     fairlock_operate.h      shows who holds and who waits, and ends a hold
 *     fairlock_several.h      several locks at once, all or none
 * For the first five, fill in the struct, and call its function after fairlock_client_init(),
 * before the first operation; a second call replaces the first. It returns FAIRLOCK_OK, or why the
 * option is not used: a later release may have more reasons.
 *
 * Memory. The library allocates nothing. What you pass by pointer (client, handles, configuration,
 * buffers, transport, names, options) is kept, not copied: it stays where it is, and valid, until
 * fairlock_deinit() and fairlock_client_deinit(). NULL, and memory that was never initialised, are
 * not checked for, except with FAIRLOCK_ASSERT: lock/PRODUCTION.md.
 *
 * Tasks. Several tasks may share a client, and so one connection. Any of them may call every
 * function, at any time, but never from an interrupt. A handle is one holder: each task that wants
 * the lock needs its own, and only that task, or one that adopts the hold, may release. A call that
 * blocks services the client (sends, receives, keeps time) for all tasks, unless one is inside
 * fairlock_run(). Cancelling a POSIX thread ends no call: fairlock_cancel() and fairlock_stop() do.
 *
 * Callbacks run in whichever task is inside a function of the client, with its mutex locked. They
 * must be short, and must neither wait nor call the library, which would never return with this
 * client. Set a flag, or cut power. What they get by pointer, but for handles, is valid during the
 * call only.
 *
 * Leases. A hold ends when its lease runs out, so a crash blocks nobody for ever. FAIRLOCK_RENEW
 * renews it at each third, but only while some task services the client: in a call that blocks, or
 * by fairlock_poll(). A program that computes for longer loses the lock, as `lost`,
 * fairlock_remaining_ms() and fairlock_release() report.
 *
 * Processes. After a fork(), client and handles are the parent's. In the child, functions send
 * nothing, and return FAIRLOCK_FORKED, 0 or "" at once (fairlock_poll(): about 19 hours). Call
 * fairlock_client_deinit() there, or exec(): lock/PRODUCTION.md.
 *
 * How long calls block, at most, but for fairlock_poll() and _run():
 *   acquire      wait_ms, or offline_ms without a useful answer; and response_ms to leave the queue
 *   try_acquire  an answer; without one, connect_ms and twice response_ms
 *   connect      twice connect_ms, and response_ms; with fairlock_follow() at each seed
 *   wait         wait_ms
 *   release, downgrade, deinit, force_release, ask_release, inspect   an answer, or offline_ms
 *   others       never, except for the mutex, and without I/O
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

/*
 * The result of an operation. After a failure or a time-out the caller neither holds nor waits;
 * after LOST others may hold already; after UNKNOWN the request may have been carried out, or not.
 */
enum fairlock_status {
  FAIRLOCK_PENDING = 1,       /* the operation is under way: service the client */
  FAIRLOCK_OK = 0,            /* done */
  FAIRLOCK_BUSY = -1,         /* a try: somebody else holds or is first in line. Try later */
  FAIRLOCK_TIMEOUT = -2,      /* the wait has ended without the lock */
  FAIRLOCK_CANCELLED = -3,    /* fairlock_cancel() has ended the wait */
  FAIRLOCK_LOST = -4,         /* the hold had ended: its lease ran out, its release was forced, or
                                 the key was deleted. Undo the work, or let the token protect it */
  FAIRLOCK_NOT_HELD = -5,     /* nothing to release or to cancel: a mistake of the caller */
  FAIRLOCK_WRONG_TASK = -6,   /* another task holds or releases with this handle */
  FAIRLOCK_IN_PROGRESS = -7,  /* the handle has an operation under way, or still holds: wait */
  FAIRLOCK_UNKNOWN = -8,      /* no answer to a release: carried out, or the lease ends the hold */
  FAIRLOCK_UNREACHABLE = -9,  /* no connection to the server. Check address and network */
  FAIRLOCK_DENIED = -10,      /* NOAUTH, WRONGPASS, NOPERM, or no credentials were given: the server
                                 refuses this user. Check the ACL */
  FAIRLOCK_UNSUPPORTED = -11, /* the server lacks RESP3 or a command. Use Redis 6.2 or newer */
  FAIRLOCK_UNAVAILABLE = -12, /* try later: LOADING, BUSY, MASTERDOWN, CLUSTERDOWN, maxclients, a
                                 slot that moves (TRYAGAIN, ASK), or NOSCRIPT (boards/README.md) */
  FAIRLOCK_READONLY = -13,    /* the server is a replica. Connect to the master */
  FAIRLOCK_OOM = -14,         /* the server is out of memory (maxmemory) */
  FAIRLOCK_MISCONF = -15,     /* the server refuses writes: MISCONF, NOREPLICAS. See its log */
  FAIRLOCK_UNSYNCED = -16,    /* too few replicas acknowledged in time: not taken. Check them */
  FAIRLOCK_REFUSED = -17,     /* any other error of the server: see fairlock_error() */
  FAIRLOCK_PROTOCOL = -18,    /* the server's bytes are not RESP, or not an answer */
  FAIRLOCK_INVALID = -19,     /* an argument is out of its range: a mistake of the caller */
  FAIRLOCK_TOO_LONG = -20,    /* a name or an id is too long, or a buffer too small */
  FAIRLOCK_WRONG_SHARD = -21, /* MOVED: another node has this lock, and the client does not go there
                                 while its other locks are in use. A release goes on until it can,
                                 or the lease ends */
  FAIRLOCK_UNTRUSTED = -22,   /* TLS: a certificate or key, theirs or ours, is not trusted. Check
                                 CA, name, dates, and the transport's error text */
  FAIRLOCK_FORKED = -23,      /* the client was made before a fork(). Make a new one here */

  FAIRLOCK_NOT_LISTENING = -24, /* the holder cannot be asked to release: fairlock_ask_release() */
  FAIRLOCK_OUTDATED = -25       /* a later release uses the lock in a way unknown to this one, which
                                   did nothing. Use that release: see fairlock_error() */
};

/* A status in words, or its name without FAIRLOCK_. Constant; on an AVR until the next call. */
const char *fairlock_status_text(int status);
const char *fairlock_status_name(int status);

/* Times in ms, sizes in bytes. */
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

struct fairlock;
struct fairlock_asking;
struct fairlock_client;

/* Why a hold is lost, as far as is known. */
enum fairlock_loss_reason {
  FAIRLOCK_LOSS_ENDED, /* on the server: it was forced, deleted, lost by a fail-over, or ran out */
  FAIRLOCK_LOSS_TIME   /* its lease ran out here; the server may still have it for a moment */
};

/* A hold that is lost. Later releases may add members, as to the two below. */
struct fairlock_loss {
  uint64_t token;                   /* of the hold */
  enum fairlock_loss_reason reason; /* take one that you do not know for _ENDED */
};

/* How an operation has ended. */
struct fairlock_end {
  uint64_t token; /* of the hold; if there is none now, of the handle's last one, or 0 */
  int status;     /* its result */
};

/* A callback: a hold is lost. Once for each, also if the release finds it. */
typedef void (*fairlock_lost_fn)(struct fairlock *handle, const struct fairlock_loss *loss,
                                 void *context);

/*
 * A callback: an operation that had begun with FAIRLOCK_PENDING has ended. Once for each, after
 * `lost` if a loss ends it; not if a call waits for it, as fairlock_acquire() does. Any call that
 * services the client, begins or cancels may end operations of any handle, also what it has just
 * begun. So list the handle, or wake a task; a loop looks at its list before each sleep.
 */
typedef void (*fairlock_ended_fn)(struct fairlock *handle, const struct fairlock_end *end,
                                  void *context);

/* A callback: an operator asks the holder to release. See fairlock_operate.h. */
typedef void (*fairlock_asked_fn)(struct fairlock *handle, const struct fairlock_asking *asking,
                                  void *context);

/* What a client needs to know: unchanged as long as the client, and perhaps const, in flash. */
struct fairlock_config {
  void *receive_buffer; /* for this client alone */
  size_t receive_size;  /* at least FAIRLOCK_RECEIVE_SIZE of the longest name; at most INT32_MAX */
  void *send_buffer;    /* for this client alone */
  size_t send_size;     /* FAIRLOCK_SEND_MIN to INT32_MAX; from 1 KB on, fewer system calls */

  const char *client_id;   /* its handles' ids begin so, for people who look at the queue:
                              printable, no colon, at most FAIRLOCK_ID_MAX characters. The server's
                              number and time of the first connection make it unique. NULL: these */
  const char *user;        /* NULL: the default user. If it changes: fairlock_credentials.h */
  const char *password;    /* NULL: no authentication. Redis takes at most 16 KB */
  const char *client_name; /* shown by CLIENT LIST; no spaces. NULL: none */
  uint32_t database;       /* SELECT; 0: the default one */

  uint32_t lease_ms;    /* the lease for FAIRLOCK_RENEW. 0: 30000 */
  uint32_t waiter_ms;   /* the waiter timeout: after so long a silence, a waiter loses its place. It
                           sends a heartbeat every two fifths of this. Raised to three round trips.
                           FAIRLOCK_WAITER_MIN_MS to _MAX_MS; 0: 5000 */
  uint32_t claim_ms;    /* the claim: a handover not confirmed within this goes to the next, when
                           that asks: at once if it is alive and has a claim_ms, too. At least what
                           the message and the answer to its confirmation take, or live waiters
                           lose their turns; raised to three round trips.
                           FAIRLOCK_CLAIM_MIN_MS to waiter_ms; 0: waiter_ms */
  uint32_t response_ms; /* a later answer means a dead connection. Raised to half of it plus two
                           round trips. At most 1.5 waiter_ms; 0: two fifths of waiter_ms */
  uint32_t connect_ms;  /* to connect; the greeting may then take this plus response_ms. At most
                           FAIRLOCK_DURATION_MAX_MS / 4. 0: waiter_ms, with fairlock_follow()
                           1000 */
  uint32_t offline_ms;  /* an operation fails after so long without a useful answer, plus four round
                           trips, even if its wait is longer. Attempts to connect are up to 5 s
                           apart: less may leave it without any. FAIRLOCK_FOREVER: only its wait
                           ends it. 0: twice waiter_ms, with fairlock_follow() 60000 */

  fairlock_lost_fn lost;   /* NULL: none */
  void *lost_context;      /* passed to lost */
  fairlock_ended_fn ended; /* NULL: none */
  void *ended_context;     /* passed to ended */
  fairlock_asked_fn asked; /* NULL: none. With it, all holders listen, also after a try, and learn
                              of a fairlock_force_release() at once; with a fixed lease, they listen
                              only until the connection breaks */
  void *asked_context;     /* passed to asked */
};

/* What must not link with a library of another release, or for other threads: port.h. */
#define fairlock_client_init PORT_NAMED(fairlock_client_init)
#define fairlock_init        PORT_NAMED(fairlock_init)
#define fairlock_init_bytes  PORT_NAMED(fairlock_init_bytes)

/* Makes client ready; connects to nothing yet. Returns FAIRLOCK_OK, _INVALID or _TOO_LONG. */
int fairlock_client_init(struct fairlock_client *client, const struct fairlock_config *config,
                         struct port_transport *transport);

/*
 * Closes the connection; after a fork, this process's copy. No task may be inside a function of the
 * client. Its handles are gone, too: what they have on the server ends with its lease, or counts
 * only for its waiter timeout. What was abandoned is free: `freed` is called, but not after a fork.
 */
void fairlock_client_deinit(struct fairlock_client *client);

/*
 * Checks that the server can be reached and accepts us; other functions connect by themselves.
 * Tries once; sends nothing if connected. Returns FAIRLOCK_OK, _UNREACHABLE, _UNTRUSTED, _DENIED,
 * _UNSUPPORTED, _UNAVAILABLE, _REFUSED or _PROTOCOL.
 */
int fairlock_connect(struct fairlock_client *client);

/*
 * Makes handle a view of the lock called name, a string; fairlock_init_bytes() takes any bytes. It
 * is also a key, so nothing else may use it, such as another lock's notes ("fairlock:{x}"). Returns
 * FAIRLOCK_OK, _TOO_LONG (above FAIRLOCK_NAME_MAX, or no room in the receive buffer), or _INVALID:
 * empty, or wholly in braces, as "{x}", which has the queue of "x": take "{x}:lock".
 */
int fairlock_init(struct fairlock *handle, struct fairlock_client *client, const char *name);
int fairlock_init_bytes(struct fairlock *handle, struct fairlock_client *client, const void *name,
                        size_t size);

/*
 * Takes handle out of its client. Only after FAIRLOCK_OK its memory is yours again:
 *   FAIRLOCK_IN_PROGRESS  it is held, an operation is under way, or another task is inside one
 *   FAIRLOCK_UNREACHABLE, _UNAVAILABLE, _READONLY, _OOM, _MISCONF  why the server was not told for
 *       offline_ms that the handle neither waits nor holds. The client goes on trying: call again.
 *       FAIRLOCK_OK comes at the latest when its time there has expired: after the lease, a waiter
 *       timeout and response_ms
 */
int fairlock_deinit(struct fairlock *handle);

/*
 * Acquires the lock, waiting in line for up to wait_ms: 0 does not wait, FAIRLOCK_FOREVER has no
 * limit, otherwise at most FAIRLOCK_DURATION_MAX_MS. lease_ms: FAIRLOCK_RENEW, or
 * FAIRLOCK_LEASE_MIN_MS to FAIRLOCK_DURATION_MAX_MS; others, as a computed 0 or -1, are
 * FAIRLOCK_INVALID. If it is shorter than the round trip, a try ends with FAIRLOCK_TIMEOUT, and a
 * wait asks again every half second. The holder re-enters at once, up to a hold count of 65535, and
 * releases as often. Returns
 *   FAIRLOCK_OK       held
 *   FAIRLOCK_BUSY     wait_ms was 0, and the lock is held or somebody is before us
 *   FAIRLOCK_TIMEOUT, _CANCELLED  not granted within wait_ms, or before fairlock_cancel(). Without
 *       a connection, the place in the queue lasts until the client is back, or for waiter_ms
 *   FAIRLOCK_LOST     the hold to re-enter is gone: release as often as acquired, begin again. Or
 *       this hold was lost before the caller ran again: nothing to release
 *   FAIRLOCK_WRONG_TASK, _IN_PROGRESS  another task holds with this handle, or operates it
 *   FAIRLOCK_UNREACHABLE, _UNAVAILABLE, _READONLY, _OOM, _MISCONF, _UNSYNCED  why no useful answer
 *       came for offline_ms, or until the wait's end; for a try, a refusal, or a failed connection
 *   FAIRLOCK_DENIED, _UNSUPPORTED, _REFUSED, _PROTOCOL, _OUTDATED, _UNTRUSTED  the server does not
 *       serve us. It ends a wait in the queue by _OUTDATED only after the place is lost, and by
 *       _UNTRUSTED after offline_ms
 */
int fairlock_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms);

/* The same with wait_ms 0: only if that takes no wait, and passes nobody who waits. */
int fairlock_try_acquire(struct fairlock *handle, uint32_t lease_ms);

/*
 * Releases one level. After the last one the lock goes to the next in line, and the caller must no
 * longer act as its holder, whatever is returned:
 *   FAIRLOCK_OK       released; a fail-over may bring the hold back, until its lease ends
 *   FAIRLOCK_LOST     the hold had ended before
 *   FAIRLOCK_NOT_HELD, _WRONG_TASK, _IN_PROGRESS  not held, or another task holds or operates it
 *   FAIRLOCK_UNKNOWN  sent, but not answered in time. The client repeats it while it is serviced,
 *       and the lease ends the hold at the latest
 *   others            why it was not released. The next operation or the lease ends the hold
 */
int fairlock_release(struct fairlock *handle);

/*
 * Makes the hold that of the calling task, for thread pools and coroutines: every other then gets
 * FAIRLOCK_WRONG_TASK. Also for a lost hold, or one that is being released. The token stays the
 * same. The former task must have made its last call with handle, and have passed it on by what
 * synchronises the two (a queue, a mutex, a thread's start or end): nothing checks that. Meanwhile
 * some task services the client. Returns FAIRLOCK_OK, _NOT_HELD (any may acquire), or _IN_PROGRESS.
 */
int fairlock_adopt(struct fairlock *handle);

/*
 * For how many ms it is still safe to act as the holder; 0: not held. Ask before each step that
 * must not be done twice, and pass the token on: a task may be paused after asking. After a
 * handover, this is the rest of the claim until the server confirms it, one round trip later, and
 * then of the lease.
 */
uint32_t fairlock_remaining_ms(struct fairlock *handle);

/* How many times the handle has acquired and not yet released; 0: not held. */
uint32_t fairlock_hold_count(struct fairlock *handle);

/*
 * The hold's fencing token, larger than all before; 0: not held. What is locked refuses lower ones.
 */
uint64_t fairlock_token(struct fairlock *handle);

/* Ends a wait from another task, unless it was just granted. FAIRLOCK_OK, or _NOT_HELD: no wait. */
int fairlock_cancel(struct fairlock *handle);

/*
 * Without blocking: return FAIRLOCK_PENDING, or the final status. Then call fairlock_poll() until
 * fairlock_result() has changed or `ended` was called, and, after fairlock_start_deinit(), that
 * again.
 */
int fairlock_start_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms);
int fairlock_start_release(struct fairlock *handle);
int fairlock_start_deinit(struct fairlock *handle);

/* The result of the handle's last operation, which a loss does not change; FAIRLOCK_PENDING. */
int fairlock_result(struct fairlock *handle);

/*
 * Waits up to wait_ms for the end of an operation that was begun with handle, as the calls that
 * block do. Returns its result, of which `ended` is not told, or
 *   FAIRLOCK_PENDING  it goes on: call again, or end it by fairlock_cancel() or fairlock_abandon().
 *       POSIX: also if the thread has handled a signal while it slept, even with SA_RESTART; but
 *       not just before that, nor while a host's name is resolved
 *   FAIRLOCK_IN_PROGRESS  another task waits for it
 */
int fairlock_wait(struct fairlock *handle, uint32_t wait_ms);

/*
 * Services the client once: sends requests, receives what is there, does what is due. If nothing
 * is, blocks for timeout_ms at most, or PORT_WAIT_MAX_MS; if another task services it, until that
 * has received something. Returns in how many ms to call it again, at most about 19 hours: a device
 * may sleep so long, if bytes wake it. 0: there may be more to receive. At most 10, for devices
 * that do not wake when the transport can go on: while bytes are unsent, or a connection is being
 * opened, unless the transport waits for bytes to open it (PORT_NEEDS_INPUT).
 */
uint32_t fairlock_poll(struct fairlock_client *client, uint32_t timeout_ms);

/* What the client wants of its connection: bits of fairlock_wants(). */
enum fairlock_want {
  FAIRLOCK_CONNECT = 1, /* it is being opened, or should be: wake me when it is writable */
  FAIRLOCK_CLOSE = 2,   /* it has to be closed: call fairlock_poll() at once */
  FAIRLOCK_SEND = 4,    /* there is more to send: wake me when it is writable, too */
  FAIRLOCK_RECEIVE = 8  /* wake me when it is readable; alone while a TLS handshake opens it */
};

/*
 * For your event loop: what the client waits for after fairlock_poll(client, 0), bits of enum
 * fairlock_want; 0: only the time counts. Call fairlock_poll() again after that, after the time
 * that it returned, and after each operation that you begin or cancel. port_posix_fd() is the
 * socket to watch, also below TLS. No other task may be inside fairlock_run() or a call that waits
 * for this client: it would read what the loop waits for. Give others a client of their own. Or let
 * one be inside fairlock_run(): the loop only begins operations, and `ended` wakes it (eventfd).
 */
unsigned fairlock_wants(struct fairlock_client *client);

/* Services the client until fairlock_stop(): FAIRLOCK_OK. _IN_PROGRESS: another task does so. */
int fairlock_run(struct fairlock_client *client);

/*
 * Makes fairlock_run() return, or its next call if no task is inside it: at once if the transport
 * can wake it, as POSIX's, within 32 ms, also below TLS; otherwise within PORT_WAIT_MAX_MS.
 */
void fairlock_stop(struct fairlock_client *client);

/* Room for all of fairlock_error(), and of fairlock_id(). */
#define FAIRLOCK_ERROR_SIZE     64
#define FAIRLOCK_HOLDER_ID_SIZE (FAIRLOCK_ID_MAX + FAIRLOCK_ID_SUFFIX + 12U)

/* Copies the server's last error text, or "", into size bytes (1 or more), with a NUL, cut off. */
void fairlock_error(struct fairlock_client *client, char *text, size_t size);

/*
 * Why the server gives no useful answers at present, so that leases are not renewed; FAIRLOCK_OK:
 * it does, or nothing is known yet. If it only sends us elsewhere, the last reason stays.
 */
int fairlock_server_status(struct fairlock_client *client);

/*
 * Copies the id of handle's holds and waits, "<client id>:<number>", into size bytes (1 or more),
 * with a NUL. "" if there is no room, and before the first connection, which fixes the client's id.
 */
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

/* Copies what was counted. size: sizeof *counters; members that the library does not have are 0. */
void fairlock_read_counters(struct fairlock_client *client, struct fairlock_counters *counters,
                            size_t size);

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

/* The memory of struct fairlock_client and struct fairlock, a handle: all of it private. */
#include "state.h"

#ifdef __cplusplus
}
#endif

#endif
