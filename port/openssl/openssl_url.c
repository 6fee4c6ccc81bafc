/* SPDX-License-Identifier: Apache-2.0 */
/* Servers by URL, with TLS. A file of its own: all the rest of port/openssl does without port/posix. */
#include "port_openssl.h"
#include "port_posix.h"

#include <stdio.h>
#include <string.h>

/* Returns which file cannot be used and why. There is room where the URL would be shown. */
static const char *unusable(struct port_posix_server *server, struct port_openssl *tls,
                            const char *file)
{
  char why[PORT_OPENSSL_ERROR_SIZE];
  port_openssl_error(tls, why, PORT_OPENSSL_ERROR_SIZE);
  memset(server, 0, sizeof *server);
  memset(tls, 0, sizeof *tls);
  (void)snprintf(server->shown, sizeof server->shown, "it asks for TLS, and %s cannot be used: %s",
                 file, why);
  return server->shown;
}

const char *port_openssl_url(struct port_openssl *tls, struct port_posix_server *server,
                             const char *url, const struct port_openssl_config *config)
{
  struct port_openssl_config own = {0};
  memset(tls, 0, sizeof *tls);
  const char *wrong = port_posix_read_url(server, url);
  if (wrong != NULL || !server->tls) return wrong;
  if (config != NULL) own = *config;
  own.host = port_posix_host;
  const char *file = port_openssl_init(tls, &server->socket.transport, &own);
  if (file != NULL) return unusable(server, tls, file);
  port_posix_use_tls(server, &tls->transport);
  return NULL;
}
