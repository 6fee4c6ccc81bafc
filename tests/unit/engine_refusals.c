/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is refused: by the server, in one table, with the status and what it leads to; and by the
 * library, which takes no arguments that cannot work.
 */
#include "engine_tests.h"

/* A release of the longest lease is not repeated either, if it is refused for good. */
void test_refused_release_of_the_longest_lease(void)
{
  acquire_a(FAIRLOCK_DURATION_MAX_MS);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  feed("-NOPERM no\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  pass(500);
  CHECK(sends_nothing());
}

#define CALL_6_2                                                                                   \
  "-ERR Error running script (call to f_d0710111014eb425a1501c1ff022c90c59333c09): @user_script:"

/* What the server says it to. */
enum said_to { GREETING, REQUEST, IN_A_SCRIPT, SLOT_MOVES, REDIS_6_2 };

/*
 * What comes of it: a wait goes on, or ends as a try does; the connection is given up, or kept; the
 * handle leaves once more, because a script that is stopped half-way may have begun a hold or a place.
 */
enum { ENDS = 0, WAITS = 1, CLOSES = 2, LEAVES = 4 };

static const struct refusal {
  enum said_to to;
  const char *answer;
  int status; /* of a try */
  int leads_to;
  const char *error; /* what the engine keeps of the text; NULL: not looked at */
} refusals[] = {
    /* the greeting: without one there is no connection */
    {GREETING, "-ERR unknown command 'HELLO'\r\n", FAIRLOCK_UNSUPPORTED, CLOSES, NULL},
    {GREETING, "-NOPROTO unsupported protocol version\r\n", FAIRLOCK_UNSUPPORTED, CLOSES, NULL},
    {GREETING, "-WRONGPASS invalid\r\n", FAIRLOCK_DENIED, CLOSES, "WRONGPASS invalid"},
    {GREETING, "-NOAUTH HELLO must\r\n", FAIRLOCK_DENIED, CLOSES, NULL},
    {GREETING, "+OK\r\n", FAIRLOCK_UNSUPPORTED, CLOSES, NULL},
    {GREETING, "-NOSCRIPT No matching script.\r\n", FAIRLOCK_REFUSED, CLOSES, NULL},
    {GREETING, "-LOADING wait\r\n", FAIRLOCK_UNAVAILABLE, WAITS | CLOSES, NULL},
    {GREETING, "-ERR maximum\r\n", FAIRLOCK_REFUSED, CLOSES, NULL},

    {REQUEST, "-NOPERM x\r\n", FAIRLOCK_DENIED, ENDS, NULL},
    {REQUEST, "-LOADING x\r\n", FAIRLOCK_UNAVAILABLE, WAITS, NULL},
    {REQUEST, "-BUSY x\r\n", FAIRLOCK_UNAVAILABLE, WAITS, NULL},
    {REQUEST, "-READONLY x\r\n", FAIRLOCK_READONLY, WAITS | CLOSES, NULL},
    {REQUEST, "-OOM x\r\n", FAIRLOCK_OOM, WAITS, NULL},
    {REQUEST, "-MISCONF x\r\n", FAIRLOCK_MISCONF, WAITS, NULL},
    {REQUEST, "-WRONGTYPE x\r\n", FAIRLOCK_REFUSED, LEAVES, NULL},
    {REQUEST, "-NEEDS several\r\n", FAIRLOCK_OUTDATED, ENDS, "NEEDS several"},
    {REQUEST, "!5\r\nOOM x\r\n", FAIRLOCK_OOM, WAITS, NULL},
    {REQUEST, "-OOMPH\r\n", FAIRLOCK_REFUSED, LEAVES, NULL},

    /* a right is missing: Redis 7.0, and later ones */
    {IN_A_SCRIPT, "-ERR The user executing the script can't run this command\r\n", FAIRLOCK_DENIED,
     LEAVES, NULL},
    {IN_A_SCRIPT, "-ERR ACL failure in script: No permissions to access a key\r\n", FAIRLOCK_DENIED,
     LEAVES, NULL},

    /* to a client that does not follow the cluster */
    {SLOT_MOVES, "-ASK 8632 10.0.0.7:7001\r\n", FAIRLOCK_REFUSED, LEAVES, NULL},

    /* Redis 6.2 says where a script stopped before it says why */
    {REDIS_6_2, CALL_6_2 "7: @user_script: 7: -OOM command not allowed\r\n", FAIRLOCK_OOM, WAITS,
     "OOM command not allowed"},
    {REDIS_6_2, CALL_6_2 "7: @user_script: 7: -READONLY You can't write\r\n", FAIRLOCK_READONLY,
     WAITS | CLOSES, NULL},
    {REDIS_6_2, CALL_6_2 "12: @user_script: 12: -MISCONF Redis is configured\r\n", FAIRLOCK_MISCONF,
     WAITS, NULL},
    {REDIS_6_2,
     CALL_6_2 "1: @user_script: 1: The user executing the script can't run this command\r\n",
     FAIRLOCK_DENIED, LEAVES, NULL},
    {REDIS_6_2, CALL_6_2 "23: WRONGTYPE Operation against a key\r\n", FAIRLOCK_REFUSED, LEAVES,
     "WRONGTYPE Operation against a key"},
    /* says something else; says nothing more */
    {REDIS_6_2, "-ERR @user_script:1: OOM\r\n", FAIRLOCK_REFUSED, LEAVES,
     "ERR @user_script:1: OOM"},
    {REDIS_6_2, CALL_6_2 "\r\n", FAIRLOCK_REFUSED, LEAVES, NULL},
    {REDIS_6_2, "-ERR Error running script\r\n", FAIRLOCK_REFUSED, LEAVES,
     "ERR Error running script"},
};

/* a waits, or tries, and the server says that to the greeting, or to the acquire. */
static void hear(const struct refusal *refusal, uint32_t wait_ms)
{
  set_up();
  if (refusal->to == GREETING) {
    CHECK_EQUAL(fairlock_engine_acquire(&a, wait_ms, 1000, now), FAIRLOCK_PENDING);
    fairlock_engine_opening(&engine, now);
    fairlock_engine_opened(&engine, now);
    drain();
  } else {
    greet();
    request(&a, wait_ms, 1000);
    if (wait_ms > 0) push("subscribe", CHANNEL("1"), NULL);
  }
  feed(refusal->answer);
}

static void refuse(const struct refusal *refusal, uint32_t wait_ms)
{
  bool waits = wait_ms > 0 && refusal->leads_to & WAITS;
  hear(refusal, wait_ms);
  unsigned wants = fairlock_engine_wants(&engine, now);
  /* where a wait goes on, a try is told when the connection is closed */
  if (refusal->to == GREETING && refusal->leads_to & WAITS)
    fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
  bool good = true;
  if (refusal->leads_to & LEAVES) {
    good &= CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    good &= CHECK(sends(" 0 0\r\n"));
    answer(1, 0, 0);
  }
  good &= CHECK_EQUAL(a.result, waits ? FAIRLOCK_PENDING : refusal->status);
  if (refusal->to != GREETING && !waits) good &= CHECK(sends_nothing());
  if (refusal->leads_to & CLOSES) good &= CHECK_EQUAL(wants, FAIRLOCK_CLOSE);
  else good &= CHECK(!(wants & FAIRLOCK_CLOSE));
  if (refusal->error != NULL) good &= CHECK(strcmp(engine.error, refusal->error) == 0);
  if (good) return;
  check_write("# ");
  check_write(refusal->answer);
}

static void refuse_all(enum said_to to)
{
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    if (refusals[i].to != to) continue;
    refuse(&refusals[i], 0);
    refuse(&refusals[i], 20000);
  }
}

void test_greeting_refused(void)
{
  refuse_all(GREETING);
}

void test_requests_refused(void)
{
  refuse_all(REQUEST);
}

void test_denied_inside_a_script(void)
{
  refuse_all(IN_A_SCRIPT);
}

void test_slot_that_moves_is_not_followed(void)
{
  refuse_all(SLOT_MOVES);
}

void test_redis_6_2_says_where_first(void)
{
  refuse_all(REDIS_6_2);
}

void test_init_refuses(void)
{
  set_up();
  config.client_id = NULL;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  config.client_id = "";
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.client_id = "a:b";
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.client_id = "a b";
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.client_id = "a\x7f";
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.client_id = "12345678901234567890123456789012345678901234567890123456789012345";
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_TOO_LONG);
  config.client_id = ID;
  config.receive_size = 10;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_TOO_LONG);
  config.receive_size = sizeof receive_buffer;
  config.send_size = FAIRLOCK_SEND_MIN - 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_TOO_LONG);
  config.send_size = sizeof send_buffer;
  config.send_buffer = NULL;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.send_buffer = send_buffer;
  config.receive_buffer = NULL;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.receive_buffer = receive_buffer;
  config.lease_ms = FAIRLOCK_LEASE_MIN_MS - 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.waiter_ms = FAIRLOCK_WAITER_MIN_MS - 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.waiter_ms = FAIRLOCK_WAITER_MAX_MS + 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.waiter_ms = 0;
  config.lease_ms = FAIRLOCK_LEASE_MIN_MS;
  config.claim_ms = FAIRLOCK_CLAIM_MIN_MS - 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.claim_ms = 5001; /* the waiter timeout, and 1 ms */
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.claim_ms = 5000;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  config.claim_ms = FAIRLOCK_CLAIM_MIN_MS;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  config.claim_ms = 0;
  config.lease_ms = FAIRLOCK_DURATION_MAX_MS + 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.lease_ms = FAIRLOCK_RENEW;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.lease_ms = FAIRLOCK_LEASE_MIN_MS;
  config.connect_ms = engine.connect_ms = FAIRLOCK_DURATION_MAX_MS + 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.connect_ms = engine.connect_ms = 0;
  config.response_ms = 7501; /* one and a half waiter timeouts, and 1 ms */
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.waiter_ms = FAIRLOCK_WAITER_MIN_MS;
  config.response_ms = FAIRLOCK_WAITER_MIN_MS / 2 * 3 + 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.response_ms--;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  config.waiter_ms = 0;
  config.response_ms = 0;
  config.offline_ms = engine.offline_ms = FAIRLOCK_DURATION_MAX_MS + 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.offline_ms = engine.offline_ms = FAIRLOCK_FOREVER;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  static char name[300];
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, name, 0), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, NULL, 1), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, name, sizeof name), FAIRLOCK_TOO_LONG);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, name, FAIRLOCK_NAME_MAX + 1), FAIRLOCK_TOO_LONG);
}

void test_arguments(void)
{
  acquire_a(1000);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 0, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, UINT32_MAX, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, FAIRLOCK_RENEW + 1, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 0, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, FAIRLOCK_LEASE_MIN_MS - 1, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, FAIRLOCK_DURATION_MAX_MS + 1, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_acquire(&b, FAIRLOCK_DURATION_MAX_MS + 1, 1000, now),
              FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_release(&b, now), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_engine_cancel(&b, now), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_engine_force(&a, &anyone, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_release(&b, now), FAIRLOCK_IN_PROGRESS);
}

void test_an_error_that_may_pass_is_waited_out(void)
{
  begin();
  request(&a, 3000, 1000);
  push("subscribe", CHANNEL("1"), NULL);
  feed("-OOM no memory\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  pass(500);
  CHECK(sends("EVALSHA"));
  feed("-MISCONF no disk\r\n");
  pass(500);
  CHECK(sends("EVALSHA"));
  feed("-OOM no memory\r\n");
  pass(2000);
  CHECK_EQUAL(a.result, FAIRLOCK_OOM);
  CHECK(sends_nothing()); /* nothing of it was ever carried out */
}

/* What the server says to b is no answer to a, whose heartbeats it refuses. */
void test_refused_heartbeats_end_a_wait(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  uint32_t due = now;
  while (a.result == FAIRLOCK_PENDING && now - due < 60000) {
    CHECK(sends("EVALSHA"));
    feed("-OOM no memory\r\n");
    request(&b, 0, 1000);
    answer(0, 1000, 0);
    CHECK_EQUAL(b.result, FAIRLOCK_BUSY);
    pass(500);
  }
  CHECK_EQUAL(a.result, FAIRLOCK_OOM);
  CHECK(now - due >= engine.offline_ms && now - due <= engine.offline_ms + 1000);
}

/* At its limit, too, a refused wait ends with what it was told, and not with what b was. */
void test_refused_until_the_limit(void)
{
  queue_a(3000);
  pass(2000);
  drain();
  feed("-OOM no memory\r\n");
  request(&b, 0, 1000);
  answer(0, 1000, 0);
  pass(400);
  CHECK(sends_nothing());
  pass(600);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OOM);
}

/* A heartbeat that has to be sent again is not answered. */
void test_repeated_heartbeats_end_a_wait(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  uint32_t due = now;
  CHECK(sends(" 5000 "));
  for (; strstr(output, " 5000 ") != NULL && now - due < 60000; drain()) {
    feed("-NOSCRIPT No matching script.\r\n");
    pass(500);
  }
  CHECK(now - due >= engine.offline_ms && now - due <= engine.offline_ms + 1000);
}

/* Nor does an answer count on the next connection, which breaks before it brings one. */
void test_breaks_end_a_wait(void)
{
  queue_a(FAIRLOCK_FOREVER);
  uint32_t began = now;
  while (a.result == FAIRLOCK_PENDING && now - began < 60000) {
    reconnect();
    drain();
    pass(500);
  }
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  CHECK(now - began <= engine.offline_ms + 1000);
}

/* What the server refuses b is nothing to a, whose heartbeats it answers. */
void test_others_refusals_end_no_wait(void)
{
  queue_a(4000);
  engine.offline_ms = 1000;
  request(&b, FAIRLOCK_FOREVER, 1000);
  push("subscribe", CHANNEL("2"), NULL);
  feed("-OOM no memory\r\n");
  pass(500);
  CHECK(sends("EVALSHA"));
  feed("-OOM no memory\r\n");
  pass(500);
  CHECK_EQUAL(b.result, FAIRLOCK_OOM);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  pass(1000);
  CHECK(sends("EVALSHA"));
  answer(0, -1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  request(&b, 2000, 1000);
  feed("-OOM no memory\r\n");
  pass(2000);
  CHECK(sends("EVALSHA"));
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_TIMEOUT);
}

/* The answers to a's last wait say nothing about the next, which nobody has answered yet. */
void test_refusals_of_others_and_the_next_wait(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  drain();
  reconnect(); /* an acquire is in doubt, so the handle goes on leaving after its leave */
  drain();
  join(0, -1);
  cancel_a();
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  request(&b, FAIRLOCK_FOREVER, 1000);
  request(&a, 400, 1000);
  push("subscribe", CHANNEL("2"), NULL);
  feed("-OOM no memory\r\n");
  pass(400);
  drain();
  answer(0, 0, 0); /* to its acquire, which counts no more */
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OOM);
}

/* What the server has refused b is not why it is gone: who waits in the queue, and who tries. */
void test_a_refusal_is_not_why_the_server_is_gone(void)
{
  queue_a(4000);
  request(&b, FAIRLOCK_FOREVER, 1000);
  push("subscribe", CHANNEL("2"), NULL);
  feed("-OOM no memory\r\n");
  break_connection();
  pass(4000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
}

/* Nor is what it has said to a greeting. */
void test_a_greeting_refused_is_not_why_the_server_is_gone(void)
{
  begin();
  break_connection();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  pass(50);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  drain();
  feed("-LOADING wait\r\n");
  fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
  CHECK_EQUAL(engine.last_error, FAIRLOCK_UNAVAILABLE);
  pass(5000);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
  CHECK_EQUAL(engine.last_error, FAIRLOCK_UNREACHABLE);
}

void test_status_words(void)
{
  for (int status = FAIRLOCK_OUTDATED - 1; status <= FAIRLOCK_PENDING + 1; status++) {
    CHECK(fairlock_status_text(status)[0] != 0 && fairlock_status_name(status)[0] != 0);
  }
  CHECK(strcmp(fairlock_status_name(FAIRLOCK_LOST), "LOST") == 0);
  CHECK(strcmp(fairlock_status_name(FAIRLOCK_TOO_LONG), "TOO_LONG") == 0);
  CHECK(strcmp(fairlock_status_name(FAIRLOCK_FORKED), "FORKED") == 0);
  CHECK(strcmp(fairlock_status_name(FAIRLOCK_NOT_LISTENING), "NOT_LISTENING") == 0);
  CHECK(strcmp(fairlock_status_name(FAIRLOCK_OUTDATED), "OUTDATED") == 0);
  CHECK(strcmp(fairlock_status_name(FAIRLOCK_PENDING), "PENDING") == 0);
  CHECK(strcmp(fairlock_status_text(FAIRLOCK_OK), "done") == 0);
  CHECK(strcmp(fairlock_status_text(FAIRLOCK_BUSY),
               "somebody else holds the lock or is first in line") == 0);
  CHECK(strcmp(fairlock_status_text(FAIRLOCK_UNKNOWN),
               "no answer came: the release was carried out, or the lease will end the hold") == 0);
  CHECK(strcmp(fairlock_status_text(FAIRLOCK_NOT_LISTENING),
               "its holder does not listen, so it cannot be asked") == 0);
  CHECK(strcmp(fairlock_status_text(FAIRLOCK_OUTDATED),
               "a later release uses the lock in a way that this one does not know") == 0);
  CHECK(strcmp(fairlock_status_text(FAIRLOCK_OUTDATED - 1), "no status") == 0);
}

void test_version_of_the_library(void)
{
  CHECK(strcmp(fairlock_version(), FAIRLOCK_VERSION) == 0);
}

void test_error_text_has_an_end(void)
{
  set_up();
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  drain();
  feed("-ERR 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
       "5678901234567890123456789012345678901234567890123456789012345678901234567890123456789\r\n");
  drain();
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_REFUSED);
  CHECK(memchr(engine.error, 0, sizeof engine.error) != NULL);
}
