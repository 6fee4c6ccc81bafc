/* The mutex and the signal of a POSIX threads port. Private to threads.c; here for their sizes. */
#ifndef PORT_TYPES_H
#define PORT_TYPES_H

#include <pthread.h>
#include <stdbool.h>

struct port_mutex {
  pthread_mutex_t mutex;
};

struct port_signal {
  pthread_cond_t condition;
  bool raised; /* guarded by the mutex that the signal is used with */
};

#endif
