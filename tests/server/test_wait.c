/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What POSIX's port can besides: waits that are ended from outside, by fairlock_stop() and by signals.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "harness.h"

static struct client client;

static void *run_client(void *context)
{
  (void)context;
  return fairlock_run(&client.client) == FAIRLOCK_OK ? &client : NULL;
}

/* Whoever is inside fairlock_run() comes back at once, after a while without news as well as before. */
static void test_stop_is_quick(void)
{
  pthread_t runner;
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_OK);
  int64_t longest = 0, sum = 0;
  for (int i = 0; i < 8; i++) {
    CHECK_EQUAL(pthread_create(&runner, NULL, run_client, NULL), 0);
    sleep_ms(i % 2 == 0 ? 10 : 100);
    int64_t began = now_ms();
    fairlock_stop(&client.client);
    CHECK_EQUAL(pthread_join(runner, NULL), 0);
    int64_t took = now_ms() - began;
    sum += took;
    if (took > longest) longest = took;
  }
  printf("# wait: fairlock_stop: %d ms at most\n", (int)longest);
  CHECK(sum < 8 * 400); /* each took up to 500 ms without a wake */
  client_close(&client);
}

static void on_signal(int number)
{
  (void)number;
}

static atomic_bool to_be_signalled;

/* Signals a thread until it says that it has heard. */
static void *signal_it(void *context)
{
  pthread_t thread = *(pthread_t *)context;
  for (int64_t end = now_ms() + SOON; atomic_load(&to_be_signalled) && now_ms() < end;) {
    sleep_ms(50);
    (void)pthread_kill(thread, SIGUSR1);
  }
  return NULL;
}

/* A limited wait for what was begun: its limit and a signal end it, and the operation goes on. */
static void wait_in_parts(void)
{
  struct fairlock holder, waiter;
  pthread_t signaller, self = pthread_self();
  CHECK_EQUAL(fairlock_init(&holder, &client.client, "parts"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&waiter, &client.client, "parts"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&holder, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&waiter, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_wait(&waiter, 0), FAIRLOCK_PENDING);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_wait(&waiter, 200), FAIRLOCK_PENDING);
  CHECK(now_ms() - began >= 199);
  CHECK(now_ms() - began < SOON);
  atomic_store(&to_be_signalled, true);
  CHECK_EQUAL(pthread_create(&signaller, NULL, signal_it, &self), 0);
  CHECK_EQUAL(fairlock_wait(&waiter, 2 * SOON), FAIRLOCK_PENDING);
  atomic_store(&to_be_signalled, false);
  CHECK_EQUAL(pthread_join(signaller, NULL), 0);
  CHECK(now_ms() - began < SOON);
  CHECK_EQUAL(fairlock_start_release(&holder), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_wait(&holder, FAIRLOCK_FOREVER), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_wait(&waiter, FAIRLOCK_FOREVER), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_wait(&waiter, FAIRLOCK_FOREVER), FAIRLOCK_OK); /* it still is */
  CHECK_EQUAL(fairlock_release(&waiter), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&holder), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
}

static void test_wait(void)
{
  pthread_t runner;
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  begin();
  CHECK_EQUAL(sigaction(SIGUSR1, &action, NULL), 0);
  client_open(&client, server.port);
  wait_in_parts();
  CHECK_EQUAL(pthread_create(&runner, NULL, run_client, NULL), 0);
  sleep_ms(20);
  wait_in_parts();
  fairlock_stop(&client.client);
  CHECK_EQUAL(pthread_join(runner, NULL), 0);
  client_close(&client);
}

const struct check_test check_tests[] = {
    {"wait: in parts", test_wait}, {"wait: fairlock_stop is quick", test_stop_is_quick}, {0}};
