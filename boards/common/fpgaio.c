/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of the MPS2+ boards: a free-running counter of 32 bits behind a prescaler, in the
 * FPGA's I/O block. Unlike a count of tick interrupts it loses nothing, however long the processor
 * is stopped.
 */
#include "board.h"
#include "port.h"

#define COUNTER   REGISTER(FPGAIO_BASE + 0x18)
#define PRESCALER REGISTER(FPGAIO_BASE + 0x1c)

void board_clock_init(void)
{
  PRESCALER = CLOCK_HZ / 1000 - 1;
  COUNTER = 0;
}

void board_clock_set(uint32_t ms)
{
  COUNTER = ms;
}

uint32_t port_clock_ms(void)
{
  return COUNTER;
}
