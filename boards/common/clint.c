/* The clock and the tick of RISC-V machines with a CLINT: a counter of 64 bits, and a comparator that ends sleep. */
#include "board.h"
#include "port.h"

#define MTIMECMP_LOW  REGISTER(CLINT_BASE + 0x4000)
#define MTIMECMP_HIGH REGISTER(CLINT_BASE + 0x4004)
#define MTIME_LOW     REGISTER(CLINT_BASE + 0xbff8)
#define MTIME_HIGH    REGISTER(CLINT_BASE + 0xbffc)

#define TIMER_INTERRUPT 0x80U

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

uint32_t port_clock_ms(void)
{
  return (uint32_t)(now() / (CLOCK_HZ / 1000)) + offset;
}

/* The interrupt is enabled, but interrupts as a whole are not: it ends wfi and goes nowhere. */
void board_tick_init(void)
{
  __asm__ volatile("csrs mie, %0" ::"r"(TIMER_INTERRUPT));
}

void board_idle(void)
{
  uint64_t then = now() + CLOCK_HZ / 1000;
  MTIMECMP_HIGH = UINT32_MAX;
  MTIMECMP_LOW = (uint32_t)then;
  MTIMECMP_HIGH = (uint32_t)(then >> 32);
  __asm__ volatile("wfi" ::: "memory");
}
