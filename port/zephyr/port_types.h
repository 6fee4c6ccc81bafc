/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutex and the event of the threads port for Zephyr. Private to threads.c; here because users
 * need their sizes.
 */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

#include <zephyr/kernel.h>

/* for port.h */
#define PORT_WAIT_MAX_MS CONFIG_FAIRLOCK_WAIT_MAX_MS
#define PORT_THREADS     port_zephyr

struct port_mutex {
  struct k_mutex mutex;
};

struct port_event {
  struct k_sem given;
};

#endif
