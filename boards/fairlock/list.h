/* SPDX-License-Identifier: Apache-2.0 */
/* What `fairlock list` has read, for list_metrics.c. */
#ifndef LIST_H
#define LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "exposition.h"
#include "inspection.h"
#include "times.h"

/* A lock that is held or waited for. */
struct entry {
  char *name; /* allocated, as is server */
  size_t size;
  char *server;
  struct inspection inspection; /* without waiters */
  size_t waiters;
  int64_t read_ms;    /* when it was read, by the server's clock */
  int64_t longest_ms; /* how long the oldest of the holds has lasted; -1: unknown */
  int64_t wait_ms;    /* the longest that the first waiter may have waited; -1: unknown */
};

/* The histograms of a lock that has some; it may be free. */
struct recorded {
  char *name; /* allocated */
  size_t size;
  struct times times;
};

struct list_metrics {
  struct labels labels; /* the URL as session_url() shows it, and the pattern */
  const struct entry *entries;
  const struct recorded *recorded;
  size_t count, recorded_count;
  size_t most; /* how many locks may get samples of their own */

  /* whether anything could be read, and whether everything could */
  bool read, whole;

  /* how long reading took */
  int64_t took_ms;
};

/* Writes a struct list_metrics: an exposition_function. */
void list_metrics_write(FILE *to, const void *context);

#endif
