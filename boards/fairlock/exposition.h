/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in the text format of Prometheus, and files that nobody can read half-written. */
#ifndef EXPOSITION_H
#define EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * What a value is. A FLAG is 0 or 1, and true or false in JSON. SECONDS are given in ms. A HISTOGRAM
 * only begins: its samples have names of their own.
 */
enum unit { FLAG, NUMBER, COUNTER, SECONDS, HISTOGRAM };

#define ABSENT  (-1)      /* there is no value, or it is not known */
#define ENDLESS INT64_MAX /* +Inf                                  */

struct metric {
  const char *name, *member; /* behind fairlock_, and in JSON                        */
  enum unit unit;
  int64_t value;
  const char *help;  /* NULL: it has the name of the metric before it        */
  const char *state; /* then a label that tells them from each other         */
};

/* The labels of samples, printable; all but the URL may be NULL. */
struct labels {
  const char *url, *pattern, *lock;
};

/* Prints metrics that have one sample each, unless their values are ABSENT. */
void exposition_print(FILE *to, const struct metric *metrics, size_t count,
                      const struct labels *labels);

/* The same in parts, for metrics with more samples. */
void exposition_begin(FILE *to, const struct metric *metric);
void exposition_sample(FILE *to, const struct metric *metric, const struct labels *labels);

/* Prints metrics as members of a JSON object that others precede; null if they are ABSENT. */
void exposition_print_json(FILE *to, const struct metric *metrics, size_t count);

/* Prints ms, which is not negative, in seconds with three decimals. */
void exposition_print_seconds(FILE *to, int64_t ms);

/* Returns true if the name of the file asks for JSON. */
bool exposition_is_json(const char *path);

/* Writes what the file is to contain. */
typedef void exposition_function(FILE *to, const void *context);

/*
 * Replaces or creates the file at path. The new file is written next to it, under a name that ends
 * in our process id, and then renamed. Returns NULL, or the reason for failing, in words.
 */
const char *exposition_replace(const char *path, exposition_function *write, const void *context);

#endif
