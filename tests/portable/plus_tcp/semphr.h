/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS's semaphores and mutexes: see FreeRTOS.h. */
#ifndef SEMAPHORE_H
#define SEMAPHORE_H

#include "FreeRTOS.h"

#include <pthread.h>

typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  unsigned count;
  /* of a mutex; nobody else may give it */
  int is_mutex;
  pthread_t holder;
} StaticSemaphore_t;

typedef StaticSemaphore_t *SemaphoreHandle_t;

#ifdef __cplusplus
extern "C" {
#endif

SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *memory);
SemaphoreHandle_t xSemaphoreCreateBinaryStatic(StaticSemaphore_t *memory);
BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks);
BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore);
void vSemaphoreDelete(SemaphoreHandle_t semaphore);

#ifdef __cplusplus
}
#endif

#endif
