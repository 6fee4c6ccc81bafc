/* SPDX-License-Identifier: Apache-2.0 */
/* port/openssl for the suites; see wrap.h. */
#include "support/process.h"
#include "wrap.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

static const char *file(char path[512], const char *name, const char *kind)
{
  if (name == NULL) return NULL;
  (void)snprintf(path, 512, FILE_OF("%s.%s"), name, kind);
  return path;
}

void wrap_init(struct wrap *wrap, const struct wrap_config *config, struct port_transport *below)
{
  const char *key = config->key != NULL ? config->key : config->certificate;
  const struct port_openssl_config made = {
      .ca_file = file(wrap->files[0], config->ca, "crt"),
      .certificate = file(wrap->files[1], config->certificate, "crt"),
      .key = file(wrap->files[2], key, "key"),
      .name = config->name,
  };
  const char *wrong = port_openssl_init(&wrap->tls, below, &made);
  if (wrong != NULL) give_up(wrong);
}

void wrap_deinit(struct wrap *wrap)
{
  port_openssl_deinit(&wrap->tls);
}

/*
 * What OpenSSL's error has to be: wordings change from release to release, its numbers do not. Of an
 * alert two numbers, where they differ by the version of TLS that is spoken.
 */
struct kind {
  int alert[2];
  int reason;
  long verify;
};

static const struct kind kinds[] = {
    [OLD_VERSION] = {.alert = {SSL_AD_PROTOCOL_VERSION}},
    [UNKNOWN_CA] = {.verify = X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN},
    [WRONG_NAME] = {.verify = X509_V_ERR_HOSTNAME_MISMATCH},
    [EXPIRED] = {.verify = X509_V_ERR_CERT_HAS_EXPIRED},
    [NOT_YET_VALID] = {.verify = X509_V_ERR_CERT_NOT_YET_VALID},
    [NONE_OF_OURS] = {.alert = {SSL_AD_HANDSHAKE_FAILURE, SSL_AD_CERTIFICATE_REQUIRED}},
    [OURS_OF_UNKNOWN_CA] = {.alert = {SSL_AD_UNKNOWN_CA}},
    [NOT_TLS] = {.reason = SSL_R_WRONG_VERSION_NUMBER},
    [CHANGED] = {.reason = SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC},
};

/* The words that are to be said, cut as they are; NULL: TLS failed for another reason. */
static const char *words_for(const struct port_openssl *tls, enum wrap_reason reason)
{
  const struct kind *kind = &kinds[reason];
  int is = ERR_GET_REASON(tls->error);
  int alert = is - SSL_AD_REASON_OFFSET;
  if (reason == NOTHING) return "";
  if (reason == SILENT) return "the server does not answer in TLS";
  if (kind->verify != X509_V_OK)
    return tls->verify_error == kind->verify ? X509_verify_cert_error_string(kind->verify) : NULL;
  bool is_it = kind->reason != 0
                   ? is == kind->reason
                   : alert > 0 && (alert == kind->alert[0] || alert == kind->alert[1]);
  return is_it ? ERR_reason_error_string(tls->error) : NULL;
}

bool wrap_failed_by(struct wrap *wrap, enum wrap_reason reason)
{
  char text[PORT_OPENSSL_ERROR_SIZE];
  const char *words = words_for(&wrap->tls, reason);
  port_openssl_error(&wrap->tls, text, PORT_OPENSSL_ERROR_SIZE);
  if (words != NULL && strncmp(text, words, sizeof text - 1) == 0) return true;
  (void)printf("# TLS failed: %s\n", text);
  return false;
}

bool wrap_resumed(const struct wrap *wrap)
{
  return SSL_session_reused(wrap->tls.ssl) == 1;
}
