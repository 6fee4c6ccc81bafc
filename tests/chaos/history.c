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

int history_overlaps(const struct history *history)
{
  size_t count;
  int found = 0;
  struct hold **sorted = sort(history, &count, by_token);
  const struct hold *last = NULL; /* of this lock and life, the one believed in for longest */
  for (size_t i = 0; i < count; i++) {
    const struct hold *hold = sorted[i];
    if (end_of(hold) <= hold->start_us) continue; /* found ended when it was told of */
    if (last != NULL &&
        (last->lock != hold->lock || life_of(history, last) != life_of(history, hold)))
      last = NULL;
    if (last != NULL && hold->start_us < end_of(last)) {
      complain(history,
               "two believed that they held at the same time, or not in the order of their tokens",
               last, hold);
      found++;
    }
    if (last == NULL || end_of(hold) > end_of(last)) last = hold;
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
    if (kept(sorted[i - 1], sorted[i])) continue;
    complain(history, "a token was given twice", sorted[i - 1], sorted[i]);
    found++;
  }
  free(sorted);
  return found;
}

static int falling_tokens(const struct history *history)
{
  size_t count, next = 0;
  int found = 0;
  struct hold **started = sort(history, &count, by_start),
              **called = sort(history, &count, by_call);
  const struct hold *largest = NULL; /* among those of this lock that started before */
  for (size_t i = 0; i < count; i++) {
    const struct hold *hold = called[i];
    for (; next < count && started[next]->lock <= hold->lock; next++) {
      const struct hold *before = started[next];
      if (before->lock == hold->lock && before->start_us >= hold->called_us) break;
      if (largest == NULL || largest->lock != before->lock || before->token > largest->token)
        largest = before;
    }
    if (largest == NULL || largest->lock != hold->lock || largest->token < hold->token) continue;
    if (kept(largest, hold)) continue;
    complain(history, "a later acquire got a token that is not larger", largest, hold);
    found++;
  }
  free(started);
  free(called);
  return found;
}

int history_tokens(const struct history *history)
{
  return repeated_tokens(history) + falling_tokens(history);
}
