/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS around any transport, by Mbed TLS 2.28, 3 or 4: what Zephyr, ESP-IDF, NuttX and most vendors'
 * SDKs have. TLS 1.2, and 1.3 where the Mbed TLS that is linked has it.
 *
 *     static struct port_lwip lwip;
 *     static struct port_mbedtls tls;
 *     static mbedtls_x509_crt ca;
 *     static struct port_mbedtls_config config = {
 *         .random = mbedtls_ctr_drbg_random,
 *         .random_context = &drbg,
 *         .ca = &ca,
 *         .name = "redis.example",
 *     };
 *
 *     mbedtls_x509_crt_init(&ca);
 *     mbedtls_x509_crt_parse(&ca, ca_pem, sizeof ca_pem);
 *     port_mbedtls_init(&tls, &lwip.transport, &config);
 *     ... give &tls.transport to the client ...
 *
 * The server is known by a certificate of a CA, or by a key that both sides have (PSK): then there
 * are no certificates at all. README.md in this folder says what is checked, and what it costs.
 *
 * Memory. The struct is the caller's and must not move. This file allocates nothing by itself, but
 * Mbed TLS does, by its own allocator: its buffers at the first connect(), which it keeps until
 * port_mbedtls_deinit(), and what a handshake needs, a session and parts of the configuration at
 * each connection. With MBEDTLS_MEMORY_BUFFER_ALLOC_C all of it comes from an array of the program's.
 * If there is not enough, connect() fails with PORT_UNREACHABLE, and the client tries again.
 *
 * A connection to the same name as the last one resumes its session, by a ticket or by its number;
 * the server's certificate is then not checked again, as is usual with resumption.
 */
#ifndef PORT_MBEDTLS_H
#define PORT_MBEDTLS_H

#include "port.h"

#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Room for the name of a host, its end mark included. */
#define PORT_MBEDTLS_NAME_SIZE 256

/* Private: between Mbed TLS and the transport below; the second holds a record of what send() takes. */
#define PORT_MBEDTLS_INCOMING_SIZE 512
#define PORT_MBEDTLS_OUTGOING_SIZE 640

/*
 * What port_mbedtls_error() returns. Negative: Mbed TLS's number, MBEDTLS_ERR_... Otherwise one of
 * these, the first two with a number added: TLS's of the alert that came from the server; Mbed TLS's
 * flags of what is wrong with the server's certificate, MBEDTLS_X509_BADCERT_...
 */
#define PORT_MBEDTLS_ALERT 0x100
#define PORT_MBEDTLS_CERT  0x1000000
#define PORT_MBEDTLS_CUT   1 /* the connection broke in the handshake */
#define PORT_MBEDTLS_MUTE                                                                          \
  2 /* the client gave up while the handshake went on: the server is silent */

/*
 * Kept by pointer, as are the things it points at. Members that are NULL, 0 or false: not used. An Mbed
 * TLS without certificates (MBEDTLS_X509_CRT_PARSE_C) has the members that are not about them.
 */
struct port_mbedtls_config {
  /*
   * Mbed TLS's source of random bytes, such as mbedtls_ctr_drbg_random, and its context. All secrecy
   * depends on it. It is called by any task that connects, sends or receives, but by one at a time
   * for each transport; if others use it, too, Mbed TLS needs MBEDTLS_THREADING_C. A forked process
   * that connects has to reseed it first. Mbed TLS 4 has its own, and takes no other: both are
   * ignored there.
   */
  int (*random)(void *context, unsigned char *data, size_t size);
  void *random_context;

#ifdef MBEDTLS_X509_CRT_PARSE_C
  /* The CAs that are trusted, as mbedtls_x509_crt_parse() has read them. NULL: there is a `psk` */
  mbedtls_x509_crt *ca;

  /* Revoked certificates, by those CAs. NULL: none is looked for */
  mbedtls_x509_crl *revoked;

  /* The client's certificate, with those up to a CA that the server trusts, and its key. */
  mbedtls_x509_crt *certificate;
  mbedtls_pk_context *key;
#endif

  /*
   * The name that the server's certificate must have, and that the server is asked for (SNI); below
   * PORT_MBEDTLS_NAME_SIZE. Needed with `ca`. A DNS name: before 3.5, Mbed TLS finds no addresses in
   * certificates.
   */
  const char *name;

  /*
   * After a redirection, the server's certificate must have the host name of the redirection
   * instead of `name`. If the redirection gives an address, `name` still applies.
   */
  bool names_of_nodes;

  /* A key that the server has, too, of 16 bytes or more that nobody can guess, and its name there. */
  const unsigned char *psk;
  size_t psk_size;
  const char *psk_identity;

  /*
   * Mbed TLS's numbers of ciphers, the best first, 0 at the end; it must stay valid. NULL: those with
   * forward secrecy and authenticated encryption that are linked; with `psk`, also some without
   */
  const int *ciphers;

  /*
   * MBEDTLS_SSL_MAX_FRAG_LEN_512 to _4096: how long records may be that the server sends, for an
   * Mbed TLS with small buffers (MBEDTLS_SSL_IN_CONTENT_LEN; the one to send has to have room for
   * as much, or no connection is made). Before 3.6.3 the server's certificates
   * have to fit into one record. 0: as long as Mbed TLS takes
   */
  unsigned char fragment;

  /*
   * Called before each handshake, by the task that connects, while nothing else uses what the
   * members above point at: a program that has new certificates or keys puts them there now, by
   * freeing and parsing the same structs, or by changing the members. True: something has changed,
   * so no session is resumed. False: nothing has.
   */
  bool (*renew)(void *context);
  void *renew_context;
};

/* A transport that speaks TLS over another one. */
struct port_mbedtls {
  /* for the client; all the rest is private */
  struct port_transport transport;

  struct port_transport *below;
  const struct port_mbedtls_config *config;

  /* guards what follows, between the task that receives and the one that sends */
  struct port_mutex mutex;
  bool locked;

  unsigned char stage;

  /* ssl has its buffers; session can be resumed with the server `asked_for` */
  bool made;
  bool resumable;

  /* of this connection: TLS has failed; the transport below takes no more; there was a certificate */
  bool broken;
  bool cut;
  bool shown;

  /* where aim() leads; NULL: nowhere */
  const char *target;
  char asked_for[PORT_MBEDTLS_NAME_SIZE];

  int error;
  mbedtls_ssl_context ssl;
  mbedtls_ssl_config settings;
  mbedtls_ssl_session session;

  size_t incoming_start;
  size_t incoming_end;
  size_t outgoing_start;
  size_t outgoing_end;
  unsigned char incoming[PORT_MBEDTLS_INCOMING_SIZE];
  unsigned char outgoing[PORT_MBEDTLS_OUTGOING_SIZE];
};

/*
 * Makes tls ready to connect through `below`, to a server that speaks TLS. Allocates nothing yet.
 * False: the configuration lacks something: random bytes, a CA with a name or a PSK with its
 * identity, or the key of the certificate.
 */
bool port_mbedtls_init(struct port_mbedtls *tls, struct port_transport *below,
                       const struct port_mbedtls_config *config);

/*
 * Frees what Mbed TLS has allocated for tls. Call it after fairlock_client_deinit(), also in a
 * forked process: there it sends nothing, and frees nothing if another task of the parent was using
 * tls at the fork.
 */
void port_mbedtls_deinit(struct port_mbedtls *tls);

/*
 * Why TLS failed last, as one of the numbers above; 0: it did not, and in a forked process. The next
 * connect() that reaches the server sets it to 0 again. May be called by any task.
 */
int port_mbedtls_error(struct port_mbedtls *tls);

/* A text for such a number. */
const char *port_mbedtls_error_text(int error);

#ifdef __cplusplus
}
#endif

#endif
