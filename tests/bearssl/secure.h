/* Private redis-servers that speak TLS alone, as the suites of TLS in firmware need them. */
#ifndef SECURE_H
#define SECURE_H

#include "support/server.h"

#ifndef KEYS
#define KEYS "build/tests/bearssl/keys"
#endif

/*
 * As server_start(), with a certificate of KEYS, such as "server". clients: whether they must have
 * one by its CA, "yes" or "no". Up to four of them.
 */
void secure_start(struct server *server, const char *certificate, const char *clients);

#endif
