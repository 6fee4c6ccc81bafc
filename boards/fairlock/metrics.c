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
#include "text.h"

#define INTERVAL_MS 10000U

enum counter { ACQUIRES, WAITS, GRANTED, POLLED, RENEWALS, LOSSES, CONNECTS, REQUESTS, COUNTERS };

struct metrics_shared {
  _Atomic uint32_t counters[COUNTERS];
};

/*
 * In the order of enum counter: name, labels besides the lock's name (NULL: none), and help text.
 */
static const struct {
  const char *name, *help, *label, *json;
} counted[COUNTERS] = {
    {"acquires_total", "Times that the lock was acquired.", NULL, "acquires"},
    {"waits_total", "Acquisitions that had to wait in line.", NULL, "waits"},
    {"handovers_total", "Acquisitions that had to wait, by how they were found out.",
     "by=\"message\"", "granted"},
    {"handovers_total", NULL, "by=\"asking\"", "polled"},
    {"renewals_total", "Times that the lease was renewed.", NULL, "renewals"},
    {"losses_total", "Holds that were lost.", NULL, "losses"},
    {"connects_total", "Connections made to servers.", NULL, "connects"},
    {"requests_total", "Scripts sent to servers.", NULL, "requests"},
};

void metrics_count(const struct metrics *metrics, const struct fairlock_counters *counters)
{
  const uint32_t values[COUNTERS] = {
      [ACQUIRES] = counters->acquisitions, [WAITS] = counters->waits,
      [GRANTED] = counters->granted,       [POLLED] = counters->polled,
      [RENEWALS] = counters->renewals,     [LOSSES] = counters->losses,
      [CONNECTS] = counters->connects,     [REQUESTS] = counters->requests,
  };
  if (metrics->path == NULL) return;
  for (int i = 0; i < COUNTERS; i++)
    atomic_store(&metrics->shared->counters[i], values[i]);
}

/* Times */

static bool is_held(const struct metrics *metrics)
{
  return metrics->was_acquired && !metrics->has_ended;
}

static uint32_t waited_ms(const struct metrics *metrics)
{
  uint32_t end = metrics->was_acquired ? metrics->acquired
                 : metrics->has_ended  ? metrics->ended
                                       : port_clock_ms();
  return end - metrics->started;
}

static uint32_t held_ms(const struct metrics *metrics)
{
  if (!metrics->was_acquired) return 0;
  return (metrics->has_ended ? metrics->ended : port_clock_ms()) - metrics->acquired;
}

/* Prometheus */

/* Prints a sample up to its value. help: NULL if this is not the first sample of the metric. */
static void begin_sample(FILE *to, const char *name, const char *type, const char *help,
                         const char *lock, const char *label)
{
  if (help != NULL) exposition_begin(to, name, type, help);
  fprintf(to, "fairlock_%s{lock=\"", name);
  exposition_print_label(to, lock);
  fprintf(to, "\"%s%s} ", label != NULL ? "," : "", label != NULL ? label : "");
}

static void write_gauge(FILE *to, const char *name, const char *help, const char *lock,
                        int64_t value)
{
  begin_sample(to, name, "gauge", help, lock, NULL);
  fprintf(to, "%" PRId64 "\n", value);
}

static void write_time(FILE *to, const char *name, const char *help, const char *lock, int64_t ms)
{
  begin_sample(to, name, "gauge", help, lock, NULL);
  exposition_print_seconds(to, ms);
  fputc('\n', to);
}

static void write_text(FILE *to, const struct metrics *metrics, const char *lock)
{
  for (int i = 0; i < COUNTERS; i++) {
    begin_sample(to, counted[i].name, "counter", counted[i].help, lock, counted[i].label);
    fprintf(to, "%lu\n", (unsigned long)atomic_load(&metrics->shared->counters[i]));
  }
  write_gauge(to, "held", "Whether the lock is held, 0 or 1.", lock, is_held(metrics));
  write_time(to, "wait_seconds", "How long the lock was, or has been, waited for.", lock,
             waited_ms(metrics));
  write_time(to, "hold_seconds", "How long the lock was, or has been, held.", lock,
             held_ms(metrics));
  write_time(to, "start_time_seconds", "When fairlock run was started, since 1970.", lock,
             metrics->started_ms);
  if (metrics->stopped_ms == 0) return;
  write_time(to, "end_time_seconds", "When fairlock run ended, since 1970.", lock,
             metrics->stopped_ms);
  write_gauge(to, "exit_status", "The exit status of fairlock run.", lock, metrics->exit_status);
}

/* JSON */

static void write_json(FILE *to, const struct metrics *metrics)
{
  fputc('{', to);
  print_json_bytes(to, "name", metrics->lock, strlen(metrics->lock));
  for (int i = 0; i < COUNTERS; i++)
    fprintf(to, ",\"%s\":%lu", counted[i].json,
            (unsigned long)atomic_load(&metrics->shared->counters[i]));
  fprintf(to, ",\"held\":%s,\"wait_seconds\":", is_held(metrics) ? "true" : "false");
  exposition_print_seconds(to, waited_ms(metrics));
  fputs(",\"hold_seconds\":", to);
  exposition_print_seconds(to, held_ms(metrics));
  fputs(",\"start_time_seconds\":", to);
  exposition_print_seconds(to, metrics->started_ms);
  if (metrics->stopped_ms == 0) {
    fputs(",\"end_time_seconds\":null,\"exit_status\":null}\n", to);
    return;
  }
  fputs(",\"end_time_seconds\":", to);
  exposition_print_seconds(to, metrics->stopped_ms);
  fprintf(to, ",\"exit_status\":%d}\n", metrics->exit_status);
}

/* The file */

static bool is_json(const char *path)
{
  size_t size = strlen(path);
  return size > 5 && strcmp(path + size - 5, ".json") == 0;
}

static bool write_metrics(FILE *to, const void *context)
{
  const struct metrics *metrics = context;
  char *lock = printable(metrics->lock, strlen(metrics->lock));
  if (lock == NULL) return false;
  if (is_json(metrics->path)) write_json(to, metrics);
  else write_text(to, metrics, lock);
  free(lock);
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

int metrics_start(struct metrics *metrics, const char *path, const char *lock)
{
  metrics->path = path;
  metrics->lock = lock;
  metrics->started = port_clock_ms();
  metrics->started_ms = time_of_day_ms();
  if (path == NULL) return 0;
  metrics->shared = mmap(NULL, sizeof *metrics->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (metrics->shared == MAP_FAILED) return -1;
  write_file(metrics);
  return 0;
}

void metrics_acquired(struct metrics *metrics)
{
  metrics->was_acquired = true;
  metrics->acquired = port_clock_ms();
  write_file(metrics);
}

static void end(struct metrics *metrics)
{
  if (metrics->has_ended) return;
  metrics->has_ended = true;
  metrics->ended = port_clock_ms();
}

void metrics_hold_ended(struct metrics *metrics)
{
  end(metrics);
  write_file(metrics);
}

void metrics_stopped(struct metrics *metrics, int exit_status)
{
  end(metrics);
  metrics->exit_status = exit_status;
  metrics->stopped_ms = time_of_day_ms();
  write_file(metrics);
}

int metrics_tick(struct metrics *metrics)
{
  if (metrics->path == NULL) return -1;
  if (port_clock_ms() - metrics->written >= INTERVAL_MS) write_file(metrics);
  uint32_t since = port_clock_ms() - metrics->written;
  return since < INTERVAL_MS ? (int)(INTERVAL_MS - since) : 0;
}
