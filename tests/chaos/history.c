/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check after a run of chaos; see history.h. Sorts pointers to the entries, and goes through
 * them once.
 */
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

static int64_t end_of(const struct hold *hold)
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
  printf("# %s\n", what);
  show(history, first);
  show(history, second);
}

static bool together(const struct history *history, const struct hold *a, const struct hold *b)
{
  return a->lock == b->lock && life_of(history, a) == life_of(history, b);
}

/* The latest end of the holds of one lock and life, of all and of those that do not share. */
struct latest {
  const struct hold *any, *alone;
};

/* The hold that must have ended before this one begins, or NULL. */
static const struct hold *before(const struct history *history, struct latest *latest,
                                 const struct hold *hold)
{
  if (latest->any != NULL && !together(history, latest->any, hold)) *latest = (struct latest){0};
  return hold->shares ? latest->alone : latest->any;
}

int history_overlaps(const struct history *history)
{
  size_t count;
  int found = 0;
  struct hold **sorted = sort(history, &count, by_token);
  struct latest latest = {0};
  for (size_t i = 0; i < count; i++) {
    const struct hold *hold = sorted[i];
    if (end_of(hold) <= hold->start_us) continue; /* found ended when it was told of */
    const struct hold *last = before(history, &latest, hold);
    if (last != NULL && hold->start_us < end_of(last)) {
      complain(history,
               "two believed that they held at the same time, or not in the order of their tokens",
               last, hold);
      found++;
    }
    if (latest.any == NULL || end_of(hold) > end_of(latest.any)) latest.any = hold;
    if (hold->shares) continue;
    if (latest.alone == NULL || end_of(hold) > end_of(latest.alone)) latest.alone = hold;
  }
  free(sorted);
  return found;
}

/*
 * Complains if with this hold more share than one of them allows. `inside` are those that
 * began before; those that have ended are taken out.
 */
static int count_in(const struct history *history, const struct hold **inside, size_t *count,
                    const struct hold *hold)
{
  size_t left = 0, together_now = 1;
  const struct hold *smallest = hold, *other = NULL;
  for (size_t i = 0; i < *count; i++) {
    if (inside[i]->lock != hold->lock || end_of(inside[i]) <= hold->start_us) continue;
    inside[left++] = inside[i];
    if (!together(history, inside[i], hold)) continue;
    together_now++;
    other = inside[i];
    bool smaller = smallest->limit == 0 || other->limit < smallest->limit;
    if (other->limit > 0 && smaller) smallest = other;
  }
  *count = left;
  inside[(*count)++] = hold;
  if (other == NULL || smallest->limit == 0 || together_now <= (size_t)smallest->limit) return 0;
  complain(history, "more share than may", smallest == hold ? other : smallest, hold);
  return 1;
}

int history_crowds(const struct history *history)
{
  size_t count, within = 0;
  int found = 0;
  struct hold **started = sort(history, &count, by_start);
  const struct hold **inside = malloc((count + 1) * sizeof(struct hold *));
  if (inside == NULL) abort();
  for (size_t i = 0; i < count; i++) {
    if (started[i]->shares && end_of(started[i]) > started[i]->start_us)
      found += count_in(history, inside, &within, started[i]);
  }
  free(inside);
  free(started);
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
    if (kept(sorted[i - 1], sorted[i])) continue;
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
static void note_token(struct latest *largest, const struct hold *hold)
{
  largest->any = larger(largest->any, hold);
  if (!hold->shares) largest->alone = larger(largest->alone, hold);
}

static int check_token(const struct history *history, const struct hold *largest,
                       const struct hold *hold, const char *complaint)
{
  if (largest == NULL || largest->lock != hold->lock || largest->token < hold->token) return 0;
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
  struct latest largest = {0}; /* among those of this lock that started before */
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

int history_tokens(const struct history *history)
{
  return repeated_tokens(history) + falling_tokens(history) + skipped_tokens(history);
}

/*
 * Those of which it is not known when they stood in line come first, and count for nothing. A lock
 * that was kept may be taken again until its keeper has heard of who waits, and one who had the lock
 * alone goes on sharing before others.
 */
int history_order(const struct history *history)
{
  size_t count, next = 0;
  int found = 0;
  struct hold **queued = sort(history, &count, by_queue), **called = sort(history, &count, by_call);
  struct latest largest = {0};
  for (size_t i = 0; i < count; i++) {
    const struct hold *hold = called[i];
    for (; next < count && queued[next]->lock <= hold->lock; next++) {
      const struct hold *first = queued[next];
      if (first->lock == hold->lock && first->queued_us >= hold->called_us) break;
      if (first->queued_us != 0) note_token(&largest, first);
    }
    if (!hold->again && hold->from == 0)
      found += check_token(history, largest.any, hold, "who came later was served before");
  }
  free(queued);
  free(called);
  return found;
}
