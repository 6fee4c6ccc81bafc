/*
 * The handles: what an operation, an answer, a message and the time do to each.
 *
 *     FREE     nothing is going on
 *     WAITING  an acquire is; until it is granted, the handle asks again and again, which is its heartbeat
 *     HELD     the caller may believe that it holds until `limit`
 *     ENDING   a release, or the leaving of the queue; it may go on after the caller was told the result
 *     LOST     the hold ended early; stays until the caller has released as often as it had acquired
 *     ASKING   a force-release or an inspection
 *
 * What has to be sent follows from the state alone (freeze_request), so after a broken connection it is enough to
 * want a request again.
 *
 * Ghosts. What was under way on a connection that broke may still reach the server, until the time after which the
 * request itself says that it is void. Most requests do no harm then: they name a token, or do nothing unless
 * held. Two do: an acquire that arrives after the release begins a hold that nobody knows of, and a leave
 * that arrives after the next acquire ends its hold. So a handle with an acquire for a ghost leaves once more
 * when that is void, and one with a leave for a ghost does not acquire before.
 *
 * Tokens. While it is not HELD, a handle keeps the token of a hold that it gave up unreleased: the server may still have
 * that hold, and is told by the next acquire to end it and to begin a new one.
 */
#include "internal.h"

static bool pending(const struct fairlock *handle)
{
  return handle->result == FAIRLOCK_PENDING;
}

static uint32_t void_at(const struct fairlock_engine *engine)
{
  return engine->since + engine->void_ms;
}

static void set_timer(struct fairlock *handle, uint32_t time)
{
  handle->timer = time;
  handle->engine->changed = true;
}

/* The operation, if there is one, is over. Why it was given up counts for more than what came of leaving the queue. */
static void finish(struct fairlock *handle, int result)
{
  if (!pending(handle)) return;
  handle->operation = NONE;
  handle->result = handle->verdict < 0 ? handle->verdict : (int8_t)result;
  handle->verdict = FAIRLOCK_OK;
}

static void become_free(struct fairlock *handle, int result)
{
  if (handle->flags & SUBSCRIBING) handle->engine->broken = true; /* its replies can no longer be told apart */
  unlist(handle);
  handle->state = FREE;
  handle->holds = 0;
  handle->flight = 0;
  handle->ghosts &= KIND_LEAVE; /* one that is late must not end the next wait */
  handle->flags &= handle->flags & CLOSING ? 0 : SUBSCRIBED;
  finish(handle, result);
}

static void lose(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  if (!(handle->flags & SUBSCRIBING)) {
    unlist(handle);
    handle->flight = 0;
  }
  handle->state = LOST;
  engine->stats.losses++;
  if (handle->operation == LESSEN) handle->holds--; /* this release counts */
  finish(handle, FAIRLOCK_LOST);
  if (engine->config->lost != NULL) engine->config->lost(handle, engine->config->lost_context);
}

/*
 * The caller no longer waits: leaves the queue, or gives back what it was granted unseen. It is told the result when that
 * is done, or at once when there is no connection.
 */
static void leave(struct fairlock *handle, int result)
{
  struct fairlock_engine *engine = handle->engine;
  if (!(handle->flags & CONTACTED)) {
    become_free(handle, result);
    return;
  }
  handle->state = ENDING;
  handle->operation = LEAVE;
  handle->verdict = (int8_t)result;
  handle->limit = engine->now + handle->lease_ms + FAIRLOCK_WINDOW_MS;
  if (engine->stage != UP) finish(handle, result);
  want(handle);
}

/* The hold with handle->token has begun, and may be believed in until handle->limit. way: counts how waiters come to it. */
static void hold(struct fairlock *handle, uint32_t *way)
{
  struct fairlock_stats *stats = &handle->engine->stats;
  stats->acquisitions++;
  if (handle->flags & QUEUED) {
    stats->waits++;
    ++*way;
  }
  handle->state = HELD;
  handle->holds = 1;
  handle->flags &= (uint8_t)~QUEUED;
  handle->verdict = FAIRLOCK_OK;
  finish(handle, FAIRLOCK_OK);
}

/* When the lease that the newest request asks for ends. */
static uint32_t lease_end(const struct fairlock *handle)
{
  return handle->sent_at + handle->lease_ms - margin(handle->lease_ms);
}

/* The answer to the newest request has confirmed its lease. One that is renewed may follow a longer one, which still holds. */
static void extend(struct fairlock *handle)
{
  uint32_t limit = lease_end(handle);
  bool shorter = handle->state == HELD && handle->flags & RENEWS && !reached(limit, handle->limit);
  if (!shorter) handle->limit = limit;
  set_timer(handle, handle->flags & RENEWS ? handle->sent_at + handle->lease_ms / 3 : handle->limit);
}

/* What the wait comes to when its time is over. */
static int timed_out(const struct fairlock_engine *engine)
{
  if (engine->trouble < 0) return engine->trouble;
  return engine->stage == UP ? FAIRLOCK_TIMEOUT : FAIRLOCK_UNREACHABLE;
}

/* Waits, holds, or is ending either. */
static bool active(const struct fairlock *handle)
{
  return handle->state == WAITING || handle->state == HELD || handle->state == ENDING;
}

static bool limited(const struct fairlock *handle)
{
  return active(handle) && !(handle->state == WAITING && handle->flags & ENDLESS);
}

/* Its limit is reached. That of a wait or a hold which nobody looked after for weeks seems to lie ahead: our clock goes round. */
static bool over(const struct fairlock *handle, uint32_t now)
{
  return reached(now, handle->limit) || (handle->state != ENDING && now - handle->answered_at > FAIRLOCK_LONGEST_MS);
}

/* A wait, a hold, or the ending of either that has lasted for as long as it may is over. */
static void expire(struct fairlock *handle)
{
  if (!limited(handle) || !over(handle, handle->engine->now)) return;
  if (handle->state == WAITING) leave(handle, timed_out(handle->engine));
  else if (handle->state == ENDING) become_free(handle, FAIRLOCK_UNKNOWN);
  else lose(handle);
}

/* Operations */

static int begin(struct fairlock *handle, enum operation operation)
{
  handle->operation = (uint8_t)operation;
  handle->result = FAIRLOCK_PENDING;
  handle->answered_at = handle->engine->now;
  handle->flags &= (uint8_t)~CONTACTED;
  want(handle);
  return FAIRLOCK_PENDING;
}

static void set_lease(struct fairlock *handle, uint32_t lease_ms)
{
  uint32_t left = fairlock_engine_held(handle, handle->engine->now);
  if (left > 0 && handle->flags & RENEWS) return;
  if (lease_ms == FAIRLOCK_RENEW) {
    handle->flags |= RENEWS;
    handle->lease_ms = config_or(handle->engine->config->lease_ms, LEASE_MS);
  } else {
    handle->flags &= (uint8_t)~RENEWS;
    handle->lease_ms = lease_ms > left ? lease_ms : left;
  }
}

int fairlock_engine_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms, uint32_t now)
{
  handle->engine->now = now;
  if (!good_lease(lease_ms) || !good_wait(wait_ms)) return FAIRLOCK_INVALID;
  if (pending(handle)) return FAIRLOCK_IN_PROGRESS;
  expire(handle);
  if (handle->state == LOST) return FAIRLOCK_LOST;
  if (handle->holds == UINT16_MAX) return FAIRLOCK_INVALID;
  set_lease(handle, lease_ms);
  if (handle->state == HELD) return begin(handle, REENTER);
  handle->holds = 0;
  handle->limit = now + (wait_ms == 0 ? handle->engine->connect_ms : wait_ms);
  handle->flags &= (uint8_t) ~(QUEUED | ENDLESS);
  if (wait_ms == FAIRLOCK_FOREVER) handle->flags |= ENDLESS;
  begin(handle, wait_ms == 0 ? TRY : ACQUIRE);
  if (handle->state == ENDING) handle->flags |= CONTACTED; /* it still leaves, in the background */
  handle->state = WAITING;
  return FAIRLOCK_PENDING;
}

int fairlock_engine_release(struct fairlock *handle, uint32_t now)
{
  handle->engine->now = now;
  if (pending(handle)) return FAIRLOCK_IN_PROGRESS;
  expire(handle);
  if (handle->state == LOST) {
    if (--handle->holds == 0) become_free(handle, FAIRLOCK_LOST);
    return FAIRLOCK_LOST;
  }
  if (handle->state != HELD) return FAIRLOCK_NOT_HELD;
  if (handle->holds > 1) return begin(handle, LESSEN);
  handle->state = ENDING;
  handle->ghosts &= (uint8_t)~KIND_RELEASE;
  handle->limit += 2 * margin(handle->lease_ms);
  return begin(handle, RELEASE);
}

int fairlock_engine_cancel(struct fairlock *handle, uint32_t now)
{
  handle->engine->now = now;
  if (handle->state != WAITING) return FAIRLOCK_NOT_HELD;
  leave(handle, FAIRLOCK_CANCELLED);
  return FAIRLOCK_OK;
}

int ask(struct fairlock *handle, enum operation operation)
{
  if (pending(handle) || handle->state != FREE) return FAIRLOCK_IN_PROGRESS;
  handle->state = ASKING;
  return begin(handle, operation);
}

int fairlock_engine_force(struct fairlock *handle, uint32_t now)
{
  handle->engine->now = now;
  return ask(handle, FORCE);
}

/*
 * The subscription is ended together with a leave. Without a connection there is none, and without a request that
 * may still be in the send buffer there is nothing to wait for.
 */
int fairlock_engine_remove(struct fairlock *handle, uint32_t now)
{
  handle->engine->now = now;
  struct fairlock_engine *engine = handle->engine;
  if (pending(handle) || handle->state == HELD) return FAIRLOCK_IN_PROGRESS;
  bool tried = (handle->flags & CLOSING) != 0; /* and it has failed */
  if (engine->stage == UP && !tried && (handle->flags & SUBSCRIBED || handle->state == ENDING)) {
    handle->state = ENDING;
    handle->holds = 0;
    handle->flags |= CLOSING;
    handle->limit = now + 2 * engine->response_ms;
    return begin(handle, REMOVE);
  }
  /* nobody can write the other half of a request, or knows how many replies one with a SUBSCRIBE gets */
  if (engine->request.handle == handle || handle->list == SENT) engine->broken = true;
  if (engine->addressee == handle) engine->addressee = NULL;
  unlist(handle);
  struct fairlock **link = &engine->handles;
  while (*link != handle)
    link = &(*link)->sibling;
  *link = handle->sibling;
  handle->engine = NULL;
  return FAIRLOCK_OK;
}

uint32_t fairlock_engine_held(const struct fairlock *handle, uint32_t now)
{
  if (handle->state != HELD || over(handle, now)) return 0;
  return handle->limit - now;
}

/* Requests */

/* True while the handle must not send what it wants, because of a ghost. */
bool held_back(struct fairlock *handle)
{
  if (handle->state != WAITING || !(handle->ghosts & KIND_LEAVE)) return false;
  if (ghosts_gone(handle->engine, handle->engine->now)) return false;
  set_timer(handle, void_at(handle->engine));
  return true;
}

static enum kind kind_wanted(const struct fairlock *handle)
{
  switch (handle->state) {
  case WAITING:
    return KIND_ACQUIRE;
  case HELD:
    return handle->operation == LESSEN ? KIND_RELEASE : KIND_KEEP;
  case ENDING:
    return handle->holds > 0 ? KIND_RELEASE : KIND_LEAVE;
  default:
    return handle->operation == FORCE ? KIND_FORCE : KIND_INSPECT;
  }
}

/* The hold count to be reached. -1: nobody's hold is to be left. */
static int target_wanted(const struct fairlock *handle)
{
  if (handle->state == WAITING) return 1;
  if (handle->state == HELD) return handle->holds + (handle->operation == REENTER) - (handle->operation == LESSEN);
  return handle->operation == FORCE ? -1 : 0;
}

/* Puts what the handle wants into engine->request. */
void freeze_request(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  struct fairlock_request *request = &engine->request;
  enum kind kind = kind_wanted(handle);
  bool queueing = kind == KIND_ACQUIRE && handle->operation == ACQUIRE;
  request->handle = handle;
  request->mode = kind == KIND_KEEP ? -1 : queueing ? 1 : 0;
  request->expires = engine->server_now + (uint32_t)(engine->now - engine->sampled_at + engine->response_ms);
  if (request->expires > engine->void_after) engine->void_after = request->expires;
  request->target = target_wanted(handle);
  request->token = kind & (KIND_FORCE | KIND_LEAVE) ? 0 : handle->token;
  request->lease_ms = handle->lease_ms;
  request->subscribe = handle->flags & SUBSCRIBED ? (handle->flags & CLOSING) != 0 : queueing;
  request->eval = (engine->eval & kind) != 0;
  engine->eval &= (uint8_t)~kind; /* once is enough: the server keeps it, and requests keep their order */
  handle->kind = (uint8_t)kind;
  handle->flight |= (uint8_t)kind;
  handle->sent_at = engine->now;
  handle->flags &= (uint8_t)~AGAIN;
  handle->flags |= CONTACTED;
  if (request->subscribe) handle->flags |= SUBSCRIBING;
}

/* Answers */

static void answer_waiting(struct fairlock *handle, bool granted)
{
  int64_t value = handle->engine->values[1];
  if (granted) {
    if (value <= 0 || reached(handle->engine->now, lease_end(handle))) {
      want(handle);
      return;
    }
    handle->token = (uint64_t)value;
    extend(handle);
    hold(handle, &handle->engine->stats.polled);
  } else if (handle->verdict < 0) {
    leave(handle, handle->verdict);
  } else if (handle->operation == TRY) {
    if (handle->ghosts & KIND_ACQUIRE) leave(handle, FAIRLOCK_BUSY);
    else become_free(handle, FAIRLOCK_BUSY);
  } else {
    uint32_t sleep = value >= 0 && value < HEARTBEAT_MS ? (uint32_t)value + 1 : HEARTBEAT_MS;
    if (sleep < SOONEST_MS) sleep = SOONEST_MS;
    handle->flags |= QUEUED;
    set_timer(handle, handle->engine->now + sleep);
  }
}

static void answer_held(struct fairlock *handle, bool done)
{
  bool kept = done && (handle->kind == KIND_RELEASE || (uint64_t)handle->engine->values[1] == handle->token);
  if (!kept) {
    lose(handle);
    return;
  }
  extend(handle);
  if (handle->operation == REENTER) handle->holds++;
  else if (handle->operation == LESSEN) handle->holds--;
  else handle->engine->stats.renewals++;
  finish(handle, FAIRLOCK_OK);
}

/*
 * True when no acquire can have been carried out after the request that was just answered. It has to have been sent when
 * late ones were void, and must not be a release that repeats one sent before: that one may have ended the hold.
 */
static bool settled(const struct fairlock *handle)
{
  if (!(handle->ghosts & KIND_ACQUIRE)) return true;
  if (!ghosts_gone(handle->engine, handle->sent_at)) return false;
  return handle->kind == KIND_LEAVE || !(handle->ghosts & KIND_RELEASE);
}

/* A release or a leave was carried out. An acquire that may still be under way has to be undone later. */
static void answer_ending(struct fairlock *handle, bool ended)
{
  int result = FAIRLOCK_OK;
  if (handle->operation == RELEASE && !ended) {
    result = handle->ghosts & KIND_RELEASE ? FAIRLOCK_UNKNOWN : FAIRLOCK_LOST; /* or an earlier one has ended it */
  }
  handle->token = 0;
  if (settled(handle)) {
    become_free(handle, result);
    return;
  }
  if (!(handle->flags & CLOSING)) finish(handle, result);
  handle->holds = 0;
  const struct fairlock_engine *engine = handle->engine;
  uint32_t undo_at = ghosts_gone(engine, engine->now) ? engine->now : void_at(engine);
  handle->limit = undo_at + FAIRLOCK_WINDOW_MS;
  set_timer(handle, undo_at);
}

static bool may_pass(int status)
{
  return status == FAIRLOCK_LOADING || status == FAIRLOCK_READONLY || status == FAIRLOCK_OOM ||
         status == FAIRLOCK_MISCONF;
}

/* The server refuses. A hold goes on, and an operation that may wait does so when better times may come. */
static void answer_refused(struct fairlock *handle, int status)
{
  bool at_once = handle->state == ASKING || handle->operation == TRY;
  bool goes_on = may_pass(status) || handle->state == HELD;
  if (at_once || !goes_on) {
    become_free(handle, status);
    return;
  }
  handle->engine->trouble = (int8_t)status;
  if (!may_pass(status) || handle->operation == LEAVE) finish(handle, status);
  set_timer(handle, handle->engine->now + RETRY_MS);
}

/* The server has done what was asked for; what it says stands in engine->values. */
static void answer_useful(struct fairlock *handle)
{
  bool done = handle->engine->values[0] == 1;
  handle->answered_at = handle->engine->now;
  handle->engine->trouble = FAIRLOCK_OK;
  handle->engine->failures = 0;
  switch (handle->state) {
  case WAITING:
    answer_waiting(handle, done);
    break;
  case HELD:
    answer_held(handle, done);
    break;
  case ENDING:
    answer_ending(handle, done);
    break;
  default:
    become_free(handle, handle->kind == KIND_FORCE && !done ? FAIRLOCK_NOT_HELD : FAIRLOCK_OK);
    break;
  }
}

/* The newest request of the handle was answered. FAIRLOCK_PENDING: it was not carried out, and has to be sent again. */
void handle_answer(struct fairlock *handle, int status)
{
  unlist(handle);
  handle->flight = 0;
  handle->flags &= (uint8_t)~SUBSCRIBING;
  /* after a fail-over the master is elsewhere; and was it the UNSUBSCRIBE or the script? Begin anew */
  if (status == FAIRLOCK_READONLY || (status < 0 && handle->flags & CLOSING)) handle->engine->broken = true;
  if (handle->state == FREE || handle->state == LOST) return;
  if (handle->flags & AGAIN || status == FAIRLOCK_PENDING) want(handle);
  else if (status < 0) answer_refused(handle, status);
  else answer_useful(handle);
}

/* Messages */

static void take_grant(struct fairlock *handle, uint64_t token, int64_t at)
{
  struct fairlock_engine *engine = handle->engine;
  uint64_t age = (uint64_t)(at - engine->server_now); /* of the grant, against the newest time we know */
  if (handle->flight & KIND_LEAVE) return;            /* perhaps ended by our leave, which it has crossed */
  if (age > FAIRLOCK_LONGEST_MS) return;              /* or below 0 */
  uint32_t interval = (uint32_t)age + FAIRLOCK_WINDOW_MS;
  uint32_t valid_until = engine->asked_at + interval - margin(interval);
  uint32_t latest = engine->now + FAIRLOCK_WINDOW_MS - margin(FAIRLOCK_WINDOW_MS);
  if (reached(valid_until, latest)) valid_until = latest; /* the server's clock cannot be right */
  if (reached(engine->now, valid_until)) return;
  handle->flags |= QUEUED;
  handle->token = token;
  handle->limit = valid_until;
  handle->answered_at = engine->now;
  hold(handle, &engine->stats.granted);
}

/* Somebody spoke on the handle's channel. token 0: "ask now"; otherwise the lock was granted at the server's time `at`. */
void handle_push(struct fairlock *handle, uint64_t token, int64_t at)
{
  if (handle->state == WAITING) {
    want(handle); /* asks, or confirms the grant */
    if (token != 0) take_grant(handle, token, at);
  } else if (handle->state == FREE && token != 0) {
    handle->state = ENDING;
    handle->limit = handle->engine->now + FAIRLOCK_WINDOW_MS;
    want(handle);
  }
}

/* The connection and time */

/* The connection broke. What was under way may have been carried out, or may still be. */
void handle_broken(struct fairlock *handle)
{
  handle->ghosts |= handle->flight & (KIND_ACQUIRE | KIND_LEAVE | KIND_RELEASE);
  handle->flags &= (uint8_t) ~(SUBSCRIBED | SUBSCRIBING | AGAIN);
  if (handle->flags & CLOSING) {
    become_free(handle, FAIRLOCK_OK);
    return;
  }
  if (handle->state == ENDING && handle->operation == LEAVE) finish(handle, handle->verdict);
  if (handle->state == WAITING && handle->list == UNLISTED) set_timer(handle, handle->engine->now); /* subscribe anew */
  if (handle->state == LOST) unlist(handle);
  else if (handle->flight != 0) want(handle);
  handle->flight = 0;
}

/* There will be no connection for now: what cannot wait for one fails. */
void handle_failed(struct fairlock *handle, int status)
{
  if (handle->state == WAITING) leave(handle, status);
  else if (handle->state == ASKING) become_free(handle, status);
  else finish(handle, handle->state == ENDING && handle->flags & CONTACTED ? FAIRLOCK_UNKNOWN : status);
}

static bool timed(const struct fairlock *handle)
{
  return active(handle) && handle->list == UNLISTED && handle->engine->request.handle != handle;
}

/* Has an operation that is given up after offline_ms without a useful answer. */
static bool impatient(const struct fairlock *handle)
{
  return pending(handle) && handle->engine->offline_ms != FAIRLOCK_FOREVER;
}

/* Waits between two heartbeats, the last of which was answered: nothing is missing. */
static bool at_ease(const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  bool held_up = (handle->ghosts & KIND_LEAVE) != 0;
  return handle->state == WAITING && timed(handle) && !held_up && engine->stage == UP && engine->trouble == FAIRLOCK_OK;
}

/* Does what is due, and arms the engine for what will be. */
void handle_tick(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  expire(handle);
  if (at_ease(handle)) handle->answered_at = engine->now;
  uint32_t patience = handle->answered_at + engine->offline_ms;
  if (impatient(handle) && due(engine->now, patience)) {
    handle_failed(handle, engine->trouble < 0 ? engine->trouble : FAIRLOCK_UNREACHABLE);
  }
  if (timed(handle) && due(engine->now, handle->timer)) want(handle);
  if (handle->state != ENDING && ghosts_gone(engine, engine->now)) handle->ghosts = 0;
  if (limited(handle)) arm(engine, handle->limit);
  if (timed(handle)) arm(engine, handle->timer);
  if (impatient(handle)) arm(engine, patience);
}
