/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of `make bench-peers` share: the turns that contenders report and what they come
 * to, and the rows of the first table and of the picture.
 */
#ifndef PEERS_H
#define PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One turn at the lock, in ns of CLOCK_MONOTONIC: just before the call of acquire, just after it,
 * and just before the call of release.
 */
struct turn {
  int64_t asked, acquired, released;

  /* of a lock that is shared: it was held alone */
  bool alone;
};

/* What the turns of all contenders come to. */
struct contest {
  /* nobody acquired before the one before released */
  bool exclusive;

  /* turns that began while somebody still waited who had asked more than 1 ms earlier */
  int overtaking;

  /* the longest from asked to acquired, ns */
  int64_t longest;

  /* from a release while somebody waits to the next turn, whoever's, ns; 0: nobody ever waited */
  int64_t handover_p50, handover_p99;
};

/* Judges the turns, and sorts them by acquired. */
struct contest judge_contest(struct turn *turns, size_t count);

/* What the turns at a lock that is shared, or at a semaphore, come to. */
struct sharing {
  /* nobody held beside one who held alone, and never more than the limit held */
  bool kept;

  /*
   * turns that were overtaken: while they waited, others who had asked more than 1 ms later began
   * and ended. Those who are let in together begin in any order
   */
  int overtaken;

  /* by how many turns the one that was overtaken most often */
  int most;

  /* the longest from asked to acquired, of those who held alone and of those who shared, ns */
  int64_t longest_alone, longest_shared;

  /* how many held at once, and how long one held, ns, on average */
  double at_once, hold;
};

/* Judges the turns, and sorts them by acquired. limit: of those who hold at once; 0: none. */
struct sharing judge_sharing(struct turn *turns, size_t count, int limit);

/* Sorts the values. The least one that `percent` of them do not exceed; 0 if there are none. */
int64_t percentile(int64_t *values, size_t count, int percent);

/* The columns of the first table. */
enum figure {
  PAIR_P50,     /* us */
  PAIR_P99,     /* us */
  HANDOVER_P50, /* ms */
  HANDOVER_P99, /* ms */
  OVERTAKING,   /* of TURNS */
  LONGEST,      /* ms */
  CLIENT_CPU,   /* us per pair */
  SERVER_CPU,   /* us per pair */
  BYTES,        /* per pair */
  FIGURES
};

#define CONTENDERS 4
#define TURNS      240 /* in a round, of all contenders */

struct row {
  const char *name;
  double median[FIGURES]; /* of the rounds */
};

/* Draws the picture. False: it could not be written. */
bool draw(const char *path, const struct row *rows, int count);

#endif
