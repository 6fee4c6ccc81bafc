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

struct peer;

/* What it does when the handshake is over; the connection is closed when it returns. */
typedef void peer_part(struct peer *peer);

struct peer {
  int port;
  int listener;
  int socket;
  int version;    /* of TLS; 0: the newest */
  bool demanding; /* wants a certificate from the client */
  peer_part *part;
  struct ssl_st *ssl;
  pthread_t thread;

  /* what the test looks at after peer_end() */
  int connections;
  bool renegotiated, good_bye;
};

/* Plays the part for `connections` clients one after the other. */
void peer_start(struct peer *peer, peer_part *part, int version, bool demanding, int connections);

/* Waits for the end of the last connection. */
void peer_end(struct peer *peer);

/* Sends back what comes, until the client says good-bye or is gone. */
void peer_echo(struct peer *peer);

/* The same, and after each piece both sides change keys (TLS 1.3). */
void peer_changes_keys(struct peer *peer);

/* Asks for renegotiation, then as peer_echo() (TLS 1.2). */
void peer_renegotiates(struct peer *peer);

/* Says "bye", and good-bye in TLS. */
void peer_says_good_bye(struct peer *peer);

#endif
