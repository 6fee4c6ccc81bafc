/*
 * Tasks, mutex and event for a program with one task, such as a superloop: there is no other task
 * to shut out or to wake.
 *
 * The client waits in the transport. Only while there is no connection does it wait for an event,
 * which nobody can set: so it idles, for as long as its deadlines allow. Do not link this where an
 * interrupt handler or a second task calls the client.
 */
#include "port.h"

uintptr_t port_task_self(void)
{
  return 1;
}

void port_mutex_init(struct port_mutex *mutex)
{
  mutex->unused = 0;
}

void port_mutex_lock(struct port_mutex *mutex)
{
  (void)mutex;
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  (void)mutex;
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  (void)mutex;
}

void port_event_init(struct port_event *event)
{
  event->unused = 0;
}

void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  (void)event;
  (void)mutex;
  if (timeout_ms > 0) port_idle(timeout_ms);
}

void port_event_set(struct port_event *event)
{
  (void)event;
}

void port_event_destroy(struct port_event *event)
{
  (void)event;
}
