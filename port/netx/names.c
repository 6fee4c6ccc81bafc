/* SPDX-License-Identifier: Apache-2.0 */
/* Host names for the transport over NetX Duo's TCP; see port_netx_names.h. */
#include "port_netx_names.h"

#include "ticks.h"

static UINT look_up(struct port_netx *netx)
{
  return nxd_dns_host_by_name_get(netx->dns, (UCHAR *)netx->host, &netx->address,
                                  ticks(PORT_NETX_LOOKUP_MS), NX_IP_VERSION_V4);
}

void port_netx_host(struct port_netx *netx, NX_IP *ip, NX_PACKET_POOL *pool, NX_DNS *dns,
                    const char *host, UINT port)
{
  static const NXD_ADDRESS none;
  port_netx_init(netx, ip, pool, &none, port);
  netx->resolve = look_up;
  netx->dns = dns;
  netx->host = host;
}
