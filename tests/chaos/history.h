/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients believed, and whether all of them can have been right: the check after a run of
 * chaos.
 *
 * Each client writes each of its holds to memory that outlives it: the entry when acquire has
 * returned, the end before it calls release. A client that was killed or frozen in between has
 * promised to believe until until_us at most. All times are CLOCK_MONOTONIC, which is one for all
 * processes of a machine.
 *
 * The check must never complain without a reason: where a client was stopped between looking at the
 * clock and writing down, an entry claims less than the client believed, never more.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hold {
  atomic_bool written; /* all but until_us and end_us are there */
  bool keeps;          /* the process keeps its locks */
  bool again;          /* it was kept, and is held again: the handle's last hold had its token */
  bool shares;         /* others may hold beside it: `limit` at once, 0 for any number */
  int limit;
  uint64_t from; /* the token of the hold from which it was downgraded; 0: none */
  int client, pid, lock;
  uint64_t token;
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
  /* when the server had been killed, microseconds of the wall clock, in order */
  const int64_t *restarts;
  size_t restart_count;
};

/*
 * Each prints both entries of each fault, and returns how many it found.
 *
 * Overlaps: between two restarts of the server, in order of tokens, each belief begins after those
 * before it have ended; one that shares, after those before it that do not. Tokens show between which
 * restarts: they are microseconds of the server's clock. Crowds: those who share at a time are at most
 * as many as the limit of each of them says. Tokens: none is given twice, and a hold that existed before an
 * acquire was called has a smaller token than that acquire got, whatever happened to the server, and
 * one that was downgraded has the next after that of the hold from which it was; but
 * of two who share, the later one may have the smaller token, because its share was kept, or was given
 * to an earlier request whose answer was lost. A process that keeps its locks may hold again with the
 * token it had, if nobody has got another one since. Order: who was in the queue before an acquire was
 * called has a smaller token than that acquire got.
 */
int history_overlaps(const struct history *history);
int history_crowds(const struct history *history);
int history_tokens(const struct history *history);
int history_order(const struct history *history);

#endif
