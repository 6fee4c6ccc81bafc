/* SPDX-License-Identifier: Apache-2.0 */
/* The UARTs of Arm's CMSDK, polled: one for the log, one as a line to the outside. */
#include "board.h"

#define DATA(base)    REGISTER((base) + 0x00)
#define STATE(base)   REGISTER((base) + 0x04)
#define CONTROL(base) REGISTER((base) + 0x08)
#define BAUDDIV(base) REGISTER((base) + 0x10)

#define TX_FULL   1U
#define RX_FULL   2U
#define TX_ENABLE 1U
#define RX_ENABLE 2U

void board_log_init(void)
{
  BAUDDIV(UART_BASE) = CLOCK_HZ / 115200;
  CONTROL(UART_BASE) = TX_ENABLE;
}

void board_write(const char *text)
{
  for (; *text != 0; text++) {
    while (STATE(UART_BASE) & TX_FULL)
      continue;
    DATA(UART_BASE) = (uint8_t)*text;
  }
}

void board_line_init(void)
{
  BAUDDIV(LINE_BASE) = 16;
  CONTROL(LINE_BASE) = TX_ENABLE | RX_ENABLE;
}

size_t board_line_read(void *data, size_t size)
{
  uint8_t *bytes = data;
  size_t done = 0;
  while (done < size && STATE(LINE_BASE) & RX_FULL)
    bytes[done++] = (uint8_t)DATA(LINE_BASE);
  return done;
}

size_t board_line_write(const void *data, size_t size)
{
  const uint8_t *bytes = data;
  size_t done = 0;
  while (done < size && !(STATE(LINE_BASE) & TX_FULL))
    DATA(LINE_BASE) = bytes[done++];
  return done;
}
