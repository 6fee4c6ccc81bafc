/* SPDX-License-Identifier: Apache-2.0 */
/* The library with Sentinel: its master dies, freezes, is demoted, or cut off. */
#include "scene.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Shorter than usual, because the tests wait until it is over. */
#define SPLIT_LEASE_MS 6000

static void test_killed_master(void)
{
  sentinels_start(&rig, NULL);
  struct connection connection = scene_connection(3, 1);
  scene_gather(&connection, 0);
  node_kill(&rig.node[0]);
  int master = sentinels_promote(&rig, 0);
  if (!CHECK(master > 0)) return;
  CHECK(scene_renewed(master));
  scene_end();
}

static void test_keeper(void)
{
  sentinels_start(&rig, NULL);
  struct connection connection = scene_connection(3, 1);
  scene_keeper(&connection);
  node_kill(&rig.node[0]);
  if (!CHECK(sentinels_promote(&rig, 0) > 0)) return;
  scene_keeper_ends(&connection);
}

static void test_frozen_master(void)
{
  sentinels_start(&rig, NULL);
  struct connection connection = scene_connection(3, 2);
  scene_gather(&connection, 0);
  node_freeze(&rig.node[0]);
  int master = sentinels_promote(&rig, 0);
  if (!CHECK(master > 0)) return;
  node_thaw(&rig.node[0]);
  CHECK(node_becomes(&rig.node[0], "slave"));
  CHECK(scene_renewed(master));
  scene_end();
}

static void test_manual_failover(void)
{
  sentinels_start(&rig, NULL);
  struct connection connection = scene_connection(3, 0);
  scene_gather(&connection, 0);
  int master = sentinels_fail_over(&rig, 0);
  if (!CHECK(master > 0)) return;
  CHECK(scene_renewed(master));
  scene_end();
}

/* The address begins with the dead one, both for the first connection and for the next. */
static void test_first_sentinel_dead(void)
{
  sentinels_start(&rig, NULL);
  node_kill(&rig.node[3]);
  struct connection connection = scene_connection(3, 0);
  scene_gather(&connection, 0);
  node_kill(&rig.node[0]);
  int master = sentinels_promote(&rig, 0);
  if (!CHECK(master > 0)) return;
  CHECK(scene_renewed(master));
  scene_end();
}

static void test_unknown_service(void)
{
  static struct client client;
  char url[400];
  sentinels_start(&rig, NULL);
  rig_url(&rig, 3, url, sizeof url);
  memcpy(strstr(url, "/" SERVICE), "/walls", strlen("/walls"));
  struct connection connection = {.url = url};
  if (!CHECK(connect_by_url(&client, &connection) == NULL)) return;
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_REFUSED);
  CHECK(strstr(client_error(&client), "service") != NULL);
  client_close(&client);
  rig_stop(&rig);
}

/* The status that a new client gets when it connects. */
static int connecting(const struct connection *connection)
{
  static struct client client;
  if (!CHECK(connect_by_url(&client, connection) == NULL)) return FAIRLOCK_PENDING;
  int status = fairlock_connect(&client.client);
  client_close(&client);
  return status;
}

/*
 * They are needed to find the master, not to stay with it. A client whose connection breaks
 * meanwhile is back when one of them is.
 */
static void test_all_sentinels_dead(void)
{
  sentinels_start(&rig, NULL);
  struct connection connection = scene_connection(3, 0);
  connection.lease_ms = 30000; /* of which it waits for a third, with nobody to connect to */
  scene_gather(&connection, 0);
  CHECK_EQUAL(connecting(&connection), FAIRLOCK_OK);
  for (int i = 3; i < NODES; i++)
    node_kill(&rig.node[i]);
  CHECK(scene_renewed(0));
  CHECK_EQUAL(connecting(&connection), FAIRLOCK_UNREACHABLE);
  CHECK(raw_run(node_raw(&rig.node[0]), "CLIENT KILL TYPE normal"));
  CHECK(raw_run(node_raw(&rig.node[0]), "CLIENT KILL TYPE pubsub"));
  CHECK_EQUAL(raw_number(node_raw(&rig.node[0]), "PUBSUB CHANNELS"), 0);
  node_revive(&rig.node[4]);
  CHECK(scene_renewed(0));
  scene_end();
}

/* The Sentinels' and the servers' own: with all of them through a fail-over, DENIED without one. */
static void test_passwords(void)
{
  struct rig_options options = {
      .password = "data", .sentinel_user = "warden", .sentinel_password = "watch"};
  sentinels_start(&rig, &options);
  struct connection connection = scene_connection(3, 0);
  CHECK_EQUAL(connecting(&connection), FAIRLOCK_DENIED);
  connection.password = options.password;
  CHECK_EQUAL(connecting(&connection), FAIRLOCK_DENIED);
  connection.sentinel_password = options.sentinel_password; /* of the default user, which is off */
  CHECK_EQUAL(connecting(&connection), FAIRLOCK_DENIED);
  connection.sentinel_user = options.sentinel_user;
  connection.password = NULL;
  CHECK_EQUAL(connecting(&connection), FAIRLOCK_DENIED);
  connection.password = "date";
  CHECK_EQUAL(connecting(&connection), FAIRLOCK_DENIED);
  connection.password = options.password;
  scene_gather(&connection, 0);
  int master = sentinels_fail_over(&rig, 0);
  if (!CHECK(master > 0)) return;
  CHECK(scene_renewed(master));
  scene_end();
}

/*
 * A holder stays with the old master, another contender goes to the new one. Returns how long both
 * believed. The network heals only when the second has held for a while, or not at all.
 */
static int64_t split(const char *what, const char *config, int replicas)
{
  struct rig_options options = {.parted = true, .config = config};
  sentinels_start(&rig, &options);
  struct connection connection = scene_connection(3, replicas);
  connection.lease_ms = SPLIT_LEASE_MS;
  contest_begin(&contest, DOOR);
  int first = contest_hold(&contest, &connection, FAIRLOCK_RENEW);
  CHECK(contest_holds(&contest, first));
  rig_part(&rig, 1U << 0);
  int master = sentinels_promote(&rig, 0);
  CHECK(master > 0 && sentinels_settle(&rig, master));
  int second = contest_hold(&contest, &connection, FAIRLOCK_RENEW);
  /* with two replicas asked for and one left, it holds only after the healing */
  int64_t until = now_ms() + (replicas < 2 ? MOVED_SOON : 3 * SPLIT_LEASE_MS);
  while (!contest_believes(&contest, second) && now_ms() < until)
    sleep_ms(10);
  sleep_ms(SPLIT_LEASE_MS);
  rig_part(&rig, 0);
  CHECK(contest_holds(&contest, second));
  CHECK(contest_end(&contest));
  struct verdict verdict = contest_verdict(&contest);
  printf("# split brain, %-34s two believers for %6" PRId64 " ms\n", what,
         verdict.overlap_us / 1000);
  CHECK_EQUAL(verdict.tokens, 0);
  rig_stop(&rig);
  return verdict.overlap_us;
}

/*
 * A master that is back before the Sentinels miss it, with all of its data: the hold and the queue go
 * on. lock/README.md says what happens to replicas = all without its data; the next test looks.
 */
static void test_restarted_with_its_data(void)
{
  sentinels_start(&rig, &(struct rig_options){.config = "appendonly yes\nappendfsync always\n"});
  struct connection connection = scene_connection(3, 2);
  scene_gather(&connection, 0);
  node_revive(&rig.node[0]);
  CHECK(node_becomes(&rig.node[0], "master"));
  CHECK(scene_renewed(0));
  scene_end();
}

/* Its replicas copy that it is empty, and acknowledge a second hold. The first finds out. */
static void test_restarted_empty(void)
{
  sentinels_start(&rig, NULL);
  struct connection connection = scene_connection(3, 2);
  contest_begin(&contest, DOOR);
  int first = contest_hold(&contest, &connection, FAIRLOCK_RENEW);
  CHECK(contest_holds(&contest, first));
  int second = contest_hold(&contest, &connection, FAIRLOCK_RENEW);
  node_revive(&rig.node[0]);
  if (CHECK(node_becomes(&rig.node[0], "master"))) {
    CHECK(contest_over(&contest, first)); /* lost */
    CHECK(contest_holds(&contest, second));
  }
  CHECK(contest_end(&contest));
  printf("# restarted empty, replicas 2 of 2: two believers for %6" PRId64 " ms\n",
         contest_verdict(&contest).overlap_us / 1000);
  rig_stop(&rig);
}

static const char min_replicas[] = "min-replicas-to-write 1\nmin-replicas-max-lag 2\n";

/* Nothing prevents it: the proof that the test can see two believers. */
static void test_split(void)
{
  CHECK(split("nothing against it:", NULL, 0) > 0);
}

/* The lag, and one more lease. */
static void test_split_min_replicas(void)
{
  CHECK(split("min-replicas-to-write 1:", min_replicas, 0) <
        (SPLIT_LEASE_MS + 4000) * (int64_t)1000);
}

static void test_split_replicas(void)
{
  CHECK_EQUAL(split("replicas 2 of 2:", NULL, 2), 0);
}

/* The one that acknowledged is on the other side, as is the one that is promoted. */
static void test_split_one_replica(void)
{
  CHECK_EQUAL(split("replicas 1 of 2:", NULL, 1), 0);
}

static void test_split_both(void)
{
  CHECK_EQUAL(split("both (replicas 2):", min_replicas, 2), 0);
}

const struct check_test check_tests[] = {
    {"sentinel_killed_master", test_killed_master},
    {"sentinel_keeper", test_keeper},
    {"sentinel_frozen_master_wakes", test_frozen_master},
    {"sentinel_manual_failover", test_manual_failover},
    {"sentinel_first_dead", test_first_sentinel_dead},
    {"sentinel_unknown_service", test_unknown_service},
    {"sentinel_all_dead", test_all_sentinels_dead},
    {"sentinel_passwords", test_passwords},
    {"sentinel_restarted_with_its_data", test_restarted_with_its_data},
    {"sentinel_restarted_empty", test_restarted_empty},
    {"sentinel_split", test_split},
    {"sentinel_split_min_replicas", test_split_min_replicas},
    {"sentinel_split_one_replica", test_split_one_replica},
    {"sentinel_split_replicas", test_split_replicas},
    {"sentinel_split_both", test_split_both},
    {NULL, NULL}};
