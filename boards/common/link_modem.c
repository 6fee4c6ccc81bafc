/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second UART as the line of a cellular modem; in the simulator, of a simulated one
 * (tests/boards/modem/modem.py).
 */
#include "line.h"
#include "link.h"
#include "modem.h"

void port_idle(uint32_t ms)
{
  (void)ms; /* the tick ends it within a millisecond */
  board_idle();
}

/* A request takes two or three commands, and its way through a cellular network and back. */
bool link_start(struct fairlock_client *client, const struct fairlock_config *config)
{
  static const char *const setup[] = {"AT+QICSGP=1,1,\"internet\"", "AT+QIACT=1", NULL};
  static const struct modem_line line = {read_line, write_line, wait_line, NULL, NULL};
  static const struct modem_config modem_config = {.family = &modem_quectel,
                                                   .line = &line,
                                                   .setup = setup,
                                                   .host = "redis.example",
                                                   .port = 6379};
  static struct modem modem;
  static struct fairlock_config slow;
  slow = *config;
  slow.lease_ms = 60000;
  slow.waiter_ms = 15000;
  slow.response_ms = 10000;
  slow.connect_ms = 30000;
  board_line_init();
  return modem_init(&modem, &modem_config) &&
         fairlock_client_init(client, &slow, &modem.transport) == FAIRLOCK_OK;
}
