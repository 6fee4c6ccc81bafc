/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of the decoder, and so any sequence of calls: nothing outside of the bytes it was given
 * is read, its state stays valid, and the event's text lies in these bytes. An event uses a byte at
 * least; a value that is not whole changes nothing in the nesting; in a buffer of limit +
 * RESP_OVERHEAD bytes, there is room for more. An error stays. After resp_decoder_init(), the state
 * is valid.
 *
 * Assumed: a valid state; the bytes may be any. With CONTRACTS, read_number() and line_length() do
 * anything that their own proofs allow, and there may be any number of bytes; without, nothing is
 * left out, and there are at most SIZE.
 */
#include "decoder.h"

#ifdef CONTRACTS
#define SIZE ANY_SIZE
#endif

size_t any_line(const uint8_t *text, size_t size);
bool any_number(const uint8_t *text, size_t size, size_t *length, int64_t *number);

/* What line_length.c proves of line_length(). */
size_t any_line(const uint8_t *text, size_t size)
{
  size_t length = nondet_size();
  CHECK(size == 0 || __CPROVER_r_ok(text, size));
  ASSUME(length <= size);
  ASSUME(length == size || text[length] == '\r' || text[length] == '\n');
  return length;
}

/* What read_number.c proves of read_number(). */
bool any_number(const uint8_t *text, size_t size, size_t *length, int64_t *number)
{
  bool good = nondet_bool();
  CHECK(size == 0 || __CPROVER_r_ok(text, size));
  *length = nondet_size();
  *number = nondet_int64();
  ASSUME(*length <= size && *length <= 20);
  ASSUME(!good || *length > 0);
  return good;
}

static void check_event(const struct resp_event *event, const struct resp_decoder *decoder,
                        const struct resp_decoder *before, const uint8_t *bytes, size_t size,
                        size_t used)
{
  CHECK(used >= 1);
  CHECK(used >= 3 || event->cut || before->passing != PASSING_NOTHING);
  CHECK(event->depth == before->depth);
  CHECK(event->size <= decoder->limit);
  if (event->data == NULL) {
    CHECK(event->size == 0 && !is_line(event->type) && (event->cut || !is_payload(event->type)));
  } else {
    CHECK(event->data >= bytes && event->size <= size &&
          (size_t)(event->data - bytes) <= size - event->size);
  }
  CHECK(!event->last || decoder->depth == 0);
  CHECK(event->type == RESP_INTEGER || (event->integer >= 0 && event->integer <= RESP_LENGTH_MAX));
  REACHED(event->last && event->depth == RESP_DEPTH_MAX);
  REACHED(event->cut && is_line(event->type));
  REACHED(event->cut && is_payload(event->type));
  REACHED(!event->cut && event->size > 0 && is_payload(event->type));
  REACHED(event->type == RESP_MAP && event->integer > 0 && event->depth == RESP_DEPTH_MAX - 1);
  REACHED(event->type == RESP_ATTRIBUTE && event->integer == 0);
  REACHED(event->type == RESP_NULL && !event->last && before->passing == PASSING_PAYLOAD);
  REACHED(before->passing == PASSING_LINE);
}

void harness(void)
{
  struct resp_decoder decoder;
  struct resp_event event;
  size_t size = nondet_size();
  size_t used;

  resp_decoder_init(&decoder, nondet_uint32());
  CHECK(is_valid(&decoder));

  struct resp_decoder before;
  ASSUME(is_valid(&before) && size <= SIZE);
  const uint8_t *bytes = any_bytes(size);
  decoder = before;
  int result = resp_decode(&decoder, bytes, size, &used, &event);
  CHECK(is_valid(&decoder) && decoder.limit == before.limit);
  CHECK(used <= size);
  CHECK(result >= RESP_TOO_DEEP && result <= RESP_EVENT);
  CHECK(decoder.error == (result < 0 ? result : 0));
  CHECK(before.error == 0 || (result == before.error && used == 0));
  if (result == RESP_EVENT) check_event(&event, &decoder, &before, bytes, size, used);
  if (result == RESP_MORE) {
    CHECK(size - used < (size_t)decoder.limit + RESP_OVERHEAD);
    CHECK(decoder.depth == before.depth && decoder.attributes == before.attributes);
    for (unsigned i = 0; i < RESP_DEPTH_MAX; i++)
      CHECK(decoder.left[i] == before.left[i]);
    REACHED(used == 0 && size >= RESP_OVERHEAD - 2);
    REACHED(used > 1 && before.passing == PASSING_LINE);
    REACHED(used > 1 && before.passing == PASSING_PAYLOAD);
  }
  REACHED(result == RESP_BAD_TYPE && before.error == 0);
  REACHED(result == RESP_BAD_NUMBER && before.error == 0);
  REACHED(result == RESP_BAD_LENGTH && before.error == 0);
  REACHED(result == RESP_BAD_END && before.error == 0);
  REACHED(result == RESP_TOO_DEEP && before.error == 0);
}
