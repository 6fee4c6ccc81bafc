/* SPDX-License-Identifier: Apache-2.0 */
/* A contender on a board. Arguments: the server's port, how many rounds, how many parties, keep_ms. */
#include "board.h"
#include "contender.h"
#include "network.h"

int main(void)
{
  static struct port_lwip links[2];
  const ip_addr_t host = IPADDR4_INIT(lwip_htonl(NETWORK_HOST));
  if (!network_init()) return 1;
  for (int i = 0; i < 2; i++)
    port_lwip_init(&links[i], &network_hooks, &host, (uint16_t)board_argument_number(1, 0));
  const struct contender contender = {&links[0].transport, &links[1].transport,
                                      board_argument_number(2, 1), board_argument_number(3, 1),
                                      board_argument_number(4, 0)};
  const char *trouble = contend(&contender);
  board_write(trouble != NULL ? trouble : "contended");
  board_write("\n");
  return trouble != NULL;
}
