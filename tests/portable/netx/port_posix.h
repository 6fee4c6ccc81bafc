/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NetX Duo's transport in place of port/posix's, for suites that are compiled with this folder before
 * that one: they and the harness then run on it as they are.
 */
#ifndef PORT_POSIX_H
#define PORT_POSIX_H

#include "port_netx.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define port_posix          port_netx
#define port_posix_fd(netx) ((netx)->state == 0 ? -1 : (netx)->socket.fd) /* 0: idle */

/* Packets of 1536 bytes, for all that a suite sends and receives. */
static inline void port_posix_tcp(struct port_netx *netx, const char *host, const char *service)
{
  static _Alignas(16) unsigned char memory[64 * 1664];
  NXD_ADDRESS address = {.nxd_ip_version = NX_IP_VERSION_V4};
  struct in_addr parsed;
  if (nx_pool.nx_packet_pool_total == 0)
    (void)nx_packet_pool_create(&nx_pool, "packets", 1536, memory, sizeof memory);
  if (inet_pton(AF_INET, host, &parsed) != 1) abort();
  address.nxd_ip_address.v4 = ntohl(parsed.s_addr);
  port_netx_init(netx, &nx_ip, &nx_pool, &address, (UINT)strtoul(service, NULL, 10));
}

#include "support/only_tcp.h"

#endif
