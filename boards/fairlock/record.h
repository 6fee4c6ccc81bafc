/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the history of a lock: a stream beside it, which `fairlock history` reads. */
#ifndef RECORD_H
#define RECORD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guard.h"
#include "query.h"
#include "session.h"
#include "times.h"

/* How many entries are kept: by default, and at most. */
#define RECORD_ENTRIES      1000U
#define RECORD_MOST_ENTRIES 1000000U

/* Of their keys; see beside_key(). */
#define RECORD_PREFIX "fairlock:fairlock:history:"

/* The names of the fields, of which the first says what has happened. Their values are text. */
#define RECORD_BEGIN   "begin" /* a token: this hold has begun. Then id, waited, command, shared */
#define RECORD_END     "end"   /* a token: it was released. Then status                      */
#define RECORD_LOST    "lost" /* a token: it was lost, and this is when its run ended. Then status */
#define RECORD_LEFT    "left"    /* an id: a wait was given up. Then waited, status            */
#define RECORD_BROKEN  "broken"  /* a token, or 0: ended by an operator. Then id, by, reason   */
#define RECORD_ID      "id"      /* of the holder                                              */
#define RECORD_WAITED  "waited"  /* ms                                                         */
#define RECORD_COMMAND "command" /* its name, without arguments, which may be secrets          */
#define RECORD_SHARED  "shared"  /* the limit; 0: none. No field: it is not shared */
#define RECORD_STATUS  "status"  /* the exit status                                            */
#define RECORD_BY      "by"      /* user@host                                                  */
#define RECORD_REASON  "reason"

#define RECORD_MOST_WORDS 10

/* An entry: fields and values in turn. */
struct entry_words {
  const char *name; /* of the lock */
  struct word words[RECORD_MOST_WORDS];
  int count;
  char numbers[3][24];
  int number_count;
  enum times_kind kind;
  int64_t ms; /* a wait or a hold to be counted; -1: none */
};

struct record {
  uint32_t most;      /* how many entries to keep; 0: nothing is written                       */
  bool only_existing; /* only to a history that somebody keeps; and a refusal is not told of   */

  struct session *first;
  struct session second;
  struct query query;
  char address[ADDRESS_SIZE]; /* of the server that has the lock; "": that of the URL */
  struct entry_words entries[MOST_LOCKS];
  size_t count;
  size_t answers; /* to what was asked */
  bool told;      /* a failure was told of */

  /* the thread that writes, and a pipe of which it closes its end when it has; -1: there is none */
  pthread_t thread;
  int done, ends;
};

/* Takes how many entries to keep from FAIRLOCK_HISTORY. Returns false after a complaint. */
bool record_default(const struct command_line *line, uint32_t *most);

/*
 * Prepares to write record->most entries; session was prepared from line. Returns EXIT_DONE, or an
 * exit status after a complaint.
 */
int record_prepare(struct record *record, struct session *session, const struct command_line *line);

/* Returns the next entry to write, of the lock of that name; NULL: nothing is to be written. */
struct entry_words *record_next(struct record *record, const char *name);

/* Add a field. A long text is cut; both have to stay as they are until it is written. */
void record_text(struct entry_words *entry, const char *field, const char *text);
void record_number(struct entry_words *entry, const char *field, uint64_t number);

/* Has the lock's wait or hold counted in its histograms. */
void record_time(struct entry_words *entry, enum times_kind kind, int64_t ms);

/*
 * Writes these entries to the server at address, or gives up after 2 s. A failure is told of once;
 * what a server has refused is not tried again.
 */
void record_write(struct record *record, const char *address);

/* The same by a thread, so that nobody waits for it. */
void record_start(struct record *record, const char *address);

/* Waits until that has ended, for 3 s at most. Returns false if it goes on. */
bool record_finish(struct record *record);

#endif
