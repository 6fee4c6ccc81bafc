/*
 * The states that a decoder can be in, and what one call may do: for decode.c and split.c.
 */
#ifndef PROOF_DECODER_H
#define PROOF_DECODER_H

#include "proof.h"

#include "resp/decode.c"

/* What resp_decoder_init() leaves, and each call keeps. */
static bool is_valid(const struct resp_decoder *decoder)
{
  if (decoder->depth > RESP_DEPTH || decoder->passing > PASSING_LINE) return false;
  if (decoder->attributes >> decoder->depth != 0) return false;
  if (decoder->error > 0 || decoder->error < RESP_TOO_DEEP) return false;
  for (unsigned i = 0; i < RESP_DEPTH; i++) {
    if (i < decoder->depth && decoder->left[i] == 0) return false;
  }
  return true;
}

/* The text of such an event is its first line. */
static bool is_line(enum resp_type type)
{
  return type == RESP_SIMPLE_STRING || type == RESP_SIMPLE_ERROR || type == RESP_DOUBLE ||
         type == RESP_BIG_NUMBER;
}

/* The text of such an event follows its length. */
static bool is_payload(enum resp_type type)
{
  return type == RESP_BULK_STRING || type == RESP_BULK_ERROR || type == RESP_VERBATIM_STRING;
}

#endif
