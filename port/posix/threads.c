/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks, mutex and event on POSIX threads.
 *
 * An event is a flag, so that it is not lost if it is set before the wait, and a condition variable
 * on which the task sleeps. A task that is woken while the mutex is locked would only sleep again,
 * on the mutex. So port_event_set() sets the flag and adds the event to a list in the mutex, and
 * the task that unlocks the mutex wakes the others after that. The task of an event in that list
 * waits until it is woken, even if it sees the flag, because the event is on its stack and the
 * waker still uses it.
 *
 * No signal ends a wait for a condition variable. A task that wants that sleeps in poll(), on a pipe,
 * which is made when it first has to sleep.
 *
 * An event waits on the monotonic clock, because setting the wall clock must not prolong a wait. On
 * systems whose condition variables have only one clock, that one is used.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "cancel.h"
#include "port.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#if defined _POSIX_CLOCK_SELECTION && _POSIX_CLOCK_SELECTION > 0 && defined CLOCK_MONOTONIC
#define MONOTONIC_WAIT 1
#define WAIT_CLOCK     CLOCK_MONOTONIC
#else
#define MONOTONIC_WAIT 0
#define WAIT_CLOCK     CLOCK_REALTIME
#endif

/* In place of the pipe's end to read from: it is made before the task sleeps. */
#define WANTED (-2)

/* A signal has ended a wait of this thread. */
static _Thread_local bool interrupted;

void port_posix_note_signal(void)
{
  interrupted = true;
}

bool port_task_interrupted(void)
{
  bool was = interrupted;
  interrupted = false;
  return was;
}

uintptr_t port_task_self(void)
{
  return (uintptr_t)pthread_self() + 1; /* + 1: some systems number their threads from 0 */
}

void port_mutex_init(struct port_mutex *mutex)
{
  (void)pthread_mutex_init(&mutex->mutex, NULL);
  mutex->process = port_posix_note_process();
  mutex->to_wake = NULL;
}

bool port_mutex_forked(const struct port_mutex *mutex)
{
  return port_posix_forked(mutex->process);
}

void port_mutex_lock(struct port_mutex *mutex)
{
  int cancel = hold_off_cancel();
  (void)pthread_mutex_lock(&mutex->mutex);
  mutex->cancel = cancel;
}

/*
 * Wakes the event's task. Called with the mutex unlocked. The event may be gone when gate is
 * unlocked.
 */
static void wake(struct port_event *event)
{
  (void)pthread_mutex_lock(&event->gate);
  event->woken = true;
  (void)pthread_cond_signal(&event->condition);
  ssize_t written = event->pipe[1] >= 0 ? write(event->pipe[1], "", 1) : 0;
  (void)written; /* it is empty before, so there is room */
  (void)pthread_mutex_unlock(&event->gate);
}

static void unlock_and_wake(struct port_mutex *mutex)
{
  struct port_event *event = mutex->to_wake;
  mutex->to_wake = NULL;
  (void)pthread_mutex_unlock(&mutex->mutex);
  while (event != NULL) {
    struct port_event *next = event->next;
    wake(event);
    event = next;
  }
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  int cancel = mutex->cancel;
  unlock_and_wake(mutex);
  allow_cancel(cancel);
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  long process = mutex->process;
  /* in a forked process the mutex may be locked for ever, and cannot be destroyed */
  if (!port_mutex_forked(mutex)) (void)pthread_mutex_destroy(&mutex->mutex);
  /* cleared before forgetting: if another thread forks now, the child must not forget it again */
  mutex->process = 0;
  port_posix_forget_process(process);
}

void port_event_init(struct port_event *event)
{
  event->set = false;
  event->mutex = NULL;
  event->woken = false;
  event->pipe[0] = -1;
  event->pipe[1] = -1;
  (void)pthread_mutex_init(&event->gate, NULL);
#if MONOTONIC_WAIT
  pthread_condattr_t attributes;
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, WAIT_CLOCK);
  (void)pthread_cond_init(&event->condition, &attributes);
  (void)pthread_condattr_destroy(&attributes);
#else
  (void)pthread_cond_init(&event->condition, NULL);
#endif
}

void port_event_expect_signals(struct port_event *event)
{
  event->pipe[0] = WANTED;
}

/* Without a pipe, no signal ends the wait. */
static void make_pipe(struct port_event *event)
{
  if (pipe(event->pipe) != 0) {
    event->pipe[0] = -1;
    event->pipe[1] = -1;
    return;
  }
  (void)fcntl(event->pipe[0], F_SETFD, FD_CLOEXEC);
  (void)fcntl(event->pipe[1], F_SETFD, FD_CLOEXEC);
}

/* In how many ms, rounded up, that time comes; NULL: never. */
static int ms_until(const struct timespec *until)
{
  struct timespec now;
  if (until == NULL) return -1;
  (void)clock_gettime(WAIT_CLOCK, &now);
  long long ns =
      (long long)(until->tv_sec - now.tv_sec) * 1000000000 + until->tv_nsec - now.tv_nsec;
  return ns > 0 ? (int)((ns + 999999) / 1000000) : 0;
}

/* Sleeps as sleep_until() does, but a signal ends that, if it has a limit. */
static bool sleep_in_poll(struct port_event *event, const struct timespec *until)
{
  char byte;
  struct pollfd wanted = {.fd = event->pipe[0], .events = POLLIN};
  int ready;
  do
    ready = poll(&wanted, 1, ms_until(until));
  while (ready < 0 && until == NULL);
  if (ready < 0 && errno == EINTR) port_posix_note_signal();
  if (ready <= 0) return false;
  ssize_t got = read(event->pipe[0], &byte, 1);
  (void)pthread_mutex_lock(&event->gate); /* the waker still has it */
  event->woken = false;
  (void)pthread_mutex_unlock(&event->gate);
  return got == 1;
}

/*
 * Sleeps until the task is woken, or until `until`; NULL: without a limit. Returns true if it was.
 */
static bool sleep_until(struct port_event *event, const struct timespec *until)
{
  if (event->pipe[0] >= 0) return sleep_in_poll(event, until);
  (void)pthread_mutex_lock(&event->gate);
  int status = 0;
  while (!event->woken && status == 0) {
    if (until == NULL) status = pthread_cond_wait(&event->condition, &event->gate);
    else status = pthread_cond_timedwait(&event->condition, &event->gate, until);
  }
  bool woken = event->woken;
  event->woken = false;
  (void)pthread_mutex_unlock(&event->gate);
  return woken;
}

void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  if (!event->set && timeout_ms > 0) {
    struct timespec until;
    (void)clock_gettime(WAIT_CLOCK, &until);
    until.tv_sec += (time_t)(timeout_ms / 1000);
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
      until.tv_nsec -= 1000000000L;
      until.tv_sec++;
    }
    int cancel = mutex->cancel;
    if (event->pipe[0] == WANTED) make_pipe(event);
    event->mutex = mutex;
    unlock_and_wake(mutex);
    bool woken = sleep_until(event, &until);
    (void)pthread_mutex_lock(&mutex->mutex);
    mutex->cancel = cancel;
    if (!woken && event->set) (void)sleep_until(event, NULL);
    event->mutex = NULL;
  }
  event->set = false;
}

void port_event_set(struct port_event *event)
{
  struct port_mutex *mutex = event->mutex;
  if (event->set) return;
  event->set = true;
  if (mutex == NULL) return;
  event->next = mutex->to_wake;
  mutex->to_wake = event;
}

void port_event_destroy(struct port_event *event)
{
  for (int i = 0; i < 2; i++)
    if (event->pipe[i] >= 0) (void)close(event->pipe[i]);
  (void)pthread_cond_destroy(&event->condition);
  (void)pthread_mutex_destroy(&event->gate);
}
