/* SPDX-License-Identifier: Apache-2.0 */
/* The command without TLS; see session.h. */
#include "../session.h"

#include "../command.h"

int tls_prepare(struct port_openssl *tls, const struct port_openssl_config *config,
                const struct port_transport *below)
{
  (void)tls;
  (void)config;
  (void)below;
  complain("this fairlock was built without TLS, which the URL asks for: build it with 'make "
           "TLS=openssl'");
  return EXIT_USAGE;
}

void tls_error(struct port_openssl *tls, char text[PORT_OPENSSL_ERROR_SIZE])
{
  (void)tls;
  text[0] = 0;
}
