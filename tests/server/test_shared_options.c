/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that share, with all that a handle can do: kept, asked, logged, taken over, cancelled, held
 * more than once, with leases of their own, by tasks that block on one connection.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fairlock_keep.h"
#include "fairlock_log.h"
#include "fairlock_share.h"
#include "harness.h"

/* Longer than any pause that a loaded machine makes; and for who waits for its end. */
#define KEEP_MS  15000
#define SHORT_MS 3000
#define PAIRS    200

enum { MEMBERS = 4 };

struct member {
  struct client client;
  struct fairlock_keeping keep;
  struct fairlock_log log;
  struct fairlock_shared shared;
  struct fairlock alone;
  atomic_int asked, refusals, connects, told_asked;
};

static struct member members[MEMBERS];
static const char name[] = "options";

static struct fairlock *share_of(int i)
{
  return &members[i].shared.handle;
}

static void count_asked(struct fairlock *handle, const struct fairlock_asking *asking,
                        void *context)
{
  (void)asking;
  struct member *member = context;
  CHECK(handle == &member->shared.handle);
  (void)atomic_fetch_add(&member->asked, 1);
}

static void count_event(enum fairlock_log_event event, int status, const char *text, void *context)
{
  struct member *member = context;
  (void)status;
  (void)text;
  (void)atomic_fetch_add(&member->refusals, event == FAIRLOCK_LOG_REFUSED);
  (void)atomic_fetch_add(&member->connects, event == FAIRLOCK_LOG_CONNECTED);
  (void)atomic_fetch_add(&member->told_asked, event == FAIRLOCK_LOG_ASKED);
}

/* keep_ms 0: it does not keep. */
static void open_member(int i, uint32_t limit, uint32_t keep_ms, uint32_t lease_ms, bool asked)
{
  struct member *member = &members[i];
  memset(member, 0, sizeof *member);
  client_prepare(&member->client, server.port);
  member->client.config.lease_ms = lease_ms;
  member->client.config.asked = asked ? count_asked : NULL;
  member->client.config.asked_context = member;
  client_start(&member->client);
  member->log.function = count_event;
  member->log.context = member;
  fairlock_set_log(&member->client.client, &member->log);
  member->keep.keep_ms = keep_ms;
  if (keep_ms > 0)
    CHECK_EQUAL(fairlock_use_keeping(&member->client.client, &member->keep), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_shared(&member->shared, &member->client.client, name, limit),
              FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&member->alone, &member->client.client, name), FAIRLOCK_OK);
}

static void begin_with(uint32_t limit, bool asked)
{
  begin();
  for (int i = 0; i < MEMBERS; i++)
    open_member(i, limit, 0, 0, asked);
}

static void close_member(int i)
{
  CHECK_EQUAL(fairlock_deinit(share_of(i)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&members[i].alone), FAIRLOCK_OK);
  client_close(&members[i].client);
}

static void end_members(int count)
{
  for (int i = 0; i < count; i++)
    close_member(i);
  CHECK(nothing_left(&redis, name));
}

static void service_all(int count)
{
  for (int i = 0; i < count; i++)
    service_for(&members[i].client, 1);
}

static bool holds(struct fairlock *handle)
{
  return fairlock_result(handle) == FAIRLOCK_OK && fairlock_hold_count(handle) > 0;
}

static void start(int i, struct fairlock *handle)
{
  int64_t before = queue_length(&redis, name);
  CHECK_EQUAL(fairlock_start_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&members[i].client, name, before + 1);
}

/* Who holds says the server. */
static int64_t server_holds(int i)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  fairlock_id(share_of(i), id, FAIRLOCK_HOLDER_ID_SIZE);
  return raw_number(&redis, "HEXISTS %s %s", name, id);
}

/* The words of a share, as the server has them: its token, when it ends, its hold count. */
static bool server_says(int i, uint64_t *token, int *count)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  unsigned long long its = 0;
  fairlock_id(share_of(i), id, FAIRLOCK_HOLDER_ID_SIZE);
  bool good = sscanf(raw_text(&redis, "HGET %s %s", name, id), "%llu %*s %d", &its, count) == 2;
  *token = its;
  return good;
}

/* Kept */

/* Acquires and releases. Returns the token. */
static uint64_t pair(int i)
{
  CHECK_EQUAL(fairlock_acquire(share_of(i), 10000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(share_of(i));
  CHECK_EQUAL(fairlock_release(share_of(i)), FAIRLOCK_OK);
  return token;
}

static void begin_kept(uint32_t limit, uint32_t keep_ms)
{
  begin();
  open_member(0, limit, keep_ms, 0, false);
  open_member(1, limit, 0, 0, false);
  (void)pair(0);
  AWAIT(server_holds(0) == 1, (void)pair(0));
  CHECK_EQUAL(server_holds(0), 1);
  CHECK_EQUAL(fairlock_hold_count(share_of(0)), 0);
}

/* Pairs that cost nothing, beside another that shares. */
static void test_kept_beside(void)
{
  begin_kept(2, KEEP_MS);
  int64_t began = now_ms(), scripts = scripts_run(&redis);
  uint64_t token = pair(0);
  int same = 0;
  for (int i = 0; i < PAIRS; i++)
    same += pair(0) == token;
  if (now_ms() < began + KEEP_MS / 2) { /* a machine that is not much too slow */
    CHECK_EQUAL(same, PAIRS);
    CHECK_EQUAL(scripts_run(&redis), scripts);
  }
  CHECK_EQUAL(fairlock_try_acquire(share_of(1), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_token(share_of(1)) > token);
  for (int i = 0; i < PAIRS; i++)
    same += pair(0) == token;
  if (now_ms() < began + KEEP_MS / 2) CHECK_EQUAL(same, 2 * PAIRS);
  CHECK_EQUAL(fairlock_release(share_of(1)), FAIRLOCK_OK);
  end_members(2);
}

/* It goes when somebody queues: who wants the lock alone, or one too many that share. */
static void recalled_by(struct fairlock *handle, uint32_t limit)
{
  begin_kept(limit, KEEP_MS);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_start_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(holds(handle), service_all(2));
  CHECK(holds(handle));
  CHECK(now_ms() < began + KEEP_MS);
  CHECK_EQUAL(server_holds(0), 0);
  CHECK_EQUAL(atomic_load(&members[0].client.losses), 0);
  CHECK_EQUAL(fairlock_release(handle), FAIRLOCK_OK);
  end_members(2);
}

static void test_kept_recalled(void)
{
  recalled_by(&members[1].alone, 0);
  recalled_by(share_of(1), 1);
}

/* A limit is in use while a share that has named it is kept. */
static void test_kept_other_limit(void)
{
  struct fairlock_shared other;
  begin_kept(1, SHORT_MS);
  CHECK_EQUAL(fairlock_init_shared(&other, &members[1].client.client, name, 3), FAIRLOCK_OK);
  int64_t began = now_ms();
  (void)pair(0);
  int status = fairlock_try_acquire(&other.handle, FAIRLOCK_RENEW);
  if (now_ms() < began + SHORT_MS / 2) CHECK_EQUAL(status, FAIRLOCK_BUSY);
  AWAIT(status == FAIRLOCK_OK, {
    service_all(2);
    if (status != FAIRLOCK_OK) status = fairlock_try_acquire(&other.handle, FAIRLOCK_RENEW);
  });
  CHECK_EQUAL(status, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(share_of(0), 1000, FAIRLOCK_RENEW), FAIRLOCK_TIMEOUT);
  CHECK_EQUAL(fairlock_release(&other.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&other.handle), FAIRLOCK_OK);
  end_members(2);
}

/* An operator asks for one that is kept beside another. */
static void test_kept_asked(void)
{
  int count;
  uint64_t token;
  begin_kept(0, KEEP_MS);
  CHECK_EQUAL(fairlock_try_acquire(share_of(1), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(server_says(0, &token, &count));
  CHECK_EQUAL(fairlock_ask_release(&members[1].client.client, name, sizeof name - 1, token),
              FAIRLOCK_OK);
  AWAIT(server_holds(0) == 0, service_all(2));
  CHECK_EQUAL(server_holds(0), 0);
  CHECK_EQUAL(server_holds(1), 1);
  CHECK_EQUAL(fairlock_release(share_of(1)), FAIRLOCK_OK);
  end_members(2);
}

/* Asked and logged */

static void test_asked(void)
{
  begin_with(0, true);
  for (int i = 0; i < 3; i++)
    CHECK_EQUAL(fairlock_try_acquire(share_of(i), FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(share_of(1));
  CHECK_EQUAL(fairlock_ask_release(&members[3].client.client, name, sizeof name - 1, token),
              FAIRLOCK_OK);
  AWAIT(atomic_load(&members[1].asked) > 0, service_all(3));
  CHECK_EQUAL(atomic_load(&members[1].asked), 1);
  CHECK_EQUAL(atomic_load(&members[1].told_asked), 1);
  CHECK_EQUAL(atomic_load(&members[0].asked) + atomic_load(&members[2].asked), 0);
  /* whoever holds: all of them */
  CHECK_EQUAL(
      fairlock_ask_release(&members[3].client.client, name, sizeof name - 1, FAIRLOCK_ANY_TOKEN),
      FAIRLOCK_OK);
  AWAIT(atomic_load(&members[0].asked) == 1 && atomic_load(&members[1].asked) == 2 &&
            atomic_load(&members[2].asked) == 1,
        service_all(3));
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(atomic_load(&members[i].asked), i == 1 ? 2 : 1);
    CHECK(fairlock_remaining_ms(share_of(i)) > 0); /* it decides */
    CHECK_EQUAL(fairlock_release(share_of(i)), FAIRLOCK_OK);
  }
  CHECK_EQUAL(fairlock_ask_release(&members[3].client.client, name, sizeof name - 1, token),
              FAIRLOCK_NOT_HELD);
  end_members(MEMBERS);
}

/* Redisson */

static struct raw peer; /* a waiter of Redisson's */

static void queue_peer(void)
{
  CHECK(raw_open(&peer, server.port));
  CHECK(raw_run(&peer, "SUBSCRIBE redisson_lock__channel:{options}:peer:1"));
  CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{options} peer:1"));
  CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{options} 9000000000000 peer:1"));
}

/* It was told to ask, and finds out when to ask again from its score: when the TTL has ended. */
static void check_told(void)
{
  CHECK(raw_reply_within(&peer, SOON));
  CHECK_EQUAL(raw_number(&redis, "TIME"), 2);
  int64_t now = strtoll(redis.element[1].text, NULL, 10) * 1000;
  int64_t ttl = raw_number(&redis, "PTTL %s", name);
  double score = strtod(raw_text(&redis, "ZSCORE redisson_lock_timeout:{options} peer:1"), NULL);
  int64_t asks_in = (int64_t)score - 300000 - now;
  CHECK(ttl > 0 && asks_in > ttl && asks_in < ttl + 5000);
  CHECK(!raw_reply_within(&peer, 0));
}

/*
 * A waiter of Redisson's sleeps for as long as it was told. So it is told again when the longest lease
 * has ended early, and when it comes to be the first.
 */
static void test_peer_is_told(void)
{
  begin_with(3, false);
  static const uint32_t leases[] = {40000, 3000000, 600000};
  for (int i = 0; i < 3; i++)
    CHECK_EQUAL(fairlock_try_acquire(share_of(i), leases[i]), FAIRLOCK_OK);
  start(3, share_of(3));
  queue_peer();
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_OK); /* and another enters before it */
  check_told();
  AWAIT(holds(share_of(3)), service_all(MEMBERS));
  CHECK_EQUAL(fairlock_release(share_of(1)), FAIRLOCK_OK); /* which had the longest lease */
  check_told();
  uint64_t token = fairlock_token(share_of(2));
  CHECK_EQUAL(fairlock_force_release(&members[1].client.client, name, sizeof name - 1, token),
              FAIRLOCK_OK);
  check_told();
  CHECK_EQUAL(fairlock_release(share_of(2)), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(share_of(3)), FAIRLOCK_OK);
  CHECK(raw_reply_within(&peer, SOON)); /* the lock is free */
  raw_close(&peer);
  CHECK(raw_run(&redis, "DEL redisson_lock_queue:{options} redisson_lock_timeout:{options}"));
  CHECK(raw_run(&redis, "DEL fairlock:{options}"));
  end_members(MEMBERS);
}

/* Holds of their own */

/* Each has its token, its lease and its loss; the key lasts as long as the last of them. */
static void test_leases(void)
{
  int count;
  uint64_t token;
  begin_with(0, false);
  close_member(3);
  open_member(3, 0, 0, 3000, false); /* renewed for longer than its lease */
  CHECK_EQUAL(fairlock_acquire(share_of(0), FAIRLOCK_FOREVER, 2000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(share_of(1), FAIRLOCK_FOREVER, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(share_of(2), FAIRLOCK_FOREVER, 30000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(share_of(3), FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_OK);
  for (int i = 0; i < MEMBERS; i++) {
    CHECK(server_says(i, &token, &count));
    CHECK(token == fairlock_token(share_of(i)));
    CHECK_EQUAL(count, 1);
    CHECK(i == 0 || token > fairlock_token(share_of(i - 1)));
  }
  CHECK(fairlock_remaining_ms(share_of(0)) <= 2000);
  CHECK(fairlock_remaining_ms(share_of(1)) <= 60000 && fairlock_remaining_ms(share_of(2)) <= 30000);
  CHECK(fairlock_remaining_ms(share_of(1)) > 30000 && fairlock_remaining_ms(share_of(2)) > 3000);
  CHECK(raw_number(&redis, "PTTL %s", name) > 30000);
  int64_t until = now_ms() + 7000;
  while (now_ms() < until)
    service_all(MEMBERS);
  static const int losses[MEMBERS] = {1, 0, 0, 0};
  for (int i = 0; i < MEMBERS; i++)
    CHECK_EQUAL(atomic_load(&members[i].client.losses), losses[i]);
  CHECK_EQUAL(fairlock_token(share_of(0)), 0);
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(share_of(1)), FAIRLOCK_OK);
  int64_t left = raw_number(&redis, "PTTL %s", name);
  CHECK(left > 3000 && left <= 33000);
  CHECK_EQUAL(fairlock_release(share_of(2)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(3)), FAIRLOCK_OK);
  end_members(MEMBERS);
}

/* Held more than once, with a longer lease, beside another. */
static void test_reentry(void)
{
  int count = 0;
  uint64_t token;
  begin_with(2, false);
  CHECK_EQUAL(fairlock_try_acquire(share_of(0), 10000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(share_of(1), 5000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(share_of(0), 1000, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(share_of(0), 1000, 5000), FAIRLOCK_OK); /* does not shorten it */
  CHECK(fairlock_remaining_ms(share_of(0)) > 30000);
  CHECK_EQUAL(fairlock_hold_count(share_of(0)), 3);
  CHECK(server_says(0, &token, &count) && token == fairlock_token(share_of(0)));
  CHECK_EQUAL(count, 3);
  CHECK_EQUAL(fairlock_try_acquire(share_of(2), FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_OK);
  CHECK(server_says(0, &token, &count));
  CHECK_EQUAL(count, 1);
  CHECK(fairlock_token(share_of(0)) == token);
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_try_acquire(share_of(2), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(2)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(1)), FAIRLOCK_OK);
  end_members(MEMBERS);
}

/* Who waits gives up, or waits no longer: those behind it are served, it leaves nothing behind. */
static void test_cancelled(void)
{
  begin_with(2, false);
  CHECK_EQUAL(fairlock_try_acquire(share_of(0), FAIRLOCK_RENEW), FAIRLOCK_OK);
  start(1, &members[1].alone);
  start(2, share_of(2));
  CHECK_EQUAL(fairlock_acquire(share_of(3), 300, FAIRLOCK_RENEW), FAIRLOCK_TIMEOUT);
  CHECK_EQUAL(queue_length(&redis, name), 2);
  CHECK_EQUAL(fairlock_cancel(share_of(2)), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&members[2].client, share_of(2)), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(queue_length(&redis, name), 1);
  CHECK_EQUAL(fairlock_cancel(share_of(0)), FAIRLOCK_NOT_HELD); /* it does not wait */
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_OK);
  AWAIT(holds(&members[1].alone), service_all(MEMBERS));
  CHECK_EQUAL(fairlock_release(&members[1].alone), FAIRLOCK_OK);
  end_members(MEMBERS);
}

/* Tasks */

static void *acquire_here(void *context)
{
  CHECK_EQUAL(fairlock_acquire(context, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_OK);
  return NULL;
}

static void test_taken_over(void)
{
  pthread_t task;
  begin_with(0, false);
  CHECK_EQUAL(pthread_create(&task, NULL, acquire_here, share_of(0)), 0);
  CHECK_EQUAL(pthread_join(task, NULL), 0);
  CHECK_EQUAL(fairlock_try_acquire(share_of(1), FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(share_of(0));
  CHECK(token > 0);
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_WRONG_TASK);
  CHECK_EQUAL(fairlock_adopt(share_of(0)), FAIRLOCK_OK);
  CHECK(fairlock_token(share_of(0)) == token);
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_adopt(share_of(0)), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_release(share_of(1)), FAIRLOCK_OK);
  end_members(MEMBERS);
}

/*
 * Tasks that block with one client, and so on one connection: readers and a writer. What they share is
 * counted inside.
 */
enum { TASKS = 6, ROUNDS = 60, TASKS_LIMIT = 3 };

static struct fairlock_shared task_shares[TASKS];
static struct fairlock task_alone;
static atomic_int inside, alone_inside, most_inside, faults;

static void read_once(struct fairlock *handle)
{
  if (fairlock_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_OK) {
    (void)atomic_fetch_add(&faults, 1);
    return;
  }
  int beside = atomic_fetch_add(&inside, 1) + 1;
  if (beside > atomic_load(&most_inside)) atomic_store(&most_inside, beside);
  (void)atomic_fetch_add(&faults, beside > TASKS_LIMIT || atomic_load(&alone_inside) > 0);
  sleep_ms(1);
  (void)atomic_fetch_sub(&inside, 1);
  (void)atomic_fetch_add(&faults, fairlock_release(handle) != FAIRLOCK_OK);
}

static void *read_on(void *context)
{
  for (int i = 0; i < ROUNDS; i++)
    read_once(context);
  return NULL;
}

static void *write_on(void *context)
{
  for (int i = 0; i < ROUNDS / 3; i++) {
    if (fairlock_acquire(context, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_OK) {
      (void)atomic_fetch_add(&faults, 1);
      continue;
    }
    (void)atomic_fetch_add(&alone_inside, 1);
    (void)atomic_fetch_add(&faults, atomic_load(&inside) > 0);
    sleep_ms(1);
    (void)atomic_fetch_sub(&alone_inside, 1);
    (void)atomic_fetch_add(&faults, fairlock_release(context) != FAIRLOCK_OK);
  }
  return NULL;
}

static void test_blocking(void)
{
  pthread_t tasks[TASKS + 1];
  static struct client client;
  begin();
  client_open(&client, server.port);
  for (int i = 0; i < TASKS; i++) {
    CHECK_EQUAL(fairlock_init_shared(&task_shares[i], &client.client, name, TASKS_LIMIT),
                FAIRLOCK_OK);
    CHECK_EQUAL(pthread_create(&tasks[i], NULL, read_on, &task_shares[i].handle), 0);
  }
  CHECK_EQUAL(fairlock_init(&task_alone, &client.client, name), FAIRLOCK_OK);
  CHECK_EQUAL(pthread_create(&tasks[TASKS], NULL, write_on, &task_alone), 0);
  for (int i = 0; i <= TASKS; i++)
    CHECK_EQUAL(pthread_join(tasks[i], NULL), 0);
  printf("# at most %d at a time\n", atomic_load(&most_inside));
  CHECK_EQUAL(atomic_load(&faults), 0);
  CHECK(atomic_load(&most_inside) > 1);
  for (int i = 0; i < TASKS; i++)
    CHECK_EQUAL(fairlock_deinit(&task_shares[i].handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&task_alone), FAIRLOCK_OK);
  client_close(&client);
  CHECK(nothing_left(&redis, name));
}

const struct check_test check_tests[] = {
    {"shared options: kept beside another", test_kept_beside},
    {"shared options: kept, and recalled", test_kept_recalled},
    {"shared options: kept, and another limit", test_kept_other_limit},
    {"shared options: kept, and asked", test_kept_asked},
    {"shared options: one of several is asked", test_asked},
    {"shared options: a waiter of Redisson's", test_peer_is_told},
    {"shared options: leases of their own", test_leases},
    {"shared options: re-entry", test_reentry},
    {"shared options: cancelled and timed out", test_cancelled},
    {"shared options: taken over", test_taken_over},
    {"shared options: tasks that block", test_blocking},
    {NULL, NULL},
};
