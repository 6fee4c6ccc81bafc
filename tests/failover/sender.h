/*
 * A server of the test's own that sends everybody elsewhere: it greets as a node of a cluster does,
 * and answers MOVED to all else, with the slot and the place that it was told.
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
  char place[400]; /* what stands behind "MOVED ", for the test to change */
  atomic_int calls;
  _Atomic int64_t called_at[SENDER_CALLS]; /* ms */
};

void sender_start(struct sender *sender);
void sender_stop(struct sender *sender);

/* Has it say this from now on: the slot of a lock's name, and a place. */
void sender_says(struct sender *sender, const char *name, const char *place);

#endif
