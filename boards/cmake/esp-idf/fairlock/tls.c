/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS on ESP-IDF; see fairlock_esp_tls.h.
 */
#include "fairlock_esp_tls.h"

#include <mbedtls/version.h>

#if MBEDTLS_VERSION_NUMBER >= 0x04000000
#include <psa/crypto.h>
#endif

#include "esp_random.h"

static struct port_mbedtls tls;
static struct port_mbedtls_config config;
static mbedtls_x509_crt trusted;

/* Not asked by Mbed TLS 4, of ESP-IDF 6, which has its own. */
static int random_bytes(void *context, unsigned char *data, size_t size)
{
  (void)context;
  esp_fill_random(data, size);
  return 0;
}

struct port_transport *fairlock_esp_tls(struct port_transport *below, const unsigned char *ca,
                                        size_t size, const char *name)
{
  mbedtls_x509_crt_free(&trusted); /* of an earlier call, which failed */
  mbedtls_x509_crt_init(&trusted);
#if MBEDTLS_VERSION_NUMBER >= 0x04000000
  if (psa_crypto_init() != PSA_SUCCESS) return NULL;
#endif
  if (mbedtls_x509_crt_parse(&trusted, ca, size) != 0) return NULL;
  config = (struct port_mbedtls_config){.random = random_bytes, .ca = &trusted, .name = name};
  return port_mbedtls_init(&tls, below, &config) ? &tls.transport : NULL;
}

const char *fairlock_esp_tls_error(void)
{
  return port_mbedtls_error_text(port_mbedtls_error(&tls));
}
