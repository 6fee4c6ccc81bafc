/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The laboratory of the interop tests: a private Redis, processes that hold and wait for locks, and
 * the time.
 *
 * A driver is a process with one client: driver.c with the library, or java/Driver.java with
 * Redisson. It has any number of parties, each a thread, and so a holder, of its own. The lab sends
 * it lines, "PARTY LOCK VERB [NUMBER...]", and each party answers its lines in order, "PARTY
 * RESULT...":
 *
 *     id                  its holder id, as it stands in Redis
 *     clock               its clock, in ns: CLOCK_MONOTONIC, as all times here
 *     lock [LEASE]        waits for the lock; the time when it had it
 *     try [LEASE]         1 or 0
 *     wait MS LEASE       tryLock with a limit; 1 or 0, and the time. LEASE -1: renewed until
 *                         released
 *     unlock              the times before and after, or "not-held"
 *     force, locked       1 or 0
 *     ttl, count          what is left of anybody's lease, ms; its own hold count
 *     pass                lock, a critical section, unlock: time, hold count, how many were inside
 *     run N PAUSE         N passes with pauses: largest hold count, most that were inside
 *     bench N             N times lock and unlock: median, 10th and 90th percentile, ns
 *     share LIMIT         (the library's alone) from now on it shares this lock; 1
 *     status              (the library's alone) all that an inspection tells; see driver.c
 *
 * The critical section of a pass counts who is inside under "inside:LOCK", those who share a thousand
 * times, and adds the party to the list "log:LOCK". For one that shares, a thousand inside and more
 * means that somebody is who does not. Everything the lab starts ends with it, however it ends.
 */
#ifndef INTEROP_LAB_H
#define INTEROP_LAB_H

#include "support/clock.h"
#include "support/process.h"
#include "support/raw.h"
#include "support/server.h"

enum kind { OURS, JAVA };

#define ANSWER_SIZE                                                                                \
  65536 /* of the longest answer, the status of a thousand waiters, with its end */

struct driver {
  enum kind kind;
  pid_t pid;
  int in, out;
  char lines[2 * ANSWER_SIZE]; /* answers that were not asked for yet */
  size_t size;
  char answer[ANSWER_SIZE]; /* the last one that was asked for */
};

struct lab {
  const char *version; /* of Redisson */
  struct server server;
  struct raw redis;
};

/* Starts Redis; ends the program when that fails. */
void lab_open(struct lab *lab, const char *version);
void lab_close(struct lab *lab);

/* Starts a driver that connects to port. options: words for its command line, or NULL. */
struct driver *driver_start(const struct lab *lab, enum kind kind, int port, const char *options);

/* Ends it at once, as a crash would, and forgets it. */
void driver_kill(struct driver *driver);

/* Sends a line: "PARTY LOCK VERB...". */
void say(struct driver *driver, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The next answer of party, or NULL when none comes in time. Valid until the next call for this
 * driver.
 */
const char *hear(struct driver *driver, const char *party, int timeout_ms);

/* say() and hear(); "" if there is no answer within 20 s. */
const char *tell(struct driver *driver, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The number'th number of an answer, counted from 0. */
int64_t field(const char *answer, int number);

/* Waits until a waiter listens: Redisson's enter the queue before. */
bool listens(struct lab *lab, const char *lock, const char *id);

/* Waits until the queue of lock has length entries. False when that takes longer than 10 s. */
bool lab_queue_reaches(struct lab *lab, const char *lock, int64_t length);

/* Sorts count values. Returns the median. */
int64_t median(int64_t *values, int count);

#endif
