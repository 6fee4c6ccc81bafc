/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handles: what an operation, a reply, a message and the time do to each.
 *
 * The phase of a handle alone decides what it sends (`requests`). So after a broken connection the
 * handle simply sends again. Heartbeats of a waiter and renewals of a holder go out by the clock. A
 * reply counts as long as the handle is in the phase in which it wrote the request.
 *
 * In doubt. If the connection breaks, the server may still carry out requests that were sent on it,
 * until the expiry time that each has in it. Most of them do no harm then, because they name a
 * token, or do nothing unless the handle holds. Two kinds would do harm. An acquire that arrives
 * after the release begins a hold that nobody knows of: so a handle with an acquire in doubt leaves
 * once more when that acquire has expired. A leave that arrives after the next acquire ends the new
 * hold: so a handle with a leave in doubt sends no acquire until that leave has expired.
 *
 * A handle becomes FREE when nothing of it can be left on the server: no place in the queue, no
 * hold, no acquire on its way. Until then it is ending, in the background if the caller has its
 * result. If the server refuses its release or leave for good, that is not repeated: the next
 * operation ends what is left, or its time does.
 *
 * Tokens. A handle that does not hold remembers the token of its last hold, because the server may
 * still have that hold: it was given up without a release, or a replica that had not received the
 * release has become the master. The next acquire names that token, and the server ends that hold
 * and begins a new one, with a larger token. An acquire never ends a hold in which its handle
 * believes, because the handle only believes in holds with a larger token than the last. (After a
 * token of 2^53 or more, any token in a reply is accepted, because no server counts on from such a
 * number.)
 */
#include "fairlock_operate.h"
#include "internal.h"

/*
 * The request of each phase: its kind, what it adds to the hold count, and how many may be
 * unanswered at a time. Heartbeats and renewals may be more than one.
 */
static const struct {
  uint8_t kind;
  int8_t change;
  uint8_t most;
} requests[] = {
    [FREE] = {0, 0, 0},
    [QUEUEING] = {KIND_ACQUIRE, 0, FAIRLOCK_UNANSWERED_MAX},
    [TRYING] = {KIND_ACQUIRE, 0, 1},
    [HELD] = {KIND_IF_HELD, 0, FAIRLOCK_UNANSWERED_MAX},
    [REENTERING] = {KIND_IF_HELD, 1, FAIRLOCK_UNANSWERED_MAX},
    [RELEASE_ONE] = {KIND_IF_HELD, -1, FAIRLOCK_UNANSWERED_MAX},
    [RELEASING] = {KIND_RELEASE, -1, 1},
    [LEAVING] = {KIND_LEAVE, 0, 1},
    [REMOVING] = {KIND_LEAVE, 0, 1},
    [LOST] = {0, 0, 0},
    [QUERYING] = {KIND_QUERY, 0, 1},
    [AUTHENTICATING] = {KIND_AUTH, 0, 1},
};

static bool pending(const struct fairlock *handle)
{
  return handle->result == FAIRLOCK_PENDING;
}

static uint32_t doubt_ends(const struct fairlock_engine *engine)
{
  return engine->stage_began + engine->in_doubt_ms;
}

/* Makes the handle send now, or as soon as it may. */
static void send_now(struct fairlock *handle)
{
  handle->sends_at = handle->engine->now;
}

/* Changes the phase. Answers to requests of the previous phase no longer count. */
static void set_phase(struct fairlock *handle, enum phase phase)
{
  fairlock_pipeline_forget(handle);
  handle->phase = (uint8_t)phase;
}

/*
 * For a handle that does not hold. True if the server has nothing of it, neither a hold nor a place
 * in the queue, and no request that is on its way can still begin one.
 */
static bool nothing_there(const struct fairlock *handle)
{
  return !(handle->flags & (QUEUED | UNCONFIRMED | OWED)) &&
         !((fairlock_pipeline_in_flight(handle) | handle->in_doubt) & KIND_ACQUIRE);
}

/* The operation is no longer one that was begun. */
static void discount(struct fairlock *handle)
{
#if !PORT_ONE_TASK
  if (handle->begun) handle->engine->begun--;
  handle->begun = false;
#else
  (void)handle;
#endif
}

/*
 * Ends the operation, if there is one, and tells the caller. No other function does that. If a wait
 * was given up, the result is the reason for that, and not the result of leaving the queue.
 */
static void end_operation(struct fairlock *handle, int result)
{
  const struct fairlock_config *config = handle->engine->config;
  if (!pending(handle)) return;
  if (holding(handle) && handle->phase != HELD) set_phase(handle, HELD);
  handle->result = handle->leave_result < 0 ? handle->leave_result : (int8_t)result;
  handle->leave_result = FAIRLOCK_OK;
  discount(handle);
  if (config->ended == NULL || handle->awaited) return;
  const struct fairlock_end end = {handle->token, handle->result};
  config->ended(handle, &end, config->ended_context);
}

/* The handle is FREE now. If it was being removed, the result is always FAIRLOCK_OK. */
static void become_free(struct fairlock *handle, int result)
{
  bool removed = handle->phase == REMOVING;
  /* without the handle, an answer cannot be counted, and nobody would end the subscription */
  if (removed && handle->flags & (SUBSCRIBED | SUBSCRIBING))
    fairlock_engine_fail(handle->engine, FAIRLOCK_UNREACHABLE);
  set_phase(handle, FREE);
  handle->holds = 0;
  /* a leave that arrives late must not end the next wait, so it stays in doubt */
  fairlock_pipeline_limit_kinds(handle, KIND_LEAVE);
  handle->in_doubt &= KIND_LEAVE;
  handle->flags = (uint8_t)(handle->flags & (removed ? 0 : SUBSCRIBED | SUBSCRIBING));
  end_operation(handle, removed ? FAIRLOCK_OK : result);
}

static void tell_loss(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  engine->counters.losses++;
  if (engine->config->lost == NULL) return;
  bool over = reached(engine->now, handle->ends_at);
  const struct fairlock_loss loss = {handle->token,
                                     over ? FAIRLOCK_LOSS_TIME : FAIRLOCK_LOSS_ENDED};
  engine->config->lost(handle, &loss, engine->config->lost_context);
}

/*
 * The hold is lost for the caller. Something may be left on the server: a late renewal may have
 * extended the hold; and a heartbeat that was sent before the grant arrived may have queued again
 * after the hold had ended. So the handle owes a leave.
 */
static void lose(struct fairlock *handle)
{
  if (handle->phase == RELEASE_ONE) handle->holds--; /* the release under way counts as done */
  set_phase(handle, LOST);
  handle->flags &= (uint8_t)~UNCONFIRMED;
  handle->flags |= OWED;
  tell_loss(handle);
  end_operation(handle, FAIRLOCK_LOST);
}

/*
 * The caller no longer waits: leaves the queue, or gives back a hold whose grant has not arrived
 * yet. The caller gets the result when that is done, or at once if there is no connection.
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
  handle->ends_at = handle->left_until;
  if (engine->stage != UP) end_operation(handle, result);
  send_now(handle);
}

/*
 * The hold with handle->token has begun, and is valid until handle->ends_at. counter: the one to
 * raise if the handle had to wait, `granted` or `polled`. A handover has to be confirmed; until
 * then its lease is the waiter timeout.
 */
static void begin_hold(struct fairlock *handle, uint32_t *counter)
{
  /* if something is owed, the grant may be for an earlier place in the queue */
  bool unconfirmed = handle->flags & (QUEUED | OWED) || handle->in_doubt & KIND_ACQUIRE;
  handle->engine->counters.acquisitions++;
  if (handle->flags & QUEUED) ++*counter;
  set_phase(handle, HELD);
  handle->holds = 1;
  handle->flags &= (uint8_t) ~(QUEUED | OWED);
  if (unconfirmed) handle->flags |= UNCONFIRMED;
  handle->leave_result = FAIRLOCK_OK;
  end_operation(handle, FAIRLOCK_OK);
  if (handle->flags & UNCONFIRMED) send_now(handle);
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
 * The lease for which requests ask. A re-entry asks for a lease of its own, if that is not shorter
 * than what is left; it may also be the request that confirms a handover.
 */
static uint32_t lease_asked(const struct fairlock *handle)
{
  if (handle->phase != REENTERING) return handle->lease_ms;
  return at_least_left(handle, config_or(handle->reentry_lease_ms, renewed_lease(handle)));
}

/*
 * True if a request for this lease says that it will be renewed. What is left of a longer lease is
 * not: renewals ask for less, and whoever looks at the lock would take the holder for dead.
 */
static bool says_renewed(const struct fairlock *handle, uint32_t lease_ms)
{
  bool starts = handle->phase == REENTERING && handle->reentry_lease_ms == 0;
  return (starts || handle->flags & RENEWS) && lease_ms == renewed_lease(handle);
}

/*
 * A reply has confirmed the lease for which its request asked at sent_at. A renewed lease never
 * ends earlier than was confirmed before.
 */
static void extend(struct fairlock *handle, uint32_t sent_at)
{
  uint32_t limit = safe_end(sent_at, handle->lease_ms);
  bool ends_before = holding(handle) && handle->flags & RENEWS && !(handle->flags & UNCONFIRMED) &&
                     !reached(limit, handle->ends_at);
  if (!ends_before) handle->ends_at = limit;
  if (!(handle->flags & RENEWS)) handle->sends_at = handle->ends_at;
  else if (handle->unanswered == 0) handle->sends_at = sent_at + handle->lease_ms / 3;
}

/* Why the operation has no useful answer; FAIRLOCK_OK: that is not known. */
static int why_not(const struct fairlock *handle)
{
  return handle->answer < 0 ? handle->answer : handle->engine->last_error;
}

/* The result of a wait that has reached its limit. */
static int timed_out(const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  if (handle->answer != FAIRLOCK_OK && why_not(handle) < 0) return why_not(handle);
  return engine->stage == UP ? FAIRLOCK_TIMEOUT : FAIRLOCK_UNREACHABLE;
}

/* True if the handle waits, holds, or is ending a wait or a hold. */
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
 * True if ends_at has passed. If nobody has ticked for weeks, the clock has wrapped around and
 * ends_at may seem to be in the future, but then answered_at is too old.
 */
static bool over(const struct fairlock *handle, uint32_t now)
{
  return reached(now, handle->ends_at) ||
         (!ending(handle) && now - handle->answered_at > FAIRLOCK_DURATION_MAX_MS);
}

/* In how many ms the limit of its phase is reached; HORIZON_MS if it has none. */
static uint32_t limit_in(const struct fairlock *handle)
{
  uint32_t now = handle->engine->now;
  if (!limited(handle)) return HORIZON_MS;
  return over(handle, now) ? 0 : handle->ends_at - now;
}

/* When it is due */

/* True for a waiter in the queue whose heartbeats were all answered, and none refused. */
static bool heartbeats_answered(const struct fairlock *handle)
{
  return handle->phase == QUEUEING && handle->answer == FAIRLOCK_OK && handle->unanswered == 0;
}

/*
 * Since when a useful answer is missing. A waiter whose heartbeats were all answered misses none
 * until its next heartbeat is due. That time may be before the last answer was read; then the
 * answer counts.
 */
static uint32_t silent_since(const struct fairlock *handle)
{
  uint32_t now = handle->engine->now;
  if (!heartbeats_answered(handle) || reached(handle->answered_at, handle->sends_at))
    return handle->answered_at;
  return reached(now, handle->sends_at) ? handle->sends_at : now;
}

/* When the operation fails because no useful reply came; far in the future if it never does. */
static uint32_t patience_ends(const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  uint32_t patience = engine->offline_ms;
  if (handle->phase == TRYING) patience = engine->connect_ms + engine->response_ms;
  if (!pending(handle) || patience == FAIRLOCK_FOREVER) return engine->now + HORIZON_MS;
  patience += 4 * engine->round_trip_ms;
  if (patience > FAIRLOCK_DURATION_MAX_MS) patience = FAIRLOCK_DURATION_MAX_MS;
  return silent_since(handle) + patience;
}

/* True if the handle has something to send at `now`, and need not wait for an answer before. */
bool fairlock_handle_wants_to_send(const struct fairlock *handle, uint32_t now)
{
  return handle->unanswered < requests[handle->phase].most && has_come(now, handle->sends_at);
}

/* True if, besides, there is a connection, and no leave is in doubt that could end its wait. */
bool fairlock_handle_may_send(const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  bool held_back = waiting(handle) && handle->in_doubt & KIND_LEAVE;
  return engine->stage == UP && !(held_back && !doubt_over(engine, engine->now)) &&
         fairlock_handle_wants_to_send(handle, engine->now);
}

/* In how many ms something of the handle ends, apart from sending. */
uint32_t fairlock_handle_ends_in(const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  uint32_t in_ms = sooner(engine->now, HORIZON_MS, patience_ends(handle));
  in_ms = shorter(in_ms, limit_in(handle));
  if (engine->stage == UP && handle->in_doubt != 0 && !ending(handle))
    in_ms = sooner(engine->now, in_ms, doubt_ends(engine));
  return in_ms;
}

/* In how many ms the handle has to be looked at, unless it may send. */
uint32_t fairlock_handle_due_in(const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  uint32_t in_ms = fairlock_handle_ends_in(handle);
  /* it has nothing to send, or waits for an answer or a connection */
  bool waits = requests[handle->phase].most == 0 || has_come(engine->now, handle->sends_at);
  return waits ? in_ms : sooner(engine->now, in_ms, handle->sends_at);
}

/* Ends the wait, the hold, or the leaving, if its limit is reached. */
static void expire(struct fairlock *handle)
{
  if (limit_in(handle) > 0) return;
  if (waiting(handle)) leave(handle, timed_out(handle));
  else if (ending(handle)) become_free(handle, FAIRLOCK_UNKNOWN);
  else lose(handle);
}

/* Operations */

static int begin(struct fairlock *handle, enum phase phase)
{
  set_phase(handle, phase);
  handle->result = FAIRLOCK_PENDING;
  handle->answer = FAIRLOCK_PENDING;
  handle->answered_at = handle->engine->now;
  send_now(handle);
  fairlock_turns_update(handle);
  return FAIRLOCK_PENDING;
}

/* Acquires once more. That never shortens the lease, and never ends renewals. */
static int reenter(struct fairlock *handle, uint32_t lease_ms)
{
  if (handle->flags & RENEWS) lease_ms = 0;
  handle->reentry_lease_ms = lease_ms == 0 ? 0 : at_least_left(handle, lease_ms);
  return begin(handle, REENTERING);
}

static void set_lease(struct fairlock *handle, uint32_t lease_ms)
{
  handle->flags &= (uint8_t)~RENEWS;
  if (lease_ms == 0) {
    handle->flags |= RENEWS;
    lease_ms = renewed_lease(handle);
  }
  handle->lease_ms = lease_ms;
}

int fairlock_engine_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms,
                            uint32_t now)
{
  handle->engine->now = now;
  if (!take_lease(&lease_ms) || !good_wait(wait_ms)) return FAIRLOCK_INVALID;
  if (pending(handle)) return FAIRLOCK_IN_PROGRESS;
  expire(handle);
  if (handle->phase == LOST) return FAIRLOCK_LOST;
  if (handle->holds == UINT16_MAX) return FAIRLOCK_INVALID;
  if (handle->phase == HELD) return reenter(handle, lease_ms);
  unsigned flags = handle->flags & ~(unsigned)(QUEUED | UNCONFIRMED | ENDLESS | INHERITS);
  if (ending(handle)) flags |= OWED; /* the hold or place that it was leaving may still be there */
  else handle->left_until = now;
  if (wait_ms == FAIRLOCK_FOREVER) flags |= ENDLESS;
  handle->flags = (uint8_t)flags;
  set_lease(handle, lease_ms);
  handle->holds = 0;
  handle->ends_at = now + wait_ms;
  return begin(handle, wait_ms == 0 ? TRYING : QUEUEING);
}

int fairlock_engine_release(struct fairlock *handle, uint32_t now)
{
  handle->engine->now = now;
  if (pending(handle)) return FAIRLOCK_IN_PROGRESS;
  expire(handle);
  if (handle->phase == LOST) {
    if (--handle->holds == 0) leave(handle, FAIRLOCK_LOST);
    fairlock_turns_update(handle);
    return FAIRLOCK_LOST;
  }
  if (handle->phase != HELD) return FAIRLOCK_NOT_HELD;
  if (handle->holds > 1) return begin(handle, RELEASE_ONE);
  handle->in_doubt &= (uint8_t)~KIND_RELEASE;
  handle->ends_at = handle->left_until;
  return begin(handle, RELEASING);
}

int fairlock_engine_cancel(struct fairlock *handle, uint32_t now)
{
  handle->engine->now = now;
  if (!waiting(handle)) return FAIRLOCK_NOT_HELD;
  leave(handle, FAIRLOCK_CANCELLED);
  fairlock_turns_update(handle);
  return FAIRLOCK_OK;
}

/*
 * Begins an inspection, or what break.c does. If the lock is kept, it is released first, and keep.c
 * begins the query after that.
 */
int fairlock_handle_begin_query(struct fairlock *handle, const struct fairlock_inquiry *inquiry)
{
  bool kept = handle->phase == RELEASING && handle->keep & KEPT;
  if (pending(handle) || !(kept || handle->phase == FREE)) return FAIRLOCK_IN_PROGRESS;
  handle->by.inquiry = inquiry;
  if (!kept) return begin(handle, QUERYING);
  handle->keep |= QUERIES;
  return begin(handle, RELEASING);
}

/* The release before a query was answered: begins the query. */
void fairlock_handle_continue_query(struct fairlock *handle)
{
  begin(handle, QUERYING);
}

/*
 * Whatever the handle is doing, from now on it only leaves, and nobody is told. Answers to what it has
 * sent no longer count. If a query is being written, abandon.c ends the connection.
 */
void fairlock_handle_abandon(struct fairlock *handle)
{
  handle->awaited = true; /* so that `ended` is not called */
  if (querying(handle) || (waiting(handle) && nothing_there(handle))) {
    become_free(handle, FAIRLOCK_CANCELLED);
  } else if (handle->phase != FREE) {
    set_phase(handle, LEAVING);
    handle->ends_at = handle->left_until;
  }
  discount(handle);
  handle->result = FAIRLOCK_CANCELLED;
}

/*
 * Takes the handle out when nothing of it can be left on the server and the server sends it no more
 * messages. If necessary it leaves, and ends its subscription, before. Without a connection there
 * is no subscription.
 */
int fairlock_engine_remove(struct fairlock *handle, uint32_t now)
{
  struct fairlock_engine *engine = handle->engine;
  engine->now = now;
  if (handle->phase == REMOVING) return FAIRLOCK_PENDING;
  if (pending(handle) || handle->phase == HELD) return FAIRLOCK_IN_PROGRESS;
  expire(handle);
  bool owes = (ending(handle) || !nothing_there(handle)) && !reached(now, handle->left_until);
  if (owes || (engine->stage == UP && handle->flags & (SUBSCRIBED | SUBSCRIBING))) {
    handle->ends_at = handle->left_until;
    if (owes) handle->flags |= OWED;
    else handle->ends_at = now + 2 * engine->response_ms;
    handle->holds = 0;
    return begin(handle, REMOVING);
  }
  abandon_request(handle);
  if (engine->addressee == handle) engine->addressee = NULL;
  fairlock_pipeline_forget(handle);
  fairlock_schedule_remove(handle);
  handle->engine = NULL;
  return FAIRLOCK_OK;
}

uint32_t fairlock_engine_remaining_ms(const struct fairlock *handle, uint32_t now)
{
  if (!holding(handle) || over(handle, now)) return 0;
  return handle->ends_at - now;
}

int fairlock_engine_result(const struct fairlock *handle)
{
  return handle->result;
}

uint64_t fairlock_engine_token(const struct fairlock *handle, uint32_t now)
{
  return fairlock_engine_remaining_ms(handle, now) > 0 ? handle->token : 0;
}

uint32_t fairlock_engine_hold_count(const struct fairlock *handle, uint32_t now)
{
  return fairlock_engine_remaining_ms(handle, now) > 0 ? handle->holds : 0;
}

/* Requests */

/* When the handle sends the next request after the one that is being written. */
static uint32_t next_by_clock(const struct fairlock *handle)
{
  const struct fairlock_engine *engine = handle->engine;
  if (handle->phase == QUEUEING) return engine->now + engine->waiter_ms / 5 * 2;
  if (holding(handle) && handle->flags & RENEWS) return engine->now + handle->lease_ms / 3;
  return handle->ends_at;
}

/* The kind of request that the handle sends in its phase. */
uint8_t fairlock_handle_kind(const struct fairlock *handle)
{
  return requests[handle->phase].kind;
}

/*
 * Stores the handle's request in engine->request, so that it does not change while it is written.
 */
void fairlock_handle_freeze_request(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  struct fairlock_request *request = &engine->request;
  uint8_t kind = fairlock_handle_kind(handle);
  uint8_t subscription = handle->flags & (SUBSCRIBED | SUBSCRIBING);
  /* waiters listen, and holders if the program has an `asked` function */
  bool listens = handle->phase == QUEUEING ||
                 (engine->config->asked != NULL && kind & (KIND_ACQUIRE | KIND_IF_HELD));
  request->handle = handle;
  request->kind = kind;
  request->mode = handle->phase == QUEUEING
                      ? (int32_t)engine->waiter_ms
                      : -((int32_t)handle->holds + requests[handle->phase].change);
  request->claim_ms = (int32_t)engine->claim_ms;
  request->token = kind & KIND_LEAVE ? 0 : handle->token;
  request->lease_ms = kind & (KIND_ACQUIRE | KIND_IF_HELD) ? lease_asked(handle) : 0;
  request->renews = says_renewed(handle, request->lease_ms);
  if (request->lease_ms != 0) fairlock_handle_outlast(handle, request->lease_ms);
  request->subscribe =
      subscription == 0 ? listens : subscription == SUBSCRIBED && handle->phase == REMOVING;
  set_query(engine, query_of(handle));
  request->wait = engine->synced && request->lease_ms != 0;
  handle->answered_at = silent_since(handle);
  if (request->subscribe) handle->flags |= SUBSCRIBING;
  fairlock_pipeline_send(handle);
  handle->sends_at = next_by_clock(handle);
  fairlock_turns_update(handle);
}

/* Replies */

/*
 * The token of a new hold has to be larger than this. A token of 2^53 or more does not count,
 * because the scripts go on from the server's time then, and no larger one would ever come.
 */
static int64_t last_token(const struct fairlock *handle)
{
  return handle->token < LARGEST ? (int64_t)handle->token : 0;
}

/* The reply to a waiter's request, which was sent at sent_at. */
static void reply_waiting(struct fairlock *handle, bool granted, uint32_t sent_at)
{
  struct fairlock_engine *engine = handle->engine;
  int64_t value = engine->values[1];
  if (granted) {
    /*
     * the token is not new, which no correct server answers; or the answer is too late to be of use,
     * as every answer is if the lease is shorter than the round trip. But the server has the hold
     */
    if (value <= last_token(handle) || reached(engine->now, safe_end(sent_at, handle->lease_ms))) {
      handle->flags |= OWED;
      if (handle->phase == TRYING) leave(handle, FAIRLOCK_TIMEOUT);
      else handle->sends_at = engine->now + RETRY_MS;
      return;
    }
    handle->token = (uint64_t)value;
    extend(handle, sent_at);
    begin_hold(handle, &engine->counters.polled);
  } else if (handle->phase == TRYING) {
    leave(handle, FAIRLOCK_BUSY);
  } else {
    handle->flags |= QUEUED;
    if (handle->leave_result < 0) {
      leave(handle, handle->leave_result);
      return;
    }
    /* a value below 0 becomes a large one */
    uint32_t next =
        (uint64_t)value < FAIRLOCK_DURATION_MAX_MS ? (uint32_t)value + 1 : FAIRLOCK_DURATION_MAX_MS;
    if (next < SOONEST_MS) next = SOONEST_MS;
    if (!(handle->flags & SUBSCRIBED) && next > RETRY_MS) next = RETRY_MS;
    if (reached(handle->sends_at, engine->now + next)) handle->sends_at = engine->now + next;
  }
}

/* Makes the handle send at this time. */
void fairlock_handle_send_at(struct fairlock *handle, uint32_t time)
{
  handle->sends_at = time;
  fairlock_turns_update(handle);
}

/*
 * This server cannot carry out the release or the leave. It is sent again after a pause, and the
 * caller gets this status. If the handle is to be taken out, the caller has to wait.
 */
void fairlock_handle_end_later(struct fairlock *handle, int status)
{
  if (handle->phase != REMOVING) end_operation(handle, status);
  fairlock_handle_send_at(handle, handle->engine->now + RETRY_MS);
}

/* For the caller the release is done; its request is sent at `until`. */
void fairlock_handle_delay_release(struct fairlock *handle, uint32_t until)
{
  handle->holds = 0;
  end_operation(handle, FAIRLOCK_OK);
  fairlock_handle_send_at(handle, until);
}

/*
 * The caller holds again, by the lease for which a request asked at sent_at. The first renewal is
 * sent when a quarter of the rest of the lease has passed, because most holds have ended by then.
 */
void fairlock_handle_resume_hold(struct fairlock *handle, uint32_t sent_at)
{
  struct fairlock_engine *engine = handle->engine;
  handle->flags &= (uint8_t)~OWED;
  handle->answered_at = engine->now;
  extend(handle, sent_at);
  begin_hold(handle, &engine->counters.polled);
  fairlock_handle_send_at(handle, engine->now + (handle->ends_at - engine->now) / 4);
}

static void reply_held(struct fairlock *handle, bool done, uint32_t sent_at)
{
  if (!done || (uint64_t)handle->engine->values[1] != handle->token) {
    lose(handle);
    return;
  }
  if (handle->phase == REENTERING) set_lease(handle, handle->reentry_lease_ms);
  handle->holds = (uint16_t)((int32_t)handle->holds + requests[handle->phase].change);
  if (handle->phase == HELD && !(handle->flags & UNCONFIRMED)) handle->engine->counters.renewals++;
  extend(handle, sent_at);
  handle->flags &= (uint8_t)~UNCONFIRMED;
  end_operation(handle, FAIRLOCK_OK);
}

/*
 * True if no acquire can be carried out after the request that was just answered. That is so if it
 * was sent after all requests in doubt had expired, and if it is not a repeated release: the first
 * one may have ended the hold, and a late acquire may have come between the two.
 */
static bool settled(const struct fairlock *handle, uint32_t sent_at)
{
  if (!(handle->in_doubt & KIND_ACQUIRE)) return true;
  if (!doubt_over(handle->engine, sent_at)) return false;
  return handle->phase != RELEASING || !(handle->in_doubt & KIND_RELEASE);
}

/*
 * A release or a leave was carried out. The handle leaves again if an acquire may still arrive, when
 * that has expired; or if the hold had ended before its release, because a heartbeat that came after its
 * end may have begun another one.
 */
static void reply_ending(struct fairlock *handle, bool ended, uint32_t sent_at)
{
  const struct fairlock_engine *engine = handle->engine;
  int result = FAIRLOCK_OK;
  bool gone = handle->phase == RELEASING && !ended;
  if (gone) { /* lost, or released by a request before this one */
    result = handle->in_doubt & KIND_RELEASE ? FAIRLOCK_UNKNOWN : FAIRLOCK_LOST;
    if (pending(handle) && result == FAIRLOCK_LOST) tell_loss(handle);
  }
  if (!gone && settled(handle, sent_at)) {
    /* true if its UNSUBSCRIBE was refused, or was not sent yet */
    bool listens = handle->phase == REMOVING && handle->flags & SUBSCRIBED;
    if (listens) handle->sends_at = engine->now + RETRY_MS;
    else become_free(handle, result);
    return;
  }
  if (handle->phase != REMOVING) {
    end_operation(handle, result);
    set_phase(handle, LEAVING);
  }
  handle->holds = 0;
  uint32_t undo_at = doubt_over(engine, engine->now) ? engine->now : doubt_ends(engine);
  handle->ends_at = handle->left_until;
  handle->sends_at = undo_at;
}

/*
 * A waiter's request has failed, and may have begun something all the same: a hold that too few
 * replicas have acknowledged, or what its script did before it was stopped.
 */
void fairlock_handle_owe(struct fairlock *handle)
{
  if (waiting(handle)) handle->flags |= OWED;
}

static bool may_pass(int status)
{
  /* these two, and READONLY, OOM and MISCONF between them */
  return status <= FAIRLOCK_UNAVAILABLE && status >= FAIRLOCK_UNSYNCED;
}

/*
 * The server has refused the request. A hold goes on. A wait goes on, and a release or a leave is
 * repeated, if the server may accept it later. A release or a leave that it refuses for good is not
 * sent again, so `sends_at` stays the end of what may be left.
 */
static void reply_refused(struct fairlock *handle, int status)
{
  struct fairlock_engine *engine = handle->engine;
  bool passes = may_pass(status);
  /*
   * A script may have been stopped half-way, and have begun something. Other statuses come before it,
   * or before its first command that writes. So do NOPERM and NOAUTH: if a right is missing inside of a
   * script, the error begins with ERR, or in Redis 6.2 with The.
   */
  bool stopped = status == FAIRLOCK_DENIED || status == FAIRLOCK_REFUSED;
  if (stopped && engine->error[0] != 'N') fairlock_handle_owe(handle);
  if (handle->phase == TRYING || (handle->phase == QUEUEING && !passes)) {
    leave(handle, status);
  } else if (querying(handle) || (handle->phase == REMOVING && !passes)) {
    become_free(handle, status);
  } else {
    if (!passes || handle->phase == LEAVING) end_operation(handle, status);
    bool repeats = handle->phase == HELD ? handle->flags & (RENEWS | UNCONFIRMED) : passes;
    if (repeats) {
      engine->last_error = status;
      handle->sends_at = engine->now + RETRY_MS;
    }
  }
}

/* The server has carried out the request. Its answer is in engine->values. */
static void reply_useful(struct fairlock *handle, uint32_t sent_at)
{
  bool done = handle->engine->values[0] == 1;
  handle->answered_at = handle->engine->now;
  handle->engine->last_error = FAIRLOCK_OK;
  handle->engine->failures = 0;
  if (waiting(handle)) reply_waiting(handle, done, sent_at);
  else if (holding(handle)) reply_held(handle, done, sent_at);
  else if (ending(handle)) reply_ending(handle, done, sent_at);
  else become_free(handle, FAIRLOCK_OK);
}

static void reply(struct fairlock *handle, int status, uint32_t sent_at)
{
  struct fairlock_engine *engine = handle->engine;
  /*
   * The device was suspended for weeks before it read this answer. No lease is that long, but its
   * end would seem to be in the future, because the clock has wrapped around.
   */
  if (engine->now - sent_at > FAIRLOCK_DURATION_MAX_MS) {
    if (holding(handle)) {
      lose(handle);
      return;
    }
    if (waiting(handle)) status = FAIRLOCK_PENDING;
  }
  /* this server is a replica: connect again, to find the master */
  if (status == FAIRLOCK_READONLY) fairlock_engine_fail(engine, status);
  handle->answer = (int8_t)status;
  if (status == FAIRLOCK_PENDING) {
    if (came_late(engine)) handle->answered_at = engine->now;
    send_now(handle);
  } else if (status < 0) {
    reply_refused(handle, status);
  } else {
    reply_useful(handle, sent_at);
  }
}

/*
 * A request of the handle's present phase, sent at sent_at, was answered with this status.
 * FAIRLOCK_PENDING: it was not carried out, and has to be sent again.
 */
void fairlock_handle_on_reply(struct fairlock *handle, int status, uint32_t sent_at)
{
  /* requests of older kinds have been answered, too */
  fairlock_pipeline_limit_kinds(handle, fairlock_handle_kind(handle));
  reply(handle, status, sent_at);
  fairlock_turns_update(handle);
}

/*
 * A SUBSCRIBE or UNSUBSCRIBE was answered. FAIRLOCK_PENDING: it was redirected, and is sent again
 * before the next request. If a SUBSCRIBE was refused for good, the wait ends. If an UNSUBSCRIBE
 * was, the subscription lasts until the connection ends.
 */
void fairlock_handle_on_subscribed(struct fairlock *handle, int status)
{
  handle->flags &= (uint8_t)~SUBSCRIBING;
  if (status == FAIRLOCK_OK) handle->flags ^= SUBSCRIBED;
  if (status >= 0) return;
  handle->engine->last_error = status;
  if (may_pass(status)) return;
  handle->flags &= (uint8_t)~SUBSCRIBED;
  if (handle->phase == QUEUEING) handle->leave_result = (int8_t)status;
}

/* Messages */

static void on_grant(struct fairlock *handle, const int64_t message[3])
{
  struct fairlock_engine *engine = handle->engine;
  uint64_t token = (uint64_t)message[0];
  uint32_t claim_ms = (uint32_t)message[2];
  /* how much later the grant was made than the newest time of the server that we know */
  uint32_t age = (uint32_t)message[1] - (uint32_t)engine->server_now;
  /* a leave was sent before this grant came, and may have ended the hold */
  if (fairlock_pipeline_in_flight(handle) & KIND_LEAVE) return;
  if (age > FAIRLOCK_DURATION_MAX_MS / 2) return; /* before that, or weeks later */
  if (token <= handle->token) return; /* a new master whose clock is behind may say so */
  if (claim_ms > engine->waiter_ms) claim_ms = engine->waiter_ms;
  uint32_t left = safe_part(age + claim_ms);
  uint32_t elapsed = engine->now - engine->asked_at; /* it may be weeks */
  left = left > elapsed ? left - elapsed : 0;
  /* more than claim or lease cannot be left, unless the server's clock is wrong */
  left = shorter(left, safe_part(shorter(claim_ms, handle->lease_ms)));
  /*
   * too late to be valid; but an acquire under way may find the claim, and then has to confirm it
   */
  handle->flags = (uint8_t)(handle->flags | (left == 0 ? OWED : QUEUED));
  if (left == 0) return;
  handle->token = token;
  handle->ends_at = engine->now + left;
  handle->answered_at = engine->now;
  begin_hold(handle, &engine->counters.granted);
}

/*
 * A message came on the handle's channel: {token, time, claim_ms}. claim_ms > 0: the lock was
 * granted at this time of the server, for claim_ms. claim_ms 0: the message asks the holder with
 * this token to release, and without a token tells a holder to renew now; a waiter asks the server
 * now. words: what is behind the token.
 */
void fairlock_handle_on_message(struct fairlock *handle, const int64_t message[3],
                                const uint8_t *words, size_t size)
{
  bool grant = (uint32_t)message[2] != 0;
  if (waiting(handle)) {
    send_now(handle); /* an acquire, which asks, or confirms the grant */
    if (grant) on_grant(handle, message);
  } else if (holding(handle)) {
    const struct fairlock_config *config = handle->engine->config;
    if (config->asked != NULL && !grant && (uint64_t)message[0] == handle->token) {
      const struct fairlock_asking asking = {handle->token, (const char *)words, size};
      config->asked(handle, &asking, config->asked_context);
    } else if ((uint32_t)message[0] == 0 && handle->flags & RENEWS) {
      send_now(handle); /* the hold may have been ended by force, which the renewal finds out */
    }
  } else if (handle->phase == FREE && grant) {
    handle->flags |= OWED;
    handle->left_until = handle->engine->now + handle->engine->waiter_ms;
    leave(handle, FAIRLOCK_OK);
  }
  fairlock_turns_update(handle);
}

/* The connection and time */

/*
 * The connection has broken. The server may have carried out the unanswered requests, or still may.
 */
void fairlock_handle_on_broken(struct fairlock *handle)
{
  uint8_t kinds = fairlock_pipeline_in_flight(handle);
  handle->in_doubt =
      (uint8_t)(handle->in_doubt | (kinds & (KIND_ACQUIRE | KIND_LEAVE | KIND_RELEASE)));
  handle->answered_at = silent_since(handle);
  fairlock_pipeline_forget(handle);
  fairlock_pipeline_limit_kinds(handle, 0);
  handle->flags &= (uint8_t) ~(SUBSCRIBED | SUBSCRIBING);
  handle->answer = FAIRLOCK_PENDING;
  if (handle->phase == AUTHENTICATING || (handle->phase == REMOVING && nothing_there(handle))) {
    become_free(handle, FAIRLOCK_OK);
    return;
  }
  if (handle->phase == LEAVING) {
    /* the server has answered neither the wait nor the leave */
    bool silent = handle->leave_result == FAIRLOCK_TIMEOUT && !(handle->flags & QUEUED);
    if (silent) handle->leave_result = FAIRLOCK_UNREACHABLE;
    end_operation(handle, handle->leave_result);
  }
  /* ask again at once: the next server may not know the hold or the place */
  bool repeats = waiting(handle) || (holding(handle) && handle->flags & RENEWS);
  if (repeats || (kinds != 0 && (active(handle) || querying(handle)))) send_now(handle);
}

/*
 * An attempt to connect has failed, or no useful answer came for too long: the caller gets this
 * status. A wait becomes a leave; a release goes on in the background.
 */
void fairlock_handle_on_failed(struct fairlock *handle, int status)
{
  uint8_t sent = fairlock_pipeline_in_flight(handle) | handle->in_doubt;
  if (waiting(handle)) {
    /* gives the leave this much more time before it counts as unanswered, too */
    handle->answered_at += handle->engine->response_ms;
    leave(handle, status);
  } else if (querying(handle) || (handle->phase == REMOVING && nothing_there(handle))) {
    abandon_request(handle);
    become_free(handle, status);
  } else {
    end_operation(handle,
                  handle->phase == RELEASING && sent & KIND_RELEASE ? FAIRLOCK_UNKNOWN : status);
    if (handle->phase == REMOVING) handle->phase = LEAVING;
  }
}

/*
 * Does what is due: perhaps nothing, because the handle has to wait before it can send, or because
 * input has to be read first.
 */
void fairlock_handle_on_tick(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  /*
   * the heartbeat came due after the last tick, and could not be sent: silence counts from now on
   */
  bool waited = has_come(engine->now, handle->sends_at) && reached(handle->sends_at, engine->next);
  if (heartbeats_answered(handle) && waited) send_now(handle);
  expire(handle);
  if (has_come(fairlock_engine_read_until(engine), patience_ends(handle)))
    fairlock_handle_on_failed(handle, why_not(handle) < 0 ? why_not(handle) : FAIRLOCK_UNREACHABLE);
  if (!ending(handle) && doubt_over(engine, engine->now)) {
    /* an acquire in doubt may have been carried out */
    if (waiting(handle) && handle->in_doubt & KIND_ACQUIRE) handle->flags |= OWED;
    handle->in_doubt = 0;
  }
  fairlock_turns_update(handle);
}
