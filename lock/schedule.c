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
 * A program with one task has few handles, and has a sorted list instead, which takes half the
 * flash: it is a heap in which no handle has another one to its left.
 *
 * Times are compared by their difference, so all of them have to be within half a turn of the
 * clock. After a pause of days they may not be, and the next tick makes the schedule anew.
 */
#include "internal.h"

#if PORT_ONE_TASK

/* an inline function of internal.h, for a compiler that does not inline it */
extern inline struct fairlock *fairlock_schedule_next(const struct fairlock *handle, bool below);
extern inline struct fairlock *fairlock_schedule_take(struct fairlock **schedule);

void fairlock_schedule_insert(struct fairlock *handle, uint32_t due)
{
  struct fairlock **link = &handle->engine->first;
  while (*link != NULL && reached(due, (*link)->due))
    link = &(*link)->right;
  handle->due = due;
  handle->right = *link;
  *link = handle;
}

void fairlock_schedule_remove(struct fairlock *handle)
{
  struct fairlock **link = &handle->engine->first;
  while (*link != handle)
    link = &(*link)->right;
  *link = handle->right;
}

#else

/* Merges two heaps. up: the handle below which the result will be; NULL: none. */
static struct fairlock *merge(struct fairlock *a, struct fairlock *b, struct fairlock *up)
{
  struct fairlock *top = NULL;
  struct fairlock **link = &top;
  while (a != NULL && b != NULL) {
    if (!reached(b->due, a->due)) {
      struct fairlock *first = b;
      b = a;
      a = first;
    }
    *link = a;
    a->up = up;
    up = a;
    struct fairlock *rest = a->right;
    a->right = a->left;
    link = &a->left;
    a = rest;
  }
  *link = a != NULL ? a : b;
  if (*link != NULL) (*link)->up = up;
  return top;
}

void fairlock_schedule_insert(struct fairlock *handle, uint32_t due)
{
  struct fairlock_engine *engine = handle->engine;
  handle->due = due;
  handle->left = NULL;
  handle->right = NULL;
  engine->first = merge(engine->first, handle, NULL);
}

void fairlock_schedule_remove(struct fairlock *handle)
{
  struct fairlock *up = handle->up;
  struct fairlock **link = up == NULL           ? &handle->engine->first
                           : up->left == handle ? &up->left
                                                : &up->right;
  *link = merge(handle->left, handle->right, up);
}

struct fairlock *fairlock_schedule_next(const struct fairlock *handle, bool below)
{
  if (below && handle->left != NULL) return handle->left;
  if (below && handle->right != NULL) return handle->right;
  const struct fairlock *up = handle->up;
  while (up != NULL && (up->right == handle || up->right == NULL)) {
    handle = up;
    up = handle->up;
  }
  return up != NULL ? up->right : NULL;
}

struct fairlock *fairlock_schedule_take(struct fairlock **schedule)
{
  struct fairlock *handle = *schedule;
  *schedule = merge(handle->left, handle->right, NULL);
  return handle;
}

#endif
