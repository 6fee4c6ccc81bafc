/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder: bytes to events.
 *
 * Each call looks at one value. A value is taken whole or not at all, so no partial value is ever
 * remembered. All that is kept between calls is the position in the nesting, and how much of an
 * oversized payload or line is still to be skipped. Every value begins with a line: its text, or
 * the number that says what follows. Every length is checked before it is used, no byte beyond the
 * caller's `size` is ever read, and a value that is not whole yet changes nothing in the decoder.
 */
#include "resp.h"

#include <string.h>

/*
 * The types, in the order in which they are looked for, the most frequent of each group first. First
 * the integer; then those whose first line is a length, those where it is a number of elements, those
 * where it is the text; and those of one character or none.
 */
static const char types[] = ":$=!*>%~|+-,(_#";
enum { WITH_LENGTH = 1, WITH_ELEMENTS = 4, WITH_TEXT = 9, WITH_LETTER = 13, TYPES = 15 };

/* What decoder->passing says. */
enum { PASSING_NOTHING, PASSING_PAYLOAD, PASSING_LINE };

void resp_decoder_init(struct resp_decoder *decoder, uint32_t limit)
{
  memset(decoder, 0, sizeof *decoder);
  decoder->limit = limit;
}

/*
 * Reads a decimal number up to the first byte that cannot belong to it. *length: bytes read.
 * Returns false when they make no number that fits.
 */
static inline bool read_number(const uint8_t *text, size_t size, size_t *length, int64_t *number)
{
  const size_t most_digits = 19; /* as many as INT64_MAX has: they cannot overflow uint64_t */
  size_t sign = size > 0 && (text[0] == '-' || text[0] == '+');
  bool negative = sign > 0 && text[0] == '-';
  size_t end = size - sign < most_digits ? size : sign + most_digits;
  uint64_t value = 0;
  size_t i;
  for (i = sign; i < end; i++) {
    unsigned digit = (unsigned)text[i] - '0';
    if (digit > 9) break;
    value = value * 10 + digit;
  }
  *length = i;
  *number = (int64_t)(negative ? 0 - value : value);
  return i > sign && ((*number < 0) == negative || value == 0);
}

bool resp_parse_number(const void *text, size_t size, int64_t *number)
{
  int64_t value;
  size_t length;
  if (!read_number(text, size, &length, &value) || length < size) return false;
  *number = value;
  return true;
}

/* Looks for CR LF after the first length bytes of text. */
static inline int expect_end(const uint8_t *text, size_t size, size_t length)
{
  if (size > length && text[length] != '\r') return RESP_BAD_END;
  if (size < length + 2) return RESP_MORE;
  return text[length + 1] == '\n' ? RESP_EVENT : RESP_BAD_END;
}

/*
 * How many bytes come before the CR that ends the line, or before an LF, which is an error there.
 */
static inline size_t line_length(const uint8_t *text, size_t size)
{
  size_t i = 0;
  while (i < size && (text[i] > '\r' || (text[i] != '\r' && text[i] != '\n')))
    i++;
  return i;
}

/*
 * Counts a complete value towards the aggregates around it. True when the outermost value is
 * complete.
 */
static bool complete(struct resp_decoder *decoder)
{
  while (decoder->depth > 0) {
    unsigned level = decoder->depth - 1U;
    if (--decoder->left[level] > 0) return false;
    uint8_t attribute = (uint8_t)(1U << level);
    decoder->depth = (uint8_t)level;
    if (decoder->attributes & attribute) {
      decoder->attributes &= (uint8_t)~attribute; /* an attribute is not a value of its own */
      return false;
    }
  }
  return true;
}

/* Passes over what is left of an oversized payload or line. RESP_EVENT: it is over. */
static int pass_over(struct resp_decoder *decoder, const uint8_t *text, size_t size, size_t *used)
{
  size_t length;
  if (decoder->passing == PASSING_LINE) {
    length = line_length(text, size);
  } else {
    length = size < decoder->skip ? size : (size_t)decoder->skip;
    decoder->skip -= (uint32_t)length;
  }
  int result = expect_end(text, size, length);
  if (result == RESP_EVENT) {
    decoder->passing = PASSING_NOTHING;
    length += 2;
  }
  *used = length;
  return result;
}

/* A value whose first line is its text. */
static int take_text(struct resp_decoder *decoder, const uint8_t *text, size_t size, size_t *used,
                     struct resp_event *event)
{
  size_t length = line_length(text, size);
  event->data = text;
  if (length > decoder->limit) {
    event->size = (size_t)decoder->limit;
    event->cut = true;
    decoder->passing = PASSING_LINE;
    *used = length;
    return RESP_EVENT;
  }
  event->size = length;
  *used = length + 2;
  return expect_end(text, size, length);
}

/* A value whose first line is a character or nothing. */
static int take_letter(const uint8_t *text, size_t size, size_t *used, struct resp_event *event)
{
  size_t length = event->type == RESP_BOOLEAN;
  if (size < length) return RESP_MORE;
  if (length > 0 && text[0] != 't' && text[0] != 'f') return RESP_BAD_NUMBER;
  if (length > 0 && text[0] == 't') event->integer = 1;
  *used = length + 2;
  return expect_end(text, size, length);
}

/* The payload that begins at text, of event->integer bytes. */
static int take_payload(struct resp_decoder *decoder, const uint8_t *text, size_t size,
                        size_t *used, struct resp_event *event)
{
  uint32_t length = (uint32_t)event->integer;
  if (length > decoder->limit) {
    event->cut = true;
    decoder->passing = PASSING_PAYLOAD;
    decoder->skip = length;
    return RESP_EVENT;
  }
  if (size < length) return RESP_MORE;
  event->data = text;
  event->size = (size_t)length;
  *used += event->size + 2;
  return expect_end(text, size, event->size);
}

/* The head of an aggregate: opens a level, unless it is empty. */
static int take_aggregate(struct resp_decoder *decoder, const struct resp_event *event)
{
  unsigned depth = decoder->depth;
  bool attribute = event->type == RESP_ATTRIBUTE;
  if (event->type == RESP_PUSH && depth > 0) return RESP_BAD_TYPE;
  if (event->integer == 0) return RESP_EVENT;
  if (depth == RESP_DEPTH_MAX) return RESP_TOO_DEEP;
  decoder->attributes = (uint8_t)(decoder->attributes | attribute << depth);
  decoder->left[depth] = (uint32_t)event->integer << (attribute || event->type == RESP_MAP);
  decoder->depth++;
  return RESP_EVENT;
}

/* A value whose first line is a number. */
static int take_number(struct resp_decoder *decoder, const uint8_t *text, size_t size, size_t *used,
                       struct resp_event *event, unsigned place)
{
  size_t length;
  bool number = read_number(text, size, &length, &event->integer);
  int result = expect_end(text, size, length);
  if (result == RESP_MORE) return result;
  if (!number || text[length] != '\r') return RESP_BAD_NUMBER;
  length += 2;
  *used = length;
  if (result < 0 || place < WITH_LENGTH) return result;
  if (event->integer == -1 && (event->type == RESP_BULK_STRING || event->type == RESP_ARRAY)) {
    event->type = RESP_NULL;
    event->integer = 0;
    return RESP_EVENT;
  }
  if ((uint64_t)event->integer > RESP_LENGTH_MAX) return RESP_BAD_LENGTH; /* or below 0 */
  if (place >= WITH_ELEMENTS) return take_aggregate(decoder, event);
  return take_payload(decoder, text + length, size - length, used, event);
}

/*
 * Takes the value whose type byte is just before text. When it is complete, *used is set to its
 * size.
 */
static int take_value(struct resp_decoder *decoder, const uint8_t *text, size_t size, size_t *used,
                      struct resp_event *event)
{
  uint8_t type = text[-1];
  unsigned place = 0;
  while (place < TYPES && types[place] != (char)type)
    place++;
  *event = (struct resp_event){.type = (enum resp_type)type, .depth = decoder->depth};
  if (place == TYPES) return RESP_BAD_TYPE;
  if (place >= WITH_LETTER) return take_letter(text, size, used, event);
  if (place >= WITH_TEXT) return take_text(decoder, text, size, used, event);
  return take_number(decoder, text, size, used, event, place);
}

int resp_decode(struct resp_decoder *decoder, const void *data, size_t size, size_t *used,
                struct resp_event *event)
{
  const uint8_t *text = data;
  size_t passed = 0;
  size_t taken;
  int result = RESP_EVENT;
  *used = 0;
  if (decoder->error < 0 || size == 0) return decoder->error; /* no error: RESP_MORE */
  if (decoder->passing != PASSING_NOTHING) result = pass_over(decoder, text, size, &passed);
  *used = passed;
  if (result == RESP_EVENT) {
    if (passed == size) return RESP_MORE;
    passed++;
    result = take_value(decoder, text + passed, size - passed, &taken, event);
    if (result == RESP_EVENT) {
      *used = passed + taken;
      bool opened = decoder->depth > event->depth;
      bool empty_attribute = event->type == RESP_ATTRIBUTE && event->integer == 0;
      event->last = !opened && !empty_attribute && complete(decoder);
    }
  }
  if (result < 0) decoder->error = (int8_t)result;
  return result;
}
