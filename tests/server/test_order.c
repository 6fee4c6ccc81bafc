/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First come, first served: 2, 8 and 64 waiters from processes, from threads of one client, and
 * from both, let into the queue one after the other. Each writes its number down while it holds,
 * without any other protection, so two holders at a time would show, too.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "harness.h"
#include "support/counters.h"

#define MOST 64

/* What all contenders see. */
struct common {
  atomic_int turn;   /* how many may enter the queue                     */
  atomic_int inside; /* holders at a time                                */
  int next;          /* guarded by the lock alone                        */
  int order[MOST];
  uint64_t token[MOST];
  atomic_int together; /* how many times a holder was not alone            */
  atomic_int wrong;    /* results that were not FAIRLOCK_OK                */
  atomic_uint granted, polled, waits;
  char id[2][FAIRLOCK_HOLDER_ID_SIZE];
};

static struct common *common;

struct contender {
  struct client *client;
  pthread_t thread;
  int number;
};

static void *contend(void *context)
{
  const struct contender *self = context;
  struct fairlock handle;
  if (fairlock_init(&handle, &self->client->client, "order") != FAIRLOCK_OK) return NULL;
  while (atomic_load(&common->turn) <= self->number)
    sleep_ms(5);
  if (fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) == FAIRLOCK_OK) {
    if (atomic_fetch_add(&common->inside, 1) != 0) (void)atomic_fetch_add(&common->together, 1);
    common->token[common->next] = fairlock_token(&handle);
    common->order[common->next++] = self->number;
    sleep_ms(1);
    (void)atomic_fetch_sub(&common->inside, 1);
    if (fairlock_release(&handle) != FAIRLOCK_OK) (void)atomic_fetch_add(&common->wrong, 1);
  } else {
    (void)atomic_fetch_add(&common->wrong, 1);
  }
  if (fairlock_deinit(&handle) != FAIRLOCK_OK) (void)atomic_fetch_add(&common->wrong, 1);
  return NULL;
}

struct job {
  int processes, threads;
};

/* A process of contenders: numbers index, index + processes, and so on. */
static void run_contenders(int index, void *context)
{
  const struct job *job = context;
  static struct contender contender[MOST];
  static struct client client;
  client_open(&client, server.port);
  for (int i = 0; i < job->threads; i++) {
    contender[i].client = &client;
    contender[i].number = index + i * job->processes;
    if (pthread_create(&contender[i].thread, NULL, contend, &contender[i]) != 0) _Exit(1);
  }
  for (int i = 0; i < job->threads; i++)
    (void)pthread_join(contender[i].thread, NULL);
  struct fairlock_counters stats = counters_of(&client.client);
  (void)atomic_fetch_add(&common->granted, stats.granted);
  (void)atomic_fetch_add(&common->polled, stats.polled);
  (void)atomic_fetch_add(&common->waits, stats.waits);
  client_close(&client);
}

static void contest(int processes, int threads)
{
  static struct client client;
  struct fairlock holder;
  struct job job = {processes, threads};
  pid_t pid[MOST];
  int count = processes * threads;
  begin();
  common = share(sizeof *common);
  for (int i = 0; i < processes; i++)
    pid[i] = spawn(run_contenders, i, &job);
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&holder, &client.client, "order"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&holder, 120000), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&holder);
  for (int i = 0; i < count; i++) {
    atomic_store(&common->turn, i + 1);
    CHECK(queue_reaches(&redis, "order", i + 1));
  }
  CHECK(sane(&redis, "order"));
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  for (int i = 0; i < processes; i++)
    CHECK_EQUAL(reap(pid[i]), 0);
  CHECK_EQUAL(common->next, count);
  for (int i = 0; i < count; i++) {
    CHECK_EQUAL(common->order[i], i);
    CHECK(common->token[i] > token);
    token = common->token[i];
  }
  CHECK_EQUAL(atomic_load(&common->together), 0);
  CHECK_EQUAL(atomic_load(&common->wrong), 0);
  CHECK_EQUAL(atomic_load(&common->waits), count);
  CHECK_EQUAL(atomic_load(&common->granted) + atomic_load(&common->polled), count);
  CHECK(atomic_load(&common->granted) > (unsigned)count / 2);
  CHECK_EQUAL(fairlock_deinit(&holder), FAIRLOCK_OK);
  client_close(&client);
  CHECK(nothing_left(&redis, "order"));
  CHECK_EQUAL(listeners(&redis, "order"), 0);
  (void)munmap(common, sizeof *common);
}

/* How many waiters were heard since then, s. */
static int64_t heard_since(int64_t since)
{
  return raw_number(&redis, "EVAL %s 1 fairlock:{order} %ld",
                    "local heard = 0 "
                    "for _, note in ipairs(redis.call('hvals', KEYS[1])) do "
                    "  local at = string.match(note, '^(%d+) %d+ %d+$') "
                    "  if at and tonumber(at) >= tonumber(ARGV[1]) then heard = heard + 1 end "
                    "end "
                    "return heard",
                    since);
}

/*
 * A server that hears nobody for longer than the waiter timeout. The lock stays held until all are
 * back.
 */
static void test_stall(void)
{
  enum { COUNT = 8, STALL_MS = 6000 };
  static struct client client;
  static struct job job = {COUNT, 1};
  struct fairlock holder;
  pid_t pid[COUNT];
  begin();
  common = share(sizeof *common);
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&holder, &client.client, "order"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&holder, 120000), FAIRLOCK_OK);
  for (int i = 0; i < COUNT; i++) {
    pid[i] = spawn(run_contenders, i, &job);
    atomic_store(&common->turn, i + 1);
    CHECK(queue_reaches(&redis, "order", i + 1));
  }
  CHECK_EQUAL(kill(server.pid, SIGSTOP), 0);
  sleep_ms(STALL_MS);
  CHECK_EQUAL(kill(server.pid, SIGCONT), 0);
  CHECK_EQUAL(raw_number(&redis, "TIME"), 2);
  int64_t since = strtoll(redis.element[1].text, NULL, 10) + 1, until = now_ms() + 60000;
  while ((heard_since(since) < COUNT || listeners(&redis, "order") < COUNT) && now_ms() < until)
    sleep_ms(50);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  for (int i = 0; i < COUNT; i++)
    CHECK_EQUAL(reap(pid[i]), 0);
  CHECK_EQUAL(common->next, COUNT);
  for (int i = 0; i < COUNT; i++)
    CHECK_EQUAL(common->order[i], i);
  CHECK_EQUAL(fairlock_deinit(&holder), FAIRLOCK_OK);
  client_close(&client);
  CHECK(nothing_left(&redis, "order"));
}

static void test_2_processes(void)
{
  contest(2, 1);
}

static void test_8_processes(void)
{
  contest(8, 1);
}

static void test_64_processes(void)
{
  contest(64, 1);
}

static void test_2_threads(void)
{
  contest(1, 2);
}

static void test_8_threads(void)
{
  contest(1, 8);
}

static void test_64_threads(void)
{
  contest(1, 64);
}

static void test_8_by_8(void)
{
  contest(8, 8);
}

/* Clients that are configured alike, down to their client_id, still are two. */
static void run_twin(int index, void *context)
{
  static struct client client;
  struct fairlock handle;
  (void)context;
  client_prepare(&client, server.port);
  client.config.client_id = "twin";
  client_start(&client);
  if (fairlock_init(&handle, &client.client, "twins") != FAIRLOCK_OK) _Exit(1);
  if (fairlock_connect(&client.client) != FAIRLOCK_OK) _Exit(2);
  fairlock_id(&handle, common->id[index], FAIRLOCK_HOLDER_ID_SIZE);
  (void)atomic_fetch_add(&common->turn, 1);
  while (atomic_load(&common->turn) < 2)
    sleep_ms(1);
  for (int round = 0; round < 200; round++) {
    if (fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_OK) _Exit(3);
    if (atomic_fetch_add(&common->inside, 1) != 0) (void)atomic_fetch_add(&common->together, 1);
    common->next++;
    if (round % 10 == 0) sleep_ms(1);
    (void)atomic_fetch_sub(&common->inside, 1);
    if (fairlock_release(&handle) != FAIRLOCK_OK) (void)atomic_fetch_add(&common->wrong, 1);
  }
  if (fairlock_deinit(&handle) != FAIRLOCK_OK) (void)atomic_fetch_add(&common->wrong, 1);
  client_close(&client);
}

static void test_twins(void)
{
  pid_t pid[2];
  begin();
  common = share(sizeof *common);
  for (int i = 0; i < 2; i++)
    pid[i] = spawn(run_twin, i, NULL);
  for (int i = 0; i < 2; i++)
    CHECK_EQUAL(reap(pid[i]), 0);
  CHECK_EQUAL(strncmp(common->id[0], "twin.", 5), 0);
  CHECK_EQUAL(strncmp(common->id[1], "twin.", 5), 0);
  CHECK(strcmp(common->id[0], common->id[1]) != 0);
  CHECK_EQUAL(common->next, 400);
  CHECK_EQUAL(atomic_load(&common->together), 0);
  CHECK_EQUAL(atomic_load(&common->wrong), 0);
  CHECK(nothing_left(&redis, "twins"));
  (void)munmap(common, sizeof *common);
}

/* A holder who re-enters keeps those waiting, in order, until its last release. */
static void test_reentry(void)
{
  static struct client client;
  struct fairlock holder;
  struct actor waiter[3];
  uint64_t token = 0;
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&holder, &client.client, "reentry"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  for (int i = 0; i < 3; i++) {
    actor_start(&waiter[i], server.port, "reentry");
    actor_tell(&waiter[i], 'c', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    CHECK(queue_reaches(&redis, "reentry", i + 1));
    CHECK_EQUAL(fairlock_acquire(&holder, 0, 60000), FAIRLOCK_OK);
  }
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
    CHECK_EQUAL(queue_length(&redis, "reentry"), 3);
    CHECK(sane(&redis, "reentry"));
  }
  CHECK_EQUAL(actor_hear(&waiter[0], 50).status, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  for (int i = 0; i < 3; i++) {
    struct event event = actor_hear(&waiter[i], SOON);
    CHECK_EQUAL(event.status, FAIRLOCK_OK);
    CHECK(event.token > token);
    token = event.token;
  }
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(actor_do(&waiter[i], 'd', 0, 0).status, FAIRLOCK_OK);
    actor_end(&waiter[i]);
  }
  CHECK_EQUAL(fairlock_deinit(&holder), FAIRLOCK_OK);
  client_close(&client);
  CHECK(nothing_left(&redis, "reentry"));
}

/*
 * A waiter that leaves does not change the order of the others; one that comes again goes to the
 * end.
 */
static void test_leavers(void)
{
  static struct client client;
  struct fairlock holder;
  struct actor waiter[5];
  uint64_t token[5];
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&holder, &client.client, "leave"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  for (int i = 0; i < 5; i++) { /* all are ready before the first one's time begins */
    actor_start(&waiter[i], server.port, "leave");
    CHECK_EQUAL(actor_do(&waiter[i], 'l', 0, 0).status, FAIRLOCK_OK);
  }
  for (int i = 0; i < 5; i++) {
    actor_tell(&waiter[i], 'c', i % 2 == 0 ? 4000 : FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    CHECK(queue_reaches(&redis, "leave", i + 1));
  }
  for (int i = 0; i < 5; i += 2)
    CHECK_EQUAL(actor_hear(&waiter[i], SOON).status, FAIRLOCK_TIMEOUT);
  CHECK(queue_reaches(&redis, "leave", 2));
  actor_tell(&waiter[0], 'c', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, "leave", 3));
  CHECK(sane(&redis, "leave"));
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  static const int left[] = {1, 3, 0};
  for (int i = 0; i < 3; i++) {
    struct event event = actor_hear(&waiter[left[i]], SOON);
    CHECK_EQUAL(event.status, FAIRLOCK_OK);
    token[i] = event.token;
  }
  CHECK(token[0] < token[1] && token[1] < token[2]);
  for (int i = 0; i < 5; i++)
    actor_end(&waiter[i]);
  CHECK_EQUAL(fairlock_deinit(&holder), FAIRLOCK_OK);
  client_close(&client);
  CHECK(nothing_left(&redis, "leave"));
}

/*
 * Behind a hold of two days, whose score is so late that the waiters need no other for that time:
 * after one day, they keep their places.
 */
static void test_longer_than_a_day(void)
{
  static struct client client;
  struct fairlock holder;
  struct actor waiter[2];
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  uint64_t token = 0;
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&holder, &client.client, "days"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&holder, 172800000), FAIRLOCK_OK);
  for (int i = 0; i < 2; i++) {
    actor_start(&waiter[i], server.port, "days");
    actor_tell(&waiter[i], 'c', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    CHECK(queue_reaches(&redis, "days", i + 1));
    if (i == 0) sleep_ms(1000);
  }
  /* then the second one is heard next, and would be first if both lost their places */
  CHECK_EQUAL(raw_number(&redis, "PEXPIRE redisson_lock_queue:{days} 7500"),
              1); /* what is left when the fortnight is over */
  CHECK_EQUAL(raw_number(&redis, "PEXPIRE redisson_lock_timeout:{days} 7500"), 1);
  /* and as if the waiters had last been heard of some hundred seconds ago */
  for (int i = 0; i < 2; i++) {
    (void)snprintf(id, sizeof id, "%s",
                   raw_text(&redis, "LINDEX redisson_lock_queue:{days} %d", i));
    CHECK_EQUAL(raw_number(&redis, "HSET fairlock:{days} %s %s", id, "1000000000 0 5000"), 0);
  }
  sleep_ms(10000);
  CHECK_EQUAL(queue_length(&redis, "days"), 2);
  CHECK(raw_number(&redis, "PTTL redisson_lock_queue:{days}") > 43200000);
  CHECK(raw_number(&redis, "PTTL redisson_lock_timeout:{days}") > 43200000);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  for (int i = 0; i < 2; i++) {
    struct event event = actor_hear(&waiter[i], SOON);
    CHECK_EQUAL(event.status, FAIRLOCK_OK);
    CHECK(event.token > token);
    token = event.token;
    actor_end(&waiter[i]);
  }
  CHECK_EQUAL(fairlock_deinit(&holder), FAIRLOCK_OK);
  client_close(&client);
  CHECK(nothing_left(&redis, "days"));
}

const struct check_test check_tests[] = {
    {"order: 2 processes", test_2_processes},
    {"order: 8 processes", test_8_processes},
    {"order: 64 processes", test_64_processes},
    {"order: 2 threads of a client", test_2_threads},
    {"order: 8 threads of a client", test_8_threads},
    {"order: 64 threads of a client", test_64_threads},
    {"order: 8 processes with 8 threads each", test_8_by_8},
    {"order: a server that stalls", test_stall},
    {"order: re-entry keeps the line waiting", test_reentry},
    {"order: leavers disturb nobody", test_leavers},
    {"order: a wait of more than a day", test_longer_than_a_day},
    {"order: two clients with one client_id", test_twins},
    {NULL, NULL},
};
