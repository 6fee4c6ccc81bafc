/* A program with one task needs neither a mutex nor a signal. */
#ifndef PORT_TYPES_H
#define PORT_TYPES_H

struct port_mutex {
  char unused;
};

struct port_signal {
  char unused;
};

#endif
