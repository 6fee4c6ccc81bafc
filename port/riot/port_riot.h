/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RIOT: a transport over its package lwIP, by port/lwip. For one server at an address of IPv4 or
 * IPv6:
 *
 *     static struct port_lwip link;
 *     ip_addr_t address;
 *     ipaddr_aton("192.0.2.7", &address);
 *     port_riot_init(&link, &address, 6379);
 *     ... give &link.transport to the client ...
 *
 * RIOT's own stack, GNRC, cannot carry it: its TCP blocks in open and send.
 */
#ifndef PORT_RIOT_H
#define PORT_RIOT_H

#include "port_lwip.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What RIOT does for port/lwip, also for port_lwip_init_seeds(): lwIP's lock, and a pause. */
extern const struct port_lwip_hooks port_riot_hooks;

/*
 * As port_lwip_init(), and keeps the clock running: with ztimer_ondemand, RIOT stops one that nobody
 * uses. So call this, or ztimer_acquire(ZTIMER_MSEC), before the client's first operation.
 */
void port_riot_init(struct port_lwip *lwip, const ip_addr_t *address, uint16_t port);

#ifdef __cplusplus
}
#endif

#endif
