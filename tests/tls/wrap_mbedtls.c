/* SPDX-License-Identifier: Apache-2.0 */
/* port/mbedtls for the suites; see wrap.h. */
#include "support/process.h"
#include "wrap.h"

#include <stdio.h>
#include <string.h>

static void load(mbedtls_x509_crt *certificates, const char *name)
{
  char path[512];
  (void)snprintf(path, sizeof path, FILE_OF("%s.crt"), name);
  if (mbedtls_x509_crt_parse_file(certificates, path) != 0) give_up(path);
}

static void load_key(struct wrap *wrap, const char *name)
{
  char path[512];
  (void)snprintf(path, sizeof path, FILE_OF("%s.key"), name);
#if MBEDTLS_VERSION_NUMBER >= 0x03000000 && MBEDTLS_VERSION_NUMBER < 0x04000000
  if (mbedtls_pk_parse_keyfile(&wrap->key, path, NULL, mbedtls_ctr_drbg_random, &wrap->random) != 0)
    give_up(path);
#else
  if (mbedtls_pk_parse_keyfile(&wrap->key, path, NULL) != 0) give_up(path);
#endif
}

/* Mbed TLS 4 has random bytes of its own. */
#if MBEDTLS_VERSION_NUMBER >= 0x04000000
static void init_random(struct wrap *wrap)
{
  (void)wrap;
  if (psa_crypto_init() != PSA_SUCCESS) give_up("no random bytes");
}

static void free_random(struct wrap *wrap)
{
  (void)wrap;
}
#else
static void init_random(struct wrap *wrap)
{
  mbedtls_entropy_init(&wrap->entropy);
  mbedtls_ctr_drbg_init(&wrap->random);
  if (mbedtls_ctr_drbg_seed(&wrap->random, mbedtls_entropy_func, &wrap->entropy, NULL, 0) != 0)
    give_up("no random bytes");
  wrap->config.random = mbedtls_ctr_drbg_random;
  wrap->config.random_context = &wrap->random;
}

static void free_random(struct wrap *wrap)
{
  mbedtls_ctr_drbg_free(&wrap->random);
  mbedtls_entropy_free(&wrap->entropy);
}
#endif

void wrap_init(struct wrap *wrap, const struct wrap_config *config, struct port_transport *below)
{
  memset(wrap, 0, sizeof *wrap);
  mbedtls_x509_crt_init(&wrap->ca);
  mbedtls_x509_crt_init(&wrap->certificate);
  mbedtls_pk_init(&wrap->key);
  init_random(wrap);
  load(&wrap->ca, config->ca);
  wrap->config.ca = &wrap->ca;
  wrap->config.name = config->name;
  if (config->certificate != NULL) {
    load(&wrap->certificate, config->certificate);
    load_key(wrap, config->key != NULL ? config->key : config->certificate);
    wrap->config.certificate = &wrap->certificate;
    wrap->config.key = &wrap->key;
  }
  if (!port_mbedtls_init(&wrap->tls, below, &wrap->config)) give_up("port_mbedtls_init");
}

void wrap_deinit(struct wrap *wrap)
{
  port_mbedtls_deinit(&wrap->tls);
  mbedtls_x509_crt_free(&wrap->ca);
  mbedtls_x509_crt_free(&wrap->certificate);
  mbedtls_pk_free(&wrap->key);
  free_random(wrap);
}

/* Two numbers where they differ by the version of TLS that is spoken. */
static const int numbers[][2] = {
    [NOTHING] = {0},
#ifdef MBEDTLS_SSL_PROTO_TLS1_3
    [OLD_VERSION] = {PORT_MBEDTLS_ALERT + 70}, /* our versions are listed */
#else
    [OLD_VERSION] = {PORT_MBEDTLS_ALERT + 40}, /* the old version has none of the ciphers */
#endif
    [UNKNOWN_CA] = {PORT_MBEDTLS_CERT + MBEDTLS_X509_BADCERT_NOT_TRUSTED},
    [WRONG_NAME] = {PORT_MBEDTLS_CERT + MBEDTLS_X509_BADCERT_CN_MISMATCH},
    [EXPIRED] = {PORT_MBEDTLS_CERT + MBEDTLS_X509_BADCERT_EXPIRED},
    [NOT_YET_VALID] = {PORT_MBEDTLS_CERT + MBEDTLS_X509_BADCERT_FUTURE},
    [NONE_OF_OURS] = {PORT_MBEDTLS_ALERT + 40, PORT_MBEDTLS_ALERT + 116},
    [OURS_OF_UNKNOWN_CA] = {PORT_MBEDTLS_ALERT + 48},
    [NOT_OUR_KEY] = {PORT_MBEDTLS_ALERT + 51},
    [SILENT] = {PORT_MBEDTLS_MUTE},
    [NOT_TLS] = {MBEDTLS_ERR_SSL_INVALID_RECORD},
    [CHANGED] = {MBEDTLS_ERR_SSL_INVALID_MAC},
};

bool wrap_failed_by(struct wrap *wrap, enum wrap_reason reason)
{
  int error = port_mbedtls_error(&wrap->tls);
  if (error == numbers[reason][0]) return true;
  if (numbers[reason][1] != 0 && error == numbers[reason][1]) return true;
  (void)printf("# TLS failed: %s\n", port_mbedtls_error_text(error));
  return false;
}

/* A session that is resumed shows no certificate. */
bool wrap_resumed(const struct wrap *wrap)
{
  return !wrap->tls.shown;
}
