/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encoder: values to bytes, through the window that struct resp_writer describes.
 */
#include "resp.h"

#include <string.h>

void resp_writer_init(struct resp_writer *writer, void *buffer, size_t size, size_t skip)
{
  writer->buffer = buffer;
  writer->size = size;
  writer->used = 0;
  writer->skip = skip;
  writer->total = 0;
}

void resp_write_raw(struct resp_writer *writer, const void *data, size_t size)
{
  const uint8_t *from = data;
  writer->total += size;
  if (writer->skip >= size) {
    writer->skip -= size;
    return;
  }
  from += writer->skip;
  size -= writer->skip;
  writer->skip = 0;
  size_t room = writer->size - writer->used;
  if (size > room) size = room;
  /* pieces are short, and memcpy() is more code than a small program needs otherwise */
  for (; size > 0; size--)
    writer->buffer[writer->used++] = *from++;
}

/*
 * Long division with 16-bit digits: on a 32-bit target, a 64-bit division would link a routine of
 * the compiler's that is larger than this whole file.
 */
size_t resp_format_number(char text[RESP_NUMBER_SIZE], int64_t number)
{
  uint64_t value = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  size_t size = 0;
  do {
    uint32_t high = (uint32_t)(value >> 32);
    uint32_t middle = high % 10 << 16 | (uint32_t)value >> 16;
    uint32_t low = middle % 10 << 16 | (uint16_t)value;
    text[size++] = (char)('0' + low % 10);
    value = (uint64_t)(high / 10) << 32 | (middle / 10 << 16 | low / 10);
  } while (value > 0);
  if (number < 0) text[size++] = '-';
  for (size_t i = 0; i < size / 2; i++) {
    char digit = text[i];
    text[i] = text[size - 1 - i];
    text[size - 1 - i] = digit;
  }
  return size;
}

void resp_write_header(struct resp_writer *writer, enum resp_type type, int64_t number)
{
  char text[RESP_NUMBER_SIZE + 3];
  size_t size = resp_format_number(text + 1, number) + 1;
  text[0] = (char)type;
  text[size++] = '\r';
  text[size++] = '\n';
  resp_write_raw(writer, text, size);
}

void resp_write_end(struct resp_writer *writer)
{
  resp_write_raw(writer, "\r\n", 2);
}

void resp_write_payload(struct resp_writer *writer, enum resp_type type, const void *data,
                        size_t size)
{
  resp_write_header(writer, type, (int64_t)size);
  resp_write_raw(writer, data, size);
  resp_write_raw(writer, "\r\n", 2);
}

void resp_write_bulk(struct resp_writer *writer, const void *data, size_t size)
{
  resp_write_header(writer, RESP_BULK_STRING, (int64_t)size);
  resp_write_raw(writer, data, size);
  resp_write_end(writer);
}

void resp_write_bulk_number(struct resp_writer *writer, int64_t number)
{
  char text[RESP_NUMBER_SIZE];
  resp_write_bulk(writer, text, resp_format_number(text, number));
}

bool resp_write_line(struct resp_writer *writer, enum resp_type type, const void *text, size_t size)
{
  const char *line = text;
  char first = (char)type;
  for (size_t i = 0; i < size; i++) {
    if (line[i] == '\r' || line[i] == '\n') return false;
  }
  resp_write_raw(writer, &first, 1);
  resp_write_raw(writer, text, size);
  resp_write_raw(writer, "\r\n", 2);
  return true;
}
