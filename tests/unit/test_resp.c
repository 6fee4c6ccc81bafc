/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the RESP codec that need nothing of a platform: they run on the host and on a board.
 *
 * The decoder is checked against the streams of test_resp_samples.h, given at once and in every
 * split, and the writer against one message that uses all of it, through every window.
 */
#include "check.h"
#include "resp.h"
#include "test_resp_samples.h"
#include "test_resp_trace.h"

#include <string.h>

enum { LARGEST_LIMIT = 64 };

static struct trace trace;

/* Decodes the sample from where it lies, all at once. */
static bool decode_at_once(const struct sample *sample)
{
  struct resp_decoder decoder;
  size_t used;
  trace.size = 0;
  trace.text[0] = 0;
  resp_decoder_init(&decoder, sample->limit);
  int status = trace_bytes(&trace, &decoder, (const uint8_t *)sample->bytes, sample->size, &used);
  trace_end(&trace, status, sample->size - used);
  return trace_check(&trace, sample->events);
}

/*
 * Decodes the sample as a caller does, through a linear buffer of the documented size, receiving
 * `first` bytes and then `step` at a time, fewer when there is no room for so many.
 */
static bool decode_in_pieces(const struct sample *sample, size_t first, size_t step)
{
  static uint8_t buffer[LARGEST_LIMIT + RESP_OVERHEAD];
  const size_t room = sample->limit + RESP_OVERHEAD;
  struct resp_decoder decoder;
  size_t received = 0;
  size_t held = 0;
  int status = RESP_MORE;
  trace.size = 0;
  trace.text[0] = 0;
  resp_decoder_init(&decoder, sample->limit);
  while (status == RESP_MORE && received < sample->size) {
    size_t used;
    size_t piece = received == 0 ? first : step;
    if (!CHECK(held < room)) return false;
    if (piece > sample->size - received) piece = sample->size - received;
    if (piece > room - held) piece = room - held;
    memcpy(buffer + held, sample->bytes + received, piece);
    received += piece;
    held += piece;
    status = trace_bytes(&trace, &decoder, buffer, held, &used);
    held -= used;
    memmove(buffer, buffer + used, held);
  }
  trace_end(&trace, status, held);
  return trace_check(&trace, sample->events);
}

static bool decode_in_every_split(const struct sample *sample)
{
  for (size_t first = 1; first < sample->size; first++) {
    if (!decode_in_pieces(sample, first, LARGEST_LIMIT + RESP_OVERHEAD)) return false;
  }
  for (size_t step = 1; step < 8; step++) {
    if (!decode_in_pieces(sample, step, step)) return false;
  }
  return true;
}

/* Prints which sample failed: its bytes begin so. */
static void tell(const struct sample *sample)
{
  static struct trace start;
  start.size = 0;
  trace_text(&start, (const uint8_t *)sample->bytes, sample->size < 60 ? sample->size : 60);
  check_write("# in the sample ");
  check_write(start.text);
  check_write("\n");
}

static void test_samples_at_once(void)
{
  for (size_t i = 0; i < SAMPLES; i++) {
    if (!decode_at_once(&samples[i])) tell(&samples[i]);
  }
}

static void test_samples_split(void)
{
  for (size_t i = 0; i < SAMPLES; i++) {
    if (samples[i].limit <= LARGEST_LIMIT && !decode_in_every_split(&samples[i])) tell(&samples[i]);
  }
}

static void test_mixed_stream_at_once(void)
{
  decode_at_once(&mixed);
}

static void test_mixed_stream_split(void)
{
  decode_in_every_split(&mixed);
  /* Splits of the whole, with room for all of it. */
  for (size_t first = 0; first <= mixed.size; first++) {
    const uint8_t *bytes = (const uint8_t *)mixed.bytes;
    struct resp_decoder decoder;
    size_t used;
    size_t more;
    trace.size = 0;
    resp_decoder_init(&decoder, mixed.limit);
    CHECK_EQUAL(trace_bytes(&trace, &decoder, bytes, first, &used), RESP_MORE);
    CHECK_EQUAL(trace_bytes(&trace, &decoder, bytes + used, mixed.size - used, &more), RESP_MORE);
    CHECK_EQUAL(used + more, mixed.size);
    if (!trace_check(&trace, mixed.events)) return;
  }
}

/*
 * RESP_MORE leaves the decoder as it was, and uses nothing, unless something is being passed over.
 */
static void test_more_changes_nothing(void)
{
  static const char *const values[] = {"+text\r\n",       ":-12\r\n", "$5\r\nhello\r\n", "*3\r\n",
                                       "%1\r\n",          "|2\r\n",   "_\r\n",           "#f\r\n",
                                       "=5\r\ntxt:a\r\n", ",1\r\n",   ">12\r\n",         "$-1\r\n"};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    struct resp_decoder decoder;
    struct resp_decoder before;
    struct resp_event event;
    size_t used = 99;
    resp_decoder_init(&decoder, 5);
    memcpy(&before, &decoder, sizeof before);
    for (size_t size = 0; size < strlen(values[i]); size++) {
      CHECK_EQUAL(resp_decode(&decoder, values[i], size, &used, &event), RESP_MORE);
      CHECK_EQUAL(used, 0);
      CHECK_BYTES(&decoder, sizeof decoder, &before, sizeof before);
    }
    CHECK_EQUAL(resp_decode(&decoder, values[i], strlen(values[i]), &used, &event), RESP_EVENT);
    CHECK_EQUAL(used, strlen(values[i]));
  }
}

static void test_more_uses_what_is_passed_over(void)
{
  struct resp_decoder decoder;
  struct resp_event event;
  size_t used;
  resp_decoder_init(&decoder, 2);
  CHECK_EQUAL(resp_decode(&decoder, "$6\r\nabc", 7, &used, &event), RESP_EVENT);
  CHECK_EQUAL(used, 4);
  CHECK_EQUAL(resp_decode(&decoder, "abc", 3, &used, &event), RESP_MORE);
  CHECK_EQUAL(used, 3);
  CHECK_EQUAL(resp_decode(&decoder, "def\r", 4, &used, &event), RESP_MORE);
  CHECK_EQUAL(used, 3);
  CHECK_EQUAL(resp_decode(&decoder, "\r\n", 2, &used, &event), RESP_MORE);
  CHECK_EQUAL(used, 2);
  CHECK_EQUAL(resp_decode(&decoder, ":5\r\n", 4, &used, &event), RESP_EVENT);
  CHECK_EQUAL(event.integer, 5);
}

static void test_nothing_given(void)
{
  struct resp_decoder decoder;
  struct resp_event event;
  size_t used = 99;
  resp_decoder_init(&decoder, 0);
  CHECK_EQUAL(resp_decode(&decoder, NULL, 0, &used, &event), RESP_MORE);
  CHECK_EQUAL(used, 0);
  CHECK_EQUAL(resp_decode(&decoder, "$9\r\n", 4, &used, &event), RESP_EVENT);
  CHECK_EQUAL(resp_decode(&decoder, NULL, 0, &used, &event), RESP_MORE);
  CHECK_EQUAL(used, 0);
}

static void test_errors_stick(void)
{
  static const struct {
    const char *bytes;
    int status;
  } cases[] = {{"?", RESP_BAD_TYPE},
               {":x\r\n", RESP_BAD_NUMBER},
               {"$-7\r\n", RESP_BAD_LENGTH},
               {"+a\n", RESP_BAD_END},
               {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", RESP_TOO_DEEP},
               {"$70\r\n0123456789012345678901234567890123456789012345678901234567890123456789xx",
                RESP_BAD_END}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct resp_decoder decoder;
    struct resp_event event;
    size_t used;
    trace.size = 0;
    resp_decoder_init(&decoder, 64);
    CHECK_EQUAL(trace_bytes(&trace, &decoder, (const uint8_t *)cases[i].bytes,
                            strlen(cases[i].bytes), &used),
                cases[i].status);
    for (int again = 0; again < 3; again++) {
      CHECK_EQUAL(resp_decode(&decoder, "+OK\r\n", again == 0 ? 0 : 5, &used, &event),
                  cases[i].status);
      CHECK_EQUAL(used, 0);
    }
    resp_decoder_init(&decoder, 64);
    CHECK_EQUAL(resp_decode(&decoder, "+OK\r\n", 5, &used, &event), RESP_EVENT);
  }
}

/* A payload far longer than the buffer passes through it, in bounded memory. */
static void test_long_payload_is_passed_over(void)
{
  static uint8_t buffer[32];
  const uint32_t length = 70000;
  struct resp_decoder decoder;
  struct resp_event event;
  uint32_t left = length;
  size_t used;
  resp_decoder_init(&decoder, sizeof buffer - RESP_OVERHEAD);
  CHECK_EQUAL(resp_decode(&decoder, "$70000\r\n", 8, &used, &event), RESP_EVENT);
  CHECK(event.cut && event.last);
  CHECK_EQUAL(event.integer, length);
  memset(buffer, '\r', sizeof buffer);
  while (left > 0) {
    size_t piece = left < sizeof buffer ? left : sizeof buffer;
    CHECK_EQUAL(resp_decode(&decoder, buffer, piece, &used, &event), RESP_MORE);
    if (!CHECK_EQUAL(used, piece)) return;
    left -= (uint32_t)piece;
  }
  CHECK_EQUAL(resp_decode(&decoder, "\r\n+OK\r\n", 7, &used, &event), RESP_EVENT);
  CHECK_EQUAL(used, 7);
  CHECK_BYTES(event.data, event.size, "OK", 2);
}

/* The elements of an aggregate are counted down from any number, none is counted twice. */
static void test_long_array(void)
{
  struct resp_decoder decoder;
  struct resp_event event;
  size_t used;
  resp_decoder_init(&decoder, 0);
  CHECK_EQUAL(resp_decode(&decoder, "%35000\r\n", 8, &used, &event), RESP_EVENT);
  for (int32_t i = 1; i <= 70000; i++) {
    CHECK_EQUAL(resp_decode(&decoder, "#t\r\n", 4, &used, &event), RESP_EVENT);
    if (!CHECK(event.depth == 1 && event.last == (i == 70000))) return;
  }
  CHECK_EQUAL(resp_decode(&decoder, "#t\r\n", 4, &used, &event), RESP_EVENT);
  CHECK_EQUAL(event.depth, 0);
}

static const struct {
  const char *text;
  int64_t number;
} numbers[] = {{"0", 0},
               {"1", 1},
               {"-1", -1},
               {"9", 9},
               {"10", 10},
               {"-99", -99},
               {"65535", 65535},
               {"65536", 65536},
               {"655360", 655360},
               {"2147483647", 2147483647},
               {"-2147483648", INT64_C(-2147483648)},
               {"4294967295", INT64_C(4294967295)},
               {"4294967296", INT64_C(4294967296)},
               {"42949672959", INT64_C(42949672959)},
               {"1000000000000000000", INT64_C(1000000000000000000)},
               {"1234567890123456789", INT64_C(1234567890123456789)},
               {"9223372036854775807", INT64_MAX},
               {"-9223372036854775807", -INT64_MAX},
               {"-9223372036854775808", INT64_MIN}};

static void test_numbers_are_formatted_and_parsed(void)
{
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    char text[RESP_NUMBER_SIZE + 1];
    int64_t number = 77;
    text[RESP_NUMBER_SIZE] = '#';
    size_t size = resp_format_number(text, numbers[i].number);
    CHECK_BYTES(text, size, numbers[i].text, strlen(numbers[i].text));
    CHECK_EQUAL(text[RESP_NUMBER_SIZE], '#');
    CHECK(resp_parse_number(numbers[i].text, strlen(numbers[i].text), &number));
    CHECK_EQUAL(number, numbers[i].number);
  }
}

/* All powers of two and their neighbours, there and back, and through the decoder. */
static void test_numbers_round_trip(void)
{
  for (unsigned shift = 0; shift < 64; shift++) {
    for (unsigned add = 0; add < 3; add++) {
      uint8_t buffer[RESP_NUMBER_SIZE + 3];
      struct resp_writer writer;
      struct resp_decoder decoder;
      struct resp_event event;
      size_t used;
      int64_t number = (int64_t)((UINT64_C(1) << shift) + add - 1);
      int64_t back = 0;
      resp_writer_init(&writer, buffer, sizeof buffer, 0);
      resp_write_header(&writer, RESP_INTEGER, number);
      CHECK(resp_parse_number(buffer + 1, writer.used - 3, &back));
      CHECK_EQUAL(back, number);
      resp_decoder_init(&decoder, 0);
      CHECK_EQUAL(resp_decode(&decoder, buffer, writer.used, &used, &event), RESP_EVENT);
      CHECK_EQUAL(event.integer, number);
    }
  }
}

static void test_malformed_numbers_are_refused(void)
{
  static const char *const texts[] = {"",
                                      "-",
                                      "+",
                                      "+-1",
                                      "1-",
                                      "x",
                                      "1x",
                                      " 1",
                                      "1 ",
                                      "/",
                                      ":",
                                      "1.0",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "9999999999999999999",
                                      "-9999999999999999999",
                                      "10000000000000000000",
                                      "18446744073709551616",
                                      "18446744073709551617",
                                      "00000000000000000000"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    int64_t number = 77;
    CHECK(!resp_parse_number(texts[i], strlen(texts[i]), &number));
    CHECK_EQUAL(number, 77);
  }
  int64_t number = 77;
  CHECK(!resp_parse_number(NULL, 0, &number));
  CHECK(!resp_parse_number("1\0", 2, &number));
  CHECK_EQUAL(number, 77);
  CHECK(resp_parse_number("+0", 2, &number) && number == 0);
  CHECK(resp_parse_number("-0", 2, &number) && number == 0);
  CHECK(resp_parse_number("+15", 3, &number) && number == 15);
  CHECK(resp_parse_number("0000000000000000042", 19, &number) && number == 42);
  CHECK(resp_parse_number("12345", 2, &number) && number == 12);
}

/* One message with everything that the writer can write. */
static void write_message(struct resp_writer *writer)
{
  resp_write_header(writer, RESP_ARRAY, 14);
  resp_write_bulk(writer, "EVALSHA", 7);
  resp_write_bulk(writer, "a\r\n\0b", 5);
  resp_write_bulk(writer, NULL, 0);
  resp_write_bulk_number(writer, -30000);
  resp_write_header(writer, RESP_INTEGER, INT64_MIN);
  resp_write_header(writer, RESP_BULK_STRING, 6);
  resp_write_raw(writer, "{do", 3);
  resp_write_raw(writer, NULL, 0);
  resp_write_raw(writer, "or}", 3);
  resp_write_end(writer);
  resp_write_payload(writer, RESP_VERBATIM_STRING, "txt:x", 5);
  resp_write_payload(writer, RESP_BULK_ERROR, "ERR", 3);
  resp_write_header(writer, RESP_MAP, 1);
  CHECK(resp_write_line(writer, RESP_SIMPLE_STRING, "OK", 2));
  CHECK(resp_write_line(writer, RESP_SIMPLE_ERROR, "ERR no", 6));
  CHECK(resp_write_line(writer, RESP_DOUBLE, "1.5", 3));
  CHECK(resp_write_line(writer, RESP_BIG_NUMBER, "18446744073709551616", 20));
  CHECK(resp_write_line(writer, RESP_BOOLEAN, "t", 1));
  CHECK(resp_write_line(writer, RESP_NULL, NULL, 0));
  resp_write_header(writer, RESP_SET, 0);
}

static const char message[] =
    "*14\r\n$7\r\nEVALSHA\r\n$5\r\na\r\n\0b\r\n$0\r\n\r\n$6\r\n-30000\r\n:-9223372036854775808\r\n"
    "$6\r\n{door}\r\n=5\r\ntxt:x\r\n!3\r\nERR\r\n%1\r\n+OK\r\n-ERR no\r\n,1.5\r\n"
    "(18446744073709551616\r\n#t\r\n_\r\n~0\r\n";

enum { MESSAGE_SIZE = sizeof message - 1 };

static void test_message_is_written(void)
{
  uint8_t buffer[MESSAGE_SIZE + 1];
  struct resp_writer writer;
  resp_writer_init(&writer, buffer, sizeof buffer, 0);
  write_message(&writer);
  CHECK_BYTES(buffer, writer.used, message, MESSAGE_SIZE);
  CHECK_EQUAL(writer.total, MESSAGE_SIZE);
  CHECK_EQUAL(writer.skip, 0);
}

/*
 * Any buffer holds what it has room for of the message behind skip, and no byte behind the buffer
 * is touched.
 */
static void test_every_window(void)
{
  for (size_t skip = 0; skip <= MESSAGE_SIZE + 2; skip++) {
    for (size_t size = 0; size <= MESSAGE_SIZE + 2; size++) {
      uint8_t buffer[MESSAGE_SIZE + 3];
      struct resp_writer writer;
      size_t left = skip < MESSAGE_SIZE ? MESSAGE_SIZE - skip : 0;
      size_t expected = size < left ? size : left;
      buffer[size] = '#';
      resp_writer_init(&writer, size > 0 ? buffer : NULL, size, skip);
      write_message(&writer);
      if (!CHECK_EQUAL(writer.total, MESSAGE_SIZE)) return;
      if (!CHECK_BYTES(buffer, writer.used, message + MESSAGE_SIZE - left, expected)) return;
      if (!CHECK_EQUAL(buffer[size], '#')) return;
    }
  }
}

/* A message goes out through a buffer of any size, written again for each piece. */
static void test_message_is_sent_in_pieces(void)
{
  for (size_t size = 1; size < 24; size++) {
    uint8_t sent[MESSAGE_SIZE];
    size_t total = 0;
    struct resp_writer writer;
    do {
      uint8_t piece[24];
      resp_writer_init(&writer, piece, size, total);
      write_message(&writer);
      if (!CHECK(writer.used > 0 && writer.used <= sizeof sent - total)) return;
      memcpy(sent + total, piece, writer.used);
      total += writer.used;
    } while (total < writer.total);
    CHECK_BYTES(sent, total, message, MESSAGE_SIZE);
  }
}

static void test_lines_with_line_ends_are_refused(void)
{
  static const char *const texts[] = {"\r",  "\n",  "a\r",      "a\n",
                                      "\rb", "\nb", "OK\r\n:1", "a\nb\rc"};
  uint8_t buffer[16];
  struct resp_writer writer;
  resp_writer_init(&writer, buffer, sizeof buffer, 0);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    CHECK(!resp_write_line(&writer, RESP_SIMPLE_STRING, texts[i], strlen(texts[i])));
  }
  CHECK_EQUAL(writer.used, 0);
  CHECK_EQUAL(writer.total, 0);
  CHECK(resp_write_line(&writer, RESP_SIMPLE_STRING, "a\0b", 3));
  CHECK_BYTES(buffer, writer.used, "+a\0b\r\n", 6);
}

static void test_what_is_written_is_read(void)
{
  static const struct sample sample =
      SAMPLE(20, message,
             "0*14 1$7=EVALSHA 1$5=a\\0d\\0a\\00b 1$0= 1$6=-30000 1:-9223372036854775808 "
             "1$6={door} 1=5=txt:x 1!3=ERR 1%1 "
             "2+OK 2-ERR no 1,1.5 1(18446744073709551616 1#1 1_ 1~0. ");
  decode_at_once(&sample);
  decode_in_every_split(&sample);
}

const struct check_test check_tests[] = {
    {"resp_samples_at_once", test_samples_at_once},
    {"resp_samples_split", test_samples_split},
    {"resp_mixed_stream_at_once", test_mixed_stream_at_once},
    {"resp_mixed_stream_split", test_mixed_stream_split},
    {"resp_more_changes_nothing", test_more_changes_nothing},
    {"resp_more_uses_what_is_passed_over", test_more_uses_what_is_passed_over},
    {"resp_nothing_given", test_nothing_given},
    {"resp_errors_stick", test_errors_stick},
    {"resp_long_payload_is_passed_over", test_long_payload_is_passed_over},
    {"resp_long_array", test_long_array},
    {"resp_numbers_are_formatted_and_parsed", test_numbers_are_formatted_and_parsed},
    {"resp_numbers_round_trip", test_numbers_round_trip},
    {"resp_malformed_numbers_are_refused", test_malformed_numbers_are_refused},
    {"resp_message_is_written", test_message_is_written},
    {"resp_every_window", test_every_window},
    {"resp_message_is_sent_in_pieces", test_message_is_sent_in_pieces},
    {"resp_lines_with_line_ends_are_refused", test_lines_with_line_ends_are_refused},
    {"resp_what_is_written_is_read", test_what_is_written_is_read},
    {0},
};
