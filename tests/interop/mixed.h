/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of `mixed` share. mixed_shared.c has those of locks that several of ours share, while
 * Redisson wants them alone.
 */
#ifndef INTEROP_MIXED_H
#define INTEROP_MIXED_H

#include "check.h"
#include "lab.h"

#define WOKEN_MS  1500 /* shorter than any poll: ours come every 2 s, theirs when the lease ends */
#define LEASE_MS  5000 /* of holders that are killed */
#define PATIENT_S 60

extern struct lab lab;
extern struct driver *ours, *ours_2, *java, *java_2; /* for all tests */

/* A party of a driver. Its kind shows in its name. */
struct party {
  struct driver *driver;
  char name[16];
};

void print_ms(const char *what, int64_t ns);
void check_text(const char *is, const char *expected);
void shuffle(struct party *parties, int count);

/* Has a party ask for the lock, and waits until it is the length'th of the queue. */
void enqueue(struct driver *driver, const char *party, const char *lock, int64_t length);

/* The same, and waits until it listens, which Redisson's do only after that. */
void enqueue_listening(struct driver *driver, const char *party, const char *lock, int64_t length);

/* Waits until an earlier request for the lock succeeds; when that was, or -1. */
int64_t granted(struct driver *driver, const char *party, int seconds);

bool released(struct driver *driver, const char *party, const char *lock);

/* A driver for one test, with LEASE_MS. */
struct driver *mortal(enum kind kind);

void test_redisson_sees_our_shares(void);
void test_last_share_wakes_redisson(void);
void test_redisson_after_the_last_lease(void);
void test_redisson_hears_of_a_shorter_lease(void);
void test_redissons_force_unlock_ends_all_shares(void);
void test_killed_redisson_waiter_before_shares(void);
void test_redisson_gives_up_before_shares(void);
void test_shared_queue_in_order_of_arrival(void);
void test_shared_queue_running_free(void);

#endif
