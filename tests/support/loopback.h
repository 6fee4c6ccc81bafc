/* SPDX-License-Identifier: Apache-2.0 */
/* TCP sockets on 127.0.0.1, closed on exec, without Nagle's delay. */
#ifndef SUPPORT_LOOPBACK_H
#define SUPPORT_LOOPBACK_H

/* A connection to a port. -1: nobody listens there. */
int dial(int port);

/* A socket that listens on a free port, *port. Ends the program when there is none. */
int listen_anywhere(int *port);

/* The next connection of a listener, or -1. */
int take_call(int listener);

/* A port that was free a moment ago. */
int free_port(void);

#endif
