/*
 * The client with TLS by OpenSSL against a redis-server with TLS. The server serves plain
 * connections, too, by which the test looks at it and changes its certificate.
 */
#include "port_openssl.h"
#include "server/harness.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef CERTIFICATES
#define CERTIFICATES "build/tls/certificates" /* or as the build says */
#endif
#define FILE_OF(name) CERTIFICATES "/" name

static int tls_port;

/* The harness's client, with TLS between it and its socket. */
struct safe {
  struct client client;
  struct port_openssl tls;
};

static struct port_openssl_config config;
static uint32_t connect_ms; /* 0: the default */

/* The server shows this certificate to new connections, and wants these versions. */
static void serve_with(const char *certificate, const char *protocols, const char *clients)
{
  if (tls_port == 0) tls_port = free_port();
  for (int attempt = 0; attempt < 5; attempt++, tls_port = free_port()) {
    if (raw_run(&redis,
                "CONFIG SET tls-cert-file " FILE_OF("%s.crt") " tls-key-file " FILE_OF(
                    "%s.key") " tls-ca-cert-file " FILE_OF("ca.crt") " tls-protocols %s "
                                                                     "tls-auth-clients %s tls-port "
                                                                     "%d",
                certificate, certificate, protocols, clients, tls_port))
      return;
  }
  give_up(redis.element[0].text);
}

static void start(void)
{
  begin();
  memset(&config, 0, sizeof config);
  config.ca_file = FILE_OF("ca.crt");
  config.host = port_posix_host;
  serve_with("server", "TLSv1.2 TLSv1.3", "no");
}

static void safe_open_at(struct safe *safe, const char *host, int port)
{
  client_prepare(&safe->client, port);
  port_posix_tcp(&safe->client.socket, host, safe->client.service);
  safe->client.config.connect_ms = connect_ms;
  const char *wrong = port_openssl_init(&safe->tls, &config, &safe->client.socket.transport);
  if (!CHECK(wrong == NULL)) give_up(wrong);
  CHECK_EQUAL(
      fairlock_client_init(&safe->client.client, &safe->client.config, &safe->tls.transport),
      FAIRLOCK_OK);
}

static void safe_open(struct safe *safe)
{
  safe_open_at(safe, "127.0.0.1", tls_port);
}

static void safe_close(struct safe *safe)
{
  client_close(&safe->client);
  port_openssl_deinit(&safe->tls);
}

/* Connecting ends with this status, and this is TLS's reason. */
static void connecting_comes_to(int status, const char *why)
{
  static struct safe safe;
  char text[PORT_OPENSSL_ERROR_SIZE];
  safe_open(&safe);
  CHECK_EQUAL(fairlock_connect(&safe.client.client), status);
  port_openssl_error(&safe.tls, text);
  if (!CHECK(strcmp(text, why) == 0)) check_write(text);
  safe_close(&safe);
}

static void locks(struct safe *safe)
{
  struct fairlock door;
  CHECK_EQUAL(fairlock_init(&door, &safe->client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&door, 5000, 10000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&door), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
}

static void locks_by(const char *certificate, const char *protocol, const char *version)
{
  static struct safe safe;
  serve_with(certificate, protocol, "no");
  safe_open(&safe);
  locks(&safe);
  CHECK(strcmp(SSL_get_version(safe.tls.ssl), version) == 0);
  safe_close(&safe);
}

static void test_locks(void)
{
  start();
  locks_by("server", "TLSv1.3", "TLSv1.3");
  locks_by("server", "TLSv1.2", "TLSv1.2");
  locks_by("rsa", "TLSv1.3", "TLSv1.3");
  locks_by("rsa", "TLSv1.2", "TLSv1.2");
}

static void test_old_version(void)
{
  start();
  serve_with("server", "TLSv1.1", "no");
  connecting_comes_to(FAIRLOCK_UNREACHABLE, "tlsv1 alert protocol version");
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

static void test_wrong_time(void)
{
  start();
  serve_with("expired", "TLSv1.3", "no");
  connecting_comes_to(FAIRLOCK_UNTRUSTED, "certificate has expired");
  serve_with("future", "TLSv1.3", "no");
  connecting_comes_to(FAIRLOCK_UNTRUSTED, "certificate is not yet valid");
}

static void test_certificate_of_ours(void)
{
  static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};
  static const char *const missing[] = {"sslv3 alert handshake failure",
                                        "tlsv13 alert certificate required"};
  start();
  for (int i = 0; i < 2; i++) {
    serve_with("server", versions[i], "yes");
    config.certificate = NULL;
    config.key = NULL;
    connecting_comes_to(FAIRLOCK_UNTRUSTED, missing[i]);
    config.certificate = FILE_OF("stranger.crt");
    config.key = FILE_OF("stranger.key");
    connecting_comes_to(FAIRLOCK_UNTRUSTED, "tlsv1 alert unknown ca");
    config.certificate = FILE_OF("client.crt");
    config.key = FILE_OF("client.key");
    connecting_comes_to(FAIRLOCK_OK, "");
    config.certificate = FILE_OF("client.both");
    config.key = NULL;
    connecting_comes_to(FAIRLOCK_OK, "");
  }
}

/* The file that cannot be used, and the reason given; NULL: any reason. */
static void refuses(const char *file, const char *why)
{
  struct port_openssl tls;
  struct port_posix socket;
  char text[PORT_OPENSSL_ERROR_SIZE];
  port_posix_tcp(&socket, "127.0.0.1", "1");
  const char *wrong = port_openssl_init(&tls, &config, &socket.transport);
  if (!CHECK(wrong != NULL)) return;
  CHECK(strcmp(wrong, file) == 0);
  port_openssl_error(&tls, text);
  if (why == NULL) CHECK(text[0] != 0);
  else if (!CHECK(strcmp(text, why) == 0)) check_write(text);
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

/* TLS to a server without it, and a plain client to a server with it. */
static void test_only_one_side_has_tls(void)
{
  static struct safe safe;
  static struct client client;
  char text[PORT_OPENSSL_ERROR_SIZE];
  start();
  connect_ms = 500; /* Redis waits for the end of what it takes for a command */
  safe_open_at(&safe, "127.0.0.1", server.port);
  connect_ms = 0;
  CHECK_EQUAL(fairlock_connect(&safe.client.client), FAIRLOCK_UNREACHABLE);
  port_openssl_error(&safe.tls, text);
  if (!CHECK(strcmp(text, "the server does not answer in TLS") == 0)) check_write(text);
  safe_close(&safe);
  client_open(&client, tls_port);
  int status = fairlock_connect(&client.client);
  CHECK(status == FAIRLOCK_PROTOCOL || status == FAIRLOCK_UNREACHABLE);
  client_close(&client);
}

/* The next connection is a resumption, unless it goes elsewhere. */
static void resumes(const char *protocol)
{
  static struct safe safe;
  serve_with("server", protocol, "no");
  safe_open(&safe);
  locks(&safe);
  CHECK_EQUAL(SSL_session_reused(safe.tls.ssl), 0);
  for (int i = 0; i < 3; i++) {
    raw_run(&redis, "CLIENT KILL TYPE normal SKIPME yes");
    service_for(&safe.client, 50);
    locks(&safe);
    CHECK_EQUAL(SSL_session_reused(safe.tls.ssl), 1);
  }
  (void)safe.tls.transport.aim(&safe.tls, NULL);
  raw_run(&redis, "CLIENT KILL TYPE normal SKIPME yes");
  service_for(&safe.client, 50);
  safe.client.socket.host = "localhost";
  locks(&safe);
  CHECK_EQUAL(SSL_session_reused(safe.tls.ssl), 0);
  safe_close(&safe);
}

static void test_resumption(void)
{
  start();
  resumes("TLSv1.3");
  resumes("TLSv1.2");
}

/* A wait outlasts a break, and ends when the server can no longer be trusted. */
static void test_certificate_changes(void)
{
  static struct safe safe;
  struct fairlock door;
  start();
  safe_open(&safe);
  CHECK(raw_run(&redis, "HSET door someone:1 1"));
  CHECK(raw_run(&redis, "PEXPIRE door 60000"));
  CHECK_EQUAL(fairlock_init(&door, &safe.client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, 10000), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "door") == 1, service_for(&safe.client, 10));
  raw_run(&redis, "CLIENT KILL TYPE pubsub SKIPME yes");
  raw_run(&redis, "CLIENT KILL TYPE normal SKIPME yes");
  service_for(&safe.client, 500);
  CHECK_EQUAL(fairlock_result(&door), FAIRLOCK_PENDING);
  CHECK_EQUAL(listeners(&redis, "door"), 1);
  serve_with("elsewhere", "TLSv1.2", "no"); /* which cannot resume a session of TLS 1.3 */
  raw_run(&redis, "CLIENT KILL TYPE pubsub SKIPME yes");
  raw_run(&redis, "CLIENT KILL TYPE normal SKIPME yes");
  CHECK_EQUAL(await_result(&safe.client, &door), FAIRLOCK_UNTRUSTED);
  serve_with("server", "TLSv1.3", "no");
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  CHECK_EQUAL(queue_length(&redis, "door"), 0);
  safe_close(&safe);
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
    safe_open(&pair.safe[i]);
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
  return fairlock_read_counters(&pair.safe[i].client.client).connects;
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
  port_openssl_error(&pair.safe[i].tls, text);
  return strcmp(text, why) == 0 &&
         fairlock_last_error(&pair.safe[i].client.client) == FAIRLOCK_UNTRUSTED;
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

static bool resumed(const struct safe *safe)
{
  return SSL_session_reused(safe->tls.ssl) == 1;
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
  service_pair(100);
  cut_off();
  pair_goes_on();
  CHECK(resumed(&pair.safe[0]) && resumed(&pair.safe[1]));
  put(OUR_CERTIFICATE, NULL);
  cut_off();
  pair_goes_on();
  CHECK(resumed(&pair.safe[0]) && resumed(&pair.safe[1]));
  port_openssl_error(&pair.safe[0].tls, text);
  CHECK(text[0] == 0);
  put(OUR_CERTIFICATE, "client.crt");
  cut_off();
  pair_goes_on();
  CHECK(resumed(&pair.safe[0]) && resumed(&pair.safe[1]));
  /* the same certificate, with more in its file */
  put(OUR_CERTIFICATE, "client.both");
  cut_off();
  pair_goes_on();
  CHECK(!resumed(&pair.safe[0]) && !resumed(&pair.safe[1]));
  cut_off();
  pair_goes_on();
  CHECK(resumed(&pair.safe[0]) && resumed(&pair.safe[1]));
  end_pair();
  /* of a folder nobody knows whether it has changed */
  config.ca_file = NULL;
  config.ca_folder = FILE_OF("hashed");
  safe_open(&pair.safe[0]);
  for (int i = 0; i < 3; i++) {
    locks(&pair.safe[0]);
    CHECK(!resumed(&pair.safe[0]));
    end_connections();
    service_for(&pair.safe[0].client, 50);
  }
  safe_close(&pair.safe[0]);
}

/* Tasks that send while another receives. */
#define TASKS  6
#define ROUNDS 40

static void *works(void *context)
{
  struct fairlock *handle = context;
  for (int i = 0; i < ROUNDS; i++) {
    if (fairlock_acquire(handle, 60000, 30000) != FAIRLOCK_OK) return NULL;
    if (fairlock_release(handle) != FAIRLOCK_OK) return NULL;
  }
  return handle;
}

static void *runs(void *context)
{
  fairlock_run(context);
  return NULL;
}

static void share_client(const char *protocol, bool runner)
{
  static struct safe safe;
  static struct fairlock handles[TASKS];
  static char names[TASKS][16];
  pthread_t tasks[TASKS];
  pthread_t servant;
  void *result;
  serve_with("server", protocol, "no");
  safe_open(&safe);
  for (int i = 0; i < TASKS; i++) {
    (void)snprintf(names[i], sizeof names[i], "door%d", i / 2);
    CHECK_EQUAL(fairlock_init(&handles[i], &safe.client.client, names[i]), FAIRLOCK_OK);
  }
  if (runner) CHECK_EQUAL(pthread_create(&servant, NULL, runs, &safe.client.client), 0);
  for (int i = 0; i < TASKS; i++)
    CHECK_EQUAL(pthread_create(&tasks[i], NULL, works, &handles[i]), 0);
  for (int i = 0; i < TASKS; i++) {
    CHECK_EQUAL(pthread_join(tasks[i], &result), 0);
    CHECK(result == &handles[i]);
  }
  fairlock_stop(&safe.client.client);
  if (runner) CHECK_EQUAL(pthread_join(servant, NULL), 0);
  safe_close(&safe);
}

static void test_many_tasks(void)
{
  start();
  share_client("TLSv1.3", true);
  share_client("TLSv1.2", false);
}

/* A child gives back what it has of its parent's connection. */
static void leaves(int index, void *context)
{
  struct safe *safe = context;
  struct fairlock door;
  char text[PORT_OPENSSL_ERROR_SIZE];
  (void)index;
  bool right = fairlock_init(&door, &safe->client.client, "door") == FAIRLOCK_FORKED;
  port_openssl_error(&safe->tls, text);
  right = right && text[0] == 0;
  safe_close(safe);
  if (!right) _exit(1);
}

/* A child makes a client of its own with its parent's transport, which it has closed. */
static void uses(int index, void *context)
{
  struct safe *safe = context;
  struct client *client = &safe->client;
  char text[PORT_OPENSSL_ERROR_SIZE];
  struct fairlock door;
  (void)index;
  fairlock_client_deinit(&client->client);
  bool right = fairlock_client_init(&client->client, &client->config, &safe->tls.transport) == 0;
  right = right && fairlock_init(&door, &client->client, "door") == FAIRLOCK_OK;
  right = right && fairlock_try_acquire(&door, 10000) == FAIRLOCK_OK;
  right = right && fairlock_release(&door) == FAIRLOCK_OK;
  raw_run(&redis, "CLIENT KILL TYPE normal SKIPME yes");
  safe->tls.config.name = "other.test";
  right = right && fairlock_try_acquire(&door, 10000) == FAIRLOCK_UNTRUSTED;
  port_openssl_error(&safe->tls, text);
  right = right && strcmp(text, "hostname mismatch") == 0;
  safe_close(safe);
  if (!right) _exit(1);
}

static void test_fork_and_use(void)
{
  static struct safe safe;
  start();
  safe_open(&safe);
  CHECK_EQUAL(reap(spawn(uses, 0, &safe)), 0); /* not connected yet */
  locks(&safe);
  CHECK_EQUAL(reap(spawn(uses, 0, &safe)), 0);
  locks(&safe);
  safe_close(&safe);
}

static void fork_beside(const char *protocol)
{
  static struct safe safe;
  static struct fairlock handles[2];
  pthread_t tasks[2];
  pthread_t servant;
  struct fairlock door;
  void *result;
  serve_with("server", protocol, "no");
  safe_open(&safe);
  CHECK_EQUAL(fairlock_init(&door, &safe.client.client, "hold"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&door, 0, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(reap(spawn(leaves, 0, &safe)), 0);
  locks(&safe);
  CHECK_EQUAL(pthread_create(&servant, NULL, runs, &safe.client.client), 0);
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(fairlock_init(&handles[i], &safe.client.client, "door"), FAIRLOCK_OK);
    CHECK_EQUAL(pthread_create(&tasks[i], NULL, works, &handles[i]), 0);
  }
  for (int i = 0; i < 10; i++)
    CHECK_EQUAL(reap(spawn(leaves, 0, &safe)), 0);
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(pthread_join(tasks[i], &result), 0);
    CHECK(result == &handles[i]);
  }
  fairlock_stop(&safe.client.client);
  CHECK_EQUAL(pthread_join(servant, NULL), 0);
  CHECK_EQUAL(fairlock_release(&door), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_read_counters(&safe.client.client).connects, 1);
  safe_close(&safe);
}

static void test_fork(void)
{
  start();
  fork_beside("TLSv1.3");
  fork_beside("TLSv1.2");
}

const struct check_test check_tests[] = {
    {"tls: locks", test_locks},
    {"tls: an old version is refused", test_old_version},
    {"tls: a CA that is not trusted", test_wrong_ca},
    {"tls: a name that is not the server's", test_wrong_name},
    {"tls: a certificate that is expired, or not yet valid", test_wrong_time},
    {"tls: a certificate of ours", test_certificate_of_ours},
    {"tls: files of no use", test_files},
    {"tls: only one side has TLS", test_only_one_side_has_tls},
    {"tls: sessions are resumed", test_resumption},
    {"tls: the certificate changes", test_certificate_changes},
    {"tls: our certificate is replaced", test_our_certificate},
    {"tls: the server's CA is replaced", test_new_ca},
    {"tls: no session with what was replaced", test_no_old_session},
    {"tls: many tasks", test_many_tasks},
    {"tls: fork", test_fork},
    {"tls: fork, and use the transport", test_fork_and_use},
    {0}};
