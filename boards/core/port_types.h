/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads port of a core, which has neither threads nor waits. It is not PORT_ONE_TASK, whose
 * schedule is a list: a service may have thousands of locks.
 */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

#define PORT_THREADS port_core

struct port_mutex {
  char unused;
};

struct port_event {
  char unused;
};

#endif
