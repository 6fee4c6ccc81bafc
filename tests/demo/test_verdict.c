/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict of the demo can be bad: it is computed from the records, and these records are wrong
 * in all ways.
 */
#include "check.h"
#include "demo.h"

#include <stdio.h>
#include <string.h>

static struct contender all[CONTENDERS];
static char why[100];

/* Eight that arrive, are granted and release in order, each for ten units of time. */
static void make_good(void)
{
  memset(all, 0, sizeof all);
  for (int i = 0; i < CONTENDERS; i++) {
    all[i].stage = RELEASED;
    all[i].arrival = i + 1;
    all[i].token = 1000U + (unsigned)i;
    all[i].granted_at = 100 + 10 * i;
    all[i].left_at = 109 + 10 * i;
    snprintf(all[i].name, sizeof all[i].name, "contender %d", i + 1);
  }
}

static void kill_waiter(int i)
{
  all[i].stage = WAITING;
  all[i].killed_at = 95;
  all[i].granted_at = 0;
  all[i].left_at = 0;
  all[i].token = 0;
}

static void kill_holder(int i, int64_t believed_until)
{
  all[i].stage = HOLDING;
  all[i].killed_at = all[i].granted_at + 5;
  all[i].left_at = 0;
  all[i].believed_until = believed_until;
}

static bool kept(void)
{
  return order_kept(all, why, sizeof why);
}

static void test_good(void)
{
  make_good();
  CHECK(kept());
  CHECK_EQUAL(holders_at_once(all), 1);
  CHECK_EQUAL(handover_us(all, &all[0]), -1);
  CHECK_EQUAL(handover_us(all, &all[3]), 1);
}

static void test_killed(void)
{
  make_good();
  kill_waiter(2);
  kill_holder(4, 150);
  CHECK(kept());
  CHECK_EQUAL(holders_at_once(all), 1);
  CHECK_EQUAL(handover_us(all, &all[3]), 11);
  CHECK_EQUAL(handover_us(all, &all[5]), 5);
}

static void test_swapped(void)
{
  make_good();
  all[3].arrival = 5;
  all[4].arrival = 4;
  CHECK(!kept());
  CHECK(strstr(why, "contender 4") != NULL);
}

static void test_starved(void)
{
  make_good();
  kill_waiter(7);
  all[7].killed_at = 0;
  CHECK(!kept());
  kill_waiter(7);
  CHECK(kept());
}

static void test_tokens(void)
{
  make_good();
  all[3].token = all[2].token;
  CHECK(!kept());
  make_good();
  all[3].token = 1;
  CHECK(!kept());
  make_good();
  all[6].granted_at = all[5].granted_at;
  CHECK(!kept());
}

static void test_overlap(void)
{
  make_good();
  all[2].left_at = all[3].granted_at + 1;
  CHECK_EQUAL(holders_at_once(all), 2);
  all[2].left_at = all[4].granted_at + 1;
  all[3].left_at = all[2].left_at;
  CHECK_EQUAL(holders_at_once(all), 3);
}

static void test_dead_believer(void)
{
  make_good();
  kill_holder(4, all[5].granted_at + 1);
  CHECK_EQUAL(holders_at_once(all), 2);
  kill_holder(4, all[5].granted_at);
  CHECK_EQUAL(holders_at_once(all), 1);
}

/* The first three share it, then the fourth when the first leaves; the fifth has it alone; then three. */
static void make_shared(void)
{
  make_good();
  for (int i = 0; i < CONTENDERS; i++)
    all[i].limit = i != WRITER ? LIMIT : 0;
  all[0].left_at = all[3].granted_at - 1;
  all[1].left_at = all[2].left_at = all[3].left_at;
  all[5].left_at = all[6].left_at = all[7].left_at;
}

static void test_shared(void)
{
  make_shared();
  CHECK(kept());
  CHECK_EQUAL(holders_at_once(all), 3);
  CHECK(alone_kept(all));
  CHECK_EQUAL(most_at_once(all), 3);
  CHECK_EQUAL(handover_us(all, &all[3]), -1);
  CHECK_EQUAL(handover_us(all, &all[WRITER]), -1);
  all[6].granted_at = all[5].granted_at - 1; /* it learned it earlier */
  CHECK(kept());
  all[0].left_at = all[3].granted_at + 1;
  CHECK_EQUAL(holders_at_once(all), 4);
  make_good();
  CHECK(alone_kept(all));
  CHECK_EQUAL(most_at_once(all), 1);
}

static void test_shared_beside_the_writer(void)
{
  make_shared();
  all[2].left_at = all[WRITER].granted_at + 1;
  CHECK(!alone_kept(all));
  make_shared();
  all[WRITER].left_at = all[5].granted_at + 1;
  CHECK(!alone_kept(all));
  make_shared();
  all[5].token = all[WRITER].token - 1;
  CHECK(!kept());
}

const struct check_test check_tests[] = {
    {"demo_verdict_good", test_good},
    {"demo_verdict_killed", test_killed},
    {"demo_verdict_swapped", test_swapped},
    {"demo_verdict_starved", test_starved},
    {"demo_verdict_tokens", test_tokens},
    {"demo_verdict_overlap", test_overlap},
    {"demo_verdict_dead_believer", test_dead_believer},
    {"demo_verdict_shared", test_shared},
    {"demo_verdict_shared_beside_the_writer", test_shared_beside_the_writer},
    {0},
};
