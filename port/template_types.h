/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of a port, to copy. Name the copy port_types.h, in a folder that comes before other
 * ports' folders in the include path. port.h includes it, so every file that includes port.h also
 * includes what this includes; let that be little.
 *
 * The client has a mutex in it, and each task that waits has an event on its stack. Only the
 * functions of template.c use them. They are made, stay in place, and are destroyed by these
 * functions; each call that waits makes an event and destroys it. So, if the RTOS allows it, put
 * the memory of its objects here, and nothing has to be allocated.
 */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

/* a name of your port's own: a program with other types does not link (port.h) */
#define PORT_THREADS port_template

/* FreeRTOS: a SemaphoreHandle_t and a StaticSemaphore_t; Zephyr: a struct k_mutex */
struct port_mutex {
  char unused;
};

/* FreeRTOS: the same as above; Zephyr: a struct k_sem */
struct port_event {
  char unused;
};

#endif
