/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The examples' way to the server: TCP over a board's Ethernet (link_lwip.c), the same to servers
 * that move (link_follow.c), a serial line (link_uart.c), or a cellular modem (link_modem.c).
 */
#ifndef LINK_H
#define LINK_H

#include "fairlock.h"

/*
 * Starts the network, or the line, and makes client ready. False: the hardware does not answer, or
 * the configuration or the command line is not valid. Argument 1 of the command line is the
 * server's port; for link_follow.c, the addresses of several ("192.0.2.7:26379,192.0.2.8:26379").
 * Argument 4 is then the service, if they are Sentinels, and argument 5 how many replicas have to
 * acknowledge each hold.
 */
bool link_start(struct fairlock_client *client, const struct fairlock_config *config);

/*
 * With TLS: where TLS has the pointer to the transport below it, so that a test can insert another.
 */
struct port_transport **link_below(void);

#endif
