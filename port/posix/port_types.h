/* The mutex and the signal of a POSIX threads port. Private to threads.c; here for their sizes. */
#ifndef PORT_TYPES_H
#define PORT_TYPES_H

#include <pthread.h>
#include <stdbool.h>

struct port_mutex {
  pthread_mutex_t mutex;
  struct port_signal *to_wake; /* raised signals whose tasks are woken after the unlocking; guarded by the mutex */
};

struct port_signal {
  /* guarded by the mutex that the signal is used with */
  struct port_mutex *mutex; /* that one, while a task waits; otherwise NULL */
  struct port_signal *next; /* in to_wake */
  bool raised;

  bool woken; /* guarded by gate */
  pthread_mutex_t gate;
  pthread_cond_t condition;
};

#endif
