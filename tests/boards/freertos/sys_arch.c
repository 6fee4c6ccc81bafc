/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lwIP's system layer on FreeRTOS, for tests: semaphores, mutexes, mailboxes and one task, all of
 * static memory. Each task that uses sockets has a semaphore; its thread-local pointer points to it
 * after the first use.
 */
#include "lwip/opt.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/sys.h"
#include "lwip/timeouts.h"

#define TASKS 8

static TickType_t ticks(u32_t ms)
{
  return ms == 0 ? portMAX_DELAY : pdMS_TO_TICKS(ms);
}

void sys_init(void)
{
}

err_t sys_sem_new(sys_sem_t *sem, u8_t count)
{
  sem->handle = xSemaphoreCreateBinaryStatic(&sem->memory);
  if (count > 0) (void)xSemaphoreGive(sem->handle);
  return ERR_OK;
}

void sys_sem_signal(sys_sem_t *sem)
{
  (void)xSemaphoreGive(sem->handle);
}

u32_t sys_arch_sem_wait(sys_sem_t *sem, u32_t timeout_ms)
{
  return xSemaphoreTake(sem->handle, ticks(timeout_ms)) == pdTRUE ? 0 : SYS_ARCH_TIMEOUT;
}

void sys_sem_free(sys_sem_t *sem)
{
  vSemaphoreDelete(sem->handle);
}

sys_sem_t *sys_task_sem(void)
{
  static sys_sem_t sems[TASKS];
  static unsigned count;
  sys_sem_t *sem = pvTaskGetThreadLocalStoragePointer(NULL, 0);
  if (sem != NULL) return sem;
  taskENTER_CRITICAL();
  configASSERT(count < TASKS);
  sem = &sems[count++];
  taskEXIT_CRITICAL();
  (void)sys_sem_new(sem, 0);
  vTaskSetThreadLocalStoragePointer(NULL, 0, sem);
  return sem;
}

err_t sys_mutex_new(sys_mutex_t *mutex)
{
  mutex->handle = xSemaphoreCreateMutexStatic(&mutex->memory);
  return ERR_OK;
}

void sys_mutex_lock(sys_mutex_t *mutex)
{
  (void)xSemaphoreTake(mutex->handle, portMAX_DELAY);
}

void sys_mutex_unlock(sys_mutex_t *mutex)
{
  (void)xSemaphoreGive(mutex->handle);
}

err_t sys_mbox_new(sys_mbox_t *mailbox, int size)
{
  configASSERT(size <= MAILBOX_SLOTS);
  mailbox->handle = xQueueCreateStatic((UBaseType_t)size, sizeof(void *), (uint8_t *)mailbox->slots,
                                       &mailbox->memory);
  return ERR_OK;
}

void sys_mbox_free(sys_mbox_t *mailbox)
{
  vQueueDelete(mailbox->handle);
}

void sys_mbox_post(sys_mbox_t *mailbox, void *message)
{
  (void)xQueueSend(mailbox->handle, &message, portMAX_DELAY);
}

err_t sys_mbox_trypost(sys_mbox_t *mailbox, void *message)
{
  return xQueueSend(mailbox->handle, &message, 0) == pdTRUE ? ERR_OK : ERR_MEM;
}

u32_t sys_arch_mbox_fetch(sys_mbox_t *mailbox, void **message, u32_t timeout_ms)
{
  void *dropped;
  return xQueueReceive(mailbox->handle, message != NULL ? message : &dropped, ticks(timeout_ms)) ==
                 pdTRUE
             ? 0
             : SYS_ARCH_TIMEOUT;
}

u32_t sys_arch_mbox_tryfetch(sys_mbox_t *mailbox, void **message)
{
  void *dropped;
  return xQueueReceive(mailbox->handle, message != NULL ? message : &dropped, 0) == pdTRUE
             ? 0
             : SYS_MBOX_EMPTY;
}

sys_thread_t sys_thread_new(const char *name, lwip_thread_fn run, void *context, int stack_words,
                            int priority)
{
  static StaticTask_t task;
  static StackType_t stack[TCPIP_THREAD_STACKSIZE];
  configASSERT(stack_words == TCPIP_THREAD_STACKSIZE);
  return xTaskCreateStatic(run, name, TCPIP_THREAD_STACKSIZE, context, (UBaseType_t)priority, stack,
                           &task);
}

sys_prot_t sys_arch_protect(void)
{
  taskENTER_CRITICAL();
  return 0;
}

void sys_arch_unprotect(sys_prot_t before)
{
  (void)before;
  taskEXIT_CRITICAL();
}

/* The timers are network.c's. */

void sys_timeouts_init(void)
{
}

void sys_check_timeouts(void)
{
}

u32_t sys_timeouts_sleeptime(void)
{
  return SYS_TIMEOUTS_SLEEPTIME_INFINITE;
}
