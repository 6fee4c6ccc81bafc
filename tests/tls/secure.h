/* SPDX-License-Identifier: Apache-2.0 */
/* Private redis-servers that speak only TLS, for the suites of TLS in firmware. */
#ifndef SECURE_H
#define SECURE_H

#include "support/server.h"

#ifndef KEYS
#define KEYS "build/tests/tls/keys"
#endif

/*
 * As server_start(), with a certificate of KEYS, such as "server". clients: whether clients must
 * have one of its CA, "yes" or "no". Up to four servers.
 */
void secure_start(struct server *server, const char *certificate, const char *clients);

#endif
