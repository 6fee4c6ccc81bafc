/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks, mutex and event on FreeRTOS; boards/freertos/README.md says what FreeRTOSConfig.h needs.
 * `make freertos` tests it on Cortex-M3 with version 11.2.
 *
 * Mutexes of FreeRTOS inherit priorities, so tasks of any priority may share a client. Before the
 * scheduler runs, call only the library's init functions; from an interrupt, or with the scheduler
 * suspended, nothing at all.
 */
#include "port.h"

#ifdef ESP_PLATFORM
#include "freertos/task.h"
#else
#include "task.h"
#endif

#if defined INCLUDE_vTaskSuspend && !INCLUDE_vTaskSuspend
#error "FreeRTOSConfig.h needs INCLUDE_vTaskSuspend 1, or portMAX_DELAY is a wait that ends"
#endif

/* Longer waits are cut: port.h allows an early return, and pdMS_TO_TICKS() must not overflow. */
#define LONGEST_MS 60000U

/*
 * At least one tick for a wait: with none, a wait shorter than a tick would spin, and tasks of
 * lower priority would never run.
 */
static TickType_t ticks(uint32_t ms)
{
  TickType_t count = pdMS_TO_TICKS(ms < LONGEST_MS ? ms : LONGEST_MS);
  return count == 0 && ms > 0 ? 1 : count;
}

uintptr_t port_task_self(void)
{
  return (uintptr_t)xTaskGetCurrentTaskHandle();
}

void port_mutex_init(struct port_mutex *mutex)
{
  mutex->handle = xSemaphoreCreateMutexStatic(&mutex->memory);
}

void port_mutex_lock(struct port_mutex *mutex)
{
  (void)xSemaphoreTake(mutex->handle, portMAX_DELAY);
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  (void)xSemaphoreGive(mutex->handle);
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  vSemaphoreDelete(mutex->handle);
}

/*
 * A binary semaphore: given before it is taken, it stays given, so an event that comes early is not
 * lost.
 */
void port_event_init(struct port_event *event)
{
  event->handle = xSemaphoreCreateBinaryStatic(&event->memory);
}

void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  port_mutex_unlock(mutex);
  (void)xSemaphoreTake(event->handle, ticks(timeout_ms));
  port_mutex_lock(mutex);
}

void port_event_set(struct port_event *event)
{
  (void)xSemaphoreGive(event->handle); /* fails if it is given already, which does no harm */
}

void port_event_destroy(struct port_event *event)
{
  vSemaphoreDelete(event->handle);
}
