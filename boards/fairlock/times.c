/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash has a field for each bucket that is not empty: "wait 30" counts the waits of more than 10
 * and at most 30 ms, "wait more" those above all bounds; "wait sum" is the sum in ms; and "hold ..."
 * the same of the holds. A bound that this release does not know counts in the next larger bucket.
 *
 * The key is `fairlock:fairlock:times:B(name)`, and that of no lock for the reason that record.c
 * gives.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "times.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MOST (INT64_C(1) << 53)

const int64_t times_bounds[TIMES_BOUNDS] = {10,      30,      100,      300,      1000,
                                            3000,    10000,   30000,    100000,   300000,
                                            1000000, 3000000, 10000000, 30000000, 100000000};

static const char *const kinds[TIMES_KINDS] = {[WAIT_TIMES] = "wait", [HOLD_TIMES] = "hold"};

/* The bucket of a time, or of a bound. */
static int bucket_of(int64_t ms)
{
  int bucket = 0;
  while (bucket < TIMES_BOUNDS && ms > times_bounds[bucket])
    bucket++;
  return bucket;
}

static int ask(struct query *query, const struct word *key, const char *field, int64_t by)
{
  char number[24];
  size_t size = (size_t)snprintf(number, sizeof number, "%" PRId64, by);
  const struct word words[] = {{"HINCRBY", 7}, *key, {field, strlen(field)}, {number, size}};
  return query_ask(query, words, 4);
}

int times_ask(struct query *query, const struct word *key, enum times_kind kind, int64_t ms)
{
  char bucket[32], sum[16];
  int which = bucket_of(ms);
  snprintf(sum, sizeof sum, "%s sum", kinds[kind]);
  snprintf(bucket, sizeof bucket, "%s more", kinds[kind]);
  if (which < TIMES_BOUNDS)
    snprintf(bucket, sizeof bucket, "%s %" PRId64, kinds[kind], times_bounds[which]);
  int status = ask(query, key, bucket, 1);
  return status == FAIRLOCK_OK ? ask(query, key, sum, ms) : status;
}

/* Takes a field's number. What is not ours is passed over. */
static void take(struct times *times, const char *field, int64_t number)
{
  for (int kind = 0; kind < TIMES_KINDS; kind++) {
    const char *rest = field + strlen(kinds[kind]) + 1;
    int64_t bound = INT64_MAX;
    if (strncmp(field, kinds[kind], strlen(kinds[kind])) != 0 || rest[-1] != ' ') continue;
    if (strcmp(rest, "sum") == 0) times->sum_ms[kind] = number;
    else if (strcmp(rest, "more") == 0 ||
             resp_parse_number((const uint8_t *)rest, strlen(rest), &bound))
      times->counts[kind][bucket_of(bound)] += (uint64_t)number;
  }
}

int times_read(struct query *query, const char *name, size_t size, struct times *times)
{
  char key[BESIDE_KEY_SIZE], field[32] = "";
  const struct word words[] = {{"HGETALL", 7}, {key, beside_key(key, TIMES_PREFIX, name, size)}};
  struct resp_event event;
  bool named = false;
  int failed = FAIRLOCK_OK;
  int status = query_ask(query, words, 2);
  do {
    if (status == FAIRLOCK_OK) status = query_event(query, &event);
    if (status != FAIRLOCK_OK) return status;
    if (event.depth == 0 && query_is_error(&event)) failed = query_refused(query, &event);
    if (event.depth != 1) continue;
    bool text = event.type == RESP_BULK_STRING && !event.cut && event.data != NULL;
    int64_t number;
    if (!named) query_copy(field, sizeof field, &event);
    else if (text && resp_parse_number(event.data, event.size, &number) && number >= 0 &&
             number <= MOST)
      take(times, field, number);
    named = !named;
  } while (!event.last);
  return failed;
}

uint64_t times_count(const struct times *times, enum times_kind kind)
{
  uint64_t count = 0;
  for (int i = 0; i <= TIMES_BOUNDS; i++)
    count += times->counts[kind][i];
  return count;
}
