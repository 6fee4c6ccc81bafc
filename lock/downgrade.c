/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hold that is exclusive becomes a shared one, and nobody gets in between.
 *
 * Two handles take part: `from`, which holds alone, and its heir, which is to share. The heir waits
 * as for any acquire, but its request is that of another script, which ends the one hold and begins
 * the other. From the beginning, `from` is releasing: it sends no renewals, and answers to those on
 * their way do not count. But its release is held back while the heir waits. The answer to the heir
 * answers that release, too. If the heir gives up, the release is sent, and the heir leaves: so
 * nothing is left of either, whatever the server has carried out.
 *
 * The request can be repeated, and may come late, because it names the token of the exclusive hold:
 * the script then finds the share, or nothing to do.
 *
 * A waiter that is an heir differs from others in its hold count, which they do not have. It has the
 * token of the hold; in reentry_lease_ms, which a waiter does not use, the number of `from`; and in
 * ends_at, which one without a limit does not use, the lower half of the hold's token, because `from`
 * may hold again. A pointer could outlive `from`.
 *
 * After a fail-over that has lost the newest tokens, that of the hold may be smaller than that of the
 * heir's own last one. The heir then keeps the latter, and the request names both.
 */
#include "share.h"

/* In own.eval: the script of a downgrade has to be sent as text. No request of share.c has this bit. */
#define DOWNGRADES KIND_FORCE

/* The handle waits for a hold that another one has. */
static bool is_heir(const struct fairlock *handle)
{
  return handle != NULL && waiting(handle) && handle->holds > 0;
}

static bool inherits(const struct fairlock *heir, const struct fairlock *from)
{
  return is_heir(heir) && from->phase == RELEASING && heir->reentry_lease_ms == from->number &&
         heir->ends_at == (uint32_t)from->token;
}

/* The handle whose hold the heir is to get; NULL: that has given up before. */
static struct fairlock *find_from(const struct fairlock *heir)
{
  struct fairlock *from = heir->engine->first;
  while (from != NULL && !inherits(heir, from))
    from = fairlock_schedule_next(from, true);
  return from;
}

static bool has_heir(const struct fairlock *from)
{
  const struct fairlock *heir = from->engine->first;
  while (heir != NULL && !inherits(heir, from))
    heir = fairlock_schedule_next(heir, true);
  return heir != NULL;
}

/* The request of the heir names the hold of `from`, and the token of the heir's own last if newer. */
static void name_hold(struct fairlock_request *request, struct fairlock *from,
                      struct fairlock_sharing *sharing)
{
  from->in_doubt |= KIND_RELEASE; /* this may end its hold, answered or not */
  if (request->token > from->token) sharing->own.newer = request->token;
  request->token = from->token;
}

/*
 * The request of the handle begins to be written. Returns false if it is held back. An heir that has
 * given up leaves as any other.
 */
static bool begin_request(struct fairlock_engine *engine, struct fairlock *handle,
                          struct fairlock_sharing *sharing)
{
  struct fairlock_request *request = &engine->request;
  if (is_heir(handle)) {
    struct fairlock *from = find_from(handle);
    sharing->own.newer = 0;
    if (from != NULL) name_hold(request, from, sharing);
    request->mode = -(int32_t)handle->reentry_lease_ms;
  }
  if (request->kind == KIND_LEAVE) {
    handle->holds = 0;
    request->mode = 0;
  }
  if (!has_heir(handle)) return true;
  fairlock_pipeline_withdraw(handle);
  fairlock_handle_send_at(handle, engine->now + RETRY_MS);
  return false;
}

static void write_output(struct fairlock_engine *engine, struct resp_writer *writer,
                         struct fairlock_link *link)
{
  const struct fairlock_request *request = &engine->request;
  struct fairlock_sharing *sharing = fairlock_sharing_of(link);
  struct fairlock *handle = request->handle;
  bool begins = handle != NULL && engine->request_done == 0;
  if (begins && !begin_request(engine, handle, sharing)) return;
  /* no other acquire has such a mode; what the handle is doing may have changed meanwhile */
  if (handle == NULL || request->kind != KIND_ACQUIRE || request->mode >= 0) {
    fairlock_share_hooks.write(engine, writer, link);
    return;
  }
  if (begins) fairlock_share_choose_form(engine, sharing, DOWNGRADES);
  fairlock_share_write_request(writer, request, &fairlock_downgrade_script, sharing->own.newer);
  fairlock_share_write_additions(engine, writer, link);
}

/*
 * The heir has its answer to the request of sent_at. It answers the release, too, or the exclusive hold has
 * to be released.
 */
static void settle(struct fairlock *from, const struct fairlock *heir, bool gone, uint32_t sent_at)
{
  struct fairlock_engine *engine = from->engine;
  from->in_doubt &= (uint8_t)~KIND_RELEASE;
  if (!gone && !holding(heir)) {
    fairlock_handle_send_at(from, engine->now);
    return;
  }
  fairlock_handle_on_reply(from, FAIRLOCK_OK, sent_at);
}

/* True if the event ends the answer {-1, 0, now} that a request awaits: the hold is gone. */
static bool says_gone(const struct fairlock_engine *engine, const struct resp_event *event)
{
  if (engine->value_type != RESP_ARRAY || engine->malformed) return false;
  if (!event->last || event->depth != 1 || engine->element != 2) return false;
  return fairlock_pipeline_expects(engine) && engine->values[0] == -1;
}

static bool on_event(struct fairlock_engine *engine, struct resp_event *event,
                     struct fairlock_link *link)
{
  struct fairlock *heir = fairlock_pipeline_next_answered(engine);
  if (!is_heir(heir)) return fairlock_share_hooks.event(engine, event, link);
  struct fairlock_sharing *sharing = fairlock_sharing_of(link);
  struct fairlock *from = find_from(heir);
  uint32_t sent_at = heir->sent_at[0];
  uint8_t eval = sharing->own.eval;
  bool unknown = is_error(engine) && fairlock_reply_begins(event, "NOSCRIPT");
  bool gone = says_gone(engine, event);
  if (gone) fairlock_reply_answered(engine, FAIRLOCK_LOST);
  else if (!fairlock_share_hooks.event(engine, event, link)) fairlock_reply_process(engine, event);
  if (unknown) sharing->own.eval = eval | DOWNGRADES; /* and not for the script of share.c */
  /* a push is no answer: the release of `from` is sent, if a message has granted the lock to the heir */
  bool answered = engine->value_type != RESP_PUSH;
  if (from != NULL && answered && !waiting(heir)) settle(from, heir, gone, sent_at);
  return true;
}

static bool on_closed(struct fairlock_engine *engine, struct fairlock_link *link)
{
  return closed_inside(engine, link);
}

/* These take the place of those of share.c when there is a first downgrade. */
static const struct fairlock_hooks hooks = {PLACE_SHARE, write_output, on_event, on_closed};

static bool same_name(const struct fairlock *a, const struct fairlock *b)
{
  size_t i = 0;
  while (i < a->name_size && i < b->name_size && a->name[i] == b->name[i])
    i++;
  return i == a->name_size && i == b->name_size;
}

/* True if the handles are one of each kind, for the same lock, and of the same client. */
static bool match(const struct fairlock *from, const struct fairlock *heir)
{
  return from->engine == heir->engine && !(from->keep & SHARES) && from->number <= INT32_MAX &&
         same_name(from, heir);
}

static void use_hooks(struct fairlock_engine *engine)
{
  struct fairlock_link *link = engine->links;
  while (link->hooks->place != PLACE_SHARE)
    link = link->inner;
  link->hooks = &hooks;
}

int fairlock_engine_downgrade(struct fairlock *exclusive, struct fairlock_shared *shared,
                              uint32_t lease_ms, uint32_t now)
{
  struct fairlock *heir = &shared->handle;
  exclusive->engine->now = now;
  uint32_t lease_taken = lease_ms;
  if (!take_lease(&lease_taken) || !match(exclusive, heir)) return FAIRLOCK_INVALID;
  bool busy = exclusive->result == FAIRLOCK_PENDING || heir->result == FAIRLOCK_PENDING;
  if (busy || holding(heir) || heir->phase == LOST) return FAIRLOCK_IN_PROGRESS;
  if (holding(exclusive) && exclusive->holds > 1) return FAIRLOCK_INVALID;
  int status = fairlock_engine_release(exclusive, now);
  if (status != FAIRLOCK_PENDING) return status;
  exclusive->keep = 0; /* keep.c does not delay this release */
  fairlock_handle_send_at(exclusive, now + RETRY_MS);
  use_hooks(exclusive->engine);
  heir->keep = SHARES;
  status = fairlock_engine_acquire(heir, FAIRLOCK_FOREVER, lease_ms, now);
  heir->holds = 1;
  if (heir->token < exclusive->token || heir->token >= LARGEST) heir->token = exclusive->token;
  heir->reentry_lease_ms = exclusive->number;
  heir->ends_at = (uint32_t)exclusive->token;
  return status;
}
