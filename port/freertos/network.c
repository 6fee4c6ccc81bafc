/*
 * A template: the hooks of port/lwip for FreeRTOS with lwIP's own task (NO_SYS 0). `make freertos`
 * tests it, with the files of tests/qemu/freertos. lwipopts.h needs LWIP_TCPIP_CORE_LOCKING 1, and
 * LWIP_TIMERS, without which that task never opens the lock. INCLUDE_vTaskDelay is needed, too.
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

/*
 * What is left for you to write, because it depends on the chip (the contract is in port.h, with
 * more in port_lwip.h):
 *
 *   uint32_t port_clock_ms(void)
 *     From a hardware timer. xTaskGetTickCount() is one only where no tick is ever lost: not with a
 *     debugger that stops the core, long stretches with interrupts masked, or a sleep mode that
 *     stops its timer without vTaskStepTick() for the whole of it.
 */
