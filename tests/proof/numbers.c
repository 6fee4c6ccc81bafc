/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers read back: what resp_format_number() writes resp_parse_number() reads as the same number; and
 * with HEADER, what resp_write_header() writes the decoder does, as an integer or as the count of an
 * aggregate.
 *
 * Assumed: numbers from -LARGEST to LARGEST. format.c says of every number that its digits are inside.
 */
#include "proof.h"

#include "resp/encode.c"

#include "resp/decode.c"

void harness(void)
{
  int64_t number = nondet_int64();
  ASSUME(number >= -(int64_t)LARGEST && number <= (int64_t)LARGEST);
#ifdef HEADER
  uint8_t bytes[1 + RESP_NUMBER_SIZE + 2];
  struct resp_writer writer;
  struct resp_decoder decoder;
  struct resp_event event;
  size_t used;
  enum resp_type type = nondet_bool() ? RESP_INTEGER : nondet_bool() ? RESP_MAP : RESP_PUSH;
  ASSUME(type == RESP_INTEGER || number >= 0);
  resp_writer_init(&writer, bytes, sizeof bytes, 0);
  resp_write_header(&writer, type, number);
  resp_decoder_init(&decoder, 0);
  CHECK(resp_decode(&decoder, bytes, writer.used, &used, &event) == RESP_EVENT);
  CHECK(used == writer.used && used == writer.total && event.type == type &&
        event.integer == number);
  CHECK(event.last == (type == RESP_INTEGER || number == 0));
  REACHED(type == RESP_INTEGER && number == -LARGEST);
  REACHED(type == RESP_PUSH && number == LARGEST);
#else
  char text[RESP_NUMBER_SIZE];
  int64_t parsed;
  CHECK(resp_parse_number(text, resp_format_number(text, number), &parsed));
  CHECK(parsed == number);
  REACHED(number == -LARGEST);
  REACHED(number == 0);
#endif
}
