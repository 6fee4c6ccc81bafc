/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds that do not belong together: real servers on their own. Clients that name them in different
 * orders, or find one of them frozen, must not both hold a lock.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "contest.h"
#include "support/server.h"

#define NAME "stranger"

static struct server other;
static struct client client;
static struct fairlock handle;

/* A client of two seeds; and what becomes of a try to acquire. */
static int try_at(const char *scheme, int port, int next_port, char text[FAIRLOCK_ERROR_SIZE])
{
  static char url[80];
  struct connection connection = {.url = url};
  (void)snprintf(url, sizeof url, "%s://127.0.0.1:%d,127.0.0.1:%d", scheme, port, next_port);
  CHECK(connect_by_url(&client, &connection) == NULL);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, NAME), FAIRLOCK_OK);
  int status = fairlock_try_acquire(&handle, FAIRLOCK_RENEW);
  if (status == FAIRLOCK_OK) CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  fairlock_error(&client.client, text, FAIRLOCK_ERROR_SIZE);
  AWAIT(fairlock_start_deinit(&handle) == FAIRLOCK_OK, fairlock_poll(&client.client, 100));
  client_close(&client);
  return status;
}

/* Whoever begins with either server, also while the other is frozen, is refused. */
static void all_refused(const char *scheme, int status, const char *why)
{
  char text[FAIRLOCK_ERROR_SIZE];
  begin();
  server_start(&other, NULL);
  CHECK_EQUAL(try_at(scheme, server.port, other.port, text), status);
  CHECK(strstr(text, why) != NULL);
  CHECK_EQUAL(try_at(scheme, other.port, server.port, text), status);
  CHECK(strstr(text, why) != NULL);
  CHECK_EQUAL(kill(other.pid, SIGSTOP), 0);
  /* what is said last is that the frozen one cannot be reached */
  CHECK(try_at(scheme, server.port, other.port, text) < 0);
  CHECK(try_at(scheme, other.port, server.port, text) < 0);
  CHECK_EQUAL(kill(other.pid, SIGCONT), 0);
  server_stop(&other);
}

static void test_cluster_of_none(void)
{
  all_refused("redis+cluster", FAIRLOCK_REFUSED, "not a node of a cluster");
}

static void test_seeds_of_their_own(void)
{
  all_refused("redis", FAIRLOCK_UNAVAILABLE, "without replicas");
}

/* A master that gets a replica may be used, and so may the replica, when it has been promoted. */
static void test_seeds_of_a_group(void)
{
  static struct raw replica;
  char text[FAIRLOCK_ERROR_SIZE];
  begin();
  server_start(&other, NULL);
  CHECK(raw_open(&replica, other.port));
  CHECK(raw_run(&replica, "REPLICAOF 127.0.0.1 %d", server.port));
  AWAIT(strstr(raw_text(&redis, "INFO replication"), "state=online") != NULL, sleep_ms(50));
  AWAIT(strstr(raw_text(&replica, "INFO replication"), "link_status:up") != NULL, sleep_ms(50));
  CHECK_EQUAL(try_at("redis", server.port, other.port, text), FAIRLOCK_OK);
  CHECK_EQUAL(try_at("redis", other.port, server.port, text), FAIRLOCK_OK);
  /* it proves that it was a replica by what it has copied since */
  CHECK(raw_run(&redis, "SET written x"));
  CHECK_EQUAL(raw_number(&redis, "WAIT 1 %d", SOON), 1);
  CHECK(raw_run(&replica, "REPLICAOF NO ONE"));
  CHECK_EQUAL(kill(server.pid, SIGSTOP), 0);
  CHECK_EQUAL(try_at("redis", other.port, server.port, text), FAIRLOCK_OK);
  CHECK_EQUAL(kill(server.pid, SIGCONT), 0);
  raw_close(&replica);
  server_stop(&other);
}

const struct check_test check_tests[] = {
    {"a cluster of servers that are none", test_cluster_of_none},
    {"seeds that are masters of their own", test_seeds_of_their_own},
    {"seeds of a replication group", test_seeds_of_a_group},
    {NULL, NULL},
};
