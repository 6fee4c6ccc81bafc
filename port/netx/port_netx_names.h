/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport of port_netx.h to a host by its name, looked up with NetX's DNS (nxd_dns.h). It is
 * apart because that is an addon.
 */
#ifndef PORT_NETX_NAMES_H
#define PORT_NETX_NAMES_H

#include "port_netx.h"

#include "nxd_dns.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * As port_netx_init(), for a host, whose address (IPv4) is looked up for each attempt to connect.
 * dns is the program's, made by nx_dns_create(), with a name server added. host stays the caller's.
 * A lookup blocks the client: NetX waits PORT_NETX_LOOKUP_MS for a name server to answer, then twice
 * as long, and so on, NX_DNS_MAX_RETRIES times: 7 s for one that is silent. NX_DNS_CACHE_ENABLE spares
 * most lookups.
 */
void port_netx_host(struct port_netx *netx, NX_IP *ip, NX_PACKET_POOL *pool, NX_DNS *dns,
                    const char *host, UINT port);

/* How long names.c waits for an answer at first, in ms: 1 to 60000. */
#ifndef PORT_NETX_LOOKUP_MS
#define PORT_NETX_LOOKUP_MS 1000U
#endif

#ifdef __cplusplus
}
#endif

#endif
