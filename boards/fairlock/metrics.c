/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes counters and times to a file: in the text format of Prometheus, or as JSON if the file's
 * name ends in .json.
 *
 * The agent counts, but must never wait for a disk. So it only stores its counters in shared
 * memory, and `fairlock run` writes the file.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "command.h"
#include "exposition.h"
#include "port.h"
#include "session.h"
#include "text.h"

#define INTERVAL_MS 10000U

/*
 * What the agent counts. The first three are told as 0 or 1: a run is one acquisition, and a counter
 * that begins again with each run would rise by nothing from one run to the next.
 */
enum count { WAITS, GRANTED, POLLED, RENEWALS, CONNECTIONS, REQUESTS, COUNTS };

struct metrics_shared {
  _Atomic uint32_t counts[COUNTS];
};

void metrics_count(const struct metrics *metrics, const struct fairlock_counters *counters)
{
  const uint32_t values[COUNTS] = {
      [WAITS] = counters->waits,
      [GRANTED] = counters->granted,
      [POLLED] = counters->polled,
      [RENEWALS] = counters->renewals,
      [CONNECTIONS] = counters->connections,
      [REQUESTS] = counters->requests,
  };
  if (metrics->path == NULL) return;
  for (int i = 0; i < COUNTS; i++)
    atomic_store(&metrics->shared->counts[i], values[i]);
}

static int64_t counted(const struct metrics *metrics, enum count count)
{
  return (int64_t)atomic_load(&metrics->shared->counts[count]);
}

static bool was_acquired(const struct metrics *metrics)
{
  return metrics->acquired != 0;
}

/*
 * Whether the lock that the command has, or had, was waited for, or was handed over in this way. A
 * hold that ended before the command began, after which the wait went on, counts as part of it.
 */
static bool came_by(const struct metrics *metrics, enum count count)
{
  return was_acquired(metrics) && counted(metrics, count) > 0;
}

static int64_t waited_ms(const struct metrics *metrics)
{
  int64_t end = was_acquired(metrics) ? metrics->acquired : metrics->ended;
  return (end != 0 ? end : long_clock_ms()) - metrics->started;
}

static int64_t held_ms(const struct metrics *metrics)
{
  if (!was_acquired(metrics)) return 0;
  return (metrics->ended != 0 ? metrics->ended : long_clock_ms()) - metrics->acquired;
}

static void write_metrics(FILE *to, const void *context)
{
  const struct metrics *metrics = context;
  const struct labels labels = {.url = metrics->url, .lock = metrics->shown};
  bool stopped = metrics->stopped_ms != 0;
  const struct metric all[] = {
      {"run_acquired", "acquired", FLAG, was_acquired(metrics),
       "Whether the lock was acquired, 0 or 1.", NULL},
      {"run_waited", "waited", FLAG, came_by(metrics, WAITS),
       "Whether it was acquired after a wait in line, 0 or 1.", NULL},
      {"run_handed_over", "granted", FLAG, came_by(metrics, GRANTED),
       "Whether the lock was handed over to it, by how that was found out, 0 or 1.",
       "how=\"granted\""},
      {"run_handed_over", "polled", FLAG, came_by(metrics, POLLED), NULL, "how=\"polled\""},
      {"run_held", "held", FLAG, was_acquired(metrics) && metrics->ended == 0,
       "Whether the lock is held, 0 or 1.", NULL},
      {"run_lost", "lost", FLAG, metrics->was_lost, "Whether the lock was lost, 0 or 1.", NULL},
      {"run_renewals_total", "renewals", COUNTER, counted(metrics, RENEWALS),
       "Times that the lease was renewed.", NULL},
      {"run_connections_total", "connections", COUNTER, counted(metrics, CONNECTIONS),
       "Connections made to servers.", NULL},
      {"run_requests_total", "requests", COUNTER, counted(metrics, REQUESTS),
       "Scripts sent to servers.", NULL},
      {"run_wait_seconds", "wait_seconds", SECONDS, waited_ms(metrics),
       "How long the lock was, or has been, waited for.", NULL},
      {"run_hold_seconds", "hold_seconds", SECONDS, held_ms(metrics),
       "How long the lock was, or has been, held.", NULL},
      {"run_start_time_seconds", "start_time_seconds", SECONDS, metrics->started_ms,
       "When fairlock run was started, since 1970.", NULL},
      {"run_end_time_seconds", "end_time_seconds", SECONDS, stopped ? metrics->stopped_ms : ABSENT,
       "When fairlock run ended, since 1970.", NULL},
      {"run_exit_status", "exit_status", NUMBER, stopped ? metrics->exit_status : ABSENT,
       "The exit status of fairlock run.", NULL},
  };
  size_t count = sizeof all / sizeof all[0];
  if (exposition_is_json(metrics->path)) {
    fputc('{', to);
    print_json_bytes(to, "name", metrics->lock, strlen(metrics->lock));
    fputc(',', to);
    print_json_bytes(to, "url", metrics->url, strlen(metrics->url));
    exposition_print_json(to, all, count);
    fputs("}\n", to);
  } else {
    exposition_print(to, all, count, &labels);
  }
}

/* The file */

static void write_file(struct metrics *metrics)
{
  if (metrics->path == NULL) return;
  const char *why = exposition_replace(metrics->path, write_metrics, metrics);
  if (why != NULL && !metrics->complained) {
    complain("cannot write metrics to %s: %s", metrics->path, why);
    metrics->complained = true;
  }
  metrics->written = port_clock_ms();
}

int metrics_start(struct metrics *metrics, const char *path, const struct session *session,
                  const char *lock)
{
  metrics->path = path;
  metrics->lock = lock;
  metrics->started = long_clock_ms();
  metrics->started_ms = time_of_day_ms();
  if (path == NULL) return 0;
  metrics->shown = printable(lock, strlen(lock));
  metrics->url = session_url(session);
  metrics->shared = mmap(NULL, sizeof *metrics->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (metrics->shared == MAP_FAILED) return -1;
  write_file(metrics);
  return 0;
}

void metrics_acquired(struct metrics *metrics)
{
  metrics->acquired = long_clock_ms();
  write_file(metrics);
}

void metrics_lost(struct metrics *metrics)
{
  if (metrics->acquired == 0) metrics->acquired = long_clock_ms(); /* if only for a moment */
  if (metrics->ended == 0) metrics->ended = long_clock_ms();
  metrics->was_lost = true;
  write_file(metrics);
}

void metrics_stopped(struct metrics *metrics, int exit_status)
{
  if (metrics->ended == 0) metrics->ended = long_clock_ms();
  metrics->exit_status = exit_status;
  metrics->stopped_ms = time_of_day_ms();
  write_file(metrics);
  free(metrics->shown);
  free(metrics->url);
}

int metrics_tick(struct metrics *metrics)
{
  if (metrics->path == NULL) return -1;
  if (port_clock_ms() - metrics->written >= INTERVAL_MS) write_file(metrics);
  uint32_t since = port_clock_ms() - metrics->written;
  return since < INTERVAL_MS ? (int)(INTERVAL_MS - since) : 0;
}
