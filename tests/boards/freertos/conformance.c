/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port/conformance on FreeRTOS; see tasks_conformance.h. Its second task is one that waits
 * for something to run.
 */
#include "tasks_conformance.h"
#include "board.h"
#include "conformance.h"

#include "semphr.h"
#include "task.h"

enum { STACK_WORDS = 512 };

static struct port_conformance port;
static StaticTask_t memory[2];
static StackType_t stack[2][STACK_WORDS];

static SemaphoreHandle_t wanted;
static StaticSemaphore_t wanted_memory;
static void (*to_run)(void *context);
static void *to_run_with;

static bool start_second(void (*run)(void *context), void *context)
{
  to_run = run;
  to_run_with = context;
  return xSemaphoreGive(wanted) == pdTRUE;
}

static void second(void *context)
{
  (void)context;
  for (;;) {
    (void)xSemaphoreTake(wanted, portMAX_DELAY);
    to_run(to_run_with);
  }
}

static void first(void *context)
{
  (void)context;
  board_exit(port_conformance_run(&port) > 0);
}

void conformance_start(struct port_transport *transport, unsigned priority)
{
  port = (struct port_conformance){
      .transport = transport, .write = board_write, .start = start_second};
  wanted = xSemaphoreCreateBinaryStatic(&wanted_memory);
  (void)xTaskCreateStatic(first, "first", STACK_WORDS, NULL, priority, stack[0], &memory[0]);
  (void)xTaskCreateStatic(second, "second", STACK_WORDS, NULL, priority, stack[1], &memory[1]);
}
