/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulator does for a board by semihosting: the command line, the exit status, and, in
 * place of the random number generator that a chip would have, the host's. The calls and their
 * numbers are those of Arm's "Semihosting for AArch32 and AArch64", which RISC-V shares.
 */
#include "board.h"
#include "port.h"

enum {
  SYS_OPEN = 0x01,
  SYS_CLOSE = 0x02,
  SYS_READ = 0x06,
  SYS_TIME = 0x11,
  SYS_GET_CMDLINE = 0x15,
  SYS_EXIT_EXTENDED = 0x20
};

#define ADP_STOPPED_APPLICATION_EXIT 0x20026U
#define OPEN_BINARY                  1U

static uintptr_t call(uintptr_t operation, const void *arguments)
{
#ifdef __riscv
  register uintptr_t a0 __asm__("a0") = operation;
  register uintptr_t a1 __asm__("a1") = (uintptr_t)arguments;
  __asm__ volatile(".option push\n.option norvc\n.balign 16\n"
                   "slli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
                   : "+r"(a0)
                   : "r"(a1)
                   : "memory");
  return a0;
#else
  register uintptr_t r0 __asm__("r0") = operation;
  register uintptr_t r1 __asm__("r1") = (uintptr_t)arguments;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
#endif
}

/* The arguments one after the other, each ended by NUL, the last by two. */
static const char *arguments(void)
{
  static char text[160];
  uintptr_t block[2] = {(uintptr_t)text, sizeof text - 1};
  if (text[0] != 0 || call(SYS_GET_CMDLINE, block) != 0) return text;
  for (char *at = text; *at != 0; at++) {
    if (*at == ' ') *at = 0;
  }
  return text;
}

const char *board_argument(unsigned index)
{
  const char *at = arguments();
  while (index-- > 0 && *at != 0) {
    while (*at != 0)
      at++;
    at++;
  }
  return *at != 0 ? at : NULL;
}

uint32_t board_argument_number(unsigned index, uint32_t otherwise)
{
  const char *at = board_argument(index);
  uint32_t number = 0;
  if (at == NULL) return otherwise;
  for (; *at >= '0' && *at <= '9'; at++)
    number = 10 * number + (uint32_t)(*at - '0');
  return number;
}

_Noreturn void board_exit(int status)
{
  uintptr_t block[2] = {ADP_STOPPED_APPLICATION_EXIT, (uintptr_t)status};
  for (;;)
    call(SYS_EXIT_EXTENDED, block);
}

bool board_secret(void *data, size_t size)
{
  static const char path[] = "/dev/urandom";
  uintptr_t open[3] = {(uintptr_t)path, OPEN_BINARY, sizeof path - 1};
  uintptr_t file = call(SYS_OPEN, open);
  if (file == UINTPTR_MAX) return false;
  uintptr_t read[3] = {file, (uintptr_t)data, size};
  bool whole = call(SYS_READ, read) == 0;
  uintptr_t close[1] = {file};
  call(SYS_CLOSE, close);
  return whole;
}

uint32_t board_random(void)
{
  uint32_t number = port_clock_ms();
  (void)board_secret(&number, sizeof number);
  return number;
}

bool board_utc(uint32_t *seconds)
{
  *seconds = (uint32_t)call(SYS_TIME, NULL);
  return true;
}
