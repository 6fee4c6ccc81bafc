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
  if (size == 0) return;
  memcpy(writer->buffer + writer->used, from, size);
  writer->used += size;
}

/*
 * Long division with 16-bit digits: on a 32-bit target, a 64-bit division would link a routine of
 * the compiler's that is larger than this whole file.
 */
size_t resp_format_number(char text[RESP_NUMBER_SIZE], int64_t number)
{
  char digits[RESP_NUMBER_SIZE];
  size_t at = sizeof digits;
  uint64_t value = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  uint16_t parts[] = {(uint16_t)(value >> 48), (uint16_t)(value >> 32), (uint16_t)(value >> 16),
                      (uint16_t)value};
  size_t first = 0; /* of the parts that are not 0 */
  while (first < 4) {
    uint32_t rest = 0;
    for (size_t i = first; i < 4; i++) {
      rest = rest << 16 | parts[i];
      parts[i] = (uint16_t)(rest / 10);
      rest %= 10;
    }
    digits[--at] = (char)('0' + rest);
    while (first < 4 && parts[first] == 0)
      first++;
  }
  if (number < 0) digits[--at] = '-';
  memcpy(text, digits + at, sizeof digits - at);
  return sizeof digits - at;
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
