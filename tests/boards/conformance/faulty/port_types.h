/* SPDX-License-Identifier: Apache-2.0 */
/* The types of a port that is wrong on purpose; see ../faulty.c. */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

#include <pthread.h>
#include <stdbool.h>

/* for port.h */
#define PORT_THREADS faulty

struct port_mutex {
  pthread_mutex_t mutex;
};

struct port_event {
  pthread_mutex_t gate;
  pthread_cond_t condition;
  bool set;
};

#endif
