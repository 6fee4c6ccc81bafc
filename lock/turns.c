/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is: which handles are due, which of them sends next, and when the caller has to come
 * back.
 *
 * A program of one task has few handles, and this looks at each of them. Where there may be thousands,
 * they are in the heap of schedule.c, by when each is due. A handle that may send is due, too; but
 * sending needs no tick, so the caller has to come back when something of that handle ends, or when
 * one below it in the heap is due.
 */
#include "internal.h"

#if PORT_ONE_TASK

struct fairlock *fairlock_turns_sender(const struct fairlock_engine *engine)
{
  struct fairlock *sender = NULL;
  for (struct fairlock *handle = engine->first; handle != NULL; handle = handle->place.next) {
    /* of several at the same time, the last in the list, which was added first */
    bool before = sender == NULL || reached(sender->sends_at, handle->sends_at);
    if (before && fairlock_handle_may_send(handle)) sender = handle;
  }
  return sender;
}

uint32_t fairlock_turns_next(const struct fairlock_engine *engine, uint32_t limit)
{
  const struct fairlock *handle = engine->first;
  for (; handle != NULL; handle = handle->place.next)
    limit = earlier(limit, engine->now + fairlock_handle_due_in(handle));
  return limit;
}

void fairlock_turns_tick(struct fairlock_engine *engine)
{
  struct fairlock *handle = engine->first;
  for (; handle != NULL; handle = handle->place.next)
    fairlock_handle_on_tick(handle);
}

#else

struct fairlock *fairlock_turns_sender(const struct fairlock_engine *engine)
{
  struct fairlock *handle = engine->first;
  return handle != NULL && fairlock_handle_may_send(handle) ? handle : NULL;
}

uint32_t fairlock_turns_next(const struct fairlock_engine *engine, uint32_t limit)
{
  const struct fairlock *handle = engine->first;
  while (handle != NULL) {
    bool sends = fairlock_handle_may_send(handle);
    uint32_t due = sends ? engine->now + fairlock_handle_ends_in(handle) : handle->place.due;
    limit = earlier(limit, due);
    handle = fairlock_schedule_next(handle, sends);
  }
  return limit;
}

void fairlock_turns_tick(struct fairlock_engine *engine)
{
  uint32_t now = engine->now;
  /* nobody has ticked for so long that times in the schedule may have wrapped around */
  if (farther_than(HORIZON_MS, now, engine->next)) fairlock_turns_update_all(engine);
  struct fairlock *handle = engine->first;
  while (handle != NULL) {
    uint32_t due = handle->place.due;
    bool is_due = reached(now, due);
    if (is_due) fairlock_handle_on_tick(handle);
    /* if it is where it was, the walk goes on from there */
    handle = handle->place.due != due ? engine->first : fairlock_schedule_next(handle, is_due);
  }
}

static uint32_t due_in(const struct fairlock *handle)
{
  return fairlock_handle_may_send(handle) ? 0 : fairlock_handle_due_in(handle);
}

/*
 * Moves the handle in the schedule. To be called after a change that may make it due earlier. One
 * that makes it due later needs no call: the schedule then looks at the handle once in vain. A handle
 * that is due already keeps its turn.
 */
void fairlock_turns_update(struct fairlock *handle)
{
  uint32_t now = handle->engine->now;
  uint32_t in_ms = due_in(handle);
  if (in_ms == 0 ? reached(now, handle->place.due) : handle->place.due == now + in_ms) return;
  fairlock_schedule_remove(handle);
  fairlock_schedule_insert(handle, now + in_ms);
}

/* Schedules every handle anew, because something has changed on which all depend. */
void fairlock_turns_update_all(struct fairlock_engine *engine)
{
  struct fairlock *rest = engine->first;
  engine->first = NULL;
  while (rest != NULL) {
    struct fairlock *handle = fairlock_schedule_take(&rest);
    fairlock_schedule_insert(handle, engine->now + due_in(handle));
  }
}

#endif
