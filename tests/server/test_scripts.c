/*
 * The scripts as embedded: the server must give each the SHA-1 that the library calls it by. That
 * lock/scripts.c is what generate.sh makes of the Lua sources is checked by test_generated.sh.
 */
#include <string.h>

#include "harness.h"
#include "scripts.h"

static void load(const struct fairlock_script *script)
{
  static char text[1 << 14];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text, 0);
  fairlock_unpack(&writer, script);
  const char *sha1 = raw_text(&redis, "SCRIPT LOAD %b", (const void *)text, writer.used);
  CHECK_BYTES(sha1, strlen(sha1), script->sha1, 40);
}

static void test_sha1(void)
{
  begin();
  load(&fairlock_scripts[FAIRLOCK_SCRIPT_ACQUIRE]);
  load(&fairlock_scripts[FAIRLOCK_SCRIPT_RELEASE]);
  load(&fairlock_inspect_script);
}

const struct check_test check_tests[] = {
    {"scripts: the server's SHA-1", test_sha1},
    {NULL, NULL},
};
