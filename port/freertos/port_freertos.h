/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks of port/lwip for FreeRTOS; see network.c.
 */
#ifndef PORT_FREERTOS_H
#define PORT_FREERTOS_H

#include "port_lwip.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For port_lwip_init(). */
extern const struct port_lwip_hooks port_freertos_hooks;

#ifdef __cplusplus
}
#endif

#endif
