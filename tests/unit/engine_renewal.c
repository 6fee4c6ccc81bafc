/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renewals, leases and losses.
 */
#include "engine_tests.h"

void test_renewal_and_loss(void)
{
  acquire_a(FAIRLOCK_RENEW);
  pass(10000);
  CHECK(sends(" -1 "));
  answer(1, 77, 0);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 29000);
  CHECK_EQUAL(engine.counters.renewals, 1);
  pass(10000);
  drain();
  answer(-1, 0, 0);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_NOT_HELD);
}

/*
 * A server that took over may not know of the release. The request names the token, so that the
 * server gives a new one and does not take the hold for one that goes on.
 */
void test_released_token_is_named(void)
{
  acquire_a(FAIRLOCK_RENEW);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 30000+ 77\r\n"));
}

/*
 * A server that took over, with a clock that is behind, may hand the lock over with an older token.
 * It is not believed: the acquire that is under way names the newer one, and would end that hold.
 */
void test_older_token_is_not_believed(void)
{
  acquire_a(FAIRLOCK_RENEW);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 0, 0);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 5000, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  drain();
  answer(0, -1, 0);
  for (int i = 0; i < 2; i++) {
    grant(CHANNEL("1"), i == 0 ? "66" : "77", 0);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
    CHECK(sends(" 77\r\n"));
    answer(0, -1, 0);
  }
  grant(CHANNEL("1"), "78", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.token, 78);
}

void test_another_token_is_a_loss(void)
{
  acquire_a(FAIRLOCK_RENEW);
  pass(10000);
  drain();
  answer(1, 78, 0);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
}

/*
 * a is granted the lock, and loses it, while the answer to its SUBSCRIBE and acquire is under way.
 */
/* Nothing more is sent for a lost hold: neither after NOSCRIPT nor on the next connection. */
void test_loss_while_subscribing(void)
{
  lose_while_subscribing();
  push("subscribe", CHANNEL("1"), NULL);
  feed("-NOSCRIPT x\r\n");
  CHECK(sends_nothing());
  lose_while_subscribing();
  join(1, 99); /* too late */
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  lose_while_subscribing();
  push("subscribe", CHANNEL("1"), NULL);
  feed("-OOM x\r\n");
  CHECK(sends_nothing());
  lose_while_subscribing();
  break_connection();
  pass(50);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0);
  greet();
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
  CHECK_EQUAL(losses, 1);
  request(&b, 0, 1000);
  answer(1, 0, 0); /* a has left: its acquire, or a renewal, may have come late */
  answer(1, 100, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_OK); /* not taken for an answer to a */
}

void test_lease_runs_out(void)
{
  acquire_a(1000);
  pass(1000);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
  acquire_a(1000);
  now += 1000; /* nobody serviced the client */
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
  acquire_a(1000);
  now += 1000;
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_LOST);
}

/*
 * The same when nobody has ticked for so long that, by a clock that wraps around, the end seems to
 * lie ahead.
 */
void test_lease_ran_out_long_ago(void)
{
  for (uint32_t days = 13; days < 49; days++) {
    acquire_a(days % 2 == 0 ? 1000 : FAIRLOCK_RENEW);
    now += days * DAY;
    CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
    CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_LOST);
    CHECK_EQUAL(losses, 1);
  }
  for (uint32_t days = 13; days < 49; days++) {
    acquire_a(1000);
    pass(0);
    now += days * DAY;
    CHECK_EQUAL(fairlock_engine_deadline(&engine, now), 0);
    pass(0);
    CHECK_EQUAL(losses, 1);
  }
  queue_a(FAIRLOCK_FOREVER);
  a.answered_at -= 30 * DAY; /* as of one that was refused all along */
  grant(CHANNEL("1"), "99", 0);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 4000);
}

/*
 * A holder asks whoever answers next whether it still holds, and does not wait for its next renewal.
 * One whose lease is not renewed has nothing to ask.
 */
void test_asks_after_a_break(void)
{
  acquire_a(FAIRLOCK_RENEW);
  break_connection();
  pass(50);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT);
  greet();
  CHECK(sends("EVALSHA"));
  answer(-1, 0, 0);
  CHECK_EQUAL(losses, 1);
  acquire_a(5000);
  break_connection();
  pass(50);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0);
}

/* The longest lease is believed in up to its end. */
void test_longest_lease(void)
{
  acquire_a(FAIRLOCK_DURATION_MAX_MS);
  uint32_t held = fairlock_engine_remaining_ms(&a, now);
  CHECK(held > FAIRLOCK_DURATION_MAX_MS / 64 * 63 - 10 && held < FAIRLOCK_DURATION_MAX_MS);
  for (uint32_t left = held; left > DAY; left -= DAY) {
    CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), left);
    pass(DAY);
  }
  CHECK_EQUAL(losses, 0);
  pass(DAY);
  CHECK_EQUAL(losses, 1);
}

/* An acquire that may come late would begin a hold that nobody knows of, also after a loss. */
/*
 * A grant crosses a heartbeat. The hold is ended by force, and then the heartbeat comes: it queues
 * again the client that believes it holds, which learns from the confirmation that the hold is
 * gone.
 */
void test_lost_hold_leaves_the_queue(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  drain();
  grant(CHANNEL("1"), "77", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  drain();
  answer(0, -1, 0);
  answer(-1, 0, 0);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
  CHECK(sends("EVALSHA"));
  answer(0, 0, 0);
  CHECK(sends_nothing());
}

void test_lost_hold_leaves(void)
{
  acquire_a(1000);
  pass(1000);
  CHECK_EQUAL(losses, 1);
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
  CHECK(sends("EVALSHA")); /* its last renewal may have come late */
  answer(0, 0, 0);
  CHECK_EQUAL(fairlock_engine_remove(&b, now), FAIRLOCK_OK);

  begin();
  request(&a, 0, FAIRLOCK_RENEW);
  reconnect();
  drain();
  answer(1, 77, 0);
  request(&a, 0, FAIRLOCK_RENEW);
  answer(-1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
  CHECK(sends("EVALSHA"));
  answer(0, 0, 0);
  pass(2200);
  CHECK(sends("EVALSHA")); /* the first acquire has expired by now */
  answer(0, 0, 0);
  pass(2200);
  CHECK(sends_nothing());
}

/* Of a short lease more than one renewal may be under way. */
void test_renewals_go_out_by_the_clock(void)
{
  set_up();
  config.lease_ms = 1500;
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0);
  for (int i = 0; i < 2; i++) {
    pass(500);
    CHECK(sends("EVALSHA"));
  }
}
