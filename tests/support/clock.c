/* SPDX-License-Identifier: Apache-2.0 */
/* The time; see clock.h. */
#include "clock.h"

#include <poll.h>
#include <time.h>

int64_t now_ns(void)
{
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t now_us(void)
{
  return now_ns() / 1000;
}

int64_t now_ms(void)
{
  return now_us() / 1000;
}

void sleep_ms(int64_t ms)
{
  int64_t until = now_ms() + ms;
  for (int64_t left = ms; left > 0; left = until - now_ms())
    (void)poll(NULL, 0, (int)left);
}
