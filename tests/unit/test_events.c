/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: what it tells of connections, that it tells each thing once, and that the engine does the
 * same with it as without it, alone or with servers that move.
 */
#include "follow_fixture.h"
#include "fairlock_log.h"

static struct fairlock_log journal;
static char told[512]; /* a line for each event */

static void note(enum fairlock_log_event event, int status, const char *text, void *context)
{
  static const char *const names[] = {
      [FAIRLOCK_LOG_CONNECTED] = "connected",
      [FAIRLOCK_LOG_NOT_CONNECTED] = "not connected",
      [FAIRLOCK_LOG_DISCONNECTED] = "disconnected",
      [FAIRLOCK_LOG_REDIRECTED] = "redirected",
      [FAIRLOCK_LOG_REFUSED] = "refused",
      [FAIRLOCK_LOG_ASKED] = "asked",
      [FAIRLOCK_LOG_BROKEN] = "broken",
  };
  const char *const words[] = {names[event],
                               " ",
                               fairlock_status_name(status),
                               text != NULL ? " " : "",
                               text != NULL ? text : "",
                               "\n"};
  CHECK(context == told);
  size_t size = strlen(told);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t length = strlen(words[i]);
    CHECK(size + length < sizeof told);
    memcpy(told + size, words[i], length + 1);
    size += length;
  }
}

/* This has been told, and nothing else, since the last time. */
static bool tells(const char *lines)
{
  bool same = strcmp(told, lines) == 0;
  if (!same) check_write(told);
  told[0] = 0;
  return same;
}

static void set_log(void)
{
  told[0] = 0;
  journal.function = note;
  journal.context = told;
  fairlock_engine_set_log(&engine, &journal);
}

/* Counts in its context. */
static void count_event(enum fairlock_log_event event, int status, const char *text, void *context)
{
  (void)event;
  (void)status;
  (void)text;
  ++*(char *)context;
}

static void set_up_logged(void)
{
  set_up();
  set_log();
}

static void try_a(void)
{
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
}

static void test_connections(void)
{
  set_up_logged();
  greet();
  CHECK(tells("connected OK\n"));
  break_connection();
  CHECK(tells("disconnected UNREACHABLE the server cannot be reached\n"));
  fairlock_engine_opening(&engine, now);
  break_connection();
  CHECK(tells("not connected UNREACHABLE the server cannot be reached\n"));
  greet();
  CHECK(tells("connected OK\n"));
  fairlock_engine_fail(&engine, FAIRLOCK_UNTRUSTED);
  close_connection();
  CHECK(tells("disconnected UNTRUSTED the server's certificate is not trusted, or ours is not\n"));
}

/* A second call changes nothing, or puts another log in the place of the first. */
static void test_kept_twice(void)
{
  static struct fairlock_log other;
  static char others;
  set_up_logged();
  set_log();
  greet();
  CHECK(tells("connected OK\n"));
  other.function = count_event;
  other.context = &others;
  fairlock_engine_set_log(&engine, &other);
  break_connection();
  CHECK_EQUAL(others, 1);
  greet();
  CHECK_EQUAL(others, 2);
  set_log();
  break_connection();
  CHECK(tells("disconnected UNREACHABLE the server cannot be reached\n"));
  CHECK_EQUAL(others, 2);
}

static void test_dead_connection(void)
{
  set_up_logged();
  greet();
  try_a();
  CHECK(tells("connected OK\n"));
  pass(2000);
  CHECK(tells(""));
  close_connection();
  CHECK(tells("disconnected UNREACHABLE the server cannot be reached\n"));
}

static void test_nonsense(void)
{
  static const char *const nonsense[] = {"x\r\n", ":1\r\n", "*1\r\n-ERR inside\r\n"};
  for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
    set_up_logged();
    greet();
    try_a();
    CHECK(tells("connected OK\n"));
    feed(nonsense[i]);
    close_connection();
    CHECK(tells("disconnected PROTOCOL the server sent an answer that is not valid\n"));
  }
}

static void test_refused_greeting(void)
{
  set_up_logged();
  fairlock_engine_connect(&engine, now);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  drain();
  feed("-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  CHECK(tells("refused REFUSED WRONGPASS invalid username-password pair or user is disabled.\n"));
  close_connection();
  CHECK(tells("not connected DENIED the server refuses this user\n"));
}

static void test_refused_requests(void)
{
  set_up_logged();
  greet();
  try_a();
  CHECK(tells("connected OK\n"));
  feed("-NOSCRIPT No matching script. Please use EVAL.\r\n");
  CHECK(sends("EVAL\r\n"));
  CHECK(tells(""));
  feed("-NOPERM this user has no permissions to run the 'eval' command or its keys, indeed\r\n");
  CHECK(tells("refused REFUSED NOPERM this user has no permissions to run the 'eval' command o\n"));
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  try_a();
  feed("!10\r\nOOM no way\r\n");
  CHECK(tells("refused REFUSED OOM no way\n"));
  CHECK_EQUAL(a.result, FAIRLOCK_OOM);
  try_a();
  /* what Redis 6.2 puts before the reason is left out */
  feed("-ERR Error running script (call to f_1): @user_script:3: @user_script: 3: -NOPERM no\r\n");
  CHECK(tells("refused REFUSED NOPERM no\n"));
  CHECK_EQUAL(a.result, FAIRLOCK_DENIED);
  /* read-only: that ends the connection, too */
  try_a();
  feed("-READONLY You can't write against a read only replica.\r\n");
  close_connection();
  CHECK(tells("refused REFUSED READONLY You can't write against a read only replica.\n"
              "disconnected READONLY the server is a read-only replica\n"));
}

/* A payload that does not fit the receive buffer has no words that could be told. */
static void test_refused_at_length(void)
{
  char text[400];
  set_up_logged();
  greet();
  try_a();
  CHECK(tells("connected OK\n"));
  memset(text, 'x', sizeof text);
  memcpy(text, "!380\r\n", 6);
  memcpy(text + 6 + 380, "\r\n", 3);
  feed(text);
  CHECK(tells(""));
  CHECK(sends(" 0 0\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_REFUSED);
}

/* A wait, a handover, a renewal and a loss, which is told by `lost` alone. */
static void test_hold(void)
{
  set_up_logged();
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("1"), NULL);
  answer(0, -1, 0);
  grant(CHANNEL("1"), "78", 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(sends("EVALSHA"));
  answer(1, 78, 0);
  pass(10000);
  CHECK(sends("EVALSHA"));
  answer(1, 78, 0);
  CHECK_EQUAL(engine.counters.renewals, 1);
  pass(10000);
  CHECK(sends("EVALSHA"));
  answer(0, -1, 0);
  CHECK_EQUAL(losses, 1);
  CHECK(tells("connected OK\n"));
}

/* A message whose text is an array. */
static void push_nested(const char *channel, const char *text)
{
  uint8_t bytes[256];
  struct resp_writer writer;
  resp_writer_init(&writer, bytes, sizeof bytes - 1, 0);
  resp_write_header(&writer, RESP_PUSH, 3);
  resp_write_bulk(&writer, "message", 7);
  resp_write_bulk(&writer, channel, strlen(channel));
  resp_write_header(&writer, RESP_ARRAY, 1);
  resp_write_bulk(&writer, text, strlen(text));
  bytes[writer.used] = 0;
  feed((char *)bytes);
}

/* A holder is asked by the token of its hold, whether or not it wants to be told. */
static void test_asked(void)
{
  set_up_logged();
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  drain();
  push("subscribe", CHANNEL("1"), NULL);
  push("message", CHANNEL("1"), "77"); /* it does not hold yet */
  answer(1, 77, 0);
  CHECK(tells("connected OK\n"));
  push("message", CHANNEL("1"), "77");
  CHECK(tells("asked OK 77\n"));
  push("message", CHANNEL("1"), "77 anna@ops-1 stuck 2 h");
  CHECK(tells("asked OK 77 anna@ops-1 stuck 2 h\n"));
  push("message", CHANNEL("1"), "77 \"anna\"");
  CHECK(tells("asked OK 77 \"anna\"\n"));
  push("message", CHANNEL("1"), "0");
  CHECK(tells("broken OK 0\n"));
  push("message", CHANNEL("1"), "0 anna@ops-1 stuck 2 h");
  CHECK(tells("broken OK 0 anna@ops-1 stuck 2 h\n"));
  push("message", CHANNEL("1"), "0 1 5000");
  push("message", CHANNEL("1"), "");
  push("message", CHANNEL("1"), "76");
  push("message", CHANNEL("1"), "77 1 5000");
  push("message", CHANNEL("1"), "x");
  push("message", CHANNEL("2"), "77");
  push("other", CHANNEL("1"), "77");
  push_nested(CHANNEL("1"), "77");
  CHECK(tells(""));
}

/* With servers that move */

static void set_up_following(const char *service, uint32_t replicas)
{
  set_up_seeds(1);
  topology.service = service;
  topology.replicas = replicas;
  follow();
  set_log();
  fairlock_engine_connect(&engine, now);
}

static void meet(const char *mode)
{
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  CHECK(sends("HELLO\r\n"));
  say_hello("7.0.15", mode, "master");
}

static void test_sentinel(void)
{
  set_up_following("doors", 0);
  meet("sentinel");
  CHECK(strstr(output, "GET-MASTER-ADDR-BY-NAME") != NULL);
  feed("*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6380\r\n");
  CHECK(tells(""));
  close_connection();
  CHECK(tells("redirected OK 10.0.0.2:6380\n"));
  CHECK(strcmp(place, "10.0.0.2:6380") == 0);
  meet("standalone");
  tell_time(0);
  CHECK(tells("connected OK\n"));
  /* and asked again after a break */
  break_connection();
  CHECK(tells("disconnected UNREACHABLE the server cannot be reached\n"));
  CHECK_EQUAL(seed, 1);
}

static void test_cluster(void)
{
  set_up_following(NULL, 0);
  meet("cluster");
  tell_time(0);
  CHECK(engine.sharded);
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  CHECK(sends("SSUBSCRIBE\r\n"));
  push("ssubscribe", CHANNEL("1"), NULL);
  CHECK(tells("connected OK\n"));
  CHECK_EQUAL(fairlock_slot("door", 4), 8632);
  feed("-MOVED 8632 10.0.0.3:6379\r\n");
  close_connection();
  CHECK(tells("redirected OK 10.0.0.3:6379\n"));
  meet("cluster");
  tell_time(0);
  CHECK(sends("SSUBSCRIBE\r\n"));
  push("ssubscribe", CHANNEL("1"), NULL);
  answer(0, -1, 0);
  push("smessage", CHANNEL("1"), "0");
  CHECK(sends("EVALSHA"));
  /* a slot that no lock in use is in: not followed */
  feed("-MOVED 1 10.0.0.4:6379\r\n");
  CHECK(tells("connected OK\nrefused REFUSED MOVED 1 10.0.0.4:6379\n"));
}

static void test_replicas(void)
{
  set_up_following(NULL, 2);
  meet("standalone");
  tell_time(0);
  try_a();
  CHECK(strstr(output, "WAIT\r\n") != NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  feed(":2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK(tells("connected OK\n"));
}

const struct check_test check_tests[] = {{"events: connections", test_connections},
                                         {"events: kept twice", test_kept_twice},
                                         {"events: dead connection", test_dead_connection},
                                         {"events: nonsense", test_nonsense},
                                         {"events: refused greeting", test_refused_greeting},
                                         {"events: refused requests", test_refused_requests},
                                         {"events: refused at length", test_refused_at_length},
                                         {"events: hold", test_hold},
                                         {"events: asked", test_asked},
                                         {"events: Sentinel", test_sentinel},
                                         {"events: cluster", test_cluster},
                                         {"events: replicas", test_replicas},
                                         {0}};
