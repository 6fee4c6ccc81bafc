/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of boards: they freeze, lose their network for a while, or their power for good, and the
 * server restarts. In each case the others must go on, nobody may believe in a hold that somebody
 * else has, the firmware must be told of a hold that it lost, and the board must recover without a
 * reset.
 *
 * The boards run station.c. The others are actors, processes of the host. All time limits are twice
 * what the guarantees say, for a busy machine.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a board, as an argument and as a number: it is renewed at each third. */
#define LEASE    "5000"
#define LEASE_MS 5000

/*
 * Within this time the next waiter gets the lock after a dead holder's lease or a dead waiter's
 * timeout: the longer of the two and a heartbeat, doubled.
 */
#define MOVES_ON_MS 20000

#define BOARD "mps2-an385"

static struct board board;
static struct actor ahead, behind;

/* A station on the lock called "door", with these times for holding and resting. */
static void start_station(const char *name, const char *hold_ms, const char *rest_ms)
{
  const char *const arguments[] = {server.port_text, "door", hold_ms, rest_ms, LEASE, NULL};
  board_start(&board, name, "station", arguments);
}

static uint64_t token_said(void)
{
  return strtoull(strchr(board.line, ' ') != NULL ? strchr(board.line, ' ') : "", NULL, 10);
}

/* The actor in front holds, the board waits, the actor behind waits after it. */
static void line_up(const char *name)
{
  actor_start(&ahead, server.port, "door");
  actor_start(&behind, server.port, "door");
  CHECK_EQUAL(actor_do(&ahead, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW).status, FAIRLOCK_OK);
  start_station(name, "500", "60000");
  CHECK(queue_reaches(&redis, "door", 1));
  actor_tell(&behind, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, "door", 2));
}

static void expect_turn_of_behind(void)
{
  CHECK_EQUAL(actor_hear(&behind, MOVES_ON_MS).status, FAIRLOCK_OK);
}

static void end_actors(void)
{
  actor_end(&ahead);
  actor_end(&behind);
}

/* A cable pulled for less than a window costs a waiter nothing, and least of all its place. */
static void pull_cable_of_waiter(int ms)
{
  begin();
  line_up(BOARD);
  board_cable(&board, false);
  sleep_ms(ms);
  board_cable(&board, true);
  CHECK_EQUAL(actor_do(&ahead, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(board_says(&board, "held"));
  uint64_t token = token_said();
  CHECK(board_says(&board, "released 0"));
  struct event next = actor_hear(&behind, SOON);
  CHECK_EQUAL(next.status, FAIRLOCK_OK);
  CHECK(next.token > token);
  end_actors();
  board_power_off(&board);
}

static void test_cable_1_s(void)
{
  pull_cable_of_waiter(1000);
}

static void test_cable_3_s(void)
{
  pull_cable_of_waiter(3000);
}

/*
 * Those behind a waiter that is cut off for longer wait for one waiter timeout at most; back on the
 * network, it gets its turn.
 */
static void test_cable_20_s(void)
{
  begin();
  line_up(BOARD);
  int64_t pulled = now_ms();
  board_cable(&board, false);
  CHECK_EQUAL(actor_do(&ahead, 'r', 0, 0).status, FAIRLOCK_OK);
  expect_turn_of_behind();
  while (now_ms() - pulled < 20000)
    sleep_ms(100);
  CHECK(!board_said(&board, "held"));
  board_cable(&board, true);
  CHECK(queue_reaches(&redis, "door", 1));
  CHECK(!board_said(&board, "held"));
  CHECK_EQUAL(actor_do(&behind, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(board_says(&board, "held"));
  CHECK(board_says(&board, "released 0"));
  end_actors();
  board_power_off(&board);
}

/*
 * A holder that is cut off stops believing by its own clock before the next one may begin, and says
 * so.
 */
static void test_holder_cut_off(void)
{
  begin();
  actor_start(&behind, server.port, "door");
  start_station(BOARD, "60000", "500");
  CHECK(board_says(&board, "held"));
  uint64_t token = token_said();
  actor_tell(&behind, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, "door", 1));
  sleep_ms(LEASE_MS); /* it is renewed meanwhile */
  CHECK(!board_said(&board, "lost"));
  board_cable(&board, false);
  struct event next = actor_hear(&behind, MOVES_ON_MS);
  CHECK_EQUAL(next.status, FAIRLOCK_OK);
  CHECK(board_said(&board, "lost"));
  CHECK(next.token > token);
  board_cable(&board, true);
  board_forget(&board);
  CHECK(queue_reaches(&redis, "door", 1));
  CHECK_EQUAL(actor_do(&behind, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(board_says(&board, "held"));
  CHECK(token_said() > next.token);
  actor_end(&behind);
  board_power_off(&board);
}

/* A frozen board is dead to the others, and must notice on waking that time has passed. */
static void test_holder_frozen(void)
{
  begin();
  actor_start(&behind, server.port, "door");
  start_station(BOARD, "60000", "500");
  CHECK(board_says(&board, "held"));
  actor_tell(&behind, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, "door", 1));
  board_freeze(&board);
  struct event next = actor_hear(&behind, MOVES_ON_MS);
  CHECK_EQUAL(next.status, FAIRLOCK_OK);
  board_thaw(&board);
  CHECK(board_says(&board, "lost"));
  CHECK(board_says(&board, "waiting"));
  CHECK(queue_reaches(&redis, "door", 1));
  CHECK_EQUAL(actor_do(&behind, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(board_says(&board, "held"));
  CHECK(token_said() > next.token);
  actor_end(&behind);
  board_power_off(&board);
}

/*
 * The lock is handed to a frozen waiter, because it listens; the waiter timeout ends that, and on
 * waking it must not believe that it holds.
 */
static void test_waiter_frozen(void)
{
  begin();
  line_up(BOARD);
  board_freeze(&board);
  CHECK_EQUAL(actor_do(&ahead, 'r', 0, 0).status, FAIRLOCK_OK);
  expect_turn_of_behind();
  board_thaw(&board);
  CHECK(queue_reaches(&redis, "door", 1));
  sleep_ms(500);
  CHECK(!board_said(&board, "held"));
  CHECK_EQUAL(actor_do(&behind, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(board_says(&board, "held"));
  end_actors();
  board_power_off(&board);
}

static void test_power_cut_of_waiter(void)
{
  begin();
  line_up(BOARD);
  board_power_off(&board);
  CHECK_EQUAL(actor_do(&ahead, 'r', 0, 0).status, FAIRLOCK_OK);
  expect_turn_of_behind();
  end_actors();
}

static void test_power_cut_of_holder(void)
{
  begin();
  actor_start(&behind, server.port, "door");
  start_station(BOARD, "60000", "500");
  CHECK(board_says(&board, "held"));
  actor_tell(&behind, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, "door", 1));
  board_power_off(&board);
  expect_turn_of_behind();
  actor_end(&behind);
}

/* A board that is reset and has this lease. It holds for a minute. */
static void start_to_be_reset(const char *lease)
{
  const char *const arguments[] = {server.port_text, "60000", lease, NULL};
  begin();
  actor_start(&behind, server.port, "door:7");
  board_start(&board, BOARD, "reset", arguments);
  CHECK(board_says(&board, "nothing kept"));
  CHECK(board_says(&board, "held"));
}

/* It does not wait for the end of its own lease, and neither do those who queue. */
static void test_reset_of_holder(void)
{
  start_to_be_reset("300000");
  uint64_t token = token_said();
  int64_t pressed = now_ms();
  board_reset(&board);
  CHECK(board_says(&board, "given back 0"));
  CHECK(board_says(&board, "held"));
  printf("# a board that was reset holds again after %d ms\n", (int)(now_ms() - pressed));
  CHECK(token_said() > token);
  actor_tell(&behind, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, "door:7", 1));
  board_reset(&board);
  CHECK(board_says(&board, "given back 0"));
  CHECK_EQUAL(actor_hear(&behind, SOON).status, FAIRLOCK_OK);
  board_power_off(&board);
  actor_end(&behind);
}

/* It is back on the network when its hold has ended and somebody else holds: that one keeps the lock. */
static void test_reset_too_late(void)
{
  start_to_be_reset("6000");
  actor_tell(&behind, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, "door:7", 1));
  board_cable(&board, false);
  board_reset(&board);
  CHECK_EQUAL(actor_hear(&behind, MOVES_ON_MS).status, FAIRLOCK_OK);
  board_cable(&board, true);
  CHECK(board_says(&board, "given back -5"));
  CHECK(queue_reaches(&redis, "door:7", 1));
  CHECK_EQUAL(actor_do(&behind, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(board_says(&board, "held"));
  board_power_off(&board);
  actor_end(&behind);
}

/* A server that loses its data loses the hold, too: the holder finds out when it renews. */
static void server_restarts(const char *name)
{
  begin();
  start_station(name, "60000", "100");
  CHECK(board_says(&board, "held"));
  uint64_t token = token_said();
  server_restart(&server);
  raw_close(&redis);
  CHECK(raw_open(&redis, server.port));
  CHECK(board_says(&board, "lost"));
  CHECK(board_says(&board, "held"));
  CHECK(token_said() > token);
  board_power_off(&board);
}

static void test_server_restart(void)
{
  server_restarts(BOARD);
  server_restarts("riscv-virt");
}

/*
 * No clock was ever set, and the counter of milliseconds wraps around while the board waits, and
 * again while it holds.
 */
static void clock_wraps(const char *start)
{
  const char *const arguments[] = {server.port_text, "door", "9000", "500", LEASE, start, NULL};
  begin();
  actor_start(&ahead, server.port, "door");
  CHECK_EQUAL(actor_do(&ahead, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW).status, FAIRLOCK_OK);
  board_start(&board, BOARD, "station", arguments);
  CHECK(queue_reaches(&redis, "door", 1));
  sleep_ms(3000);
  CHECK_EQUAL(actor_do(&ahead, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(board_says(&board, "held"));
  CHECK(board_says(&board, "released 0"));
  actor_end(&ahead);
  board_power_off(&board);
}

static void test_clock(void)
{
  clock_wraps("4294965796"); /* 1.5 s before the end */
  clock_wraps("4294959296"); /* 8 s before the end */
}

const struct check_test check_tests[] = {
    {"qemu_cable_pulled_for_1_s", test_cable_1_s},
    {"qemu_cable_pulled_for_3_s", test_cable_3_s},
    {"qemu_cable_pulled_for_20_s", test_cable_20_s},
    {"qemu_holder_cut_off", test_holder_cut_off},
    {"qemu_holder_frozen", test_holder_frozen},
    {"qemu_waiter_frozen", test_waiter_frozen},
    {"qemu_power_cut_of_waiter", test_power_cut_of_waiter},
    {"qemu_power_cut_of_holder", test_power_cut_of_holder},
    {"qemu_reset_of_holder", test_reset_of_holder},
    {"qemu_reset_after_the_lease", test_reset_too_late},
    {"qemu_server_restarts", test_server_restart},
    {"qemu_no_clock_set_and_it_wraps", test_clock},
    {0},
};
