/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: the greeting, back-off, and bytes that nobody expects.
 */
#include "engine_tests.h"

/*
 * A connection that opens and then is silent: it is given up soon enough for the wait to go on with
 * the next one.
 */
void test_silent_greeting(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  CHECK(sends("TIME"));
  pass(7000);
  CHECK(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE);
  reconnect();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  join(1, 7);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

void test_offline(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 20000, 1000, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
  CHECK_EQUAL(b.result, FAIRLOCK_UNREACHABLE); /* a try does not wait for a connection */
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  pass(10000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
}

void test_connecting_takes_too_long(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 20000, 1000, now), FAIRLOCK_PENDING);
  fairlock_engine_opening(&engine, now);
  pass(3000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT); /* until it is open */
  fairlock_engine_opening(&engine, now);
  CHECK_EQUAL(fairlock_engine_deadline(&engine, now), 2000);
  pass(2000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

/*
 * The server has no room for another client, and says so before it was asked anything: a wait goes
 * on, with pauses that grow between its attempts, and a try is told.
 */
void test_too_many_clients(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 20000, 1000, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  uint32_t least = 25;
  for (int i = 0; i < 7; i++) {
    fairlock_engine_opening(&engine, now);
    fairlock_engine_opened(&engine, now);
    feed(i % 2 == 0 ? "-ERR max number of clients reached\r\n"
                    : "-ERR max number of clients + cluster connections reached\r\n");
    CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
    fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    CHECK_EQUAL(b.result, FAIRLOCK_UNAVAILABLE);
    pass(0);
    CHECK(fairlock_engine_deadline(&engine, now) >= least);
    pass(fairlock_engine_deadline(&engine, now));
    CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT);
    least *= 2;
  }
  greet();
  CHECK(sends("SUBSCRIBE\r\n"));
}

void test_greeting_with_everything(void)
{
  set_up();
  config.password = "pass";
  config.user = "user";
  config.client_name = "name";
  config.database = 3;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  CHECK(sends("*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$4\r\npass\r\n$"
              "7\r\nSETNAME\r\n$4\r\nname\r\n"
              "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*1\r\n$4\r\nTIME\r\n"));
  feed("%1\r\n+modules\r\n*1\r\n%1\r\n+args\r\n*1\r\n+x\r\n");
  feed("+OK\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n");
  CHECK(fairlock_engine_ready(&engine));
}

/* The greeting's last answer is the time, two numbers. */
static void refuse_time(const char *answer_to_time)
{
  set_up();
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  drain();
  feed("%1\r\n+proto\r\n:3\r\n");
  feed(answer_to_time);
  CHECK(!fairlock_engine_ready(&engine));
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

void test_time_that_is_none(void)
{
  refuse_time("+OK\r\n");
  refuse_time("*1\r\n:1700000000\r\n");
  refuse_time("*2\r\n:1700000000\r\n+x\r\n");
  refuse_time("*2\r\n:1700000000\r\n:-3\r\n");
  refuse_time("-ERR time is up\r\n");
}

/* Not even an engine that is driven wrongly believes what comes before the connection is open. */
void test_bytes_before_the_connection(void)
{
  size_t size;
  set_up();
  fairlock_engine_output(&engine, &size, now);
  CHECK_EQUAL(size, 0);
  fairlock_engine_opening(&engine, now);
  feed("+OK\r\n");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  fairlock_engine_output(&engine, &size, now);
  CHECK_EQUAL(size, 0);
}

/* The pause before a new attempt stays below 5 s, and it is never the same for all clients. */
void test_back_off_has_an_end(void)
{
  set_up();
  for (int i = 0; i < 300; i++) {
    fairlock_engine_connect(&engine, now);
    fairlock_engine_opening(&engine, now);
    fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
    CHECK(engine.backoff_ms >= 25 && engine.backoff_ms <= 5000);
  }
  fairlock_engine_connect(&engine, now); /* who asks does not wait */
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT);
}

/* Devices that lost the server together do not come back together. */
void test_back_off_differs(void)
{
  uint32_t least = UINT32_MAX;
  uint32_t most = 0;
  set_up();
  for (int i = 0; i < 50; i++) {
    engine.failures = 5;
    now += 7;
    break_connection();
    if (engine.backoff_ms < least) least = engine.backoff_ms;
    if (engine.backoff_ms > most) most = engine.backoff_ms;
  }
  CHECK(least >= 800 && most <= 1600 && most - least > 200);
}

/* A connection that opens and takes no byte is dead as soon as one that gives no answer. */
void test_greeting_is_not_taken(void)
{
  size_t size;
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  (void)fairlock_engine_output(&engine, &size, now);
  CHECK(size > 0);
  pass(1900);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
  pass(200);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

void test_no_answer_breaks_the_connection(void)
{
  begin();
  request(&a, 3000, 1000);
  pass(1999);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
  pass(1);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  break_connection();
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0);
  pass(50);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT);
  greet();
  CHECK(sends("SUBSCRIBE"));
  join(1, 5);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* What was left of the old connection is not taken for the beginning of the new one. */
void test_half_an_answer_and_a_reconnect(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  drain();
  feed("*3\r\n:0\r\n:-");
  reconnect();
  CHECK(sends("SUBSCRIBE\r\n"));
}

/* Nor is a server spared that never stops to send. */
void test_endless_bytes(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  drain();
  now += 60000;
  for (int i = 0; i < 256; i++) {
    fairlock_engine_tick(&engine, now);
    CHECK((fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE) == 0);
    feed(">1\r\n+x\r\n");
  }
  fairlock_engine_tick(&engine, now);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

static void nonsense(const char *text)
{
  begin();
  request(&a, 0, 1000);
  feed(text);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  CHECK(sends_nothing());
}

void test_nonsense_breaks_the_connection(void)
{
  nonsense("?");
  nonsense("+OK\r\n");
  nonsense("*2\r\n:1\r\n:1\r\n");
  nonsense("*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n");
  nonsense("*6\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:9\r\n");
  CHECK(engine.inspection.query == NULL); /* it stands behind what keeps the numbers */
  nonsense("*3\r\n:1\r\n:1\r\n+x\r\n");
  nonsense("*3\r\n:1\r\n:1\r\n:9223372036854775807\r\n");
  nonsense("*3\r\n:1\r\n:-9\r\n:1\r\n");
  nonsense("*3\r\n:1\r\n:1\r\n-ERR inside\r\n");
  nonsense("|1\r\n+a\r\n+b\r\n");
  acquire_a(1000);
  answer(1, 5, 0); /* nobody asked */
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

/* Of a text that is too long, the rest is cut off. */
void test_long_error(void)
{
  char text[FAIRLOCK_ERROR_SIZE + 5] = "-";
  for (size_t size = FAIRLOCK_ERROR_SIZE - 2; size <= FAIRLOCK_ERROR_SIZE + 1; size++) {
    size_t kept = size < FAIRLOCK_ERROR_SIZE ? size : FAIRLOCK_ERROR_SIZE - 1;
    begin();
    request(&a, 0, 1000);
    memset(text + 1, 'E', size);
    memcpy(text + 1 + size, "\r\n", 3);
    feed(text);
    drain();
    answer(1, 0, 0);
    CHECK_EQUAL(a.result, FAIRLOCK_REFUSED);
    CHECK_BYTES(engine.error, kept, text + 1, kept);
    CHECK_EQUAL(engine.error[kept], 0);
  }
}

/*
 * A reply that makes no sense does not count: the request is in doubt, and is sent again on the
 * next connection.
 */
void test_nonsense_is_no_answer(void)
{
  acquire_a(5000);
  request(&a, 0, 5000);
  feed(":1\r\n");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  reconnect();
  CHECK(sends("EVALSHA"));
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.holds, 2);
}

/*
 * The request of such a reply may have been carried out: a handle that gives up then has to leave.
 */
void test_nonsense_for_an_acquire_leaves_a_doubt(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 60000, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("1"), NULL);
  feed("*2\r\n:1\r\n:77\r\n");
  break_connection();
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  pass(50);
  greet();
  CHECK(sends("EVALSHA")); /* the leave */
}
