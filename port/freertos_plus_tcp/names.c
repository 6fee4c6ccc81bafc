/* SPDX-License-Identifier: Apache-2.0 */
/* Host names for the transport over FreeRTOS-Plus-TCP; see port_plus_tcp.h. */
#include "port_plus_tcp.h"

#include "FreeRTOS_IP.h"
#include "FreeRTOS_DNS.h" /* after FreeRTOS_IP.h, on which it relies */

/* Not FreeRTOS_getaddrinfo(), which version 3 does not have. */
static bool resolve(struct port_plus_tcp *tcp)
{
  tcp->address = FreeRTOS_ntohl(FreeRTOS_gethostbyname(tcp->host));
  return tcp->address != 0;
}

void port_plus_tcp_host(struct port_plus_tcp *tcp, const char *host, uint16_t port)
{
  port_plus_tcp_init(tcp, 0, port);
  tcp->resolve = resolve;
  tcp->host = host;
}
