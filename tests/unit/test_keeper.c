/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are kept: what is answered without the server, what ends that, and what the server may
 * say to an arming. As in test_engine.c, the test plays the server.
 */
#include "fairlock_credentials.h"
#include "fairlock_keep.h"
#include "fairlock_log.h"
#include "fairlock_operate.h"
#include "internal.h" /* before the names of the fixture, which it uses for others */
#include "engine_tests.h"
#include "follow_fixture.h"

#define ASK "*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nOPTIN\r\n"
#define ARM                                                                                        \
  "*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n"                                           \
  "*2\r\n$6\r\nEXISTS\r\n$26\r\nredisson_lock_queue:{door}\r\n"
#define KEEP_MS 20000U

static struct fairlock_keeping keep;
static struct fairlock_log journal;
static int refusals, ends;

static void note(enum fairlock_log_event event, int status, const char *text, void *context)
{
  (void)status;
  (void)text;
  (void)context;
  refusals += event == FAIRLOCK_LOG_REFUSED;
}

static void set_up_counted(void)
{
  set_up();
  ends = 0;
  config.ended = count_end;
  config.ended_context = &ends;
}

static void use_keep(void)
{
  memset(&keep, 0xff, sizeof keep); /* what is private need not be set */
  keep.keep_ms = KEEP_MS;
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
}

static void prepare(void)
{
  set_up_counted();
  refusals = 0;
  journal.function = note;
  fairlock_engine_set_log(&engine, &journal);
  use_keep();
}

/* The answer to an arming, and to the SUBSCRIBE behind it, if there is one. */
static void answer_arming(const char *arming)
{
  char channel[64];
  const char *subscribe = strstr(output, "\r\nSUBSCRIBE\r\n");
  feed(arming);
  if (subscribe == NULL) return;
  const char *begin = strchr(subscribe, '$');
  begin = strchr(begin, '\n') + 1;
  size_t size = (size_t)(strchr(begin, '\r') - begin);
  CHECK(size < sizeof channel);
  memcpy(channel, begin, size);
  channel[size] = 0;
  push("subscribe", channel, NULL);
}

/* a tries, and the server answers the arming with this and the acquire with the token. */
static void acquire(const char *arming, int64_t token)
{
  request(&a, 0, FAIRLOCK_RENEW);
  answer_arming(arming);
  answer(1, token, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.token, token);
}

static void set_up_held(void)
{
  prepare();
  greet();
  acquire("+OK\r\n+OK\r\n:0\r\n", 77);
}

/* Time goes by, and nobody receives. */
static void skip(uint32_t ms)
{
  now += ms;
  fairlock_engine_tick(&engine, now);
}

/* There was something to do, and it is done without a byte. */
static bool costs_nothing(void)
{
  CHECK(fairlock_engine_wants(&engine, now) & FAIRLOCK_SEND);
  drain();
  return output_size == 0 && fairlock_engine_wants(&engine, now) == FAIRLOCK_RECEIVE;
}

static void delay_release(void)
{
  int before = ends;
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(costs_nothing());
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(ends, before + 1);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_NOT_HELD);
}

static void set_up_kept(void)
{
  set_up_held();
  delay_release();
}

static void resume_hold(uint32_t wait_ms)
{
  int before = ends;
  CHECK_EQUAL(fairlock_engine_acquire(&a, wait_ms, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(costs_nothing());
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(ends, before + 1);
  CHECK_EQUAL(a.token, 77);
  CHECK_EQUAL(a.holds, 1);
}

/* The release of a hold with this token is sent, and what comes of it concerns nobody. */
static void gives_back(void)
{
  int before = ends;
  CHECK(sends(" 0 0 77\r\n"));
  CHECK(strstr(output, "EXISTS") == NULL);
  answer(1, 0, 0);
  CHECK_EQUAL(losses, 0);
  CHECK_EQUAL(ends, before);
  CHECK(sends_nothing());
}

/* a is taken out, which ends its subscription. */
static void take_out(void)
{
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("UNSUBSCRIBE"));
  push("unsubscribe", CHANNEL("1"), NULL);
  answer(1, 0, 0);
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
}

/* A release that is sent at once. */
static void releases(void)
{
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 77\r\n"));
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

static void invalidate(const char *name)
{
  uint8_t text[400];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text - 1, 0);
  resp_write_header(&writer, RESP_PUSH, 2);
  resp_write_bulk(&writer, "invalidate", 10);
  resp_write_header(&writer, RESP_ARRAY, 1);
  resp_write_bulk(&writer, name, strlen(name));
  text[writer.used] = 0;
  feed((char *)text);
}

static void recall(void)
{
  invalidate("redisson_lock_queue:{door}");
}

static void test_pairs(void)
{
  prepare();
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(ASK ARM "*2\r\n$9\r\nSUBSCRIBE"));
  answer_arming("+OK\r\n+OK\r\n:0\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 77, 0);
  for (int i = 0; i < 100; i++) {
    delay_release();
    pass(95);
    resume_hold(i % 2 == 0 ? 0 : FAIRLOCK_FOREVER);
    CHECK(fairlock_engine_remaining_ms(&a, now) >= 20000);
  }
  CHECK_EQUAL(engine.counters.requests, 1);
  CHECK_EQUAL(engine.counters.acquisitions, 101);
  CHECK_EQUAL(engine.counters.polled, 0);
  delay_release();
  CHECK_EQUAL(fairlock_engine_deadline(&engine, now), KEEP_MS - 9500);
  pass(KEEP_MS - 9501);
  CHECK(sends_nothing());
  pass(1);
  gives_back();
}

/* The queue stays tracked, so the next acquire needs no arming. */
static void test_next_keep(void)
{
  set_up_kept();
  pass(KEEP_MS);
  gives_back();
  request(&a, 0, FAIRLOCK_RENEW);
  CHECK(strstr(output, "EXISTS") == NULL);
  answer(1, 78, 0);
  pass(KEEP_MS - 1);
  drain(); /* a renewal */
  delay_release();
}

static void test_recalled(void)
{
  set_up_kept();
  recall();
  gives_back();
  take_out();
  set_up_kept();
  recall();
  recall();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(ARM "*8\r\n$7\r\nEVALSHA"));  /* and no CLIENT TRACKING again */
  CHECK(strstr(output, " 77\r\n") != NULL); /* it ends the old hold, too */
  answer_arming("+OK\r\n:1\r\n");
  answer(0, 1000, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA")); /* leaves */
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
}

/* The hold had ended while it was kept, which is no loss: nobody believed in it. */
static void test_recalled_after_its_end(void)
{
  set_up_kept();
  recall();
  CHECK(sends(" 0 0 77\r\n"));
  answer(0, 0, 0);
  pass(10);
  CHECK(sends(" 0 0\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(losses, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(sends_nothing());
}

/* A release that was sent is not taken back, whatever is known of the queue by then. */
static void test_recalled_and_not_known(void)
{
  set_up_kept();
  recall();
  CHECK(sends(" 0 0 77\r\n"));
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(ARM "*8\r\n$7\r\nEVALSHA"));
  answer(1, 0, 0);
  feed("+OK\r\n:0\r\n-NOSCRIPT no such script\r\n");
  CHECK(sends("*8\r\n$4\r\nEVAL\r\n"));
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  answer(1, 78, 0);
  CHECK_EQUAL(a.token, 78);
}

static void test_recalled_in_use(void)
{
  set_up_held();
  recall();
  CHECK(sends_nothing());
  releases();
  set_up_kept();
  resume_hold(0);
  recall();
  releases();
}

/* Before the answer to the arming, it is about an earlier one. */
static void test_push_before_the_answer(void)
{
  prepare();
  greet();
  request(&a, 0, FAIRLOCK_RENEW);
  feed("+OK\r\n+OK\r\n");
  recall();
  answer_arming(":0\r\n");
  answer(1, 77, 0);
  delay_release();
}

static void test_which_is_recalled(void)
{
  set_up_kept();
  invalidate("redisson_lock_queue:{gate}");
  invalidate("redisson_lock_queue:{doors}");
  invalidate("redisson_lock_queue:{doom}");
  invalidate("door");
  invalidate("redisson_lock_timeout:{door}");
  feed(">2\r\n$6\r\nothers\r\n*1\r\n$26\r\nredisson_lock_queue:{door}\r\n");
  feed(">2\r\n$6\r\nothers\r\n_\r\n");
  CHECK(sends_nothing());
  feed(">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\nx\r\n$26\r\nredisson_lock_queue:{door}\r\n");
  gives_back();
  set_up_kept();
  feed(">2\r\n$10\r\ninvalidate\r\n_\r\n");
  gives_back();
}

/* A key that does not fit the buffer may be any. */
static void test_long_key_recalls(void)
{
  char name[330];
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = 0;
  set_up_kept();
  invalidate(name);
  gives_back();
}

static void test_name_with_a_brace(void)
{
  prepare();
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, "{x}door", 7), FAIRLOCK_OK);
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends("$27\r\nredisson_lock_queue:{x}door\r\n"));
  answer_arming("+OK\r\n+OK\r\n:0\r\n");
  answer(1, 77, 0);
  delay_release();
  invalidate("redisson_lock_queue:{y}door");
  CHECK(sends_nothing());
  invalidate("redisson_lock_queue:{x}door");
  CHECK(sends(" 0 0 77\r\n"));
}

static void test_somebody_waits_already(void)
{
  prepare();
  greet();
  acquire("+OK\r\n+OK\r\n:1\r\n", 77);
  releases();
}

/* The handle cares no more, and there is another by then. */
static void test_arming_unanswered(void)
{
  prepare();
  greet();
  request(&a, 0, FAIRLOCK_RENEW);
  feed("+OK\r\n+OK\r\n");
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  drain();
  feed(":0\r\n");
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_CANCELLED);
}

/* One arms at a time; the other's request is answered all the same. */
static void test_two_arm(void)
{
  prepare();
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  drain();
  answer_arming("+OK\r\n+OK\r\n:0\r\n");
  answer(1, 77, 0);
  answer(0, 1000, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(b.result, FAIRLOCK_BUSY);
  delay_release();
  request(&a, 0, 5000);
  request(&b, 0, FAIRLOCK_RENEW);
  CHECK(strstr(output, ARM) != NULL);
  answer(1, 78, 0); /* to what was sent before */
  answer_arming("+OK\r\n:0\r\n");
  answer(0, 1000, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_BUSY);
  CHECK_EQUAL(a.token, 78);
}

static void test_break(void)
{
  set_up_kept();
  break_connection();
  pass(50);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT);
  greet();
  gives_back();
  set_up_kept();
  break_connection();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  pass(50);
  greet();
  CHECK(sends(ASK ARM));
  CHECK(strstr(output, " 77\r\n") != NULL);
}

/* With an arming under way. */
static void test_break_while_arming(void)
{
  prepare();
  greet();
  request(&a, 0, FAIRLOCK_RENEW);
  feed("+OK\r\n");
  break_connection();
  pass(50);
  greet();
  CHECK(sends(ASK ARM));
  answer_arming("+OK\r\n+OK\r\n:0\r\n");
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* Nor does it arm any more then: what another one is told is not about its queue. */
static void test_break_while_arming_another(void)
{
  prepare();
  greet();
  request(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(strstr(output, ARM) != NULL);
  break_connection();
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  pass(50);
  greet();
  drain();
  answer(0, 0, 0); /* the leave */
  request(&b, 0, FAIRLOCK_RENEW);
  CHECK(strstr(output, ASK ARM) != NULL);
  answer_arming("+OK\r\n+OK\r\n:0\r\n");
  answer(0, 1000, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_BUSY);
  request(&a, 0, FAIRLOCK_RENEW);
  CHECK(strstr(output, ARM) != NULL);
}

static void test_break_in_use(void)
{
  set_up_held();
  break_connection();
  pass(50);
  greet();
  CHECK(sends(ASK ARM)); /* in front of the renewal that asks whether the hold is still there */
  answer_arming("+OK\r\n+OK\r\n:0\r\n");
  answer(1, 77, 0);
  delay_release();
}

/* An acquire of the broken connection may still arrive. */
static void test_in_doubt(void)
{
  prepare();
  greet();
  request(&a, 0, FAIRLOCK_RENEW);
  break_connection();
  pass(50);
  greet();
  drain();
  answer_arming("+OK\r\n+OK\r\n:0\r\n");
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  request(&a, 0, FAIRLOCK_RENEW); /* which confirms it */
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  drain();
  answer(1, 77, 0);
  CHECK_EQUAL(a.holds, 1);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 77\r\n"));
}

static void test_refused(void)
{
  static const char *const answers[] = {
      "-ERR unknown subcommand 'TRACKING'\r\n-ERR no tracking\r\n:0\r\n",
      "+OK\r\n-NOPERM client|caching\r\n:0\r\n",
      "+OK\r\n+OK\r\n-NOPERM exists\r\n",
      "+OK\r\n+OK\r\n!13\r\nNOPERM exists\r\n",
  };
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    prepare();
    greet();
    acquire(answers[i], 77);
    CHECK_EQUAL(refusals, 1);
    CHECK_EQUAL(engine.last_error, FAIRLOCK_OK);
    CHECK(engine.error[0] == 0);
    releases();
    request(&a, 0, FAIRLOCK_RENEW);
    CHECK(strstr(output, "CLIENT") == NULL);
    answer(1, 78, 0);
    CHECK_EQUAL(a.result, FAIRLOCK_OK);
    break_connection();
    pass(50);
    greet();
    CHECK(sends(ASK)); /* another server may know it */
  }
}

/* Only this time. */
static void test_refused_for_now(void)
{
  prepare();
  greet();
  acquire("+OK\r\n+OK\r\n-TRYAGAIN\r\n", 77);
  releases();
  acquire("+OK\r\n:0\r\n", 78);
  delay_release();
}

/*
 * The server does something else, for now: each command of the arming may come before that ends.
 * CLIENT CACHING is an error where CLIENT TRACKING was not carried out.
 */
static void test_busy(void)
{
  static const char *const answers[] = {
      "-BUSY a script runs\r\n-BUSY a script runs\r\n-BUSY a script runs\r\n",
      "-BUSY a script runs\r\n-ERR CLIENT CACHING can be called only when ...\r\n:0\r\n",
      "+OK\r\n-BUSY a script runs\r\n:0\r\n",
      "+OK\r\n-BUSY a script runs\r\n-NOPERM exists\r\n",
  };
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    prepare();
    greet();
    acquire(answers[i], 77);
    CHECK_EQUAL(refusals, 1);
    releases();
    acquire("+OK\r\n+OK\r\n:0\r\n", 78);
    CHECK(strstr(output, ASK ARM) != NULL);
    delay_release();
  }
}

static void test_nonsense(void)
{
  static const char *const answers[] = {":1\r\n", "+OK\r\n:1\r\n", "+OK\r\n+OK\r\n+OK\r\n",
                                        "+OK\r\n+OK\r\n*3\r\n:1\r\n:77\r\n:0\r\n"};
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    prepare();
    greet();
    request(&a, 0, FAIRLOCK_RENEW);
    feed(answers[i]);
    CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
    CHECK_EQUAL(engine.failure, FAIRLOCK_PROTOCOL);
  }
}

/* Neither is a hold with a lease of its own kept, nor is a kept one enough for it. */
static void test_own_lease(void)
{
  prepare();
  greet();
  request(&a, 0, 5000);
  CHECK(strstr(output, "EXISTS") == NULL);
  answer(1, 77, 0);
  releases();
  acquire("+OK\r\n+OK\r\n:0\r\n", 78);
  delay_release();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 5000, now), FAIRLOCK_PENDING);
  CHECK(sends(" 5000 78\r\n"));
  answer(1, 79, 0);
  CHECK_EQUAL(a.token, 79);
  drain(); /* confirms: a message might have granted it */
  answer(1, 79, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 79\r\n"));
}

/* The end of the keep has come, and its release was not sent yet. */
static void test_too_late(void)
{
  set_up_kept();
  now += KEEP_MS;
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  skip(0);
  CHECK(sends(" 77\r\n"));
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  set_up_held();
  pass(KEEP_MS);
  CHECK(sends("EVALSHA")); /* renews */
  answer(1, 77, 0);
  releases();
}

/* An acquire that finds out first whether it was recalled. */
static void looks(void)
{
  skip(100);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 1000, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(costs_nothing());
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_deadline(&engine, now), 1);
}

static void test_look(void)
{
  static bool serviced;
  set_up_kept();
  looks();
  recall();
  skip(1);
  CHECK(sends(" 77\r\n"));
  set_up_kept();
  looks();
  skip(50);
  CHECK(costs_nothing()); /* nobody has looked */
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  fairlock_engine_received(&engine, 0, now);
  skip(200); /* the caller is slow, and has looked */
  CHECK(costs_nothing());
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  fairlock_engine_received(&engine, 0, now);
  delay_release();
  keep.own.serviced = &serviced;
  serviced = true;
  skip(100);
  resume_hold(0);
  delay_release();
  serviced = false;
  looks();
  CHECK_EQUAL(fairlock_engine_cancel(&a, now), FAIRLOCK_OK);
  CHECK(sends(" 0 0\r\n")); /* leaves, and so ends the hold */
}

/* The shortest wait is long enough for what is kept here, and no longer when it was recalled. */
static void test_short_wait(void)
{
  for (int wanted = 0; wanted <= 1; wanted++) {
    set_up_kept();
    skip(100);
    CHECK_EQUAL(fairlock_engine_acquire(&a, 1, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
    CHECK(costs_nothing());
    skip(50); /* the caller is slow */
    CHECK(costs_nothing());
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    if (wanted) recall();
    else fairlock_engine_received(&engine, 0, now);
    skip(1);
    CHECK(wanted ? sends(" 77\r\n") : costs_nothing());
    pass(1);
    if (!wanted) CHECK_EQUAL(a.result, FAIRLOCK_OK);
    if (!wanted) continue;
    answer_arming("+OK\r\n:1\r\n");
    answer(0, -1, 0);
    CHECK(sends(" 0 0\r\n")); /* leaves */
    answer(1, 0, 0);
    CHECK_EQUAL(a.result, FAIRLOCK_TIMEOUT);
  }
  set_up_kept();
  skip(100);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 5000, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(costs_nothing());
  recall();
  skip(1);
  CHECK(sends(" 77\r\n"));
  answer_arming("+OK\r\n:1\r\n");
  answer(0, -1, 0);
  pass(4998);
  CHECK(!sends(" 0 0\r\n")); /* a heartbeat */
  answer(0, -1, 0);
  pass(1);
  CHECK(sends(" 0 0\r\n")); /* a longer one is as long as ever */
}

/* Nor is it longer if the connection breaks while what has arrived is read. */
static void test_short_wait_is_broken(void)
{
  for (uint32_t wait_ms = 10; wait_ms <= 5000; wait_ms += 4990) {
    set_up_kept();
    skip(100);
    CHECK_EQUAL(fairlock_engine_acquire(&a, wait_ms, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
    CHECK(costs_nothing());
    break_connection();
    pass(wait_ms - 1);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    pass(1);
    CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  }
  set_up_held();
  skip(5000);
  uint32_t left = fairlock_engine_remaining_ms(&a, now);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(costs_nothing());
  uint32_t ends_at = a.ends_at;
  break_connection();
  CHECK(left > 0);
  CHECK_EQUAL(a.ends_at, ends_at); /* a release that looks has no wait */
}

/* A release that looks, and ends while the device sleeps, leaves nothing that ends the next wait. */
static void test_release_looks_and_sleeps(void)
{
  set_up_held();
  skip(5000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(costs_nothing());
  skip(3600000);
  CHECK_EQUAL(a.result, FAIRLOCK_UNKNOWN);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 5000, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  uint32_t ends_at = a.ends_at;
  CHECK(sends(" 77\r\n"));
  CHECK_EQUAL(a.ends_at, ends_at);
}

/* So does a release of a program that has done nothing else for a while. */
static void test_release_looks(void)
{
  for (int wanted = 0; wanted <= 1; wanted++) {
    set_up_held();
    skip(5000);
    CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
    CHECK(costs_nothing());
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    skip(1);
    CHECK(costs_nothing()); /* nobody has looked */
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    if (wanted) recall();
    else fairlock_engine_received(&engine, 0, now);
    skip(1);
    CHECK(wanted ? sends(" 0 0 77\r\n") : costs_nothing());
    CHECK_EQUAL(a.result, wanted ? FAIRLOCK_PENDING : FAIRLOCK_OK);
  }
}

/*
 * With less than two thirds of the lease an acquire asks the server, which ends the hold that was
 * kept; and its release goes there, too, so that one who only tries has a turn.
 */
static void test_two_thirds(void)
{
  set_up_kept();
  pass(9529); /* a third, less the margin for two clocks */
  resume_hold(0);
  CHECK(fairlock_engine_remaining_ms(&a, now) >= 20000);
  delay_release();
  pass(1);
  resume_hold(0);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 20000);
  delay_release();
  pass(1);
  request(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(strstr(output, " 77\r\n") != NULL);
  CHECK(strstr(output, "EXISTS") == NULL); /* it is armed */
  answer(1, 78, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 29000);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 78\r\n"));
  answer(1, 0, 0);
  request(&a, 0, FAIRLOCK_RENEW);
  answer(1, 79, 0);
  delay_release();
}

/*
 * One that is taken back as late as possible is renewed before two thirds of the lease are over: an
 * inspection would call its holder dead then.
 */
static void test_late_renewal(void)
{
  set_up_kept();
  pass(9530);
  resume_hold(0);
  pass(19999 - 9530);
  CHECK(sends(" -1 30000+ 77\r\n"));
}

/* A hold that was handed over counts from its confirmation; heartbeats arm nothing. */
static void test_handover(void)
{
  prepare();
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(ASK ARM "*2\r\n$9\r\nSUBSCRIBE"));
  feed("+OK\r\n+OK\r\n:0\r\n");
  push("subscribe", CHANNEL("1"), NULL);
  answer(0, 30000, 0);
  recall(); /* by our own place in the queue */
  pass(2000);
  CHECK(sends("EVALSHA"));
  CHECK(strstr(output, "EXISTS") == NULL);
  answer(0, 28000, 0);
  pass(1000);
  grant(CHANNEL("1"), "77", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(sends(ARM)); /* in front of the confirmation */
  answer_arming("+OK\r\n:0\r\n");
  answer(1, 77, 0);
  pass(KEEP_MS - 1);
  drain();
  delay_release();
}

/* It is not kept before the answer to the confirmation has come. */
static void test_unconfirmed(void)
{
  prepare();
  greet();
  request(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  feed("+OK\r\n+OK\r\n:0\r\n");
  push("subscribe", CHANNEL("1"), NULL);
  answer(0, 30000, 0);
  grant(CHANNEL("1"), "77", 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 77\r\n"));
}

/* The first renewal waits, as most holds do not last; and a hold that lasts is renewed. */
static void test_renewals(void)
{
  set_up_kept();
  pass(9000);
  resume_hold(0);
  pass(5100);
  CHECK(sends_nothing());
  pass(100);
  CHECK(sends(" -1 30000+ 77\r\n"));
  answer(1, 77, 0);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 29000);
  pass(10000);
  CHECK(sends(" -1 30000+ 77\r\n"));
  answer(1, 77, 0);
  releases(); /* the keep is over */
}

/* Of two requests that are unanswered, the hold counts from the first. */
static void test_two_unanswered(void)
{
  set_up_counted();
  config.response_ms = 3000;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, "door", 4), FAIRLOCK_OK);
  keep.keep_ms = KEEP_MS;
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
  greet();
  request(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  pass(2000);
  CHECK(sends("EVALSHA"));
  CHECK(strstr(output, "EXISTS") == NULL);
  feed("+OK\r\n+OK\r\n:0\r\n");
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  answer(1, 77, 0); /* to the second, which nobody awaits */
  pass(KEEP_MS - 2001);
  delay_release();
  pass(1);
  CHECK(sends(" 0 0 77\r\n"));
}

static void test_held_twice(void)
{
  set_up_kept();
  resume_hold(0);
  request(&a, 0, FAIRLOCK_RENEW);
  CHECK(strstr(output, " -2 30000+ 77\r\n") != NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(a.holds, 2);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" -1 30000+ 77\r\n"));
  answer(1, 77, 0);
  CHECK_EQUAL(a.holds, 1);
  delay_release();
}

/* Another's acquire needs the text of the script; what is answered here does not use that up. */
static void test_script_text(void)
{
  set_up_kept();
  request(&b, 0, 5000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  feed("-NOSCRIPT x\r\n");
  CHECK(sends("$4\r\nEVAL\r\n"));
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  answer(0, 1000, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_BUSY);
}

/* a holds, and may not listen. */
static void set_up_deaf(const char *arming)
{
  prepare();
  greet();
  request(&a, 0, FAIRLOCK_RENEW);
  feed(arming);
  feed("-NOPERM channel\r\n");
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* An acquire that was not written is not in doubt, though another one's is under way. */
static void test_withdrawn(void)
{
  set_up_kept();
  request(&b, 0, 5000);
  resume_hold(0);
  break_connection();
  CHECK_EQUAL(a.in_doubt, 0);
  CHECK(b.in_doubt != 0);
}

/* A client that keeps its locks, of these times. */
static void set_up_times(uint32_t offline_ms, uint32_t response_ms)
{
  set_up_counted();
  config.offline_ms = offline_ms;
  config.response_ms = response_ms;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, "door", 4), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &b, "door", 4), FAIRLOCK_OK);
  use_keep();
  greet();
}

/* The bytes of a request of b stay in the send buffer. Returns how many. */
static size_t block(void)
{
  size_t size;
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 10000, now), FAIRLOCK_PENDING);
  (void)fairlock_engine_output(&engine, &size, now);
  CHECK(size > 0);
  return size;
}

/* A query fails before the release could be sent that it follows: it does not follow the next one. */
static void test_query_that_has_failed(void)
{
  static struct fairlock_target target = {.token = FAIRLOCK_ANY_TOKEN};
  set_up_times(500, 2000);
  acquire("+OK\r\n+OK\r\n:0\r\n", 77);
  delay_release();
  size_t blocked = block();
  CHECK_EQUAL(fairlock_engine_force(&a, &target, now), FAIRLOCK_PENDING);
  pass(300);
  pass(300);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 1000, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  fairlock_engine_sent(&engine, blocked);
  fairlock_engine_received(&engine, 0, now);
  pass(1);
  CHECK(sends_nothing());
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  a.by.task = 1; /* client.c: who has acquired */
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  fairlock_engine_received(&engine, 0, now);
  pass(1);
  CHECK(sends_nothing());
  CHECK(a.keep & KEPT);
}

/* The first release of all looks, and fails before it can be sent. The next wait has its own limit. */
static void test_wait_after_a_look(void)
{
  for (int endless = 0; endless <= 1; endless++) {
    set_up_times(500, 2000);
    acquire("+OK\r\n+OK\r\n:0\r\n", 77);
    skip(150);
    CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
    drain();
    CHECK(a.keep & LOOKS);
    size_t blocked = block();
    pass(300);
    pass(300);
    CHECK(a.result != FAIRLOCK_PENDING && a.keep & LOOKS);
    uint32_t wait_ms = endless ? FAIRLOCK_FOREVER : 400;
    CHECK_EQUAL(fairlock_engine_acquire(&a, wait_ms, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
    fairlock_engine_sent(&engine, blocked);
    drain();
    pass(399);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    pass(2);
    CHECK_EQUAL(a.phase == QUEUEING, endless);
  }
}

/* Two acquires are under way, and the first is answered: the other may still be carried out. */
static void test_older_acquire(void)
{
  set_up_times(10000, 5000);
  request(&a, 60000, FAIRLOCK_RENEW);
  pass(2000);
  drain();
  CHECK_EQUAL(a.unanswered, 2);
  feed("+OK\r\n+OK\r\n:0\r\n");
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  delay_release();
  resume_hold(0);
  break_connection();
  CHECK_EQUAL(a.in_doubt, KIND_ACQUIRE);
}

/* The answer to the release before a query is nonsense: the connection ends. */
static void test_nonsense_before_a_query(void)
{
  static const char *const answers[] = {"+OK\r\n", "*2\r\n:1\r\n:0\r\n",
                                        "*3\r\n:1\r\n+x\r\n:0\r\n"};
  static struct fairlock_target target = {.token = FAIRLOCK_ANY_TOKEN};
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    set_up_kept();
    CHECK_EQUAL(fairlock_engine_force(&a, &target, now), FAIRLOCK_PENDING);
    CHECK(sends(" 77\r\n"));
    feed(answers[i]);
    CHECK_EQUAL(a.phase, RELEASING);
    CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  }
}

/* A SUBSCRIBE that was not needed is sent when it is. */
static void test_subscription(void)
{
  set_up_deaf("+OK\r\n+OK\r\n:0\r\n");
  delay_release();
  resume_hold(FAIRLOCK_FOREVER);
  delay_release();
  recall();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(ARM "*2\r\n$9\r\nSUBSCRIBE"));
  feed("+OK\r\n:1\r\n");
  push("subscribe", CHANNEL("1"), NULL);
  answer(0, -1, 0);
  CHECK(sends_nothing());
}

/* What does not hold a lock does not care. */
static void test_others(void)
{
  set_up_kept();
  CHECK_EQUAL(fairlock_engine_inspect(&b, report_nothing, NULL, now), FAIRLOCK_PENDING);
  CHECK(sends("$7\r\nEVALSHA"));
  feed("*6\r\n:4294967296\r\n:-2\r\n:0\r\n:0\r\n:0\r\n$0\r\n\r\n");
  CHECK_EQUAL(b.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_force(&b, &anyone, now), FAIRLOCK_PENDING);
  CHECK(sends(" -1 0\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(b.result, FAIRLOCK_OK);
  resume_hold(0);
}

#define FREE_LOCK "*6\r\n:4294967296\r\n:-2\r\n:0\r\n:0\r\n:0\r\n$0\r\n\r\n"

/* A handle whose lock is kept inspects, breaks and asks as any other that does not hold. */
static void test_queries(void)
{
  for (int what = 0; what < 3; what++) {
    set_up_kept();
    int status = what == 0   ? fairlock_engine_inspect(&a, report_nothing, NULL, now)
                 : what == 1 ? fairlock_engine_force(&a, &anyone, now)
                             : fairlock_engine_ask(&a, &anyone, now);
    CHECK_EQUAL(status, FAIRLOCK_PENDING);
    if (what == 0)
      CHECK_EQUAL(fairlock_engine_inspect(&b, report_nothing, NULL, now), FAIRLOCK_IN_PROGRESS);
    CHECK(sends(" 0 0 77\r\n"));
    answer(1, 0, 0);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    CHECK(sends(what == 0 ? "EVALSHA" : what == 1 ? " -1 0\r\n" : " -2 0\r\n"));
    if (what == 0) feed(FREE_LOCK);
    else answer(0, 0, 0);
    CHECK_EQUAL(a.result, what == 0 ? FAIRLOCK_OK : FAIRLOCK_NOT_HELD);
    acquire("", 78);
    delay_release();
  }
}

/* What is given back first is given back whatever comes, and the query with it. */
static void test_query_that_waits(void)
{
  set_up_kept();
  CHECK_EQUAL(fairlock_engine_inspect(&a, report_nothing, NULL, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 77\r\n"));
  answer(-2, 0, 0);
  CHECK(sends(" 0 0 77\r\n"));
  break_connection();
  pass(50);
  greet();
  CHECK(sends(" 0 0 77\r\n"));
  answer(0, 0, 0);
  CHECK(sends("EVALSHA"));
  feed(FREE_LOCK);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  acquire("+OK\r\n+OK\r\n:0\r\n", 78);
  delay_release();
  CHECK_EQUAL(fairlock_engine_inspect(&a, report_nothing, NULL, now), FAIRLOCK_PENDING);
  drain();
  feed("-NOPERM\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  acquire("", 79); /* and none is left of the query */
  /* the refused release may have left something, so this hold is not kept */
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 79\r\n"));
  answer(1, 0, 0);
  acquire("", 80);
  CHECK_EQUAL(fairlock_engine_inspect(&b, report_nothing, NULL, now), FAIRLOCK_PENDING);
  drain();
  feed(FREE_LOCK);
  delay_release();
}

/* One that could not be given back in time has failed, and is not begun later. */
static void test_query_that_fails(void)
{
  for (int removes = 0; removes <= 1; removes++) {
    set_up_kept();
    CHECK_EQUAL(fairlock_engine_inspect(&a, report_nothing, NULL, now), FAIRLOCK_PENDING);
    drain();
    break_connection();
    pass(10000);
    CHECK_EQUAL(a.result, FAIRLOCK_UNKNOWN);
    fairlock_engine_connect(&engine, now);
    greet();
    if (removes) CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
    CHECK(sends(removes ? " 0 0\r\n" : " 0 0 77\r\n"));
    CHECK_EQUAL(fairlock_engine_inspect(&b, report_nothing, NULL, now), FAIRLOCK_PENDING);
    drain();
    answer(1, 0, 0);
    feed(FREE_LOCK);
    CHECK_EQUAL(b.result, FAIRLOCK_OK);
    CHECK_EQUAL(a.result, removes ? FAIRLOCK_OK : FAIRLOCK_UNKNOWN);
    CHECK(sends_nothing());
  }
}

static void never_asked(struct fairlock *handle, const struct fairlock_asking *asking,
                        void *context)
{
  (void)asking;
  (void)handle;
  (void)context;
  CHECK(false);
}

/*
 * An operator asks for the release of what is idle: the client gives it back, and asks nobody. After
 * a try, too, it listens; and what is asked for while it is held is not kept any more.
 */
static void test_asked_for(void)
{
  set_up_held();
  config.asked = never_asked;
  delay_release();
  push("message", CHANNEL("2"), "77");
  push("others", CHANNEL("1"), "77");
  CHECK(sends_nothing());
  push("message", CHANNEL("1"), "77");
  gives_back();
  set_up_held();
  push("message", CHANNEL("1"), "77");
  CHECK(sends_nothing());
  releases();
}

static int told;

static void count_told(void *context)
{
  (void)context;
  told++;
}

/* Tasks that wait for what is answered here, while another one sends, are woken. */
static void test_waiting_tasks_are_told(void)
{
  set_up_held();
  told = 0;
  keep.own.answered = count_told;
  delay_release();
  CHECK_EQUAL(told, 1);
  resume_hold(0);
  CHECK_EQUAL(told, 2);
  recall();
  releases();
  CHECK_EQUAL(told, 2);
}

static void test_taken_out(void)
{
  set_up_kept();
  take_out();
  CHECK(strstr(output, " 0 0\r\n") != NULL);
}

/*
 * The handle was taken out, after a freeze in which its time ran out, before its arming is answered:
 * its memory is another's by then, even another handle's.
 */
static void test_arming_of_one_taken_out(void)
{
  for (int again = 0; again < 2; again++) {
    prepare();
    greet();
    acquire("+OK\r\n+OK\r\n:1\r\n", 77);
    pass(10000);
    CHECK(sends(ARM)); /* in front of a renewal */
    now += 60000;
    CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_LOST);
    CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
    skip(DAY);
    CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_OK);
    struct fairlock before;
    memset(&a, 0, sizeof a);
    if (again) CHECK_EQUAL(fairlock_engine_add(&engine, &a, "gate", 4), FAIRLOCK_OK);
    before = a;
    answer_arming("+OK\r\n:0\r\n");
    CHECK(memcmp(&a, &before, sizeof a) == 0);
  }
}

/* Our clock has gone round since the acquire: renewals have kept the hold, which is not new. */
static void test_clock_round_held(void)
{
  const uint32_t third = 10 * (DAY / 3);
  set_up_counted();
  config.lease_ms = 10 * DAY;
  keep.keep_ms = KEEP_MS;
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
  greet();
  acquire("+OK\r\n+OK\r\n:0\r\n", 77);
  uint32_t began = now;
  while (began - now - 1 >= third) {
    pass(third);
    CHECK(sends("EVALSHA"));
    answer(1, 77, 0);
  }
  pass(began - now);
  releases();
}

/* Our clock has gone round since the release was put off, and nobody has sent it for days. */
static void test_clock_round_kept(void)
{
  set_up_kept();
  uint32_t began = now;
  skip(DAY); /* and nothing is left of it */
  skip(began - now);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 1000, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  drain();
  skip(1);
  drain();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
}

static void test_small_buffer(void)
{
  prepare();
  config.send_size = FAIRLOCK_SEND_MIN;
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(ASK ARM "*2\r\n$9\r\nSUBSCRIBE"));
  answer_arming("+OK\r\n+OK\r\n:0\r\n");
  answer(1, 77, 0);
  delay_release();
  resume_hold(0);
}

/* With servers that move, and a replica that acknowledges. */
static void test_topology(void)
{
  set_up_counted();
  prepare_seeds(1);
  topology.replicas = 1;
  follow();
  memset(&keep, 0, sizeof keep);
  keep.keep_ms = KEEP_MS;
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(ASK ARM "*2\r\n$9\r\nSUBSCRIBE"));
  CHECK(strstr(output, "WAIT") != NULL);
  feed("+OK\r\n+OK\r\n:0\r\n");
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  feed(":1\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  delay_release();
  resume_hold(0);
  delay_release();
  CHECK_EQUAL(engine.last_sent, engine.last_received);
  break_connection();
  pass(50);
  greet();
  gives_back();
}

/* There are more servers to try: nobody fails yet. */
static void test_seeds(void)
{
  follow_seeds(2);
  keep.keep_ms = KEEP_MS;
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  fairlock_engine_opening(&engine, now);
  break_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
}

/* b's lock is at another node: what is kept here is given back before the client goes there. */
static void test_moved(void)
{
  for (int tries = 0; tries <= 1; tries++) {
    set_up_counted();
    CHECK_EQUAL(fairlock_engine_remove(&b, now), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_engine_add(&engine, &b, "gate", 4), FAIRLOCK_OK);
    prepare_seeds(1);
    follow();
    memset(&keep, 0, sizeof keep);
    keep.keep_ms = KEEP_MS;
    CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
    greet();
    acquire("+OK\r\n+OK\r\n:0\r\n", 77);
    delay_release();
    request(&b, tries ? 0 : FAIRLOCK_FOREVER, 5000);
    if (!tries) feed("-MOVED 7226 10.0.0.8:7001\r\n"); /* to the SUBSCRIBE */
    feed("-MOVED 7226 10.0.0.8:7001\r\n");
    CHECK(!engine.broken);
    CHECK(sends(" 0 0 77\r\n"));
    answer(1, 0, 0);
    if (!tries) feed("-MOVED 7226 10.0.0.8:7001\r\n");
    feed("-MOVED 7226 10.0.0.8:7001\r\n");
    CHECK(engine.broken);
    CHECK(strcmp(address, "10.0.0.8:7001") == 0);
    CHECK_EQUAL(b.result, FAIRLOCK_PENDING);
    fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
    greet();
    CHECK(sends("{gate}"));
    CHECK(strstr(output, "{door}") == NULL); /* nothing is left to be given back */
  }
}

static bool give(struct fairlock_login *login, void *context)
{
  (void)context;
  login->password = "secret";
  login->valid_ms = 10000;
  return true;
}

/* With credentials that end, whichever was set first. */
static void test_credentials(void)
{
  static struct fairlock_credentials credentials;
  for (int first = 0; first < 2; first++) {
    memset(&credentials, 0, sizeof credentials);
    credentials.function = give;
    set_up_counted();
    if (first == 0) fairlock_engine_use_credentials(&engine, &credentials);
    memset(&keep, 0, sizeof keep);
    keep.keep_ms = KEEP_MS;
    CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
    if (first == 1) fairlock_engine_use_credentials(&engine, &credentials);
    greet();
    acquire("+OK\r\n+OK\r\n:0\r\n", 77);
    delay_release();
    pass(7500);
    CHECK(sends("AUTH\r\n"));
    feed("+OK\r\n");
    resume_hold(0);
    delay_release();
    recall();
    gives_back();
  }
}

static void test_values(void)
{
  set_up();
  keep.keep_ms = 0;
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_INVALID);
  keep.keep_ms = KEEP_MS + 1;
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_INVALID);
  CHECK(engine.links == NULL);
  keep.keep_ms = KEEP_MS;
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
  CHECK(engine.links == &keep.own.link && keep.own.link.inner == NULL); /* not behind itself */
}

const struct check_test check_tests[] = {
    {"keep: pairs that cost nothing", test_pairs},
    {"keep: the queue stays armed", test_next_keep},
    {"keep: recalled", test_recalled},
    {"keep: recalled in use", test_recalled_in_use},
    {"keep: recalled after its end", test_recalled_after_its_end},
    {"keep: a push before the answer to the arming", test_push_before_the_answer},
    {"keep: which locks a push recalls", test_which_is_recalled},
    {"keep: a key that is too long recalls", test_long_key_recalls},
    {"keep: what was recalled, and a script that is not known", test_recalled_and_not_known},
    {"keep: the connection breaks while one arms, and another one does",
     test_break_while_arming_another},
    {"keep: a name with a brace", test_name_with_a_brace},
    {"keep: somebody waits already", test_somebody_waits_already},
    {"keep: the arming is answered late", test_arming_unanswered},
    {"keep: two handles arm", test_two_arm},
    {"keep: the connection breaks", test_break},
    {"keep: the connection breaks while arming", test_break_while_arming},
    {"keep: the connection breaks in use", test_break_in_use},
    {"keep: an acquire in doubt", test_in_doubt},
    {"keep: tracking is refused", test_refused},
    {"keep: EXISTS is refused for now", test_refused_for_now},
    {"keep: the server is busy while one arms", test_busy},
    {"keep: nonsense for an arming", test_nonsense},
    {"keep: a lease of its own", test_own_lease},
    {"keep: too late", test_too_late},
    {"keep: what has arrived is read first", test_look},
    {"keep: a break while what has arrived is read", test_short_wait_is_broken},
    {"keep: what has arrived is read before a release, too", test_release_looks},
    {"keep: a release that looks, and a device that sleeps", test_release_looks_and_sleeps},
    {"keep: the shortest wait", test_short_wait},
    {"keep: two thirds of the lease", test_two_thirds},
    {"keep: renewed before it seems dead", test_late_renewal},
    {"keep: after a handover", test_handover},
    {"keep: before the confirmation", test_unconfirmed},
    {"keep: renewals", test_renewals},
    {"keep: two unanswered", test_two_unanswered},
    {"keep: re-entry", test_held_twice},
    {"keep: the text of a script", test_script_text},
    {"keep: an acquire that was not written", test_withdrawn},
    {"keep: a query that has failed", test_query_that_has_failed},
    {"keep: a wait after a release that has looked", test_wait_after_a_look},
    {"keep: an older acquire is on its way", test_older_acquire},
    {"keep: nonsense before a query", test_nonsense_before_a_query},
    {"keep: a subscription that is not needed", test_subscription},
    {"keep: others are not concerned", test_others},
    {"keep: a handle whose lock is kept inspects and breaks", test_queries},
    {"keep: a query that waits for its release", test_query_that_waits},
    {"keep: a query that fails", test_query_that_fails},
    {"keep: an operator asks", test_asked_for},
    {"keep: tasks that wait are told", test_waiting_tasks_are_told},
    {"keep: taken out", test_taken_out},
    {"keep: taken out before the arming is answered", test_arming_of_one_taken_out},
    {"keep: our clock has gone round while held", test_clock_round_held},
    {"keep: our clock has gone round while kept", test_clock_round_kept},
    {"keep: a small send buffer", test_small_buffer},
    {"keep: servers that move", test_topology},
    {"keep: more servers to try", test_seeds},
    {"keep: another lock is on another node", test_moved},
    {"keep: credentials that end", test_credentials},
    {"keep: values", test_values},
    {NULL, NULL},
};
