/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The examples of boards/examples do what their comments promise: the superloop keeps running while
 * it waits, over lwIP, a serial line and a modem, also without the scripts' texts; two of those that
 * download do so at a time; the one in low power sleeps, and preempted tasks share one connection.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef FAIRLOCK
#define FAIRLOCK "build/fairlock" /* the makefile says where it really is */
#endif

static struct board board;
static struct actor actor;

/* How many turns the loop made before it held. */
static int turns_said(void)
{
  int turns = 0;
  CHECK(board_says(&board, "held after "));
  CHECK_EQUAL(sscanf(board.line, "held after %d turns", &turns), 1);
  return turns;
}

/* The actor gets in line while the board holds, so the board finds the lock taken next time. */
static void take_turn_after_board(void)
{
  actor_tell(&actor, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(board_says(&board, "done"));
  CHECK_EQUAL(actor_hear(&actor, SOON).status, FAIRLOCK_OK);
  CHECK(queue_reaches(&redis, "door:7", 1));
}

/*
 * The lock is free, then somebody else has it for 2 s, and then there is no server: 200 turns each
 * on an idle machine, and two if the loop stood still meanwhile.
 */
static void check_superloop(void)
{
  (void)turns_said();
  take_turn_after_board();
  sleep_ms(2000);
  CHECK_EQUAL(actor_do(&actor, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(turns_said() > 4);
  take_turn_after_board();
  server_kill(&server);
  sleep_ms(2000);
  server_restart(&server);
  CHECK(turns_said() > 4);
  CHECK(board_says(&board, "done"));
  CHECK_EQUAL(board_ends(&board), 0);
  actor_end(&actor);
  raw_close(&redis);
  CHECK(raw_open(&redis, server.port));
  CHECK(nothing_left(&redis, "door:7"));
}

static void test_superloop(const char *name)
{
  begin();
  actor_start(&actor, server.port, "door:7");
  const char *const arguments[] = {server.port_text, "3", "1000", NULL};
  board_start(&board, name, "superloop", arguments);
  check_superloop();
}

static void test_superloop_arm(void)
{
  test_superloop("mps2-an385");
}

static void test_superloop_riscv(void)
{
  test_superloop("riscv-virt");
}

static void test_superloop_uart(void)
{
  int line[2];
  begin();
  actor_start(&actor, server.port, "door:7");
  const char *const arguments[] = {"-", "3", "1000", NULL};
  if (!CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) == 0)) return;
  pid_t bridge = bridge_start(line[0]);
  board_start_with_line(&board, "mps2-an385", "superloop_uart", arguments, line[1]);
  (void)close(line[0]);
  (void)close(line[1]);
  check_superloop();
  CHECK_EQUAL(reap(bridge), 0); /* it ends with its line */
}

/* The same over a modem. */
static void test_superloop_modem(void)
{
  int line[2];
  begin();
  actor_start(&actor, server.port, "door:7");
  const char *const arguments[] = {"-", "3", "1000", NULL};
  if (!CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) == 0)) return;
  (void)modem_start_on(line[0]);
  board_start_with_line(&board, "mps2-an385", "superloop_modem", arguments, line[1]);
  (void)close(line[0]);
  (void)close(line[1]);
  check_superloop();
}

/* A host that downloads when its turn has come. */
static pid_t download_on_host(void)
{
  char url[40];
  (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", server.port);
  const char *const words[] = {FAIRLOCK, "--url",    url,  "run",  "--limit",
                               "2",      "firmware", "--", "true", NULL};
  return spawn_program(words, NULL, NULL);
}

/*
 * Three boards and a host, of which two may download: the third board and the host wait in line, and
 * begin as the first two boards lose their power.
 */
static void test_downloads(void)
{
  static struct board boards[3];
  begin();
  const char *const arguments[] = {server.port_text, "1", "60000", "2", NULL};
  board_start(&boards[0], "mps2-an385", "superloop_shared", arguments);
  CHECK(board_says(&boards[0], "downloading"));
  board_start(&boards[1], "mps2-an505", "superloop_shared", arguments);
  CHECK(board_says(&boards[1], "downloading"));
  board_start(&boards[2], "riscv-virt", "superloop_shared", arguments);
  CHECK(queue_reaches(&redis, "firmware", 1));
  pid_t host = download_on_host();
  CHECK(queue_reaches(&redis, "firmware", 2));
  CHECK(!board_said(&boards[2], "downloading"));
  board_power_off(&boards[0]);
  CHECK(board_says(&boards[2], "downloading"));
  CHECK_EQUAL(queue_length(&redis, "firmware"), 1);
  board_power_off(&boards[1]);
  CHECK_EQUAL(reap(host), 0);
  CHECK(!board_said(&boards[2], "lost"));
  board_power_off(&boards[2]);
  AWAIT(raw_number(&redis, "EXISTS firmware") == 0, sleep_ms(20));
  CHECK(nothing_left(&redis, "firmware"));
}

/*
 * A board without the scripts' texts waits until somebody loads them. They go while it holds, and
 * are loaded again before its lease ends: it releases as ever, and loses nothing.
 */
static void test_superloop_hashes(void)
{
  begin();
  CHECK(raw_run(&redis, "SCRIPT FLUSH"));
  const char *const arguments[] = {server.port_text, "2", "1000", NULL};
  board_start(&board, "mps2-an385", "superloop_hashes", arguments);
  int64_t before = scripts_run(&redis);
  CHECK(board_says(&board, "waiting"));
  AWAIT(scripts_run(&redis) >= before + 3, sleep_ms(20));
  CHECK(!board_said(&board, "held"));
  CHECK(nothing_left(&redis, "door:7"));
  CHECK(load_scripts());
  CHECK(turns_said() > 4);
  CHECK(raw_run(&redis, "SCRIPT FLUSH"));
  CHECK(board_says(&board, "done"));
  before = scripts_run(&redis);
  AWAIT(scripts_run(&redis) >= before + 3, sleep_ms(20));
  CHECK_EQUAL(raw_number(&redis, "EXISTS door:7"), 1);
  CHECK(load_scripts());
  (void)turns_said();
  CHECK(board_says(&board, "done"));
  CHECK_EQUAL(board_ends(&board), 0);
  CHECK(nothing_left(&redis, "door:7"));
}

/*
 * The server restarts, then the gateway does: the device loses its hold each time, is told, and
 * recovers.
 */
static void test_serial_line_faults(void)
{
  int line[2];
  begin();
  const char *const arguments[] = {"-", "door", "60000", "100", "3000", NULL};
  if (!CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) == 0)) return;
  pid_t bridge = bridge_start(line[0]);
  board_start_with_line(&board, "mps2-an385", "station_uart", arguments, line[1]);
  (void)close(line[1]);
  CHECK(board_says(&board, "held"));
  server_restart(&server);
  raw_close(&redis);
  CHECK(raw_open(&redis, server.port));
  CHECK(board_says(&board, "lost"));
  CHECK(board_says(&board, "held"));
  slay(bridge);
  CHECK(board_says(&board, "lost"));
  bridge = bridge_start(line[0]);
  CHECK(board_says(&board, "held"));
  slay(bridge);
  (void)close(line[0]);
  board_power_off(&board);
}

/*
 * A board in low power waits behind the actor for ten heartbeats of 800 ms. Each wakes it once by
 * the time, to be sent, and once by the line, for its reply, which may be a grant: that is the
 * minimum. As the server counts: each heartbeat is a script, and so are the first request, the
 * confirmation, and the actor's release. The line tells besides that it is greeted, subscribed and
 * handed over to; and on a busy host a reply may come in pieces.
 */
static void test_low_power(void)
{
  int line[2];
  unsigned ms = 0;
  unsigned by_time = 0;
  unsigned by_line = 0;
  begin();
  actor_start(&actor, server.port, "door:7");
  CHECK_EQUAL(actor_do(&actor, 'a', 1000, 60000).status, FAIRLOCK_OK); /* without renewals */
  const char *const arguments[] = {"-", "200", "2000", NULL};
  if (!CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) == 0)) return;
  int64_t before = scripts_run(&redis);
  pid_t bridge = bridge_start(line[0]);
  board_start_with_line(&board, "mps2-an385", "lowpower", arguments, line[1]);
  (void)close(line[0]);
  (void)close(line[1]);
  CHECK(queue_reaches(&redis, "door:7", 1));
  sleep_ms(8200);
  CHECK_EQUAL(actor_do(&actor, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(board_says(&board, "held after "));
  int scripts = (int)(scripts_run(&redis) - before);
  CHECK_EQUAL(sscanf(board.line, "held after %u ms, woken by the time %u times, by the line %u",
                     &ms, &by_time, &by_line),
              3);
  printf("# %d scripts in %u ms, woken %u times by the time, %u by the line\n", scripts, ms,
         by_time, by_line);
  CHECK(ms >= 8000);
  CHECK(scripts >= 6);
  CHECK(by_time >= 5 && by_time <= 2 * (unsigned)scripts + 2);
  CHECK(by_line >= 5 && by_line <= 4 * (unsigned)scripts);
  CHECK(board_says(&board, "released"));
  CHECK_EQUAL(board_ends(&board), 0);
  CHECK_EQUAL(reap(bridge), 0);
  actor_end(&actor);
  CHECK(nothing_left(&redis, "door:7"));
}

/*
 * Sixteen rounds of a device on a slow line, while a host asks twice; it gets the lock each time.
 * keep_ms 0: the device does not keep. Returns the bytes that went over the line.
 */
static unsigned rounds_on_a_slow_line(const char *keep_ms, unsigned *waited)
{
  int line[2];
  unsigned bytes = 0;
  const char *const arguments[] = {"-", "16", keep_ms, NULL};
  if (!CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) == 0)) return 0;
  pid_t bridge = bridge_start(line[0]);
  board_start_with_line(&board, "mps2-an385", "keep", arguments, line[1]);
  (void)close(line[0]);
  (void)close(line[1]);
  CHECK(board_says(&board, "round 4"));
  CHECK_EQUAL(actor_do(&actor, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW).status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_do(&actor, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(board_says(&board, "round 10"));
  CHECK_EQUAL(actor_do(&actor, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW).status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_do(&actor, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(board_says(&board, "line: "));
  CHECK_EQUAL(sscanf(board.line, "line: %u bytes for 16 rounds, which waited %u", &bytes, waited),
              2);
  CHECK_EQUAL(board_ends(&board), 0);
  CHECK_EQUAL(reap(bridge), 0);
  CHECK(nothing_left(&redis, "door:7"));
  return bytes;
}

/* What the board saves that keeps its lock, with the scripts known to the server. */
static void test_keep(void)
{
  unsigned kept_waited = 0;
  unsigned plain_waited = 0;
  begin();
  actor_start(&actor, server.port, "door:7");
  CHECK_EQUAL(actor_do(&actor, 'a', 0, FAIRLOCK_RENEW).status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_do(&actor, 'r', 0, 0).status, FAIRLOCK_OK);
  unsigned plain = rounds_on_a_slow_line("0", &plain_waited);
  unsigned kept = rounds_on_a_slow_line("15000", &kept_waited);
  printf("# 16 rounds at 9600 baud, two of them asked for by a host: %u bytes and a wait of %u ms, "
         "%u and %u ms if it keeps\n",
         plain, plain_waited, kept, kept_waited);
  CHECK(plain > 16 * 500);
  CHECK(kept < plain / 2);
  actor_end(&actor);
}

static void run_tasks(const char *name, const char *runner)
{
  const char *const arguments[] = {server.port_text, "50", runner, NULL};
  begin();
  board_start(&board, name, "tasks", arguments);
  check_shared_press(&board);
}

static const char *const kernels[] = {"mps2-an385", "mps2-an385-m0", "mps2-an386", "mps2-an505"};

static void test_tasks_with_runner(void)
{
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
    run_tasks(kernels[i], "1");
}

static void test_tasks_without_runner(void)
{
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
    run_tasks(kernels[i], "0");
}

const struct check_test check_tests[] = {
    {"qemu_superloop_on_arm", test_superloop_arm},
    {"qemu_superloop_on_riscv", test_superloop_riscv},
    {"qemu_superloop_over_a_serial_line", test_superloop_uart},
    {"qemu_superloop_over_a_modem", test_superloop_modem},
    {"qemu_superloop_without_texts", test_superloop_hashes},
    {"qemu_downloads_share", test_downloads},
    {"qemu_serial_line_faults", test_serial_line_faults},
    {"qemu_low_power", test_low_power},
    {"qemu_keep_on_a_slow_line", test_keep},
    {"qemu_tasks_share_a_client_with_runner", test_tasks_with_runner},
    {"qemu_tasks_share_a_client_without_runner", test_tasks_without_runner},
    {0},
};
