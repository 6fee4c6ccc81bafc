/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS around a transport; see port_bearssl.h.
 *
 * BearSSL's engine does no I/O: it has bytes to send, or room for received ones, and the functions
 * here carry them to and from the transport below. After the handshake one task may send while
 * another receives. The mutex guards the engine, but is not held while waiting for the transport
 * below: the engine has a buffer for each direction, and the receive buffer belongs to the
 * receiving task until the engine is told of the bytes. Sending is done with the mutex locked,
 * since both tasks may have something to send, the receiver an answer to an alert.
 *
 * What send() took may wait in the engine for the transport below. Each recv() begins by sending
 * it.
 */
#include "port_bearssl.h"

#include <string.h>

/* TLS's numbers of alerts, not BearSSL's errors. */
enum alert {
  HANDSHAKE_FAILURE = 40, /* of a server, too, that misses our certificate */
  BAD_CERTIFICATE = 42,
  CERTIFICATE_UNKNOWN = 46,
  UNKNOWN_CA = 48,
  ACCESS_DENIED = 49,
  DECRYPT_ERROR = 51,
  CERTIFICATE_REQUIRED = 116
};

enum stage { DOWN, SHAKING, UP };

#define PAUSE_MS          10U
#define SEED_SIZE         32
#define SECONDS_OF_A_DAY  86400U
#define DAYS_TO_1970      719528U /* BearSSL counts them from year 0 */
#define LONGEST_NAME      255
#define SMALLEST_FRAGMENT 512

static uint32_t shorter(uint32_t a, uint32_t b)
{
  return a < b ? a : b;
}

static bool closed(const struct port_bearssl *tls)
{
  return (br_ssl_engine_current_state(&tls->client.eng) & BR_SSL_CLOSED) != 0;
}

static void note_error(struct port_bearssl *tls, int error)
{
  if (error != BR_ERR_OK) tls->error = error;
}

/* Sends the records that are ready, as far as the transport below takes them. */
static int flush(struct port_bearssl *tls)
{
  br_ssl_engine_context *engine = &tls->client.eng;
  const struct port_transport *below = tls->below;
  const uint8_t *data;
  size_t size;
  while ((data = br_ssl_engine_sendrec_buf(engine, &size)) != NULL) {
    int sent = below->send(below->context, data, size);
    if (sent < 0) return sent;
    br_ssl_engine_sendrec_ack(engine, (size_t)sent);
  }
  return PORT_OK;
}

/* There are records that flush() has not sent. */
static bool has_unsent(const struct port_bearssl *tls)
{
  return (br_ssl_engine_current_state(&tls->client.eng) & BR_SSL_SENDREC) != 0;
}

/*
 * Sends what is ready, and waits for received bytes. PORT_OK: some came. Called, and returns, with
 * the mutex locked, which it unlocks to wait. What was ready is perhaps why the last send() was
 * refused. Once the transport below has taken it, that does not wait for room any more, so this has
 * to return at once.
 */
static int exchange(struct port_bearssl *tls, uint32_t timeout_ms)
{
  br_ssl_engine_context *engine = &tls->client.eng;
  const struct port_transport *below = tls->below;
  size_t size;
  bool waited = tls->stage == UP && has_unsent(tls);
  int sent = flush(tls);
  if (waited && sent == PORT_OK) timeout_ms = 0;
  bool broken = sent != PORT_OK && sent != PORT_WOULD_BLOCK;
  if (closed(tls)) {
    note_error(tls, br_ssl_engine_last_error(engine));
    return PORT_CLOSED;
  }
  uint8_t *data = br_ssl_engine_recvrec_buf(engine, &size);
  if (data == NULL) { /* no room for more before an answer to what came is sent */
    if (sent != PORT_WOULD_BLOCK) return PORT_CLOSED;
    if (timeout_ms > 0) port_event_wait(&tls->pause, &tls->mutex, shorter(timeout_ms, PAUSE_MS));
    return PORT_WOULD_BLOCK;
  }
  port_mutex_unlock(&tls->mutex);
  /* a server that closed the connection may have said why */
  int got = below->recv(below->context, data, size, broken ? 0 : timeout_ms);
  port_mutex_lock(&tls->mutex);
  if (got <= 0) return broken ? sent : got;
  if (!closed(tls)) br_ssl_engine_recvrec_ack(engine, (size_t)got);
  return PORT_OK;
}

/* Connecting */

/* Tells BearSSL the time, which a CA needs. False: it is not known. */
static bool set_time(struct port_bearssl *tls)
{
  const struct port_bearssl_config *config = tls->config;
  uint32_t seconds;
  if (config->x509 == NULL || config->utc == NULL) return true;
  if (!config->utc(&seconds)) return false;
  br_x509_minimal_set_time(config->x509, DAYS_TO_1970 + seconds / SECONDS_OF_A_DAY,
                           seconds % SECONDS_OF_A_DAY);
  return true;
}

/* Whether host may be the name in a certificate: no IPv4 or IPv6 address, and not too long. */
static bool is_name(const char *host, size_t size)
{
  bool letters = false;
  if (size == 0 || size > LONGEST_NAME) return false;
  for (size_t i = 0; i < size; i++) {
    if (host[i] == ':' || host[i] == '[') return false;
    if (host[i] != '.' && (host[i] < '0' || host[i] > '9')) letters = true;
  }
  return letters;
}

/*
 * The name that the server must have. One that ends before the port of the target is copied to the
 * send buffer, where nothing is yet.
 */
static const char *name_of_server(const struct port_bearssl *tls)
{
  const struct port_bearssl_config *config = tls->config;
  const char *port =
      config->names_of_nodes && tls->target != NULL ? strrchr(tls->target, ':') : NULL;
  if (port == NULL || !is_name(tls->target, (size_t)(port - tls->target))) return config->name;
  size_t size = (size_t)(port - tls->target);
  memcpy(config->send_buffer, tls->target, size);
  config->send_buffer[size] = 0;
  return (const char *)config->send_buffer;
}

/* Begins a handshake. BR_ERR_OK, or what it lacks. */
static int begin(struct port_bearssl *tls)
{
  const struct port_bearssl_config *config = tls->config;
  br_ssl_engine_context *engine = &tls->client.eng;
  uint8_t seed[SEED_SIZE];
  if (!config->entropy(seed, sizeof seed)) return BR_ERR_NO_RANDOM;
  br_ssl_engine_inject_entropy(engine, seed, sizeof seed);
  br_ssl_engine_set_buffers_bidi(engine, config->receive_buffer, config->receive_size,
                                 config->send_buffer, config->send_size);
  if (br_ssl_client_reset(&tls->client, name_of_server(tls), 0)) return BR_ERR_OK;
  return br_ssl_engine_last_error(engine);
}

/* Whether an error means that one side does not trust the other; any other error may pass. */
static bool is_mistrust(int error)
{
  int alert = error - BR_ERR_RECV_FATAL_ALERT;
  if (error > BR_ERR_X509_OK && error <= BR_ERR_X509_NOT_TRUSTED) return true;
  if (alert >= BAD_CERTIFICATE && alert <= CERTIFICATE_UNKNOWN) return true;
  return error == BR_ERR_BAD_SIGNATURE || error == BR_ERR_WRONG_KEY_USAGE ||
         alert == HANDSHAKE_FAILURE || alert == UNKNOWN_CA || alert == ACCESS_DENIED ||
         alert == DECRYPT_ERROR || alert == CERTIFICATE_REQUIRED;
}

/* The end of an attempt. */
static int fail(struct port_bearssl *tls, int error)
{
  tls->error = error;
  tls->stage = DOWN;
  tls->below->close(tls->below->context);
  return is_mistrust(error) ? PORT_UNTRUSTED : PORT_UNREACHABLE;
}

/*
 * One step of the handshake. The server sends its last message. PORT_OK: tls->stage says whether it
 * is complete.
 */
static int shake(struct port_bearssl *tls, uint32_t timeout_ms)
{
  br_ssl_engine_context *engine = &tls->client.eng;
  size_t room;
  int status = exchange(tls, timeout_ms);
  if (status == PORT_WOULD_BLOCK) return has_unsent(tls) ? PORT_WOULD_BLOCK : PORT_NEEDS_INPUT;
  if (status == PORT_OK) {
    if (br_ssl_engine_sendapp_buf(engine, &room) != NULL) tls->stage = UP;
    return status;
  }
  int error = br_ssl_engine_last_error(engine);
  return fail(tls, error != BR_ERR_OK ? error : BR_ERR_IO);
}

/* Connects below, with the mutex unlocked, and begins a handshake. */
static int start(struct port_bearssl *tls, uint32_t timeout_ms)
{
  const struct port_transport *below = tls->below;
  if (!set_time(tls)) {
    tls->error = BR_ERR_X509_TIME_UNKNOWN;
    return PORT_UNREACHABLE;
  }
  port_mutex_unlock(&tls->mutex);
  int status = below->connect(below->context, timeout_ms);
  port_mutex_lock(&tls->mutex);
  if (status != PORT_OK) return status;
  int error = begin(tls);
  if (error != BR_ERR_OK) return fail(tls, error);
  tls->stage = SHAKING;
  return PORT_OK;
}

/* In a forked process the connection is the parent's, and nobody unlocks what was locked. */
static void reset_in_child(struct port_bearssl *tls)
{
  if (!port_mutex_forked(&tls->mutex)) return;
  tls->stage = DOWN;
  port_mutex_destroy(&tls->mutex);
  port_mutex_init(&tls->mutex);
  port_event_init(&tls->pause);
}

/*
 * The handshake's computing counts against timeout_ms, too: when that is up, the caller gets
 * control back.
 */
static int tls_connect(void *context, uint32_t timeout_ms)
{
  struct port_bearssl *tls = context;
  uint32_t began = port_clock_ms();
  uint32_t passed = 0;
  reset_in_child(tls);
  port_mutex_lock(&tls->mutex);
  int status = tls->stage == DOWN ? start(tls, timeout_ms) : PORT_OK;
  while (status == PORT_OK && tls->stage == SHAKING) {
    status = passed > timeout_ms ? PORT_WOULD_BLOCK : shake(tls, timeout_ms - passed);
    passed = port_clock_ms() - began;
  }
  port_mutex_unlock(&tls->mutex);
  return status;
}

/* Data */

/* Called with the mutex locked. */
static int give(struct port_bearssl *tls, const void *data, size_t size)
{
  br_ssl_engine_context *engine = &tls->client.eng;
  size_t room;
  int status = flush(tls);
  if (status != PORT_OK) return status;
  uint8_t *to = br_ssl_engine_sendapp_buf(engine, &room);
  if (to == NULL) return PORT_CLOSED;
  if (size > room) size = room;
  memcpy(to, data, size);
  br_ssl_engine_sendapp_ack(engine, size);
  br_ssl_engine_flush(engine, 0);
  status = flush(tls);
  return status == PORT_OK || status == PORT_WOULD_BLOCK ? (int)size : status;
}

static int tls_send(void *context, const void *data, size_t size)
{
  struct port_bearssl *tls = context;
  port_mutex_lock(&tls->mutex);
  int status = tls->stage == UP ? give(tls, data, size) : PORT_CLOSED;
  /* recv() reports a broken connection: the server may have said why */
  if (tls->stage == UP && status < 0) status = PORT_WOULD_BLOCK;
  port_mutex_unlock(&tls->mutex);
  return status;
}

/* Takes what is left of a record's data; 0: nothing. Called with the mutex locked. */
static int read_data(struct port_bearssl *tls, void *data, size_t size)
{
  br_ssl_engine_context *engine = &tls->client.eng;
  size_t ready;
  const uint8_t *from = br_ssl_engine_recvapp_buf(engine, &ready);
  if (from == NULL) return 0;
  if (size > ready) size = ready;
  memcpy(data, from, size);
  br_ssl_engine_recvapp_ack(engine, size);
  return (int)size;
}

static int tls_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_bearssl *tls = context;
  port_mutex_lock(&tls->mutex);
  int status = tls->stage == UP ? read_data(tls, data, size) : PORT_CLOSED;
  while (status == 0) {
    status = exchange(tls, timeout_ms);
    if (status != PORT_OK) break;
    status = read_data(tls, data, size);
    timeout_ms = 0; /* from now on, only what is there already: do not wait again */
  }
  port_mutex_unlock(&tls->mutex);
  return status;
}

/* Sends close_notify, if there is room for it, and waits for no answer. */
static void tls_close(void *context)
{
  struct port_bearssl *tls = context;
  reset_in_child(tls);
  port_mutex_lock(&tls->mutex);
  if (tls->stage == UP && flush(tls) == PORT_OK) {
    br_ssl_engine_close(&tls->client.eng);
    (void)flush(tls);
  }
  tls->stage = DOWN;
  tls->below->close(tls->below->context);
  port_mutex_unlock(&tls->mutex);
}

static bool tls_aim(void *context, const char *address)
{
  struct port_bearssl *tls = context;
  bool can = tls->below->aim(tls->below->context, address);
  if (can || address == NULL) tls->target = address;
  return can;
}

static void tls_wake(void *context)
{
  const struct port_transport *below = ((const struct port_bearssl *)context)->below;
  below->wake(below->context);
}

/* Its beginning and end */

/* Sets what stays the same from connection to connection. */
static bool set_up(struct port_bearssl *tls)
{
  const struct port_bearssl_config *config = tls->config;
  br_ssl_engine_context *engine = &tls->client.eng;
  uint16_t suites[2];
  size_t count = 0;
  br_ssl_client_zero(&tls->client);
  br_ssl_engine_set_versions(engine, BR_TLS12, BR_TLS12);
  br_ssl_engine_add_flags(engine, BR_OPT_NO_RENEGOTIATION);
  br_ssl_engine_set_hash(engine, br_sha256_ID, &br_sha256_vtable);
  br_ssl_engine_set_prf_sha256(engine, &br_tls12_sha256_prf);
  br_ssl_engine_set_ec(engine, &br_ec_p256_m31); /* for ECDHE, whatever the keys are */
  config->cipher(tls);
  config->keys(tls);
  if (!config->trust(tls)) return false;
  if (config->certify != NULL) config->certify(tls);
  if (br_ssl_engine_get_ecdsa(engine) != 0) suites[count++] = tls->suite_ec;
  if (br_ssl_engine_get_rsavrfy(engine) != 0) suites[count++] = tls->suite_rsa;
  br_ssl_engine_set_suites(engine, suites, count);
  return true;
}

bool port_bearssl_init(struct port_bearssl *tls, struct port_transport *below,
                       const struct port_bearssl_config *config)
{
  memset(tls, 0, sizeof *tls);
  tls->below = below;
  tls->config = config;
  tls->transport =
      (struct port_transport){tls_connect, tls_send, tls_recv, tls_close, tls, NULL, NULL};
  if (below->aim != NULL) tls->transport.aim = tls_aim;
  if (below->wake != NULL) tls->transport.wake = tls_wake;
  port_mutex_init(&tls->mutex);
  port_event_init(&tls->pause);
  if (config->entropy == NULL || config->cipher == NULL || config->keys == NULL) return false;
  if (config->receive_size < PORT_BEARSSL_RECEIVE_SIZE(SMALLEST_FRAGMENT)) return false;
  if (config->send_size < PORT_BEARSSL_SEND_SIZE(SMALLEST_FRAGMENT)) return false;
  return config->trust != NULL && set_up(tls);
}

void port_bearssl_deinit(struct port_bearssl *tls)
{
  if (!port_mutex_forked(&tls->mutex)) port_event_destroy(&tls->pause);
  port_mutex_destroy(&tls->mutex);
  memset(tls, 0, sizeof *tls);
}

int port_bearssl_error(struct port_bearssl *tls)
{
  if (port_mutex_forked(&tls->mutex)) return 0;
  port_mutex_lock(&tls->mutex);
  int error = tls->error;
  port_mutex_unlock(&tls->mutex);
  return error;
}
