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
 * Memory. All of it is the caller's: the client, the handles, the configuration, the names and the
 * two buffers stay where they are, and valid, until fairlock_deinit() and fairlock_client_deinit().
 * The library allocates nothing.
 *
 * Tasks. Several tasks may share a client, and with it one connection; every function may be called
 * from any of them, at any time, but never from an interrupt. A handle is one holder: use one for
 * each task that wants the lock. The functions that block service the client (send, receive, keep
 * time) for all of its tasks; if a task is inside fairlock_run(), that one does. Only the task that
 * has acquired a hold may release it, or one that has taken it over. If a POSIX thread is cancelled
 * (pthread_cancel()) inside a function, it finishes that function first, however long it waits. So
 * end a wait by fairlock_cancel(), and fairlock_run() by fairlock_stop().
 *
 * Processes. After a fork() the client and its handles stay the parent's. In the child all their
 * functions return at once, with FAIRLOCK_FORKED or with 0 or "" (fairlock_poll(): about 19 hours),
 * and send nothing. fairlock_client_deinit() closes the child's copy of the connection; until then,
 * or until an exec(), the server does not notice when the parent ends. The memory of the handles
 * may be used for something else at once. The child may make a new client. If your program calls
 * daemon(), it has to do so before fairlock_client_init().
 *
 * Leases. A hold ends by itself when its lease runs out, so that a crash blocks nobody for ever.
 * With FAIRLOCK_RENEW the lease is renewed at each third of it, but only while some task services
 * the client: one inside fairlock_run(), inside a blocking call, or calling fairlock_poll(). A
 * program that computes for longer than the lease without any of them loses the lock; `lost`,
 * fairlock_remaining_ms() and fairlock_release() report it.
 *
 * Mistakes. The library does not check for NULL, or for a client or handle that was never
 * initialised: the checks would cost every program flash. While you develop, compile the library
 * with a macro FAIRLOCK_ASSERT(condition) that stops the program when the condition does not hold:
 * put it into a separate header that includes no system header, and compile with -include.
 * Uninitialised memory may go unnoticed. Initialising a handle twice without fairlock_deinit() in
 * between is noticed if both times are for the same client.
 *
 * How long calls block, at most. These follow from the configuration (see struct fairlock_config):
 *   acquire           wait_ms, or offline_ms if the server gives no useful answer for that long;
 *                     and response_ms to leave the queue
 *   try_acquire       an answer; without one, connect_ms and twice response_ms
 *   release, deinit   an answer; without one, offline_ms
 *   force_release, ask, inspect  the same as release
 *   connect           twice connect_ms, and response_ms
 *   start_..., remaining_ms, token, hold_count, result, cancel  never, except for the mutex
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
 * The version. The Makefile, the command and the tarball take it from here; a test checks that all
 * other places agree.
 */
#define FAIRLOCK_VERSION       "1.0.0-rc1"
#define FAIRLOCK_VERSION_MAJOR 1
#define FAIRLOCK_VERSION_MINOR 0
#define FAIRLOCK_VERSION_PATCH 0

/*
 * The same as a number, to compare: major, then two digits each for minor, patch, and 99, or the
 * number of a release candidate. 1.0.0-rc1 is 1000001, 1.0.0 is 1000099.
 */
#define FAIRLOCK_VERSION_NUMBER 1000001L

/*
 * The format of what stands in Redis: lock/FORMAT.md. All releases of one format share queues. It
 * changes only with the major version.
 */
#define FAIRLOCK_FORMAT 1

/* Returns FAIRLOCK_VERSION of the library that is linked. In constant memory. */
const char *fairlock_version(void);

/* A wait without a limit; a time that never comes. */
#define FAIRLOCK_FOREVER UINT32_MAX

/*
 * As a lease: the configured lease, renewed at each third of it for as long as the lock is held
 * (the watchdog).
 */
#define FAIRLOCK_RENEW 0U

/* The shortest lease and the longest lease or wait that can be asked for, in ms (12.4 days). */
#define FAIRLOCK_LEASE_MIN_MS    100U
#define FAIRLOCK_DURATION_MAX_MS 0x3fffffffU

/* The longest name of a lock, in bytes, if the receive buffer is large enough for it. */
#define FAIRLOCK_NAME_MAX 4096U

/*
 * The longest client id of the configuration, in characters, and what the server's numbers add to
 * it.
 */
#define FAIRLOCK_ID_MAX    40U
#define FAIRLOCK_ID_SUFFIX 23U

/*
 * Room in the receive buffer that a name of `name` bytes and a client_id of `id` characters (0:
 * none) need. The send buffer may have any size from FAIRLOCK_SEND_MIN on: requests that do not fit
 * are sent in pieces.
 */
#define FAIRLOCK_RECEIVE_SIZE(name, id) ((name) + (id) + FAIRLOCK_ID_SUFFIX + 37U + RESP_OVERHEAD)
#define FAIRLOCK_SEND_MIN               32U

/* The limits of waiter_ms. */
#define FAIRLOCK_WAITER_MIN_MS 2000U
#define FAIRLOCK_WAITER_MAX_MS 600000U

/* Room for a server's error text, with its terminating NUL. */
#define FAIRLOCK_ERROR_SIZE 64

/* Statuses */

/*
 * The result of an operation. "Failed", "timed out", "lost" and "unknown" are different things:
 * after a time-out or a failure the caller does not hold the lock and no longer waits; after LOST
 * others may already hold it; after UNKNOWN the request may or may not have been carried out.
 */
enum fairlock_status {
  /* the operation is still under way: service the client */
  FAIRLOCK_PENDING = 1,

  /* done */
  FAIRLOCK_OK = 0,

  /* try: somebody else holds the lock or is first in line. Try later, or wait */
  FAIRLOCK_BUSY = -1,

  /* the wait has ended without the lock. Nothing is left in the queue */
  FAIRLOCK_TIMEOUT = -2,

  /* fairlock_cancel() has ended the wait. Nothing is left in the queue */
  FAIRLOCK_CANCELLED = -3,

  /*
   * the hold had ended before it was released: its lease ran out, somebody forced its release, or
   * the key was deleted. Somebody else may hold the lock; undo what was done, or let the token
   * protect it
   */
  FAIRLOCK_LOST = -4,

  /* nothing to release, or nothing to cancel. A mistake of the caller */
  FAIRLOCK_NOT_HELD = -5,

  /*
   * another task has acquired with this handle, or is still releasing it. Use a handle for each
   * task
   */
  FAIRLOCK_WRONG_TASK = -6,

  /* the handle has an operation under way, or still holds. Wait for it */
  FAIRLOCK_IN_PROGRESS = -7,

  /* a release was not answered: it was carried out, or the lease will end the hold */
  FAIRLOCK_UNKNOWN = -8,

  /* no connection to the server. Check address and network; try again */
  FAIRLOCK_UNREACHABLE = -9,

  /*
   * NOAUTH, WRONGPASS, NOPERM: the server refuses this user. Check the ACL. Or a function that
   * gives credentials has none
   */
  FAIRLOCK_DENIED = -10,

  /* the server does not speak RESP3, or lacks a command. Redis 6.2 or newer is needed */
  FAIRLOCK_UNSUPPORTED = -11,

  /*
   * LOADING, BUSY, MASTERDOWN, CLUSTERDOWN, or the server has reached maxclients; with
   * fairlock_follow() also what a cluster says while a slot moves (TRYAGAIN, ASK). Without the
   * scripts' texts (boards/README.md): NOSCRIPT, until somebody loads them. Try later
   */
  FAIRLOCK_UNAVAILABLE = -12,

  /* the server is a replica. Connect to the master */
  FAIRLOCK_READONLY = -13,

  /* the server is out of memory (maxmemory) */
  FAIRLOCK_OOM = -14,

  /* the server refuses writes: MISCONF, NOREPLICAS. See its log */
  FAIRLOCK_MISCONF = -15,

  /* too few replicas acknowledged in time (WAIT): the lock was not taken. Check the replicas */
  FAIRLOCK_UNSYNCED = -16,

  /* any other error of the server: see the error text */
  FAIRLOCK_REFUSED = -17,

  /* the server's bytes are not RESP, or not an answer to what was asked */
  FAIRLOCK_PROTOCOL = -18,

  /* an argument is out of its range. A mistake of the caller */
  FAIRLOCK_INVALID = -19,

  /* a name or id does not fit the buffers. Enlarge them */
  FAIRLOCK_TOO_LONG = -20,

  /*
   * MOVED: another node of the cluster has this lock. The client is connected to one node at a
   * time, and goes there only if none of its other locks is in use: see struct fairlock_topology. A
   * release goes on in the background until the client can go there, or the lease has ended the
   * hold
   */
  FAIRLOCK_WRONG_SHARD = -21,

  /*
   * TLS: the server's certificate or key is not trusted, or the server does not trust ours. Check
   * the CA, the name, the dates. The transport has an error text
   */
  FAIRLOCK_UNTRUSTED = -22,

  /* this process was forked from the one that made the client. Make a new client in it */
  FAIRLOCK_FORKED = -23
};

/* Returns a line of plain words for a status, in constant memory. */
const char *fairlock_status_text(int status);

/* Returns the name of a status as in the enum, without FAIRLOCK_. */
const char *fairlock_status_name(int status);

/* The configuration */

struct fairlock;

/*
 * Called once when a hold is lost, in the task that services the client, with the client's mutex
 * locked. So it must be short, and call no function of the library: with this client, that would
 * never return. Set a flag, or cut the motor's power.
 */
typedef void (*fairlock_lost_fn)(struct fairlock *handle, void *context);

/*
 * Called once when an operation has ended that was begun with FAIRLOCK_PENDING. From then on,
 * fairlock_result() returns this status. Any call that services the client, begins an operation or
 * cancels one may end operations of any handle, so this may be called before the call that began
 * the operation has returned. It is not called for an operation for which a call waits, as
 * fairlock_acquire() does. The same rules hold as for fairlock_lost_fn, which is called first if a
 * loss ends the operation: put the handle on a list or wake a task, and act on the result later. A
 * loop has to look at its list before it sleeps, also after it has begun something.
 */
typedef void (*fairlock_ended_fn)(struct fairlock *handle, int status, void *context);

/*
 * Called when an operator asks the holder to release (fairlock_ask(), `fairlock break --ask`). The
 * hold goes on until the program releases it. Called once for each message; a message may be lost,
 * and then the operator asks again. The same rules hold as for fairlock_lost_fn.
 */
typedef void (*fairlock_asked_fn)(struct fairlock *handle, void *context);

/*
 * What a client needs to know. Kept by pointer, not copied: it must stay valid and unchanged as
 * long as the client is used, and may be const, in flash. Where a member may be 0 or NULL, its
 * comment says what that means.
 */
struct fairlock_config {
  /* the caller's memory, for this client alone */
  void *receive_buffer;

  /*
   * at least FAIRLOCK_RECEIVE_SIZE of the longest name; at most INT32_MAX, as a port counts in int
   */
  size_t receive_size;

  /* the caller's memory, for this client alone */
  void *send_buffer;

  /* at least FAIRLOCK_SEND_MIN; 1 KB or more saves system calls; at most INT32_MAX, as above */
  size_t send_size;

  /*
   * the beginning of the ids of this client's handles, for people who look at the queue: printable,
   * no colon, at most FAIRLOCK_ID_MAX characters. It need not be unique, because the number of the
   * first connection and its time, both from the server, are added. NULL: these two alone
   */
  const char *client_id;

  /* NULL: the server's default user. Where these two change: struct fairlock_credentials */
  const char *user;

  /*
   * NULL: no authentication. It may be longer than send_buffer, and is then sent in pieces. Redis
   * takes at most 16 KB
   */
  const char *password;

  /* shown by CLIENT LIST; no spaces. NULL: none */
  const char *client_name;

  /* SELECT; 0: the default one */
  uint32_t database;

  /* the lease for FAIRLOCK_RENEW. 0: 30000 */
  uint32_t lease_ms;

  /*
   * the waiter timeout: a waiter that is silent for this long loses its place, and a handover that
   * is not confirmed within this time goes to the next waiter. A waiter sends a heartbeat every two
   * fifths of it. It is raised to three round trips if those are longer. FAIRLOCK_WAITER_MIN_MS to
   * _MAX_MS; 0: 5000
   */
  uint32_t waiter_ms;

  /*
   * the connection is dead if an answer takes longer than this, in ms. On slow networks it is
   * raised to half of itself plus two measured round trips. It can be at most one and a half
   * waiter_ms (so raise that, too), because a waiter has at most three unanswered heartbeats, and
   * would lose its place if it waited for the first answer any longer. 0: two fifths of waiter_ms
   */
  uint32_t response_ms;

  /*
   * connecting fails if it takes longer; the greeting after it may take this plus response_ms.
   * At most FAIRLOCK_DURATION_MAX_MS / 4. 0: waiter_ms
   */
  uint32_t connect_ms;

  /*
   * an operation fails if there is no useful answer for this long, even if its wait is longer. Four
   * measured round trips are added. Attempts to connect are up to 5 s apart after failures, so with
   * less than that an operation may fail without any attempt. 0: twice waiter_ms; FAIRLOCK_FOREVER:
   * only the limit of its wait ends it
   */
  uint32_t offline_ms;

  /* NULL: none */
  fairlock_lost_fn lost;

  /* passed to lost */
  void *lost_context;

  /* NULL: none */
  fairlock_ended_fn ended;

  /* passed to ended */
  void *ended_context;

  /*
   * NULL: none. If there is one, the client's handles listen to their channels while they hold,
   * also after a try. With a fixed lease, they listen only until the connection breaks
   */
  fairlock_asked_fn asked;

  /* passed to asked */
  void *asked_context;
};

/* Clients */

/* Counts since fairlock_client_init(). Each counter wraps around at 2^32. */
struct fairlock_counters {
  /* new holds */
  uint32_t acquisitions;

  /* acquisitions that had to wait in the queue: granted and polled together */
  uint32_t waits;

  /* handovers that came as a message */
  uint32_t granted;

  /* handovers found by asking */
  uint32_t polled;

  /* leases renewed; the confirmation of a handover does not count */
  uint32_t renewals;

  /* holds lost */
  uint32_t losses;

  /* connections made */
  uint32_t connects;

  /* scripts sent, and AUTHs on open connections */
  uint32_t requests;
};

/* struct fairlock_client and struct fairlock, a handle: the caller's memory, all private */
#include "state.h"

/*
 * Makes client ready; connects to nothing yet. config and transport are kept, not copied. Returns
 * FAIRLOCK_OK, _INVALID, _TOO_LONG (a buffer is too small, or the id too long).
 */
int fairlock_client_init(struct fairlock_client *client, const struct fairlock_config *config,
                         struct port_transport *transport);

/*
 * Closes the connection. No task may be inside a function of the client. Handles that were not
 * taken out are gone with it: what they have on the server ends with its lease, or no longer counts
 * after its waiter timeout. In a forked process it closes that process's copy of the connection;
 * the parent's stays open.
 */
void fairlock_client_deinit(struct fairlock_client *client);

/*
 * Makes sure that the server can be reached and accepts us: a check that a program can make at its
 * start. Tries once; if the connection is up, sends nothing. Returns FAIRLOCK_OK, _UNREACHABLE,
 * _UNTRUSTED, _DENIED, _UNSUPPORTED, _UNAVAILABLE, _REFUSED or _PROTOCOL. Blocks for up to twice
 * connect_ms of the configuration, and response_ms. The other functions do not need it: they
 * connect and reconnect as needed.
 */
int fairlock_connect(struct fairlock_client *client);

/* Handles */

/*
 * Makes handle a view of the lock called name, a string, which stays the caller's.
 * fairlock_init_bytes() takes any bytes. Returns FAIRLOCK_OK, _INVALID (empty, or wholly in braces:
 * see fairlock_engine_add()) or _TOO_LONG (does not fit the receive buffer).
 */
int fairlock_init(struct fairlock *handle, struct fairlock_client *client, const char *name);
int fairlock_init_bytes(struct fairlock *handle, struct fairlock_client *client, const void *name,
                        size_t size);

/*
 * Takes handle out of its client. After FAIRLOCK_OK its memory is the caller's again; after any
 * other status it is still the client's:
 *   FAIRLOCK_IN_PROGRESS  it is held, an operation is under way, or another task is inside one
 *   FAIRLOCK_UNREACHABLE, _UNAVAILABLE, _READONLY, _OOM, _MISCONF
 *                         the server still has to be told that the handle no longer waits or holds;
 *                         this was not possible for offline_ms, for this reason. The client goes on
 *                         trying while it is serviced; call again. It returns FAIRLOCK_OK at the
 *                         latest when the handle's place or hold on the server has expired: after
 *                         its lease, a waiter timeout and response_ms
 * Blocks until there is an answer, for offline_ms of the configuration at most.
 */
int fairlock_deinit(struct fairlock *handle);

/*
 * The same without blocking. FAIRLOCK_PENDING: not yet; service the client and call again.
 * FAIRLOCK_OK and FAIRLOCK_IN_PROGRESS as above.
 */
int fairlock_start_deinit(struct fairlock *handle);

/* Acquiring and releasing */

/*
 * Acquires the lock, waiting in line for up to wait_ms: 0 does not wait (see
 * fairlock_try_acquire()), FAIRLOCK_FOREVER waits without a limit. At most FAIRLOCK_DURATION_MAX_MS
 * otherwise. lease_ms: the hold ends by itself after this time, FAIRLOCK_LEASE_MIN_MS to
 * FAIRLOCK_DURATION_MAX_MS; or FAIRLOCK_RENEW. The holder re-enters at once, up to 65535 times, and
 * has to release as many times. Redisson: lock(), lock(lease), tryLock(wait), tryLock(wait, lease).
 * Returns
 *   FAIRLOCK_OK           held
 *   FAIRLOCK_BUSY         wait_ms was 0, and the lock is held or somebody is before us
 *   FAIRLOCK_TIMEOUT      not granted within wait_ms. Nothing is left in the queue
 *   FAIRLOCK_CANCELLED    by fairlock_cancel()
 *   FAIRLOCK_LOST         the hold to be re-entered is gone. Release it as often as it was
 *                         acquired, then begin again
 *   FAIRLOCK_WRONG_TASK   another task holds the lock with this handle
 *   FAIRLOCK_IN_PROGRESS  another task is inside an operation of this handle
 *   FAIRLOCK_INVALID      an argument is out of its range
 *   FAIRLOCK_UNREACHABLE, _UNAVAILABLE, _READONLY, _OOM, _MISCONF, _UNSYNCED
 *                         there was no useful answer for offline_ms, or until the end of the wait,
 *                         for this reason. If wait_ms is 0: the server has refused, or the
 *                         connection has failed
 *   FAIRLOCK_DENIED, _UNSUPPORTED, _REFUSED, _PROTOCOL
 *                         the server does not serve us; see fairlock_error(). With credentials that
 *                         change, a wait ends by WRONGPASS or NOAUTH only after offline_ms
 *   FAIRLOCK_UNTRUSTED    TLS: one side does not trust the other. The wait ends at once; but if it
 *                         is in the queue already, after offline_ms, because certificates may be
 *                         being replaced
 */
int fairlock_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms);

/*
 * Acquires the lock only if it is free and nobody is waiting for it: fairlock_acquire() with
 * wait_ms 0. Redisson: tryLock().
 */
int fairlock_try_acquire(struct fairlock *handle, uint32_t lease_ms);

/*
 * Releases one level. After the last one the lock goes to the next in line, and the caller must no
 * longer act as its holder, whatever is returned. Redisson: unlock().
 *   FAIRLOCK_OK           released
 *   FAIRLOCK_LOST         the hold had ended before
 *   FAIRLOCK_NOT_HELD     the lock was not held
 *   FAIRLOCK_WRONG_TASK   another task acquired
 *   FAIRLOCK_IN_PROGRESS  another task is inside an operation of this handle
 *   FAIRLOCK_UNKNOWN      sent, but not answered in time; the client keeps sending it while it is
 *                         serviced. The lease ends the hold at the latest
 *   others                not released, for this reason; the lease will end the hold
 */
int fairlock_release(struct fairlock *handle);

/*
 * Makes the hold that of the calling task, for thread pools and coroutines. From then on this task
 * releases and re-enters, and every other task gets FAIRLOCK_WRONG_TASK. A lost hold, or one that
 * is still being released, is taken over in the same way. The token stays the same. No I/O.
 *
 * It is safe if the two tasks have agreed: the former one has made its last call with handle, no
 * longer acts as the holder, and has passed handle on by something that synchronises the two (a
 * queue, a mutex, the start or the end of a thread). Nothing checks that: a task that takes over a
 * hold which nobody has passed on acts as a second holder. Meanwhile some task has to service the
 * client, or the lease ends.
 *   FAIRLOCK_OK           the hold is the calling task's
 *   FAIRLOCK_NOT_HELD     there is none: any task may acquire
 *   FAIRLOCK_IN_PROGRESS  an operation is under way, or another task is inside one
 */
int fairlock_take_over(struct fairlock *handle);

/*
 * Milliseconds for which it is still safe to act as the holder; 0: not held. No I/O. Ask before
 * each step that must not be done twice, and still pass the token on: a task that is paused after
 * it has asked does not notice that the hold ends. Redisson: isHeldByCurrentThread(),
 * remainTimeToLive().
 */
uint32_t fairlock_remaining_ms(struct fairlock *handle);

/*
 * How many times the handle has acquired the lock and not yet released it; 0: not held. No I/O.
 * Redisson: getHoldCount().
 */
uint32_t fairlock_hold_count(struct fairlock *handle);

/*
 * The fencing token of the hold: larger than that of each hold before it. 0: not held. Pass it to
 * whatever the lock protects, which should refuse a token smaller than one it has seen. No I/O.
 */
uint64_t fairlock_token(struct fairlock *handle);

/*
 * Ends a wait from another task: the acquire returns FAIRLOCK_CANCELLED, or FAIRLOCK_OK if it was
 * just granted. Returns FAIRLOCK_OK, or FAIRLOCK_NOT_HELD when the handle is not waiting. Redisson:
 * lockInterruptibly().
 */
int fairlock_cancel(struct fairlock *handle);

/* Servicing the client: without blocking, or in a task of its own */

/*
 * The same without blocking, for a superloop: begin an operation, service the client with
 * fairlock_poll(), and look at the result. Each returns FAIRLOCK_PENDING when the operation was
 * begun, or its final status.
 *
 * Any fairlock_poll() may end any operation, of whichever handle, and so may a call that begins
 * another one. A loop with few handles looks at the result of each. One with many sets `ended` of
 * struct fairlock_config, keeps a list of what has ended, and looks at that.
 */
int fairlock_start_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms);
int fairlock_start_release(struct fairlock *handle);

/* The result of the handle's last operation; FAIRLOCK_PENDING while it is under way. */
int fairlock_result(struct fairlock *handle);

/*
 * Services the client once: sends requests, receives what has arrived, does what is due. If there
 * is nothing to do, blocks for up to timeout_ms, and never for more than PORT_WAIT_MAX_MS; 0: not
 * at all.
 *
 * Returns in how many ms to call it again, at most about 19 hours. A device may sleep for that
 * long, if arriving bytes wake it. 0: at once, because there may be more to receive. While bytes
 * are unsent, or a connection is being opened, it returns 10 at most, for devices that do not wake
 * when the transport can go on; except while the transport waits for bytes to open the connection
 * (PORT_NEEDS_INPUT).
 */
uint32_t fairlock_poll(struct fairlock_client *client, uint32_t timeout_ms);

/* Bits of fairlock_engine_wants(). */
enum fairlock_want {
  /* the connection should be opened */
  FAIRLOCK_CONNECT = 1,

  /* the connection has to be closed: it is dead, or something arrived on it that is not valid */
  FAIRLOCK_CLOSE = 2,

  /* there is, or may be, something to send */
  FAIRLOCK_SEND = 4,

  /* the connection is open: receive */
  FAIRLOCK_RECEIVE = 8
};

/*
 * For your event loop: what the client waits for, after fairlock_poll(client, 0). Call
 * fairlock_poll() again when that has happened, or when the time that it returned has passed. Bits
 * of enum fairlock_want:
 *   FAIRLOCK_RECEIVE   wake me when the connection is readable. Also alone, while it is being
 *                      opened and the server has to answer first, as in the handshake of TLS
 *   FAIRLOCK_SEND      wake me when it is writable, too: the transport did not take all that
 *                      there was to send
 *   FAIRLOCK_CONNECT   wake me when it is writable: it is being opened, or will be
 *   FAIRLOCK_CLOSE     call fairlock_poll() at once
 *   0                  there is no connection, and nothing to watch: only the time counts
 * After you have begun an operation, or called fairlock_cancel(), call fairlock_poll() again,
 * because both may have changed. port_posix_fd() returns the socket to watch, also below TLS.
 */
unsigned fairlock_wants(struct fairlock_client *client);

/*
 * Services the client until fairlock_stop() is called: the body of a task that keeps leases alive.
 * Only one task at a time.
 */
void fairlock_run(struct fairlock_client *client);

/*
 * Makes fairlock_run() return, within PORT_WAIT_MAX_MS; if no task is inside it, its next call
 * returns.
 */
void fairlock_stop(struct fairlock_client *client);

/* What happened */

/*
 * Copies the server's last error text, cut off after FAIRLOCK_ERROR_SIZE - 1 characters but
 * otherwise unchanged; "" if there was none.
 */
void fairlock_error(struct fairlock_client *client, char text[FAIRLOCK_ERROR_SIZE]);

/*
 * Why the server gives no useful answers at present, as a status; FAIRLOCK_OK: it does, or nothing
 * is known yet. While a lock is held, this is the reason for which its lease is not renewed.
 */
int fairlock_last_error(struct fairlock_client *client);

/* What happened so far. */
struct fairlock_counters fairlock_read_counters(struct fairlock_client *client);

/*
 * Copies the id under which handle holds and waits, "<client id>:<number>", with a NUL. The client
 * makes its id at the first connection, from numbers of the server, and never changes it; before
 * that, text becomes "".
 */
#define FAIRLOCK_HOLDER_ID_SIZE (FAIRLOCK_ID_MAX + FAIRLOCK_ID_SUFFIX + 12U)
void fairlock_id(struct fairlock *handle, char text[FAIRLOCK_HOLDER_ID_SIZE]);

/* A log */

/* The events of a log. */
enum fairlock_log_event {
  /* the server has accepted us */
  FAIRLOCK_LOG_CONNECTED = 1,

  /*
   * no connection could be made, or the server did not accept us. status: why; text:
   * fairlock_status_text(status). The transport may have a better text: port_posix_error()
   */
  FAIRLOCK_LOG_NOT_CONNECTED,

  /* an established connection was given up, and another will be made. status, text: as above */
  FAIRLOCK_LOG_DISCONNECTED,

  /* a Sentinel, or a node of a cluster, sends us elsewhere. text: "host:port" */
  FAIRLOCK_LOG_REDIRECTED,

  /*
   * the server has refused a request, for now or for good. text: its message, which begins with a
   * code such as NOPERM, cut off after FAIRLOCK_ERROR_SIZE - 1 characters
   */
  FAIRLOCK_LOG_REFUSED,

  /*
   * an operator asks a holder to release, see fairlock_asked_fn. text: the token of the hold.
   * Without `asked` in the configuration, only a holder that has waited in the queue, or keeps its
   * locks, listens
   */
  FAIRLOCK_LOG_ASKED
};

/*
 * Called for each event. text is valid during the call only; NULL: none, as for
 * FAIRLOCK_LOG_CONNECTED. The same rules hold as for fairlock_lost_fn. That a hold is lost is not
 * an event of the log: only `lost` reports it.
 */
typedef void (*fairlock_log_fn)(enum fairlock_log_event event, int status, const char *text,
                                void *context);

/* A log: see fairlock_set_log(). The caller's memory. Programs without one link none of it. */
struct fairlock_log {
  /* called for each event */
  fairlock_log_fn function;

  /* passed to function */
  void *context;

  /* the rest is private */
  struct fairlock_log_state own;
};

/*
 * Calls log->function for each connection that is made, refused, redirected or ended, with the
 * reason. log, with function and context set, stays the caller's, and must stay valid as long as
 * the client. Call it after fairlock_client_init(), before the first operation. A second log
 * replaces the first. A program that does not call it links none of it.
 */
void fairlock_set_log(struct fairlock_client *client, struct fairlock_log *log);

/* Credentials that change */

/* User and password for a connection, from a function of the program. */
struct fairlock_login {
  /* tells the function that they are for a Sentinel, which has other users than the master */
  bool sentinel;

  /* tells the function that the server has refused the last ones. Do not give the same again */
  bool refused;

  /* to be set by the function. NULL, as they are before: the default user; no authentication */
  const char *user;
  const char *password;

  /*
   * to be set by the function: for how long from now they are valid, in ms; more than
   * FAIRLOCK_DURATION_MAX_MS counts as that. 0, as it is before: they do not expire
   */
  uint32_t valid_ms;
};

/*
 * Gives user and password: fills in login and returns true, or returns false if there are none now.
 * The strings must stay unchanged until the function is called again. It is called for each
 * connection, in the task that services the client, with the client's mutex locked. So it must be
 * short, must not wait (fetch a token in a task of your own), and must not call a function of the
 * library.
 */
typedef bool (*fairlock_credentials_fn)(struct fairlock_login *login, void *context);

/*
 * Credentials that change: see fairlock_use_credentials(). The caller's memory, which must stay
 * valid, and where it is, as long as the client. Programs without them link none of this.
 *
 * The function is called for each connection. If it gives nothing, or the server answers WRONGPASS
 * or NOAUTH, the connection is closed, and another one is made after the usual pause. The same
 * happens if a later request is answered by NOAUTH. Meanwhile holds and waits go on as without a
 * connection, and a wait ends with FAIRLOCK_DENIED after offline_ms. Operations that do not wait
 * end at once.
 *
 * If credentials expire, the function is called again when three quarters of their time have
 * passed, and the client sends AUTH on the open connection. Subscriptions and unanswered requests
 * are not affected. If the function gives nothing, or the server refuses, the connection goes on
 * with the former user, and this is tried again after half of the remaining time, at least after 1
 * s. When they have expired, it is tried every 5 s, until the server closes the connection.
 */
struct fairlock_credentials {
  /* called when user and password are needed */
  fairlock_credentials_fn function;

  /* passed to function */
  void *context;

  /* the rest is private */
  struct fairlock_credentials_state own;
};

/*
 * Makes the client ask credentials->function for user and password whenever it needs them, instead
 * of taking them from the configuration and the topology: for tokens that expire, and passwords
 * that are rotated. See struct fairlock_credentials. credentials, with function and context set,
 * stays the caller's. Call it after fairlock_client_init(), before the first operation. Credentials
 * that were set before no longer count. A program that does not call it links none of it.
 */
void fairlock_use_credentials(struct fairlock_client *client,
                              struct fairlock_credentials *credentials);

/* Servers that move */

/*
 * Servers that move: what a client needs to follow them. Passed to fairlock_follow(), before the
 * first operation; the caller's memory, which must stay valid as long as the client. A program that
 * does not call fairlock_follow() links none of this.
 *
 * The transport's addresses are seeds, of one kind:
 *   with `service`   Sentinels, which are asked for the master
 *   with `cluster`   nodes of one cluster. A server that is not is refused: FAIRLOCK_REFUSED,
 *                    "not a node of a cluster", when no other seed is left
 *   otherwise        nodes of a cluster, one server, or several servers that belong to one master.
 *                    With unrelated masters, two clients could hold one lock at the same time. So
 *                    each master has to show by ROLE (the user needs +role) that it has a replica,
 *                    or has had one or been one since it started. Otherwise it counts as
 *                    FAIRLOCK_UNAVAILABLE
 * The client is connected to one server at a time. It connects where a Sentinel or a MOVED sends
 * it, up to four times in a row without a pause. If its server is gone, is read-only, or says that
 * it is a replica, it connects to the next seed. It pauses for a second at most between two rounds
 * of the seeds.
 */
struct fairlock_topology {
  /*
   * room for "host:port" of a redirection, and its size, at least 2: 22 for any IPv4 address, 54
   * for any IPv6 address, 263 for any host name. NULL, 0: redirections are not followed
   */
  char *address;
  size_t address_size;

  /* the name by which Sentinels know the master. NULL: the seeds are not Sentinels */
  const char *service;

  /* the seeds are nodes of a cluster; not with service */
  bool cluster;

  /* user and password for the Sentinels. NULL: the default user; no authentication */
  const char *sentinel_user;
  const char *sentinel_password;

  /*
   * a hold begins, and a lease is extended, only when so many replicas have acknowledged it (WAIT).
   * If that is all of them, any replica that becomes the master knows the hold. 0: none
   */
  uint32_t replicas;

  /* how long they may take, at most half of response_ms. 0: half of response_ms, at most 500 */
  uint32_t replicas_ms;

  /* the rest is private */
  struct fairlock_topology_state own;
};

/*
 * Makes the client follow servers that move (Sentinel, Cluster, a promoted replica). It can also
 * make the client count only holds that replicas have acknowledged. See struct fairlock_topology,
 * which stays the caller's. Call it after fairlock_client_init(), before the first operation. A
 * transport whose `aim` is NULL has one address: a redirected operation then ends with
 * FAIRLOCK_WRONG_SHARD or _READONLY. Returns FAIRLOCK_OK, or FAIRLOCK_INVALID: a service without
 * room for an address or without `aim`, replicas_ms of more than half of response_ms, or it
 * follows, or keeps, already.
 */
int fairlock_follow(struct fairlock_client *client, struct fairlock_topology *topology);

/*
 * The cluster slot of the lock called name, 0 to 16383: CRC16 of the name, or of the part within
 * its first braces (Redis cluster specification). Locks whose slots are on one node can share a
 * client; names with the same part in braces have the same slot: "{line:4}door". A name with "{}",
 * with a brace that is not closed, or with a "}" alone, cannot be locked in a cluster: as with
 * Redisson, its keys are in different slots.
 */
unsigned fairlock_slot(const void *name, size_t size);

/* Locks that are kept */

/*
 * Locks that are kept: see fairlock_keep(). The caller's memory, which must stay valid as long as
 * the client. Programs that do not keep link none of this.
 */
struct fairlock_keeper {
  /*
   * a lock is kept for at most this long after the last acquire that went to the server: 1 to two
   * thirds of the configured lease
   */
  uint32_t keep_ms;

  /* the rest is private */
  struct fairlock_keeper_state own;
};

/*
 * Makes the client keep its locks. If a lock was acquired with FAIRLOCK_RENEW, and nobody waits for
 * it when it is released, the client keeps it for a while: that release and the next acquire with
 * FAIRLOCK_RENEW are answered here, without sending a byte. The hold goes on with the same fencing
 * token, because nobody has held in between. If less than two thirds of the lease are left, an
 * acquire asks the server, and begins another hold. When a client of any release queues for the
 * lock, the keep ends, and that client holds two round trips later. While a lock is kept it is not
 * held: fairlock_remaining_ms(), fairlock_hold_count() and fairlock_token() are 0, any task may
 * acquire, and `lost` is not called. Other clients still see a holder.
 *
 * A client that only tries is not noticed, and is refused until the keep ends: keep->keep_ms after
 * the last acquire that went to the server, at the latest. A fairlock_force_release() is not
 * noticed until then, either.
 *
 * Some task has to service the client, as for FAIRLOCK_RENEW. If the device sleeps instead, others
 * wait until its lease ends, as if it were dead. Before it exits, a program has to call
 * fairlock_deinit() on each handle, which releases what is kept; otherwise that stays held until
 * its lease ends. An operator who asks for a lock, by fairlock_ask(), gets it: at once if it is
 * kept, otherwise when it is released. If nobody has serviced the client for 100 ms, an acquire or
 * a release takes up to a millisecond longer, because it receives first.
 *
 * The server has to know CLIENT TRACKING (Redis since 6.0), and the user needs client|tracking,
 * client|caching and exists. If one of them is refused, the log says so, and nothing is kept. Call
 * it after fairlock_client_init(), before the first operation. keep, with keep_ms set, stays the
 * caller's, and must stay valid as long as the client. A second keeper replaces the first. Returns
 * FAIRLOCK_OK, or FAIRLOCK_INVALID: keep_ms is 0, or more than two thirds of lease_ms of the
 * configuration. A program that does not call it links none of it.
 *
 * Without blocking, fairlock_start_acquire() and fairlock_start_release() return FAIRLOCK_PENDING
 * as usual, and fairlock_result() has the result at once. If they have to receive first, the
 * operation ends in a later fairlock_poll().
 */
int fairlock_keep(struct fairlock_client *client, struct fairlock_keeper *keep);

/* For operators: looking at a lock, and ending its hold */

/* One entry of an inspection's answer. All pointers are valid during the call only. */
struct fairlock_report {
  /* the id of the holder or of a waiter, without a NUL; NULL: the lock is free */
  const char *id;

  /* bytes at id */
  size_t id_size;

  /* a client of this library; false: Redisson */
  bool ours;

  /* it listens to its channel: a handover would reach a waiter, and fairlock_ask() the holder */
  bool listens;

  /*
   * a waiter: it was heard within its timeout, or that is not known. The holder: false if two
   * renewals of its lease are missing; true otherwise, also if that is not known
   */
  bool alive;

  /* a waiter of a later release, whose note cannot be read here */
  bool later;

  /* 0: the holder (or nobody holds), 1: first in line, and so on */
  uint32_t place;

  /* place 0: how many follow */
  uint32_t waiters;

  /* place 0: how much of the lease is left; -1: it does not end; -2: the lock is free */
  int64_t ttl_ms;

  /* place 0: 0 when the lock is free */
  int64_t hold_count;

  /* place 0: the fencing token; 0: free, or a holder without one, or one that cannot be read */
  uint64_t token;

  /*
   * place 0: the whole lease; 0: free, or not known: Redisson's, of an earlier release, re-entered
   */
  uint32_t lease_ms;

  /* place 0: how long ago the holder was last heard, by the server's clock; -1: not known */
  int64_t unheard_ms;

  /*
   * place 0: the lease is renewed at each third of it, as with FAIRLOCK_RENEW; false: or not known
   */
  bool renews;
};

/*
 * Called for the holder first (place 0), then for each waiter in order. If the connection breaks
 * meanwhile, the inspection begins again with place 0. The same rules hold as for fairlock_lost_fn.
 */
typedef void (*fairlock_report_fn)(const struct fairlock_report *report, void *context);

/*
 * Reports who holds the lock called name, and who waits, in order, and changes nothing: see
 * fairlock_report_fn. One inspection of a client at a time. Redisson: isLocked(), and more. Returns
 * FAIRLOCK_OK (the holder and each waiter were reported), FAIRLOCK_IN_PROGRESS (another task is
 * inspecting) or a failure as for fairlock_acquire(), after which the report may be incomplete.
 */
int fairlock_inspect(struct fairlock_client *client, const void *name, size_t size,
                     fairlock_report_fn report, void *context);

/*
 * Which hold an operator means: one that has this token and this holder. The caller's memory, which
 * stays unchanged until the operation has ended.
 */
struct fairlock_hold {
  /* its fencing token, at most 2^53; 0: any, or none */
  uint64_t token;

  /*
   * the id of its holder, as in struct fairlock_report, with a NUL; NULL: any holder. An id that is
   * empty, is *, or has white space is FAIRLOCK_INVALID: no request can name it, and no client
   * makes such an id. If a holder without tokens, such as Redisson's, has released the lock and
   * acquired it again meanwhile, the new hold is meant, too
   */
  const char *holder;

  /* the rest is private */
  struct fairlock_hold_state own;
};

/*
 * Ends the hold of the lock called name, and hands the lock to the next in line: for an operator.
 * token: only a hold with this fencing token, as fairlock_inspect() has reported it; 0: whoever
 * holds. The holder finds out at its next renewal or release, and until then believes that it
 * holds; so does a waiter whose grant is on its way. Where that matters, fence with the token.
 * Returns
 *   FAIRLOCK_OK        that hold has ended
 *   FAIRLOCK_NOT_HELD  the lock is free, or has another hold by now: nothing was done. Also if that
 *                      hold was ended, but the connection broke before the answer came
 *   FAIRLOCK_INVALID   token is larger than 2^53, and so none
 *   others             as for fairlock_acquire(). With token 0, if the connection breaks, the
 *                      request is sent again, and may then end the next hold, too
 * Redisson: forceUnlock().
 */
int fairlock_force_release(struct fairlock_client *client, const void *name, size_t size,
                           uint64_t token);

/*
 * Asks the holder of the lock called name to release it: its client calls `asked` of its
 * configuration, and decides. token: as above. Does not wait for the end of the hold.
 *   FAIRLOCK_OK        the message was sent to a holder that listens. It may be lost, or ignored
 *   FAIRLOCK_NOT_HELD  the lock is free, or has another hold by now
 *   FAIRLOCK_INVALID   as above
 *   FAIRLOCK_BUSY      the lock has that hold, but its holder cannot be asked: it does not listen,
 *                      or is Redisson's
 *   others             as for fairlock_acquire()
 */
int fairlock_ask(struct fairlock_client *client, const void *name, size_t size, uint64_t token);

/*
 * The same without blocking, with a handle that neither holds nor waits: see
 * fairlock_start_acquire(). hold stays unchanged until the operation has ended.
 */
int fairlock_start_force_release(struct fairlock *handle, struct fairlock_hold *hold);
int fairlock_start_ask(struct fairlock *handle, struct fairlock_hold *hold);
int fairlock_start_inspect(struct fairlock *handle, fairlock_report_fn report, void *context);

#ifdef __cplusplus
}
#endif

#endif
