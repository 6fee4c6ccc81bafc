/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that are cancelled (pthread_cancel()) inside the client: each call goes on to its end, so
 * that the client is left as any call leaves it, and other threads go on with it.
 */
#include <pthread.h>

#include "fairlock_log.h"
#include "harness.h"

static struct client client;

/* What a thread has come to before it ended. */
struct doomed {
  struct fairlock handle;
  int status;
  bool returned;
};

static bool ended_after_its_call(pthread_t thread, const struct doomed *doomed)
{
  void *result;
  CHECK_EQUAL(pthread_join(thread, &result), 0);
  return CHECK(doomed->returned) && CHECK(result == PTHREAD_CANCELED) &&
         CHECK_EQUAL(doomed->status, FAIRLOCK_OK);
}

static void *acquire(void *context)
{
  struct doomed *doomed = context;
  doomed->status = fairlock_acquire(&doomed->handle, FAIRLOCK_FOREVER, 10000);
  doomed->returned = true;
  pthread_testcancel();
  return NULL;
}

/* One of them services the client, the other one sleeps. */
static void test_waiters(void)
{
  static const char *const names[] = {"one", "two"};
  static struct doomed doomed[2];
  pthread_t threads[2];
  bool well = true;
  begin();
  client_open(&client, server.port);
  for (int i = 0; i < 2; i++) {
    CHECK(raw_run(&redis, "HSET %s someone:1 1", names[i]));
    CHECK(raw_run(&redis, "PEXPIRE %s 60000", names[i]));
    CHECK_EQUAL(fairlock_init(&doomed[i].handle, &client.client, names[i]), FAIRLOCK_OK);
    CHECK_EQUAL(pthread_create(&threads[i], NULL, acquire, &doomed[i]), 0);
    CHECK(queue_reaches(&redis, names[i], 1));
  }
  for (int i = 0; i < 2; i++)
    CHECK_EQUAL(pthread_cancel(threads[i]), 0);
  CHECK(raw_run(&redis, "DEL one two"));
  for (int i = 0; i < 2; i++)
    well = ended_after_its_call(threads[i], &doomed[i]) && well;
  if (!well) return; /* nobody services the client */
  for (int i = 0; i < 2; i++) {
    CHECK(fairlock_token(&doomed[i].handle) > 0);
    CHECK_EQUAL(fairlock_adopt(&doomed[i].handle), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_release(&doomed[i].handle), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_deinit(&doomed[i].handle), FAIRLOCK_OK);
  }
  client_close(&client);
}

static void *run(void *context)
{
  struct doomed *doomed = context;
  fairlock_run(&client.client);
  doomed->returned = true;
  pthread_testcancel();
  return NULL;
}

/* It services the client until it is told to stop. */
static void test_runner(void)
{
  static struct doomed doomed;
  pthread_t thread;
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&doomed.handle, &client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(pthread_create(&thread, NULL, run, &doomed), 0);
  for (int i = 0; i < 3; i++) {
    if (!CHECK_EQUAL(fairlock_acquire(&doomed.handle, 20000, 10000), FAIRLOCK_OK)) return;
    CHECK_EQUAL(fairlock_release(&doomed.handle), FAIRLOCK_OK);
    CHECK_EQUAL(pthread_cancel(thread), 0);
  }
  CHECK_EQUAL(fairlock_deinit(&doomed.handle), FAIRLOCK_OK);
  fairlock_stop(&client.client);
  (void)ended_after_its_call(thread, &doomed);
  client_close(&client);
}

/* A log that writes to a file. */
static void note(enum fairlock_log_event event, int status, const char *text, void *context)
{
  int *lines = context;
  (void)event;
  (void)status;
  (void)text;
  pthread_testcancel();
  ++*lines;
}

static int lines;

/* Cancelled all the time. */
static void *make_all_calls(void *context)
{
  static struct fairlock_log log = {.function = note, .context = &lines};
  struct doomed *doomed = context;
  (void)pthread_cancel(pthread_self());
  client_open(&client, server.port);
  fairlock_set_log(&client.client, &log);
  doomed->status = fairlock_connect(&client.client);
  CHECK_EQUAL(fairlock_init(&doomed->handle, &client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&doomed->handle, 10000, 10000), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&client, &doomed->handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&doomed->handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&doomed->handle, 10000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_release(&doomed->handle), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&client, &doomed->handle), FAIRLOCK_OK);
  CHECK(inspect(&client, "door").status == FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&doomed->handle), FAIRLOCK_OK);
  client_close(&client);
  doomed->returned = true;
  pthread_testcancel();
  return NULL;
}

static void test_all_calls(void)
{
  static struct doomed doomed;
  pthread_t thread;
  begin();
  lines = 0;
  CHECK_EQUAL(pthread_create(&thread, NULL, make_all_calls, &doomed), 0);
  (void)ended_after_its_call(thread, &doomed);
  CHECK(lines > 0);
}

const struct check_test check_tests[] = {{"cancel: waiters", test_waiters},
                                         {"cancel: runner", test_runner},
                                         {"cancel: all calls", test_all_calls},
                                         {0}};
