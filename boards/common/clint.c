/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock and the tick of RISC-V machines with a CLINT: a counter of 64 bits, and a comparator
 * that ends sleep.
 */
#include "board.h"
#include "port.h"

#define MTIMECMP_LOW  REGISTER(CLINT_BASE + 0x4000)
#define MTIMECMP_HIGH REGISTER(CLINT_BASE + 0x4004)
#define MTIME_LOW     REGISTER(CLINT_BASE + 0xbff8)
#define MTIME_HIGH    REGISTER(CLINT_BASE + 0xbffc)

#define TIMER_INTERRUPT 0x80U

#define TICKS_PER_MS (CLOCK_HZ / 1000)

_Static_assert(TICKS_PER_MS > 0 && TICKS_PER_MS <= 0x10000,
               "milliseconds() divides by no more than 16 bits");

static uint64_t now(void)
{
  uint32_t high, low;
  do {
    high = MTIME_HIGH;
    low = MTIME_LOW;
  } while (high != MTIME_HIGH);
  return (uint64_t)high << 32 | low;
}

void board_clock_init(void)
{
}

static uint32_t offset;

void board_clock_set(uint32_t ms)
{
  offset += ms - port_clock_ms();
}

/*
 * The counter divided by the ticks of a millisecond, modulo 2^32. Long division by digits of 16
 * bits, as by hand, because a 64-bit division is a kilobyte of code.
 */
static uint32_t milliseconds(uint64_t count)
{
  uint32_t high = (uint32_t)(count >> 32) % TICKS_PER_MS;
  uint32_t middle = high << 16 | (uint32_t)count >> 16;
  uint32_t low = middle % TICKS_PER_MS << 16 | ((uint32_t)count & 0xffffU);
  return (middle / TICKS_PER_MS << 16) + low / TICKS_PER_MS;
}

uint32_t port_clock_ms(void)
{
  return milliseconds(now()) + offset;
}

/* The interrupt is enabled, but interrupts as a whole are not: it ends wfi, and no handler runs. */
void board_tick_init(void)
{
  __asm__ volatile("csrs mie, %0" ::"r"(TIMER_INTERRUPT));
}

void board_idle(void)
{
  uint64_t then = now() + TICKS_PER_MS;
  MTIMECMP_HIGH = UINT32_MAX;
  MTIMECMP_LOW = (uint32_t)then;
  MTIMECMP_HIGH = (uint32_t)(then >> 32);
  __asm__ volatile("wfi" ::: "memory");
}
