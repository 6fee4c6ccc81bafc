/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of ThreadX that port/netx makes, on POSIX threads: what a host can try of that port
 * without ThreadX. What they mean is taken from ThreadX's documentation, so this shows that the port
 * is right if that is. A tick has 10 ms.
 */
#ifndef TX_API_H
#define TX_API_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef char CHAR;
typedef unsigned char UCHAR;
typedef int INT;
typedef unsigned UINT;
typedef unsigned long ULONG;
#define VOID void

#define TX_SUCCESS          0x00U
#define TX_DELETED          0x01U
#define TX_NO_EVENTS        0x07U
#define TX_NO_INSTANCE      0x0dU
#define TX_NO_MEMORY        0x10U
#define TX_CEILING_EXCEEDED 0x21U

#define TX_NO_WAIT      0UL
#define TX_WAIT_FOREVER 0xffffffffUL
#define TX_INHERIT      1U
#define TX_OR           0U
#define TX_OR_CLEAR     1U

#define TX_TIMER_TICKS_PER_SECOND 100UL

typedef struct TX_THREAD_STRUCT TX_THREAD;

typedef struct {
  pthread_mutex_t mutex;
} TX_MUTEX;

/* A semaphore, or flags: a number that others wait for. */
typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  ULONG value;
} TX_SEMAPHORE;
typedef TX_SEMAPHORE TX_EVENT_FLAGS_GROUP;

/* What has been made and not deleted, and whether flags cannot be made. */
extern int tx_objects;
extern UINT tx_flags_status;

/* How often a thread has slept. */
extern unsigned tx_sleeps;

/* Anything that ThreadX forbids ends the suite. */
static inline void tx_must(int right, const char *what)
{
  if (right) return;
  (void)fprintf(stderr, "the stand-in for ThreadX and NetX: %s\n", what);
  abort();
}

static inline TX_THREAD *tx_thread_identify(void)
{
  return (TX_THREAD *)pthread_self();
}

static inline UINT tx_thread_sleep(ULONG ticks)
{
  struct timespec time = {(time_t)(ticks / 100), (long)(ticks % 100) * 10000000L};
  tx_must(ticks > 0, "a sleep of no tick");
  (void)__atomic_add_fetch(&tx_sleeps, 1, __ATOMIC_RELAXED);
  (void)nanosleep(&time, NULL);
  return TX_SUCCESS;
}

static inline UINT tx_mutex_create(TX_MUTEX *mutex, const CHAR *name, UINT inherit)
{
  pthread_mutexattr_t attributes;
  tx_must(name != NULL && inherit == TX_INHERIT, "a mutex");
  (void)pthread_mutexattr_init(&attributes);
  (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  (void)pthread_mutex_init(&mutex->mutex, &attributes);
  (void)pthread_mutexattr_destroy(&attributes);
  (void)__atomic_add_fetch(&tx_objects, 1, __ATOMIC_RELAXED);
  return TX_SUCCESS;
}

static inline UINT tx_mutex_get(TX_MUTEX *mutex, ULONG wait)
{
  tx_must(wait == TX_WAIT_FOREVER, "a wait for a mutex that ends"); /* nothing asks for others */
  return pthread_mutex_lock(&mutex->mutex) == 0 ? TX_SUCCESS : TX_DELETED;
}

static inline UINT tx_mutex_put(TX_MUTEX *mutex)
{
  tx_must(pthread_mutex_unlock(&mutex->mutex) == 0, "a mutex of another thread");
  return TX_SUCCESS;
}

static inline UINT tx_mutex_delete(TX_MUTEX *mutex)
{
  tx_must(pthread_mutex_destroy(&mutex->mutex) == 0, "a mutex that is locked is deleted");
  (void)__atomic_sub_fetch(&tx_objects, 1, __ATOMIC_RELAXED);
  return TX_SUCCESS;
}

static inline UINT tx_semaphore_create(TX_SEMAPHORE *semaphore, const CHAR *name, ULONG count)
{
  pthread_condattr_t attributes;
  tx_must(name != NULL, "a semaphore");
  semaphore->value = count;
  (void)pthread_mutex_init(&semaphore->mutex, NULL);
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&semaphore->condition, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  (void)__atomic_add_fetch(&tx_objects, 1, __ATOMIC_RELAXED);
  return TX_SUCCESS;
}

static inline UINT tx_semaphore_delete(TX_SEMAPHORE *semaphore)
{
  /* nobody is inside any more: ThreadX's calls cannot be overtaken by a delete */
  (void)pthread_mutex_lock(&semaphore->mutex);
  (void)pthread_mutex_unlock(&semaphore->mutex);
  (void)pthread_cond_destroy(&semaphore->condition);
  (void)pthread_mutex_destroy(&semaphore->mutex);
  (void)__atomic_sub_fetch(&tx_objects, 1, __ATOMIC_RELAXED);
  return TX_SUCCESS;
}

/* Waits, with the mutex, until one of these bits is set, or the time is up. */
static inline void tx_wait(TX_SEMAPHORE *semaphore, ULONG bits, ULONG ticks)
{
  struct timespec until;
  (void)clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += (time_t)(ticks / 100);
  until.tv_nsec += (long)(ticks % 100) * 10000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    until.tv_sec++;
  }
  while ((semaphore->value & bits) == 0 && ticks > 0) {
    if (pthread_cond_timedwait(&semaphore->condition, &semaphore->mutex, &until) != 0) break;
  }
}

static inline UINT tx_semaphore_get(TX_SEMAPHORE *semaphore, ULONG wait)
{
  (void)pthread_mutex_lock(&semaphore->mutex);
  tx_wait(semaphore, ~0UL, wait);
  int got = semaphore->value > 0;
  if (got) semaphore->value--;
  (void)pthread_mutex_unlock(&semaphore->mutex);
  return got ? TX_SUCCESS : TX_NO_INSTANCE;
}

static inline UINT tx_semaphore_ceiling_put(TX_SEMAPHORE *semaphore, ULONG ceiling)
{
  (void)pthread_mutex_lock(&semaphore->mutex);
  int below = semaphore->value < ceiling;
  if (below) semaphore->value++;
  (void)pthread_cond_signal(&semaphore->condition);
  (void)pthread_mutex_unlock(&semaphore->mutex);
  return below ? TX_SUCCESS : TX_CEILING_EXCEEDED;
}

static inline UINT tx_event_flags_create(TX_EVENT_FLAGS_GROUP *group, const CHAR *name)
{
  return tx_flags_status != TX_SUCCESS ? tx_flags_status : tx_semaphore_create(group, name, 0);
}

static inline UINT tx_event_flags_delete(TX_EVENT_FLAGS_GROUP *group)
{
  return tx_semaphore_delete(group);
}

static inline UINT tx_event_flags_set(TX_EVENT_FLAGS_GROUP *group, ULONG flags, UINT how)
{
  tx_must(how == TX_OR, "flags are cleared by a set");
  (void)pthread_mutex_lock(&group->mutex);
  group->value |= flags;
  (void)pthread_cond_broadcast(&group->condition);
  (void)pthread_mutex_unlock(&group->mutex);
  return TX_SUCCESS;
}

/* *seen: all flags of the group, as they were. */
static inline UINT tx_event_flags_get(TX_EVENT_FLAGS_GROUP *group, ULONG flags, UINT how,
                                      ULONG *seen, ULONG wait)
{
  UINT status = TX_NO_EVENTS;
  tx_must(flags != 0 && (how == TX_OR || how == TX_OR_CLEAR), "what to wait for");
  (void)pthread_mutex_lock(&group->mutex);
  tx_wait(group, flags, wait);
  if ((group->value & flags) != 0) {
    *seen = group->value;
    if (how == TX_OR_CLEAR) group->value &= ~flags;
    status = TX_SUCCESS;
  }
  (void)pthread_mutex_unlock(&group->mutex);
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
