/*
 * Tasks, mutex and signal on POSIX threads.
 *
 * A signal is a condition variable and a flag, so that one raised before the wait is not lost. It waits on the monotonic
 * clock: setting the wall clock must not stretch a wait. Systems that have no choice of clocks for condition variables
 * get the default one.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "port.h"

#include <time.h>
#include <unistd.h>

#if defined _POSIX_CLOCK_SELECTION && _POSIX_CLOCK_SELECTION > 0 && defined CLOCK_MONOTONIC
#define MONOTONIC_WAIT 1
#define WAIT_CLOCK     CLOCK_MONOTONIC
#else
#define MONOTONIC_WAIT 0
#define WAIT_CLOCK     CLOCK_REALTIME
#endif

uintptr_t port_task_self(void)
{
  return (uintptr_t)pthread_self() + 1; /* + 1: some systems number their threads from 0 */
}

void port_mutex_init(struct port_mutex *mutex)
{
  (void)pthread_mutex_init(&mutex->mutex, NULL);
}

void port_mutex_lock(struct port_mutex *mutex)
{
  (void)pthread_mutex_lock(&mutex->mutex);
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  (void)pthread_mutex_unlock(&mutex->mutex);
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  (void)pthread_mutex_destroy(&mutex->mutex);
}

void port_signal_init(struct port_signal *signal)
{
  signal->raised = false;
#if MONOTONIC_WAIT
  pthread_condattr_t attributes;
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, WAIT_CLOCK);
  (void)pthread_cond_init(&signal->condition, &attributes);
  (void)pthread_condattr_destroy(&attributes);
#else
  (void)pthread_cond_init(&signal->condition, NULL);
#endif
}

void port_signal_wait(struct port_signal *signal, struct port_mutex *mutex, uint32_t timeout_ms)
{
  if (!signal->raised && timeout_ms > 0) {
    struct timespec until;
    (void)clock_gettime(WAIT_CLOCK, &until);
    until.tv_sec += (time_t)(timeout_ms / 1000);
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
      until.tv_nsec -= 1000000000L;
      until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&signal->condition, &mutex->mutex, &until); /* a spurious end is an early return */
  }
  signal->raised = false;
}

void port_signal_raise(struct port_signal *signal)
{
  signal->raised = true;
  (void)pthread_cond_signal(&signal->condition);
}

void port_signal_destroy(struct port_signal *signal)
{
  (void)pthread_cond_destroy(&signal->condition);
}
