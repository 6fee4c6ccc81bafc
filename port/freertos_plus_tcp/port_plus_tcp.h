/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport over FreeRTOS-Plus-TCP, versions 3 and 4, IPv4, with the threads of port/freertos
 * (threads.c). The program brings port_clock_ms().
 *
 *     static struct port_plus_tcp server;
 *
 *     port_plus_tcp_init(&server, 0xc0000207, 6379);
 *     then give &server.transport to the client
 *
 * Memory: the stack takes a socket and two stream buffers from FreeRTOS's heap for a connection,
 * ipconfigTCP_RX_BUFFER_LENGTH and ipconfigTCP_TX_BUFFER_LENGTH, by default 4 segments each. 1 KB
 * each does, too: a request that does not fit goes in pieces. A connection that was closed keeps
 * its memory until the next attempt to connect, or the next close(), as the stack tells the server
 * of the end only when that has acknowledged everything. If a client ends, by two close(), with a
 * request under way, its server may not be told. If there is no memory for a new connection,
 * connecting fails, and is tried again.
 *
 * Tasks: any number may share the client. One may be inside recv() while another is inside send();
 * the stack allows that. Do not call the library before FreeRTOS_IPInit(), nor from a callback or
 * a hook of the stack: they run in its own task, which must not wait. Without ipconfigUSE_TCP there
 * is no transport; ipconfigUSE_TCP_WIN, callbacks, signals and FreeRTOS_select() are not needed.
 *
 * Waiting: recv() sleeps in the stack, until something comes. When the last send() found no room, and
 * in connect() after its first call, it looks every 10 ms. Each timeout is rounded down to ticks,
 * but is one tick at least. connect() also waits for the stack's own task, as creating a socket
 * does: up to version 3 that task sleeps for 3 s at a time when a network driver does not come up.
 *
 * The transport has one server: it cannot follow Sentinels or a cluster. TLS goes around it, as
 * port/mbedtls or port/bearssl.
 */
#ifndef PORT_PLUS_TCP_H
#define PORT_PLUS_TCP_H

#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xSOCKET; /* the stack's: a Socket_t points to it */

/* A transport over a socket of FreeRTOS-Plus-TCP. */
struct port_plus_tcp {
  /* for the client; all the rest is private */
  struct port_transport transport;

  /* 0xc0000207 is 192.0.2.7 */
  uint32_t address;

  /* looks up the address of host before each attempt; NULL: the address is given */
  bool (*resolve)(struct port_plus_tcp *tcp);
  const char *host;

  uint16_t port;
  bool connected;

  /* the last send() found no room. Two tasks share it: touched only atomically */
  int lacks_room;

  /* NULL: none */
  struct xSOCKET *socket;

  /* the connection before, which is telling the server that it ends; NULL: none */
  struct xSOCKET *leaving;
};

/*
 * Makes tcp ready to connect to a server. address and port are numbers in the processor's byte order,
 * as above. Opens nothing yet. A server that cannot be reached, no memory for a socket, and a stack
 * that is not running are the same for the client: PORT_UNREACHABLE, and it tries again.
 */
void port_plus_tcp_init(struct port_plus_tcp *tcp, uint32_t address, uint16_t port);

/*
 * The same for a host, an address (with ipconfigINCLUDE_FULL_INET_ADDR) or a name; the string stays
 * the caller's. It is in a file of its own, names.c, as it needs ipconfigUSE_DNS. The name is looked
 * up for each attempt to connect, and that blocks: for ipconfigDNS_RECEIVE_BLOCK_TIME_TICKS times
 * ipconfigDNS_REQUEST_ATTEMPTS at most, by default 25 s, in which the client serves no task. Set
 * these so that their product is below the lease, or resolve the name elsewhere. Which of several
 * addresses comes is the stack's choice: with ipconfigUSE_DNS_CACHE and
 * ipconfigDNS_CACHE_ADDRESSES_PER_ENTRY above 1 it gives them in turn.
 */
void port_plus_tcp_host(struct port_plus_tcp *tcp, const char *host, uint16_t port);

#ifdef __cplusplus
}
#endif

#endif
