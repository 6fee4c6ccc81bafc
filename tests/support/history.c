/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of histories; see history.h. Sorts pointers to the entries, and goes through them once. */
#include "history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What a history is sorted by, within each lock; equal ones in the order in which they began. */
typedef int64_t key(const struct hold *hold);

static int64_t token_of(const struct hold *hold)
{
  return (int64_t)hold->token;
}

static int64_t called(const struct hold *hold)
{
  return hold->called_us;
}

static int64_t queued(const struct hold *hold)
{
  return hold->queued_us;
}

static int64_t started(const struct hold *hold)
{
  return hold->start_us;
}

static key *sorted_by;

static int compare(int64_t a, int64_t b)
{
  return (a > b) - (a < b);
}

static int by_key(const void *a, const void *b)
{
  const struct hold *first = *(struct hold *const *)a, *second = *(struct hold *const *)b;
  if (first->lock != second->lock) return compare(first->lock, second->lock);
  int order = compare(sorted_by(first), sorted_by(second));
  return order != 0 ? order : compare(first->start_us, second->start_us);
}

/* The entries that are whole, for the caller to free. */
static struct hold **sort(const struct history *history, size_t *count, key *order)
{
  struct hold **sorted = malloc((history->count + 1) * sizeof(struct hold *));
  if (sorted == NULL) abort();
  *count = 0;
  for (size_t i = 0; i < history->count; i++) {
    if (atomic_load(&history->holds[i].written)) sorted[(*count)++] = &history->holds[i];
  }
  sorted_by = order;
  qsort(sorted, *count, sizeof(struct hold *), by_key);
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

/* Returns 1, for one fault. */
static int complain(const struct history *history, const char *what, const struct hold *first,
                    const struct hold *second)
{
  if (history->quiet) return 1;
  printf("# %s\n", what);
  show(history, first);
  show(history, second);
  return 1;
}

static bool together(const struct history *history, const struct hold *a, const struct hold *b)
{
  return a->lock == b->lock && life_of(history, a) == life_of(history, b);
}

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
  if (foe != NULL)
    verdict->overlaps += complain(history, "two believed that they held at once", foe, hold);
  else if (smallest->limit > 0 && together_now > smallest->limit)
    verdict->crowds +=
        complain(history, "more share than may", smallest == hold ? other : smallest, hold);
}

static void judge_beliefs(struct verdict *verdict, const struct history *history)
{
  size_t count;
  struct hold **sorted = sort(history, &count, started);
  struct inside inside = {malloc((count + 1) * sizeof(struct hold *)), 0};
  if (inside.holds == NULL) abort();
  for (size_t i = 0; i < count; i++) {
    if (believed(sorted[i])) judge_beginning(verdict, history, &inside, sorted[i]);
  }
  free(inside.holds);
  free(sorted);
}

static const struct hold *later(const struct hold *latest, const struct hold *hold)
{
  return latest == NULL || hold->start_us > latest->start_us ? hold : latest;
}

static const struct hold *larger(const struct hold *largest, const struct hold *hold)
{
  return largest == NULL || hold->token > largest->token ? hold : largest;
}

/* Both are holds of a process that has kept the lock in between. */
static bool kept(const struct hold *first, const struct hold *second)
{
  return first->keeps && first->pid == second->pid && first->token == second->token;
}

/* `before` is the one with the next smaller token, or the same; NULL: there is none. */
static int check_given(const struct history *history, const struct hold *before,
                       const struct hold *hold)
{
  if (before == NULL) return 0;
  if (before->token == hold->token)
    return kept(before, hold) ? 0 : complain(history, "a token was given twice", before, hold);
  if (hold->from == 0 || before->token == hold->from) return 0;
  return complain(history, "somebody got in between", before, hold);
}

/* The last to begin of those with smaller tokens, of all and of those that do not share. */
struct latest {
  const struct hold *any, *alone;
};

/* Within a life, those with larger tokens begin later, whenever they were called. */
static int check_beginning(const struct history *history, struct latest *latest,
                           const struct hold *hold)
{
  if (!believed(hold)) return 0;
  if (latest->any != NULL && !together(history, latest->any, hold)) *latest = (struct latest){0};
  const struct hold *before = hold->shares ? latest->alone : latest->any;
  latest->any = later(latest->any, hold);
  if (!hold->shares) latest->alone = later(latest->alone, hold);
  if (before == NULL || hold->start_us >= before->start_us) return 0;
  return complain(history, "who has the larger token began before", before, hold);
}

static int judge_tokens(const struct history *history)
{
  size_t count;
  int found = 0;
  struct hold **sorted = sort(history, &count, token_of);
  struct latest latest = {0};
  const struct hold *before = NULL;
  for (size_t i = 0; i < count; i++) {
    if (sorted[i]->token == 0) continue;
    if (before != NULL && before->lock != sorted[i]->lock) before = NULL;
    found += check_given(history, before, sorted[i]);
    found += check_beginning(history, &latest, sorted[i]);
    before = sorted[i];
  }
  free(sorted);
  return found;
}

/* Of those that one comes after: who was served last, by tokens, and by times for want of them. */
struct earlier {
  const struct hold *any, *alone; /* largest tokens: of all, of those that do not share */
  const struct hold *latest, *without_token; /* last to begin: of all, of those without a token */
};

static void note_earlier(struct earlier *earlier, const struct hold *hold)
{
  earlier->any = larger(earlier->any, hold);
  if (!hold->shares) earlier->alone = larger(earlier->alone, hold);
  earlier->latest = later(earlier->latest, hold);
  if (hold->token == 0) earlier->without_token = later(earlier->without_token, hold);
}

static bool has_smaller(const struct hold *hold, const struct hold *largest)
{
  return largest != NULL && hold->token != 0 && hold->token <= largest->token &&
         !kept(largest, hold);
}

/* A hold that existed when acquire was called. */
static int check_token(const struct history *history, const struct earlier *earlier,
                       const struct hold *hold)
{
  const struct hold *largest = hold->shares ? earlier->alone : earlier->any;
  if (!has_smaller(hold, largest)) return 0;
  return complain(history, "a later acquire got a token that is not larger", largest, hold);
}

/* One that was in the queue by then. */
static int check_turn(const struct history *history, const struct earlier *earlier,
                      const struct hold *hold)
{
  static const char complaint[] = "who came later was served before";
  const struct hold *other = hold->token == 0 ? earlier->latest : earlier->without_token;
  if (hold->again || hold->from != 0) return 0;
  if (has_smaller(hold, earlier->any)) return complain(history, complaint, earlier->any, hold);
  if (other == NULL || other->start_us <= hold->start_us) return 0;
  return complain(history, complaint, other, hold);
}

/* Checks each against those of its lock that did something before it was called, if that is known. */
static int judge_calls(const struct history *history, key *time,
                       int (*check)(const struct history *, const struct earlier *,
                                    const struct hold *))
{
  size_t count, next = 0;
  int found = 0;
  struct hold **others = sort(history, &count, time), **callers = sort(history, &count, called);
  struct earlier earlier = {0};
  for (size_t i = 0; i < count; i++) {
    const struct hold *hold = callers[i];
    if (i > 0 && callers[i - 1]->lock != hold->lock) earlier = (struct earlier){0};
    for (; next < count && others[next]->lock <= hold->lock; next++) {
      const struct hold *other = others[next];
      if (other->lock == hold->lock && time(other) >= hold->called_us) break;
      if (other->lock == hold->lock && time(other) != 0) note_earlier(&earlier, other);
    }
    found += check(history, &earlier, hold);
  }
  free(others);
  free(callers);
  return found;
}

struct verdict judge(const struct history *history)
{
  struct verdict verdict = {0};
  judge_beliefs(&verdict, history);
  verdict.tokens = judge_tokens(history) + judge_calls(history, started, check_token);
  verdict.order = judge_calls(history, queued, check_turn);
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
