/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Far away: waiters whose round trips take from half a second to twenty, with neighbours of the
 * server on the same lock. They get it in their turn, and none of them mistakes the distance for a
 * server that is gone. The four distances are tried at the same time: nearly all of it is waiting.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"
#include "support/proxy.h"
#include "support/counters.h"

#define FAR    3
#define NEAR   2
#define ALL    (FAR + NEAR)
#define ROUNDS 2
#define LIMIT  300000 /* for all of it */

/* What the parties of a lock see. The far ones come first, in their order. */
struct common {
  atomic_int connected; /* far ones                                            */
  atomic_int turn;      /* how many may ask for the first time                 */
  atomic_int asked;     /* how many have                                       */
  atomic_int inside;    /* holders at a time                                   */
  atomic_int together;  /* how often somebody was not alone                    */
  atomic_int finished;  /* far ones that are through                           */
  atomic_int wrong;     /* results that were not FAIRLOCK_OK; the last of them */
  int64_t released_ms;  /* when they could have it                             */
  int64_t held_ms[ALL]; /* ... and first had it                                */
  uint64_t first[ALL];  /* tokens of their first holds                         */
  struct fairlock_counters counters[ALL];
};

static const struct distance {
  int round_trip_ms;
  uint32_t waiter_ms;
  int rounds;
  const char *name;
} distances[] = {{500, 0, ROUNDS, "far:0.5"},
                 {2000, 0, ROUNDS, "far:2"},
                 {5000, 0, ROUNDS, "far:5"},
                 {20000, 60000, 1, "far:20"}};
#define DISTANCES (int)(sizeof distances / sizeof distances[0])

static struct proxy proxies[DISTANCES];
static struct common *commons[DISTANCES];

static void expect(struct common *common, int status)
{
  if (status != FAIRLOCK_OK) atomic_store(&common->wrong, status);
}

/* Asks, holds for a moment, and releases. */
static void pass_through(struct common *common, struct client *client, struct fairlock *handle,
                         int index, bool first)
{
  int status = fairlock_start_acquire(handle, FAIRLOCK_FOREVER, 60000);
  if (first) (void)atomic_fetch_add(&common->asked, 1);
  while (status == FAIRLOCK_PENDING) {
    fairlock_poll(&client->client, 1000);
    status = fairlock_result(handle);
  }
  expect(common, status);
  if (status != FAIRLOCK_OK) return;
  if (atomic_fetch_add(&common->inside, 1) != 0) (void)atomic_fetch_add(&common->together, 1);
  if (first) {
    common->first[index] = fairlock_token(handle);
    common->held_ms[index] = now_ms();
  }
  sleep_ms(5);
  (void)atomic_fetch_sub(&common->inside, 1);
  expect(common, fairlock_release(handle));
}

/* A far one does a number of rounds; a near one goes on while there are far ones. */
static void run_party(int number, void *context)
{
  const struct distance *distance = &distances[number / ALL];
  struct common *common = commons[number / ALL];
  static struct client client;
  struct fairlock handle;
  int index = number % ALL;
  bool far = index < FAR;
  (void)context;
  client_prepare(&client, far ? proxies[number / ALL].port : server.port);
  client.config.waiter_ms = distance->waiter_ms;
  client_start(&client);
  expect(common, fairlock_init(&handle, &client.client, distance->name));
  expect(common, fairlock_connect(&client.client));
  if (far) (void)atomic_fetch_add(&common->connected, 1);
  while (atomic_load(&common->turn) <= index)
    sleep_ms(5);
  for (int round = 0; far ? round < distance->rounds : atomic_load(&common->finished) < FAR;
       round++) {
    pass_through(common, &client, &handle, index, round == 0);
    if (!far) sleep_ms(5);
  }
  if (far) (void)atomic_fetch_add(&common->finished, 1);
  common->counters[index] = counters_of(&client.client);
  expect(common, fairlock_deinit(&handle));
  client_close(&client);
}

static bool reaches(atomic_int *value, int expected)
{
  int64_t until = now_ms() + LIMIT;
  while (atomic_load(value) != expected && now_ms() < until)
    sleep_ms(5);
  return atomic_load(value) == expected;
}

static bool ends(pid_t pid)
{
  int64_t until = now_ms() + LIMIT;
  int status = -1;
  while ((status = reap(pid)) != 0 && now_ms() < until)
    continue;
  return status == 0;
}

/* The far ones ask one after the other, and then the near ones. */
static void line_up(struct common *common, int from, int to)
{
  for (int i = from; i < to; i++) {
    atomic_store(&common->turn, i + 1);
    CHECK(reaches(&common->asked, i + 1));
    sleep_ms(20);
  }
}

static void judge(const struct distance *distance, struct common *common, uint64_t token)
{
  printf("# %s: held after", distance->name);
  for (int i = 0; i < ALL; i++)
    printf(" %d", (int)(common->held_ms[i] - common->released_ms));
  printf(" ms\n");
  bool good = CHECK_EQUAL(atomic_load(&common->wrong), FAIRLOCK_OK);
  good &= CHECK_EQUAL(atomic_load(&common->together), 0);
  for (int i = 0; i < ALL; i++) {
    good &= CHECK_EQUAL(common->counters[i].connections, 1);
    good &= CHECK_EQUAL(common->counters[i].losses, 0);
    if (i > FAR) continue; /* the near ones came together */
    good &= CHECK(common->first[i] > token);
    token = common->first[i];
  }
  for (int i = 0; i < FAR; i++)
    good &= CHECK_EQUAL(common->counters[i].acquisitions, distance->rounds);
  good &= CHECK(nothing_left(&redis, distance->name));
  if (!good) printf("#   %s\n", distance->name);
}

static void test_far(void)
{
  static struct client client;
  static struct fairlock holder[DISTANCES];
  uint64_t token[DISTANCES];
  pid_t pid[DISTANCES * ALL];
  begin();
  (void)alarm(LIMIT / 1000);
  client_open(&client, server.port);
  for (int i = 0; i < DISTANCES; i++) {
    CHECK_EQUAL(fairlock_init(&holder[i], &client.client, distances[i].name), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_try_acquire(&holder[i], LIMIT), FAIRLOCK_OK);
    token[i] = fairlock_token(&holder[i]);
    commons[i] = share(sizeof *commons[i]);
    proxy_start(&proxies[i], server.port);
    atomic_store(&proxies[i].control->delay_ms, distances[i].round_trip_ms / 2);
  }
  for (int i = 0; i < DISTANCES * ALL; i++)
    pid[i] = spawn(run_party, i, NULL);
  for (int i = 0; i < DISTANCES; i++) {
    CHECK(reaches(&commons[i]->connected, FAR));
    line_up(commons[i], 0, FAR);
    CHECK(queue_reaches(&redis, distances[i].name, FAR));
    line_up(commons[i], FAR, ALL);
    CHECK(queue_reaches(&redis, distances[i].name, ALL));
    commons[i]->released_ms = now_ms();
    CHECK_EQUAL(fairlock_release(&holder[i]), FAIRLOCK_OK);
  }
  for (int i = 0; i < DISTANCES * ALL; i++)
    CHECK(ends(pid[i]));
  for (int i = 0; i < DISTANCES; i++) {
    judge(&distances[i], commons[i], token[i]);
    (void)munmap(commons[i], sizeof *commons[i]);
    proxy_stop(&proxies[i]);
    CHECK_EQUAL(fairlock_deinit(&holder[i]), FAIRLOCK_OK);
  }
  client_close(&client);
}

const struct check_test check_tests[] = {{"far: round trips of 0.5, 2, 5 and 20 s", test_far},
                                         {NULL, NULL}};
