/* SPDX-License-Identifier: Apache-2.0 */
/* The second UART as a line to a bridge on the simulator's host. */
#include "line.h"
#include "link.h"
#include "port_uart.h"

void port_idle(uint32_t ms)
{
  (void)ms; /* the tick ends it within a millisecond */
  board_idle();
}

bool link_start(struct fairlock_client *client, const struct fairlock_config *config)
{
  static const struct port_uart_line line = {read_line, write_line, wait_line, NULL};
  static struct port_uart uart;
  board_line_init();
  port_uart_init(&uart, &line, board_random());
  return fairlock_client_init(client, config, &uart.transport) == FAIRLOCK_OK;
}
