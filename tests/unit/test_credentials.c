/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials that change: when the function is asked, what is said with what it gives, and that
 * nothing of what is held, waited for or under way is lost when a server refuses it, or there is
 * none.
 */
#include "follow_fixture.h"
#include "fairlock_credentials.h"

static struct fairlock_credentials credentials;

/* What the function gives, or not, and what it was told last. */
static bool given;
static const char *user, *password;
static uint32_t valid_ms;
static int asked;
static bool for_sentinel, was_refused;

static bool give(struct fairlock_login *login, void *context)
{
  CHECK(context == &asked);
  CHECK(login->user == NULL && login->password == NULL && login->valid_ms == 0);
  asked++;
  for_sentinel = login->sentinel;
  was_refused = login->refused;
  login->user = user;
  login->password = password;
  login->valid_ms = valid_ms;
  return given;
}

static void use_credentials(void)
{
  memset(&credentials, 0x5a, sizeof credentials);
  credentials.function = give;
  credentials.context = &asked;
  fairlock_engine_use_credentials(&engine, &credentials);
}

/* "first" is valid for so long. */
static void give_first(uint32_t ms)
{
  given = true;
  user = NULL;
  password = "first";
  valid_ms = ms;
  asked = 0;
}

static void set_up_asking(uint32_t ms)
{
  set_up();
  give_first(ms);
  use_credentials();
}

static void open_connection(void)
{
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
}

/* After the pause. The greeting is written, if there is one. */
static void open_again(void)
{
  for (int i = 0; i < 10 && fairlock_engine_wants(&engine, now) == 0; i++)
    pass(fairlock_engine_deadline(&engine, now));
  open_connection();
  drain();
}

static void hold_a(uint32_t lease_ms)
{
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, lease_ms, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
}

static void queue_b(void)
{
  CHECK_EQUAL(fairlock_engine_acquire(&b, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("2"), NULL);
  answer(0, -1, 0);
}

/* Time passes, and nothing is sent before. */
static void wait_in_silence(uint32_t ms)
{
  pass(ms - 1);
  CHECK(sends_nothing());
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
  CHECK(fairlock_engine_deadline(&engine, now) <= 1);
  pass(1);
}

static bool sends_auth(const char *name, const char *word)
{
  char text[128];
  struct resp_writer writer;
  resp_writer_init(&writer, (uint8_t *)text, sizeof text - 1, 0);
  resp_write_header(&writer, RESP_ARRAY, 3);
  resp_write_bulk(&writer, "AUTH", 4);
  resp_write_bulk(&writer, name, strlen(name));
  resp_write_bulk(&writer, word, strlen(word));
  text[writer.used] = 0;
  drain();
  return strcmp(output, text) == 0;
}

/* The greeting */

static void test_greeting(void)
{
  set_up_asking(0);
  config.user = "nobody";
  config.password = "never";
  fairlock_engine_connect(&engine, now);
  open_connection();
  CHECK_EQUAL(asked, 0);
  CHECK(sends("*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$5\r\nfirst\r\n"
              "*1\r\n$4\r\nTIME\r\n"));
  CHECK_EQUAL(asked, 1);
  CHECK(!was_refused && !for_sentinel);
  feed("%1\r\n+id\r\n:74\r\n");
  tell_time(0);
  CHECK(fairlock_engine_ready(&engine));
  CHECK_EQUAL(asked, 1);
  /* without a known end there is no AUTH */
  pass(DAY);
  CHECK(sends_nothing());
  /* each connection has a greeting */
  break_connection();
  user = "u";
  password = "second";
  fairlock_engine_connect(&engine, now);
  open_connection();
  CHECK(sends("$4\r\nAUTH\r\n$1\r\nu\r\n$6\r\nsecond\r\n"));
  CHECK_EQUAL(asked, 2);
}

/* NULL: a server that wants no password. */
static void test_greeting_without(void)
{
  set_up_asking(10000);
  password = NULL;
  greet();
  CHECK(strstr(output, "AUTH") == NULL);
  /* nor is there anything for an AUTH */
  wait_in_silence(7500);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE | FAIRLOCK_SEND);
  CHECK(sends_nothing());
  CHECK_EQUAL(asked, 2);
}

/* Each piece of the send buffer is written from the start of the request. */
static void test_in_pieces(void)
{
  set_up();
  config.send_size = FAIRLOCK_SEND_MIN;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  given = true;
  user = "a user with a name that is longer than the buffer";
  password = "a password that is longer than the buffer, too";
  valid_ms = 10000;
  asked = 0;
  use_credentials();
  greet();
  CHECK(strstr(output, password) != NULL);
  CHECK_EQUAL(asked, 1);
  wait_in_silence(7500);
  CHECK(sends_auth(user, password));
  CHECK_EQUAL(asked, 2);
}

/* No credentials: the connection is given up, and who may wait goes on waiting. */
static void test_none(void)
{
  set_up_asking(0);
  given = false;
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  uint32_t began = now;
  while (now - began < 5000) {
    open_again();
    CHECK_EQUAL(output_size, 0);
    close_connection();
    CHECK_EQUAL(b.result, FAIRLOCK_DENIED);
    CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
    CHECK_EQUAL(engine.last_error, FAIRLOCK_DENIED);
    CHECK(strcmp(engine.error, "no credentials at present") == 0);
  }
  CHECK(asked > 5 && asked < 20);
  pass(10000 - (now - began));
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  given = true;
  greet();
}

/* During a rotation, what the function gives and what the server knows differ for a while. */
static void refused_greeting(const char *error)
{
  set_up_asking(0);
  greet();
  hold_a(FAIRLOCK_RENEW);
  queue_b();
  break_connection();
  for (int i = 0; i < 3; i++) {
    open_again();
    CHECK_EQUAL(asked, 2 + i);
    CHECK_EQUAL(was_refused, i > 0);
    feed(error);
    close_connection();
    CHECK_EQUAL(engine.last_error, FAIRLOCK_DENIED);
    CHECK(strstr(error, engine.error) != NULL && engine.error[0] != 0);
    CHECK_EQUAL(b.result, FAIRLOCK_PENDING);
  }
  open_again();
  CHECK(was_refused);
  CHECK_EQUAL(asked, 5);
  feed("%1\r\n+id\r\n:74\r\n");
  tell_time(0);
  CHECK(fairlock_engine_ready(&engine));
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("2"), NULL);
  CHECK(fairlock_engine_remaining_ms(&a, now) > 0);
  break_connection();
  open_again();
  CHECK(!was_refused);
}

static void test_refused_greeting(void)
{
  refused_greeting("-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  refused_greeting("-NOAUTH Authentication required.\r\n");
  refused_greeting("!9\r\nWRONGPASS\r\n");
}

/* ... but not for ever; and what cannot wait fails at once. */
static void test_refused_for_long(void)
{
  set_up_asking(0);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_PENDING);
  uint32_t began = now;
  while (a.result == FAIRLOCK_PENDING && now - began < 60000) {
    if (fairlock_engine_wants(&engine, now) == FAIRLOCK_CONNECT) {
      open_connection();
      drain();
      feed("-WRONGPASS\r\n");
      close_connection();
      CHECK_EQUAL(b.result, FAIRLOCK_DENIED);
    }
    pass(fairlock_engine_deadline(&engine, now));
  }
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  CHECK(now - began >= 10000 && now - began < 10100);
}

/* A right that is missing is no matter of the password, and ends a wait at once. */
static void test_no_right(void)
{
  set_up_asking(0);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  open_connection();
  drain();
  feed("%1\r\n+proto\r\n:3\r\n-NOPERM this user has no permissions to run the 'time' command\r\n");
  close_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  /* and of a function that does not change, the same is true for the password */
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  open_connection();
  drain();
  feed("-WRONGPASS\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
}

/*
 * Certificates change, too, and not all at the same moment: that one is not trusted ends a wait at
 * once only if it has no place in the queue yet.
 */
static void test_untrusted(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_fail(&engine, FAIRLOCK_UNTRUSTED);
  close_connection();
  CHECK_EQUAL(a.result, FAIRLOCK_UNTRUSTED);
  pass(1000);
  greet();
  queue_b();
  break_connection();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  uint32_t began = now;
  while (b.result == FAIRLOCK_PENDING && now - began < 60000) {
    pass(fairlock_engine_deadline(&engine, now));
    if (fairlock_engine_wants(&engine, now) != FAIRLOCK_CONNECT) continue;
    fairlock_engine_opening(&engine, now);
    fairlock_engine_fail(&engine, FAIRLOCK_UNTRUSTED);
    close_connection();
    CHECK_EQUAL(a.result, FAIRLOCK_UNTRUSTED);
  }
  CHECK_EQUAL(b.result, FAIRLOCK_UNTRUSTED);
  CHECK(now - began >= 10000 && now - began < 13000);
}

/* Requests */

/* An answer NOAUTH: the request is sent again, with a new greeting. */
static void test_request_refused(void)
{
  set_up_asking(0);
  greet();
  hold_a(FAIRLOCK_RENEW);
  CHECK_EQUAL(fairlock_engine_acquire(&b, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  feed("-NOAUTH Authentication required.\r\n");
  close_connection();
  CHECK_EQUAL(b.result, FAIRLOCK_PENDING);
  CHECK_EQUAL(engine.last_error, FAIRLOCK_DENIED);
  CHECK(memcmp(engine.error, "NOAUTH", 6) == 0);
  pass(100);
  greet();
  CHECK(was_refused);
  CHECK(sends("SUBSCRIBE\r\n"));
  CHECK(fairlock_engine_remaining_ms(&a, now) > 0);
  /* other errors are what they were */
  feed("-NOPERM no\r\n");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
}

/* Nobody asked: nonsense, whatever it says. */
static void test_refused_out_of_the_blue(void)
{
  set_up_asking(0);
  greet();
  feed("-NOAUTH Authentication required.\r\n");
  close_connection();
  CHECK_EQUAL(engine.last_error, FAIRLOCK_PROTOCOL);
}

/* AUTH */

static void test_auth(void)
{
  set_up_asking(20000);
  user = "u";
  greet();
  hold_a(FAIRLOCK_DURATION_MAX_MS);
  wait_in_silence(15000);
  password = "second";
  valid_ms = 40000;
  CHECK(sends_auth("u", "second"));
  CHECK_EQUAL(asked, 2);
  CHECK(!was_refused && !for_sentinel);
  feed("+OK\r\n");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
  wait_in_silence(30000);
  CHECK(sends_auth("u", "second"));
  /* these have no end: that was the last AUTH */
  valid_ms = 0;
  feed("+OK\r\n");
  wait_in_silence(30000);
  valid_ms = 0;
  CHECK(sends_auth("u", "second"));
  feed("+OK\r\n");
  pass(DAY);
  CHECK(sends_nothing());
  CHECK(fairlock_engine_remaining_ms(&a, now) > 0);
  CHECK_EQUAL(engine.counters.connections, 1);
  CHECK_EQUAL(a.flags & 2, 2); /* still subscribed */
}

/* Between other requests, whose answers stay theirs; and messages come meanwhile. */
static void test_auth_among_requests(void)
{
  set_up_asking(2666); /* due when the heartbeat is */
  greet();
  queue_b();
  pass(1000);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  pass(999);
  CHECK(sends("AUTH\r\n"));
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, 1000, now), FAIRLOCK_IN_PROGRESS);
  pass(1);
  CHECK(sends("EVALSHA")); /* b's heartbeat */
  push("message", CHANNEL("2"), "0");
  answer(0, -1, 0); /* a's */
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  CHECK(credentials.own.handle.unanswered == 1);
  grant(CHANNEL("2"), "78", 0);
  CHECK_EQUAL(b.result, FAIRLOCK_OK);
  CHECK(sends("EVALSHA")); /* the confirmation */
  feed("+OK\r\n");
  CHECK(credentials.own.handle.unanswered == 0);
  answer(1, 78, 0); /* the heartbeat's, which no longer counts */
  answer(1, 78, 0);
  CHECK(fairlock_engine_remaining_ms(&b, now) > 5000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now) & FAIRLOCK_CLOSE, 0);
}

/* Refused: the connection goes on as it was; again after half of what is left, then every 5 s. */
static void test_auth_refused(void)
{
  static const uint32_t waits[] = {7500, 1250, 1000, 1000, 5000, 5000};
  set_up_asking(10000);
  greet();
  for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
    wait_in_silence(waits[i]);
    valid_ms = 3600000; /* of what is refused; does not count */
    CHECK(sends_auth("default", "first"));
    CHECK_EQUAL(was_refused, i > 0);
    feed("-WRONGPASS invalid username-password pair\r\n");
    CHECK(memcmp(engine.error, "WRONGPASS", 9) == 0);
    CHECK_EQUAL(engine.last_error, FAIRLOCK_OK);
  }
  wait_in_silence(5000);
  CHECK(sends_auth("default", "first"));
  feed("-LOADING Redis is loading the dataset in memory\r\n");
  wait_in_silence(5000);
  valid_ms = 4000;
  CHECK(sends_auth("default", "first"));
  CHECK(!was_refused); /* the server was not ready to say */
  feed("!10\r\nOOM no way\r\n");
  wait_in_silence(5000);
  CHECK(sends_auth("default", "first"));
  feed("+OK\r\n");
  wait_in_silence(3000);
  CHECK(sends_auth("default", "first"));
  CHECK_EQUAL(engine.counters.connections, 1);
}

/* None at its time: who is next sends; it is tried again. */
static void test_auth_without(void)
{
  set_up_asking(10000);
  greet();
  pass(7500);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  given = false;
  CHECK(sends("EVALSHA"));
  CHECK_EQUAL(asked, 2);
  CHECK(strstr(output, "AUTH") == NULL);
  answer(0, -1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  wait_in_silence(1250);
  CHECK(sends_nothing());
  CHECK_EQUAL(asked, 3);
  wait_in_silence(1000);
  given = true;
  CHECK(sends_auth("default", "first"));
  CHECK(!was_refused);
  feed("+OK\r\n");
  wait_in_silence(7500);
  CHECK(sends_auth("default", "first"));
}

/* Short and long times. */
static void test_auth_times(void)
{
  set_up_asking(1);
  greet();
  wait_in_silence(500);
  valid_ms = UINT32_MAX;
  CHECK(sends_auth("default", "first"));
  feed("+OK\r\n");
  uint32_t began = now;
  while (asked == 2) {
    uint32_t wait = fairlock_engine_deadline(&engine, now);
    CHECK(wait > 0 && wait <= DAY);
    pass(wait);
    drain();
  }
  CHECK_EQUAL(now - began, FAIRLOCK_DURATION_MAX_MS / 4 * 3);
}

/* Anything but an OK or an error makes no sense, nor does an answer before the end of the question. */
static void test_auth_nonsense(void)
{
  static const char *const nonsense[] = {":1\r\n", "*1\r\n+OK\r\n", "%0\r\n", "$2\r\nOK\r\n",
                                         "_\r\n"};
  for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
    set_up_asking(10000);
    greet();
    pass(7500);
    CHECK(sends_auth("default", "first"));
    feed(nonsense[i]);
    close_connection();
    CHECK_EQUAL(engine.last_error, FAIRLOCK_PROTOCOL);
  }
  /* before it was asked to the end */
  static const char *const early[] = {"+OK\r\n", "*1\r\n:1\r\n"};
  for (size_t i = 0; i < sizeof early / sizeof early[0]; i++) {
    set_up_asking(10000);
    config.send_size = FAIRLOCK_SEND_MIN;
    greet();
    pass(7500);
    size_t size;
    (void)fairlock_engine_output(&engine, &size, now);
    CHECK_EQUAL(size, FAIRLOCK_SEND_MIN);
    feed(early[i]);
    close_connection();
    CHECK_EQUAL(engine.last_error, FAIRLOCK_PROTOCOL);
  }
}

/* An AUTH that is not answered means a dead connection, and no new one is made for it alone. */
static void test_auth_unanswered(void)
{
  set_up_asking(10000);
  greet();
  pass(7500);
  CHECK(sends_auth("default", "first"));
  CHECK_EQUAL(fairlock_engine_deadline(&engine, now), 2000);
  pass(2000);
  close_connection();
  CHECK_EQUAL(engine.last_error, FAIRLOCK_UNREACHABLE);
  pass(60000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0);
  /* nor for one that is due */
  greet();
  pass(7499);
  break_connection();
  pass(60000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0);
  /* a new connection begins anew */
  CHECK_EQUAL(asked, 3);
  greet();
  CHECK_EQUAL(asked, 4);
  wait_in_silence(7500);
  CHECK(sends_auth("default", "first"));
  feed("+OK\r\n");
}

/* While an answer is late, nothing is sent, and the function is not asked. */
static void test_auth_waits(void)
{
  set_up_asking(4000);
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  now += 3000;
  CHECK(sends_nothing());
  CHECK_EQUAL(asked, 1);
}

/* Other credentials take the place of the first ones. */
static void test_replaced(void)
{
  static struct fairlock_credentials first;
  set_up_asking(10000);
  first = credentials;
  fairlock_engine_use_credentials(&engine, &first);
  memset(&credentials, 0, sizeof credentials);
  use_credentials();
  memset(&first, 0x5a, sizeof first);
  greet();
  CHECK_EQUAL(asked, 1);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  drain();
  answer(0, -1, 0);
  pass(7500);
  CHECK(sends_auth("default", "first"));
}

/* With servers that move */

static void follow_service(const char *service, uint32_t replicas)
{
  prepare_seeds(1);
  topology.service = service;
  topology.replicas = replicas;
  topology.sentinel_user = "watcher";
  topology.sentinel_password = "watching";
  follow();
}

/* Without credentials, the topology's and the configuration's are used in turn. */
static void test_constant(void)
{
  set_up();
  config.user = "u";
  config.password = "constant";
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  follow_service("doors", 0);
  for (int i = 0; i < 2; i++) {
    fairlock_engine_connect(&engine, now);
    open_connection();
    CHECK(sends("AUTH\r\n$7\r\nwatcher\r\n$8\r\nwatching\r\n"));
    say_hello("7.0.15", "sentinel", "master");
    feed("*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6380\r\n");
    close_connection();
    open_connection();
    CHECK(sends("AUTH\r\n$1\r\nu\r\n$8\r\nconstant\r\n"));
    break_connection();
    pass(2000);
  }
}

static void sentinel(bool late)
{
  set_up();
  give_first(10000);
  /* in whichever order they are set */
  if (late) use_credentials();
  follow_service("doors", 0);
  if (!late) use_credentials();
  fairlock_engine_connect(&engine, now);
  open_connection();
  CHECK(sends("AUTH\r\n$7\r\ndefault\r\n$5\r\nfirst\r\n"));
  CHECK(for_sentinel);
  feed("-WRONGPASS\r\n");
  close_connection();
  CHECK_EQUAL(engine.last_error, FAIRLOCK_DENIED);
  pass(2000);
  fairlock_engine_connect(&engine, now);
  open_connection();
  drain();
  CHECK(for_sentinel && was_refused);
  say_hello("7.0.15", "sentinel", "master");
  feed("*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6380\r\n");
  close_connection();
  /* what is refused by one says nothing about the other */
  open_connection();
  drain();
  CHECK(!for_sentinel && !was_refused);
  feed("-WRONGPASS\r\n");
  close_connection();
  pass(2000);
  fairlock_engine_connect(&engine, now);
  open_connection();
  drain();
  CHECK(for_sentinel && !was_refused);
  say_hello("7.0.15", "sentinel", "master");
  feed("*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6380\r\n");
  close_connection();
  open_connection();
  drain();
  CHECK(!for_sentinel && was_refused);
  say_hello("7.0.15", "standalone", "master");
  tell_time(0);
  CHECK(fairlock_engine_ready(&engine));
  CHECK_EQUAL(asked, 5);
  wait_in_silence(7500);
  CHECK(sends_auth("default", "first"));
  CHECK(!for_sentinel);
}

static void test_sentinel(void)
{
  sentinel(false);
  sentinel(true);
}

/* A slow Sentinel is not told AUTH. */
static void test_slow_sentinel(void)
{
  set_up_asking(1000);
  follow_service("doors", 0);
  fairlock_engine_connect(&engine, now);
  open_connection();
  drain();
  pass(900);
  CHECK(sends_nothing());
  CHECK_EQUAL(asked, 1);
}

/* The handle that says AUTH is in no slot. */
static void test_moved(void)
{
  set_up_asking(60000);
  follow_service(NULL, 0);
  fairlock_engine_connect(&engine, now);
  open_connection();
  drain();
  say_hello("7.0.15", "cluster", "master");
  tell_time(0);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SSUBSCRIBE\r\n"));
  push("ssubscribe", CHANNEL("1"), NULL);
  feed("-MOVED 8632 10.0.0.3:6379\r\n");
  close_connection();
  CHECK(strcmp(address, "10.0.0.3:6379") == 0);
  open_connection();
  CHECK(sends("HELLO\r\n"));
  CHECK_EQUAL(asked, 2);
  say_hello("7.0.15", "cluster", "master");
  tell_time(0);
  CHECK(sends("SSUBSCRIBE\r\n"));
}

/* Nothing is sent between a script and the answer to its WAIT. */
static void test_replicas(void)
{
  set_up_asking(10000);
  follow_service(NULL, 2);
  fairlock_engine_connect(&engine, now);
  open_connection();
  drain();
  say_hello("7.0.15", "standalone", "master");
  tell_time(0);
  pass(7400);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("WAIT\r\n"));
  pass(100);
  CHECK(sends_nothing());
  answer(1, 77, 0);
  CHECK(sends_nothing());
  feed(":2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(sends_auth("default", "first"));
  feed("+OK\r\n");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
}

const struct check_test check_tests[] = {
    {"credentials: greeting", test_greeting},
    {"credentials: greeting without a password", test_greeting_without},
    {"credentials: in pieces", test_in_pieces},
    {"credentials: none", test_none},
    {"credentials: refused greeting", test_refused_greeting},
    {"credentials: refused for long", test_refused_for_long},
    {"credentials: no right", test_no_right},
    {"credentials: untrusted", test_untrusted},
    {"credentials: request refused", test_request_refused},
    {"credentials: refused out of the blue", test_refused_out_of_the_blue},
    {"credentials: AUTH", test_auth},
    {"credentials: AUTH among requests", test_auth_among_requests},
    {"credentials: AUTH refused", test_auth_refused},
    {"credentials: AUTH without", test_auth_without},
    {"credentials: times of an AUTH", test_auth_times},
    {"credentials: AUTH, answered by nonsense", test_auth_nonsense},
    {"credentials: AUTH unanswered", test_auth_unanswered},
    {"credentials: AUTH waits for an answer", test_auth_waits},
    {"credentials: replaced", test_replaced},
    {"credentials: constant ones", test_constant},
    {"credentials: Sentinel", test_sentinel},
    {"credentials: slow Sentinel", test_slow_sentinel},
    {"credentials: moved", test_moved},
    {"credentials: replicas", test_replicas},
    {0}};
