/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks, mutex and event on ThreadX. Compile with -Iport/netx. The suites run it on a stand-in of
 * these calls on a host (tests/portable/netx); port/README.md says what has been run on ThreadX
 * itself.
 *
 * Mutexes inherit priorities here, so threads of any priority may share a client. Call the library
 * only from threads, its init functions from tx_application_define(), too, and nothing from an
 * interrupt or a timer. A thread must not be terminated while it is inside the library. One that is
 * created in the TX_THREAD of a thread that has ended is the same task for the client: it may
 * release what that one held.
 */
#include "port.h"

#include "ticks.h"

uintptr_t port_task_self(void)
{
  return (uintptr_t)tx_thread_identify();
}

void port_mutex_init(struct port_mutex *mutex)
{
  (void)tx_mutex_create(&mutex->mutex, "fairlock", TX_INHERIT);
}

void port_mutex_lock(struct port_mutex *mutex)
{
  (void)tx_mutex_get(&mutex->mutex, TX_WAIT_FOREVER);
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  (void)tx_mutex_put(&mutex->mutex);
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  (void)tx_mutex_delete(&mutex->mutex);
}

/* A semaphore that counts to one: set before the wait, it is not lost. */
void port_event_init(struct port_event *event)
{
  (void)tx_semaphore_create(&event->given, "fairlock", 0);
}

void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  port_mutex_unlock(mutex);
  (void)tx_semaphore_get(&event->given, ticks(timeout_ms));
  port_mutex_lock(mutex);
}

void port_event_set(struct port_event *event)
{
  (void)tx_semaphore_ceiling_put(&event->given, 1); /* fails if it is set already: no harm */
}

void port_event_destroy(struct port_event *event)
{
  (void)tx_semaphore_delete(&event->given);
}
