/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that speak TLS; see secure.h. */
#include "secure.h"
#include "support/process.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The server runs in another folder. */
static void find(char path[PATH_MAX + 40], const char *name, const char *kind)
{
  char folder[PATH_MAX];
  if (realpath(KEYS, folder) == NULL) give_up(KEYS);
  (void)snprintf(path, PATH_MAX + 40, "%s/%s.%s", folder, name, kind);
}

struct secure {
  char own[PATH_MAX + 40], key[PATH_MAX + 40], ca[PATH_MAX + 40];
  const char *options[13];
};

/* The memory of a server that was started with the same struct is used again. */
static struct secure *memory_for(const struct server *server)
{
  static struct secure memory[4];
  static const struct server *users[4];
  size_t i = 0;
  while (i < 3 && users[i] != NULL && users[i] != server)
    i++;
  users[i] = server;
  return &memory[i];
}

void secure_start(struct server *server, const char *certificate, const char *clients)
{
  struct secure *secure = memory_for(server);
  const char *const options[] = {"--port",
                                 "0",
                                 "--tls-port",
                                 server->port_text,
                                 "--tls-cert-file",
                                 secure->own,
                                 "--tls-key-file",
                                 secure->key,
                                 "--tls-ca-cert-file",
                                 secure->ca,
                                 "--tls-auth-clients",
                                 clients,
                                 NULL};
  find(secure->own, certificate, "crt");
  find(secure->key, certificate, "key");
  find(secure->ca, "ca", "crt");
  memcpy(secure->options, options, sizeof options);
  server_start(server, secure->options);
}
