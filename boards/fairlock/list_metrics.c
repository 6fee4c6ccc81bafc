/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fairlock list --metrics`: metrics of all locks of a server. The totals count all locks. Only the
 * locks with the most waiters have samples of their own, because the number of locks has no limit,
 * and a monitoring system stores each series for weeks.
 *
 * Names begin with what the value is about: list_, this reading of the server; server_, all locks
 * together; lock_, one of them; history_, what runs with --history have counted of a lock. With a pattern each sample has it as a label, because two patterns
 * may be listed to two files for the same collector.
 *
 * No metric has a name that metrics.c uses, because a collector refuses a metric that is in two
 * files.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <stdlib.h>
#include <string.h>

#include "exposition.h"
#include "list.h"
#include "text.h"

enum { BY_LOCK = 7 };

/* The metrics of a lock; without an entry, only their names and meanings. */
static void describe(const struct entry *entry, struct metric metrics[BY_LOCK])
{
  static const struct entry none;
  if (entry == NULL) entry = &none;
  const struct inspection *inspection = &entry->inspection;
  bool held = inspection->holder_count > 0;
  int64_t ttl_ms = held ? inspection->holders->ttl_ms : ABSENT;
  const struct metric all[BY_LOCK] = {
      {"lock_held", NULL, FLAG, held, "Whether the lock is held, 0 or 1.", NULL},
      {"lock_holders", NULL, NUMBER, (int64_t)inspection->holder_count, "How many hold the lock.",
       NULL},
      {"lock_limit", NULL, NUMBER, inspection->limit > 0 ? (int64_t)inspection->limit : ABSENT,
       "How many may share the lock.", NULL},
      {"lock_waiters", NULL, NUMBER, (int64_t)entry->waiters,
       "How many stand in line for the lock.", NULL},
      {"lock_oldest_wait_seconds", NULL, SECONDS, entry->wait_ms,
       "How long the first in line has waited, at most.", NULL},
      {"lock_hold_seconds", NULL, SECONDS, entry->longest_ms,
       "How long the hold has lasted, of several the longest.", NULL},
      {"lock_lease_remaining_seconds", NULL, SECONDS, held && ttl_ms < 0 ? ENDLESS : ttl_ms,
       "When the last hold ends if it is not renewed.", NULL},
  };
  memcpy(metrics, all, sizeof all);
}

static void print_sums(FILE *to, const struct list_metrics *metrics)
{
  int64_t locks[2] = {0};
  int64_t holders = 0;
  int64_t waiters = 0;
  int64_t oldest = 0;
  for (size_t i = 0; i < metrics->count; i++) {
    const struct entry *entry = &metrics->entries[i];
    locks[entry->inspection.holder_count > 0]++;
    holders += (int64_t)entry->inspection.holder_count;
    waiters += (int64_t)entry->waiters;
    if (entry->wait_ms > oldest) oldest = entry->wait_ms;
  }
  const struct metric sums[] = {
      {"server_locks", NULL, NUMBER, locks[0], "Locks that are held, or free but waited for.",
       "state=\"free\""},
      {"server_locks", NULL, NUMBER, locks[1], NULL, "state=\"held\""},
      {"server_holders", NULL, NUMBER, holders, "How many hold all locks.", NULL},
      {"server_waiters", NULL, NUMBER, waiters, "How many stand in line for all locks.", NULL},
      {"server_oldest_wait_seconds", NULL, SECONDS, oldest,
       "The longest fairlock_lock_oldest_wait_seconds.", NULL},
  };
  exposition_print(to, sums, sizeof sums / sizeof sums[0], &metrics->labels);
}

static int compare(const void *a, const void *b)
{
  const struct entry *one = *(const struct entry *const *)a;
  const struct entry *other = *(const struct entry *const *)b;
  if (one->waiters != other->waiters) return one->waiters < other->waiters ? 1 : -1;
  if (one->longest_ms != other->longest_ms) return one->longest_ms < other->longest_ms ? 1 : -1;
  return (one > other) - (one < other); /* by name, by which the list is sorted */
}

/* The locks, with those first that get samples of their own. */
static const struct entry **ranked(const struct list_metrics *metrics)
{
  const struct entry **locks = grown(NULL, (metrics->count + 1) * sizeof *locks);
  for (size_t i = 0; i < metrics->count; i++)
    locks[i] = &metrics->entries[i];
  qsort(locks, metrics->count, sizeof *locks, compare);
  return locks;
}

/* Prints metric number `which` of all locks. */
static void print_of_locks(FILE *to, const struct list_metrics *metrics, const struct entry **locks,
                           size_t count, int which)
{
  struct metric of_lock[BY_LOCK];
  struct labels labels = metrics->labels;
  describe(NULL, of_lock);
  exposition_begin(to, &of_lock[which]);
  for (size_t i = 0; i < count; i++) {
    char *lock = printable(locks[i]->name, locks[i]->size);
    labels.lock = lock;
    describe(locks[i], of_lock);
    exposition_sample(to, &of_lock[which], &labels);
    free(lock);
  }
}

/* Prints the samples of a histogram, whose names end with what they are. */
static void print_buckets(FILE *to, const struct times *times, enum times_kind kind,
                          const char *names[3], const struct labels *labels)
{
  uint64_t count = 0;
  for (int i = 0; i <= TIMES_BOUNDS; i++) {
    char le[32] = "le=\"+Inf\"";
    if (i < TIMES_BOUNDS) snprintf(le, sizeof le, "le=\"%g\"", (double)times_bounds[i] / 1000);
    count += times->counts[kind][i];
    const struct metric bucket = {names[0], NULL, NUMBER, (int64_t)count, NULL, le};
    exposition_sample(to, &bucket, labels);
  }
  const struct metric sum = {names[1], NULL, SECONDS, times->sum_ms[kind], NULL, NULL};
  const struct metric all = {names[2], NULL, NUMBER, (int64_t)count, NULL, NULL};
  exposition_sample(to, &sum, labels);
  exposition_sample(to, &all, labels);
}

/* Prints the histograms of as many locks as may have samples, by name, so that these stay the same. */
static void print_recorded(FILE *to, const struct list_metrics *metrics, enum times_kind kind)
{
  static const struct metric described[TIMES_KINDS] = {
      {"history_wait_seconds", NULL, HISTOGRAM, 0, "How long runs waited for the lock.", NULL},
      {"history_hold_seconds", NULL, HISTOGRAM, 0, "How long runs held the lock.", NULL}};
  static const char *names[TIMES_KINDS][3] = {
      {"history_wait_seconds_bucket", "history_wait_seconds_sum", "history_wait_seconds_count"},
      {"history_hold_seconds_bucket", "history_hold_seconds_sum", "history_hold_seconds_count"}};
  struct labels labels = metrics->labels;
  if (metrics->recorded_count > 0) exposition_begin(to, &described[kind]);
  for (size_t i = 0; i < metrics->recorded_count && i < metrics->most; i++) {
    char *lock = printable(metrics->recorded[i].name, metrics->recorded[i].size);
    labels.lock = lock;
    print_buckets(to, &metrics->recorded[i].times, kind, names[kind], &labels);
    free(lock);
  }
}

void list_metrics_write(FILE *to, const void *context)
{
  const struct list_metrics *metrics = context;
  size_t count = metrics->count < metrics->most ? metrics->count : metrics->most;
  const struct metric reading[] = {
      {"list_success", NULL, FLAG, metrics->whole, "Whether all could be read, 0 or 1.", NULL},
      {"list_duration_seconds", NULL, SECONDS, metrics->took_ms, "How long it took to read.", NULL},
  };
  const struct metric left_out = {"list_locks_left_out",
                                  NULL,
                                  NUMBER,
                                  (int64_t)(metrics->count - count),
                                  "Locks without samples of their own.",
                                  NULL};
  exposition_print(to, reading, 2, &metrics->labels);
  if (!metrics->read) return;
  const struct entry **locks = ranked(metrics);
  print_sums(to, metrics);
  for (int which = 0; which < BY_LOCK; which++)
    print_of_locks(to, metrics, locks, count, which);
  free(locks);
  exposition_print(to, &left_out, 1, &metrics->labels);
  print_recorded(to, metrics, WAIT_TIMES);
  print_recorded(to, metrics, HOLD_TIMES);
}
