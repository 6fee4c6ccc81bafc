/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start-up of Cortex-M0 to M33: the vector table, memory, a tick of 1 kHz, and sleep. A fault ends
 * the simulation with status 99 rather than hanging.
 */
#include "board.h"

#include <string.h>

#define SYST_CSR REGISTER(0xe000e010) /* Armv6-M, v7-M, v8-M: the same */
#define SYST_RVR REGISTER(0xe000e014)
#define SYST_CVR REGISTER(0xe000e018)

extern uint8_t board_data_start[], board_data_end[], board_data_load[], board_bss_start[],
    board_bss_end[];

_Noreturn void board_reset(void);
void board_fault(void);
void board_tick(void);
void board_pend(void);
void board_call(void);

/* A kernel takes these three over. */
__attribute__((weak)) void board_tick(void)
{
}

__attribute__((weak)) void board_pend(void)
{
}

__attribute__((weak)) void board_call(void)
{
  board_fault();
}

void board_fault(void)
{
  board_write("fault\n");
  board_exit(99);
}

_Noreturn void board_reset(void)
{
  board_stack_paint();
  memcpy(board_data_start, board_data_load, (size_t)(board_data_end - board_data_start));
  memset(board_bss_start, 0, (size_t)(board_bss_end - board_bss_start));
  board_clock_init();
  board_log_init();
  board_tick_init();
  board_exit(main());
}

void board_tick_init(void)
{
  SYST_RVR = CLOCK_HZ / 1000 - 1;
  SYST_CVR = 0;
  SYST_CSR = 7; /* the processor's clock, with interrupt, on */
}

void board_idle(void)
{
  __asm__ volatile("wfi" ::: "memory");
}

typedef void (*handler)(void);

__attribute__((section(".vectors"), used)) static const handler vectors[16] = {
    (handler)(uintptr_t)board_stack_top,
    board_reset,
    board_fault, /* NMI */
    board_fault, /* HardFault */
    board_fault,
    board_fault,
    board_fault,
    board_fault,
    NULL,
    NULL,
    NULL,
    board_call,
    board_fault,
    NULL,
    board_pend,
    board_tick,
};
