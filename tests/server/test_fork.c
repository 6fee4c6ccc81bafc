/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is forked while it has a client: the child can do nothing with the client but give
 * it back, and the parent notices nothing of it, whatever its other threads did at the moment of
 * the fork.
 */
#define _GNU_SOURCE 1 /* unshare() */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "fairlock_follow.h"
#include "fairlock_share.h"
#include "harness.h"
#include "support/counters.h"

#define THREADS  4
#define CHILDREN 40

static struct client client;
static struct fairlock door;

/* What a child found; in memory that both processes have. */
static struct answers {
  int wrong; /* calls that said something else than they have to */
  int line;  /* of the first of them */
  bool unpermitted;
  bool done;
} * answers;

static void expect(bool right, int line)
{
  if (right) return;
  if (answers->wrong++ == 0) answers->line = line;
}

#define EXPECT(condition) expect((condition), __LINE__)
#define REFUSED(call)     EXPECT((call) == FAIRLOCK_FORKED)

static bool report(const struct fairlock_report *part, void *context)
{
  (void)part;
  (void)context;
  return true;
}

/* Each function with a handle that the parent may hold. */
static void ask_all(struct fairlock *handle)
{
  struct fairlock other;
  struct fairlock_shared shared;
  struct fairlock_topology topology = {0};
  char text[FAIRLOCK_ERROR_SIZE + FAIRLOCK_HOLDER_ID_SIZE];
  EXPECT(fairlock_remaining_ms(handle) == 0);
  EXPECT(fairlock_token(handle) == 0);
  EXPECT(fairlock_hold_count(handle) == 0);
  REFUSED(fairlock_result(handle));
  REFUSED(fairlock_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW));
  REFUSED(fairlock_try_acquire(handle, FAIRLOCK_RENEW));
  REFUSED(fairlock_start_acquire(handle, 0, FAIRLOCK_RENEW));
  REFUSED(fairlock_cancel(handle));
  REFUSED(fairlock_release(handle));
  REFUSED(fairlock_start_release(handle));
  REFUSED(fairlock_start_force_release(handle, NULL));
  REFUSED(fairlock_start_ask_release(handle, NULL));
  REFUSED(fairlock_start_inspect(handle, report, NULL));
  REFUSED(fairlock_downgrade(handle, &shared, 1000));
  REFUSED(fairlock_start_downgrade(handle, &shared, 1000));
  REFUSED(fairlock_start_deinit(handle));
  REFUSED(fairlock_deinit(handle));
  REFUSED(fairlock_connect(&client.client));
  REFUSED(fairlock_follow(&client.client, &topology));
  REFUSED(fairlock_init(&other, &client.client, "other"));
  REFUSED(fairlock_force_release(&client.client, "door", 4, FAIRLOCK_ANY_TOKEN));
  REFUSED(fairlock_ask_release(&client.client, "door", 4, FAIRLOCK_ANY_TOKEN));
  REFUSED(fairlock_inspect(&client.client, "door", 4, report, NULL));
  REFUSED(fairlock_server_status(&client.client));
  EXPECT(fairlock_poll(&client.client, 1000) > 60000);
  EXPECT(fairlock_wants(&client.client) == 0);
  fairlock_stop(&client.client);
  REFUSED(fairlock_run(&client.client));
  fairlock_error(&client.client, text, FAIRLOCK_ERROR_SIZE);
  EXPECT(text[0] == 0);
  fairlock_id(handle, text, FAIRLOCK_HOLDER_ID_SIZE);
  EXPECT(text[0] == 0);
  EXPECT(counters_of(&client.client).requests == 0);
}

/*
 * In the child: what the parent has is of no use, and a client of the child's own, if asked for, is.
 */
static void child(int with_client, void *context)
{
  static struct client own;
  struct fairlock mine;
  ask_all(context);
  fairlock_client_deinit(&client.client);
  answers->done = true;
  if (!with_client) return;
  answers->done = false;
  client_open(&own, server.port);
  EXPECT(fairlock_init(&mine, &own.client, "child") == FAIRLOCK_OK);
  EXPECT(fairlock_try_acquire(&mine, 10000) == FAIRLOCK_OK);
  EXPECT(fairlock_token(&mine) > 0);
  EXPECT(fairlock_release(&mine) == FAIRLOCK_OK);
  EXPECT(fairlock_deinit(&mine) == FAIRLOCK_OK);
  client_close(&own);
  answers->done = true;
}

/* Runs one child to its end, which has to come. */
static bool one_child(struct fairlock *handle, bool with_client)
{
  memset(answers, 0, sizeof *answers);
  pid_t pid = spawn(child, with_client, handle);
  bool ended = CHECK_EQUAL(reap(pid), 0);
  slay(pid);
  if (!CHECK_EQUAL(answers->wrong, 0)) CHECK_EQUAL(answers->line, 0);
  return CHECK(answers->done) && ended && answers->wrong == 0;
}

static void start(void)
{
  begin();
  if (answers == NULL) answers = share(sizeof *answers);
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&door, &client.client, "door"), FAIRLOCK_OK);
}

/* The hold stays the parent's, on the connection that it has. */
static void test_holder(void)
{
  start();
  CHECK_EQUAL(fairlock_acquire(&door, 0, 60000), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&door);
  int64_t scripts = scripts_run(&redis);
  (void)one_child(&door, false);
  CHECK_EQUAL(scripts_run(&redis), scripts);
  (void)one_child(&door, true);
  CHECK(fairlock_remaining_ms(&door) > 0);
  CHECK(fairlock_token(&door) == token);
  struct picture picture = inspect(&client, "door");
  CHECK(picture.held);
  CHECK(picture.token == token);
  CHECK_EQUAL(fairlock_release(&door), FAIRLOCK_OK);
  CHECK_EQUAL(counters_of(&client.client).connections, 1);
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  client_close(&client);
}

/*
 * From here on, a child is process 1 of a new PID namespace. Those who are not root may make one in a
 * namespace of users, where the system lets them.
 */
static bool separate(void)
{
  return unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
}

/* The exit status of such a child that calls run(); 0 is all right. */
static int run_as_process_1(void (*run)(void))
{
  int status = -1;
  if (!separate()) {
    answers->unpermitted = true;
    return 0;
  }
  pid_t pid = fork();
  if (pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    run();
    _exit(0);
  }
  return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static void child_process_1(void)
{
  EXPECT(getpid() == 1);
  child(false, &door);
}

/* A process 1 that holds, as the program of a container does. */
static void holding_process_1(void)
{
  EXPECT(getpid() == 1);
  client_open(&client, server.port);
  EXPECT(fairlock_init(&door, &client.client, "door") == FAIRLOCK_OK);
  EXPECT(fairlock_acquire(&door, 0, 60000) == FAIRLOCK_OK);
  EXPECT(run_as_process_1(child_process_1) == 0);
  EXPECT(fairlock_remaining_ms(&door) > 0);
  EXPECT(fairlock_release(&door) == FAIRLOCK_OK);
  EXPECT(fairlock_deinit(&door) == FAIRLOCK_OK);
  client_close(&client);
}

static void make_process_1(int index, void *context)
{
  (void)index;
  (void)context;
  EXPECT(run_as_process_1(holding_process_1) == 0);
}

/* The child has the number of its parent. */
static void test_namespaces(void)
{
  begin();
  if (answers == NULL) answers = share(sizeof *answers);
  memset(answers, 0, sizeof *answers);
  pid_t pid = spawn(make_process_1, 0, NULL);
  CHECK_EQUAL(reap(pid), 0);
  slay(pid);
  if (!CHECK_EQUAL(answers->wrong, 0)) CHECK_EQUAL(answers->line, 0);
  if (answers->unpermitted) check_skip("a new PID namespace is not permitted");
  else CHECK(answers->done);
}

/* A wait goes on in the parent. */
static void test_waiter(void)
{
  start();
  CHECK(raw_run(&redis, "HSET door someone:1 1"));
  CHECK(raw_run(&redis, "PEXPIRE door 60000"));
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, 10000), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "door") == 1, service_for(&client, 10));
  (void)one_child(&door, true);
  CHECK_EQUAL(queue_length(&redis, "door"), 1);
  CHECK_EQUAL(fairlock_result(&door), FAIRLOCK_PENDING);
  CHECK(raw_run(&redis, "DEL door"));
  CHECK_EQUAL(await_result(&client, &door), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&door), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  CHECK_EQUAL(counters_of(&client.client).connections, 1);
  client_close(&client);
}

static void *runs(void *context)
{
  fairlock_run(context);
  return NULL;
}

static atomic_bool over;

static void *works(void *context)
{
  struct fairlock *handle = context;
  while (!atomic_load(&over)) {
    if (fairlock_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_OK) return NULL;
    if (fairlock_release(handle) != FAIRLOCK_OK) return NULL;
  }
  return handle;
}

/* Whatever the other threads have locked at that moment, the child does not wait for it. */
static void test_threads(void)
{
  static struct fairlock handles[THREADS];
  pthread_t runner;
  pthread_t threads[THREADS];
  void *result;
  start();
  atomic_store(&over, false);
  CHECK_EQUAL(pthread_create(&runner, NULL, runs, &client.client), 0);
  for (int i = 0; i < THREADS; i++) {
    CHECK_EQUAL(fairlock_init(&handles[i], &client.client, i < 2 ? "one" : "two"), FAIRLOCK_OK);
    CHECK_EQUAL(pthread_create(&threads[i], NULL, works, &handles[i]), 0);
  }
  for (int i = 0; i < CHILDREN; i++)
    if (!one_child(&handles[i % THREADS], i % 8 == 0)) break;
  atomic_store(&over, true);
  for (int i = 0; i < THREADS; i++) {
    CHECK_EQUAL(pthread_join(threads[i], &result), 0);
    CHECK(result == &handles[i]);
    CHECK_EQUAL(fairlock_deinit(&handles[i]), FAIRLOCK_OK);
  }
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  fairlock_stop(&client.client);
  CHECK_EQUAL(pthread_join(runner, NULL), 0);
  CHECK_EQUAL(counters_of(&client.client).connections, 1);
  client_close(&client);
}

static struct port_posix plug;

static void *connects(void *context)
{
  (void)context;
  while (!atomic_load(&over)) {
    int status;
    do
      status = plug.transport.connect(&plug, 100);
    while (status == PORT_WOULD_BLOCK);
    plug.transport.close(&plug);
  }
  return NULL;
}

/* The child closes what it finds, as port.h allows, wherever the other thread was with it. */
static void closes(int index, void *context)
{
  (void)index;
  (void)context;
  plug.transport.close(&plug);
  plug.transport.close(&plug);
}

static void test_while_connecting(void)
{
  pthread_t thread;
  char service[16];
  start();
  (void)snprintf(service, sizeof service, "%d", server.port);
  port_posix_tcp(&plug, "127.0.0.1", service);
  atomic_store(&over, false);
  CHECK_EQUAL(pthread_create(&thread, NULL, connects, NULL), 0);
  for (int i = 0; i < 2000; i++) {
    pid_t pid = spawn(closes, 0, NULL);
    bool ended = CHECK_EQUAL(reap(pid), 0);
    slay(pid);
    if (!ended) break;
  }
  atomic_store(&over, true);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  plug.transport.close(&plug);
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  client_close(&client);
}

const struct check_test check_tests[] = {
    {"fork: beside a hold", test_holder},
    {"fork: as process 1 of a PID namespace", test_namespaces},
    {"fork: beside a wait", test_waiter},
    {"fork: beside threads", test_threads},
    {"fork: while another thread connects", test_while_connecting},
    {0}};
