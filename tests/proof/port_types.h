/* SPDX-License-Identifier: Apache-2.0 */
/* The mutex and the event of a threads port, of which the engine knows nothing. */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

#define PORT_THREADS proof

struct port_mutex {
  char unused;
};

struct port_event {
  char unused;
};

#endif
