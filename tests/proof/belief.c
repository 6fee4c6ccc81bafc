/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The belief: how long fairlock_engine_remaining_ms() may say that a handle holds, at any later time,
 * after a call at any time. Too long is what loses a lock.
 *
 * Real time is counted here in 64 bits, and the engine sees the lower 32: so its clock wraps around
 * wherever that does harm, and a freeze is a long step of real time. A hold is kept from one call to
 * the next if, at the time `seen` of the last tick or of a call since then that has changed it,
 *
 *   - it ends at `end`, at most the longest lease after `seen`, and at most 2^30 ms before it; when a
 *     tick has looked at it, after `seen`;
 *   - its last useful answer came at `useful_at`, at most 2^30 ms and 19 hours before `seen`;
 *   - the schedule looks at it by `due_at`, which is after neither `end` nor, if that has passed, the
 *     last call.
 *
 * From that follows that for AWAY from `seen` on, remaining_ms() says at most what is left
 * until `end`, and 0 from then on (nothing()). All other calls keep it so (kept()).
 *
 * Assumed, of the caller: a tick at least each AWAY, 36 days: engine.h asks for one each month; a tick
 * at the same time before each output, and between two receptions. An answer, and the newest known
 * time of the server, are less than 49 days old.
 */
#include "proof.h"

#include "lock/handle.c"

#include "invariant.h"

#include "codec.h"

#ifndef OTHER
#define OTHER 0
#endif

#define SPAN    ((int64_t)FAIRLOCK_DURATION_MAX_MS + 1)
#define LONGEST (FAIRLOCK_DURATION_MAX_MS - margin(FAIRLOCK_DURATION_MAX_MS))
#define AWAY    (UINT32_MAX - SPAN - HORIZON_MS)

static int64_t seen, end, useful_at, due_at; /* before the call */
static int64_t now;                          /* of the call */
static bool held;                            /* before the call */
static uint64_t token;                       /* of the handle, before the call */

static void any_time(const struct fairlock *handle)
{
  seen = nondet_int64();
  end = nondet_int64();
  useful_at = nondet_int64();
  due_at = nondet_int64();
  now = nondet_int64();
  ASSUME(seen >= (int64_t)1 << 33 && seen <= (int64_t)1 << 34);
  ASSUME(end >= seen - SPAN && end <= seen + LONGEST);
  ASSUME(useful_at >= seen - SPAN - HORIZON_MS && useful_at <= seen);
  int64_t called = nondet_int64();
  ASSUME(called >= seen && called <= now && now <= seen + AWAY);
  ASSUME(due_at >= seen - SPAN && due_at <= (end > called ? end : called));
  held = holding(handle);
  token = handle->token;
  E.now = (uint32_t)now;
  ASSUME(handle->place.due == (uint32_t)due_at);
  if (held) ASSUME(handle->ends_at == (uint32_t)end && handle->answered_at == (uint32_t)useful_at);
  ASSUME(token <= (uint64_t)NUMBER_MAX);
}

/*
 * The hold, if there is one, is as it was, or as it has to be with `now` as `seen`; the schedule looks
 * at it; and it ends at the limit, or before.
 */
static void kept(const struct fairlock *handle, int64_t limit)
{
  uint32_t at = (uint32_t)now;
  int64_t new_end = end;
  if (!holding(handle)) return;
  if (!held || handle->ends_at != (uint32_t)end || handle->answered_at != (uint32_t)useful_at) {
    new_end = now + (int32_t)(handle->ends_at - at);
    CHECK(new_end >= now - SPAN && new_end <= now + LONGEST);
    CHECK(at - handle->answered_at <= SPAN + HORIZON_MS);
  }
  CHECK(new_end <= limit);
  REACHED(new_end > now);
  if (handle->place.due == (uint32_t)due_at) return;
  int64_t new_due = now + (int32_t)(handle->place.due - at);
  CHECK(new_due >= now - SPAN && new_due <= (new_end > now ? new_end : now));
}

/* What is kept is enough: for AWAY from `seen` on, the belief lasts until the end. */
static void nothing(struct fairlock *handle)
{
  uint32_t left = fairlock_engine_remaining_ms(handle, (uint32_t)now);
  CHECK(left <= (held && now < end ? end - now : 0));
  REACHED(left == LONGEST);
}

/* The lease that a request of this phase has asked for. */
static uint32_t asked_for(const struct fairlock *handle)
{
  if (handle->phase != REENTERING) return handle->lease_ms;
  return config_or(handle->reentry_lease_ms, renewed_lease(handle));
}

/* Any answer to the handle's request, whenever that was sent. */
static void answer(struct fairlock *handle)
{
  int status = nondet_int();
  int64_t sent_at = nondet_int64();
  uint32_t lease_ms = asked_for(handle);
  bool confirms = handle->flags & UNCONFIRMED;
  bool renews = handle->flags & RENEWS || handle->phase == REENTERING;
  ASSUME(status == FAIRLOCK_PENDING || good_status(status));
  ASSUME(sent_at >= 0 && sent_at <= seen && now - sent_at < UINT32_MAX);
  ASSUME(end > seen || now == seen);
  fairlock_handle_on_reply(handle, status, (uint32_t)sent_at);
  bool useful = status == FAIRLOCK_OK && E.values[0] == 1;
  /* what this request allows; what an earlier one did, if this one does not set the lease */
  int64_t limit = useful ? sent_at + lease_ms - margin(lease_ms) : end;
  if (held && renews && !confirms && limit < end) limit = end;
  CHECK(handle->token >= token || token == LARGEST);
  CHECK(IMPLIES(holding(handle) && !held, useful && (handle->token > token || token == LARGEST)));
  kept(handle, limit);
}

/*
 * A grant by message: any token, time and claim. Only the grant's age by the server's clock counts,
 * so that clock's newest known time may be 0; it was asked for `elapsed` ago.
 */
static void grant(struct fairlock *handle)
{
  uint64_t new_token = nondet_uint64();
  int64_t at = nondet_int64();
  uint32_t claim_ms = nondet_uint32();
  uint32_t elapsed = nondet_uint32();
  ASSUME(waiting(handle)); /* on_push() sees to that */
  ASSUME(at >= -TIME_MAX && at <= NUMBER_MAX);
  E.server_now = 0;
  E.asked_at = E.now - elapsed;
  on_grant(handle, (int64_t[]){(int64_t)new_token, at, claim_ms});
  CHECK(handle->token == token || (holding(handle) && handle->token == new_token));
  CHECK(handle->token >= token);
  if (!holding(handle)) return;
  /*
   * When that time was asked for, the server's clock said at most 0, and this was left of the claim.
   * Times of the server are compared by their lower halves, so one of 49 days before or later, which
   * only a clock that jumps by that can say, counts as one of now, and is good for a claim as well.
   */
  CHECK((uint32_t)at < SPAN);
  uint32_t claim = shorter(claim_ms, E.waiter_ms);
  uint32_t left = handle->ends_at - E.now;
  CHECK(new_token > token && handle->answered_at == E.now && left > 0);
  CHECK((uint64_t)left + elapsed <=
        safe_part((uint32_t)at + claim)); /* grows with it: monotone() */
  CHECK(left <= safe_part(shorter(claim, handle->lease_ms)));
  REACHED(left > 1000);
}

/* What is safe of a longer interval is not shorter, and it is shorter than the interval. */
static void monotone(struct fairlock *handle)
{
  uint32_t a = nondet_uint32();
  uint32_t b = nondet_uint32();
  (void)handle;
  ASSUME(a <= b && b <= 2 * SPAN);
  CHECK(safe_part(a) <= safe_part(b));
  CHECK(a == 0 ? safe_part(a) == 0 : safe_part(a) < a);
  REACHED(safe_part(a) > 0);
}

/* All other calls: none begins a belief, or makes it last longer. */
static void any_other(struct fairlock *handle)
{
  uint32_t a = nondet_uint32();
  uint32_t b = nondet_uint32();
  int status = nondet_int();
  ASSUME(good_status(status));
  switch (OTHER) {
  case 1:
    fairlock_engine_acquire(handle, a, b, (uint32_t)now);
    break;
  case 2:
    fairlock_engine_release(handle, (uint32_t)now);
    break;
  case 3:
    fairlock_engine_remove(handle, (uint32_t)now);
    break;
  case 4:
    fairlock_handle_on_broken(handle);
    fairlock_turns_update(handle);
    break;
  case 5:
    fairlock_handle_on_failed(handle, status);
    fairlock_turns_update(handle);
    break;
  case 6:
    fairlock_handle_on_subscribed(handle, status);
    break;
  case 7:
    fairlock_handle_freeze_request(handle);
    break;
  default:
    if (!waiting(handle))
      fairlock_handle_on_message(handle, (int64_t[]){nondet_int64(), nondet_int64(), a}, NULL, 0);
  }
  if (handle->engine == NULL) return;
  CHECK(handle->token == token);
  CHECK(IMPLIES(holding(handle), held && handle->ends_at == (uint32_t)end));
  kept(handle, end);
}

/* A tick that looks at the handle, however late: what is still believed in has time left. */
static void ticked(struct fairlock *handle)
{
  fairlock_handle_on_tick(handle);
  CHECK(handle->token == token);
  CHECK(IMPLIES(holding(handle), held && end > now && handle->ends_at == (uint32_t)end));
  REACHED(holding(handle) && end == now + 1);
  REACHED(held && !holding(handle));
  kept(handle, end);
}

void harness(void)
{
  any_state();
  any_time(&A);
  CALL(&A);
}
