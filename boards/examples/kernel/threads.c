/*
 * Tasks, mutex and signal on the small kernel: the worked example of a threads port. On an RTOS of your own, a mutex is
 * its mutex (with priority inheritance, if tasks have priorities), and a signal its binary semaphore, event or task
 * notification.
 *
 * What matters: a signal that was raised before the wait is not lost; the wait opens the mutex and begins in one
 * step, as seen by the one who raises; it ends with the mutex locked.
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

void port_signal_init(struct port_signal *signal)
{
  signal->raised = false;
}

void port_signal_wait(struct port_signal *signal, struct port_mutex *mutex, uint32_t timeout_ms)
{
  kernel_enter();
  mutex->locked = false;
  kernel_wake(mutex);
  if (!signal->raised) kernel_block(signal, timeout_ms);
  signal->raised = false;
  kernel_leave();
  port_mutex_lock(mutex);
}

void port_signal_raise(struct port_signal *signal)
{
  kernel_enter();
  signal->raised = true;
  kernel_wake(signal);
  kernel_leave();
}

void port_signal_destroy(struct port_signal *signal)
{
  (void)signal;
}
