/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, mutex, event and clock on RIOT. The clock is ZTIMER_MSEC, which a timer of the hardware
 * drives, or a real-time counter that goes on in sleep, as the board has it. A thread that only calls
 * fairlock_acquire() and its like needs some 1 KB of stack for them.
 */
#include "port.h"

#include "thread.h"
#include "ztimer.h"

uint32_t port_clock_ms(void)
{
  return ztimer_now(ZTIMER_MSEC);
}

uintptr_t port_task_self(void)
{
  return (uintptr_t)thread_getpid(); /* never 0, which is KERNEL_PID_UNDEF */
}

void port_mutex_init(struct port_mutex *mutex)
{
  mutex_init(&mutex->mutex);
}

void port_mutex_lock(struct port_mutex *mutex)
{
  mutex_lock(&mutex->mutex);
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  mutex_unlock(&mutex->mutex);
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  (void)mutex;
}

void port_event_init(struct port_event *event)
{
  sema_create(&event->sema, 0);
  event->set = false;
}

/* If the event is set when the time is up, but before the mutex is locked again, sema is taken here. */
void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  port_mutex_unlock(mutex);
  bool taken = sema_wait_timed_ztimer(&event->sema, ZTIMER_MSEC, timeout_ms) == 0;
  port_mutex_lock(mutex);
  if (event->set && !taken) (void)sema_try_wait(&event->sema);
  event->set = false;
}

void port_event_set(struct port_event *event)
{
  if (event->set) return;
  event->set = true;
  (void)sema_post(&event->sema);
}

void port_event_destroy(struct port_event *event)
{
  sema_destroy(&event->sema);
}
