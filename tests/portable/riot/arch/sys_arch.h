/* SPDX-License-Identifier: Apache-2.0 */
/* The types of lwIP's port to RIOT; nothing here looks into them. */
typedef struct {
  int unused;
} sys_sem_t, sys_mutex_t, sys_mbox_t;
typedef int sys_thread_t, sys_prot_t;
