/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FreeRTOS and lwIP on the simulated board: the kernel's tick and hooks, and a task that drives the
 * network, as one that the controller's interrupt wakes would.
 */
#include "system.h"
#include "board.h"
#include "network.h"

#include "FreeRTOS.h"
#include "task.h"

#include "lwip/tcpip.h"

enum { STACK_WORDS = 384, PRIORITY = 3 };

#define SHPR3           REGISTER(0xe000ed20)
#define LOWEST_PRIORITY 0xffff0000U /* of PendSV and the tick */

void board_tick(void);
void xPortSysTickHandler(void);

/* The board's tick runs from the start, the kernel does not. */
void board_tick(void)
{
  if (xTaskGetSchedulerState() != taskSCHEDULER_NOT_STARTED) xPortSysTickHandler();
}

void assertion_failed(const char *file, int line)
{
  board_write("assertion failed in ");
  board_write(file);
  board_write(", line ");
  board_write_number((uint32_t)line);
  board_write("\n");
  board_exit(98);
}

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
  (void)task;
  board_write(name);
  board_write(": stack overflow\n");
  board_exit(97);
}

/* Hands over frames, and runs lwIP's timers. */
static void drive(void *context)
{
  (void)context;
  for (;;) {
    LOCK_TCPIP_CORE();
    (void)network_look();
    UNLOCK_TCPIP_CORE();
    vTaskDelay(1);
  }
}

/* Both of the network begin with lwIP's own; nothing of it is in use in between. */
bool board_init(void)
{
  static StaticTask_t memory;
  static StackType_t stack[STACK_WORDS];
  if (!network_init()) return false;
  tcpip_init(NULL, NULL);
  (void)xTaskCreateStatic(drive, "driver", STACK_WORDS, NULL, PRIORITY, stack, &memory);
  SHPR3 =
      /*
       * the kernel masks it while it starts: a tick during that would switch tasks before there is
       * one
       */
      LOWEST_PRIORITY;
  return true;
}

void board_print(const char *text)
{
  board_write(text);
}
