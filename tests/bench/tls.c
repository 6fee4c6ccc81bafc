/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS by OpenSSL: the same pairs as over a plain connection, in turn, to the same server; and the
 * time to connect with a handshake: a full one, and one that resumes.
 */
#include "bench.h"

#include "port_openssl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CERTIFICATES
#define CERTIFICATES "build/tls/certificates" /* or as the build says */
#endif
#define FILE_OF(name) CERTIFICATES "/" name

static const struct port_openssl_config trust = {.ca_file = FILE_OF("ca.crt"),
                                                 .host = port_posix_host};

/* Has the server speak TLS, too. Returns the port for it. */
static int serve_tls(int port)
{
  static struct raw raw;
  must(raw_open(&raw, port), "no server");
  int tls_port = free_port();
  bool done =
      raw_run(&raw,
              "CONFIG SET tls-cert-file " FILE_OF("server.crt") " tls-key-file " FILE_OF(
                  "server.key") " tls-ca-cert-file " FILE_OF("ca.crt") " tls-auth-clients no "
                                                                       "tls-port %d",
              tls_port);
  must(done, raw.element[0].text);
  raw_close(&raw);
  return tls_port;
}

static double pairs(struct fairlock *door, int count)
{
  double begin = now();
  for (int i = 0; i < count; i++) {
    must(fairlock_acquire(door, 1000, 30000) == FAIRLOCK_OK, "acquire");
    must(fairlock_release(door) == FAIRLOCK_OK, "release");
  }
  return now() - begin;
}

static void bench_pairs(int port, int tls_port)
{
  static struct bench_client plain;
  static struct bench_client safe;
  static struct port_openssl tls;
  static struct fairlock door, gate;
  struct series ratio = {.count = 0};
  const int count = 300;
  bench_client_open(&plain, port);
  bench_client_prepare(&safe, tls_port);
  must(port_openssl_init(&tls, &safe.socket.transport, &trust) == NULL, "no TLS");
  must(fairlock_client_init(&safe.client, &safe.config, &tls.transport) == FAIRLOCK_OK, "client");
  fairlock_init(&door, &plain.client, "sixteen-byte-nam");
  fairlock_init(&gate, &safe.client, "sixteen-byte-nan");
  (void)pairs(&door, count);
  (void)pairs(&gate, count);
  for (int round = 0; round < 61; round++) {
    double without = pairs(&door, count);
    add(&ratio, pairs(&gate, count) / without);
  }
  print_row("tls.pair.ratio", &ratio, "time with TLS over without; aim at most 1.3");
  fairlock_deinit(&gate);
  fairlock_deinit(&door);
  bench_client_close(&safe);
  port_openssl_deinit(&tls);
  bench_client_close(&plain);
}

/* Microseconds until a connection is up. The answer to a PING comes behind the ticket. */
static double connect_once(struct port_openssl *tls)
{
  char answer[16];
  const struct port_transport *transport = &tls->transport;
  double begin = now();
  int status;
  do {
    status = transport->connect(tls, 1000);
  } while (status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT);
  double took = now() - begin;
  must(status == PORT_OK, "no connection");
  must(transport->send(tls, "PING\r\n", 6) == 6, "PING");
  while ((status = transport->recv(tls, answer, sizeof answer, 1000)) == PORT_WOULD_BLOCK)
    continue;
  must(status == 7, "PONG");
  transport->close(tls);
  return took;
}

static void bench_handshakes(int tls_port)
{
  static struct port_posix socket;
  static struct port_openssl tls;
  struct series full = {.count = 0};
  struct series ticket = {.count = 0};
  char service[8];
  snprintf(service, sizeof service, "%d", tls_port);
  for (int round = 0; round < 61; round++) {
    port_posix_tcp(&socket, "127.0.0.1", service);
    must(port_openssl_init(&tls, &socket.transport, &trust) == NULL, "no TLS");
    add(&full, connect_once(&tls));
    add(&ticket, connect_once(&tls));
    port_openssl_deinit(&tls);
  }
  print_row("tls.handshake.us", &full, "connecting, TLS 1.3, P-256");
  print_row("tls.handshake.ticket.us", &ticket, "the same, resumed by a ticket");
}

void bench_tls(int port)
{
  int tls_port = serve_tls(port);
  bench_pairs(port, tls_port);
  bench_handshakes(tls_port);
}
