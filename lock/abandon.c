/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that are given up. Their memory is the program's again at once: what is left of each goes to
 * the memory of a struct fairlock_rest, as a handle that is being taken out. When nothing of it can be
 * left on the server, that memory is given back.
 *
 * They are in a ring, one of which is a link (struct fairlock_hooks) in front of all others. So this file
 * sees each answer, and each end of a connection, when the others have dealt with it. There is no other
 * moment at which one could be let go of: while one of them has something to tell the server, the client
 * is connected, or tries to be, for as long as that may take. Hence their phase has no end by the clock.
 *
 * There may be thousands, so an answer is followed by a look at the next few of the ring. Each answer is
 * the last that one of them at most has waited for, so those that are out are soon found, and the last of
 * them at once.
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

/* How many of the ring are looked at after an answer. */
#define FEW 4U

static void give_back(struct fairlock_rest *rest)
{
  if (rest->freed != NULL) rest->freed(rest, rest->context);
}

static const struct fairlock_abandon_hooks hooks;

/* Makes this one the link; NULL: there is none. */
static void set_link(struct fairlock_engine *engine, struct fairlock_rest *rest)
{
  if (rest != NULL) (void)fairlock_links_insert(engine, &rest->own.link, &hooks.hooks);
  else engine->links = engine->links->inner;
}

/* Gives back the memory of those that are out, of the next `most` behind `last`, or of all. */
static void let_go(struct fairlock_engine *engine, struct fairlock_rest *last, uint32_t most)
{
  struct fairlock_rest *before = last;
  struct fairlock_rest *rest;
  do {
    rest = before->own.next;
    if (is_out(&rest->handle.handle)) {
      before->own.next = rest->own.next;
      set_link(engine, before != rest ? before : NULL);
      give_back(rest);
    } else {
      before = rest;
      set_link(engine, before);
    }
  } while (rest != last && --most > 0);
}

static bool on_event(struct fairlock_engine *engine, struct resp_event *event,
                     struct fairlock_link *link)
{
  if (!event_inside(engine, event, link)) fairlock_reply_process(engine, event);
  if (event->last) let_go(engine, rest_of(link), FEW);
  return true;
}

static bool on_closed(struct fairlock_engine *engine, struct fairlock_link *link)
{
  bool soon = closed_inside(engine, link);
  let_go(engine, rest_of(link), UINT32_MAX);
  return soon;
}

static void on_end(struct fairlock_engine *engine)
{
  struct fairlock_rest *last = rest_of(engine->links);
  struct fairlock_rest *rest = last->own.next;
  set_link(engine, NULL);
  while (rest != last) {
    struct fairlock_rest *next = rest->own.next;
    give_back(rest);
    rest = next;
  }
  give_back(last);
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
  struct fairlock_rest *before = others ? rest_of(engine->links) : rest;
  rest->own.next = others ? before->own.next : rest;
  before->own.next = rest;
  set_link(engine, before);
  return FAIRLOCK_OK;
}
