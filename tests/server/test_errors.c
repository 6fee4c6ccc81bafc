/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server refuses: each refusal becomes its own status with the server's text, and a script that
 * is stopped half-way, by a missing ACL rule, by lack of memory or by a key of a wrong type, leaves
 * nothing worse than before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dialect.h"
#include "fairlock_credentials.h"
#include "fairlock_share.h"
#include "harness.h"
#include "support/counters.h"

static struct client client;
static struct fairlock handle;

/* A client that gives up soon, and a handle. */
static void open_client(struct client *opened, int port, const char *user, const char *password)
{
  client_prepare(opened, port);
  opened->config.user = user;
  opened->config.password = password;
  opened->config.offline_ms = 2000;
  client_start(opened);
}

static void open_one(int port, const char *user, const char *password, const char *name)
{
  open_client(&client, port, user, password);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, name), FAIRLOCK_OK);
}

static void close_one(void)
{
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
}

static bool says(const char *text)
{
  const char *error = client_error(&client);
  if (strncmp(error, text, strlen(text)) == 0) return true;
  printf("# the error text is \"%s\"\n", error);
  return false;
}

/* The result of every operation while the server refuses all of them for the same reason. */
static void check_all(int expected, const char *text)
{
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), expected);
  CHECK(says(text));
  CHECK_EQUAL(fairlock_acquire(&handle, 2000, FAIRLOCK_RENEW), expected);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), expected);
  CHECK(now_ms() - began < 20000);
  CHECK_EQUAL(fairlock_force_release(&client.client, "errors", 6, FAIRLOCK_ANY_TOKEN), expected);
  CHECK_EQUAL(inspect(&client, "errors").status, expected);
  CHECK(says(text));
  CHECK_EQUAL(fairlock_remaining_ms(&handle), 0);
}

/* Authentication */

static void test_auth(void)
{
  static const char *const options[] = {"--requirepass", "sesame", NULL};
  static struct server own;
  begin();
  server_start(&own, options);
  open_one(own.port, NULL, "sesame", "errors");
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  close_one();
  open_one(own.port, "default", "sesame", "errors");
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_OK);
  close_one();
  open_one(own.port, NULL, "open", "errors");
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_DENIED);
  CHECK(says("WRONGPASS"));
  check_all(FAIRLOCK_DENIED, "WRONGPASS");
  close_one();
  open_one(own.port, "nobody", "sesame", "errors");
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_DENIED);
  CHECK(says("WRONGPASS"));
  close_one();
  open_one(own.port, NULL, NULL, "errors");
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_DENIED);
  CHECK(says("NOAUTH"));
  check_all(FAIRLOCK_DENIED, "NOAUTH");
  close_one();
  server_stop(&own);
}

static char longest[16384 + 1];
static int asked_for; /* times that it was */

static bool give_longest(struct fairlock_login *login, void *context)
{
  (void)context;
  asked_for++;
  CHECK(!login->refused);
  login->password = longest;
  login->valid_ms = 1000;
  return true;
}

/* The longest password that a server takes, through the smallest buffer: greeting, and AUTH later. */
static void test_longest_password(void)
{
  static struct server own;
  static struct fairlock_credentials credentials;
  const char *const options[] = {"--requirepass", longest, NULL};
  begin();
  memset(longest, 'x', sizeof longest - 1);
  asked_for = 0;
  server_start(&own, options);
  for (int i = 0; i < 2; i++) {
    client_prepare(&client, own.port);
    client.config.password = longest;
    client.config.send_size = FAIRLOCK_SEND_MIN;
    client_start(&client);
    credentials.function = give_longest;
    if (i == 1) fairlock_use_credentials(&client.client, &credentials);
    CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_OK);
    int64_t began = now_ms();
    while (i == 1 && asked_for < 3 && now_ms() - began < SOON)
      service_for(&client, 50);
    CHECK_EQUAL(asked_for >= 3, i == 1); /* the AUTH of the second time was accepted */
    CHECK_EQUAL(fairlock_init(&handle, &client.client, "errors"), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_acquire(&handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
    CHECK_EQUAL(counters_of(&client.client).connections, 1);
    close_one();
  }
  server_stop(&own);
}

static void test_bad_database(void)
{
  begin();
  client_prepare(&client, server.port);
  client.config.database = 5000;
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "errors"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_REFUSED);
  CHECK(says("ERR DB index is out of range"));
  CHECK_EQUAL(fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_REFUSED);
  close_one();
}

/* More clients than the server takes. */
static void test_too_many_clients(void)
{
  static const char *const options[] = {"--maxclients", "2", NULL};
  static struct server own;
  static struct raw first, second;
  begin();
  server_start(&own, options);
  CHECK(raw_open(&first, own.port));
  CHECK(raw_run(&first, "PING"));
  CHECK(raw_open(&second, own.port));
  CHECK(raw_run(&second, "PING"));
  open_one(own.port, NULL, NULL, "errors");
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_UNAVAILABLE);
  CHECK(says("ERR max number of clients reached"));
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_UNAVAILABLE);
  CHECK_EQUAL(fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_UNAVAILABLE);
  raw_close(&first);
  /* The pause between two attempts has grown to 5 s, which is longer than offline_ms. */
  int64_t began = now_ms();
  int result;
  do
    result = fairlock_acquire(&handle, 20000, FAIRLOCK_RENEW);
  while (result == FAIRLOCK_UNAVAILABLE && now_ms() - began < 20000);
  CHECK_EQUAL(result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  close_one();
  raw_close(&second);
  server_stop(&own);
}

/* How many connections the server had no room for. */
static int rejections(struct raw *look)
{
  const char *rejected = strstr(raw_text(look, "INFO stats"), "rejected_connections:");
  return rejected != NULL ? atoi(strchr(rejected, ':') + 1) : -1;
}

/*
 * A waiter that connects again while the server has no room for it keeps its place, and asks again
 * with pauses.
 */
static void test_too_many_clients_while_waiting(void)
{
  static struct client holder, behind;
  static struct fairlock held, second;
  static struct server own;
  static struct raw look;
  begin();
  server_start(&own, NULL);
  CHECK(raw_open(&look, own.port));
  client_open(&holder, own.port);
  CHECK_EQUAL(fairlock_init(&held, &holder.client, "errors"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&held, 5000, 600000), FAIRLOCK_OK);
  client_prepare(&client, own.port);
  client.config.waiter_ms = 60000;
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "errors"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&look, "errors") == 1, service_for(&client, 10));
  int64_t number = raw_number(&look, "CLIENT ID") + 2; /* after the holder's */
  client_prepare(&behind, own.port);
  behind.config.waiter_ms = 60000;
  client_start(&behind);
  CHECK_EQUAL(fairlock_init(&second, &behind.client, "errors"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&second, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&look, "errors") == 2, service_for(&behind, 10));
  CHECK(raw_run(&look, "CONFIG SET maxclients 1"));
  CHECK_EQUAL(raw_number(&look, "CLIENT KILL ID %ld", number), 1);
  AWAIT(rejections(&look) > 1, service_for(&client, 50));
  service_for(&client, 1000);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_PENDING);
  CHECK(says("ERR max number of clients reached"));
  CHECK(rejections(&look) > 1);
  CHECK(rejections(&look) < 20); /* the 20th comes after a minute and more */
  CHECK(raw_run(&look, "CONFIG SET maxclients 100"));
  AWAIT(counters_of(&client.client).connections == 2, service_for(&client, 10));
  CHECK_EQUAL(queue_length(&look, "errors"), 2);
  CHECK_EQUAL(fairlock_release(&held), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  service_for(&behind, 50);
  CHECK_EQUAL(fairlock_result(&second), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&behind, &second), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&second), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&held), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&second), FAIRLOCK_OK);
  client_close(&holder);
  client_close(&behind);
  close_one();
  raw_close(&look);
  server_stop(&own);
}

/*
 * A server that gives the same answer to anything: RESP2 servers, and what is not a Redis server at
 * all.
 */
static void parrot(int listener, void *context)
{
  const char *answer = context;
  char buffer[4096];
  for (;;) {
    int connection = accept(listener, NULL, NULL);
    if (connection < 0) return;
    if (recv(connection, buffer, sizeof buffer, 0) > 0)
      (void)send(connection, answer, strlen(answer), MSG_NOSIGNAL);
    while (recv(connection, buffer, sizeof buffer, 0) > 0)
      continue;
    (void)close(connection);
  }
}

static void says_always(const char *answer, int expected, const char *text)
{
  int port;
  begin();
  int listener = listen_anywhere(&port);
  pid_t pid = spawn(parrot, listener, (void *)(uintptr_t)answer);
  (void)close(listener);
  open_one(port, NULL, NULL, "errors");
  int status = fairlock_connect(&client.client);
  if (!CHECK_EQUAL(status, expected)) printf("# to %.30s\n", answer);
  CHECK(says(text));
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), expected);
  status = fairlock_acquire(&handle, 2000, FAIRLOCK_RENEW);
  CHECK_EQUAL(status, expected);
  close_one();
  slay(pid);
}

static void test_no_resp3(void)
{
  says_always("-ERR unknown command 'HELLO', with args beginning with: '3' \r\n",
              FAIRLOCK_UNSUPPORTED, "ERR unknown command 'HELLO'");
  says_always("-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n",
              FAIRLOCK_UNSUPPORTED, "ERR unknown command `HELLO`");
  says_always("-NOPROTO unsupported protocol version\r\n", FAIRLOCK_UNSUPPORTED, "NOPROTO");
  says_always("-NOPROTO sorry, this protocol version is not supported.\r\n", FAIRLOCK_UNSUPPORTED,
              "NOPROTO sorry");
}

static void test_no_redis(void)
{
  says_always("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", FAIRLOCK_PROTOCOL, "");
  says_always("SSH-2.0-OpenSSH_9.2p1\r\n", FAIRLOCK_PROTOCOL, "");
  says_always("-DENIED Redis is running in protected mode\r\n", FAIRLOCK_REFUSED,
              "DENIED Redis is running");
  says_always("-ERR something else\r\n", FAIRLOCK_REFUSED, "ERR something else");
  says_always("-NOAUTH HELLO must be called with the client already authenticated\r\n",
              FAIRLOCK_DENIED, "NOAUTH");
  says_always("-LOADING Redis is loading the dataset in memory\r\n", FAIRLOCK_UNAVAILABLE,
              "LOADING");
}

/* The server is busy */

/* A server that loads for as long as the test asks it. A wait lasts until it has; a try is told at once. */
static void test_loading(void)
{
  const char *const options[] = {"--rdbcompression",
                                 "no",
                                 dialect_is_old() ? NULL : "--enable-debug-command",
                                 "yes",
                                 "--loading-process-events-interval-bytes",
                                 "1024",
                                 NULL};
  static struct server own;
  static struct raw loader, look;
  begin();
  server_start(&own, options);
  CHECK(raw_open(&loader, own.port));
  CHECK(raw_open(&look, own.port));
  CHECK(raw_run(&loader, "DEBUG POPULATE 20000 filler %d", dialect_is_old() ? 4000 : 100));
  CHECK(raw_run(&loader, "CONFIG SET key-load-delay %d", dialect_is_old() ? 300 : 1000)); /* us */
  open_one(own.port, NULL, NULL, "errors");
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_OK);
  raw_send(&loader, "DEBUG RELOAD");
  AWAIT(strncmp(raw_text(&look, "GET filler:1"), "LOADING", 7) == 0, sleep_ms(5));
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_UNAVAILABLE);
  CHECK(says("LOADING"));
  CHECK_EQUAL(fairlock_acquire(&handle, 500, FAIRLOCK_RENEW), FAIRLOCK_UNAVAILABLE);
  CHECK_EQUAL(inspect(&client, "errors").status, FAIRLOCK_UNAVAILABLE);
  client_close(&client);
  client_prepare(&client, own.port);
  client.config.offline_ms = 60000;
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "errors"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(strncmp(client_error(&client), "LOADING", 7) == 0, service_for(&client, 5));
  CHECK(says("LOADING"));
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_PENDING);
  if (!dialect_is_old()) CHECK(raw_run(&look, "CONFIG SET key-load-delay 1"));
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK(raw_reply(&loader));
  close_one();
  raw_close(&loader);
  raw_close(&look);
  server_stop(&own);
}

/* A script of somebody else's runs for ever: BUSY, until it is killed. */
static void test_busy_script(void)
{
  static struct raw busy;
  begin();
  open_one(server.port, NULL, NULL, "errors");
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_OK);
  make_busy(&busy);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_UNAVAILABLE);
  CHECK(says("BUSY"));
  CHECK_EQUAL(fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_UNAVAILABLE);
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_for(&client, 300);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_PENDING);
  end_busy(&busy);
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  close_one();
}

/* Writes are refused */

static void test_readonly(void)
{
  static struct server replica;
  static struct raw look;
  begin();
  server_start(&replica, NULL);
  CHECK(raw_open(&look, replica.port));
  CHECK(raw_run(&look, "REPLICAOF 127.0.0.1 %d", server.port));
  AWAIT(strstr(raw_text(&look, "INFO replication"), "master_link_status:up") != NULL, sleep_ms(20));
  open_one(replica.port, NULL, NULL, "errors");
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_READONLY);
  CHECK(says("READONLY"));
  CHECK_EQUAL(fairlock_acquire(&handle, 2000, FAIRLOCK_RENEW), FAIRLOCK_READONLY);
  CHECK_EQUAL(fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_READONLY);
  CHECK(raw_run(&redis, "HSET errors somebody:1 1"));
  CHECK_EQUAL(raw_number(&redis, "WAIT 1 5000"), 1);
  CHECK_EQUAL(fairlock_force_release(&client.client, "errors", 6, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_READONLY);
  close_one();
  client_open(&client, replica.port);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "errors"), FAIRLOCK_OK);
  CHECK_EQUAL(inspect(&client, "errors").status, FAIRLOCK_OK); /* reading is allowed */
  CHECK_EQUAL(raw_number(&redis, "DEL errors"), 1);
  CHECK(nothing_left(&redis, "errors"));
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_for(&client, 200);
  CHECK(raw_run(&look, "REPLICAOF NO ONE")); /* a fail-over: it is the master now */
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  close_one();
  raw_close(&look);
  server_stop(&replica);
}

/* A replica without its master, that does not serve old data. */
static void test_masterdown(void)
{
  static const char *const options[] = {"--replica-serve-stale-data", "no", NULL};
  static struct server replica;
  static struct raw look;
  begin();
  server_start(&replica, options);
  CHECK(raw_open(&look, replica.port));
  CHECK(raw_run(&look, "REPLICAOF 127.0.0.1 %d", free_port()));
  open_one(replica.port, NULL, NULL, "errors");
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_UNAVAILABLE);
  CHECK(says("MASTERDOWN"));
  close_one();
  raw_close(&look);
  server_stop(&replica);
}

static struct client other;
static struct fairlock waiter;

/*
 * A holder can go on holding, release, and hand over; what would begin something new ends with
 * `expected`.
 */
static void check_full(int expected, const char *text, const char *full, const char *room)
{
  open_one(server.port, NULL, NULL, "errors");
  open_client(&other, server.port, NULL, NULL);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, "errors"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK(raw_run(&redis, full));
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), expected);
  CHECK(says(text));
  CHECK_EQUAL(fairlock_acquire(&handle, 2000, FAIRLOCK_RENEW), expected);
  CHECK_EQUAL(fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), expected);
  CHECK(nothing_left(&redis, "errors"));
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_for(&client, 200);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_PENDING);
  CHECK(raw_run(&redis, room));
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&waiter, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "errors") == 1, service_for(&other, 10));
  CHECK_EQUAL(queue_length(&redis, "errors"), 1);
}

static void end_full(const char *room)
{
  CHECK(raw_run(&redis, room));
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  client_close(&other);
  close_one();
  CHECK(nothing_left(&redis, "errors"));
}

static void test_oom(void)
{
  begin();
  check_full(FAIRLOCK_OOM, "OOM", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0");
  CHECK(raw_run(&redis, "CONFIG SET maxmemory 1"));
  CHECK(raw_run(&redis, "PEXPIRE errors 25000"));
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK); /* one level, and the lease anew */
  CHECK_EQUAL(fairlock_hold_count(&handle), 1);
  CHECK(raw_number(&redis, "PTTL errors") > 25000);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&other, &waiter), FAIRLOCK_OK);
  CHECK_EQUAL(counters_of(&other.client).granted, 1);
  AWAIT(raw_number(&redis, "PTTL errors") > 10000, service_for(&other, 10));
  CHECK(raw_number(&redis, "PTTL errors") >
        10000); /* confirmed: more than the grant's waiter timeout */
  CHECK(sane(&redis, "errors"));
  CHECK_EQUAL(fairlock_release(&waiter), FAIRLOCK_OK);
  end_full("CONFIG SET maxmemory 0");
}

/* The watchdog, too, needs no memory. */
static void test_oom_renewal(void)
{
  begin();
  client_prepare(&client, server.port);
  client.config.lease_ms = 6000;
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "errors"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "CONFIG SET maxmemory 1"));
  AWAIT(counters_of(&client.client).renewals >= 2, service_for(&client, 10));
  CHECK(counters_of(&client.client).renewals >= 2);
  CHECK(fairlock_remaining_ms(&handle) > 0);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "CONFIG SET maxmemory 0"));
  close_one();
  CHECK(nothing_left(&redis, "errors"));
}

/* Nor does a release, also when it wakes a waiter of Redisson's: that writes a note. */
static void test_oom_release(void)
{
  static struct raw redisson;
  begin();
  open_one(server.port, NULL, NULL, "errors");
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{errors} r:1"));
  CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{errors} 9000000000000 r:1"));
  CHECK(raw_open(&redisson, server.port));
  CHECK(raw_run(&redisson, "SUBSCRIBE redisson_lock__channel:{errors}:r:1"));
  CHECK(raw_run(&redis, "CONFIG SET maxmemory 1"));
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "CONFIG SET maxmemory 0"));
  CHECK_EQUAL(raw_number(&redis, "EXISTS errors"), 0);
  CHECK(raw_reply(&redisson) && strcmp(redisson.element[3].text, "0") == 0);
  raw_close(&redisson);
  close_one();
}

/* One who shares, at most two at a time; its client can hold the lock alone as well. */
struct sharer {
  struct client client;
  struct fairlock_downgrading sharing;
  struct fairlock_shared shared;
  struct fairlock alone;
};

static struct sharer sharers[4];

static struct fairlock *share_of(int i)
{
  return &sharers[i].shared.handle;
}

static void open_sharers(void)
{
  for (int i = 0; i < 4; i++) {
    struct sharer *sharer = &sharers[i];
    client_prepare(&sharer->client, server.port);
    sharer->client.config.lease_ms = 6000;
    sharer->client.config.waiter_ms = 60000; /* whose heartbeats will be refused */
    client_start(&sharer->client);
    fairlock_use_downgrading(&sharer->client.client, &sharer->sharing);
    CHECK_EQUAL(fairlock_init_shared(&sharer->shared, &sharer->client.client, "errors", 2),
                FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_init(&sharer->alone, &sharer->client.client, "errors"), FAIRLOCK_OK);
  }
}

static void close_sharers(void)
{
  for (int i = 0; i < 4; i++) {
    CHECK_EQUAL(fairlock_deinit(share_of(i)), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_deinit(&sharers[i].alone), FAIRLOCK_OK);
    client_close(&sharers[i].client);
  }
  CHECK(raw_run(&redis, "CONFIG SET maxmemory 0"));
  CHECK(nothing_left(&redis, "errors"));
}

static void service_sharers(void)
{
  for (int i = 0; i < 4; i++)
    service_for(&sharers[i].client, 5);
}

static uint32_t renewals_of(int i)
{
  return counters_of(&sharers[i].client.client).renewals;
}

/* Two hold, and two wait for a place, when the server's memory is full. */
static void begin_full_sharing(void)
{
  begin();
  open_sharers();
  for (int i = 0; i < 4; i++) {
    CHECK_EQUAL(fairlock_start_acquire(share_of(i), FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
                FAIRLOCK_PENDING);
    if (i < 2) CHECK_EQUAL(await_result(&sharers[i].client, share_of(i)), FAIRLOCK_OK);
    else AWAIT(queue_length(&redis, "errors") == i - 1, service_for(&sharers[i].client, 5));
  }
  CHECK_EQUAL(queue_length(&redis, "errors"), 2);
  CHECK(raw_run(&redis, "CONFIG SET maxmemory 1"));
}

/* What a share needs no memory for: renewals, one level more or less, and an end of any kind. */
static void test_oom_shared(void)
{
  begin_full_sharing();
  CHECK_EQUAL(fairlock_acquire(share_of(0), 0, FAIRLOCK_RENEW), FAIRLOCK_OK); /* once more */
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_hold_count(share_of(0)), 1);
  AWAIT(renewals_of(0) >= 2, service_sharers());
  CHECK(renewals_of(0) >= 2);
  CHECK_EQUAL(fairlock_start_acquire(&sharers[0].alone, 0, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  CHECK_EQUAL(await_result(&sharers[0].client, &sharers[0].alone), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_cancel(share_of(3)), FAIRLOCK_OK); /* leaves its place */
  CHECK_EQUAL(await_result(&sharers[3].client, share_of(3)), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(queue_length(&redis, "errors"), 1);
  CHECK_EQUAL(fairlock_release(share_of(1)), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&sharers[2].client, share_of(2)), FAIRLOCK_OK);
  AWAIT(renewals_of(2) >= 1, service_sharers()); /* after its confirmation */
  CHECK(renewals_of(2) >= 1);
  CHECK_EQUAL(fairlock_release(share_of(2)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(&redis, "EXISTS errors"), 0);
  CHECK_EQUAL(fairlock_try_acquire(share_of(3), FAIRLOCK_RENEW), FAIRLOCK_OOM);
  for (int i = 0; i < 4; i++)
    CHECK_EQUAL(sharers[i].client.losses, 0);
  close_sharers();
}

/* Nor does who breaks one of several shares, or the only hold. */
static void test_oom_break(void)
{
  begin_full_sharing();
  struct fairlock_client *breaker = &sharers[3].client.client;
  uint64_t token = fairlock_token(share_of(1));
  CHECK_EQUAL(fairlock_force_release(breaker, "errors", 6, token), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(1)), FAIRLOCK_LOST);
  AWAIT(fairlock_hold_count(share_of(2)) == 1, service_sharers());
  CHECK_EQUAL(fairlock_hold_count(share_of(2)), 1);
  CHECK_EQUAL(fairlock_cancel(share_of(3)), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&sharers[3].client, share_of(3)), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_OK);
  token = fairlock_token(share_of(2));
  CHECK_EQUAL(fairlock_force_release(breaker, "errors", 6, token), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(2)), FAIRLOCK_LOST);
  close_sharers();
}

/* Nor does a downgrade, after which others join. */
static void test_oom_downgrade(void)
{
  begin();
  open_sharers();
  CHECK_EQUAL(fairlock_try_acquire(&sharers[0].alone, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(share_of(1), FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
              FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "errors") == 1, service_for(&sharers[1].client, 5));
  CHECK(raw_run(&redis, "CONFIG SET maxmemory 1"));
  CHECK_EQUAL(fairlock_downgrade(&sharers[0].alone, &sharers[0].shared, FAIRLOCK_RENEW),
              FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&sharers[1].client, share_of(1)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(1)), FAIRLOCK_OK);
  close_sharers();
}

/*
 * While a server refuses all writes, nothing is lost: what was begun ends when it takes them again,
 * or by its lease.
 */
static void release_in_between(int expected, const char *text, const char *refuse,
                               const char *accept_again)
{
  CHECK(raw_run(&redis, refuse));
  CHECK_EQUAL(fairlock_release(&handle), expected); /* of one level: not done */
  CHECK(says(text));
  CHECK_EQUAL(fairlock_hold_count(&handle), 2);
  CHECK_EQUAL(fairlock_start_release(&handle), FAIRLOCK_PENDING);
  service_for(&client, 100);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_PENDING);
  CHECK(raw_run(&redis, accept_again));
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_hold_count(&handle), 1);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&other, &waiter), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&waiter), FAIRLOCK_OK);
}

static void test_noreplicas(void)
{
  static const char refuse[] = "CONFIG SET min-replicas-to-write 1";
  static const char accept_again[] = "CONFIG SET min-replicas-to-write 0";
  begin();
  if (dialect_is_old()) { /* its scripts still write */
    open_one(server.port, NULL, NULL, "errors");
    CHECK(raw_run(&redis, refuse));
    CHECK(!raw_run(&redis, "SET other x"));
    CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
    CHECK(raw_run(&redis, accept_again));
    close_one();
    return;
  }
  check_full(FAIRLOCK_MISCONF, "NOREPLICAS", refuse, accept_again);
  release_in_between(FAIRLOCK_MISCONF, "NOREPLICAS", refuse, accept_again);
  end_full(accept_again);
}

/* A snapshot that fails, as its directory is gone, so that the server accepts no writes. */
static void test_misconf(void)
{
  static const char *const options[] = {"--stop-writes-on-bgsave-error", "no", NULL};
  static const char refuse[] = "CONFIG SET stop-writes-on-bgsave-error yes";
  static const char accept_again[] = "CONFIG SET stop-writes-on-bgsave-error no";
  begin();
  struct server usual = server;
  raw_close(&redis);
  server_start(&server, options);
  CHECK(raw_open(&redis, server.port));
  char log[80];
  (void)snprintf(log, sizeof log, "%s/log", server.folder);
  CHECK(unlink(log) == 0 && rmdir(server.folder) == 0);
  CHECK(raw_run(&redis, "CONFIG SET save %s", "36000 1"));
  (void)raw_run(&redis, "BGSAVE");
  int64_t until = now_ms() + SOON;
  while (strstr(raw_text(&redis, "INFO persistence"), "rdb_last_bgsave_status:err") == NULL &&
         now_ms() < until) {
    sleep_ms(20);
  }
  check_full(FAIRLOCK_MISCONF, "MISCONF", refuse, accept_again);
  release_in_between(FAIRLOCK_MISCONF, "MISCONF", refuse, accept_again);
  end_full(accept_again);
  raw_close(&redis);
  server_stop(&server);
  server = usual;
  CHECK(raw_open(&redis, server.port));
}

/* Keys of a wrong type */

static const char *const lock_keys[] = {"errors", "redisson_lock_queue:{errors}",
                                        "redisson_lock_timeout:{errors}", "fairlock:{errors}"};

struct snapshot {
  size_t size[4];
  char dump[4][2048];
};

static struct snapshot take_snapshot(void)
{
  struct snapshot snapshot;
  memset(&snapshot, 0, sizeof snapshot);
  for (int i = 0; i < 4; i++) {
    (void)raw_text(&redis, "DUMP %s", lock_keys[i]);
    const struct raw_element *element = &redis.element[0];
    snapshot.size[i] = element->size;
    if (CHECK(element->size <= sizeof snapshot.dump[i]))
      memcpy(snapshot.dump[i], element->text, element->size);
  }
  return snapshot;
}

static void check_untouched(const struct snapshot *before)
{
  struct snapshot after = take_snapshot();
  for (int i = 0; i < 4; i++) {
    if (!CHECK_BYTES(after.dump[i], after.size[i], before->dump[i], before->size[i]))
      printf("# %s\n", lock_keys[i]);
  }
}

/* Held with two levels and waited for; then one of the four keys is something else. */
static void spoil(int key)
{
  struct snapshot before;
  static struct client third;
  struct fairlock late;
  begin();
  open_one(server.port, NULL, NULL, "errors");
  open_client(&other, server.port, NULL, NULL);
  open_client(&third, server.port, NULL, NULL);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, "errors"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&late, &third.client, "errors"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&waiter, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "errors") == 1, service_for(&other, 10));
  CHECK_EQUAL(queue_length(&redis, "errors"), 1);
  CHECK(raw_run(&redis, "SET %s spoiled", lock_keys[key]));
  before = take_snapshot();
  CHECK_EQUAL(fairlock_try_acquire(&late, FAIRLOCK_RENEW), FAIRLOCK_REFUSED);
  CHECK(strncmp(client_error(&third), "WRONGTYPE", 9) == 0);
  check_untouched(&before);
  CHECK_EQUAL(fairlock_acquire(&late, 500, FAIRLOCK_RENEW), FAIRLOCK_REFUSED);
  check_untouched(&before);
  CHECK_EQUAL(fairlock_force_release(&third.client, "errors", 6, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_REFUSED);
  check_untouched(&before);
  CHECK_EQUAL(inspect(&third, "errors").status,
              key == 2 ? FAIRLOCK_OK : FAIRLOCK_REFUSED); /* which reads no scores of ours */
  check_untouched(&before);
  CHECK_EQUAL(fairlock_acquire(&handle, 0, 60000), FAIRLOCK_REFUSED);
  CHECK(says("WRONGTYPE"));
  check_untouched(&before);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_REFUSED);
  CHECK_EQUAL(fairlock_hold_count(&handle), 2);
  check_untouched(&before);
  CHECK_EQUAL(await_result(&other, &waiter), FAIRLOCK_REFUSED); /* with its next heartbeat */
  check_untouched(&before);
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&late), FAIRLOCK_OK);
  client_close(&other);
  client_close(&third);
  client_close(&client);
}

static void test_wrong_lock(void)
{
  spoil(0);
}

static void test_wrong_queue(void)
{
  spoil(1);
}

static void test_wrong_timeout(void)
{
  spoil(2);
}

static void test_wrong_ours(void)
{
  spoil(3);
}

/* Any other nonsense in our keys of the right types: it must not crash a script for good. */
static void test_nonsense(void)
{
  static const char *const spoilers[][2] = {
      {"HSET fairlock:{errors} token nonsense"},
      {"HSET fairlock:{errors} token -5 released -5"},
      {"HSET fairlock:{errors} token 99999999999999999999999"},
      {"HSET fairlock:{errors} token 1e300 holder x released nan"},
      {"RPUSH redisson_lock_queue:{errors} a b c"},
      {"RPUSH redisson_lock_queue:{errors} a a a a"},
      {"ZADD redisson_lock_timeout:{errors} inf a -inf b"},
      {"HSET fairlock:{errors} a nonsense b -1"},
      {"HSET fairlock:{errors} a nonsense b -1", "RPUSH redisson_lock_queue:{errors} a b"},
  };
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "errors"), FAIRLOCK_OK);
  for (size_t i = 0; i < sizeof spoilers / sizeof spoilers[0]; i++) {
    CHECK(raw_run(&redis, "FLUSHALL"));
    CHECK(raw_run(&redis, spoilers[i][0]));
    if (spoilers[i][1] != NULL) CHECK(raw_run(&redis, spoilers[i][1]));
    CHECK_EQUAL(inspect(&client, "errors").status, FAIRLOCK_OK);
    int status = fairlock_acquire(&handle, 15000, FAIRLOCK_RENEW);
    if (!CHECK_EQUAL(status, FAIRLOCK_OK))
      printf("# after %s: %s\n", spoilers[i][0], client_error(&client));
    CHECK(fairlock_token(&handle) > 1600000000000000);
    if (status == FAIRLOCK_OK) CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  }
  close_one();
}

/* Somebody has given a lock a TTL that no number of ours can hold. */
static void test_giant_ttl(void)
{
  begin();
  open_one(server.port, NULL, NULL, "errors");
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "PEXPIRE errors 9000000000000000000"));
  CHECK_EQUAL(inspect(&client, "errors").status, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 0, FAIRLOCK_RENEW), FAIRLOCK_OK); /* once more */
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  open_client(&other, server.port, NULL, NULL);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, "errors"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&waiter, FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_acquire(&waiter, 300, FAIRLOCK_RENEW), FAIRLOCK_TIMEOUT);
  CHECK_EQUAL(counters_of(&other.client).connections, 1);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  client_close(&other);
  close_one();
  CHECK(nothing_left(&redis, "errors"));
}

const struct check_test check_tests[] = {
    {"errors: AUTH, WRONGPASS, NOAUTH", test_auth},
    {"errors: the longest password", test_longest_password},
    {"errors: a database that is not there", test_bad_database},
    {"errors: too many clients", test_too_many_clients},
    {"errors: too many clients while waiting", test_too_many_clients_while_waiting},
    {"errors: a server without RESP3", test_no_resp3},
    {"errors: a server of another kind", test_no_redis},
    {"errors: LOADING", test_loading},
    {"errors: BUSY", test_busy_script},
    {"errors: READONLY", test_readonly},
    {"errors: MASTERDOWN", test_masterdown},
    {"errors: OOM", test_oom},
    {"errors: OOM does not stop renewals", test_oom_renewal},
    {"errors: OOM does not stop a release", test_oom_release},
    {"errors: OOM does not stop those who share", test_oom_shared},
    {"errors: OOM does not stop a downgrade", test_oom_downgrade},
    {"errors: OOM does not stop who breaks a share", test_oom_break},
    {"errors: NOREPLICAS", test_noreplicas},
    {"errors: MISCONF", test_misconf},
    {"errors: WRONGTYPE of the lock", test_wrong_lock},
    {"errors: WRONGTYPE of the queue", test_wrong_queue},
    {"errors: WRONGTYPE of the scores", test_wrong_timeout},
    {"errors: WRONGTYPE of our hash", test_wrong_ours},
    {"errors: nonsense in the keys", test_nonsense},
    {"errors: a giant TTL", test_giant_ttl},
    {NULL, NULL},
};
