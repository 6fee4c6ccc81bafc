/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each row of the table of Redisson's RLock, by its counterpart here, against what is then in
 * Redis; and each status that a caller's mistake leads to.
 */
#include "harness.h"

#include <pthread.h>
#include <string.h>
#include "support/counters.h"

static struct client here;
static struct client there;
static struct fairlock_target anyone = {.token = FAIRLOCK_ANY_TOKEN};
static struct fairlock mine;
static struct fairlock other; /* of another client */

/* Two clients with a handle each of one lock. */
static void open_both(const char *name)
{
  begin();
  client_open(&here, server.port);
  client_open(&there, server.port);
  CHECK_EQUAL(fairlock_init(&mine, &here.client, name), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&other, &there.client, name), FAIRLOCK_OK);
}

/* Closes both, which must leave nothing of the lock. */
static void close_both(const char *name)
{
  CHECK_EQUAL(fairlock_deinit(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&other), FAIRLOCK_OK);
  client_close(&here);
  client_close(&there);
  (void)nothing_left(&redis, name);
  CHECK_EQUAL(listeners(&redis, name), 0);
}

/* lock(): acquire, with a lease that is renewed. */
static void test_lock(void)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  open_both("lock");
  CHECK_EQUAL(fairlock_connect(&here.client), FAIRLOCK_OK);
  fairlock_id(&mine, id, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK_EQUAL(fairlock_acquire(&mine, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(hold_count_of(&redis, "lock", id), 1);
  int64_t ttl = raw_number(&redis, "PTTL lock");
  CHECK(ttl > 0 && ttl <= 30000);
  CHECK(fairlock_remaining_ms(&mine) > 0 && fairlock_remaining_ms(&mine) < 30000);
  CHECK(fairlock_token(&mine) > 0);
  CHECK_EQUAL(raw_number(&redis, "HGET fairlock:{lock} token"), (int64_t)fairlock_token(&mine));
  CHECK(sane(&redis, "lock"));
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_remaining_ms(&mine), 0);
  CHECK_EQUAL(fairlock_token(&mine), 0);
  close_both("lock");
}

/* lock(lease): ends by itself. */
static void test_lock_lease(void)
{
  open_both("lease");
  CHECK_EQUAL(fairlock_connect(&there.client), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&mine, FAIRLOCK_FOREVER, 2000), FAIRLOCK_OK);
  CHECK(raw_number(&redis, "PTTL lease") <= 2000);
  CHECK_EQUAL(fairlock_try_acquire(&other, 1000), FAIRLOCK_BUSY);
  AWAIT(raw_number(&redis, "EXISTS lease") == 0, service_for(&here, 5));
  CHECK_EQUAL(fairlock_remaining_ms(&mine), 0);
  CHECK_EQUAL(raw_number(&redis, "EXISTS lease"), 0);
  CHECK_EQUAL(fairlock_try_acquire(&other, 60000), FAIRLOCK_OK);
  CHECK(raw_number(&redis, "PTTL lease") > 30000);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_release(&other), FAIRLOCK_OK);
  close_both("lease");
}

static void *acquire_in_thread(void *context)
{
  static int status;
  status = fairlock_acquire(context, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  return &status;
}

/* lockInterruptibly(): cancel, from another task. */
static void test_lock_interruptibly(void)
{
  pthread_t thread;
  void *status;
  open_both("cancel");
  CHECK_EQUAL(fairlock_cancel(&mine), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_acquire(&mine, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_cancel(&mine), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(pthread_create(&thread, NULL, acquire_in_thread, &other), 0);
  CHECK(queue_reaches(&redis, "cancel", 1));
  CHECK_EQUAL(fairlock_acquire(&other, 0, FAIRLOCK_RENEW), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_release(&other), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_deinit(&other), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_cancel(&other), FAIRLOCK_OK);
  CHECK_EQUAL(pthread_join(thread, &status), 0);
  CHECK_EQUAL(*(int *)status, FAIRLOCK_CANCELLED);
  CHECK(no_trace_of_waiters(&redis, "cancel"));
  CHECK_EQUAL(fairlock_cancel(&other), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  close_both("cancel");
}

/* tryLock() */
static void test_try(void)
{
  open_both("try");
  CHECK_EQUAL(fairlock_try_acquire(&mine, FAIRLOCK_RENEW), FAIRLOCK_OK);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_try_acquire(&other, FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK(now_ms() - began < SOON);
  CHECK_EQUAL(fairlock_acquire(&other, 0, 1000), FAIRLOCK_BUSY);
  CHECK(no_trace_of_waiters(&redis, "try"));
  CHECK_EQUAL(fairlock_release(&other), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&other, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&other), FAIRLOCK_OK);
  close_both("try");
}

/* A try does not overtake those that wait: it hands the lock to them. */
static void test_try_keeps_order(void)
{
  struct actor waiter;
  open_both("polite");
  CHECK_EQUAL(fairlock_acquire(&mine, 0, 60000), FAIRLOCK_OK);
  actor_start(&waiter, server.port, "polite");
  actor_tell(&waiter, 'a', FAIRLOCK_FOREVER, 60000);
  CHECK(queue_reaches(&redis, "polite", 1));
  CHECK(raw_run(&redis, "DEL polite"));
  CHECK_EQUAL(fairlock_try_acquire(&other, FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(actor_hear(&waiter, SOON).status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_do(&waiter, 'r', 0, 0).status, FAIRLOCK_OK);
  actor_end(&waiter);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
  close_both("polite");
}

/* tryLock(wait) and tryLock(wait, lease): timed out, and in time. */
static void test_try_wait(void)
{
  open_both("wait");
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_acquire(&other, 300, FAIRLOCK_RENEW), FAIRLOCK_TIMEOUT);
  CHECK(now_ms() - began >= 300);
  CHECK(no_trace_of_waiters(&redis, "wait"));
  CHECK_EQUAL(fairlock_start_acquire(&other, 10000, 7000), FAIRLOCK_PENDING);
  /* a heartbeat later at the latest; 0: it received something */
  CHECK(fairlock_poll(&there.client, 0) <= 2000);
  service_until_queued(&there, "wait", 1);
  CHECK_EQUAL(fairlock_result(&other), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&there, &other), FAIRLOCK_OK);
  AWAIT(raw_number(&redis, "PTTL wait") > 5000, service_for(&there, 5)); /* confirmed */
  int64_t ttl = raw_number(&redis, "PTTL wait");
  CHECK(ttl > 5000 && ttl <= 7000);
  CHECK_EQUAL(counters_of(&there.client).waits, 1);
  CHECK_EQUAL(fairlock_release(&other), FAIRLOCK_OK);
  close_both("wait");
}

/* unlock(), with re-entry: each level has to be released, and the same token stays for all. */
static void test_unlock(void)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  open_both("unlock");
  CHECK_EQUAL(fairlock_connect(&here.client), FAIRLOCK_OK);
  fairlock_id(&mine, id, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&mine);
  for (int level = 2; level <= 5; level++) {
    CHECK_EQUAL(fairlock_acquire(&mine, level % 2 == 0 ? 0 : FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
                FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_hold_count(&mine), level);
    CHECK_EQUAL(hold_count_of(&redis, "unlock", id), level);
    CHECK(fairlock_token(&mine) == token);
  }
  for (int level = 4; level >= 1; level--) {
    CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_hold_count(&mine), level);
    CHECK_EQUAL(hold_count_of(&redis, "unlock", id), level);
    CHECK(raw_number(&redis, "PTTL unlock") > 0);
    CHECK_EQUAL(fairlock_try_acquire(&other, FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  }
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_hold_count(&mine), 0);
  CHECK_EQUAL(fairlock_acquire(&other, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_token(&other) > token);
  CHECK_EQUAL(fairlock_release(&other), FAIRLOCK_OK);
  close_both("unlock");
}

/*
 * A re-entry lengthens a fixed lease, never shortens it, and never turns a renewed one into a fixed
 * one.
 */
static void test_reentry_lease(void)
{
  open_both("longer");
  CHECK_EQUAL(fairlock_acquire(&mine, 0, 20000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, 1000), FAIRLOCK_OK);
  CHECK(raw_number(&redis, "PTTL longer") > 10000);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, 60000), FAIRLOCK_OK);
  CHECK(raw_number(&redis, "PTTL longer") > 40000);
  CHECK(fairlock_remaining_ms(&mine) > 40000);
  for (int i = 0; i < 3; i++)
    CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  close_both("longer");
}

/* forceUnlock(): ends the hold, whoever has it, and hands over; the holder is told. */
static void test_force_unlock(void)
{
  open_both("force");
  CHECK_EQUAL(fairlock_force_release(&there.client, "force", 5, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&other, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&there, "force", 1);
  CHECK_EQUAL(fairlock_force_release(&there.client, "force", 5, FAIRLOCK_ANY_TOKEN), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&there, &other), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
  CHECK_EQUAL(atomic_load(&here.losses), 1);
  CHECK_EQUAL(fairlock_remaining_ms(&mine), 0);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_RENEW), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_NOT_HELD);
  CHECK(fairlock_remaining_ms(&other) > 0);
  CHECK_EQUAL(fairlock_release(&other), FAIRLOCK_OK);
  close_both("force");
}

/* isLocked(), isHeldByThread(), getHoldCount(), remainTimeToLive(): locally, and of anybody. */
static void test_questions(void)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  char next[FAIRLOCK_HOLDER_ID_SIZE];
  open_both("ask");
  struct picture picture = inspect(&there, "ask");
  CHECK_EQUAL(picture.status, FAIRLOCK_OK);
  CHECK(!picture.held);
  CHECK_EQUAL(picture.ttl_ms, -2);
  CHECK_EQUAL(picture.waiters, 0);
  CHECK_EQUAL(fairlock_connect(&here.client), FAIRLOCK_OK);
  fairlock_id(&mine, id, FAIRLOCK_HOLDER_ID_SIZE);
  fairlock_id(&other, next, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, 20000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, 20000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&other, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&there, "ask", 1);
  picture = inspect(&there, "ask");
  CHECK_EQUAL(picture.status, FAIRLOCK_OK);
  CHECK(picture.held);
  CHECK_BYTES(picture.holder, strlen(picture.holder), id, strlen(id));
  CHECK_EQUAL(picture.hold_count, 2);
  CHECK(picture.ttl_ms > 10000 && picture.ttl_ms <= 20000);
  CHECK(picture.token == fairlock_token(&mine));
  CHECK_EQUAL(picture.waiters, 1);
  CHECK_EQUAL(picture.seen, 1);
  CHECK_EQUAL(picture.ours, 1);
  CHECK_EQUAL(picture.alive, 1);
  CHECK_EQUAL(picture.listening, 1);
  CHECK_BYTES(picture.waiter[0], strlen(picture.waiter[0]), next, strlen(next));
  CHECK(fairlock_remaining_ms(&mine) > 10000 && fairlock_remaining_ms(&mine) < 20000);
  CHECK_EQUAL(fairlock_remaining_ms(&other), 0);
  CHECK_EQUAL(fairlock_hold_count(&mine), 2);
  CHECK_EQUAL(fairlock_hold_count(&other), 0);
  CHECK_EQUAL(fairlock_cancel(&other), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&there, &other), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  close_both("ask");
}

/* The async forms: nothing blocks; polls service the client. */
static void test_async(void)
{
  struct picture picture;
  memset(&picture, 0, sizeof picture);
  open_both("async");
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_start_acquire(&mine, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  CHECK(now_ms() - began < SOON);
  CHECK_EQUAL(fairlock_result(&mine), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_start_acquire(&mine, 0, 1000), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_start_release(&mine), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(await_result(&here, &mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&mine, 0, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&here, &mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_hold_count(&mine), 2);
  CHECK_EQUAL(fairlock_start_acquire(&other, 0, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&there, &other), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_start_acquire(&other, 200, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&there, &other), FAIRLOCK_TIMEOUT);
  CHECK_EQUAL(fairlock_start_acquire(&other, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_start_force_release(&other, &anyone), FAIRLOCK_IN_PROGRESS);
  service_until_queued(&there, "async", 1);
  CHECK_EQUAL(fairlock_start_release(&mine), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&here, &mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_release(&mine), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&here, &mine), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&there, &other), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_inspect(&mine, picture_report, &picture), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&here, &mine), FAIRLOCK_OK);
  CHECK(picture.held);
  CHECK(picture.token == fairlock_token(&other));
  CHECK_EQUAL(fairlock_start_force_release(&mine, &anyone), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&here, &mine), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_force_release(&mine, &anyone), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&here, &mine), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_start_release(&other), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&there, &other), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_start_release(&other), FAIRLOCK_NOT_HELD);
  close_both("async");
}

static void *use_in_thread(void *context)
{
  struct fairlock *handle = context;
  CHECK_EQUAL(fairlock_acquire(handle, 0, FAIRLOCK_RENEW), FAIRLOCK_WRONG_TASK);
  CHECK_EQUAL(fairlock_start_acquire(handle, 0, FAIRLOCK_RENEW), FAIRLOCK_WRONG_TASK);
  CHECK_EQUAL(fairlock_release(handle), FAIRLOCK_WRONG_TASK);
  CHECK_EQUAL(fairlock_start_release(handle), FAIRLOCK_WRONG_TASK);
  CHECK(fairlock_remaining_ms(handle) > 0);
  return NULL;
}

/* A hold belongs to the task that acquired it; after the release, any task may use the handle. */
static void test_wrong_task(void)
{
  pthread_t thread;
  void *status;
  open_both("task");
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(pthread_create(&thread, NULL, use_in_thread, &mine), 0);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  CHECK_EQUAL(fairlock_hold_count(&mine), 1);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK_EQUAL(pthread_create(&thread, NULL, acquire_in_thread, &mine), 0);
  CHECK_EQUAL(pthread_join(thread, &status), 0);
  CHECK_EQUAL(*(int *)status, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_WRONG_TASK);
  CHECK_EQUAL(fairlock_force_release(&there.client, "task", 4, FAIRLOCK_ANY_TOKEN), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&other, 0, 1000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&other), FAIRLOCK_OK);
  fairlock_client_deinit(&here.client); /* with a hold that nobody can release any more */
  CHECK_EQUAL(fairlock_deinit(&other), FAIRLOCK_OK);
  client_close(&there);
  CHECK(nothing_left(&redis, "task"));
}

static void test_invalid(void)
{
  open_both("invalid");
  CHECK_EQUAL(fairlock_acquire(&mine, 0, 1), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_LEASE_MIN_MS - 1), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_DURATION_MAX_MS + 1), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_FOREVER), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_acquire(&mine, FAIRLOCK_DURATION_MAX_MS + 1, FAIRLOCK_RENEW),
              FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_try_acquire(&mine, 5), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_start_acquire(&mine, 0, 99), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_inspect(&here.client, "invalid", 7, NULL, NULL), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_inspect(&here.client, "", 0, picture_report, NULL), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_force_release(&here.client, NULL, 3, FAIRLOCK_ANY_TOKEN), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_LEASE_MIN_MS), FAIRLOCK_OK);
  (void)fairlock_release(&mine);
  CHECK_EQUAL(fairlock_acquire(&mine, FAIRLOCK_DURATION_MAX_MS, FAIRLOCK_DURATION_MAX_MS),
              FAIRLOCK_OK);
  CHECK(raw_number(&redis, "PTTL invalid") > 1000000000);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  struct fairlock unnamed;
  CHECK_EQUAL(fairlock_init(&unnamed, &here.client, ""), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_init(&unnamed, &here.client, NULL), FAIRLOCK_INVALID);
  close_both("invalid");
}

/* A handle that holds is not taken out, and goes on holding. */
static void test_deinit_held(void)
{
  open_both("deinit");
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&mine), FAIRLOCK_IN_PROGRESS);
  CHECK(fairlock_remaining_ms(&mine) > 0);
  CHECK_EQUAL(fairlock_start_inspect(&mine, picture_report, NULL), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_start_force_release(&mine, &anyone), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  close_both("deinit");
}

/* Many handles of one client, on locks of their own and on a common one. */
static void test_many_handles(void)
{
  struct fairlock handle[20];
  char name[20][16];
  begin();
  client_open(&here, server.port);
  for (int i = 0; i < 20; i++) {
    memcpy(name[i], "many:00", 8);
    name[i][5] = (char)('0' + i / 2 / 10);
    name[i][6] = (char)('0' + i / 2 % 10);
    CHECK_EQUAL(fairlock_init(&handle[i], &here.client, name[i]), FAIRLOCK_OK);
  }
  for (int i = 0; i < 20; i++) {
    CHECK_EQUAL(fairlock_try_acquire(&handle[i], FAIRLOCK_RENEW),
                i % 2 == 0 ? FAIRLOCK_OK : FAIRLOCK_BUSY);
  }
  for (int i = 0; i < 20; i += 2)
    CHECK_EQUAL(fairlock_release(&handle[i]), FAIRLOCK_OK);
  for (int i = 0; i < 20; i++)
    CHECK_EQUAL(fairlock_deinit(&handle[i]), FAIRLOCK_OK);
  for (int i = 0; i < 20; i += 2)
    CHECK(nothing_left(&redis, name[i]));
  client_close(&here);
}

/* connect(): the check at a program's start. */
static void test_connect(void)
{
  begin();
  client_open(&here, server.port);
  CHECK_EQUAL(fairlock_connect(&here.client), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&here.client), FAIRLOCK_OK);
  CHECK_EQUAL(counters_of(&here.client).connections, 1);
  client_close(&here);
  client_open(&there, free_port());
  CHECK_EQUAL(fairlock_connect(&there.client), FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_init(&other, &there.client, "nobody"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&other, FAIRLOCK_RENEW), FAIRLOCK_UNREACHABLE);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_acquire(&other, 500, FAIRLOCK_RENEW), FAIRLOCK_UNREACHABLE);
  CHECK(now_ms() - began >= 490);
  CHECK_EQUAL(inspect(&there, "nobody").status, FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_force_release(&there.client, "nobody", 6, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_deinit(&other), FAIRLOCK_OK);
  client_close(&there);
}

/* The configuration: database, names in CLIENT LIST, lease. */
static void test_config(void)
{
  begin();
  client_prepare(&here, server.port);
  here.config.database = 3;
  here.config.client_name = "door-7";
  here.config.lease_ms = 9000;
  client_start(&here);
  CHECK_EQUAL(fairlock_init(&mine, &here.client, "config"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&mine, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(&redis, "EXISTS config"), 0);
  CHECK(raw_run(&redis, "SELECT 3"));
  int64_t ttl = raw_number(&redis, "PTTL config");
  CHECK(ttl > 5000 && ttl <= 9000);
  CHECK(strstr(raw_text(&redis, "CLIENT LIST"), "name=door-7") != NULL);
  CHECK_EQUAL(fairlock_release(&mine), FAIRLOCK_OK);
  CHECK(nothing_left(&redis, "config"));
  CHECK(raw_run(&redis, "SELECT 0"));
  CHECK_EQUAL(fairlock_deinit(&mine), FAIRLOCK_OK);
  client_close(&here);
}

const struct check_test check_tests[] = {
    {"rlock: lock", test_lock},
    {"rlock: lock(lease)", test_lock_lease},
    {"rlock: lockInterruptibly", test_lock_interruptibly},
    {"rlock: tryLock", test_try},
    {"rlock: tryLock does not jump the queue", test_try_keeps_order},
    {"rlock: tryLock(wait), tryLock(wait, lease)", test_try_wait},
    {"rlock: unlock, re-entry", test_unlock},
    {"rlock: re-entry never shortens the lease", test_reentry_lease},
    {"rlock: forceUnlock", test_force_unlock},
    {"rlock: isLocked, isHeldByThread, getHoldCount, remainTimeToLive", test_questions},
    {"rlock: async forms", test_async},
    {"rlock: wrong task", test_wrong_task},
    {"rlock: invalid arguments", test_invalid},
    {"rlock: deinit of a held handle", test_deinit_held},
    {"rlock: many handles of one client", test_many_handles},
    {"rlock: connect, and a server that is not there", test_connect},
    {"rlock: database, client name, lease of the configuration", test_config},
    {NULL, NULL},
};
