/* SPDX-License-Identifier: Apache-2.0 */
/* What the server knows about a lock, read by one request. */
#ifndef INSPECTION_H
#define INSPECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "session.h"

/* A holder or a waiter. */
struct party {
  char *id; /* allocated */
  size_t id_size;
  bool ours, listens, alive, later;
  bool shares; /* it shares the lock, or waits to */

  /* when we first saw this waiter, in long_clock_ms(); set by inspection_carry_over() */
  int64_t seen_at;
};

struct holder {
  struct party party; /* it can be asked to release if it listens */
  int64_t ttl_ms;     /* how much of its lease is left; -1: the hold has no end */
  int64_t hold_count;
  uint64_t token;     /* 0: none */
  uint32_t lease_ms;  /* 0: not known */
  int64_t unheard_ms; /* how long ago it was last heard; -1: not known */
  bool renews;        /* it renews its lease; false if that is not known */
};

/* The last hold of a free lock: see struct fairlock_last. */
struct past {
  char *id; /* allocated; NULL: it is not known, nor is the rest */
  size_t id_size;
  char *words; /* of who broke it, allocated */
  size_t words_size;
  uint64_t token;
  int64_t lasted_ms;
  int end; /* of enum fairlock_last_end */
};

struct inspection {
  struct holder *holders; /* that whose lease ends last first; several only if they share */
  size_t holder_count;    /* 0: the lock is free */
  size_t holder_room;     /* how many there is memory for */
  bool shared;            /* the holders share it, even if there is only one */
  uint32_t limit;         /* the smallest in use; 0: there is none, or it is not shared */
  char limits[96];        /* all of them, if there are several, a space between them */
  bool outdated;          /* a later release uses it in a way that is not known here */
  struct past last;       /* of a free lock */
  struct party *waiters;  /* first in line first */
  size_t waiter_count;
  size_t waiter_room;
  size_t left_out; /* waiters that are counted here only: see KEPT_MAX in inspection.c */
  size_t kept;     /* bytes */
};

/* Reads a lock into *inspection, which is zeroed or has an earlier reading. Returns a status. */
int inspection_read(struct inspection *inspection, struct session *session, const char *name,
                    size_t size);

/* True if they differ in more than the time that is left, and the order that comes from that. */
bool inspection_differs(const struct inspection *a, const struct inspection *b);

/* How long the hold has lasted by the server's clock, in ms; -1: not known, without a token. */
int64_t holder_age_ms(const struct holder *holder, int64_t server_ms);

/* Returns how many wait, those that were left out included. */
size_t inspection_waiters(const struct inspection *inspection);

/* Frees the waiters, after which there are none. */
void inspection_forget_waiters(struct inspection *inspection);

/* Frees its memory, and zeroes it. */
void inspection_clear(struct inspection *inspection);

/* Prints the lock's name, with which a line begins. */
void inspection_print_name(FILE *to, const void *name, size_t size);

/* Prints, behind who holds the lock, that a later release uses it in a way that is not known here. */
void inspection_print_outdated(FILE *to, const struct inspection *inspection);

/*
 * Prints who holds the lock, or how many; with_ttl: and for how long, unless they share it; or, if it is
 * free, who held it last.
 */
void inspection_print_holders(FILE *to, const struct inspection *inspection, bool with_ttl);

/* Both: the holders, and whether a later release uses the lock. */
void inspection_print_hold(FILE *to, const struct inspection *inspection, bool with_ttl);

/* Prints a line for each of those who share the lock, at most `most` lines. */
void inspection_print_sharers(FILE *to, const struct inspection *inspection, size_t most);

/* Prints "held by ID (KIND": the caller has to print the rest and the ')'. */
void holder_begin(FILE *to, const struct holder *holder);

/* Prints all of that. */
void holder_print(FILE *to, const struct holder *holder, bool with_ttl);

/* Prints when the holder was last heard, if that is known, and whether it seems dead. */
void holder_print_heard(FILE *to, const struct holder *holder);

/* Prints at most `most` lines of waiters; now is not NULL: and for how long each was seen. */
void inspection_print_waiters(FILE *to, const struct inspection *inspection, size_t most,
                              const int64_t *now);

/* Sets seen_at of each waiter: to that in `before`, or to now if it is new. */
void inspection_carry_over(struct inspection *inspection, const struct inspection *before,
                           int64_t now);

/* What is inspected, where, and when. */
struct inspected {
  const char *name;
  size_t size;
  const char *server;
  int64_t server_ms; /* the server's time; -1: not known */
  size_t waiters;    /* as inspection_waiters() */
};

/* Prints a member with ms as seconds, or null if they are below 0. A member precedes it. */
void inspection_print_seconds(FILE *to, const char *name, int64_t ms);

/* Prints a JSON object but for its end: all that `fairlock list` and `status` both tell. */
void inspection_print_json(FILE *to, const struct inspection *inspection,
                           const struct inspected *of);

/* Returns "fairlock" or "redisson"; and "unknown", "listens", "silent" or "dead". */
const char *party_kind(const struct party *party);
const char *party_condition(const struct party *party);

/* When its client first connected, in ms since 1970; -1: not known. It has not waited longer. */
int64_t party_client_since_ms(const struct party *party);

/* Returns its id, printable; to be freed. Ends the program when there is no memory. */
char *party_shown(const struct party *party);

#endif
