/* The command with TLS by OpenSSL; see tls.h. */
#include "../tls.h"

#include "../command.h"

int tls_prepare(struct port_openssl *tls, const struct port_openssl_config *config,
                const struct port_transport *below)
{
  char why[PORT_OPENSSL_ERROR_SIZE];
  if (config->key != NULL && config->certificate == NULL) {
    complain("there is a key for TLS (--key, FAIRLOCK_KEY) but no certificate: name it by --cert");
    return EXIT_USAGE;
  }
  const char *wrong = port_openssl_init(tls, config, below);
  if (wrong == NULL) return EXIT_DONE;
  port_openssl_error(tls, why);
  complain("cannot use %s for TLS: %s", wrong, why);
  return EXIT_NO_INPUT;
}

void tls_error(struct port_openssl *tls, char text[PORT_OPENSSL_ERROR_SIZE])
{
  port_openssl_error(tls, text);
}
