/* SPDX-License-Identifier: Apache-2.0 */
/* The analyser and turns whose figures are known: `make bench-peers` first runs this. */
#include "check.h"
#include "peers.h"

#define MS(number) ((int64_t)(number)*1000000)
#define TURN(asked, acquired, released)                                                            \
  {                                                                                                \
    MS(asked), MS(acquired), MS(released), false                                                   \
  }
#define ALONE(asked, acquired, released)                                                           \
  {                                                                                                \
    MS(asked), MS(acquired), MS(released), true                                                    \
  }

/* A holds; B asks at 2, C at 4; each is served in its turn. */
static void test_in_order(void)
{
  struct turn turns[] = {TURN(4, 21, 30), TURN(0, 1, 10), TURN(2, 12, 20)};
  struct contest contest = judge_contest(turns, 3);
  CHECK(contest.exclusive);
  CHECK_EQUAL(contest.overtaking, 0);
  CHECK_EQUAL(contest.longest, MS(17));
  CHECK_EQUAL(contest.handover_p50, MS(1));
  CHECK_EQUAL(contest.handover_p99, MS(2));
}

/* C, who asked at 4, and A, who asks again at 25, come before B, who asked at 2. */
static void test_overtaking(void)
{
  struct turn turns[] = {TURN(0, 1, 10), TURN(4, 12, 20), TURN(25, 25, 30), TURN(2, 40, 50)};
  struct contest contest = judge_contest(turns, 4);
  CHECK(contest.exclusive);
  CHECK_EQUAL(contest.overtaking, 2);
  CHECK_EQUAL(contest.longest, MS(38));
  CHECK_EQUAL(contest.handover_p50, MS(5));
  CHECK_EQUAL(contest.handover_p99, MS(10));
  turns[0].released = MS(13);
  CHECK(!judge_contest(turns, 4).exclusive);
}

/* Who asked within the same ms came together, and who asks after the release is handed nothing. */
static void test_no_overtaking(void)
{
  struct turn together[] = {TURN(0, 1, 10), TURN(3, 12, 20), TURN(2, 21, 30)};
  CHECK_EQUAL(judge_contest(together, 3).overtaking, 0);
  struct turn apart[] = {TURN(0, 1, 10), TURN(11, 12, 20), TURN(25, 26, 30)};
  struct contest contest = judge_contest(apart, 3);
  CHECK_EQUAL(contest.handover_p50, 0);
  CHECK_EQUAL(contest.overtaking, 0);
}

/* Two share; a third waits to hold alone, and a fourth, who shares, behind it. */
static void test_sharing(void)
{
  struct turn turns[] = {ALONE(5, 21, 30), TURN(0, 0, 20), TURN(2, 2, 20), TURN(7, 31, 40)};
  struct sharing sharing = judge_sharing(turns, 4, 2);
  CHECK(sharing.kept);
  CHECK_EQUAL(sharing.overtaken, 0);
  CHECK_EQUAL(sharing.most, 0);
  CHECK_EQUAL(sharing.longest_alone, MS(16));
  CHECK_EQUAL(sharing.longest_shared, MS(24));
  CHECK_EQUAL((int64_t)(sharing.at_once * 1000), (20 + 18 + 9 + 9) * 1000 / 40);
  CHECK_EQUAL((int64_t)sharing.hold, MS(20 + 18 + 9 + 9) / 4);
  CHECK(!judge_sharing(turns, 4, 1).kept);
  CHECK(judge_sharing(turns, 4, 0).kept);
}

/* Who asked at 5 to hold alone waits for three who asked later, each time a whole turn. */
static void test_overtaken_sharing(void)
{
  struct turn turns[] = {TURN(0, 0, 20), TURN(8, 10, 21), TURN(7, 11, 30), TURN(9, 12, 50),
                         ALONE(5, 40, 45)};
  struct sharing sharing = judge_sharing(turns, 5, 0);
  CHECK(!sharing.kept); /* the one until 50 */
  turns[3].released = MS(39);
  sharing = judge_sharing(turns, 5, 0);
  CHECK(sharing.kept);
  CHECK_EQUAL(sharing.overtaken, 1);
  CHECK_EQUAL(sharing.most, 3);
}

/* Whoever is let in together begins in any order. */
static void test_let_in_together(void)
{
  struct turn turns[] = {ALONE(0, 0, 10), TURN(1, 14, 30), TURN(5, 11, 31)};
  CHECK_EQUAL(judge_sharing(turns, 3, 0).overtaken, 0);
}

static void test_percentile(void)
{
  int64_t values[200];
  for (int i = 0; i < 200; i++)
    values[i] = 200 - i;
  CHECK_EQUAL(percentile(values, 200, 50), 100);
  CHECK_EQUAL(percentile(values, 200, 99), 198);
  CHECK_EQUAL(percentile(values, 1, 99), 1);
  CHECK_EQUAL(percentile(values, 0, 99), 0);
}

const struct check_test check_tests[] = {{"peers: in order", test_in_order},
                                         {"peers: overtaking", test_overtaking},
                                         {"peers: no overtaking", test_no_overtaking},
                                         {"peers: sharing", test_sharing},
                                         {"peers: overtaken sharing", test_overtaken_sharing},
                                         {"peers: let in together", test_let_in_together},
                                         {"peers: percentile", test_percentile},
                                         {NULL, NULL}};
