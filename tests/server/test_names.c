/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and ids of every kind, and the smallest buffers: each name passes acquire, wait, handover,
 * re-entry, release and inspection, and what is in Redis is where Redisson looks for it. What does
 * not fit is refused at init.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "support/counters.h"

/* A lock's keys as Redisson names them, worked out here without the library. */
struct keys {
  char text[3][700]; /* queue, timeout, ours */
  char channel[800]; /* of a waiter, without its id */
  size_t size[3], channel_size;
};

static size_t join(char *to, const char *prefix, const void *name, size_t size)
{
  size_t used = strlen(prefix);
  bool braces = memchr(name, '{', size) == NULL;
  memcpy(to, prefix, used);
  if (braces) to[used++] = '{';
  memcpy(to + used, name, size);
  used += size;
  if (braces) to[used++] = '}';
  return used;
}

static struct keys keys_of(const void *name, size_t size)
{
  struct keys keys;
  keys.size[0] = join(keys.text[0], "redisson_lock_queue:", name, size);
  keys.size[1] = join(keys.text[1], "redisson_lock_timeout:", name, size);
  keys.size[2] = join(keys.text[2], "fairlock:", name, size);
  keys.channel_size = join(keys.channel, "redisson_lock__channel:", name, size);
  keys.channel[keys.channel_size++] = ':';
  return keys;
}

static int64_t exists(const char *key, size_t size)
{
  return raw_number(&redis, "EXISTS %b", key, size);
}

/* Two clients with exactly the buffers the name needs; send buffers as small as they may be. */
static void use_name(const void *name, size_t size, const char *client_id)
{
  static struct client one, two;
  struct fairlock first, second;
  struct picture picture;
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  char next[FAIRLOCK_HOLDER_ID_SIZE];
  size_t room = FAIRLOCK_RECEIVE_SIZE(size, client_id != NULL ? strlen(client_id) : 0);
  struct keys keys = keys_of(name, size);
  client_prepare(&one, server.port);
  client_prepare(&two, server.port);
  one.config.client_id = client_id;
  one.config.receive_size = room;
  two.config.receive_size = FAIRLOCK_RECEIVE_SIZE(size, 0);
  one.config.send_size = FAIRLOCK_SEND_MIN;
  two.config.send_size = FAIRLOCK_SEND_MIN + 1;
  client_start(&one);
  client_start(&two);
  CHECK_EQUAL(fairlock_init_bytes(&first, &one.client, name, size), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_bytes(&second, &two.client, name, size), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&one.client), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&two.client), FAIRLOCK_OK);
  fairlock_id(&first, id, FAIRLOCK_HOLDER_ID_SIZE);
  fairlock_id(&second, next, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK_EQUAL(fairlock_try_acquire(&second, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&first, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(exists(keys.text[0], keys.size[0]) != 0, fairlock_poll(&one.client, 10));
  CHECK_EQUAL(raw_number(&redis, "LLEN %b", keys.text[0], keys.size[0]), 1);
  CHECK(raw_number(&redis, "ZSCORE %b %s", keys.text[1], keys.size[1], id) > 0);
  CHECK_EQUAL(raw_number(&redis, "HEXISTS %b %s", keys.text[2], keys.size[2], id), 1);
  CHECK_EQUAL(raw_number(&redis, "HGET %b %s", name, size, next), 1);
  CHECK(raw_run(&redis, "PUBSUB NUMSUB %b%s", keys.channel, keys.channel_size, id));
  CHECK_EQUAL(redis.element[2].integer, 1);
  memset(&picture, 0, sizeof picture);
  CHECK_EQUAL(fairlock_inspect(&two.client, name, size, picture_report, &picture), FAIRLOCK_OK);
  CHECK(picture.held && picture.waiters == 1 && picture.listening == 1);
  CHECK(strcmp(picture.holder, next) == 0 && strcmp(picture.waiter[0], id) == 0);
  CHECK_EQUAL(fairlock_release(&second), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&one, &first), FAIRLOCK_OK);
  CHECK_EQUAL(counters_of(&one.client).granted, 1);
  CHECK_EQUAL(fairlock_acquire(&first, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(&redis, "HGET %b %s", name, size, id), 2);
  CHECK_EQUAL(fairlock_release(&first), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&first), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&second, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_force_release(&one.client, name, size, FAIRLOCK_ANY_TOKEN), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&second), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_deinit(&first), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&second), FAIRLOCK_OK);
  client_close(&one);
  client_close(&two);
  CHECK_EQUAL(exists(name, size), 0);
  CHECK_EQUAL(exists(keys.text[0], keys.size[0]), 0);
  CHECK_EQUAL(exists(keys.text[1], keys.size[1]), 0);
  CHECK_EQUAL(raw_number(&redis, "PUBSUB CHANNELS *"), 0);
  CHECK_EQUAL(raw_number(&redis, "KEYS *"), 1); /* ours, with the token */
  CHECK(raw_run(&redis, "FLUSHALL"));
}

#define NAME(text)                                                                                 \
  {                                                                                                \
    text, sizeof text - 1                                                                          \
  }

static void test_names(void)
{
  static const struct {
    const char *text;
    size_t size;
  } names[] = {
      NAME("x"),
      NAME("door:7"),
      NAME("{tag}:door"),
      NAME("door:{tag}"),
      NAME("{"),
      NAME("}"),
      NAME("{}{}"),
      NAME("a{b"),
      NAME("a}b{c}d"),
      NAME("with blanks and  more "),
      NAME("\0"),
      NAME("a\0b\0"),
      NAME("\r\n$3\r\n*1\r\n"),
      NAME("T\xc3\xbcr \xe9\x96\x80 \xf0\x9f\x9a\xaa"),
      NAME("\xff\xfe\x80"),
      NAME("0"),
      NAME("-1"),
      NAME("%s%n%d"),
      NAME("glob*[a-z]?\\"),
      NAME("'; return redis.call('flushall') --"),
  };
  begin();
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    use_name(names[i].text, names[i].size, NULL);
}

static void test_long_names(void)
{
  static char name[600];
  begin();
  for (size_t i = 0; i < sizeof name; i++)
    name[i] = (char)(i * 37);
  static const size_t sizes[] = {1, 2, 31, 32, 33, 63, 64, 127, 128, 255, 256, 511, 512};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    use_name(name, sizes[i], NULL);
}

/* The longest there is; three keys and the channel carry it. */
static void test_longest_name(void)
{
  static struct client one;
  static char name[FAIRLOCK_NAME_MAX + 1];
  static uint8_t buffer[FAIRLOCK_RECEIVE_SIZE(FAIRLOCK_NAME_MAX, 0)];
  struct fairlock first, second;
  begin();
  memset(name, 'n', sizeof name);
  client_prepare(&one, server.port);
  one.config.receive_buffer = buffer;
  one.config.receive_size = sizeof buffer;
  client_start(&one);
  CHECK_EQUAL(fairlock_init_bytes(&first, &one.client, name, sizeof name), FAIRLOCK_TOO_LONG);
  CHECK_EQUAL(fairlock_init_bytes(&first, &one.client, name, FAIRLOCK_NAME_MAX), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_bytes(&second, &one.client, name, FAIRLOCK_NAME_MAX), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&first, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  int64_t before = scripts_run(&redis);
  CHECK_EQUAL(fairlock_start_acquire(&second, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(scripts_run(&redis) > before, service_for(&one, 5));
  CHECK_EQUAL(fairlock_release(&first), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&one, &second), FAIRLOCK_OK);
  CHECK_EQUAL(counters_of(&one.client).granted, 1);
  CHECK_EQUAL(fairlock_release(&second), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&first), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&second), FAIRLOCK_OK);
  client_close(&one);
}

/*
 * "{x}" would have the queue of "x", and another hash, so both could be held at once: no call takes
 * it, and nothing is sent.
 */
static void test_wholly_in_braces(void)
{
  static struct client one;
  struct fairlock handle;
  begin();
  client_prepare(&one, server.port);
  client_start(&one);
  CHECK_EQUAL(fairlock_init(&handle, &one.client, "{x}"), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_init_bytes(&handle, &one.client, "{\0}", 3), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_force_release(&one.client, "{x}", 3, FAIRLOCK_ANY_TOKEN), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_ask_release(&one.client, "{x}", 3, FAIRLOCK_ANY_TOKEN), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_inspect(&one.client, "{x}", 3, picture_report, NULL), FAIRLOCK_INVALID);
  CHECK_EQUAL(counters_of(&one.client).connections, 0);
  client_close(&one);
}

/* One byte more than the receive buffer has room for is refused at init, and nothing is sent. */
static void test_too_long(void)
{
  static struct client one;
  static char name[200];
  struct fairlock handle;
  begin();
  memset(name, 'x', sizeof name);
  client_prepare(&one, server.port);
  one.config.receive_size = FAIRLOCK_RECEIVE_SIZE(100, 0);
  client_start(&one);
  CHECK_EQUAL(fairlock_init_bytes(&handle, &one.client, name, 101), FAIRLOCK_TOO_LONG);
  CHECK_EQUAL(fairlock_force_release(&one.client, name, 101, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_TOO_LONG);
  CHECK_EQUAL(fairlock_inspect(&one.client, name, 101, picture_report, NULL), FAIRLOCK_TOO_LONG);
  CHECK_EQUAL(counters_of(&one.client).connections, 0);
  CHECK_EQUAL(fairlock_init_bytes(&handle, &one.client, name, 100), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&one);
}

static int init_with(const char *id, size_t receive_size, size_t send_size)
{
  static struct client one;
  client_prepare(&one, server.port);
  one.config.client_id = id;
  one.config.receive_size = receive_size;
  one.config.send_size = send_size;
  int status = fairlock_client_init(&one.client, &one.config, &one.socket.transport);
  if (status == FAIRLOCK_OK) client_close(&one);
  return status;
}

static void test_buffers(void)
{
  begin();
  CHECK_EQUAL(init_with(NULL, FAIRLOCK_RECEIVE_SIZE(1, 0), FAIRLOCK_SEND_MIN), FAIRLOCK_OK);
  CHECK_EQUAL(init_with(NULL, FAIRLOCK_RECEIVE_SIZE(0, 0), FAIRLOCK_SEND_MIN), FAIRLOCK_TOO_LONG);
  CHECK_EQUAL(init_with(NULL, FAIRLOCK_RECEIVE_SIZE(1, 0), FAIRLOCK_SEND_MIN - 1),
              FAIRLOCK_TOO_LONG);
  CHECK_EQUAL(init_with("abc", FAIRLOCK_RECEIVE_SIZE(1, 3), FAIRLOCK_SEND_MIN), FAIRLOCK_OK);
  CHECK_EQUAL(init_with("abc", FAIRLOCK_RECEIVE_SIZE(1, 2), FAIRLOCK_SEND_MIN), FAIRLOCK_TOO_LONG);
  CHECK_EQUAL(init_with("abc", 0, 0), FAIRLOCK_TOO_LONG);
}

static void test_client_ids(void)
{
  static const char *const good[] = {"a",
                                     "0",
                                     "door-controller-7",
                                     "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
                                     "~!{}*?[]",
                                     "0123456789012345678901234567890123456789"};
  static const char *const bad[] = {"",      "a:b",    ":",    "a b",      " ",
                                    "tab\t", "line\n", "\x7f", "\xc3\xbc", "\x01"};
  begin();
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    use_name("ids", 3, good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    CHECK_EQUAL(init_with(bad[i], 512, 512), FAIRLOCK_INVALID);
  CHECK_EQUAL(init_with("01234567890123456789012345678901234567890", 512, 512), FAIRLOCK_TOO_LONG);
}

/*
 * What the ids of a client begin with: "", or its client_id and a dot; then two numbers of base 32
 * with a dot between.
 */
static void check_id(const char *id, const char *beginning)
{
  static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
  CHECK(strncmp(id, beginning, strlen(beginning)) == 0);
  const char *at = id + strlen(beginning);
  for (int number = 0; number < 2; number++) {
    size_t size = strspn(at, digits);
    CHECK(size >= 1 && size <= 12);
    at += size;
    CHECK_EQUAL(*at, number == 0 ? '.' : ':');
    if (*at != 0) at++;
  }
  CHECK(strcmp(at, "1") == 0);
}

/*
 * Each client makes an id of its own from what the server tells it when it first connects, and
 * keeps it. What it says before that is nobody's id.
 */
static void make_ids(const char *client_id, const char *beginning)
{
  static struct client some[8];
  static struct fairlock handle[8];
  static char id[8][FAIRLOCK_HOLDER_ID_SIZE];
  char again[FAIRLOCK_HOLDER_ID_SIZE];
  begin();
  for (int i = 0; i < 8; i++) {
    client_prepare(&some[i], server.port);
    some[i].config.client_id = client_id;
    client_start(&some[i]);
    CHECK_EQUAL(fairlock_init(&handle[i], &some[i].client, "ids"), FAIRLOCK_OK);
    fairlock_id(&handle[i], id[i], FAIRLOCK_HOLDER_ID_SIZE);
    CHECK(strcmp(id[i], "") == 0);
    CHECK_EQUAL(fairlock_connect(&some[i].client), FAIRLOCK_OK);
    fairlock_id(&handle[i], id[i], FAIRLOCK_HOLDER_ID_SIZE);
    check_id(id[i], beginning);
    for (int before = 0; before < i; before++)
      CHECK(strcmp(id[i], id[before]) != 0);
  }
  CHECK(raw_run(&redis, "CLIENT KILL TYPE normal SKIPME yes"));
  for (int i = 0; i < 8; i++) {
    service_until_broken(&some[i], 1); /* so nothing is in doubt */
    CHECK_EQUAL(fairlock_acquire(&handle[i], 5000, FAIRLOCK_RENEW), FAIRLOCK_OK);
    fairlock_id(&handle[i], again, FAIRLOCK_HOLDER_ID_SIZE);
    CHECK(strcmp(again, id[i]) == 0);
    CHECK_EQUAL(hold_count_of(&redis, "ids", id[i]), 1);
    CHECK_EQUAL(counters_of(&some[i].client).connections, 2);
    CHECK_EQUAL(fairlock_release(&handle[i]), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_deinit(&handle[i]), FAIRLOCK_OK);
    client_close(&some[i]);
  }
}

static void test_own_ids(void)
{
  make_ids(NULL, "");
}

/* The client_id is only for people to read; clients that share one do not share a hold. */
static void test_shared_client_id(void)
{
  make_ids("door", "door.");
}

const struct check_test check_tests[] = {
    {"names: of all kinds", test_names},
    {"names: from 1 to 512 bytes", test_long_names},
    {"names: the longest", test_longest_name},
    {"names: wholly in braces", test_wholly_in_braces},
    {"names: too long for the buffer", test_too_long},
    {"names: the smallest buffers", test_buffers},
    {"names: client ids", test_client_ids},
    {"names: ids made at the first connection", test_own_ids},
    {"names: ids of clients with one client_id", test_shared_client_id},
    {NULL, NULL},
};
