/*
 * What is under way: requests that were written and await their answers.
 *
 * Each request gets a sequence number when it begins to be written, and the server answers in that
 * order; a SUBSCRIBE in front of it and a WAIT behind it have numbers of their own. Handles that
 * await answers stand in a list, in the order of the oldest request of each. An answer that its
 * handle no longer cares about finds no entry there and is dropped.
 *
 * Nobody else writes these numbers and times.
 */
#include "internal.h"

/* Puts a handle whose oldest request has changed in its place. */
static void enlist(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  struct fairlock **link = &engine->oldest;
  if (engine->oldest != NULL && comes_after(handle->sequence[0], engine->youngest->sequence[0]))
    link = &engine->youngest->next;
  while (*link != NULL && comes_after(handle->sequence[0], (*link)->sequence[0]))
    link = &(*link)->next;
  handle->next = *link;
  if (*link == NULL) engine->youngest = handle;
  *link = handle;
}

/* Takes a handle out, if it is there. */
static void delist(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  struct fairlock *before = NULL;
  if (handle->unanswered == 0) return;
  for (struct fairlock *other = engine->oldest; other != handle; other = other->next)
    before = other;
  if (before != NULL) before->next = handle->next;
  else engine->oldest = handle->next;
  if (engine->youngest == handle) engine->youngest = before;
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

/* Numbers the request that engine->request describes, which is written from now on. */
void fairlock_pipeline_send(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  struct fairlock_request *request = &engine->request;
  unsigned n = handle->unanswered;
  request->expires = expiry(engine);
  handle->kinds_sent = fairlock_pipeline_in_flight(handle) | request->kind;
  if (request->subscribe) handle->subscribe_sequence = ++engine->last_sent;
  handle->newest = ++engine->last_sent;
  handle->sequence[n] = handle->newest;
  handle->sent_at[n] = engine->now;
  if (request->wait) engine->last_sent++;
  request->sequence = engine->last_sent;
  if (n == 0) enlist(handle);
  handle->unanswered++;
  engine->counters.requests++;
}

/* The request that was numbered last is not written: as if it had never been begun. */
void fairlock_pipeline_withdraw(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  const struct fairlock_request *request = &engine->request;
  fairlock_pipeline_forget(handle);
  handle->kinds_sent &= (uint8_t)~request->kind;
  if (request->subscribe) handle->flags &= (uint8_t)~SUBSCRIBING;
  engine->eval |= request->eval;
  engine->last_sent = (uint16_t)(engine->last_sent - 1 - request->subscribe - request->wait);
  handle->newest = engine->last_sent;
  engine->counters.requests--;
}

/*
 * So many other commands are written in front of the request that was numbered last. Returns the
 * number of the last of them.
 */
uint16_t fairlock_pipeline_put_before(struct fairlock *handle, unsigned count)
{
  struct fairlock_engine *engine = handle->engine;
  struct fairlock_request *request = &engine->request;
  request->sequence = (uint16_t)(request->sequence + count);
  engine->last_sent = request->sequence;
  if (request->subscribe)
    handle->subscribe_sequence = (uint16_t)(handle->subscribe_sequence + count);
  handle->newest = (uint16_t)(handle->newest + count);
  handle->sequence[handle->unanswered - 1] = handle->newest;
  return (uint16_t)(handle->newest - request->subscribe - 1);
}

/* A SUBSCRIBE is written in front of the request that was numbered last, which has none. */
void fairlock_pipeline_subscribe(struct fairlock *handle)
{
  handle->subscribe_sequence = fairlock_pipeline_put_before(handle, 1);
  handle->engine->request.subscribe = true;
  handle->flags |= SUBSCRIBING;
}

/* The answers to what the handle has sent so far do not count. */
void fairlock_pipeline_forget(struct fairlock *handle)
{
  delist(handle);
  handle->unanswered = 0;
}

/* Kinds of requests of this connection whose answers have not come. */
uint8_t fairlock_pipeline_in_flight(const struct fairlock *handle)
{
  return comes_after(handle->newest, handle->engine->last_received) ? handle->kinds_sent : 0;
}

/* One more answer has come. When nothing is left that may be under way, nothing is in doubt. */
void fairlock_pipeline_count(struct fairlock_engine *engine)
{
  engine->last_received++;
  if (fairlock_pipeline_busy(engine) || !doubt_over(engine, engine->now)) return;
  engine->last_expiry = 0;
  engine->request_life_ms = 0;
}

/* The handle's oldest request was answered. Returns when it was sent. */
uint32_t fairlock_pipeline_answered(struct fairlock *handle)
{
  uint32_t sent_at = handle->sent_at[0];
  delist(handle);
  handle->unanswered--;
  /* a loop would become two calls of memmove(), which nothing else in a small program needs */
  _Static_assert(FAIRLOCK_UNANSWERED_MAX == 3, "these are all");
  handle->sequence[0] = handle->sequence[1];
  handle->sequence[1] = handle->sequence[2];
  handle->sent_at[0] = handle->sent_at[1];
  handle->sent_at[1] = handle->sent_at[2];
  if (handle->unanswered > 0) {
    handle->kinds_sent = fairlock_handle_kind(handle); /* older ones have been answered, too */
    enlist(handle);
  }
  return sent_at;
}

/* The script was answered, and does not count before the WAIT behind it is answered, too. */
void fairlock_pipeline_expect_wait(struct fairlock *handle)
{
  handle->newest = ++handle->sequence[0];
  fairlock_pipeline_count(handle->engine);
}

/*
 * The handle whose request is answered next, or NULL when no handle cares about that answer any
 * more.
 */
struct fairlock *fairlock_pipeline_next_answered(const struct fairlock_engine *engine)
{
  struct fairlock *handle = engine->oldest;
  bool its = handle != NULL && handle->sequence[0] == (uint16_t)(engine->last_received + 1);
  return its ? handle : NULL;
}

/* The SUBSCRIBE or UNSUBSCRIBE of the handle is answered next. */
bool fairlock_pipeline_subscription_next(const struct fairlock *handle)
{
  uint16_t expected = (uint16_t)(handle->engine->last_received + 1);
  return handle->flags & SUBSCRIBING && handle->subscribe_sequence == expected;
}

/*
 * The handle whose SUBSCRIBE or UNSUBSCRIBE is answered next, or NULL. It is the first in the list,
 * whose script follows; unless it no longer cares about that script's answer.
 */
struct fairlock *fairlock_pipeline_next_subscribed(const struct fairlock_engine *engine)
{
  struct fairlock *handle = engine->oldest;
  if (handle != NULL && fairlock_pipeline_subscription_next(handle)) return handle;
  handle = engine->first;
  while (handle != NULL && !fairlock_pipeline_subscription_next(handle))
    handle = fairlock_schedule_next(handle, true);
  return handle;
}
