/*
 * Tasks, mutex and signal on POSIX threads.
 *
 * A signal is a flag, so that one raised before the wait is not lost, and a condition variable to sleep on. A task that is
 * woken while the mutex is locked would wake only to sleep again, on the mutex. So port_signal_raise() sets the flag and
 * notes the signal in the mutex, and whoever unlocks the mutex wakes the task afterwards. A signal that was noted is
 * woken for certain, and its task waits for that: the signal lives on the task's stack and must not be gone by then.
 *
 * A signal waits on the monotonic clock: setting the wall clock must not stretch a wait. Systems that have no choice of
 * clocks for condition variables get the default one.
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
  mutex->to_wake = NULL;
}

void port_mutex_lock(struct port_mutex *mutex)
{
  (void)pthread_mutex_lock(&mutex->mutex);
}

/* Called without the mutex. The signal may be gone as soon as its gate is unlocked. */
static void wake(struct port_signal *signal)
{
  (void)pthread_mutex_lock(&signal->gate);
  signal->woken = true;
  (void)pthread_cond_signal(&signal->condition);
  (void)pthread_mutex_unlock(&signal->gate);
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  struct port_signal *signal = mutex->to_wake;
  mutex->to_wake = NULL;
  (void)pthread_mutex_unlock(&mutex->mutex);
  while (signal != NULL) {
    struct port_signal *next = signal->next;
    wake(signal);
    signal = next;
  }
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  (void)pthread_mutex_destroy(&mutex->mutex);
}

void port_signal_init(struct port_signal *signal)
{
  signal->raised = false;
  signal->mutex = NULL;
  signal->woken = false;
  (void)pthread_mutex_init(&signal->gate, NULL);
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

/* Sleeps until the task is woken, or the time has come; until NULL: it will be woken. Returns whether it was. */
static bool sleep_until(struct port_signal *signal, const struct timespec *until)
{
  (void)pthread_mutex_lock(&signal->gate);
  int status = 0;
  while (!signal->woken && status == 0) {
    if (until == NULL) status = pthread_cond_wait(&signal->condition, &signal->gate);
    else status = pthread_cond_timedwait(&signal->condition, &signal->gate, until);
  }
  bool woken = signal->woken;
  signal->woken = false;
  (void)pthread_mutex_unlock(&signal->gate);
  return woken;
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
    signal->mutex = mutex;
    port_mutex_unlock(mutex);
    bool woken = sleep_until(signal, &until);
    port_mutex_lock(mutex);
    if (!woken && signal->raised) (void)sleep_until(signal, NULL);
    signal->mutex = NULL;
  }
  signal->raised = false;
}

void port_signal_raise(struct port_signal *signal)
{
  struct port_mutex *mutex = signal->mutex;
  if (signal->raised) return;
  signal->raised = true;
  if (mutex == NULL) return;
  signal->next = mutex->to_wake;
  mutex->to_wake = signal;
}

void port_signal_destroy(struct port_signal *signal)
{
  (void)pthread_cond_destroy(&signal->condition);
  (void)pthread_mutex_destroy(&signal->gate);
}
