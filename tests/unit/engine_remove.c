/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a handle out.
 */
#include "engine_tests.h"

void test_remove_ends_the_subscription(void)
{
  queue_a(500);
  cancel_a();
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("UNSUBSCRIBE"));
  push("unsubscribe", CHANNEL("1"), NULL);
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&b, now), FAIRLOCK_OK);
  CHECK(engine.first == NULL);
}

/* Also if the hold was lost so long ago that nothing of it can be left but that. */
void test_remove_unsubscribes_long_after_a_loss(void)
{
  queue_a(FAIRLOCK_FOREVER);
  grant(CHANNEL("1"), "99", 0);
  drain();
  answer(1, 99, 0);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 0);
  pass(60000);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  pass(0);
  CHECK(sends("UNSUBSCRIBE"));
  push("unsubscribe", CHANNEL("1"), NULL);
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/* An UNSUBSCRIBE that is refused for now is sent again, with the leave or after it. */
void test_remove_unsubscribes_again(void)
{
  queue_a(500);
  cancel_a();
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("UNSUBSCRIBE"));
  feed("-BUSY Redis is busy running a script\r\n-BUSY Redis is busy running a script\r\n");
  pass(500);
  CHECK(sends("UNSUBSCRIBE"));
  feed("-BUSY Redis is busy running a script\r\n");
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  pass(500);
  CHECK(sends("UNSUBSCRIBE"));
  push("unsubscribe", CHANNEL("1"), NULL);
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/*
 * The server's clock was set back by an hour, so an acquire may arrive for that long: removal does
 * not wait for it.
 */
void test_remove_comes_to_an_end(void)
{
  begin();
  request(&a, FAIRLOCK_FOREVER, 1000);
  break_connection();
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  pass(50);
  greet_late(-3600000);
  drain();
  answer(0, 0, -3600000);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  for (int i = 0; i < 11; i++) {
    drain();
    if (output_size > 0) answer(1, 0, -3600000);
    pass(1000);
  }
  CHECK(a.result != FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/*
 * A handle that owes the server nothing is taken out after offline_ms at the latest, whatever the
 * server answers to its UNSUBSCRIBE.
 */
void test_remove_is_refused_for_now(void)
{
  queue_a(500);
  config.offline_ms = engine.offline_ms = 1000;
  cancel_a();
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  for (int i = 0; i < 11 && a.result == FAIRLOCK_PENDING; i++) {
    if (sends("UNSUBSCRIBE")) push("unsubscribe", CHANNEL("1"), NULL);
    if (output_size > 0) feed("-LOADING Redis is loading the dataset in memory\r\n");
    pass(100);
  }
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/*
 * If there is no time for its UNSUBSCRIBE, because the device has slept, or it was refused for now, the
 * subscription ends with the connection, so the handle gets no message once it is out.
 */
void test_remove_has_no_time_to_unsubscribe(void)
{
  queue_a(500);
  cancel_a();
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  pass(10000);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

static void refuse(int result)
{
  drain();
  feed("-NOPERM no\r\n");
  CHECK_EQUAL(a.result, result);
}

static void leave_refused(void)
{
  queue_a(500);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  refuse(FAIRLOCK_CANCELLED);
}

static void release_refused(void)
{
  acquire_a(1000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  refuse(FAIRLOCK_DENIED);
}

static void remove_refused(const char *answers)
{
  CHECK_EQUAL(engine.last_error, FAIRLOCK_OK); /* other handles are served */
  pass(500);
  CHECK(sends_nothing()); /* a battery would not last */
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0\r\n"));
  if (strstr(output, "UNSUBSCRIBE") != NULL) push("unsubscribe", CHANNEL("1"), NULL);
  if (answers != NULL) feed(answers);
  else answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/* What a refused leave or release has left is ended when the handle is taken out, if that is allowed. */
void test_remove_ends_what_was_refused(void)
{
  leave_refused();
  remove_refused(NULL);
  leave_refused();
  remove_refused("-NOPERM no\r\n");
  release_refused();
  remove_refused(NULL);
  release_refused();
  remove_refused("-NOPERM no\r\n");
}

/* Otherwise the next try leaves, or it ends with its time. */
void test_refused_leave_is_owed(void)
{
  leave_refused();
  request(&a, 0, 1000);
  answer(0, 1000, 0);
  CHECK(sends(" 0 0\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  request(&a, 0, 1000);
  answer(0, 1000, 0);
  CHECK(sends_nothing());
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  release_refused();
  for (int i = 0; i < 120; i++) {
    CHECK(sends_nothing());
    pass(100);
  }
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVAL"));
  answer(0, 1000, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY); /* it owes nothing more */
}

/*
 * A refused SUBSCRIBE gets its own reply, and a handle that has to leave is not taken out before it
 * has left.
 */
void test_remove_while_subscribing(void)
{
  lose_while_subscribing();
  request(&b, 0, 1000);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  drain();
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  feed("-NOPERM no channel\r\n");
  answer(1, 99, 0); /* to a's acquire */
  CHECK_EQUAL(b.result, FAIRLOCK_PENDING);
  answer(1, 100, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_OK);
  CHECK_EQUAL(b.token, 100);
  answer(1, 0, 0);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

/*
 * The memory of a handle that was taken out is the caller's again, even if half of its request was
 * sent.
 */
void test_remove_in_the_middle_of_a_request(void)
{
  size_t size;
  set_up();
  config.send_size = FAIRLOCK_SEND_MIN;
  config.offline_ms = engine.offline_ms = 100;
  greet();
  CHECK_EQUAL(fairlock_engine_force(&a, &anyone, now), FAIRLOCK_PENDING);
  fairlock_engine_output(&engine, &size, now);
  fairlock_engine_sent(&engine, size);
  pass(100);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
  memset(&a, 0, sizeof a);
  CHECK(sends_nothing());
  /* the other half will not come */
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  break_connection();
  greet();
  request(&b, 0, 1000);
  answer(1, 5, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_OK);
}

/* The same with half of a message to it. */
void test_remove_in_the_middle_of_a_message(void)
{
  begin();
  feed(">3\r\n$7\r\nmessage\r\n$56\r\n" CHANNEL("1") "\r\n");
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
  memset(&a, 0, sizeof a);
  feed("$4\r\n99 5\r\n");
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

/* A handle whose removal timed out can be used again, and holds only what it was given. */
void test_acquire_after_a_removal(void)
{
  acquire_a(1000);
  release_a();
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  drain();
  break_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_OK); /* there is no subscription any more */
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  greet();
  pass(2200); /* for the leave in doubt */
  drain();
  break_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
}

/* Those that were made before and after it are still there. */
void test_remove_one_of_several(void)
{
  struct fairlock c;
  begin();
  CHECK_EQUAL(fairlock_engine_add(&engine, &c, "gate", 4), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&b, now), FAIRLOCK_OK);
  request(&a, 0, 1000);
  CHECK(strstr(output, ":1 17") != NULL);
  request(&c, 0, 1000);
  CHECK(strstr(output, ":3 17") != NULL);
  answer(0, 500, 0);
  answer(0, 500, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  CHECK_EQUAL(c.result, FAIRLOCK_BUSY);
}

/*
 * What a handle owes the server is sent when there is a connection again, and until then its memory
 * is in use.
 */
void test_remove_offline(void)
{
  queue_a(60000);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  break_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  pass(10000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT);
  greet();
  CHECK(sends("EVALSHA"));
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  answer(0, 0, 0);
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/* Offline for longer than anything of the handle can last on the server, nothing is owed. */
void test_remove_offline_for_long(void)
{
  queue_a(60000);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  break_connection();
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  pass(38000); /* a lease, a waiter timeout, and the life of a request */
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/*
 * A handle is taken out while its UNSUBSCRIBE is not answered: nobody could count its answer, so
 * the connection ends.
 */
void test_remove_with_a_subscription_unanswered(void)
{
  acquire_a(1000);
  release_a();
  config.offline_ms = engine.offline_ms = 100;
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("UNSUBSCRIBE\r\n"));
  pass(100);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}
