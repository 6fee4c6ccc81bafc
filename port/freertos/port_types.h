/*
 * The mutex and the event of the threads port for FreeRTOS. Private to threads.c; here for their
 * sizes.
 */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

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
