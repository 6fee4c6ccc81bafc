/* SPDX-License-Identifier: Apache-2.0 */
/* Which events of the decoder have a text. */
#ifndef PROOF_EVENT_H
#define PROOF_EVENT_H

#include "resp.h"

/* The text of such an event is its first line. */
static inline bool is_line(enum resp_type type)
{
  return type == RESP_SIMPLE_STRING || type == RESP_SIMPLE_ERROR || type == RESP_DOUBLE ||
         type == RESP_BIG_NUMBER;
}

/* The text of such an event follows its length. */
static inline bool is_payload(enum resp_type type)
{
  return type == RESP_BULK_STRING || type == RESP_BULK_ERROR || type == RESP_VERBATIM_STRING;
}

static inline bool has_text(enum resp_type type)
{
  return is_line(type) || is_payload(type);
}

#endif
