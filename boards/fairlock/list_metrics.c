/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fairlock list --metrics`: metrics of all locks of a server. The totals count all locks. Only the
 * locks with the most waiters have samples of their own, because the number of locks has no limit,
 * and a monitoring system stores each series for weeks.
 *
 * Names begin with what the value is about: list_, this reading of the server; server_, all locks
 * together; lock_, one of them. With a pattern each sample has it as a label, because two patterns
 * may be listed to two files for the same collector.
 *
 * No metric has a name that metrics.c uses, because a collector refuses a metric that is in two
 * files.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <inttypes.h>
#include <stdlib.h>

#include "exposition.h"
#include "list.h"
#include "text.h"

#define ABSENT  (-1)
#define ENDLESS INT64_MAX

enum metric { HELD, HOLDERS, LIMIT, WAITERS, OLDEST_WAIT, HOLD, LEASE, METRICS };

/* In the order of enum metric. */
static const struct {
  const char *name, *help;
  bool time;
} by_lock[METRICS] = {
    {"lock_held", "Whether the lock is held, 0 or 1.", false},
    {"lock_holders", "How many hold the lock.", false},
    {"lock_limit", "How many may share the lock.", false},
    {"lock_waiters", "How many stand in line for the lock.", false},
    {"lock_oldest_wait_seconds", "How long the first in line has waited, at most.", true},
    {"lock_hold_seconds", "How long the hold has lasted, of several the longest.", true},
    {"lock_lease_remaining_seconds", "When the last hold ends if it is not renewed.", true},
};

/* The value of a metric of a lock: a count, or ms. ABSENT: there is none, or it is not known. */
static int64_t value_of(const struct entry *entry, enum metric metric)
{
  const struct inspection *inspection = &entry->inspection;
  switch (metric) {
  case HELD:
    return inspection->holder_count > 0;
  case HOLDERS:
    return (int64_t)inspection->holder_count;
  case LIMIT:
    return inspection->limit > 0 ? (int64_t)inspection->limit : ABSENT;
  case WAITERS:
    return (int64_t)entry->waiters;
  case OLDEST_WAIT:
    return entry->wait_ms;
  case HOLD:
    return entry->longest_ms;
  default:
    if (inspection->holder_count == 0) return ABSENT;
    return inspection->holders->ttl_ms < 0 ? ENDLESS : inspection->holders->ttl_ms;
  }
}

static void print_value(FILE *to, int64_t value, bool time)
{
  if (value == ENDLESS) fputs("+Inf", to);
  else if (time) exposition_print_seconds(to, value);
  else fprintf(to, "%" PRId64, value);
  fputc('\n', to);
}

static void write_label(FILE *to, const char *name, const char *value)
{
  fprintf(to, ",%s=\"", name);
  exposition_print_label(to, value);
  fputc('"', to);
}

/*
 * Prints a sample up to its value. label: one more label, or NULL; lock: the value of the label
 * `lock`, or NULL.
 */
static void begin_sample(FILE *to, const char *name, const struct list_metrics *metrics,
                         const char *label, const char *lock)
{
  fprintf(to, "fairlock_%s{url=\"", name);
  exposition_print_label(to, metrics->url);
  fprintf(to, "\"%s%s", label != NULL ? "," : "", label != NULL ? label : "");
  if (metrics->pattern != NULL) write_label(to, "pattern", metrics->pattern);
  if (lock != NULL) write_label(to, "lock", lock);
  fputs("} ", to);
}

static void write_gauge(FILE *to, const char *name, const char *help,
                        const struct list_metrics *metrics, int64_t value, bool time)
{
  exposition_begin(to, name, "gauge", help);
  begin_sample(to, name, metrics, NULL, NULL);
  print_value(to, value, time);
}

static void write_sums(FILE *to, const struct list_metrics *metrics)
{
  static const char *const states[] = {"state=\"free\"", "state=\"held\""};
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
  exposition_begin(to, "server_locks", "gauge", "Locks that are held, or free but waited for.");
  for (int held = 0; held < 2; held++) {
    begin_sample(to, "server_locks", metrics, states[held], NULL);
    print_value(to, locks[held], false);
  }
  write_gauge(to, "server_holders", "How many hold all locks.", metrics, holders, false);
  write_gauge(to, "server_waiters", "How many stand in line for all locks.", metrics, waiters,
              false);
  write_gauge(to, "server_oldest_wait_seconds", "The longest fairlock_lock_oldest_wait_seconds.",
              metrics, oldest, true);
}

static int compare(const void *a, const void *b)
{
  const struct entry *one = *(const struct entry *const *)a;
  const struct entry *other = *(const struct entry *const *)b;
  if (one->waiters != other->waiters) return one->waiters < other->waiters ? 1 : -1;
  if (one->longest_ms != other->longest_ms) return one->longest_ms < other->longest_ms ? 1 : -1;
  return (one > other) - (one < other); /* by name, by which the list is sorted */
}

/* The locks, with those first that get samples of their own; NULL when there is no memory. */
static const struct entry **ranked(const struct list_metrics *metrics)
{
  const struct entry **locks = malloc((metrics->count + 1) * sizeof *locks);
  for (size_t i = 0; i < metrics->count && locks != NULL; i++)
    locks[i] = &metrics->entries[i];
  if (locks != NULL) qsort(locks, metrics->count, sizeof *locks, compare);
  return locks;
}

static void write_metric(FILE *to, const struct list_metrics *metrics, const struct entry **locks,
                         size_t count, enum metric metric)
{
  exposition_begin(to, by_lock[metric].name, "gauge", by_lock[metric].help);
  for (size_t i = 0; i < count; i++) {
    int64_t value = value_of(locks[i], metric);
    if (value == ABSENT) continue;
    char *lock = bytes_shown(locks[i]->name, locks[i]->size);
    begin_sample(to, by_lock[metric].name, metrics, NULL, lock);
    free(lock);
    print_value(to, value, by_lock[metric].time);
  }
}

static bool write_locks(FILE *to, const struct list_metrics *metrics)
{
  size_t count = metrics->count < metrics->most ? metrics->count : metrics->most;
  const struct entry **locks = ranked(metrics);
  if (locks == NULL) return false;
  for (int metric = 0; metric < METRICS; metric++)
    write_metric(to, metrics, locks, count, (enum metric)metric);
  free(locks);
  write_gauge(to, "list_locks_left_out", "Locks without samples of their own.", metrics,
              (int64_t)(metrics->count - count), false);
  return true;
}

bool list_metrics_write(FILE *to, const void *context)
{
  const struct list_metrics *metrics = context;
  write_gauge(to, "list_success", "Whether all could be read, 0 or 1.", metrics, metrics->whole,
              false);
  write_gauge(to, "list_duration_seconds", "How long it took to read.", metrics, metrics->took_ms,
              true);
  if (!metrics->read) return true;
  write_sums(to, metrics);
  return write_locks(to, metrics);
}
