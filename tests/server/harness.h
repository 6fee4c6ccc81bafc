/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the suites against a real redis-server share, besides tests/support: checks of what is in
 * Redis, clients of the library, and actors, which are clients in processes of their own.
 *
 * Each test begins with begin(), which ends what the previous test left, empties the suite's server
 * and sets a time limit: a test that hangs ends the program as a failure. Servers and child
 * processes die with the program, however it ends. All waits here have generous bounds for a loaded
 * machine; they end as soon as what they wait for has come.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "check.h"
#include "fairlock.h"
#include "fairlock_operate.h"
#include "port_posix.h"
#include "support/clock.h"
#include "support/history.h"
#include "support/loopback.h"
#include "support/process.h"
#include "support/raw.h"
#include "support/server.h"

/* What is in Redis for a lock whose name has no brace */

int64_t hold_count_of(struct raw *raw, const char *name, const char *id);
int64_t queue_length(struct raw *raw, const char *name);
/* channels of waiters of the lock that have a subscriber */
int64_t listeners(struct raw *raw, const char *name);

/* how many times the server has run a script since it started */
int64_t scripts_run(struct raw *raw);

/* Waits until the queue is this long. */
bool queue_reaches(struct raw *raw, const char *name, int64_t length);

/* The queue is empty and nothing shows that anybody ever waited. */
bool no_trace_of_waiters(struct raw *raw, const char *name);

/* The same, and nobody holds the lock. */
bool nothing_left(struct raw *raw, const char *name);

/*
 * The rules that must never be broken: no hold without a TTL, no queue entry without a score.
 */
bool sane(struct raw *raw, const char *name);

/* Clients of the library */

struct client {
  struct fairlock_client client;
  struct fairlock_config config;
  struct port_posix socket;
  atomic_int losses;
  char service[8];
  char error[FAIRLOCK_ERROR_SIZE];
  uint8_t receive[1024];
  uint8_t send[1024];
};

/*
 * client_prepare() fills in config, for the test to change; client_start() makes the client;
 * client_open() is both.
 */
void client_prepare(struct client *client, int port);
void client_start(struct client *client);
void client_open(struct client *client, int port);
void client_close(struct client *client);

/* The server's last error text. */
const char *client_error(struct client *client);

/* Services the client until the operation of the handle is over, or for SOON. */
int await_result(struct client *client, struct fairlock *handle);

/* The server is kept busy by a script, until that is ended, or as long as its connection is up. */
void make_busy(struct raw *busy);
void end_busy(struct raw *busy);

/* Services the client for a while. */
void service_for(struct client *client, int ms);

/*
 * Writes down what the client believes of its hold at this moment. Returns until when it does, 0: it
 * does not any more.
 */
int64_t believe(struct hold *hold, struct fairlock *handle);

/* Services the client until so many stand in line for the lock, or for SOON. */
void service_until_queued(struct client *client, const char *name, int64_t length);

/*
 * Ends all connections but that of `redis`, and services the client until it has seen that, or for
 * SOON.
 */
void break_connection(struct client *client);

/* The second half of it: `connects` is what the client had counted before its connection ended. */
void service_until_broken(struct client *client, uint32_t connects);

/* All that fairlock_inspect() reports. */
struct picture {
  int status;
  bool held;
  char holder[FAIRLOCK_HOLDER_ID_SIZE];
  int64_t ttl_ms, hold_count;
  uint64_t token;
  uint32_t waiters, seen, ours, later, alive, listening;
  char waiter[8][FAIRLOCK_HOLDER_ID_SIZE];
};
bool picture_report(const struct fairlock_report *report, void *context);
struct picture inspect(struct client *client, const char *name);

/*
 * Actors: each is a process with a client and a handle, which does what it is told and reports the
 * result.
 */

struct actor {
  pid_t pid;
  int commands, events;
};

struct event {
  char what;
  int status; /* enum fairlock_status */
  uint64_t token;
  uint32_t held_ms, holds;
  int losses;
  int64_t at_us;
  struct fairlock_counters stats;
  char id[FAIRLOCK_HOLDER_ID_SIZE];
};

void actor_start(struct actor *actor, int port, const char *name);
/* With a configuration: buffers, lost and lost_context are set by the actor. */
void actor_start_with(struct actor *actor, int port, const char *name,
                      const struct fairlock_config *config);

/*
 * Tells it to do something: 'a' acquire(wait, lease), 'r' release, 'l' look (nothing but an event),
 * 'd' deinit, 'p' pause for `wait` without servicing the client, 'c' acquire(wait, lease), work for
 * 5 ms, release. It services the client meanwhile.
 */
void actor_tell(const struct actor *actor, char what, uint32_t wait_ms, uint32_t lease_ms);

/* The result of the oldest thing told. Status FAIRLOCK_PENDING: none yet. */
struct event actor_hear(const struct actor *actor, int timeout_ms);

/* Tell and hear. */
struct event actor_do(const struct actor *actor, char what, uint32_t wait_ms, uint32_t lease_ms);

/* Tells it to end, and waits for that. */
void actor_end(struct actor *actor);

/* The suite's server */

extern struct server server;
extern struct raw redis;

/* Begins a test: see above. */
void begin(void);

#endif
