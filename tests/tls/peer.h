/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS server of the test's own, for what no Redis server does: it changes keys, asks for
 * renegotiation, says good-bye. One connection at a time, in a thread, until it is told to do
 * something else.
 */
#ifndef TLS_PEER_H
#define TLS_PEER_H

#include <pthread.h>
#include <stdbool.h>

/* Where certificates.sh has put them; the build sets it. */
#ifndef CERTIFICATES
#define CERTIFICATES "build/tls/certificates"
#endif

/* The key that it has in common with clients, and its name. */
#define PEER_PSK      "\1\2\3 sixteen and more"
#define PEER_IDENTITY "device 1"

struct peer;

/* What it does when the handshake is over; the connection is closed when it returns. */
typedef void peer_part(struct peer *peer);

struct peer {
  /* for the caller of peer_start_as() to set; otherwise peer_start() does */
  peer_part *part;
  int version;     /* of TLS; 0: the newest */
  bool demanding;  /* wants a certificate from the client */
  bool by_psk;     /* has no certificate, but a key in common with the client; TLS 1.2 */
  int behind;      /* peer_forwards(): the port of the server behind it */
  int connections; /* how many it takes, one after the other */

  int port;
  int listener;
  int socket;
  struct ssl_st *ssl;
  pthread_t thread;

  /* what the test looks at after peer_end() */
  bool renegotiated, good_bye;

  /* of the last connection */
  int used; /* which version of TLS */
  bool resumed;
};

/* Plays the part for `connections` clients one after the other. */
void peer_start(struct peer *peer, peer_part *part, int version, bool demanding, int connections);

/* The same, of a peer whose first members are set, and the rest 0. */
void peer_start_as(struct peer *peer);

/* Waits for the end of the last connection. */
void peer_end(struct peer *peer);

/* Sends back what comes, until the client says good-bye or is gone. */
void peer_echo(struct peer *peer);

/* The same, and after each piece both sides change keys (TLS 1.3). */
void peer_changes_keys(struct peer *peer);

/* Asks for renegotiation, then as peer_echo() (TLS 1.2). */
void peer_renegotiates(struct peer *peer);

/* Hands over what comes from either side, the client and the server behind, until one ends. */
void peer_forwards(struct peer *peer);

/* Says "bye", and good-bye in TLS. */
void peer_says_good_bye(struct peer *peer);

#endif
