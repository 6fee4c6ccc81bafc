/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FreeRTOS for the tests: Cortex-M3, preempted at each tick of 4 ms (longer than some of the
 * waits), all memory static.
 */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

/* What port/freertos needs. */
#define configSUPPORT_STATIC_ALLOCATION   1
#define configUSE_MUTEXES                 1
#define INCLUDE_xTaskGetCurrentTaskHandle 1
#define INCLUDE_vTaskDelay                1
#define INCLUDE_vTaskSuspend              1 /* portMAX_DELAY is for ever */

#define configCPU_CLOCK_HZ                  CLOCK_HZ
#define configTICK_RATE_HZ                  250
#define configTICK_TYPE_WIDTH_IN_BITS       TICK_TYPE_WIDTH_32_BITS
#define configUSE_PREEMPTION                1
#define configUSE_TIME_SLICING              1
#define configMAX_PRIORITIES                4
#define configMINIMAL_STACK_SIZE            128
#define configUSE_IDLE_HOOK                 0
#define configUSE_TICK_HOOK                 0
#define configSUPPORT_DYNAMIC_ALLOCATION    0
#define configKERNEL_PROVIDED_STATIC_MEMORY 1
#define INCLUDE_xTaskGetSchedulerState      1
#define INCLUDE_uxTaskGetStackHighWaterMark 1
#define configCHECK_FOR_STACK_OVERFLOW      2

/* lwIP's sockets: an errno and a semaphore for each task. */
#define configUSE_POSIX_ERRNO                   1
#define configNUM_THREAD_LOCAL_STORAGE_POINTERS 1

/* Interrupts of this priority and below may call the kernel; there are 3 bits. */
#define configKERNEL_INTERRUPT_PRIORITY      0xe0
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 0x40

/* The vectors are in cortex_m.c, and the tick goes by tasks.c. */
#define vPortSVCHandler                  board_call
#define xPortPendSVHandler               board_pend
#define configCHECK_HANDLER_INSTALLATION 0

void assertion_failed(const char *file, int line);
#define configASSERT(condition) ((condition) ? (void)0 : assertion_failed(__FILE__, __LINE__))

#endif
