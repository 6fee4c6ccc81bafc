/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lwIP on a board's Ethernet driver, without interrupts and without an operating system: a program
 * that waits for the network calls network_turn(). Every 50 ms or so is enough for the timers of
 * lwIP when nobody waits.
 */
#ifndef NETWORK_H
#define NETWORK_H

#include "port_lwip.h"

/*
 * The address, mask and gateway that the simulator's user network expects, and its host's loopback
 * interface.
 */
#define NETWORK_ADDRESS LWIP_MAKEU32(10, 0, 2, 15)
#define NETWORK_MASK    LWIP_MAKEU32(255, 255, 255, 0)
#define NETWORK_GATEWAY LWIP_MAKEU32(10, 0, 2, 2)
#define NETWORK_HOST    LWIP_MAKEU32(10, 0, 2, 2)

/* Starts lwIP and the interface. False: the controller does not answer. */
bool network_init(void);

/* Takes in what arrived, and runs lwIP's timers that are due. False: nothing arrived. */
bool network_look(void);

/*
 * The same in a program of one task. If nothing arrived and timeout_ms > 0, sleeps for up to a
 * tick.
 */
void network_turn(uint32_t timeout_ms);

/* For port_lwip_init() in a program of one task. */
extern const struct port_lwip_hooks network_hooks;

#endif
