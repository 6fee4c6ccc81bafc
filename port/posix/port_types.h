/* SPDX-License-Identifier: Apache-2.0 */
/* The mutex and the event of a POSIX threads port. Private to threads.c; here for their sizes. */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

#include <pthread.h>
#include <stdbool.h>

/* for port.h: port_mutex_forked() is in threads.c */
#define PORT_THREADS   posix_threads
#define PORT_PROCESSES 1

/* for port.h: so are port_event_expect_signals() and port_task_interrupted() */
#define PORT_SIGNALS 1

struct port_mutex {
  pthread_mutex_t mutex;

  /* which process has made it; see process.h */
  long process;

  /* whether the task that has locked it could be cancelled before; see cancel.h */
  int cancel;

  /* events that were set, whose tasks are woken when it is unlocked; guarded by the mutex */
  struct port_event *to_wake;
};

struct port_event {
  /* mutex, next and set are guarded by the mutex that the event is used with */
  /* that mutex, while a task waits; otherwise NULL */
  struct port_mutex *mutex;

  /* in to_wake */
  struct port_event *next;

  bool set;

  /* what wakes a task whose wait a signal may end, in place of condition: a pipe; -1: none, and -2: not yet */
  int pipe[2];

  /* guarded by gate */
  bool woken;

  pthread_mutex_t gate;
  pthread_cond_t condition;
};

#endif
