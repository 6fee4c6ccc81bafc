/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport over lwIP's raw TCP API, for NO_SYS=1 (bare metal) and for tasks around one lwIP
 * core.
 *
 *     static struct port_lwip link;
 *     static const struct port_lwip_hooks hooks = {.turn = network_turn};
 *
 *     ip_addr_t address;
 *     IP_ADDR4(&address, 192, 0, 2, 7);
 *     port_lwip_init(&link, &hooks, &address, 6379);
 *     ... give &link.transport to the client ...
 *
 * Memory. All of it is the caller's struct and lwIP's pools. Received data stay in their pbufs
 * until the client takes them, and only then is the TCP window opened again: so the server never
 * has more than TCP_WND under way. What is sent is copied into lwIP's memory, as much as
 * tcp_sndbuf() allows. MEMP_NUM_TCP_PCB has to be 1 for each transport.
 *
 * lwIP's rules hold here, too: none of these functions, and none of the client's, may be called
 * from an interrupt or from inside a callback of lwIP. A program in which several tasks use lwIP
 * supplies lock and unlock, and calls lwIP itself only between them.
 *
 * Needs lwIP 2.1 or newer with LWIP_TCP, LWIP_CALLBACK_API, and TCP_MSS of no more than PBUF_POOL
 * can hold.
 *
 * What a bare-metal program has to supply as well (the contract is in port.h):
 *   port_clock_ms   from a counter that hardware drives: a timer of 32 bits or wider, or a narrower
 *                   one that is read often enough. Never by counting interrupts of a tick: a
 *                   program that masks interrupts, or is stopped by a debugger, loses some of them,
 *                   its clock runs slow, and it believes in a lock that it lost. It must go on in
 *                   every sleep mode that is used. sys_now() of lwIP may be the same clock.
 */
#ifndef PORT_LWIP_H
#define PORT_LWIP_H

#include "port.h"

#include "lwip/ip_addr.h"
#include "lwip/opt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pbuf;
struct tcp_pcb;

/* What the platform does for the transport. Kept by pointer; may be in flash. */
struct port_lwip_hooks {
  /*
   * Services the network: with NO_SYS=1, hands received frames to the netif and calls
   * sys_check_timeouts() or, with LWIP_TIMERS=0, tcp_tmr() every 250 ms and any other timers; where
   * a task of lwIP does that, it only waits. Called without the lock, again and again, while the
   * client waits. May sleep for up to timeout_ms (0: not at all), but must return soon after a
   * frame has arrived.
   */
  void (*turn)(uint32_t timeout_ms);

  /* Keeps other tasks out of lwIP (LOCK_TCPIP_CORE). NULL: there are none. */
  void (*lock)(void);

  /* Lets them in again. NULL, as lock. */
  void (*unlock)(void);
};

/* A transport over lwIP, to a server at one address. */
struct port_lwip {
  /* for the client; all the rest is private */
  struct port_transport transport;

  const struct port_lwip_hooks *hooks;
  ip_addr_t address;
  uint16_t port;

  /* what the callbacks have reported */
  uint8_t state;

  /* the last send() would have blocked, and nothing was acknowledged since */
  bool send_blocked;

  /* see port_lwip_error(): an err_t of lwIP's */
  int8_t error;

  /* NULL: no connection, or lwIP has freed it */
  struct tcp_pcb *pcb;

  /* what the client has not taken yet */
  struct pbuf *received;
};

/*
 * Makes lwip ready to connect to a server's address and port. It must not move while the client
 * uses it, because its transport points to it. For a host name, resolve it (dns_gethostbyname)
 * first, or use port_lwip_init_seeds().
 */
void port_lwip_init(struct port_lwip *lwip, const struct port_lwip_hooks *hooks,
                    const ip_addr_t *address, uint16_t port);

/*
 * Why connecting failed last, or the connection broke, in words for a log, constant; "": neither, or
 * the server has closed in good order. May be called from any task, and from the function of
 * fairlock_set_log(). Linked only when used.
 */
const char *port_lwip_error(const struct port_lwip *lwip);

/*
 * A transport for servers that move (fairlock_follow()): the client says where connections go, with
 * seeds.lwip.transport. Linked only when used.
 */
struct port_lwip_seeds {
  /* first: it is the transport's context. All is private but lwip.transport. */
  struct port_lwip lwip;

  /* all seeds, and the one in use */
  const char *seeds;
  const char *seed;

#if LWIP_DNS
  /* the connect() of port_lwip */
  int (*connect)(void *context, uint32_t timeout_ms);

  /* the host to look up, with what follows it; NULL: the address is known */
  const char *name;

  /* an answer of the name service is awaited */
  bool asked;
#endif
};

/*
 * seeds: "192.0.2.7:6379,192.0.2.8:6379", tried in this order; it stays the caller's and must stay
 * valid. Hosts are IP addresses; host names, too, where LWIP_DNS is on, with a DNS server set
 * (dns_setserver()) and dns_tmr() called each second. A server that redirects to a host name
 * (cluster-preferred-endpoint-type, resolve-hostnames) needs that, too: without it, the redirection
 * is refused and the operation ends with WRONG_SHARD or UNREACHABLE. False: list is not a list of
 * seeds.
 */
bool port_lwip_init_seeds(struct port_lwip_seeds *seeds, const struct port_lwip_hooks *hooks,
                          const char *list);

#ifdef __cplusplus
}
#endif

#endif
