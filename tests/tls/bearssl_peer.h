/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS server in the test's own process, by BearSSL, at the other end of a transport in memory: it
 * sends back what it gets, and can be told to do what real servers do not. Nothing blocks: the
 * server's answer is ready when the client receives.
 */
#ifndef PEER_H
#define PEER_H

#include "port.h"

#include <bearssl.h>

struct peer {
  /* to the server; all the rest is private, unless it says otherwise */
  struct port_transport transport;

  br_ssl_server_context server;
  uint8_t receive_buffer[BR_SSL_BUFSIZE_INPUT];
  uint8_t send_buffer[BR_SSL_BUFSIZE_OUTPUT];
  bool open;

  /* for the test to set: the size of records, whatever the client asked for; 0: as it asked */
  unsigned fragment;

  /*
   * for the test to read: data that came, connections, and, of the last one, whether the server had
   * finished its handshake, and whether the client said good-bye
   */
  size_t received;
  unsigned connections;
  bool shaken;
  bool closed_well;
};

/* Its public key, to be pinned. Memory of the peer's module. */
const br_x509_pkey *peer_key(void);

void peer_init(struct peer *peer);

/* The server asks for another handshake. */
void peer_renegotiate(struct peer *peer);

/* The server says good-bye. */
void peer_close(struct peer *peer);

#endif
