/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several locks at once: all or none, in one order, however many take them in whatever order.
 */
#include <pthread.h>

#include "fairlock_several.h"
#include "harness.h"

#define LOCKS  3
#define ROUNDS 100
#define TAKERS 4

/* The shorter before the longer, and bytes without a sign: this is their order. */
static const char *const names[LOCKS] = {"door", "door:2", "\xc3\xa9tage"};

/* A client, and a handle of each lock, in the order of `at`. */
struct taker {
  struct client client;
  struct fairlock handle[LOCKS];
  struct fairlock *given[LOCKS];
  uint32_t wait_ms;
  atomic_int status;
};

static struct taker taker, other;

static void taker_open(struct taker *one, const int at[LOCKS])
{
  client_open(&one->client, server.port);
  for (int i = 0; i < LOCKS; i++) {
    CHECK_EQUAL(fairlock_init(&one->handle[i], &one->client.client, names[i]), FAIRLOCK_OK);
  }
  for (int i = 0; i < LOCKS; i++)
    one->given[i] = &one->handle[at[i]];
}

static void taker_close(struct taker *one)
{
  for (int i = 0; i < LOCKS; i++)
    CHECK_EQUAL(fairlock_deinit(&one->handle[i]), FAIRLOCK_OK);
  client_close(&one->client);
}

static int holds(struct taker *one)
{
  int count = 0;
  for (int i = 0; i < LOCKS; i++)
    count += (int)fairlock_hold_count(&one->handle[i]);
  return count;
}

static int take(struct taker *one, uint32_t wait_ms)
{
  return fairlock_acquire_all(one->given, LOCKS, wait_ms, FAIRLOCK_RENEW);
}

static void *take_in_thread(void *context)
{
  struct taker *one = context;
  atomic_store(&one->status, take(one, one->wait_ms));
  return NULL;
}

static const int forwards[LOCKS] = {0, 1, 2}, backwards[LOCKS] = {2, 1, 0},
                 mixed[LOCKS] = {1, 2, 0};

static void hold_by_hand(const char *name)
{
  CHECK(raw_run(&redis, "HSET %s someone:1 1", name));
  CHECK(raw_run(&redis, "PEXPIRE %s 600000", name));
}

/* The lock of a name is held, by anybody. */
static bool is_held(const char *name)
{
  return raw_number(&redis, "EXISTS %s", name) == 1;
}

static void test_all(void)
{
  uint64_t token = 0;
  begin();
  taker_open(&taker, mixed);
  CHECK_EQUAL(take(&taker, 0), FAIRLOCK_OK);
  CHECK_EQUAL(holds(&taker), LOCKS);
  for (int i = 0; i < LOCKS; i++) {
    CHECK(is_held(names[i]));
    CHECK(taker.given[i] == &taker.handle[mixed[i]]);
    CHECK(fairlock_token(&taker.handle[i]) > 0);
  }
  token = fairlock_token(&taker.handle[0]);
  CHECK_EQUAL(take(&taker, 0), FAIRLOCK_OK); /* once more */
  CHECK(fairlock_token(&taker.handle[0]) == token);
  CHECK_EQUAL(fairlock_release_all(taker.given, LOCKS), FAIRLOCK_OK);
  CHECK_EQUAL(holds(&taker), LOCKS);
  CHECK_EQUAL(fairlock_release_all(taker.given, LOCKS), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release_all(taker.given, LOCKS), FAIRLOCK_NOT_HELD);
  for (int i = 0; i < LOCKS; i++)
    CHECK(nothing_left(&redis, names[i]));
  CHECK_EQUAL(take(&taker, FAIRLOCK_FOREVER), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(taker.given[1]), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release_all(taker.given, LOCKS), FAIRLOCK_NOT_HELD); /* but the others are */
  CHECK_EQUAL(holds(&taker), 0);
  taker_close(&taker);
}

static void test_misuse(void)
{
  begin();
  taker_open(&taker, forwards);
  CHECK_EQUAL(fairlock_acquire_all(taker.given, 0, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release_all(taker.given, 0), FAIRLOCK_OK);
  taker.given[2] = &taker.handle[0];
  CHECK_EQUAL(take(&taker, 0), FAIRLOCK_INVALID);
  taker.given[2] = &taker.handle[2];
  CHECK_EQUAL(fairlock_acquire_all(taker.given, LOCKS, 0, 0), FAIRLOCK_INVALID);
  CHECK_EQUAL(holds(&taker), 0);
  taker_close(&taker);
}

/* Each of the locks in turn is somebody else's. */
static void test_none(void)
{
  begin();
  taker_open(&taker, backwards);
  for (int i = 0; i < LOCKS; i++) {
    hold_by_hand(names[i]);
    CHECK_EQUAL(take(&taker, 0), FAIRLOCK_BUSY);
    CHECK_EQUAL(holds(&taker), 0);
    CHECK_EQUAL(take(&taker, 20), FAIRLOCK_TIMEOUT);
    CHECK_EQUAL(holds(&taker), 0);
    for (int k = 0; k < LOCKS; k++) {
      CHECK(is_held(names[k]) == (k == i));
      CHECK_EQUAL(queue_length(&redis, names[k]), 0);
    }
    CHECK(raw_run(&redis, "DEL %s", names[i]));
  }
  taker_close(&taker);
}

/* The first is handed over when nearly all of the time is over: for the second an eighth is left. */
static void test_the_whole_wait(void)
{
  pthread_t thread;
  begin();
  taker_open(&other, forwards);
  taker_open(&taker, forwards);
  taker.wait_ms = 4000;
  CHECK_EQUAL(fairlock_acquire(&other.handle[0], 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  hold_by_hand(names[1]);
  int64_t began = now_ms();
  CHECK_EQUAL(pthread_create(&thread, NULL, take_in_thread, &taker), 0);
  CHECK(queue_reaches(&redis, names[0], 1));
  sleep_ms(3500);
  CHECK_EQUAL(fairlock_release(&other.handle[0]), FAIRLOCK_OK);
  CHECK(queue_reaches(&redis, names[1], 1));
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  CHECK_EQUAL(atomic_load(&taker.status), FAIRLOCK_TIMEOUT);
  CHECK(now_ms() - began >= 4000);
  CHECK(now_ms() - began < 3500 + 4000);
  CHECK_EQUAL(holds(&taker), 0);
  CHECK(!is_held(names[0]));
  taker_close(&other);
  taker_close(&taker);
}

/* One that is held is broken while the last is waited for: nobody goes on with the rest. */
static void test_lost(void)
{
  pthread_t thread;
  begin();
  taker_open(&taker, forwards);
  taker.wait_ms = FAIRLOCK_FOREVER;
  hold_by_hand(names[2]);
  CHECK_EQUAL(pthread_create(&thread, NULL, take_in_thread, &taker), 0);
  CHECK(queue_reaches(&redis, names[2], 1));
  CHECK(is_held(names[0]) && is_held(names[1]));
  CHECK(raw_run(&redis, "DEL %s", names[1]));
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  CHECK_EQUAL(atomic_load(&taker.status), FAIRLOCK_LOST);
  CHECK_EQUAL(holds(&taker), 0);
  CHECK(!is_held(names[0]) && !is_held(names[1]));
  CHECK_EQUAL(queue_length(&redis, names[2]), 0);
  CHECK(raw_run(&redis, "DEL %s", names[2]));
  CHECK_EQUAL(take(&taker, 0), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release_all(taker.given, LOCKS), FAIRLOCK_OK);
  taker_close(&taker);
}

/* A lease that is not renewed ends meanwhile. */
static void test_lease(void)
{
  begin();
  taker_open(&taker, forwards);
  hold_by_hand(names[2]);
  CHECK_EQUAL(fairlock_acquire_all(taker.given, LOCKS, FAIRLOCK_FOREVER, 500), FAIRLOCK_LOST);
  CHECK_EQUAL(holds(&taker), 0);
  CHECK_EQUAL(queue_length(&redis, names[2]), 0);
  taker_close(&taker);
}

static void test_cancelled(void)
{
  pthread_t thread;
  begin();
  taker_open(&taker, forwards);
  taker.wait_ms = FAIRLOCK_FOREVER;
  hold_by_hand(names[1]);
  CHECK_EQUAL(pthread_create(&thread, NULL, take_in_thread, &taker), 0);
  CHECK(queue_reaches(&redis, names[1], 1));
  CHECK_EQUAL(fairlock_cancel(&taker.handle[0]), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_cancel(&taker.handle[2]), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_cancel(&taker.handle[1]), FAIRLOCK_OK);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  CHECK_EQUAL(atomic_load(&taker.status), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(holds(&taker), 0);
  CHECK(!is_held(names[0]));
  taker_close(&taker);
}

/* Guarded by each of the locks. */
static int inside[LOCKS];
static atomic_int bad;

static struct taker takers[TAKERS];

static void *take_turns(void *context)
{
  struct taker *one = context;
  for (int i = 0; i < ROUNDS; i++) {
    int status = take(one, FAIRLOCK_FOREVER);
    if (status != FAIRLOCK_OK) {
      printf("# round %d: %s\n", i, fairlock_status_name(status));
      (void)atomic_fetch_add(&bad, 1);
      break;
    }
    for (int k = 0; k < LOCKS; k++)
      if (inside[k]++ != 0) (void)atomic_fetch_add(&bad, 1);
    for (int k = 0; k < LOCKS; k++)
      inside[k]--;
    if (fairlock_release_all(one->given, LOCKS) != FAIRLOCK_OK) (void)atomic_fetch_add(&bad, 1);
  }
  return NULL;
}

/* By clients that give them in opposite orders, and would wait for each other for ever. */
static void test_opposite_orders(void)
{
  const int *const orders[TAKERS] = {forwards, backwards, mixed, backwards};
  pthread_t threads[TAKERS];
  begin();
  for (int i = 0; i < TAKERS; i++)
    taker_open(&takers[i], orders[i]);
  for (int i = 0; i < TAKERS; i++)
    CHECK_EQUAL(pthread_create(&threads[i], NULL, take_turns, &takers[i]), 0);
  for (int i = 0; i < TAKERS; i++)
    CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
  CHECK_EQUAL(atomic_load(&bad), 0);
  for (int i = 0; i < TAKERS; i++)
    taker_close(&takers[i]);
}

static void *service(void *context)
{
  (void)fairlock_run(context);
  return NULL;
}

/* Handles of two clients: a task services each, so what is held is renewed while the next one is waited for. */
static void test_two_clients(void)
{
  pthread_t threads[2];
  pthread_t thread;
  begin();
  client_prepare(&taker.client, server.port);
  taker.client.config.lease_ms = 1000;
  client_start(&taker.client);
  client_prepare(&other.client, server.port);
  client_start(&other.client);
  CHECK_EQUAL(fairlock_init(&taker.handle[0], &taker.client.client, names[0]), FAIRLOCK_OK);
  for (int i = 1; i < LOCKS; i++)
    CHECK_EQUAL(fairlock_init(&taker.handle[i], &other.client.client, names[i]), FAIRLOCK_OK);
  for (int i = 0; i < LOCKS; i++)
    taker.given[i] = &taker.handle[LOCKS - 1 - i];
  CHECK_EQUAL(pthread_create(&threads[0], NULL, service, &taker.client.client), 0);
  CHECK_EQUAL(pthread_create(&threads[1], NULL, service, &other.client.client), 0);
  taker.wait_ms = FAIRLOCK_FOREVER;
  hold_by_hand(names[1]);
  CHECK_EQUAL(pthread_create(&thread, NULL, take_in_thread, &taker), 0);
  CHECK(queue_reaches(&redis, names[1], 1));
  sleep_ms(2000);
  CHECK(raw_run(&redis, "DEL %s", names[1]));
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  CHECK_EQUAL(atomic_load(&taker.status), FAIRLOCK_OK);
  for (int i = 0; i < LOCKS; i++)
    CHECK_EQUAL(fairlock_adopt(&taker.handle[i]), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release_all(taker.given, LOCKS), FAIRLOCK_OK);
  for (int i = 0; i < LOCKS; i++)
    CHECK_EQUAL(fairlock_deinit(&taker.handle[i]), FAIRLOCK_OK);
  fairlock_stop(&taker.client.client);
  fairlock_stop(&other.client.client);
  CHECK_EQUAL(pthread_join(threads[0], NULL), 0);
  CHECK_EQUAL(pthread_join(threads[1], NULL), 0);
  client_close(&taker.client);
  client_close(&other.client);
}

const struct check_test check_tests[] = {{"several: all", test_all},
                                         {"several: misuse", test_misuse},
                                         {"several: none", test_none},
                                         {"several: the whole wait", test_the_whole_wait},
                                         {"several: lost", test_lost},
                                         {"several: lease", test_lease},
                                         {"several: cancelled", test_cancelled},
                                         {"several: opposite orders", test_opposite_orders},
                                         {"several: two clients", test_two_clients},
                                         {0}};
