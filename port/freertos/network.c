/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks of port/lwip for FreeRTOS with lwIP's own task. boards/freertos/README.md has what a program
 * needs besides, and `make freertos` tests it.
 *
 *     static struct port_lwip link;
 *     port_lwip_init(&link, &port_freertos_hooks, &address, 6379);
 *
 * Frames are received by lwIP's task; the waiting task looks every LOOK_MS whether something came.
 * A handover may take that much longer. A shorter period costs processor time, but only while a
 * task waits.
 */
#include "port_freertos.h"

#include "FreeRTOS.h"
#include "task.h"

#include "lwip/tcpip.h"

/* Without timers lwIP's task never opens the lock. */
#if NO_SYS || !LWIP_TCPIP_CORE_LOCKING || !LWIP_TIMERS
#error "lwipopts.h needs NO_SYS 0, LWIP_TCPIP_CORE_LOCKING 1 and LWIP_TIMERS 1"
#endif

#define LOOK_MS 2U

static void turn(uint32_t timeout_ms)
{
  TickType_t sleep = pdMS_TO_TICKS(timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS);
  if (timeout_ms > 0) vTaskDelay(sleep > 0 ? sleep : 1);
}

static void lock(void)
{
  LOCK_TCPIP_CORE();
}

static void unlock(void)
{
  UNLOCK_TCPIP_CORE();
}

const struct port_lwip_hooks port_freertos_hooks = {turn, lock, unlock};
