/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planned events, in order of virtual time; those due at the same time happen in the order in
 * which they were planned.
 */
#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * stamp: given when the event was planned; by it an object ignores an event that it no longer
 * wants.
 */
typedef void (*event_fn)(void *object, uint32_t stamp);

struct event {
  int64_t at; /* microseconds */
  uint64_t order;
  event_fn run;
  void *object;
  uint32_t stamp;
};

struct events {
  struct event *heap;
  size_t used, size;
  uint64_t planned;
};

/* Returns its order. */
uint64_t events_add(struct events *events, int64_t at, event_fn run, void *object, uint32_t stamp);

/*
 * The same with a given order: a postponed event must not fall behind one that was planned later.
 */
void events_put(struct events *events, struct event event);

/* Takes the next one out. False: nothing is planned until the end. */
bool events_take(struct events *events, int64_t end, struct event *event);

void events_free(struct events *events);

#endif
