/*
 * The examples of boards/examples/loops, in which the lock lives in an event loop of the program's
 * own: they acquire, wait behind another holder and release, also when the server starts anew
 * meanwhile. While they wait they sleep.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#ifndef EXAMPLES
#define EXAMPLES "build/examples" /* the makefile says where they really are */
#endif

#define WAIT_MS      7000
#define HEARTBEAT_MS 2000
/* times that a loop goes round for a heartbeat: to send, to receive, and to see that that was all */
#define HANDFUL 6

static struct client holder;
static struct fairlock held;

struct program {
  pid_t pid;
  FILE *lines;
};

static bool program_start(struct program *program, const char *path)
{
  const char *words[] = {path, server.port_text, "loop", "200", NULL};
  int output;
  program->pid = spawn_program(words, NULL, &output);
  program->lines = fdopen(output, "r");
  return CHECK(program->lines != NULL);
}

static void program_end(struct program *program)
{
  CHECK_EQUAL(reap(program->pid), 0);
  if (program->lines != NULL) (void)fclose(program->lines);
}

static bool says(struct program *program, char line[80])
{
  return CHECK(fgets(line, 80, program->lines) != NULL);
}

static void take_lock(void)
{
  client_open(&holder, server.port);
  CHECK_EQUAL(fairlock_init(&held, &holder.client, "loop"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&held, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
}

static void wait_behind(const char *path)
{
  struct program program;
  char line[80];
  unsigned wakings = 0;
  unsigned ms = 0;
  begin();
  take_lock();
  if (!program_start(&program, path)) return;
  CHECK(queue_reaches(&redis, "loop", 1));
  service_for(&holder, WAIT_MS);
  CHECK_EQUAL(fairlock_release(&held), FAIRLOCK_OK);
  if (says(&program, line))
    CHECK_EQUAL(sscanf(line, "held after %u wakings in %u ms", &wakings, &ms), 2);
  CHECK(ms >= WAIT_MS);
  CHECK(wakings > ms / HEARTBEAT_MS);
  /* the first and the last are not at a heartbeat's time */
  CHECK(wakings <= HANDFUL * (ms / HEARTBEAT_MS + 2));
  if (says(&program, line)) CHECK(strcmp(line, "released\n") == 0);
  program_end(&program);
  CHECK_EQUAL(fairlock_deinit(&held), FAIRLOCK_OK);
  client_close(&holder);
  CHECK(nothing_left(&redis, "loop"));
}

static void live_through_restart(const char *path)
{
  struct program program;
  char line[80];
  begin();
  take_lock();
  if (!program_start(&program, path)) return;
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

static void test_epoll(void)
{
  wait_behind(EXAMPLES "/epoll");
}

static void test_libuv(void)
{
  wait_behind(EXAMPLES "/libuv");
}

static void test_epoll_restart(void)
{
  live_through_restart(EXAMPLES "/epoll");
}

static void test_libuv_restart(void)
{
  live_through_restart(EXAMPLES "/libuv");
}

const struct check_test check_tests[] = {
    {"loops: epoll waits behind a holder", test_epoll},
    {"loops: libuv waits behind a holder", test_libuv},
    {"loops: epoll lives through a restart of the server", test_epoll_restart},
    {"loops: libuv lives through a restart of the server", test_libuv_restart},
    {NULL, NULL},
};
