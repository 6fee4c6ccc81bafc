/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking a script: each byte that a packed text may have, alone, leads to no place outside of the
 * table, lets no more bytes wait than there is room for, and comes to an end; a code gives two bytes or more, a character one. A byte is unpacked before
 * the next one is looked at, so this holds for any packed text that a 0 ends.
 *
 * Assumed: the table of pairs as lock/scripts.c has it.
 */
#include "proof.h"

#include "lock/texts.c"

void harness(void)
{
  size_t longest = 0;
  for (unsigned code = 1; code < 256; code++) {
    const uint8_t packed[2] = {(uint8_t)code, 0};
    struct resp_writer nowhere;
    resp_writer_init(&nowhere, NULL, 0, 0);
    uint8_t index = (uint8_t)(code - FAIRLOCK_FIRST_CODE);
    bool stands_for_two = index < FAIRLOCK_PAIRS && fairlock_script_pairs[index][0] != 0;
    unpack_part(&nowhere, packed);
    CHECK(stands_for_two ? nowhere.total >= 2 : nowhere.total == 1);
    if (nowhere.total > longest) longest = nowhere.total;
  }
  REACHED(longest > 8);
}
