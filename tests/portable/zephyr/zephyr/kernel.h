/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of Zephyr's kernel that port/zephyr makes, on POSIX threads: what a host can try of that
 * port without Zephyr. What they mean is taken from Zephyr's documentation, so this shows that the
 * port is right if that is.
 */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct {
  int64_t ms;
} k_timeout_t;

#define K_FOREVER  ((k_timeout_t){-1})
#define K_MSEC(ms) ((k_timeout_t){(ms)})

struct k_mutex {
  pthread_mutex_t mutex;
};

struct k_sem {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  unsigned count;
  unsigned limit;
};

static inline uint32_t k_uptime_get_32(void)
{
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint32_t)((uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U);
}

static inline int32_t k_msleep(int32_t ms)
{
  struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
  return nanosleep(&time, NULL) == 0 ? 0 : 1;
}

static inline void *k_current_get(void)
{
  return (void *)pthread_self();
}

static inline int k_mutex_init(struct k_mutex *mutex)
{
  return pthread_mutex_init(&mutex->mutex, NULL);
}

static inline int k_mutex_lock(struct k_mutex *mutex, k_timeout_t timeout)
{
  return timeout.ms == -1 ? pthread_mutex_lock(&mutex->mutex)
                          : -EINVAL; /* nothing asks for others */
}

static inline int k_mutex_unlock(struct k_mutex *mutex)
{
  return pthread_mutex_unlock(&mutex->mutex);
}

static inline int k_sem_init(struct k_sem *sem, unsigned count, unsigned limit)
{
  pthread_condattr_t attributes;
  sem->count = count;
  sem->limit = limit;
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&sem->condition, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  return pthread_mutex_init(&sem->mutex, NULL);
}

static inline int k_sem_take(struct k_sem *sem, k_timeout_t timeout)
{
  struct timespec until;
  int status = 0;
  (void)clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += (time_t)(timeout.ms / 1000);
  until.tv_nsec += (long)(timeout.ms % 1000) * 1000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    until.tv_sec++;
  }
  (void)pthread_mutex_lock(&sem->mutex);
  while (sem->count == 0 && status == 0)
    status = pthread_cond_timedwait(&sem->condition, &sem->mutex, &until);
  if (sem->count > 0) {
    sem->count--;
    status = 0;
  }
  (void)pthread_mutex_unlock(&sem->mutex);
  return status == 0 ? 0 : -EAGAIN;
}

static inline void k_sem_give(struct k_sem *sem)
{
  (void)pthread_mutex_lock(&sem->mutex);
  if (sem->count < sem->limit) sem->count++;
  (void)pthread_cond_signal(&sem->condition);
  (void)pthread_mutex_unlock(&sem->mutex);
}

/* A thread, without what Zephyr can do to one. Its stack is POSIX's. */
struct k_thread {
  pthread_t thread;
  void (*entry)(void *first, void *second, void *third);
  void *argument[3];
};
typedef struct k_thread *k_tid_t;

#define K_NO_WAIT                         ((k_timeout_t){0})
#define K_THREAD_STACK_DEFINE(name, size) unsigned char name[size]
#define K_THREAD_STACK_SIZEOF(name)       sizeof(name)

static inline void *k_thread_entry_stand_in(void *context)
{
  struct k_thread *thread = (struct k_thread *)context;
  thread->entry(thread->argument[0], thread->argument[1], thread->argument[2]);
  return NULL;
}

static inline k_tid_t k_thread_create(struct k_thread *thread, unsigned char *stack, size_t size,
                                      void (*entry)(void *, void *, void *), void *first,
                                      void *second, void *third, int priority, uint32_t options,
                                      k_timeout_t delay)
{
  (void)stack;
  (void)size;
  (void)priority;
  (void)options;
  (void)delay;
  thread->entry = entry;
  thread->argument[0] = first;
  thread->argument[1] = second;
  thread->argument[2] = third;
  (void)pthread_create(&thread->thread, NULL, k_thread_entry_stand_in, thread);
  return thread;
}

static inline int k_thread_name_set(k_tid_t thread, const char *name)
{
  (void)thread;
  return name != NULL ? 0 : -1;
}

#endif
