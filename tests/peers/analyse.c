/* SPDX-License-Identifier: Apache-2.0 */
/* What turns at a lock come to; see peers.h. It is computed here alone, for all peers, and by the judge of histories. */
#include "peers.h"
#include "support/history.h"

#include <stdlib.h>

/* Two that ask at about the same time may reach the server in either order. */
#define TOGETHER_NS 1000000

/* The limit of a lock that nobody shares. */
#define ALONE (-1)

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

/* What the judge of histories says of the turns; limit: of those who share. */
static struct verdict judge_turns(const struct turn *turns, size_t count, int limit)
{
  struct history history = {.holds = calloc(count + 1, sizeof *history.holds), .quiet = true};
  if (history.holds == NULL) abort();
  for (; history.count < count; turns++)
    history.holds[history.count++] = (struct hold){.written = true,
                                                   .shares = limit != ALONE && !turns->alone,
                                                   .limit = limit != ALONE ? limit : 0,
                                                   .called_us = turns->asked,
                                                   .queued_us = turns->asked + TOGETHER_NS,
                                                   .start_us = turns->acquired,
                                                   .until_us = turns->released};
  struct verdict verdict = judge(&history);
  free(history.holds);
  return verdict;
}

/* Whether somebody waited when the turn ended. */
static bool was_wanted(const struct turn *turns, size_t count, size_t turn)
{
  for (size_t later = turn + 1; later < count; later++) {
    if (turns[later].asked < turns[turn].released) return true;
  }
  return false;
}

struct contest judge_contest(struct turn *turns, size_t count)
{
  struct verdict verdict = judge_turns(turns, count, ALONE);
  struct contest contest = {.exclusive = verdict.overlaps == 0, .overtaking = verdict.order};
  int64_t *handovers = calloc(count + 1, sizeof *handovers);
  size_t handed = 0;
  if (handovers == NULL) abort();
  qsort(turns, count, sizeof *turns, by_acquired);
  for (size_t i = 0; i < count; i++) {
    int64_t waited = turns[i].acquired - turns[i].asked;
    if (waited > contest.longest) contest.longest = waited;
    if (i + 1 == count) continue;
    int64_t handover = turns[i + 1].acquired - turns[i].released;
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
  struct verdict verdict = judge_turns(turns, count, limit);
  struct sharing sharing = {.kept = verdict.overlaps + verdict.crowds == 0};
  int64_t held = 0, last = 0;
  qsort(turns, count, sizeof *turns, by_acquired);
  for (size_t i = 0; i < count; i++) {
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
