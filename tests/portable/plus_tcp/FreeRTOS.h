/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of FreeRTOS and FreeRTOS-Plus-TCP that port/freertos and port/freertos_plus_tcp make, on
 * POSIX threads and the host's sockets: what a host can try of these ports without either. What they
 * mean is taken from their documentation, so this shows that the ports are right if that is. See
 * stand_in.h for what a test can have go wrong.
 */
#ifndef FREERTOS_H
#define FREERTOS_H

#include <stddef.h>
#include <stdint.h>

typedef long BaseType_t;
typedef uint32_t TickType_t;

#define configTICK_RATE_HZ 250
#define pdMS_TO_TICKS(ms)                                                                          \
  ((TickType_t)(((TickType_t)(ms) * (TickType_t)configTICK_RATE_HZ) / 1000U))
#define portMAX_DELAY 0xffffffffU

#define pdFALSE ((BaseType_t)0)
#define pdTRUE  ((BaseType_t)1)

#define pdFREERTOS_ERRNO_EINTR       4
#define pdFREERTOS_ERRNO_EWOULDBLOCK 11
#define pdFREERTOS_ERRNO_ENOMEM      12
#define pdFREERTOS_ERRNO_EINVAL      22
#define pdFREERTOS_ERRNO_ENOSPC      28
#define pdFREERTOS_ERRNO_ETIMEDOUT   116
#define pdFREERTOS_ERRNO_ENOTCONN    128

#endif
