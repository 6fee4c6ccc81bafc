/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port/conformance on a board: over lwIP, or over a serial line, whichever link_start() is linked.
 * Its lines go to the log. Arguments: the peer's port, and a part of a rule's name.
 */
#include "conformance.h"
#include "board.h"
#include "link.h"

int main(void)
{
  static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(1, 0)];
  static uint8_t send_buffer[32];
  static struct fairlock_client client; /* for its transport alone */
  static const struct fairlock_config config = {.receive_buffer = receive_buffer,
                                                .receive_size = sizeof receive_buffer,
                                                .send_buffer = send_buffer,
                                                .send_size = sizeof send_buffer};
  if (!link_start(&client, &config)) return 1;
  const struct port_conformance port = {
      .transport = client.transport, .write = board_write, .only = board_argument(2)};
  return port_conformance_run(&port) > 0;
}
