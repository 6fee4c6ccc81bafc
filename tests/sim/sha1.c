/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 as FIPS 180-4 describes it, over a whole message in memory. */
#include "sha1.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint32_t rotate(uint32_t x, int by)
{
  return x << by | x >> (32 - by);
}

static void take_block(uint32_t state[5], const uint8_t block[64])
{
  static const uint32_t constants[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
  uint32_t w[80];
  uint32_t s[5];
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 80; i++) {
    if (i < 16)
      w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
             (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    else w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    uint32_t f = s[1] ^ s[2] ^ s[3];
    if (i < 20) f = (s[1] & s[2]) | (~s[1] & s[3]);
    else if (i >= 40 && i < 60) f = (s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3]);
    uint32_t next = rotate(s[0], 5) + f + s[4] + constants[i / 20] + w[i];
    s[4] = s[3];
    s[3] = s[2];
    s[2] = rotate(s[1], 30);
    s[1] = s[0];
    s[0] = next;
  }
  for (int i = 0; i < 5; i++)
    state[i] += s[i];
}

void sha1_hex(const void *data, size_t size, char digest[41])
{
  uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  const uint8_t *bytes = data;
  size_t at = 0;
  for (; size - at >= 64; at += 64)
    take_block(state, bytes + at);
  uint8_t tail[128] = {0};
  size_t left = size - at;
  size_t end = left < 56 ? 64 : 128;
  memcpy(tail, bytes + at, left);
  tail[left] = 0x80;
  for (size_t i = 0; i < 8; i++)
    tail[end - 1 - i] = (uint8_t)((uint64_t)size * 8 >> (8 * i));
  take_block(state, tail);
  if (end == 128) take_block(state, tail + 64);
  for (int i = 0; i < 5; i++)
    snprintf(digest + 8 * i, 9, "%08" PRIx32, state[i]);
}
