/* SPDX-License-Identifier: Apache-2.0 */
/* What turns at a lock come to; see peers.h. It is computed here alone, for all peers. */
#include "peers.h"

#include <stdlib.h>

/* Two that ask at about the same time may reach the server in either order. */
#define TOGETHER_NS 1000000

static int by_value(const void *a, const void *b)
{
  int64_t first = *(const int64_t *)a;
  int64_t second = *(const int64_t *)b;
  return (first > second) - (first < second);
}

static int by_acquired(const void *a, const void *b)
{
  return by_value(&((const struct turn *)a)->acquired, &((const struct turn *)b)->acquired);
}

int64_t percentile(int64_t *values, size_t count, int percent)
{
  if (count == 0) return 0;
  qsort(values, count, sizeof *values, by_value);
  return values[(count * (size_t)percent + 99) / 100 - 1];
}

/* Whether the turn began while one still waited who had asked earlier. */
static bool overtook(const struct turn *turns, size_t count, size_t turn)
{
  for (size_t later = turn + 1; later < count; later++) {
    if (turns[later].asked + TOGETHER_NS < turns[turn].asked) return true;
  }
  return false;
}

/* Whether somebody waited when the turn ended. */
static bool was_wanted(const struct turn *turns, size_t count, size_t turn)
{
  for (size_t later = turn + 1; later < count; later++) {
    if (turns[later].asked < turns[turn].released) return true;
  }
  return false;
}

struct contest judge(struct turn *turns, size_t count)
{
  struct contest contest = {.exclusive = true};
  int64_t *handovers = calloc(count + 1, sizeof *handovers);
  size_t handed = 0;
  if (handovers == NULL) abort();
  qsort(turns, count, sizeof *turns, by_acquired);
  for (size_t i = 0; i < count; i++) {
    int64_t waited = turns[i].acquired - turns[i].asked;
    if (waited > contest.longest) contest.longest = waited;
    if (overtook(turns, count, i)) contest.overtaking++;
    if (i + 1 == count) continue;
    int64_t handover = turns[i + 1].acquired - turns[i].released;
    if (handover < 0) contest.exclusive = false;
    if (was_wanted(turns, count, i)) handovers[handed++] = handover;
  }
  contest.handover_p50 = percentile(handovers, handed, 50);
  contest.handover_p99 = percentile(handovers, handed, 99);
  free(handovers);
  return contest;
}

/* Whether the second turn began and ended while the first, which had asked earlier, waited. */
static bool was_overtaken(const struct turn *turn, const struct turn *by)
{
  return turn->asked + TOGETHER_NS < by->asked && by->released < turn->acquired;
}

/* Whether those who hold when the turn begins may hold together. */
static bool may_begin(const struct turn *turns, size_t turn, int limit)
{
  int holders = 1;
  for (size_t i = 0; i < turn; i++) {
    if (turns[i].released <= turns[turn].acquired) continue;
    if (turns[i].alone || turns[turn].alone) return false;
    holders++;
  }
  return limit == 0 || holders <= limit;
}

static void count_overtaking(struct sharing *sharing, const struct turn *turns, size_t count,
                             const struct turn *turn)
{
  int times = 0;
  for (size_t i = 0; i < count; i++)
    times += was_overtaken(turn, &turns[i]);
  if (times > 0) sharing->overtaken++;
  if (times > sharing->most) sharing->most = times;
}

static void note_wait(struct sharing *sharing, const struct turn *turn)
{
  int64_t waited = turn->acquired - turn->asked;
  int64_t *longest = turn->alone ? &sharing->longest_alone : &sharing->longest_shared;
  if (waited > *longest) *longest = waited;
}

struct sharing judge_sharing(struct turn *turns, size_t count, int limit)
{
  struct sharing sharing = {.kept = true};
  int64_t held = 0, last = 0;
  qsort(turns, count, sizeof *turns, by_acquired);
  for (size_t i = 0; i < count; i++) {
    if (!may_begin(turns, i, limit)) sharing.kept = false;
    count_overtaking(&sharing, turns, count, &turns[i]);
    note_wait(&sharing, &turns[i]);
    held += turns[i].released - turns[i].acquired;
    if (turns[i].released > last) last = turns[i].released;
  }
  if (count > 0) {
    sharing.at_once = (double)held / (double)(last - turns[0].acquired);
    sharing.hold = (double)held / (double)count;
  }
  return sharing;
}
