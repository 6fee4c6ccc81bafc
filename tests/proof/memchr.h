/* SPDX-License-Identifier: Apache-2.0 */
/* memchr(), which CBMC's own library lacks. */
#ifndef PROOF_MEMCHR_H
#define PROOF_MEMCHR_H

#include "proof.h"

#include <string.h>

void *memchr(const void *text, int byte, size_t size)
{
  const uint8_t *at = text;
  CHECK(size == 0 || __CPROVER_r_ok(text, size));
  for (size_t i = 0; i < size; i++) {
    if (at[i] == (uint8_t)byte) return (void *)&at[i];
  }
  return NULL;
}

#endif
