/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real thing: a redis-server, dozens of client processes, proxies between them, and a tormentor
 * that kills, freezes and cuts off whatever there is, for TIME seconds (environment; default 40) by
 * SEED (default: the clock). Now and then a script of somebody else's keeps the server busy, and a
 * quarter of the clients is denied its channels for a while.
 *
 * Each client goes round: acquire one of the locks, write down the hold, work for a moment,
 * release. Two of the locks are shared as a rule, one of them by three at a time; now and then
 * somebody wants one of these alone, and perhaps shares it then, or names a smaller limit. A third of the clients keeps the locks,
 * and half of them wait without blocking. What they wrote is checked afterwards; see support/history.h. A
 * storm of faults of a few seconds and a lull take turns, so that there is always something going on
 * that a fault can hit. The server loses all it knew with each restart: exclusion is promised, and
 * checked, within each of its lives; tokens must rise over all of them. Order is checked where nothing
 * can have happened to a waiter: when the faults have stopped.
 *
 * A connection that had bytes swallowed is always cut before it passes any again: TCP loses an end,
 * never a middle. How much is done in a time decides nothing. The seed repeats the faults, not what
 * they hit.
 *
 * With HUNT in the environment there is no lull, the faults are the two kinds that slow the queue
 * down least, the checks are made all the time, and the first complaint ends the program:
 * mutants.sh hunts its mutants in this way.
 */
#include "fairlock_keep.h"
#include "fairlock_share.h"
#include "harness.h"
#include "internal.h" /* QUEUED */
#include "support/proxy.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "support/counters.h"

#define CLIENTS  24
#define PROXIES  4
#define LOCKS    4
#define WAIT_MS  10000
#define CALM_MS  12000
#define QUIET_MS 4000
#define PATIENCE 60000 /* for all clients to get on when the faults have stopped */

/* How many may share a lock, 0 for any number; in ALONE, nobody may. */
enum { ALONE = -1, LIMIT = 3, OTHER_LIMIT = 2 };
static const struct {
  const char *name;
  int limit;
} locks[LOCKS] = {{"chaos:a", ALONE}, {"chaos:b", ALONE}, {"chaos:c", 0}, {"chaos:d", LIMIT}};

/* What a client reports of itself, over all its restarts. */
struct seat {
  atomic_int acquired, shared, downgraded, calm_acquired, timed_out, failed, denied, other_limit,
      lost, unknown;
  atomic_int odd; /* a status that must not come, if not 0 */
  _Atomic int64_t worst_us, calm_worst_us;
};

/* What all processes share. */
struct board {
  atomic_bool calm, quiet, stop; /* quiet: since long enough for no late request to be on its way */
  atomic_size_t used;            /* entries of the history */
  size_t room;
  struct seat seats[CLIENTS];
};

enum fault {
  KILL,
  FREEZE,
  CUT,
  AIMED,
  SILENCE,
  LATE,
  SLOW,
  STALL,
  FLUSH,
  BUSY,
  DEAFEN,
  RESTART,
  FAULTS
};
static const char *const fault_names[FAULTS] = {"clients killed",
                                                "clients frozen",
                                                "times cut off",
                                                "cuts aimed at a request",
                                                "silences",
                                                "late deliveries",
                                                "slow connections",
                                                "times the server froze",
                                                "scripts forgotten",
                                                "busy scripts",
                                                "subscriptions refused for a while",
                                                "server restarts"};
static const int weights[FAULTS] = {
    [KILL] = 16, [FREEZE] = 20, [CUT] = 14,  [AIMED] = 26, [SILENCE] = 6, [LATE] = 7,
    [SLOW] = 5,  [STALL] = 3,   [FLUSH] = 3, [BUSY] = 4,   [DEAFEN] = 5};

static struct board *board;
static struct hold *holds;
static struct proxy proxies[PROXIES];
static pid_t clients[CLIENTS];
/* ms; 0: not disturbed */
static int64_t thaw_at[CLIENTS], restore_at[PROXIES], wake_at, quiet_at, hear_at;
static struct raw busy; /* whose script keeps the server busy until quiet_at */
static int64_t restarts[256];
static size_t restart_count;
static int done[FAULTS];
static uint64_t seed, state;
static int seconds;
static bool hunting;
static struct verdict verdict; /* of test_mutual_exclusion() */

/* Numbers from a seed: splitmix64. */
static uint64_t draw(uint64_t *from)
{
  uint64_t z = *from += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

static int between(uint64_t *from, int low, int high)
{
  return low + (int)(draw(from) % (uint64_t)(high - low + 1));
}

/* Clients */

static void note_wait(_Atomic int64_t *worst, int64_t wait)
{
  if (wait > atomic_load(worst)) atomic_store(worst, wait);
}

/* Whether it keeps its locks: of those that may listen at all times, and of the others. */
static bool keeps(int index)
{
  return index % 3 == 1;
}

/* A client's handle, and what it is for. */
struct way {
  struct fairlock *handle;
  int lock, limit; /* ALONE: it does not share */
  uint64_t token;  /* of its last hold */
  int64_t called_us, queued_us;
  struct way *heir; /* which shares the same lock; NULL: none */
};

/* Writes a hold down. NULL: no room, or the belief has ended by now. */
static struct hold *note_hold(int index, struct way *way)
{
  int64_t start = now_us();
  uint64_t token = fairlock_token(way->handle);
  struct seat *seat = &board->seats[index];
  (void)atomic_fetch_add(&seat->acquired, 1);
  (void)atomic_fetch_add(&seat->shared, way->limit != ALONE);
  (void)atomic_fetch_add(&seat->other_limit, way->limit == OTHER_LIMIT);
  note_wait(&seat->worst_us, start - way->called_us);
  if (atomic_load(&board->calm)) {
    (void)atomic_fetch_add(&seat->calm_acquired, 1);
    note_wait(&seat->calm_worst_us, start - way->called_us);
  }
  size_t at = atomic_fetch_add(&board->used, 1);
  if (at >= board->room || token == 0) return NULL;
  struct hold *hold = &holds[at];
  hold->client = index;
  hold->keeps = keeps(index);
  hold->again = keeps(index) && token == way->token;
  hold->shares = way->limit != ALONE;
  hold->limit = hold->shares ? way->limit : 0;
  hold->pid = (int)getpid();
  hold->lock = way->lock;
  hold->token = token;
  hold->called_us = way->called_us;
  hold->queued_us = way->queued_us;
  hold->start_us = start;
  way->token = token;
  (void)believe(hold, way->handle);
  atomic_store(&hold->written, true);
  return hold;
}

/* The critical section: services the client, and keeps checking whether it still holds. */
static void work(struct client *client, struct fairlock *handle, struct hold *hold, int ms)
{
  int64_t until = now_us() + (int64_t)ms * 1000;
  while (now_us() < until) {
    int64_t left = (until - now_us()) / 1000;
    fairlock_poll(&client->client, left < 50 ? (uint32_t)(left > 0 ? left : 1) : 50);
    if (believe(hold, handle) == 0) break;
  }
  atomic_store(&hold->end_us, now_us());
}

/*
 * Whether it may be denied its channels for a while: then it cannot listen, and so not wait, and
 * cannot hand over.
 */
static bool deafened(int index)
{
  return index % 4 == 3;
}

static void note_release(int index, int status)
{
  struct seat *seat = &board->seats[index];
  if (status == FAIRLOCK_LOST) (void)atomic_fetch_add(&seat->lost, 1);
  else if (status == FAIRLOCK_UNKNOWN || status == FAIRLOCK_UNREACHABLE ||
           status == FAIRLOCK_UNAVAILABLE)
    (void)atomic_fetch_add(&seat->unknown, 1);
  else if (status == FAIRLOCK_DENIED && deafened(index)) (void)atomic_fetch_add(&seat->denied, 1);
  else if (status != FAIRLOCK_OK) atomic_store(&seat->odd, status);
}

/*
 * Waits without blocking, and notes since when it stood in line, if it was never cut off since, nor
 * slow to look after its client: then nobody who came later may be served before it.
 */
static int wait_in_line(struct client *client, struct way *way, uint32_t lease)
{
  bool steady = atomic_load(&board->quiet);
  uint32_t connects = counters_of(&client->client).connections;
  int64_t looked = now_us();
  int status = fairlock_start_acquire(way->handle, WAIT_MS, lease);
  while (status == FAIRLOCK_PENDING) {
    fairlock_poll(&client->client, 50);
    if (way->queued_us == 0 && way->handle->phase == QUEUEING && way->handle->flags & QUEUED)
      way->queued_us = now_us();
    status = fairlock_result(way->handle);
    steady &= now_us() - looked < 1000000;
    looked = now_us();
  }
  steady &= counters_of(&client->client).connections == connects;
  if (!steady) way->queued_us = 0;
  return status;
}

static void note_failure(int index, int status)
{
  struct seat *seat = &board->seats[index];
  if (status == FAIRLOCK_TIMEOUT) (void)atomic_fetch_add(&seat->timed_out, 1);
  else if (status == FAIRLOCK_UNREACHABLE || status == FAIRLOCK_UNAVAILABLE)
    (void)atomic_fetch_add(&seat->failed, 1);
  else if (status == FAIRLOCK_DENIED && deafened(index)) (void)atomic_fetch_add(&seat->denied, 1);
  else atomic_store(&seat->odd, status);
  bool at_once = status == FAIRLOCK_TIMEOUT || status == FAIRLOCK_UNREACHABLE ||
                 status == FAIRLOCK_UNAVAILABLE;
  if (!at_once) sleep_ms(20);
}

/* Renewed, or not. */
static uint32_t choose_lease(uint64_t *random)
{
  bool renewed = between(random, 0, 1) == 1;
  return renewed ? FAIRLOCK_RENEW : (uint32_t)between(random, 2000, 4000);
}

/* The hold that was alone has ended, and its heir shares from then on. */
static void go_on_sharing(int index, struct client *client, struct way *way, uint64_t *random)
{
  struct seat *seat = &board->seats[index];
  struct way *heir = way->heir;
  heir->called_us = now_us();
  heir->queued_us = 0;
  int status = fairlock_downgrade(way->handle, (struct fairlock_shared *)(void *)heir->handle,
                                  choose_lease(random));
  if (status == FAIRLOCK_LOST) note_release(index, status);
  else if (status != FAIRLOCK_OK) note_failure(index, status);
  if (status != FAIRLOCK_OK) return;
  (void)atomic_fetch_add(&seat->downgraded, 1);
  struct hold *hold = note_hold(index, heir);
  if (hold != NULL) {
    hold->from = way->token;
    work(client, heir->handle, hold, between(random, 1, 20));
  }
  note_release(index, fairlock_release(heir->handle));
}

/* Once round. */
static void go_round(int index, struct client *client, struct way *way, uint64_t *random)
{
  bool lengthy = between(random, 0, hunting ? 9 : 199) == 0;
  uint32_t lease = choose_lease(random);
  way->called_us = now_us();
  way->queued_us = 0;
  int status = index % 2 == 0 ? fairlock_acquire(way->handle, WAIT_MS, lease)
                              : wait_in_line(client, way, lease);
  if (status == FAIRLOCK_OK) {
    struct hold *hold = note_hold(index, way);
    if (hold != NULL)
      work(client, way->handle, hold,
           lengthy ? between(random, 500, 2500) : between(random, 1, 20));
    if (hold != NULL && way->heir != NULL && between(random, 0, 1) == 0)
      go_on_sharing(index, client, way, random);
    else note_release(index, fairlock_release(way->handle));
  } else {
    note_failure(index, status);
  }
  service_for(client, between(random, 0, 30));
}

/* The handles of a client. */
struct ways {
  struct fairlock alone[LOCKS];
  struct fairlock_shared shared[LOCKS], other;
  struct way way[2 * LOCKS + 1];
};

static bool init_shared(struct fairlock_shared *shared, struct client *client, int lock, int limit)
{
  const char *name = locks[lock].name;
  return fairlock_init_shared(shared, &client->client, name, (uint32_t)limit) == FAIRLOCK_OK;
}

static bool init_ways(struct ways *ways, struct client *client)
{
  bool good = true;
  for (int i = 0; i < LOCKS; i++) {
    struct way alone = {.handle = &ways->alone[i], .lock = i, .limit = ALONE};
    struct way shared = {.handle = &ways->shared[i].handle, .lock = i, .limit = locks[i].limit};
    good &= fairlock_init(alone.handle, &client->client, locks[i].name) == FAIRLOCK_OK;
    ways->way[i] = alone;
    if (shared.limit == ALONE) continue;
    good &= init_shared(&ways->shared[i], client, i, shared.limit);
    ways->way[LOCKS + i] = shared;
    ways->way[i].heir = &ways->way[LOCKS + i];
  }
  good &= init_shared(&ways->other, client, LOCKS - 1, OTHER_LIMIT);
  ways->way[2 * LOCKS] =
      (struct way){.handle = &ways->other.handle, .lock = LOCKS - 1, .limit = OTHER_LIMIT};
  return good;
}

static bool deinit_ways(struct ways *ways)
{
  bool good = true;
  for (int i = 0; i < 2 * LOCKS + 1; i++)
    good &= ways->way[i].handle == NULL || fairlock_deinit(ways->way[i].handle) == FAIRLOCK_OK;
  return good;
}

/* Of those who come for a lock that may be shared, a fifth wants it alone. */
static struct way *choose_way(struct ways *ways, uint64_t *random)
{
  int lock = between(random, 0, LOCKS - 1), number = between(random, 0, 99);
  if (locks[lock].limit == ALONE || number < 20) return &ways->way[lock];
  return &ways->way[lock == LOCKS - 1 && number > 79 ? 2 * LOCKS : LOCKS + lock];
}

static void be_client(int index, void *context)
{
  static struct client client;
  static struct fairlock_keeping keeper;
  static struct fairlock_downgrading sharing;
  static struct ways ways;
  uint64_t random = *(const uint64_t *)context;
  client_prepare(&client, proxies[index % PROXIES].port);
  client.config.lease_ms = (uint32_t)between(&random, 2000, 4000);
  if (index % 2 == 1) client.config.response_ms = 1000;
  if (deafened(index)) {
    client.config.user = "deaf";
    client.config.password = "deaf";
  }
  client_start(&client);
  fairlock_use_downgrading(&client.client, &sharing);
  keeper.keep_ms = client.config.lease_ms / 2;
  if (keeps(index) && fairlock_use_keeping(&client.client, &keeper) != FAIRLOCK_OK) _exit(4);
  if (!init_ways(&ways, &client)) _exit(2);
  while (!atomic_load(&board->stop))
    go_round(index, &client, choose_way(&ways, &random), &random);
  if (!deinit_ways(&ways)) _exit(3);
  client_close(&client);
}

static void start_client(int index)
{
  uint64_t random = draw(&state);
  thaw_at[index] = 0;
  clients[index] = spawn(be_client, index, &random);
}

/* The tormentor */

static void kill_client(void)
{
  int index = between(&state, 0, CLIENTS - 1);
  slay(clients[index]);
  start_client(index);
}

/* Most are gone for a moment; some for longer than any lease. */
static bool freeze_client(void)
{
  int index = between(&state, 0, CLIENTS - 1);
  int ms = between(&state, 200, between(&state, 0, 3) == 0 ? 7000 : 1200);
  if (thaw_at[index] != 0) return false;
  thaw_at[index] = now_ms() + ms;
  return kill(clients[index], SIGSTOP) == 0;
}

/*
 * One of the next requests of a proxy is cut off: before or after it is carried out, or it arrives
 * later.
 */
static void aim(struct proxy_control *control)
{
  int index = atomic_load(&control->requests) + between(&state, 2, 12);
  switch (between(&state, 0, 2)) {
  case 0:
    atomic_store(&control->cut_before, index);
    break;
  case 1:
    atomic_store(&control->cut_after, index);
    break;
  default:
    atomic_store(&control->strand_ms, between(&state, 50, 3000));
    atomic_store(&control->strand, index);
  }
}

/* Bytes vanish, or are kept, in one direction or both. */
static bool obstruct(int index, int mode)
{
  struct proxy_control *control = proxies[index].control;
  int way = between(&state, 1, 3);
  int ms = between(&state, 200, 4500);
  if (restore_at[index] != 0) return false;
  if (way & 1) atomic_store(&control->to_server, mode);
  if (way & 2) atomic_store(&control->to_client, mode);
  restore_at[index] = now_ms() + ms;
  return true;
}

static bool dropping(const struct proxy_control *control)
{
  return atomic_load(&control->to_server) == PROXY_DROP ||
         atomic_load(&control->to_client) == PROXY_DROP;
}

static void restore(int index)
{
  struct proxy_control *control = proxies[index].control;
  bool cut = dropping(control);
  if (cut) {
    atomic_store(&control->refuse, 1);
    proxy_sever(&proxies[index]);
  }
  atomic_store(&control->to_server, PROXY_PASS);
  atomic_store(&control->to_client, PROXY_PASS);
  atomic_store(&control->delay_ms, 0);
  atomic_store(&control->refuse, 0);
  restore_at[index] = 0;
}

static bool slow_down(int index)
{
  if (restore_at[index] != 0) return false;
  atomic_store(&proxies[index].control->delay_ms, between(&state, 5, 150));
  restore_at[index] = now_ms() + between(&state, 500, 3000);
  return true;
}

/* Users are forgotten with a restart. */
static bool let_hear(bool hears)
{
  return raw_run(&redis, "ACL SETUSER deaf on >deaf ~* +@all %s",
                 hears ? "allchannels" : "resetchannels");
}

/*
 * The server denies a quarter of the clients their channels, and ends those of their connections
 * that listen.
 */
static bool deafen(void)
{
  int ms = between(&state, 500, 3000);
  if (hear_at != 0 || wake_at != 0 || quiet_at != 0 || !let_hear(false)) return false;
  hear_at = now_ms() + ms;
  return true;
}

/* Another client's script runs; after a tenth of a second the server answers BUSY to all others. */
static bool start_busy(void)
{
  int ms = between(&state, 200, 2500);
  if (wake_at != 0 || quiet_at != 0 || !raw_open(&busy, server.port)) return false;
  raw_send(&busy, "EVAL %s 0", "while true do end");
  quiet_at = now_ms() + ms;
  return true;
}

static void stop_busy(void)
{
  while (!raw_run(&redis, "SCRIPT KILL") && redis.count > 0 &&
         strncmp(redis.element[0].text, "NOTBUSY", 7) == 0)
    sleep_ms(10);         /* it has not begun yet */
  (void)raw_reply(&busy); /* killed, it goes on for a moment */
  raw_close(&busy);
  quiet_at = 0;
}

static bool stall_server(void)
{
  int ms = between(&state, 200, 3000);
  if (wake_at != 0 || quiet_at != 0) return false;
  wake_at = now_ms() + ms;
  return kill(server.pid, SIGSTOP) == 0;
}

static bool forget_scripts(void)
{
  return wake_at == 0 && quiet_at == 0 && raw_run(&redis, "SCRIPT FLUSH");
}

static int64_t wall_us(void)
{
  struct timespec time;
  (void)clock_gettime(CLOCK_REALTIME, &time);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void prepare_server(void)
{
  CHECK(raw_run(&redis, "CONFIG SET lua-time-limit 100"));
  CHECK(let_hear(true));
}

/* The server dies with all its data, and comes back after a while. */
static void restart_server(void)
{
  wake_at = 0;
  if (quiet_at != 0) raw_close(&busy);
  quiet_at = 0;
  hear_at = 0;
  server_kill(&server);
  if (restart_count < sizeof restarts / sizeof restarts[0]) restarts[restart_count++] = wall_us();
  sleep_ms(between(&state, 0, 1500));
  server_restart(&server);
  raw_close(&redis);
  CHECK(raw_open(&redis, server.port));
  prepare_server();
  done[RESTART]++;
}

static enum fault pick(void)
{
  int total = 0, fault = 0;
  if (hunting) return between(&state, 0, 1) == 0 ? KILL : AIMED;
  for (int i = 0; i < FAULTS; i++)
    total += weights[i];
  for (int left = between(&state, 0, total - 1) - weights[0]; left >= 0; left -= weights[fault])
    fault++;
  return (enum fault)fault;
}

static void torment(void)
{
  enum fault fault = pick();
  int index = between(&state, 0, PROXIES - 1);
  bool did = true;
  if (fault == KILL) kill_client();
  else if (fault == FREEZE) did = freeze_client();
  else if (fault == CUT) proxy_sever(&proxies[index]);
  else if (fault == AIMED) aim(proxies[index].control);
  else if (fault == SILENCE) did = obstruct(index, PROXY_DROP);
  else if (fault == LATE) did = obstruct(index, PROXY_HOLD);
  else if (fault == SLOW) did = slow_down(index);
  else if (fault == STALL) did = stall_server();
  else if (fault == BUSY) did = start_busy();
  else if (fault == DEAFEN) did = deafen();
  else did = forget_scripts();
  done[fault] += did;
}

/* Ends the faults whose time is over; with a `now` that never comes, all of them. */
static void relieve(int64_t now)
{
  for (int i = 0; i < CLIENTS; i++) {
    if (thaw_at[i] == 0 || thaw_at[i] > now) continue;
    (void)kill(clients[i], SIGCONT);
    thaw_at[i] = 0;
  }
  for (int i = 0; i < PROXIES; i++) {
    if (restore_at[i] != 0 && restore_at[i] <= now) restore(i);
  }
  if (wake_at != 0 && wake_at <= now) {
    (void)kill(server.pid, SIGCONT);
    wake_at = 0;
  }
  if (quiet_at != 0 && quiet_at <= now) stop_busy();
  if (hear_at != 0 && hear_at <= now && wake_at == 0 && quiet_at == 0) {
    CHECK(let_hear(true));
    hear_at = 0;
  }
}

static void be_calm(void)
{
  relieve(INT64_MAX);
  for (int i = 0; i < PROXIES; i++) {
    atomic_store(&proxies[i].control->cut_before, 0);
    atomic_store(&proxies[i].control->cut_after, 0);
    atomic_store(&proxies[i].control->strand, 0);
  }
  atomic_store(&board->calm, true);
}

static struct history recorded(void)
{
  size_t used = atomic_load(&board->used);
  size_t count = used < board->room ? used : board->room;
  return (struct history){holds, count, restarts, restart_count, false};
}

/*
 * An entry that is seen here while its client still goes on is whole enough: what began after it
 * saw its end.
 */
static void hunt(int64_t ms)
{
  struct history history = recorded();
  struct verdict so_far = judge(&history);
  if (so_far.overlaps + so_far.crowds + so_far.tokens == 0) return;
  printf("# found after %" PRId64 " ms and %zu holds\nnot ok chaos_hunt\n", ms, history.count);
  exit(1);
}

static void storm(void)
{
  int64_t start = now_ms(), end = start + (int64_t)seconds * 1000;
  int64_t next = start + 1000;
  int planned = 1 + seconds / 60;
  for (int64_t now = start; now < end; now = now_ms()) {
    relieve(now);
    if (hunting) hunt(now - start);
    if (done[RESTART] < planned &&
        now >= start + (end - start) * (done[RESTART] + 1) / (planned + 1))
      restart_server();
    if (now >= next && (hunting || (now - start) % 10000 < 6000)) {
      torment();
      next = now + between(&state, 20, hunting ? 100 : 400);
    }
    sleep_ms(10);
  }
}

/* Tests */

static int sum(size_t offset)
{
  int total = 0;
  for (int i = 0; i < CLIENTS; i++)
    total += atomic_load((atomic_int *)(void *)((char *)&board->seats[i] + offset));
  return total;
}

static int64_t worst(bool calm)
{
  int64_t us = 0;
  for (int i = 0; i < CLIENTS; i++) {
    const struct seat *seat = &board->seats[i];
    int64_t its = atomic_load(calm ? &seat->calm_worst_us : &seat->worst_us);
    if (its > us) us = its;
  }
  return us / 1000;
}

static int number_from(const char *name, int otherwise)
{
  const char *text = getenv(name);
  return text != NULL && atoi(text) > 0 ? atoi(text) : otherwise;
}

static void set_up(void)
{
  const char *text = getenv("SEED");
  seed = text != NULL && *text != 0 ? strtoull(text, NULL, 10) : (uint64_t)wall_us() % 1000000000;
  state = seed;
  seconds = number_from("TIME", 40);
  hunting = getenv("HUNT") != NULL;
  begin();
  (void)alarm((unsigned)seconds + 240);
  board = share(sizeof *board);
  board->room = ((size_t)seconds + 70) * 1000;
  holds = share(board->room * sizeof *holds);
  prepare_server();
  for (int i = 0; i < PROXIES; i++)
    proxy_start(&proxies[i], server.port);
  for (int i = 0; i < CLIENTS; i++)
    start_client(i);
}

/* False when some client has not acquired since the faults stopped. */
static bool all_got_on(void)
{
  for (int i = 0; i < CLIENTS; i++) {
    if (atomic_load(&board->seats[i].calm_acquired) == 0) return false;
  }
  return true;
}

static int faults(void)
{
  int total = 0;
  for (int i = 0; i < FAULTS; i++)
    total += done[i];
  return total;
}

static void report(int64_t stormy_ms, int stormy, int64_t calm_ms)
{
  int calm = sum(offsetof(struct seat, calm_acquired));
  printf("# seed %" PRIu64 ": %d clients, %d locks, %d s of faults\n", seed, CLIENTS, LOCKS,
         seconds);
  for (int i = 0; i < FAULTS; i++)
    printf("#   %5d %s\n", done[i], fault_names[i]);
  printf(
      "# %d faults; %d acquisitions, %.1f a second; then, without faults, %d, %.1f a second; %d of "
      "them shared, %d with a smaller limit, %d after a hold alone\n",
      faults(), stormy, stormy * 1000.0 / (double)stormy_ms, calm, calm * 1000.0 / (double)calm_ms,
      sum(offsetof(struct seat, shared)), sum(offsetof(struct seat, other_limit)),
      sum(offsetof(struct seat, downgraded)));
  printf("# %d waits timed out, %d without a server, %d denied; %d holds lost, "
         "%d releases unanswered\n",
         sum(offsetof(struct seat, timed_out)), sum(offsetof(struct seat, failed)),
         sum(offsetof(struct seat, denied)), sum(offsetof(struct seat, lost)),
         sum(offsetof(struct seat, unknown)));
  printf("# worst wait %" PRId64 " ms; since the faults stopped %" PRId64 " ms\n", worst(false),
         worst(true));
}

static void test_all_get_on(void)
{
  set_up();
  int64_t start = now_ms();
  storm();
  int stormy = sum(offsetof(struct seat, acquired));
  be_calm();
  int64_t calm = now_ms();
  while (now_ms() < calm + CALM_MS || (!all_got_on() && now_ms() < calm + PATIENCE)) {
    atomic_store(&board->quiet, now_ms() > calm + QUIET_MS);
    sleep_ms(20);
  }
  int64_t end = now_ms();
  report(calm - start, stormy, end - calm);
  for (int i = 0; i < CLIENTS; i++) {
    if (!CHECK(atomic_load(&board->seats[i].calm_acquired) > 0)) printf("# client %d\n", i);
  }
}

static void test_all_end_well(void)
{
  atomic_store(&board->stop, true);
  for (int i = 0; i < CLIENTS; i++) {
    if (!CHECK_EQUAL(reap(clients[i]), 0)) printf("# client %d\n", i);
    if (!CHECK_EQUAL(atomic_load(&board->seats[i].odd), 0)) printf("# client %d\n", i);
  }
}

/* One more client takes each lock once, as the next client to want it would. */
static void come_by(void)
{
  static struct client client;
  struct fairlock handle;
  client_open(&client, server.port);
  for (int i = 0; i < LOCKS; i++) {
    CHECK_EQUAL(fairlock_init(&handle, &client.client, locks[i].name), FAIRLOCK_OK);
    if (fairlock_acquire(&handle, WAIT_MS, FAIRLOCK_RENEW) == FAIRLOCK_OK)
      (void)fairlock_release(&handle);
    CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  }
  client_close(&client);
}

static int left_over(void)
{
  int count = 0;
  for (int i = 0; i < LOCKS; i++)
    count += raw_number(&redis, "EXISTS %s", locks[i].name) > 0 ||
             queue_length(&redis, locks[i].name) > 0;
  return count;
}

/*
 * A client that got no answer in time leaves a hold until its lease ends, or a place in the queue
 * until the next request removes it.
 */
static void test_nothing_left(void)
{
  int64_t until = now_ms() + 2 * SOON;
  if (left_over() > 0) printf("# %d locks are not free yet\n", left_over());
  while (left_over() > 0 && now_ms() < until) {
    come_by();
    sleep_ms(500);
  }
  for (int i = 0; i < LOCKS; i++) {
    CHECK(sane(&redis, locks[i].name));
    CHECK(nothing_left(&redis, locks[i].name));
  }
}

static void test_mutual_exclusion(void)
{
  struct history history = recorded();
  CHECK(history.count > 0);
  verdict = judge(&history);
  CHECK_EQUAL(verdict.overlaps, 0);
}

static void test_as_many_as_may(void)
{
  CHECK(sum(offsetof(struct seat, shared)) > 0);
  CHECK_EQUAL(verdict.crowds, 0);
}

static void test_tokens_rise(void)
{
  CHECK_EQUAL(verdict.tokens, 0);
}

static void test_in_order(void)
{
  struct history history = recorded();
  int waited = 0;
  for (size_t i = 0; i < history.count; i++)
    waited += holds[i].queued_us != 0;
  printf("# order checked for %d that stood in line undisturbed\n", waited);
  CHECK(waited > 0);
  CHECK_EQUAL(verdict.order, 0);
}

static void test_room(void)
{
  CHECK(atomic_load(&board->used) <= board->room);
}

const struct check_test check_tests[] = {{"chaos_all_get_on", test_all_get_on},
                                         {"chaos_all_end_well", test_all_end_well},
                                         {"chaos_nothing_left", test_nothing_left},
                                         {"chaos_mutual_exclusion", test_mutual_exclusion},
                                         {"chaos_as_many_as_may", test_as_many_as_may},
                                         {"chaos_tokens_rise", test_tokens_rise},
                                         {"chaos_in_order", test_in_order},
                                         {"chaos_room_for_all_holds", test_room},
                                         {NULL, NULL}};
