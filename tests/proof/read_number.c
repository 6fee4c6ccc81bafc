/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a number: no byte outside of the text is read, at most 20 are, and a number has one at
 * least: the contract that decode.c puts in its place.
 *
 * Assumed: nothing. Texts of any size, with any bytes.
 */
#include "proof.h"

#include "resp/decode.c"

void harness(void)
{
  size_t size = nondet_size();
  size_t length;
  int64_t number;
  ASSUME(size <= ANY_SIZE);
  const uint8_t *text = any_bytes(size);
  bool good = read_number(text, size, &length, &number);
  CHECK(length <= size && length <= 20);
  CHECK(!good || length > 0);
  REACHED(good && length == 20);
  REACHED(!good && length == 20);
  REACHED(!good && length == 0);
}
