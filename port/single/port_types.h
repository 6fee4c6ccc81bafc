/* A program with one task needs neither a mutex nor an event. */
#ifndef PORT_TYPES_H
#define PORT_TYPES_H

struct port_mutex {
  char unused;
};

struct port_event {
  char unused;
};

#endif
