/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants by message: which are believed, and for how long.
 */
#include "engine_tests.h"

/*
 * The lock may have been handed to a place in the queue that was being left when the next acquire
 * came. Nobody has confirmed that handover, so the lease is not yet the one that was asked for.
 */
void test_grant_to_an_earlier_place(void)
{
  queue_a(FAIRLOCK_FOREVER);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  break_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 500, now), FAIRLOCK_PENDING);
  pass(50);
  greet();
  CHECK(sends("EVALSHA"));
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(sends(" -1 500 77\r\n"));
  answer(1, 77, 0);
  CHECK(sends_nothing());
}

void test_heartbeat_and_grant(void)
{
  queue_a(FAIRLOCK_FOREVER);
  CHECK(fairlock_engine_deadline(&engine, now) <= 2000);
  pass(2000);
  CHECK(sends("EVALSHA"));
  CHECK(strstr(output, "SUBSCRIBE") == NULL);
  answer(0, -1, 0);
  pass(1000);
  grant(CHANNEL("1"), "99", 10);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.token, 99);
  uint32_t held = fairlock_engine_remaining_ms(&a, now);
  CHECK(held > 4000 && held < 5000);
  CHECK(sends(" -1 ")); /* confirms: only if held */
  answer(1, 99, 0);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 29000);
  CHECK_EQUAL(engine.counters.granted, 1);
  CHECK_EQUAL(engine.counters.granted + engine.counters.polled, 1);
  CHECK_EQUAL(engine.counters.renewals, 0); /* a confirmation is none */
  pass(10000);
  CHECK(sends(" -1 "));
  answer(1, 99, 0);
  CHECK_EQUAL(engine.counters.renewals, 1);
}

void test_grant_that_is_too_old(void)
{
  queue_a(FAIRLOCK_FOREVER);
  now += 6000; /* frozen */
  grant(CHANNEL("1"), "99", 5900);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  answer(0, -1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
}

/*
 * A late heartbeat has put it into the queue once more, and the lock was handed to that place. The
 * message is too old to believe in when a try is under way, which then finds the claim. It has to be
 * confirmed, and given back if the try is too late.
 */
void test_try_after_a_grant_that_is_too_old(void)
{
  for (int held = 0; held < 2; held++) {
    queue_a(FAIRLOCK_FOREVER);
    CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
    CHECK(sends("EVALSHA"));
    answer(1, 0, 0);
    CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
    CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 60000, now), FAIRLOCK_PENDING);
    CHECK(sends(" 0 60000\r\n"));
    now += 6000; /* frozen */
    grant(CHANNEL("1"), "99", 5900);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    answer(held, held ? 99 : 1000, 0);
    CHECK_EQUAL(a.result, held ? FAIRLOCK_OK : FAIRLOCK_PENDING);
    pass(1);
    CHECK(sends(held ? " -1 60000 99\r\n" : " 0 0\r\n"));
    answer(1, held ? 99 : 0, 0);
    CHECK_EQUAL(a.result, held ? FAIRLOCK_OK : FAIRLOCK_BUSY);
    CHECK(sends_nothing());
  }
}

/*
 * The greeting asks for the time at the moment it is sent, not at a later call that finds nothing
 * more to send.
 */
void test_grant_after_a_slow_greeting(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  CHECK(sends("TIME"));
  pass(1500);
  CHECK(sends_nothing());
  feed("%1\r\n$2\r\nid\r\n:74\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"); /* that of 1500 ms ago */
  CHECK(fairlock_engine_ready(&engine));
  drain();
  push("message", CHANNEL("1"), "99 1700000000000 5000");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) <= 3500);
}

/*
 * Anyone who may publish on a waiter's channel can forge a grant: it is believed until the answer
 * to the confirmation.
 */
void test_forged_grant(void)
{
  queue_a(FAIRLOCK_FOREVER);
  grant(CHANNEL("1"), "99", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) < 5000);
  CHECK(sends(" -1 "));
  answer(-1, 0, 0);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
}

/* A later release may say more behind what a grant needs. */
void test_grant_that_says_more(void)
{
  queue_a(FAIRLOCK_FOREVER);
  push("message", CHANNEL("1"), "99 1700000000000 5000 and more");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 4000);
}

void test_grant_from_another_time(void)
{
  queue_a(FAIRLOCK_FOREVER);
  push("message", CHANNEL("1"), "99 5 5000"); /* the server's clock was set back */
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  answer(1, 99, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(engine.counters.polled, 1);
}

/* The time that it names is a minute ahead: no grant is good for more than a waiter timeout. */
void test_grant_from_the_future(void)
{
  queue_a(FAIRLOCK_FOREVER);
  grant(CHANNEL("1"), "99", -60000);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) < 5000);
}

void test_unexpected_grant_is_given_back(void)
{
  queue_a(FAIRLOCK_FOREVER);
  cancel_a();
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  grant(CHANNEL("1"), "99", 0);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  CHECK(sends("EVALSHA"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
}

/* A claim too short for two clocks to agree on is not believed. */
void test_grant_for_no_time(void)
{
  for (int64_t claim_ms = 0; claim_ms <= 3; claim_ms++) {
    char text[64];
    size_t size = sizeof "99 1700000000500 " - 1;
    memcpy(text, "99 1700000000500 ", size);
    text[size + resp_format_number(text + size, claim_ms)] = 0;
    queue_a(FAIRLOCK_FOREVER);
    push("message", CHANNEL("1"), text);
    CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), claim_ms == 3 ? 1 : 0);
  }
}

/* A claim of any length in a message is believed for no longer than a waiter timeout. */
void test_grant_for_too_long(void)
{
  queue_a(FAIRLOCK_FOREVER);
  push("message", CHANNEL("1"), "99 1700000000000 9000000000");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 4900);
  CHECK(fairlock_engine_remaining_ms(&a, now) <= 5000);
}

/*
 * A lease that is shorter than the claim of a handover is what the confirmation asks for, and what
 * is believed.
 */
void test_short_lease_after_a_grant(void)
{
  begin();
  request(&a, FAIRLOCK_FOREVER, 500);
  join(0, -1);
  grant(CHANNEL("1"), "99", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) < 500);
  CHECK(sends(" -1 500 99\r\n"));
  answer(1, 99, 0);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 450);
  pass(500);
  CHECK_EQUAL(losses, 1);
}

/* The same, when it was learned by asking: there may be a claim to be confirmed. */
void test_short_lease_after_a_poll(void)
{
  begin();
  request(&a, FAIRLOCK_FOREVER, 500);
  join(0, -1);
  pass(2000);
  drain();
  answer(1, 99, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(sends(" -1 500 99\r\n"));
}

/*
 * Nor does one that is renewed wait for its first renewal: until the server knows that the claim was
 * taken, it shows the lock as handed over and not confirmed.
 */
void test_renewed_lease_after_a_poll(void)
{
  for (int reconnect = 0; reconnect < 2; reconnect++) {
    queue_a(FAIRLOCK_FOREVER);
    if (reconnect) {
      break_connection();
      pass(50);
      greet();
    } else {
      pass(2000);
    }
    CHECK(sends(" 5000 30000+\r\n"));
    if (reconnect) push("subscribe", CHANNEL("1"), NULL);
    answer(1, 99, 0);
    CHECK_EQUAL(a.result, FAIRLOCK_OK);
    CHECK(sends(" -1 30000+ 99\r\n"));
    answer(1, 99, 0);
    CHECK_EQUAL(engine.counters.renewals, 0);
    CHECK(sends_nothing());
    pass(10000);
    CHECK(sends(" -1 30000+ 99\r\n"));
  }
}
