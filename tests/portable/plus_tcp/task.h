/* FreeRTOS's tasks: see FreeRTOS.h. */
#ifndef INC_TASK_H
#define INC_TASK_H

typedef void *TaskHandle_t;

TaskHandle_t xTaskGetCurrentTaskHandle(void);

#endif
