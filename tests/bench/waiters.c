/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ten thousand waiters, on one lock and on a lock each, and a hundred thousand on one: what their
 * heartbeats cost the server, what memory they take there, and what they change in a handover.
 *
 * A crowd has a server of its own, so that nothing else is in its figures. Its waiters are clients
 * with a connection each, as far as there are descriptors, all serviced by one thread. The rest are
 * ids: one connection listens for all of them, and another sends their heartbeats, the same
 * requests as often, spread evenly over time.
 *
 * The cost is processor time as the server itself counts it (INFO cpu). What it uses without any
 * client is subtracted. Other programs on the machine raise it: they empty the caches while the
 * server sleeps, above all when heartbeats are few and each wakes it. A PING sent as often, beside
 * it, then costs more, too.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "support/counters.h"

enum { WAITERS = 10000, FEW = 10, SPARE_FILES = 200, HANDOVERS = 20, ROUNDS = 15, NAME_SIZE = 24 };
enum { SIMULATED = -1 }; /* stands for the connection of the ids among the clients' numbers */

struct crowd {
  int count;
  int real;           /* those with a connection */
  bool apart;         /* a lock for each */
  uint32_t waiter_ms; /* waiter timeout */

  /* the rest is set by crowd_start() */
  struct server server;
  redisContext *peer;
  int epoll;
  struct bench_client holder;
  struct fairlock *held;
  char (*name)[NAME_SIZE];
  struct small_client *waiter;
  int64_t *due;
  redisContext *listener, *beats;
  bool pings;   /* in the place of the ids' heartbeats */
  double began; /* heartbeats of the ids */
  long sent, answered;
};

/*
 * Of a processor: what a server uses without clients, and what it uses more when all the clients
 * are connected and nobody waits.
 */
static double idle_share, silent_share;

static uint32_t heartbeat_ms(const struct crowd *crowd)
{
  return crowd->waiter_ms / 5 * 2;
}

static const char *lock_of(const struct crowd *crowd, int waiter)
{
  return crowd->name[crowd->apart ? waiter : 0];
}

/* The ids */

/* As long as those of the clients. */
static void id_of(struct crowd *crowd, int waiter, char id[FAIRLOCK_HOLDER_ID_SIZE])
{
  fairlock_id(&crowd->held[0], id, FAIRLOCK_HOLDER_ID_SIZE);
  char *number = strchr(id, ':') + 1;
  (void)snprintf(number, (size_t)(id + FAIRLOCK_HOLDER_ID_SIZE - number), "1%05d", waiter);
}

static void append_heartbeat(struct crowd *crowd, int waiter)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  if (crowd->pings) {
    redisAppendCommand(crowd->beats, "PING");
    return;
  }
  id_of(crowd, waiter, id);
  append_request(crowd->beats, lock_of(crowd, waiter), id, 0);
}

static void check_heartbeat(const redisReply *reply)
{
  must(reply != NULL && reply->elements == 3 && reply->element[0]->integer == 0,
       "an id does not wait");
}

/* Sends what is due by now. */
static void send_heartbeats(struct crowd *crowd)
{
  int ids = crowd->count - crowd->real;
  long due = (long)((now() - crowd->began) / 1e3 * ids / heartbeat_ms(crowd));
  int done = 0;
  if (crowd->began == 0 || crowd->sent >= due) return;
  for (; crowd->sent < due; crowd->sent++)
    append_heartbeat(crowd, crowd->real + (int)(crowd->sent % ids));
  while (!done)
    must(redisBufferWrite(crowd->beats, &done) == REDIS_OK, "the ids' connection");
}

/* The connection is readable. */
static void take_answers(struct crowd *crowd)
{
  redisReply *reply;
  must(redisBufferRead(crowd->beats) == REDIS_OK, "the ids' connection");
  while (redisGetReplyFromReader(crowd->beats, (void **)&reply) == REDIS_OK && reply != NULL) {
    if (reply->type != REDIS_REPLY_STATUS) check_heartbeat(reply);
    freeReplyObject(reply);
    crowd->answered++;
  }
}

static void watch(struct crowd *crowd, int descriptor, int who)
{
  struct epoll_event event = {.events = EPOLLIN, .data = {.fd = who}};
  must(epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll");
}

static void ids_arrive(struct crowd *crowd)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  redisReply *reply;
  if (crowd->real == crowd->count) return;
  crowd->listener = hiredis_open(crowd->server.port);
  crowd->beats = hiredis_open(crowd->server.port);
  for (int i = crowd->real; i < crowd->count; i++) {
    id_of(crowd, i, id);
    reply = redisCommand(crowd->listener, "SUBSCRIBE redisson_lock__channel:{%s}:%s",
                         lock_of(crowd, i), id);
    must(reply != NULL && reply->type == REDIS_REPLY_ARRAY, "SUBSCRIBE");
    freeReplyObject(reply);
    append_heartbeat(crowd, i);
    must(redisGetReply(crowd->beats, (void **)&reply) == REDIS_OK, "the ids' connection");
    check_heartbeat(reply);
    freeReplyObject(reply);
  }
  watch(crowd, crowd->beats->fd, SIMULATED);
  crowd->began = now();
}

/* All of them */

static void serve_one(struct crowd *crowd, int waiter)
{
  crowd->due[waiter] = now_ms() + fairlock_poll(&crowd->waiter[waiter].client, 0);
}

/* For ms milliseconds, services the clients that have something to receive or to do. 0: once. */
static void serve(struct crowd *crowd, int ms)
{
  struct epoll_event events[256];
  int64_t until = now_ms() + ms;
  do {
    int64_t at = now_ms();
    for (int i = 0; i < crowd->real; i++) {
      if (crowd->due[i] <= at) serve_one(crowd, i);
    }
    send_heartbeats(crowd);
    int ready = epoll_wait(crowd->epoll, events, 256, ms > 0);
    for (int i = 0; i < ready; i++) {
      if (events[i].data.fd == SIMULATED) take_answers(crowd);
      else serve_one(crowd, events[i].data.fd);
    }
  } while (now_ms() < until);
}

static void connect_all(struct crowd *crowd)
{
  for (int i = 0; i < crowd->real; i++) {
    struct small_client *waiter = &crowd->waiter[i];
    waiter->config.waiter_ms = crowd->waiter_ms;
    small_client_open(waiter, crowd->server.port_text, lock_of(crowd, i));
    watch(crowd, port_posix_fd(&waiter->socket), i);
    crowd->due[i] = INT64_MAX; /* until it waits */
  }
}

/*
 * One after the other, within the time between two heartbeats, so that heartbeats are spread evenly
 * from then on; over a longer time, if that is too short. The first ones send heartbeats meanwhile.
 */
static void arrive_all(struct crowd *crowd)
{
  double begin = now();
  double apart = heartbeat_ms(crowd) * 1e3 / crowd->count;
  for (int i = 0; i < crowd->real; i++) {
    small_client_arrive(&crowd->waiter[i]);
    serve_one(crowd, i);
    double early = begin + (i + 1) * apart - now();
    if (early >= 1000 || i % 100 == 0) serve(crowd, early > 0 ? (int)(early / 1e3) : 0);
  }
  ids_arrive(crowd);
  double early = begin + heartbeat_ms(crowd) * 1e3 - now();
  if (early > 0 && crowd->real > 0) serve(crowd, (int)(early / 1e3));
}

/*
 * All are still in the queue that they entered, on their first connection; for the ids, each answer
 * that was awaited says so.
 */
static void check_all(struct crowd *crowd)
{
  for (int i = 0; i < crowd->real; i++) {
    struct small_client *waiter = &crowd->waiter[i];
    must(fairlock_result(&waiter->door) == FAIRLOCK_PENDING, "a waiter does not wait");
    must(counters_of(&waiter->client).connections == 1, "a connection broke");
  }
  while (crowd->answered < crowd->sent)
    take_answers(crowd);
}

/* Somebody holds all the locks. */
static void take_locks(struct crowd *crowd)
{
  int locks = crowd->apart ? crowd->count : 1;
  bench_client_open(&crowd->holder, crowd->server.port);
  for (int i = 0; i < locks; i++) {
    (void)snprintf(crowd->name[i], NAME_SIZE, "crowd:%05d", i);
    must(fairlock_init(&crowd->held[i], &crowd->holder.client, crowd->name[i]) == FAIRLOCK_OK,
         "lock");
    must(fairlock_acquire(&crowd->held[i], 1000, 600000) == FAIRLOCK_OK, "acquire");
  }
}

static void *many_of(int count, size_t size)
{
  void *memory = calloc((size_t)count, size);
  must(memory != NULL, "no memory");
  return memory;
}

static void crowd_start(struct crowd *crowd)
{
  static char limit[12];
  static const char *const options[] = {"--maxclients", limit, NULL};
  (void)snprintf(limit, sizeof limit, "%d", crowd->real + SPARE_FILES / 2);
  crowd->held = many_of(crowd->count, sizeof crowd->held[0]);
  crowd->name = many_of(crowd->count, sizeof crowd->name[0]);
  crowd->waiter = many_of(crowd->count, sizeof crowd->waiter[0]);
  crowd->due = many_of(crowd->count, sizeof crowd->due[0]);
  crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
  must(crowd->epoll >= 0, "epoll");
  server_start(&crowd->server, options);
  crowd->peer = hiredis_open(crowd->server.port);
}

/* The server goes first: whoever closes a connection first keeps its port for a minute. */
static void crowd_stop(struct crowd *crowd)
{
  server_stop(&crowd->server);
  for (int i = 0; i < crowd->real; i++)
    fairlock_client_deinit(&crowd->waiter[i].client);
  bench_client_close(&crowd->holder);
  redisFree(crowd->peer);
  redisFree(crowd->listener);
  redisFree(crowd->beats);
  (void)close(crowd->epoll);
  free(crowd->held);
  free(crowd->name);
  free(crowd->waiter);
  free(crowd->due);
}

/* What it costs the server */

struct cost {
  struct series percent; /* of a processor */
  struct series us;      /* a heartbeat, beside what the connections cost when nobody waits */
  struct series sent;    /* heartbeats, over those that were due */
};

/* A moment to measure from. */
struct moment {
  double time, used;
};

static struct moment begin_measuring(struct crowd *crowd)
{
  freeReplyObject(redisCommand(crowd->peer, "CONFIG RESETSTAT"));
  return (struct moment){.time = now(), .used = server_cpu(crowd->peer)};
}

/* The share of a processor that the server has used since then. */
static double share_since(const struct crowd *crowd, const struct moment *begin)
{
  return (server_cpu(crowd->peer) - begin->used) / (now() - begin->time);
}

static void add_cost(const struct crowd *crowd, const struct moment *begin, struct cost *cost)
{
  double share = share_since(crowd, begin) - idle_share;
  double silent = crowd->real > 0 ? silent_share : 0;
  double due = (now() - begin->time) / 1e3 * crowd->count / heartbeat_ms(crowd);
  double beats = info_number(crowd->peer, "commandstats", "cmdstat_evalsha:calls=");
  beats += info_number(crowd->peer, "commandstats", "cmdstat_ping:calls=");
  add(&cost->percent, 100 * share);
  add(&cost->sent, beats / due);
  if (beats > 0) add(&cost->us, (share - silent) * (now() - begin->time) / beats);
}

/* Services all for `times` times 2 s. */
static void measure(struct crowd *crowd, int times, struct cost *cost)
{
  for (int i = 0; i < times; i++) {
    struct moment begin = begin_measuring(crowd);
    serve(crowd, 2000);
    add_cost(crowd, &begin, cost);
  }
}

static double memory(const struct crowd *crowd)
{
  return info_number(crowd->peer, "memory", "used_memory:");
}

/* empty: what the server used before the waiters came. */
static void print_memory(const struct crowd *crowd, const char *row, double empty)
{
  double each = (memory(crowd) - empty) / crowd->count;
  print_value(row, each,
              crowd->real == crowd->count ? "bytes on the server for a waiter with its connection"
                                          : "bytes for a waiter, but only some have a connection");
}

static void print_cost(const char *what, struct cost *cost, const char *remark)
{
  char row[48];
  (void)snprintf(row, sizeof row, "waiters.%s.percent", what);
  print_row(row, &cost->percent, remark);
  (void)snprintf(row, sizeof row, "waiters.%s.us", what);
  print_row(row, &cost->us,
            "server's processor time for a heartbeat, without that for silent connections");
  if (median(&cost->sent) > 0.95) return;
  (void)snprintf(row, sizeof row, "waiters.%s.sent", what);
  print_row(row, &cost->sent,
            "of the heartbeats due: this machine is too busy for the figures above");
}

/* Handovers */

/*
 * The clients from first on are in line in this order, behind a hold of the one before. Each hands
 * the lock to the next and queues again. Returns the median microseconds from the call of release
 * to the return of acquire.
 */
static double hand_on(struct crowd *crowd, struct small_client *line, int count, int *turn)
{
  struct series trips = {.count = 0};
  for (int i = 0; i < HANDOVERS; i++) {
    struct small_client *holder = &line[*turn];
    *turn = (*turn + 1) % count;
    struct small_client *next = &line[*turn];
    serve(crowd, 0);
    double begin = now();
    must(fairlock_release(&holder->door) == FAIRLOCK_OK, "release");
    while (fairlock_result(&next->door) == FAIRLOCK_PENDING)
      fairlock_poll(&next->client, 1000);
    add(&trips, now() - begin);
    must(fairlock_remaining_ms(&next->door) > 0, "a handover out of order");
    small_client_arrive(holder);
  }
  return median(&trips);
}

/*
 * Beside the crowd on its lock, a few on another. None of the crowd holds twice, so those that have
 * held and are in line again need no service.
 */
static void compare_handovers(struct crowd *crowd)
{
  static struct small_client few[FEW + 1];
  struct series trips = {.count = 0};
  struct series ratio = {.count = 0};
  int turn = 0;
  int few_turn = 0;
  for (int i = 0; i <= FEW; i++) {
    few[i].config.waiter_ms = 60000;
    small_client_open(&few[i], crowd->server.port_text, "few");
    small_client_arrive(&few[i]);
  }
  must(fairlock_release(&crowd->held[0]) == FAIRLOCK_OK, "release");
  while (fairlock_result(&crowd->waiter[0].door) == FAIRLOCK_PENDING)
    serve(crowd, 1);
  for (int round = 0; round < ROUNDS; round++) {
    double a = hand_on(crowd, few, FEW + 1, &few_turn);
    double b = hand_on(crowd, crowd->waiter, crowd->real, &turn);
    add(&trips, b);
    add(&ratio, b / a);
  }
  print_row("waiters.handover.us", &trips, "release called to acquire returned, 10000 in line");
  print_row("waiters.handover.growth", &ratio, "over that with 10 in line; aim at most 1.5");
  for (int i = 0; i <= FEW; i++)
    fairlock_client_deinit(&few[i].client);
}

/* The crowds */

static struct crowd *new_crowd(int count, int real, bool apart, uint32_t waiter_ms)
{
  static struct crowd crowd;
  memset(&crowd, 0, sizeof crowd);
  crowd.count = count;
  crowd.real = real;
  crowd.apart = apart;
  crowd.waiter_ms = waiter_ms;
  crowd_start(&crowd);
  return &crowd;
}

/* The cost without any waiting: of a server, and then of the connections. */
static void measure_idle(struct crowd *crowd)
{
  struct moment begin = begin_measuring(crowd);
  sleep_ms(2000);
  idle_share = share_since(crowd, &begin);
  print_value("waiters.idle.percent", 100 * idle_share,
              "of a core: a server without clients; taken off below");
}

static void measure_silence(struct crowd *crowd)
{
  struct series percent = {.count = 0};
  for (int i = 0; i < 3; i++) {
    struct moment begin = begin_measuring(crowd);
    sleep_ms(1000);
    add(&percent, 100 * (share_since(crowd, &begin) - idle_share));
  }
  silent_share = median(&percent) / 100;
  print_row("waiters.silent.percent", &percent,
            "of a core: the server's for the connections before they wait");
}

/* Heartbeats every 2 s. Returns the share of a processor. */
static double one_lock(int real)
{
  struct cost cost = {.percent = {.count = 0}};
  struct crowd *crowd = new_crowd(WAITERS, real, false, 5000);
  measure_idle(crowd);
  take_locks(crowd);
  double empty = memory(crowd);
  connect_all(crowd);
  measure_silence(crowd);
  arrive_all(crowd);
  measure(crowd, 3, &cost);
  check_all(crowd);
  print_cost("one.5s", &cost,
             "of a core: the server's for 10000 on one lock, waiter timeout 5 s; aim at most 5");
  print_memory(crowd, "waiters.memory.5s", empty);
  compare_handovers(crowd);
  crowd_stop(crowd);
  return median(&cost.percent);
}

/* The same on a lock each. */
static double many_locks(int real)
{
  struct cost cost = {.percent = {.count = 0}};
  struct crowd *crowd = new_crowd(WAITERS, real, true, 5000);
  take_locks(crowd);
  connect_all(crowd);
  arrive_all(crowd);
  measure(crowd, 3, &cost);
  check_all(crowd);
  print_cost("apart.5s", &cost, "of a core: the same, each on a lock of its own; aim at most 5");
  crowd_stop(crowd);
  return median(&cost.percent);
}

/* Heartbeats every 24 s, which are measured for a third of that. */
static double long_timeout(int real)
{
  struct cost cost = {.percent = {.count = 0}};
  struct crowd *crowd = new_crowd(WAITERS, real, false, 60000);
  take_locks(crowd);
  double empty = memory(crowd);
  connect_all(crowd);
  arrive_all(crowd);
  measure(crowd, 4, &cost);
  check_all(crowd);
  print_cost("one.60s", &cost, "of a core: 10000 on one lock, waiter timeout 60 s; aim at most 5");
  print_memory(crowd, "waiters.memory.60s", empty);
  crowd_stop(crowd);
  return median(&cost.percent);
}

/* The ids' connection sends PING from now on, as often as this waiter timeout has heartbeats. */
static void measure_limit(struct crowd *crowd, uint32_t waiter_ms, const char *what)
{
  struct cost cost = {.percent = {.count = 0}};
  crowd->waiter_ms = waiter_ms;
  crowd->pings = true;
  crowd->began = now();
  crowd->sent = crowd->answered = 0; /* all of them: see check_all() */
  measure(crowd, 2, &cost);
  print_cost(what, &cost, "the same with a PING in the place of each heartbeat");
}

/* All of them as ids. Beside them, on one lock, what costs a server the least. */
static void without_connections(bool apart)
{
  struct cost cost = {.percent = {.count = 0}};
  struct crowd *crowd = new_crowd(WAITERS, 0, apart, 5000);
  take_locks(crowd);
  double empty = memory(crowd);
  arrive_all(crowd);
  measure(crowd, 2, &cost);
  check_all(crowd);
  print_value(apart ? "waiters.memory.apart" : "waiters.memory.one",
              (memory(crowd) - empty) / crowd->count,
              apart ? "the same, each on a lock of its own"
                    : "bytes on the server for a waiter without its connection");
  if (!apart) {
    print_cost("shared.5s", &cost, "of a core: 10000 on one lock as ids, which share a connection");
    measure_limit(crowd, 5000, "limit.5s");
    check_all(crowd);
    measure_limit(crowd, 60000, "limit.60s");
  }
  crowd_stop(crowd);
}

/* A hundred thousand whose heartbeats are rare, as `claim_ms` allows: each 4 min. */
static void very_many(void)
{
  struct cost cost = {.percent = {.count = 0}};
  struct crowd *crowd = new_crowd(10 * WAITERS, 0, false, FAIRLOCK_WAITER_MAX_MS);
  take_locks(crowd);
  arrive_all(crowd);
  measure(crowd, 3, &cost);
  check_all(crowd);
  print_cost("one.600s", &cost,
             "of a core: 100000 on one lock as ids, waiter timeout 10 min; aim at most 5");
  crowd_stop(crowd);
}

void bench_waiters(int port)
{
  int files = most_files() - SPARE_FILES;
  int real = files < WAITERS ? files : WAITERS;
  (void)port;
  must(real > ROUNDS * HANDOVERS, "descriptors for more waiters are needed");
  print_value("waiters.real", real,
              "of 10000 have a connection of their own, the others share one");
  double one = one_lock(real);
  double apart = many_locks(real);
  double seldom = long_timeout(real);
  print_value("waiters.apart.60s.percent", seldom * apart / one,
              "reckoned: one.60s, and apart.5s over one.5s; aim at most 5");
  without_connections(false);
  without_connections(true);
  very_many();
}
