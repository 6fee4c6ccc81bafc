/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The examples of boards/examples/loops, in which the lock lives in an event loop of the program's
 * own: they acquire, wait behind another holder and release, even if the server restarts meanwhile.
 *
 * While they wait they sleep, and wake twice for each heartbeat: once by the clock, to send it, and
 * once by the socket, because its reply came. That is the minimum, since a reply may be a grant,
 * and the socket does not tell which. The suite counts three things: the heartbeats, by the scripts
 * that the server ran; how often the program slept, by what the kernel notes of it (a process that
 * sleeps gives up the processor voluntarily); and what the program says.
 *
 * A loop with many locks does not look at each: it is told which have ended.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#ifndef EXAMPLES
#define EXAMPLES "build/examples" /* the makefile says where they really are */
#endif

/* A heartbeat each 800 ms, for as long as ten of them. */
#define WAITER_MS    "2000"
#define HEARTBEAT_MS 800
#define WAIT_MS      8000
/* the socket also wakes it for: connected, greeted, subscribed, handed over, more */
#define BESIDES 5

static struct client holder;
static struct fairlock held;

struct program {
  pid_t pid;
  FILE *lines;
};

static bool program_run(struct program *program, const char *const words[])
{
  int output;
  program->pid = spawn_program(words, NULL, &output);
  program->lines = fdopen(output, "r");
  return CHECK(program->lines != NULL);
}

/* scheme: that of the URL which the example takes; NULL: it takes a port */
static bool program_start(struct program *program, const char *path, const char *scheme)
{
  char url[64];
  const char *words[] = {path, scheme != NULL ? url : server.port_text, "loop", "200", WAITER_MS,
                         NULL};
  (void)snprintf(url, sizeof url, "%s127.0.0.1:%s", scheme != NULL ? scheme : "", server.port_text);
  return program_run(program, words);
}

static void program_end(struct program *program)
{
  CHECK_EQUAL(reap(program->pid), 0);
  if (program->lines != NULL) (void)fclose(program->lines);
}

static bool says(struct program *program, char line[100])
{
  return CHECK(fgets(line, 100, program->lines) != NULL);
}

/* How often the program has gone to sleep. */
static long sleeps(const struct program *program)
{
  char path[40], line[100];
  long count = -1;
  (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)program->pid);
  FILE *status = fopen(path, "r");
  while (status != NULL && count < 0 && fgets(line, sizeof line, status) != NULL)
    (void)sscanf(line, "voluntary_ctxt_switches: %ld", &count);
  if (status != NULL) (void)fclose(status);
  CHECK(count >= 0);
  return count;
}

static void take_lock(void)
{
  client_open(&holder, server.port);
  CHECK_EQUAL(fairlock_init(&held, &holder.client, "loop"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&held, 1000, 60000), FAIRLOCK_OK); /* without renewals */
}

/* Some ten heartbeats in the middle of the wait. */
static void check_sleep(const struct program *program)
{
  sleep_ms(500); /* the wait has begun */
  int64_t before = scripts_run(&redis);
  long slept = sleeps(program);
  sleep_ms(WAIT_MS);
  slept = sleeps(program) - slept;
  int64_t heartbeats = scripts_run(&redis) - before;
  printf("# %d heartbeats, slept %ld times\n", (int)heartbeats, slept);
  CHECK(heartbeats >= WAIT_MS / HEARTBEAT_MS / 2);
  CHECK(slept <= 4 * heartbeats + 4); /* twice; on a busy machine an answer comes in pieces */
}

static void wait_behind(const char *path, const char *scheme)
{
  struct program program;
  char line[100];
  unsigned ms = 0;
  unsigned by_time = 0;
  unsigned by_socket = 0;
  begin();
  take_lock();
  int64_t before = scripts_run(&redis);
  if (!program_start(&program, path, scheme)) return;
  CHECK(queue_reaches(&redis, "loop", 1));
  check_sleep(&program);
  CHECK_EQUAL(fairlock_release(&held), FAIRLOCK_OK);
  if (says(&program, line))
    CHECK_EQUAL(sscanf(line, "held after %u ms, woken by the time %u times, by the socket %u", &ms,
                       &by_time, &by_socket),
                3);
  int64_t scripts = scripts_run(&redis) - before;
  printf("# %d scripts in %u ms, woken %u times by the time, %u by the socket\n", (int)scripts, ms,
         by_time, by_socket);
  CHECK(ms >= WAIT_MS);
  CHECK(by_time > 0 && by_time <= 2 * scripts + 2);
  CHECK(by_socket > 0 && by_socket <= 2 * scripts + BESIDES);
  if (says(&program, line)) CHECK(strcmp(line, "released\n") == 0);
  program_end(&program);
  CHECK_EQUAL(fairlock_deinit(&held), FAIRLOCK_OK);
  client_close(&holder);
  CHECK(nothing_left(&redis, "loop"));
}

static void live_through_restart(const char *path, const char *scheme)
{
  struct program program;
  char line[100];
  begin();
  take_lock();
  if (!program_start(&program, path, scheme)) return;
  CHECK(queue_reaches(&redis, "loop", 1));
  client_close(&holder);
  server_kill(&server);
  sleep_ms(1000);
  server_revive(&server);
  if (says(&program, line)) CHECK(strncmp(line, "held", 4) == 0);
  if (says(&program, line)) CHECK(strcmp(line, "released\n") == 0);
  program_end(&program);
  raw_close(&redis);
  CHECK(raw_open(&redis, server.port));
  CHECK(nothing_left(&redis, "loop"));
}

/* 200 locks in one loop. A part of them is held elsewhere at first. */
static void test_coroutines(void)
{
  enum { JOBS = 200, HELD = 20 };
  static struct fairlock some[HELD];
  static char names[HELD][8];
  const char *words[] = {EXAMPLES "/coroutine", server.port_text, "co", "200", "50", NULL};
  struct program program;
  char line[100];
  unsigned jobs = 0;
  unsigned operations = 0;
  unsigned looked_at = 0;
  unsigned turns = 0;
  begin();
  client_open(&holder, server.port);
  for (int i = 0; i < HELD; i++) {
    (void)snprintf(names[i], sizeof names[i], "co%d", 7 * i);
    CHECK_EQUAL(fairlock_init(&some[i], &holder.client, names[i]), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_try_acquire(&some[i], 60000), FAIRLOCK_OK);
  }
  if (!program_run(&program, words)) return;
  for (int i = 0; i < HELD; i++)
    CHECK(queue_reaches(&redis, names[i], 1));
  for (int i = 0; i < HELD; i++) {
    CHECK_EQUAL(fairlock_release(&some[i]), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_deinit(&some[i]), FAIRLOCK_OK);
  }
  if (says(&program, line))
    CHECK_EQUAL(sscanf(line, "%u jobs of co: %u operations, %u locks looked at, in %u turns", &jobs,
                       &operations, &looked_at, &turns),
                4);
  printf("# %s", line);
  CHECK_EQUAL(jobs, JOBS);
  CHECK(operations >= 3 * JOBS); /* to acquire, release, take out */
  CHECK_EQUAL(looked_at, operations);
  program_end(&program);
  client_close(&holder);
  for (int i = 0; i < HELD; i++)
    CHECK(nothing_left(&redis, names[i]));
}

/*
 * A loop and four threads of a pool, with a client each, in turn for one lock. Late grants would
 * come at a heartbeat, each 8 s; and those that nobody has to ask for need no more scripts than an
 * acquire, a confirmation and a release.
 */
static void test_pool(void)
{
  enum { TURNS = 10, ALL = 5 * TURNS };
  const char *words[] = {EXAMPLES "/pool", server.port_text, "pool", "10", NULL};
  struct program program;
  char line[100];
  unsigned turns = 0;
  unsigned longest = 0;
  unsigned woken = 0;
  begin();
  int64_t before = scripts_run(&redis);
  if (!program_run(&program, words)) return;
  if (says(&program, line))
    CHECK_EQUAL(sscanf(line, "%u turns, the longest handover %u ms, the loop woken %u times",
                       &turns, &longest, &woken),
                3);
  int64_t scripts = scripts_run(&redis) - before;
  printf("# %d scripts; %s", (int)scripts, line);
  CHECK_EQUAL(turns, ALL);
  CHECK(longest < 4000);
  CHECK(scripts <= 4 * ALL);
  CHECK(woken <= 10 * ALL); /* on a busy machine an answer comes in pieces */
  program_end(&program);
  CHECK(nothing_left(&redis, "pool"));
}

static void test_epoll(void)
{
  wait_behind(EXAMPLES "/epoll", "redis://");
}

static void test_libuv(void)
{
  wait_behind(EXAMPLES "/libuv", NULL);
}

static void test_epoll_restart(void)
{
  live_through_restart(EXAMPLES "/epoll", "redis://");
}

static void test_libuv_restart(void)
{
  live_through_restart(EXAMPLES "/libuv", NULL);
}

const struct check_test check_tests[] = {
    {"loops: epoll waits behind a holder", test_epoll},
    {"loops: libuv waits behind a holder", test_libuv},
    {"loops: epoll lives through a restart of the server", test_epoll_restart},
    {"loops: libuv lives through a restart of the server", test_libuv_restart},
    {"loops: a pool of threads beside a loop", test_pool},
    {"loops: a lock each for 200 coroutines", test_coroutines},
    {NULL, NULL},
};
