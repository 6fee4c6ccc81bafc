/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test's own server that redirects everybody: it greets as a node of a cluster does, and
 * answers MOVED to everything else, with the slot and the address that the test has set.
 */
#ifndef SENDER_H
#define SENDER_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define SENDER_CALLS 1000

struct sender {
  pid_t pid;
  int port;
  struct sender_control *control;
};

struct sender_control {
  char place[400]; /* what follows "MOVED ", for the test to change */
  atomic_int calls;
  _Atomic int64_t called_at[SENDER_CALLS]; /* ms */
};

void sender_start(struct sender *sender);
void sender_stop(struct sender *sender);

/* Makes it say this from now on: the slot of a lock's name, and an address. */
void sender_says(struct sender *sender, const char *name, const char *place);

#endif
