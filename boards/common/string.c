/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of string.h that the images need, a byte at a time. Those of the C library are made
 * for speed, which costs a kilobyte that nothing here needs. Any other function still comes from
 * the library.
 *
 * Compiled so that the compiler does not turn memcpy's own loop into a call of memcpy.
 */
#include <stdint.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
  uint8_t *out = to;
  const uint8_t *in = from;
  for (; size > 0; size--)
    *out++ = *in++;
  return to;
}

void *memmove(void *to, const void *from, size_t size)
{
  uint8_t *out = to;
  const uint8_t *in = from;
  /* its end overlaps nothing */
  if ((uintptr_t)out - (uintptr_t)in >= size) return memcpy(to, from, size);
  while (size-- > 0)
    out[size] = in[size];
  return to;
}

void *memset(void *to, int value, size_t size)
{
  uint8_t *out = to;
  for (; size > 0; size--)
    *out++ = (uint8_t)value;
  return to;
}

int memcmp(const void *left, const void *right, size_t size)
{
  const uint8_t *a = left, *b = right;
  for (; size > 0; size--, a++, b++) {
    if (*a != *b) return *a - *b;
  }
  return 0;
}

void *memchr(const void *where, int value, size_t size)
{
  const uint8_t *at = where;
  for (; size > 0; size--, at++) {
    if (*at == (uint8_t)value) return (void *)(uintptr_t)at;
  }
  return NULL;
}

size_t strlen(const char *text)
{
  const char *end = text;
  while (*end != 0)
    end++;
  return (size_t)(end - text);
}
