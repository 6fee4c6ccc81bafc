/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport over NetX Duo's TCP, for ThreadX: IPv4 and IPv6; host names with port_netx_names.h.
 * Several threads may share the client. The transport has one server: it cannot follow Sentinels or
 * a cluster.
 *
 *     static struct port_netx server;
 *     static const NXD_ADDRESS address = {.nxd_ip_version = NX_IP_VERSION_V4,
 *                                         .nxd_ip_address.v4 = IP_ADDRESS(192, 0, 2, 7)};
 *
 *     port_netx_init(&server, &ip, &pool, &address, 6379);
 *     ... give &server.transport to the client ...
 *
 * Memory. All of it is the caller's struct and packets of the program's pool; none is allocated
 * elsewhere. What is sent takes a packet each time until the server has acknowledged it, what is
 * received one for each segment until the client takes it: eight packets that hold a full segment
 * are ample. Sending leaves the last two of the pool to what comes, as NetX needs one to receive an
 * acknowledgement; it waits until there are more, and no byte is lost. A connection is ended by a
 * reset, which needs a packet, too, of the pool that nx_ip_create() was given: without one, the
 * server is told when it sends next, or when its keepalive asks.
 *
 * NetX tells nobody who does not block in its calls when there is room again to send, or when an
 * attempt to connect has ended. So the transport looks each 10 ms in these two cases. What is
 * received wakes the waiting thread at once.
 *
 * Threads: the ThreadX rules of threads.c hold here, too. Let the thread that nx_ip_create() makes
 * have a higher priority than those that use the client.
 *
 * Needs NetX Duo 6 with nx_tcp_enable(), and ThreadX's event flags. Any configuration will do; with
 * NX_DISABLE_RESET_DISCONNECT the end of a connection is a FIN instead, and blocks the client for up
 * to a tick.
 *
 * What the program has to supply as well (the contract is in port.h):
 *   port_clock_ms   from a counter that hardware drives. It is not tx_time_get(): that counts
 *                   interrupts of the tick, and stops in a low-power mode whose time is not added by
 *                   tx_time_increment(), and it can be set. A clock that is slow lets a device
 *                   believe in a lock that it has lost. Take a timer of 32 bits, an RTC, or a
 *                   narrower counter that is read often enough to be extended.
 */
#ifndef PORT_NETX_H
#define PORT_NETX_H

#include "port.h"

#include "nx_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How much the server may send before the client has taken it, in bytes, for each connection. */
#ifndef PORT_NETX_WINDOW
#define PORT_NETX_WINDOW 4096U
#endif

/* A transport over a TCP socket of NetX Duo's. */
struct port_netx {
  /* for the client; all the rest is private */
  struct port_transport transport;

  NX_IP *ip;
  NX_PACKET_POOL *pool;
  NXD_ADDRESS address;
  UINT port;

  /* looks up the address of host before each attempt; NULL: the address is given */
  UINT (*resolve)(struct port_netx *netx);
  void *dns;
  const char *host;

  /* how far the connection is */
  int state;

  /* see port_netx_error() */
  volatile UINT error;

  NX_TCP_SOCKET socket;

  /* what has happened to the connection */
  TX_EVENT_FLAGS_GROUP events;

  /* received, of which the client has taken `taken` bytes; NULL: none */
  NX_PACKET *packet;
  ULONG taken;
};

/*
 * Makes netx ready to connect to a server. ip and pool are the program's, and stay in use. The
 * pool has at least three packets, with room for NX_TCP_PACKET and a byte. address is copied. Opens
 * nothing yet.
 */
void port_netx_init(struct port_netx *netx, NX_IP *ip, NX_PACKET_POOL *pool,
                    const NXD_ADDRESS *address, UINT port);

/*
 * Why the last attempt to connect failed: a status of nx_api.h, or, if a name was not found, of
 * nxd_dns.h. NX_NOT_CONNECTED: the server has refused; NX_IN_PROGRESS: it was silent, and the client
 * has given up. NX_SUCCESS: it has not failed. May be called from any thread.
 */
UINT port_netx_error(const struct port_netx *netx);

#ifdef __cplusplus
}
#endif

#endif
