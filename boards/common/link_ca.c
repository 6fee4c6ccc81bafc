/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over lwIP to a server on the simulator's host, which has a certificate of a CA that was known
 * when this was compiled. The time to check it against comes from the board.
 */
#include "board.h"
#include "keys.h"
#include "link.h"
#include "network.h"
#include "port_bearssl.h"

static uint8_t receive_buffer[PORT_BEARSSL_RECEIVE_SIZE(512)];
static uint8_t send_buffer[PORT_BEARSSL_SEND_SIZE(512)];
static br_x509_minimal_context x509;

static const struct port_bearssl_config tls_config = {
    .entropy = board_secret,
    .receive_buffer = receive_buffer,
    .receive_size = sizeof receive_buffer,
    .send_buffer = send_buffer,
    .send_size = sizeof send_buffer,
    .cipher = port_bearssl_chacha20,
    .keys = port_bearssl_ec_and_rsa,
    .trust = port_bearssl_ca,
    .ca = CA,
    .ca_count = 1,
    .x509 = &x509,
    .utc = board_utc,
    .name = "localhost",
};

static struct port_bearssl tls;

bool link_start(struct fairlock_client *client, const struct fairlock_config *config)
{
  static struct port_lwip lwip;
  const ip_addr_t host = IPADDR4_INIT(lwip_htonl(NETWORK_HOST));
  if (!network_init()) return false;
  port_lwip_init(&lwip, &network_hooks, &host, (uint16_t)board_argument_number(1, 6379));
  return port_bearssl_init(&tls, &lwip.transport, &tls_config) &&
         fairlock_client_init(client, config, &tls.transport) == FAIRLOCK_OK;
}

struct port_transport **link_below(void)
{
  return &tls.below;
}
