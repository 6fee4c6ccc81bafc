/*
 * Writes counters and times to a file: in the text format of Prometheus, as the textfile collector
 * of its node_exporter reads it, or as JSON if the file's name ends with .json. A reader never sees
 * half of it: a new file is written next to the old one, and renamed.
 *
 * The keeper counts, and must never wait for a disk; so it puts its numbers into shared memory, and
 * the process that runs the command writes the file.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "port.h"
#include "text.h"

#define INTERVAL_MS 10000U

enum counter { ACQUIRES, WAITS, GRANTED, POLLED, RENEWALS, LOSSES, CONNECTS, REQUESTS, COUNTERS };

struct metrics_shared {
  _Atomic uint32_t counters[COUNTERS];
};

/*
 * In the order of enum counter. Labels in addition to the lock's name; NULL: none, and a help text.
 */
static const struct {
  const char *name, *help, *label, *json;
} counted[COUNTERS] = {
    {"acquires", "Times that the lock was acquired.", NULL, "acquires"},
    {"waits", "Acquisitions that had to wait in line.", NULL, "waits"},
    {"handovers", "Acquisitions that had to wait, by how they were found out.", "by=\"message\"",
     "granted"},
    {"handovers", NULL, "by=\"asking\"", "polled"},
    {"renewals", "Times that the lease was renewed.", NULL, "renewals"},
    {"losses", "Holds that were lost.", NULL, "losses"},
    {"connects", "Connections made to servers.", NULL, "connects"},
    {"requests", "Scripts sent to servers.", NULL, "requests"},
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

/* Printable text as the value of a label. */
static void print_label(FILE *to, const char *text)
{
  for (; *text != 0; text++) {
    if (*text == '"' || *text == '\\') fputc('\\', to);
    fputc(*text, to);
  }
}

/* The name of a sample, with labels. help: NULL if another sample has begun the metric. */
static void begin_sample(FILE *to, const char *name, const char *type, const char *help,
                         const char *lock, const char *label)
{
  const char *end = strcmp(type, "counter") == 0 ? "_total" : "";
  if (help != NULL) {
    fprintf(to, "# HELP fairlock_%s%s %s\n", name, end, help);
    fprintf(to, "# TYPE fairlock_%s%s %s\n", name, end, type);
  }
  fprintf(to, "fairlock_%s%s{lock=\"", name, end);
  print_label(to, lock);
  fprintf(to, "\"%s%s} ", label != NULL ? "," : "", label != NULL ? label : "");
}

/* Thousandths, as a number with a point. */
static void print_seconds(FILE *to, int64_t ms)
{
  fprintf(to, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
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
  print_seconds(to, ms);
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
  print_seconds(to, waited_ms(metrics));
  fputs(",\"hold_seconds\":", to);
  print_seconds(to, held_ms(metrics));
  fputs(",\"start_time_seconds\":", to);
  print_seconds(to, metrics->started_ms);
  if (metrics->stopped_ms == 0) {
    fputs(",\"end_time_seconds\":null,\"exit_status\":null}\n", to);
    return;
  }
  fputs(",\"end_time_seconds\":", to);
  print_seconds(to, metrics->stopped_ms);
  fprintf(to, ",\"exit_status\":%d}\n", metrics->exit_status);
}

/* The file */

static bool is_json(const char *path)
{
  size_t size = strlen(path);
  return size > 5 && strcmp(path + size - 5, ".json") == 0;
}

/* Writes a new file. Returns whether all of it was written. */
static bool write_new(const struct metrics *metrics, const char *temporary)
{
  (void)unlink(temporary); /* left by a process that had our number and was killed */
  int descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
  char *lock = printable(metrics->lock, strlen(metrics->lock));
  if (file == NULL || lock == NULL) {
    free(lock);
    if (file != NULL) (void)fclose(file);
    else if (descriptor >= 0) (void)close(descriptor);
    return false;
  }
  if (is_json(metrics->path)) write_json(file, metrics);
  else write_text(file, metrics, lock);
  free(lock);
  bool written = !ferror(file);
  return fclose(file) == 0 && written;
}

/*
 * Only a file gives way to a new one: to take the place of a device, a pipe or a link (/dev/stdout
 * is one) would destroy it. A folder refuses by itself.
 */
static bool may_replace(const char *path)
{
  struct stat there;
  return lstat(path, &there) != 0 || S_ISREG(there.st_mode) || S_ISDIR(there.st_mode);
}

static void write_file(struct metrics *metrics)
{
  if (metrics->path == NULL) return;
  size_t size = strlen(metrics->path) + 24;
  char *temporary = malloc(size);
  if (temporary != NULL) {
    snprintf(temporary, size, "%s.%ld", metrics->path, (long)getpid());
    bool may = may_replace(metrics->path);
    bool done = may && write_new(metrics, temporary) && rename(temporary, metrics->path) == 0;
    int error = errno;
    if (may && !done) (void)unlink(temporary);
    if (!done && !metrics->complained) {
      complain("cannot write metrics to %s: %s", metrics->path,
               may ? strerror(error) : "Not a regular file");
      metrics->complained = true;
    }
    free(temporary);
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
