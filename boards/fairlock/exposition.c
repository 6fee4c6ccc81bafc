/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `fairlock run --metrics-file` and `fairlock list --metrics` share. It prints Prometheus's
 * text format, which the textfile collector of node_exporter reads, and it replaces files in one
 * step.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "exposition.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

void exposition_begin(FILE *to, const struct metric *metric)
{
  fprintf(to, "# HELP fairlock_%s %s\n", metric->name, metric->help);
  fprintf(to, "# TYPE fairlock_%s %s\n", metric->name,
          metric->unit == COUNTER     ? "counter"
          : metric->unit == HISTOGRAM ? "histogram"
                                      : "gauge");
}

static void print_label(FILE *to, const char *before, const char *name, const char *text)
{
  if (text == NULL) return;
  fprintf(to, "%s%s=\"", before, name);
  for (; *text != 0; text++) {
    if (*text == '"' || *text == '\\') fputc('\\', to);
    fputc(*text, to);
  }
  fputc('"', to);
}

static void print_value(FILE *to, const struct metric *metric)
{
  if (metric->value == ENDLESS) fputs("+Inf", to);
  else if (metric->unit == SECONDS) exposition_print_seconds(to, metric->value);
  else fprintf(to, "%" PRId64, metric->value);
}

void exposition_sample(FILE *to, const struct metric *metric, const struct labels *labels)
{
  if (metric->value == ABSENT) return;
  fprintf(to, "fairlock_%s", metric->name);
  print_label(to, "{", "url", labels->url);
  if (metric->state != NULL) fprintf(to, ",%s", metric->state);
  print_label(to, ",", "pattern", labels->pattern);
  print_label(to, ",", "lock", labels->lock);
  fputs("} ", to);
  print_value(to, metric);
  fputc('\n', to);
}

void exposition_print(FILE *to, const struct metric *metrics, size_t count,
                      const struct labels *labels)
{
  for (size_t i = 0; i < count; i++) {
    if (metrics[i].value == ABSENT) continue;
    if (metrics[i].help != NULL) exposition_begin(to, &metrics[i]);
    exposition_sample(to, &metrics[i], labels);
  }
}

void exposition_print_json(FILE *to, const struct metric *metrics, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    fprintf(to, ",\"%s\":", metrics[i].member);
    if (metrics[i].value == ABSENT) fputs("null", to);
    else if (metrics[i].unit == FLAG) fputs(metrics[i].value != 0 ? "true" : "false", to);
    else print_value(to, &metrics[i]);
  }
}

void exposition_print_seconds(FILE *to, int64_t ms)
{
  fprintf(to, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
}

bool exposition_is_json(const char *path)
{
  size_t size = strlen(path);
  return size > 5 && strcmp(path + size - 5, ".json") == 0;
}

/* Writes a new file. Returns whether all of it was written. */
static bool write_new(const char *path, exposition_function *write, const void *context)
{
  (void)unlink(path); /* a killed process that had the same process id may have left one */
  int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
  if (file == NULL) {
    if (descriptor >= 0) (void)close(descriptor);
    return false;
  }
  write(file, context);
  bool written = !ferror(file);
  return fclose(file) == 0 && written;
}

/* rename() would also replace, and so destroy, a device, a pipe or a link such as /dev/stdout. */
static bool may_replace(const char *path)
{
  struct stat there;
  return lstat(path, &there) != 0 || S_ISREG(there.st_mode) || S_ISDIR(there.st_mode);
}

const char *exposition_replace(const char *path, exposition_function *write, const void *context)
{
  if (!may_replace(path)) return "Not a regular file";
  size_t size = strlen(path) + 24;
  char *temporary = grown(NULL, size);
  snprintf(temporary, size, "%s.%ld", path, (long)getpid());
  bool done = write_new(temporary, write, context) && rename(temporary, path) == 0;
  int error = errno;
  if (!done) (void)unlink(temporary);
  free(temporary);
  return done ? NULL : strerror(error);
}
