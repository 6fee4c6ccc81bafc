/* What `fairlock list` has read, and its metrics of a whole server. */
#ifndef LIST_H
#define LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "inspection.h"

/* A lock that is held or waited for. */
struct entry {
  char *name; /* allocated, as is server */
  size_t size;
  char *server;
  struct inspection inspection; /* without waiters */
  size_t waiters;
  int64_t age_ms;  /* -1: unknown */
  int64_t wait_ms; /* how long the first in line has waited, at most; -1: unknown */
};

struct list_metrics {
  const char *server; /* printable */
  const struct entry *entries;
  size_t count;
  size_t most; /* locks that get samples of their own */

  /* anything could be read; nothing is missing */
  bool read, whole;

  /* how long that took */
  int64_t took_ms;
};

/* Writes a struct list_metrics: an exposition_function. */
bool list_metrics_write(FILE *to, const void *context);

#endif
