/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acquiring and waiting: requests, answers, the queue and its end.
 */
#include "engine_tests.h"

void test_acquire_and_release(void)
{
  acquire_a(1000);
  uint32_t held = fairlock_engine_remaining_ms(&a, now);
  CHECK(held > 900 && held < 1000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  CHECK(sends(" 77\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_NOT_HELD);
}

/* No server of ours gives a token twice, or an older one: such a hold is not believed in. */
void test_token_that_is_not_newer(void)
{
  acquire_a(5000);
  uint64_t token = a.token;
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 0, 0);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 5000, now), FAIRLOCK_PENDING);
  drain();
  answer(1, (int64_t)token - 1, 0);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  CHECK_EQUAL(a.token, token);
  pass(500);
  drain();
  answer(1, (int64_t)token, 0);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  pass(500);
  drain();
  answer(1, (int64_t)token + 1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.token, token + 1);
}

/*
 * A lease that is shorter than the round trip: each grant comes too late. A wait goes on, but leaves
 * the lock to others in between. A try ends, and so does a wait that is given up then: both give back
 * what the server has granted.
 */
void test_lease_shorter_than_the_round_trip(void)
{
  begin();
  request(&a, FAIRLOCK_FOREVER, 100);
  push("subscribe", CHANNEL("1"), NULL);
  for (int token = 77; token < 80; token++) {
    pass(150);
    answer(1, token, 0);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    pass(499);
    CHECK(sends_nothing());
    pass(1);
    CHECK(sends(" 100\r\n"));
  }
  pass(50);
  answer(1, 80, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.token, 80);
  begin();
  request(&a, 0, 100);
  pass(150);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends(" 0 0\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_TIMEOUT);
  CHECK(sends_nothing());
  begin();
  request(&a, FAIRLOCK_FOREVER, 100);
  push("subscribe", CHANNEL("1"), NULL);
  pass(150);
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK(sends(" 0 0\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
}

/* No server counts on from 2^53: the next token is the time, and has to be believed. */
void test_token_after_the_largest(void)
{
  const int64_t tokens[] = {((int64_t)1 << 53) - 1, (int64_t)1 << 53, 1795336662097000};
  begin();
  for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
    CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 5000, now), FAIRLOCK_PENDING);
    drain();
    answer(1, tokens[i], 0);
    CHECK_EQUAL(a.result, FAIRLOCK_OK);
    CHECK_EQUAL(a.token, (uint64_t)tokens[i]);
    CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
    drain();
    answer(1, 0, 0);
  }
}

void test_try_is_busy(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(!sends("SUBSCRIBE"));
  answer(0, 500, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  CHECK(sends_nothing());
}

void test_noscript(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  feed("-NOSCRIPT No matching script.\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  drain();
  CHECK(output_size > sizeof send_buffer); /* in several pieces */
  CHECK(strstr(output, "EVAL\r\n") != NULL && strstr(output, "redis.call") != NULL);
  answer(1, 5, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(engine.error[0], 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
}

/* The text of a script that is not known is sent once, with the next request of any handle. */
void test_noscript_of_one(void)
{
  acquire_a(30000);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  feed("-NOSCRIPT No matching script.\r\n");
  drain();
  const char *text = strstr(output, "EVAL\r\n");
  const char *hash = strstr(output, "EVALSHA\r\n");
  CHECK(text != NULL && hash != NULL && text < hash);
  CHECK(text == NULL || strstr(text + 1, "EVAL\r\n") == NULL);
  answer(1, 0, 0);
  answer(1, 7, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
}

/* The deadline includes the next heartbeat even while the previous one is only partly written. */
void test_deadline_while_writing(void)
{
  size_t size;
  set_up();
  config.response_ms = 4000;
  config.send_size = FAIRLOCK_SEND_MIN;
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  fairlock_engine_tick(&engine, now);
  (void)fairlock_engine_output(&engine, &size, now);
  CHECK_EQUAL(size, FAIRLOCK_SEND_MIN);
  fairlock_engine_tick(&engine, now);
  CHECK_EQUAL(fairlock_engine_deadline(&engine, now), 2000);
}

/*
 * Nobody serviced the client for longer than offline_ms; but all that was asked had been answered.
 */
void test_frozen_waiter_goes_on(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(0);
  pass(20000);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  answer(0, -1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
}

void test_peer_wakes(void)
{
  queue_a(FAIRLOCK_FOREVER);
  push("message", CHANNEL("1"), "0");
  CHECK(sends("EVALSHA"));
  answer(1, 5, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

void test_first_in_line_asks_when_the_lease_ends(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  drain();
  answer(0, 700, 0);
  CHECK(fairlock_engine_deadline(&engine, now) <= 701);
  pass(701);
  CHECK(sends("EVALSHA"));
}

void test_timeout_leaves_the_queue(void)
{
  queue_a(500);
  pass(500);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_TIMEOUT);
}

/*
 * The server may be loading for a minute: a wait of half a second does not last that long, and the
 * leave goes on without it.
 */
void test_leave_refused_for_now(void)
{
  queue_a(500);
  pass(500);
  CHECK(sends("EVALSHA"));
  feed("-LOADING wait\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_TIMEOUT);
  pass(1000);
  CHECK(sends("EVALSHA"));
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_TIMEOUT);
  CHECK(sends_nothing());
}

void test_cancel_before_anything_was_sent(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 1000, 1000, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0);
}

void test_cancel_while_subscribing(void)
{
  begin();
  request(&a, 1000, 1000);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK(sends("EVALSHA"));
  CHECK(strstr(output, "SUBSCRIBE") == NULL);
  join(1, 5); /* to the acquire */
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
}

/* The server is frozen: a short wait is not over because somebody else held the lock. */
void test_wait_without_an_answer(void)
{
  begin();
  request(&a, 500, 1000);
  pass(500);
  drain(); /* it leaves */
  pass(2000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  break_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
}

/* Who only tries does not wait for better times, however long a wait would. */
void test_try_gives_up(void)
{
  set_up();
  engine.offline_ms = FAIRLOCK_FOREVER;
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  for (int i = 0; i < 10 && a.result == FAIRLOCK_PENDING; i++) {
    greet();
    drain();
    pass(2100);
    CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
    break_connection();
  }
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
}

/* A try whose reply was lost, and whose repetition is refused, may have begun a hold. */
void test_try_in_doubt_that_is_refused(void)
{
  begin();
  request(&a, 0, 60000);
  reconnect();
  CHECK(sends("EVALSHA"));
  feed("-OOM x\r\n");
  CHECK(sends("EVALSHA")); /* it leaves */
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OOM);
  pass(2200);
  CHECK(sends("EVALSHA")); /* once more: the first try may have come late */
}

/* A cancelled wait, whose leave was refused, is owed a leave by whatever comes next. */
void test_leave_survives_a_refused_try(void)
{
  queue_a(60000);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK(sends("EVALSHA"));
  feed("-LOADING x\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  feed("-LOADING x\r\n");
  CHECK(sends("EVALSHA"));
  feed("-LOADING x\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_UNAVAILABLE);
  pass(500);
  CHECK(sends("EVALSHA"));
  answer(0, 0, 0);
  pass(500);
  CHECK(sends_nothing());
}

/* b waits for the lock with this name. */
static void wait_for(const char *name)
{
  begin();
  CHECK_EQUAL(fairlock_engine_remove(&b, now), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &b, name, strlen(name)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 1000, 1000, now), FAIRLOCK_PENDING);
}

void test_braces(void)
{
  wait_for("a{b");
  CHECK(sends("redisson_lock_queue:a{b\r\n"));
  CHECK(strstr(output, "redisson_lock__channel:a{b:" ID ".a2.08s7li100001:3\r\n") != NULL);
  wait_for("ab{"); /* the brace may be the last character, and the first */
  CHECK(sends("redisson_lock_queue:ab{\r\n"));
  wait_for("{ab");
  CHECK(sends("redisson_lock_queue:{ab\r\n"));
}

void test_id_is_the_servers(void)
{
  begin();
  CHECK_BYTES(engine.id, engine.id_size, ID ".a2.08s7li100001", sizeof ID ".a2.08s7li100001" - 1);
  break_connection();
  pass(10000);
  greet(); /* by another connection, at another time: the id stays */
  CHECK_BYTES(engine.id, engine.id_size, ID ".a2.08s7li100001", sizeof ID ".a2.08s7li100001" - 1);
  set_up();
  config.client_id = NULL;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  greet();
  CHECK_BYTES(engine.id, engine.id_size, "a2.08s7li100001", 15);
}

/*
 * With a name of 16 bytes, at most 700 bytes are promised for both directions; the server's answers
 * take 71 of them.
 */
void test_bytes_of_a_pair(void)
{
  set_up();
  config.client_id = NULL;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, "sixteen-bytes-16", 16), FAIRLOCK_OK);
  greet();
  request(&a, 0, 30000);
  size_t size = output_size;
  answer(1, 1700000000000000, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  CHECK(size > 250 && size + output_size <= 700 - 71);
}

/* Two clients with the same configuration are two: the server numbers its connections. */
void test_one_client_id_for_two(void)
{
  static struct fairlock_engine other;
  begin();
  other = engine;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  drain();
  feed("%1\r\n$2\r\nid\r\n:75\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n");
  CHECK(fairlock_engine_ready(&engine));
  CHECK_EQUAL(engine.id_size, other.id_size);
  CHECK(memcmp(engine.id, other.id, other.id_size) != 0);
}

void test_small_send_buffer(void)
{
  set_up();
  config.send_size = FAIRLOCK_SEND_MIN;
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 1000, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("*2\r\n$9\r\nSUBSCRIBE\r\n$56\r\n" CHANNEL("1") "\r\n*8\r\n$7\r\nEVALSHA\r\n"));
  CHECK(strstr(output, "$4\r\ndoor\r\n$26\r\nredisson_lock_queue:{door}\r\n$28\r\nredisson_lock_"
                       "timeout:{door}\r\n"
                       "$15\r\nfairlock:{door}\r\n") != NULL);
}

/*
 * An acquire of a broken connection may have queued us, even if it can no longer arrive now: so the
 * queue has to be left.
 */
void test_acquire_in_doubt_is_left(void)
{
  begin();
  request(&a, FAIRLOCK_FOREVER, 1000);
  break_connection();
  pass(5000);
  greet();
  drain();
  push("subscribe", CHANNEL("1"), NULL);
  feed("-LOADING Redis is loading the dataset in memory\r\n");
  pass(10);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends(" 0 0\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
}
