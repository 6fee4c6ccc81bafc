/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port/conformance on port/openssl and port/mbedtls. A thread here ends TLS before the peer, which knows none: for
 * each connection that comes it makes one to the peer, and hands over what comes from either side,
 * its end and its reset included.
 */
#include "conformance.h"
#include "peer.h"
#include "port_posix.h"
#include "support/loopback.h"
#include "support/process.h"
#include "tls/wrap.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * What the front's sockets hold: otherwise the kernel gives them more and more, up to 32 MB, since the
 * front reads all the time, and the port would be full only after as much.
 */
#define BUFFER (256 * 1024)

static int listener, peer_port;

static void limit(int socket, int buffer)
{
  const int size = BUFFER;
  if (setsockopt(socket, SOL_SOCKET, buffer, &size, sizeof size) != 0) give_up("setsockopt");
}

static SSL_CTX *settings(void)
{
  SSL_CTX *made = SSL_CTX_new(TLS_server_method());
  if (made == NULL || SSL_CTX_use_certificate_chain_file(made, CERTIFICATES "/server.crt") != 1 ||
      SSL_CTX_use_PrivateKey_file(made, CERTIFICATES "/server.key", SSL_FILETYPE_PEM) != 1)
    give_up("no certificate");
  return made;
}

static bool send_all(int to, const char *data, int size)
{
  while (size > 0) {
    ssize_t sent = send(to, data, (size_t)size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    size -= (int)sent;
  }
  return true;
}

/* From the peer. False: that was all. */
static bool carry_back(SSL *tls, int from, bool *reset)
{
  char data[4096];
  ssize_t got = recv(from, data, sizeof data, 0);
  *reset = got < 0;
  if (got == 0) (void)SSL_shutdown(tls);
  return got > 0 && SSL_write(tls, data, (int)got) > 0;
}

/* Until either side ends. Returns whether the peer has reset its connection. */
static bool carry(SSL *tls, int client, int peer)
{
  char data[4096];
  bool reset = false;
  for (;;) {
    struct pollfd ends[2] = {{.fd = client, .events = POLLIN}, {.fd = peer, .events = POLLIN}};
    if (SSL_pending(tls) == 0 && poll(ends, 2, -1) < 0) return false;
    if (SSL_pending(tls) > 0 || ends[0].revents != 0) {
      int got = SSL_read(tls, data, sizeof data);
      if (got <= 0 || !send_all(peer, data, got)) return false;
    }
    if (ends[1].revents != 0 && !carry_back(tls, peer, &reset)) return reset;
  }
}

static void serve(SSL_CTX *with, int client)
{
  const struct linger at_once = {.l_onoff = 1};
  int peer = dial(peer_port);
  SSL *tls = SSL_new(with);
  bool reset = false;
  if (tls == NULL) give_up("no memory for TLS");
  (void)SSL_set_fd(tls, client);
  if (peer >= 0) limit(peer, SO_SNDBUF);
  if (peer >= 0 && SSL_accept(tls) == 1) reset = carry(tls, client, peer);
  if (reset) (void)setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  SSL_free(tls);
  (void)close(client);
  if (peer >= 0) (void)close(peer);
}

static void *front(void *context)
{
  SSL_CTX *with = settings();
  (void)context;
  for (;;)
    serve(with, take_call(listener));
  return NULL;
}

static void print(const char *text)
{
  (void)fputs(text, stdout);
  (void)fflush(stdout);
}

int main(int count, char **arguments)
{
  static const struct wrap_config trust = {.ca = "ca", .name = "localhost"};
  static struct port_posix socket;
  static struct wrap wrap;
  static char service[8];
  pthread_t thread;
  int port;
  (void)alarm(300);
  (void)signal(SIGPIPE, SIG_IGN); /* the front's; the port raises none */
  peer_port = peer_start();
  listener = listen_anywhere(&port);
  limit(listener, SO_RCVBUF); /* of those that it accepts */
  if (pthread_create(&thread, NULL, front, NULL) != 0) give_up("pthread_create");
  (void)snprintf(service, sizeof service, "%d", port);
  port_posix_tcp(&socket, "127.0.0.1", service);
  wrap_init(&wrap, &trust, &socket.transport);
  const struct port_conformance of = {&wrap.tls.transport, print, peer_start_task,
                                      count > 1 ? arguments[1] : NULL};
  return port_conformance_run(&of) > 0;
}
