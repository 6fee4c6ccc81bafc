/* What `fairlock run --metrics-file` tells a monitoring system. */
#ifndef METRICS_H
#define METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

struct metrics_shared;

struct metrics {
  const char *path; /* NULL: no file is wanted */
  const char *lock; /* its name */

  /* what the keeper has counted, in memory that we share with it */
  struct metrics_shared *shared;

  /* in port_clock_ms(): of the run; of the hold, if was_acquired; of the end, if has_ended */
  uint32_t started, acquired, ended;
  bool was_acquired, has_ended;

  /* of the system's clock, in ms since 1970; stopped: 0 as long as we run */
  int64_t started_ms, stopped_ms;

  int exit_status;
  uint32_t written; /* when the file was written last */
  bool complained;
};

/*
 * Before the keeper is made: writes the first file, if there is to be one. Returns 0, or -1 with
 * errno set.
 */
int metrics_start(struct metrics *metrics, const char *path, const char *lock);

/* In the keeper: notes what was counted. Never blocks. */
void metrics_count(const struct metrics *metrics, const struct fairlock_counters *counters);

/*
 * All that follow are not for the keeper. The file is rewritten at each of these, and whenever
 * metrics_tick() finds that it is time. Writing may take as long as the file system takes; a
 * failure to write is reported once.
 */
void metrics_acquired(struct metrics *metrics);
void metrics_hold_ended(struct metrics *metrics);
void metrics_stopped(struct metrics *metrics, int exit_status);

/* Writes the file if it is time. Returns the ms until the next time; -1: never. */
int metrics_tick(struct metrics *metrics);

#endif
