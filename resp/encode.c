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
 * Takes the last decimal digit off *value. Above 32 bits it divides in 16-bit steps: a 64-bit division would link a
 * routine of the compiler's larger than this whole file on a 32-bit target.
 */
static uint32_t take_digit(uint64_t *value)
{
  uint64_t quotient = 0;
  uint32_t rest = (uint32_t)*value;
  if (rest == *value) {
    *value = rest / 10;
    return rest % 10;
  }
  rest = 0;
  for (int shift = 48; shift >= 0; shift -= 16) {
    rest = rest << 16 | (uint32_t)(*value >> shift & 0xffff);
    quotient |= (uint64_t)(rest / 10) << shift;
    rest %= 10;
  }
  *value = quotient;
  return rest;
}

size_t resp_format_number(char text[RESP_NUMBER_SIZE], int64_t number)
{
  char digits[RESP_NUMBER_SIZE];
  size_t at = sizeof digits;
  uint64_t value = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do {
    digits[--at] = (char)('0' + take_digit(&value));
  } while (value > 0);
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

void resp_write_payload(struct resp_writer *writer, enum resp_type type, const void *data, size_t size)
{
  resp_write_header(writer, type, (int64_t)size);
  resp_write_raw(writer, data, size);
  resp_write_end(writer);
}

void resp_write_bulk(struct resp_writer *writer, const void *data, size_t size)
{
  resp_write_payload(writer, RESP_BULK_STRING, data, size);
}

void resp_write_bulk_number(struct resp_writer *writer, int64_t number)
{
  char text[RESP_NUMBER_SIZE];
  resp_write_bulk(writer, text, resp_format_number(text, number));
}

bool resp_write_line(struct resp_writer *writer, enum resp_type type, const void *text, size_t size)
{
  char first = (char)type;
  if (size > 0 && (memchr(text, '\r', size) != NULL || memchr(text, '\n', size) != NULL)) return false;
  resp_write_raw(writer, &first, 1);
  resp_write_raw(writer, text, size);
  resp_write_end(writer);
  return true;
}
