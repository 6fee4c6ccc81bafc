/*
 * The decoder: bytes to events.
 *
 * Each call looks at one value. A value is taken whole or not at all, so nothing is remembered of a
 * part of it; what is kept between calls is only where in the nesting the stream stands, and how much of an
 * oversized payload is still to be passed over. Every length is checked before it is used, and
 * no byte before `size` is read twice as anything else.
 */
#include "resp.h"

#include <string.h>

void resp_decoder_init(struct resp_decoder *decoder, uint32_t limit)
{
  memset(decoder, 0, sizeof *decoder);
  decoder->limit = limit < RESP_MAX_LENGTH ? limit : RESP_MAX_LENGTH;
}

bool resp_parse_number(const void *text, size_t size, int64_t *number)
{
  const uint8_t *at = text;
  size_t i = size > 0 && (at[0] == '-' || at[0] == '+');
  bool negative = i > 0 && at[0] == '-';
  uint64_t value = 0;
  if (i == size) return false;
  for (; i < size; i++) {
    const uint64_t most = INT64_MAX / 10;
    unsigned digit = (unsigned)at[i] - '0';
    if (digit > 9 || value > most || (value == most && digit > 7U + negative)) return false;
    value = value * 10 + digit;
  }
  *number = negative ? (int64_t)(0 - value) : (int64_t)value;
  return true;
}

/* Reads the number and its CR LF that begin at text. Returns the bytes used, 0 when more are needed, or an error. */
static int read_number(const uint8_t *text, size_t size, int64_t *number)
{
  const size_t longest = RESP_NUMBER_SIZE + 1; /* with its CR */
  const uint8_t *end = memchr(text, '\r', size < longest ? size : longest);
  if (end == NULL) return size < longest ? 0 : RESP_BAD_NUMBER;
  if (!resp_parse_number(text, (size_t)(end - text), number)) return RESP_BAD_NUMBER;
  if (end + 1 == text + size) return 0;
  return end[1] == '\n' ? (int)(end - text) + 2 : RESP_BAD_END;
}

/* Counts a complete value against the aggregates around it. True when the outermost value is complete. */
static bool complete(struct resp_decoder *decoder)
{
  while (decoder->depth > 0) {
    unsigned level = decoder->depth - 1U;
    if (--decoder->left[level] > 0) return false;
    decoder->depth--;
    if (decoder->attributes >> level & 1U) {
      decoder->attributes &= (uint8_t) ~(1U << level); /* an attribute is no value of its own */
      return false;
    }
  }
  return true;
}

/* Passes over what is left of an oversized payload or line. */
static int pass_over(struct resp_decoder *decoder, const uint8_t *text, size_t size, size_t *used)
{
  if (decoder->line) {
    const uint8_t *end = memchr(text, '\r', size);
    if (end == NULL || end + 1 == text + size) {
      *used = end == NULL ? size : (size_t)(end - text);
      return RESP_MORE;
    }
    if (end[1] != '\n') return RESP_BAD_END;
    *used = (size_t)(end - text) + 2;
    decoder->line = false;
    return RESP_EVENT;
  }
  while (*used < size && decoder->skip > 0) {
    if (decoder->skip > 2) {
      size_t payload = decoder->skip - 2;
      size_t step = size - *used < payload ? size - *used : payload;
      *used += step;
      decoder->skip -= (uint32_t)step;
    } else {
      if (text[*used] != (decoder->skip == 2 ? '\r' : '\n')) return RESP_BAD_END;
      *used += 1;
      decoder->skip--;
    }
  }
  return decoder->skip > 0 ? RESP_MORE : RESP_EVENT;
}

/* A value whose text ends with its line. */
static int take_line(struct resp_decoder *decoder, const uint8_t *text, size_t size, struct resp_event *event)
{
  size_t room = (size_t)decoder->limit + 1; /* the longest text, and its CR */
  size_t seen = size < room ? size : room;
  const uint8_t *end = memchr(text, '\r', seen);
  event->data = text;
  if (end == NULL) {
    if (memchr(text, '\n', seen) != NULL) return RESP_BAD_END;
    if (seen < room) return 0;
    event->size = decoder->limit;
    event->cut = true;
    decoder->line = true;
    return (int)event->size;
  }
  event->size = (size_t)(end - text);
  if (memchr(text, '\n', event->size) != NULL) return RESP_BAD_END;
  if (event->size + 1 == size) return 0;
  if (end[1] != '\n') return RESP_BAD_END;
  return (int)event->size + 2;
}

/* A value whose header gives its length in bytes. head: bytes of the header. */
static int take_payload(struct resp_decoder *decoder, const uint8_t *text, size_t size, int head,
                        struct resp_event *event)
{
  int64_t length = event->integer;
  if (length == -1 && event->type == RESP_BULK_STRING) {
    event->type = RESP_NULL;
    event->integer = 0;
    return head;
  }
  if (length < 0 || length > RESP_MAX_LENGTH) return RESP_BAD_LENGTH;
  if (length > decoder->limit) {
    event->cut = true;
    decoder->skip = (uint32_t)length + 2;
    return head;
  }
  size_t payload = (size_t)length;
  if (size - (size_t)head < payload + 2) return 0;
  event->data = text + head;
  event->size = payload;
  if (event->data[payload] != '\r' || event->data[payload + 1] != '\n') return RESP_BAD_END;
  return head + (int)payload + 2;
}

/* The head of an aggregate: opens a level, unless it is empty. head: bytes of the header. */
static int take_aggregate(struct resp_decoder *decoder, int head, struct resp_event *event)
{
  int64_t count = event->integer;
  if (count == -1 && event->type == RESP_ARRAY) {
    event->type = RESP_NULL;
    event->integer = 0;
    return head;
  }
  if (count < 0 || count > RESP_MAX_LENGTH) return RESP_BAD_LENGTH;
  if (event->type == RESP_PUSH && decoder->depth > 0) return RESP_BAD_TYPE;
  if (count == 0) return head;
  if (decoder->depth == RESP_DEPTH) return RESP_TOO_DEEP;
  bool pairs = event->type == RESP_MAP || event->type == RESP_ATTRIBUTE;
  if (event->type == RESP_ATTRIBUTE) decoder->attributes |= (uint8_t)(1U << decoder->depth);
  decoder->left[decoder->depth++] = (uint32_t)count * (pairs ? 2U : 1U);
  return head;
}

/* Takes the value whose first byte is text[0]. Returns the bytes used, 0 when more are needed, or an error. */
static int take_value(struct resp_decoder *decoder, const uint8_t *text, size_t size, struct resp_event *event)
{
  int used;
  event->type = (enum resp_type)text[0];
  switch (event->type) {
  case RESP_SIMPLE_STRING:
  case RESP_SIMPLE_ERROR:
  case RESP_DOUBLE:
  case RESP_BIG_NUMBER:
    used = take_line(decoder, text + 1, size - 1, event);
    return used > 0 || event->cut ? used + 1 : used;
  case RESP_NULL:
    if (size < 3) return size == 2 && text[1] != '\r' ? RESP_BAD_NUMBER : 0;
    return text[1] == '\r' && text[2] == '\n' ? 3 : RESP_BAD_NUMBER;
  case RESP_BOOLEAN:
    if (size > 1 && text[1] != 't' && text[1] != 'f') return RESP_BAD_NUMBER;
    if (size < 4) return 0;
    event->integer = text[1] == 't';
    return text[2] == '\r' && text[3] == '\n' ? 4 : RESP_BAD_END;
  case RESP_INTEGER:
  case RESP_BULK_STRING:
  case RESP_BULK_ERROR:
  case RESP_VERBATIM_STRING:
  case RESP_ARRAY:
  case RESP_MAP:
  case RESP_SET:
  case RESP_ATTRIBUTE:
  case RESP_PUSH:
    break;
  default:
    return RESP_BAD_TYPE;
  }
  used = read_number(text + 1, size - 1, &event->integer);
  if (used <= 0) return used;
  used++;
  switch (event->type) {
  case RESP_INTEGER:
    return used;
  case RESP_BULK_STRING:
  case RESP_BULK_ERROR:
  case RESP_VERBATIM_STRING:
    return take_payload(decoder, text, size, used, event);
  default:
    return take_aggregate(decoder, used, event);
  }
}

int resp_decode(struct resp_decoder *decoder, const void *data, size_t size, size_t *used, struct resp_event *event)
{
  const uint8_t *text = data;
  *used = 0;
  if (decoder->error < 0) return decoder->error;
  int result = RESP_EVENT;
  if (decoder->line || decoder->skip > 0) result = pass_over(decoder, text, size, used);
  if (result == RESP_EVENT) {
    if (*used == size) return RESP_MORE;
    memset(event, 0, sizeof *event);
    unsigned depth = decoder->depth;
    result = take_value(decoder, text + *used, size - *used, event);
    if (result > 0) {
      *used += (size_t)result;
      event->depth = (uint8_t)depth;
      bool opened = decoder->depth > depth;
      bool empty_attribute = event->type == RESP_ATTRIBUTE && event->integer == 0;
      event->last = !opened && !empty_attribute && complete(decoder);
      return RESP_EVENT;
    }
  }
  if (result < 0) decoder->error = (int8_t)result;
  return result;
}
