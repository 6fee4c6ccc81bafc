/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutex and the event of the threads port for FreeRTOS. Private to threads.c; here for their
 * sizes.
 */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

#ifdef ESP_PLATFORM
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "sdkconfig.h"

/* for port.h */
#define PORT_WAIT_MAX_MS CONFIG_FAIRLOCK_WAIT_MAX_MS
#else
#include "FreeRTOS.h"
#include "semphr.h"
#endif

/* for port.h */
#define PORT_THREADS port_freertos

struct port_mutex {
  SemaphoreHandle_t handle;
  StaticSemaphore_t memory;
};

struct port_event {
  SemaphoreHandle_t handle;
  StaticSemaphore_t memory;
};

#endif
