/* Metrics in the text format of Prometheus, and files that a reader never sees half of. */
#ifndef EXPOSITION_H
#define EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The lines before the samples of fairlock_NAME; type: "gauge" or "counter". */
void exposition_begin(FILE *to, const char *name, const char *type, const char *help);

/* Printable text between the quotes of a label's value. */
void exposition_print_label(FILE *to, const char *text);

/* Milliseconds, 0 or more, as seconds with a point. */
void exposition_print_seconds(FILE *to, int64_t ms);

/* Writes what the file is to contain. Returns false when there is no memory. */
typedef bool exposition_function(FILE *to, const void *context);

/*
 * Replaces the file at path, or makes it: a new one is written next to it, with the number of this
 * process after its name, and renamed. Returns NULL, or why not, in words.
 */
const char *exposition_replace(const char *path, exposition_function *write, const void *context);

#endif
