/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in the text format of Prometheus, and files that nobody can read half-written. */
#ifndef EXPOSITION_H
#define EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Prints the HELP and TYPE lines of the metric fairlock_NAME. type: "gauge" or "counter". */
void exposition_begin(FILE *to, const char *name, const char *type, const char *help);

/* Prints text, which is printable, as it has to stand between the quotes of a label's value. */
void exposition_print_label(FILE *to, const char *text);

/* Prints ms, which is not negative, in seconds with three decimals. */
void exposition_print_seconds(FILE *to, int64_t ms);

/* Returns true if the name of the file asks for JSON. */
bool exposition_is_json(const char *path);

/* Writes what the file is to contain. Returns false when there is no memory. */
typedef bool exposition_function(FILE *to, const void *context);

/*
 * Replaces or creates the file at path. The new file is written next to it, under a name that ends
 * in our process id, and then renamed. Returns NULL, or the reason for failing, in words.
 */
const char *exposition_replace(const char *path, exposition_function *write, const void *context);

#endif
