/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the scripts for locks that are shared (FORMAT.md, "Shared holds"), one by one: each test
 * sends requests as a client would, with ids that it chooses, and looks at the answers, at what is in
 * Redis, and at what is published. Nothing here waits for time to pass.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "texts.h"

#define QUEUE  "redisson_lock_queue:{rules}"
#define SCORES "redisson_lock_timeout:{rules}"
#define NOTES  "fairlock:{rules}"

enum { LISTENERS = 6 };

static struct raw listener[LISTENERS];
static int listening;

/* When the next requests expire: ages ago, or never. */
static bool expired;

/* The answer to the last request, {state, value, now}. */
static int64_t state, value, server_now;

static void load(const struct fairlock_script *script)
{
  static char text[1 << 14];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text, 0);
  fairlock_script_unpack(&writer, script);
  CHECK(raw_run(&redis, "SCRIPT LOAD %b", (const void *)text, writer.used));
}

static void begin_rules(void)
{
  begin();
  load(&fairlock_lock_script);
  load(&fairlock_shared_script);
  load(&fairlock_break_script);
  load(&fairlock_downgrade_script);
  listening = 0;
  expired = false;
}

static void end_rules(void)
{
  while (listening > 0)
    raw_close(&listener[--listening]);
}

static void take_answer(bool good)
{
  state = value = INT64_MIN;
  if (!CHECK(good && redis.count == 4)) return;
  state = redis.element[1].integer;
  value = redis.element[2].integer;
  server_now = redis.element[3].integer;
}

/* Carries out a request: mode, lease and perhaps a token are its words. */
static int64_t run(const struct fairlock_script *script, const char *id, const char *words,
                   int limit)
{
  char all[160];
  (void)snprintf(all, sizeof all, "%s %s %s", id, expired ? "1000" : "9000000000000", words);
  take_answer(raw_run(&redis, "EVALSHA %s 4 rules " QUEUE " " SCORES " " NOTES " %s %d",
                      script->sha1, all, limit));
  return state;
}

static int64_t run_with(const struct fairlock_script *script, const char *id, const char *words,
                        int limit, int64_t token)
{
  char all[96];
  (void)snprintf(all, sizeof all, "%s %" PRId64, words, token);
  return run(script, id, all, limit);
}

/* Of one that shares. */
static int64_t ask(const char *id, int limit, const char *words)
{
  return run(&fairlock_shared_script, id, words, limit);
}

static int64_t ask_with(const char *id, int limit, const char *words, int64_t token)
{
  return run_with(&fairlock_shared_script, id, words, limit, token);
}

/* Of one that wants the lock alone, and then of an operator. */
static int64_t ask_alone(const char *id, const char *words)
{
  return run(&fairlock_lock_script, id, words, 0);
}

static int64_t release_alone(const char *id, int64_t token)
{
  return run_with(&fairlock_lock_script, id, "0 0", 0, token);
}

/* Nothing is said of who does it: the script has one argument. */
static int64_t break_hold(const char *id, int64_t token)
{
  char all[96];
  const char *until = expired ? "1000" : "9000000000000";
  if (token == 0) (void)snprintf(all, sizeof all, "%s %s -1 0", id, until);
  else (void)snprintf(all, sizeof all, "%s %s -1 0 %" PRId64, id, until, token);
  take_answer(raw_run(&redis, "EVALSHA %s 4 rules " QUEUE " " SCORES " " NOTES " %s",
                      fairlock_break_script.sha1, all));
  return state;
}

/* Enters, without waiting, and returns the token. */
static int64_t enter(const char *id, int limit, const char *lease)
{
  char words[32];
  (void)snprintf(words, sizeof words, "0 %s", lease);
  CHECK_EQUAL(ask(id, limit, words), 1);
  return value;
}

static void listen_as(const char *id)
{
  CHECK(raw_open(&listener[listening], server.port));
  CHECK(raw_run(&listener[listening], "SUBSCRIBE redisson_lock__channel:{rules}:%s", id));
  listening++;
}

/* Queues, and listens. */
static void wait_as(const char *id, int limit)
{
  listen_as(id);
  CHECK_EQUAL(ask(id, limit, "5000 30000+"), 0);
}

static void wait_alone(const char *id)
{
  listen_as(id);
  CHECK_EQUAL(ask_alone(id, "5000 30000+"), 0);
}

/* Puts one of Redisson's last in line, which does not listen. */
static void line_up_peer(const char *id)
{
  CHECK(raw_run(&redis, "ZADD " SCORES " 9000000000000 %s", id));
  CHECK(raw_run(&redis, "RPUSH " QUEUE " %s", id));
}

static int64_t waiters(void)
{
  return raw_number(&redis, "LLEN " QUEUE);
}

static bool waits(const char *id)
{
  return raw_number(&redis, "LPOS " QUEUE " %s", id) >= 0;
}

/* The field of a holder in the lock hash; a count alone counts as one without ends. */
struct field {
  int64_t token, ends, count;
  bool there, shared;
};

static struct field field_of(const char *id)
{
  struct field field = {0};
  const char *text = raw_text(&redis, "HGET rules %s", id);
  char *end;
  field.there = text[0] != 0;
  field.token = strtoll(text, &end, 10);
  field.shared = *end == ' ';
  if (!field.shared) return field;
  field.ends = strtoll(end, &end, 10);
  field.count = strtoll(end, &end, 10);
  return field;
}

static bool holds(const char *id)
{
  struct field field = field_of(id);
  return field.there && (!field.shared || field.ends > server_now);
}

/* How many hold, by the field that counts them. */
static int64_t counted(void)
{
  int64_t sum = 0;
  char *text = raw_text(&redis, "HGET rules shared")[0] != 0 ? redis.element[0].text : NULL;
  while (text != NULL && *text != 0) {
    int64_t ends = strtoll(text, &text, 10);
    int64_t holders = strtoll(text, &text, 10);
    if (ends > server_now) sum += holders;
  }
  return sum;
}

static int64_t ttl(void)
{
  return raw_number(&redis, "PTTL rules");
}

/* What is left of a lease of so many ms: all of it, and at most a sixteenth more. A second may pass. */
static bool is_rest(int64_t rest, int64_t lease)
{
  bool good = rest > lease - 1000 && rest <= lease + lease / 16 + 1;
  if (!good) printf("# %" PRId64 " ms are left of %" PRId64 "\n", rest, lease);
  return good;
}

static void set_note(const char *id, const char *note)
{
  CHECK(raw_run(&redis, "HSET " NOTES " %s %s", id, note));
}

/* The newest message to the listener of this number begins with it. */
static bool told(int number, int64_t token)
{
  char text[32];
  struct raw *raw = &listener[number];
  (void)snprintf(text, sizeof text, "%" PRId64 " ", token);
  return raw_reply_within(raw, SOON) && raw->count == 4 &&
         strncmp(raw->element[3].text, text, strlen(text)) == 0;
}

static bool told_nothing(int number)
{
  CHECK(raw_run(&redis, "PING")); /* what was published before has been sent */
  return !raw_reply_within(&listener[number], 0);
}

/* Limits */

static void test_limit(void)
{
  begin_rules();
  int64_t first = enter("a:1", 2, "30000+");
  CHECK(enter("b:1", 2, "60000+") > first);
  char other[32];
  (void)snprintf(other, sizeof other, "3 %" PRId64, server_now + 5000);
  set_note("limit", other);
  CHECK_EQUAL(ask("c:1", 2, "0 30000+"), 0);
  CHECK(is_rest(value, 30000)); /* until the first lease ends, whatever limits do not bind it */
  CHECK_EQUAL(counted(), 2);
  CHECK_EQUAL(waiters(), 0);
  CHECK_EQUAL(ask_with("a:1", 2, "-1 0", first), -1);
  CHECK_EQUAL(ask_with("a:1", 2, "0 0", first), 1);
  CHECK_EQUAL(counted(), 1);
  (void)enter("c:1", 2, "30000+");
  CHECK_EQUAL(counted(), 2);
  end_rules();
}

static void test_waiter_at_the_limit(void)
{
  begin_rules();
  int64_t first = enter("a:1", 2, "30000+");
  int64_t second = enter("b:1", 2, "30000+");
  wait_as("c:1", 2);
  wait_as("d:1", 2);
  CHECK_EQUAL(ask_with("b:1", 2, "-1 30000+", second), 1);
  CHECK_EQUAL(ask("d:1", 2, "5000 30000+"), 0);
  CHECK(!holds("c:1") && !holds("d:1"));
  CHECK_EQUAL(ask_with("a:1", 2, "0 0", first), 1);
  struct field entered = field_of("c:1");
  CHECK(entered.there && entered.token > second);
  CHECK_EQUAL(entered.count, 0);
  CHECK(is_rest(entered.ends - server_now, 5000));
  CHECK(!holds("d:1") && waits("d:1") && !waits("c:1"));
  CHECK(told(0, entered.token) && told_nothing(1));
  CHECK_EQUAL(raw_number(&redis, "HEXISTS " NOTES " c:1"), 0);
  CHECK_EQUAL(raw_number(&redis, "ZSCORE " SCORES " c:1"), -1);
  CHECK_EQUAL(strtoll(raw_text(&redis, "HGET " NOTES " token"), NULL, 10), entered.token);
  CHECK(strcmp(raw_text(&redis, "HGET " NOTES " holder"), "c:1") == 0);
  CHECK_EQUAL(strtoll(raw_text(&redis, "HGET " NOTES " released"), NULL, 10), first);
  end_rules();
}

/*
 * A release that names its token ends that hold however late it comes, and no later one. All else
 * does nothing when it has expired.
 */
static void test_expired(void)
{
  begin_rules();
  CHECK_EQUAL(ask_alone("a:1", "0 30000+"), 1);
  int64_t alone = value;
  expired = true;
  CHECK_EQUAL(ask_alone("b:1", "0 30000+"), -2);
  CHECK_EQUAL(ask_alone("b:1", "5000 30000+"), -2);
  CHECK_EQUAL(ask_alone("a:1", "0 0"), -2); /* to leave */
  CHECK_EQUAL(run_with(&fairlock_lock_script, "a:1", "-1 30000+", 0, alone), -2);
  CHECK_EQUAL(break_hold("x:1", alone), -2);
  CHECK_EQUAL(release_alone("a:1", alone - 1), 0);
  CHECK(holds("a:1"));
  CHECK_EQUAL(release_alone("a:1", alone), 1);
  CHECK(!holds("a:1"));
  CHECK_EQUAL(release_alone("a:1", alone), 1);
  expired = false;
  CHECK_EQUAL(run_with(&fairlock_lock_script, "a:1", "0 30000+", 0, alone), 1);
  expired = true;
  (void)release_alone("a:1", alone);
  CHECK(holds("a:1"));
  expired = false;
  CHECK(raw_run(&redis, "DEL rules"));
  int64_t shared = enter("a:1", 2, "30000+");
  (void)enter("b:1", 2, "30000+");
  wait_as("c:1", 2);
  expired = true;
  CHECK_EQUAL(ask("d:1", 2, "5000 30000+"), -2);
  CHECK_EQUAL(ask("c:1", 2, "0 0"), -2);
  CHECK_EQUAL(ask_with("a:1", 2, "-1 30000+", shared), -2);
  CHECK_EQUAL(ask_with("a:1", 2, "0 0", shared - 1), 0);
  CHECK(holds("a:1") && waits("c:1") && counted() == 2);
  CHECK_EQUAL(ask_with("a:1", 2, "0 0", shared), 1);
  CHECK(!holds("a:1") && holds("c:1"));
  end_rules();
}

/* True if these are the limits in use, and for how long, s, each of them is: `N s`. */
static bool in_use(const char *expected)
{
  char note[128], *at = note, *end;
  (void)snprintf(note, sizeof note, "%s", raw_text(&redis, "HGET " NOTES " limit"));
  bool good = true;
  while (good && *expected != 0) {
    good = strtoll(at, &end, 10) == strtoll(expected, (char **)&expected, 10) && end != at;
    int64_t rest = strtoll(end, &at, 10) - server_now;
    good = good && is_rest(rest, 1000 * strtoll(expected, (char **)&expected, 10));
  }
  if (!good || *at != 0) printf("# limits in use at %" PRId64 ": %s\n", server_now, note);
  return good && *at == 0;
}

/* The smallest limit in use binds all: who names a larger one waits, and who names a smaller one, too. */
static void test_other_limit(void)
{
  begin_rules();
  (void)enter("a:1", 3, "64000");
  CHECK(in_use("3 64"));
  int64_t smaller = enter("b:1", 2, "16000");
  CHECK(in_use("2 16 3 64"));
  CHECK_EQUAL(ask("c:1", 3, "0 30000+"), 0);
  CHECK(is_rest(value, 16000)); /* until a lease ends */
  CHECK_EQUAL(ask("c:1", 0, "0 30000+"), 0);
  CHECK_EQUAL(ask("c:1", 2, "0 30000+"), 0);
  CHECK_EQUAL(ask("c:1", 1, "0 30000+"), 0);
  /* it is in use for as long as the lease would have lasted */
  CHECK_EQUAL(ask_with("b:1", 2, "0 0", smaller), 1);
  CHECK_EQUAL(ask("c:1", 1, "0 30000+"), 0);
  int64_t third = enter("c:1", 3, "32000");
  CHECK(in_use("2 16 3 64"));
  CHECK_EQUAL(ask("d:1", 3, "0 30000+"), 0);
  CHECK(is_rest(value, 16000)); /* until the limit ends */
  CHECK_EQUAL(counted(), 2);
  /* a renewal names it for longer, and never for less */
  CHECK_EQUAL(ask_with("c:1", 3, "-1 128000", third), 1);
  CHECK(in_use("2 16 3 128"));
  CHECK_EQUAL(ask_with("c:1", 3, "-1 1000", third), 1);
  CHECK(in_use("2 16 3 128"));
  set_note("limit", "2 1000 3 9000000000000");
  (void)enter("d:1", 3, "32000");
  CHECK_EQUAL(ask("e:1", 3, "0 30000+"), 0);
  CHECK(in_use("3 32"));
  end_rules();
}

/* Nobody who waits names a limit, and each who is let in does, before the next one is looked at. */
static void test_limits_of_waiters(void)
{
  begin_rules();
  int64_t only = enter("z:1", 4, "64000");
  int64_t second = enter("y:1", 1000, "64000");
  CHECK_EQUAL(ask("x:1", 1, "0 30000+"), 0);
  wait_as("a:1", 1);
  wait_as("b:1", 4);
  wait_as("c:1", 2);
  wait_as("d:1", 4);
  CHECK(in_use("4 64 1000 64"));
  CHECK_EQUAL(ask("a:1", 1, "0 0"), 0); /* one that leaves, whose limit is the smallest */
  CHECK(holds("b:1") && !holds("c:1") && waits("c:1"));
  CHECK_EQUAL(ask_with("y:1", 1000, "0 0", second), 1);
  CHECK(!holds("c:1") && waits("c:1") && waits("d:1"));
  CHECK_EQUAL(ask_with("z:1", 4, "0 0", only), 1);
  CHECK(holds("c:1") && !holds("d:1") && counted() == 2);
  CHECK(in_use("2 5 4 64 1000 64"));
  end_rules();
}

/* A release that lets in several: the limit of the second one stops the third. */
static void test_limits_of_several(void)
{
  begin_rules();
  int64_t only = enter("z:1", 1, "64000");
  wait_as("a:1", 3);
  wait_as("b:1", 2);
  wait_as("c:1", 3);
  CHECK_EQUAL(ask_with("z:1", 1, "0 0", only), 1);
  CHECK(holds("a:1") && holds("b:1") && !holds("c:1"));
  CHECK(in_use("2 5 3 5")); /* that of z:1 ended with it, because nobody else held */
  int64_t claim = field_of("a:1").token;
  CHECK(field_of("a:1").ends <=
        strtoll(strrchr(raw_text(&redis, "HGET " NOTES " limit"), ' '), NULL, 10));
  CHECK_EQUAL(ask_with("a:1", 3, "-1 64000", claim), 1);
  CHECK(in_use("2 5 3 64") && !holds("c:1"));
  end_rules();
}

/* Who finds that nobody else shares begins anew, by whichever way it gets in. */
static void test_limit_left(void)
{
  begin_rules();
  int64_t only = enter("a:1", 1, "64000");
  CHECK_EQUAL(ask_with("a:1", 1, "0 0", only), 1);
  (void)enter("b:1", 3, "32000");
  CHECK(in_use("3 32"));
  CHECK_EQUAL(break_hold("*", 0), 1);
  only = enter("a:1", 0, "64000"); /* names none */
  CHECK(in_use(""));
  int64_t second = enter("b:1", 1000, "32000");
  CHECK_EQUAL(ask_with("b:1", 1000, "0 0", second), 1);
  CHECK(in_use("1000 32"));
  CHECK_EQUAL(ask_with("a:1", 0, "-1 64000", only), 1);
  CHECK(in_use("")); /* a renewal of the only one, too */
  CHECK_EQUAL(ask_with("a:1", 0, "0 0", only), 1);
  CHECK_EQUAL(ask_alone("x:1", "0 30000+"), 1);
  int64_t alone = value;
  set_note("limit", "1 9000000000000");
  CHECK_EQUAL(run_with(&fairlock_downgrade_script, "x:2", "-1 16000", 3, alone), 1);
  CHECK(in_use("3 16"));
  CHECK_EQUAL(run_with(&fairlock_downgrade_script, "x:2", "-1 32000", 3, alone), 1);
  CHECK(in_use("3 32"));
  end_rules();
}

/* One that is handed the lock alone names its limit when that becomes a share, before it lets in others. */
static void test_limit_of_a_claim(void)
{
  begin_rules();
  CHECK_EQUAL(ask_alone("x:1", "0 30000+"), 1);
  int64_t only = value;
  wait_as("a:1", 1);
  wait_as("b:1", 2);
  CHECK_EQUAL(release_alone("x:1", only), 1);
  CHECK(holds("a:1") && !field_of("a:1").shared);
  int64_t claim = strtoll(raw_text(&redis, "HGET " NOTES " token"), NULL, 10);
  CHECK_EQUAL(ask_with("a:1", 1, "-1 64000", claim), 1);
  CHECK(field_of("a:1").shared && !holds("b:1"));
  CHECK(in_use("1 64"));
  end_rules();
}

/* What a reader takes for a limit in use. */
static void test_limits_read(void)
{
  static const struct {
    const char *format;
    bool binds;
  } rows[] = {
      {"2 %" PRId64, true},
      {"002 %" PRId64, true},
      {"3 1000 2 %" PRId64, true},
      {"999999999 9000000000000 2 %" PRId64, true},
      {"0 9000000000000 2 %" PRId64, true},
      {"3 %" PRId64, false},
      {"0 %" PRId64, false},
      {"1000000001 %" PRId64, false},
      {"2", false},
      {"2 x %" PRId64, false},
      {"2 1000", false},
      {"2 9000000000000", false},
      {"", false},
  };
  begin_rules();
  (void)enter("a:1", 3, "60000");
  (void)enter("b:1", 3, "60000");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char note[64];
    /* the rows without a time do not need it */
    (void)snprintf(note, sizeof note, rows[i].format, server_now + 60000);
    set_note("limit", note);
    bool enters = ask("c:1", 3, "0 60000") == 1;
    if (!CHECK_EQUAL(enters, !rows[i].binds)) printf("# %s\n", note);
    if (enters) CHECK_EQUAL(ask_with("c:1", 3, "0 0", value), 1);
  }
  char many[64];
  (void)snprintf(many, sizeof many, "007 1000 99999999999999999999 %" PRId64, server_now + 60000);
  set_note("limit", many);
  (void)enter("c:1", 3, "60000");
  CHECK(in_use("3 60"));
  end_rules();
}

/* A break counts one that a later release lets count several times as often as before. */
static void test_weight(void)
{
  char text[64];
  begin_rules();
  (void)enter("a:1", 5, "30000+");
  (void)enter("b:1", 5, "30000+");
  (void)snprintf(text, sizeof text, "7 %" PRId64 " 1 30000+ x2 w3", server_now + 60000);
  CHECK(raw_run(&redis, "HSET rules c:1 %s", text));
  CHECK_EQUAL(break_hold("a:1", 0), 1);
  CHECK_EQUAL(counted(), 4);
  end_rules();
}

/* Leases */

/* Rounded up, to few ends, and by a sixteenth at most. */
static void test_ends(void)
{
  static const struct {
    const char *lease;
    int64_t ms, step;
  } rows[] = {
      {"30000+", 30000, 1024}, {"60000", 60000, 2048}, {"1000", 1000, 32},         {"100", 100, 4},
      {"32768", 32768, 2048},  {"32767", 32767, 1024}, {"1000000", 1000000, 32768}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    begin_rules();
    (void)enter("a:1", 0, rows[i].lease);
    struct field field = field_of("a:1");
    CHECK(field.ends >= server_now + rows[i].ms);
    CHECK(field.ends < server_now + rows[i].ms + rows[i].step);
    CHECK_EQUAL(field.ends % rows[i].step, 0);
    CHECK_EQUAL(field.count, 1);
    CHECK(ttl() <= field.ends - server_now && ttl() > field.ends - server_now - 1000);
    end_rules();
  }
}

/* The TTL is that of the lease which ends last, whoever comes and goes. */
static void test_ttl(void)
{
  begin_rules();
  int64_t first = enter("a:1", 0, "30000+");
  CHECK(is_rest(ttl(), 30000));
  CHECK(raw_number(&redis, "PTTL " NOTES) > 86400000); /* a day */
  int64_t second = enter("b:1", 0, "100000+");
  CHECK(is_rest(ttl(), 100000));
  CHECK_EQUAL(ask_with("a:1", 0, "-1 30000+", first), 1);
  CHECK(is_rest(ttl(), 100000));
  CHECK_EQUAL(ask_with("b:1", 0, "0 0", second), 1);
  CHECK(is_rest(ttl(), 30000));
  end_rules();
}

/* Only the first confirmation of a claim may shorten its lease. */
static void test_confirmation(void)
{
  begin_rules();
  int64_t first = enter("a:1", 1, "30000+");
  wait_as("b:1", 1);
  CHECK_EQUAL(ask_with("a:1", 1, "0 0", first), 1);
  int64_t second = field_of("b:1").token;
  CHECK_EQUAL(ask_with("b:1", 1, "-1 2000", second - 1), -1);
  CHECK_EQUAL(ask_with("b:1", 1, "-1 2000", second), 1);
  CHECK_EQUAL(field_of("b:1").count, 1);
  CHECK(is_rest(field_of("b:1").ends - server_now, 2000));
  CHECK(is_rest(ttl(), 2000));
  CHECK_EQUAL(ask_with("b:1", 1, "-2 60000", second), 1);
  CHECK_EQUAL(ask_with("b:1", 1, "-2 2000", second), 1);
  CHECK(is_rest(field_of("b:1").ends - server_now, 60000));
  CHECK_EQUAL(field_of("b:1").count, 2);
  CHECK_EQUAL(counted(), 1);
  end_rules();
}

/* A share whose end has passed is none: it cannot be renewed, nobody counts it, and it is cleared. */
static void test_ended(void)
{
  begin_rules();
  char count[64];
  (void)enter("a:1", 2, "30000+");
  int64_t second = enter("b:1", 2, "30000+");
  (void)snprintf(count, sizeof count, "1000 1 %" PRId64 " 1", field_of("b:1").ends);
  CHECK(raw_run(&redis, "HSET rules a:1 %s shared %s", "77 1000 1 30000+", count));
  CHECK_EQUAL(ask_with("a:1", 2, "-1 30000+", 77), -1);
  CHECK_EQUAL(ask_with("a:1", 2, "0 0", 77), 0);
  for (int i = 0; i < 40; i++)
    CHECK(raw_run(&redis, "HSET rules x:%d %s", i, "78 1000 1 30000+"));
  CHECK(enter("c:1", 2, "30000+") > second);
  CHECK_EQUAL(raw_number(&redis, "HLEN rules"), 3);
  CHECK_EQUAL(counted(), 2);
  CHECK_EQUAL(ask("a:1", 2, "0 30000+"), 0);
  end_rules();
}

/* Nor is one whose end is further away than any lease is long. */
static void test_end_of_nobody(void)
{
  begin_rules();
  (void)enter("a:1", 2, "30000+");
  int64_t far = server_now + 3000000000;
  char text[64], count[64];
  (void)snprintf(text, sizeof text, "77 %" PRId64 " 1 30000+", far);
  (void)snprintf(count, sizeof count, "%" PRId64 " 1 %" PRId64 " 1", far, field_of("a:1").ends);
  CHECK(raw_run(&redis, "HSET rules b:1 %s shared %s", text, count));
  CHECK_EQUAL(ask_with("b:1", 2, "-1 30000+", 77), -1);
  (void)enter("c:1", 2, "30000+");
  CHECK(is_rest(ttl(), 30000));
  end_rules();
}

/* An acquire that names the token of an earlier hold never gets that one again. */
static void test_earlier_token(void)
{
  begin_rules();
  (void)enter("b:1", 0, "30000+");
  int64_t given_up = enter("a:1", 0, "30000+");
  CHECK_EQUAL(ask("a:1", 0, "0 30000+"), 1);
  CHECK_EQUAL(value, given_up); /* a repeated request */
  CHECK_EQUAL(ask_with("a:1", 0, "0 30000+", given_up), 1);
  CHECK(value > given_up);
  CHECK_EQUAL(field_of("a:1").token, value);
  CHECK_EQUAL(counted(), 2);
  CHECK_EQUAL(ask_with("a:1", 0, "0 0", given_up), 1); /* it was released */
  CHECK_EQUAL(ask_with("a:1", 0, "0 0", 77), 0);
  CHECK(holds("a:1"));
  end_rules();
}

/* Tokens rise, whatever the clock of the server. */
static void test_tokens(void)
{
  begin_rules();
  set_note("token", "8000000000000000");
  CHECK_EQUAL(enter("a:1", 0, "30000+"), 8000000000000001);
  CHECK_EQUAL(enter("b:1", 0, "30000+"), 8000000000000002);
  end_rules();
}

/* A release that was carried out is known when it is repeated, and only the newest one. */
static void test_release(void)
{
  begin_rules();
  int64_t first = enter("a:1", 0, "30000+");
  int64_t second = enter("b:1", 0, "30000+");
  CHECK_EQUAL(ask_with("a:1", 0, "0 0", first), 1);
  CHECK(!field_of("a:1").there && holds("b:1"));
  CHECK_EQUAL(ask_with("a:1", 0, "0 0", first), 1);
  CHECK_EQUAL(ask_with("b:1", 0, "0 0", second), 1);
  CHECK_EQUAL(raw_number(&redis, "EXISTS rules " QUEUE " " SCORES), 0);
  CHECK_EQUAL(ask_with("b:1", 0, "0 0", second), 1);
  CHECK_EQUAL(ask_with("a:1", 0, "0 0", first), 0);
  end_rules();
}

/* The scripts stop where a right is missing. One who leaves is no holder by then. */
static void test_stopped_release(void)
{
  begin_rules();
  int64_t first = enter("a:1", 2, "30000+");
  (void)enter("b:1", 2, "30000+");
  CHECK(raw_run(&redis, "ACL SETUSER default -hdel"));
  char words[64];
  (void)snprintf(words, sizeof words, "a:1 9000000000000 0 0 %" PRId64, first);
  CHECK(!raw_run(&redis, "EVALSHA %s 4 rules " QUEUE " " SCORES " " NOTES " %s 2",
                 fairlock_shared_script.sha1, words));
  CHECK(raw_run(&redis, "ACL SETUSER default +hdel"));
  CHECK_EQUAL(field_of("a:1").ends, 0);
  CHECK_EQUAL(field_of("a:1").token, first);
  CHECK(field_of("a:1").there && !holds("a:1"));
  CHECK_EQUAL(counted(), 1);
  (void)enter("c:1", 2, "30000+");
  end_rules();
}

/* A lock that does not get its lease is deleted again. */
static void test_stopped_acquire(void)
{
  begin_rules();
  CHECK(raw_run(&redis, "HSET " NOTES " token 1700000000000000"));
  (void)enter("a:1", 1, "30000+");
  CHECK(raw_run(&redis, "DEL rules"));
  CHECK(raw_run(&redis, "ACL SETUSER default -pexpire"));
  CHECK(!raw_run(&redis, "EVALSHA %s 4 rules " QUEUE " " SCORES " " NOTES " %s 1",
                 fairlock_shared_script.sha1, "b:1 9000000000000 0 30000"));
  CHECK(raw_run(&redis, "ACL SETUSER default +pexpire"));
  CHECK_EQUAL(raw_number(&redis, "EXISTS rules"), 0);
  end_rules();
}

/* Order */

/* Who wants it alone stops all behind, and who shares waits for whoever has it alone. */
static void test_alone(void)
{
  begin_rules();
  CHECK_EQUAL(ask_alone("x:1", "0 30000+"), 1);
  int64_t only = value;
  CHECK_EQUAL(ask("a:1", 0, "0 30000+"), 0);
  CHECK_EQUAL(raw_number(&redis, "HLEN rules"), 1);
  CHECK_EQUAL(release_alone("x:1", only), 1);
  (void)enter("a:1", 0, "30000+");
  wait_alone("x:1");
  wait_as("b:1", 0);
  wait_as("c:1", 0);
  CHECK_EQUAL(ask("d:1", 0, "0 30000+"), 0);
  CHECK_EQUAL(ask("b:1", 0, "5000 30000+"), 0);
  CHECK_EQUAL(value, 200); /* it asks often: nobody tells it when x leaves */
  CHECK_EQUAL(ask("c:1", 0, "5000 30000+"), 0);
  CHECK_EQUAL(value, -1);
  CHECK(!holds("b:1") && !holds("c:1"));
  CHECK_EQUAL(counted(), 1);
  CHECK_EQUAL(ask_alone("x:1", "0 0"), 0);
  CHECK_EQUAL(ask("b:1", 0, "5000 30000+"), 1);
  CHECK(holds("c:1") && waiters() == 0);
  end_rules();
}

/* One that was handed the lock alone, by a script that knows no shares, turns that into a share. */
static void test_handed_alone(void)
{
  begin_rules();
  CHECK_EQUAL(ask_alone("x:1", "0 30000+"), 1);
  int64_t only = value;
  for (int i = 0; i < 5; i++) {
    char id[8];
    (void)snprintf(id, sizeof id, "%c:1", 'a' + i);
    wait_as(id, 0);
  }
  CHECK_EQUAL(release_alone("x:1", only), 1);
  CHECK(holds("a:1") && !field_of("a:1").shared);
  CHECK_EQUAL(strtoll(raw_text(&redis, "HGET " NOTES " token"), NULL, 10) > only, 1);
  int64_t first = strtoll(redis.element[0].text, NULL, 10);
  CHECK_EQUAL(ask_with("a:1", 0, "-1 30000+", first), 1);
  struct field field = field_of("a:1");
  CHECK(field.shared && field.token == first && field.count == 1);
  CHECK(is_rest(field.ends - server_now, 30000) && is_rest(ttl(), 30000));
  /* three enter by one request: the next one by that of these */
  CHECK(holds("b:1") && holds("c:1") && holds("d:1") && !holds("e:1"));
  CHECK_EQUAL(counted(), 4);
  int64_t second = field_of("b:1").token;
  CHECK(field_of("c:1").token > second && field_of("d:1").token > field_of("c:1").token);
  CHECK_EQUAL(ask_with("b:1", 0, "-1 30000+", second), 1);
  CHECK(holds("e:1") && waiters() == 0);
  end_rules();
}

/* So does one whose grant was lost, and which asks for its place. It has yet to confirm. */
static void test_handed_alone_unheard(void)
{
  begin_rules();
  CHECK_EQUAL(ask_alone("x:1", "0 30000+"), 1);
  int64_t only = value;
  wait_as("a:1", 2);
  wait_as("b:1", 2);
  wait_as("c:1", 2);
  CHECK_EQUAL(release_alone("x:1", only), 1);
  CHECK_EQUAL(ask("a:1", 2, "5000 30000+"), 1);
  CHECK(field_of("a:1").shared && field_of("a:1").token == value);
  CHECK_EQUAL(field_of("a:1").count, 0);
  CHECK(holds("b:1") && !holds("c:1"));
  CHECK_EQUAL(counted(), 2);
  end_rules();
}

/* One that is alive, and does not listen, is passed over, and keeps its place. */
static void test_silent(void)
{
  begin_rules();
  (void)enter("z:1", 2, "30000+");
  (void)enter("y:1", 2, "30000+");
  CHECK_EQUAL(ask("a:1", 2, "5000 30000+"), 0);
  wait_as("b:1", 2);
  CHECK_EQUAL(break_hold("z:1", 0), 1);
  CHECK_EQUAL(ask("b:1", 2, "5000 30000+"), 1);
  CHECK(waits("a:1") && !holds("a:1"));
  end_rules();
}

/* One that is dead is forgotten, whether it listens or not. */
static void test_dead(void)
{
  begin_rules();
  (void)enter("z:1", 0, "30000+");
  wait_alone("x:1");
  wait_as("a:1", 0);
  CHECK_EQUAL(ask_alone("y:1", "5000 30000+"), 0);
  set_note("x:1", "1 0 5000");
  set_note("a:1", "1 0 5000 S0");
  set_note("y:1", "1 0 5000");
  CHECK_EQUAL(ask("b:1", 0, "0 30000+"), 1);
  CHECK_EQUAL(waiters(), 0);
  CHECK(!holds("a:1") && told_nothing(1));
  CHECK_EQUAL(raw_number(&redis, "HEXISTS " NOTES " a:1"), 0);
  end_rules();
}

/* But not while nobody can enter: after a stall or a fail-over it may be back before somebody can. */
static void test_dead_at_the_limit(void)
{
  begin_rules();
  (void)enter("z:1", 1, "30000+");
  wait_as("a:1", 1);
  wait_as("b:1", 1);
  set_note("a:1", "1 0 5000 S1");
  CHECK_EQUAL(ask("b:1", 1, "5000 30000+"), 0);
  CHECK(waits("a:1"));
  CHECK_EQUAL(ask("a:1", 1, "5000 30000+"), 0);
  CHECK_EQUAL(break_hold("z:1", 0), 1);
  CHECK_EQUAL(ask("b:1", 1, "5000 30000+"), 0);
  CHECK(holds("a:1"));
  end_rules();
}

/* Whether somebody can enter say the limits in use, not that of one that leaves. */
static void test_dead_and_another_limit(void)
{
  begin_rules();
  (void)enter("z:1", 2, "30000+");
  int64_t token = enter("y:1", 2, "30000+");
  wait_as("a:1", 2);
  wait_as("b:1", 2);
  set_note("a:1", "1 0 5000 S2");
  CHECK_EQUAL(ask("c:1", 3, "5000 30000+"), 0);
  CHECK_EQUAL(ask("c:1", 3, "0 0"), 0);
  CHECK(waits("a:1"));
  CHECK_EQUAL(ask_with("y:1", 1, "0 0", token), 1);
  CHECK(!waits("a:1") && !holds("a:1") && holds("b:1"));
  end_rules();
}

/* Who holds has no place: a script that was stopped may have left it. */
static void test_place_of_who_holds(void)
{
  begin_rules();
  (void)enter("z:1", 0, "30000+");
  int64_t token = field_of("z:1").token;
  wait_alone("x:1");
  line_up_peer("z:1");
  CHECK_EQUAL(ask_with("z:1", 0, "-1 30000+", token), 1);
  CHECK(holds("z:1") && !waits("z:1") && waits("x:1"));
  end_rules();
}

/* One of Redisson's that does not listen has 5 s from when that was first seen. */
static void test_suspect(void)
{
  char since[64];
  begin_rules();
  (void)enter("z:1", 0, "30000+");
  line_up_peer("peer:1");
  wait_as("b:1", 0);
  CHECK(!holds("b:1"));
  int64_t score, seen;
  char *end;
  (void)snprintf(since, sizeof since, "%s", raw_text(&redis, "HGET " NOTES " suspect:peer:1"));
  score = strtoll(since, &end, 10);
  seen = strtoll(end, NULL, 10);
  CHECK_EQUAL(score, 9000000000000);
  CHECK(seen > server_now - 1000 && seen <= server_now);
  (void)snprintf(since, sizeof since, "9000000000000 %" PRId64, server_now - 4000);
  set_note("suspect:peer:1", since);
  CHECK_EQUAL(ask("b:1", 0, "5000 30000+"), 0);
  CHECK(waits("peer:1"));
  (void)snprintf(since, sizeof since, "8999999999999 %" PRId64, server_now - 6000);
  set_note("suspect:peer:1", since); /* of an earlier wait */
  CHECK_EQUAL(ask("b:1", 0, "5000 30000+"), 0);
  CHECK(waits("peer:1"));
  (void)snprintf(since, sizeof since, "9000000000000 %" PRId64, server_now - 5000);
  set_note("suspect:peer:1", since);
  CHECK_EQUAL(ask("b:1", 0, "5000 30000+"), 1);
  CHECK_EQUAL(waiters(), 0);
  CHECK_EQUAL(raw_number(&redis, "HEXISTS " NOTES " suspect:peer:1"), 0);
  /* one that Redisson itself would evict by now goes at once */
  CHECK(raw_run(&redis, "ZADD " SCORES " 1000 peer:2"));
  CHECK(raw_run(&redis, "RPUSH " QUEUE " peer:2"));
  (void)enter("c:1", 0, "30000+");
  CHECK_EQUAL(waiters(), 0);
  end_rules();
}

/* Notes that no longer count go with the first grant in each thousand seconds, as those of an exclusive one. */
static void test_stale_notes(void)
{
  begin_rules();
  (void)enter("a:1", 0, "30000+");
  set_note("token", "1700000000000000");
  set_note("suspect:peer:1", "9000000000000 1000");
  set_note("gone:1", "1 0 5000 S0");
  (void)enter("b:1", 0, "30000+");
  CHECK_EQUAL(raw_number(&redis, "HEXISTS " NOTES " suspect:peer:1"), 0);
  CHECK_EQUAL(raw_number(&redis, "HEXISTS " NOTES " gone:1"), 0);
  wait_alone("x:1");
  set_note("suspect:peer:1", "9000000000000 1000");
  CHECK_EQUAL(ask("c:1", 0, "5000 30000+"), 0);
  CHECK_EQUAL(ask_alone("x:1", "0 0"), 0);
  set_note("token", "1700000000000000");
  CHECK_EQUAL(ask("c:1", 0, "5000 30000+"), 1);
  CHECK_EQUAL(raw_number(&redis, "HEXISTS " NOTES " suspect:peer:1"), 0);
  CHECK_EQUAL(raw_number(&redis, "HEXISTS " NOTES " limit"), 1);
  end_rules();
}

/* The first in line, one of Redisson's, looks again when the last lease has ended. */
static void test_score_of_the_first(void)
{
  begin_rules();
  int64_t first = enter("a:1", 0, "30000+");
  listen_as("peer:1");
  line_up_peer("peer:1");
  CHECK_EQUAL(ask("b:1", 0, "0 30000+"), 0);
  CHECK_EQUAL(ask_with("a:1", 0, "-1 100000+", first), 1);
  int64_t score = strtoll(raw_text(&redis, "ZSCORE " SCORES " peer:1"), NULL, 10);
  CHECK(is_rest(score - 300100 - server_now, 100000));
  CHECK(told_nothing(0)); /* it is not woken: the lock is not free */
  end_rules();
}

/* The one that was woken has come, and may wait again. */
static void test_woken(void)
{
  begin_rules();
  (void)enter("a:1", 1, "30000+");
  set_note("woken", "peer:1 9000000000000");
  CHECK_EQUAL(ask("b:1", 1, "0 30000+"), 0);
  CHECK_EQUAL(raw_number(&redis, "HEXISTS " NOTES " woken"), 0);
  end_rules();
}

/* Ending holds of others */

static void test_break(void)
{
  begin_rules();
  int64_t first = enter("a:1", 0, "30000+");
  int64_t second = enter("b:1", 0, "100000+");
  (void)enter("c:1", 0, "30000+");
  wait_alone("x:1");
  CHECK_EQUAL(break_hold("a:1", second), 0);
  CHECK_EQUAL(break_hold("b:1", first), 0);
  CHECK_EQUAL(break_hold("b:1", 0), 1);
  CHECK(!field_of("b:1").there && holds("a:1") && holds("c:1"));
  CHECK_EQUAL(counted(), 2);
  CHECK(is_rest(ttl(), 30000));
  CHECK(raw_reply_within(&listener[0], SOON) && strcmp(listener[0].element[3].text, "0") == 0);
  CHECK_EQUAL(break_hold("*", first), 1);
  CHECK(!field_of("a:1").there && holds("c:1"));
  CHECK_EQUAL(counted(), 1);
  CHECK_EQUAL(ask_with("a:1", 0, "0 0", first), 0);
  CHECK_EQUAL(break_hold("*", 0), 1);
  CHECK(holds("x:1") && !field_of("c:1").there);
  CHECK_EQUAL(raw_number(&redis, "HLEN rules"), 1);
  end_rules();
}

/*
 * When all holds end, and somebody waits, the lock's key stays: while a slot moves, the server stops a
 * script that uses a key which is not there, even if the script has removed it itself.
 */
static void test_break_keeps_the_key(void)
{
  begin_rules();
  (void)enter("a:1", 0, "30000+");
  (void)enter("b:1", 0, "30000+");
  wait_alone("x:1");
  struct raw *removals = &listener[listening++];
  CHECK(raw_open(removals, server.port));
  CHECK(raw_run(&redis, "CONFIG SET notify-keyspace-events Eg"));
  CHECK(raw_run(removals, "SUBSCRIBE __keyevent@0__:del"));
  CHECK_EQUAL(break_hold("*", 0), 1);
  CHECK(holds("x:1") && raw_number(&redis, "HLEN rules") == 1);
  bool queue_removed = false, lock_removed = false;
  while (raw_reply_within(removals, queue_removed ? 0 : SOON)) {
    queue_removed = queue_removed || strcmp(removals->element[3].text, QUEUE) == 0;
    lock_removed = lock_removed || strcmp(removals->element[3].text, "rules") == 0;
  }
  CHECK(queue_removed && !lock_removed);
  CHECK(raw_run(&redis, "CONFIG SET notify-keyspace-events K"));
  end_rules();
}

const struct check_test check_tests[] = {
    {"shared rules: as many as may", test_limit},
    {"shared rules: a waiter at the limit", test_waiter_at_the_limit},
    {"shared rules: requests that have expired", test_expired},
    {"shared rules: another limit", test_other_limit},
    {"shared rules: limits of waiters", test_limits_of_waiters},
    {"shared rules: limits of several who are let in", test_limits_of_several},
    {"shared rules: a limit that is left", test_limit_left},
    {"shared rules: the limit of a claim", test_limit_of_a_claim},
    {"shared rules: limits as they are read", test_limits_read},
    {"shared rules: a weight", test_weight},
    {"shared rules: ends of leases", test_ends},
    {"shared rules: the TTL", test_ttl},
    {"shared rules: a confirmation", test_confirmation},
    {"shared rules: a share that has ended", test_ended},
    {"shared rules: an end that nobody can mean", test_end_of_nobody},
    {"shared rules: the token of an earlier hold", test_earlier_token},
    {"shared rules: tokens rise", test_tokens},
    {"shared rules: a release", test_release},
    {"shared rules: a release that is stopped", test_stopped_release},
    {"shared rules: an acquire that is stopped", test_stopped_acquire},
    {"shared rules: who wants it alone", test_alone},
    {"shared rules: handed over by a script that knows no shares", test_handed_alone},
    {"shared rules: handed over so, and not heard of", test_handed_alone_unheard},
    {"shared rules: one that does not listen", test_silent},
    {"shared rules: the place of who holds", test_place_of_who_holds},
    {"shared rules: one that is dead", test_dead},
    {"shared rules: one that is dead, at the limit", test_dead_at_the_limit},
    {"shared rules: one that is dead, and another limit", test_dead_and_another_limit},
    {"shared rules: one of Redisson's that does not listen", test_suspect},
    {"shared rules: notes that no longer count", test_stale_notes},
    {"shared rules: one of Redisson's that is first in line", test_score_of_the_first},
    {"shared rules: one of Redisson's that was woken", test_woken},
    {"shared rules: broken", test_break},
    {"shared rules: the key stays when all holds are broken", test_break_keeps_the_key},
    {NULL, NULL},
};
