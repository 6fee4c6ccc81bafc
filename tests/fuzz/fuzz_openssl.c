/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzing of port/openssl; see tls.c. */
#include "port_openssl.h"
#include "tls.h"

#include <stdlib.h>
#include <string.h>

const bool subject_sends_locked = false;

static struct port_openssl tls;

void subject_prepare(const unsigned char *certificate, size_t size)
{
  (void)certificate;
  (void)size;
  /* of the system's CAs, which take long to read, none is needed */
  (void)setenv("SSL_CERT_FILE", "/nonexistent", 1);
}

struct port_transport *subject_init(struct port_transport *below, bool trusts)
{
  const struct port_openssl_config config = {.name = "host", .insecure = trusts};
  return port_openssl_init(&tls, below, &config) == NULL ? &tls.transport : NULL;
}

void subject_deinit(void)
{
  port_openssl_deinit(&tls);
}

const struct port_mutex *subject_mutex(void)
{
  return &tls.mutex;
}

bool subject_is_down(void)
{
  return tls.ssl == NULL;
}

bool subject_has_a_text(void)
{
  char text[PORT_OPENSSL_ERROR_SIZE];
  port_openssl_error(&tls, text, PORT_OPENSSL_ERROR_SIZE);
  return memchr(text, 0, sizeof text) != NULL;
}
