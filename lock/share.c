/*
 * Handles that share their lock: what they send instead.
 *
 * Such a handle goes through the same phases, and its answers and messages mean the same. Only the
 * script differs, and it has one argument more, the limit. So this file is a link in front of what
 * the engine writes and reads: see struct fairlock_hooks. What else is written with a request, such
 * as the WAIT of topology.c, the inner links write.
 */
#include "internal.h"

#include <string.h>

static const struct fairlock_shared *shared_of(const struct fairlock *handle)
{
  return (const struct fairlock_shared *)(const void *)handle; /* its first member */
}

static struct fairlock_sharing *sharing_of(struct fairlock_link *link)
{
  return (struct fairlock_sharing *)(void *)((char *)link -
                                             offsetof(struct fairlock_sharing, own.link));
}

static bool shares(const struct fairlock *handle)
{
  return handle != NULL && handle->keep & SHARES;
}

/* The request is about a place or a hold of a handle that shares. Its phase may have changed since. */
static bool is_shared(const struct fairlock_request *request)
{
  return request->kind < KIND_FORCE && shares(request->handle);
}

/*
 * Decides whether the script is sent as text. The engine's bits are for the script of those who want
 * a lock alone. If the two took each other's, one that comes first again and again would leave the
 * other without.
 */
static void choose_form(struct fairlock_engine *engine, struct fairlock_sharing *sharing)
{
  struct fairlock_request *request = &engine->request;
  engine->eval |= request->eval;
  request->eval = sharing->own.eval & request->kind;
  sharing->own.eval ^= request->eval;
}

/* Writes the request as request.c does, but for the script and the last argument. */
static void write_request(struct resp_writer *writer, const struct fairlock_request *request)
{
  const struct fairlock *handle = request->handle;
  if (request->subscribe) {
    const char *command = request->kind == KIND_LEAVE ? "SUNSUBSCRIBE" : "SSUBSCRIBE";
    fairlock_request_write_command(writer, handle->engine->sharded ? command : command + 1, 2);
    fairlock_request_write_bulk(writer, handle, fairlock_request_channel_prefix);
  }
  fairlock_script_write(writer, &fairlock_shared_script, request->eval, 9);
  fairlock_request_write_text(writer, "4");
  resp_write_bulk(writer, handle->name, handle->name_size);
  for (const char *prefix = fairlock_request_key_prefixes; *prefix != 0;
       prefix += strlen(prefix) + 1)
    fairlock_request_write_bulk(writer, handle, prefix);
  fairlock_request_write_bulk(writer, handle, NULL);
  resp_write_bulk_number(writer, shared_of(handle)->limit);
}

/* Writes with a request what the inner links add to it: all that they write but the request itself. */
static void write_additions(struct fairlock_engine *engine, struct resp_writer *writer,
                            const struct fairlock_link *link)
{
  struct resp_writer nowhere;
  resp_writer_init(&nowhere, NULL, 0, 0);
  fairlock_request_write_output(engine, &nowhere);
  writer->skip += nowhere.total;
  write_inside(engine, writer, link);
  writer->total -= nowhere.total;
}

static void write_output(struct fairlock_engine *engine, struct resp_writer *writer,
                         struct fairlock_link *link)
{
  if (!is_shared(&engine->request)) {
    write_inside(engine, writer, link);
    return;
  }
  if (engine->request_done == 0) choose_form(engine, sharing_of(link));
  write_request(writer, &engine->request);
  write_additions(engine, writer, link);
}

/* Others share the lock with another limit. The caller is told this as an error of the server. */
static void on_other_limit(struct fairlock_engine *engine, const struct fairlock_shared *shared)
{
  char text[64] = "LIMIT of those who share: ";
  size_t size = strlen(text);
  size += resp_format_number(text + size, engine->values[1]);
  memcpy(text + size, ", not ", 6);
  size += 6;
  size += resp_format_number(text + size, shared->limit);
  struct resp_event error = {
      .type = RESP_SIMPLE_ERROR, .data = (const uint8_t *)text, .size = size};
  fairlock_reply_on_error(engine, &error, FAIRLOCK_OTHER_LIMIT);
}

/* The event ends an answer {2, limit, now} to the acquire of this handle. */
static bool is_other_limit(const struct fairlock_engine *engine, const struct resp_event *event,
                           const struct fairlock *handle)
{
  if (engine->stage != UP || engine->value_type != RESP_ARRAY || engine->malformed) return false;
  if (!event->last || event->depth != 1 || engine->element != 2) return false;
  return shares(handle) && waiting(handle) && fairlock_pipeline_expects(engine) &&
         engine->values[0] == 2;
}

/* The server does not know the script of those who share. That says nothing about the other one. */
static void on_unknown_script(struct fairlock_engine *engine, struct resp_event *event,
                              struct fairlock_link *link)
{
  uint8_t eval = engine->eval;
  sharing_of(link)->own.eval |= fairlock_handle_kind(fairlock_pipeline_next_answered(engine));
  (void)event_inside(engine, event, link); /* none of those inside keeps such an error to itself */
  fairlock_reply_process(engine, event);
  engine->eval = eval;
}

static bool on_event(struct fairlock_engine *engine, struct resp_event *event,
                     struct fairlock_link *link)
{
  const struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  if (is_other_limit(engine, event, handle)) {
    on_other_limit(engine, shared_of(handle));
    return true;
  }
  if (shares(handle) && is_error(engine) && fairlock_reply_begins(event, "NOSCRIPT")) {
    on_unknown_script(engine, event, link);
    return true;
  }
  return event_inside(engine, event, link);
}

static bool on_closed(struct fairlock_engine *engine, struct fairlock_link *link)
{
  return closed_inside(engine, link);
}

static const struct fairlock_hooks hooks = {PLACE_SHARE, write_output, on_event, on_closed};

void fairlock_engine_share(struct fairlock_engine *engine, struct fairlock_sharing *sharing)
{
  (void)fairlock_links_insert(engine, &sharing->own.link, &hooks);
}

int fairlock_engine_add_shared(struct fairlock_engine *engine, struct fairlock_shared *shared,
                               const char *name, size_t size, uint32_t limit)
{
  const struct fairlock_link *link = engine->links;
  while (link != NULL && link->hooks != &hooks)
    link = link->inner;
  if (link == NULL || limit > FAIRLOCK_SHARED_MAX) return FAIRLOCK_INVALID;
  int status = fairlock_engine_add(engine, &shared->handle, name, size);
  if (status != FAIRLOCK_OK) return status;
  shared->handle.keep = SHARES;
  shared->limit = (uint16_t)limit;
  return FAIRLOCK_OK;
}
