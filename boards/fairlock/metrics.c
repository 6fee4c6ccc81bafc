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

static unsigned long counted(const struct metrics *metrics, enum count count)
{
  return (unsigned long)atomic_load(&metrics->shared->counts[count]);
}

/*
 * Whether the lock that the command has, or had, was waited for, or was handed over in this way. A
 * hold that ended before the command began, after which the wait went on, counts as part of it.
 */
static bool came_by(const struct metrics *metrics, enum count count)
{
  return metrics->was_acquired && counted(metrics, count) > 0;
}

/* Times */

static bool is_held(const struct metrics *metrics)
{
  return metrics->was_acquired && !metrics->has_ended;
}

static int64_t waited_ms(const struct metrics *metrics)
{
  int64_t end = metrics->was_acquired ? metrics->acquired
                : metrics->has_ended  ? metrics->ended
                                      : long_clock_ms();
  return end - metrics->started;
}

static int64_t held_ms(const struct metrics *metrics)
{
  if (!metrics->was_acquired) return 0;
  return (metrics->has_ended ? metrics->ended : long_clock_ms()) - metrics->acquired;
}

/* Prometheus */

/* Prints a sample up to its value. label: one more label, or NULL. */
static void begin_sample(FILE *to, const struct metrics *metrics, const char *name,
                         const char *label)
{
  fprintf(to, "fairlock_%s{url=\"", name);
  exposition_print_label(to, metrics->url);
  fputs("\",lock=\"", to);
  exposition_print_label(to, metrics->shown);
  fprintf(to, "\"%s%s} ", label != NULL ? "," : "", label != NULL ? label : "");
}

static void write_number(FILE *to, const struct metrics *metrics, const char *name,
                         const char *type, const char *help, unsigned long value)
{
  exposition_begin(to, name, type, help);
  begin_sample(to, metrics, name, NULL);
  fprintf(to, "%lu\n", value);
}

static void write_whether(FILE *to, const struct metrics *metrics, const char *name,
                          const char *help, bool value)
{
  write_number(to, metrics, name, "gauge", help, value);
}

static void write_counter(FILE *to, const struct metrics *metrics, const char *name,
                          const char *help, enum count count)
{
  write_number(to, metrics, name, "counter", help, counted(metrics, count));
}

static void write_time(FILE *to, const struct metrics *metrics, const char *name, const char *help,
                       int64_t ms)
{
  exposition_begin(to, name, "gauge", help);
  begin_sample(to, metrics, name, NULL);
  exposition_print_seconds(to, ms);
  fputc('\n', to);
}

static void write_handover(FILE *to, const struct metrics *metrics)
{
  exposition_begin(to, "run_handed_over", "gauge",
                   "Whether the lock was handed over to it, by how that was found out, 0 or 1.");
  begin_sample(to, metrics, "run_handed_over", "how=\"granted\"");
  fprintf(to, "%d\n", came_by(metrics, GRANTED));
  begin_sample(to, metrics, "run_handed_over", "how=\"polled\"");
  fprintf(to, "%d\n", came_by(metrics, POLLED));
}

static void write_text(FILE *to, const struct metrics *metrics)
{
  write_whether(to, metrics, "run_acquired", "Whether the lock was acquired, 0 or 1.",
                metrics->was_acquired);
  write_whether(to, metrics, "run_waited", "Whether it was acquired after a wait in line, 0 or 1.",
                came_by(metrics, WAITS));
  write_handover(to, metrics);
  write_whether(to, metrics, "run_held", "Whether the lock is held, 0 or 1.", is_held(metrics));
  write_whether(to, metrics, "run_lost", "Whether the lock was lost, 0 or 1.", metrics->was_lost);
  write_counter(to, metrics, "run_renewals_total", "Times that the lease was renewed.", RENEWALS);
  write_counter(to, metrics, "run_connections_total", "Connections made to servers.", CONNECTIONS);
  write_counter(to, metrics, "run_requests_total", "Scripts sent to servers.", REQUESTS);
  write_time(to, metrics, "run_wait_seconds", "How long the lock was, or has been, waited for.",
             waited_ms(metrics));
  write_time(to, metrics, "run_hold_seconds", "How long the lock was, or has been, held.",
             held_ms(metrics));
  write_time(to, metrics, "run_start_time_seconds", "When fairlock run was started, since 1970.",
             metrics->started_ms);
  if (metrics->stopped_ms == 0) return;
  write_time(to, metrics, "run_end_time_seconds", "When fairlock run ended, since 1970.",
             metrics->stopped_ms);
  write_number(to, metrics, "run_exit_status", "gauge", "The exit status of fairlock run.",
               (unsigned long)metrics->exit_status);
}

/* JSON */

static void print_whether(FILE *to, const char *name, bool value)
{
  fprintf(to, ",\"%s\":%s", name, value ? "true" : "false");
}

static void print_time(FILE *to, const char *name, int64_t ms)
{
  fprintf(to, ",\"%s\":", name);
  exposition_print_seconds(to, ms);
}

static void write_json(FILE *to, const struct metrics *metrics)
{
  fputc('{', to);
  print_json_bytes(to, "name", metrics->lock, strlen(metrics->lock));
  fputc(',', to);
  print_json_bytes(to, "url", metrics->url, strlen(metrics->url));
  print_whether(to, "acquired", metrics->was_acquired);
  print_whether(to, "waited", came_by(metrics, WAITS));
  print_whether(to, "granted", came_by(metrics, GRANTED));
  print_whether(to, "polled", came_by(metrics, POLLED));
  print_whether(to, "held", is_held(metrics));
  print_whether(to, "lost", metrics->was_lost);
  fprintf(to, ",\"renewals\":%lu,\"connections\":%lu,\"requests\":%lu", counted(metrics, RENEWALS),
          counted(metrics, CONNECTIONS), counted(metrics, REQUESTS));
  print_time(to, "wait_seconds", waited_ms(metrics));
  print_time(to, "hold_seconds", held_ms(metrics));
  print_time(to, "start_time_seconds", metrics->started_ms);
  if (metrics->stopped_ms == 0) {
    fputs(",\"end_time_seconds\":null,\"exit_status\":null}\n", to);
    return;
  }
  print_time(to, "end_time_seconds", metrics->stopped_ms);
  fprintf(to, ",\"exit_status\":%d}\n", metrics->exit_status);
}

/* The file */

static bool write_metrics(FILE *to, const void *context)
{
  const struct metrics *metrics = context;
  if (exposition_is_json(metrics->path)) write_json(to, metrics);
  else write_text(to, metrics);
  return true;
}

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
  metrics->shown = bytes_shown(lock, strlen(lock));
  metrics->url = session_url(session);
  metrics->shared = mmap(NULL, sizeof *metrics->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (metrics->shared == MAP_FAILED) return -1;
  write_file(metrics);
  return 0;
}

void metrics_acquired(struct metrics *metrics)
{
  metrics->was_acquired = true;
  metrics->acquired = long_clock_ms();
  write_file(metrics);
}

static void end(struct metrics *metrics)
{
  if (metrics->has_ended) return;
  metrics->has_ended = true;
  metrics->ended = long_clock_ms();
}

void metrics_lost(struct metrics *metrics)
{
  if (!metrics->was_acquired) metrics->acquired = long_clock_ms();
  metrics->was_acquired = true; /* if only for a moment */
  metrics->was_lost = true;
  end(metrics);
  write_file(metrics);
}

void metrics_stopped(struct metrics *metrics, int exit_status)
{
  end(metrics);
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
