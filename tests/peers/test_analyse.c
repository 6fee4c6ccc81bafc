/* The analyser and turns whose figures are known: `make bench-peers` first runs this. */
#include "check.h"
#include "peers.h"

#define MS(number) ((int64_t)(number)*1000000)
#define TURN(asked, acquired, released)                                                            \
  {                                                                                                \
    MS(asked), MS(acquired), MS(released)                                                          \
  }

/* A holds; B asks at 2, C at 4; each is served in its turn. */
static void test_in_order(void)
{
  struct turn turns[] = {TURN(4, 21, 30), TURN(0, 1, 10), TURN(2, 12, 20)};
  struct contest contest = judge(turns, 3);
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
  struct contest contest = judge(turns, 4);
  CHECK(contest.exclusive);
  CHECK_EQUAL(contest.overtaking, 2);
  CHECK_EQUAL(contest.longest, MS(38));
  CHECK_EQUAL(contest.handover_p50, MS(5));
  CHECK_EQUAL(contest.handover_p99, MS(10));
}

/* Who asked within the same ms came together, and who asks after the release is handed nothing. */
static void test_no_overtaking(void)
{
  struct turn together[] = {TURN(0, 1, 10), TURN(3, 12, 20), TURN(2, 21, 30)};
  CHECK_EQUAL(judge(together, 3).overtaking, 0);
  struct turn apart[] = {TURN(0, 1, 10), TURN(11, 12, 20), TURN(25, 26, 30)};
  struct contest contest = judge(apart, 3);
  CHECK_EQUAL(contest.handover_p50, 0);
  CHECK_EQUAL(contest.overtaking, 0);
}

static void test_two_holders(void)
{
  struct turn turns[] = {TURN(0, 1, 10), TURN(2, 9, 20)};
  CHECK(!judge(turns, 2).exclusive);
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

const struct check_test check_tests[] = {
    {"peers: in order", test_in_order},           {"peers: overtaking", test_overtaking},
    {"peers: no overtaking", test_no_overtaking}, {"peers: two holders", test_two_holders},
    {"peers: percentile", test_percentile},       {NULL, NULL}};
