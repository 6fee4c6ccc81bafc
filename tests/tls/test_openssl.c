/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What port/openssl alone has, against a redis-server with TLS: files of certificates that are read
 * again, folders of CAs and those of the system, addresses in certificates. The rest is in
 * test_server.c.
 */
#include "safe.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "support/counters.h"

static struct port_openssl_config config;

static void start(void)
{
  begin();
  memset(&config, 0, sizeof config);
  config.ca_file = FILE_OF("ca.crt");
  config.host = port_posix_host;
  serve_with("server", "TLSv1.2 TLSv1.3", "no");
}

/* safe_open(), with what is in config. A hold outlasts each break, however slow the machine is. */
static void open_safe(struct safe *safe)
{
  safe_prepare(safe, "127.0.0.1", tls_port);
  safe->client.config.lease_ms = 600000;
  const char *wrong = port_openssl_init(&safe->wrap.tls, &safe->client.socket.transport, &config);
  if (!CHECK(wrong == NULL)) give_up(wrong);
  safe_start(safe);
}

/* Connecting ends with this status, and this is TLS's reason. */
static void connecting_comes_to(int status, const char *why)
{
  static struct safe safe;
  char text[PORT_OPENSSL_ERROR_SIZE];
  open_safe(&safe);
  CHECK_EQUAL(fairlock_connect(&safe.client.client), status);
  port_openssl_error(&safe.wrap.tls, text, PORT_OPENSSL_ERROR_SIZE);
  if (!CHECK(strcmp(text, why) == 0)) check_write(text);
  safe_close(&safe);
}

static void test_wrong_ca(void)
{
  start();
  config.ca_file = FILE_OF("others.crt");
  connecting_comes_to(FAIRLOCK_UNTRUSTED, "self-signed certificate in certificate chain");
  config.ca_file = NULL; /* the system's */
  connecting_comes_to(FAIRLOCK_UNTRUSTED, "self-signed certificate in certificate chain");
  config.insecure = true;
  connecting_comes_to(FAIRLOCK_OK, "");
  config.insecure = false;
  config.ca_folder = FILE_OF("hashed");
  connecting_comes_to(FAIRLOCK_OK, "");
}

static void test_wrong_name(void)
{
  start();
  config.name = "redis.example";
  connecting_comes_to(FAIRLOCK_UNTRUSTED, "hostname mismatch");
  config.name = "127.0.0.2";
  connecting_comes_to(FAIRLOCK_UNTRUSTED, "IP address mismatch");
  config.name = "";
  connecting_comes_to(FAIRLOCK_UNTRUSTED, "hostname mismatch");
  config.name = "localhost";
  connecting_comes_to(FAIRLOCK_OK, "");
  serve_with("elsewhere", "TLSv1.3", "no");
  connecting_comes_to(FAIRLOCK_UNTRUSTED, "hostname mismatch");
  config.name = "redis.example";
  connecting_comes_to(FAIRLOCK_OK, "");
  config.name = NULL;
  connecting_comes_to(FAIRLOCK_UNTRUSTED, "IP address mismatch");
  config.host = NULL;
  connecting_comes_to(FAIRLOCK_UNTRUSTED, "hostname mismatch");
  config.insecure = true;
  connecting_comes_to(FAIRLOCK_OK, "");
}

/* Our certificate, and its key in the same file. */
static void test_both_in_one_file(void)
{
  start();
  serve_with("server", "TLSv1.2 TLSv1.3", "yes");
  config.certificate = FILE_OF("client.both");
  connecting_comes_to(FAIRLOCK_OK, "");
}

/* The session is not resumed elsewhere. */
static void test_resumption_elsewhere(void)
{
  static struct safe safe;
  start();
  open_safe(&safe);
  safe_locks(&safe);
  (void)safe.wrap.tls.transport.aim(&safe.wrap.tls, NULL);
  break_connection(&safe.client);
  safe.client.socket.host = "localhost";
  safe_locks(&safe);
  CHECK(!wrap_resumed(&safe.wrap));
  safe_close(&safe);
}

/* The file that cannot be used, and the reason given; NULL: any reason. */
static void refuses(const char *file, const char *why)
{
  struct port_openssl tls;
  struct port_posix socket;
  char text[PORT_OPENSSL_ERROR_SIZE];
  port_posix_tcp(&socket, "127.0.0.1", "1");
  const char *wrong = port_openssl_init(&tls, &socket.transport, &config);
  if (!CHECK(wrong != NULL)) return;
  CHECK(strcmp(wrong, file) == 0);
  port_openssl_error(&tls, text, PORT_OPENSSL_ERROR_SIZE);
  if (why == NULL) CHECK(text[0] != 0);
  else if (!CHECK(strcmp(text, why) == 0)) check_write(text);
}

static void *init_and_connect(void *context)
{
  static struct safe safe;
  bool *returned = context;
  (void)pthread_cancel(pthread_self());
  open_safe(&safe);
  CHECK_EQUAL(fairlock_connect(&safe.client.client), FAIRLOCK_OK);
  safe_close(&safe);
  *returned = true;
  pthread_testcancel();
  return NULL;
}

/* A thread that is cancelled is not ended while OpenSSL reads files, or computes. */
static void test_cancelled(void)
{
  pthread_t thread;
  bool returned = false;
  void *result = NULL;
  start();
  CHECK_EQUAL(pthread_create(&thread, NULL, init_and_connect, &returned), 0);
  CHECK_EQUAL(pthread_join(thread, &result), 0);
  CHECK(returned && result == PTHREAD_CANCELED);
}

static void test_files(void)
{
  memset(&config, 0, sizeof config);
  config.ca_file = FILE_OF("none");
  refuses(config.ca_file, "No such file or directory");
  config.ca_file = FILE_OF("ca.key");
  refuses(config.ca_file, NULL);
  config.ca_file = NULL;
  config.certificate = FILE_OF("none");
  refuses(config.certificate, "No such file or directory");
  config.certificate = FILE_OF("client.crt");
  refuses(config.certificate, NULL); /* there is no key in it */
  config.key = FILE_OF("none");
  refuses(config.key, "No such file or directory");
  config.key = FILE_OF("stranger.key");
  refuses(config.key, "key values mismatch");
  config.key = FILE_OF("rsa.key");
  refuses(config.key, NULL);
  config.key = FILE_OF("client.locked");
  refuses(config.key, NULL);
  config.certificate = NULL;
  config.key = FILE_OF("client.key");
  refuses(config.key, "");
}

/* Files that change: the client is given copies of the others. */

#define OUR_CA          FILE_OF("our.ca")
#define OUR_CERTIFICATE FILE_OF("our.crt")
#define OUR_KEY         FILE_OF("our.key")

/* A new file takes the place of the old one at once. NULL: there is none any more. */
static void put(const char *to, const char *name)
{
  char from[512], next[512], bytes[8192];
  (void)snprintf(from, sizeof from, FILE_OF("%s"), name != NULL ? name : "none");
  (void)snprintf(next, sizeof next, "%s.next", to);
  if (name == NULL) {
    CHECK(remove(to) == 0);
    return;
  }
  FILE *file = fopen(from, "r");
  FILE *copy = fopen(next, "w");
  if (file == NULL || copy == NULL) give_up(from);
  size_t size = fread(bytes, 1, sizeof bytes, file);
  CHECK(fwrite(bytes, 1, size, copy) == size);
  (void)fclose(file);
  (void)fclose(copy);
  CHECK(rename(next, to) == 0);
}

/* The server trusts the clients of this CA, and no others. */
static void trust_clients_of(const char *ca)
{
  CHECK(raw_run(&redis, "CONFIG SET tls-ca-cert-file " FILE_OF("%s.crt") " tls-auth-clients yes",
                ca));
}

/* A holder with files of its own, and a waiter. */
struct pair {
  struct safe safe[2];
  struct fairlock door[2];
  uint64_t token;
  uint32_t connects[2]; /* when they were cut off last */
};
static struct pair pair;

static void start_pair(void)
{
  start();
  put(OUR_CA, "ca.crt");
  put(OUR_CERTIFICATE, "client.crt");
  put(OUR_KEY, "client.key");
  config.ca_file = OUR_CA;
  config.certificate = OUR_CERTIFICATE;
  config.key = OUR_KEY;
  trust_clients_of("ca");
  for (int i = 0; i < 2; i++) {
    open_safe(&pair.safe[i]);
    CHECK_EQUAL(fairlock_init(&pair.door[i], &pair.safe[i].client.client, "door"), FAIRLOCK_OK);
  }
  CHECK_EQUAL(fairlock_acquire(&pair.door[0], 5000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&pair.door[1], FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
              FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "door") == 1, service_for(&pair.safe[1].client, 10));
  pair.token = fairlock_token(&pair.door[0]);
}

static void service_pair(int ms)
{
  int64_t until = now_ms() + ms;
  while (now_ms() < until) {
    for (int i = 0; i < 2; i++)
      (void)fairlock_poll(&pair.safe[i].client.client, 5);
  }
}

static uint32_t connects(int i)
{
  return counters_of(&pair.safe[i].client.client).connections;
}

static void end_connections(void)
{
  raw_run(&redis, "CLIENT KILL TYPE pubsub SKIPME yes");
  raw_run(&redis, "CLIENT KILL TYPE normal SKIPME yes");
}

static void cut_off(void)
{
  for (int i = 0; i < 2; i++)
    pair.connects[i] = connects(i);
  end_connections();
}

/* Both are connected again, and nothing was lost. */
static void pair_goes_on(void)
{
  AWAIT(connects(0) > pair.connects[0] && connects(1) > pair.connects[1], service_pair(10));
  AWAIT(listeners(&redis, "door") == 1, service_pair(10));
  CHECK_EQUAL(fairlock_result(&pair.door[1]), FAIRLOCK_PENDING);
  CHECK_EQUAL(atomic_load(&pair.safe[0].client.losses), 0);
  CHECK_EQUAL((int64_t)fairlock_token(&pair.door[0]), (int64_t)pair.token);
}

static bool is_refused(int i, const char *why)
{
  char text[PORT_OPENSSL_ERROR_SIZE];
  port_openssl_error(&pair.safe[i].wrap.tls, text, PORT_OPENSSL_ERROR_SIZE);
  return strcmp(text, why) == 0 &&
         fairlock_server_status(&pair.safe[i].client.client) == FAIRLOCK_UNTRUSTED;
}

/* Neither gets in, for this reason, and both go on trying. */
static void pair_is_refused(const char *why)
{
  AWAIT(is_refused(0, why) && is_refused(1, why), service_pair(10));
  CHECK_EQUAL(fairlock_result(&pair.door[1]), FAIRLOCK_PENDING);
}

static void end_pair(void)
{
  CHECK_EQUAL(fairlock_start_release(&pair.door[0]), FAIRLOCK_PENDING);
  AWAIT(fairlock_result(&pair.door[0]) == FAIRLOCK_OK, service_pair(10));
  AWAIT(fairlock_result(&pair.door[1]) == FAIRLOCK_OK, service_pair(10));
  CHECK(fairlock_token(&pair.door[1]) > pair.token);
  CHECK_EQUAL(fairlock_release(&pair.door[1]), FAIRLOCK_OK);
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(fairlock_deinit(&pair.door[i]), FAIRLOCK_OK);
    safe_close(&pair.safe[i]);
  }
}

/* Our certificate is replaced, key first, and the server no longer takes the old one. */
static void test_our_certificate(void)
{
  start_pair();
  for (int round = 0; round < 6; round++) {
    bool back = round % 2 == 1;
    trust_clients_of(back ? "ca" : "others");
    cut_off();
    pair_is_refused("tlsv1 alert unknown ca");
    put(OUR_KEY, back ? "client.key" : "stranger.key");
    pair_is_refused("the new files cannot be used: key values mismatch");
    put(OUR_CERTIFICATE, back ? "client.crt" : "stranger.crt");
    pair_goes_on();
  }
  end_pair();
}

/* The server gets a certificate of another CA. */
static void test_new_ca(void)
{
  start_pair();
  for (int round = 0; round < 6; round++) {
    bool back = round % 2 == 1;
    serve_with(back ? "server" : "moved", "TLSv1.2 TLSv1.3", "yes");
    cut_off();
    pair_is_refused(back ? "self-signed certificate in certificate chain"
                         : "unable to get local issuer certificate");
    put(OUR_CA, NULL);
    pair_is_refused("the new files cannot be used: No such file or directory");
    put(OUR_CA, back ? "ca.crt" : "others.crt");
    pair_goes_on();
  }
  end_pair();
}

/* What cannot be read leaves everything as it was; what has changed is not resumed. */
static void test_no_old_session(void)
{
  char text[PORT_OPENSSL_ERROR_SIZE];
  start_pair();
  cut_off();
  pair_goes_on();
  CHECK(wrap_resumed(&pair.safe[0].wrap) && wrap_resumed(&pair.safe[1].wrap));
  put(OUR_CERTIFICATE, NULL);
  cut_off();
  pair_goes_on();
  CHECK(wrap_resumed(&pair.safe[0].wrap) && wrap_resumed(&pair.safe[1].wrap));
  port_openssl_error(&pair.safe[0].wrap.tls, text, PORT_OPENSSL_ERROR_SIZE);
  CHECK(text[0] == 0);
  put(OUR_CERTIFICATE, "client.crt");
  cut_off();
  pair_goes_on();
  CHECK(wrap_resumed(&pair.safe[0].wrap) && wrap_resumed(&pair.safe[1].wrap));
  /* the same certificate, with more in its file */
  put(OUR_CERTIFICATE, "client.both");
  cut_off();
  pair_goes_on();
  CHECK(!wrap_resumed(&pair.safe[0].wrap) && !wrap_resumed(&pair.safe[1].wrap));
  cut_off();
  pair_goes_on();
  CHECK(wrap_resumed(&pair.safe[0].wrap) && wrap_resumed(&pair.safe[1].wrap));
  end_pair();
  /* of a folder nobody knows whether it has changed */
  config.ca_file = NULL;
  config.ca_folder = FILE_OF("hashed");
  open_safe(&pair.safe[0]);
  for (int i = 0; i < 3; i++) {
    safe_locks(&pair.safe[0]);
    CHECK(!wrap_resumed(&pair.safe[0].wrap));
    break_connection(&pair.safe[0].client);
  }
  safe_close(&pair.safe[0]);
}

/* Connects to what the URL says, and frees all. */
static int connect_by_url(const struct port_openssl_config *trust, const char *scheme, int port)
{
  static struct port_posix_server at;
  static struct safe safe;
  char url[64];
  (void)snprintf(url, sizeof url, "%s%d", scheme, port);
  client_prepare(&safe.client, server.port);
  const char *wrong = port_openssl_url(&safe.wrap.tls, &at, url, trust);
  if (!CHECK(wrong == NULL)) give_up(wrong);
  CHECK((at.transport == &safe.wrap.tls.transport) == at.tls);
  CHECK((at.transport == &at.socket.transport) == !at.tls);
  CHECK_EQUAL(fairlock_client_init(&safe.client.client, &safe.client.config, at.transport),
              FAIRLOCK_OK);
  int status = fairlock_connect(&safe.client.client);
  fairlock_client_deinit(&safe.client.client);
  port_openssl_deinit(&safe.wrap.tls);
  return status;
}

/* The name that the certificate must have is that of the URL, whatever config says of `host`. */
static void test_url(void)
{
  start();
  config.host = NULL;
  CHECK_EQUAL(connect_by_url(&config, "rediss://localhost:", tls_port), FAIRLOCK_OK);
  CHECK_EQUAL(connect_by_url(&config, "rediss://127.0.0.1:", tls_port), FAIRLOCK_OK);
  CHECK_EQUAL(connect_by_url(&config, "redis://127.0.0.1:", server.port), FAIRLOCK_OK);
  CHECK_EQUAL(connect_by_url(NULL, "redis://127.0.0.1:", server.port), FAIRLOCK_OK);
  CHECK_EQUAL(connect_by_url(NULL, "rediss://127.0.0.1:", tls_port), FAIRLOCK_UNTRUSTED);
  serve_with("elsewhere", "TLSv1.3", "no");
  CHECK_EQUAL(connect_by_url(&config, "rediss://localhost:", tls_port), FAIRLOCK_UNTRUSTED);
  config.name = "redis.example";
  CHECK_EQUAL(connect_by_url(&config, "rediss://localhost:", tls_port), FAIRLOCK_OK);
}

/* Nothing is left to deinit then, and nothing to connect with. */
static void url_is_refused(const char *url, const char *words)
{
  static struct port_posix_server at;
  struct port_openssl tls;
  char text[PORT_OPENSSL_ERROR_SIZE];
  const char *wrong = port_openssl_url(&tls, &at, url, &config);
  if (!CHECK(wrong != NULL && strcmp(wrong, words) == 0))
    check_write(wrong != NULL ? wrong : "taken");
  CHECK(at.transport == NULL && at.password == NULL && tls.settings == NULL);
  port_openssl_error(&tls, text, PORT_OPENSSL_ERROR_SIZE);
  CHECK(text[0] == 0);
  port_openssl_deinit(&tls);
}

static void test_url_refused(void)
{
  memset(&config, 0, sizeof config);
  config.ca_file = FILE_OF("none");
  url_is_refused("rediss://:secret@h",
                 "it asks for TLS, and " FILE_OF("none") " cannot be used: "
                                                         "No such file or directory");
  url_is_refused("rediss://:secret@", "it names no host");
  url_is_refused(NULL, "it is not set");
}

const struct check_test check_tests[] = {
    {"openssl: CAs in a file, a folder, and the system's", test_wrong_ca},
    {"openssl: a name or address that is not the server's", test_wrong_name},
    {"openssl: certificate and key in one file", test_both_in_one_file},
    {"openssl: files of no use", test_files},
    {"openssl: servers by URL, with TLS and without", test_url},
    {"openssl: a URL that is refused", test_url_refused},
    {"openssl: by a thread that is cancelled", test_cancelled},
    {"openssl: sessions are not resumed elsewhere", test_resumption_elsewhere},
    {"openssl: our certificate is replaced", test_our_certificate},
    {"openssl: the server's CA is replaced", test_new_ca},
    {"openssl: no session with what was replaced", test_no_old_session},
    {0}};
