/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the decoder's events as text, in the form that test_resp_samples.h describes. No libc but
 * string.h.
 */
#ifndef TEST_RESP_TRACE_H
#define TEST_RESP_TRACE_H

#include "check.h"
#include "resp.h"
#include "test_resp_samples.h"

#include <string.h>

struct trace {
  char text[768];
  size_t size;
};

static inline void trace_byte(struct trace *trace, int byte)
{
  if (CHECK(trace->size + 1 < sizeof trace->text)) trace->text[trace->size++] = (char)byte;
  trace->text[trace->size] = 0;
}

static inline void trace_number(struct trace *trace, int64_t number)
{
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  uint64_t power = 1;
  if (number < 0) trace_byte(trace, '-');
  while (rest / power > 9)
    power *= 10;
  for (; power > 0; power /= 10)
    trace_byte(trace, '0' + (int)(rest / power % 10));
}

static inline void trace_text(struct trace *trace, const uint8_t *text, size_t size)
{
  const char *digits = "0123456789abcdef";
  for (size_t i = 0; i < size; i++) {
    if (text[i] >= ' ' && text[i] <= '~') {
      trace_byte(trace, text[i]);
    } else {
      trace_byte(trace, '\\');
      trace_byte(trace, digits[text[i] >> 4]);
      trace_byte(trace, digits[text[i] & 15]);
    }
  }
}

static inline void trace_event(struct trace *trace, const struct resp_event *event)
{
  bool line = memchr("+-,(", (int)event->type, 4) != NULL;
  bool payload = memchr("$!=", (int)event->type, 3) != NULL;
  trace_number(trace, event->depth);
  trace_byte(trace, (int)event->type);
  if (!line && event->type != RESP_NULL) trace_number(trace, event->integer);
  if (payload && !event->cut) trace_byte(trace, '=');
  if (line || !event->cut) trace_text(trace, event->data, event->size);
  if (event->cut) trace_byte(trace, '!');
  if (event->last) trace_byte(trace, '.');
  trace_byte(trace, ' ');

  CHECK(line || payload || (event->data == NULL && event->size == 0 && !event->cut));
  CHECK(!(payload && event->cut) || (event->data == NULL && event->size == 0));
  CHECK(!payload || event->cut || event->size == (uint64_t)event->integer);
  CHECK(!line || event->integer == 0);
  CHECK(event->type != RESP_NULL || event->integer == 0);
}

/*
 * Takes all events of the bytes at data. *used: bytes not to be offered again. Returns the status
 * at their end.
 */
static inline int trace_bytes(struct trace *trace, struct resp_decoder *decoder,
                              const uint8_t *data, size_t size, size_t *used)
{
  struct resp_event event;
  size_t start = 0;
  size_t step;
  int status;
  while ((status = resp_decode(decoder, data + start, size - start, &step, &event)) == RESP_EVENT) {
    trace_event(trace, &event);
    start += step;
    CHECK(start <= size);
  }
  *used = start + step;
  CHECK(*used <= size);
  return status;
}

/* Writes what ends the stream. */
static inline void trace_end(struct trace *trace, int status, size_t waiting)
{
  if (status < 0) {
    trace_byte(trace, 'E');
    trace_number(trace, -status);
  } else if (waiting > 0) {
    trace_number(trace, (int64_t)waiting);
    trace_byte(trace, '?');
  }
}

/* Compares with what is expected, and prints both when they differ. */
static inline bool trace_check(const struct trace *trace, const char *expected)
{
  if (CHECK_BYTES(trace->text, trace->size, expected, strlen(expected))) return true;
  check_write("# is       ");
  check_write(trace->text);
  check_write("\n# expected ");
  check_write(expected);
  check_write("\n");
  return false;
}

#endif
