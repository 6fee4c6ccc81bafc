/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_fixture.h"

struct fairlock_engine engine;
struct fairlock a, b;
struct fairlock_target anyone = {.token = FAIRLOCK_ANY_TOKEN};
struct fairlock_config config;
uint8_t receive_buffer[300], send_buffer[512];
char output[8192];
size_t output_size;
uint32_t now;
int losses;
struct fairlock_loss last_loss;

void count_loss(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  last_loss = *loss;
  (void)handle;
  ++*(int *)context;
}

void count_end(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  CHECK_EQUAL(handle->result, end->status);
  ++*(int *)context;
}

bool report_nothing(const struct fairlock_report *report, void *context)
{
  (void)report;
  (void)context;
  return true;
}

int64_t server_time(void)
{
  return 1700000000000 + (int64_t)(uint32_t)(now - START);
}

void drain(void)
{
  size_t size;
  const uint8_t *data;
  output_size = 0;
  while (data = fairlock_engine_output(&engine, &size, now), size > 0) {
    if (output_size + size < sizeof output) memcpy(output + output_size, data, size);
    output_size += size;
    fairlock_engine_sent(&engine, size);
  }
  output[output_size < sizeof output ? output_size : sizeof output - 1] = 0;
}

bool sends(const char *text)
{
  drain();
  return strstr(output, text) != NULL;
}

bool sends_nothing(void)
{
  drain();
  return output_size == 0;
}

void feed(const char *text)
{
  feed_bytes(text, strlen(text));
}

void feed_bytes(const char *text, size_t size)
{
  size_t left = size;
  while (left > 0) {
    size_t room;
    uint8_t *to = fairlock_engine_input(&engine, &room);
    size_t step = left < room ? left : room;
    if (room == 0) return; /* the connection is broken, and nobody reads on */
    memcpy(to, text, step);
    fairlock_engine_received(&engine, step, now);
    text += step;
    left -= step;
  }
}

void answer(int state, int64_t value, int64_t late)
{
  uint8_t text[96];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text - 1, 0);
  resp_write_header(&writer, RESP_ARRAY, 3);
  resp_write_header(&writer, RESP_INTEGER, state);
  resp_write_header(&writer, RESP_INTEGER, value);
  resp_write_header(&writer, RESP_INTEGER, server_time() + late);
  text[writer.used] = 0;
  feed((char *)text);
}

void push(const char *kind, const char *channel, const char *text)
{
  uint8_t bytes[256];
  struct resp_writer writer;
  resp_writer_init(&writer, bytes, sizeof bytes - 1, 0);
  resp_write_header(&writer, RESP_PUSH, 3);
  resp_write_bulk(&writer, kind, strlen(kind));
  resp_write_bulk(&writer, channel, strlen(channel));
  if (text != NULL) resp_write_bulk(&writer, text, strlen(text));
  else resp_write_header(&writer, RESP_INTEGER, 1);
  bytes[writer.used] = 0;
  feed((char *)bytes);
}

void grant(const char *channel, const char *token, int32_t ago)
{
  char text[64];
  size_t size = strlen(token);
  memcpy(text, token, size);
  text[size++] = ' ';
  size += resp_format_number(text + size, server_time() - ago);
  memcpy(text + size, " 5000", sizeof " 5000");
  push("message", channel, text);
}

void pass(uint32_t ms)
{
  now += ms;
  if (fairlock_engine_wants(&engine, now) & FAIRLOCK_RECEIVE)
    fairlock_engine_received(&engine, 0, now);
  fairlock_engine_tick(&engine, now);
}

void tell_time(int64_t late)
{
  uint8_t text[64];
  struct resp_writer writer;
  char seconds[RESP_NUMBER_SIZE];
  resp_writer_init(&writer, text, sizeof text - 1, 0);
  resp_write_header(&writer, RESP_ARRAY, 2);
  resp_write_bulk(&writer, seconds, resp_format_number(seconds, (server_time() + late) / 1000));
  resp_write_bulk_number(&writer, (server_time() + late) % 1000 * 1000);
  text[writer.used] = 0;
  feed((char *)text);
}

void greet_late(int64_t late)
{
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  CHECK(sends("HELLO\r\n$1\r\n3\r\n"));
  CHECK(strstr(output, "TIME") != NULL);
  feed("%2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:74\r\n");
  CHECK(!fairlock_engine_ready(&engine));
  tell_time(late);
  CHECK(fairlock_engine_ready(&engine));
}

void greet(void)
{
  greet_late(0);
}

void set_up(void)
{
  memset(&config, 0, sizeof config);
  config.receive_buffer = receive_buffer;
  config.receive_size = sizeof receive_buffer;
  config.send_buffer = send_buffer;
  config.send_size = sizeof send_buffer;
  config.client_id = ID;
  config.lost = count_loss;
  config.lost_context = &losses;
  losses = 0;
  now = START;
  CHECK_EQUAL(fairlock_engine_init(&engine, &config), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &a, "door", 4), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add(&engine, &b, "door", 4), FAIRLOCK_OK);
}

void break_connection(void)
{
  fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
  CHECK(!fairlock_engine_ready(&engine));
}

void close_connection(void)
{
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  break_connection();
}

void acquire_a(uint32_t lease_ms)
{
  set_up();
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, FAIRLOCK_FOREVER, lease_ms, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.token, 77);
}

void queue_a(uint32_t wait_ms)
{
  set_up();
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, wait_ms, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends("SUBSCRIBE\r\n"));
  push("subscribe", CHANNEL("1"), NULL);
  answer(0, -1, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
  CHECK(sends_nothing());
}
