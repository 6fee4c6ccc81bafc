/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.2 around any transport, with BearSSL, for firmware and for hosts: no heap, no files, and a
 * clock only where a CA is trusted.
 *
 *     static struct port_lwip lwip;
 *     static struct port_bearssl tls;
 *     static uint8_t receive_buffer[PORT_BEARSSL_RECEIVE_SIZE(512)];
 *     static uint8_t send_buffer[PORT_BEARSSL_SEND_SIZE(512)];
 *     static const struct port_bearssl_config config = {
 *         .entropy = read_entropy,
 *         .receive_buffer = receive_buffer,
 *         .receive_size = sizeof receive_buffer,
 *         .send_buffer = send_buffer,
 *         .send_size = sizeof send_buffer,
 *         .cipher = port_bearssl_chacha20,
 *         .keys = port_bearssl_ec,
 *         .trust = port_bearssl_pinned,
 *         .pinned = &SERVER[0].pkey,
 *     };
 *
 *     port_bearssl_init(&tls, &lwip.transport, &config);
 *     ... give &tls.transport to the client ...
 *
 * Only what the configuration names is linked: cipher, keys, trust and certify are functions for
 * that reason. README.md in this folder says how to turn keys into C, and what each kind of trust
 * can and cannot check.
 *
 * The server has to offer TLS 1.2, ECDHE on P-256, SHA-256, and the cipher and a key of the
 * kind that are configured. Renegotiation is refused.
 *
 * Time. A handshake takes 23 to 40 million instructions on a Cortex-M3. connect() returns between
 * steps when its time is up, but a single step takes up to 12 million, whatever timeout_ms says:
 * 0.2 s at 72 MHz. Each connection makes a full handshake, with all checks: Redis resumes sessions
 * only by tickets, which BearSSL does not support.
 *
 * Certificates that change. What `chain`, `private_key` and `ca` point at, and the bytes of the key
 * that `pinned` names, are read in handshakes only. `entropy` is called before each, when nothing
 * else uses them: there a program may write others of the same kind and number in their place.
 */
#ifndef PORT_BEARSSL_H
#define PORT_BEARSSL_H

#include "port.h"

#include <bearssl.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The buffer for records of `data` bytes: 512, 1024, 2048, 4096 or 16384. The smaller of the two
 * buffers decides which size the server is asked for (RFC 6066, max_fragment_length). OpenSSL 1.1.1
 * and later, and so Redis and Valkey, comply. A server that does not can be read if the receive
 * buffer has room for 16384; otherwise its first longer record ends the connection, with
 * BR_ERR_TOO_LARGE.
 */
#define PORT_BEARSSL_RECEIVE_SIZE(data) ((data) + 325)
#define PORT_BEARSSL_SEND_SIZE(data)    ((data) + 85)

struct port_bearssl;

/* Kept by pointer, as are the things it points at; may be in flash. */
struct port_bearssl_config {
  /*
   * Fills data with size bytes that nobody else can know or guess: from a hardware random number
   * generator, or from a generator that was seeded by one. All secrecy depends on it;
   * port_clock_ms(), a serial number, a counter of starts or the noise of an unconnected pin is not
   * enough. False: no such bytes are available, and the connection fails. Called at each connect().
   */
  bool (*entropy)(void *data, size_t size);

  /* Memory for records: see PORT_BEARSSL_RECEIVE_SIZE, PORT_BEARSSL_SEND_SIZE. */
  uint8_t *receive_buffer;
  size_t receive_size;
  uint8_t *send_buffer;
  size_t send_size;

  /* port_bearssl_chacha20, or port_bearssl_aes_gcm. */
  void (*cipher)(struct port_bearssl *tls);

  /* The kinds of keys that sign: port_bearssl_ec, port_bearssl_rsa or port_bearssl_ec_and_rsa. */
  void (*keys)(struct port_bearssl *tls);

  /* How the server is known: port_bearssl_pinned or port_bearssl_ca. */
  bool (*trust)(struct port_bearssl *tls);

  /* port_bearssl_pinned: the server's public key. Its certificate is not checked otherwise. */
  const br_x509_pkey *pinned;

  /* port_bearssl_ca: whose certificates are trusted, and memory to look at one. */
  const br_x509_trust_anchor *ca;
  size_t ca_count;
  br_x509_minimal_context *x509;

  /*
   * port_bearssl_ca: the seconds since 1970-01-01 00:00 UTC; 32 bits last until 2106. False: not
   * known yet; then no connection is made, and the client tries again after a while.
   */
  bool (*utc)(uint32_t *seconds);

  /*
   * The name that the server's certificate must have, and that the server is asked for (SNI).
   * port_bearssl_pinned: only asked for; NULL: not even that.
   */
  const char *name;

  /*
   * After a redirection, the server's certificate must have the host name of the redirection
   * instead of `name`. If the redirection gives an address, `name` still applies: BearSSL does not
   * check addresses in certificates.
   */
  bool names_of_nodes;

  /* The client's certificate: port_bearssl_client_ec; NULL: none. */
  void (*certify)(struct port_bearssl *tls);
  const br_x509_certificate *chain;
  size_t chain_count;
  const br_ec_private_key *private_key;
};

/* A transport that speaks TLS over another one. */
struct port_bearssl {
  /* for the client; all the rest is private */
  struct port_transport transport;

  struct port_transport *below;
  const struct port_bearssl_config *config;

  /* guards client, between the task that receives and the one that sends */
  struct port_mutex mutex;

  /* nobody sets it: a task sleeps on it for a moment */
  struct port_event pause;

  uint8_t stage;

  /* the cipher's suites, by the kind of the server's key */
  uint16_t suite_ec;
  uint16_t suite_rsa;

  /* where aim() leads; NULL: nowhere */
  const char *target;

  int error;
  br_ssl_client_context client;
  br_x509_knownkey_context known;
};

/*
 * Makes tls ready to connect through `below`, to a server that speaks TLS. It must not move while
 * the client uses it, because its transport points to it. False: the configuration lacks something,
 * or has a buffer that is too small, or a pinned key of a kind that is not in `keys`.
 */
bool port_bearssl_init(struct port_bearssl *tls, struct port_transport *below,
                       const struct port_bearssl_config *config);

/* Ends tls. Call it after fairlock_client_deinit(). */
void port_bearssl_deinit(struct port_bearssl *tls);

/*
 * BearSSL's number of the last error (BR_ERR_...), kept until the next; 0: there was none.
 * BR_ERR_IO: the connection broke in the handshake. 256 and more: an alert from the server. May be
 * called from any task.
 */
int port_bearssl_error(struct port_bearssl *tls);

/* A text for such a number. Costs 2.4 KB of flash where it is used. */
const char *port_bearssl_error_text(int error);

/* For `cipher`: ChaCha20-Poly1305, the smaller one, and fast without special hardware. */
void port_bearssl_chacha20(struct port_bearssl *tls);

/* For `cipher`: AES-128-GCM, where rules require it. */
void port_bearssl_aes_gcm(struct port_bearssl *tls);

/* For `keys`: ECDSA on P-256; RSA of up to 4096 bits; both. */
void port_bearssl_ec(struct port_bearssl *tls);
void port_bearssl_rsa(struct port_bearssl *tls);
void port_bearssl_ec_and_rsa(struct port_bearssl *tls);

/* For `trust`. */
bool port_bearssl_pinned(struct port_bearssl *tls);
bool port_bearssl_ca(struct port_bearssl *tls);

/* For `certify`: a certificate with an EC key on P-256. */
void port_bearssl_client_ec(struct port_bearssl *tls);

#ifdef __cplusplus
}
#endif

#endif
