/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Odd redirections, by the test's own server: MOVED without a host, to an unknown host, to nowhere,
 * in a circle. The real server beside it is not in a cluster, and serves everybody.
 */
#include <stdio.h>
#include <string.h>

#include "contest.h"
#include "fairlock_share.h"
#include "sender.h"

#define NAME "odd"

/* Patience of a wait that leads to nothing. */
#define PATIENCE_MS 4000

static struct sender first, second;
static struct client client;
static struct fairlock *handle;
static struct fairlock alone;
static struct fairlock_shared shared;
static bool shares; /* the handle does */

/* A client that begins at a server, which need not be a node of a cluster. */
static void set_up(const char *host, int port)
{
  static char url[80];
  struct connection connection = {.url = url, .shares = shares};
  (void)snprintf(url, sizeof url, "redis://%s:%d", host, port);
  CHECK(connect_by_url(&client, &connection) == NULL);
  handle = shares ? &shared.handle : &alone;
  CHECK_EQUAL(shares ? fairlock_init_shared(&shared, &client.client, NAME, 2)
                     : fairlock_init(&alone, &client.client, NAME),
              FAIRLOCK_OK);
}

static void tear_down(void)
{
  AWAIT(fairlock_start_deinit(handle) == FAIRLOCK_OK, fairlock_poll(&client.client, 100));
  client_close(&client);
}

static void port_only(char place[64], const char *host, int port)
{
  (void)snprintf(place, 64, "%s:%d", host, port);
}

static bool is_served(void)
{
  bool served = CHECK_EQUAL(fairlock_acquire(handle, SOON, FAIRLOCK_RENEW), FAIRLOCK_OK);
  served &= CHECK_EQUAL(raw_number(&redis, "EXISTS " NAME), 1);
  return served && CHECK_EQUAL(fairlock_release(handle), FAIRLOCK_OK);
}

/* The same host on another port: the host of a seed, and of a server that we were redirected to. */
static void same_host(const char *host)
{
  static const char *const seeds[] = {"127.0.0.1", "localhost"};
  char place[64];
  begin();
  sender_start(&first);
  sender_start(&second);
  port_only(place, "localhost", second.port);
  sender_says(&first, NAME, place);
  port_only(place, host, server.port);
  sender_says(&second, NAME, place);
  for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
    set_up(seeds[i], second.port);
    CHECK(is_served());
    tear_down();
  }
  CHECK_EQUAL(second.control->calls, 2);
  set_up("127.0.0.1", first.port);
  CHECK(is_served());
  tear_down();
  CHECK_EQUAL(first.control->calls, 1);
  CHECK_EQUAL(second.control->calls, 3);
  sender_stop(&first);
  sender_stop(&second);
}

static void test_no_host(void)
{
  same_host("");
}

static void test_unknown_host(void)
{
  same_host("?");
}

static void test_shared(void)
{
  shares = true;
  same_host("");
  shares = false;
}

/*
 * Connections to a server, and to the other if there is one: at once at most as many as
 * redirections are followed in a row, and after that only with pauses.
 */
static void check_no_storm(const struct sender *other)
{
  enum { REDIRECTIONS = 4 };
  int calls = atomic_load(&first.control->calls);
  if (other != NULL) calls += atomic_load(&other->control->calls);
  printf("# %d connections in %d ms\n", calls, PATIENCE_MS);
  CHECK(calls > REDIRECTIONS);
  /* pauses of 25 ms at least, that grow to a second */
  CHECK(calls <= 1 + REDIRECTIONS + 12);
}

/* The longest name that a host can have. Looking it up fails; then another answer comes. */
static void test_long_host(void)
{
  char place[300], name[256];
  begin();
  sender_start(&first);
  memset(name, 'a', sizeof name - 1);
  name[sizeof name - 1] = 0;
  (void)snprintf(place, sizeof place, "%s:%d", name, server.port);
  sender_says(&first, NAME, place);
  set_up("127.0.0.1", first.port);
  CHECK_EQUAL(fairlock_acquire(handle, PATIENCE_MS, FAIRLOCK_RENEW), FAIRLOCK_UNREACHABLE);
  check_no_storm(NULL);
  port_only(place, "127.0.0.1", server.port);
  sender_says(&first, NAME, place);
  CHECK(is_served());
  tear_down();
  sender_stop(&first);
}

/* Each sends to the other, or one to itself. */
static void circle(struct sender *other)
{
  char place[64];
  begin();
  sender_start(&first);
  if (other != NULL) sender_start(other);
  port_only(place, "127.0.0.1", other != NULL ? other->port : first.port);
  sender_says(&first, NAME, place);
  port_only(place, "127.0.0.1", first.port);
  if (other != NULL) sender_says(other, NAME, place);
  set_up("127.0.0.1", first.port);
  CHECK_EQUAL(fairlock_acquire(handle, PATIENCE_MS, FAIRLOCK_RENEW), FAIRLOCK_UNREACHABLE);
  check_no_storm(other);
  port_only(place, "127.0.0.1", server.port);
  sender_says(&first, NAME, place);
  CHECK(is_served());
  tear_down();
  sender_stop(&first);
  if (other != NULL) sender_stop(other);
}

static void test_circle(void)
{
  circle(&second);
}

static void test_sent_to_itself(void)
{
  circle(NULL);
}

/* A redirection that no server would write is not followed, but reported. */
static void test_nonsense(void)
{
  static const char *const places[] = {"", "127.0.0.1", "127.0.0.1:", "host:port:", " ", "1 2 3"};
  begin();
  sender_start(&first);
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    sender_says(&first, NAME, places[i]);
    set_up("127.0.0.1", first.port);
    CHECK_EQUAL(fairlock_acquire(handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_WRONG_SHARD);
    CHECK(strncmp(client_error(&client), "MOVED", 5) == 0);
    tear_down();
  }
  /* of a slot that is not asked about */
  sender_says(&first, "even", "127.0.0.1:1");
  set_up("127.0.0.1", first.port);
  CHECK_EQUAL(fairlock_acquire(handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_WRONG_SHARD);
  tear_down();
  sender_stop(&first);
}

const struct check_test check_tests[] = {
    {"redirected_no_host", test_no_host},   {"redirected_unknown_host", test_unknown_host},
    {"redirected_shared", test_shared},     {"redirected_long_host", test_long_host},
    {"redirected_circle", test_circle},     {"redirected_to_itself", test_sent_to_itself},
    {"redirected_nonsense", test_nonsense}, {NULL, NULL}};
