/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzing of port/mbedtls; see tls.c. The server's certificate is trusted by itself. */
#include "port_mbedtls.h"
#include "tls.h"

#include <stdlib.h>
#include <string.h>

const bool subject_sends_locked = true;

static struct port_mbedtls tls;
static struct port_mbedtls_config config;
static mbedtls_x509_crt ca;

/* Nothing of ours but the input is random. */
static int random_bytes(void *context, unsigned char *data, size_t size)
{
  static unsigned char last;
  (void)context;
  for (size_t i = 0; i < size; i++)
    data[i] = (unsigned char)(last = (unsigned char)(last * 5U + 113U));
  return 0;
}

void subject_prepare(const unsigned char *certificate, size_t size)
{
  mbedtls_x509_crt_init(&ca);
  if (mbedtls_x509_crt_parse_der(&ca, certificate, size) != 0) abort();
}

struct port_transport *subject_init(struct port_transport *below, bool trusts)
{
  config = (struct port_mbedtls_config){
      .random = random_bytes, .ca = &ca, .name = trusts ? "host" : "other"};
  return port_mbedtls_init(&tls, below, &config) ? &tls.transport : NULL;
}

void subject_deinit(void)
{
  port_mbedtls_deinit(&tls);
}

const struct port_mutex *subject_mutex(void)
{
  return &tls.mutex;
}

bool subject_is_down(void)
{
  return tls.stage == 0;
}

bool subject_has_a_text(void)
{
  return strlen(port_mbedtls_error_text(port_mbedtls_error(&tls))) > 0;
}
