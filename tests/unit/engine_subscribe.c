/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subscriptions, and messages that come on them.
 */
#include "engine_tests.h"

void test_subscribe_refused(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 1000, 1000, now), FAIRLOCK_PENDING);
  request(&b, 0, 1000);
  feed("-NOPERM no channel\r\n");
  answer(0, -1, 0);
  answer(1, 6, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_OK); /* the replies did not get out of step */
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
}

/* A server that is busy when a handle subscribes refuses it only once. */
void test_refused_subscription_is_repeated(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  feed("-BUSY a script runs\r\n");
  feed("-BUSY a script runs\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  pass(500);
  CHECK(sends("SUBSCRIBE\r\n"));
  feed("-BUSY a script runs\r\n");
  answer(0, -1, 0); /* in the queue, but it does not listen */
  pass(500);
  CHECK(sends("SUBSCRIBE\r\n"));
  join(0, -1);
  pass(500);
  CHECK(sends_nothing());
  grant(CHANNEL("1"), "99", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* A handle that may not listen does not wait; once the right is granted, the next wait listens. */
void test_denied_subscription_is_repeated(void)
{
  begin();
  request(&a, FAIRLOCK_FOREVER, 1000);
  feed("-NOPERM no channel\r\n");
  answer(0, -1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA")); /* it leaves the queue */
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
}

/* A handle that may not UNSUBSCRIBE is taken out all the same, at once. */
void test_denied_unsubscription(void)
{
  acquire_a(1000);
  release_a();
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("UNSUBSCRIBE\r\n"));
  feed("-NOPERM no unsubscribe\r\n");
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/* A plain reply in place of a SUBSCRIBE's answer belongs to no request. */
void test_subscription_without_a_message(void)
{
  begin();
  request(&a, FAIRLOCK_FOREVER, 1000);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

void test_messages_that_are_not_ours(void)
{
  queue_a(FAIRLOCK_FOREVER);
  push("message", CHANNEL("9"), "0");
  push("message", "redisson_lock__channel:{other}:" ID ":1", "0");
  push("message", "nonsense", "0");
  push("message", "no:number", "0");
  push("pmessage", CHANNEL("1"), "0");
  push("massage", CHANNEL("1"), "0");
  feed(">2\r\n$7\r\nmessage\r\n_\r\n");
  feed(">1\r\n:1\r\n>0\r\n");
  feed(">4\r\n$7\r\nmessage\r\n+x\r\n+0\r\n+0\r\n");
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
}

/* A message of no kind known here, perhaps of a later release: the waiter asks. */
void test_messages_of_unknown_kinds(void)
{
  static const char *const texts[] = {"what", "1 what",  "-1",    "",      "0 now",
                                      "99",   "99 1 x7", "99  1", "99 1 ", "-1 1700000000000 5000"};
  queue_a(FAIRLOCK_FOREVER);
  for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
    push("message", CHANNEL("1"), texts[i]);
    CHECK(sends("EVALSHA"));
    answer(0, 1000, 0);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  }
  CHECK(sends_nothing());
}

/*
 * A handle that listens and does not wait: "ask now" is for nobody, a grant is given back; a second
 * confirmation is ignored.
 */
void test_messages_to_an_idle_handle(void)
{
  acquire_a(1000);
  release_a();
  push("subscribe", CHANNEL("1"), NULL);
  push("message", CHANNEL("1"), "0");
  CHECK(sends_nothing());
  grant(CHANNEL("1"), "99", 0);
  CHECK(sends("EVALSHA"));
  answer(1, 0, 0);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

/*
 * Who has not subscribed gets no messages: a visitor of the caller's stack would owe a leave for a
 * grant.
 */
void test_message_without_a_subscription(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_force(&a, &anyone, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 0, 0);
  grant(CHANNEL("1"), "99", 0);
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}
