/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutex and the event of the threads port for ThreadX. Private to threads.c; here because users
 * need their sizes.
 */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

#include "tx_api.h"

/* for port.h */
#define PORT_THREADS port_netx

struct port_mutex {
  TX_MUTEX mutex;
};

struct port_event {
  TX_SEMAPHORE given;
};

#endif
