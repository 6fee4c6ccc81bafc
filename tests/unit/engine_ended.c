/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller is told that an operation has ended: once for each that was begun, with its result.
 */
#include "engine_tests.h"

static struct fairlock *told; /* about whom */
static int told_status;
static uint64_t told_token;
static int told_losses; /* before it */
static int times;
static uint64_t read_token; /* when it was told */
static uint32_t read_count;

static void note_end(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  CHECK(context == &times);
  CHECK_EQUAL(fairlock_engine_result(handle), end->status);
  read_token = fairlock_engine_token(handle, now);
  read_count = fairlock_engine_hold_count(handle, now);
  told = handle;
  told_status = end->status;
  told_token = end->token;
  told_losses = losses;
  times++;
}

/* The same, with a connection, and with someone to tell. */
static void begin_told(void)
{
  begin();
  config.ended = note_end;
  config.ended_context = &times;
  times = 0;
}

/* It was told since the last call, and once: about a, with this result. */
static bool told_of_a(int status)
{
  bool once = times == 1 && told == &a && told_status == status;
  times = 0;
  return once;
}

static void hold_a(void)
{
  request(&a, 0, 1000);
  CHECK_EQUAL(times, 0);
  CHECK_EQUAL(fairlock_engine_result(&a), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_token(&a, now), 0);
  answer(1, 77, 0);
  CHECK(told_of_a(FAIRLOCK_OK));
  CHECK_EQUAL(read_token, 77);
  CHECK_EQUAL(read_count, 1);
  CHECK_EQUAL(fairlock_engine_token(&a, now + 1000), 0); /* it is over, though nobody has ticked */
  CHECK_EQUAL(fairlock_engine_hold_count(&a, now + 1000), 0);
}

/* fairlock_token() cannot be called then. */
void test_told_the_token(void)
{
  begin_told();
  request(&a, 0, 1000);
  answer(0, 0, 0);
  CHECK(told_of_a(FAIRLOCK_BUSY));
  CHECK_EQUAL(told_token, 0);
  hold_a();
  CHECK_EQUAL(told_token, 77);
}

/* Why, as far as the client knows: the time has passed, or the server has said so before that. */
void test_told_why_it_is_lost(void)
{
  begin_told();
  hold_a();
  pass(1000);
  CHECK_EQUAL(losses, 1);
  CHECK(last_loss.reason == FAIRLOCK_LOSS_TIME && last_loss.token == 77);
  acquire_a(FAIRLOCK_RENEW);
  pass(10000);
  drain();
  answer(0, 0, 0); /* somebody has forced its release */
  CHECK_EQUAL(losses, 1);
  CHECK(last_loss.reason == FAIRLOCK_LOSS_ENDED && last_loss.token == 77);
  acquire_a(FAIRLOCK_RENEW);
  break_connection();
  pass(30000);
  CHECK_EQUAL(losses, 1);
  CHECK(last_loss.reason == FAIRLOCK_LOSS_TIME);
}

void test_told_of_each_operation(void)
{
  begin_told();
  hold_a();
  request(&a, 0, 1000);
  answer(1, 77, 0);
  CHECK(told_of_a(FAIRLOCK_OK));
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0);
  CHECK(told_of_a(FAIRLOCK_OK));
  release_a();
  CHECK(told_of_a(FAIRLOCK_OK));
  CHECK_EQUAL(fairlock_engine_force(&a, &anyone, now), FAIRLOCK_PENDING);
  drain();
  answer(0, 0, 0);
  CHECK(told_of_a(FAIRLOCK_NOT_HELD));
  request(&a, 0, 1000);
  answer(0, 500, 0); /* the try leaves nothing behind */
  CHECK(told_of_a(FAIRLOCK_BUSY));
  request(&a, 500, 1000);
  join(0, 500);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(times, 0);
  pass(500);
  drain();
  answer(1, 0, 0);
  CHECK(told_of_a(FAIRLOCK_TIMEOUT));
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  drain();
  push("unsubscribe", CHANNEL("1"), NULL);
  answer(0, 0, 0);
  CHECK(told_of_a(FAIRLOCK_OK));
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(times, 0);
}

/* What was not begun does not end. */
void test_not_told_of_what_was_not_begun(void)
{
  begin_told();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1, now), FAIRLOCK_INVALID);
  request(&a, 0, 1000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(times, 0);
  answer(1, 77, 0);
  CHECK(told_of_a(FAIRLOCK_OK));
  pass(1000);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
  CHECK_EQUAL(times, 0);
}

/* A cancelled wait ends when it has left the queue, or at once without a connection. */
void test_told_of_a_cancelled_wait(void)
{
  begin_told();
  request(&a, FAIRLOCK_FOREVER, 1000);
  join(0, 500);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(times, 0);
  drain();
  answer(1, 0, 0);
  CHECK(told_of_a(FAIRLOCK_CANCELLED));
  request(&a, FAIRLOCK_FOREVER, 1000);
  break_connection();
  CHECK_EQUAL(times, 0);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK(told_of_a(FAIRLOCK_CANCELLED));
  engine.offline_ms = FAIRLOCK_FOREVER;
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  pass(11900); /* the lease is shorter than the claim that its place may still be given */
  CHECK_EQUAL(times, 0);
  pass(100); /* and what was left has ended */
  CHECK(told_of_a(FAIRLOCK_OK));
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(times, 0);
}

/* A loss is no end of an operation, unless one is under way: then the loss is told first. */
void test_told_of_a_loss_first(void)
{
  begin_told();
  hold_a();
  pass(1000);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(times, 0);
  begin_told();
  hold_a();
  request(&a, 0, 1000);
  answer(1, 78, 0);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(told_losses, 1);
  CHECK(told_of_a(FAIRLOCK_LOST));
}
