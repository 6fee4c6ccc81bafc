/* SPDX-License-Identifier: Apache-2.0 */
/* The mutex and the event of any port, for the proof of client.c. */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

#define PORT_PROCESSES 1
#define PORT_THREADS   proof

struct port_mutex {
  int any;
};

struct port_event {
  int any;
};

#endif
