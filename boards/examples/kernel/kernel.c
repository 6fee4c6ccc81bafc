/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small kernel; see kernel.h. The tick makes PendSV pending, as blocking does; PendSV, of the
 * lowest priority, saves the registers of one task on its stack and takes those of the next from
 * there. It is written with the instructions of Armv6-M.
 */
#include "kernel.h"
#include "board.h"
#include "port.h"

#define ICSR       REGISTER(0xe000ed04)
#define ICSR_PEND  (1U << 28)
#define SHPR3      REGISTER(0xe000ed20)
#define LOWEST     0xffff0000U /* PendSV and the tick */
#define PATTERN    0xdeadbeefU
#define XPSR_THUMB 0x01000000U

static struct kernel_task idle = {.next = &idle};
static struct kernel_task *volatile current = &idle;
static volatile bool running, stopped;

void board_tick(void);
void board_pend(void);
uint32_t *kernel_switch(uint32_t *sp);

static bool ready(const struct kernel_task *task)
{
  if (task->blocked_on == NULL) return true;
  return task->limit_ms != KERNEL_FOREVER && port_clock_ms() - task->blocked_at >= task->limit_ms;
}

/* The next ready task in the ring; idle when none is ready. Called by PendSV. */
__attribute__((used)) uint32_t *kernel_switch(uint32_t *sp)
{
  struct kernel_task *next = current->next;
  current->sp = sp;
  while (next != current && (next == &idle || !ready(next)))
    next = next->next;
  if (stopped || next == &idle || !ready(next)) next = &idle;
  next->blocked_on = NULL;
  current = next;
  return next->sp;
}

void board_tick(void)
{
  if (running) ICSR = ICSR_PEND;
}

/* Registers 0 to 3, 12, lr, pc and psr are on the task's stack already; 4 to 11 follow. */
__attribute__((naked)) void board_pend(void)
{
  __asm__(".syntax unified\n"
          "mrs r0, psp\n"
          "subs r0, #32\n"
          "mov r1, r0\n"
          "stmia r1!, {r4-r7}\n"
          "mov r4, r8\n"
          "mov r5, r9\n"
          "mov r6, r10\n"
          "mov r7, r11\n"
          "stmia r1!, {r4-r7}\n"
          "push {r2, lr}\n"
          "bl kernel_switch\n"
          "pop {r2, r3}\n"
          "mov lr, r3\n"
          "adds r0, #16\n"
          "ldmia r0!, {r4-r7}\n"
          "mov r8, r4\n"
          "mov r9, r5\n"
          "mov r10, r6\n"
          "mov r11, r7\n"
          "msr psp, r0\n"
          "subs r0, #32\n"
          "ldmia r0!, {r4-r7}\n"
          "bx lr\n");
}

void kernel_add(struct kernel_task *task, void (*function)(void *), void *context, uint32_t *stack,
                size_t words)
{
  uint32_t *sp = stack + (words & ~(size_t)1);
  for (size_t i = 0; i < words; i++)
    stack[i] = PATTERN;
  *--sp = XPSR_THUMB;
  *--sp = (uint32_t)(uintptr_t)function & ~1U;
  sp -= 6; /* lr, r12, r3 to r0 */
  sp[0] = (uint32_t)(uintptr_t)context;
  sp -= 8; /* r4 to r11 */
  *task = (struct kernel_task){.sp = sp, .stack = stack, .words = words};
  task->next = idle.next;
  idle.next = task;
}

/*
 * Tasks run on the process stack, interrupts on the main one: idle moves to a small stack for it
 * alone.
 */
void kernel_run(void)
{
  static uint32_t stack[128] __attribute__((aligned(8)));
  SHPR3 = LOWEST;
  __asm__ volatile("msr psp, %0\n"
                   "msr control, %1\n"
                   "isb" ::"r"(stack + 128),
                   "r"(2)
                   : "memory");
  running = true;
  while (!stopped)
    board_idle();
  running = false;
  __asm__ volatile("msr control, %0\nisb" ::"r"(0) : "memory");
}

void kernel_stop(void)
{
  stopped = true;
}

struct kernel_task *kernel_self(void)
{
  return current;
}

void kernel_enter(void)
{
  __asm__ volatile("cpsid i" ::: "memory");
}

void kernel_leave(void)
{
  __asm__ volatile("cpsie i\nisb" ::: "memory");
}

void kernel_block(const void *on, uint32_t limit_ms)
{
  current->blocked_on = on;
  current->blocked_at = port_clock_ms();
  current->limit_ms = limit_ms;
  ICSR = ICSR_PEND;
  kernel_leave(); /* other tasks run here */
  kernel_enter();
}

void kernel_wake(const void *on)
{
  for (struct kernel_task *task = idle.next; task != &idle; task = task->next) {
    if (task->blocked_on == on) task->blocked_on = NULL;
  }
}

void kernel_sleep(uint32_t ms)
{
  kernel_enter();
  kernel_block(current, ms);
  kernel_leave();
}

size_t kernel_stack_unused(const struct kernel_task *task)
{
  size_t words = 0;
  while (words < task->words && task->stack[words] == PATTERN)
    words++;
  return words * sizeof(uint32_t);
}
