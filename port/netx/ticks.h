/* SPDX-License-Identifier: Apache-2.0 */
/* Times of port.h as ThreadX and NetX Duo wait for them. Private to this folder. */
#ifndef PORT_NETX_TICKS_H
#define PORT_NETX_TICKS_H

#include "tx_api.h"

#include <stdint.h>

/* Longer waits are cut: port.h allows an early return, and the product must not overflow. */
#define LONGEST_MS 60000U
_Static_assert(TX_TIMER_TICKS_PER_SECOND <= 71000, "a wait of LONGEST_MS overflows");

/* Rounded up: with no tick at all, a wait shorter than one would spin. */
static inline ULONG ticks(uint32_t ms)
{
  uint32_t cut = ms < LONGEST_MS ? ms : LONGEST_MS;
  return (cut * (uint32_t)TX_TIMER_TICKS_PER_SECOND + 999U) / 1000U;
}

#endif
