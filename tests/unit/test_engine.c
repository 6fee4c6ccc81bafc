/*
 * The engine against a scripted server: each test plays both sides by hand, byte by byte, in a time
 * that it sets itself. No libc but string.h, so that it runs on a board, too.
 */
#include "test_engine_fixture.h"

static bool sends_nothing(void)
{
  drain();
  return output_size == 0;
}

static void reconnect(void)
{
  break_connection();
  pass(50);
  greet();
}

static void begin(void)
{
  set_up();
  greet();
}

/* The handle asks for the lock, and sends that. */
static void request(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms)
{
  CHECK_EQUAL(fairlock_engine_acquire(handle, wait_ms, lease_ms, now), FAIRLOCK_PENDING);
  drain();
}

/* The answers to a's SUBSCRIBE and acquire. */
static void join(int state, int64_t value)
{
  push("subscribe", CHANNEL("1"), NULL);
  answer(state, value, 0);
}

static void release_a(void)
{
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 0, 0);
}

static void cancel_a(void)
{
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  drain();
  answer(0, 0, 0);
}

static void test_init_refuses(void)
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
  config.lease_ms = FAIRLOCK_DURATION_MAX_MS + 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.lease_ms = FAIRLOCK_LEASE_MIN_MS;
  config.connect_ms = engine.connect_ms = FAIRLOCK_DURATION_MAX_MS + 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
  config.connect_ms = engine.connect_ms = 0;
  config.response_ms = FAIRLOCK_DURATION_MAX_MS + 1;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_INVALID);
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

static void test_arguments(void)
{
  acquire_a(1000);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, FAIRLOCK_LEASE_MIN_MS - 1, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, FAIRLOCK_DURATION_MAX_MS + 1, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_acquire(&b, FAIRLOCK_DURATION_MAX_MS + 1, 1000, now),
              FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_release(&b, now), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_engine_cancel(&b, now), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_engine_force(&a, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_release(&b, now), FAIRLOCK_IN_PROGRESS);
}

static void test_acquire_and_release(void)
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

static void test_try_is_busy(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(!sends("SUBSCRIBE"));
  answer(0, 500, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  CHECK(sends_nothing());
}

static void test_reentry(void)
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
static void test_reentry_of_a_longer_hold(void)
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
 * What is left by our clock may be more by the server's: a re-entry asks for what covers that, too.
 */
static void test_reentry_asks_for_what_is_left(void)
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
static void test_reentry_confirms_a_longer_hold(void)
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

/*
 * The device slept for longer than offline_ms, and then reads that its last heartbeat came too
 * late: the wait goes on.
 */
static void test_expired_while_asleep(void)
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

/*
 * An acquire of a broken connection may have queued us, even if it can no longer arrive now: so the
 * queue has to be left.
 */
static void test_acquire_in_doubt_is_left(void)
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

/*
 * The lock may have been handed to a place in the queue that was being left when the next acquire
 * came. Nobody has confirmed that handover, so the lease is not yet the one that was asked for.
 */
static void test_grant_to_an_earlier_place(void)
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

static void test_noscript(void)
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

/* Only the script that is not known is sent, and only once. */
static void test_noscript_of_one(void)
{
  acquire_a(30000);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  feed("-NOSCRIPT No matching script.\r\n");
  drain();
  const char *release = strstr(output, "EVALSHA\r\n");
  const char *acquire = strstr(output, "EVAL\r\n");
  CHECK(release != NULL && acquire != NULL && release < acquire);
  answer(1, 0, 0);
  answer(1, 7, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
}

/* The deadline includes the next heartbeat even while the previous one is only partly written. */
static void test_deadline_while_writing(void)
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

static void test_heartbeat_and_grant(void)
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
}

static void test_grant_that_is_too_old(void)
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
 * The greeting asks for the time at the moment it is sent, not at a later call that finds nothing
 * more to send.
 */
static void test_grant_after_a_slow_greeting(void)
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
static void test_forged_grant(void)
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

static void test_grant_from_another_time(void)
{
  queue_a(FAIRLOCK_FOREVER);
  push("message", CHANNEL("1"), "99 5"); /* the server's clock was set back */
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  answer(1, 99, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(engine.counters.polled, 1);
}

/* The time that it names is a minute ahead: no grant is good for more than a waiter timeout. */
static void test_grant_from_the_future(void)
{
  queue_a(FAIRLOCK_FOREVER);
  grant(CHANNEL("1"), "99", -60000);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) < 5000);
}

/*
 * Nobody serviced the client for longer than offline_ms; but all that was asked had been answered.
 */
static void test_frozen_waiter_goes_on(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(20000);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  answer(0, -1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
}

static void test_peer_wakes(void)
{
  queue_a(FAIRLOCK_FOREVER);
  push("message", CHANNEL("1"), "0");
  CHECK(sends("EVALSHA"));
  answer(1, 5, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

static void test_messages_that_are_not_ours(void)
{
  queue_a(FAIRLOCK_FOREVER);
  push("message", CHANNEL("9"), "0");
  push("message", "redisson_lock__channel:{other}:" ID ":1", "0");
  push("message", "nonsense", "0");
  push("message", CHANNEL("1"), "what");
  push("message", CHANNEL("1"), "1 what");
  push("message", CHANNEL("1"), "-1");
  push("message", CHANNEL("1"), "");
  push("message", "no:number", "0");
  push("pmessage", CHANNEL("1"), "0");
  push("massage", CHANNEL("1"), "0");
  feed(">2\r\n$7\r\nmessage\r\n_\r\n");
  feed(">1\r\n:1\r\n>0\r\n");
  feed(">4\r\n$7\r\nmessage\r\n+x\r\n+0\r\n+0\r\n");
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
}

static void test_unexpected_grant_is_given_back(void)
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

static void test_first_in_line_asks_when_the_lease_ends(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  drain();
  answer(0, 700, 0);
  CHECK(fairlock_engine_deadline(&engine, now) <= 701);
  pass(701);
  CHECK(sends("EVALSHA"));
}

static void test_timeout_leaves_the_queue(void)
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
static void test_leave_refused_for_now(void)
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

static void test_cancel_before_anything_was_sent(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 1000, 1000, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0);
}

static void test_cancel_while_subscribing(void)
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

static void test_subscribe_refused(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 1000, 1000, now), FAIRLOCK_PENDING);
  request(&b, 0, 1000);
  feed("-NOPERM no channel\r\n");
  answer(0, -1, 0);
  answer(1, 6, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_OK); /* the replies did not get out of step */
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
}

static void test_renewal_and_loss(void)
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
static void test_released_token_is_named(void)
{
  acquire_a(FAIRLOCK_RENEW);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 30000 77\r\n"));
}

/*
 * A server that took over, with a clock that is behind, may hand the lock over with an older token.
 * It is not believed: the acquire that is under way names the newer one, and would end that hold.
 */
static void test_older_token_is_not_believed(void)
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

static void test_another_token_is_a_loss(void)
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
static void lose_while_subscribing(void)
{
  begin();
  pass(4000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  grant(CHANNEL("1"), "99", 4000);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 0);
  pass(1000);
  CHECK_EQUAL(losses, 1);
}

/* Nothing more is sent for a lost hold: neither after NOSCRIPT nor on the next connection. */
static void test_loss_while_subscribing(void)
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

static void test_lease_runs_out(void)
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
static void test_lease_ran_out_long_ago(void)
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

/* The longest lease is believed in up to its end. */
static void test_longest_lease(void)
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

/*
 * A device that slept for weeks goes on waiting, unless the time of the wait is over; a missing
 * answer is noticed.
 */
static void test_frozen_for_weeks(void)
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
static void test_idle_for_weeks(void)
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

static void test_release_finds_nothing(void)
{
  acquire_a(1000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_LOST);
}

static void test_void_request_is_repeated(void)
{
  begin();
  request(&a, 0, 1000);
  answer(-2, 0, 100000);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends(" 1700000102000 ")); /* an expiry reckoned from the new time */
  answer(1, 5, 100000);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

static void test_no_answer_breaks_the_connection(void)
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

static void test_reply_lost_on_release(void)
{
  acquire_a(5000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  break_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  pass(50);
  greet();
  CHECK(sends(" 77\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

static void test_release_without_an_answer_is_unknown(void)
{
  acquire_a(30000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  break_connection();
  pass(10000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNKNOWN);
  acquire_a(30000);
  break_connection();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  pass(10000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  pass(28000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0); /* the lease has ended: nothing to do */
}

/*
 * A confirmation without an answer may have set the lease, so the release is repeated for that
 * long, though the handover itself lasts only for the waiter timeout.
 */
static void test_release_outlasts_a_confirmation(void)
{
  queue_a(FAIRLOCK_FOREVER);
  grant(CHANNEL("1"), "77", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(sends(" 77\r\n"));
  break_connection();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  pass(12000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  reconnect();
  CHECK(sends(" 77\r\n"));
  answer(1, 0, 0);
  CHECK(sends_nothing());
}

/*
 * The hold has a longer lease than the one that is renewed now: the release is repeated for that
 * long.
 */
static void test_release_outlasts_a_longer_lease(void)
{
  acquire_a(3600000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0);
  break_connection();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  pass(600000);
  reconnect();
  CHECK(sends(" 77\r\n"));
}

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
static void test_ghost_of_an_acquire(void)
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
static void test_ghost_of_an_acquire_before_the_answer(void)
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
static void test_ghost_of_an_acquire_between_releases(void)
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

/* A try, too, may arrive late, and begin a hold that the caller was told it has not. */
static void test_ghost_of_a_try(void)
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
static void test_ghost_of_a_leave(void)
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
static void test_grant_crosses_a_leave(void)
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
static void test_ghost_of_a_leave_in_the_past(void)
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
static void test_ghost_of_a_leave_in_the_far_past(void)
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
static void test_a_wrong_time_is_forgotten(void)
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
static void test_ghost_of_a_leave_is_forgotten(void)
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
 * A connection that opens and then is silent: it is given up soon enough for the wait to go on with
 * the next one.
 */
static void test_silent_greeting(void)
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

static void test_offline(void)
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

static void test_connecting_takes_too_long(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 20000, 1000, now), FAIRLOCK_PENDING);
  fairlock_engine_opening(&engine, now);
  pass(5000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

static void refuse_greeting(const char *error, int status)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 20000, 1000, now), FAIRLOCK_PENDING);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  drain();
  feed(error);
  CHECK_EQUAL(a.result, status);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

static void test_greeting_refused(void)
{
  refuse_greeting("-ERR unknown command 'HELLO'\r\n", FAIRLOCK_UNSUPPORTED);
  refuse_greeting("-NOPROTO unsupported protocol version\r\n", FAIRLOCK_UNSUPPORTED);
  refuse_greeting("-WRONGPASS invalid\r\n", FAIRLOCK_DENIED);
  CHECK(strcmp(engine.error, "WRONGPASS invalid") == 0);
  refuse_greeting("-NOAUTH HELLO must\r\n", FAIRLOCK_DENIED);
  refuse_greeting("+OK\r\n", FAIRLOCK_UNSUPPORTED);
  refuse_greeting("-NOSCRIPT No matching script.\r\n", FAIRLOCK_REFUSED);
  refuse_greeting("-LOADING wait\r\n", FAIRLOCK_PENDING);
}

static void test_greeting_with_everything(void)
{
  set_up();
  config.password = "pass";
  config.user = "user";
  config.client_name = "name";
  config.database = 3;
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  CHECK(sends("*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$4\r\npass\r\n$"
              "7\r\nSETNAME\r\n$4\r\nname\r\n"
              "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*1\r\n$4\r\nTIME\r\n"));
  feed("%1\r\n+modules\r\n*1\r\n%1\r\n+args\r\n*1\r\n+x\r\n");
  feed("+OK\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n");
  CHECK(fairlock_engine_ready(&engine));
}

static void refuse_request(const char *error, int status)
{
  begin();
  request(&a, 0, 1000);
  feed(error);
  CHECK_EQUAL(a.result, status);
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

static void test_time_that_is_none(void)
{
  refuse_time("+OK\r\n");
  refuse_time("*1\r\n:1700000000\r\n");
  refuse_time("*2\r\n:1700000000\r\n+x\r\n");
  refuse_time("*2\r\n:1700000000\r\n:-3\r\n");
  refuse_time("-ERR time is up\r\n");
}

/* Not even an engine that is driven wrongly believes what comes before the connection is open. */
static void test_bytes_before_the_connection(void)
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
static void test_back_off_has_an_end(void)
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

static void test_too_many_holds(void)
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
static void test_reentry_beyond_32767(void)
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

static void test_requests_refused(void)
{
  refuse_request("-NOPERM x\r\n", FAIRLOCK_DENIED);
  refuse_request("-LOADING x\r\n", FAIRLOCK_UNAVAILABLE);
  refuse_request("-BUSY x\r\n", FAIRLOCK_UNAVAILABLE);
  refuse_request("-READONLY x\r\n", FAIRLOCK_READONLY);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  refuse_request("-OOM x\r\n", FAIRLOCK_OOM);
  refuse_request("-MISCONF x\r\n", FAIRLOCK_MISCONF);
  refuse_request("-WRONGTYPE x\r\n", FAIRLOCK_REFUSED);
  refuse_request("!5\r\nOOM x\r\n", FAIRLOCK_OOM);
  refuse_request("-OOMPH\r\n", FAIRLOCK_REFUSED);
}

static void test_denied_inside_a_script(void)
{
  refuse_request("-ERR The user executing the script can't run this command\r\n",
                 FAIRLOCK_DENIED); /* Redis 7.0 */
  refuse_request("-ERR ACL failure in script: No permissions to access a key\r\n",
                 FAIRLOCK_DENIED); /* later */
}

#define CALL_6_2                                                                                   \
  "-ERR Error running script (call to f_d0710111014eb425a1501c1ff022c90c59333c09): @user_script:"

/* Redis 6.2 says where a script stopped before it says why. */
static void test_redis_6_2_says_where_first(void)
{
  refuse_request(CALL_6_2 "7: @user_script: 7: -OOM command not allowed\r\n", FAIRLOCK_OOM);
  CHECK(strcmp(engine.error, "OOM command not allowed") == 0);
  refuse_request(CALL_6_2 "7: @user_script: 7: -READONLY You can't write\r\n", FAIRLOCK_READONLY);
  refuse_request(CALL_6_2 "12: @user_script: 12: -MISCONF Redis is configured\r\n",
                 FAIRLOCK_MISCONF);
  refuse_request(CALL_6_2
                 "1: @user_script: 1: The user executing the script can't run this command\r\n",
                 FAIRLOCK_DENIED);
  refuse_request(CALL_6_2 "23: WRONGTYPE Operation against a key\r\n", FAIRLOCK_REFUSED);
  CHECK(strcmp(engine.error, "WRONGTYPE Operation against a key") == 0);
  refuse_request("-ERR @user_script:1: OOM\r\n", FAIRLOCK_REFUSED); /* says something else */
  CHECK(strcmp(engine.error, "ERR @user_script:1: OOM") == 0);
  refuse_request(CALL_6_2 "\r\n", FAIRLOCK_REFUSED); /* and nothing more */
  refuse_request("-ERR Error running script\r\n", FAIRLOCK_REFUSED);
  CHECK(strcmp(engine.error, "ERR Error running script") == 0);
}

static void test_an_error_that_may_pass_is_waited_out(void)
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

static void nonsense(const char *text)
{
  begin();
  request(&a, 0, 1000);
  feed(text);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  CHECK(sends_nothing());
}

static void test_nonsense_breaks_the_connection(void)
{
  nonsense("?");
  nonsense("+OK\r\n");
  nonsense("*2\r\n:1\r\n:1\r\n");
  nonsense("*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n");
  nonsense("*3\r\n:1\r\n:1\r\n+x\r\n");
  nonsense("*3\r\n:1\r\n:1\r\n:9223372036854775807\r\n");
  nonsense("*3\r\n:1\r\n:-9\r\n:1\r\n");
  nonsense("*3\r\n:1\r\n:1\r\n-ERR inside\r\n");
  nonsense("|1\r\n+a\r\n+b\r\n");
  acquire_a(1000);
  answer(1, 5, 0); /* nobody asked */
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

/*
 * A reply that makes no sense does not count: the request is in doubt, and is sent again on the
 * next connection.
 */
static void test_nonsense_is_no_answer(void)
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
static void test_nonsense_for_an_acquire_leaves_a_doubt(void)
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

static void test_force_release(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_force(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" -1 0\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_force(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_NOT_HELD);
}

static struct fairlock_report reports[4];
static char ids[4][16];
static unsigned reported;

static void keep_report(const struct fairlock_report *report, void *context)
{
  (void)context;
  if (reported == 4) return;
  reports[reported] = *report;
  if (report->id != NULL && report->id_size < 16)
    memcpy(ids[reported], report->id, report->id_size);
  reported++;
}

static void test_inspect(void)
{
  begin();
  reported = 0;
  CHECK_EQUAL(fairlock_engine_inspect(&a, keep_report, NULL, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_inspect(&b, keep_report, NULL, now), FAIRLOCK_IN_PROGRESS);
  drain();
  feed("*12\r\n:1500\r\n$2\r\n42\r\n:1\r\n:2\r\n:2\r\n$3\r\nh:1\r\n:1\r\n:2\r\n$3\r\nw:1\r\n:0\r\n:"
       "1\r\n$3\r\nw:2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(reported, 3);
  CHECK_EQUAL(reports[0].place, 0);
  CHECK_EQUAL(reports[0].ttl_ms, 1500);
  CHECK_EQUAL(reports[0].token, 42);
  CHECK_EQUAL(reports[0].hold_count, 2);
  CHECK_EQUAL(reports[0].waiters, 2);
  CHECK(reports[0].ours && strcmp(ids[0], "h:1") == 0);
  CHECK_EQUAL(reports[1].place, 1);
  CHECK(reports[1].ours && reports[1].alive && reports[1].listens && strcmp(ids[1], "w:1") == 0);
  CHECK(!reports[2].ours && reports[2].alive && !reports[2].listens && strcmp(ids[2], "w:2") == 0);
}

/* Elements of a wrong kind are skipped; an id that is too long is shown as "?". */
static void test_inspect_oddities(void)
{
  static char long_id[400];
  begin();
  reported = 0;
  CHECK_EQUAL(fairlock_engine_inspect(&a, keep_report, NULL, now), FAIRLOCK_PENDING);
  drain();
  feed("*12\r\n:1500\r\n$1\r\n0\r\n:0\r\n:1\r\n:2\r\n:7\r\n:1\r\n:2\r\n$300\r\n");
  memset(long_id, 'x', 300);
  memcpy(long_id + 300, "\r\n", 3);
  feed(long_id);
  feed(":1\r\n+two\r\n$1\r\ny\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(reported, 1); /* neither the holder that is a number, nor the waiter after a word */
  CHECK_EQUAL(reports[0].place, 1);
  CHECK_BYTES(ids[0], 1, "?", 1);
}

static void test_remove_ends_the_subscription(void)
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
  CHECK(engine.handles == NULL);
}

/* An UNSUBSCRIBE that is refused for now is sent again, with the leave or after it. */
static void test_remove_unsubscribes_again(void)
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
static void test_remove_comes_to_an_end(void)
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
static void test_remove_is_refused_for_now(void)
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
 * A refused SUBSCRIBE gets its own reply, and a handle that has to leave is not taken out before it
 * has left.
 */
static void test_remove_while_subscribing(void)
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
static void test_remove_in_the_middle_of_a_request(void)
{
  size_t size;
  set_up();
  config.send_size = FAIRLOCK_SEND_MIN;
  config.offline_ms = engine.offline_ms = 100;
  greet();
  CHECK_EQUAL(fairlock_engine_force(&a, now), FAIRLOCK_PENDING);
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
static void test_remove_in_the_middle_of_a_message(void)
{
  begin();
  feed(">3\r\n$7\r\nmessage\r\n$56\r\n" CHANNEL("1") "\r\n");
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
  memset(&a, 0, sizeof a);
  feed("$4\r\n99 5\r\n");
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

/* A release does not wait for the answer to a confirmation, and that answer is then ignored. */
static void test_release_overtakes(void)
{
  queue_a(FAIRLOCK_FOREVER);
  grant(CHANNEL("1"), "99", 0);
  drain();
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 99\r\n"));
  answer(1, 99, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

static void test_small_send_buffer(void)
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

/* The time for an answer runs from when the request was begun, however slowly the link takes it. */
static void test_slow_link(void)
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

static void test_braces(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_add(&engine, &b, "a{b", 3), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 1000, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("redisson_lock_queue:a{b\r\n"));
  CHECK(strstr(output, "redisson_lock__channel:a{b:" ID ".a2.08s7li100001:3\r\n") != NULL);
}

static void test_id_is_the_servers(void)
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
static void test_bytes_of_a_pair(void)
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

/* A server that is busy when a handle subscribes refuses it only once. */
static void test_refused_subscription_is_repeated(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  feed("-BUSY a script runs\r\n");
  feed("-BUSY a script runs\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  pass(500);
  CHECK(sends("SUBSCRIBE\r\n"));
  feed("-BUSY a script runs\r\n");
  answer(0, -1, 0); /* in the queue, but it does not listen */
  pass(500);
  CHECK(sends("SUBSCRIBE\r\n"));
  join(0, -1);
  pass(500);
  CHECK(sends_nothing());
  grant(CHANNEL("1"), "99", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* A handle that may not listen does not wait; once the right is granted, the next wait listens. */
static void test_denied_subscription_is_repeated(void)
{
  begin();
  request(&a, FAIRLOCK_FOREVER, 1000);
  feed("-NOPERM no channel\r\n");
  answer(0, -1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA")); /* it leaves the queue */
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
}

/* A handle that may not UNSUBSCRIBE is taken out all the same, at once. */
static void test_denied_unsubscription(void)
{
  acquire_a(1000);
  release_a();
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("UNSUBSCRIBE\r\n"));
  feed("-NOPERM no unsubscribe\r\n");
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/* A plain reply in place of a SUBSCRIBE's answer belongs to no request. */
static void test_subscription_without_a_message(void)
{
  begin();
  request(&a, FAIRLOCK_FOREVER, 1000);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

/* Two clients with the same configuration are two: the server numbers its connections. */
static void test_one_client_id_for_two(void)
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

/* After a fail-over the clock may be behind: what is in doubt expires all the same. */
static void test_doubt_has_a_bound(void)
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

/* A cancelled wait, whose leave was refused, is owed a leave by whatever comes next. */
static void test_leave_survives_a_refused_try(void)
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

/* A try whose reply was lost, and whose repetition is refused, may have begun a hold. */
static void test_try_in_doubt_that_is_refused(void)
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

/* A release that nobody answered is owed, too. */
static void test_unknown_release_and_a_refused_try(void)
{
  acquire_a(60000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  break_connection();
  pass(10000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNKNOWN);
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 60000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  feed("-OOM x\r\n");
  CHECK(sends("EVALSHA"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OOM);
}

/* An acquire that may come late would begin a hold that nobody knows of, also after a loss. */
/*
 * A grant crosses a heartbeat. The hold is ended by force, and then the heartbeat comes: it queues
 * again the client that believes it holds, which learns from the confirmation that the hold is
 * gone.
 */
static void test_lost_hold_leaves_the_queue(void)
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

static void test_lost_hold_leaves(void)
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

/* A handle whose removal timed out can be used again, and holds only what it was given. */
static void test_acquire_after_a_removal(void)
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

/*
 * What a handle owes the server is sent when there is a connection again, and until then its memory
 * is in use.
 */
static void test_remove_offline(void)
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
static void test_remove_offline_for_long(void)
{
  queue_a(60000);
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  break_connection();
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  pass(38000); /* a lease, a waiter timeout, and the life of a request */
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/* A re-entry that fails leaves the hold as it was: it ends at its time. */
static void test_refused_reentry_keeps_the_lease(void)
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
 * A lease that is shorter than the claim of a handover is what the confirmation asks for, and what
 * is believed.
 */
static void test_short_lease_after_a_grant(void)
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
static void test_short_lease_after_a_poll(void)
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
static void test_long_round_trip(void)
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

/*
 * While an answer is late nothing more is sent: the server may have lost the request, and the next
 * answer would be taken for it.
 */
static void test_nothing_is_sent_behind_a_late_answer(void)
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

/* No more than three requests of a handle are unanswered. */
static void test_three_unanswered(void)
{
  set_up();
  config.response_ms = 100000;
  config.offline_ms = engine.offline_ms = FAIRLOCK_FOREVER;
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  for (int i = 0; i < 3; i++) {
    CHECK(sends("EVALSHA"));
    pass(2000);
  }
  CHECK(sends_nothing());
  pass(2000);
  CHECK(sends_nothing());
  join(0, -1);
  pass(0);
  CHECK(sends("EVALSHA"));
}

/*
 * Answers come in the order of the requests, however those of three handles lie between each other.
 */
static void test_answers_in_order(void)
{
  static struct fairlock c;
  set_up();
  config.response_ms = 100000;
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

/* Sequence numbers have to be told apart: at most 30000 requests await their answers. */
static void test_too_many_unanswered(void)
{
  begin();
  engine.last_sent = (uint16_t)(engine.last_received + 30000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  engine.last_received++;
  drain();
  CHECK(output_size > 0);
}

/*
 * A handle is taken out while its UNSUBSCRIBE is not answered: nobody could count its answer, so
 * the connection ends.
 */
static void test_remove_with_a_subscription_unanswered(void)
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

/* A reply to a request of which the server has half. */
static void test_answer_before_the_end_of_a_request(void)
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

/* A claim of any length in a message is believed for no longer than a waiter timeout. */
static void test_grant_for_too_long(void)
{
  queue_a(FAIRLOCK_FOREVER);
  push("message", CHANNEL("1"), "99 1700000000000 9000000000");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 4900);
  CHECK(fairlock_engine_remaining_ms(&a, now) <= 5000);
}

/* The server is frozen: a short wait is not over because somebody else held the lock. */
static void test_wait_without_an_answer(void)
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

/*
 * A handle that listens and does not wait: "ask now" is for nobody, a grant is given back; a second
 * confirmation is ignored.
 */
static void test_messages_to_an_idle_handle(void)
{
  acquire_a(1000);
  release_a();
  push("subscribe", CHANNEL("1"), NULL);
  push("message", CHANNEL("1"), "0");
  CHECK(sends_nothing());
  grant(CHANNEL("1"), "99", 0);
  CHECK(sends("EVALSHA"));
  answer(1, 0, 0);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

/* What was left of the old connection is not taken for the beginning of the new one. */
static void test_half_an_answer_and_a_reconnect(void)
{
  queue_a(FAIRLOCK_FOREVER);
  pass(2000);
  drain();
  feed("*3\r\n:0\r\n:-");
  reconnect();
  CHECK(sends("SUBSCRIBE\r\n"));
}

/*
 * Who has not subscribed gets no messages: a visitor of the caller's stack would owe a leave for a
 * grant.
 */
static void test_message_without_a_subscription(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_force(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 0, 0);
  grant(CHANNEL("1"), "99", 0);
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/* A device that was frozen reads what has piled up before it judges the server by it. */
static void test_frozen_device_reads_first(void)
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

/* Nor is a server spared that never stops to send. */
static void test_endless_bytes(void)
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

static void test_status_words(void)
{
  for (int status = FAIRLOCK_UNTRUSTED - 1; status <= FAIRLOCK_PENDING + 1; status++) {
    CHECK(fairlock_status_text(status)[0] != 0 && fairlock_status_name(status)[0] != 0);
  }
  CHECK(strcmp(fairlock_status_name(FAIRLOCK_LOST), "LOST") == 0);
  CHECK(strcmp(fairlock_status_name(FAIRLOCK_TOO_LONG), "TOO_LONG") == 0);
  CHECK(strcmp(fairlock_status_name(FAIRLOCK_UNTRUSTED), "UNTRUSTED") == 0);
  CHECK(strcmp(fairlock_status_name(FAIRLOCK_PENDING), "PENDING") == 0);
}

/*
 * A round trip that was long counts less with each shorter one, and so does the time for which old
 * requests are feared.
 */
static void test_long_round_trip_is_forgotten(void)
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

static void test_error_text_has_an_end(void)
{
  set_up();
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  drain();
  feed("-ERR 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
       "5678901234567890123456789012345678901234567890123456789012345678901234567890123456789\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_REFUSED);
  CHECK(memchr(engine.error, 0, sizeof engine.error) != NULL);
}

/* Devices that lost the server together do not come back together. */
static void test_back_off_differs(void)
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
static void test_greeting_is_not_taken(void)
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

/* Who only tries does not wait for better times, however long a wait would. */
static void test_try_gives_up(void)
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

/* The release that learned of the loss was one of those that are owed. */
static void test_partial_release_of_a_lost_hold(void)
{
  acquire_a(60000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 60000, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0);
  CHECK_EQUAL(a.holds, 2);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
}

/* Of a short lease more than one renewal may be under way. */
static void test_renewals_go_out_by_the_clock(void)
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

const struct check_test check_tests[] = {
    {"init refuses what cannot work", test_init_refuses},
    {"arguments and misuse", test_arguments},
    {"acquire and release", test_acquire_and_release},
    {"try is busy", test_try_is_busy},
    {"re-entry and partial release", test_reentry},
    {"re-entry never shortens the lease", test_reentry_of_a_longer_hold},
    {"65535 holds are enough", test_too_many_holds},
    {"re-entry beyond 32767 holds", test_reentry_beyond_32767},
    {"a re-entry asks for what is left by the server's clock", test_reentry_asks_for_what_is_left},
    {"a request that expired while the device was asleep", test_expired_while_asleep},
    {"an acquire that was in doubt is left", test_acquire_in_doubt_is_left},
    {"a re-entry that confirms a longer hold", test_reentry_confirms_a_longer_hold},
    {"a grant to an earlier place in the queue", test_grant_to_an_earlier_place},
    {"NOSCRIPT is answered by EVAL", test_noscript},
    {"NOSCRIPT of one script", test_noscript_of_one},
    {"deadline while a request is being written", test_deadline_while_writing},
    {"heartbeat, grant, confirmation", test_heartbeat_and_grant},
    {"a grant that is too old is not believed", test_grant_that_is_too_old},
    {"a grant from the future", test_grant_from_the_future},
    {"a frozen waiter goes on", test_frozen_waiter_goes_on},
    {"a grant from another time is not believed", test_grant_from_another_time},
    {"a grant after a slow greeting", test_grant_after_a_slow_greeting},
    {"a forged grant is lost when it is not confirmed", test_forged_grant},
    {"a peer's wake-up makes a waiter ask", test_peer_wakes},
    {"messages that are not ours are ignored", test_messages_that_are_not_ours},
    {"an unexpected grant is given back", test_unexpected_grant_is_given_back},
    {"the first in line asks when the lease ends", test_first_in_line_asks_when_the_lease_ends},
    {"a time-out leaves the queue", test_timeout_leaves_the_queue},
    {"a leave that is refused for now", test_leave_refused_for_now},
    {"cancel before anything was sent", test_cancel_before_anything_was_sent},
    {"cancel while subscribing", test_cancel_while_subscribing},
    {"SUBSCRIBE refused", test_subscribe_refused},
    {"renewal and loss", test_renewal_and_loss},
    {"another token is a loss", test_another_token_is_a_loss},
    {"released token is named", test_released_token_is_named},
    {"an older token is not believed", test_older_token_is_not_believed},
    {"a hold is lost while its SUBSCRIBE is under way", test_loss_while_subscribing},
    {"a lease runs out", test_lease_runs_out},
    {"a lease ran out long ago", test_lease_ran_out_long_ago},
    {"the longest lease", test_longest_lease},
    {"frozen for weeks", test_frozen_for_weeks},
    {"idle for weeks", test_idle_for_weeks},
    {"release finds nothing", test_release_finds_nothing},
    {"a void request is repeated", test_void_request_is_repeated},
    {"no answer breaks the connection", test_no_answer_breaks_the_connection},
    {"reply lost on release", test_reply_lost_on_release},
    {"release without an answer is unknown", test_release_without_an_answer_is_unknown},
    {"release outlasts a confirmation", test_release_outlasts_a_confirmation},
    {"release outlasts a longer lease", test_release_outlasts_a_longer_lease},
    {"ghost of an acquire", test_ghost_of_an_acquire},
    {"ghost of an acquire before the answer to the release",
     test_ghost_of_an_acquire_before_the_answer},
    {"ghost of an acquire between two releases", test_ghost_of_an_acquire_between_releases},
    {"ghost of a try", test_ghost_of_a_try},
    {"ghost of a leave", test_ghost_of_a_leave},
    {"a grant crosses a leave", test_grant_crosses_a_leave},
    {"the ghost of a leave that lasts too long", test_ghost_of_a_leave_in_the_past},
    {"the ghost of a leave that lasts for a month", test_ghost_of_a_leave_in_the_far_past},
    {"a wrong time of the server is forgotten", test_a_wrong_time_is_forgotten},
    {"the ghost of a leave is forgotten", test_ghost_of_a_leave_is_forgotten},
    {"offline", test_offline},
    {"a greeting that nobody answers", test_silent_greeting},
    {"connecting takes too long", test_connecting_takes_too_long},
    {"greeting refused", test_greeting_refused},
    {"a greeting without the time", test_time_that_is_none},
    {"bytes before the connection is open", test_bytes_before_the_connection},
    {"back-off has an end", test_back_off_has_an_end},
    {"greeting with everything", test_greeting_with_everything},
    {"requests refused", test_requests_refused},
    {"a right is missing inside a script", test_denied_inside_a_script},
    {"Redis 6.2 says where a script stopped first", test_redis_6_2_says_where_first},
    {"an error that may pass is waited out", test_an_error_that_may_pass_is_waited_out},
    {"nonsense is no answer", test_nonsense_is_no_answer},
    {"nonsense for an acquire leaves a doubt", test_nonsense_for_an_acquire_leaves_a_doubt},
    {"nonsense breaks the connection", test_nonsense_breaks_the_connection},
    {"force-release", test_force_release},
    {"inspect", test_inspect},
    {"an inspection of odd things", test_inspect_oddities},
    {"remove ends the subscription", test_remove_ends_the_subscription},
    {"an UNSUBSCRIBE that is refused for now", test_remove_unsubscribes_again},
    {"taking out comes to an end", test_remove_comes_to_an_end},
    {"taken out while the server refuses", test_remove_is_refused_for_now},
    {"taken out while its SUBSCRIBE is under way", test_remove_while_subscribing},
    {"taken out in the middle of a request", test_remove_in_the_middle_of_a_request},
    {"taken out in the middle of a message", test_remove_in_the_middle_of_a_message},
    {"a release overtakes a confirmation", test_release_overtakes},
    {"small send buffer", test_small_send_buffer},
    {"a slow link has no longer for an answer", test_slow_link},
    {"braces in a name", test_braces},
    {"id of the server's numbers", test_id_is_the_servers},
    {"bytes of an acquire and a release", test_bytes_of_a_pair},
    {"a refused SUBSCRIBE is repeated", test_refused_subscription_is_repeated},
    {"a denied SUBSCRIBE is repeated", test_denied_subscription_is_repeated},
    {"a denied UNSUBSCRIBE", test_denied_unsubscription},
    {"a SUBSCRIBE without its message", test_subscription_without_a_message},
    {"one client id for two clients", test_one_client_id_for_two},
    {"doubt has a bound: a server whose clock is behind", test_doubt_has_a_bound},
    {"a leave survives a refused try", test_leave_survives_a_refused_try},
    {"a try in doubt that is refused", test_try_in_doubt_that_is_refused},
    {"an unknown release and a refused try", test_unknown_release_and_a_refused_try},
    {"a lost hold leaves", test_lost_hold_leaves},
    {"a lost hold leaves the queue", test_lost_hold_leaves_the_queue},
    {"acquire after a removal", test_acquire_after_a_removal},
    {"taken out offline", test_remove_offline},
    {"taken out offline for long", test_remove_offline_for_long},
    {"a refused re-entry keeps the lease", test_refused_reentry_keeps_the_lease},
    {"a short lease after a grant", test_short_lease_after_a_grant},
    {"a short lease after a poll", test_short_lease_after_a_poll},
    {"a long round trip", test_long_round_trip},
    {"nothing is sent behind a late answer", test_nothing_is_sent_behind_a_late_answer},
    {"three requests unanswered", test_three_unanswered},
    {"answers in order", test_answers_in_order},
    {"too many unanswered", test_too_many_unanswered},
    {"taken out with a SUBSCRIBE unanswered", test_remove_with_a_subscription_unanswered},
    {"an answer before the end of a request", test_answer_before_the_end_of_a_request},
    {"a grant for too long", test_grant_for_too_long},
    {"a wait without an answer", test_wait_without_an_answer},
    {"messages to an idle handle", test_messages_to_an_idle_handle},
    {"half an answer and a reconnect", test_half_an_answer_and_a_reconnect},
    {"a message without a subscription", test_message_without_a_subscription},
    {"a frozen device reads first", test_frozen_device_reads_first},
    {"endless bytes", test_endless_bytes},
    {"a long round trip is forgotten", test_long_round_trip_is_forgotten},
    {"the text of an error has an end", test_error_text_has_an_end},
    {"back-off differs", test_back_off_differs},
    {"a greeting that is not taken", test_greeting_is_not_taken},
    {"a try gives up", test_try_gives_up},
    {"a partial release of a lost hold", test_partial_release_of_a_lost_hold},
    {"renewals go out by the clock", test_renewals_go_out_by_the_clock},
    {"status words", test_status_words},
    {NULL, NULL},
};
