/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a number in decimal: every int64_t, in at most 20 characters, each a digit but for the
 * minus in front, and the first digit is 0 only where the number is.
 *
 * Assumed: nothing.
 */
#include "proof.h"

#include "resp/encode.c"

void harness(void)
{
  char *text = (char *)any_bytes(RESP_NUMBER_SIZE);
  int64_t number = nondet_int64();
  size_t size = resp_format_number(text, number);
  size_t sign = number < 0;
  size_t at = nondet_size(); /* any of them */
  CHECK(size > sign && size <= RESP_NUMBER_SIZE);
  CHECK(!sign || text[0] == '-');
  CHECK(at < sign || at >= size || (text[at] >= '0' && text[at] <= '9'));
  CHECK((text[sign] == '0') == (number == 0));
  CHECK(number != 0 || size == 1);
  REACHED(size == RESP_NUMBER_SIZE);
  REACHED(size == 1 && number == 0);
}
