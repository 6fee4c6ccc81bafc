/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases: what they find, and what is left in doubt.
 */
#include "engine_tests.h"

void test_release_finds_nothing(void)
{
  acquire_a(1000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_LOST);
  CHECK_EQUAL(losses, 1);
  CHECK(last_loss.reason == FAIRLOCK_LOSS_ENDED && last_loss.token == 77);
  CHECK_EQUAL(engine.counters.losses, 1);
}

/*
 * A heartbeat that arrived after the end of its claim has begun another hold before the release came: the
 * handle leaves.
 */
void test_release_finds_nothing_and_leaves(void)
{
  acquire_a(1000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(0, 0, 0);
  pass(10);
  CHECK(sends(" 0 0\r\n"));
  CHECK(fairlock_engine_remove(&a, now) == FAIRLOCK_PENDING);
  answer(1, 0, 0);
  pass(30000);
  CHECK(!sends(" 0 0\r\n"));
  CHECK_EQUAL(losses, 1);
}

/* The caller has had its result before: what is found then is no loss of its. */
void test_release_in_the_background_finds_nothing(void)
{
  acquire_a(30000);
  break_connection();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  pass(11000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  greet();
  CHECK(sends(" 77\r\n"));
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(losses, 0);
}

/* A release is owed for as long as its hold may last, though the handle waits for a shorter one since. */
void test_release_outlasts_a_shorter_wait(void)
{
  acquire_a(120000);
  break_connection();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  pass(11000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 300, 1000, now), FAIRLOCK_PENDING);
  pass(300);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  pass(30000);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  reconnect();
  CHECK(sends(" 0 0\r\n"));
}

/* The same, but the wait was sent on a connection that broke. It is owed until the long hold has ended. */
void test_release_outlasts_a_shorter_wait_in_doubt(void)
{
  acquire_a(120000);
  break_connection();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  pass(11000);
  greet();
  request(&a, 300, 1000);
  break_connection(); /* that acquire may be lost */
  pass(300);
  pass(40000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT); /* it still has to leave */
  pass(90000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0);
}

void test_void_request_is_repeated(void)
{
  begin();
  request(&a, 0, 1000);
  answer(-2, 0, 100000);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends(" 1700000102000 ")); /* an expiry reckoned from the new time */
  answer(1, 5, 100000);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

void test_reply_lost_on_release(void)
{
  acquire_a(5000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  break_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  pass(50);
  greet();
  CHECK(sends(" 77\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

void test_release_without_an_answer_is_unknown(void)
{
  acquire_a(30000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  break_connection();
  pass(10000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNKNOWN);
  acquire_a(30000);
  break_connection();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  pass(10000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  pass(28000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0); /* the lease has ended: nothing to do */
}

/*
 * A confirmation without an answer may have set the lease, so the release is repeated for that
 * long, though the handover itself lasts only for the waiter timeout.
 */
void test_release_outlasts_a_confirmation(void)
{
  queue_a(FAIRLOCK_FOREVER);
  grant(CHANNEL("1"), "77", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(sends(" 77\r\n"));
  break_connection();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  pass(12000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  reconnect();
  CHECK(sends(" 77\r\n"));
  answer(1, 0, 0);
  CHECK(sends_nothing());
}

/*
 * The hold has a longer lease than the one that is renewed now: the release is repeated for that
 * long.
 */
void test_release_outlasts_a_longer_lease(void)
{
  acquire_a(3600000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0);
  break_connection();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  pass(600000);
  reconnect();
  CHECK(sends(" 77\r\n"));
}

/* A release does not wait for the answer to a confirmation, and that answer is then ignored. */
void test_release_overtakes(void)
{
  queue_a(FAIRLOCK_FOREVER);
  grant(CHANNEL("1"), "99", 0);
  drain();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 99\r\n"));
  answer(1, 99, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* The release that learned of the loss was one of those that are owed. */
void test_partial_release_of_a_lost_hold(void)
{
  acquire_a(60000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 60000, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0);
  CHECK_EQUAL(a.holds, 2);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
}

/* A release that nobody answered is owed, too. */
void test_unknown_release_and_a_refused_try(void)
{
  acquire_a(60000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  break_connection();
  pass(10000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNKNOWN);
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 60000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  feed("-OOM x\r\n");
  CHECK(sends("EVALSHA"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OOM);
}
