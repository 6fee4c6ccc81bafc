/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that are given up without waiting, against a real server: one that waits, one that holds, one
 * that another thread holds, and one whose server says nothing. Afterwards nothing of them is left.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "fairlock_abandon.h"
#include "harness.h"

static struct client client;
static atomic_int freed;

static void on_freed(struct fairlock_rest *rest, void *context)
{
  (void)context;
  memset(rest, 0x5a, sizeof *rest);
  atomic_fetch_add(&freed, 1);
}

static void service_until_freed(int count)
{
  int64_t until = now_ms() + 30000;
  while (atomic_load(&freed) < count && now_ms() < until)
    fairlock_poll(&client.client, 100);
  CHECK_EQUAL(atomic_load(&freed), count);
}

/* The memory of the handle, and its name, are used for something else at once. */
static void abandon(struct fairlock *handle, struct fairlock_rest *rest, char *copy, size_t size)
{
  rest->freed = on_freed;
  rest->name = copy;
  rest->name_size = size;
  CHECK_EQUAL(fairlock_abandon(handle, rest), FAIRLOCK_OK);
  memset(handle, 0x5a, sizeof *handle);
}

static void test_waiting_and_holding(void)
{
  static struct fairlock_rest rests[2];
  static char names[2][8];
  struct fairlock holder, waiter, next;
  begin();
  atomic_store(&freed, 0);
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&holder, &client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&waiter, &client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&next, &client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&holder, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&holder, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK); /* and once more */
  CHECK_EQUAL(fairlock_start_acquire(&waiter, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&client, "door", 1);
  CHECK_EQUAL(fairlock_start_acquire(&next, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&client, "door", 2);
  abandon(&waiter, &rests[0], names[0], sizeof names[0]);
  abandon(&holder, &rests[1], names[1], sizeof names[1]);
  CHECK_EQUAL(await_result(&client, &next), FAIRLOCK_OK); /* the second in line */
  service_until_freed(2);
  CHECK_EQUAL(fairlock_release(&next), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&next), FAIRLOCK_OK);
  CHECK(nothing_left(&redis, "door"));
  client_close(&client);
}

static void *acquire(void *context)
{
  return fairlock_acquire(context, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) == FAIRLOCK_CANCELLED ? context
                                                                                           : NULL;
}

static void *run(void *context)
{
  return fairlock_run(context) == FAIRLOCK_OK ? context : NULL;
}

/*
 * Other threads: not the one that is inside a call, which has to be cancelled before; and a hold of one
 * that has ended.
 */
static void test_of_other_threads(void)
{
  static struct fairlock_rest rests[2];
  static char names[2][8];
  struct fairlock holder, waiter;
  pthread_t runner, thread;
  void *result;
  begin();
  atomic_store(&freed, 0);
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&holder, &client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&waiter, &client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&holder, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(pthread_create(&runner, NULL, run, &client.client), 0);
  CHECK_EQUAL(pthread_create(&thread, NULL, acquire, &waiter), 0);
  CHECK(queue_reaches(&redis, "door", 1));
  CHECK_EQUAL(fairlock_abandon(&waiter, &rests[0]), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_cancel(&waiter), FAIRLOCK_OK);
  CHECK_EQUAL(pthread_join(thread, &result), 0);
  CHECK(result == &waiter);
  abandon(&waiter, &rests[0], names[0], sizeof names[0]);
  abandon(&holder, &rests[1], names[1], sizeof names[1]);
  for (int64_t until = now_ms() + 30000; atomic_load(&freed) < 2 && now_ms() < until;)
    sleep_ms(1);
  CHECK_EQUAL(atomic_load(&freed), 2);
  fairlock_stop(&client.client);
  CHECK_EQUAL(pthread_join(runner, &result), 0);
  CHECK(result == &client.client);
  CHECK(nothing_left(&redis, "door"));
  client_close(&client);
}

/* The call takes no time, though the server takes all of it, and the end of the client frees the rest. */
static void test_stopped_server(void)
{
  static struct fairlock_rest rests[3];
  static char names[3][8];
  struct fairlock handles[3];
  begin();
  atomic_store(&freed, 0);
  client_open(&client, server.port);
  for (int i = 0; i < 3; i++)
    CHECK_EQUAL(fairlock_init(&handles[i], &client.client, i < 2 ? "door" : "gate"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handles[0], 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&handles[1], FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
              FAIRLOCK_PENDING);
  service_until_queued(&client, "door", 1);
  CHECK_EQUAL(kill(server.pid, SIGSTOP), 0);
  CHECK_EQUAL(fairlock_start_acquire(&handles[2], 0, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  int64_t began = now_ms();
  for (int i = 0; i < 3; i++)
    abandon(&handles[i], &rests[i], names[i], sizeof names[i]);
  CHECK(now_ms() - began < 1000);
  service_for(&client, 3000); /* the connection is given up */
  CHECK_EQUAL(atomic_load(&freed), 0);
  CHECK_EQUAL(kill(server.pid, SIGCONT), 0);
  service_until_freed(3);
  CHECK(nothing_left(&redis, "door"));
  CHECK(nothing_left(&redis, "gate"));
  CHECK_EQUAL(fairlock_init(&handles[0], &client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handles[0], 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(kill(server.pid, SIGSTOP), 0);
  abandon(&handles[0], &rests[0], names[0], sizeof names[0]);
  client_close(&client);
  CHECK_EQUAL(kill(server.pid, SIGCONT), 0);
  CHECK_EQUAL(atomic_load(&freed), 4);
}

const struct check_test check_tests[] = {
    {"given up: who waits, and who holds", test_waiting_and_holding},
    {"given up: of other threads", test_of_other_threads},
    {"given up: the server is stopped", test_stopped_server},
    {0}};
