/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the library with TLS, and the suite's redis-server with it. The server serves plain
 * connections, too, by which a test looks at it and changes its certificate.
 */
#ifndef TLS_SAFE_H
#define TLS_SAFE_H

#include "fairlock_share.h"
#include "server/harness.h"
#include "wrap.h"

/* The harness's client, with TLS between it and its socket. */
struct safe {
  struct client client;
  struct wrap wrap;
};

/* The server's port with TLS, after serve_with(). */
extern int tls_port;

/* The server shows this certificate to new connections, and wants these versions. */
void serve_with(const char *certificate, const char *protocols, const char *clients);

/* Prepares client and socket; the caller makes safe->wrap, and may change the configuration. */
void safe_prepare(struct safe *safe, const char *host, int port);

/* Makes the client. */
void safe_start(struct safe *safe);

/* Both, with this configuration of TLS, to the server. */
void safe_open(struct safe *safe, const struct wrap_config *config);

void safe_close(struct safe *safe);

/* Acquires and releases, alone and shared. */
void safe_locks(struct safe *safe);

#endif
