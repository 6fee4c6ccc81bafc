/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets port in place of port/posix's transport, for suites that are compiled with this
 * folder before that one: they and the harness then run on it as they are. IPv4's loopback is the
 * only host.
 */
#ifndef PORT_POSIX_H
#define PORT_POSIX_H

#include "port_sockets.h"

#include <stdlib.h>

#define port_posix port_sockets

static inline void port_posix_tcp(struct port_posix *socket, const char *host, const char *service)
{
  (void)host;
  port_sockets_init(socket, 0x7f000001, (uint16_t)strtoul(service, NULL, 10));
}

#include "support/only_tcp.h"

#endif
