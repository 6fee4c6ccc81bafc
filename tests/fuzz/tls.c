/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS, by the transport that tls.h's subject is, between a hostile network and a server that is sometimes honest. The server is
 * OpenSSL's own, in this process. The input says what happens to the records between the two, in
 * both directions and in each state: they pass, come in pieces, are changed, lost, repeated or made
 * up, sending blocks, the connection breaks; and when the server changes keys, asks for
 * renegotiation or says good-bye. While one task receives, another sends, at any moment at which
 * the mutex is free.
 *
 * Checked: the transport keeps to the contract of port.h, each call ends after a bounded number of
 * calls of the transport below, which is never called twice at a time, nor with the mutex locked,
 * except to send, where the subject says so; and whatever is received was sent, in order.
 */
#include "tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) fail(#condition, __LINE__);                                                  \
  } while (0)

enum { MESSAGE = 48, CALLS_MAX = 1000 };

static const uint8_t *input;
static size_t input_size;

static struct port_transport *tls;
static struct port_mutex *locked; /* NULL: none */
static SSL_CTX *settings;
static SSL *server;
static BIO *to_server, *from_server;

static bool up, sending_below, receiving_below, inside_send, inside_recv;
static unsigned calls;                   /* of the transport below, since one of TLS's began */
static size_t said, heard;               /* bytes of the server's, as they were written and read */
static size_t client_said, client_heard; /* and of the client's */

static void fail(const char *what, int line)
{
  fprintf(stderr, "line %d, violated: %s\n", line, what);
  abort();
}

/* The next byte of the input; 0 when there is none, which is what harms nobody. */
static unsigned next(void)
{
  if (input_size == 0) return 0;
  input_size--;
  return *input++;
}

/* What each side says is a sequence of its own: the byte at a place is known. */
static uint8_t word(size_t place)
{
  return (uint8_t)(place * 7 + (place >> 8));
}

/* The platform */

uint32_t port_clock_ms(void)
{
  static uint32_t now;
  return now++;
}

void port_mutex_init(struct port_mutex *mutex)
{
  CHECK(mutex == subject_mutex());
  locked = NULL;
}

void port_mutex_lock(struct port_mutex *mutex)
{
  CHECK(mutex == subject_mutex() && locked == NULL);
  locked = mutex;
}

bool port_mutex_forked(const struct port_mutex *mutex)
{
  (void)mutex;
  return false;
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  CHECK(locked == mutex);
  locked = NULL;
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  CHECK(mutex == subject_mutex() && locked == NULL);
}

/* The server */

static void settings_make(void)
{
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *certificate = X509_new();
  X509_NAME *name = X509_get_subject_name(certificate);
  unsigned char *bytes = NULL;
  settings = SSL_CTX_new(TLS_server_method());
  if (key == NULL || certificate == NULL || settings == NULL) abort();
  (void)X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  (void)X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  (void)X509_set_pubkey(certificate, key);
  (void)X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"host", -1, -1,
                                   0);
  (void)X509_set_issuer_name(certificate, name);
  if (X509_sign(certificate, key, EVP_sha256()) == 0) abort();
  if (SSL_CTX_use_certificate(settings, certificate) != 1) abort();
  if (SSL_CTX_use_PrivateKey(settings, key) != 1) abort();
  int size = i2d_X509(certificate, &bytes);
  if (size <= 0) abort();
  subject_prepare(bytes, (size_t)size);
  OPENSSL_free(bytes);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

static void server_end(void)
{
  SSL_free(server);
  server = NULL;
}

static void server_begin(void)
{
  unsigned choice = next();
  server_end();
  server = SSL_new(settings);
  to_server = BIO_new(BIO_s_mem());
  from_server = BIO_new(BIO_s_mem());
  if (server == NULL || to_server == NULL || from_server == NULL) abort();
  SSL_set_bio(server, to_server, from_server);
  SSL_set_accept_state(server);
  if (choice & 1) (void)SSL_set_max_proto_version(server, TLS1_2_VERSION);
  if (choice & 2) SSL_set_verify(server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  said = heard = client_said = client_heard = 0;
}

static void server_says(size_t size)
{
  uint8_t text[MESSAGE];
  for (size_t i = 0; i < size; i++)
    text[i] = word(said + i);
  if (SSL_write(server, text, (int)size) == (int)size) said += size;
}

/* Reads what has come, and says something, or not. */
static void server_turn(void)
{
  uint8_t text[4096];
  int got;
  ERR_clear_error();
  if (!SSL_is_init_finished(server)) (void)SSL_do_handshake(server);
  while ((got = SSL_read(server, text, sizeof text)) > 0) {
    for (int i = 0; i < got; i++)
      CHECK(text[i] == word(client_heard++));
  }
  CHECK(client_heard <= client_said);
  if (!SSL_is_init_finished(server)) return;
  switch (next() % 16) {
  case 1:
  case 2:
  case 3:
    server_says(1 + next() % MESSAGE);
    break;
  case 4:
    (void)SSL_key_update(server, SSL_KEY_UPDATE_REQUESTED);
    server_says(1);
    break;
  case 5:
    if (SSL_version(server) == TLS1_2_VERSION) (void)SSL_renegotiate(server);
    (void)SSL_do_handshake(server);
    break;
  case 6:
    (void)SSL_shutdown(server);
    break;
  case 7:
    (void)SSL_new_session_ticket(server);
    server_says(1);
    break;
  default:
    break;
  }
  ERR_clear_error();
}

/* The network */

static void begin_below(bool holds)
{
  CHECK((locked != NULL) == holds && ++calls < CALLS_MAX);
}

/* Another task sends, if none is. */
static void send_beside(void)
{
  uint8_t text[MESSAGE];
  if (inside_send || locked != NULL || next() % 8 != 1) return;
  size_t size = 1 + next() % MESSAGE;
  for (size_t i = 0; i < size; i++)
    text[i] = word(client_said + i);
  inside_send = true;
  int sent = tls->send(tls->context, text, size);
  inside_send = false;
  CHECK(sent == PORT_WOULD_BLOCK || sent == PORT_CLOSED || (sent > 0 && (size_t)sent <= size));
  if (sent > 0) client_said += (size_t)sent;
}

static int below_connect(void *context, uint32_t timeout_ms)
{
  CHECK(context == &up && timeout_ms <= PORT_WAIT_MAX_MS && !up);
  begin_below(false);
  unsigned choice = next() % 16;
  if (choice == 1) return PORT_WOULD_BLOCK;
  if (choice == 2) return PORT_UNREACHABLE;
  up = true;
  server_begin();
  return PORT_OK;
}

static int below_send(void *context, const void *data, size_t size)
{
  CHECK(context == &up && size > 0 && !sending_below);
  begin_below(subject_sends_locked);
  unsigned choice = next() % 16;
  sending_below = true;
  if (inside_recv) send_beside();
  sending_below = false;
  if (!up || choice == 1) {
    up = false;
    return PORT_CLOSED;
  }
  if (choice == 2) return PORT_WOULD_BLOCK;
  if (choice == 3) size = 1 + next() % size;
  if (choice != 4) CHECK(BIO_write(to_server, data, (int)size) == (int)size); /* 4: lost */
  return (int)size;
}

/* A record that nobody has made; its header may be one. */
static int make_up(uint8_t *to, size_t size)
{
  static const uint8_t types[] = {20, 21, 22, 23, 24};
  size_t length = next() % 64;
  if (length + 5 > size) length = size > 5 ? size - 5 : 0;
  uint8_t record[5 + 64] = {types[next() % 5], 3, 3, 0, (uint8_t)length};
  for (size_t i = 0; i < length; i++)
    record[5 + i] = (uint8_t)next();
  if (size > length + 5) size = length + 5;
  memcpy(to, record, size);
  return (int)size;
}

static int below_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  CHECK(context == &up && size > 0 && timeout_ms <= PORT_WAIT_MAX_MS && !receiving_below);
  begin_below(false);
  receiving_below = true;
  if (inside_recv) send_beside();
  receiving_below = false;
  if (!up) return PORT_CLOSED;
  server_turn();
  unsigned choice = next() % 32;
  if (choice == 1) {
    up = false;
    return PORT_CLOSED;
  }
  if (choice == 2) return make_up(data, size);
  if (choice == 3) size = 1 + next() % size;
  int got = BIO_read(from_server, data, (int)size);
  if (got <= 0) return PORT_WOULD_BLOCK;
  if (choice == 4) ((uint8_t *)data)[next() % (unsigned)got] ^= (uint8_t)(1U << next() % 8);
  if (choice == 5 && got > 1) got = 1 + (int)(next() % (unsigned)(got - 1)); /* the rest is lost */
  return got;
}

static void below_close(void *context)
{
  CHECK(context == &up && !receiving_below && !sending_below);
  begin_below(false);
  up = false;
}

static struct port_transport below = {below_connect, below_send, below_recv, below_close,
                                      (void *)&up,   NULL,       NULL};

/* The client */

static int connects(void)
{
  int status = PORT_WOULD_BLOCK;
  bool goes_on = true;
  for (int i = 0; i < 8 && goes_on; i++) {
    calls = 0;
    status = tls->connect(tls->context, next());
    goes_on = status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT;
    if (status == PORT_NEEDS_INPUT) CHECK(up); /* only the server can go on */
  }
  CHECK(status == PORT_OK || goes_on || status == PORT_UNREACHABLE || status == PORT_UNTRUSTED);
  CHECK(status == PORT_OK || goes_on || subject_is_down());
  if (status != PORT_OK && !goes_on) CHECK(!up); /* it is closed again */
  return status;
}

static int receives(void)
{
  uint8_t text[MESSAGE];
  size_t size = 1 + next() % MESSAGE;
  calls = 0;
  inside_recv = true;
  int got = tls->recv(tls->context, text, size, next() * 4U % (PORT_WAIT_MAX_MS + 1));
  inside_recv = false;
  if (got <= 0) {
    CHECK(got == PORT_WOULD_BLOCK || got == PORT_CLOSED || got == PORT_UNTRUSTED);
    return got;
  }
  CHECK((size_t)got <= size);
  for (int i = 0; i < got; i++)
    CHECK(text[i] == word(heard++));
  CHECK(heard <= said);
  return got;
}

static void talk(void)
{
  int got = PORT_WOULD_BLOCK;
  for (int turn = 0; turn < 64 && (got > 0 || got == PORT_WOULD_BLOCK); turn++) {
    calls = 0;
    send_beside();
    got = receives();
    if (input_size == 0 && got == PORT_WOULD_BLOCK) break;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  input = data;
  input_size = size;
  if (settings == NULL) {
    settings_make();
  }
  up = sending_below = receiving_below = inside_send = inside_recv = false;
  calls = 0;
  tls = subject_init(&below, next() % 8 != 1);
  CHECK(tls != NULL);
  for (int connection = 0; connection < 3; connection++) {
    if (connects() == PORT_OK) talk();
    calls = 0;
    tls->close(tls->context);
    CHECK(subject_is_down() && !up);
    CHECK(subject_has_a_text());
    if (input_size == 0) break;
  }
  subject_deinit();
  server_end();
  return 0;
}
