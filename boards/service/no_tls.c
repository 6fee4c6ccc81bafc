/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for port/openssl where there is no OpenSSL: a URL that asks for TLS is refused.
 */
#include "port_openssl.h"
#include "port_posix.h"

const char *port_openssl_url(struct port_openssl *tls, struct port_posix_server *server,
                             const char *url, const struct port_openssl_config *config)
{
  (void)tls;
  (void)config;
  return port_posix_url(server, url);
}

void port_openssl_error(struct port_openssl *tls, char *text, size_t size)
{
  (void)tls;
  (void)size;
  text[0] = 0;
}

void port_openssl_deinit(struct port_openssl *tls)
{
  (void)tls;
}
