/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts as the engine sends them after NOSCRIPT: the text that it unpacks has the SHA-1 that
 * it called the script by, which generate.sh took of the text before it was packed.
 */
#include "check.h"
#include "engine.h"
#include "fairlock_operate.h"
#include "texts.h"
#include "sim/sha1.h"

#include <string.h>

static struct fairlock_engine engine;
static struct fairlock handle;
static struct fairlock_target hold = {.token = FAIRLOCK_ANY_TOKEN};
static struct fairlock_config config;
static uint8_t receive_buffer[300], send_buffer[8192];
static char output[8192];
static size_t output_size;

static void feed(const char *text)
{
  size_t size = strlen(text), room;
  uint8_t *to = fairlock_engine_input(&engine, &room);
  if (!CHECK(size <= room)) return;
  memcpy(to, text, size);
  fairlock_engine_received(&engine, size, 0);
}

static void drain(void)
{
  size_t size;
  const uint8_t *data;
  output_size = 0;
  while (data = fairlock_engine_output(&engine, &size, 0), size > 0) {
    if (!CHECK(output_size + size < sizeof output)) return;
    memcpy(output + output_size, data, size);
    output_size += size;
    fairlock_engine_sent(&engine, size);
  }
  output[output_size] = 0;
}

static void set_up(size_t send_size)
{
  memset(&config, 0, sizeof config);
  config.receive_buffer = receive_buffer;
  config.receive_size = sizeof receive_buffer;
  config.send_buffer = send_buffer;
  config.send_size = send_size;
  config.client_id = "client-1";
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &handle, "door", 4), FAIRLOCK_OK);
  fairlock_engine_opening(&engine, 0);
  fairlock_engine_opened(&engine, 0);
  drain();
  feed("%2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:74\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n");
  CHECK(fairlock_engine_ready(&engine));
}

/* The size of the bulk string that comes behind `before` in the output, and where it starts. */
static size_t find_bulk(const char *before, const char **data)
{
  const char *at = strstr(output, before);
  int64_t size = 0;
  if (!CHECK(at != NULL)) return 0;
  at += strlen(before);
  const char *end = strstr(at, "\r\n");
  if (!CHECK(*at == '$' && end != NULL && resp_parse_number(at + 1, (size_t)(end - at) - 1, &size)))
    return 0;
  *data = end + 2;
  return CHECK(size > 0 && size <= output + output_size - *data) ? (size_t)size : 0;
}

/* What was queued is sent, is not known to the server, and is sent again with its text. */
static void check_text(const struct fairlock_script *script)
{
  static const char next[] = "\r\n$1\r\n4\r\n$4\r\ndoor\r\n";
  const char *text;
  char name[41], digest[41];
  drain();
  if (!CHECK_EQUAL(find_bulk("EVALSHA\r\n", &text), 40)) return;
  memcpy(name, text, 40);
  CHECK_BYTES(name, 40, script->sha1, 40);
  feed("-NOSCRIPT No matching script.\r\n");
  drain();
  size_t size = find_bulk("EVAL\r\n", &text);
  if (size == 0) return;
  CHECK_EQUAL(size, script->size);
  sha1_hex(text, size, digest);
  CHECK_BYTES(digest, 40, name, 40);
  CHECK(strncmp(text + size, next, strlen(next)) == 0);
}

static void check_scripts(size_t send_size)
{
  set_up(send_size);
  CHECK_EQUAL(fairlock_engine_acquire(&handle, 0, 1000, 0), FAIRLOCK_PENDING);
  check_text(&fairlock_lock_script);
  set_up(send_size);
  CHECK_EQUAL(fairlock_engine_acquire(&handle, 0, 1000, 0), FAIRLOCK_PENDING);
  drain();
  CHECK_EQUAL(fairlock_engine_cancel(&handle, 0), FAIRLOCK_OK);
  feed("*3\r\n:0\r\n:0\r\n:1700000000000\r\n");
  check_text(&fairlock_lock_script);
  set_up(send_size);
  CHECK_EQUAL(fairlock_engine_force(&handle, &hold, 0), FAIRLOCK_PENDING);
  check_text(&fairlock_break_script);
  set_up(send_size);
  CHECK_EQUAL(fairlock_engine_inspect(&handle, NULL, NULL, 0), FAIRLOCK_PENDING);
  check_text(&fairlock_inspect_script);
}

static void test_text(void)
{
  check_scripts(sizeof send_buffer);
}

/* For each piece that is sent, the text is unpacked again. */
static void test_text_in_pieces(void)
{
  for (size_t size = FAIRLOCK_SEND_MIN; size < 300; size += 7)
    check_scripts(size);
}

/*
 * A pair is made of what came before it, so that unpacking ends; and its stack, counted once more,
 * is large enough.
 */
static void test_pairs(void)
{
  uint8_t waits[256] = {0};
  bool made[256] = {0};
  unsigned most = 0;
  for (unsigned byte = 0; byte < 128; byte++)
    made[byte] = byte == '\n' || byte == ' ' || (byte > '"' && byte <= '~');
  for (unsigned i = 0; i < FAIRLOCK_PAIRS; i++) {
    const PORT_FLASH uint8_t *pair = fairlock_script_pairs[i];
    unsigned code = (FAIRLOCK_FIRST_CODE + i) % 256;
    if (code == 0 || code == '\n' || code == ' ') continue;
    if (!CHECK(made[pair[0]] && made[pair[1]])) return;
    made[code] = true;
    waits[code] = (uint8_t)(waits[pair[0]] + 1);
    if (waits[pair[1]] > waits[code]) waits[code] = waits[pair[1]];
    if (waits[code] > most) most = waits[code];
  }
  CHECK(most > 1 && most <= FAIRLOCK_UNPACK_DEPTH);
}

const struct check_test check_tests[] = {
    {"unpack: the text sent has its SHA-1", test_text},
    {"unpack: the same in pieces of any size", test_text_in_pieces},
    {"unpack: unpacking ends, and its stack is bounded", test_pairs},
    {NULL, NULL},
};
