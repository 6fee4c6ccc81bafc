/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks, mutex and event on the small kernel: the worked example of a threads port. On your RTOS, a
 * mutex is its mutex (with priority inheritance, if tasks have priorities), and an event its binary
 * semaphore, event or task notification.
 *
 * What matters: an event that was set before the wait is not lost; to the task that sets it,
 * unlocking the mutex and beginning to wait are one step; the wait ends with the mutex locked.
 */
#include "kernel.h"
#include "port.h"

uintptr_t port_task_self(void)
{
  return (uintptr_t)kernel_self();
}

void port_mutex_init(struct port_mutex *mutex)
{
  mutex->locked = false;
}

void port_mutex_lock(struct port_mutex *mutex)
{
  kernel_enter();
  while (mutex->locked)
    kernel_block(mutex, KERNEL_FOREVER);
  mutex->locked = true;
  kernel_leave();
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  kernel_enter();
  mutex->locked = false;
  kernel_wake(mutex);
  kernel_leave();
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  (void)mutex;
}

void port_event_init(struct port_event *event)
{
  event->set = false;
}

void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  kernel_enter();
  mutex->locked = false;
  kernel_wake(mutex);
  if (!event->set) kernel_block(event, timeout_ms);
  event->set = false;
  kernel_leave();
  port_mutex_lock(mutex);
}

void port_event_set(struct port_event *event)
{
  kernel_enter();
  event->set = true;
  kernel_wake(event);
  kernel_leave();
}

void port_event_destroy(struct port_event *event)
{
  (void)event;
}
