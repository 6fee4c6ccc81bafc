/* TCP over lwIP to a server on the simulator's host. */
#include "link.h"
#include "board.h"
#include "network.h"

struct port_transport *link_init(void)
{
  static struct port_lwip lwip;
  const ip_addr_t host = IPADDR4_INIT(lwip_htonl(NETWORK_HOST));
  if (!network_init()) return NULL;
  port_lwip_init(&lwip, &network_hooks, &host, (uint16_t)board_argument_number(1, 6379));
  return &lwip.transport;
}
