/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same bytes give the same events, however they are split: what the decoder says of the first
 * bytes, it says of all of them, too, and leaves the same state and the same bytes to go on with; and
 * if it asks for more, then the rest, offered again with what came, gives what all would have given
 * at once. By induction over the calls, so for any number of pieces, each of up to SIZE bytes offered
 * at a time. Of a line that is passed over more may go at once: that is used up, and says nothing.
 *
 * Assumed: a valid state without an error.
 */
#include "decoder.h"

/* Where nothing is skipped, skip says nothing, nor do the counts of levels that are closed. */
static bool same_state(const struct resp_decoder *a, const struct resp_decoder *b)
{
  for (unsigned i = 0; i < RESP_DEPTH_MAX; i++) {
    if (i < a->depth && a->left[i] != b->left[i]) return false;
  }
  return a->depth == b->depth && a->attributes == b->attributes && a->passing == b->passing &&
         a->error == b->error && (a->passing != PASSING_PAYLOAD || a->skip == b->skip);
}

static bool same_event(const struct resp_event *a, const struct resp_event *b)
{
  return a->type == b->type && a->depth == b->depth && a->last == b->last && a->cut == b->cut &&
         a->integer == b->integer && a->data == b->data && a->size == b->size;
}

void harness(void)
{
  uint8_t bytes[SIZE];
  struct resp_decoder before;
  struct resp_event event, first_event;
  size_t used, first_used;
  size_t size = nondet_size();
  size_t first = nondet_size();
  ASSUME(is_valid(&before) && before.error == 0);
  ASSUME(first <= size && size <= SIZE);

  struct resp_decoder at_once = before;
  struct resp_decoder in_pieces = before;
  int result = resp_decode(&at_once, bytes, size, &used, &event);
  int first_result = resp_decode(&in_pieces, bytes, first, &first_used, &first_event);
  if (first_result == RESP_MORE) {
    size_t then_used;
    struct resp_event then_event;
    int then =
        resp_decode(&in_pieces, bytes + first_used, size - first_used, &then_used, &then_event);
    CHECK(then == result && first_used + then_used == used && same_state(&in_pieces, &at_once));
    CHECK(result != RESP_EVENT || same_event(&then_event, &event));
    REACHED(result == RESP_EVENT && first_used > 0 && before.passing == PASSING_PAYLOAD);
    REACHED(result == RESP_EVENT && first > 2 && is_payload(event.type) && event.size > 0);
    REACHED(result == RESP_MORE && first > 2);
    REACHED(result < 0 && first > 2);
  } else if (first_result == RESP_EVENT) {
    CHECK(result == RESP_EVENT && same_state(&in_pieces, &at_once) &&
          same_event(&first_event, &event));
    CHECK(first_used == used || (first_used < used && in_pieces.passing == PASSING_LINE));
    REACHED(first_used < used);
    REACHED(first_used == used && first < size && event.depth == RESP_DEPTH_MAX);
  } else {
    CHECK(result == first_result);
    REACHED(first < size);
  }
}
