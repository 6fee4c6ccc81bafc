/* A program with one task needs neither a mutex nor an event. */
#ifndef FAIRLOCK_PORT_TYPES_H
#define FAIRLOCK_PORT_TYPES_H

struct port_mutex {
  char unused;
};

struct port_event {
  char unused;
};

#endif
