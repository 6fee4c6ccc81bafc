/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of a POSIX system. It must go on while the machine is suspended; otherwise the client
 * would believe in a hold that has expired meanwhile. And nobody may be able to set it.
 * CLOCK_BOOTTIME has both properties. Systems without it have CLOCK_MONOTONIC, which on some of
 * them goes on, too.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "port.h"

#include <time.h>

uint32_t port_clock_ms(void)
{
  struct timespec now = {0};
#ifdef CLOCK_BOOTTIME
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) /* a kernel may be older than its headers */
#endif
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint32_t)((uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U);
}
