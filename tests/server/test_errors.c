/*
 * The server says no: each refusal comes out as its own status with the server's text, and a script that is stopped
 * half-way, by a missing ACL rule, by lack of memory or by a key of a wrong type, leaves nothing worse than before.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

static struct client client;
static struct fairlock handle;

/* A client that gives up soon, and a handle. */
static void open_client(struct client *opened, int port, const char *user, const char *password)
{
  client_prepare(opened, port);
  opened->config.user = user;
  opened->config.password = password;
  opened->config.offline_ms = 1000;
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

/* What every operation comes to while the server refuses all of them for the same reason. */
static void check_all(int expected, const char *text)
{
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), expected);
  CHECK(says(text));
  CHECK_EQUAL(fairlock_acquire(&handle, 300, FAIRLOCK_RENEW), expected);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), expected);
  CHECK(now_ms() - began < 8000);
  CHECK_EQUAL(fairlock_force_release(&client.client, "errors", 6), expected);
  CHECK_EQUAL(inspect(&client, "errors").status, expected);
  CHECK(says(text));
  CHECK_EQUAL(fairlock_held(&handle), 0);
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
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_REFUSED);
  CHECK(says("ERR max number of clients reached"));
  raw_close(&first);
  CHECK_EQUAL(fairlock_acquire(&handle, 5000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  close_one();
  raw_close(&second);
  server_stop(&own);
}

const struct check_test check_tests[] = {
    {"errors: AUTH, WRONGPASS, NOAUTH", test_auth},
    {"errors: a database that is not there", test_bad_database},
    {"errors: too many clients", test_too_many_clients},
    {NULL, NULL},
};
