/* SPDX-License-Identifier: Apache-2.0 */
/* The mutex and the event of RIOT's threads port. Private to threads.c; here for their sizes. */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

#include <stdbool.h>

#include "mutex.h"
#include "sema.h"

/* for port.h */
#define PORT_THREADS port_riot

struct port_mutex {
  mutex_t mutex;
};

struct port_event {
  sema_t sema;

  /* sema has been given, and not taken; guarded by the mutex that the event is used with */
  bool set;
};

#endif
