/*
 * The hooks of port/lwip for FreeRTOS; see network.c.
 */
#ifndef PORT_FREERTOS_H
#define PORT_FREERTOS_H

#include "port_lwip.h"

/* For port_lwip_init(). */
extern const struct port_lwip_hooks port_freertos_hooks;

#endif
