/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine that has the scripts' hashes alone (lock/scripts/hashes.c): it never sends a text, and
 * NOSCRIPT is a reason to wait, as LOADING is.
 */
#include "engine_tests.h"
#include "engine.h"
#include "fairlock_log.h"

#define UNKNOWN "-NOSCRIPT No matching script. Please use EVAL.\r\n"
#define ADVICE  "NOSCRIPT: run fairlock load"

/* The server does not know the script. What was asked is asked again after a pause, and by its hash. */
static void refuse_once(void)
{
  feed(UNKNOWN);
  CHECK(sends_nothing());
  pass(499);
  CHECK(sends_nothing());
  pass(1);
  CHECK(sends("EVALSHA\r\n"));
  CHECK(strstr(output, "EVAL\r\n") == NULL && strstr(output, "redis.call") == NULL);
}

/* As with a server that loads its data: a try ends, and nothing of it is left. */
static void test_try(void)
{
  begin();
  request(&a, 0, 1000);
  feed(UNKNOWN);
  CHECK_EQUAL(a.result, FAIRLOCK_UNAVAILABLE);
  CHECK(strcmp(engine.error, ADVICE) == 0);
  CHECK(sends_nothing());
  pass(1000);
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

static void test_wait(void)
{
  begin();
  request(&a, 20000, FAIRLOCK_RENEW);
  push("subscribe", CHANNEL("1"), NULL);
  refuse_once();
  refuse_once();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 5, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(engine.last_error, FAIRLOCK_OK);
}

/* The wait has its limit, and says why nothing came of it. No leave is sent: it was never queued. */
static void test_wait_that_times_out(void)
{
  begin();
  request(&a, 700, FAIRLOCK_RENEW);
  push("subscribe", CHANNEL("1"), NULL);
  refuse_once();
  feed(UNKNOWN);
  pass(200);
  CHECK_EQUAL(a.result, FAIRLOCK_UNAVAILABLE);
  CHECK(sends_nothing());
}

/* The scripts go while it is in the queue. It asks for its place until they are back. */
static void test_in_the_queue(void)
{
  queue_a(20000);
  pass(2000);
  CHECK(sends("EVALSHA\r\n"));
  refuse_once();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(0, -1, 0);
  CHECK(sends_nothing());
  pass(2000);
  CHECK(sends("EVALSHA\r\n"));
  answer(0, -1, 0);
  grant(CHANNEL("1"), "99", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  drain();
  refuse_once(); /* its confirmation */
  answer(1, 99, 0);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 5000);
}

/* A renewal is repeated, and the hold lasts as long as its lease. */
static void test_held(void)
{
  acquire_a(FAIRLOCK_RENEW);
  pass(10000);
  CHECK(sends("EVALSHA\r\n"));
  refuse_once();
  CHECK_EQUAL(losses, 0);
  answer(1, 77, 0);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 28000);
  pass(10000);
  CHECK(sends("EVALSHA\r\n"));
  for (int i = 0; i < 37; i++)
    refuse_once();
  CHECK_EQUAL(losses, 0);
  feed(UNKNOWN);
  pass(2000);
  CHECK_EQUAL(losses, 1);
}

static void test_reentry_and_back(void)
{
  acquire_a(FAIRLOCK_RENEW);
  request(&a, 0, FAIRLOCK_RENEW);
  refuse_once();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.holds, 2);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  refuse_once();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.holds, 1);
}

static void test_release(void)
{
  acquire_a(FAIRLOCK_RENEW);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  refuse_once();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(sends_nothing());
}

/* The caller is told at once; the queue is left when that is possible. */
static void test_leave(void)
{
  queue_a(20000);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  drain();
  refuse_once();
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  answer(1, 0, 0);
  CHECK(sends_nothing());
}

/* What only looks or breaks ends, as with any refusal. */
static void test_queries(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_inspect(&a, report_nothing, NULL, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA\r\n"));
  feed(UNKNOWN);
  CHECK_EQUAL(a.result, FAIRLOCK_UNAVAILABLE);
  CHECK_EQUAL(fairlock_engine_force(&a, &anyone, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA\r\n"));
  feed(UNKNOWN);
  CHECK_EQUAL(a.result, FAIRLOCK_UNAVAILABLE);
  CHECK(sends_nothing());
}

static char logged[128];

static void note(enum fairlock_log_event event, int status, const char *text, void *context)
{
  (void)context;
  if (event != FAIRLOCK_LOG_REFUSED || text == NULL) return;
  CHECK_EQUAL(status, FAIRLOCK_REFUSED);
  memcpy(logged, text, strlen(text) + 1);
}

/* The log says what to do. */
static void test_log(void)
{
  struct fairlock_log log = {.function = note};
  begin();
  fairlock_engine_set_log(&engine, &log);
  request(&a, 20000, 1000);
  push("subscribe", CHANNEL("1"), NULL);
  feed(UNKNOWN);
  CHECK(strcmp(logged, ADVICE) == 0);
}

const struct check_test check_tests[] = {
    {"hashes: a try ends", test_try},
    {"hashes: a wait goes on", test_wait},
    {"hashes: a wait that times out", test_wait_that_times_out},
    {"hashes: a place in the queue is asked for again", test_in_the_queue},
    {"hashes: a renewal is repeated", test_held},
    {"hashes: a re-entry, and a release of it", test_reentry_and_back},
    {"hashes: a release is repeated", test_release},
    {"hashes: a leave is repeated", test_leave},
    {"hashes: looking and breaking end", test_queries},
    {"hashes: the log says what to do", test_log},
    {NULL, NULL},
};
