/* SPDX-License-Identifier: Apache-2.0 */
/* TCP over lwIP to servers that move: Sentinels, or the nodes of a cluster. */
#include "board.h"
#include "fairlock_follow.h"
#include "link.h"
#include "network.h"

bool link_start(struct fairlock_client *client, const struct fairlock_config *config)
{
  static struct port_lwip_seeds seeds;
  static struct fairlock_topology topology;
  static char address[22];
  topology.address = address;
  topology.address_size = sizeof address;
  topology.service = board_argument(4);
  topology.replicas = board_argument_number(5, 0);
  return network_init() && port_lwip_init_seeds(&seeds, &network_hooks, board_argument(1)) &&
         fairlock_client_init(client, config, &seeds.lwip.transport) == FAIRLOCK_OK &&
         fairlock_follow(client, &topology) == FAIRLOCK_OK;
}
