/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that were written and await their answers.
 *
 * Each request gets a sequence number when it begins to be written, and the server answers in that
 * order. A SUBSCRIBE before it and a WAIT after it have numbers of their own. Handles that await
 * answers are in a list, sorted by the oldest request of each. If a handle has forgotten a request,
 * the answer to it finds no entry in the list, and is dropped.
 *
 * No other file writes these numbers and times.
 */
#include "internal.h"

#if PORT_ONE_TASK

/* There are few handles, and no list of them: whoever wants to know which comes next looks at each. */
static void enlist(const struct fairlock *handle)
{
  (void)handle;
}

static void delist(const struct fairlock *handle)
{
  (void)handle;
}

/* The handle whose request is answered next; NULL if it has forgotten that request. */
struct fairlock *fairlock_pipeline_next_answered(const struct fairlock_engine *engine)
{
  uint16_t expected = (uint16_t)(engine->last_received + 1);
  struct fairlock *handle = engine->first;
  while (handle != NULL && (handle->unanswered == 0 || handle->sequence[0] != expected))
    handle = handle->place.next;
  return handle;
}

/*
 * The handle with the oldest unanswered request that was written completely and not forgotten, or
 * NULL.
 */
const struct fairlock *fairlock_pipeline_oldest(const struct fairlock_engine *engine)
{
  const struct fairlock *oldest = NULL;
  const struct fairlock *handle = engine->first;
  for (; handle != NULL; handle = handle->place.next) {
    bool writing = engine->writing && handle == engine->request.handle;
    if (handle->unanswered <= writing) continue;
    if (oldest == NULL || comes_after(oldest->sequence[0], handle->sequence[0])) oldest = handle;
  }
  return oldest;
}

#else

/* Adds a handle to the list, or moves it to its place when its oldest request has changed. */
static void enlist(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  struct fairlock **link = &engine->oldest;
  if (engine->youngest != NULL && comes_after(handle->sequence[0], engine->youngest->sequence[0]))
    link = &engine->youngest->place.next_answered;
  while (*link != NULL && comes_after(handle->sequence[0], (*link)->sequence[0]))
    link = &(*link)->place.next_answered;
  handle->place.next_answered = *link;
  if (*link == NULL) engine->youngest = handle;
  *link = handle;
}

/* Removes a handle from the list, if it is in it. */
static void delist(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  struct fairlock *before = NULL;
  if (handle->unanswered == 0) return;
  for (struct fairlock *other = engine->oldest; other != handle; other = other->place.next_answered)
    before = other;
  if (before != NULL) before->place.next_answered = handle->place.next_answered;
  else engine->oldest = handle->place.next_answered;
  if (engine->youngest == handle) engine->youngest = before;
}

void fairlock_pipeline_forget(struct fairlock *handle)
{
  delist(handle);
  handle->unanswered = 0;
}

/* The handle whose request is answered next; NULL if it has forgotten that request. */
struct fairlock *fairlock_pipeline_next_answered(const struct fairlock_engine *engine)
{
  struct fairlock *handle = engine->oldest;
  bool its = handle != NULL && handle->sequence[0] == (uint16_t)(engine->last_received + 1);
  return its ? handle : NULL;
}

/*
 * The handle with the oldest unanswered request that was written completely and not forgotten, or
 * NULL.
 */
const struct fairlock *fairlock_pipeline_oldest(const struct fairlock_engine *engine)
{
  const struct fairlock *oldest = engine->oldest;
  bool writing = oldest != NULL && engine->writing && oldest == engine->request.handle;
  return writing && oldest->unanswered == 1 ? NULL : oldest;
}

#endif

/*
 * Returns when a request that is written now expires, by the server's clock. Notes the latest
 * expiry and the longest life of all requests that may become in doubt.
 */
static int64_t expiry(struct fairlock_engine *engine)
{
  uint32_t age = engine->now - engine->sampled_at; /* how old the newest known time is */
  uint32_t life = engine->response_ms;
  engine->requested_at = engine->now;
  int64_t expires = engine->server_now + (age + life);
  if (engine->request_life_ms == 0 || !reached(engine->last_expiry, (uint32_t)expires))
    engine->last_expiry = (uint32_t)expires;
  life += margin(age);
  if (life > engine->request_life_ms) engine->request_life_ms = life;
  return expires;
}

/* Gives the request in engine->request its number. From now on it is being written. */
void fairlock_pipeline_send(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  struct fairlock_request *request = &engine->request;
  unsigned n = handle->unanswered;
  request->expires = expiry(engine);
  request->older_kinds = fairlock_pipeline_in_flight(handle);
  handle->kinds_sent = request->older_kinds | request->kind;
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

/*
 * Takes back the newest number, because its request is not written after all. It has to be the only
 * unanswered request of the handle's phase, with nothing put before it. Older ones, of earlier phases,
 * may still be on their way.
 */
void fairlock_pipeline_withdraw(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  const struct fairlock_request *request = &engine->request;
  fairlock_pipeline_forget(handle);
  handle->kinds_sent = request->older_kinds;
  if (request->subscribe) handle->flags &= (uint8_t)~SUBSCRIBING;
  engine->eval |= request->eval;
  engine->last_sent = (uint16_t)(engine->last_sent - 1 - request->subscribe - request->wait);
  handle->newest = engine->last_sent;
  engine->counters.requests--;
}

/*
 * Makes room for the numbers of `count` other commands, which are written before the newest
 * request. Returns the number of the last of them.
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

/* Makes room for the number of a SUBSCRIBE, which is written before the newest request. */
void fairlock_pipeline_subscribe(struct fairlock *handle)
{
  handle->subscribe_sequence = fairlock_pipeline_put_before(handle, 1);
  handle->engine->request.subscribe = true;
  handle->flags |= SUBSCRIBING;
}

/* The kinds of the handle's requests on this connection that are unanswered. */
uint8_t fairlock_pipeline_in_flight(const struct fairlock *handle)
{
  return comes_after(handle->newest, handle->engine->last_received) ? handle->kinds_sent : 0;
}

/* Counts one more answer. When all requests are answered, none can come to be in doubt. */
void fairlock_pipeline_count(struct fairlock_engine *engine)
{
  engine->last_received++;
  if (fairlock_pipeline_busy(engine) || !doubt_over(engine, engine->now)) return;
  engine->request_life_ms = 0;
}

/* Removes the handle's oldest request, which was answered. Returns when it was sent. */
uint32_t fairlock_pipeline_answered(struct fairlock *handle)
{
  uint32_t sent_at = handle->sent_at[0];
  delist(handle);
  handle->unanswered--;
  /* gcc would turn a loop into calls of memmove(), which a small program does not need otherwise */
  _Static_assert(FAIRLOCK_UNANSWERED_MAX == 3, "these are all");
  handle->sequence[0] = handle->sequence[1];
  handle->sequence[1] = handle->sequence[2];
  handle->sent_at[0] = handle->sent_at[1];
  handle->sent_at[1] = handle->sent_at[2];
  if (handle->unanswered > 0) enlist(handle);
  return sent_at;
}

/* The script was answered. The request now awaits the answer to the WAIT after it. */
void fairlock_pipeline_expect_wait(struct fairlock *handle)
{
  handle->newest = ++handle->sequence[0];
  fairlock_pipeline_count(handle->engine);
}

/* True if the SUBSCRIBE or UNSUBSCRIBE of the handle is answered next. */
bool fairlock_pipeline_subscription_next(const struct fairlock *handle)
{
  uint16_t expected = (uint16_t)(handle->engine->last_received + 1);
  return handle->flags & SUBSCRIBING && handle->subscribe_sequence == expected;
}

/*
 * The handle whose SUBSCRIBE or UNSUBSCRIBE is answered next, or NULL. It has the oldest request,
 * because its script is answered after that, unless it has forgotten that script.
 */
struct fairlock *fairlock_pipeline_next_subscribed(const struct fairlock_engine *engine)
{
#if !PORT_ONE_TASK
  if (engine->oldest != NULL && fairlock_pipeline_subscription_next(engine->oldest))
    return engine->oldest;
#endif
  struct fairlock *handle = engine->first;
  while (handle != NULL && !fairlock_pipeline_subscription_next(handle))
    handle = fairlock_schedule_next(handle, true);
  return handle;
}
