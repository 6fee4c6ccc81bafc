/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preemptive kernel that stands in for an RTOS in the examples and tests: tasks, each with its
 * stack, take turns at each tick of 1 ms, for Cortex-M0 to M33. It is as small as it can be: no
 * priorities, no ending of tasks. Do not ship it.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_FOREVER UINT32_MAX

/* A task. The caller's memory; private except for the name of its stack. */
struct kernel_task {
  uint32_t *sp; /* first member: kernel.c's assembly relies on it */
  struct kernel_task *next;
  const void *blocked_on; /* NULL: ready */
  uint32_t blocked_at, limit_ms;
  uint32_t *stack;
  size_t words;
};

/*
 * Makes a task that will run function(context), which must not return, on a stack of that many
 * words.
 */
void kernel_add(struct kernel_task *task, void (*function)(void *), void *context, uint32_t *stack,
                size_t words);

/*
 * Starts to run the tasks. The caller becomes the idle task: it sleeps, until a task calls
 * kernel_stop().
 */
void kernel_run(void);
void kernel_stop(void);

/* The running task. */
struct kernel_task *kernel_self(void);

/*
 * Blocks the running task until somebody wakes what it is blocked on, for at most limit_ms. It may
 * return early. Both are called between kernel_enter() and kernel_leave(), which keep out all other
 * tasks; while a task is blocked, others run.
 */
void kernel_block(const void *on, uint32_t limit_ms);
void kernel_wake(const void *on);
void kernel_enter(void);
void kernel_leave(void);

void kernel_sleep(uint32_t ms);

/* Bytes of its stack that a task has never used. */
size_t kernel_stack_unused(const struct kernel_task *task);

#endif
