/* SPDX-License-Identifier: Apache-2.0 */
/* What `fairlock run --metrics-file` tells a monitoring system. */
#ifndef METRICS_H
#define METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "fairlock.h"

struct metrics_shared;
struct session;

struct metrics {
  const char *path; /* NULL: no file is wanted */
  const char *lock; /* the lock's name */

  /* the same, printable, and session_url(); if path is not NULL */
  char *shown, *url;

  /* the agent's counters, in memory that it shares with `fairlock run` */
  struct metrics_shared *shared;

  /* in long_clock_ms(): begin of the run, of the hold, and the end of the latter; 0: not yet */
  int64_t started, acquired, ended;
  bool was_lost;

  /* in ms since 1970; stopped_ms: 0 until the run ends */
  int64_t started_ms, stopped_ms;

  int exit_status;
  uint32_t written; /* when the file was last written, in port_clock_ms() */
  bool complained;
};

/* To be called before agent_start(). Writes the file first. Returns 0, or -1 with errno set. */
int metrics_start(struct metrics *metrics, const char *path, const struct session *session,
                  const char *lock);

/* To be called in the agent: stores its counters. Never blocks. */
void metrics_count(const struct metrics *metrics, const struct fairlock_counters *counters);

/* In `fairlock run`: each writes the file, which may block. A failure is reported once. */
void metrics_acquired(struct metrics *metrics);
void metrics_lost(struct metrics *metrics);
void metrics_stopped(struct metrics *metrics, int exit_status);

/* Writes the file if that is due. Returns the ms until it is due again; -1: never. */
int metrics_tick(struct metrics *metrics);

#endif
