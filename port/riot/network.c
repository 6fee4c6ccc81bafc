/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks of port/lwip for RIOT's package lwIP, whose own thread receives the frames. The waiting
 * thread looks every LOOK_MS whether something came. A handover may take that much longer. A shorter
 * period costs processor time, but only while a thread waits.
 */
#include "port_riot.h"

#include "ztimer.h"

#include "lwip/tcpip.h"

#if !LWIP_TCPIP_CORE_LOCKING
#error "lwIP needs LWIP_TCPIP_CORE_LOCKING, as it is by default"
#endif

#define LOOK_MS 2U

static void turn(uint32_t timeout_ms)
{
  if (timeout_ms > 0) ztimer_sleep(ZTIMER_MSEC, timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS);
}

static void lock(void)
{
  LOCK_TCPIP_CORE();
}

static void unlock(void)
{
  UNLOCK_TCPIP_CORE();
}

const struct port_lwip_hooks port_riot_hooks = {turn, lock, unlock};

void port_riot_init(struct port_lwip *lwip, const ip_addr_t *address, uint16_t port)
{
  (void)ztimer_acquire(ZTIMER_MSEC);
  port_lwip_init(lwip, &port_riot_hooks, address, port);
}
