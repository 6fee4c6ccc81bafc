/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a line: it is inside the text or at its end, no byte outside is read, and the search
 * comes to an end: the contract that decode.c puts in its place.
 *
 * Assumed: nothing. Texts of any size, with any bytes: by an invariant of the loop.
 */
#include "proof.h"

#include "resp/decode.c"

void harness(void)
{
  size_t size = nondet_size();
  ASSUME(size <= ANY_SIZE);
  const uint8_t *text = any_bytes(size);
  size_t length = line_length(text, size);
  CHECK(length <= size);
  CHECK(length == size || text[length] == '\r' || text[length] == '\n');
  REACHED(length == size && size > 0);
  REACHED(length < size && text[length] == '\n' && length > 1000);
}
