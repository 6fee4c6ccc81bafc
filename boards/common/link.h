/*
 * The examples' way to the server: TCP over a board's Ethernet (link_lwip.c), or a serial line
 * (link_uart.c).
 */
#ifndef LINK_H
#define LINK_H

#include "port.h"

/*
 * Starts the network, or the line. The server's port is argument 1 of the command line. NULL: the
 * hardware does not answer.
 */
struct port_transport *link_init(void);

#endif
