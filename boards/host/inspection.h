/* What the server knows of a lock, read in one go. */
#ifndef INSPECTION_H
#define INSPECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "session.h"

/* A holder or a waiter. */
struct party {
  char *id; /* in memory of its own */
  size_t id_size;
  bool ours, listens, alive;
};

struct inspection {
  bool held;
  struct party holder;
  int64_t ttl_ms; /* -1: the hold has no end */
  int64_t hold_count;
  uint64_t token;        /* 0: none */
  struct party *waiters; /* in order */
  size_t waiter_count;
  bool out_of_memory;
};

/*
 * Reads the lock called name, any bytes, into *inspection, which starts zeroed, or as it was left.
 * Returns a status of the library's.
 */
int inspection_read(struct inspection *inspection, struct session *session, const char *name,
                    size_t size);

/* True if anything but the time left differs. */
bool inspection_differs(const struct inspection *a, const struct inspection *b);

/* Gives its memory back, and zeroes it. */
void inspection_clear(struct inspection *inspection);

/* Who holds: part of a line. */
void inspection_print_holder(FILE *to, const struct inspection *inspection, bool with_ttl);

/* A line for each waiter, at most `most` lines. */
void inspection_print_waiters(FILE *to, const struct inspection *inspection, size_t most);

/* The lock's name, where it was read, and who holds: members of a JSON object, and its '{'. */
void inspection_print_json(FILE *to, const struct inspection *inspection, const char *name,
                           size_t size, const char *server);

/* "fairlock" or "redisson"; "listens", "silent" or "dead". */
const char *party_kind(const struct party *party);
const char *party_condition(const struct party *party);

/* Its id as a terminal can show it, in memory of its own. Ends the program when there is none. */
char *party_shown(const struct party *party);

/* The same for a name, or any other bytes. */
char *bytes_shown(const void *bytes, size_t size);

#endif
