/* SPDX-License-Identifier: Apache-2.0 */
/* What `fairlock history` has read, for history_svg.c. */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Any bytes, allocated, with a NUL behind them; NULL: none. */
struct text {
  char *bytes;
  size_t size;
};

/* How a hold has ended. */
enum fate {
  RELEASED,
  LOST_IT, /* its lease ran out, or its key was deleted                    */
  BROKEN,  /* by an operator                                              */
  CRASHED, /* it is not held, and nobody has written an end               */
  HELD,    /* it has not                                                  */
  GAVE_UP  /* it is no hold, but a wait that was given up                 */
};

/* A wait, and the hold that it has led to. */
struct span {
  enum fate fate;
  bool shared;
  uint64_t token;         /* 0: none                                               */
  int64_t wait_ms;        /* how long the wait before from_ms was; -1: not known   */
  int64_t from_ms, to_ms; /* of the hold; of GAVE_UP both are its end. -1: not known */
  int64_t status;         /* the exit status; -1: not known                        */
  struct text id;         /* of the holder                                         */
  struct text command;
  struct text by, reason; /* of BROKEN                                             */
};

struct history {
  const char *name;
  int64_t now_ms;     /* the server's time */
  struct span *spans; /* by from_ms */
  size_t count;
};

/* When the wait began, or the hold, if there was none; and when it ended, or now. */
int64_t span_begin(const struct span *span);
int64_t span_end(const struct history *history, const struct span *span);

/* The host of an id, or what --id has put in its place; printable, to be freed. */
char *span_host(const struct span *span);

/* Writes who has broken it, and why; printable, to be freed. */
char *span_breaker(const struct span *span);

/* Cuts printable text to so many characters, of which the last is then an ellipsis. */
char *fitted(char *text, size_t most);

/* How many characters printable text has. */
size_t characters_of(const char *text);

/* Writes a picture of a struct history with a span at least: an exposition_function. */
void history_draw(FILE *to, const void *context);

#endif
