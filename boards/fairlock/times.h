/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a lock was waited for and held: two histograms in a hash beside its history. `fairlock
 * run --history` adds to them, and `fairlock list --metrics` prints them. They only grow, however
 * short the history is kept.
 */
#ifndef TIMES_H
#define TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "query.h"

enum times_kind { WAIT_TIMES, HOLD_TIMES, TIMES_KINDS };

/* The buckets' upper bounds, in ms; the last bucket has none. */
#define TIMES_BOUNDS 15
extern const int64_t times_bounds[TIMES_BOUNDS];

struct times {
  uint64_t counts[TIMES_KINDS][TIMES_BOUNDS + 1]; /* of a bucket alone */
  int64_t sum_ms[TIMES_KINDS];
};

/* Of their keys; see beside_key(). */
#define TIMES_PREFIX "fairlock:fairlock:times:"

/* Adds TIMES_REQUESTS requests, each with one answer, that count a wait or a hold. Returns a status. */
#define TIMES_REQUESTS 2
int times_ask(struct query *query, const struct word *key, enum times_kind kind, int64_t ms);

/* Reads the histograms; of a lock without any, they are empty. Returns a status. */
int times_read(struct query *query, const char *name, size_t size, struct times *times);

/* How many waits, or holds, there were. */
uint64_t times_count(const struct times *times, enum times_kind kind);

#endif
