/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for the log, without printf. */
#include "board.h"

void board_write_number(uint32_t number)
{
  char text[11];
  char *at = text + sizeof text - 1;
  *at = 0;
  do {
    *--at = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  board_write(at);
}
