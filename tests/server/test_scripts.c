/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts as embedded: the server must give each the SHA-1 that the library calls it by. That
 * lock/scripts.c is what generate.sh makes of the Lua sources is checked by test_generated.sh.
 */
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "texts.h"

static void load(const struct fairlock_script *script)
{
  static char text[1 << 14];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text, 0);
  fairlock_script_unpack(&writer, script);
  const char *sha1 = raw_text(&redis, "SCRIPT LOAD %b", (const void *)text, writer.used);
  CHECK_BYTES(sha1, strlen(sha1), script->sha1, 40);
}

static void test_sha1(void)
{
  begin();
  load(&fairlock_lock_script);
  load(&fairlock_break_script);
  load(&fairlock_inspect_script);
}

/*
 * An argument without the words of a request: an error, and nothing is written. That the numbers are
 * as Redis takes them is the client's part: tests/fuzz/witness.c looks at each that it sends.
 */
static void test_malformed(void)
{
  static const char *const arguments[] = {
      "",
      "id",
      "id 9000000000000",
      "id 9000000000000 0",
      "id abc 0 30000",
      "id 9000000000000 abc 30000",
      "id 9000000000000 -abc 30000",
      "id 9000000000000 - 30000",
      "id 9000000000000 0 abc",
      "id 9000000000000 0 -1",
      "id 9000000000000 0 30000 abc",
      "id 9000000000000 0 30000 1 1",
      "id 9000000000000 0 30000++",
      "id 9000000000000 0 +",
      "id 9000000000000 0 30000+ abc",
  };
  begin();
  load(&fairlock_lock_script);
  load(&fairlock_break_script);
  const struct fairlock_script *scripts[] = {&fairlock_lock_script, &fairlock_break_script};
  for (size_t i = 0; i < 2 * (sizeof arguments / sizeof arguments[0]); i++) {
    const char *argument = arguments[i / 2];
    if (!CHECK(!raw_run(&redis, "EVALSHA %s 4 x queue scores notes %s", scripts[i % 2]->sha1,
                        argument)))
      printf("# \"%s\"\n", argument);
    CHECK_EQUAL(raw_number(&redis, "DBSIZE"), 0);
  }
}

/*
 * Redisson 3 looks again when its score says that the lease has ended, and never again if it has
 * not. Some servers count a lease from when PEXPIRE runs, later than TIME said.
 */
static void test_first_in_line_looks_late(void)
{
  static const char margin[] =
      "local t = redis.call('time') "
      "return redis.call('zscore', KEYS[2], 'peer') - 300000 "
      "- redis.call('pttl', KEYS[1]) - t[1] * 1000 - math.floor(t[2] / 1000)";
  begin();
  load(&fairlock_lock_script);
  const char *sha1 = fairlock_lock_script.sha1;
  CHECK(raw_run(&redis, "EVALSHA %s 4 x queue scores notes %s", sha1, "id 9000000000000 0 30000"));
  char token[32], renewal[64];
  (void)snprintf(token, sizeof token, "%s", raw_text(&redis, "HGET notes token"));
  CHECK_EQUAL(raw_number(&redis, "RPUSH queue peer"), 1);
  CHECK_EQUAL(raw_number(&redis, "ZADD scores 1 peer"), 1);
  (void)snprintf(renewal, sizeof renewal, "id 9000000000000 -1 30000 %s", token);
  int good = 0;
  for (int i = 0; i < 11; i++) { /* a server that a busy machine interrupts in a script is off */
    CHECK(raw_run(&redis, "EVALSHA %s 4 x queue scores notes %s", sha1, renewal));
    int64_t late = raw_number(&redis, "EVAL %s 2 x scores", margin);
    if (late > 50 && late < 150) good++;
    else printf("# %d ms late\n", (int)late);
  }
  CHECK(good > 5);
}

const struct check_test check_tests[] = {
    {"scripts: the server's SHA-1", test_sha1},
    {"scripts: a malformed request", test_malformed},
    {"scripts: the first in line looks again late enough", test_first_in_line_looks_late},
    {NULL, NULL},
};
