/* SPDX-License-Identifier: Apache-2.0 */
/* The time of tests that talk to something real: CLOCK_MONOTONIC, one for all processes. */
#ifndef SUPPORT_CLOCK_H
#define SUPPORT_CLOCK_H

#include <stdint.h>

/* How long to wait, in ms, for something that will come, unless something is broken. */
#define SOON 20000

/* Repeats the step until the condition holds, or for SOON. */
#define AWAIT(condition, step)                                                                     \
  for (int64_t await_end = now_ms() + SOON; !(condition) && now_ms() < await_end;)                 \
  step

int64_t now_ms(void);
int64_t now_us(void);
int64_t now_ns(void);
void sleep_ms(int64_t ms);

#endif
