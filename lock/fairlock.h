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
 * time) for all of its tasks; if a task is inside fairlock_run(), that one does. A hold is for the
 * task that acquired it to release, or for one that has taken it over. A thread of POSIX that is
 * cancelled (pthread_cancel()) inside a function finishes it first, however long it waits: end a wait
 * by fairlock_cancel(), and fairlock_run() by fairlock_stop().
 *
 * Processes. After a fork() the client and its handles stay the parent's: in the child all their
 * functions return at once, with FAIRLOCK_FORKED or with 0 or "" (fairlock_poll(): about 19 hours),
 * and send nothing. fairlock_client_deinit() closes the child's copy of the connection; until then,
 * or an exec(), the server does not notice when the parent ends. A handle's memory may be used for
 * something else at once. The child may make a new client. A program that goes into the
 * background by daemon() does so before fairlock_client_init().
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
 *
 * What a call does meanwhile is bounded by the handles of the client (n), the tasks inside its
 * blocking calls (t), and the bytes that are sent and received; engine.h says how the engine's share
 * grows. Waiters of other clients cost nothing, except in an inspection.
 *   remaining_ms, token, hold_count, result, id, error and the like   no loop; wants: n
 *   init              the bytes of the name; log n as a rule, n at worst
 *   take_over         t
 *   start_..., cancel one operation: n, t; then what is due, and all that there is to send: one
 *                     send() of the transport for each part that it takes
 *   poll              the same up to three times, without the operation, and two receives with what
 *                     they bring, up to receive_size bytes each
 *   acquire, release, deinit, connect, force_release, inspect, run
 *                     turns of the same, until the result is there; of an inspection, report is
 *                     called once for the holder and once for each waiter
 *
 * Statuses are those of enum fairlock_status, in engine.h.
 */
#ifndef FAIRLOCK_H
#define FAIRLOCK_H

#include "engine.h"
#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A client: one connection to one server. The caller's memory; private. Must not move. */
struct fairlock_client {
  struct port_mutex mutex;

  /* a task services the client */
  bool serviced;

  /* a task is inside send() */
  bool sending;

  /* fairlock_stop() was called */
  bool stop;

  struct port_transport *transport;

  /* tasks that wait for the one that services it */
  struct fairlock_blocked *blocked;

  /* what the task inside fairlock_run() waits on; NULL: no task is */
  struct port_event *runner;

  struct fairlock_engine engine;
};

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

/*
 * Makes the client follow servers that move (Sentinel, Cluster, a promoted replica), and, if asked
 * to, count only holds that replicas have acknowledged. See struct fairlock_topology, which stays
 * the caller's. Call it after fairlock_client_init(), before the first operation. A transport whose
 * `aim` is NULL has one address: a redirected operation then ends with FAIRLOCK_WRONG_SHARD or
 * _READONLY. Returns FAIRLOCK_OK, or FAIRLOCK_INVALID: a service without room for an address or
 * without `aim`, replicas_ms of more than half of response_ms, or it follows, or keeps, already.
 */
int fairlock_follow(struct fairlock_client *client, struct fairlock_topology *topology);

/*
 * Makes the client keep its locks. A lock that was acquired with FAIRLOCK_RENEW, and for which
 * nobody waits when it is released, stays the client's for a while: that release and the next
 * acquire with FAIRLOCK_RENEW are answered here, without a byte. The hold goes on with the same
 * fencing token, as nobody held in between. When less than two thirds of the lease are left, an
 * acquire asks the server, for another hold. Whoever queues for the lock, a client of any release,
 * recalls it, and has it two round trips later. While it is kept the lock is not held:
 * fairlock_remaining_ms(), fairlock_hold_count() and fairlock_token() are 0, any task may acquire,
 * and `lost` is not called. Others see its holder.
 *
 * Nothing tells of one who only tries. It is refused until the keep ends: keep->keep_ms after the
 * last acquire that went to the server, at the latest. Nor does anything tell of a
 * fairlock_force_release() until then.
 *
 * Some task has to service the client, as for FAIRLOCK_RENEW: others wait for a device that sleeps
 * until its lease ends, as for one that is dead. A program that ends takes out its handles before,
 * by fairlock_deinit(), which gives back what is kept. An operator who asks for a lock, by
 * fairlock_ask(), gets it: at once if it is kept, as nobody holds it, otherwise when it is released. In a program that has not serviced the client for
 * 100 ms, an acquire or a release takes up to a millisecond longer: it receives first.
 *
 * The server has to know CLIENT TRACKING (Redis since 6.0), and the user needs client|tracking,
 * client|caching and exists. If one of them is refused, the log says so, and nothing is kept. Call
 * it after fairlock_client_init(), before the first operation. keep, with keep_ms set, stays the
 * caller's, and must stay valid as long as the client. A second keeper takes the place of the first.
 * Returns FAIRLOCK_OK, or FAIRLOCK_INVALID: keep_ms is 0, or more than two thirds of lease_ms of the
 * configuration. A program that does not call it links none of it.
 *
 * Without blocking, fairlock_start_acquire() and fairlock_start_release() return FAIRLOCK_PENDING as
 * ever, and the result is there when they have returned; but one that has to receive first ends in
 * a later fairlock_poll().
 */
int fairlock_keep(struct fairlock_client *client, struct fairlock_keeper *keep);

/*
 * Calls log->function for each connection that is made, refused, redirected or ended, with the
 * reason. log, with function and context set, stays the caller's, and must stay valid as long as
 * the client. Call it after fairlock_client_init(), before the first operation. A second log takes
 * the place of the first. A program that does not call it links none of it.
 */
void fairlock_set_log(struct fairlock_client *client, struct fairlock_log *log);

/*
 * Makes the client ask credentials->function for user and password whenever it needs them, instead
 * of taking them from the configuration and the topology: for tokens that expire, and passwords that
 * are rotated. See struct fairlock_credentials. credentials, with function and context set, stays
 * the caller's. Call it after fairlock_client_init(), before the first operation. Credentials that
 * were set before no longer count. A program that does not call it links none of it.
 */
void fairlock_use_credentials(struct fairlock_client *client,
                              struct fairlock_credentials *credentials);

/*
 * Makes handle a view of the lock called name, a string, which stays the caller's.
 * fairlock_init_bytes() takes any bytes. Returns FAIRLOCK_OK, _INVALID (empty, or wholly in braces:
 * see fairlock_engine_add()) or _TOO_LONG (does not fit the receive buffer).
 */
int fairlock_init(struct fairlock *handle, struct fairlock_client *client, const char *name);
int fairlock_init_bytes(struct fairlock *handle, struct fairlock_client *client, const void *name,
                        size_t size);

/*
 * Takes handle out of its client. FAIRLOCK_OK: its memory is the caller's again. After any other
 * status it is not yet:
 *   FAIRLOCK_IN_PROGRESS  it is held, an operation is under way, or another task is inside one
 *   FAIRLOCK_UNREACHABLE, _UNAVAILABLE, _READONLY, _OOM, _MISCONF
 *                         the server still has to be told that the handle no longer waits or holds;
 *                         this was not possible for offline_ms, for this reason. The client keeps
 *                         trying while it is serviced; call again. FAIRLOCK_OK at the latest when
 *                         what the handle left on the server has ended by itself: after its lease,
 *                         a waiter timeout and a response time-out
 * Blocks until there is an answer, for offline_ms of the configuration at most.
 */
int fairlock_deinit(struct fairlock *handle);

/*
 * The same without blocking. FAIRLOCK_PENDING: not yet; service the client and call again.
 * FAIRLOCK_OK and FAIRLOCK_IN_PROGRESS as above.
 */
int fairlock_start_deinit(struct fairlock *handle);

/*
 * Acquires the lock, waiting in line for up to wait_ms: 0 does not wait (see
 * fairlock_try_acquire()), FAIRLOCK_FOREVER waits without end. At most FAIRLOCK_DURATION_MAX_MS
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
 *                         for offline_ms (or until the end of the wait, if that came first; if
 *                         wait_ms is 0, as soon as the server or its connection refuses) there was
 *                         no useful answer, for this reason
 *   FAIRLOCK_DENIED, _UNSUPPORTED, _REFUSED, _PROTOCOL
 *                         the server does not serve us; see fairlock_error(). With credentials that
 *                         change, a wait ends by WRONGPASS or NOAUTH only after offline_ms
 *   FAIRLOCK_UNTRUSTED    TLS: one side does not trust the other. The wait ends at once; after
 *                         offline_ms if it has its place in the queue: certificates may be changing
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
 * Makes the calling task the one whose hold this is, as a thread pool or a coroutine needs it: from
 * then on it releases and re-enters, and every other task gets FAIRLOCK_WRONG_TASK. A lost hold, or
 * one that is still being released, is taken over in the same way; the token stays the same. No I/O.
 *
 * It is safe when the two tasks have agreed: the one that gives has made its last call with handle,
 * no longer acts as the holder, and has passed handle on by something that orders the two (a queue,
 * a mutex, the start or the end of a thread). Nothing checks that; a task that takes what nobody
 * gives acts as the holder beside another. While handle is on its way, some task has to service the
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

/*
 * Ends the hold of the lock called name, and hands the lock to the next in line: for an operator.
 * token: only a hold with this fencing token, as fairlock_inspect() has reported it; 0: whoever
 * holds. The holder finds out at its next renewal or release, and until then believes that it
 * holds; so does a waiter whose grant is on its way. Where that matters, fence with the token.
 * Returns
 *   FAIRLOCK_OK        that hold is ended
 *   FAIRLOCK_NOT_HELD  the lock is free, or has another hold by now: nothing was done. The same if
 *                      the connection broke after that hold was ended, and before we knew
 *   FAIRLOCK_INVALID   token is larger than 2^53, which none is
 *   others             as for fairlock_acquire(). With token 0, a request that was carried out
 *                      before the connection broke is repeated, and then may end the next hold
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
 *   FAIRLOCK_BUSY      it has that hold, and its holder cannot be told: it does not listen, or is
 *                      Redisson's
 *   others             as for fairlock_acquire()
 */
int fairlock_ask(struct fairlock_client *client, const void *name, size_t size, uint64_t token);

/*
 * Reports who holds the lock called name, and who waits, in order, without touching it: see
 * fairlock_report_fn. One inspection of a client at a time. Redisson: isLocked(), and more. Returns
 * FAIRLOCK_OK (the holder and each waiter were reported), FAIRLOCK_IN_PROGRESS (another task is
 * inspecting) or a failure as for fairlock_acquire(), after which the report may be incomplete.
 */
int fairlock_inspect(struct fairlock_client *client, const void *name, size_t size,
                     fairlock_report_fn report, void *context);

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
int fairlock_start_force_release(struct fairlock *handle, struct fairlock_hold *hold);
int fairlock_start_ask(struct fairlock *handle, struct fairlock_hold *hold);
int fairlock_start_inspect(struct fairlock *handle, fairlock_report_fn report, void *context);

/* The result of the handle's last operation; FAIRLOCK_PENDING while it is under way. */
int fairlock_result(struct fairlock *handle);

/*
 * Services the client once: sends what is wanted, receives what is there, does what is due. Blocks
 * for up to timeout_ms, and never for more than PORT_WAIT_MAX_MS, while there is nothing to do; 0:
 * not at all.
 *
 * Returns the number of milliseconds after which to call again, at most about 19 hours. A device
 * may sleep for that long, if arriving bytes wake it. 0: at once, there may be more to receive.
 * While bytes are unsent, or a connection is being opened, it is 10 at most, for devices that
 * nothing wakes when the transport is ready to go on; but not while the transport waits for bytes
 * to open it (PORT_NEEDS_INPUT).
 */
uint32_t fairlock_poll(struct fairlock_client *client, uint32_t timeout_ms);

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
 * Beginning an operation, or fairlock_cancel(), changes both: call fairlock_poll() afterwards. With
 * sockets, port_posix_fd() says what to watch, also below TLS.
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

/*
 * The server's last error text, cut to FAIRLOCK_ERROR_SIZE - 1 characters but otherwise unchanged;
 * "" if there was none.
 */
void fairlock_error(struct fairlock_client *client, char text[FAIRLOCK_ERROR_SIZE]);

/*
 * Why the server gives no useful answers at present, a status; FAIRLOCK_OK: it does, or nothing is
 * known yet. While a lock is held, this is what keeps the lease from being renewed.
 */
int fairlock_last_error(struct fairlock_client *client);

/* What happened so far. */
struct fairlock_counters fairlock_read_counters(struct fairlock_client *client);

/*
 * The id under which handle holds and waits, "<client id>:<number>", ended by NUL. The client makes
 * its id from what the server tells it at the first connection, and keeps it from then on; before
 * that, text is "".
 */
#define FAIRLOCK_HOLDER_ID_SIZE (FAIRLOCK_ID_MAX + FAIRLOCK_ID_SUFFIX + 12U)
void fairlock_id(struct fairlock *handle, char text[FAIRLOCK_HOLDER_ID_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
