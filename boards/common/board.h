/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the examples and the tests need from a board, besides the clock of port.h. One driver per
 * peripheral implements it; a board's board.mk picks drivers and says where their registers are.
 */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))

/* Written by the linker script; only their addresses mean anything. */
extern uint32_t board_stack_bottom[], board_stack_top[];

/* The program. Its result ends the simulation as the exit status. */
int main(void);

/*
 * board_clock_init() starts the clock's counter, before anything else runs. The other function sets
 * the counter, for a test, before anything reads it.
 */
void board_clock_init(void);
void board_clock_set(uint32_t ms);

/* The log: a UART. */
void board_log_init(void);
void board_write(const char *text);
void board_write_number(uint32_t number);

/* A second UART, as a serial line. Both return how many bytes they moved, possibly 0. */
void board_line_init(void);
size_t board_line_read(void *data, size_t size);
size_t board_line_write(const void *data, size_t size);

/* Sleeps until the next interrupt, at most about a millisecond. */
void board_idle(void);

/*
 * Starts the tick of 1 kHz that ends board_idle(). It keeps no time: some of its interrupts may get
 * lost.
 */
void board_tick_init(void);

/*
 * A number that differs after each start: for TCP's port numbers, and for port_uart_init(). A chip
 * has a random number generator for it, or counts its starts in memory that stays.
 */
uint32_t board_random(void);

/*
 * Fills data with bytes that nobody can guess, for keys. A chip has a random number generator for
 * it, and no other source will do. False: no such bytes.
 */
bool board_secret(void *data, size_t size);

/*
 * The seconds since 1970-01-01 00:00 UTC, from a clock that goes on without power, or from a
 * trusted source; in the simulator, the host's. False: it is not known.
 */
bool board_utc(uint32_t *seconds);

/* Does not return: ends the simulation with this status. A real board would reset or stop. */
_Noreturn void board_exit(int status);

/*
 * Argument `index` of the command line that the simulator was given, 1 being the first; NULL: there
 * is none.
 */
const char *board_argument(unsigned index);

/* The same as a number; otherwise: if it is missing. */
uint32_t board_argument_number(unsigned index, uint32_t otherwise);

/* Fills the stack with the pattern; called by start-up. */
void board_stack_paint(void);

/*
 * The greatest depth of the stack so far, in bytes: what is left of the pattern that start-up
 * filled it with was never used.
 */
size_t board_stack_used(void);

/* Ethernet: whole frames without their checksum. */
bool ethernet_init(uint8_t address[6]);
bool ethernet_send(const uint8_t *frame, size_t size);
/* 0: none; a frame that does not fit is dropped */
size_t ethernet_receive(uint8_t *frame, size_t size);

#endif
