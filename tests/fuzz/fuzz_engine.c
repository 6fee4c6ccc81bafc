/*
 * The engine against a hostile server: the input is a list of steps, each of which is an operation of the caller's, a
 * passing of time, a change of the connection, or bytes from the server: raw ones, or well-formed answers and
 * messages with numbers of the fuzzer's, so that it gets far.
 *
 * Checked after each step: what the engine sends is bounded by what was asked of it; a handle believes in a hold only
 * with a token, and for no longer than the longest lease; an operation that is over stays over; the deadline is
 * in range. Everything else is the sanitizers' affair.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
  do { \
    if (!(condition)) abort(); \
  } while (0)

enum { HANDLES = 3, LEASE = 1000 };

static const uint8_t *input;
static size_t input_left;

static unsigned next(void)
{
  if (input_left == 0) return 0;
  input_left--;
  return *input++;
}

static int64_t next_number(void)
{
  static const int64_t odd[] = {-2, -1, 0, 1, 2, 99, INT64_MAX, INT64_MIN, 1700000000000, 9007199254740993};
  unsigned choice = next();
  return choice < sizeof odd / sizeof odd[0] ? odd[choice] : (int64_t)(choice - 10);
}

static void feed(struct fairlock_engine *engine, const uint8_t *data, size_t size, uint32_t now)
{
  while (size > 0 && fairlock_engine_wants(engine, now) & FAIRLOCK_RECEIVE) {
    size_t room;
    uint8_t *to = fairlock_engine_input(engine, &room);
    CHECK(room > 0);
    size_t step = size < room ? size : room;
    memcpy(to, data, step);
    fairlock_engine_received(engine, step, now);
    data += step;
    size -= step;
  }
}

static void feed_answer(struct fairlock_engine *engine, uint32_t now, int64_t server_now)
{
  uint8_t text[128];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text, 0);
  resp_write_header(&writer, RESP_ARRAY, 3);
  resp_write_header(&writer, RESP_INTEGER, next_number());
  resp_write_header(&writer, RESP_INTEGER, next_number());
  resp_write_header(&writer, RESP_INTEGER, next() % 8 != 0 ? server_now : next_number());
  feed(engine, text, writer.used, now);
}

static void feed_push(struct fairlock_engine *engine, uint32_t now, int64_t server_now)
{
  static const char *const kinds[] = {"message", "subscribe", "unsubscribe", "pmessage"};
  uint8_t text[256];
  struct resp_writer writer;
  char channel[] = "redisson_lock__channel:{n}:id:1";
  channel[sizeof channel - 2] = (char)('0' + next() % 5);
  char message[2 * RESP_NUMBER_SIZE + 1];
  size_t size = resp_format_number(message, next_number());
  if (next() % 4 != 0) {
    message[size++] = ' ';
    size += resp_format_number(message + size, next() % 4 != 0 ? server_now - next() : next_number());
  }
  const char *kind = kinds[next() % 4];
  resp_writer_init(&writer, text, sizeof text, 0);
  resp_write_header(&writer, RESP_PUSH, 3);
  resp_write_bulk(&writer, kind, strlen(kind));
  resp_write_bulk(&writer, channel, sizeof channel - 1);
  resp_write_bulk(&writer, message, size);
  feed(engine, text, writer.used, now);
}

static void feed_error(struct fairlock_engine *engine, uint32_t now)
{
  static const char *const errors[] = {"-NOSCRIPT x\r\n", "-OOM x\r\n",   "-NOPERM x\r\n", "-READONLY x\r\n",
                                       "-LOADING\r\n",    "-ERR what\r\n", "!3\r\nOOM\r\n", "-\r\n"};
  const char *error = errors[next() % 8];
  feed(engine, (const uint8_t *)error, strlen(error), now);
}

static void feed_greeting(struct fairlock_engine *engine, uint32_t now)
{
  static const char greeting[] = "%1\r\n+proto\r\n:3\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n";
  feed(engine, (const uint8_t *)greeting, sizeof greeting - 1, now);
}

static void feed_raw(struct fairlock_engine *engine, uint32_t now)
{
  size_t size = next();
  if (size > input_left) size = input_left;
  feed(engine, input, size, now);
  input += size;
  input_left -= size;
}

static void report(const struct fairlock_report *part, void *context)
{
  volatile char sink = 0;
  for (size_t i = 0; part->id != NULL && i < part->id_size; i++) sink = (char)(sink ^ part->id[i]);
  ++*(unsigned *)context;
}

static unsigned reports;

static void operate(struct fairlock_engine *engine, struct fairlock *handle, bool *there, uint32_t now)
{
  unsigned what = next() % 8;
  if (!*there) {
    *there = fairlock_engine_add(engine, handle, "n", 1) == FAIRLOCK_OK;
    return;
  }
  int before = handle->result;
  int status = 0;
  switch (what) {
  case 0:
    status = fairlock_engine_acquire(handle, 0, LEASE, now);
    break;
  case 1:
    status = fairlock_engine_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW, now);
    break;
  case 2:
    status = fairlock_engine_acquire(handle, next() * 16U, LEASE, now);
    break;
  case 3:
    status = fairlock_engine_release(handle, now);
    break;
  case 4:
    fairlock_engine_cancel(handle, now);
    return;
  case 5:
    status = fairlock_engine_force(handle, now);
    break;
  case 6:
    status = fairlock_engine_inspect(handle, report, &reports, now);
    break;
  default:
    status = fairlock_engine_remove(handle, now);
    if (status == FAIRLOCK_OK) *there = false;
    break;
  }
  if (before == FAIRLOCK_PENDING) CHECK(status == FAIRLOCK_IN_PROGRESS || status == FAIRLOCK_INVALID);
}

/* Takes everything the engine wants to send: for each handle, each script's text at most once or twice. */
static void drain(struct fairlock_engine *engine, uint32_t now)
{
  size_t total = 0;
  while (fairlock_engine_wants(engine, now) & FAIRLOCK_SEND) {
    size_t size;
    const uint8_t *data = fairlock_engine_output(engine, &size, now);
    if (size == 0) break;
    volatile uint8_t sink = data[size - 1];
    (void)sink;
    size_t sent = next() % 4 == 0 ? 1 + next() % size : size;
    fairlock_engine_sent(engine, sent);
    total += sent;
    CHECK(total < 16384);
  }
}

static void check(struct fairlock_engine *engine, const struct fairlock *handles, const bool *there, uint32_t now)
{
  CHECK(fairlock_engine_deadline(engine, now) <= FAIRLOCK_LONGEST_MS);
  for (int i = 0; i < HANDLES; i++) {
    if (!there[i]) continue;
    uint32_t held = fairlock_engine_held(&handles[i], now);
    CHECK(held <= 30000);
    if (held > 0) CHECK(handles[i].token != 0 && handles[i].holds > 0);
    CHECK(handles[i].result <= FAIRLOCK_PENDING && handles[i].result >= FAIRLOCK_NO_ENTROPY);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static uint8_t received[128], sent[200];
  static struct fairlock_engine engine;
  static struct fairlock handles[HANDLES];
  struct fairlock_config config = {.receive_buffer = received,
                                   .receive_size = sizeof received,
                                   .send_buffer = sent,
                                   .send_size = sizeof sent,
                                   .client_id = "id"};
  bool there[HANDLES] = {false};
  input = data;
  input_left = size;
  config.send_size = FAIRLOCK_SEND_MIN + next() % (sizeof sent - FAIRLOCK_SEND_MIN);
  config.offline_ms = next() % 2 ? FAIRLOCK_FOREVER : 0;
  uint32_t now = 0xfffff000U;
  uint32_t start = now;
  CHECK(fairlock_engine_init(&engine, &config, NULL) == FAIRLOCK_OK);
  while (input_left > 0) {
    int64_t server_now = 1700000000000 + (int64_t)(now - start);
    unsigned step = next() % 16;
    switch (step) {
    case 0:
      if (fairlock_engine_wants(&engine, now) & FAIRLOCK_CONNECT) {
        fairlock_engine_opening(&engine, now);
        fairlock_engine_opened(&engine, now);
      }
      break;
    case 1:
      if (engine.stage != 0) fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
      break;
    case 2:
      now += next() * 8;
      break;
    case 3:
      drain(&engine, now);
      break;
    case 4:
      feed_raw(&engine, now);
      break;
    case 5:
      feed_error(&engine, now);
      break;
    case 6:
    case 7:
      feed_push(&engine, now, server_now);
      break;
    case 8:
    case 9:
    case 10:
      feed_answer(&engine, now, server_now);
      break;
    case 11:
      feed_greeting(&engine, now);
      break;
    default: {
      unsigned which = next() % HANDLES;
      operate(&engine, &handles[which], &there[which], now);
      break;
    }
    }
    fairlock_engine_tick(&engine, now);
    check(&engine, handles, there, now);
  }
  return 0;
}
