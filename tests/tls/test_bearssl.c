/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port/bearssl on the host: against real redis-servers with TLS, by OpenSSL, and, for what those do
 * not do, against a server in the same process (peer.h).
 *
 * Between the wrapper and the socket is a transport that counts, watches the records, and cuts the
 * connection where the test tells it to.
 */
#include "check.h"
#include "fairlock.h"
#include "keys.h"
#include "bearssl_peer.h"
#include "port_bearssl.h"
#include "port_posix.h"
#include "secure.h"
#include "support/clock.h"
#include "support/loopback.h"
#include "support/process.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NEVER     INT64_MAX
#define COUNT(of) (sizeof(of) / sizeof(of)[0])

/* A second before, and one after, the time when the certificates are valid: 2020 to 2048 */
#define BEFORE_ALL 1577836799U
#define AFTER_ALL  2461449601U

/* Types of records. */
enum { ALERT = 21, HANDSHAKE = 22, DATA = 23 };

/* ---- the transport between ---- */

struct between {
  struct port_transport transport;
  struct port_transport *below;

  /* the connection is cut after this many bytes in that direction */
  int64_t cut_sent, cut_received;

  /* at most this many bytes at a time, and often none; 0: as many as there are */
  size_t piece;
  uint32_t random;

  /* send() takes nothing */
  bool full;

  /* how long a recv() was to wait, at most */
  uint32_t wait_ms;

  /* send() says PORT_CLOSED, while there may be bytes to receive */
  bool mute;

  /* the last send() would have blocked */
  bool blocked;

  int64_t sent, received;
  unsigned connects, sends;

  /* of what was sent: header of the record under way, and what is left of it */
  uint8_t header[5];
  size_t header_size, left;
  uint8_t last_type;

  /* the same of what was received: where records end */
  uint8_t in_header[5];
  size_t in_header_size, in_left;
  int64_t ends[64];
  size_t end_count;
};

static int between_connect(void *context, uint32_t timeout_ms)
{
  struct between *between = context;
  int status = between->below->connect(between->below->context, timeout_ms);
  if (status == PORT_OK) {
    between->connects++;
    between->sent = between->received = 0;
    between->header_size = between->left = between->in_header_size = between->in_left = 0;
    between->end_count = 0;
  }
  return status;
}

/* Whether this call is one in which no bytes pass. */
static bool rests(struct between *between)
{
  between->random = between->random * 1664525U + 1013904223U;
  return between->piece > 0 && between->random >> 31 == 0;
}

static size_t limit(const struct between *between, size_t size, int64_t left)
{
  if (between->piece > 0 && size > between->piece) size = between->piece;
  return (int64_t)size > left ? (size_t)left : size;
}

static void watch_sent(struct between *between, const uint8_t *data, size_t size)
{
  for (size_t i = 0; i < size; i++) {
    if (between->left > 0) {
      between->left--;
      continue;
    }
    between->header[between->header_size++] = data[i];
    if (between->header_size < 5) continue;
    between->header_size = 0;
    between->last_type = between->header[0];
    between->left = (size_t)between->header[3] << 8 | between->header[4];
  }
}

static void watch_received(struct between *between, const uint8_t *data, size_t size, int64_t at)
{
  for (size_t i = 0; i < size; i++) {
    if (between->in_left > 0) {
      between->in_left--;
      if (between->in_left == 0 && between->end_count < COUNT(between->ends))
        between->ends[between->end_count++] = at + (int64_t)i + 1;
      continue;
    }
    between->in_header[between->in_header_size++] = data[i];
    if (between->in_header_size < 5) continue;
    between->in_header_size = 0;
    between->in_left = (size_t)between->in_header[3] << 8 | between->in_header[4];
  }
}

static int between_send(void *context, const void *data, size_t size)
{
  struct between *between = context;
  if (between->sent >= between->cut_sent || between->mute) return PORT_CLOSED;
  between->blocked = between->full || rests(between);
  if (between->blocked) return PORT_WOULD_BLOCK;
  size = limit(between, size, between->cut_sent - between->sent);
  int sent = between->below->send(between->below->context, data, size);
  if (sent > 0) {
    between->sends++;
    between->sent += sent;
    watch_sent(between, data, (size_t)sent);
  }
  return sent;
}

static int between_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct between *between = context;
  if (between->received >= between->cut_received || between->sent >= between->cut_sent)
    return PORT_CLOSED;
  if (rests(between)) return PORT_WOULD_BLOCK;
  size = limit(between, size, between->cut_received - between->received);
  if (timeout_ms > between->wait_ms) between->wait_ms = timeout_ms;
  if (between->blocked) timeout_ms = 0; /* it is worth another try at once */
  int got = between->below->recv(between->below->context, data, size, timeout_ms);
  if (got > 0) {
    watch_received(between, data, (size_t)got, between->received);
    between->received += got;
  }
  return got;
}

static void between_close(void *context)
{
  struct between *between = context;
  between->below->close(between->below->context);
}

static bool between_aim(void *context, const char *address)
{
  struct between *between = context;
  return between->below->aim(between->below->context, address);
}

static void between_init(struct between *between, struct port_transport *below)
{
  memset(between, 0, sizeof *between);
  between->transport = (struct port_transport){
      between_connect, between_send, between_recv, between_close, between, NULL, NULL};
  if (below->aim != NULL) between->transport.aim = between_aim;
  between->below = below;
  between->cut_sent = between->cut_received = NEVER;
}

/* ---- a connection ---- */

static uint32_t utc_now;
static bool utc_known = true;

static bool utc(uint32_t *seconds)
{
  *seconds = utc_now;
  return utc_known;
}

static bool entropy(void *data, size_t size)
{
  return getrandom(data, size, 0) == (ssize_t)size;
}

static bool no_entropy(void *data, size_t size)
{
  memset(data, 0, size);
  return false;
}

/* Each kind of memory is exactly as large as needed, so that a sanitizer sees any overrun. */
struct link {
  struct port_posix socket;
  struct between between;
  struct port_bearssl tls;
  struct port_bearssl_config config;
  br_x509_minimal_context x509;
};

static struct link *link_new(void)
{
  struct link *link = calloc(1, sizeof *link);
  if (link == NULL) give_up("calloc");
  link->config = (struct port_bearssl_config){
      .entropy = entropy,
      .receive_buffer = malloc(PORT_BEARSSL_RECEIVE_SIZE(512)),
      .receive_size = PORT_BEARSSL_RECEIVE_SIZE(512),
      .send_buffer = malloc(PORT_BEARSSL_SEND_SIZE(512)),
      .send_size = PORT_BEARSSL_SEND_SIZE(512),
      .cipher = port_bearssl_chacha20,
      .keys = port_bearssl_ec,
  };
  return link;
}

static void pin(struct link *link, const br_x509_pkey *key)
{
  link->config.trust = port_bearssl_pinned;
  link->config.pinned = key;
  if (key->key_type == BR_KEYTYPE_RSA) link->config.keys = port_bearssl_rsa;
}

static void trust(struct link *link, const br_x509_trust_anchor *ca, const char *name)
{
  utc_now = (uint32_t)time(NULL);
  utc_known = true;
  link->config.trust = port_bearssl_ca;
  link->config.keys = port_bearssl_ec_and_rsa;
  link->config.ca = ca;
  link->config.ca_count = 1;
  link->config.x509 = &link->x509;
  link->config.utc = utc;
  link->config.name = name;
}

static void certify(struct link *link, const br_x509_certificate *chain,
                    const br_ec_private_key *key)
{
  link->config.certify = port_bearssl_client_ec;
  link->config.chain = chain;
  link->config.chain_count = 1;
  link->config.private_key = key;
}

static void link_on(struct link *link, struct port_transport *below)
{
  between_init(&link->between, below);
  CHECK(port_bearssl_init(&link->tls, &link->between.transport, &link->config));
}

static void link_to(struct link *link, const struct server *server)
{
  port_posix_tcp(&link->socket, "127.0.0.1", server->port_text);
  link_on(link, &link->socket.transport);
}

/* Without the transport between, which cannot serve several tasks. */
static void link_straight_to(struct link *link, const struct server *server)
{
  port_posix_tcp(&link->socket, "127.0.0.1", server->port_text);
  CHECK(port_bearssl_init(&link->tls, &link->socket.transport, &link->config));
}

static int link_connect(struct link *link)
{
  const struct port_transport *tls = &link->tls.transport;
  int status = PORT_WOULD_BLOCK;
  bool goes_on = true;
  for (int64_t until = now_ms() + SOON; goes_on && now_ms() < until;) {
    status = tls->connect(tls->context, 100);
    goes_on = status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT;
  }
  return status;
}

static void link_close(struct link *link)
{
  link->tls.transport.close(link->tls.transport.context);
}

static void link_free(struct link *link)
{
  link_close(link);
  port_bearssl_deinit(&link->tls);
  free(link->config.receive_buffer);
  free(link->config.send_buffer);
  free(link);
}

static bool send_all(struct link *link, const void *data, size_t size)
{
  const struct port_transport *tls = &link->tls.transport;
  const uint8_t *at = data;
  for (int64_t until = now_ms() + SOON; size > 0 && now_ms() < until;) {
    int sent = tls->send(tls->context, at, size);
    if (sent == PORT_WOULD_BLOCK) {
      sleep_ms(1);
      continue;
    }
    if (sent <= 0) return false;
    at += sent;
    size -= (size_t)sent;
  }
  return size == 0;
}

/* Returns how much came before the end, or before SOON. */
static size_t receive_all(struct link *link, void *data, size_t size)
{
  const struct port_transport *tls = &link->tls.transport;
  size_t got = 0;
  for (int64_t until = now_ms() + SOON; got < size && now_ms() < until;) {
    int some = tls->recv(tls->context, (uint8_t *)data + got, size - got, 100);
    if (some == PORT_WOULD_BLOCK) continue;
    if (some <= 0) break;
    got += (size_t)some;
  }
  return got;
}

static bool answers(struct link *link)
{
  char reply[7];
  return send_all(link, "PING\r\n", 6) && receive_all(link, reply, 7) == 7 &&
         memcmp(reply, "+PONG\r\n", 7) == 0;
}

/* ---- a client on top ---- */

static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
static uint8_t send_buffer[512];
static const struct fairlock_config config = {
    .receive_buffer = receive_buffer,
    .receive_size = sizeof receive_buffer,
    .send_buffer = send_buffer,
    .send_size = sizeof send_buffer,
};

/* ---- servers ---- */

static struct server server;

static void serve(const char *certificate, const char *clients)
{
  (void)alarm(120);
  secure_start(&server, certificate, clients);
}

/* One attempt: its status, and the error that the wrapper keeps. */
static void check_attempt(struct link *link, int status, int error)
{
  link_to(link, &server);
  CHECK_EQUAL(link_connect(link), status);
  CHECK_EQUAL(port_bearssl_error(&link->tls), error);
  if (status == PORT_OK) CHECK(answers(link));
  link_free(link);
}

static void check_pinned(const char *certificate, const br_x509_pkey *key, int status, int error)
{
  struct link *link = link_new();
  serve(certificate, "no");
  pin(link, key);
  check_attempt(link, status, error);
  server_stop(&server);
}

static void test_pinned_ec(void)
{
  check_pinned("server", &SERVER[0].pkey, PORT_OK, BR_ERR_OK);
}

static void test_pinned_rsa(void)
{
  check_pinned("rsa", &RSA[0].pkey, PORT_OK, BR_ERR_OK);
}

static void test_pinned_expired(void)
{
  struct link *link = link_new();
  serve("expired", "no");
  pin(link, &SERVER[0].pkey);
  check_attempt(link, PORT_UNTRUSTED, BR_ERR_BAD_SIGNATURE);
  server_stop(&server);
}

static void test_wrong_pin(void)
{
  check_pinned("server", &CA[0].pkey, PORT_UNTRUSTED, BR_ERR_BAD_SIGNATURE);
}

static void test_wrong_pin_rsa(void)
{
  struct link *link = link_new();
  br_x509_pkey key = RSA[0].pkey;
  uint8_t modulus[256];
  memcpy(modulus, key.key.rsa.n, sizeof modulus);
  modulus[100] ^= 1;
  key.key.rsa.n = modulus;
  serve("rsa", "no");
  pin(link, &key);
  check_attempt(link, PORT_UNTRUSTED, BR_ERR_BAD_SIGNATURE);
  server_stop(&server);
}

/* A server has nothing to sign with that the client could check. */
static void test_wrong_kind(void)
{
  check_pinned("rsa", &SERVER[0].pkey, PORT_UNTRUSTED, BR_ERR_RECV_FATAL_ALERT + 40);
  check_pinned("server", &RSA[0].pkey, PORT_UNTRUSTED, BR_ERR_RECV_FATAL_ALERT + 40);
}

static void test_aes(void)
{
  struct link *link = link_new();
  serve("server", "no");
  pin(link, &SERVER[0].pkey);
  link->config.cipher = port_bearssl_aes_gcm;
  check_attempt(link, PORT_OK, BR_ERR_OK);
  server_stop(&server);
}

static void test_ca(void)
{
  static const char *const certificates[] = {"server", "rsa"};
  for (size_t i = 0; i < COUNT(certificates); i++) {
    struct link *link = link_new();
    serve(certificates[i], "no");
    trust(link, CA, "localhost");
    check_attempt(link, PORT_OK, BR_ERR_OK);
    server_stop(&server);
  }
}

/* Certificates of another CA, and those that have expired or are not valid yet. */
static void check_ca(const char *certificate, const br_x509_trust_anchor *ca, const char *name,
                     int error)
{
  struct link *link = link_new();
  serve(certificate, "no");
  trust(link, ca, name);
  check_attempt(link, PORT_UNTRUSTED, error);
  server_stop(&server);
}

static void test_wrong_ca(void)
{
  check_ca("server", OTHERS, "localhost", BR_ERR_X509_NOT_TRUSTED);
}

static void test_wrong_name(void)
{
  check_ca("server", CA, "redis.example", BR_ERR_X509_BAD_SERVER_NAME);
  check_ca("elsewhere", CA, "localhost", BR_ERR_X509_BAD_SERVER_NAME);
}

static void test_expired(void)
{
  check_ca("expired", CA, "localhost", BR_ERR_X509_EXPIRED);
}

static void test_not_yet_valid(void)
{
  check_ca("future", CA, "localhost", BR_ERR_X509_EXPIRED);
}

/* The time is that of the configuration, to the second. */
static void test_time(void)
{
  const uint32_t begin = BEFORE_ALL + 1, end = AFTER_ALL - 1;
  const uint32_t times[] = {begin - 1, begin + 1, end - 1, end + 1, 0, UINT32_MAX};
  const bool valid[] = {false, true, true, false, false, false};
  /* the CA's own dates are not checked: it is trusted as a key */
  serve("server", "no");
  for (size_t i = 0; i < COUNT(times); i++) {
    struct link *link = link_new();
    trust(link, CA, "localhost");
    utc_now = times[i];
    check_attempt(link, valid[i] ? PORT_OK : PORT_UNTRUSTED,
                  valid[i] ? BR_ERR_OK : BR_ERR_X509_EXPIRED);
  }
  server_stop(&server);
}

static void test_time_unknown(void)
{
  struct link *link = link_new();
  serve("server", "no");
  trust(link, CA, "localhost");
  link_to(link, &server);
  utc_known = false;
  CHECK_EQUAL(link_connect(link), PORT_UNREACHABLE);
  CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_X509_TIME_UNKNOWN);
  CHECK_EQUAL(link->between.connects, 0);
  utc_known = true;
  CHECK_EQUAL(link_connect(link), PORT_OK);
  CHECK(answers(link));
  link_free(link);
  server_stop(&server);
}

static void test_no_entropy(void)
{
  struct link *link = link_new();
  serve("server", "no");
  pin(link, &SERVER[0].pkey);
  link->config.entropy = no_entropy;
  check_attempt(link, PORT_UNREACHABLE, BR_ERR_NO_RANDOM);
  server_stop(&server);
}

static void test_client_certificate(void)
{
  struct link *link = link_new();
  serve("server", "yes");
  pin(link, &SERVER[0].pkey);
  certify(link, CLIENT, &CLIENT_KEY);
  check_attempt(link, PORT_OK, BR_ERR_OK);
  link = link_new();
  trust(link, CA, "localhost");
  certify(link, CLIENT, &CLIENT_KEY);
  check_attempt(link, PORT_OK, BR_ERR_OK);
  server_stop(&server);
}

static void test_client_certificate_missing(void)
{
  struct link *link = link_new();
  serve("server", "yes");
  pin(link, &SERVER[0].pkey);
  check_attempt(link, PORT_UNTRUSTED, BR_ERR_RECV_FATAL_ALERT + 40);
  server_stop(&server);
}

/* Of another CA; and one with the key of another. */
static void test_client_certificate_refused(void)
{
  struct link *link = link_new();
  serve("server", "yes");
  pin(link, &SERVER[0].pkey);
  certify(link, STRANGER, &STRANGER_KEY);
  check_attempt(link, PORT_UNTRUSTED, BR_ERR_RECV_FATAL_ALERT + 48);
  link = link_new();
  pin(link, &SERVER[0].pkey);
  certify(link, CLIENT, &STRANGER_KEY);
  check_attempt(link, PORT_UNTRUSTED, BR_ERR_RECV_FATAL_ALERT + 51);
  server_stop(&server);
}

static br_x509_certificate our_chain[1];
static br_ec_private_key our_key;
static bool renewed;

/* Before a handshake: the new certificate, when there is one. */
static bool entropy_and_renewal(void *data, size_t size)
{
  our_chain[0] = renewed ? CLIENT[0] : STRANGER[0];
  our_key = renewed ? CLIENT_KEY : STRANGER_KEY;
  return entropy(data, size);
}

/* Certificate and key of the client are replaced between two connections. */
static void test_client_certificate_replaced(void)
{
  struct link *link = link_new();
  serve("server", "yes");
  pin(link, &SERVER[0].pkey);
  renewed = false;
  certify(link, our_chain, &our_key);
  link->config.entropy = entropy_and_renewal;
  link_to(link, &server);
  CHECK_EQUAL(link_connect(link), PORT_UNTRUSTED);
  CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_RECV_FATAL_ALERT + 48);
  renewed = true;
  CHECK_EQUAL(link_connect(link), PORT_OK);
  CHECK(answers(link));
  link_free(link);
  server_stop(&server);
}

/* A server without TLS waits for more: the client gives up in the end. */
static void test_plain_server(void)
{
  static struct fairlock_client client;
  struct fairlock_config short_config = config;
  struct link *link = link_new();
  (void)alarm(120);
  server_start(&server, NULL);
  pin(link, &SERVER[0].pkey);
  link_to(link, &server);
  short_config.connect_ms = 500;
  CHECK_EQUAL(fairlock_client_init(&client, &short_config, &link->tls.transport), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_UNREACHABLE);
  fairlock_client_deinit(&client);
  server_stop(&server);
  CHECK_EQUAL(link_connect(link), PORT_UNREACHABLE); /* nobody */
  link_free(link);
}

static void test_says_http(void)
{
  static const char reply[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
  struct link *link = link_new();
  int port;
  char text[8];
  int listener = listen_anywhere(&port);
  (void)snprintf(text, sizeof text, "%d", port);
  pin(link, &SERVER[0].pkey);
  port_posix_tcp(&link->socket, "127.0.0.1", text);
  link_on(link, &link->socket.transport);
  const struct port_transport *tls = &link->tls.transport;
  CHECK_EQUAL(tls->connect(tls->context, 100), PORT_NEEDS_INPUT);
  int taken = take_call(listener);
  CHECK(write(taken, reply, sizeof reply - 1) == (ssize_t)sizeof reply - 1);
  CHECK_EQUAL(link_connect(link), PORT_UNREACHABLE);
  CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_UNSUPPORTED_VERSION);
  (void)close(taken);
  (void)close(listener);
  link_free(link);
}

/* ---- where connections go ---- */

static void test_aim(void)
{
  struct link *link = link_new();
  char by_name[24], by_address[24], by_port[12];
  serve("server", "no");
  (void)snprintf(by_name, sizeof by_name, "localhost:%s", server.port_text);
  (void)snprintf(by_address, sizeof by_address, "127.0.0.1:%s", server.port_text);
  (void)snprintf(by_port, sizeof by_port, ":%s", server.port_text);
  trust(link, CA, "redis.example");
  link->config.names_of_nodes = true;
  link_to(link, &server);
  const struct port_transport *tls = &link->tls.transport;
  CHECK_EQUAL(link_connect(link), PORT_UNTRUSTED);
  CHECK(tls->aim(tls->context, by_name));
  CHECK_EQUAL(link_connect(link), PORT_OK);
  CHECK(answers(link));
  link_close(link);
  /* an address has the configured name */
  CHECK(tls->aim(tls->context, by_address));
  CHECK_EQUAL(link_connect(link), PORT_UNTRUSTED);
  CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_X509_BAD_SERVER_NAME);
  link->config.name = "localhost";
  CHECK_EQUAL(link_connect(link), PORT_OK);
  link_close(link);
  CHECK(tls->aim(tls->context, by_port));
  CHECK_EQUAL(link_connect(link), PORT_OK);
  link_close(link);
  /* one name for all */
  link->config.names_of_nodes = false;
  link->config.name = "redis.example";
  CHECK(tls->aim(tls->context, by_name));
  CHECK_EQUAL(link_connect(link), PORT_UNTRUSTED);
  CHECK(!tls->aim(tls->context, "no port"));
  CHECK(!tls->aim(tls->context, NULL)); /* one address: no other follows */
  link_free(link);
  server_stop(&server);
}

/* A transport with one address stays with it. */
static void test_no_aim(void)
{
  struct link *link = link_new();
  struct peer *peer = malloc(sizeof *peer);
  peer_init(peer);
  pin(link, peer_key());
  link_on(link, &peer->transport);
  CHECK(link->tls.transport.aim == NULL);
  link_free(link);
  free(peer);
}

/* A certificate that runs out is noticed by the next connection. */
static void test_checked_each_time(void)
{
  struct link *link = link_new();
  serve("server", "no");
  trust(link, CA, "localhost");
  link_to(link, &server);
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(link_connect(link), PORT_OK);
    CHECK(answers(link));
    link_close(link);
    CHECK_EQUAL(link->between.last_type, ALERT);
  }
  utc_now = AFTER_ALL;
  CHECK_EQUAL(link_connect(link), PORT_UNTRUSTED);
  CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_X509_EXPIRED);
  link_free(link);
  server_stop(&server);
}

/* ---- breaks ---- */

/* The connection breaks after each number of bytes in either direction. */
static void test_cut(void)
{
  struct link *link = link_new();
  serve("server", "yes");
  trust(link, CA, "localhost");
  certify(link, CLIENT, &CLIENT_KEY);
  link_to(link, &server);
  CHECK_EQUAL(link_connect(link), PORT_OK);
  int64_t received = link->between.received, sent = link->between.sent;
  int64_t ends[64];
  size_t count = link->between.end_count;
  memcpy(ends, link->between.ends, sizeof ends);
  CHECK(count >= 5); /* hello to finished */
  CHECK(received > 800 && sent > 600);
  link_close(link);
  for (size_t i = 0; i < count; i++) {
    for (int64_t at = ends[i] - 1; at <= ends[i] + 1 && at < received - 4; at++) {
      link->between.cut_received = at;
      CHECK_EQUAL(link_connect(link), PORT_UNREACHABLE);
      CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_IO);
    }
  }
  for (int64_t at = 0; at < received - 4; at += 41) {
    link->between.cut_received = at;
    CHECK_EQUAL(link_connect(link), PORT_UNREACHABLE);
    CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_IO);
  }
  link->between.cut_received = NEVER;
  for (int64_t at = 0; at < sent - 8; at += 41) {
    link->between.cut_sent = at;
    CHECK_EQUAL(link_connect(link), PORT_UNREACHABLE);
    CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_IO);
  }
  link->between.cut_sent = NEVER;
  CHECK_EQUAL(link_connect(link), PORT_OK);
  CHECK(answers(link));
  link_free(link);
  server_stop(&server);
}

/* In the middle of a record of data: none of it is returned. */
static void test_cut_in_data(void)
{
  struct link *link = link_new();
  char reply[7];
  serve("server", "no");
  pin(link, &SERVER[0].pkey);
  link_to(link, &server);
  for (int64_t cut = 0; cut < 28; cut++) { /* 5 + 7 + 16 */
    link->between.cut_received = NEVER;
    CHECK_EQUAL(link_connect(link), PORT_OK);
    link->between.cut_received = link->between.received + cut;
    CHECK(send_all(link, "PING\r\n", 6));
    CHECK_EQUAL(receive_all(link, reply, sizeof reply), 0);
    const struct port_transport *tls = &link->tls.transport;
    CHECK_EQUAL(tls->recv(tls->context, reply, sizeof reply, 0), PORT_CLOSED);
    link_close(link);
    CHECK_EQUAL(tls->recv(tls->context, reply, sizeof reply, 0), PORT_CLOSED);
    CHECK_EQUAL(tls->send(tls->context, "PING\r\n", 6), PORT_CLOSED);
  }
  link_free(link);
  server_stop(&server);
}

/* The network takes and gives one byte at a time, and often none. */
static void test_pieces(void)
{
  struct link *link = link_new();
  serve("server", "yes");
  trust(link, CA, "localhost");
  certify(link, CLIENT, &CLIENT_KEY);
  link_to(link, &server);
  for (size_t piece = 1; piece <= 64; piece *= 4) {
    link->between.piece = piece;
    CHECK_EQUAL(link_connect(link), PORT_OK);
    CHECK(answers(link));
    CHECK(answers(link));
    link_close(link);
  }
  link_free(link);
  server_stop(&server);
}

static void test_server_goes(void)
{
  struct link *link = link_new();
  char reply[7];
  serve("server", "no");
  pin(link, &SERVER[0].pkey);
  link_to(link, &server);
  CHECK_EQUAL(link_connect(link), PORT_OK);
  server_kill(&server);
  CHECK_EQUAL(receive_all(link, reply, 7), 0);
  const struct port_transport *tls = &link->tls.transport;
  CHECK_EQUAL(tls->recv(tls->context, reply, sizeof reply, 0), PORT_CLOSED);
  link_close(link);
  CHECK_EQUAL(link_connect(link), PORT_UNREACHABLE);
  server_revive(&server);
  AWAIT(link_connect(link) == PORT_OK, sleep_ms(20));
  CHECK(answers(link));
  link_free(link);
  server_stop(&server);
}

/* ---- a server in the same process ---- */

static struct peer *peer;

static struct link *link_to_peer(void)
{
  struct link *link = link_new();
  (void)alarm(120);
  peer = malloc(sizeof *peer);
  if (peer == NULL) give_up("malloc");
  peer_init(peer);
  pin(link, peer_key());
  link_on(link, &peer->transport);
  CHECK_EQUAL(link_connect(link), PORT_OK);
  return link;
}

static void leave_peer(struct link *link)
{
  link_free(link);
  free(peer);
}

/* Sends, and receives as much as comes back at once. */
static bool echo(struct link *link, const uint8_t *data, uint8_t *back, size_t size)
{
  const struct port_transport *tls = &link->tls.transport;
  size_t sent = 0, got = 0;
  for (int64_t until = now_ms() + SOON; got < size && now_ms() < until;) {
    int some = sent < size ? tls->send(tls->context, data + sent, size - sent) : PORT_WOULD_BLOCK;
    if (some > 0) sent += (size_t)some;
    else if (some != PORT_WOULD_BLOCK) return false;
    some = tls->recv(tls->context, back + got, size - got, 0);
    if (some > 0) got += (size_t)some;
    else if (some != PORT_WOULD_BLOCK) return false;
  }
  return got == size && memcmp(data, back, size) == 0;
}

static uint8_t sample[100000], back[100000];

static void test_echo(void)
{
  struct link *link = link_to_peer();
  size_t size = 1;
  for (size_t i = 0; i < sizeof sample; i++)
    sample[i] = (uint8_t)(i * 7 >> 3);
  for (size_t at = 0; at + size <= sizeof sample; at += size, size = size * 2 % 3001 + 1)
    CHECK(echo(link, sample + at, back, size));
  CHECK(peer->received > 90000);
  leave_peer(link);
}

/* A server that does not keep to the length that it was asked for. */
static void say_at_once(size_t size)
{
  size_t room;
  br_ssl_engine_context *engine = &peer->server.eng;
  uint8_t *to = br_ssl_engine_sendapp_buf(engine, &room);
  if (!CHECK(to != NULL && room >= size)) return;
  memset(to, 'y', size);
  br_ssl_engine_sendapp_ack(engine, size);
  br_ssl_engine_flush(engine, 0);
}

static void test_too_large(void)
{
  struct link *link = link_to_peer();
  const struct port_transport *tls = &link->tls.transport;
  peer->fragment = 4096; /* from its next record but one */
  CHECK(echo(link, sample, back, 4096));
  CHECK(echo(link, sample, back, 4096));
  say_at_once(816); /* what fits, with 5 + 16 bytes around it */
  CHECK_EQUAL(receive_all(link, back, 816), 816);
  CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_OK);
  say_at_once(817);
  CHECK_EQUAL(tls->recv(tls->context, back, 1, 0), PORT_CLOSED);
  CHECK_EQUAL(tls->send(tls->context, back, 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_TOO_LARGE);
  CHECK(strstr(port_bearssl_error_text(BR_ERR_TOO_LARGE), "receive buffer") != NULL);
  link_close(link);
  CHECK_EQUAL(link_connect(link), PORT_OK);
  leave_peer(link);
}

/* With room for it, it is read. */
static void test_large_records(void)
{
  struct link *link = link_new();
  peer = malloc(sizeof *peer);
  if (peer == NULL) give_up("malloc");
  peer_init(peer);
  free(link->config.receive_buffer);
  link->config.receive_size = PORT_BEARSSL_RECEIVE_SIZE(16384);
  link->config.receive_buffer = malloc(link->config.receive_size);
  pin(link, peer_key());
  link_on(link, &peer->transport);
  CHECK_EQUAL(link_connect(link), PORT_OK);
  peer->fragment = 16384;
  CHECK(echo(link, sample, back, 10));
  CHECK(echo(link, sample, back, 10));
  say_at_once(16384);
  CHECK_EQUAL(receive_all(link, back, 16384), 16384);
  CHECK(back[0] == 'y' && back[16383] == 'y');
  leave_peer(link);
}

static void test_changed_on_the_way(void)
{
  struct link *link = link_to_peer();
  size_t size;
  CHECK(send_all(link, "data", 4));
  uint8_t *record = br_ssl_engine_sendrec_buf(&peer->server.eng, &size);
  CHECK(record != NULL && size > 10);
  record[8] ^= 1;
  CHECK_EQUAL(receive_all(link, back, 4), 0);
  CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_BAD_MAC);
  leave_peer(link);
}

static void test_renegotiation_is_refused(void)
{
  struct link *link = link_to_peer();
  peer_renegotiate(peer);
  CHECK_EQUAL(receive_all(link, back, 4), 0);
  /* BearSSL, asking, takes the refusal for the end */
  CHECK_EQUAL(br_ssl_engine_last_error(&peer->server.eng), BR_ERR_RECV_FATAL_ALERT + 100);
  leave_peer(link);
}

static void test_close_notify(void)
{
  struct link *link = link_to_peer();
  link_close(link);
  CHECK(peer->closed_well);
  CHECK_EQUAL(link->between.last_type, ALERT);
  CHECK_EQUAL(link_connect(link), PORT_OK);
  link->between.full = true; /* no room for it: no waiting either */
  link_close(link);
  CHECK(!peer->closed_well);
  link->between.full = false;
  CHECK_EQUAL(link_connect(link), PORT_OK);
  /* the server's own */
  CHECK(send_all(link, "last", 4));
  CHECK_EQUAL(receive_all(link, back, 4), 4);
  peer_close(peer);
  CHECK_EQUAL(link->tls.transport.recv(link->tls.transport.context, back, 4, 0), PORT_CLOSED);
  CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_OK);
  leave_peer(link);
}

/* What has come is received when nothing can be sent any more. */
static void test_last_words(void)
{
  struct link *link = link_to_peer();
  const struct port_transport *tls = &link->tls.transport;
  CHECK(send_all(link, "last", 4));
  link->between.mute = true;
  CHECK_EQUAL(tls->send(tls->context, "next", 4), PORT_WOULD_BLOCK);
  CHECK_EQUAL(tls->send(tls->context, "next", 4), PORT_WOULD_BLOCK);
  CHECK_EQUAL(receive_all(link, back, 4), 4);
  CHECK_BYTES(back, 4, "last", 4);
  CHECK_EQUAL(tls->recv(tls->context, back, 4, 1000), PORT_CLOSED);
  link->between.mute = false;
  leave_peer(link);
}

/* What cannot be sent stays, is sent once, and what comes after it waits for it. */
static void test_full(void)
{
  struct link *link = link_to_peer();
  const struct port_transport *tls = &link->tls.transport;
  link->between.full = true;
  CHECK_EQUAL(tls->send(tls->context, "abcd", 4), 4);
  CHECK_EQUAL(tls->send(tls->context, "efgh", 4), PORT_WOULD_BLOCK);
  CHECK_EQUAL(tls->recv(tls->context, back, 8, 0), PORT_WOULD_BLOCK);
  CHECK_EQUAL(peer->received, 0);
  link->between.full = false;
  /* the transport below tells of no room once it has taken all: this does not wait for it */
  link->between.wait_ms = 0;
  int got = tls->recv(tls->context, back, 4, 1000);
  CHECK(got > 0 || got == PORT_WOULD_BLOCK);
  CHECK_EQUAL(link->between.wait_ms, 0);
  size_t some = got > 0 ? (size_t)got : 0;
  CHECK_EQUAL(some + receive_all(link, back + some, 4 - some), 4);
  CHECK_BYTES(back, 4, "abcd", 4);
  CHECK(send_all(link, "efgh", 4));
  CHECK_EQUAL(receive_all(link, back, 4), 4);
  CHECK_BYTES(back, 4, "efgh", 4);
  leave_peer(link);
}

/*
 * What came cannot be read before there is room for an answer: the client pauses, and neither spins
 * nor mistakes it for the end.
 */
static void test_answer_without_room(void)
{
  struct link *link = link_to_peer();
  const struct port_transport *tls = &link->tls.transport;
  br_ssl_engine_context *engine = &peer->server.eng;
  size_t room;
  link->between.full = true;
  CHECK_EQUAL(tls->send(tls->context, "abcd", 4), 4);
  /* two requests for a new handshake in one record; each has to be refused */
  memset(br_ssl_engine_sendapp_buf(engine, &room), 0, 8);
  br_ssl_engine_sendapp_ack(engine, 8);
  engine->record_type_out = HANDSHAKE;
  br_ssl_engine_flush(engine, 0);
  for (int i = 0; i < 5; i++)
    CHECK_EQUAL(tls->recv(tls->context, back, 8, 0), PORT_WOULD_BLOCK);
  int64_t began = now_us();
  CHECK_EQUAL(tls->recv(tls->context, back, 8, 1000), PORT_WOULD_BLOCK);
  CHECK(now_us() - began >= 5000);
  link->between.full = false;
  engine->record_type_out = DATA;
  int status = PORT_WOULD_BLOCK;
  for (int i = 0; i < 20 && status == PORT_WOULD_BLOCK; i++)
    status = tls->recv(tls->context, back, 4, 0);
  CHECK_EQUAL(status, PORT_CLOSED); /* the server takes a refusal for the end */
  CHECK_EQUAL(peer->received, 4);
  CHECK_EQUAL(br_ssl_engine_last_error(engine), BR_ERR_RECV_FATAL_ALERT + 100);
  leave_peer(link);
}

/* ---- tasks ---- */

enum { ECHOES = 1000, PAYLOAD = 400, ANSWER = PAYLOAD + 8 };

/* What the server answers to one ECHO. */
static char echoed(size_t at)
{
  static const char head[] = "$400\r\n";
  if (at < 6) return head[at];
  if (at >= ANSWER - 2) return at == ANSWER - 2 ? '\r' : '\n';
  return (char)('a' + at % 23);
}

static void *receive_echoes(void *context)
{
  struct link *link = context;
  char data[700];
  const struct port_transport *tls = &link->tls.transport;
  size_t got = 0, wrong = 0;
  while (got < (size_t)ECHOES * ANSWER) {
    int some = tls->recv(tls->context, data, sizeof data, 1000);
    if (some == PORT_WOULD_BLOCK) continue;
    if (some <= 0) break;
    for (int i = 0; i < some; i++)
      wrong += data[i] != echoed((got + (size_t)i) % ANSWER);
    got += (size_t)some;
  }
  return got == (size_t)ECHOES * ANSWER && wrong == 0 ? link : NULL;
}

/* One task sends while another receives, and a third asks for the error. */
static void test_full_duplex(void)
{
  struct link *link = link_new();
  char request[40 + PAYLOAD];
  pthread_t receiver;
  void *done = NULL;
  serve("server", "no");
  pin(link, &SERVER[0].pkey);
  link_straight_to(link, &server);
  CHECK_EQUAL(link_connect(link), PORT_OK);
  int head = snprintf(request, sizeof request, "*2\r\n$4\r\nECHO\r\n$%d\r\n", PAYLOAD);
  for (size_t i = 6; i < ANSWER; i++)
    request[(size_t)head + i - 6] = echoed(i);
  CHECK(pthread_create(&receiver, NULL, receive_echoes, link) == 0);
  for (int i = 0; i < ECHOES; i++) {
    if (!CHECK(send_all(link, request, (size_t)head + PAYLOAD + 2))) break;
    if (i % 100 == 0) CHECK_EQUAL(port_bearssl_error(&link->tls), BR_ERR_OK);
  }
  CHECK(pthread_join(receiver, &done) == 0 && done == link);
  link_free(link);
  server_stop(&server);
}

/* ---- the client of the library on top ---- */

struct worker {
  struct fairlock_client *client;
  int done, clashes;
};

static int inside; /* guarded by the distributed lock alone */

static void *work(void *context)
{
  struct worker *worker = context;
  struct fairlock handle;
  CHECK_EQUAL(fairlock_init(&handle, worker->client, "press"), FAIRLOCK_OK);
  for (int i = 0; i < 50; i++) {
    if (fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_OK) break;
    if (__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST) != 0) worker->clashes++;
    (void)__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
    if (fairlock_release(&handle) == FAIRLOCK_OK) worker->done++;
  }
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  return NULL;
}

static void test_lock_of_tasks(void)
{
  static struct fairlock_client client;
  struct worker workers[3];
  pthread_t threads[3];
  struct link *link = link_new();
  serve("server", "no");
  pin(link, &SERVER[0].pkey);
  link_straight_to(link, &server);
  CHECK_EQUAL(fairlock_client_init(&client, &config, &link->tls.transport), FAIRLOCK_OK);
  for (size_t i = 0; i < COUNT(workers); i++) {
    workers[i] = (struct worker){.client = &client};
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (size_t i = 0; i < COUNT(workers); i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_EQUAL(workers[i].done, 50);
    CHECK_EQUAL(workers[i].clashes, 0);
  }
  fairlock_client_deinit(&client);
  link_free(link);
  server_stop(&server);
}

/* A client that is told that it is not trusted, or that does not trust, stops waiting. */
static void test_status(void)
{
  static struct fairlock_client client;
  struct fairlock handle;
  struct link *link = link_new();
  serve("server", "yes");
  pin(link, &CA[0].pkey);
  link_straight_to(link, &server);
  CHECK_EQUAL(fairlock_client_init(&client, &config, &link->tls.transport), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_UNTRUSTED);
  CHECK_EQUAL(fairlock_init(&handle, &client, "press"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_UNTRUSTED);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  fairlock_client_deinit(&client);
  link_free(link);
  server_stop(&server);
}

/* ---- configurations, texts ---- */

static void test_configurations(void)
{
  struct link *link = link_new();
  static struct port_posix socket;
  struct port_bearssl tls;
  port_posix_tcp(&socket, "127.0.0.1", "1");
  pin(link, &SERVER[0].pkey);
  const struct port_bearssl_config good = link->config;
  struct port_bearssl_config bad;
  trust(link, CA, "localhost");
  const struct port_bearssl_config good_ca = link->config;
#define REFUSES(from, change)                                                                      \
  bad = from;                                                                                      \
  bad.change;                                                                                      \
  CHECK(!port_bearssl_init(&tls, &socket.transport, &bad));                                        \
  port_bearssl_deinit(&tls)
  REFUSES(good, entropy = NULL);
  REFUSES(good, cipher = NULL);
  REFUSES(good, keys = NULL);
  REFUSES(good, trust = NULL);
  REFUSES(good, receive_size--);
  REFUSES(good, send_size--);
  REFUSES(good, pinned = NULL);
  REFUSES(good, keys = port_bearssl_rsa);
  REFUSES(good_ca, name = NULL);
  REFUSES(good_ca, name = "");
  REFUSES(good_ca, utc = NULL);
  REFUSES(good_ca, ca = NULL);
  REFUSES(good_ca, x509 = NULL);
#undef REFUSES
  CHECK(port_bearssl_init(&tls, &socket.transport, &good));
  CHECK_EQUAL(port_bearssl_error(&tls), BR_ERR_OK);
  port_bearssl_deinit(&tls);
  CHECK(port_bearssl_init(&link->tls, &socket.transport, &good_ca));
  link_free(link);
}

static void test_texts(void)
{
  for (int error = 0; error < 1024; error++)
    CHECK(strlen(port_bearssl_error_text(error)) > 5);
  CHECK(strstr(port_bearssl_error_text(BR_ERR_X509_EXPIRED), "expired") != NULL);
  CHECK(strstr(port_bearssl_error_text(BR_ERR_RECV_FATAL_ALERT + 48), "trusts") != NULL);
  CHECK(strcmp(port_bearssl_error_text(BR_ERR_X509_TRUNCATED), "the certificate cannot be read") ==
        0);
  CHECK(strcmp(port_bearssl_error_text(BR_ERR_RECV_FATAL_ALERT + 99),
               "the server refuses the handshake") == 0);
}

const struct check_test check_tests[] = {
    {"bearssl_pinned_ec", test_pinned_ec},
    {"bearssl_pinned_rsa", test_pinned_rsa},
    {"bearssl_pinned_other_server", test_pinned_expired},
    {"bearssl_wrong_pin", test_wrong_pin},
    {"bearssl_wrong_pin_rsa", test_wrong_pin_rsa},
    {"bearssl_wrong_kind_of_key", test_wrong_kind},
    {"bearssl_aes_gcm", test_aes},
    {"bearssl_ca", test_ca},
    {"bearssl_wrong_ca", test_wrong_ca},
    {"bearssl_wrong_name", test_wrong_name},
    {"bearssl_expired", test_expired},
    {"bearssl_not_yet_valid", test_not_yet_valid},
    {"bearssl_time", test_time},
    {"bearssl_time_unknown", test_time_unknown},
    {"bearssl_no_entropy", test_no_entropy},
    {"bearssl_client_certificate", test_client_certificate},
    {"bearssl_client_certificate_missing", test_client_certificate_missing},
    {"bearssl_client_certificate_refused", test_client_certificate_refused},
    {"bearssl_client_certificate_replaced", test_client_certificate_replaced},
    {"bearssl_plain_server", test_plain_server},
    {"bearssl_other_protocol", test_says_http},
    {"bearssl_aim", test_aim},
    {"bearssl_no_aim", test_no_aim},
    {"bearssl_checked_each_time", test_checked_each_time},
    {"bearssl_cut_in_the_handshake", test_cut},
    {"bearssl_cut_in_data", test_cut_in_data},
    {"bearssl_pieces", test_pieces},
    {"bearssl_server_goes", test_server_goes},
    {"bearssl_echo", test_echo},
    {"bearssl_record_too_large", test_too_large},
    {"bearssl_large_records", test_large_records},
    {"bearssl_changed_on_the_way", test_changed_on_the_way},
    {"bearssl_renegotiation_is_refused", test_renegotiation_is_refused},
    {"bearssl_close_notify", test_close_notify},
    {"bearssl_last_words", test_last_words},
    {"bearssl_full", test_full},
    {"bearssl_answer_without_room", test_answer_without_room},
    {"bearssl_full_duplex", test_full_duplex},
    {"bearssl_lock_of_tasks", test_lock_of_tasks},
    {"bearssl_status", test_status},
    {"bearssl_configurations", test_configurations},
    {"bearssl_texts", test_texts},
    {0},
};
