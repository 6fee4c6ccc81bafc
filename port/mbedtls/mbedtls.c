/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS around a transport; see port_mbedtls.h.
 *
 * Mbed TLS asks for received bytes, and hands over bytes to send, by two functions here, which never
 * block. Received bytes are fetched from the transport below beforehand, without the mutex; so one
 * task may send while another waits for bytes. Sending is done with the mutex locked, since both
 * tasks may have something to send, the receiver an alert.
 *
 * What Mbed TLS has encrypted is out of its hands at once: what the transport below does not take
 * waits here, and nothing more is encrypted before it is sent. So mbedtls_ssl_write() never has to be
 * called again with the same data, which this transport's user need not have any more.
 */
#define MBEDTLS_ALLOW_PRIVATE_ACCESS /* for the number of an alert, and, in 2.28, the state */
#include "port_mbedtls.h"

#include <mbedtls/version.h>
#include <mbedtls/x509.h>
#include <string.h>
#if MBEDTLS_VERSION_NUMBER < 0x04000000
#include <mbedtls/ecp.h>
#include <mbedtls/rsa.h>
#endif
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
#include <psa/crypto.h>
#endif

enum stage { DOWN, SHAKING, UP };

/* What Mbed TLS says of a certificate that is not for servers; all flags that a certificate gets. */
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
#define WRONG_USE MBEDTLS_ERR_SSL_BAD_CERTIFICATE
#else
#define WRONG_USE MBEDTLS_ERR_SSL_BAD_HS_CERTIFICATE
#endif
#define FLAGS 0xffffffU

/* What it says of a server that does not have its certificate's key. */
#if MBEDTLS_VERSION_NUMBER >= 0x04000000
#define IS_WRONG_KEY(error) ((error) == PSA_ERROR_INVALID_SIGNATURE)
#else
#define IS_WRONG_KEY(error)                                                                        \
  ((error) == MBEDTLS_ERR_ECP_VERIFY_FAILED || (error) == MBEDTLS_ERR_RSA_VERIFY_FAILED)
#endif

/* As much data as becomes a record that fits into `outgoing`, whatever the cipher. */
#define SEND_MAX 512

/*
 * How often one recv() or connect() asks for more bytes: a server could send for ever without ever
 * completing anything.
 */
#define TURNS 64

/* Alerts, by RFC 8446. */
enum {
  BAD_RECORD_MAC = 20,
  HANDSHAKE_FAILURE = 40,
  BAD_CERTIFICATE = 42,
  UNKNOWN_CERTIFICATE = 46
};
enum { UNKNOWN_CA = 48, ACCESS_DENIED = 49, DECRYPT_ERROR = 51, UNKNOWN_PSK = 115 };
enum { CERTIFICATE_REQUIRED = 116 };

/* Those that Mbed TLS does not have are left out by it. */
static const int with_certificates[] = {
#if MBEDTLS_VERSION_NUMBER >= 0x03020000
    MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS1_3_AES_128_GCM_SHA256,
    MBEDTLS_TLS1_3_AES_256_GCM_SHA384,
#endif
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    0};

static const int with_psk[] = {
#if MBEDTLS_VERSION_NUMBER >= 0x03020000
    MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS1_3_AES_128_GCM_SHA256,
#endif
    MBEDTLS_TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA256,
    MBEDTLS_TLS_PSK_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_PSK_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_PSK_WITH_AES_128_CCM,
    0};

#if defined(MBEDTLS_SSL_PROTO_TLS1_3) && MBEDTLS_VERSION_NUMBER >= 0x03020000
#define WITH_1_3
#endif

#if defined(WITH_1_3) && defined(MBEDTLS_X509_CRT_PARSE_C)
/*
 * PKCS#1 before PSS: with both versions of TLS, Mbed TLS offers PSS, but refuses it from a server of
 * TLS 1.2 with an RSA key, which takes the first that it knows. TLS 1.3 passes over PKCS#1.
 */
#define WITH_SIGNATURES
static const uint16_t signatures[] = {
    MBEDTLS_TLS1_3_SIG_ECDSA_SECP256R1_SHA256, MBEDTLS_TLS1_3_SIG_ECDSA_SECP384R1_SHA384,
    MBEDTLS_TLS1_3_SIG_ECDSA_SECP521R1_SHA512, MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA512,
    MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA384,       MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA256,
    MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA512,    MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA384,
    MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA256,    MBEDTLS_TLS1_3_SIG_NONE};
#endif

/*
 * From 3.6.1 on Mbed TLS throws away the tickets of TLS 1.3, which come after the handshake, unless it
 * is told to report them.
 */
#if defined(WITH_1_3) && defined(MBEDTLS_SSL_SESSION_TICKETS) &&                                   \
    defined(MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED)
#define WITH_TICKETS
#endif

static size_t smaller(size_t a, size_t b)
{
  return a < b ? a : b;
}

static void lock(struct port_mbedtls *tls)
{
  port_mutex_lock(&tls->mutex);
  tls->locked = true;
}

static void unlock(struct port_mbedtls *tls)
{
  tls->locked = false;
  port_mutex_unlock(&tls->mutex);
}

/* Errors */

/* Whether it means that one side does not trust the other; any other error may pass. */
static bool is_mistrust(const struct port_mbedtls *tls, int error)
{
  int alert = error - PORT_MBEDTLS_ALERT;
  bool psk = tls->config->psk != NULL && tls->stage != UP;
  if (error >= PORT_MBEDTLS_CERT) return true;
  if (error < 0)
    return IS_WRONG_KEY(error) || error == MBEDTLS_ERR_X509_CERT_VERIFY_FAILED ||
           (psk && error == MBEDTLS_ERR_SSL_INVALID_MAC);
  /* how TLS 1.2 says that our certificate is missing: the server has already shown its own */
  if (alert == HANDSHAKE_FAILURE) return tls->shown;
  /* how a server says that it has another key under that name */
  if (alert == BAD_RECORD_MAC) return psk;
  return (alert >= BAD_CERTIFICATE && alert <= UNKNOWN_CERTIFICATE) || alert == UNKNOWN_CA ||
         alert == ACCESS_DENIED || alert == DECRYPT_ERROR || alert == UNKNOWN_PSK ||
         alert == CERTIFICATE_REQUIRED;
}

/* Mbed TLS has failed: notes why. */
static int fail(struct port_mbedtls *tls, int result)
{
  tls->broken = true;
  tls->error = result;
  if (result == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE)
    tls->error = PORT_MBEDTLS_ALERT + tls->ssl.in_msg[1];
#ifdef MBEDTLS_X509_CRT_PARSE_C
  if (result == MBEDTLS_ERR_X509_CERT_VERIFY_FAILED || result == WRONG_USE)
    tls->error = (int)(PORT_MBEDTLS_CERT | (mbedtls_ssl_get_verify_result(&tls->ssl) & FLAGS));
#endif
  return is_mistrust(tls, tls->error) ? PORT_UNTRUSTED : PORT_CLOSED;
}

/* The status for a result of Mbed TLS's that is no success. */
static int outcome(struct port_mbedtls *tls, int result)
{
  if (result == MBEDTLS_ERR_SSL_WANT_READ || result == MBEDTLS_ERR_SSL_WANT_WRITE)
    return PORT_WOULD_BLOCK;
#ifdef MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET
  if (result == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET) return PORT_WOULD_BLOCK;
#endif
  if (result == 0 || result == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY) {
    tls->cut = true; /* in good order; the server reads nothing more */
    return PORT_CLOSED;
  }
  return fail(tls, result);
}

/* Bytes below TLS */

/*
 * Sends what waits, as far as the transport below takes it. PORT_OK: nothing waits any more.
 * PORT_CLOSED: nothing more can be sent.
 */
static int flush(struct port_mbedtls *tls)
{
  const struct port_transport *below = tls->below;
  if (tls->cut) return PORT_CLOSED;
  while (tls->outgoing_start < tls->outgoing_end) {
    int sent = below->send(below->context, tls->outgoing + tls->outgoing_start,
                           tls->outgoing_end - tls->outgoing_start);
    if (sent <= 0) {
      tls->cut = sent != PORT_WOULD_BLOCK;
      return sent;
    }
    tls->outgoing_start += (size_t)sent;
  }
  tls->outgoing_start = tls->outgoing_end = 0;
  return PORT_OK;
}

/*
 * For Mbed TLS: takes bytes to send. In a handshake it comes again if there is no room; later it
 * would take what was not sent for what is to be sent next, so then the connection has to end.
 */
static int give(void *context, const unsigned char *data, size_t size)
{
  struct port_mbedtls *tls = context;
  const struct port_transport *below = tls->below;
  int status = flush(tls);
  if (status == PORT_OK) status = below->send(below->context, data, size);
  if (status > 0) return status;
  tls->cut = status != PORT_WOULD_BLOCK;
  if (tls->cut) return (int)size; /* it is lost; the server may have said why */
  size_t room = smaller(size, sizeof tls->outgoing - tls->outgoing_end);
  if (room == 0)
    return tls->stage == UP ? MBEDTLS_ERR_SSL_INTERNAL_ERROR : MBEDTLS_ERR_SSL_WANT_WRITE;
  memcpy(tls->outgoing + tls->outgoing_end, data, room);
  tls->outgoing_end += room;
  return (int)room;
}

/* For Mbed TLS: bytes that were received. */
static int get(void *context, unsigned char *data, size_t size)
{
  struct port_mbedtls *tls = context;
  size_t some = smaller(size, tls->incoming_end - tls->incoming_start);
  if (some == 0) return MBEDTLS_ERR_SSL_WANT_READ;
  memcpy(data, tls->incoming + tls->incoming_start, some);
  tls->incoming_start += some;
  return (int)some;
}

/*
 * Receives bytes; called, and returns, with the mutex locked, which it unlocks meanwhile. Returns
 * what the transport's recv() does.
 */
static int receive_records(struct port_mbedtls *tls, uint32_t timeout_ms)
{
  const struct port_transport *below = tls->below;
  if (tls->incoming_start == tls->incoming_end) tls->incoming_start = tls->incoming_end = 0;
  size_t room = sizeof tls->incoming - tls->incoming_end;
  if (room == 0) return PORT_CLOSED; /* a server that talks and does not listen */
  unlock(tls);
  int got = below->recv(below->context, tls->incoming + tls->incoming_end, room, timeout_ms);
  lock(tls);
  if (got > 0) tls->incoming_end += (size_t)got;
  return got;
}

static uint32_t left(uint32_t began, uint32_t timeout_ms)
{
  uint32_t passed = port_clock_ms() - began;
  return passed < timeout_ms ? timeout_ms - passed : 0;
}

/*
 * After Mbed TLS could not go on, and flush(): waits for more bytes, unless there are some that it has
 * not looked at. PORT_OK: it is worth another try. A connection on which we can no longer send may
 * still hold the server's last words. timeout_ms: since `began`.
 */
static int more(struct port_mbedtls *tls, bool reads, uint32_t began, uint32_t timeout_ms)
{
  if (reads &&
      (tls->incoming_start < tls->incoming_end || mbedtls_ssl_check_pending(&tls->ssl) != 0))
    return PORT_OK;
  int got = receive_records(tls, tls->cut ? 0 : left(began, timeout_ms));
  if (got > 0) return PORT_OK;
  return got == PORT_WOULD_BLOCK && tls->cut ? PORT_CLOSED : got;
}

/* Settings */

static void forget_session(struct port_mbedtls *tls)
{
  mbedtls_ssl_session_free(&tls->session);
  mbedtls_ssl_session_init(&tls->session);
  tls->resumable = false;
}

#ifdef MBEDTLS_X509_CRT_PARSE_C
/* Notes that the server has shown a certificate; Mbed TLS has checked it. */
static int note_certificate(void *context, mbedtls_x509_crt *certificate, int depth,
                            uint32_t *flags)
{
  struct port_mbedtls *tls = context;
  (void)certificate;
  (void)depth;
  (void)flags;
  tls->shown = true;
  return 0;
}

static int set_certificates(struct port_mbedtls *tls)
{
  const struct port_mbedtls_config *config = tls->config;
  mbedtls_ssl_conf_authmode(&tls->settings, MBEDTLS_SSL_VERIFY_REQUIRED);
  mbedtls_ssl_conf_verify(&tls->settings, note_certificate, tls);
  mbedtls_ssl_conf_ca_chain(&tls->settings, config->ca, config->revoked);
#ifdef WITH_SIGNATURES
  mbedtls_ssl_conf_sig_algs(&tls->settings, signatures);
#endif
  if (config->certificate == NULL) return 0;
  return mbedtls_ssl_conf_own_cert(&tls->settings, config->certificate, config->key);
}

static int set_name(mbedtls_ssl_context *ssl, const char *name)
{
  return mbedtls_ssl_set_hostname(ssl, name[0] != 0 ? name : NULL);
}

/* Whether the configuration has what it takes to know a server by its certificate. */
static bool has_certificates(const struct port_mbedtls_config *config)
{
  if (config->certificate != NULL && config->key == NULL) return false;
  if (config->psk != NULL) return true;
  /* without a name, Mbed TLS would accept any server's */
  if (config->ca == NULL || config->name == NULL) return false;
  return config->name[0] != 0 && strlen(config->name) < PORT_MBEDTLS_NAME_SIZE;
}
#else
static int set_certificates(struct port_mbedtls *tls)
{
  (void)tls;
  return 0;
}

static int set_name(mbedtls_ssl_context *ssl, const char *name)
{
  (void)ssl;
  (void)name;
  return 0;
}

static bool has_certificates(const struct port_mbedtls_config *config)
{
  return config->psk != NULL;
}
#endif

static void set_versions(mbedtls_ssl_config *settings)
{
#if MBEDTLS_VERSION_NUMBER >= 0x03020000
  mbedtls_ssl_conf_min_tls_version(settings, MBEDTLS_SSL_VERSION_TLS1_2);
#else
  mbedtls_ssl_conf_min_version(settings, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
#endif
#ifdef WITH_TICKETS
  mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(
      settings, MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED);
#endif
}

static int set_psk(mbedtls_ssl_config *settings, const struct port_mbedtls_config *config)
{
#ifdef MBEDTLS_KEY_EXCHANGE_SOME_PSK_ENABLED
#ifdef WITH_1_3
  /* no certificate takes the place of the key */
  mbedtls_ssl_conf_tls13_key_exchange_modes(settings, MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_PSK_ALL);
#endif
  return mbedtls_ssl_conf_psk(settings, config->psk, config->psk_size,
                              (const unsigned char *)config->psk_identity,
                              strlen(config->psk_identity));
#else
  (void)settings;
  (void)config;
  return MBEDTLS_ERR_SSL_FEATURE_UNAVAILABLE;
#endif
}

/* Makes the settings anew, by what the configuration says now. Returns 0, or what is wrong. */
static int set_up(struct port_mbedtls *tls)
{
  const struct port_mbedtls_config *config = tls->config;
  mbedtls_ssl_config *settings = &tls->settings;
  mbedtls_ssl_config_free(settings);
  mbedtls_ssl_config_init(settings);
  int result = mbedtls_ssl_config_defaults(
      settings, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
  if (result != 0) return result;
  set_versions(settings);
#if MBEDTLS_VERSION_NUMBER < 0x04000000
  mbedtls_ssl_conf_rng(settings, config->random, config->random_context);
#endif
  mbedtls_ssl_conf_ciphersuites(settings, config->psk != NULL ? with_psk : with_certificates);
  if (config->ciphers != NULL) mbedtls_ssl_conf_ciphersuites(settings, config->ciphers);
  if (config->psk != NULL) result = set_psk(settings, config);
  if (result == 0) result = set_certificates(tls);
#ifdef MBEDTLS_SSL_MAX_FRAGMENT_LENGTH
  if (result == 0) result = mbedtls_ssl_conf_max_frag_len(settings, config->fragment);
#endif
  return result;
}

/* Whether host may be the name in a certificate: no IPv4 or IPv6 address, and not too long. */
static bool is_name(const char *host, size_t size)
{
  bool letters = false;
  if (size == 0 || size >= PORT_MBEDTLS_NAME_SIZE) return false;
  for (size_t i = 0; i < size; i++) {
    if (host[i] == ':' || host[i] == '[') return false;
    if (host[i] != '.' && (host[i] < '0' || host[i] > '9')) letters = true;
  }
  return letters;
}

/* Finds the name that the server must have; a session with another is forgotten. */
static void find_name(struct port_mbedtls *tls)
{
  const struct port_mbedtls_config *config = tls->config;
  char name[PORT_MBEDTLS_NAME_SIZE] = "";
  const char *from = config->name != NULL ? config->name : "";
  size_t size = strlen(from);
  const char *port =
      config->names_of_nodes && tls->target != NULL ? strrchr(tls->target, ':') : NULL;
  if (port != NULL && is_name(tls->target, (size_t)(port - tls->target))) {
    from = tls->target;
    size = (size_t)(port - tls->target);
  }
  memcpy(name, from, smaller(size, sizeof name - 1));
  if (strcmp(name, tls->asked_for) != 0) forget_session(tls);
  memcpy(tls->asked_for, name, sizeof name);
}

/* The connection's life */

/* Makes Mbed TLS ready for a handshake. Returns 0, or its error. */
static int prepare(struct port_mbedtls *tls)
{
  int result = set_up(tls);
  if (result != 0) return result;
  result = tls->made ? mbedtls_ssl_session_reset(&tls->ssl)
                     : mbedtls_ssl_setup(&tls->ssl, &tls->settings);
  if (result != 0) return result;
  tls->made = true;
  find_name(tls);
  mbedtls_ssl_set_bio(&tls->ssl, tls, give, get, NULL);
  result = set_name(&tls->ssl, tls->asked_for);
  if (result == 0 && tls->resumable) result = mbedtls_ssl_set_session(&tls->ssl, &tls->session);
  return result;
}

/* The transport below is connected: begins a handshake. */
static int begin(struct port_mbedtls *tls)
{
  const struct port_mbedtls_config *config = tls->config;
  if (config->renew != NULL && config->renew(config->renew_context)) forget_session(tls);
  tls->broken = tls->cut = tls->shown = false;
  tls->incoming_start = tls->incoming_end = tls->outgoing_start = tls->outgoing_end = 0;
  tls->stage = SHAKING;
  int result = prepare(tls);
  return result == 0 ? PORT_OK : fail(tls, result);
}

/* Keeps the session, if it can be resumed, and says good-bye, if there is room for that. */
static void end(struct port_mbedtls *tls)
{
  if (tls->stage == UP) {
    forget_session(tls);
    if (!tls->broken) {
      tls->resumable = mbedtls_ssl_get_session(&tls->ssl, &tls->session) == 0;
      if (flush(tls) == PORT_OK) (void)mbedtls_ssl_close_notify(&tls->ssl);
    }
  }
  tls->stage = DOWN;
}

static bool is_over(const mbedtls_ssl_context *ssl)
{
  return ssl->state == MBEDTLS_SSL_HANDSHAKE_OVER;
}

/* Not an end: connect() is to be called again. */
static bool goes_on(int status)
{
  return status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT;
}

/* Connects the transport below, and then begins a handshake. */
static int reach(struct port_mbedtls *tls, uint32_t timeout_ms)
{
  const struct port_transport *below = tls->below;
  unlock(tls);
  int status = below->connect(below->context, timeout_ms);
  lock(tls);
  if (goes_on(status)) return status;
  tls->error = 0;
  return status == PORT_OK ? begin(tls) : status;
}

/*
 * The handshake's computing counts against timeout_ms, too: between its steps the caller gets control
 * back when that is up. TLS has failed: PORT_CLOSED, PORT_UNTRUSTED.
 */
static int shake_hands(struct port_mbedtls *tls, uint32_t began, uint32_t timeout_ms)
{
  for (int turn = 0; turn < TURNS; turn++) {
    int result = mbedtls_ssl_handshake_step(&tls->ssl);
    int status = result == 0 ? PORT_OK : outcome(tls, result);
    if (status == PORT_OK && is_over(&tls->ssl)) {
      (void)flush(tls);
      tls->stage = UP;
      return PORT_OK;
    }
    if (status == PORT_WOULD_BLOCK) {
      (void)flush(tls);
      status = more(tls, result == MBEDTLS_ERR_SSL_WANT_READ, began, timeout_ms);
      if (status == PORT_CLOSED) tls->error = PORT_MBEDTLS_CUT;
      if (status == PORT_WOULD_BLOCK && tls->outgoing_end == 0) status = PORT_NEEDS_INPUT;
    } else if (status == PORT_OK && port_clock_ms() - began > timeout_ms) {
      return PORT_WOULD_BLOCK;
    }
    if (status != PORT_OK) return status;
  }
  return PORT_WOULD_BLOCK;
}

/*
 * A forked process takes over the transport, without a connection. What another task was changing at
 * the fork is of no use, and cannot even be freed.
 */
static void reset_in_child(struct port_mbedtls *tls)
{
  if (!port_mutex_forked(&tls->mutex)) return;
  if (tls->locked) {
    mbedtls_ssl_init(&tls->ssl);
    mbedtls_ssl_config_init(&tls->settings);
    mbedtls_ssl_session_init(&tls->session);
    tls->made = tls->resumable = false;
  }
  tls->locked = false;
  tls->stage = DOWN; /* so that end() sends nothing */
  port_mutex_destroy(&tls->mutex);
  port_mutex_init(&tls->mutex);
}

/*
 * Whether the server may take us without the session that was offered to it. Mbed TLS speaks no other
 * version than the session's when it resumes one, so a server that has gone back to TLS 1.2 refuses.
 */
static bool spoilt_by_session(const struct port_mbedtls *tls)
{
  return tls->resumable && tls->error >= PORT_MBEDTLS_ALERT && tls->error < PORT_MBEDTLS_CERT;
}

static int tls_connect(void *context, uint32_t timeout_ms)
{
  struct port_mbedtls *tls = context;
  uint32_t began = port_clock_ms();
  reset_in_child(tls);
  lock(tls);
  int status = tls->stage == DOWN ? reach(tls, timeout_ms) : PORT_OK;
  if (status == PORT_OK && tls->stage == SHAKING) status = shake_hands(tls, began, timeout_ms);
  bool failed = status != PORT_OK && !goes_on(status);
  bool again = failed && spoilt_by_session(tls);
  if (failed) {
    (void)flush(tls); /* the alert */
    tls->stage = DOWN;
    forget_session(tls);
  }
  unlock(tls);
  if (!failed) return status;
  tls->below->close(tls->below->context);
  if (again) return PORT_WOULD_BLOCK; /* the next call connects once more */
  return status == PORT_UNTRUSTED ? PORT_UNTRUSTED : PORT_UNREACHABLE;
}

static int tls_send(void *context, const void *data, size_t size)
{
  struct port_mbedtls *tls = context;
  lock(tls);
  int status = tls->stage == UP ? PORT_WOULD_BLOCK : PORT_CLOSED;
  if (tls->stage == UP && !tls->broken && flush(tls) == PORT_OK) {
    int written = mbedtls_ssl_write(&tls->ssl, data, smaller(size, SEND_MAX));
    /* recv() reports a broken connection: the server may have said why */
    status = written > 0 ? written : outcome(tls, written);
    if (status < 0) status = PORT_WOULD_BLOCK;
  }
  unlock(tls);
  return status;
}

/*
 * What waited before is perhaps why the last send() was refused. Once the transport below has taken
 * it, that does not wait for room any more, so this has to return at once.
 */
static int tls_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_mbedtls *tls = context;
  uint32_t began = port_clock_ms();
  lock(tls);
  int status = tls->stage == UP && !tls->broken ? PORT_WOULD_BLOCK : PORT_CLOSED;
  for (int turn = 0; status == PORT_WOULD_BLOCK && turn < TURNS; turn++) {
    bool waited = tls->outgoing_start < tls->outgoing_end;
    int got = mbedtls_ssl_read(&tls->ssl, data, size);
    status = got > 0 ? got : outcome(tls, got);
    int sent = flush(tls);
    if (status != PORT_WOULD_BLOCK) break;
    if (waited && sent == PORT_OK) timeout_ms = 0;
    status = more(tls, true, began, timeout_ms);
    if (status != PORT_OK) break;
    status = PORT_WOULD_BLOCK;
  }
  unlock(tls);
  return status;
}

static void tls_close(void *context)
{
  struct port_mbedtls *tls = context;
  reset_in_child(tls);
  lock(tls);
  if (tls->stage == SHAKING) tls->error = PORT_MBEDTLS_MUTE;
  end(tls);
  unlock(tls);
  tls->below->close(tls->below->context);
}

static bool tls_aim(void *context, const char *address)
{
  struct port_mbedtls *tls = context;
  bool can = tls->below->aim(tls->below->context, address);
  if (can || address == NULL) tls->target = address;
  return can;
}

static void tls_wake(void *context)
{
  const struct port_transport *below = ((const struct port_mbedtls *)context)->below;
  below->wake(below->context);
}

/* Its beginning and end */

bool port_mbedtls_init(struct port_mbedtls *tls, struct port_transport *below,
                       const struct port_mbedtls_config *config)
{
  memset(tls, 0, sizeof *tls);
  tls->below = below;
  tls->config = config;
  tls->transport =
      (struct port_transport){tls_connect, tls_send, tls_recv, tls_close, tls, NULL, NULL};
  if (below->aim != NULL) tls->transport.aim = tls_aim;
  if (below->wake != NULL) tls->transport.wake = tls_wake;
  port_mutex_init(&tls->mutex);
  mbedtls_ssl_init(&tls->ssl);
  mbedtls_ssl_config_init(&tls->settings);
  mbedtls_ssl_session_init(&tls->session);
#if MBEDTLS_VERSION_NUMBER >= 0x04000000 || defined(WITH_1_3)
  if (psa_crypto_init() != PSA_SUCCESS) return false;
#endif
#if MBEDTLS_VERSION_NUMBER < 0x04000000
  if (config->random == NULL) return false;
#endif
  if (config->psk != NULL && (config->psk_size == 0 || config->psk_identity == NULL)) return false;
  return has_certificates(config);
}

void port_mbedtls_deinit(struct port_mbedtls *tls)
{
  reset_in_child(tls);
  mbedtls_ssl_free(&tls->ssl);
  mbedtls_ssl_config_free(&tls->settings);
  mbedtls_ssl_session_free(&tls->session);
  port_mutex_destroy(&tls->mutex);
  memset(tls, 0, sizeof *tls);
}

int port_mbedtls_error(struct port_mbedtls *tls)
{
  if (port_mutex_forked(&tls->mutex)) return 0;
  lock(tls);
  int error = tls->error;
  unlock(tls);
  return error;
}
