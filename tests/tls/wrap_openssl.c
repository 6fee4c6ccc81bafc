/* port/openssl for the suites; see wrap.h. */
#include "support/process.h"
#include "wrap.h"

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
  const char *wrong = port_openssl_init(&wrap->tls, &made, below);
  if (wrong != NULL) give_up(wrong);
}

void wrap_deinit(struct wrap *wrap)
{
  port_openssl_deinit(&wrap->tls);
}

/* Two texts: by TLS 1.2 and by TLS 1.3. */
static const char *const texts[][2] = {
    [NOTHING] = {""},
    [OLD_VERSION] = {"tlsv1 alert protocol version"},
    [UNKNOWN_CA] = {"self-signed certificate in certificate chain"},
    [WRONG_NAME] = {"hostname mismatch"},
    [EXPIRED] = {"certificate has expired"},
    [NOT_YET_VALID] = {"certificate is not yet valid"},
    [NONE_OF_OURS] = {"sslv3 alert handshake failure", "tlsv13 alert certificate required"},
    [OURS_OF_UNKNOWN_CA] = {"tlsv1 alert unknown ca"},
    [SILENT] = {"the server does not answer in TLS"},
    [NOT_TLS] = {"wrong version number"},
    [CHANGED] = {"decryption failed or bad record mac"},
};

bool wrap_failed_by(struct wrap *wrap, enum wrap_reason reason)
{
  char text[PORT_OPENSSL_ERROR_SIZE];
  port_openssl_error(&wrap->tls, text);
  if (strcmp(text, texts[reason][0]) == 0) return true;
  if (texts[reason][1] != NULL && strcmp(text, texts[reason][1]) == 0) return true;
  (void)printf("# TLS failed: %s\n", text);
  return false;
}

bool wrap_resumed(const struct wrap *wrap)
{
  return SSL_session_reused(wrap->tls.ssl) == 1;
}
