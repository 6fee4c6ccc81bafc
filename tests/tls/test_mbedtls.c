/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What port/mbedtls alone has: keys in common (PSK), with a real redis-server behind a peer that has
 * them, as it has none itself; memory that is replaced between two connections; names of nodes.
 */
#include "check.h"
#include "faults.h"
#include "peer.h"
#include "safe.h"

#include <mbedtls/ssl_ciphersuites.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct wrap_config by_ca = {.ca = "ca", .name = "localhost"};

static struct peer peer;

/* ---- keys in common ---- */

static void psk(struct safe *safe, const char *key, const char *identity)
{
  struct port_mbedtls_config *config = &safe->wrap.config;
  config->ca = NULL;
  config->name = NULL;
  config->psk = (const unsigned char *)key;
  config->psk_size = strlen(key);
  config->psk_identity = identity;
}

/* A peer before the suite's redis-server. */
static void front(bool by_psk, int connections)
{
  begin();
  memset(&peer, 0, sizeof peer);
  peer.part = peer_forwards;
  peer.by_psk = by_psk;
  peer.behind = server.port;
  peer.connections = connections;
  peer_start_as(&peer);
}

static void open_with_psk(struct safe *safe, const char *key, const char *identity)
{
  safe_prepare(safe, "127.0.0.1", peer.port);
  wrap_init(&safe->wrap, &by_ca, &safe->client.socket.transport);
  port_mbedtls_deinit(&safe->wrap.tls);
  psk(safe, key, identity);
  CHECK(port_mbedtls_init(&safe->wrap.tls, &safe->client.socket.transport, &safe->wrap.config));
  safe_start(safe);
}

/* Each of the ciphers, and what is taken without a choice. */
static void test_psk(void)
{
  static const int each[][2] = {
      {0},
      {MBEDTLS_TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256, 0},
      {MBEDTLS_TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA256, 0},
      {MBEDTLS_TLS_PSK_WITH_CHACHA20_POLY1305_SHA256, 0},
      {MBEDTLS_TLS_PSK_WITH_AES_128_GCM_SHA256, 0},
      {MBEDTLS_TLS_PSK_WITH_AES_128_CCM, 0},
  };
  static struct safe safe;
  for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
    front(true, 1);
    open_with_psk(&safe, PEER_PSK, PEER_IDENTITY);
    safe.wrap.config.ciphers = i > 0 ? each[i] : NULL;
    safe_locks(&safe);
    CHECK(wrap_failed_by(&safe.wrap, NOTHING));
    CHECK(!safe.wrap.tls.shown); /* no certificate */
    safe_close(&safe);
    peer_end(&peer);
    CHECK_EQUAL(peer.used, TLS1_2_VERSION);
  }
}

static void psk_comes_to(bool by_psk, const char *key, const char *identity, int status, int error)
{
  static struct safe safe;
  front(by_psk, 1);
  open_with_psk(&safe, key, identity);
  CHECK_EQUAL(fairlock_connect(&safe.client.client), status);
  CHECK_EQUAL(port_mbedtls_error(&safe.wrap.tls), error);
  safe_close(&safe);
  peer_end(&peer);
}

/* Only one side has a key. Who says so depends on the version: the server, or, with TLS 1.3, we do. */
#ifdef MBEDTLS_SSL_PROTO_TLS1_3
#define NOTHING_IN_COMMON MBEDTLS_ERR_SSL_HANDSHAKE_FAILURE
#else
#define NOTHING_IN_COMMON (PORT_MBEDTLS_ALERT + 40)
#endif

static void test_wrong_psk(void)
{
  psk_comes_to(true, PEER_PSK, PEER_IDENTITY, FAIRLOCK_OK, 0);
  psk_comes_to(true, "another key, not that one", PEER_IDENTITY, FAIRLOCK_UNTRUSTED,
               PORT_MBEDTLS_ALERT + 20);
  psk_comes_to(true, PEER_PSK, "device 2", FAIRLOCK_UNTRUSTED, PORT_MBEDTLS_ALERT + 115);
  /* it may be a server that is not set up yet */
  psk_comes_to(false, PEER_PSK, PEER_IDENTITY, FAIRLOCK_UNREACHABLE, NOTHING_IN_COMMON);
}

/* A server with certificates alone cannot take the place of one with the key. */
static void test_no_certificate_in_place_of_a_key(void)
{
  static const int certificates[] = {MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, 0};
  static struct safe safe;
  front(false, 1);
  open_with_psk(&safe, PEER_PSK, PEER_IDENTITY);
  safe.wrap.config.ciphers = certificates;
  CHECK(fairlock_connect(&safe.client.client) != FAIRLOCK_OK);
  safe_close(&safe);
  peer_end(&peer);
}

static void test_psk_is_resumed(void)
{
  static struct safe safe;
  front(true, 2);
  open_with_psk(&safe, PEER_PSK, PEER_IDENTITY);
  safe_locks(&safe);
  break_connection(&safe.client);
  safe_locks(&safe);
  safe_close(&safe);
  peer_end(&peer);
  CHECK(peer.resumed);
}

/* ---- what is replaced between two connections ---- */

static struct safe safe;
static struct wrap other; /* what takes the place of it */
static int renewals;      /* how often it was asked for */
static bool renewed;      /* for the test: new things are there */

static bool renew(void *context)
{
  struct port_mbedtls_config *config = &safe.wrap.config;
  CHECK(context == &renewals);
  renewals++;
  if (!renewed) return false;
  config->ca = other.config.ca;
  config->certificate = other.config.certificate;
  config->key = other.config.key;
  renewed = false;
  return true;
}

static void start_renewal(const struct wrap_config *from, const struct wrap_config *to)
{
  static struct port_posix nowhere;
  begin();
  port_posix_tcp(&nowhere, "127.0.0.1", "1");
  wrap_init(&other, to, &nowhere.transport);
  renewals = 0;
  renewed = false;
  serve_with("server", "TLSv1.2", "no");
  safe_prepare(&safe, "127.0.0.1", tls_port);
  wrap_init(&safe.wrap, from, &safe.client.socket.transport);
  safe.wrap.config.renew = renew;
  safe.wrap.config.renew_context = &renewals;
  safe_start(&safe);
}

static void end_renewal(void)
{
  safe_close(&safe);
  wrap_deinit(&other);
}

static void test_our_certificate_is_replaced(void)
{
  static const struct wrap_config stranger = {
      .ca = "ca", .name = "localhost", .certificate = "stranger"};
  static const struct wrap_config client = {
      .ca = "ca", .name = "localhost", .certificate = "client"};
  start_renewal(&stranger, &client);
  serve_with("server", "TLSv1.2", "yes");
  CHECK_EQUAL(fairlock_connect(&safe.client.client), FAIRLOCK_UNTRUSTED);
  CHECK(wrap_failed_by(&safe.wrap, OURS_OF_UNKNOWN_CA));
  renewed = true;
  safe_locks(&safe);
  CHECK(renewals >= 2);
  end_renewal();
}

/* A waiter outlasts that its CA is replaced. */
static void test_ca_is_replaced(void)
{
  static const struct wrap_config others = {.ca = "others", .name = "localhost"};
  struct fairlock door;
  start_renewal(&by_ca, &others);
  CHECK(raw_run(&redis, "HSET door someone:1 1"));
  CHECK(raw_run(&redis, "PEXPIRE door 60000"));
  CHECK_EQUAL(fairlock_init(&door, &safe.client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, 10000), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "door") == 1, service_for(&safe.client, 10));
  serve_with("moved", "TLSv1.2", "no");
  raw_run(&redis, "CLIENT KILL TYPE pubsub SKIPME yes");
  break_connection(&safe.client);
  AWAIT(fairlock_server_status(&safe.client.client) == FAIRLOCK_UNTRUSTED,
        service_for(&safe.client, 10));
  CHECK(wrap_failed_by(&safe.wrap, UNKNOWN_CA));
  renewed = true;
  AWAIT(listeners(&redis, "door") == 1, service_for(&safe.client, 10));
  CHECK_EQUAL(fairlock_result(&door), FAIRLOCK_PENDING);
  CHECK(raw_run(&redis, "DEL door"));
  CHECK_EQUAL(await_result(&safe.client, &door), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&door), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  end_renewal();
}

/* What has not changed is resumed; what has, is not. */
static void test_no_old_session(void)
{
  start_renewal(&by_ca, &by_ca);
  for (int i = 0; i < 4; i++) {
    renewed = i == 2;
    safe_locks(&safe);
    CHECK_EQUAL(renewals, i + 1);
    CHECK(wrap_resumed(&safe.wrap) == (i == 1 || i == 3));
    break_connection(&safe.client);
  }
  end_renewal();
}

/* A certificate, and the key of another. */
static void test_not_our_key(void)
{
  static const struct wrap_config odd = {
      .ca = "ca", .name = "localhost", .certificate = "client", .key = "stranger"};
  begin();
  serve_with("server", "TLSv1.2", "yes");
  safe_open(&safe, &odd);
  CHECK_EQUAL(fairlock_connect(&safe.client.client), FAIRLOCK_UNTRUSTED);
  CHECK(wrap_failed_by(&safe.wrap, NOT_OUR_KEY));
  safe_close(&safe);
}

/* ---- where connections go ---- */

static int connects(void)
{
  const struct port_transport *tls = &safe.wrap.tls.transport;
  int status = PORT_WOULD_BLOCK;
  AWAIT(status != PORT_WOULD_BLOCK && status != PORT_NEEDS_INPUT,
        status = tls->connect(tls->context, 100));
  return status;
}

static void test_aim(void)
{
  static const struct wrap_config elsewhere = {.ca = "ca", .name = "redis.example"};
  const struct port_transport *tls = &safe.wrap.tls.transport;
  char by_name[24], by_address[24], by_port[12];
  begin();
  serve_with("server", "TLSv1.2", "no");
  (void)snprintf(by_name, sizeof by_name, "localhost:%d", tls_port);
  (void)snprintf(by_address, sizeof by_address, "127.0.0.1:%d", tls_port);
  (void)snprintf(by_port, sizeof by_port, ":%d", tls_port);
  safe_prepare(&safe, "127.0.0.1", tls_port);
  wrap_init(&safe.wrap, &elsewhere, &safe.client.socket.transport);
  safe.wrap.config.names_of_nodes = true;
  CHECK_EQUAL(connects(), PORT_UNTRUSTED);
  CHECK(wrap_failed_by(&safe.wrap, WRONG_NAME));
  CHECK(tls->aim(tls->context, by_name));
  CHECK_EQUAL(connects(), PORT_OK);
  tls->close(tls->context);
  CHECK_EQUAL(connects(), PORT_OK);
  CHECK(wrap_resumed(&safe.wrap));
  tls->close(tls->context);
  /* an address has the configured name, and a session with another does not count */
  CHECK(tls->aim(tls->context, by_address));
  CHECK_EQUAL(connects(), PORT_UNTRUSTED);
  CHECK(wrap_failed_by(&safe.wrap, WRONG_NAME));
  safe.wrap.config.name = "localhost";
  CHECK_EQUAL(connects(), PORT_OK);
  tls->close(tls->context);
  CHECK(tls->aim(tls->context, by_port));
  CHECK_EQUAL(connects(), PORT_OK);
  tls->close(tls->context);
  /* one name for all */
  safe.wrap.config.names_of_nodes = false;
  safe.wrap.config.name = "redis.example";
  CHECK(tls->aim(tls->context, by_name));
  CHECK_EQUAL(connects(), PORT_UNTRUSTED);
  CHECK(!tls->aim(tls->context, "no port"));
  CHECK(!tls->aim(tls->context, NULL)); /* one address: no other follows */
  wrap_deinit(&safe.wrap);
}

/* Records as long as asked for, and not asked for. */
static void test_fragments(void)
{
  static const unsigned char lengths[] = {MBEDTLS_SSL_MAX_FRAG_LEN_1024,
                                          MBEDTLS_SSL_MAX_FRAG_LEN_4096};
  static struct faults faults;
  static char text[9000], back[9000];
  const struct port_transport *tls = &safe.wrap.tls.transport;
  for (size_t i = 0; i < sizeof lengths; i++) {
    peer_start(&peer, peer_echo, TLS1_2_VERSION, false, 1);
    faults_init(&faults, peer.port);
    wrap_init(&safe.wrap, &by_ca, &faults.transport);
    safe.wrap.config.fragment = lengths[i];
    CHECK(tls->aim == NULL);
    CHECK_EQUAL(connects(), PORT_OK);
    size_t sent = 0, got = 0;
    memset(text, 'a', sizeof text);
    for (int64_t until = now_ms() + SOON; got < sizeof back && now_ms() < until;) {
      int some = sent < sizeof text ? tls->send(tls->context, text + sent, sizeof text - sent)
                                    : PORT_WOULD_BLOCK;
      if (some > 0) sent += (size_t)some;
      some = tls->recv(tls->context, back + got, sizeof back - got, some > 0 ? 0 : 100);
      if (some > 0) got += (size_t)some;
      else if (!CHECK(some == PORT_WOULD_BLOCK)) break;
    }
    CHECK_BYTES(back, got, text, sizeof text);
    tls->close(tls->context);
    peer_end(&peer);
    wrap_deinit(&safe.wrap);
  }
}

/* No send() is refused during a handshake, so that goes on as soon as it has found room. */
static void test_room_in_handshake(void)
{
  static struct faults faults;
  const struct port_transport *tls = &safe.wrap.tls.transport;
  peer_start(&peer, peer_echo, TLS1_2_VERSION, false, 1);
  faults_init(&faults, peer.port);
  wrap_init(&safe.wrap, &by_ca, &faults.transport);
  atomic_store(&faults.blocked, 1);
  int status = tls->connect(tls->context, SOON);
  CHECK(faults.wait_ms > 0);
  CHECK_EQUAL(atomic_load(&faults.blocked), 0);
  /* it may wait in pieces, and the peer be slow */
  for (int64_t until = now_ms() + SOON; status == PORT_NEEDS_INPUT && now_ms() < until;)
    status = tls->connect(tls->context, SOON);
  CHECK_EQUAL(status, PORT_OK);
  tls->close(tls->context);
  peer_end(&peer);
  wrap_deinit(&safe.wrap);
}

/* ---- configurations, texts ---- */

/* Mbed TLS 4 takes no random bytes from us. */
#if MBEDTLS_VERSION_NUMBER < 0x04000000
#define TAKES_RANDOM
static int no_random(void *context, unsigned char *data, size_t size)
{
  (void)context;
  memset(data, 0, size);
  return MBEDTLS_ERR_CTR_DRBG_ENTROPY_SOURCE_FAILED;
}

static void test_no_random_bytes(void)
{
  begin();
  serve_with("server", "TLSv1.2", "no");
  safe_prepare(&safe, "127.0.0.1", tls_port);
  wrap_init(&safe.wrap, &by_ca, &safe.client.socket.transport);
  safe.wrap.config.random = no_random;
  CHECK_EQUAL(connects(), PORT_UNREACHABLE);
  CHECK_EQUAL(port_mbedtls_error(&safe.wrap.tls), MBEDTLS_ERR_CTR_DRBG_ENTROPY_SOURCE_FAILED);
  safe.wrap.config.random = mbedtls_ctr_drbg_random;
  CHECK_EQUAL(connects(), PORT_OK);
  wrap_deinit(&safe.wrap);
}
#endif

static void test_configurations(void)
{
  static struct port_posix socket;
  static char long_name[PORT_MBEDTLS_NAME_SIZE + 1];
  struct port_mbedtls tls;
  port_posix_tcp(&socket, "127.0.0.1", "1");
  wrap_init(&safe.wrap, &by_ca, &socket.transport);
  const struct port_mbedtls_config good = safe.wrap.config;
  struct port_mbedtls_config good_psk = {.random = good.random,
                                         .psk = (const unsigned char *)PEER_PSK,
                                         .psk_size = sizeof PEER_PSK - 1,
                                         .psk_identity = PEER_IDENTITY};
  struct port_mbedtls_config bad;
  memset(long_name, 'n', sizeof long_name - 1);
#define REFUSES(from, change)                                                                      \
  bad = from;                                                                                      \
  bad.change;                                                                                      \
  CHECK(!port_mbedtls_init(&tls, &socket.transport, &bad));                                        \
  port_mbedtls_deinit(&tls)
#ifdef TAKES_RANDOM
  REFUSES(good, random = NULL);
  REFUSES(good_psk, random = NULL);
#endif
  REFUSES(good, ca = NULL);
  REFUSES(good, name = NULL);
  REFUSES(good, name = "");
  REFUSES(good, name = long_name);
  REFUSES(good, certificate = safe.wrap.config.ca); /* without a key */
  REFUSES(good_psk, psk_size = 0);
  REFUSES(good_psk, psk_identity = NULL);
#undef REFUSES
  CHECK(port_mbedtls_init(&tls, &socket.transport, &good_psk));
  CHECK_EQUAL(port_mbedtls_error(&tls), 0);
  port_mbedtls_deinit(&tls);
  wrap_deinit(&safe.wrap);
}

/* Each number has a text, and those of one kind have different ones. */
static void test_texts(void)
{
  static const int different[] = {0,
                                  PORT_MBEDTLS_CUT,
                                  PORT_MBEDTLS_MUTE,
                                  PORT_MBEDTLS_ALERT + 48,
                                  PORT_MBEDTLS_ALERT + 115,
                                  PORT_MBEDTLS_ALERT + 255,
                                  PORT_MBEDTLS_CERT + MBEDTLS_X509_BADCERT_NOT_TRUSTED,
                                  PORT_MBEDTLS_CERT + MBEDTLS_X509_BADCERT_REVOKED,
                                  PORT_MBEDTLS_CERT + MBEDTLS_X509_BADCERT_CN_MISMATCH,
                                  PORT_MBEDTLS_CERT + MBEDTLS_X509_BADCERT_EXPIRED,
                                  PORT_MBEDTLS_CERT + MBEDTLS_X509_BADCERT_FUTURE,
                                  PORT_MBEDTLS_CERT,
                                  MBEDTLS_ERR_SSL_ALLOC_FAILED,
                                  MBEDTLS_ERR_SSL_INVALID_MAC,
                                  -1};
  for (int error = -0x8000; error < 0x200; error++)
    CHECK(strlen(port_mbedtls_error_text(error)) > 5);
  for (size_t i = 0; i < sizeof different / sizeof different[0]; i++) {
    for (size_t j = 0; j < i; j++)
      CHECK(strcmp(port_mbedtls_error_text(different[i]), port_mbedtls_error_text(different[j])) !=
            0);
  }
  CHECK(strstr(port_mbedtls_error_text(PORT_MBEDTLS_CERT | MBEDTLS_X509_BADCERT_NOT_TRUSTED |
                                       MBEDTLS_X509_BADCERT_EXPIRED),
               "trusted") != NULL);
}

const struct check_test check_tests[] = {
    {"mbedtls: a key in common", test_psk},
    {"mbedtls: another key, an unknown one, and none", test_wrong_psk},
    {"mbedtls: no certificate in place of a key", test_no_certificate_in_place_of_a_key},
    {"mbedtls: sessions by a key are resumed", test_psk_is_resumed},
    {"mbedtls: our certificate is replaced", test_our_certificate_is_replaced},
    {"mbedtls: the server's CA is replaced", test_ca_is_replaced},
    {"mbedtls: no session with what was replaced", test_no_old_session},
    {"mbedtls: a key that is not the certificate's", test_not_our_key},
    {"mbedtls: names of nodes", test_aim},
    {"mbedtls: shorter records", test_fragments},
    {"mbedtls: a handshake goes on when it has found room", test_room_in_handshake},
#ifdef TAKES_RANDOM
    {"mbedtls: no random bytes", test_no_random_bytes},
#endif
    {"mbedtls: configurations", test_configurations},
    {"mbedtls: texts", test_texts},
    {0}};
