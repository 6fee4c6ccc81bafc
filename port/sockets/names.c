/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host names for the sockets port; see port_sockets.h. Apart from sockets.c, for programs whose
 * system has no getaddrinfo(), or that need none. Where its headers have other names, change these
 * lines:
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides on a host */

#include <sys/socket.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "port_sockets.h"

/* The size that comes with an address is not looked at: lwIP says that of the largest. */
static bool resolve(struct port_sockets *sockets)
{
  const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo *list = NULL;
  struct sockaddr_in address;
  unsigned count = 0;
  if (getaddrinfo(sockets->host, NULL, &hints, &list) != 0 || list == NULL) return false;
  for (const struct addrinfo *entry = list; entry != NULL; entry = entry->ai_next)
    count++;
  const struct addrinfo *chosen = list;
  for (unsigned i = sockets->turn % count; i > 0; i--)
    chosen = chosen->ai_next;
  memcpy(&address, chosen->ai_addr, sizeof address);
  freeaddrinfo(list);
  sockets->address = ntohl(address.sin_addr.s_addr);
  return true;
}

void port_sockets_host(struct port_sockets *sockets, const char *host, uint16_t port)
{
  port_sockets_init(sockets, 0, port);
  sockets->resolve = resolve;
  sockets->host = host;
}
