/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS's tasks: see FreeRTOS.h. Those that an application starts are only compiled here. */
#ifndef INC_TASK_H
#define INC_TASK_H

#include "FreeRTOS.h"

typedef void *TaskHandle_t;

TaskHandle_t xTaskGetCurrentTaskHandle(void);

typedef uint32_t StackType_t;
typedef unsigned long UBaseType_t;
typedef struct {
  int unused;
} StaticTask_t;

TaskHandle_t xTaskCreateStatic(void (*run)(void *context), const char *name, uint32_t stack_words,
                               void *context, UBaseType_t priority, StackType_t *stack,
                               StaticTask_t *memory);
void vTaskDelay(TickType_t ticks);
void vTaskStartScheduler(void);

#endif
