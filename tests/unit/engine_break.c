/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator does to a hold: ends it, or asks its holder to release it; and the holder that is
 * asked.
 */
#include "engine_tests.h"

static int asked;
static struct fairlock_asking last_asking;
static char asking_words[64];

static void count_asked(struct fairlock *handle, const struct fairlock_asking *asking,
                        void *context)
{
  last_asking = *asking;
  memset(asking_words, 0, sizeof asking_words);
  memcpy(asking_words, asking->words, asking->size);
  CHECK(handle == &a);
  CHECK(context == &asked);
  asked++;
}

/* What the request says of the holder and, behind its expiry, of the hold. */
static bool breaks(const char *holder, const char *words)
{
  drain();
  return strstr(output, holder) != NULL && strstr(output, words) != NULL;
}

void test_force_release(void)
{
  struct fairlock_target named = {.token = 42};
  struct fairlock_target held = {.holder = "peer:1"};
  begin();
  CHECK_EQUAL(fairlock_engine_force(&a, &anyone, now), FAIRLOCK_PENDING);
  CHECK(breaks("\r\n* 17", " -1 0\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_force(&a, &named, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_force(&a, &anyone, now), FAIRLOCK_IN_PROGRESS);
  CHECK(breaks("\r\n* 17", " -1 0 42\r\n"));
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_NOT_HELD);
  for (int i = 0; i < 2; i++) { /* by its holder alone */
    held.token = i == 0 ? 0 : FAIRLOCK_ANY_TOKEN;
    CHECK_EQUAL(fairlock_engine_force(&a, &held, now), FAIRLOCK_PENDING);
    CHECK(breaks("\r\npeer:1 17", " -1 0\r\n"));
    answer(1, 0, 0);
    CHECK_EQUAL(a.result, FAIRLOCK_OK);
  }
  /* what its next wait asks for is its own */
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends(":1 17"));
  CHECK(strstr(output, " 0 1000\r\n") != NULL);
}

/* Who it is, and why, is sent behind that, and is of the form that others read. */
void test_force_release_words(void)
{
  static char longest[64 + 1 + 128 + 2];
  static const char *const bad[] = {"7 why", " why", "1"};
  static const char *const good[] = {"anna@ops-1 stuck on NFS", "a", "a  b", "a 7"};
  struct fairlock_target named = {.token = 42};
  begin();
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    named.words = bad[i];
    CHECK_EQUAL(fairlock_engine_force(&a, &named, now), FAIRLOCK_INVALID);
    CHECK_EQUAL(fairlock_engine_ask(&a, &named, now), FAIRLOCK_INVALID);
  }
  memset(longest, 'x', sizeof longest - 1);
  named.words = longest;
  CHECK_EQUAL(fairlock_engine_force(&a, &named, now),
              FAIRLOCK_INVALID); /* no word may be so long */
  longest[64] = ' ';
  CHECK_EQUAL(fairlock_engine_force(&a, &named, now), FAIRLOCK_INVALID); /* a byte too many */
  CHECK(sends_nothing());
  longest[64 + 1 + 128] = 0;
  CHECK_EQUAL(fairlock_engine_force(&a, &named, now), FAIRLOCK_PENDING);
  CHECK(sends(" 42\r\n$194\r\n xxx"));
  answer(1, 0, 0);
  longest[64] = 'x';
  CHECK_EQUAL(fairlock_engine_force(&a, &named, now), FAIRLOCK_INVALID);
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    named.words = good[i];
    CHECK_EQUAL(fairlock_engine_ask(&a, &named, now), FAIRLOCK_PENDING);
    char argument[64] = "\r\n ";
    strcat(strcat(argument, good[i]), "\r\n");
    CHECK(sends(argument) && strstr(output, " 42\r\n$") != NULL);
    answer(1, 0, 0);
  }
  for (int i = 0; i < 2; i++) {
    named.words = i == 0 ? "" : NULL;
    CHECK_EQUAL(fairlock_engine_force(&a, &named, now), FAIRLOCK_PENDING);
    CHECK(sends(" 42\r\n$0\r\n\r\n"));
    answer(1, 0, 0);
  }
}

/* A hold that no request can name, or that there cannot be: nothing is sent. */
void test_force_release_of_nothing(void)
{
  static const char *const holders[] = {"", "*", " ", "a b", "a\tb", "a\n", "\va", "\fa", "a\r"};
  static const char *const good[] = {"**", "x*", "*x", "\177\016\b"};
  static const uint64_t tokens[] = {0, ((uint64_t)1 << 53) + 1, FAIRLOCK_ANY_TOKEN - 1};
  struct fairlock_target hold = {0};
  begin();
  for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
    hold.token = tokens[i];
    CHECK_EQUAL(fairlock_engine_force(&a, &hold, now), FAIRLOCK_INVALID);
    CHECK_EQUAL(fairlock_engine_ask(&a, &hold, now), FAIRLOCK_INVALID);
  }
  hold.token = (uint64_t)1 << 53;
  for (size_t i = 0; i < sizeof holders / sizeof holders[0]; i++) {
    hold.holder = holders[i];
    CHECK_EQUAL(fairlock_engine_force(&a, &hold, now), FAIRLOCK_INVALID);
  }
  hold.token = 0;
  hold.holder = "*"; /* 0 is no word for all, with the id of everybody neither */
  CHECK_EQUAL(fairlock_engine_force(&a, &hold, now), FAIRLOCK_INVALID);
  hold.token = (uint64_t)1 << 53;
  CHECK(sends_nothing());
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    hold.holder = good[i];
    CHECK_EQUAL(fairlock_engine_force(&a, &hold, now), FAIRLOCK_PENDING);
    CHECK(breaks(good[i], " -1 0 9007199254740992\r\n"));
    answer(0, 0, 0);
  }
}

/* A broken connection: the request that is sent again names the same hold. */
void test_force_release_again(void)
{
  struct fairlock_target named = {.token = 42};
  begin();
  CHECK_EQUAL(fairlock_engine_force(&a, &named, now), FAIRLOCK_PENDING);
  CHECK(breaks("\r\n* 17", " -1 0 42\r\n"));
  break_connection();
  greet();
  CHECK(breaks("\r\n* 17", " -1 0 42\r\n"));
  CHECK(strstr(output, "\r\n* 1700000002") != NULL);
  answer(-2, 0, 60000); /* it came after its time, of which we know now */
  CHECK(breaks("\r\n* 1700000062", " -1 0 42\r\n"));
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_NOT_HELD);
}

static bool begins(struct fairlock *handle, int what)
{
  int status = what == 0   ? fairlock_engine_force(handle, &anyone, now)
               : what == 1 ? fairlock_engine_inspect(handle, report_nothing, NULL, now)
                           : fairlock_engine_acquire(handle, 0, 1000, now);
  return status == FAIRLOCK_PENDING;
}

static void answer_to(int what)
{
  if (what == 1) feed("*6\r\n:4294967296\r\n:-2\r\n:0\r\n:0\r\n:0\r\n$0\r\n\r\n");
  else answer(1, 77, 0);
}

/* The text of a script that is not known is not sent for another one, which comes first. */
void test_noscript_of_queries(void)
{
  for (int i = 0; i < 9; i++) {
    int late = i / 3, first = i % 3;
    if (late == first) continue;
    begin();
    engine.window = 1;
    CHECK(begins(&a, late));
    CHECK(sends("EVALSHA\r\n"));
    CHECK(begins(&b, first)); /* waits for that answer */
    pass(1);
    feed("-NOSCRIPT No matching script.\r\n");
    CHECK(sends("EVALSHA\r\n") && strstr(output, "EVAL\r\n") == NULL);
    answer_to(first);
    CHECK_EQUAL(b.result, FAIRLOCK_OK);
    CHECK(sends("EVAL\r\n"));
    answer_to(late);
    CHECK_EQUAL(a.result, FAIRLOCK_OK);
  }
}

/* The operation ends for want of an answer while its request is half written. */
void test_force_release_half_written(void)
{
  struct fairlock_target named = {.token = 42};
  size_t size;
  set_up();
  config.send_size = FAIRLOCK_SEND_MIN;
  greet();
  engine.offline_ms = 100;
  CHECK_EQUAL(fairlock_engine_force(&a, &named, now), FAIRLOCK_PENDING);
  CHECK(fairlock_engine_output(&engine, &size, now) != NULL && size > 0);
  fairlock_engine_sent(&engine, size);
  pass(200);
  CHECK_EQUAL(a.result, FAIRLOCK_UNREACHABLE);
  memset(&named, 0, sizeof named); /* the caller's again */
  CHECK(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE);
  drain();
}

void test_ask(void)
{
  struct fairlock_target named = {.token = 42};
  begin();
  CHECK_EQUAL(fairlock_engine_ask(&a, &named, now), FAIRLOCK_PENDING);
  CHECK(breaks("\r\n* 17", " -2 0 42\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_ask(&a, &named, now), FAIRLOCK_PENDING);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_engine_ask(&a, &named, now), FAIRLOCK_PENDING);
  drain();
  answer(0, 1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_NOT_LISTENING);
}

/* A client that wants to be asked, and a lease: held after a try. */
static void try_a(uint32_t lease_ms)
{
  set_up();
  asked = 0;
  config.asked = count_asked;
  config.asked_context = &asked;
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, lease_ms, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

void test_asked(void)
{
  try_a(FAIRLOCK_RENEW);
  uint32_t left = fairlock_engine_remaining_ms(&a, now);
  push("message", CHANNEL("1"), "77");
  CHECK_EQUAL(asked, 1);
  CHECK(last_asking.token == 77 && last_asking.size == 0);
  push("message", CHANNEL("1"), "77 anna@ops-1 stuck 2 h");
  CHECK_EQUAL(asked, 2);
  CHECK(last_asking.token == 77 && strcmp(asking_words, "anna@ops-1 stuck 2 h") == 0);
  push("message", CHANNEL("1"), "77 anna@ops-1");
  CHECK(asked == 3 && strcmp(asking_words, "anna@ops-1") == 0);
  push("message", CHANNEL("1"), "77 ");
  CHECK(asked == 4 && last_asking.size == 0);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), left);
  CHECK_EQUAL(a.token, 77);
  CHECK_EQUAL(losses, 0);
  CHECK(sends_nothing());
}

/* A hold is asked for by its token; all else means something to waiters, or nothing. */
void test_asked_for_another_hold(void)
{
  static const char *const messages[] = {"76",     "78",   "0",       "",     "-77",
                                         "77 1 x", "77 1", "77 5b x", "x 77", "x"};
  try_a(FAIRLOCK_RENEW);
  for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)
    push("message", CHANNEL("1"), messages[i]);
  grant(CHANNEL("1"), "77", 0);
  push("message", CHANNEL("2"), "77");
  CHECK_EQUAL(asked, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  push("message", CHANNEL("1"), "77"); /* too late */
  drain();
  answer(1, 0, 0);
  push("message", CHANNEL("1"), "77");
  CHECK_EQUAL(asked, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(sends_nothing());
}

/* Without `asked`, a holder that listens because it has waited ignores the message. */
void test_asked_nobody(void)
{
  acquire_a(FAIRLOCK_RENEW);
  push("message", CHANNEL("1"), "77");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
}

/* A waiter takes it as any other message: it asks. */
void test_asked_while_waiting(void)
{
  queue_a(FAIRLOCK_FOREVER);
  config.asked = count_asked;
  asked = 0;
  push("message", CHANNEL("1"), "77");
  CHECK(sends("EVALSHA"));
  CHECK_EQUAL(asked, 0);
  CHECK_EQUAL(fairlock_engine_remaining_ms(&a, now), 0);
}

/* A holder that renews does so at once when its hold may have been ended; what else comes says nothing. */
void test_told_of_a_break(void)
{
  static const char *const others[] = {"76", "78", "77", "5 x"};
  static const char *const breaks[] = {"0", "0 anna@ops-1 stuck", "0 "};
  for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
    try_a(FAIRLOCK_RENEW);
    for (size_t other = 0; other < sizeof others / sizeof others[0]; other++)
      push("message", CHANNEL("1"), others[other]);
    grant(CHANNEL("1"), "77", 0);
    CHECK(sends_nothing());
    push("message", CHANNEL("1"), breaks[i]);
    CHECK(sends(" -1 30000+ 77\r\n"));
    CHECK_EQUAL(losses, 0); /* the server decides */
    answer(1, 77, 0);
    CHECK(fairlock_engine_remaining_ms(&a, now) > 29000);
    push("message", CHANNEL("1"), breaks[i]);
    CHECK(sends(" -1 30000+ 77\r\n"));
    answer(-1, 0, 0);
    CHECK_EQUAL(losses, 1);
    CHECK_EQUAL(asked, 1);
    push("message", CHANNEL("1"), breaks[i]);
    CHECK(sends_nothing());
  }
  try_a(5000); /* nothing would renew it */
  push("message", CHANNEL("1"), "0");
  CHECK(sends_nothing());
}

/* After a new connection a holder that renews listens again; a fixed lease sends nothing. */
void test_asked_after_a_break(void)
{
  try_a(FAIRLOCK_RENEW);
  break_connection();
  greet();
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  push("message", CHANNEL("1"), "77");
  CHECK_EQUAL(asked, 1);
  pass(10000);
  CHECK(sends("EVALSHA") && strstr(output, "SUBSCRIBE") == NULL);
  try_a(5000);
  break_connection();
  greet();
  CHECK(sends_nothing());
}

/* Who may not listen holds all the same. */
void test_asked_and_denied(void)
{
  set_up();
  config.asked = count_asked;
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  drain();
  feed("-NOPERM no channel\r\n");
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

/* The server is told whether a lease will be renewed. */
void test_renewal_is_announced(void)
{
  begin();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 30000+\r\n"));
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends(" -2 30000+ 77\r\n"));
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" -1 30000+ 77\r\n"));
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 0 77\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 30000, now), FAIRLOCK_PENDING);
  CHECK(sends(" 0 30000\r\n"));
}
