/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over FreeRTOS-Plus-TCP in place of port/posix's, for suites that are compiled with
 * this folder before that one: they and the harness then run on it as they are.
 */
#ifndef PORT_POSIX_H
#define PORT_POSIX_H

#include "port_plus_tcp.h"
#include "stand_in.h"

#include <stdlib.h>

struct port_posix {
  struct port_transport transport;
  struct port_plus_tcp tcp;
};

static inline void port_posix_tcp(struct port_posix *socket, const char *host, const char *service)
{
  port_plus_tcp_host(&socket->tcp, host, (uint16_t)strtoul(service, NULL, 10));
  socket->transport = socket->tcp.transport;
}

#define port_posix_fd(link) plus_tcp_stand_in_fd((link)->tcp.socket)

#include "support/only_tcp.h"

#endif
