/*
 * The engine of the fair lock: bytes in, bytes out, time in, deadline out.
 *
 * All guarantees of the lock are kept here. The engine does no I/O, reads no clock, never blocks
 * and never allocates. fairlock.h joins it to a port, which is what most programs want; use the
 * engine itself to fit the lock into your event loop, a simulator or a fuzzer.
 *
 * One engine is one client: one connection to one server, any number of handles. A handle (struct
 * fairlock) is one holder's view of one named lock. What it is doing is its phase (internal.h), and
 * what it sends follows from that. A request carries the target hold count and can be repeated; a
 * waiter's heartbeats and a holder's renewals go out by the clock, up to three of them before the
 * first is answered.
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
 * Times are uint32_t milliseconds of one clock that never jumps and wraps around at 2^32; they are
 * compared by their difference, so no interval may be longer than FAIRLOCK_DURATION_MAX_MS. While a
 * handle waits or holds, tick at least once a month: after 49 days the clock has wrapped around,
 * and the end of a hold that passed long ago would seem to be still to come.
 *
 * Work. No call loops for longer than this, with n handles. Schedule: to change when a handle is due
 * costs log n steps as a rule, and n at worst.
 *   add, acquire, release, cancel, remove, force   one such change, and n to leave the list of those
 *               that await answers; inspect: n
 *   tick        one for each handle that is due, and a few looks at it. The square of n at worst:
 *               when many holds end while many others wait to send, or after weeks without a tick
 *   deadline    the handles that wait for room to send; wants: without a connection, n
 *   output      the requests that fill the send buffer, each with a change of the schedule. A request
 *               that does not fit is written again from its start by each call, so an EVAL of 4.3 KB
 *               that leaves through FAIRLOCK_SEND_MIN bytes is gone through some 130 times
 *   received    each value in the bytes that are there, receive_size at most: n for a message, an
 *               answer or an error, and for MOVED the bytes of n names; report is called for each
 *               entry of an inspection. The end of a greeting, also by a refusal: as closed
 *   closed      each handle, with a change: the square of n at worst
 *   remaining_ms, ready, connect, opening, opened, sent, fail, input   no loop; opened, with
 *               credentials: one change
 *   slot        the bytes of the name
 *
 * None of these functions may be called by two tasks at the same time for one engine.
 */
#ifndef FAIRLOCK_ENGINE_H
#define FAIRLOCK_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* A wait without end; a time that never comes. */
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

/* Requests of one handle that may await their answers at a time. */
#define FAIRLOCK_UNANSWERED_MAX 3

/* Room for a server's error text, its end mark included. */
#define FAIRLOCK_ERROR_SIZE 64

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

  /* the wait ended without the lock. The queue was left */
  FAIRLOCK_TIMEOUT = -2,

  /* fairlock_cancel() ended the wait. The queue was left */
  FAIRLOCK_CANCELLED = -3,

  /*
   * the hold ended before it was released: its lease ran out, it was forced or deleted. Somebody
   * else may hold the lock; undo or fence what was done
   */
  FAIRLOCK_LOST = -4,

  /* nothing to release, or nothing to cancel. A mistake of the caller */
  FAIRLOCK_NOT_HELD = -5,

  /* another task acquired this handle, or is still releasing it. Use a handle per task */
  FAIRLOCK_WRONG_TASK = -6,

  /* the handle has an operation under way, or still holds. Wait for it */
  FAIRLOCK_IN_PROGRESS = -7,

  /* a release was not answered: it was carried out, or the lease will end the hold */
  FAIRLOCK_UNKNOWN = -8,

  /* no connection to the server. Check address and network; try again */
  FAIRLOCK_UNREACHABLE = -9,

  /*
   * NOAUTH, WRONGPASS, NOPERM: the server refuses this user. Check the ACL. Or a function that gives
   * credentials has none
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
   * MOVED: another node of the cluster has this lock. The client speaks to one node at a time, and
   * follows only when no other lock keeps it here: see struct fairlock_topology. A release goes on in
   * the background until it can follow, or what it ends has ended by its lease
   */
  FAIRLOCK_WRONG_SHARD = -21,

  /*
   * TLS: the server's certificate or key is not trusted, or the server does not trust ours. Check
   * the CA, the name, the dates; the transport knows more
   */
  FAIRLOCK_UNTRUSTED = -22,

  /* this process was forked from the one that made the client. Make a new client in it */
  FAIRLOCK_FORKED = -23
};

struct fairlock;
struct fairlock_credentials;
struct fairlock_engine;
struct resp_event;

/*
 * Called once when a hold is lost, in whichever task services the client, inside the engine: it
 * must be short, and call no function of the library: one of this client would wait without end for
 * the call that it is inside of. Set a flag, or cut the motor's power.
 */
typedef void (*fairlock_lost_fn)(struct fairlock *handle, void *context);

/*
 * Called once for each operation that was begun with FAIRLOCK_PENDING, when its result is there:
 * fairlock_result() gives this status from then on. Any call that services the client, begins
 * something or cancels may end operations of any handle; so this may come before the call that
 * began the operation has returned. An operation that a call waits for, as fairlock_acquire()
 * does, ends with that call, and not here. Same rules as for fairlock_lost_fn, which is called
 * first when a loss ends the operation: put the handle on a list or wake a task, and act on the
 * result later. A loop looks at its list after whatever it has begun, too, before it sleeps.
 */
typedef void (*fairlock_ended_fn)(struct fairlock *handle, int status, void *context);

/*
 * Called when an operator asks the holder to release (fairlock_ask(), `fairlock break --ask`). The
 * hold goes on: the program decides. Once for each message; one may be lost, so an operator may ask
 * again. Same rules as for fairlock_lost_fn.
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

  /* at least FAIRLOCK_RECEIVE_SIZE of the longest name; at most INT32_MAX, as a port counts in int */
  size_t receive_size;

  /* the caller's memory, for this client alone */
  void *send_buffer;

  /* at least FAIRLOCK_SEND_MIN; 1 KB or more saves system calls; at most INT32_MAX, as above */
  size_t send_size;

  /*
   * begins the ids of this client's handles, for people who look at the queue: printable, no colon,
   * at most FAIRLOCK_ID_MAX characters. Need not be unique: the number that the server gave the
   * first connection, and the server's time then, are added. NULL: those alone
   */
  const char *client_id;

  /* NULL: the server's default user. Where these two change: struct fairlock_credentials */
  const char *user;

  /*
   * NULL: no authentication. Of any length: what does not fit send_buffer leaves in pieces. Redis
   * itself takes at most 16 KB
   */
  const char *password;

  /* shown by CLIENT LIST; no spaces. NULL: none */
  const char *client_name;

  /* SELECT; 0: the default one */
  uint32_t database;

  /* lease of FAIRLOCK_RENEW. 0: 30000 */
  uint32_t lease_ms;

  /*
   * waiter timeout: a waiter that is not heard from for this long loses its place, and a lock that
   * was handed over and is not confirmed for this long goes to the next. A waiter sends a heartbeat
   * every two fifths of it. Raised to three round trips where those are longer.
   * FAIRLOCK_WAITER_MIN_MS to _MAX_MS; 0: 5000
   */
  uint32_t waiter_ms;

  /*
   * an answer that takes longer, in ms, means that the connection is dead. On slow networks it is
   * raised to half of itself plus two measured round trips. At most one and a half waiter_ms (raise
   * that, too): a waiter has three heartbeats unanswered at most, and sends none while it waits for
   * the first answer any longer, so it would lose its place. 0: two fifths of waiter_ms
   */
  uint32_t response_ms;

  /*
   * connecting fails if it takes longer; the greeting after it may take this plus response_ms.
   * At most FAIRLOCK_DURATION_MAX_MS / 4. 0: waiter_ms
   */
  uint32_t connect_ms;

  /*
   * an operation without a useful answer for this long fails, even when its wait is longer. Four
   * measured round trips are added. Attempts to connect that fail are up to 5 s apart, so one of less
   * may end without any. 0: twice waiter_ms; FAIRLOCK_FOREVER: only its wait ends it
   */
  uint32_t offline_ms;

  /* NULL: none */
  fairlock_lost_fn lost;

  /* handed to lost */
  void *lost_context;

  /* NULL: none */
  fairlock_ended_fn ended;

  /* handed to ended */
  void *ended_context;

  /*
   * NULL: none. A handle of a client that has it listens to its channel while it holds, also after
   * a try; but a hold of a fixed lease only for as long as its connection lasts
   */
  fairlock_asked_fn asked;

  /* handed to asked */
  void *asked_context;
};

/*
 * Private, in the memory of each option that takes part in the connection: its place among those that
 * are used.
 */
struct fairlock_link {
  const struct fairlock_hooks *hooks;
  struct fairlock_link *inner;
};

/*
 * Servers that move: what a client needs to follow them. Passed to fairlock_follow(), before the
 * first operation; the caller's memory, which must stay valid as long as the client. A program that
 * does not call fairlock_follow() links none of this.
 *
 * The transport's addresses are seeds, of one kind:
 *   with `service`   Sentinels, which are asked for the master
 *   with `cluster`   nodes of one cluster. A server that is not is refused: FAIRLOCK_REFUSED,
 *                    "not a node of a cluster", when no other seed is left
 *   otherwise        nodes of a cluster, one server, or several that replicate one master. Naming
 *                    several says that they do: two clients of unrelated masters could hold one
 *                    lock. So a master has to show by ROLE (the user needs +role) that it has a
 *                    replica, or has had one or been one since it started; otherwise it counts as
 *                    FAIRLOCK_UNAVAILABLE
 * The client speaks to one server at a time. It goes where a Sentinel or a MOVED sends it, up to
 * four times in a row without a pause. When its server is gone, is read-only, or says that it is a
 * replica, it starts from the next seed. It pauses between two rounds of the seeds, for a second at
 * most.
 */
struct fairlock_topology {
  /*
   * room for "host:port" of where to go, and its size, at least 2: 22 holds any IPv4 address, 54
   * any IPv6 address, 263 any host name. NULL, 0: redirections are not followed
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
   * a hold begins, and a lease is extended, only when this many replicas have acknowledged it
   * (WAIT). If that is all of them, a promoted replica knows of the hold. 0: none
   */
  uint32_t replicas;

  /* how long they may take to acknowledge, at most half of response_ms. 0: that, or 500 if less */
  uint32_t replicas_ms;

  /* the rest is private */
  struct fairlock_link link;
  bool (*aim)(void *context, const char *address);
  void *aim_context;
  uint16_t state;       /* what is known of the servers */
  uint8_t redirections; /* in a row */
  bool several;         /* seeds */
  bool asks;            /* the connection is, or will be, to a Sentinel */
};

/* What a log reports of the connection. */
enum fairlock_log_event {
  /* the server has accepted us */
  FAIRLOCK_LOG_CONNECTED = 1,

  /*
   * no connection could be made, or the server did not accept us. status: why; text: the same in
   * words, as of fairlock_status_text(). The transport may know more: port_posix_error()
   */
  FAIRLOCK_LOG_NOT_CONNECTED,

  /* an established connection was given up, and another will be made. status, text: as above */
  FAIRLOCK_LOG_DISCONNECTED,

  /* a Sentinel, or a node of a cluster, sends us elsewhere. text: "host:port" */
  FAIRLOCK_LOG_REDIRECTED,

  /*
   * the server has refused something, for now or for good. text: its message, which begins with a
   * code such as NOPERM, cut to FAIRLOCK_ERROR_SIZE - 1 characters
   */
  FAIRLOCK_LOG_REFUSED,

  /*
   * an operator asks a holder to release, see fairlock_asked_fn. text: the token of the hold. Without
   * `asked` in the configuration, only a holder that has waited in the queue, or keeps its locks,
   * listens
   */
  FAIRLOCK_LOG_ASKED
};

/*
 * Called for each event. text is valid during the call only; NULL: none, as for
 * FAIRLOCK_LOG_CONNECTED. Same rules as for fairlock_lost_fn, which alone reports that a hold is
 * lost.
 */
typedef void (*fairlock_log_fn)(enum fairlock_log_event event, int status, const char *text,
                                void *context);

/* A log: see fairlock_set_log(). The caller's memory. Programs without one link none of it. */
struct fairlock_log {
  /* called for each event */
  fairlock_log_fn function;

  /* handed to function */
  void *context;

  /* the rest is private */
  struct fairlock_link link;
  bool up;
};

/*
 * Locks that are kept: see fairlock_keep(). The caller's memory, which must stay valid as long as
 * the client. Programs that do not keep link none of this.
 */
struct fairlock_keeper {
  /*
   * a lock is given back this long after the last acquire that went to the server, at the latest. 1
   * to two thirds of the configured lease
   */
  uint32_t keep_ms;

  /* the rest is private */
  struct fairlock_link link;

  /* a task receives, so what the server tells is noticed at once. NULL: nobody knows */
  const bool *serviced;

  /* called when operations were answered here, for tasks that wait for that; NULL: there are none */
  void (*answered)(void *context);
  void *context;

  /* when it was last left time to receive */
  uint32_t looked_at;

  /* an arming awaits answers */
  bool arming;

  /* sequence number of the last of them */
  uint16_t arm_sequence;

  /* what the server says of tracking, on this connection */
  uint8_t tracking;

  /* the arming has a CLIENT TRACKING in front */
  bool asks;

  /* the request that is being written has the arming in front */
  bool arms;

  /* the push under way names keys that have changed */
  bool invalidates;
};

/* What happened so far. Each counter wraps around at 2^32. */
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

  /* scripts sent, and AUTHs on standing connections */
  uint32_t requests;
};

/* One entry of an inspection's answer. All pointers are valid during the call only. */
struct fairlock_report {
  /* the holder, or a waiter: not ended by NUL; NULL: the lock is free */
  const char *id;

  /* bytes at id */
  size_t id_size;

  /* a client of this library; false: Redisson */
  bool ours;

  /* a waiter: a handover would reach it. The holder: so would fairlock_ask() */
  bool listens;

  /*
   * a waiter: heard from in time, or that cannot be known. The holder: the same; false when two
   * renewals of its lease are missing
   */
  bool alive;

  /* a waiter of a later release: when it was heard from cannot be read here */
  bool later;

  /* 0: the holder (or nobody holds), 1: first in line, and so on */
  uint32_t place;

  /* place 0: how many follow */
  uint32_t waiters;

  /* place 0: what is left of the lease; -1: it has no end, -2: free */
  int64_t ttl_ms;

  /* place 0: 0 when the lock is free */
  int64_t hold_count;

  /* place 0: the fencing token; 0: free, or a holder without one, or one that cannot be read */
  uint64_t token;

  /* place 0: the whole lease; 0: free, or not known: Redisson's, of an earlier release, re-entered */
  uint32_t lease_ms;

  /* place 0: how long ago the holder was last heard, by the server's clock; -1: not known */
  int64_t unheard_ms;

  /* place 0: the lease is renewed at each third of it, as with FAIRLOCK_RENEW; false: or not known */
  bool renews;
};

/*
 * Which hold an operator means: one that has this token and this holder. The caller's memory, which
 * stays unchanged until the operation has ended.
 */
struct fairlock_hold {
  /* its fencing token, at most 2^53; 0: any, or none */
  uint64_t token;

  /*
   * the id of its holder, as of struct fairlock_report, and ended by NUL; NULL: whoever it is.
   * FAIRLOCK_INVALID: empty, *, or with white space in it: no client makes such an id, and no
   * request can name it. A holder without tokens, such as Redisson's, that has released the lock
   * and taken it again meanwhile, is the same holder
   */
  const char *holder;

  /* the rest is private */
  const struct fairlock_breaking *breaking;
  int8_t mode;
};

/*
 * Called for the holder first (place 0), then for each waiter in order. If the connection breaks
 * meanwhile, the inspection begins again with place 0. Same rules as for fairlock_lost_fn.
 */
typedef void (*fairlock_report_fn)(const struct fairlock_report *report, void *context);

/* struct fairlock, a handle, and struct fairlock_engine: the caller's memory, all private */
#include "state.h"

/* User and password for one server, as a function gives them. */
struct fairlock_login {
  /* said to the function: they are for a Sentinel, which has other users than the master */
  bool sentinel;

  /* said to the function: what it gave last for this purpose was refused. Do not give it again */
  bool refused;

  /* to be set. NULL, as they are before: the default user; no authentication */
  const char *user;
  const char *password;

  /*
   * to be set: for how long from now they are valid, in ms; more than FAIRLOCK_DURATION_MAX_MS
   * counts as that. 0, as it is before: no end is known
   */
  uint32_t valid_ms;
};

/*
 * Gives user and password: fills in login, and returns true. False: there are none now. The strings
 * must stay unchanged until the function is called again. Called at each greeting, in whichever task
 * services the client, inside the engine: it must be short, wait for nothing (a token is fetched by
 * a task of yours, and kept), and call no function of the library.
 */
typedef bool (*fairlock_credentials_fn)(struct fairlock_login *login, void *context);

/*
 * Credentials that change: see fairlock_use_credentials(). The caller's memory, which must stay
 * valid, and where it is, as long as the client. Programs without them link none of this.
 *
 * A connection begins with what the function gives then. If it has none, or the server says
 * WRONGPASS or NOAUTH, the connection is given up, and another one is made after the usual pause; so
 * too when a request is answered by NOAUTH. Meanwhile holds and waits go on as without a connection:
 * a wait ends after offline_ms, as FAIRLOCK_DENIED. What cannot wait ends at once.
 *
 * If what was given has an end, the function is asked again when three quarters of that time have
 * passed, and the standing connection says AUTH. Subscriptions and requests under way are not
 * touched. If there is nothing new, or the server refuses it, the connection goes on as the user
 * that it was, and this is tried again after half of what is left, after 1 s at least; after the
 * end, every 5 s, until the server closes the connection.
 */
struct fairlock_credentials {
  /* called when user and password are needed */
  fairlock_credentials_fn function;

  /* handed to function */
  void *context;

  /* the rest is private */
  struct fairlock_link link;

  /* what was given last, to a Sentinel if `sentinel`, ends; 0: no end is known */
  uint32_t valid_ms;
  uint32_t given_at;
  bool sentinel;

  /* what was given last was refused: by a server, by a Sentinel */
  bool refused[2];

  /* sends the AUTH */
  struct fairlock handle;
};

/* FAIRLOCK_VERSION of the library that is linked. In constant memory. */
const char *fairlock_version(void);

/* A line of plain words for a status, in constant memory. */
const char *fairlock_status_text(int status);

/* The name of a status as it stands in the enum, without FAIRLOCK_. */
const char *fairlock_status_name(int status);

/* Makes engine ready. Returns FAIRLOCK_OK, _INVALID or _TOO_LONG. */
int fairlock_engine_init(struct fairlock_engine *engine, const struct fairlock_config *config);

/*
 * Makes engine follow servers that move. Call it before the first operation. aim, with its context,
 * tells the transport where the next connection goes, as in port.h; NULL: the transport has one
 * address, and nothing is followed. With a topology, connect_ms is 1000 by default, and offline_ms
 * 60000. Returns FAIRLOCK_OK or _INVALID.
 */
int fairlock_engine_follow(struct fairlock_engine *engine, struct fairlock_topology *topology,
                           bool (*aim)(void *context, const char *address), void *context);

/*
 * Calls log->function for each event of the connection from now on, instead of that of an earlier
 * log. log must stay valid as long as the engine.
 */
void fairlock_engine_set_log(struct fairlock_engine *engine, struct fairlock_log *log);

/*
 * Makes engine keep its locks. Call it before the first operation. What is answered without the server ends in fairlock_engine_output(), which then
 * has nothing to send for it. Returns FAIRLOCK_OK or _INVALID.
 */
int fairlock_engine_keep(struct fairlock_engine *engine, struct fairlock_keeper *keep);

/*
 * Asks credentials->function for user and password from now on, not the configuration and the
 * topology. Call it before the first operation. credentials must stay valid as long as the engine.
 */
void fairlock_engine_use_credentials(struct fairlock_engine *engine,
                                     struct fairlock_credentials *credentials);

/*
 * The cluster slot of the lock called name, 0 to 16383: CRC16 of the name, or of the part within
 * its first braces (Redis cluster specification). Locks whose slots are on one node can share a
 * client; names with the same part in braces have the same slot: "{line:4}door". A name with "{}",
 * with a brace that is not closed, or with a "}" alone, cannot be locked in a cluster: as with
 * Redisson, its keys are in different slots.
 */
unsigned fairlock_slot(const void *name, size_t size);

/*
 * Makes handle a view of the lock called name, which stays the caller's and must stay valid. Any
 * bytes are allowed, NUL included; 1 to FAIRLOCK_NAME_MAX. A name is also a key: it must not be one
 * that something else uses, such as another lock's notes ("fairlock:{x}"). A handle that is in an
 * engine is taken out before it is added again. Returns FAIRLOCK_OK, _TOO_LONG, or _INVALID: the
 * name is empty, or wholly in braces, as "{x}" is, which has the queue of "x": take "{x}:lock".
 */
int fairlock_engine_add(struct fairlock_engine *engine, struct fairlock *handle, const char *name,
                        size_t size);

/*
 * Takes handle out. FAIRLOCK_OK: its memory is the caller's again; if its request was being written,
 * the engine wants the connection to be closed, keeps the address until fairlock_engine_closed(), and
 * reads nothing there. FAIRLOCK_PENDING: the
 * subscription is being ended, or the server still has to be told that the handle no longer waits
 * or holds; call again when result is no longer FAIRLOCK_PENDING, or at any time. Offline, result
 * becomes FAIRLOCK_UNREACHABLE after offline_ms, and the handle leaves as soon as there is a
 * connection again. What it may have left on the server ends by itself with its lease or waiter
 * timeout; from then on this returns FAIRLOCK_OK. FAIRLOCK_IN_PROGRESS: it is held, or an operation
 * is under way.
 */
int fairlock_engine_remove(struct fairlock *handle, uint32_t now);

/*
 * Operations, of a handle that was added and has not been taken out since. Each returns
 * FAIRLOCK_PENDING when it was begun; its result is in handle->result. Any other value is final, and
 * nothing was begun; FAIRLOCK_IN_PROGRESS means that another operation is under way.
 *
 *   acquire   wait_ms 0 tries without queueing. A handle that holds re-enters, without waiting; a
 *             re-entry never shortens the lease. lease_ms: FAIRLOCK_RENEW, or FAIRLOCK_LEASE_MIN_MS
 *             to FAIRLOCK_DURATION_MAX_MS
 *   release   one level. After the last one the caller no longer holds, whatever the result is
 *   cancel    ends a wait; the acquire ends with FAIRLOCK_CANCELLED, unless it has just ended
 *             otherwise. Returns FAIRLOCK_OK, or FAIRLOCK_NOT_HELD when there is no wait
 *   force     ends the hold. FAIRLOCK_NOT_HELD: the lock is free, or has another hold;
 *             FAIRLOCK_INVALID: there can be no such hold
 *   ask       asks the holder to release, see fairlock_asked_fn. FAIRLOCK_NOT_HELD as above;
 *             FAIRLOCK_BUSY: the lock has that hold, but its holder does not listen
 *   inspect   reports holder and waiters. FAIRLOCK_PROTOCOL: the reply made no sense, or was
 *             incomplete, and so is the report
 * force, ask and inspect need a handle that is neither held nor waiting; hold and report must not be
 * NULL. An engine has one inspection at a time: FAIRLOCK_IN_PROGRESS.
 */
int fairlock_engine_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms,
                            uint32_t now);
int fairlock_engine_release(struct fairlock *handle, uint32_t now);
int fairlock_engine_cancel(struct fairlock *handle, uint32_t now);
int fairlock_engine_force(struct fairlock *handle, struct fairlock_hold *hold, uint32_t now);
int fairlock_engine_ask(struct fairlock *handle, struct fairlock_hold *hold, uint32_t now);
int fairlock_engine_inspect(struct fairlock *handle, fairlock_report_fn report, void *context,
                            uint32_t now);

/*
 * Milliseconds for which it is still safe to act as the holder. 0: not held. handle was added, and
 * has not been taken out since.
 */
uint32_t fairlock_engine_remaining_ms(const struct fairlock *handle, uint32_t now);

/* Bits of fairlock_engine_wants(). */
enum fairlock_want {
  /* the connection should be opened */
  FAIRLOCK_CONNECT = 1,

  /* the connection has to be closed: it is dead, or what arrived on it makes no sense */
  FAIRLOCK_CLOSE = 2,

  /* there is, or may be, something to send */
  FAIRLOCK_SEND = 4,

  /* the connection is open: receive */
  FAIRLOCK_RECEIVE = 8
};

/* What the engine wants of the connection at this time. */
unsigned fairlock_engine_wants(const struct fairlock_engine *engine, uint32_t now);

/* Asks for a connection even if no operation needs one. */
void fairlock_engine_connect(struct fairlock_engine *engine, uint32_t now);

/* True when the connection is up and the server has answered the greeting. */
bool fairlock_engine_ready(const struct fairlock_engine *engine);

/*
 * Tell the engine that opening begins, that it has succeeded, and that the connection is closed or
 * opening has failed. From the first call of fairlock_engine_opening(), connect_ms counts; until
 * opening ends, further calls change nothing. fairlock_engine_opened() only between
 * fairlock_engine_opening() and _closed(), once. status: why, FAIRLOCK_UNTRUSTED to FAIRLOCK_OK; of a
 * connection that fairlock_engine_fail() has ended, what that was told counts.
 */
void fairlock_engine_opening(struct fairlock_engine *engine, uint32_t now);
void fairlock_engine_opened(struct fairlock_engine *engine, uint32_t now);
void fairlock_engine_closed(struct fairlock_engine *engine, int status, uint32_t now);

/*
 * Bytes to send: *size of them, 0 for none. They stay valid until fairlock_engine_sent() or
 * _closed(). Call fairlock_engine_tick() with the same `now` before: what a freeze has ended must not
 * be renewed. A request is shorter than SIZE_MAX.
 */
const uint8_t *fairlock_engine_output(struct fairlock_engine *engine, size_t *size, uint32_t now);

/*
 * Tells the engine that the first size bytes of the output were handed to the connection: 1 to what
 * fairlock_engine_output() said.
 */
void fairlock_engine_sent(struct fairlock_engine *engine, size_t size);

/*
 * Ends the connection for this reason, FAIRLOCK_UNTRUSTED to FAIRLOCK_OK: the engine then wants it to
 * be closed.
 */
void fairlock_engine_fail(struct fairlock_engine *engine, int status);

/*
 * Where to put received bytes: *size of them, at least 1 unless the engine wants the connection to be
 * closed: then there may be no room left.
 */
uint8_t *fairlock_engine_input(struct fairlock_engine *engine, size_t *size);

/*
 * Tells the engine that size bytes were received to where fairlock_engine_input() said, at most as
 * many as it said; on a connection that is open. size 0: there was nothing to receive. A late
 * answer counts against the server only if the engine has been told this since the answer was due:
 * after a freeze of this device, the bytes that have piled up are read first. Call
 * fairlock_engine_tick() at least once between two calls: an answer must not renew a hold whose end has
 * passed unseen.
 */
void fairlock_engine_received(struct fairlock_engine *engine, size_t size, uint32_t now);

/* Does what is due. Cheap when nothing is. */
void fairlock_engine_tick(struct fairlock_engine *engine, uint32_t now);

/*
 * Milliseconds until the next fairlock_engine_tick(), if nothing else happens before; 0: now. At
 * most about 19 hours.
 */
uint32_t fairlock_engine_deadline(const struct fairlock_engine *engine, uint32_t now);

#ifdef __cplusplus
}
#endif

#endif
