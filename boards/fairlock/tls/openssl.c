/* SPDX-License-Identifier: Apache-2.0 */
/* The command with TLS by OpenSSL; see session.h. */
#include "../session.h"

#include "../command.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

int tls_prepare(struct port_openssl *tls, const struct port_openssl_config *config,
                const struct port_transport *below)
{
  char why[PORT_OPENSSL_ERROR_SIZE];
  if (config->key != NULL && config->certificate == NULL) {
    complain(
        "there is a key for TLS (--key, FAIRLOCK_KEY) but no certificate: name it with --cert");
    return EXIT_USAGE;
  }
  DIR *folder = config->ca_folder != NULL ? opendir(config->ca_folder) : NULL;
  if (config->ca_folder != NULL &&
      folder == NULL) { /* OpenSSL would only complain when it connects */
    complain("cannot use %s for TLS: %s", config->ca_folder, strerror(errno));
    return EXIT_NO_INPUT;
  }
  if (folder != NULL) (void)closedir(folder);
  const char *wrong = port_openssl_init(tls, below, config);
  if (wrong == NULL) return EXIT_DONE;
  port_openssl_error(tls, why, PORT_OPENSSL_ERROR_SIZE);
  bool keyless = wrong == config->certificate && config->key == NULL;
  complain("cannot use %s for TLS: %s%s", wrong, why,
           keyless ? " (it has to hold the private key, too, unless --key names that)" : "");
  return EXIT_NO_INPUT;
}

void tls_error(struct port_openssl *tls, char text[PORT_OPENSSL_ERROR_SIZE])
{
  port_openssl_error(tls, text, PORT_OPENSSL_ERROR_SIZE);
}
