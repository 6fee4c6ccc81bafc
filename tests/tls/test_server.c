/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client with TLS against a redis-server with TLS: what every transport with TLS has to do. The
 * program is built for each.
 */
#include "fairlock_keep.h"
#include "safe.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "support/counters.h"

/* The versions that both speak. */
#if defined WITH_MBEDTLS && !defined MBEDTLS_SSL_PROTO_TLS1_3
static const char *const versions[] = {"TLSv1.2"};
#else
static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};
#endif
enum { VERSIONS = sizeof versions / sizeof versions[0] };

static struct wrap_config config;

static void start(void)
{
  begin();
  config = (struct wrap_config){.ca = "ca", .name = "localhost"};
  serve_with("server", "TLSv1.2 TLSv1.3", "no");
}

/* Connecting ends with this status, and for this reason. */
static void connecting_comes_to(int status, enum wrap_reason reason)
{
  static struct safe safe;
  safe_open(&safe, &config);
  CHECK_EQUAL(fairlock_connect(&safe.client.client), status);
  CHECK(wrap_failed_by(&safe.wrap, reason));
  safe_close(&safe);
}

static void locks_by(const char *certificate, const char *protocols)
{
  static struct safe safe;
  serve_with(certificate, protocols, "no");
  safe_open(&safe, &config);
  safe_locks(&safe);
  safe_close(&safe);
}

static void test_locks(void)
{
  start();
  for (int i = 0; i < VERSIONS; i++) {
    locks_by("server", versions[i]);
    locks_by("rsa", versions[i]);
  }
  locks_by("server", "TLSv1.2 TLSv1.3"); /* the newest that both have */
}

static void test_old_version(void)
{
  start();
  serve_with("server", "TLSv1.1", "no");
  connecting_comes_to(FAIRLOCK_UNREACHABLE, OLD_VERSION);
}

static void test_wrong_ca(void)
{
  start();
  config.ca = "others";
  connecting_comes_to(FAIRLOCK_UNTRUSTED, UNKNOWN_CA);
}

static void test_wrong_name(void)
{
  start();
  config.name = "redis.example";
  connecting_comes_to(FAIRLOCK_UNTRUSTED, WRONG_NAME);
  serve_with("elsewhere", "TLSv1.2 TLSv1.3", "no");
  connecting_comes_to(FAIRLOCK_OK, NOTHING);
  config.name = "localhost";
  connecting_comes_to(FAIRLOCK_UNTRUSTED, WRONG_NAME);
}

static void test_wrong_time(void)
{
  start();
  serve_with("expired", "TLSv1.2 TLSv1.3", "no");
  connecting_comes_to(FAIRLOCK_UNTRUSTED, EXPIRED);
  serve_with("future", "TLSv1.2 TLSv1.3", "no");
  connecting_comes_to(FAIRLOCK_UNTRUSTED, NOT_YET_VALID);
}

static void test_certificate_of_ours(void)
{
  start();
  for (int i = 0; i < VERSIONS; i++) {
    serve_with("server", versions[i], "yes");
    config.certificate = NULL;
    connecting_comes_to(FAIRLOCK_UNTRUSTED, NONE_OF_OURS);
    config.certificate = "stranger";
    connecting_comes_to(FAIRLOCK_UNTRUSTED, OURS_OF_UNKNOWN_CA);
    config.certificate = "client";
    connecting_comes_to(FAIRLOCK_OK, NOTHING);
  }
}

/*
 * TLS to a server without it, and a plain client to a server with it. Redis takes a handshake for the
 * beginning of a command and waits for its end; since 8.0 a newline among the random bytes is one, and
 * Redis says that it does not know the command.
 */
static void test_only_one_side_has_tls(void)
{
  static struct safe safe;
  static struct client client;
  start();
  safe_prepare(&safe, "127.0.0.1", server.port);
  safe.client.config.connect_ms = 500;
  wrap_init(&safe.wrap, &config, &safe.client.socket.transport);
  safe_start(&safe);
  CHECK_EQUAL(fairlock_connect(&safe.client.client), FAIRLOCK_UNREACHABLE);
  CHECK(wrap_failed_by(&safe.wrap, SILENT) || wrap_failed_by(&safe.wrap, NOT_TLS));
  safe_close(&safe);
  client_open(&client, tls_port);
  int status = fairlock_connect(&client.client);
  CHECK(status == FAIRLOCK_PROTOCOL || status == FAIRLOCK_UNREACHABLE);
  client_close(&client);
}

/* The next connection is a resumption. */
static void resumes(const char *protocol)
{
  static struct safe safe;
  serve_with("server", protocol, "no");
  safe_open(&safe, &config);
  safe_locks(&safe);
  CHECK(!wrap_resumed(&safe.wrap));
  for (int i = 0; i < 3; i++) {
    break_connection(&safe.client);
    safe_locks(&safe);
    CHECK(wrap_resumed(&safe.wrap));
  }
  safe_close(&safe);
}

static void test_resumption(void)
{
  start();
  for (int i = 0; i < VERSIONS; i++)
    resumes(versions[i]);
}

/* The session of a newer version is of no use then, and does not make a try fail. */
static void test_older_version(void)
{
  static struct safe safe;
  struct fairlock door;
  start();
  serve_with("server", versions[VERSIONS - 1], "no");
  safe_open(&safe, &config);
  safe_locks(&safe);
  serve_with("server", versions[0], "no");
  break_connection(&safe.client);
  CHECK_EQUAL(fairlock_init(&door, &safe.client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&door, 10000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&door), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  safe_close(&safe);
}

/* A wait outlasts a break, and ends when the server can no longer be trusted. */
static void test_certificate_changes(void)
{
  static struct safe safe;
  struct fairlock door;
  start();
  safe_open(&safe, &config);
  CHECK(raw_run(&redis, "HSET door someone:1 1"));
  CHECK(raw_run(&redis, "PEXPIRE door 60000"));
  CHECK_EQUAL(fairlock_init(&door, &safe.client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, 10000), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "door") == 1, service_for(&safe.client, 10));
  raw_run(&redis, "CLIENT KILL TYPE pubsub SKIPME yes");
  raw_run(&redis, "CLIENT KILL TYPE normal SKIPME yes");
  AWAIT(listeners(&redis, "door") == 1, service_for(&safe.client, 10));
  CHECK_EQUAL(fairlock_result(&door), FAIRLOCK_PENDING);
  CHECK_EQUAL(listeners(&redis, "door"), 1);
  serve_with("elsewhere", versions[0], "no"); /* which knows none of the sessions */
  raw_run(&redis, "CLIENT KILL TYPE pubsub SKIPME yes");
  raw_run(&redis, "CLIENT KILL TYPE normal SKIPME yes");
  CHECK_EQUAL(await_result(&safe.client, &door), FAIRLOCK_UNTRUSTED);
  serve_with("server", versions[VERSIONS - 1], "no");
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  CHECK_EQUAL(queue_length(&redis, "door"), 0);
  safe_close(&safe);
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
  safe_open(&safe, &config);
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
  for (int i = 0; i < VERSIONS; i++) {
    share_client(versions[i], true);
    share_client(versions[i], false);
  }
}

/* A child gives back what it has of its parent's connection. */
static void leaves(int index, void *context)
{
  struct safe *safe = context;
  struct fairlock door;
  (void)index;
  bool right = fairlock_init(&door, &safe->client.client, "door") == FAIRLOCK_FORKED;
  right = right && wrap_failed_by(&safe->wrap, NOTHING);
  safe_close(safe);
  if (!right) _exit(1);
}

/* A child makes a client of its own with its parent's transport, which it has closed. */
static void uses(int index, void *context)
{
  struct safe *safe = context;
  struct client *client = &safe->client;
  struct fairlock door;
  (void)index;
  fairlock_client_deinit(&client->client);
  bool right =
      fairlock_client_init(&client->client, &client->config, &safe->wrap.tls.transport) == 0;
  right = right && fairlock_init(&door, &client->client, "door") == FAIRLOCK_OK;
  right = right && fairlock_try_acquire(&door, 10000) == FAIRLOCK_OK;
  right = right && fairlock_release(&door) == FAIRLOCK_OK;
  serve_with("elsewhere", versions[0], "no");
  raw_run(&redis, "CLIENT KILL TYPE normal SKIPME yes");
  right = right && fairlock_try_acquire(&door, 10000) == FAIRLOCK_UNTRUSTED;
  right = right && wrap_failed_by(&safe->wrap, WRONG_NAME);
  safe_close(safe);
  if (!right) _exit(1);
}

static void test_fork_and_use(void)
{
  static struct safe safe;
  start();
  serve_with("server", versions[VERSIONS - 1], "no");
  safe_open(&safe, &config);
  CHECK_EQUAL(reap(spawn(uses, 0, &safe)), 0); /* not connected yet */
  serve_with("server", versions[VERSIONS - 1], "no");
  safe_locks(&safe);
  CHECK_EQUAL(reap(spawn(uses, 0, &safe)), 0);
  serve_with("server", versions[VERSIONS - 1], "no");
  safe_locks(&safe);
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
  safe_open(&safe, &config);
  CHECK_EQUAL(fairlock_init(&door, &safe.client.client, "hold"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&door, 0, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(reap(spawn(leaves, 0, &safe)), 0);
  safe_locks(&safe);
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
  CHECK_EQUAL(counters_of(&safe.client.client).connections, 1);
  safe_close(&safe);
}

static void test_fork(void)
{
  start();
  for (int i = 0; i < VERSIONS; i++)
    fork_beside(versions[i]);
}

static void pass(struct fairlock *handle)
{
  CHECK_EQUAL(fairlock_acquire(handle, 10000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(handle), FAIRLOCK_OK);
}

/* A kept lock costs nothing, and one who waits, without TLS, recalls it: a push is read at once. */
static void keep_by(const char *protocol)
{
  static struct safe safe;
  struct fairlock_keeping keeper = {.keep_ms = 20000};
  struct fairlock door;
  struct actor actor;
  pthread_t servant;
  serve_with("server", protocol, "no");
  safe_open(&safe, &config);
  CHECK_EQUAL(fairlock_use_keeping(&safe.client.client, &keeper), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&door, &safe.client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(pthread_create(&servant, NULL, runs, &safe.client.client), 0);
  actor_start(&actor, server.port, "door");
  for (uint32_t round = 1; round <= 3; round++) {
    /* one that begins before the last release was answered is in doubt, and not kept */
    AWAIT(raw_number(&redis, "EXISTS door") == 1, pass(&door));
    uint32_t before = counters_of(&safe.client.client).requests;
    for (int i = 0; i < 100; i++)
      pass(&door);
    CHECK(counters_of(&safe.client.client).requests - before < 10);
    CHECK_EQUAL(actor_do(&actor, 'a', 10000, FAIRLOCK_RENEW).status, FAIRLOCK_OK);
    CHECK_EQUAL(actor_do(&actor, 'r', 0, 0).status, FAIRLOCK_OK);
  }
  actor_end(&actor);
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  fairlock_stop(&safe.client.client);
  CHECK_EQUAL(pthread_join(servant, NULL), 0);
  safe_close(&safe);
  CHECK(nothing_left(&redis, "door"));
}

static void test_keep(void)
{
  start();
  for (int i = 0; i < VERSIONS; i++)
    keep_by(versions[i]);
}

const struct check_test check_tests[] = {
    {"tls: locks", test_locks},
    {"tls: an old version is refused", test_old_version},
    {"tls: a CA that is not trusted", test_wrong_ca},
    {"tls: a name that is not the server's", test_wrong_name},
    {"tls: a certificate that is expired, or not yet valid", test_wrong_time},
    {"tls: a certificate of ours", test_certificate_of_ours},
    {"tls: only one side has TLS", test_only_one_side_has_tls},
    {"tls: sessions are resumed", test_resumption},
    {"tls: the server goes back to an older version", test_older_version},
    {"tls: the certificate changes", test_certificate_changes},
    {"tls: many tasks", test_many_tasks},
    {"tls: a lock that is kept", test_keep},
    {"tls: fork", test_fork},
    {"tls: fork, and use the transport", test_fork_and_use},
    {0}};
