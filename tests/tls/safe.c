/* SPDX-License-Identifier: Apache-2.0 */
/* A client with TLS; see safe.h. */
#include "safe.h"

int tls_port;

void serve_with(const char *certificate, const char *protocols, const char *clients)
{
  if (tls_port == 0) tls_port = free_port();
  for (int attempt = 0; attempt < 5; attempt++, tls_port = free_port()) {
    if (raw_run(&redis,
                "CONFIG SET tls-cert-file " FILE_OF("%s.crt") " tls-key-file " FILE_OF(
                    "%s.key") " tls-ca-cert-file " FILE_OF("ca.crt") " tls-protocols %s "
                                                                     "tls-auth-clients %s tls-port "
                                                                     "%d",
                certificate, certificate, protocols, clients, tls_port))
      return;
  }
  give_up(redis.element[0].text);
}

void safe_prepare(struct safe *safe, const char *host, int port)
{
  client_prepare(&safe->client, port);
  port_posix_tcp(&safe->client.socket, host, safe->client.service);
}

void safe_start(struct safe *safe)
{
  CHECK_EQUAL(
      fairlock_client_init(&safe->client.client, &safe->client.config, &safe->wrap.tls.transport),
      FAIRLOCK_OK);
}

void safe_open(struct safe *safe, const struct wrap_config *config)
{
  safe_prepare(safe, "127.0.0.1", tls_port);
  wrap_init(&safe->wrap, config, &safe->client.socket.transport);
  safe_start(safe);
}

void safe_close(struct safe *safe)
{
  client_close(&safe->client);
  wrap_deinit(&safe->wrap);
}

/* It shares the lock, too, after another has had it alone. */
static void share_the_door(struct safe *safe)
{
  struct fairlock_shared door;
  CHECK_EQUAL(fairlock_init_shared(&door, &safe->client.client, "door", 2), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&door.handle, 5000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_token(&door.handle) > 0);
  CHECK_EQUAL(fairlock_release(&door.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&door.handle), FAIRLOCK_OK);
}

void safe_locks(struct safe *safe)
{
  struct fairlock door;
  CHECK_EQUAL(fairlock_init(&door, &safe->client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&door, 5000, 10000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&door), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  share_the_door(safe);
}
