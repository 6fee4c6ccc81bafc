/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiters whose subscription the server refuses, because a script runs or a right is missing. One
 * that does not listen is passed over at each handover, so the effect of a refusal must not outlast
 * its reason.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "support/counters.h"

static struct client client;
static struct fairlock handle;

/* Those who come and go while the test's waiter waits. */
struct common {
  atomic_int rounds;
  atomic_bool stop;
};

static void contend(int index, void *context)
{
  struct common *common = *(struct common **)context;
  static struct client own;
  struct fairlock door;
  (void)index;
  client_open(&own, server.port);
  if (fairlock_init(&door, &own.client, "busy") != FAIRLOCK_OK) _Exit(1);
  while (!atomic_load(&common->stop)) {
    if (fairlock_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_OK) _Exit(2);
    sleep_ms(5);
    if (fairlock_release(&door) != FAIRLOCK_OK) _Exit(3);
    (void)atomic_fetch_add(&common->rounds, 1);
  }
  if (fairlock_deinit(&door) != FAIRLOCK_OK) _Exit(4);
  client_close(&own);
}

/*
 * The first SUBSCRIBE comes while a script runs. The wait that goes on after it, and the next one,
 * are told of their turn.
 */
static void test_refused_once(void)
{
  static struct raw busy;
  struct common *common = share(sizeof *common);
  pid_t pid[3];
  begin();
  client_prepare(&client, server.port);
  client.config.offline_ms = FAIRLOCK_FOREVER;
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "busy"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_OK);
  make_busy(&busy);
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(strncmp(client_error(&client), "BUSY", 4) == 0, service_for(&client, 10));
  service_for(&client, 1500);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_PENDING);
  CHECK(strncmp(client_error(&client), "BUSY", 4) == 0);
  end_busy(&busy);
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  for (int i = 0; i < 3; i++)
    pid[i] = spawn(contend, i, &common);
  AWAIT(atomic_load(&common->rounds) >= 20, sleep_ms(5));
  for (int i = 0; i < 5; i++) {
    CHECK_EQUAL(fairlock_acquire(&handle, 20000, FAIRLOCK_RENEW), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  }
  CHECK_EQUAL(counters_of(&client.client).connections, 1);
  CHECK(counters_of(&client.client).granted > 0);
  atomic_store(&common->stop, true);
  for (int i = 0; i < 3; i++)
    CHECK_EQUAL(reap(pid[i]), 0);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
  CHECK(nothing_left(&redis, "busy"));
}

/*
 * A wait that begins while a script runs is not over because of that: not before offline_ms, and
 * not at all if the script ends.
 */
static void test_begun_under_busy(void)
{
  static struct raw busy;
  begin();
  client_prepare(&client, server.port);
  client.config.offline_ms = 5000;
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "busy"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_OK);
  make_busy(&busy);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_UNAVAILABLE);
  CHECK(now_ms() - began >= 5000 - 10);
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_for(&client, 500);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_PENDING);
  end_busy(&busy);
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
  CHECK(nothing_left(&redis, "busy"));
}

/*
 * A waiter without the right to its channel is told so. Once it has the right, the next wait
 * listens.
 */
static void test_denied_then_allowed(void)
{
  static struct client near;
  struct fairlock holder;
  begin();
  CHECK(raw_run(&redis, "ACL SETUSER deaf on >secret resetchannels ~* +@all"));
  client_open(&near, server.port);
  client_prepare(&client, server.port);
  client.config.user = "deaf";
  client.config.password = "secret";
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&holder, &near.client, "deaf"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "deaf"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_DENIED);
    CHECK(strncmp(client_error(&client), "NOPERM", 6) == 0);
    CHECK(no_trace_of_waiters(&redis, "deaf"));
  }
  CHECK_EQUAL(listeners(&redis, "deaf"), 0);
  CHECK(raw_run(&redis, "ACL SETUSER deaf &redisson_lock__channel:*"));
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(listeners(&redis, "deaf") == 1 && queue_length(&redis, "deaf") == 1,
        fairlock_poll(&client.client, 5));
  CHECK_EQUAL(listeners(&redis, "deaf"), 1);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(counters_of(&client.client).granted, 1);
  CHECK_EQUAL(counters_of(&client.client).connections, 1);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&holder), FAIRLOCK_OK);
  client_close(&client);
  client_close(&near);
  CHECK(raw_run(&redis, "ACL DELUSER deaf"));
  CHECK(nothing_left(&redis, "deaf"));
}

const struct check_test check_tests[] = {
    {"subscribe: a SUBSCRIBE refused once", test_refused_once},
    {"subscribe: a wait that begins while a script runs", test_begun_under_busy},
    {"subscribe: denied, and allowed later", test_denied_then_allowed},
    {NULL, NULL},
};
