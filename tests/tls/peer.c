/* SPDX-License-Identifier: Apache-2.0 */
/* A TLS server of the test's own; see peer.h. */
#include "peer.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/loopback.h"
#include "support/process.h"

static unsigned find_psk(SSL *ssl, const char *identity, unsigned char *psk, unsigned size)
{
  (void)ssl;
  if (strcmp(identity, PEER_IDENTITY) != 0 || size < sizeof PEER_PSK - 1) return 0;
  memcpy(psk, PEER_PSK, sizeof PEER_PSK - 1);
  return sizeof PEER_PSK - 1;
}

static SSL_CTX *settings_for(const struct peer *peer)
{
  SSL_CTX *settings = SSL_CTX_new(TLS_server_method());
  if (settings == NULL) give_up("no memory for TLS");
  if (peer->by_psk) {
    SSL_CTX_set_psk_server_callback(settings, find_psk);
    (void)SSL_CTX_set_max_proto_version(settings, TLS1_2_VERSION);
    if (SSL_CTX_set_cipher_list(settings, "kPSK:kECDHEPSK") != 1) give_up("no ciphers");
    return settings;
  }
  if (SSL_CTX_use_certificate_chain_file(settings, CERTIFICATES "/server.crt") != 1 ||
      SSL_CTX_use_PrivateKey_file(settings, CERTIFICATES "/server.key", SSL_FILETYPE_PEM) != 1)
    give_up("the peer has no certificate");
  if (peer->version != 0) (void)SSL_CTX_set_max_proto_version(settings, peer->version);
  if (peer->demanding)
    SSL_CTX_set_verify(settings, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  return settings;
}

static void serve(struct peer *peer, SSL_CTX *settings)
{
  peer->ssl = SSL_new(settings);
  if (peer->ssl == NULL) give_up("no memory for TLS");
  (void)SSL_set_fd(peer->ssl, peer->socket);
  if (SSL_accept(peer->ssl) == 1) {
    peer->used = SSL_version(peer->ssl);
    peer->resumed = SSL_session_reused(peer->ssl) == 1;
    peer->part(peer);
  }
  ERR_clear_error();
  SSL_free(peer->ssl);
}

static void *run(void *context)
{
  struct peer *peer = context;
  SSL_CTX *settings = settings_for(peer);
  (void)SSL_CTX_set_session_id_context(settings, (const unsigned char *)"peer", 4);
  sigset_t pipe; /* a client that is gone must not kill us */
  (void)sigemptyset(&pipe);
  (void)sigaddset(&pipe, SIGPIPE);
  (void)pthread_sigmask(SIG_BLOCK, &pipe, NULL);
  for (int left = peer->connections; left > 0; left--) {
    peer->socket = take_call(peer->listener);
    if (peer->socket < 0) break;
    serve(peer, settings);
    (void)close(peer->socket);
  }
  SSL_CTX_free(settings);
  return NULL;
}

void peer_start(struct peer *peer, peer_part *part, int version, bool demanding, int connections)
{
  memset(peer, 0, sizeof *peer);
  peer->part = part;
  peer->version = version;
  peer->demanding = demanding;
  peer->connections = connections;
  peer_start_as(peer);
}

void peer_start_as(struct peer *peer)
{
  peer->listener = listen_anywhere(&peer->port);
  if (pthread_create(&peer->thread, NULL, run, peer) != 0) give_up("no thread");
}

void peer_end(struct peer *peer)
{
  (void)shutdown(peer->listener, SHUT_RDWR); /* waits for no more clients */
  (void)pthread_join(peer->thread, NULL);
  (void)close(peer->listener);
}

/* One piece there and back. False: there is none. */
static bool echo(struct peer *peer)
{
  char text[4096];
  int got = SSL_read(peer->ssl, text, sizeof text);
  if (got <= 0) {
    peer->good_bye = SSL_get_error(peer->ssl, got) == SSL_ERROR_ZERO_RETURN;
    return false;
  }
  return SSL_write(peer->ssl, text, got) == got;
}

void peer_echo(struct peer *peer)
{
  while (echo(peer))
    continue;
}

void peer_changes_keys(struct peer *peer)
{
  while (echo(peer)) {
    if (SSL_key_update(peer->ssl, SSL_KEY_UPDATE_REQUESTED) != 1) return;
  }
}

void peer_renegotiates(struct peer *peer)
{
  if (SSL_renegotiate(peer->ssl) == 1 && SSL_do_handshake(peer->ssl) == 1)
    /* only sends the request; the client's answer comes with its next data */
    ERR_clear_error();
  peer_echo(peer);
  peer->renegotiated = SSL_num_renegotiations(peer->ssl) > 0 && !SSL_renegotiate_pending(peer->ssl);
}

/* What has come from the server behind. */
static bool hand_back(struct peer *peer, int behind)
{
  char data[4096];
  ssize_t got = recv(behind, data, sizeof data, 0);
  return got > 0 && SSL_write(peer->ssl, data, (int)got) == got;
}

static bool hand_on(struct peer *peer, int behind)
{
  char data[4096];
  int got = SSL_read(peer->ssl, data, sizeof data);
  return got > 0 && send(behind, data, (size_t)got, MSG_NOSIGNAL) == got;
}

void peer_forwards(struct peer *peer)
{
  int behind = dial(peer->behind);
  bool goes_on = behind >= 0;
  while (goes_on) {
    struct pollfd ends[2] = {{.fd = peer->socket, .events = POLLIN},
                             {.fd = behind, .events = POLLIN}};
    bool waits = SSL_pending(peer->ssl) > 0;
    if (!waits && poll(ends, 2, -1) < 0) break;
    if (waits || ends[0].revents != 0) goes_on = hand_on(peer, behind);
    if (goes_on && ends[1].revents != 0) goes_on = hand_back(peer, behind);
  }
  if (behind >= 0) (void)close(behind);
}

void peer_says_good_bye(struct peer *peer)
{
  (void)SSL_write(peer->ssl, "bye", 3);
  (void)SSL_shutdown(peer->ssl);
  char text[16];
  while (SSL_read(peer->ssl, text, sizeof text) > 0)
    continue;
}
