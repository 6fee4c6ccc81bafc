/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states that a decoder can be in, and what one call may do: for decode.c and split.c.
 */
#ifndef PROOF_DECODER_H
#define PROOF_DECODER_H

#include "proof.h"

#include "resp/decode.c"

#include "event.h"

/* What resp_decoder_init() leaves, and each call keeps. */
static bool is_valid(const struct resp_decoder *decoder)
{
  if (decoder->depth > RESP_DEPTH_MAX || decoder->passing > PASSING_LINE) return false;
  if (decoder->attributes >> decoder->depth != 0) return false;
  if (decoder->error > 0 || decoder->error < RESP_TOO_DEEP) return false;
  for (unsigned i = 0; i < RESP_DEPTH_MAX; i++) {
    if (i < decoder->depth && decoder->left[i] == 0) return false;
  }
  return true;
}

#endif
