/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A template: a transport for an RTOS with POSIX sockets (ESP-IDF, NuttX, RTEMS, lwIP's socket
 * layer), IPv4. Zephyr has its own, port/zephyr. It is tested on Linux, and by `make freertos` on
 * lwIP. Where several tasks share the client, each needs a separate errno. The server must be
 * another machine: this port has no check against a socket that is connected to itself. On a full
 * POSIX system use port/posix instead.
 */
#ifndef PORT_SOCKETS_H
#define PORT_SOCKETS_H

#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A transport over a socket. */
struct port_sockets {
  /* for the client; all the rest is private */
  struct port_transport transport;

  /* 0xc0000207 is 192.0.2.7 */
  uint32_t address;

  /* looks up the address of host before each attempt; NULL: the address is given */
  bool (*resolve)(struct port_sockets *sockets);
  const char *host;

  /* which of the host's addresses comes next */
  unsigned turn;

  uint16_t port;
  bool connected;

  /* why the last send() would have blocked. Two tasks share it: touched only atomically */
  int send_lacks;

  /* -1: none */
  int socket;
};

/*
 * Makes sockets ready to connect to a server. address and port are numbers in the processor's byte
 * order, as above. Opens nothing yet.
 */
void port_sockets_init(struct port_sockets *sockets, uint32_t address, uint16_t port);

/*
 * The same for a host, an address or a name; the string stays the caller's. It is in a file of its
 * own, names.c, as it needs getaddrinfo(). That is called for each attempt to connect, and blocks:
 * connecting then takes as long as the system's resolver does, and the client serves no task
 * meanwhile. lwIP gives up after 7 s for each name server that does not answer. The addresses that
 * it finds are tried in turn, one with each attempt.
 */
void port_sockets_host(struct port_sockets *sockets, const char *host, uint16_t port);

#ifdef __cplusplus
}
#endif

#endif
