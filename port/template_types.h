/*
 * The types of a port to copy: as port_types.h, into a folder that comes before any other port's in
 * the include path. port.h includes it, so its users see what it includes: keep that short.
 *
 * The client embeds a mutex, and has an event on the stack of each task that waits. Both are made
 * and destroyed by the functions of template.c, stay in place in between, and are used by these
 * functions alone. Where the RTOS allows it, put the memory of its objects here, so that nothing is
 * allocated: each call that waits makes an event and destroys it.
 */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

/* FreeRTOS: a SemaphoreHandle_t and a StaticSemaphore_t; Zephyr: a struct k_mutex */
struct port_mutex {
  char unused;
};

/* FreeRTOS: the same as above; Zephyr: a struct k_sem */
struct port_event {
  char unused;
};

#endif
