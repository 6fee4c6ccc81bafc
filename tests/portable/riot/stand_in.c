/* SPDX-License-Identifier: Apache-2.0 */
/* RIOT's kernel on POSIX threads; see riot.h. Threads have the numbers in whose order they ask for them. */
#define _DEFAULT_SOURCE 1

#include "riot.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

static ztimer_clock_t milliseconds;

ztimer_clock_t *const ZTIMER_MSEC = &milliseconds;

void mutex_init(mutex_t *mutex)
{
  (void)pthread_mutex_init(&mutex->mutex, NULL);
}

void mutex_lock(mutex_t *mutex)
{
  (void)pthread_mutex_lock(&mutex->mutex);
}

void mutex_unlock(mutex_t *mutex)
{
  (void)pthread_mutex_unlock(&mutex->mutex);
}

uint32_t ztimer_now(ztimer_clock_t *clock)
{
  struct timespec now;
  (void)clock;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint32_t)((uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U);
}

void ztimer_sleep(ztimer_clock_t *clock, uint32_t ms)
{
  struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000L};
  (void)clock;
  (void)nanosleep(&time, NULL);
}

bool ztimer_acquire(ztimer_clock_t *clock)
{
  return clock->users++ == 0;
}

void sema_create(sema_t *sema, unsigned value)
{
  (void)sem_init(&sema->semaphore, 0, value);
}

void sema_destroy(sema_t *sema)
{
  (void)sem_destroy(&sema->semaphore);
}

int sema_post(sema_t *sema)
{
  return sem_post(&sema->semaphore) == 0 ? 0 : -errno;
}

int sema_try_wait(sema_t *sema)
{
  return sem_trywait(&sema->semaphore) == 0 ? 0 : -errno;
}

int sema_wait_timed_ztimer(sema_t *sema, ztimer_clock_t *clock, uint32_t ms)
{
  struct timespec until;
  (void)clock;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)(ms / 1000);
  until.tv_nsec += (long)(ms % 1000) * 1000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    until.tv_sec++;
  }
  return sem_timedwait(&sema->semaphore, &until) == 0 ? 0 : -errno;
}

kernel_pid_t thread_getpid(void)
{
  static atomic_short last;
  static _Thread_local kernel_pid_t own;
  if (own == 0) own = (kernel_pid_t)(atomic_fetch_add(&last, 1) + 1);
  return own;
}

kernel_pid_t thread_create(char *stack, int size, uint8_t priority, int flags,
                           thread_task_func_t function, void *argument, const char *name)
{
  pthread_t thread;
  (void)stack;
  (void)size;
  (void)priority;
  (void)flags;
  (void)name;
  return pthread_create(&thread, NULL, function, argument) == 0 ? 1 : -1;
}
