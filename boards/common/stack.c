/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how deep the stack grew: start-up fills it with a pattern, and what still shows the
 * pattern was never used. A frame that is allocated but not written can hide below the mark; the
 * estimate along the call graph cannot miss it.
 */
#include "board.h"

#define PATTERN 0xdeadbeefU

/* Called before anything is on the stack but this function's own frame, which stays unpainted. */
void board_stack_paint(void)
{
  uint32_t here;
  for (uint32_t *word = board_stack_bottom; word + 16 < &here; word++)
    *word = PATTERN;
}

size_t board_stack_used(void)
{
  const uint32_t *word = board_stack_bottom;
  while (word < board_stack_top && *word == PATTERN)
    word++;
  return (size_t)(board_stack_top - word) * sizeof *word;
}
