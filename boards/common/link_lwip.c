/* SPDX-License-Identifier: Apache-2.0 */
/* TCP over lwIP to a server on the simulator's host. */
#include "link.h"
#include "board.h"
#include "network.h"

bool link_start(struct fairlock_client *client, const struct fairlock_config *config)
{
  static struct port_lwip lwip;
  const ip_addr_t host = IPADDR4_INIT(lwip_htonl(NETWORK_HOST));
  if (!network_init()) return false;
  port_lwip_init(&lwip, &network_hooks, &host, (uint16_t)board_argument_number(1, 6379));
  return fairlock_client_init(client, config, &lwip.transport) == FAIRLOCK_OK;
}
