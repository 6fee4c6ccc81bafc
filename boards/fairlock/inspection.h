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
  char *id; /* allocated */
  size_t id_size;
  bool ours, listens, alive, later;

  /* in port_clock_ms(): when we first saw the waiter; only after inspection_keep_account() */
  uint32_t seen_at;
};

struct inspection {
  bool held;
  struct party holder;
  int64_t ttl_ms; /* -1: the hold has no end */
  int64_t hold_count;
  uint64_t token;        /* 0: none */
  uint32_t lease_ms;     /* 0: not known */
  int64_t unheard_ms;    /* how long the holder has not been heard; -1: not known */
  bool renews;           /* its lease; false: or not known */
  bool listens;          /* it can be asked to release */
  struct party *waiters; /* in order */
  size_t waiter_count;
  size_t waiter_room; /* waiters that there is memory for */
  bool out_of_memory;
};

/*
 * Reads the lock called name, any bytes, into *inspection, which is zeroed, or holds an earlier
 * reading. Returns a status of the library.
 */
int inspection_read(struct inspection *inspection, struct session *session, const char *name,
                    size_t size);

/* True if anything but the time left differs. */
bool inspection_differs(const struct inspection *a, const struct inspection *b);

/* How long the hold has lasted, by the server's clock, now in ms; -1: unknown, it has no token. */
int64_t inspection_age_ms(const struct inspection *inspection, int64_t server_ms);

/* Frees its waiters; it then has none. */
void inspection_forget_waiters(struct inspection *inspection);

/* Frees its memory, and zeroes it. */
void inspection_clear(struct inspection *inspection);

/* The lock's name, which begins a line. */
void inspection_print_name(FILE *to, const void *name, size_t size);

/* "free", or, returning true, "held by ID (KIND", which the caller continues. */
bool inspection_begin_holder(FILE *to, const struct inspection *inspection);

/* Who holds: part of a line. */
void inspection_print_holder(FILE *to, const struct inspection *inspection, bool with_ttl);

/* When the holder was heard, and whether it seems to be dead; nothing if that is not known. */
void inspection_print_heard(FILE *to, const struct inspection *inspection);

/* A line for each waiter, at most `most`. now: says how long we have seen each; NULL: does not */
void inspection_print_waiters(FILE *to, const struct inspection *inspection, size_t most,
                              const uint32_t *now);

/* Waiters that were there before have been seen since then; the others, since now. */
void inspection_keep_account(struct inspection *inspection, const struct inspection *before,
                             uint32_t now);

/* The lock's name, where it was read, and who holds: members of a JSON object, and its '{'. */
void inspection_print_json(FILE *to, const struct inspection *inspection, const char *name,
                           size_t size, const char *server);

/* Two more members, with commas before them: those that `fairlock list` and `status` share. */
void inspection_print_json_age(FILE *to, int64_t age_ms, size_t waiters);

/* "fairlock" or "redisson"; "unknown", "listens", "silent" or "dead". */
const char *party_kind(const struct party *party);
const char *party_condition(const struct party *party);

/*
 * When the party's client first greeted a server, by that server's clock, in ms since 1970; only
 * the ids of our clients contain it. The party cannot have waited since before that. -1: not known.
 */
int64_t party_client_since_ms(const struct party *party);

/* Its id as a terminal can show it; to be freed. Ends the program when there is no memory. */
char *party_shown(const struct party *party);

#endif
