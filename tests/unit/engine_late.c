/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that arrive late: what a broken connection carried may still be carried out.
 */
#include "engine_tests.h"

/* The acquire is under way on a connection that broke, and again on the next one. */
static void acquire_twice(uint32_t wait_ms, uint32_t lease_ms)
{
  begin();
  request(&a, wait_ms, lease_ms);
  reconnect();
  drain();
}

/*
 * An acquire under way on a broken connection may arrive after the release: it is undone when it
 * has expired.
 */
void test_ghost_of_an_acquire(void)
{
  acquire_twice(3000, 1000);
  join(1, 5);
  release_a();
  CHECK_EQUAL(a.result, FAIRLOCK_OK); /* the caller need not wait for it */
  CHECK(sends_nothing());
  pass(2100);
  CHECK(sends("EVALSHA"));
  answer(1, 0, 0);
  pass(30000);
  CHECK(sends_nothing());
}

/* It may even arrive after the release was carried out, but before its answer is here. */
void test_ghost_of_an_acquire_before_the_answer(void)
{
  acquire_twice(3000, 5000);
  join(1, 5);
  pass(1850);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  pass(200); /* now it is void */
  answer(1, 0, -190);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  pass(0);
  CHECK(sends("EVALSHA"));
  answer(1, 0, 0);
  pass(30000);
  CHECK(sends_nothing());
}

/*
 * A release that is repeated finds its hold ended, and says nothing of what arrived between the
 * two.
 */
void test_ghost_of_an_acquire_between_releases(void)
{
  acquire_twice(3000, 5000);
  join(1, 5);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  break_connection();
  pass(2100);
  greet();
  pass(10);
  CHECK(sends(" 5\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  pass(0);
  CHECK(sends("EVALSHA"));
  CHECK(strstr(output, " 5\r\n") == NULL);
  answer(1, 0, 0);
  pass(30000);
  CHECK(sends_nothing());
}

/*
 * The wait was given up, and its acquire may still arrive, for its whole lease: the leave is repeated for
 * that long, however long no connection can be made.
 */
void test_ghost_of_an_acquire_with_a_long_lease(void)
{
  begin();
  request(&a, FAIRLOCK_FOREVER, 60000);
  break_connection();
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  pass(50);
  greet();
  drain();
  answer(1, 0, 0);
  break_connection();
  pass(30000);
  greet();
  CHECK(sends(" 0 0\r\n"));
  answer(1, 0, 0);
  pass(60000);
  CHECK(sends_nothing());
}

/* A try, too, may arrive late, and begin a hold that the caller was told it has not. */
void test_ghost_of_a_try(void)
{
  acquire_twice(0, 30000);
  answer(0, 500, 0);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  CHECK(sends_nothing());
  pass(2100);
  CHECK(sends("EVALSHA"));
  answer(1, 0, 0);
  pass(30000);
  CHECK(sends_nothing());
}

/*
 * A leave under way on a broken connection would end the next hold: no acquire before it has
 * expired.
 */
void test_ghost_of_a_leave(void)
{
  queue_a(500);
  pass(500);
  drain();
  break_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_TIMEOUT);
  pass(50);
  greet();
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 5000, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  pass(1000);
  CHECK(sends_nothing());
  pass(1100);
  CHECK(sends("SUBSCRIBE\r\n"));
  join(1, 7);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/*
 * The handle leaves once more, because of an acquire that may come late, and already waits again:
 * that leave may end the new hold.
 */
void test_grant_crosses_a_leave(void)
{
  acquire_twice(FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(strstr(output, "SUBSCRIBE\r\n") != NULL);
  join(0, -1);
  cancel_a();
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  pass(2100);
  CHECK(sends("EVALSHA"));
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  grant(CHANNEL("1"), "99", 10);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 0, 0); /* it has ended the hold of 99 */
  CHECK(sends("EVALSHA"));
  answer(1, 100, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.token, 100);
}

/*
 * The server's clock was set back by an hour, so a leave may arrive for that long: offline_ms ends
 * the wait for that.
 */
void test_ghost_of_a_leave_in_the_past(void)
{
  queue_a(500);
  pass(500);
  drain();
  break_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_TIMEOUT);
  pass(50);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 60000, now), FAIRLOCK_PENDING);
  greet_late(-3600000);
  drain();
  answer(1, 5, -3600000);
  CHECK_EQUAL(b.result, FAIRLOCK_OK); /* the connection is fine */
  for (int i = 0; i < 10; i++) {
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    pass(1000);
  }
  pass(0);
  drain();
  answer(0, 0, -3600000); /* to its leave */
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
}

/* By a month even, which is more than our clock can compare. */
void test_ghost_of_a_leave_in_the_far_past(void)
{
  const int64_t month = 2592000000;
  queue_a(500);
  pass(500);
  drain();
  break_connection();
  pass(50);
  greet_late(-month);
  drain();
  answer(0, 0, -month);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 5000, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
}

/*
 * The wait of 500 ms is over, and the connection breaks under its leave, which is answered on the
 * next one.
 */
static void leave_over_a_break(void)
{
  pass(500);
  drain();
  reconnect();
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_TIMEOUT);
}

/*
 * The server's clock was once wrong by a year. Every request of that time was answered, so it
 * delays nothing later.
 */
void test_a_wrong_time_is_forgotten(void)
{
  const int64_t year = 31536000000;
  set_up();
  greet_late(year);
  pass(10);
  request(&b, 0, 1000);
  answer(0, 500, year);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 500, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  join(0, -1);
  leave_over_a_break();
  pass(2100);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 5000, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
}

/* It stays expired, however long nobody ticks: also when our clock has gone half round. */
void test_ghost_of_a_leave_is_forgotten(void)
{
  queue_a(500);
  leave_over_a_break();
  now += 30 * DAY;
  CHECK_EQUAL(fairlock_engine_acquire(&a, 5000, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  join(1, 7);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/*
 * The next connection is to another server, whose clock is ahead, and the one after it to the server
 * that may still get the leave.
 */
void test_ghost_of_a_leave_beside_another_clock(void)
{
  queue_a(500);
  pass(500);
  drain();
  break_connection();
  greet_late(3600000);
  request(&a, FAIRLOCK_FOREVER, 1000);
  CHECK(strstr(output, "SUBSCRIBE") == NULL);
  pass(1000);
  CHECK(sends_nothing());
  break_connection();
  greet();
  CHECK(sends_nothing());
  pass(800);
  CHECK(sends_nothing());
  pass(400);
  CHECK(sends("SUBSCRIBE\r\n"));
}

/* An hour in which nothing is asked for. */
static void idle_hour(void)
{
  set_up();
  engine.offline_ms = FAIRLOCK_FOREVER;
  greet();
  for (int i = 0; i < 60; i++)
    pass(60000);
}

/*
 * A clock of ours that is 1 % fast has gained 36 s in an idle hour, so the leave expires so much later
 * by the clock of the same server.
 */
void test_ghost_of_a_leave_after_an_idle_hour(void)
{
  const int64_t gained = 36000;
  idle_hour();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 500, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  pass(500);
  drain(); /* the leave, which is valid until this time of the server: */
  int64_t valid = engine.request.expires;
  CHECK(valid >= server_time() - gained + 38000);
  break_connection();
  greet_late(-gained);
  drain();
  answer(0, 0, -gained); /* to the leave that was sent again */
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  while (sends_nothing())
    pass(100);
  CHECK(strstr(output, "SUBSCRIBE") != NULL);
  CHECK(server_time() - gained > valid); /* else the leave would end this wait, or its hold */
}

/* After a fail-over the clock may be behind: what is in doubt expires all the same. */
void test_doubt_has_a_bound(void)
{
  queue_a(500);
  leave_over_a_break();
  break_connection();
  greet_late(-3600000);
  request(&a, 30000, 1000);
  CHECK(strstr(output, "SUBSCRIBE") == NULL);
  pass(2200);
  CHECK(sends("SUBSCRIBE\r\n"));
}

/* What was answered, as something later was, is not in doubt: only renewals are under way. */
void test_doubt_ends_with_later_answers(void)
{
  set_up();
  config.lease_ms = 3000;
  greet();
  request(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  join(0, -1);
  pass(2000);
  CHECK(sends("EVALSHA")); /* a heartbeat, which is unanswered yet */
  grant(CHANNEL("1"), "77", 0);
  CHECK(sends(" -1 3000+ 77\r\n"));
  pass(1000);
  CHECK(sends(" -1 3000+ 77\r\n"));
  answer(1, 77, 0);
  answer(1, 77, 0); /* to the confirmation */
  break_connection();
  CHECK_EQUAL(a.in_doubt, 0);
}

/*
 * The first request after an idle hour may be valid for long, but it was answered long ago. The server
 * that answers is late, and the one after the break may be another one, which is late, too.
 */
static void leave_after_an_answer(int64_t late, int64_t late_then)
{
  idle_hour();
  request(&b, 0, 1000);
  answer(0, 500, late);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 500, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("1"), NULL);
  answer(0, -1, late);
  pass(500);
  drain(); /* the leave, valid for 2 s */
  CHECK(engine.request.expires <= server_time() + late + 2100);
  break_connection();
  greet_late(late_then);
  drain();
  answer(0, 0, late_then);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  pass(4100);
  CHECK(sends("SUBSCRIBE\r\n"));
}

/* Our clock is 1 % fast, and has been for that hour. */
void test_answered_requests_are_not_feared(void)
{
  leave_after_an_answer(-36000, -36000);
}

/* Our clock is right, but after a fail-over the server's is a minute behind. */
void test_answered_requests_are_not_feared_after_a_failover(void)
{
  leave_after_an_answer(0, -60000);
}

/*
 * The greeting comes when the leave has expired by our clock, but not yet by the server's, which is
 * late: nothing else is sent before it has.
 */
static void leave_not_yet_expired(int64_t late)
{
  queue_a(500);
  engine.offline_ms = FAIRLOCK_FOREVER;
  pass(500);
  drain();
  int64_t valid = engine.request.expires;
  break_connection();
  pass(2000);
  greet_late(late);
  drain();
  answer(0, 0, late);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  while (sends_nothing())
    pass(1);
  CHECK(server_time() + late > valid);
}

/* Our clock is 1 % fast. */
void test_ghost_of_a_leave_by_a_fast_clock(void)
{
  leave_not_yet_expired(-20);
}

/* The clock of the same server was set back meanwhile. */
void test_ghost_of_a_leave_when_the_clock_is_set_back(void)
{
  leave_not_yet_expired(-1500);
}
