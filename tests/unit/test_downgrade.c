/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From alone to shared: what both handles send meanwhile, and what becomes of them if that fails. As
 * in test_engine.c, the test plays the server.
 */
#include "fairlock_follow.h"
#include "fairlock_keep.h"
#include "fairlock_share.h"
#include "internal.h" /* before the names of the fixture, which it uses for others */

#include "engine_tests.h"
#include "scripts/hashes.h"

static struct fairlock_downgrading sharing;
static struct fairlock_shared heir;
static struct fairlock *const heir_handle = &heir.handle;
static struct fairlock_topology topology;
static struct fairlock_keeping keep;
static int ends;

static void prepare(void)
{
  set_up();
  ends = 0;
  config.ended = count_end;
  config.ended_context = &ends;
  fairlock_engine_use_downgrading(&engine, &sharing);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &heir, "door", 4, 7), FAIRLOCK_OK);
}

/* a has it alone, by a try. */
static void hold_alone_again(uint32_t lease_ms, int64_t token)
{
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, lease_ms, now), FAIRLOCK_PENDING);
  CHECK(sends(FAIRLOCK_LOCK_SHA1));
  answer(1, token, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  ends = 0;
}

static void hold_alone(uint32_t lease_ms)
{
  hold_alone_again(lease_ms, 77);
}

static void set_up_alone(uint32_t lease_ms)
{
  prepare();
  greet();
  hold_alone(lease_ms);
}

static int downgrade(void)
{
  return fairlock_engine_downgrade(&a, &heir, FAIRLOCK_RENEW, now);
}

/* Sends the request, and nothing of a. */
static bool asks(void)
{
  return sends(FAIRLOCK_DOWNGRADE_SHA1) && strstr(output, FAIRLOCK_LOCK_SHA1) == NULL &&
         strstr(output, ":3 17") != NULL && strstr(output, " -1 30000+ 77\r\n$1\r\n7\r\n") != NULL;
}

static void set_up_asked(void)
{
  set_up_alone(FAIRLOCK_RENEW);
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
  CHECK(asks());
}

/* The heir shared the lock before, with this token. Now a has it alone, and asks for the downgrade. */
static void set_up_after_a_share(int64_t token, uint32_t lease_ms)
{
  prepare();
  greet();
  request(heir_handle, 0, 1000);
  answer(1, token, 0);
  CHECK_EQUAL(fairlock_engine_release(heir_handle, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 0, 0);
  hold_alone(lease_ms);
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
}

static bool has_share(void)
{
  return heir_handle->result == FAIRLOCK_OK && heir_handle->token == 78 &&
         heir_handle->holds == 1 && fairlock_engine_remaining_ms(heir_handle, now) > 0;
}

static bool is_free(const struct fairlock *handle, int result)
{
  return handle->phase == FREE && handle->result == result && handle->holds == 0;
}

/* a is released: with its token, by the script that knows no shares. */
static bool releases(void)
{
  return strstr(output, FAIRLOCK_LOCK_SHA1) != NULL && strstr(output, " 0 0 77\r\n") != NULL;
}

static bool leaves(void)
{
  return strstr(output, FAIRLOCK_SHARED_SHA1) != NULL &&
         strstr(output, " 0 0\r\n$1\r\n7\r\n") != NULL;
}

static void test_downgrade(void)
{
  set_up_asked();
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  CHECK_EQUAL(fairlock_engine_remaining_ms(heir_handle, now), 0);
  push("subscribe", CHANNEL("3"), NULL);
  CHECK_EQUAL(ends, 0);
  answer(1, 78, 0);
  CHECK(has_share());
  CHECK(is_free(&a, FAIRLOCK_OK));
  CHECK_EQUAL(ends, 2);
  CHECK_EQUAL(losses, 0);
  CHECK(sends_nothing());
  /* from now on each is as any other */
  pass(10000);
  CHECK(sends(" -1 30000+ 78\r\n$1\r\n7\r\n") && strstr(output, FAIRLOCK_SHARED_SHA1) != NULL);
  answer(1, 78, 0);
  CHECK_EQUAL(fairlock_engine_release(heir_handle, now), FAIRLOCK_PENDING);
  CHECK(sends(FAIRLOCK_SHARED_SHA1));
  answer(1, 0, 0);
  CHECK(is_free(heir_handle, FAIRLOCK_OK));
  hold_alone_again(FAIRLOCK_RENEW, 80);
}

/* Renewals that are on their way, or would be due, neither lose the hold nor prolong it. */
static void test_renewals(void)
{
  set_up_alone(FAIRLOCK_RENEW);
  pass(10000);
  CHECK(sends(" -1 30000+ 77\r\n"));
  pass(1000);
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
  CHECK(asks());
  answer(-1, 0, 0); /* of the renewal */
  CHECK_EQUAL(losses, 0);
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_PENDING);
  push("subscribe", CHANNEL("3"), NULL);
  for (int i = 0; i < 19; i++) { /* a renewal would be due */
    feed("-OOM\r\n");
    pass(RETRY_MS);
    CHECK(asks());
  }
  answer(1, 78, 0);
  CHECK(has_share());
  CHECK(is_free(&a, FAIRLOCK_OK));
  CHECK_EQUAL(losses, 0);
  CHECK(sends_nothing());
}

/* It is sent again. Whatever the server says by then, nothing is held that nobody knows of. */
static void test_broken_connection(void)
{
  set_up_asked();
  reconnect();
  CHECK(asks());
  push("subscribe", CHANNEL("3"), NULL);
  answer(1, 78, 0);
  CHECK(has_share());
  CHECK(is_free(&a, FAIRLOCK_OK));
  pass(10000);
  CHECK(sends(" -1 30000+ 78\r\n"));
  answer(1, 78, 0);
  set_up_asked();
  reconnect();
  CHECK(asks());
  push("subscribe", CHANNEL("3"), NULL);
  answer(-1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_LOST);
  CHECK_EQUAL(losses, 1);
  drain();
  CHECK(leaves() && !releases()); /* the first one may have been carried out */
  answer(1, 0, 0);
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_LOST);
  pass(5000);
  drain();
  CHECK(leaves());
  answer(0, 0, 0); /* to both */
  answer(0, 0, 0);
  CHECK(is_free(&a, FAIRLOCK_LOST));
  CHECK(is_free(heir_handle, FAIRLOCK_LOST));
}

/* a's hold had ended: it leaves, because a heartbeat may have begun another one, and is FREE then. */
static bool leaves_once_more(int result)
{
  pass(2100); /* nothing is in doubt any more */
  drain();
  bool sent = strstr(output, FAIRLOCK_LOCK_SHA1) != NULL && strstr(output, " 0 0\r\n") != NULL;
  answer(0, 0, 0);
  return sent && is_free(&a, result);
}

/*
 * An acquire of a that is still under way when the connection breaks may come between the heir's request
 * and its answer, and queue a again: so a leaves, although the answer comes when that has expired.
 */
static void test_late_acquire(void)
{
  prepare();
  greet();
  request(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  push("subscribe", CHANNEL("1"), NULL);
  answer(0, 5000, 0);
  pass(2000);
  CHECK(sends(" 5000 30000+"));
  grant(CHANNEL("1"), "77", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
  reconnect();
  CHECK(asks());
  pass(1950);
  CHECK(sends_nothing());
  push("subscribe", CHANNEL("3"), NULL);
  pass(49);
  answer(1, 78, 0);
  CHECK(has_share());
  CHECK(a.phase == LEAVING);
  CHECK(leaves_once_more(FAIRLOCK_OK));
}

/* The exclusive hold has ended: the server says so, or it is known here. */
static void test_lost(void)
{
  set_up_asked();
  push("subscribe", CHANNEL("3"), NULL);
  answer(-1, 0, 0);
  CHECK(is_free(heir_handle, FAIRLOCK_LOST));
  CHECK(leaves_once_more(FAIRLOCK_LOST));
  CHECK_EQUAL(ends, 2);
  CHECK_EQUAL(losses, 1);
  CHECK(sends_nothing());
  set_up_alone(1000);
  pass(1000);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(downgrade(), FAIRLOCK_LOST);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(heir_handle->phase, FREE);
  CHECK_EQUAL(downgrade(), FAIRLOCK_NOT_HELD);
}

/* A message says that the heir shares; that is no answer, so a is released. */
static void test_granted_by_a_message(void)
{
  set_up_asked();
  push("subscribe", CHANNEL("3"), NULL);
  grant(CHANNEL("3"), "78", 0);
  CHECK(has_share());
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 78, 0);
  CHECK(has_share());
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  pass(RETRY_MS);
  drain();
  CHECK(releases());
  answer(1, 78, 0); /* the heir has confirmed its hold */
  answer(0, 0, 0);
  CHECK(leaves_once_more(FAIRLOCK_UNKNOWN));
  CHECK(has_share());
  CHECK_EQUAL(ends, 2);
  CHECK_EQUAL(losses, 0);
}

/* The server refuses: a is released, and nobody shares. */
static void check_released(int status)
{
  CHECK(is_free(heir_handle, status));
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  drain();
  CHECK(releases() && !leaves());
  answer(1, 0, 0);
  CHECK(is_free(&a, FAIRLOCK_OK));
  CHECK_EQUAL(ends, 2);
  CHECK_EQUAL(losses, 0);
}

static void test_refused(void)
{
  set_up_asked();
  push("subscribe", CHANNEL("3"), NULL);
  feed("-NOPERM\r\n");
  check_released(FAIRLOCK_DENIED);
  /* its next acquire is as any other */
  CHECK_EQUAL(fairlock_engine_acquire(heir_handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now),
              FAIRLOCK_PENDING);
  CHECK(sends(FAIRLOCK_SHARED_SHA1) && strstr(output, " 5000 30000+ 77\r\n") != NULL);
  answer(0, -1, 0);
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_PENDING);
}

/* What only looks like the answer that the hold is gone breaks the connection. */
static void breaks(const char *reply)
{
  set_up_asked();
  push("subscribe", CHANNEL("3"), NULL);
  feed(reply);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_PENDING);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
}

static void test_nonsense(void)
{
  breaks("*4\r\n:-1\r\n:0\r\n:4\r\n:5\r\n");
  breaks("~3\r\n:-1\r\n:0\r\n:4\r\n");
  breaks("*3\r\n:-1\r\n+x\r\n:4\r\n");
  breaks("*3\r\n:-1\r\n*1\r\n:0\r\n:4\r\n");
  breaks("*0\r\n");
}

/* The same, before its request was written to the end. */
static void test_answer_before_the_end(void)
{
  size_t size;
  set_up_alone(FAIRLOCK_RENEW);
  config.send_size = FAIRLOCK_SEND_MIN;
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
  (void)fairlock_engine_output(&engine, &size, now);
  (void)fairlock_engine_output(&engine, &size, now);
  push("subscribe", CHANNEL("3"), NULL);
  CHECK(engine.writing);
  answer(-1, 0, 0);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_PENDING);
}

static void test_unknown_script(void)
{
  set_up_asked();
  push("subscribe", CHANNEL("3"), NULL);
  feed("-NOSCRIPT\r\n");
  /* the text is not sent for another script */
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("\r\nEVAL\r\n") && strstr(output, " -1 30000+ 77\r\n$1\r\n7\r\n") != NULL);
  CHECK(strstr(output, FAIRLOCK_LOCK_SHA1) != NULL);
  bool first = strstr(output, FAIRLOCK_LOCK_SHA1) < strstr(output, "\r\nEVAL\r\n");
  if (first) answer(0, 1000, 0);
  answer(-2, 0, 0); /* too late */
  if (!first) answer(0, 1000, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_BUSY);
  CHECK(asks());
  answer(1, 78, 0);
  CHECK(has_share());
  CHECK(is_free(&a, FAIRLOCK_OK));
}

/* One that comes first does not get the text, whatever its own script. */
static void check_text_behind(struct fairlock *other)
{
  engine.window = 1;
  CHECK_EQUAL(fairlock_engine_acquire(other, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  pass(1);
  feed("-NOSCRIPT\r\n");
  CHECK(sends("\r\nEVALSHA\r\n") && strstr(output, "\r\nEVAL\r\n") == NULL);
  answer(0, 1000, 0);
  CHECK_EQUAL(other->result, FAIRLOCK_BUSY);
  CHECK(sends("\r\nEVAL\r\n"));
  answer(1, 78, 0);
  CHECK(has_share());
}

static void test_unknown_script_behind_others(void)
{
  struct fairlock_shared other;
  set_up_asked();
  push("subscribe", CHANNEL("3"), NULL);
  check_text_behind(&b);
  set_up_asked();
  push("subscribe", CHANNEL("3"), NULL);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &other, "door", 4, 7), FAIRLOCK_OK);
  check_text_behind(&other.handle);
}

/* No answer for offline_ms: both are given up, and both are told to the server later. */
static void test_unreachable(void)
{
  set_up_asked();
  break_connection();
  pass(9000);
  CHECK_EQUAL(ends, 0);
  pass(1500);
  CHECK_EQUAL(ends, 2);
  CHECK_EQUAL(a.result, FAIRLOCK_UNKNOWN);
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_UNREACHABLE);
  greet();
  drain();
  CHECK(leaves() && releases());
  CHECK_EQUAL(losses, 0);
}

/* The same before anything was sent: then there is nothing to leave. */
static void test_never_sent(void)
{
  set_up_alone(FAIRLOCK_RENEW);
  break_connection();
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
  pass(10500);
  CHECK(is_free(heir_handle, FAIRLOCK_UNREACHABLE));
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  greet();
  drain();
  CHECK(releases() && !leaves());
  answer(1, 0, 0);
  CHECK(is_free(&a, FAIRLOCK_UNREACHABLE));
}

/* Until the heir has given up, the release is held back. */
static void test_cancel(void)
{
  set_up_asked();
  push("subscribe", CHANNEL("3"), NULL);
  pass(RETRY_MS);
  CHECK(sends_nothing());
  CHECK_EQUAL(engine.counters.requests, 2);
  CHECK_EQUAL(fairlock_engine_cancel(heir_handle, now), FAIRLOCK_OK);
  drain();
  CHECK(leaves() && !releases());
  pass(RETRY_MS);
  drain();
  CHECK(releases());
  answer(1, 78, 0); /* too late to count */
  answer(1, 0, 0);
  CHECK(is_free(heir_handle, FAIRLOCK_CANCELLED));
  answer(0, 0, 0); /* what the heir has left is the last that was released */
  CHECK(leaves_once_more(FAIRLOCK_UNKNOWN));
  CHECK_EQUAL(ends, 2);
}

/* Its next acquire is as any other, even if it has not left yet. */
static void test_acquire_after_cancel(void)
{
  set_up_asked();
  break_connection();
  CHECK_EQUAL(fairlock_engine_cancel(heir_handle, now), FAIRLOCK_OK);
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_engine_acquire(heir_handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now),
              FAIRLOCK_PENDING);
  pass(RETRY_MS);
  greet();
  drain();
  CHECK(strstr(output, FAIRLOCK_SHARED_SHA1) != NULL);
  CHECK(strstr(output, FAIRLOCK_DOWNGRADE_SHA1) == NULL);
  CHECK(releases());
}

/* What the shared handle looks at and breaks is no business of the option. */
static void test_queries(void)
{
  prepare();
  greet();
  CHECK_EQUAL(fairlock_engine_force(heir_handle, &anyone, now), FAIRLOCK_PENDING);
  CHECK(sends(FAIRLOCK_BREAK_SHA1) && strstr(output, FAIRLOCK_SHARED_SHA1) == NULL);
  answer(1, 0, 0);
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_OK);
}

/* A request that is half written goes on as it has begun. */
static void test_half_written(void)
{
  char whole[sizeof output];
  size_t size;
  set_up_asked();
  memcpy(whole, output, sizeof whole);
  size_t length = output_size;
  prepare();
  config.send_size = FAIRLOCK_SEND_MIN;
  greet();
  hold_alone(FAIRLOCK_RENEW);
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
  const uint8_t *data = fairlock_engine_output(&engine, &size, now);
  CHECK(size > 0 && memcmp(data, whole, size) == 0);
  CHECK_EQUAL(fairlock_engine_cancel(heir_handle, now), FAIRLOCK_OK);
  fairlock_engine_sent(&engine, size);
  drain();
  CHECK(output_size > length - size);
  CHECK(memcmp(output, whole + size, length - size) == 0);
  CHECK(leaves());
}

/* If it takes so long that the exclusive hold is over, that handle may hold again. */
static void test_outlived(void)
{
  prepare();
  config.offline_ms = FAIRLOCK_FOREVER;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &b, "door", 4), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, "door", 4), FAIRLOCK_OK);
  fairlock_engine_use_downgrading(&engine, &sharing);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &heir, "door", 4, 7), FAIRLOCK_OK);
  greet();
  hold_alone(1000);
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
  drain();
  break_connection();
  pass(2 * 5000 + 2000);
  CHECK(is_free(&a, FAIRLOCK_UNKNOWN));
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 60000, now), FAIRLOCK_PENDING);
  greet();
  CHECK(sends(FAIRLOCK_DOWNGRADE_SHA1));
  bool first = strstr(output, FAIRLOCK_LOCK_SHA1) < strstr(output, FAIRLOCK_DOWNGRADE_SHA1);
  if (first) answer(1, 90, 0);
  push("subscribe", CHANNEL("3"), NULL);
  feed("-OOM\r\n");
  if (!first) answer(1, 90, 0);
  CHECK_EQUAL(a.token, 90);
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_PENDING);
  /* its release is not held back by who waits for its former hold, nor answered with that */
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 90\r\n"));
  answer(1, 0, 0);
  CHECK(is_free(&a, FAIRLOCK_OK));
  pass(RETRY_MS);
  CHECK(sends(FAIRLOCK_DOWNGRADE_SHA1));
  answer(-1, 0, 0);
  CHECK_EQUAL(heir_handle->leave_result, FAIRLOCK_LOST);
  CHECK(is_free(&a, FAIRLOCK_OK));
}

/*
 * The same, where the heir has had a newer token than the later hold has. The release of that is sent,
 * although the answer to the heir is still to come.
 */
static void test_outlived_newer_token(void)
{
  set_up_after_a_share(95, 1000);
  drain();
  engine.offline_ms = FAIRLOCK_FOREVER;
  break_connection();
  pass(2 * 5000 + 2000);
  CHECK(is_free(&a, FAIRLOCK_UNKNOWN));
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 60000, now), FAIRLOCK_PENDING);
  greet();
  drain();
  bool first = strstr(output, FAIRLOCK_LOCK_SHA1) < strstr(output, FAIRLOCK_DOWNGRADE_SHA1);
  if (first) answer(1, 90, 0);
  push("subscribe", CHANNEL("3"), NULL);
  if (!first) {
    answer(-2, 0, 0);
    answer(1, 90, 0);
  }
  CHECK_EQUAL(a.token, 90);
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  CHECK(strstr(output, " 0 0 90\r\n") != NULL);
  CHECK(strstr(output, " 30000+ 90\r\n") == NULL);
}

/*
 * A new master counts on from an older token, so the hold has a smaller one than the heir has had. The
 * request names both, and only a share with a larger one than both is believed in.
 */
static void test_newer_token(void)
{
  set_up_after_a_share(90, FAIRLOCK_RENEW);
  CHECK(sends(" -1 30000+ 77\r\n$1\r\n7\r\n$2\r\n90\r\n"));
  push("subscribe", CHANNEL("3"), NULL);
  answer(1, 78, 0); /* by a server that errs */
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_PENDING);
  CHECK_EQUAL(heir_handle->token, 90);
  pass(RETRY_MS);
  CHECK(sends(" -1 30000+ 77\r\n$1\r\n7\r\n$2\r\n90\r\n"));
  answer(1, 91, 0);
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_OK);
  CHECK_EQUAL(heir_handle->token, 91);
  CHECK(is_free(&a, FAIRLOCK_OK));
  CHECK_EQUAL(losses, 0);
  /* the next hold has a larger one, which alone is named */
  CHECK_EQUAL(fairlock_engine_release(heir_handle, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 0, 0);
  hold_alone_again(FAIRLOCK_RENEW, 95);
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
  CHECK(sends(" -1 30000+ 95\r\n$1\r\n7\r\n"));
  CHECK(strstr(output, "\r\n7\r\n$1\r\n0\r\n") != NULL);
}

/* No server counts on from such a token, so any hold has a newer one. */
static void test_largest_token(void)
{
  set_up_after_a_share(LARGEST, FAIRLOCK_RENEW);
  CHECK(asks() && strstr(output, "\r\n7\r\n$1\r\n0\r\n") != NULL);
  push("subscribe", CHANNEL("3"), NULL);
  answer(1, 78, 0);
  CHECK(has_share());
}

/* Other handles release meanwhile. */
static void test_beside_others(void)
{
  struct fairlock other;
  set_up_alone(FAIRLOCK_RENEW);
  CHECK_EQUAL(fairlock_engine_add(&engine, &other, "door", 4), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&other, 0, 60000, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0); /* by a server that errs */
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
  CHECK(asks());
  CHECK_EQUAL(fairlock_engine_release(&other, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 77\r\n"));
  push("subscribe", CHANNEL("3"), NULL);
  answer(1, 78, 0);
  CHECK(has_share());
  CHECK(is_free(&a, FAIRLOCK_OK));
  CHECK_EQUAL(other.result, FAIRLOCK_PENDING);
  answer(1, 0, 0);
  CHECK(is_free(&other, FAIRLOCK_OK));
}

static void test_misuse(void)
{
  struct fairlock_shared other, third, fourth;
  struct fairlock_engine another;
  set_up_alone(FAIRLOCK_RENEW);
  CHECK_EQUAL(fairlock_engine_downgrade(&a, &heir, 99, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_downgrade(heir_handle, &heir, FAIRLOCK_RENEW, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &other, "doo", 3, 7), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_downgrade(&a, &other, FAIRLOCK_RENEW, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &fourth, "doors", 5, 7), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_downgrade(&a, &fourth, FAIRLOCK_RENEW, now), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &third, "deer", 4, 7), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_downgrade(&a, &third, FAIRLOCK_RENEW, now), FAIRLOCK_INVALID);
  heir_handle->engine = &another;
  CHECK_EQUAL(downgrade(), FAIRLOCK_INVALID);
  heir_handle->engine = &engine;
  a.number += (uint32_t)INT32_MAX;
  CHECK_EQUAL(downgrade(), FAIRLOCK_INVALID);
  a.number -= (uint32_t)INT32_MAX;
  /* held twice */
  request(&a, 0, FAIRLOCK_RENEW);
  CHECK_EQUAL(downgrade(), FAIRLOCK_IN_PROGRESS);
  answer(1, 77, 0);
  CHECK_EQUAL(downgrade(), FAIRLOCK_INVALID);
  CHECK_EQUAL(a.holds, 2);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0);
  /* the heir waits */
  request(heir_handle, FAIRLOCK_FOREVER, 1000);
  CHECK_EQUAL(downgrade(), FAIRLOCK_IN_PROGRESS);
  push("subscribe", CHANNEL("3"), NULL);
  answer(1, 80, 0); /* holds */
  CHECK_EQUAL(downgrade(), FAIRLOCK_IN_PROGRESS);
  pass(1000); /* has lost */
  CHECK_EQUAL(heir_handle->phase, LOST);
  CHECK_EQUAL(downgrade(), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(a.phase, HELD);
  CHECK_EQUAL(fairlock_engine_downgrade(&b, &heir, FAIRLOCK_RENEW, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_release(heir_handle, now), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_engine_downgrade(&b, &heir, FAIRLOCK_RENEW, now), FAIRLOCK_NOT_HELD);
}

/* The client does not use the option: nothing happens. */
static void test_without_the_option(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &heir, "door", 4, 7), FAIRLOCK_OK);
  greet();
  hold_alone(FAIRLOCK_RENEW);
  CHECK_EQUAL(downgrade(), FAIRLOCK_INVALID);
  CHECK_EQUAL(a.phase, HELD);
  CHECK_EQUAL(heir_handle->phase, FREE);
}

/* Both are busy until it has ended, and a second one begins when the first has. */
static void test_busy(void)
{
  set_up_asked();
  CHECK_EQUAL(downgrade(), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_release(heir_handle, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_IN_PROGRESS);
  CHECK_EQUAL(fairlock_engine_remove(heir_handle, now), FAIRLOCK_IN_PROGRESS);
  push("subscribe", CHANNEL("3"), NULL);
  answer(1, 78, 0);
  CHECK(has_share());
  /* a shared handle can be made after a downgrade, too */
  struct fairlock_shared later;
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &later, "door", 4, 7), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&later.handle, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(FAIRLOCK_SHARED_SHA1));
  answer(1, 79, 0);
  CHECK_EQUAL(later.handle.result, FAIRLOCK_OK);
}

/* With replicas, nothing is believed before they have acknowledged. */
static void test_replicas(void)
{
  prepare();
  memset(&topology, 0, sizeof topology);
  topology.replicas = 2;
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, NULL, NULL), FAIRLOCK_OK);
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0);
  feed(":2\r\n");
  ends = 0;
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
  CHECK(asks());
  CHECK(strstr(output, "\r\n7\r\n$1\r\n0\r\n*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n") != NULL);
  push("subscribe", CHANNEL("3"), NULL);
  answer(1, 78, 0);
  CHECK_EQUAL(ends, 0);
  feed(":1\r\n");
  CHECK_EQUAL(ends, 0);
  pass(RETRY_MS);
  CHECK(asks());
  answer(1, 78, 0);
  CHECK_EQUAL(ends, 0);
  feed(":2\r\n");
  CHECK(has_share());
  CHECK(is_free(&a, FAIRLOCK_OK));
  CHECK_EQUAL(ends, 2);
}

/* Its release ends the hold, even if the client keeps its locks. */
static void test_kept(void)
{
  prepare();
  keep.keep_ms = 20000;
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
  greet();
  request(&a, 0, FAIRLOCK_RENEW);
  feed("+OK\r\n+OK\r\n:0\r\n");
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  CHECK(a.keep & ARMED);
  CHECK_EQUAL(downgrade(), FAIRLOCK_PENDING);
  CHECK(asks());
  feed("+OK\r\n:0\r\n");
  push("subscribe", CHANNEL("3"), NULL);
  feed("-NOPERM\r\n");
  CHECK_EQUAL(heir_handle->result, FAIRLOCK_DENIED);
  drain();
  CHECK(releases());
  answer(1, 0, 0);
  CHECK(is_free(&a, FAIRLOCK_OK));
}

/* Who has left the lock kept does not hold it; who keeps a share does not wait for it. */
static void test_kept_before(void)
{
  prepare();
  keep.keep_ms = 20000;
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
  greet();
  request(&a, 0, FAIRLOCK_RENEW);
  feed("+OK\r\n+OK\r\n:0\r\n");
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(downgrade(), FAIRLOCK_NOT_HELD);
  CHECK(a.keep & KEPT);
  CHECK_EQUAL(heir_handle->phase, FREE);
  /* the share is kept, and b believes to have the lock alone */
  request(heir_handle, 0, FAIRLOCK_RENEW);
  feed("+OK\r\n:0\r\n");
  push("subscribe", CHANNEL("3"), NULL);
  answer(1, 80, 0);
  CHECK_EQUAL(fairlock_engine_release(heir_handle, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  CHECK(heir_handle->keep & KEPT);
  request(&b, 0, 30000);
  answer(1, 81, 0);
  CHECK_EQUAL(fairlock_engine_downgrade(&b, &heir, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(FAIRLOCK_DOWNGRADE_SHA1) && strstr(output, " -2 30000+ 81\r\n") != NULL);
}

const struct check_test check_tests[] = {
    {"downgrade", test_downgrade},
    {"downgrade: renewals on their way", test_renewals},
    {"downgrade: a broken connection", test_broken_connection},
    {"downgrade: a late acquire before the answer", test_late_acquire},
    {"downgrade: the hold had ended", test_lost},
    {"downgrade: granted by a message", test_granted_by_a_message},
    {"downgrade: refused", test_refused},
    {"downgrade: nonsense", test_nonsense},
    {"downgrade: an answer before the end of its request", test_answer_before_the_end},
    {"downgrade: an unknown script", test_unknown_script},
    {"downgrade: an unknown script behind others", test_unknown_script_behind_others},
    {"downgrade: unreachable", test_unreachable},
    {"downgrade: never sent", test_never_sent},
    {"downgrade: cancelled", test_cancel},
    {"downgrade: an acquire after that", test_acquire_after_cancel},
    {"downgrade: looking and breaking", test_queries},
    {"downgrade: half written", test_half_written},
    {"downgrade: the exclusive hold is over meanwhile", test_outlived},
    {"downgrade: a later hold has an older token than the heir", test_outlived_newer_token},
    {"downgrade: a newer token of the heir's own", test_newer_token},
    {"downgrade: a token from which nobody counts on", test_largest_token},
    {"downgrade: beside others", test_beside_others},
    {"downgrade: misuse", test_misuse},
    {"downgrade: without the option", test_without_the_option},
    {"downgrade: both are busy", test_busy},
    {"downgrade: replicas", test_replicas},
    {"downgrade: a lock that is kept", test_kept},
    {"downgrade: a lock that was kept", test_kept_before},
    {NULL, NULL},
};
