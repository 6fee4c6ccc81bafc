/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of histories; see history.h. Sorts pointers to the entries, and goes through them once. */
#include "history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(int64_t a, int64_t b)
{
  return (a > b) - (a < b);
}

/* Holds with the same token in the order in which they began. */
static int by_token(const void *a, const void *b)
{
  const struct hold *first = *(struct hold *const *)a, *second = *(struct hold *const *)b;
  if (first->lock != second->lock) return compare(first->lock, second->lock);
  if (first->token != second->token) return compare((int64_t)first->token, (int64_t)second->token);
  return compare(first->start_us, second->start_us);
}

/* Both are holds of a process that has kept the lock in between. */
static bool kept(const struct hold *first, const struct hold *second)
{
  return first->keeps && first->pid == second->pid && first->token == second->token;
}

static int by_start(const void *a, const void *b)
{
  const struct hold *first = *(struct hold *const *)a, *second = *(struct hold *const *)b;
  if (first->lock != second->lock) return compare(first->lock, second->lock);
  return compare(first->start_us, second->start_us);
}

static int by_queue(const void *a, const void *b)
{
  const struct hold *first = *(struct hold *const *)a, *second = *(struct hold *const *)b;
  if (first->lock != second->lock) return compare(first->lock, second->lock);
  return compare(first->queued_us, second->queued_us);
}

static int by_call(const void *a, const void *b)
{
  const struct hold *first = *(struct hold *const *)a, *second = *(struct hold *const *)b;
  if (first->lock != second->lock) return compare(first->lock, second->lock);
  return compare(first->called_us, second->called_us);
}

/* The entries that are whole, sorted, for the caller to free. */
static struct hold **sort(const struct history *history, size_t *count,
                          int (*order)(const void *, const void *))
{
  struct hold **sorted = malloc((history->count + 1) * sizeof(struct hold *));
  if (sorted == NULL) abort();
  *count = 0;
  for (size_t i = 0; i < history->count; i++) {
    if (atomic_load(&history->holds[i].written)) sorted[(*count)++] = &history->holds[i];
  }
  qsort(sorted, *count, sizeof(struct hold *), order);
  return sorted;
}

int64_t end_of(const struct hold *hold)
{
  int64_t until = atomic_load(&hold->until_us), end = atomic_load(&hold->end_us);
  return end != 0 && end < until ? end : until;
}

static size_t life_of(const struct history *history, const struct hold *hold)
{
  size_t life = 0;
  while (life < history->restart_count && history->restarts[life] < (int64_t)hold->token)
    life++;
  return life;
}

static void show(const struct history *history, const struct hold *hold)
{
  printf("#   client %d (pid %d), lock %d, life %zu, token %" PRIu64 ", called %" PRId64
         ", start %" PRId64 ", until %" PRId64 ", end %" PRId64 "\n",
         hold->client, hold->pid, hold->lock, life_of(history, hold), hold->token, hold->called_us,
         hold->start_us, atomic_load(&hold->until_us), atomic_load(&hold->end_us));
}

static void complain(const struct history *history, const char *what, const struct hold *first,
                     const struct hold *second)
{
  if (history->quiet) return;
  printf("# %s\n", what);
  show(history, first);
  show(history, second);
}

static bool together(const struct history *history, const struct hold *a, const struct hold *b)
{
  return a->lock == b->lock && life_of(history, a) == life_of(history, b);
}

/* The two of one lock that are foremost in some way, of all and of those that do not share. */
struct foremost {
  const struct hold *any, *alone;
};

static bool believed(const struct hold *hold)
{
  return end_of(hold) > hold->start_us; /* others were found ended when they were told of */
}

/* Those that hold when one begins. */
struct inside {
  const struct hold **holds;
  size_t count;
};

static void take_out_ended(struct inside *inside, const struct hold *hold)
{
  size_t left = 0;
  for (size_t i = 0; i < inside->count; i++) {
    const struct hold *other = inside->holds[i];
    if (other->lock == hold->lock && end_of(other) > hold->start_us) inside->holds[left++] = other;
  }
  inside->count = left;
}

static int64_t time_together(const struct hold *a, const struct hold *b)
{
  int64_t start = a->start_us > b->start_us ? a->start_us : b->start_us;
  int64_t end = end_of(a) < end_of(b) ? end_of(a) : end_of(b);
  return end - start;
}

static void complain_of_overlap(struct verdict *verdict, const struct history *history,
                                const struct hold *other, const struct hold *hold)
{
  complain(history, "two believed that they held at the same time", other, hold);
  verdict->overlaps++;
}

/* One begins beside those inside, of which some may be of another life of the server. */
static void judge_beginning(struct verdict *verdict, const struct history *history,
                            struct inside *inside, const struct hold *hold)
{
  int together_now = 1;
  const struct hold *smallest = hold, *other = NULL, *foe = NULL;
  take_out_ended(inside, hold);
  for (size_t i = 0; i < inside->count; i++) {
    const struct hold *beside = inside->holds[i];
    if (!together(history, beside, hold)) continue;
    together_now++;
    other = beside;
    bool smaller = smallest->limit == 0 || beside->limit < smallest->limit;
    if (beside->limit > 0 && smaller) smallest = beside;
    if (beside->shares && hold->shares) continue;
    foe = beside;
    int64_t overlap = time_together(beside, hold);
    if (overlap > verdict->overlap_us) verdict->overlap_us = overlap;
  }
  inside->holds[inside->count++] = hold;
  if (together_now > verdict->most) verdict->most = together_now;
  if (foe != NULL) {
    complain_of_overlap(verdict, history, foe, hold);
  } else if (smallest->limit > 0 && together_now > smallest->limit) {
    complain(history, "more share than may", smallest == hold ? other : smallest, hold);
    verdict->crowds++;
  }
}

static void judge_beliefs(struct verdict *verdict, const struct history *history)
{
  size_t count;
  struct hold **started = sort(history, &count, by_start);
  struct inside inside = {malloc((count + 1) * sizeof(struct hold *)), 0};
  if (inside.holds == NULL) abort();
  for (size_t i = 0; i < count; i++) {
    if (believed(started[i])) judge_beginning(verdict, history, &inside, started[i]);
  }
  free(inside.holds);
  free(started);
}

static const struct hold *later(const struct hold *latest, const struct hold *hold)
{
  return latest == NULL || hold->start_us > latest->start_us ? hold : latest;
}

/* Within a life, those with larger tokens begin later, whenever they were called. */
static int late_beginnings(const struct history *history)
{
  size_t count;
  int found = 0;
  struct hold **sorted = sort(history, &count, by_token);
  struct foremost latest = {0};
  for (size_t i = 0; i < count; i++) {
    const struct hold *hold = sorted[i];
    if (hold->token == 0 || !believed(hold)) continue;
    if (latest.any != NULL && !together(history, latest.any, hold)) latest = (struct foremost){0};
    const struct hold *before = hold->shares ? latest.alone : latest.any;
    if (before != NULL && hold->start_us < before->start_us) {
      complain(history, "who has the larger token began before", before, hold);
      found++;
    }
    latest.any = later(latest.any, hold);
    if (!hold->shares) latest.alone = later(latest.alone, hold);
  }
  free(sorted);
  return found;
}

static int repeated_tokens(const struct history *history)
{
  size_t count;
  int found = 0;
  struct hold **sorted = sort(history, &count, by_token);
  for (size_t i = 1; i < count; i++) {
    if (sorted[i - 1]->lock != sorted[i]->lock || sorted[i - 1]->token != sorted[i]->token)
      continue;
    if (sorted[i]->token == 0 || kept(sorted[i - 1], sorted[i])) continue;
    complain(history, "a token was given twice", sorted[i - 1], sorted[i]);
    found++;
  }
  free(sorted);
  return found;
}

static const struct hold *larger(const struct hold *largest, const struct hold *hold)
{
  return largest == NULL || largest->lock != hold->lock || hold->token > largest->token ? hold
                                                                                        : largest;
}

/* The largest tokens of one lock so far: of all, and of those that do not share. */
static void note_token(struct foremost *largest, const struct hold *hold)
{
  largest->any = larger(largest->any, hold);
  if (!hold->shares) largest->alone = larger(largest->alone, hold);
}

static int check_token(const struct history *history, const struct hold *largest,
                       const struct hold *hold, const char *complaint)
{
  if (largest == NULL || largest->lock != hold->lock || largest->token < hold->token) return 0;
  if (hold->token == 0) return 0;
  if (kept(largest, hold)) return 0;
  complain(history, complaint, largest, hold);
  return 1;
}

static int falling_tokens(const struct history *history)
{
  size_t count, next = 0;
  int found = 0;
  struct hold **started = sort(history, &count, by_start),
              **called = sort(history, &count, by_call);
  struct foremost largest = {0}; /* among those of this lock that started before */
  for (size_t i = 0; i < count; i++) {
    const struct hold *hold = called[i];
    for (; next < count && started[next]->lock <= hold->lock; next++) {
      const struct hold *first = started[next];
      if (first->lock == hold->lock && first->start_us >= hold->called_us) break;
      note_token(&largest, first);
    }
    found += check_token(history, hold->shares ? largest.alone : largest.any, hold,
                         "a later acquire got a token that is not larger");
  }
  free(started);
  free(called);
  return found;
}

/* Nobody gets in between when one that is alone begins to share. */
static int skipped_tokens(const struct history *history)
{
  size_t count;
  int found = 0;
  struct hold **sorted = sort(history, &count, by_token);
  for (size_t i = 1; i < count; i++) {
    const struct hold *before = sorted[i - 1], *hold = sorted[i];
    bool follows = before->lock == hold->lock && before->token == hold->from;
    if (hold->from == 0 || follows || before->token == hold->token) continue;
    complain(history, "somebody got in between", before, hold);
    found++;
  }
  free(sorted);
  return found;
}

/* Of the queued ones of a lock, who was served last: by tokens, and by times for want of them. */
struct last_served {
  const struct hold *by_token, *by_time, *without_token;
};

static void note_served(struct last_served *last, const struct hold *hold)
{
  last->by_token = larger(last->by_token, hold);
  if (last->by_time != NULL && last->by_time->lock != hold->lock)
    last->by_time = last->without_token = NULL;
  last->by_time = later(last->by_time, hold);
  if (hold->token == 0) last->without_token = later(last->without_token, hold);
}

static int check_turn(const struct history *history, const struct last_served *last,
                      const struct hold *hold)
{
  static const char complaint[] = "who came later was served before";
  const struct hold *other = hold->token == 0 ? last->by_time : last->without_token;
  if (check_token(history, last->by_token, hold, complaint) > 0) return 1;
  if (other == NULL || other->lock != hold->lock || other->start_us <= hold->start_us) return 0;
  complain(history, complaint, other, hold);
  return 1;
}

/* Those of which it is not known when they stood in line come first, and count for nothing. */
static int overtakers(const struct history *history)
{
  size_t count, next = 0;
  int found = 0;
  struct hold **queued = sort(history, &count, by_queue), **called = sort(history, &count, by_call);
  struct last_served last = {0};
  for (size_t i = 0; i < count; i++) {
    const struct hold *hold = called[i];
    for (; next < count && queued[next]->lock <= hold->lock; next++) {
      const struct hold *first = queued[next];
      if (first->lock == hold->lock && first->queued_us >= hold->called_us) break;
      if (first->queued_us != 0) note_served(&last, first);
    }
    if (!hold->again && hold->from == 0) found += check_turn(history, &last, hold);
  }
  free(queued);
  free(called);
  return found;
}

struct verdict judge(const struct history *history)
{
  struct verdict verdict = {0};
  judge_beliefs(&verdict, history);
  verdict.tokens = repeated_tokens(history) + falling_tokens(history) + late_beginnings(history) +
                   skipped_tokens(history);
  verdict.order = overtakers(history);
  return verdict;
}

bool is_good(const struct verdict *verdict)
{
  return verdict->overlaps + verdict->crowds + verdict->tokens + verdict->order == 0;
}

bool history_read(struct history *history, FILE *file)
{
  struct hold hold = {.written = true};
  size_t room = 0;
  int got;
  int64_t end;
  *history = (struct history){0};
  while ((got = fscanf(file, "%d %d %d %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
                       &hold.lock, &hold.client, &hold.limit, &hold.token, &hold.called_us,
                       &hold.queued_us, &hold.start_us, &end)) == 8) {
    if (history->count == room) {
      room = 2 * room + 64;
      history->holds = realloc(history->holds, room * sizeof hold);
      if (history->holds == NULL) abort();
    }
    hold.shares = hold.limit >= 0;
    if (!hold.shares) hold.limit = 0;
    atomic_store(&hold.until_us, end);
    atomic_store(&hold.end_us, end);
    history->holds[history->count++] = hold;
  }
  return got == EOF && !ferror(file);
}
