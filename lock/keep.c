/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that the client keeps while nobody else wants them: after a release the server still has
 * the hold, and the next acquire takes it back without sending a byte, until somebody queues for
 * the lock.
 *
 * Delayed release. The last release of a hold ends at once for the caller, but its request is
 * delayed: the handle is RELEASING, and sends the request when the keep ends. An acquire before
 * that takes the hold back, with its token. Both are answered here, at the moment when their
 * requests would be written, because this file's link (struct fairlock_hooks) is between engine and
 * connection.
 *
 * Tracking. The server tracks the key of the queue (CLIENT TRACKING ON OPTIN), and pushes
 * "invalidate" when the key changes, which it does when a waiter joins the queue. Before that, the
 * client has to arm the queue: CLIENT CACHING and EXISTS, written before a request, ask for one
 * push, and find out whether somebody waits already. A push does not say what has changed. It ends
 * the keep, and the release is sent. A queue stays armed until there is a push, or until the
 * connection ends.
 *
 * Time. A client that only tries does not join the queue, and so causes no push. So the keep ends
 * keep_ms after the request that began or confirmed the hold was sent; that is at most two thirds
 * of the lease. A hold is taken back only while two thirds of its lease are left, because a program
 * may compute for half a lease without servicing the client. A later acquire asks the server, and
 * begins another hold. Only renewed holds are kept, because they have the configured lease.
 */
#include "fairlock_keep.h"
#include "internal.h"

/*
 * If no task has received for this long, and none is about to, the client reads what has arrived
 * before it keeps a hold or takes it back. Otherwise a program that only acquires and releases
 * would never read a push.
 */
#define LOOK_MS 100U

/* Whether this connection tracks keys: values of keep->own.tracking. */
enum { NOT_ASKED, TRACKS, REFUSES };

static struct fairlock_keeping *keep_of(struct fairlock_link *link)
{
  return (struct fairlock_keeping *)(void *)((char *)link -
                                             offsetof(struct fairlock_keeping, own.link));
}

/* True if the keep of the hold has not ended yet. */
static bool in_time(const struct fairlock_keeping *keep, const struct fairlock *handle)
{
  return handle->engine->now - handle->kept_since < keep->keep_ms;
}

/* True if the lock may be kept, or taken back, without asking the server. */
static bool may_keep(const struct fairlock_keeping *keep, const struct fairlock *handle)
{
  return handle->keep & ARMED && handle->flags & RENEWS && in_time(keep, handle);
}

/* True if at least two thirds of the lease are left, which is what every acquire gives. */
static bool lasts(const struct fairlock *handle)
{
  uint32_t lease_ms = handle->lease_ms;
  return handle->engine->now - handle->kept_since + margin(lease_ms) <= lease_ms / 3;
}

/* Tells the client that operations have ended without an answer of the server. */
static void tell(const struct fairlock_keeping *keep)
{
  if (keep->own.answered != NULL) keep->own.answered(keep->own.context);
}

/* While input is read, the wait does not end, however short it is. */
static void suspend_wait(struct fairlock *handle)
{
  if (handle->phase == QUEUEING) handle->flags |= ENDLESS;
}

/*
 * The server has to be asked: the wait ends when the caller wanted, again. Nothing has answered since it
 * has begun, and a wait without a limit seems to have ended before that. The handle has to be
 * rescheduled after this.
 */
static void resume_wait(struct fairlock *handle)
{
  bool has_limit = handle->ends_at - handle->answered_at <= FAIRLOCK_DURATION_MAX_MS;
  if (handle->keep & LOOKS && handle->phase == QUEUEING && has_limit)
    handle->flags &= (uint8_t)~ENDLESS;
}

/*
 * True if what the server has said until now was read: by a task that receives all the time, or
 * within the last LOOK_MS, or, if the handle has looked before, since then, however long ago that is.
 */
static bool has_read(const struct fairlock_keeping *keep, const struct fairlock *handle)
{
  uint32_t unread_ms = handle->engine->now - handle->engine->drained_at;
  if (keep->own.serviced != NULL && *keep->own.serviced) return true;
  if (handle->keep & LOOKS) return unread_ms <= handle->engine->now - keep->own.looked_at;
  return unread_ms < LOOK_MS;
}

/* Returns true if input has to be read first. The handle then tries again, in a millisecond. */
static bool looks(struct fairlock_keeping *keep, struct fairlock *handle)
{
  uint32_t now = handle->engine->now;
  if (has_read(keep, handle)) return false;
  keep->own.looked_at = now;
  suspend_wait(handle);
  handle->keep |= LOOKS;
  fairlock_handle_send_at(handle, now + 1); /* + 1, so that the caller receives in between */
  return true;
}

/* Delays a release. Returns false if it has to be sent, perhaps because it was delayed already. */
static bool delay_release(struct fairlock_keeping *keep, struct fairlock *handle)
{
  bool certain = handle->in_doubt == 0 && !(handle->flags & UNCONFIRMED);
  if (handle->result != FAIRLOCK_PENDING || !certain || !may_keep(keep, handle)) return false;
  if (handle->keep & QUERIES) return false;
  fairlock_pipeline_withdraw(handle);
  if (looks(keep, handle)) return true;
  handle->keep = (uint8_t)((handle->keep & ~LOOKS) | KEPT);
  fairlock_handle_delay_release(handle, handle->kept_since + keep->keep_ms);
  tell(keep);
  return true;
}

/*
 * Answers an acquire by the hold that is kept, if there is one. Returns false if it has to be sent.
 */
static bool resume_hold(struct fairlock_keeping *keep, struct fairlock *handle)
{
  bool kept = handle->keep & KEPT && handle->flags & OWED;
  if (!kept || !may_keep(keep, handle) || !lasts(handle)) return false;
  fairlock_pipeline_withdraw(handle);
  if (looks(keep, handle)) return true;
  /* a query that was to follow the release has failed before */
  handle->keep &= (uint8_t) ~(KEPT | LOOKS | QUERIES);
  fairlock_handle_resume_hold(handle, handle->kept_since);
  tell(keep);
  return true;
}

/*
 * Arms the queue before the request. Also subscribes, so that an operator can ask for a kept lock.
 */
static void arm(struct fairlock_keeping *keep, struct fairlock *handle)
{
  if (!(handle->flags & (SUBSCRIBED | SUBSCRIBING))) fairlock_pipeline_subscribe(handle);
  keep->own.begins_tracking = keep->own.tracking == NOT_ASKED;
  keep->own.tracking = TRACKS;
  keep->own.arms = true;
  keep->own.arming = true;
  handle->keep |= ARMING;
  keep->own.arm_sequence = fairlock_pipeline_put_before(handle, keep->own.begins_tracking ? 3 : 2);
}

/*
 * To be called when a request begins to be written. Returns true if it was answered here, and must
 * not be sent. kept_since becomes the time of the first unanswered acquire or, for a handover, of
 * its confirmation.
 */
static bool answers(struct fairlock_keeping *keep, struct fairlock *handle)
{
  struct fairlock_request *request = &handle->engine->request;
  bool releases = request->kind == KIND_RELEASE;
  bool acquires = request->kind == KIND_ACQUIRE && !(handle->flags & QUEUED);
  bool confirms = request->kind == KIND_IF_HELD && handle->flags & UNCONFIRMED;
  keep->own.arms = false;
  /* a keep that has ended must not seem to go on when the clock has wrapped around */
  if (!in_time(keep, handle)) handle->kept_since = handle->engine->now - keep->keep_ms;
  if (releases ? delay_release(keep, handle) : acquires && resume_hold(keep, handle)) return true;
  if (releases && handle->holds == 0) request->mode = 0; /* it was delayed, and counts no level */
  resume_wait(handle);
  fairlock_handle_send_at(handle, handle->sends_at); /* reschedules it */
  if (request->kind != KIND_IF_HELD) handle->keep &= (uint8_t) ~(KEPT | LOOKS);
  if (request->kind == KIND_ACQUIRE) handle->keep &= (uint8_t)~QUERIES;
  if ((acquires || confirms) && handle->unanswered == 1) handle->kept_since = handle->engine->now;
  bool useful = acquires || (handle->phase == HELD && in_time(keep, handle));
  if (!useful || !(handle->flags & RENEWS) || handle->keep & ARMED) return false;
  if (!keep->own.arming && keep->own.tracking != REFUSES) arm(keep, handle);
  return false;
}

static void write_client(struct resp_writer *writer, const char *command, const char *value,
                         const char *mode)
{
  fairlock_request_write_command(writer, "CLIENT", mode != NULL ? 4 : 3);
  fairlock_request_write_text(writer, command);
  fairlock_request_write_text(writer, value);
  if (mode != NULL) fairlock_request_write_text(writer, mode);
}

static void write_arming(struct resp_writer *writer, const struct fairlock *handle,
                         bool begins_tracking)
{
  if (begins_tracking) write_client(writer, "TRACKING", "ON", "OPTIN");
  write_client(writer, "CACHING", "YES", NULL);
  fairlock_request_write_command(writer, "EXISTS", 2);
  fairlock_request_write_queue(writer, handle);
}

static void write_output(struct fairlock_engine *engine, struct resp_writer *writer,
                         struct fairlock_link *link)
{
  struct fairlock_keeping *keep = keep_of(link);
  struct fairlock *handle = engine->request.handle;
  if (handle != NULL) {
    if (engine->request_done == 0 && answers(keep, handle)) return;
    if (keep->own.arms) write_arming(writer, handle, keep->own.begins_tracking);
  }
  write_inside(engine, writer, link);
}

/* What the server says */

/* Somebody may wait now: if the lock is kept, its release is sent. The caller reschedules the handle. */
static void recall(struct fairlock *handle)
{
  handle->keep &= (uint8_t)~ARMED;
  if (handle->keep & KEPT && handle->phase == RELEASING) handle->sends_at = handle->engine->now;
}

/*
 * True if the event is the key of the handle's queue: a prefix and the name, which may be in
 * braces.
 */
static bool is_queue(const struct fairlock *handle, const struct resp_event *event)
{
  size_t start = sizeof "redisson_lock_queue:" - 1;
  if (event->size == start + handle->name_size + 2) start++;
  else if (event->size != start + handle->name_size) return false;
  for (size_t i = 0; i < handle->name_size; i++) {
    if (event->data[start + i] != (uint8_t)handle->name[i]) return false;
  }
  return true;
}

/*
 * Handles a push: "invalidate" and an array of keys, or null for all keys. A key that was cut off
 * may be any. A message to a handle that does not wait asks for its lock: if the lock is kept, its
 * release is sent; if it is held, its next release is not delayed.
 */
static void on_push(struct fairlock_keeping *keep, struct fairlock_engine *engine,
                    const struct resp_event *event)
{
  bool all = event->type == RESP_NULL || event->cut;
  struct fairlock *addressee = engine->push_type == PUSH_MESSAGE ? engine->addressee : NULL;
  if (engine->element == 2 && addressee != NULL && !waiting(addressee)) {
    recall(addressee);
    fairlock_turns_update(addressee);
  }
  if (event->depth == 1 && engine->element == 0)
    keep->own.invalidates = fairlock_reply_begins(event, "invalidate");
  else if (keep->own.invalidates && (all || event->depth == 2)) {
    struct fairlock *handle = engine->first;
    for (; handle != NULL; handle = fairlock_schedule_next(handle, true)) {
      if (handle->keep & ARMED && (all || is_queue(handle, event))) recall(handle);
    }
    fairlock_turns_update_all(engine);
  }
}

/* The arming has ended. If `armed`, the queue of the handle that has asked is armed now. */
static void end_arming(struct fairlock_keeping *keep, const struct fairlock_engine *engine,
                       bool armed)
{
  struct fairlock *handle = engine->first;
  for (; handle != NULL; handle = fairlock_schedule_next(handle, true)) {
    if (handle->keep & ARMING)
      handle->keep = (uint8_t)(handle->keep ^ (armed ? ARMING | ARMED : ARMING));
  }
  keep->own.arming = false;
}

/*
 * The server refuses a part of the arming, after which `follow` parts follow. If that is for good
 * (no right, unknown command), nothing is armed on this connection any more. If it may pass, as
 * while a script of another program runs, the next arming begins with CLIENT TRACKING again,
 * because it is not known which parts the server has carried out. The log gets only the first
 * refusal.
 */
static void on_arming_refused(struct fairlock_keeping *keep, struct resp_event *event,
                              unsigned follow)
{
  bool for_good = fairlock_reply_begins(event, "NOPERM") || fairlock_reply_begins(event, "ERR");
  if (keep->own.tracking != TRACKS) event->type = RESP_NULL;
  else if (for_good) keep->own.tracking = REFUSES;
  else if (follow > 0) keep->own.tracking = NOT_ASKED;
}

/*
 * Handles one of the answers to the arming, after which `follow` more come: OK to CLIENT TRACKING
 * and to CLIENT CACHING, then whether the queue exists.
 */
static void on_arming_answer(struct fairlock_keeping *keep, struct fairlock_engine *engine,
                             struct resp_event *event, unsigned follow)
{
  bool error = is_error(engine);
  fairlock_pipeline_count(engine);
  if (error) on_arming_refused(keep, event, follow);
  else if (event->type != (follow > 0 ? RESP_SIMPLE_STRING : RESP_INTEGER))
    fairlock_engine_fail(engine, FAIRLOCK_PROTOCOL);
  if (follow == 0)
    end_arming(keep, engine, !error && event->integer == 0 && keep->own.tracking == TRACKS);
}

/*
 * An answer is complete. If it is the answer to the release before a query, begins the query; the
 * engine then drops the answer, because it is of another phase.
 */
static void on_given_back(const struct fairlock_engine *engine)
{
  struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  if (handle == NULL || !(handle->keep & QUERIES)) return;
  if (handle->phase != RELEASING || handle->result != FAIRLOCK_PENDING) return;
  if (engine->value_type != RESP_ARRAY || engine->malformed || engine->element != 2) return;
  if (engine->values[0] == -2) return; /* the release is sent again */
  handle->keep &= (uint8_t)~QUERIES;
  fairlock_handle_continue_query(handle);
}

static bool on_event(struct fairlock_engine *engine, struct resp_event *event,
                     struct fairlock_link *link)
{
  struct fairlock_keeping *keep = keep_of(link);
  unsigned follow = (uint16_t)(keep->own.arm_sequence - engine->last_received - 1);
  if (engine->value_type == RESP_PUSH) {
    on_push(keep, engine, event);
  } else if (keep->own.arming && follow < (keep->own.begins_tracking ? 3U : 2U)) {
    on_arming_answer(keep, engine, event, follow);
    return true;
  } else if (event->last) {
    on_given_back(engine);
  }
  return event_inside(engine, event, link);
}

/* The connection is closed, so no push will come any more. */
static bool on_closed(struct fairlock_engine *engine, struct fairlock_link *link)
{
  struct fairlock_keeping *keep = keep_of(link);
  struct fairlock *handle = engine->first;
  for (; handle != NULL; handle = fairlock_schedule_next(handle, true)) {
    recall(handle);
    resume_wait(handle);
    handle->keep &= QUERIES;
  }
  keep->own.arming = false;
  keep->own.tracking = NOT_ASKED;
  return closed_inside(engine, link);
}

static const struct fairlock_hooks hooks = {PLACE_KEEP, write_output, on_event, on_closed};

int fairlock_engine_keep(struct fairlock_engine *engine, struct fairlock_keeping *keep)
{
  uint32_t lease_ms = config_or(engine->config->lease_ms, LEASE_MS);
  if (keep->keep_ms - 1 >= lease_ms / 3 * 2) return FAIRLOCK_INVALID; /* too long, or 0 */
  (void)fairlock_links_insert(engine, &keep->own.link, &hooks);
  *keep = (struct fairlock_keeping){.keep_ms = keep->keep_ms, .own.link = keep->own.link};
  return FAIRLOCK_OK;
}
