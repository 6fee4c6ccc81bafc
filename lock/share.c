/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that share their lock: what they send instead.
 *
 * Such a handle goes through the same phases, and its answers and messages mean the same. Only the
 * script differs, and it has one argument more, the limit. So this file is a link in front of what
 * the engine writes and reads: see struct fairlock_hooks. What else is written with a request, such
 * as the WAIT of topology.c, the inner links write.
 */
#include "share.h"

static bool shares(const struct fairlock *handle)
{
  return handle != NULL && handle->keep & SHARES;
}

/* The request is about a place or a hold of a handle that shares. Its phase may have changed since. */
static bool is_shared(const struct fairlock_request *request)
{
  return request->kind < KIND_FORCE && shares(request->handle);
}

static void write_output(struct fairlock_engine *engine, struct resp_writer *writer,
                         struct fairlock_link *link)
{
  if (!is_shared(&engine->request)) {
    write_inside(engine, writer, link);
    return;
  }
  if (engine->request_done == 0)
    fairlock_share_choose_form(engine, fairlock_sharing_of(link), engine->request.kind);
  fairlock_share_write_request(writer, &engine->request, &fairlock_shared_script, 0);
  fairlock_share_write_additions(engine, writer, link);
}

/* The server does not know the script of those who share. That says nothing about the other one. */
static void on_unknown_script(struct fairlock_engine *engine, struct resp_event *event,
                              struct fairlock_link *link)
{
  uint8_t eval = engine->eval;
  fairlock_sharing_of(link)->own.eval |=
      fairlock_handle_kind(fairlock_pipeline_next_answered(engine));
  (void)event_inside(engine, event, link); /* none of those inside keeps such an error to itself */
  fairlock_reply_process(engine, event);
  engine->eval = eval;
}

static bool on_event(struct fairlock_engine *engine, struct resp_event *event,
                     struct fairlock_link *link)
{
  const struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  bool asks = shares(handle) && fairlock_handle_kind(handle) < KIND_FORCE;
  if (asks && is_error(engine) && fairlock_reply_begins(event, "NOSCRIPT")) {
    on_unknown_script(engine, event, link);
    return true;
  }
  return event_inside(engine, event, link);
}

static bool on_closed(struct fairlock_engine *engine, struct fairlock_link *link)
{
  return closed_inside(engine, link);
}

const struct fairlock_hooks fairlock_share_hooks = {PLACE_SHARE, write_output, on_event, on_closed};

void fairlock_engine_share(struct fairlock_engine *engine, struct fairlock_sharing *sharing)
{
  sharing->own.eval = 0;
  (void)fairlock_links_insert(engine, &sharing->own.link, &fairlock_share_hooks);
}

int fairlock_engine_add_shared(struct fairlock_engine *engine, struct fairlock_shared *shared,
                               const char *name, size_t size, uint32_t limit)
{
  const struct fairlock_link *link = engine->links;
  while (link != NULL && link->hooks->place != PLACE_SHARE)
    link = link->inner;
  if (link == NULL || limit > FAIRLOCK_LIMIT_MAX) return FAIRLOCK_INVALID;
  int status = fairlock_engine_add(engine, &shared->handle, name, size);
  if (status != FAIRLOCK_OK) return status;
  shared->handle.keep = SHARES;
  shared->limit = (uint16_t)limit;
  return FAIRLOCK_OK;
}
