/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The netif between lwIP and a board's Ethernet driver; see network.h. One buffer carries frames in
 * both directions: what arrived is in pbufs before lwIP may answer it.
 */
#include "network.h"
#include "board.h"

#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/sys.h"
#include "lwip/priv/tcp_priv.h"
#include "netif/ethernet.h"

#include <string.h>

#define HEADERS 54 /* Ethernet, IP, TCP */
#define FRAME   ((HEADERS + TCP_MSS + 4 + 3) & ~3)

/*
 * Checks that headers have no gaps without being packed, and that the sizes in lwippools.h and
 * lwipopts.h are right.
 */
_Static_assert(sizeof(struct eth_hdr) == ETH_PAD_SIZE + 14 && sizeof(struct etharp_hdr) == 28,
               "Ethernet's headers");
_Static_assert(sizeof(struct ip_hdr) == 20 && sizeof(struct tcp_hdr) == 20, "IP's headers");
_Static_assert(sizeof(struct pbuf) + PBUF_IP + 8 + IP_HLEN + 8 <= 88,
               "the longest without data: no such protocol");
_Static_assert(sizeof(struct pbuf) + PBUF_TRANSPORT + TCP_MSS == 608, "a segment");
_Static_assert(ETH_PAD_SIZE + FRAME <= PBUF_POOL_BUFSIZE, "a frame that arrives is one pbuf");

static struct netif interface;
static uint8_t frame[ETH_PAD_SIZE + FRAME];
static uint32_t random_state;

/*
 * For port numbers and the like. After a reset the first ones must not be those that were in use
 * before it.
 */
uint32_t network_random(void)
{
  random_state = random_state * 1664525U + 1013904223U;
  return random_state ^ random_state >> 16;
}

uint32_t sys_now(void)
{
  return port_clock_ms();
}

static err_t send(struct netif *netif, struct pbuf *data)
{
  (void)netif;
  if (data->tot_len > sizeof frame) return ERR_BUF;
  pbuf_copy_partial(data, frame, data->tot_len, 0);
  return ethernet_send(frame + ETH_PAD_SIZE, data->tot_len - ETH_PAD_SIZE) ? ERR_OK : ERR_BUF;
}

static err_t start(struct netif *netif)
{
  if (!ethernet_init(netif->hwaddr)) return ERR_IF;
  netif->hwaddr_len = ETH_HWADDR_LEN;
  netif->name[0] = 'e';
  netif->name[1] = 'n';
  netif->mtu = HEADERS - SIZEOF_ETH_HDR + TCP_MSS;
  netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_LINK_UP;
  netif->linkoutput = send;
  netif->output = etharp_output;
  return ERR_OK;
}

bool network_init(void)
{
  const ip4_addr_t address = {lwip_htonl(NETWORK_ADDRESS)};
  const ip4_addr_t mask = {lwip_htonl(NETWORK_MASK)};
  const ip4_addr_t gateway = {lwip_htonl(NETWORK_GATEWAY)};
  random_state = board_random();
  lwip_init();
  if (netif_add(&interface, &address, &mask, &gateway, NULL, start, ethernet_input) == NULL)
    return false;
  netif_set_default(&interface);
  netif_set_up(&interface);
  return true;
}

/* A frame for which no memory is left is dropped: TCP sends it again later. */
static void take_frame(size_t size)
{
  struct pbuf *data = pbuf_alloc(PBUF_RAW, (u16_t)(ETH_PAD_SIZE + size), PBUF_POOL);
  if (data == NULL) return;
  pbuf_take(data, frame, (u16_t)(ETH_PAD_SIZE + size));
  if (interface.input(data, &interface) != ERR_OK) pbuf_free(data);
}

/*
 * lwIP's timers: TCP's, and, every fourth time, that of the address table. Timers missed during
 * sleep are not made up for.
 */
static void run_timers(void)
{
  static uint32_t ran;
  static uint8_t turns;
  uint32_t now = port_clock_ms();
  uint32_t passed = now - ran;
  if (passed < TCP_TMR_INTERVAL) return;
  ran = now - passed % TCP_TMR_INTERVAL;
  tcp_tmr();
  if (++turns % (ARP_TMR_INTERVAL / TCP_TMR_INTERVAL) == 0) etharp_tmr();
}

bool network_look(void)
{
  bool arrived = false;
  size_t size;
  while ((size = ethernet_receive(frame + ETH_PAD_SIZE, FRAME)) > 0) {
    arrived = true;
    take_frame(size);
  }
  run_timers();
  return arrived;
}

void network_turn(uint32_t timeout_ms)
{
  if (!network_look() && timeout_ms > 0) board_idle();
}

/* Services the network while there is no connection, too. */
void port_idle(uint32_t ms)
{
  network_turn(ms);
}

const struct port_lwip_hooks network_hooks = {.turn = network_turn};
