/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutex and the event of the threads port on the small kernel. Private to threads.c; defined
 * here because callers need their sizes.
 */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

#include <stdbool.h>

/* for port.h */
#define PORT_THREADS small_kernel

struct port_mutex {
  volatile bool locked;
};

struct port_event {
  volatile bool set;
};

#endif
