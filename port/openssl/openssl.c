/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS around a transport, by OpenSSL.
 *
 * OpenSSL never sees the network: it reads records from one memory BIO and writes them to another,
 * and this file carries them to and from the transport below. So its SSL object is used only
 * briefly, under a mutex that is never held while the transport is called: one task may send while
 * another waits for bytes. Both may have records to send, the receiving one when the server changes
 * keys; whichever task comes first sends for both, in the order in which the BIO has them.
 *
 * What send() has encrypted counts as sent. If the transport did not take all of it, the next
 * send() or recv() continues, and nothing more is encrypted before that is done.
 */
#include "port_openssl.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* More than this in one call of send() would only wait here. */
#define SEND_MAX 16384

/*
 * How often one recv() or connect() asks for more bytes: a server could send for ever without ever
 * completing anything.
 */
#define TURNS 64

/* Alerts, by RFC 8446. */
enum { HANDSHAKE_FAILURE = 40, BAD_CERTIFICATE = 42, UNKNOWN_CERTIFICATE = 46, UNKNOWN_CA = 48 };
enum { ACCESS_DENIED = 49, CERTIFICATE_REQUIRED = 116 };

/* The mutex */

static void lock(struct port_openssl *tls)
{
  port_mutex_lock(&tls->mutex);
  tls->locked = true;
}

static void unlock(struct port_openssl *tls)
{
  tls->locked = false;
  port_mutex_unlock(&tls->mutex);
}

/* In a forked process a connection is the parent's, and nobody unlocks what was locked. */
static bool forked(const struct port_openssl *tls)
{
  return port_mutex_forked(&tls->mutex);
}

/* Errors */

/* The server does not accept our certificate, or that we have none. */
static bool refuses_us(const SSL *ssl, unsigned long error)
{
  int alert = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return false;
  /* how TLS 1.2 says that our certificate is missing: the server has already shown its own */
  if (alert == HANDSHAKE_FAILURE) return SSL_get_peer_cert_chain(ssl) != NULL;
  return (alert >= BAD_CERTIFICATE && alert <= UNKNOWN_CERTIFICATE) || alert == UNKNOWN_CA ||
         alert == ACCESS_DENIED || alert == CERTIFICATE_REQUIRED;
}

/* ssl has failed: notes why. */
static int fail(struct port_openssl *tls)
{
  unsigned long error = ERR_peek_error();
  bool unverified =
      ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED;
  tls->broken = true;
  tls->error = error;
  tls->verify_error = unverified ? SSL_get_verify_result(tls->ssl) : X509_V_OK;
  return unverified || refuses_us(tls->ssl, error) ? PORT_UNTRUSTED : PORT_CLOSED;
}

/* The status for a call of OpenSSL's that did not succeed. */
static int outcome(struct port_openssl *tls, int result)
{
  switch (SSL_get_error(tls->ssl, result)) {
  case SSL_ERROR_WANT_READ:
  case SSL_ERROR_WANT_WRITE:
    return PORT_WOULD_BLOCK;
  case SSL_ERROR_ZERO_RETURN: /* the server closed TLS in good order */
    tls->ended = true;
    return PORT_CLOSED;
  default:
    return fail(tls);
  }
}

/* The reason in "error:0A000086:SSL routines::certificate verify failed", which is put into words. */
static const char *reason(unsigned long error, char *words, size_t size)
{
  ERR_error_string_n(error, words, size);
  return strrchr(words, ':') != NULL ? strrchr(words, ':') + 1 : words;
}

void port_openssl_error(struct port_openssl *tls, char *text, size_t size)
{
  char words[256] = "";
  const char *from = words;
  const char *before = "";
  text[0] = 0;
  if (forked(tls)) return;
  lock(tls);
  bool failed = tls->error != 0 || tls->verify_error != X509_V_OK;
  if (failed && tls->stale != 0) {
    before = "the new files cannot be used: ";
    from = reason(tls->stale, words, sizeof words);
  } else if (tls->verify_error != X509_V_OK) {
    from = X509_verify_cert_error_string(tls->verify_error);
  } else if (tls->error != 0) {
    from = reason(tls->error, words, sizeof words);
  }
  if (tls->ended) from = "the server closed TLS";
  if (tls->mute) from = "the server does not answer in TLS";
  unlock(tls);
  /* cut, if need be */
  if (snprintf(text, size, "%s%s", before, from) < 0) text[0] = 0;
}

/* Records. These are called, and return, with the mutex locked, which they unlock meanwhile. */

/*
 * Sends the records there are, as far as that goes without blocking. PORT_OK: all are sent, or
 * another task is sending them.
 */
static int flush(struct port_openssl *tls)
{
  const struct port_transport *below = tls->below;
  int status = PORT_OK;
  if (tls->flushing) return PORT_OK;
  tls->flushing = true;
  while (status > 0) {
    if (tls->outgoing_start == tls->outgoing_end) {
      int got = BIO_read(tls->out, tls->outgoing, sizeof tls->outgoing);
      if (got <= 0) break;
      tls->outgoing_start = 0;
      tls->outgoing_end = (size_t)got;
    }
    unlock(tls);
    status = below->send(below->context, tls->outgoing + tls->outgoing_start,
                         tls->outgoing_end - tls->outgoing_start);
    lock(tls);
    if (status > 0) tls->outgoing_start += (size_t)status;
  }
  tls->flushing = false;
  return status > 0 ? PORT_OK : status;
}

/* Receives bytes of records. Returns what the transport's recv() does. */
static int receive_records(struct port_openssl *tls, uint32_t timeout_ms)
{
  const struct port_transport *below = tls->below;
  unlock(tls);
  int got = below->recv(below->context, tls->incoming, sizeof tls->incoming, timeout_ms);
  lock(tls);
  if (got > 0 && BIO_write(tls->in, tls->incoming, got) != got) return PORT_CLOSED;
  return got;
}

/* What is left of timeout_ms. */
static uint32_t left(uint32_t began, uint32_t timeout_ms)
{
  uint32_t passed = port_clock_ms() - began;
  return passed < timeout_ms ? timeout_ms - passed : 0;
}

/* The files */

static void forget_session(struct port_openssl *tls)
{
  SSL_SESSION_free(tls->session);
  tls->session = NULL;
}

/* A key that needs a passphrase is refused: there is nobody to ask for it. */
static int no_passphrase(char *text, int size, int writing, void *context)
{
  (void)text;
  (void)size;
  (void)writing;
  (void)context;
  return -1;
}

static bool load_cas(SSL_CTX *settings, const struct port_openssl_config *config)
{
  if (config->ca_file == NULL && config->ca_folder == NULL)
    return SSL_CTX_set_default_verify_paths(settings) == 1;
  return SSL_CTX_load_verify_locations(settings, config->ca_file, config->ca_folder) == 1;
}

/* Returns NULL, or which file cannot be used. */
static const char *load_files(SSL_CTX *settings, const struct port_openssl_config *config)
{
  const char *certificate = config->certificate;
  const char *key = config->key != NULL ? config->key : certificate;
  if (!load_cas(settings, config))
    return config->ca_file != NULL ? config->ca_file : config->ca_folder;
  if (certificate == NULL) return config->key;
  if (SSL_CTX_use_certificate_chain_file(settings, certificate) != 1) return certificate;
  if (SSL_CTX_use_PrivateKey_file(settings, key, SSL_FILETYPE_PEM) != 1) return key;
  return SSL_CTX_check_private_key(settings) == 1 ? NULL : key;
}

static const char *set_up(SSL_CTX *settings, const struct port_openssl_config *config)
{
  if (settings == NULL || SSL_CTX_set_min_proto_version(settings, TLS1_2_VERSION) != 1)
    return "TLS";
  (void)SSL_CTX_set_options(settings, SSL_OP_NO_RENEGOTIATION);
  /* the caller may offer the rest of its data again from another address */
  (void)SSL_CTX_set_mode(settings, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(settings, no_passphrase);
  SSL_CTX_set_verify(settings, config->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
  return load_files(settings, config);
}

/* Adds what is in the file. The bytes may be those of a key, of which no copy is left. */
static bool add_file(EVP_MD_CTX *hash, const char *name)
{
  unsigned char part[512];
  size_t got = 1;
  FILE *file = fopen(name, "rb");
  if (file == NULL) return false;
  (void)setvbuf(file, NULL, _IONBF, 0);
  while (got > 0) {
    got = fread(part, 1, sizeof part, file);
    (void)EVP_DigestUpdate(hash, part, got);
  }
  OPENSSL_cleanse(part, sizeof part);
  bool whole = ferror(file) == 0;
  (void)fclose(file);
  return whole;
}

/* A hash of the files, by which a change is noticed. False: one of them cannot be read. */
static bool hash_files(const struct port_openssl_config *config,
                       unsigned char sum[PORT_OPENSSL_SUM_SIZE])
{
  const char *const names[] = {config->ca_file, config->certificate, config->key};
  EVP_MD_CTX *hash = EVP_MD_CTX_new();
  bool good = hash != NULL && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1;
  for (size_t i = 0; good && i < sizeof names / sizeof names[0]; i++)
    good = names[i] == NULL || add_file(hash, names[i]);
  good = good && EVP_DigestFinal_ex(hash, sum, NULL) == 1;
  EVP_MD_CTX_free(hash);
  return good;
}

/* Returns NULL, or which file cannot be used: then the settings stay what they were. */
static const char *load(struct port_openssl *tls, const unsigned char sum[PORT_OPENSSL_SUM_SIZE])
{
  ERR_clear_error();
  SSL_CTX *settings = SSL_CTX_new(TLS_client_method());
  const char *wrong = set_up(settings, &tls->config);
  if (wrong == NULL) {
    SSL_CTX *old = tls->settings;
    tls->settings = settings;
    settings = old;
    memcpy(tls->sum, sum, sizeof tls->sum);
  }
  SSL_CTX_free(settings);
  return wrong;
}

/*
 * Reads the files again if they have changed, and a folder always. Who is trusted, and who we are,
 * then counts from the beginning: a session would be resumed without looking at either. Files that
 * cannot be used, perhaps because they are being written, leave things as they are.
 */
static void renew(struct port_openssl *tls)
{
  unsigned char sum[PORT_OPENSSL_SUM_SIZE] = {0};
  bool read = hash_files(&tls->config, sum);
  tls->stale = 0;
  if (read && memcmp(sum, tls->sum, sizeof sum) == 0 && tls->config.ca_folder == NULL) return;
  if (load(tls, sum) == NULL) forget_session(tls);
  else tls->stale = ERR_peek_error();
}

/* The connection's life */

/* Makes OpenSSL ask for this name or address, and check the server's certificate against it. */
static bool ask_for(const struct port_openssl *tls, const char *name)
{
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), name) == 1) return true;
  /* OpenSSL would not check an empty name */
  if (*name == 0) return tls->config.insecure;
  SSL_set_hostflags(tls->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(tls->ssl, name) == 1 && SSL_set_tlsext_host_name(tls->ssl, name) == 1;
}

/* Finds where the connection goes; a session with another host is forgotten. */
static void find_name(struct port_openssl *tls)
{
  char name[PORT_OPENSSL_HOST_SIZE] = "";
  size_t size = tls->config.name != NULL ? strlen(tls->config.name) : 0;
  if (size > 0 && size < sizeof name)
    memcpy(name, tls->config.name, size + 1); /* no name is longer */
  else if (tls->config.name == NULL && tls->config.host != NULL)
    tls->config.host(tls->below->context, name, sizeof name);
  if (strcmp(name, tls->asked_for) != 0) forget_session(tls);
  memcpy(tls->asked_for, name, sizeof name);
}

/* The transport below is connected: makes the SSL object. */
static int begin(struct port_openssl *tls)
{
  BIO *in = BIO_new(BIO_s_mem());
  BIO *out = BIO_new(BIO_s_mem());
  renew(tls);
  tls->ssl = SSL_new(tls->settings);
  tls->broken = false;
  tls->outgoing_start = tls->outgoing_end = 0;
  if (tls->ssl == NULL || in == NULL || out == NULL) {
    BIO_free(in);
    BIO_free(out);
    return PORT_UNREACHABLE;
  }
  tls->in = in;
  tls->out = out;
  SSL_set_bio(tls->ssl, in, out);
  SSL_set_connect_state(tls->ssl);
  find_name(tls);
  if (!ask_for(tls, tls->asked_for)) {
    tls->verify_error = X509_V_ERR_HOSTNAME_MISMATCH;
    return PORT_UNTRUSTED;
  }
  if (tls->session != NULL) (void)SSL_set_session(tls->ssl, tls->session);
  return PORT_OK;
}

/*
 * Frees the SSL object. A session that can be resumed is kept; OpenSSL would drop it without the
 * SSL_shutdown().
 */
static void end(struct port_openssl *tls)
{
  if (tls->ssl == NULL) return;
  forget_session(tls);
  if (!tls->broken && SSL_is_init_finished(tls->ssl)) {
    (void)SSL_shutdown(tls->ssl);
    (void)flush(tls);
    tls->session = SSL_get1_session(tls->ssl);
    if (tls->session != NULL && SSL_SESSION_is_resumable(tls->session) != 1) forget_session(tls);
  }
  SSL_free(tls->ssl); /* and the BIOs */
  tls->ssl = NULL;
}

/* The handshake, as far as it goes with the bytes there are. */
static int shake(struct port_openssl *tls)
{
  ERR_clear_error();
  int result = SSL_do_handshake(tls->ssl);
  int status = result == 1 ? PORT_OK : outcome(tls, result);
  int sent = flush(tls); /* the alert, too */
  return status == PORT_WOULD_BLOCK && sent == PORT_CLOSED ? PORT_CLOSED : status;
}

static bool all_is_sent(const struct port_openssl *tls)
{
  return tls->outgoing_start == tls->outgoing_end && BIO_ctrl_pending(tls->out) == 0;
}

static int shake_hands(struct port_openssl *tls, uint32_t began, uint32_t timeout_ms)
{
  int status = shake(tls);
  for (int turn = 0; status == PORT_WOULD_BLOCK && turn < TURNS; turn++) {
    int got = receive_records(tls, left(began, timeout_ms));
    if (got == PORT_WOULD_BLOCK && all_is_sent(tls)) return PORT_NEEDS_INPUT;
    if (got <= 0) return got;
    status = shake(tls);
  }
  return status;
}

/* Not an end: connect() is to be called again. */
static bool goes_on(int status)
{
  return status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT;
}

/* Connects the transport below, and then makes the SSL object. */
static int reach(struct port_openssl *tls, uint32_t timeout_ms)
{
  const struct port_transport *below = tls->below;
  int status = below->connect(below->context, timeout_ms);
  if (goes_on(status)) return status;
  lock(tls);
  tls->error = 0;
  tls->verify_error = X509_V_OK;
  tls->mute = false;
  tls->ended = false;
  if (status == PORT_OK) status = begin(tls);
  unlock(tls);
  return status;
}

/*
 * A forked process takes over the transport, without a connection. What another task was
 * changing at the fork is of no use, and cannot even be freed: that transport has to be initialised
 * again.
 */
static void reset_in_child(struct port_openssl *tls)
{
  if (!forked(tls)) return;
  if (tls->locked) {
    tls->ssl = NULL;
    tls->session = NULL;
    tls->settings = NULL;
  }
  tls->locked = false;
  tls->flushing = false;
  tls->broken = true; /* so that end() sends nothing */
  port_mutex_destroy(&tls->mutex);
  port_mutex_init(&tls->mutex);
  end(tls);
}

static int tls_connect(void *context, uint32_t timeout_ms)
{
  struct port_openssl *tls = context;
  reset_in_child(tls);
  uint32_t began = port_clock_ms();
  int status = tls->ssl == NULL ? reach(tls, timeout_ms) : PORT_OK;
  if (status == PORT_OK) {
    lock(tls);
    status = shake_hands(tls, began, timeout_ms);
    unlock(tls);
  }
  if (status == PORT_OK || goes_on(status)) return status;
  tls->broken = true;
  tls->transport.close(tls);
  return status == PORT_UNTRUSTED ? PORT_UNTRUSTED : PORT_UNREACHABLE;
}

static int encrypt(struct port_openssl *tls, const void *data, size_t size)
{
  ERR_clear_error();
  int written = SSL_write(tls->ssl, data, size < SEND_MAX ? (int)size : SEND_MAX);
  return written > 0 ? written : outcome(tls, written);
}

static int tls_send(void *context, const void *data, size_t size)
{
  struct port_openssl *tls = context;
  int status = PORT_CLOSED;
  lock(tls);
  if (tls->ssl != NULL) {
    status = tls->broken ? PORT_CLOSED : flush(tls);
    if (status == PORT_OK) {
      status = encrypt(tls, data, size);
      (void)flush(tls);
    }
    /* recv() reports a broken connection: the server may have said why */
    if (status < 0) status = PORT_WOULD_BLOCK;
  }
  unlock(tls);
  return status;
}

static int decrypt(struct port_openssl *tls, void *data, size_t size)
{
  ERR_clear_error();
  int got = SSL_read(tls->ssl, data, size < INT_MAX ? (int)size : INT_MAX);
  return got > 0 ? got : outcome(tls, got);
}

static bool has_unsent(const struct port_openssl *tls)
{
  return tls->outgoing_start < tls->outgoing_end || BIO_ctrl_pending(tls->out) > 0;
}

/*
 * What waited before is perhaps why the last send() was refused. Once the transport below has taken
 * it, that does not wait for room any more, so this has to return at once.
 */
static int tls_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_openssl *tls = context;
  uint32_t began = port_clock_ms();
  lock(tls);
  int status = tls->ssl == NULL || tls->broken ? PORT_CLOSED : PORT_WOULD_BLOCK;
  for (int turn = 0; status == PORT_WOULD_BLOCK && turn < TURNS; turn++) {
    bool waited = has_unsent(tls);
    status = decrypt(tls, data, size);
    int sent = flush(tls);
    if (status != PORT_WOULD_BLOCK) break;
    bool cut = sent == PORT_CLOSED;
    if (waited && sent == PORT_OK) timeout_ms = 0;
    /* a connection on which we can no longer send may still hold the server's last words */
    int got = receive_records(tls, cut ? 0 : left(began, timeout_ms));
    if (got > 0) continue;
    status = cut && got == PORT_WOULD_BLOCK ? PORT_CLOSED : got;
    break;
  }
  unlock(tls);
  return status;
}

static void tls_close(void *context)
{
  struct port_openssl *tls = context;
  reset_in_child(tls);
  lock(tls);
  if (tls->ssl != NULL && !tls->broken && !SSL_is_init_finished(tls->ssl)) tls->mute = true;
  end(tls);
  unlock(tls);
  tls->below->close(tls->below->context);
}

static bool tls_aim(void *context, const char *address)
{
  const struct port_openssl *tls = context;
  return tls->below->aim(tls->below->context, address);
}

static void tls_wake(void *context)
{
  const struct port_transport *below = ((const struct port_openssl *)context)->below;
  below->wake(below->context);
}

/* Set-up */

const char *port_openssl_init(struct port_openssl *tls, const struct port_transport *below,
                              const struct port_openssl_config *config)
{
  unsigned char sum[PORT_OPENSSL_SUM_SIZE] = {0};
  memset(tls, 0, sizeof *tls);
  port_mutex_init(&tls->mutex);
  tls->transport.connect = tls_connect;
  tls->transport.send = tls_send;
  tls->transport.recv = tls_recv;
  tls->transport.close = tls_close;
  tls->transport.context = tls;
  tls->transport.aim = below->aim != NULL ? tls_aim : NULL;
  tls->transport.wake = below->wake != NULL ? tls_wake : NULL;
  tls->below = below;
  tls->config = *config;
  lock(tls); /* a thread that is cancelled is not ended inside OpenSSL: see port.h */
  (void)hash_files(config, sum);
  const char *wrong = load(tls, sum);
  if (wrong != NULL) tls->error = ERR_peek_error();
  unlock(tls);
  return wrong;
}

void port_openssl_deinit(struct port_openssl *tls)
{
  if (tls->below == NULL) return;
  reset_in_child(tls);
  end(tls);
  forget_session(tls);
  SSL_CTX_free(tls->settings);
  port_mutex_destroy(&tls->mutex);
}
