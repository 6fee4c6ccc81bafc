/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contenders for a lock while its servers move, and whether all their beliefs can be true together.
 *
 * Each contender is a process with a client of its own. It writes each of its holds to memory that
 * outlives it, and checks its belief all the time, as the clients of chaos do
 * (tests/support/history.h has the rules). Here the tests decide when a hold ends, so that a
 * fail-over happens during a hold, or during a wait. One monotonic clock serves all: they are on
 * one machine.
 */
#ifndef CONTEST_H
#define CONTEST_H

#include "harness.h"

#define CONTENDERS  16
#define CONTEST_LOG 200000 /* holds */

/* How to reach the servers. */
struct connection {
  const char *url;
  /* that have to acknowledge; 0: none */
  int replicas;
  /* the lease of holds with FAIRLOCK_RENEW; 0: 30 s */
  uint32_t lease_ms;
  /* 0: it does not keep its locks */
  uint32_t keep_ms;
  /* 0: a minute */
  uint32_t offline_ms;
  /* it shares the lock with up to so many, 0 for any number; false: it wants it alone */
  bool shares;
  uint32_t limit;
  /* NULL: none */
  const char *password, *sentinel_user, *sentinel_password;
};

/*
 * Makes a client for an address: redis://HOST:PORT, redis+cluster://HOST:PORT,...,
 * redis+sentinel://HOST:PORT,.../SERVICE. NULL: done; otherwise what went wrong. One client in a
 * process.
 */
const char *connect_by_url(struct client *client, const struct connection *connection);

struct contender {
  pid_t pid;
  atomic_bool holds; /* as it believes */
  atomic_bool over;  /* it has finished */
  atomic_bool let_go;
  atomic_int status;   /* the last that acquire returned, FAIRLOCK_PENDING before */
  atomic_int released; /* the last that release returned */
  atomic_int acquired, failed, lost;
  atomic_int worst_gap_ms; /* between a call of acquire and its success */
};

struct contest {
  char name[64]; /* of the lock */
  struct hold *hold;
  atomic_size_t *used;
  struct contender *contender; /* CONTENDERS of them, shared */
  int count;
};

void contest_begin(struct contest *contest, const char *name);

/*
 * Adds a contender and returns its number. contest_hold(): acquires once, waiting without a limit,
 * and holds until contest_let_go(), or a loss. contest_pass(): the same, but holds for work_ms. The
 * third acquires, holds for work_ms and releases, again and again until contest_let_go(); it counts
 * failures and goes on.
 */
int contest_hold(struct contest *contest, const struct connection *connection, uint32_t lease_ms);
int contest_pass(struct contest *contest, const struct connection *connection, uint32_t lease_ms,
                 int work_ms);
int contest_round(struct contest *contest, const struct connection *connection, uint32_t lease_ms,
                  int work_ms);

/* Waits until it holds; false: it has ended, or it took too long. */
bool contest_holds(struct contest *contest, int contender);

/* Whether it believes that it holds at this moment. */
bool contest_believes(const struct contest *contest, int contender);

void contest_let_go(struct contest *contest, int contender);

/* Ends one as a crash does. */
void contest_kill(struct contest *contest, int contender);

/* Waits until it has finished; false: it has not, or not well. The result is in its entry. */
bool contest_over(struct contest *contest, int contender);

/* All let go, and all are over. */
bool contest_end(struct contest *contest);

/* What the log says, of which whatever is wrong is printed; and whether nothing is. */
struct verdict contest_verdict(const struct contest *contest);
bool contest_good(const struct contest *contest);

/* Of contenders first to last, in order of arrival: how many neighbours held in the wrong order. */
int contest_disorder(const struct contest *contest, int first, int last);

#endif
