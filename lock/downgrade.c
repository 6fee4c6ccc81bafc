/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hold that is exclusive becomes a shared one, and nobody gets in between.
 *
 * Two handles take part: `from`, which holds alone, and its successor, which is to share. The
 * successor waits as for any acquire, but its request is that of another script, which ends the one
 * hold and begins the other. From the beginning, `from` is releasing: it sends no renewals, and answers
 * to those on their way do not count. But its release is held back while the successor waits. The
 * answer to the successor answers that release, too. If the successor gives up, the release is sent,
 * and the successor leaves: so nothing is left of either, whatever the server has carried out.
 *
 * The request can be repeated, and may come late, because it names the token of the exclusive hold:
 * the script then finds the share, or nothing to do.
 *
 * The successor knows `from` by its number and its token. A pointer could outlive `from`, which may
 * also hold again.
 *
 * After a fail-over that has lost the newest tokens, that of the hold may be smaller than that of the
 * successor's own last one. It then keeps the latter, and the request names both.
 */
#include "fairlock_share.h"
#include "internal.h"

static bool is_successor(const struct fairlock *handle)
{
  return handle != NULL && waiting(handle) && handle->flags & INHERITS;
}

/* True if the handle that shares is to get this hold. */
static bool names(struct fairlock *shared, const struct fairlock *from)
{
  const struct fairlock_shared_state *own = &shared_of(shared)->own;
  return from->phase == RELEASING && own->from_number == from->number &&
         own->from_token == from->token;
}

/* The handle whose hold this one is to get; NULL: that has given up before. */
static struct fairlock *find_from(struct fairlock *shared)
{
  struct fairlock *from = shared->engine->first;
  while (from != NULL && !names(shared, from))
    from = fairlock_schedule_next(from, true);
  return from;
}

static bool has_successor(const struct fairlock *from)
{
  struct fairlock *handle = from->engine->first;
  if (from->phase != RELEASING) return false;
  while (handle != NULL && !(is_successor(handle) && names(handle, from)))
    handle = fairlock_schedule_next(handle, true);
  return handle != NULL;
}

static void write_arguments(struct resp_writer *writer, const struct fairlock_request *request)
{
  fairlock_shared_query.write(writer, request);
  resp_write_bulk_number(writer, (int64_t)shared_of(request->handle)->own.newer);
}

/* The reply has ended. {-1, 0, now}: the hold is gone. */
static int end_downgrade(struct fairlock_engine *engine)
{
  int status = fairlock_reply_end(engine);
  return status == FAIRLOCK_OK && engine->values[0] == -1 ? FAIRLOCK_LOST : status;
}

static const struct fairlock_query downgrading = {.script = &fairlock_downgrade_script,
                                                  .words = 10,
                                                  .text = DOWNGRADE_TEXT,
                                                  .write = write_arguments,
                                                  .element = fairlock_reply_take_number,
                                                  .end = end_downgrade};

/*
 * The successor's request names the hold of `from`, by number (downgrade.lua: mode) and token, and the
 * token of the successor's own last hold if that is newer.
 */
static void name_hold(struct fairlock_request *request, struct fairlock *successor)
{
  struct fairlock_shared_state *own = &shared_of(successor)->own;
  struct fairlock *from = find_from(successor);
  if (from != NULL) from->in_doubt |= KIND_RELEASE; /* this may end its hold, answered or not */
  own->newer = request->token > own->from_token ? request->token : 0;
  request->token = own->from_token;
  request->mode = -(int32_t)own->from_number;
}

/*
 * A request of a handle that shares begins to be written: that of a successor is another one. So
 * handle->query, by which its answer is read, changes only with the phase, which forgets older answers.
 */
static void choose_query(struct fairlock_engine *engine, struct fairlock *handle)
{
  struct fairlock_request *request = &engine->request;
  engine->eval |= request->eval; /* the last query's text was not asked for */
  handle->query = is_successor(handle) ? &downgrading : &fairlock_shared_query;
  set_query(engine, handle->query);
  if (is_successor(handle)) name_hold(request, handle);
}

static void write_output(struct fairlock_engine *engine, struct resp_writer *writer,
                         struct fairlock_link *link)
{
  struct fairlock *handle = engine->request.handle;
  if (handle != NULL && engine->request_done == 0) {
    if (has_successor(handle)) { /* its release is held back */
      fairlock_pipeline_withdraw(handle);
      fairlock_handle_send_at(handle, engine->now + RETRY_MS);
      return;
    }
    if (shares(handle) && engine->request.kind < KIND_QUERY) choose_query(engine, handle);
  }
  write_inside(engine, writer, link);
}

/*
 * The successor has its answer to the request of sent_at. That answers the release, too: in the engine's
 * values, 1 says that the hold was ended by it, and -1 that it had ended before, so that `from` is told
 * of its loss. Or the exclusive hold has to be released.
 */
static void settle(struct fairlock *from, const struct fairlock *successor, bool gone,
                   uint32_t sent_at)
{
  from->in_doubt &= (uint8_t)~KIND_RELEASE;
  if (gone || holding(successor)) fairlock_handle_on_reply(from, FAIRLOCK_OK, sent_at);
  else fairlock_handle_send_at(from, from->engine->now);
}

static bool on_event(struct fairlock_engine *engine, struct resp_event *event,
                     struct fairlock_link *link)
{
  struct fairlock *successor = fairlock_pipeline_next_answered(engine);
  if (!is_successor(successor)) return event_inside(engine, event, link);
  struct fairlock *from = find_from(successor);
  uint32_t sent_at = successor->sent_at[0];
  if (!event_inside(engine, event, link)) fairlock_reply_process(engine, event);
  /* a push is no answer: the release of `from` is sent, if a message has granted the lock */
  bool answered = engine->value_type != RESP_PUSH;
  bool gone = successor->answer == FAIRLOCK_LOST;
  if (from != NULL && answered && !waiting(successor)) settle(from, successor, gone, sent_at);
  return true;
}

static const struct fairlock_hooks hooks = {PLACE_DOWNGRADE, write_output, on_event, closed_inside};

void fairlock_engine_use_downgrading(struct fairlock_engine *engine,
                                     struct fairlock_downgrading *option)
{
  (void)fairlock_links_insert(engine, &option->own.link, &hooks);
}

static bool used(const struct fairlock_engine *engine)
{
  const struct fairlock_link *link = engine->links;
  while (link != NULL && link->hooks != &hooks)
    link = link->inner;
  return link != NULL;
}

static bool same_name(const struct fairlock *a, const struct fairlock *b)
{
  size_t i = 0;
  while (i < a->name_size && i < b->name_size && a->name[i] == b->name[i])
    i++;
  return i == a->name_size && i == b->name_size;
}

/* True if the handles are one of each kind, for the same lock, and of the same client. */
static bool match(const struct fairlock *from, const struct fairlock *successor)
{
  return from->engine == successor->engine && !shares(from) && from->number <= INT32_MAX &&
         same_name(from, successor);
}

int fairlock_engine_downgrade(struct fairlock *exclusive, struct fairlock_shared *shared,
                              uint32_t lease_ms, uint32_t now)
{
  struct fairlock *successor = &shared->handle;
  exclusive->engine->now = now;
  uint32_t good_ms = lease_ms;
  if (!take_lease(&good_ms) || !match(exclusive, successor) || !used(exclusive->engine))
    return FAIRLOCK_INVALID;
  bool busy = exclusive->result == FAIRLOCK_PENDING || successor->result == FAIRLOCK_PENDING;
  if (busy || holding(successor) || successor->phase == LOST) return FAIRLOCK_IN_PROGRESS;
  if (holding(exclusive) && exclusive->holds > 1) return FAIRLOCK_INVALID;
  int status = fairlock_engine_release(exclusive, now);
  if (status != FAIRLOCK_PENDING) return status;
  exclusive->keep = 0; /* keep.c does not delay this release */
  fairlock_handle_send_at(exclusive, now + RETRY_MS);
  successor->keep = 0; /* nor does it answer this acquire */
  status = fairlock_engine_acquire(successor, FAIRLOCK_FOREVER, lease_ms, now);
  successor->flags |= INHERITS;
  if (successor->token < exclusive->token || successor->token >= LARGEST)
    successor->token = exclusive->token;
  shared->own.from_number = exclusive->number;
  shared->own.from_token = exclusive->token;
  return status;
}
