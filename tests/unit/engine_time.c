/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time: frozen devices, long round trips, and answers in order.
 */
#include "engine_tests.h"

/* This device is suspended for days while a task is inside recv(), where an answer lies. */
static void is_not_held(void)
{
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  pass(0);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
}

void test_suspended_before_an_answer(void)
{
  for (uint32_t days = 1; days < 50; days++) {
    for (int state = -2; state <= 1; state++) { /* to a renewal */
      acquire_a(FAIRLOCK_RENEW);
      pass(10000);
      CHECK(sends("EVALSHA"));
      now += days * DAY;
      answer(state, 77, 0);
      is_not_held();
      CHECK_EQUAL(losses, 1);
    }
    acquire_a(FAIRLOCK_RENEW);
    pass(10000);
    CHECK(sends("EVALSHA"));
    now += days * DAY;
    feed("-OOM command not allowed\r\n");
    is_not_held();
    CHECK_EQUAL(losses, 1);
    for (int holds = 1; holds <= 2; holds++) { /* to a re-entry, and to the release of one level */
      acquire_a(5000);
      CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 5000, now), FAIRLOCK_PENDING);
      CHECK(sends("EVALSHA"));
      if (holds == 2) {
        answer(1, 77, 0);
        CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
        CHECK(sends("EVALSHA"));
      }
      now += days * DAY;
      answer(1, 77, 0);
      is_not_held();
      CHECK_EQUAL(losses, 1);
    }
    for (uint32_t wait_ms = 0; wait_ms <= 1000; wait_ms += 1000) { /* to an acquire */
      set_up();
      greet();
      CHECK_EQUAL(fairlock_engine_acquire(&a, wait_ms, 5000, now), FAIRLOCK_PENDING);
      drain();
      if (wait_ms > 0) push("subscribe", CHANNEL("1"), NULL);
      now += days * DAY;
      answer(1, 77, 0);
      is_not_held();
      CHECK(a.result != FAIRLOCK_OK);
    }
    acquire_a(5000); /* to a release, which has ended the hold all the same */
    CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
    CHECK(sends("EVALSHA"));
    now += days * DAY;
    answer(1, 0, 0);
    is_not_held();
    CHECK_EQUAL(a.result, FAIRLOCK_OK);
    queue_a(FAIRLOCK_FOREVER); /* a grant */
    uint32_t asked_at = now;
    char text[64];
    size_t size = resp_format_number(text, 99);
    text[size++] = ' ';
    size += resp_format_number(text + size, server_time() + 500);
    memcpy(text + size, " 5000", sizeof " 5000");
    now = asked_at + days * DAY;
    push("message", CHANNEL("1"), text);
    is_not_held();
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  }
}

/*
 * A device that slept for weeks goes on waiting, unless the time of the wait is over; a missing
 * answer is noticed.
 */
void test_frozen_for_weeks(void)
{
  for (uint32_t days = 1; days < 37; days++) {
    queue_a(FAIRLOCK_FOREVER);
    pass(0);
    pass(days * DAY);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    CHECK(sends("EVALSHA"));
    queue_a(60000);
    pass(0);
    pass(days * DAY);
    drain();
    answer(0, 0, 0);
    CHECK_EQUAL(a.result, FAIRLOCK_TIMEOUT);
    begin();
    request(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    pass(0);
    pass(days * DAY);
    if (fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE) break_connection();
    if (fairlock_engine_ready(&engine)) answer(0, -1, 0);
    drain();
    if (fairlock_engine_ready(&engine)) answer(0, 0, 0);
    if (fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE) break_connection();
    CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  }
}

/* Nobody serviced the client for weeks: then the connection is wanted at once, and only once. */
void test_idle_for_weeks(void)
{
  for (uint32_t days = 1; days < 60; days += 7) {
    set_up();
    pass(0);
    break_connection();
    now += days * DAY;
    CHECK_EQUAL(fairlock_engine_acquire(&a, 5000, 1000, now), FAIRLOCK_PENDING);
    CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT);
    pass(0);
    CHECK(fairlock_engine_deadline(&engine, now) >= 5000);
    greet();
    drain();
    join(1, 7);
    CHECK_EQUAL(a.result, FAIRLOCK_OK);
  }
}

/* A handle that is FREE has nothing to do: a device that sleeps is not woken for it. */
void test_nothing_is_due_when_free(void)
{
  begin();
  pass(5000); /* beyond the wrap-around */
  uint32_t idle = fairlock_engine_deadline(&engine, now);
  request(&a, 0, FAIRLOCK_RENEW);
  answer(1, 77, 0);
  release_a();
  pass(0);
  CHECK_EQUAL(fairlock_engine_deadline(&engine, now), idle);
}

/* Nor one that has lost its hold: it renews nothing. */
void test_nothing_is_due_when_lost(void)
{
  begin();
  pass(5000);
  uint32_t idle = fairlock_engine_deadline(&engine, now);
  request(&a, 0, FAIRLOCK_RENEW);
  answer(1, 77, 0);
  pass(10000);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(losses, 1);
  pass(0);
  CHECK(fairlock_engine_deadline(&engine, now) >= idle - 10000);
}

/* The end of what was in doubt is no heartbeat's time. */
void test_no_heartbeat_when_doubt_ends(void)
{
  begin();
  request(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  break_connection();
  pass(100);
  greet();
  pass(100);
  drain();
  uint32_t sent_at = now;
  join(0, -1);
  CHECK_EQUAL(a.in_doubt, 1);
  while (sends_nothing())
    pass(1);
  CHECK_EQUAL(a.in_doubt, 0);
  CHECK_EQUAL(now - sent_at, 2000);
}

/* The time for an answer runs from when the request was begun, however slowly the link takes it. */
void test_slow_link(void)
{
  size_t size;
  uint32_t begun;
  set_up();
  config.send_size = FAIRLOCK_SEND_MIN;
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 20000, 1000, now), FAIRLOCK_PENDING);
  begun = now;
  while (fairlock_engine_output(&engine, &size, now), size > 0) {
    fairlock_engine_sent(&engine, size);
    if (now - begun < 2400) pass(300);
  }
  CHECK_EQUAL(now - begun, 2400);
  CHECK_EQUAL(fairlock_engine_deadline(&engine, now), 0);
  pass(0);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

/* The greeting takes this long, and gives the first measure of the round trip. */
static void greet_far(uint32_t ms)
{
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  drain();
  pass(ms);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
  now -= ms / 2;
  char text[] = "%1\r\n$2\r\nid\r\n:74\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n";
  now += ms / 2;
  feed(text);
  CHECK(fairlock_engine_ready(&engine));
}

/* With 5 s there and back, heartbeats go out by the clock, and the answers to all of them count. */
void test_long_round_trip(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  greet_far(5000);
  CHECK(sends("SUBSCRIBE\r\n"));
  CHECK(strstr(output, " 15000 ") != NULL); /* the waiter timeout: three round trips */
  pass(5900);
  CHECK(sends_nothing());
  pass(100);
  CHECK(sends("EVALSHA")); /* before the first is answered */
  CHECK(strstr(output, "SUBSCRIBE") == NULL);
  pass(4000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
  join(1, 77);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  uint32_t held = fairlock_engine_remaining_ms(&a, now);
  CHECK(held > 19000 && held < 20000); /* of the first request's 30000 */
}

/* a waits with a waiter timeout of 60 s and this claim; the server is so far away, ms. */
static void queue_with_claim(uint32_t claim_ms, uint32_t round_trip_ms)
{
  set_up();
  config.waiter_ms = 60000;
  config.claim_ms = claim_ms;
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  greet_far(round_trip_ms);
}

/* A claim of its own stands behind the waiter timeout, and is three round trips, too. */
void test_claim(void)
{
  queue_with_claim(2000, 100);
  CHECK(sends(" 60000C2000 30000+\r\n"));
  push("message", CHANNEL("1"), "99 1700000000000 2000");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) < 2000);
  CHECK(sends(" -1 30000+ 99\r\n")); /* who does not wait names none */
  queue_with_claim(2000, 5000);
  CHECK(sends(" 60000C15000 30000+\r\n"));
  queue_with_claim(60000, 100); /* says nothing else than no word */
  CHECK(sends(" 60000 30000+\r\n"));
}

/*
 * Whatever round trip is measured, an answer is late after one and a half waiter timeouts at most:
 * three unanswered heartbeats last as long.
 */
void test_late_answers_and_the_waiter_timeout(void)
{
  for (uint32_t round_trip = 0; round_trip < 60000; round_trip += 100) {
    set_up();
    config.response_ms = 7500;
    config.connect_ms = engine.connect_ms = 60000;
    greet_far(round_trip);
    CHECK(engine.response_ms >= 7500 && engine.response_ms >= 2 * round_trip);
    CHECK(engine.response_ms <= engine.waiter_ms / 2 * 3);
  }
}

/*
 * While an answer is late nothing more is sent: the server may have lost the request, and the next
 * answer would be taken for it.
 */
void test_nothing_is_sent_behind_a_late_answer(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  CHECK(sends("EVALSHA"));
  now += 2000; /* the next heartbeat is due, and this answer */
  fairlock_engine_tick(&engine, now);
  CHECK(sends_nothing());
  pass(0);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

/* The longest offline_ms, and four round trips besides, is still a time that lies ahead. */
void test_longest_patience(void)
{
  set_up();
  config.offline_ms = engine.offline_ms = FAIRLOCK_DURATION_MAX_MS;
  greet_far(5000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  pass(1000);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
}

/* No more than three requests of a handle are unanswered. */
void test_three_unanswered(void)
{
  set_up();
  config.response_ms = 7500;
  config.offline_ms = engine.offline_ms = FAIRLOCK_FOREVER;
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  for (int i = 0; i < 3; i++) {
    CHECK(sends("EVALSHA"));
    pass(2000);
  }
  CHECK(sends_nothing());
  pass(1000);
  CHECK(sends_nothing());
  join(0, -1);
  pass(0);
  CHECK(sends("EVALSHA"));
}

/*
 * A clock of ours that runs fast makes a request expire later by the server's: what may still arrive
 * is in doubt for so much longer.
 */
void test_fast_clock_and_doubt(void)
{
  acquire_a(60000);
  pass(40000);
  request(&b, 0, 1000);
  break_connection();
  greet_late(-400);
  CHECK(engine.in_doubt_ms > 2400);
}

/* When one of them is answered, the next is late by its own time. */
void test_second_answer_is_late(void)
{
  set_up();
  config.response_ms = 7000;
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 60000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  pass(2000);
  CHECK(sends("EVALSHA"));
  join(0, -1);
  uint32_t left = engine.response_ms;
  CHECK(left >= 7000);
  pass(left - 1);
  CHECK((fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE) == 0);
  pass(1);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

/*
 * Answers come in the order of the requests, however those of three handles lie between each other.
 */
void test_answers_in_order(void)
{
  static struct fairlock c;
  set_up();
  config.response_ms = 7500;
  greet();
  CHECK_EQUAL(fairlock_engine_add(&engine, &c, "door", 4), FAIRLOCK_OK);
  request(&a, FAIRLOCK_FOREVER, 60000);
  pass(2000);
  drain(); /* a's heartbeat */
  request(&b, FAIRLOCK_FOREVER, 60000);
  pass(2000);
  drain(); /* the next of both */
  request(&c, 0, 60000);
  push("message", CHANNEL("1"),
       "0"); /* three of a's are unanswered: it asks when one is answered */
  CHECK(sends_nothing());
  join(0, 0x40000000); /* a's first: the hold lasts for long */
  answer(0, -1, 0);    /* a's second */
  push("subscribe", CHANNEL("2"), NULL);
  answer(0, -1, 0);  /* b's first */
  answer(0, -1, 0);  /* one of a and b */
  answer(1, 77, 0);  /* the other */
  answer(0, 500, 0); /* c's */
  CHECK_EQUAL(c.result, FAIRLOCK_BUSY);
  CHECK((a.result == FAIRLOCK_OK) != (b.result == FAIRLOCK_OK));
  pass(0);
  CHECK(sends("EVALSHA"));
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

/* Of those that wait to send, the one that has waited for longest does, whichever was made first. */
static void check_turn(struct fairlock *first, struct fairlock *second, const char *id)
{
  request(&a, 0, 1000);
  pass(10);
  CHECK_EQUAL(fairlock_engine_acquire(first, 0, 1000, now), FAIRLOCK_PENDING);
  pass(10);
  CHECK_EQUAL(fairlock_engine_acquire(second, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  answer(0, 500, 0);
  CHECK(sends(id));
  answer(0, 500, 0);
  CHECK_EQUAL(first->result, FAIRLOCK_BUSY);
  CHECK_EQUAL(second->result, FAIRLOCK_PENDING);
  drain();
  answer(0, 500, 0);
  CHECK_EQUAL(second->result, FAIRLOCK_BUSY);
}

void test_turns(void)
{
  struct fairlock c;
  begin();
  engine.window = 1;
  CHECK_EQUAL(fairlock_engine_add(&engine, &c, "gate", 4), FAIRLOCK_OK);
  check_turn(&b, &c, ":2 17");
  check_turn(&c, &b, ":3 17");
}

/* The connection is dead when the oldest request is late, whichever handle has sent that. */
static void check_oldest(struct fairlock *first, struct fairlock *second)
{
  begin();
  request(first, 0, 1000);
  pass(500);
  request(second, 0, 1000);
  pass(0);
  CHECK_EQUAL(fairlock_engine_deadline(&engine, now), 1500);
  pass(1500);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

void test_oldest_request(void)
{
  check_oldest(&a, &b);
  check_oldest(&b, &a);
}

/* Those that cannot send yet end in time, and nothing spins meanwhile. */
void test_ends_before_it_can_send(void)
{
  struct fairlock c;
  uint32_t began;
  begin();
  engine.window = 1;
  CHECK_EQUAL(fairlock_engine_add(&engine, &c, "gate", 4), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  CHECK_EQUAL(fairlock_engine_acquire(&b, 1500, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  pass(10);
  began = now;
  CHECK_EQUAL(fairlock_engine_acquire(&c, 700, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  pass(0);
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
  CHECK_EQUAL(fairlock_engine_deadline(&engine, now), 700);
  while (c.result == FAIRLOCK_PENDING && now - began < 1000)
    pass(fairlock_engine_deadline(&engine, now));
  CHECK_EQUAL(c.result, FAIRLOCK_TIMEOUT);
  CHECK_EQUAL(now - began, 700);
  CHECK_EQUAL(b.result, FAIRLOCK_PENDING);
}

/* Sequence numbers have to be told apart: at most 30000 requests await their answers. */
void test_too_many_unanswered(void)
{
  begin();
  engine.last_sent = (uint16_t)(engine.last_received + 30000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  engine.last_received++;
  drain();
  CHECK(output_size > 0);
}

/* A reply to a request of which the server has half. */
void test_answer_before_the_end_of_a_request(void)
{
  size_t size;
  set_up();
  config.send_size = FAIRLOCK_SEND_MIN;
  greet();
  request(&b, 0, 1000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  fairlock_engine_output(&engine, &size, now);
  fairlock_engine_sent(&engine, size);
  answer(0, 1, 0); /* to b */
  CHECK_EQUAL(b.result, FAIRLOCK_BUSY);
  CHECK((fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE) == 0);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

/* A device that was frozen reads what has piled up before it judges the server by it. */
void test_frozen_device_reads_first(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  CHECK(sends("EVALSHA"));
  now += 60000;
  fairlock_engine_tick(&engine, now);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_deadline(&engine, now), 0);
  CHECK((fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE) == 0);
  answer(0, -1, -60000);
  pass(0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK((fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE) == 0);

  queue_a(FAIRLOCK_FOREVER); /* and one that finds nothing */
  pass(2000);
  drain();
  now += 60000;
  fairlock_engine_tick(&engine, now);
  fairlock_engine_received(&engine, 0, now);
  fairlock_engine_tick(&engine, now);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

/*
 * Two heartbeats were answered while the device was frozen for longer than offline_ms, and it reads
 * one answer after the other. The next heartbeat is overdue by then, but no answer is.
 */
void test_frozen_device_reads_one_by_one(void)
{
  queue_a(FAIRLOCK_FOREVER);
  engine.response_ms = 3000;
  pass(2000);
  CHECK(sends("EVALSHA"));
  pass(2000);
  CHECK(sends("EVALSHA"));
  now += 60000;
  fairlock_engine_tick(&engine, now);
  answer(0, -1, -60000);
  fairlock_engine_tick(&engine, now);
  answer(0, -1, -60000);
  fairlock_engine_tick(&engine, now);
  fairlock_engine_received(&engine, 0, now);
  pass(0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  answer(1, 5, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* The next link is so fast that it forgets the slow one before what that had carried has expired. */
void test_ghost_of_a_very_slow_link(void)
{
  const int64_t late = -8000; /* of the server's clock, behind that of the fixture */
  set_up();
  engine.connect_ms = 10000;
  greet_far(8000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 8500, 1000, now), FAIRLOCK_PENDING);
  drain();
  pass(8000);
  push("subscribe", CHANNEL("1"), NULL);
  answer(0, -1, late);
  pass(500);
  drain(); /* the leave, valid for 15 s */
  int64_t valid = engine.request.expires;
  CHECK(valid >= server_time() + late + 14000);
  break_connection();
  greet_late(late);
  for (int i = 0; i < 60; i++) {
    CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
    drain();
    while (b.result == FAIRLOCK_PENDING)
      answer(0, 500, late);
    pass(10);
  }
  break_connection();
  greet_late(late);
  CHECK(server_time() + late + engine.in_doubt_ms >= valid);
}

/*
 * A round trip that was long counts less with each shorter one, and so does the time for which old
 * requests are feared.
 */
/*
 * The server stood still when a connection was made, which the system has accepted for it. So its greeting
 * was late, and says nothing of the way: the first answer after it does.
 */
void test_late_greeting_is_forgotten(void)
{
  for (int subscribes = 0; subscribes < 2; subscribes++) {
    set_up();
    engine.connect_ms = 10000;
    greet_far(5000);
    CHECK_EQUAL(engine.round_trip_ms, 5000);
    uint32_t before = engine.response_ms;
    request(&a, subscribes ? FAIRLOCK_FOREVER : 0, 30000);
    pass(20);
    if (subscribes) push("subscribe", CHANNEL("1"), NULL);
    answer(1, 5, 0);
    CHECK_EQUAL(engine.round_trip_ms, 20);
    CHECK(engine.response_ms < before);
    uint32_t passed[] = {0, 0, 0, 0, 1500, 0};
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
      request(&b, 0, 1000);
      pass(passed[i]);
      answer(0, 500, 0);
    }
    CHECK(engine.round_trip_ms > 1300 && engine.round_trip_ms < 1500); /* later ones, gradually */
  }
}

/* Of two requests in doubt the later one counts, also if the lower half of the server's time goes round. */
void test_doubt_across_the_half_of_the_time(void)
{
  int64_t late = ((int64_t)396 << 32) - 1700000000000 - 12000; /* it does so in 12 s */
  set_up();
  greet_late(late);
  engine.response_ms = 11000; /* by a long round trip, which is forgotten on the next connection */
  request(&a, 0, 1000);
  pass(3000);
  request(&b, 0, 1000);
  break_connection();
  greet_late(late);
  CHECK_EQUAL(engine.response_ms, 2000);
  CHECK(engine.in_doubt_ms >= 11000);
}

void test_long_round_trip_is_forgotten(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 60000, now), FAIRLOCK_PENDING);
  greet_far(5000);
  CHECK_EQUAL(engine.round_trip_ms, 5000);
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  for (int i = 0; i < 60; i++) {
    CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 60000, now), FAIRLOCK_PENDING);
    drain();
    answer(1, 77, 0);
    pass(10);
  }
  CHECK_EQUAL(engine.round_trip_ms, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  break_connection();
  greet_late(-3600000);
  CHECK(engine.in_doubt_ms > 2000 + 2000 / 64); /* two clocks are not quite as fast */
  CHECK(engine.in_doubt_ms < 2100);
}
