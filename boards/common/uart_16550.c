/* SPDX-License-Identifier: Apache-2.0 */
/* The log on a UART 16550 with registers of one byte. */
#include "board.h"

#define TRANSMIT    (*(volatile uint8_t *)(UART_BASE + 0))
#define LINE_STATUS (*(volatile uint8_t *)(UART_BASE + 5))
#define TX_EMPTY    0x20U

void board_log_init(void)
{
}

void board_write(const char *text)
{
  for (; *text != 0; text++) {
    while (!(LINE_STATUS & TX_EMPTY))
      continue;
    TRANSMIT = (uint8_t)*text;
  }
}
