/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start-up of RV32 in machine mode: memory, a tick of 1 kHz, and sleep. No interrupt is ever taken:
 * the timer's merely ends `wfi`. An exception ends the simulation with status 99 rather than
 * hanging.
 */
#include "board.h"

#include <string.h>

extern uint8_t board_data_start[], board_data_end[], board_data_load[], board_bss_start[],
    board_bss_end[];

_Noreturn void board_fault(void);
_Noreturn void board_start(void);

__asm__(".section .vectors,\"ax\"\n"
        ".globl board_reset\n"
        "board_reset:\n"
        ".option push\n"
        ".option norelax\n"
        "  la gp, __global_pointer$\n"
        ".option pop\n"
        "  la sp, board_stack_top\n"
        "  la t0, board_fault\n"
        "  csrw mtvec, t0\n"
        "  j board_start\n"
        ".text\n");

__attribute__((aligned(4))) _Noreturn void board_fault(void)
{
  board_write("fault\n");
  board_exit(99);
}

_Noreturn void board_start(void)
{
  board_stack_paint();
  memcpy(board_data_start, board_data_load, (size_t)(board_data_end - board_data_start));
  memset(board_bss_start, 0, (size_t)(board_bss_end - board_bss_start));
  board_clock_init();
  board_log_init();
  board_tick_init();
  board_exit(main());
}
