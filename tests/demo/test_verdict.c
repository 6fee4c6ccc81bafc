/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict of the demo can be bad: the records become the history that the judge gets, and these are
 * wrong. tests/unit/test_history.c has what the judge finds.
 */
#include "check.h"
#include "demo.h"

#include <string.h>

static struct contender all[CONTENDERS];

/* Eight that arrive, are granted and release in order, each for ten units of time. */
static void make_good(void)
{
  memset(all, 0, sizeof all);
  for (int i = 0; i < CONTENDERS; i++) {
    all[i].stage = RELEASED;
    all[i].arrival = i + 1;
    all[i].token = 1000U + (unsigned)i;
    all[i].asked_at = 10 + 2 * i;
    all[i].arrived_at = 11 + 2 * i;
    all[i].granted_at = 100 + 10 * i;
    all[i].left_at = 109 + 10 * i;
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
  struct verdict verdict = verdict_of(all, true);
  return order_kept(all, &verdict);
}

static void test_good(void)
{
  make_good();
  struct verdict verdict = verdict_of(all, true);
  CHECK(is_good(&verdict));
  CHECK_EQUAL(verdict.most, 1);
  CHECK(kept());
  CHECK_EQUAL(handover_us(all, &all[0]), -1);
  CHECK_EQUAL(handover_us(all, &all[3]), 1);
}

static void test_killed(void)
{
  make_good();
  kill_waiter(2);
  kill_holder(4, 150);
  CHECK(kept());
  CHECK_EQUAL(handover_us(all, &all[3]), 11);
  CHECK_EQUAL(handover_us(all, &all[5]), 5);
  kill_holder(4, all[5].granted_at + 1); /* it believed when the next one held */
  CHECK_EQUAL(verdict_of(all, true).overlaps, 1);
}

static void test_bad_order(void)
{
  make_good();
  all[3].token = 1004;
  all[4].token = 1003;
  CHECK(!kept());
  make_good();
  kill_waiter(7);
  all[7].killed_at = 0; /* it starved */
  CHECK(!kept());
  make_good();
  all[7].arrival = 0;
  CHECK(first_unserved(all) == &all[7]);
}

/* The first three share it, then the fourth when the first leaves; the fifth has it alone; then three. */
static void test_shared(void)
{
  make_good();
  CHECK_EQUAL(most_at_once(all), 1);
  for (int i = 0; i < CONTENDERS; i++)
    all[i].limit = i != WRITER ? LIMIT : 0;
  all[0].left_at = all[3].granted_at - 1;
  all[1].left_at = all[2].left_at = all[3].left_at;
  all[5].left_at = all[6].left_at = all[7].left_at;
  struct verdict verdict = verdict_of(all, true);
  CHECK(is_good(&verdict) && kept());
  CHECK_EQUAL(verdict.most, 3);
  CHECK_EQUAL(most_at_once(all), 3);
  CHECK_EQUAL(handover_us(all, &all[3]), -1);
  CHECK_EQUAL(handover_us(all, &all[WRITER]), -1);
  all[0].left_at = all[3].granted_at + 1;
  CHECK_EQUAL(verdict_of(all, true).crowds, 1);
  all[2].left_at = all[WRITER].granted_at + 1;
  CHECK_EQUAL(verdict_of(all, true).overlaps, 1);
}

const struct check_test check_tests[] = {
    {"demo_verdict_good", test_good},
    {"demo_verdict_killed", test_killed},
    {"demo_verdict_bad_order", test_bad_order},
    {"demo_verdict_shared", test_shared},
    {0},
};
