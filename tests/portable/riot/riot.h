/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for what port/riot and the example use of RIOT's kernel, on POSIX threads: mutexes,
 * semaphores with a time limit, threads, and the clock ZTIMER_MSEC. mutex.h, sema.h, thread.h and
 * ztimer.h are this.
 */
#ifndef RIOT_STAND_IN_H
#define RIOT_STAND_IN_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
  pthread_mutex_t mutex;
} mutex_t;

void mutex_init(mutex_t *mutex);
void mutex_lock(mutex_t *mutex);
void mutex_unlock(mutex_t *mutex);

typedef struct {
  sem_t semaphore;
} sema_t;

typedef struct {
  unsigned users;
} ztimer_clock_t;

extern ztimer_clock_t *const ZTIMER_MSEC;

uint32_t ztimer_now(ztimer_clock_t *clock);
void ztimer_sleep(ztimer_clock_t *clock, uint32_t ms);
bool ztimer_acquire(ztimer_clock_t *clock);

void sema_create(sema_t *sema, unsigned value);
void sema_destroy(sema_t *sema);
int sema_post(sema_t *sema);
int sema_try_wait(sema_t *sema);
int sema_wait_timed_ztimer(sema_t *sema, ztimer_clock_t *clock, uint32_t ms);

typedef int16_t kernel_pid_t;
typedef void *(*thread_task_func_t)(void *argument);

#define THREAD_STACKSIZE_LARGE 4096
#define THREAD_PRIORITY_MAIN   7

kernel_pid_t thread_getpid(void);
kernel_pid_t thread_create(char *stack, int size, uint8_t priority, int flags,
                           thread_task_func_t function, void *argument, const char *name);

#endif
