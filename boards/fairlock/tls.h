/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS for the command. `make TLS=openssl` builds it with tls/openssl.c; otherwise make takes
 * tls/none.c, which only says that there is no TLS.
 */
#ifndef TLS_H
#define TLS_H

#include "port_openssl.h"

/*
 * Makes tls ready, around the transport below. Returns EXIT_DONE, or a status after a complaint.
 */
int tls_prepare(struct port_openssl *tls, const struct port_openssl_config *config,
                const struct port_transport *below);

/* The reason for which TLS failed last; "": TLS has not failed. */
void tls_error(struct port_openssl *tls, char text[PORT_OPENSSL_ERROR_SIZE]);

#endif
