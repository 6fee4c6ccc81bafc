/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task, mutex and event for a program with one task, such as a superloop. A mutex does nothing, and
 * waiting for an event only idles, because there is no other task. There is no file to compile.
 *
 * With a connection, the client waits in the transport. Without one it waits for an event, which
 * nobody can set, so it idles until its next deadline. Do not use this if an interrupt handler or a
 * second task calls the client, nor with thousands of locks, because the schedule is a sorted list.
 */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

#include <stdint.h>

/* for port.h: the functions of the threads port are here */
#define PORT_ONE_TASK 1
#define PORT_THREADS  port_single

#ifdef __cplusplus
extern "C" {
#endif

struct port_mutex {
  char unused;
};

struct port_event {
  char unused;
};

/* the board's: see port.h */
void port_idle(uint32_t ms);

static inline uintptr_t port_task_self(void)
{
  return 1;
}

static inline void port_mutex_init(struct port_mutex *mutex)
{
  mutex->unused = 0;
}

static inline void port_mutex_lock(struct port_mutex *mutex)
{
  (void)mutex;
}

static inline void port_mutex_unlock(struct port_mutex *mutex)
{
  (void)mutex;
}

static inline void port_mutex_destroy(struct port_mutex *mutex)
{
  (void)mutex;
}

static inline void port_event_init(struct port_event *event)
{
  event->unused = 0;
}

static inline void port_event_wait(struct port_event *event, struct port_mutex *mutex,
                                   uint32_t timeout_ms)
{
  (void)event;
  (void)mutex;
  if (timeout_ms > 0) port_idle(timeout_ms);
}

static inline void port_event_set(struct port_event *event)
{
  (void)event;
}

static inline void port_event_destroy(struct port_event *event)
{
  (void)event;
}

#ifdef __cplusplus
}
#endif

#endif
