/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks, mutex, event and clock on Zephyr. The suites run it on a stand-in of these calls on a host
 * (tests/portable/zephyr); what has been run on Zephyr itself is in boards/cmake/zephyr/README.md.
 *
 * A thread that is started in the memory of one that has ended, as by k_thread_create() with the same
 * struct k_thread, is the same task for the client: it may release what that one held.
 *
 * Mutexes of Zephyr inherit priorities, so threads of any priority may share a client. From an
 * interrupt call nothing of the library.
 */
#include "port.h"

/*
 * It counts in sleep only as the system's timer does: with power management, that timer has to run
 * in every power state that is used.
 */
uint32_t port_clock_ms(void)
{
  return k_uptime_get_32();
}

uintptr_t port_task_self(void)
{
  return (uintptr_t)k_current_get();
}

void port_mutex_init(struct port_mutex *mutex)
{
  (void)k_mutex_init(&mutex->mutex);
}

void port_mutex_lock(struct port_mutex *mutex)
{
  (void)k_mutex_lock(&mutex->mutex, K_FOREVER);
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  (void)k_mutex_unlock(&mutex->mutex);
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  (void)mutex;
}

/* A semaphore that counts to one: given before it is taken, it stays given. */
void port_event_init(struct port_event *event)
{
  (void)k_sem_init(&event->given, 0, 1);
}

void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  port_mutex_unlock(mutex);
  (void)k_sem_take(&event->given, K_MSEC(timeout_ms));
  port_mutex_lock(mutex);
}

void port_event_set(struct port_event *event)
{
  k_sem_give(&event->given);
}

void port_event_destroy(struct port_event *event)
{
  (void)event;
}
