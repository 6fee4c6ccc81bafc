/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are kept, fairlock_use_keeping(): pairs of an acquire and a release that cost nothing, and
 * all that ends a keep, on a real server, which tracks the queue. A time that is checked is a bound
 * that a broken keep would miss by far.
 */
#include "fairlock_keep.h"
#include "fairlock_log.h"
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/proxy.h"
#include "support/counters.h"

/* Longer than any pause that a loaded machine makes; and for who waits for its end. */
#define KEEP_MS  15000
#define SHORT_MS 3000
#define PAIRS    1000

static struct {
  struct client client;
  struct fairlock_keeping keep;
  struct fairlock_log log;
  struct fairlock handle;
  atomic_int refusals;
  pthread_t thread;
  bool serviced;
} keeper;

static struct client other;
static struct fairlock waiter;
static struct proxy proxy;

static void count_refusal(enum fairlock_log_event event, int status, const char *text,
                          void *context)
{
  (void)status;
  (void)text;
  (void)context;
  if (event == FAIRLOCK_LOG_REFUSED) atomic_fetch_add(&keeper.refusals, 1);
}

static void *run_client(void *context)
{
  (void)context;
  fairlock_run(&keeper.client.client);
  return NULL;
}

static void keeper_prepare(int port)
{
  memset(&keeper, 0, sizeof keeper);
  client_prepare(&keeper.client, port);
}

/* serviced: a task receives all the time; else only who acquires and releases. */
static void keeper_start(const char *name, bool serviced)
{
  client_start(&keeper.client);
  if (keeper.keep.keep_ms == 0) keeper.keep.keep_ms = KEEP_MS;
  keeper.log.function = count_refusal;
  CHECK_EQUAL(fairlock_use_keeping(&keeper.client.client, &keeper.keep), FAIRLOCK_OK);
  fairlock_set_log(&keeper.client.client, &keeper.log);
  CHECK_EQUAL(fairlock_init(&keeper.handle, &keeper.client.client, name), FAIRLOCK_OK);
  keeper.serviced = serviced;
  if (serviced) CHECK_EQUAL(pthread_create(&keeper.thread, NULL, run_client, NULL), 0);
}

static void keeper_open(int port, const char *name, bool serviced)
{
  keeper_prepare(port);
  keeper_start(name, serviced);
}

static void keeper_close(void)
{
  CHECK_EQUAL(fairlock_deinit(&keeper.handle), FAIRLOCK_OK);
  if (keeper.serviced) {
    fairlock_stop(&keeper.client.client);
    CHECK_EQUAL(pthread_join(keeper.thread, NULL), 0);
  }
  CHECK_EQUAL(atomic_load(&keeper.client.losses), 0);
  client_close(&keeper.client);
}

static void waiter_open(const char *name)
{
  client_open(&other, server.port);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, name), FAIRLOCK_OK);
}

static void waiter_close(void)
{
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  client_close(&other);
}

/* Acquires and releases. Returns the token. */
static uint64_t pair(void)
{
  CHECK_EQUAL(fairlock_acquire(&keeper.handle, 10000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&keeper.handle);
  CHECK(fairlock_remaining_ms(&keeper.handle) > 0);
  CHECK_EQUAL(fairlock_release(&keeper.handle), FAIRLOCK_OK);
  return token;
}

/* Held by somebody, says the server, and by nobody here. */
static bool kept(const char *name)
{
  CHECK_EQUAL(fairlock_remaining_ms(&keeper.handle), 0);
  CHECK_EQUAL(fairlock_hold_count(&keeper.handle), 0);
  CHECK_EQUAL(fairlock_token(&keeper.handle), 0);
  CHECK_EQUAL(fairlock_release(&keeper.handle), FAIRLOCK_NOT_HELD);
  return raw_number(&redis, "EXISTS %s", name) == 1;
}

static bool given_back_within(const char *name, int ms)
{
  int64_t until = now_ms() + ms;
  while (raw_number(&redis, "EXISTS %s", name) == 1 && now_ms() < until)
    sleep_ms(2);
  return raw_number(&redis, "EXISTS %s", name) == 0;
}

static void test_pairs_cost_nothing(void)
{
  for (int serviced = 0; serviced < 2; serviced++) {
    begin();
    proxy_start(&proxy, server.port);
    keeper_open(proxy.port, "free", serviced);
    int64_t began = now_ms();
    uint64_t token = pair();
    int64_t out = atomic_load(&proxy.control->bytes_to_server);
    int64_t in = atomic_load(&proxy.control->bytes_to_client);
    int64_t scripts = scripts_run(&redis);
    int same = 0;
    for (int i = 0; i < PAIRS; i++)
      same += pair() == token;
    if (now_ms() < began + KEEP_MS) { /* a machine that is not much too slow */
      CHECK_EQUAL(same, PAIRS);
      CHECK_EQUAL(atomic_load(&proxy.control->bytes_to_server), out);
      CHECK_EQUAL(atomic_load(&proxy.control->bytes_to_client), in);
      CHECK_EQUAL(scripts_run(&redis), scripts);
      CHECK_EQUAL(counters_of(&keeper.client.client).acquisitions, PAIRS + 1);
      CHECK(counters_of(&keeper.client.client).requests <= 2); /* EVALSHA, EVAL */
    }
    keeper_close();
    CHECK(nothing_left(&redis, "free"));
    proxy_stop(&proxy);
  }
}

/* Nothing is given back before the keep ends, and then it is, without another call. */
static void test_ends_in_time(void)
{
  begin();
  keeper_prepare(server.port);
  keeper.keep.keep_ms = SHORT_MS;
  keeper_start("ends", true);
  int64_t began = now_ms();
  pair();
  bool still_kept = true;
  while (still_kept && now_ms() < began + SOON) {
    still_kept = kept("ends");
    if (now_ms() < began + SHORT_MS - 10) CHECK(still_kept);
    if (now_ms() < began + SHORT_MS / 2) pair();
    sleep_ms(20);
  }
  CHECK(!still_kept);
  keeper_close();
  CHECK(nothing_left(&redis, "ends"));
}

/* Whoever waits gets it at once, with a newer token. */
static void test_recalled(void)
{
  begin();
  keeper_open(server.port, "recalled", true);
  waiter_open("recalled");
  for (int i = 0; i < 20; i++) {
    uint64_t token = pair();
    int64_t began = now_ms();
    CHECK_EQUAL(fairlock_acquire(&waiter, SOON, FAIRLOCK_RENEW), FAIRLOCK_OK);
    CHECK(now_ms() < began + KEEP_MS / 2);
    CHECK(fairlock_token(&waiter) > token);
    CHECK_EQUAL(fairlock_acquire(&keeper.handle, 0, FAIRLOCK_RENEW), FAIRLOCK_BUSY);
    CHECK_EQUAL(fairlock_release(&waiter), FAIRLOCK_OK);
  }
  waiter_close();
  keeper_close();
  CHECK(nothing_left(&redis, "recalled"));
}

/* A program that works for half of the lease, and services nothing meanwhile, loses no hold. */
static void test_half_a_lease(void)
{
  enum { LEASE_MS = 4500 };
  begin();
  keeper_prepare(server.port);
  keeper.client.config.lease_ms = LEASE_MS;
  keeper.keep.keep_ms = LEASE_MS / 3 * 2; /* no more fits into that lease */
  keeper_start("half", false);
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(fairlock_acquire(&keeper.handle, 10000, FAIRLOCK_RENEW), FAIRLOCK_OK);
    uint32_t left = fairlock_remaining_ms(&keeper.handle);
    int64_t began = now_ms();
    CHECK(left >= LEASE_MS / 2);
    sleep_ms(LEASE_MS / 2);
    int status = fairlock_release(&keeper.handle);
    if (now_ms() < began + left) CHECK_EQUAL(status, FAIRLOCK_OK); /* not slept for much longer */
  }
  keeper_close();
}

/* One in use is given back at its next release. */
static void test_recalled_in_use(void)
{
  begin();
  keeper_open(server.port, "in use", true);
  pair();
  struct actor actor;
  actor_start(&actor, server.port, "in use");
  CHECK_EQUAL(fairlock_acquire(&keeper.handle, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  actor_tell(&actor, 'a', SOON, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, "in use", 1));
  sleep_ms(50);
  CHECK(fairlock_remaining_ms(&keeper.handle) > 0);
  CHECK_EQUAL(fairlock_release(&keeper.handle), FAIRLOCK_OK);
  CHECK_EQUAL(actor_hear(&actor, KEEP_MS / 2).status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_do(&actor, 'r', 0, 0).status, FAIRLOCK_OK);
  actor_end(&actor);
  keeper_close();
}

/* A program that does nothing but acquire and release lets others have their turn. */
static void test_only_pairs(void)
{
  begin();
  keeper_open(server.port, "only pairs", false);
  struct actor actor;
  actor_start(&actor, server.port, "only pairs");
  pair();
  actor_tell(&actor, 'a', SOON, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, "only pairs", 1));
  int64_t began = now_ms();
  struct event event = {.status = FAIRLOCK_PENDING};
  while (event.status == FAIRLOCK_PENDING && now_ms() < began + KEEP_MS / 2) {
    int status = fairlock_acquire(&keeper.handle, 100, FAIRLOCK_RENEW);
    if (status == FAIRLOCK_OK) CHECK_EQUAL(fairlock_release(&keeper.handle), FAIRLOCK_OK);
    event = actor_hear(&actor, 0);
  }
  CHECK_EQUAL(event.status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_do(&actor, 'r', 0, 0).status, FAIRLOCK_OK);
  actor_end(&actor);
  keeper_close();
}

/* One who only tries has its turn when the keep ends, though the keeper goes on all the time. */
static void test_tries(void)
{
  begin();
  keeper_prepare(server.port);
  keeper.keep.keep_ms = SHORT_MS;
  keeper_start("tries", true);
  waiter_open("tries");
  int64_t began = now_ms();
  int status = FAIRLOCK_BUSY;
  while (status == FAIRLOCK_BUSY && now_ms() < began + SOON) {
    pair();
    sleep_ms(5);
    status = fairlock_try_acquire(&waiter, FAIRLOCK_RENEW);
  }
  CHECK_EQUAL(status, FAIRLOCK_OK);
  CHECK(now_ms() >= began + SHORT_MS - 10);
  CHECK_EQUAL(fairlock_release(&waiter), FAIRLOCK_OK);
  waiter_close();
  keeper_close();
}

/* A break ends the keep: what is kept is released on the next connection. */
static void test_break(void)
{
  begin();
  proxy_start(&proxy, server.port);
  keeper_open(proxy.port, "break", true);
  for (int i = 0; i < 5; i++) {
    uint64_t token = pair();
    /* one that begins before the last release was answered is in doubt, and not kept */
    AWAIT(raw_number(&redis, "EXISTS break") == 1, token = pair());
    CHECK(kept("break"));
    proxy_sever(&proxy);
    CHECK(given_back_within("break", KEEP_MS / 2));
    CHECK(pair() > token);
    token = pair();
    uint32_t connects = counters_of(&keeper.client.client).connections;
    proxy_sever(&proxy);
    CHECK(pair() >= token); /* before, or after the client has noticed */
    AWAIT(counters_of(&keeper.client.client).connections > connects, sleep_ms(2));
  }
  keeper_close();
  CHECK(nothing_left(&redis, "break"));
  proxy_stop(&proxy);
}

/* All keys are gone, and the keeper is told. */
static void test_flushed(void)
{
  begin();
  keeper_open(server.port, "flushed", true);
  pair();
  CHECK(kept("flushed"));
  uint32_t requests = counters_of(&keeper.client.client).requests;
  CHECK(raw_run(&redis, "FLUSHALL"));
  AWAIT(counters_of(&keeper.client.client).requests > requests, sleep_ms(2));
  waiter_open("flushed");
  CHECK_EQUAL(fairlock_try_acquire(&waiter, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&keeper.handle, FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_release(&waiter), FAIRLOCK_OK);
  waiter_close();
  keeper_close();
}

/* Another handle of the same client waits like anybody else. */
static void test_same_client(void)
{
  begin();
  keeper_open(server.port, "same", true);
  struct fairlock second;
  CHECK_EQUAL(fairlock_init(&second, &keeper.client.client, "same"), FAIRLOCK_OK);
  pair();
  CHECK(kept("same"));
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_acquire(&second, SOON, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(now_ms() < began + KEEP_MS / 2);
  CHECK_EQUAL(fairlock_release(&second), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&second), FAIRLOCK_OK);
  keeper_close();
}

static void *pair_of_another(void *context)
{
  *(uint64_t *)context = pair();
  return NULL;
}

/* What is kept is nobody's: any task may acquire it. */
static void test_another_task(void)
{
  begin();
  keeper_open(server.port, "task", true);
  pthread_t thread;
  uint64_t token = pair();
  uint64_t others = 0;
  CHECK_EQUAL(fairlock_adopt(&keeper.handle), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(pthread_create(&thread, NULL, pair_of_another, &others), 0);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  CHECK(others == token);
  keeper_close();
}

#define TASKS 4

/* Tasks of one client that keep a lock each, and now and then wait for that of the next. */
static void *many_pairs(void *context)
{
  struct fairlock *handle = context;
  for (int i = 0; i < 500; i++) {
    CHECK_EQUAL(fairlock_acquire(handle, SOON, FAIRLOCK_RENEW), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_release(handle), FAIRLOCK_OK);
  }
  return NULL;
}

static void test_tasks(void)
{
  static struct fairlock handles[TASKS];
  static const char *const names[] = {"tasks", "tasks", "task 2", "task 3"};
  pthread_t threads[TASKS];
  for (int serviced = 0; serviced < 2; serviced++) {
    begin();
    keeper_open(server.port, "task 1", serviced);
    for (int i = 0; i < TASKS; i++) {
      CHECK_EQUAL(fairlock_init(&handles[i], &keeper.client.client, names[i]), FAIRLOCK_OK);
      CHECK_EQUAL(pthread_create(&threads[i], NULL, many_pairs, &handles[i]), 0);
    }
    for (int i = 0; i < TASKS; i++) {
      CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
      CHECK_EQUAL(fairlock_deinit(&handles[i]), FAIRLOCK_OK);
    }
    keeper_close();
    CHECK(nothing_left(&redis, "tasks"));
  }
}

/* Only renewed holds are kept. */
static void test_own_lease(void)
{
  begin();
  keeper_open(server.port, "own lease", true);
  CHECK_EQUAL(fairlock_try_acquire(&keeper.handle, 5000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&keeper.handle), FAIRLOCK_OK);
  CHECK(!kept("own lease"));
  uint64_t token = pair();
  CHECK(kept("own lease"));
  CHECK_EQUAL(fairlock_try_acquire(&keeper.handle, 5000), FAIRLOCK_OK);
  CHECK(fairlock_token(&keeper.handle) > token);
  CHECK_EQUAL(fairlock_release(&keeper.handle), FAIRLOCK_OK);
  CHECK(!kept("own lease"));
  keeper_close();
}

/* A keeper that has died costs what a dead holder costs. */
static void test_lease_of_the_dead(void)
{
  begin();
  keeper_prepare(server.port);
  keeper.client.config.lease_ms = 4600;
  keeper.keep.keep_ms = SHORT_MS;
  keeper_start("dead", false);
  pair();
  CHECK(kept("dead"));
  fairlock_client_deinit(&keeper.client.client);
  waiter_open("dead");
  CHECK_EQUAL(fairlock_acquire(&waiter, SOON, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&waiter), FAIRLOCK_OK);
  waiter_close();
}

/* Without the rights, everything is as without a keep, and the log says so once. */
static void test_refused(void)
{
  static const char *const rights[] = {"-client", "-client +client|tracking", "-exists"};
  for (int i = 0; i < 3; i++) {
    char rule[100];
    begin();
    snprintf(rule, sizeof rule, "ACL SETUSER mute on >secret ~* &* +@all %s", rights[i]);
    CHECK(raw_run(&redis, rule));
    keeper_prepare(server.port);
    keeper.client.config.user = "mute";
    keeper.client.config.password = "secret";
    keeper_start("refused", true);
    uint64_t token = 0;
    for (int round = 0; round < 5; round++) {
      uint64_t next = pair();
      CHECK(next > token);
      token = next;
      CHECK(!kept("refused"));
    }
    CHECK_EQUAL(atomic_load(&keeper.refusals), 1);
    keeper_close();
    CHECK(raw_run(&redis, "ACL DELUSER mute"));
  }
}

/* An operator asks for what was taken by a try: it is given back, and after a hold, too. */
static void test_asked(void)
{
  begin();
  keeper_open(server.port, "asked", true);
  client_open(&other, server.port);
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(fairlock_try_acquire(&keeper.handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
    uint64_t token = fairlock_token(&keeper.handle);
    if (i == 0) CHECK_EQUAL(fairlock_release(&keeper.handle), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_ask_release(&other.client, "asked", 5, token), FAIRLOCK_OK);
    if (i == 1) CHECK_EQUAL(fairlock_release(&keeper.handle), FAIRLOCK_OK);
    CHECK(given_back_within("asked", KEEP_MS / 2));
  }
  client_close(&other);
  keeper_close();
}

/* A server that is busy when the queue is to be armed is asked again. */
static void test_busy(void)
{
  static struct raw busy;
  struct fairlock_client *client = &keeper.client.client;
  begin();
  keeper_open(server.port, "busy", false);
  CHECK_EQUAL(fairlock_connect(client), FAIRLOCK_OK);
  make_busy(&busy);
  CHECK_EQUAL(fairlock_start_acquire(&keeper.handle, 20000, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(fairlock_server_status(client) == FAIRLOCK_UNAVAILABLE, fairlock_poll(client, 5));
  end_busy(&busy);
  CHECK_EQUAL(await_result(&keeper.client, &keeper.handle), FAIRLOCK_OK);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_release(&keeper.handle), FAIRLOCK_OK);
  uint32_t requests = counters_of(client).requests;
  for (int i = 0; i < 100; i++)
    pair();
  if (now_ms() < began + KEEP_MS / 2) CHECK_EQUAL(counters_of(client).requests, requests);
  keeper_close();
}

static void test_values(void)
{
  begin();
  client_open(&other, server.port);
  struct fairlock_keeping keep = {.keep_ms = 0};
  CHECK_EQUAL(fairlock_use_keeping(&other.client, &keep), FAIRLOCK_INVALID);
  keep.keep_ms = 20001;
  CHECK_EQUAL(fairlock_use_keeping(&other.client, &keep), FAIRLOCK_INVALID);
  keep.keep_ms = 20000;
  CHECK_EQUAL(fairlock_use_keeping(&other.client, &keep), FAIRLOCK_OK);
  client_close(&other);
}

/* Somebody queues while a program of one task works: its release is told to the server. */
static void test_release_after_work(void)
{
  begin();
  keeper_open(server.port, "work", false);
  waiter_open("work");
  uint64_t token = pair();
  CHECK_EQUAL(fairlock_acquire(&keeper.handle, 10000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL((int64_t)fairlock_token(&keeper.handle), (int64_t)token);
  CHECK_EQUAL(fairlock_start_acquire(&waiter, 20000, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "work") == 1, fairlock_poll(&other.client, 5));
  sleep_ms(200);
  CHECK_EQUAL(fairlock_release(&keeper.handle), FAIRLOCK_OK);
  AWAIT(fairlock_result(&waiter) != FAIRLOCK_PENDING, fairlock_poll(&other.client, 5));
  CHECK_EQUAL(fairlock_result(&waiter), FAIRLOCK_OK);
  CHECK_EQUAL(counters_of(&other.client).granted, 1);
  CHECK(fairlock_token(&waiter) > token);
  CHECK_EQUAL(fairlock_release(&waiter), FAIRLOCK_OK);
  waiter_close();
  keeper_close();
}

const struct check_test check_tests[] = {
    {"keep: pairs cost nothing", test_pairs_cost_nothing},
    {"keep: ends in time", test_ends_in_time},
    {"keep: a waiter recalls it", test_recalled},
    {"keep: half of the lease", test_half_a_lease},
    {"keep: recalled while in use", test_recalled_in_use},
    {"keep: a program of nothing but pairs", test_only_pairs},
    {"keep: a release after work", test_release_after_work},
    {"keep: one who only tries", test_tries},
    {"keep: the connection breaks", test_break},
    {"keep: all keys are deleted", test_flushed},
    {"keep: another handle of the same client", test_same_client},
    {"keep: another task", test_another_task},
    {"keep: tasks that share a client", test_tasks},
    {"keep: a lease of its own", test_own_lease},
    {"keep: a keeper that is dead", test_lease_of_the_dead},
    {"keep: tracking is refused", test_refused},
    {"keep: an operator asks", test_asked},
    {"keep: the server is busy", test_busy},
    {"keep: values", test_values},
    {NULL, NULL},
};
