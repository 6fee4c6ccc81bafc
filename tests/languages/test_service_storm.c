/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixteen threads, two clients for other languages, three locks, and a server that is stopped, killed
 * and cuts its clients off: locks are acquired, waited for, cancelled, released and freed in whatever
 * state they are, threads read events and handle signals, and in the end each client is closed in the
 * middle of that. The sanitizers look on.
 *
 *     test_service_storm [NAME]    SEED=number: the same choices again, as far as time allows
 */
#include "scene.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 16, CLIENTS = 2, LOCKS = 3, SHARED = 2, LIMIT = 3 };

static const char *const names[LOCKS] = {"anvil", "bench", "crane"};

static struct fls_client *clients[CLIENTS];
static unsigned seed;
static atomic_bool ending;
static atomic_bool amnesia;        /* the server has forgotten who holds */
static atomic_int inside[LOCKS];   /* who hold, as they believe */
static atomic_int intruders;       /* holders too many */
static atomic_int unexpected;      /* statuses */
static atomic_int last_unexpected; /* one of them */
static atomic_int holds, events;

struct worker {
  pthread_t thread;
  struct fls_client *client;
  unsigned state;
};
static struct worker workers[THREADS];

static unsigned draw(struct worker *worker, unsigned below)
{
  worker->state ^= worker->state << 13;
  worker->state ^= worker->state >> 17;
  worker->state ^= worker->state << 5;
  return worker->state % below;
}

static void expect(int status)
{
  switch (status) {
  case FLS_OK:
  case FAIRLOCK_BUSY:
  case FAIRLOCK_TIMEOUT:
  case FAIRLOCK_CANCELLED:
  case FAIRLOCK_LOST:
  case FAIRLOCK_UNKNOWN:
  case FAIRLOCK_UNREACHABLE:
  case FAIRLOCK_UNAVAILABLE:
    return;
  default:
    atomic_store(&last_unexpected, status);
    atomic_fetch_add(&unexpected, 1);
  }
}

/* Waits for the end, through signals. When all end, others may have left locks that they hold. */
static int wait_for_end(struct fls_lock *lock, int status)
{
  while (status == FLS_PENDING) {
    status = fls_wait(lock, 200);
    if (atomic_load(&ending)) (void)fls_cancel(lock);
  }
  expect(status);
  return status;
}

/* Holds the lock for a moment. Leases are longer than any pause here. */
static void work(struct worker *worker, struct fls_lock *lock, int name)
{
  int most = name == SHARED ? LIMIT : 1;
  bool known = !atomic_load(&amnesia);
  int others = atomic_fetch_add(&inside[name], 1);
  sleep_ms(draw(worker, 3));
  atomic_fetch_sub(&inside[name], 1);
  if (known && !atomic_load(&amnesia) && others >= most) atomic_fetch_add(&intruders, 1);
  if (known && !atomic_load(&amnesia) && fls_held(lock) != fls_token(lock))
    atomic_fetch_add(&unexpected, 1);
  atomic_fetch_add(&holds, 1);
}

/* One lock, from its beginning to its end, which comes anywhere. */
static void live(struct worker *worker)
{
  static const uint32_t waits[] = {0, 5, 100, FLS_FOREVER};
  int name = (int)draw(worker, LOCKS);
  int event = (int)draw(worker, 2);
  struct fls_lock *lock = name == SHARED ? make_shared(worker->client, names[name], LIMIT)
                                         : make_lock(worker->client, names[name], 1);
  int status = fls_acquire(lock, waits[draw(worker, 4)], FLS_RENEW, event);
  unsigned end = draw(worker, 8);
  if (end == 0) {        /* at once */
  } else if (end == 1) { /* while it waits, or is being granted */
    sleep_ms(draw(worker, 4));
  } else if (end == 2) { /* the same after a wait */
    (void)fls_wait(lock, draw(worker, 4));
  } else if (end == 3) {
    (void)fls_wait(lock, draw(worker, 4));
    (void)fls_cancel(lock);
    status = wait_for_end(lock, FLS_PENDING);
    if (status == FLS_OK) work(worker, lock, name);
  } else {
    status = wait_for_end(lock, status);
    if (status == FLS_OK) work(worker, lock, name);
    if (status == FLS_OK && end > 4) { /* 4: while it holds */
      status = fls_release(lock, event);
      if (end > 5) (void)wait_for_end(lock, status); /* 5: while it releases */
    }
  }
  if (atomic_load(&ending) && draw(worker, 2) == 0) return; /* fls_close() frees it */
  fls_free(lock);
}

static void *work_on(void *context)
{
  struct worker *worker = context;
  while (!atomic_load(&ending))
    live(worker);
  return NULL;
}

static void *read_events(void *context)
{
  struct fls_event event = {.size = sizeof event};
  while (!atomic_load(&ending)) {
    if (fls_next(context, FLS_FOREVER, &event) == 0) continue;
    atomic_fetch_add(&events, 1);
    if ((event.what & FLS_ENDED) != 0) expect(event.status);
  }
  return NULL;
}

static void on_signal(int number)
{
  (void)number;
}

enum finale { CALM, CUT, STOPPED, KILLED, FINALES };

static void cut_off(void)
{
  CHECK(raw_run(&redis, "CLIENT KILL TYPE normal"));
  (void)raw_run(&redis, "CLIENT KILL TYPE pubsub");
}

/* What happens to the server, and to threads, for some seconds. */
static void rage(int steps)
{
  for (int step = 1; step <= steps; step++) {
    sleep_ms(50);
    (void)pthread_kill(workers[(unsigned)step % THREADS].thread, SIGUSR1);
    if (step % 5 == 0) cut_off();
    if (step % 11 == 0) {
      CHECK_EQUAL(kill(server.pid, SIGSTOP), 0);
      sleep_ms(150);
      CHECK_EQUAL(kill(server.pid, SIGCONT), 0);
    }
  }
}

static void open_again(void)
{
  raw_close(&redis);
  if (!raw_open(&redis, server.port)) give_up("no connection to redis-server");
}

/* The threads work for a while, and end as the clients do. */
static void storm(int steps, bool restart, enum finale finale)
{
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  const struct fls_options options = {.waiter_ms = 2000, .offline_ms = 5000, .listen = 1};
  const char *given = getenv("SEED");
  pthread_t readers[CLIENTS];
  begin();
  seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : (unsigned)now_us();
  CHECK_EQUAL(sigaction(SIGUSR1, &action, NULL), 0);
  atomic_store(&ending, false);
  atomic_store(&amnesia, false);
  atomic_store(&holds, 0);
  atomic_store(&events, 0);
  for (int i = 0; i < CLIENTS; i++) {
    clients[i] = open_service(&options);
    CHECK_EQUAL(pthread_create(&readers[i], NULL, read_events, clients[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i].client = clients[i % CLIENTS];
    workers[i].state = seed * 2654435761U + i + 1;
    CHECK_EQUAL(pthread_create(&workers[i].thread, NULL, work_on, &workers[i]), 0);
  }
  rage(steps);
  if (restart) {
    atomic_store(&amnesia, true);
    server_restart(&server);
    open_again();
    rage(steps / 2);
  }
  atomic_store(&ending, true);
  for (int i = 0; i < CLIENTS; i++)
    fls_stop(clients[i]);
  for (int i = 0; i < CLIENTS; i++)
    CHECK_EQUAL(pthread_join(readers[i], NULL), 0);
  for (int i = 0; i < THREADS; i++)
    CHECK_EQUAL(pthread_join(workers[i].thread, NULL), 0);
  if (finale == CUT) cut_off();
  if (finale == STOPPED) CHECK_EQUAL(kill(server.pid, SIGSTOP), 0);
  if (finale == KILLED) server_kill(&server);
  for (int i = 0; i < CLIENTS; i++)
    fls_close(clients[i], finale < STOPPED ? SOON : 50);
  if (finale == STOPPED) CHECK_EQUAL(kill(server.pid, SIGCONT), 0);
  if (finale == KILLED) {
    server_restart(&server);
    open_again();
  }
  for (int i = 0; i < LOCKS && finale < STOPPED; i++)
    CHECK(nothing_left(&redis, names[i]));
  CHECK(atomic_load(&holds) > 0);
  CHECK_EQUAL(atomic_load(&intruders), 0);
  if (!CHECK_EQUAL(atomic_load(&unexpected), 0))
    printf("# %s\n", fls_status_name(atomic_load(&last_unexpected)));
  printf("# storm: seed %u, %d holds, %d events\n", seed, atomic_load(&holds),
         atomic_load(&events));
}

static void test_cuts(void)
{
  storm(40, false, CALM);
  storm(20, false, CUT);
}

static void test_stopped(void)
{
  storm(20, false, STOPPED);
}

static void test_restarts(void)
{
  storm(20, true, CALM);
}

static void test_killed(void)
{
  storm(10, true, KILLED);
}

const struct check_test check_tests[] = {{"cuts", test_cuts},
                                         {"stopped", test_stopped},
                                         {"restarts", test_restarts},
                                         {"killed", test_killed},
                                         {0}};
