/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Re-entry: the hold count, and the lease that it asks for.
 */
#include "engine_tests.h"

void test_reentry(void)
{
  acquire_a(1000);
  request(&a, 0, 500);
  CHECK(strstr(output, " -2 ") != NULL); /* the target, not a step */
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.holds, 2);
  /* the shorter lease did not shorten the hold */
  CHECK(fairlock_engine_remaining_ms(&a, now) > 900);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 0);
  drain();
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.holds, 1);
  release_a();
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/*
 * A hold that is renewed from now on had a longer lease before: the longer one lasts, with or
 * without an answer to a renewal.
 */
void test_reentry_of_a_longer_hold(void)
{
  acquire_a(3600000);
  request(&a, 0, FAIRLOCK_RENEW);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 3500000);
  pass(10000);
  CHECK(sends(" -2 "));
  break_connection();
  pass(40000);
  CHECK_EQUAL(losses, 0);
  pass(3600000);
  CHECK_EQUAL(losses, 1);
}

/*
 * A re-entry that starts renewals says so, because later renewals do not change what the server
 * tells those who look at the lock. While it is refused, the hold keeps its own lease.
 */
void test_reentry_that_starts_renewals(void)
{
  acquire_a(10000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 10000, now), FAIRLOCK_PENDING);
  CHECK(sends(" -2 10000 77\r\n"));
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(" -3 30000+ 77\r\n"));
  feed("-WRONGTYPE x\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_REFUSED);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" -1 10000 77\r\n"));
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(" -2 30000+ 77\r\n"));
  answer(1, 77, 0);
  pass(10000);
  CHECK(sends(" -2 30000+ 77\r\n"));
}

/*
 * But if what is left is longer than the renewed lease, it says nothing: renewals do not extend that,
 * so those who look at the lock would soon take the holder for dead.
 */
void test_reentry_of_a_longer_hold_says_nothing(void)
{
  acquire_a(3600000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(" -2 3599121 77\r\n"));
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(" -3 3599121 77\r\n"));
  answer(1, 77, 0);
  pass(10000);
  CHECK(sends(" -3 30000+ 77\r\n"));
}

/*
 * What is left by our clock may be more by the server's: a re-entry asks for what covers that, too.
 */
void test_reentry_asks_for_what_is_left(void)
{
  acquire_a(10000);
  pass(1000);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 8842);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 100, now), FAIRLOCK_PENDING);
  CHECK(sends(" 8982 "));
}

/*
 * Nor is the lease shortened by a re-entry that starts renewals and comes before the confirmation.
 */
void test_reentry_confirms_a_longer_hold(void)
{
  acquire_a(60000);
  fairlock_engine_release(&a, now);
  drain();
  answer(1, 0, 0);
  request(&a, FAIRLOCK_FOREVER, 60000);
  answer(0, -1, 0);
  pass(2000);
  drain();
  answer(1, 88, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(sends(" -1 60000 88\r\n"));
  feed("-CLUSTERDOWN The cluster is down\r\n");
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 59061);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(" -2 59985 88\r\n"));
}

void test_too_many_holds(void)
{
  acquire_a(1000);
  a.holds = UINT16_MAX - 1; /* as after so many re-entries */
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends(" -65535 "));
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(a.holds, UINT16_MAX);
}

/*
 * A hold count beyond what an int of 16 bits holds. Sent as a negative number, it would end
 * anybody's hold.
 */
void test_reentry_beyond_32767(void)
{
  acquire_a(1000);
  a.holds = 32767; /* as after so many re-entries */
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends(" -32768 "));
  answer(1, 77, 0);
  CHECK_EQUAL(a.holds, 32768);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends(" -32769 "));
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" -32768 "));
  CHECK(strstr(output, " 32768 ") == NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.holds, 32768);
}

/* A re-entry that fails leaves the hold as it was: it ends at its time. */
void test_refused_reentry_keeps_the_lease(void)
{
  acquire_a(5000);
  request(&a, 0, FAIRLOCK_RENEW);
  feed("-OOM x\r\n");
  pass(500);
  CHECK(sends("EVALSHA")); /* the re-entry is tried again */
  feed("-WRONGTYPE x\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_REFUSED);
  CHECK_EQUAL(a.holds, 1);
  for (int i = 0; i < 8; i++) {
    pass(500);
    CHECK(sends_nothing());
  }
  pass(500);
  CHECK_EQUAL(losses, 1);
}

/*
 * The device slept for longer than offline_ms, and then reads that its last heartbeat came too
 * late: the wait goes on.
 */
void test_expired_while_asleep(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  drain();
  now += 15000;
  fairlock_engine_tick(&engine, now);
  answer(-2, 0, 0);
  pass(0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(engine.round_trip_ms, 0); /* 15 s say nothing of the network */
  CHECK(sends("EVALSHA"));
  answer(0, -1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
}
