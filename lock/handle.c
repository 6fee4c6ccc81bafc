/*
 * The handles: what an operation, a reply, a message and the time do to each.
 *
 * What a handle sends follows from its phase alone (`requests`), so after a broken connection it is
 * enough to send again. A waiter's heartbeats and a holder's renewals go out by the clock; replies
 * count as long as the handle is in the phase in which it wrote the request.
 *
 * In doubt. A request that was under way on a connection that broke may still be carried out, until
 * the expiry time that it carries. Most requests do no harm then: they name a token, or do nothing
 * unless held. Two kinds would: an acquire that arrives after the release begins a hold that nobody
 * knows of, and a leave that arrives after the next acquire ends its hold. So a handle with an
 * acquire in doubt leaves once more when that has expired, and one with a leave in doubt does not
 * acquire until that has expired.
 *
 * A handle is FREE only when nothing of it can be left on the server: no place in the queue, no
 * hold, no acquire still on its way. Until then it is LEAVING, in the background if need be.
 *
 * Tokens. While it does not hold, a handle keeps the token of its last hold: the server may still
 * have that hold, because it was given up without a release, or because a replica took over that
 * had not received the release, or had received an older one. The next acquire tells the server to
 * end that hold and to begin a new one, with a newer token than both. So an acquire ends no hold
 * that its handle believes in: none is believed in whose token is not newer than the last.
 */
#include "internal.h"

/*
 * The request of each phase: its kind, and what it adds to the hold count. With a force-release,
 * the 1 makes the mode -1.
 */
static const struct {
  uint8_t kind;
  int8_t change;
} requests[] = {
    [QUEUEING] = {KIND_ACQUIRE, 0},  [TRYING] = {KIND_ACQUIRE, 0},
    [HELD] = {KIND_KEEP, 0},         [REENTERING] = {KIND_KEEP, 1},
    [RELEASE_ONE] = {KIND_KEEP, -1}, [RELEASING] = {KIND_RELEASE, -1},
    [LEAVING] = {KIND_LEAVE, 0},     [REMOVING] = {KIND_LEAVE, 0},
    [FORCING] = {KIND_FORCE, 1},     [INSPECTING] = {KIND_INSPECT, 0},
};

static bool pending(const struct fairlock *handle)
{
  return handle->result == FAIRLOCK_PENDING;
}

static bool ready(const struct fairlock *handle)
{
  return (handle->listed & 1U << READY) != 0;
}

static uint32_t doubt_ends(const struct fairlock_engine *engine)
{
  return engine->stage_began + engine->in_doubt_ms;
}

static void set_timer(struct fairlock *handle, uint32_t time)
{
  handle->timer = time;
  handle->engine->changed = true;
}

/* From here on, replies to requests of the previous phase do not count. */
static void set_phase(struct fairlock *handle, enum phase phase)
{
  fairlock_list_remove(handle, SENT);
  handle->unanswered = 0;
  handle->phase = (uint8_t)phase;
  handle->engine->changed = true;
}

/* Kinds of requests of this connection whose replies have not come. */
static uint8_t in_flight(const struct fairlock *handle)
{
  return comes_after(handle->newest, handle->engine->last_received) ? handle->in_flight : 0;
}

/*
 * Nothing of this handle can be on the server, or still arrive there and stay: no hold, and no
 * place in the queue.
 */
static bool nothing_there(const struct fairlock *handle)
{
  return !(handle->flags & (QUEUED | OWED)) &&
         !((in_flight(handle) | handle->in_doubt) & KIND_ACQUIRE);
}

/*
 * Ends the operation, if there is one. When it was given up, the reason for that is its result, not
 * what came of leaving the queue.
 */
static void finish(struct fairlock *handle, int result)
{
  if (!pending(handle)) return;
  if (holding(handle) && handle->phase != HELD) set_phase(handle, HELD);
  handle->result = handle->leave_result < 0 ? handle->leave_result : (int8_t)result;
  handle->leave_result = FAIRLOCK_OK;
}

/* A handle that is being removed ends with FAIRLOCK_OK, whatever became of its leave. */
static void become_free(struct fairlock *handle, int result)
{
  bool removed = handle->phase == REMOVING;
  if (removed && handle->flags & SUBSCRIBING) /* nobody would be left to count its reply */
    fairlock_engine_fail(handle->engine, FAIRLOCK_UNREACHABLE);
  fairlock_list_remove(handle, READY);
  set_phase(handle, FREE);
  handle->holds = 0;
  handle->in_flight &= KIND_LEAVE; /* a late leave must not end the next wait */
  handle->in_doubt &= KIND_LEAVE;
  handle->flags &= removed ? 0 : SUBSCRIBED | SUBSCRIBING;
  finish(handle, removed ? FAIRLOCK_OK : result);
}

/*
 * The hold is over for the caller, but something may be left on the server: a late renewal may have
 * kept the hold alive, and a heartbeat that crossed the grant may have arrived after the hold had
 * ended and queued again.
 */
static void lose(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  if (handle->phase == RELEASE_ONE) handle->holds--; /* this release counts */
  fairlock_list_remove(handle, READY);
  set_phase(handle, LOST);
  handle->flags &= (uint8_t)~QUEUED;
  handle->flags |= OWED;
  engine->counters.losses++;
  finish(handle, FAIRLOCK_LOST);
  if (engine->config->lost != NULL) engine->config->lost(handle, engine->config->lost_context);
}

/*
 * The time by which every request of the handle has been carried out or has expired, and whatever
 * it left on the server has ended.
 */
static uint32_t all_ended(const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  return engine->now + handle->lease_ms + engine->waiter_ms + engine->response_ms;
}

/*
 * The caller neither waits nor holds any more: leaves the queue, or gives back a hold whose grant
 * we have not seen. The caller is told the result when that is done, or at once when there is no
 * connection.
 */
static void leave(struct fairlock *handle, int result)
{
  struct fairlock_engine *engine = handle->engine;
  if (nothing_there(handle)) {
    become_free(handle, result);
    return;
  }
  if (pending(handle)) handle->leave_result = (int8_t)result;
  set_phase(handle, LEAVING);
  handle->limit = all_ended(handle);
  if (engine->stage != UP) finish(handle, result);
  fairlock_queue_send(handle);
}

/*
 * The hold with handle->token has begun, and may be believed in until handle->limit. way: the
 * counter to raise if the handle had to wait, granted or polled. A handover has to be confirmed;
 * until then the lease is the waiter timeout.
 */
static void hold(struct fairlock *handle, uint32_t *way)
{
  struct fairlock_counters *counters = &handle->engine->counters;
  bool doubtful =
      /* the grant may be for an earlier place in the queue */
      handle->flags & OWED || handle->in_doubt & KIND_ACQUIRE;
  counters->acquisitions++;
  if (handle->flags & QUEUED) ++*way;
  set_phase(handle, HELD);
  handle->holds = 1;
  handle->flags &= (uint8_t)~OWED;
  if (doubtful) handle->flags |= QUEUED;
  handle->leave_result = FAIRLOCK_OK;
  finish(handle, FAIRLOCK_OK);
  if (handle->flags & QUEUED && !(handle->flags & RENEWS)) fairlock_queue_send(handle);
}

static uint32_t renewed_lease(const struct fairlock *handle)
{
  return config_or(handle->engine->config->lease_ms, LEASE_MS);
}

/* lease_ms, or what is left of the hold by the server's clock, whichever is longer. */
static uint32_t at_least_left(const struct fairlock *handle, uint32_t lease_ms)
{
  uint32_t left = fairlock_engine_remaining_ms(handle, handle->engine->now);
  left += margin(left);
  return lease_ms > left ? lease_ms : left;
}

/*
 * The lease that requests ask for. A re-entry may also be what confirms a handover, and then sets
 * the lease.
 */
static uint32_t lease_asked(const struct fairlock *handle)
{
  if (handle->phase != REENTERING) return handle->lease_ms;
  return at_least_left(handle, config_or(handle->reentry_lease_ms, renewed_lease(handle)));
}

/* When a lease that was asked for at sent_at ends. */
static uint32_t lease_end(uint32_t sent_at, uint32_t lease_ms)
{
  return sent_at + lease_ms - margin(lease_ms);
}

/*
 * The reply to a request sent at sent_at has confirmed its lease. A renewed lease that ends before
 * the limit that was confirmed earlier does not shorten it.
 */
static void extend(struct fairlock *handle, uint32_t sent_at)
{
  uint32_t limit = lease_end(sent_at, handle->lease_ms);
  bool shorter = holding(handle) && handle->flags & RENEWS && !(handle->flags & QUEUED) &&
                 !reached(limit, handle->limit);
  if (!shorter) handle->limit = limit;
  if (!(handle->flags & RENEWS)) set_timer(handle, handle->limit);
  else if (handle->unanswered == 0) set_timer(handle, sent_at + handle->lease_ms / 3);
}

/* The result of a wait whose time has run out. */
static int timed_out(const struct fairlock_engine *engine)
{
  if (engine->last_error < 0) return engine->last_error;
  return engine->stage == UP ? FAIRLOCK_TIMEOUT : FAIRLOCK_UNREACHABLE;
}

/* Waits, holds, or is ending either. */
static bool active(const struct fairlock *handle)
{
  return handle->phase >= QUEUEING && handle->phase <= REMOVING;
}

static bool limited(const struct fairlock *handle)
{
  if (handle->phase == QUEUEING) return !(handle->flags & ENDLESS);
  return handle->phase >= HELD && handle->phase <= REMOVING;
}

/*
 * Its limit is reached. If nobody has ticked for weeks, our clock has gone round and the limit of a
 * wait or a hold may seem to lie ahead: answered_at tells.
 */
static bool over(const struct fairlock *handle, uint32_t now)
{
  return reached(now, handle->limit) ||
         (!ending(handle) && now - handle->answered_at > FAIRLOCK_DURATION_MAX_MS);
}

/* Ends what has reached its limit. */
static void expire(struct fairlock *handle)
{
  if (!limited(handle) || !over(handle, handle->engine->now)) return;
  if (waiting(handle)) leave(handle, timed_out(handle->engine));
  else if (ending(handle)) become_free(handle, FAIRLOCK_UNKNOWN);
  else lose(handle);
}

/* Operations */

static int begin(struct fairlock *handle, enum phase phase)
{
  set_phase(handle, phase);
  handle->result = FAIRLOCK_PENDING;
  handle->answered_at = handle->engine->now;
  fairlock_queue_send(handle);
  return FAIRLOCK_PENDING;
}

/* A re-entry never shortens the lease, and never ends the renewals. */
static int reenter(struct fairlock *handle, uint32_t lease_ms)
{
  if (handle->flags & RENEWS) lease_ms = FAIRLOCK_RENEW;
  handle->reentry_lease_ms =
      lease_ms == FAIRLOCK_RENEW ? lease_ms : at_least_left(handle, lease_ms);
  return begin(handle, REENTERING);
}

static void set_lease(struct fairlock *handle, uint32_t lease_ms)
{
  handle->flags &= (uint8_t)~RENEWS;
  if (lease_ms == FAIRLOCK_RENEW) {
    handle->flags |= RENEWS;
    lease_ms = renewed_lease(handle);
  }
  handle->lease_ms = lease_ms;
}

int fairlock_engine_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms,
                            uint32_t now)
{
  handle->engine->now = now;
  if (!good_lease(lease_ms) || !good_wait(wait_ms)) return FAIRLOCK_INVALID;
  if (pending(handle)) return FAIRLOCK_IN_PROGRESS;
  expire(handle);
  if (handle->phase == LOST) return FAIRLOCK_LOST;
  if (handle->holds == UINT16_MAX) return FAIRLOCK_INVALID;
  if (handle->phase == HELD) return reenter(handle, lease_ms);
  handle->flags &= (uint8_t) ~(QUEUED | ENDLESS);
  if (ending(handle)) handle->flags |= OWED; /* what it was leaving may still be there */
  if (wait_ms == FAIRLOCK_FOREVER) handle->flags |= ENDLESS;
  set_lease(handle, lease_ms);
  handle->holds = 0;
  handle->limit = now + wait_ms;
  return begin(handle, wait_ms == 0 ? TRYING : QUEUEING);
}

int fairlock_engine_release(struct fairlock *handle, uint32_t now)
{
  handle->engine->now = now;
  if (pending(handle)) return FAIRLOCK_IN_PROGRESS;
  expire(handle);
  if (handle->phase == LOST) {
    if (--handle->holds == 0) leave(handle, FAIRLOCK_LOST);
    return FAIRLOCK_LOST;
  }
  if (handle->phase != HELD) return FAIRLOCK_NOT_HELD;
  if (handle->holds > 1) return begin(handle, RELEASE_ONE);
  handle->in_doubt &= (uint8_t)~KIND_RELEASE;
  /* a confirmation or a renewal may be under way, or have been carried out without an answer */
  uint32_t ended = all_ended(handle);
  if (reached(ended, handle->limit)) handle->limit = ended;
  return begin(handle, RELEASING);
}

int fairlock_engine_cancel(struct fairlock *handle, uint32_t now)
{
  handle->engine->now = now;
  if (!waiting(handle)) return FAIRLOCK_NOT_HELD;
  leave(handle, FAIRLOCK_CANCELLED);
  return FAIRLOCK_OK;
}

int fairlock_begin_query(struct fairlock *handle, enum phase phase)
{
  if (pending(handle) || handle->phase != FREE) return FAIRLOCK_IN_PROGRESS;
  return begin(handle, phase);
}

int fairlock_engine_force(struct fairlock *handle, uint32_t now)
{
  handle->engine->now = now;
  return fairlock_begin_query(handle, FORCING);
}

/*
 * A handle is taken out when nothing of it can be left on the server and the server sends it no
 * more messages. The leave also ends the subscription; without a connection there is none.
 */
int fairlock_engine_remove(struct fairlock *handle, uint32_t now)
{
  struct fairlock_engine *engine = handle->engine;
  engine->now = now;
  if (handle->phase == REMOVING) return FAIRLOCK_PENDING;
  if (pending(handle) || handle->phase == HELD) return FAIRLOCK_IN_PROGRESS;
  expire(handle);
  bool owes = ending(handle) || !nothing_there(handle);
  if (owes || (engine->stage == UP && handle->flags & (SUBSCRIBED | SUBSCRIBING))) {
    if (!ending(handle)) handle->limit = all_ended(handle);
    if (owes) handle->flags |= OWED;
    else handle->limit = now + 2 * engine->response_ms;
    handle->holds = 0;
    return begin(handle, REMOVING);
  }
  /* without its handle, nobody can write the rest of a request */
  if (engine->request.handle == handle) fairlock_engine_fail(engine, FAIRLOCK_UNREACHABLE);
  if (engine->addressee == handle) engine->addressee = NULL;
  fairlock_list_remove(handle, READY);
  fairlock_list_remove(handle, SENT);
  struct fairlock **link = &engine->handles;
  while (*link != handle)
    link = &(*link)->sibling;
  *link = handle->sibling;
  handle->engine = NULL;
  return FAIRLOCK_OK;
}

uint32_t fairlock_engine_remaining_ms(const struct fairlock *handle, uint32_t now)
{
  if (!holding(handle) || over(handle, now)) return 0;
  return handle->limit - now;
}

/* Requests */

/* True while the handle must not send what it wants, because of a leave in doubt. */
bool fairlock_held_back(struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  if (!waiting(handle) || !(handle->in_doubt & KIND_LEAVE) || doubt_over(engine, engine->now))
    return false;
  set_timer(handle, doubt_ends(engine));
  return true;
}

/* When the request that is being written is next due by the clock. */
static uint32_t next_by_clock(const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  if (handle->phase == QUEUEING) return engine->now + engine->waiter_ms / 5 * 2;
  if (holding(handle) && handle->flags & RENEWS) return engine->now + handle->lease_ms / 3;
  return handle->limit;
}

static void number_request(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  unsigned n = handle->unanswered++;
  handle->newest = ++engine->last_sent;
  engine->request.sequence = handle->newest;
  handle->sequence[n] = handle->newest;
  handle->sent_at[n] = engine->now;
  if (n == 0) fairlock_list_sent(handle);
  engine->counters.requests++;
}

/*
 * When a request written now expires, by the server's clock. Notes the latest expiry and the
 * longest life of all requests that may come to be in doubt.
 */
static int64_t expiry(struct fairlock_engine *engine)
{
  uint32_t age = engine->now - engine->sampled_at; /* of the newest known time */
  uint32_t life = engine->response_ms;
  int64_t expires = engine->server_now + age + life;
  if (expires > engine->last_expiry) engine->last_expiry = expires;
  life += margin(age);
  if (life > engine->request_life_ms) engine->request_life_ms = life;
  return expires;
}

/* The kind of request that the handle sends in its phase. */
uint8_t fairlock_kind(const struct fairlock *handle)
{
  return requests[handle->phase].kind;
}

/* Puts what the handle wants into engine->request. */
void fairlock_freeze_request(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  struct fairlock_request *request = &engine->request;
  uint8_t kind = fairlock_kind(handle);
  uint8_t subscription = handle->flags & (SUBSCRIBED | SUBSCRIBING);
  request->handle = handle;
  request->kind = kind;
  request->mode = handle->phase == QUEUEING
                      ? (int32_t)engine->waiter_ms
                      : -((int32_t)handle->holds + requests[handle->phase].change);
  request->expires = expiry(engine);
  request->token = kind & (KIND_FORCE | KIND_LEAVE) ? 0 : handle->token;
  request->lease_ms = kind & (KIND_ACQUIRE | KIND_KEEP) ? lease_asked(handle) : 0;
  request->subscribe = handle->phase == (subscription == SUBSCRIBED ? REMOVING : QUEUEING) &&
                       !(subscription & SUBSCRIBING);
  request->eval = (engine->eval & kind) != 0;
  /* sending the text once is enough: the server keeps the script, and requests keep their order */
  engine->eval &= (uint8_t)~kind;
  handle->in_flight = in_flight(handle) | kind;
  if (request->subscribe) {
    handle->flags |= SUBSCRIBING;
    handle->subscribe_sequence = ++engine->last_sent;
  }
  number_request(handle);
  set_timer(handle, next_by_clock(handle));
}

/* Replies */

/* The reply to a waiter's request, which was sent at sent_at. */
static void reply_waiting(struct fairlock *handle, bool granted, uint32_t sent_at)
{
  struct fairlock_engine *engine = handle->engine;
  int64_t value = engine->values[1];
  if (granted) {
    if (value <= 0 || reached(engine->now, lease_end(sent_at, handle->lease_ms))) {
      fairlock_queue_send(handle);
      return;
    }
    handle->token = (uint64_t)value;
    extend(handle, sent_at);
    hold(handle, &engine->counters.polled);
  } else if (handle->phase == TRYING) {
    leave(handle, FAIRLOCK_BUSY);
  } else {
    handle->flags |= QUEUED;
    if (handle->leave_result < 0) {
      leave(handle, handle->leave_result);
      return;
    }
    /* or below 0 */
    uint32_t next =
        (uint64_t)value < FAIRLOCK_DURATION_MAX_MS ? (uint32_t)value + 1 : FAIRLOCK_DURATION_MAX_MS;
    if (next < SOONEST_MS) next = SOONEST_MS;
    if (!(handle->flags & SUBSCRIBED) && next > RETRY_MS) next = RETRY_MS;
    if (reached(handle->timer, engine->now + next)) set_timer(handle, engine->now + next);
  }
}

static void reply_held(struct fairlock *handle, bool done, uint32_t sent_at)
{
  if (!done || (uint64_t)handle->engine->values[1] != handle->token) {
    lose(handle);
    return;
  }
  if (handle->phase == REENTERING) set_lease(handle, handle->reentry_lease_ms);
  handle->holds = (uint16_t)((int32_t)handle->holds + requests[handle->phase].change);
  if (handle->phase == HELD) handle->engine->counters.renewals++;
  extend(handle, sent_at);
  handle->flags &= (uint8_t)~QUEUED;
  finish(handle, FAIRLOCK_OK);
}

/*
 * True when no acquire can be carried out after the request that was just answered. For that, the
 * request must have been sent after all late ones had expired, and must not be a repeated release:
 * the earlier one may have ended the hold.
 */
static bool settled(const struct fairlock *handle, uint32_t sent_at)
{
  if (!(handle->in_doubt & KIND_ACQUIRE)) return true;
  if (!doubt_over(handle->engine, sent_at)) return false;
  return handle->phase != RELEASING || !(handle->in_doubt & KIND_RELEASE);
}

/* A release or a leave was carried out. An acquire that may still arrive has to be undone later. */
static void reply_ending(struct fairlock *handle, bool ended, uint32_t sent_at)
{
  const struct fairlock_engine *engine = handle->engine;
  int result = FAIRLOCK_OK;
  if (handle->phase == RELEASING && !ended) { /* or an earlier release has */
    result = handle->in_doubt & KIND_RELEASE ? FAIRLOCK_UNKNOWN : FAIRLOCK_LOST;
  }
  if (settled(handle, sent_at)) {
    /* its UNSUBSCRIBE was refused, or not sent yet */
    bool listens = handle->phase == REMOVING && handle->flags & SUBSCRIBED;
    if (listens) set_timer(handle, engine->now + RETRY_MS);
    else become_free(handle, result);
    return;
  }
  if (handle->phase != REMOVING) {
    finish(handle, result);
    set_phase(handle, LEAVING);
  }
  handle->holds = 0;
  uint32_t undo_at = doubt_over(engine, engine->now) ? engine->now : doubt_ends(engine);
  handle->limit = undo_at + engine->waiter_ms;
  set_timer(handle, undo_at);
}

static bool may_pass(int status)
{
  /* with READONLY, OOM and MISCONF between them */
  return status <= FAIRLOCK_UNAVAILABLE && status >= FAIRLOCK_UNSYNCED;
}

/*
 * The server refuses the request. A hold goes on, and so does an operation that may wait, if the
 * refusal may pass.
 */
static void reply_refused(struct fairlock *handle, int status)
{
  struct fairlock_engine *engine = handle->engine;
  bool passes = may_pass(status);
  if (handle->phase == TRYING || (handle->phase == QUEUEING && !passes)) {
    leave(handle, status);
  } else if (asking(handle) || (ending(handle) && !passes)) {
    become_free(handle, status);
  } else {
    engine->last_error = (int8_t)status;
    if (!passes || handle->phase == LEAVING) finish(handle, status);
    bool repeats = !holding(handle) || handle->flags & (RENEWS | QUEUED) || pending(handle);
    set_timer(handle, repeats ? engine->now + RETRY_MS : handle->limit);
  }
}

/* The server has done what was asked for; what it says stands in engine->values. */
static void reply_useful(struct fairlock *handle, uint32_t sent_at)
{
  bool done = handle->engine->values[0] == 1;
  handle->answered_at = handle->engine->now;
  handle->engine->last_error = FAIRLOCK_OK;
  handle->engine->failures = 0;
  if (waiting(handle)) reply_waiting(handle, done, sent_at);
  else if (holding(handle)) reply_held(handle, done, sent_at);
  else if (ending(handle)) reply_ending(handle, done, sent_at);
  else become_free(handle, handle->phase == FORCING && !done ? FAIRLOCK_NOT_HELD : FAIRLOCK_OK);
}

/*
 * A request of the handle's present phase, sent at sent_at, was answered. FAIRLOCK_PENDING: it was
 * not carried out, and has to be sent again.
 */
void fairlock_on_reply(struct fairlock *handle, int status, uint32_t sent_at)
{
  struct fairlock_engine *engine = handle->engine;
  if (handle->unanswered > 0) handle->in_flight = fairlock_kind(handle);
  /* the master is elsewhere */
  if (status == FAIRLOCK_READONLY) fairlock_engine_fail(engine, status);
  if (status == FAIRLOCK_PENDING) {
    if (came_late(engine)) handle->answered_at = engine->now;
    fairlock_queue_send(handle);
  } else if (status < 0) {
    reply_refused(handle, status);
  } else {
    reply_useful(handle, sent_at);
  }
}

/*
 * A SUBSCRIBE or UNSUBSCRIBE was refused. Unless the refusal may pass, a waiter that may not listen
 * does not wait, and a subscription that the server does not end lasts until the connection ends.
 */
void fairlock_on_subscribe_refused(struct fairlock *handle, int status)
{
  handle->engine->last_error = (int8_t)status;
  if (may_pass(status)) return;
  if (handle->phase == QUEUEING) handle->leave_result = (int8_t)status;
  handle->flags &= (uint8_t)~SUBSCRIBED;
}

/* Messages */

static void take_grant(struct fairlock *handle, uint64_t token, int64_t at, uint32_t claim_ms)
{
  struct fairlock_engine *engine = handle->engine;
  /* of the grant, against the newest time we know */
  uint64_t age = (uint64_t)(at - engine->server_now);
  /* our leave, which has crossed this grant, may have ended it */
  if (in_flight(handle) & KIND_LEAVE) return;
  if (age > FAIRLOCK_DURATION_MAX_MS / 2) return; /* or below 0 */
  if (token <= handle->token) return; /* the clock of a server that took over is behind */
  if (claim_ms > engine->waiter_ms) claim_ms = engine->waiter_ms;
  uint32_t interval = (uint32_t)age + claim_ms;
  uint32_t valid_until = engine->asked_at + interval - margin(interval);
  /* if it were later, the server's clock would be wrong */
  uint32_t latest = engine->now + claim_ms - margin(claim_ms);
  uint32_t confirmed = lease_end(engine->now, handle->lease_ms);
  if (reached(valid_until, latest)) valid_until = latest;
  if (reached(valid_until, confirmed)) valid_until = confirmed;
  if (reached(engine->now, valid_until)) return;
  handle->flags |= QUEUED;
  handle->token = token;
  handle->limit = valid_until;
  handle->answered_at = engine->now;
  hold(handle, &engine->counters.granted);
}

/*
 * A message came on the handle's channel. token 0: "ask now"; otherwise the lock was granted at the
 * server's time `at`, for claim_ms.
 */
void fairlock_on_push(struct fairlock *handle, uint64_t token, int64_t at, uint32_t claim_ms)
{
  if (waiting(handle)) {
    fairlock_queue_send(handle); /* asks, or confirms the grant */
    if (token != 0) take_grant(handle, token, at, claim_ms);
  } else if (handle->phase == FREE && token != 0) {
    handle->flags |= OWED;
    leave(handle, FAIRLOCK_OK);
  }
}

/* The connection and time */

/* The connection broke. What was under way may have been carried out, or may still be. */
void fairlock_on_broken(struct fairlock *handle)
{
  uint8_t kinds = in_flight(handle);
  handle->in_doubt |= kinds & (KIND_ACQUIRE | KIND_LEAVE | KIND_RELEASE);
  handle->in_flight = 0;
  set_phase(handle, (enum phase)handle->phase); /* no reply will come any more */
  handle->flags &= (uint8_t) ~(SUBSCRIBED | SUBSCRIBING);
  if (handle->phase == REMOVING && nothing_there(handle)) {
    become_free(handle, FAIRLOCK_OK);
    return;
  }
  if (handle->phase == LEAVING) {
    /* no answer came to the wait, nor to its end */
    bool silent = handle->leave_result == FAIRLOCK_TIMEOUT && !(handle->flags & QUEUED);
    if (silent) handle->leave_result = FAIRLOCK_UNREACHABLE;
    finish(handle, handle->leave_result);
  }
  if (waiting(handle) || (kinds != 0 && (active(handle) || asking(handle))))
    fairlock_queue_send(handle);
}

/* There will be no connection for now: what cannot wait for one fails. */
void fairlock_on_failed(struct fairlock *handle, int status)
{
  uint8_t sent = in_flight(handle) | handle->in_doubt;
  if (waiting(handle)) {
    /* the leave gets this much time before it has failed, too */
    handle->answered_at += handle->engine->response_ms;
    leave(handle, status);
  } else if (asking(handle) || (handle->phase == REMOVING && nothing_there(handle))) {
    become_free(handle, status);
  } else {
    finish(handle, handle->phase == RELEASING && sent & KIND_RELEASE ? FAIRLOCK_UNKNOWN : status);
    if (handle->phase == REMOVING) handle->phase = LEAVING;
  }
}

/*
 * True when the handle sends by the clock: a waiter and a holder even while answers are missing,
 * the others only when no answer is missing.
 */
static bool timed(const struct fairlock *handle)
{
  bool repeats = handle->phase == QUEUEING || holding(handle);
  return active(handle) && !ready(handle) &&
         handle->unanswered < (repeats ? FAIRLOCK_UNANSWERED_MAX : 1);
}

/* How long its operation goes on without a useful reply. FAIRLOCK_FOREVER: that does not end it. */
static uint32_t patience_ms(const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  uint32_t configured = engine->offline_ms;
  if (!pending(handle)) return FAIRLOCK_FOREVER;
  if (handle->phase == TRYING) configured = 2 * engine->connect_ms;
  if (configured == FAIRLOCK_FOREVER) return FAIRLOCK_FOREVER;
  configured += 4 * engine->round_trip_ms;
  return configured < FAIRLOCK_DURATION_MAX_MS ? configured : FAIRLOCK_DURATION_MAX_MS;
}

/* Waits between two heartbeats, and every one so far was answered: nothing is wrong. */
static bool at_ease(const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  bool held_up = (handle->in_doubt & KIND_LEAVE) != 0;
  return handle->phase == QUEUEING && !ready(handle) && handle->unanswered == 0 && !held_up &&
         engine->last_error == FAIRLOCK_OK;
}

/* Does what is due, and arms the engine for what will be. */
void fairlock_on_tick(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  expire(handle);
  if (at_ease(handle)) handle->answered_at = engine->now;
  uint32_t patience = patience_ms(handle);
  if (patience != FAIRLOCK_FOREVER) {
    uint32_t end = handle->answered_at + patience;
    if (due(fairlock_judged_at(engine), end))
      fairlock_on_failed(handle,
                         engine->last_error < 0 ? engine->last_error : FAIRLOCK_UNREACHABLE);
    else fairlock_arm(engine, end);
  }
  if (timed(handle)) {
    if (due(engine->now, handle->timer)) fairlock_queue_send(handle);
    else fairlock_arm(engine, handle->timer);
  }
  if (!ending(handle) && doubt_over(engine, engine->now)) {
    /* the acquire may have been carried out */
    if (waiting(handle) && handle->in_doubt & KIND_ACQUIRE) handle->flags |= OWED;
    handle->in_doubt = 0;
  }
  if (limited(handle)) fairlock_arm(engine, handle->limit);
}
