/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS for a client on ESP-IDF, by its Mbed TLS and port/mbedtls. With CONFIG_FAIRLOCK_TLS.
 */
#ifndef FAIRLOCK_ESP_TLS_H
#define FAIRLOCK_ESP_TLS_H

#include "port_mbedtls.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Wraps `below` in TLS, and returns the transport to give to the client. ca: the CAs that are
 * trusted, in PEM, with a 0 at the end that size counts. name: what the server's certificate is made
 * out to. Both stay the caller's. There is one such transport. NULL: the CAs cannot be read, or the
 * name is empty; it may be called again.
 */
struct port_transport *fairlock_esp_tls(struct port_transport *below, const unsigned char *ca,
                                        size_t size, const char *name);

/* Why TLS failed last, in words: see port_mbedtls_error(). */
const char *fairlock_esp_tls_error(void);

#ifdef __cplusplus
}
#endif

#endif
