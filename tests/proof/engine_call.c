/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: one call, from any state in which the invariant holds. Nothing is touched that must
 * not be, and the invariant holds after it: so it does after any sequence of calls. CALL names the
 * call; it is for any of the handles that exist.
 *
 * Assumed: the preconditions of engine.h, and what is proved apart: what the codec reads, writes and
 * returns (decode, writer, parse), and that a request is not empty. Not here: following servers,
 * locks that are kept, credentials that change and a log.
 */
#include "proof.h"

#include "lock/inspect.c"

#define INSPECTION &inspection
#include "invariant.h"

#include "codec.h"
#include "event.h"
#include "memchr.h"

/* The calls. `now` is any time, before or after that of the call before: the clock wraps around. */

static void acquire(struct fairlock *handle, uint32_t now)
{
  /* what belief.c shows: no hold is believed in for longer than a lease */
  uint32_t left = fairlock_engine_remaining_ms(handle, now);
  ASSUME(left <= FAIRLOCK_DURATION_MAX_MS - margin(FAIRLOCK_DURATION_MAX_MS));
  int status = fairlock_engine_acquire(handle, nondet_uint32(), nondet_uint32(), now);
  CHECK((status == FAIRLOCK_PENDING) == (handle->result == FAIRLOCK_PENDING) ||
        status == FAIRLOCK_IN_PROGRESS || status == FAIRLOCK_INVALID);
  REACHED(status == FAIRLOCK_PENDING && handle->phase == QUEUEING);
  REACHED(status == FAIRLOCK_PENDING && handle->phase == REENTERING);
  REACHED(status == FAIRLOCK_LOST);
}

static void release(struct fairlock *handle, uint32_t now)
{
  int status = fairlock_engine_release(handle, now);
  REACHED(status == FAIRLOCK_PENDING && handle->phase == RELEASING);
  REACHED(status == FAIRLOCK_PENDING && handle->phase == RELEASE_ONE);
  REACHED(status == FAIRLOCK_LOST && handle->holds == 0);
}

static void cancel(struct fairlock *handle, uint32_t now)
{
  int status = fairlock_engine_cancel(handle, now);
  CHECK(status == FAIRLOCK_OK || status == FAIRLOCK_NOT_HELD);
  REACHED(status == FAIRLOCK_OK && handle->phase == LEAVING);
  REACHED(status == FAIRLOCK_OK && handle->phase == FREE);
}

static void force(struct fairlock *handle, uint32_t now)
{
  int status = nondet_bool() ? fairlock_engine_force(handle, &hold_of_another, now)
                             : fairlock_engine_ask(handle, &hold_of_another, now);
  REACHED(status == FAIRLOCK_PENDING);
}

static void inspect(struct fairlock *handle, uint32_t now)
{
  REACHED(fairlock_engine_inspect(handle, on_report, NULL, now) == FAIRLOCK_PENDING);
}

static void taken_out(struct fairlock *handle, uint32_t now)
{
  int status = fairlock_engine_remove(handle, now);
  if (status == FAIRLOCK_OK) {
    CHECK(handle->engine == NULL && !in_heap(handle) && E.addressee != handle);
    CHECK(E.oldest != handle && (E.oldest == NULL || E.youngest != handle));
    CHECK(E.broken || E.request.handle != handle);
  }
  REACHED(status == FAIRLOCK_OK);
  REACHED(status == FAIRLOCK_PENDING && handle->phase == REMOVING);
}

static void add(struct fairlock *handle, uint32_t now)
{
  (void)now;
  ASSUME(!is_added(handle));
  int status = fairlock_engine_add(&E, handle, nondet_bool() ? names[0] : NULL, nondet_size());
  CHECK((status == FAIRLOCK_OK) == in_heap(handle));
  REACHED(status == FAIRLOCK_OK);
}

static void tick(struct fairlock *handle, uint32_t now)
{
  uint8_t before = handle->phase;
  fairlock_engine_tick(&E, now);
  REACHED(before == HELD && handle->phase == LOST);
  REACHED(before == QUEUEING && handle->phase == LEAVING);
}

static void connect(struct fairlock *handle, uint32_t now)
{
  (void)handle;
  fairlock_engine_connect(&E, now);
  REACHED(E.connect_requested);
}

static void opening(struct fairlock *handle, uint32_t now)
{
  (void)handle;
  fairlock_engine_opening(&E, now);
  REACHED(E.stage == OPENING);
}

static void opened(struct fairlock *handle, uint32_t now)
{
  (void)handle;
  ASSUME(E.stage == OPENING);
  fairlock_engine_opened(&E, now);
  REACHED(E.writing);
}

static void fail(struct fairlock *handle, uint32_t now)
{
  (void)handle, (void)now;
  int status = nondet_int();
  ASSUME(good_status(status));
  fairlock_engine_fail(&E, status);
  REACHED(E.broken);
}

static void closed(struct fairlock *handle, uint32_t now)
{
  int status = nondet_int();
  uint8_t before = handle->phase;
  ASSUME(good_status(status) && status < FAIRLOCK_OK);
  fairlock_engine_closed(&E, status, now);
  CHECK(E.stage == CLOSED && !E.broken && E.request.handle == NULL && E.oldest == NULL);
  REACHED(before == QUEUEING && handle->phase == QUEUEING);
  REACHED(before == TRYING && handle->phase == FREE);
}

static void output(struct fairlock *handle, uint32_t now)
{
  size_t size;
  const uint8_t *bytes = fairlock_engine_output(&E, &size, now);
  CHECK(size <= SEND_SIZE && __CPROVER_r_ok(bytes, size));
  CHECK(__CPROVER_same_object(bytes, send_buffer));
  REACHED(size > 0 && E.request.handle == NULL);
  REACHED(size == SEND_SIZE && E.request.handle == handle);
}

static void sent(struct fairlock *handle, uint32_t now)
{
  (void)handle, (void)now;
  size_t size = nondet_size();
  ASSUME(size > 0 && size <= E.send_end - E.send_start);
  fairlock_engine_sent(&E, size);
  REACHED(E.send_end == 0);
  REACHED(E.send_end > 0);
}

static void input(struct fairlock *handle, uint32_t now)
{
  (void)handle, (void)now;
  size_t size;
  uint8_t *bytes = fairlock_engine_input(&E, &size);
  CHECK(size > 0 || E.broken);
  CHECK(size == 0 || __CPROVER_w_ok(bytes, size));
  REACHED(size == 1);
}

static void asked(struct fairlock *handle, uint32_t now)
{
  uint32_t wait = fairlock_engine_deadline(&E, now);
  unsigned wants = fairlock_engine_wants(&E, now);
  CHECK(wait <= HORIZON_MS);
  CHECK(!(wants & FAIRLOCK_RECEIVE) || E.stage > OPENING);
  CHECK(E.broken ? wants == FAIRLOCK_CLOSE && wait == 0 : !(wants & FAIRLOCK_CLOSE));
  CHECK(IMPLIES(ADDED > 0 && fairlock_engine_remaining_ms(handle, now) > 0, holding(handle)));
  REACHED(wants == FAIRLOCK_CONNECT);
  REACHED(wants == (FAIRLOCK_RECEIVE | FAIRLOCK_SEND));
}

/* One of those that do little. */
static void any_small(struct fairlock *handle, uint32_t now)
{
  switch (nondet_uint8()) {
  case 0:
    cancel(handle, now);
    break;
  case 1:
    force(handle, now);
    break;
  case 2:
    inspect(handle, now);
    break;
  case 3:
    connect(handle, now);
    break;
  case 4:
    opening(handle, now);
    break;
  case 5:
    opened(handle, now);
    break;
  case 6:
    fail(handle, now);
    break;
  case 7:
    sent(handle, now);
    break;
  case 8:
    input(handle, now);
    break;
  default:
    asked(handle, now);
  }
}

/* Not called from outside, but what the rest of received() leads to: a message, and an answer. */

/* Without a claim, the time is not looked at. */
static bool good_message(uint64_t token, int64_t at, uint32_t claim_ms)
{
  return token <= (uint64_t)NUMBER_MAX && (claim_ms == 0 || (at >= 0 && at <= NUMBER_MAX));
}

static void pushed(struct fairlock *handle, uint32_t now)
{
  uint64_t token = nondet_uint64();
  int64_t at = nondet_int64();
  uint32_t claim_ms = nondet_uint32();
  E.now = now;
  /* what on_message() lets through */
  ASSUME(good_message(token, at, claim_ms));
  uint8_t value_type = E.value_type;
  uint32_t element = E.element;
  static const uint8_t words[2] = {0};
  size_t size = nondet_bool() ? sizeof words : 0;
  fairlock_handle_on_message(handle, (int64_t[]){(int64_t)token, at, claim_ms}, words, size);
  CHECK(E.value_type == value_type && E.element == element);
  REACHED(handle->phase == HELD);
  REACHED(handle->phase == LEAVING && handle->flags & OWED);
}

static void answered(struct fairlock *handle, uint32_t now)
{
  int status = nondet_int();
  uint8_t before = handle->phase;
  E.now = now;
  ASSUME(E.stage == UP && fairlock_pipeline_busy(&E));
  ASSUME(status == FAIRLOCK_PENDING || good_status(status));
  bool there = in_heap(handle);
  fairlock_reply_answered(&E, status);
  CHECK(in_heap(handle) == there);
  bool goes_on = status == FAIRLOCK_PENDING && before >= RELEASING && before <= REMOVING;
  CHECK(IMPLIES(goes_on, handle->phase == before));
  REACHED(before == QUEUEING && handle->phase == HELD);
  REACHED(before == HELD && handle->phase == LOST);
  REACHED(before == RELEASING && handle->phase == FREE);
}

/* What the greeting and a SUBSCRIBE lead to. */
static void greeted(struct fairlock *handle, uint32_t now)
{
  int status = nondet_int();
  uint8_t value_type = E.value_type;
  uint32_t element = E.element;
  E.now = now;
  switch (nondet_uint8()) {
  case 0:
    ASSUME(E.stage > OPENING && E.stage < UP && !E.broken);
    fairlock_engine_greeted(&E);
    REACHED(E.stage == UP && E.id_size > 0);
    break;
  case 1:
    ASSUME(E.stage > OPENING && E.stage < UP && good_status(status));
    fairlock_engine_refused(&E, status);
    REACHED(handle->result == FAIRLOCK_UNSUPPORTED);
    break;
  default:
    ASSUME(status == FAIRLOCK_PENDING || good_status(status));
    fairlock_handle_on_subscribed(handle, status);
    CHECK(E.value_type == value_type && E.element == element);
    REACHED(handle->phase == QUEUEING && handle->leave_result < 0);
  }
}

/* What a tick is made of: the schedule made anew, and each handle that is due. */

static void rescheduled(struct fairlock *handle, uint32_t now)
{
  (void)handle;
  E.now = now;
  fairlock_turns_update_all(&E);
  REACHED(E.first == &A);
  REACHED(E.first != &A);
}

static void ticked(struct fairlock *handle, uint32_t now)
{
  uint8_t before = handle->phase;
  uint32_t due = handle->place.due;
  E.now = now;
  fairlock_handle_on_tick(handle);
  bool moved = handle->place.due != due;
  CHECK(E.now == now);
  REACHED(moved && before == HELD && handle->phase == LOST);
  REACHED(!moved);
}

/* And an output: the request of the handle that comes first, which engine.c then writes. */
static void begun(struct fairlock *handle, uint32_t now)
{
  size_t end = E.send_end;
  E.now = now;
  ASSUME(E.first == handle && !E.writing && !E.broken && fairlock_handle_may_send(handle));
  fairlock_handle_freeze_request(handle);
  CHECK(E.now == now && E.send_end == end && !E.broken && !E.writing);
  CHECK(E.stage == UP && E.request.handle == handle);
  E.writing = true;
  REACHED(E.first == handle && E.request.kind == KIND_IF_HELD);
  REACHED(E.first != handle);
}

/*
 * The same in their place, by what is proved of them: from a state that is valid to any other one.
 * What calls them in a loop is looked at for two turns: all is as before at the head of each.
 */
void any_schedule(struct fairlock_engine *engine);
void any_tick(struct fairlock *handle);
void any_request(struct fairlock *handle);

static unsigned turns;

static void any_change(void)
{
  uint32_t now = E.now;
  check_state();
  names_it = false;
  any_state();
  E.now = now;
}

void any_schedule(struct fairlock_engine *engine)
{
  CHECK(engine == &E);
  any_change();
}

void any_tick(struct fairlock *handle)
{
  CHECK(in_heap(handle));
  any_change();
  ASSUME(++turns <= 2);
}

void any_request(struct fairlock *handle)
{
  size_t end = E.send_end;
  CHECK(E.first == handle && !E.writing && !E.broken && fairlock_handle_may_send(handle));
  CHECK(E.send_start == 0);
  any_change();
  ASSUME(E.send_start == 0 && E.send_end == end && !E.broken && E.request.handle == handle);
  E.writing = false;
  ASSUME(++turns <= 2);
}

/*
 * An event of the decoder, behind another value's or its own first one. Its text ends where the
 * memory does. What it leads to is proved apart, and in its place is any change.
 */
#define TEXT_SIZE 20 /* "ERR Error running: O" */

static bool is_aggregate(int type)
{
  return type == RESP_ARRAY || type == RESP_MAP || type == RESP_SET || type == RESP_PUSH;
}

/* What the event has led to. */
static enum { NOTHING, ANSWER, MESSAGE, SUBSCRIPTION, GREETED, REFUSED } led_to;

static void event(struct fairlock *handle, uint32_t now)
{
  struct resp_event any;
  (void)handle;
  E.now = now;
  ASSUME(E.stage > OPENING && !E.broken);
  ASSUME(any.depth <= RESP_DEPTH_MAX && any.size <= TEXT_SIZE &&
         (any.size == 0 || has_text(any.type)));
  ASSUME(any.type == RESP_INTEGER || (any.integer >= 0 && any.integer <= RESP_LENGTH_MAX));
  ASSUME(IMPLIES(any.depth > 0, is_aggregate(E.value_type)));
  const uint8_t *text = any_bytes(TEXT_SIZE);
  any.data = has_text(any.type) ? text + TEXT_SIZE - any.size : NULL;
  fairlock_reply_on_event(&E, &any);
  REACHED(led_to == ANSWER && any.depth == 0);
  REACHED(led_to == ANSWER && any.depth == 1);
  REACHED(led_to == MESSAGE);
  REACHED(led_to == SUBSCRIPTION);
  REACHED(led_to == GREETED);
  REACHED(led_to == REFUSED);
  REACHED(led_to == NOTHING && E.broken);
  REACHED(led_to == NOTHING && E.values[2] == NUMBER_MAX);
}

void any_answer(struct fairlock_engine *engine, int status);
void any_message(struct fairlock *handle, const int64_t message[3], const uint8_t *words,
                 size_t size);
void any_subscription(struct fairlock *handle, int status);
void any_greeting(struct fairlock_engine *engine);
void any_refusal(struct fairlock_engine *engine, int status);

/* In the middle of a value, of which the same is known as before. */
static void any_change_within(void)
{
  uint8_t value_type = E.value_type;
  uint32_t element = E.element;
  any_change();
  ASSUME(E.value_type == value_type && E.element == element);
}

void any_answer(struct fairlock_engine *engine, int status)
{
  CHECK(engine->stage == UP && fairlock_pipeline_busy(engine));
  CHECK(status == FAIRLOCK_PENDING || good_status(status));
  any_change();
  led_to = ANSWER;
}

void any_message(struct fairlock *handle, const int64_t message[3], const uint8_t *words,
                 size_t size)
{
  CHECK(size == 0 || __CPROVER_r_ok(words, size));
  CHECK(in_heap(handle) && message[2] >= 0 && message[2] <= UINT32_MAX);
  CHECK(good_message((uint64_t)message[0], message[1], (uint32_t)message[2]));
  any_change_within();
  led_to = MESSAGE;
}

void any_subscription(struct fairlock *handle, int status)
{
  CHECK(in_heap(handle) && (status == FAIRLOCK_PENDING || good_status(status)));
  any_change_within();
  led_to = SUBSCRIPTION;
}

void any_greeting(struct fairlock_engine *engine)
{
  CHECK(engine->stage > OPENING && engine->stage < UP && !engine->broken);
  any_change();
  led_to = GREETED;
}

void any_refusal(struct fairlock_engine *engine, int status)
{
  CHECK(engine->stage > OPENING && engine->stage < UP && good_status(status));
  any_change();
  led_to = REFUSED;
}

void harness(void)
{
  any_state();
  CALL(nondet_bool() ? &A : &B, nondet_uint32());
  check_state();
}
