/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the writer writes the decoder reads back: a bulk string, bulk error or verbatim string, and each
 * kind of line, is one event of that kind with that text, and uses what was written.
 *
 * Assumed: texts of up to SIZE bytes; any bytes, but in a line no CR and no LF, which the writer
 * refuses.
 */
#include "proof.h"

#include "resp/encode.c"

#include "resp/decode.c"

enum { MOST = SIZE + 8 };

static bool same_text(const uint8_t *a, const uint8_t *b, size_t size)
{
  for (size_t i = 0; i < size; i++) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

static bool has_end(const uint8_t *text, size_t size)
{
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '\r' || text[i] == '\n') return true;
  }
  return false;
}

static void read_back(const struct resp_writer *writer, enum resp_type type, const uint8_t *text,
                      size_t size)
{
  struct resp_decoder decoder;
  struct resp_event event;
  size_t used;
  resp_decoder_init(&decoder, SIZE);
  CHECK(writer->used == writer->total);
  CHECK(resp_decode(&decoder, writer->buffer, writer->used, &used, &event) == RESP_EVENT);
  CHECK(used == writer->used && event.type == type && event.depth == 0 && event.last && !event.cut);
  CHECK(event.size == size && same_text(event.data, text, size));
}

static void write_line(enum resp_type type, const uint8_t *text, size_t size)
{
  uint8_t bytes[MOST];
  struct resp_writer writer;
  resp_writer_init(&writer, bytes, sizeof bytes, 0);
  bool written = resp_write_line(&writer, type, text, size);
  CHECK(written == !has_end(text, size));
  CHECK(written || writer.total == 0);
  if (written) read_back(&writer, type, text, size);
  REACHED(written && size == SIZE);
  REACHED(!written && size == 1);
}

static void write_payload(enum resp_type type, const uint8_t *text, size_t size)
{
  uint8_t bytes[MOST];
  struct resp_writer writer;
  resp_writer_init(&writer, bytes, sizeof bytes, 0);
  if (type == RESP_BULK_STRING) resp_write_bulk(&writer, text, size);
  else resp_write_payload(&writer, type, text, size);
  read_back(&writer, type, text, size);
  REACHED(size == SIZE && text[0] == '\r');
  REACHED(size == 0);
}

void harness(void)
{
  uint8_t text[SIZE];
  for (size_t size = 0; size <= SIZE; size++) {
    write_payload(RESP_BULK_STRING, text, size);
    write_payload(RESP_BULK_ERROR, text, size);
    write_payload(RESP_VERBATIM_STRING, text, size);
    write_line(RESP_SIMPLE_STRING, text, size);
    write_line(RESP_SIMPLE_ERROR, text, size);
    write_line(RESP_DOUBLE, text, size);
    write_line(RESP_BIG_NUMBER, text, size);
  }
}
