/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TLS transport under test: the same suites are compiled for port/openssl and, with WITH_MBEDTLS,
 * for port/mbedtls.
 */
#ifndef TLS_WRAP_H
#define TLS_WRAP_H

#include "port.h"

/* Where certificates.sh has put them; the build sets it. */
#ifndef CERTIFICATES
#define CERTIFICATES "build/tls/certificates"
#endif
#define FILE_OF(name) CERTIFICATES "/" name

#ifdef WITH_MBEDTLS
#include "port_mbedtls.h"

#include <mbedtls/version.h>
#if MBEDTLS_VERSION_NUMBER < 0x04000000
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#endif

struct wrap {
  struct port_mbedtls tls;
  struct port_mbedtls_config config;
  mbedtls_x509_crt ca, certificate;
  mbedtls_pk_context key;
#if MBEDTLS_VERSION_NUMBER < 0x04000000
  mbedtls_entropy_context entropy;
  mbedtls_ctr_drbg_context random;
#endif
};
#else
#include "port_openssl.h"

struct wrap {
  struct port_openssl tls;
  char files[3][512];
};
#endif

/* Names of certificates, such as "server"; with `key`, a key that is not the certificate's. */
struct wrap_config {
  const char *ca;
  const char *name;
  const char *certificate; /* NULL: none */
  const char *key;         /* NULL: the certificate's */
};

/* Kinds of errors, of which each transport has a text or number of its own. */
enum wrap_reason {
  NOTHING,
  OLD_VERSION,
  UNKNOWN_CA,
  WRONG_NAME,
  EXPIRED,
  NOT_YET_VALID,
  NONE_OF_OURS,
  OURS_OF_UNKNOWN_CA,
  NOT_OUR_KEY,
  SILENT,
  NOT_TLS,
  CHANGED
};

/* Makes a transport that trusts the CA and asks for the name. It must not move. */
void wrap_init(struct wrap *wrap, const struct wrap_config *config, struct port_transport *below);

void wrap_deinit(struct wrap *wrap);

/* Whether TLS failed last for this reason; otherwise says for which. */
bool wrap_failed_by(struct wrap *wrap, enum wrap_reason reason);

/* Whether this connection has resumed a session. */
bool wrap_resumed(const struct wrap *wrap);

#endif
