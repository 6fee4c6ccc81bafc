/*
 * The mutex and the event of the threads port for FreeRTOS. Private to threads.c; here for their
 * sizes.
 */
#ifndef PORT_TYPES_H
#define PORT_TYPES_H

#include "FreeRTOS.h"
#include "semphr.h"

struct port_mutex {
  SemaphoreHandle_t handle;
  StaticSemaphore_t memory;
};

struct port_event {
  SemaphoreHandle_t handle;
  StaticSemaphore_t memory;
};

#endif
