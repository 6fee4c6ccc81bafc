/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients believed, and whether all of them can have been right: the one judge of all tests that
 * let clients contend. tests/chaos/judge.c is the same as a program, for histories that are text.
 *
 * Where clients may die, each writes each of its holds to memory that outlives it: the entry when
 * acquire has returned, the end before it calls release. A client that was killed or frozen in between
 * has promised to believe until until_us at most. All times are of one clock, CLOCK_MONOTONIC in
 * microseconds as a rule, which is one for all processes of a machine.
 *
 * The judge must never complain without a reason: where a client was stopped between looking at the
 * clock and writing down, an entry claims less than the client believed, never more.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct hold {
  atomic_bool written; /* all but until_us and end_us are there */
  bool keeps;          /* the process keeps its locks */
  bool again;          /* it was kept, and is held again: the handle's last hold had its token */
  bool shares;         /* others may hold beside it: `limit` at once, 0 for any number */
  int limit;
  uint64_t from; /* the token of the hold from which it was downgraded; 0: none */
  int client, pid, lock;
  uint64_t token;    /* 0: it has none */
  int64_t called_us; /* before acquire was called     */
  int64_t queued_us; /* it was in the queue by then, and nothing happened to it; 0: not known */
  int64_t start_us;  /* after acquire had returned    */
  _Atomic int64_t until_us; /* the belief ends then at the latest; 0: there was none */
  /* before release was called, or when the loss was seen; 0: not written */
  _Atomic int64_t end_us;
};

struct history {
  struct hold *holds;
  size_t count;
  /* when the server had been killed, microseconds of the wall clock, in order: tokens show between
     which restarts they were given, as they are microseconds of the server's clock */
  const int64_t *restarts;
  size_t restart_count;
  bool quiet; /* complains of nothing */
};

/* How many holds are wrong in each way. */
struct verdict {
  /* Between two restarts: it began beside one, and one of the two does not share. */
  int overlaps;

  /* Between two restarts: with it, more shared than one of them allows. */
  int crowds;

  /*
   * A token was given twice, or a hold that existed before acquire was called has a larger one,
   * whatever happened to the server; or, between two restarts, a hold with a larger one began before;
   * or one that was downgraded has not the next after that of the hold from which it was. But of two
   * who share, the later one may have the smaller token, because its share was kept, or was given to
   * an earlier request whose answer was lost. A process that keeps its locks may hold again with the
   * token it had, if nobody has got another one since.
   */
  int tokens;

  /*
   * Somebody who had been in the queue before acquire was called was served later: has a larger
   * token, or, if one of the two has none, began later. A lock that was kept may be taken again until
   * its keeper has heard of who waits, and one who had the lock alone goes on sharing before others.
   */
  int order;

  /* Not wrong: how many held at once, and for how long some did who may not. */
  int most;
  int64_t overlap_us;
};

/* Prints both entries of each fault. */
struct verdict judge(const struct history *history);

/* Whether nothing is wrong. */
bool is_good(const struct verdict *verdict);

/* When the belief ended. */
int64_t end_of(const struct hold *hold);

/*
 * Reads holds from a text, one a line: LOCK CLIENT LIMIT TOKEN CALLED QUEUED START END, all numbers,
 * with a LIMIT of -1 for one that does not share. False: it is something else. The caller frees
 * history->holds.
 */
bool history_read(struct history *history, FILE *file);

#endif
