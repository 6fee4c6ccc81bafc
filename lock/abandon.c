/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that are given up. Their memory is the program's again at once: what is left of each goes to
 * the memory of a struct fairlock_rest, as a handle that is being taken out. When nothing of it can be
 * left on the server, that memory is given back.
 *
 * They are in a list, whose first is a link (struct fairlock_hooks) in front of all others. So this file
 * sees each answer, and each end of a connection, when the others have dealt with it. There is no other
 * moment at which one could be let go of: while one of them has something to tell the server, the client
 * is connected, or tries to be, for as long as that may take. Hence their phase has no end by the clock.
 *
 * A program that gives up no handle does not link this file.
 */
#include "fairlock_abandon.h"
#include "internal.h"

#include <string.h>

static struct fairlock_rest *rest_of(struct fairlock_link *link)
{
  return (struct fairlock_rest *)(void *)((char *)link - offsetof(struct fairlock_rest, own.link));
}

/* True if the handle is out of its engine. If not, it goes on leaving. */
static bool is_out(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  uint32_t now = engine->now;
  bool listens = handle->flags & (SUBSCRIBED | SUBSCRIBING);
  /* the server need not be told any more */
  if (!listens && reached(now, handle->left_until)) fairlock_handle_abandon(handle);
  if (fairlock_engine_remove(handle, now) == FAIRLOCK_OK) return true;
  handle->ends_at = now + FAIRLOCK_DURATION_MAX_MS;
  return false;
}

static void give_back(struct fairlock_rest *rest)
{
  if (rest->freed != NULL) rest->freed(rest, rest->context);
}

static const struct fairlock_abandon_hooks hooks;

/* Makes the list begin with `first`; NULL: there is none. */
static void set_first(struct fairlock_engine *engine, struct fairlock_rest *first)
{
  if (first != NULL) (void)fairlock_links_insert(engine, &first->own.link, &hooks.hooks);
  else engine->links = engine->links->inner;
}

/* Gives back the memory of all that are out. first: of the list. */
static void let_go(struct fairlock_engine *engine, struct fairlock_rest *first)
{
  struct fairlock_rest *before = NULL;
  struct fairlock_rest *next;
  for (struct fairlock_rest *rest = first; rest != NULL; rest = next) {
    next = rest->own.next;
    if (!is_out(&rest->handle.handle)) {
      before = rest;
      continue;
    }
    if (before != NULL) before->own.next = next;
    else set_first(engine, next);
    give_back(rest);
  }
}

static bool on_event(struct fairlock_engine *engine, struct resp_event *event,
                     struct fairlock_link *link)
{
  if (!event_inside(engine, event, link)) fairlock_reply_process(engine, event);
  if (event->last) let_go(engine, rest_of(link));
  return true;
}

static bool on_closed(struct fairlock_engine *engine, struct fairlock_link *link)
{
  bool soon = closed_inside(engine, link);
  let_go(engine, rest_of(link));
  return soon;
}

static void on_end(struct fairlock_engine *engine)
{
  struct fairlock_rest *rest = rest_of(engine->links);
  struct fairlock_rest *next;
  set_first(engine, NULL);
  for (; rest != NULL; rest = next) {
    next = rest->own.next;
    give_back(rest);
  }
}

static const struct fairlock_abandon_hooks hooks = {
    {PLACE_ABANDON, write_inside, on_event, on_closed}, on_end};

/* Moves a handle, no request of which awaits an answer that counts. */
static void move(struct fairlock *from, struct fairlock_rest *rest)
{
  struct fairlock_engine *engine = from->engine;
  struct fairlock *to = &rest->handle.handle;
  fairlock_schedule_remove(from);
  if (shares(from)) rest->handle = *shared_of(from);
  else *to = *from;
  from->engine = NULL;
  fairlock_schedule_insert(to, engine->now + HORIZON_MS);
  fairlock_turns_update(to);
  if (engine->request.handle == from) engine->request.handle = to;
  if (engine->addressee == from) engine->addressee = to;
  if (rest->name == NULL) return;
  memcpy(rest->name, to->name, to->name_size);
  to->name = rest->name;
}

int fairlock_engine_abandon(struct fairlock *handle, struct fairlock_rest *rest, uint32_t now)
{
  struct fairlock_engine *engine = handle->engine;
  if (rest->name != NULL && rest->name_size < handle->name_size) return FAIRLOCK_TOO_LONG;
  engine->now = now;
  if (querying(handle)) abandon_request(handle);
  fairlock_handle_abandon(handle);
  move(handle, rest);
  if (is_out(&rest->handle.handle)) {
    give_back(rest);
    return FAIRLOCK_OK;
  }
  bool others = engine->links != NULL && engine->links->hooks == &hooks.hooks;
  rest->own.next = others ? rest_of(engine->links) : NULL;
  set_first(engine, rest);
  return FAIRLOCK_OK;
}
