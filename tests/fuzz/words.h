/* SPDX-License-Identifier: Apache-2.0 */
/* For the targets that read words: what they have to be, and strings of an input's bytes. */
#ifndef WORDS_H
#define WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool condition, const char *what)
{
  if (condition) return;
  printf("violated: %s\n", what);
  (void)fflush(stdout);
  abort();
}

/* A string of the bytes up to the first NUL, in memory of exactly its size. */
static inline char *string_of(const uint8_t *data, size_t size)
{
  size_t length = 0;
  while (length < size && data[length] != 0)
    length++;
  char *text = malloc(length + 1);
  require(text != NULL, "there is memory");
  if (length > 0) memcpy(text, data, length);
  text[length] = 0;
  return text;
}

#endif
