/* SPDX-License-Identifier: Apache-2.0 */
/* What lwIP needs from FreeRTOS; see sys_arch.c. These objects must not move. */
#ifndef ARCH_SYS_ARCH_H
#define ARCH_SYS_ARCH_H

#include "FreeRTOS.h"
#include "queue.h"
#include "semphr.h"
#include "task.h"

#define MAILBOX_SLOTS 8

typedef struct {
  SemaphoreHandle_t handle; /* NULL: invalid */
  StaticSemaphore_t memory;
} sys_sem_t;

typedef sys_sem_t sys_mutex_t;

typedef struct {
  QueueHandle_t handle; /* NULL: invalid */
  StaticQueue_t memory;
  void *slots[MAILBOX_SLOTS];
} sys_mbox_t;

typedef TaskHandle_t sys_thread_t;
typedef int sys_prot_t;

#define sys_sem_valid(sem)            ((sem)->handle != NULL)
#define sys_sem_set_invalid(sem)      ((sem)->handle = NULL)
#define sys_mutex_valid(mutex)        sys_sem_valid(mutex)
#define sys_mutex_set_invalid(mutex)  sys_sem_set_invalid(mutex)
#define sys_mbox_valid(mailbox)       ((mailbox)->handle != NULL)
#define sys_mbox_set_invalid(mailbox) ((mailbox)->handle = NULL)

sys_sem_t *sys_task_sem(void);
#define LWIP_NETCONN_THREAD_SEM_GET()   sys_task_sem()
#define LWIP_NETCONN_THREAD_SEM_ALLOC() ((void)0)
#define LWIP_NETCONN_THREAD_SEM_FREE()  ((void)0)

#endif
