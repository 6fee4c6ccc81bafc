/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All handles of an engine, ordered by when each is next due. A handle that wants to send is due,
 * too; handle.c decides when a handle is due.
 *
 * They form a skew heap. No handle is due later than the two below it, so the one at the top is due
 * first, and the cost of a change grows with the logarithm of their number. The heap is not
 * balanced explicitly: each merge exchanges the branches that it passes, and so keeps it balanced
 * on average.
 *
 * A program of one task has few handles, in a list without order: turns.c.
 *
 * Times are compared by their difference, so all of them have to be within half a turn of the
 * clock. After a pause of days they may not be, and the next tick makes the schedule anew.
 */
#include "internal.h"

#if PORT_ONE_TASK

void fairlock_schedule_remove(struct fairlock *handle)
{
  struct fairlock **link = &handle->engine->first;
  while (*link != handle)
    link = &(*link)->place.next;
  *link = handle->place.next;
}

#else

/* Merges two heaps. up: the handle below which the result will be; NULL: none. */
static struct fairlock *merge(struct fairlock *a, struct fairlock *b, struct fairlock *up)
{
  struct fairlock *top = NULL;
  struct fairlock **link = &top;
  while (a != NULL && b != NULL) {
    if (!reached(b->place.due, a->place.due)) {
      struct fairlock *first = b;
      b = a;
      a = first;
    }
    *link = a;
    a->place.up = up;
    up = a;
    struct fairlock *rest = a->place.right;
    a->place.right = a->place.left;
    link = &a->place.left;
    a = rest;
  }
  *link = a != NULL ? a : b;
  if (*link != NULL) (*link)->place.up = up;
  return top;
}

void fairlock_schedule_insert(struct fairlock *handle, uint32_t due)
{
  struct fairlock_engine *engine = handle->engine;
  handle->place.due = due;
  handle->place.left = NULL;
  handle->place.right = NULL;
  engine->first = merge(engine->first, handle, NULL);
}

void fairlock_schedule_remove(struct fairlock *handle)
{
  struct fairlock *up = handle->place.up;
  struct fairlock **link = up == NULL                 ? &handle->engine->first
                           : up->place.left == handle ? &up->place.left
                                                      : &up->place.right;
  *link = merge(handle->place.left, handle->place.right, up);
}

struct fairlock *fairlock_schedule_next(const struct fairlock *handle, bool below)
{
  if (below && handle->place.left != NULL) return handle->place.left;
  if (below && handle->place.right != NULL) return handle->place.right;
  const struct fairlock *up = handle->place.up;
  while (up != NULL && (up->place.right == handle || up->place.right == NULL)) {
    handle = up;
    up = handle->place.up;
  }
  return up != NULL ? up->place.right : NULL;
}

struct fairlock *fairlock_schedule_take(struct fairlock **schedule)
{
  struct fairlock *handle = *schedule;
  *schedule = merge(handle->place.left, handle->place.right, NULL);
  return handle;
}

#endif
