/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads on one client: acquire, try, time out, are cancelled, re-enter and release at
 * random, while others poll, inspect and cut the connection. What the lock protects is a plain
 * counter, so that a second holder shows in it, and, under the thread sanitizer, a missing barrier.
 * And a pool of threads, in which one acquires and another one releases.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "support/proxy.h"

#define THREADS 8
#define ROUNDS  2000
#define LIMIT   5000 /* ms; whatever comes first */

static struct client client;

/* Guarded by the lock "stress" alone. */
static int inside;
static long held_rounds;
static uint64_t last_token;

static struct fairlock handles[THREADS];
static atomic_int bad, acquired, cancelled, ended;
static int64_t limit;

static uint32_t next_random(uint32_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

/* Notes something that must not happen. */
static void complain(const char *what, int status)
{
  printf("# %s: %s\n", what, fairlock_status_name(status));
  (void)atomic_fetch_add(&bad, 1);
}

/* What a holder does. The token must rise with each hold. */
static void work(struct fairlock *handle)
{
  if (inside++ != 0) complain("a second holder", FAIRLOCK_OK);
  held_rounds++;
  uint64_t token = fairlock_token(handle);
  if (token <= last_token) complain("the token did not rise", FAIRLOCK_OK);
  last_token = token;
  if (--inside != 0) complain("a second holder", FAIRLOCK_OK);
}

static bool may_break; /* the connection, and with it a wait that ends just then */

static bool expected(int status)
{
  if (status == FAIRLOCK_UNREACHABLE) return may_break;
  return status == FAIRLOCK_OK || status == FAIRLOCK_BUSY || status == FAIRLOCK_TIMEOUT ||
         status == FAIRLOCK_CANCELLED;
}

static void one_round(struct fairlock *handle, uint32_t *random)
{
  uint32_t what = next_random(random) % 8;
  uint32_t wait = what == 0 ? 0 : what < 4 ? next_random(random) % 20 + 1 : FAIRLOCK_FOREVER;
  int status = fairlock_acquire(handle, wait, what % 2 == 0 ? 10000 : FAIRLOCK_RENEW);
  if (!expected(status)) complain("acquire", status);
  if (status == FAIRLOCK_CANCELLED) (void)atomic_fetch_add(&cancelled, 1);
  if (status != FAIRLOCK_OK) return;
  (void)atomic_fetch_add(&acquired, 1);
  bool again = what == 5;
  if (again && (status = fairlock_acquire(handle, 0, FAIRLOCK_RENEW)) != FAIRLOCK_OK)
    complain("re-entry", status);
  work(handle);
  if (again && (status = fairlock_release(handle)) != FAIRLOCK_OK)
    complain("partial release", status);
  status = fairlock_release(handle);
  /* sent twice, and others have held since the first time */
  if (status == FAIRLOCK_UNKNOWN && may_break) return;
  if (status != FAIRLOCK_OK) complain("release", status);
}

static void *run_rounds(void *context)
{
  struct fairlock *handle = context;
  uint32_t random = (uint32_t)(handle - handles) * 7919 + 12345;
  for (int i = 0; i < ROUNDS && now_ms() < limit; i++)
    one_round(handle, &random);
  (void)atomic_fetch_add(&ended, 1);
  return NULL;
}

/* Cancels whoever waits, and looks at what there is to look at. */
static void *disturb(void *context)
{
  uint32_t random = 99;
  (void)context;
  while (atomic_load(&ended) < THREADS) {
    struct fairlock *handle = &handles[next_random(&random) % THREADS];
    uint32_t what = next_random(&random) % 4;
    if (what == 0) (void)fairlock_cancel(handle);
    else if (what == 1) (void)fairlock_remaining_ms(handle);
    else if (what == 2) (void)fairlock_poll(&client.client, 1);
    else (void)inspect(&client, "stress");
    sleep_ms((int)(next_random(&random) % 3));
  }
  return NULL;
}

static void *run_client(void *context)
{
  (void)context;
  fairlock_run(&client.client);
  return NULL;
}

/*
 * What was under way when the connection broke may still arrive for 2 s, and is undone as soon as
 * it can no longer be carried out: nothing stays for longer than that.
 */
static void settle(void)
{
  int64_t until = now_ms() + SOON;
  int64_t empty_since = now_ms();
  while (now_ms() - empty_since < 3000 && now_ms() < until) {
    service_for(&client, 100);
    if (raw_number(&redis, "EXISTS stress") == 1 || queue_length(&redis, "stress") > 0)
      empty_since = now_ms();
  }
}

static void stress(int port, bool with_runner, void (*meanwhile)(void))
{
  pthread_t thread[THREADS], runner, disturber;
  inside = 0;
  held_rounds = 0;
  last_token = 0;
  atomic_store(&bad, 0);
  atomic_store(&acquired, 0);
  atomic_store(&cancelled, 0);
  atomic_store(&ended, 0);
  limit = now_ms() + LIMIT;
  may_break = meanwhile != NULL;
  client_open(&client, port);
  CHECK_EQUAL(fairlock_connect(&client.client),
              FAIRLOCK_OK); /* else short waits may end before there is a connection */
  for (int i = 0; i < THREADS; i++)
    CHECK_EQUAL(fairlock_init(&handles[i], &client.client, "stress"), FAIRLOCK_OK);
  if (with_runner) CHECK_EQUAL(pthread_create(&runner, NULL, run_client, NULL), 0);
  CHECK_EQUAL(pthread_create(&disturber, NULL, disturb, NULL), 0);
  for (int i = 0; i < THREADS; i++)
    CHECK_EQUAL(pthread_create(&thread[i], NULL, run_rounds, &handles[i]), 0);
  if (meanwhile != NULL) meanwhile();
  for (int i = 0; i < THREADS; i++)
    CHECK_EQUAL(pthread_join(thread[i], NULL), 0);
  CHECK_EQUAL(pthread_join(disturber, NULL), 0);
  if (with_runner) {
    fairlock_stop(&client.client);
    CHECK_EQUAL(pthread_join(runner, NULL), 0);
  }
  CHECK_EQUAL(atomic_load(&bad), 0);
  CHECK_EQUAL(held_rounds, atomic_load(&acquired));
  CHECK(atomic_load(&acquired) > 0);
  CHECK_EQUAL(atomic_load(&client.losses), 0);
  if (may_break) settle();
  for (int i = 0; i < THREADS; i++)
    CHECK_EQUAL(fairlock_deinit(&handles[i]), FAIRLOCK_OK);
  client_close(&client);
  CHECK(nothing_left(&redis, "stress"));
  CHECK_EQUAL(listeners(&redis, "stress"), 0);
}

static void test_without_runner(void)
{
  begin();
  stress(server.port, false, NULL);
}

static void test_with_runner(void)
{
  begin();
  stress(server.port, true, NULL);
}

static struct proxy proxy;

static void cut_often(void)
{
  while (atomic_load(&ended) < THREADS) {
    sleep_ms(300);
    proxy_sever(&proxy);
  }
}

/* The connection is cut again and again: no call hangs, nothing is held twice. */
static void test_cut(void)
{
  begin();
  for (int runner = 0; runner < 2; runner++) {
    proxy_start(&proxy, server.port);
    stress(proxy.port, runner == 1, cut_often);
    proxy_stop(&proxy);
  }
}

/* While a task waits without end, others come and go on the same client. */
struct waiting {
  struct fairlock handle;
  pthread_t thread;
  int status;
};

static void *wait_long(void *context)
{
  struct waiting *self = context;
  self->status = fairlock_acquire(&self->handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  if (self->status == FAIRLOCK_OK) self->status = fairlock_release(&self->handle);
  return NULL;
}

static void test_different_locks(void)
{
  static struct waiting waiting[4];
  static char name[4][8];
  struct fairlock holder[4], quick;
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&quick, &client.client, "quick"), FAIRLOCK_OK);
  for (int i = 0; i < 4; i++) {
    memcpy(name[i], "long:0", 7);
    name[i][5] = (char)('0' + i);
    CHECK_EQUAL(fairlock_init(&holder[i], &client.client, name[i]), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_init(&waiting[i].handle, &client.client, name[i]), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_try_acquire(&holder[i], FAIRLOCK_RENEW), FAIRLOCK_OK);
    CHECK_EQUAL(pthread_create(&waiting[i].thread, NULL, wait_long, &waiting[i]), 0);
    CHECK(queue_reaches(&redis, name[i], 1));
  }
  int64_t began = now_ms();
  for (int i = 0; i < 50; i++) {
    CHECK_EQUAL(fairlock_acquire(&quick, SOON, FAIRLOCK_RENEW), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_release(&quick), FAIRLOCK_OK);
  }
  CHECK(now_ms() - began < SOON);
  for (int i = 3; i >= 0; i--) {
    CHECK_EQUAL(fairlock_release(&holder[i]), FAIRLOCK_OK);
    CHECK_EQUAL(pthread_join(waiting[i].thread, NULL), 0);
    CHECK_EQUAL(waiting[i].status, FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_deinit(&holder[i]), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_deinit(&waiting[i].handle), FAIRLOCK_OK);
    CHECK(nothing_left(&redis, name[i]));
  }
  CHECK_EQUAL(fairlock_deinit(&quick), FAIRLOCK_OK);
  client_close(&client);
}

/* fairlock_run() ends when it is told to, and others service the client after that. */
static void test_stop(void)
{
  pthread_t runner;
  struct fairlock handle;
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "stop"), FAIRLOCK_OK);
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(pthread_create(&runner, NULL, run_client, NULL), 0);
    CHECK_EQUAL(fairlock_acquire(&handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
    int64_t began = now_ms();
    fairlock_stop(&client.client);
    CHECK_EQUAL(pthread_join(runner, NULL), 0);
    CHECK(now_ms() - began < SOON);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  }
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
}

static struct port_transport real;
static atomic_int send_blocks; /* so often */
static atomic_bool receives;

static int block_at_first(void *context, const void *data, size_t size)
{
  if (atomic_load(&send_blocks) > 0) {
    atomic_fetch_sub(&send_blocks, 1);
    return PORT_WOULD_BLOCK;
  }
  return real.send(context, data, size);
}

/* Notices nothing but what comes: it was called before the send() that would have blocked. */
static int receive_only(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  int got;
  int64_t end = now_ms() + 3 * SOON;
  atomic_store(&receives, true);
  do
    got = real.recv(context, data, size, timeout_ms);
  while (got == PORT_WOULD_BLOCK && atomic_load(&send_blocks) > 0 && now_ms() < end);
  return got;
}

/* A send() would block while another task is inside recv(): it is tried again nevertheless. */
static void test_send_blocks_beside(void)
{
  pthread_t runner;
  struct fairlock handle;
  begin();
  client_open(&client, server.port);
  real = client.socket.transport;
  client.socket.transport.send = block_at_first;
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "beside"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  client.socket.transport.recv = receive_only;
  atomic_store(&receives, false);
  CHECK_EQUAL(pthread_create(&runner, NULL, run_client, NULL), 0);
  while (!atomic_load(&receives))
    sleep_ms(1);
  atomic_store(&send_blocks, 4);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(now_ms() - began < SOON); /* not only when recv() should have ended */
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  fairlock_stop(&client.client);
  CHECK_EQUAL(pthread_join(runner, NULL), 0);
  client.socket.transport.recv = real.recv;
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
}

/* What passes handles from thread to thread, and with them what the giver has written. */
struct queue {
  pthread_mutex_t mutex;
  pthread_cond_t filled;
  struct fairlock *items[THREADS];
  int size;
};

#define EMPTY_QUEUE                                                                                \
  {                                                                                                \
    .mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER                         \
  }

static void put(struct queue *queue, struct fairlock *handle)
{
  (void)pthread_mutex_lock(&queue->mutex);
  queue->items[queue->size++] = handle;
  (void)pthread_cond_signal(&queue->filled);
  (void)pthread_mutex_unlock(&queue->mutex);
}

static struct fairlock *take(struct queue *queue)
{
  (void)pthread_mutex_lock(&queue->mutex);
  while (queue->size == 0)
    (void)pthread_cond_wait(&queue->filled, &queue->mutex);
  struct fairlock *handle = queue->items[--queue->size];
  (void)pthread_mutex_unlock(&queue->mutex);
  return handle;
}

static struct queue held = EMPTY_QUEUE;
static struct queue unheld = EMPTY_QUEUE;

/* One of the pool: works for the holds that others have acquired. NULL ends it. */
static void *work_for_others(void *context)
{
  (void)context;
  for (struct fairlock *handle = take(&held); handle != NULL; handle = take(&held)) {
    int status = fairlock_release(handle);
    if (status != FAIRLOCK_WRONG_TASK) complain("release before taking over", status);
    status = fairlock_adopt(handle);
    if (status != FAIRLOCK_OK) complain("take over", status);
    work(handle);
    status = fairlock_release(handle);
    if (status != FAIRLOCK_OK) complain("release", status);
    put(&unheld, handle);
  }
  return NULL;
}

static void test_pool(void)
{
  enum { POOL = 4, HANDLES = 3, HOLDS = 500 };
  pthread_t thread[POOL];
  begin();
  client_open(&client, server.port);
  inside = 0;
  held_rounds = 0;
  last_token = 0;
  atomic_store(&bad, 0);
  for (int i = 0; i < HANDLES; i++) {
    CHECK_EQUAL(fairlock_init(&handles[i], &client.client, "pool"), FAIRLOCK_OK);
    put(&unheld, &handles[i]);
  }
  for (int i = 0; i < POOL; i++)
    CHECK_EQUAL(pthread_create(&thread[i], NULL, work_for_others, NULL), 0);
  for (int i = 0; i < HOLDS; i++) {
    struct fairlock *handle = take(&unheld);
    CHECK_EQUAL(fairlock_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_OK);
    put(&held, handle);
  }
  for (int i = 0; i < HANDLES; i++)
    (void)take(&unheld);
  for (int i = 0; i < POOL; i++)
    put(&held, NULL);
  for (int i = 0; i < POOL; i++)
    CHECK_EQUAL(pthread_join(thread[i], NULL), 0);
  CHECK_EQUAL(atomic_load(&bad), 0);
  CHECK_EQUAL(held_rounds, HOLDS);
  for (int i = 0; i < HANDLES; i++)
    CHECK_EQUAL(fairlock_deinit(&handles[i]), FAIRLOCK_OK);
  client_close(&client);
  CHECK(nothing_left(&redis, "pool"));
}

const struct check_test check_tests[] = {
    {"threads: stress without fairlock_run", test_without_runner},
    {"threads: stress with fairlock_run", test_with_runner},
    {"threads: stress with a connection cut often", test_cut},
    {"threads: waits on different locks of one client", test_different_locks},
    {"threads: fairlock_stop", test_stop},
    {"threads: a send that blocks beside a recv", test_send_blocks_beside},
    {"threads: a pool takes holds over", test_pool},
    {NULL, NULL},
};
