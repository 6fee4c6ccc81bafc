/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Sentinel set-up does what rig.h says, and its servers behave as the library expects: tested
 * by raw connections, without the library.
 */
#include "rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct rig rig;
static struct raw one, two;

/* Runs a command, and checks how the error begins that it must give. */
#define REFUSED(raw, with, ...) CHECK(!raw_run((raw), __VA_ARGS__) && raw_refused((raw), (with)))

static struct raw *ask(int node)
{
  return node_raw(&rig.node[node]);
}

static void test_sentinels(void)
{
  sentinels_start(&rig, NULL);
  for (int i = 3; i < 6; i++) {
    CHECK_EQUAL(sentinel_names(&rig, i), 0);
    CHECK(strcmp(node_role(&rig.node[i]), "sentinel") == 0);
    CHECK_EQUAL(raw_number(ask(i), "SENTINEL GET-MASTER-ADDR-BY-NAME nobody"), -1);
  }
  CHECK(strcmp(node_role(&rig.node[0]), "master") == 0);
  for (int i = 1; i < 3; i++) {
    CHECK(strcmp(node_role(&rig.node[i]), "slave") == 0);
    REFUSED(ask(i), "READONLY", "SET door 1");
  }
  CHECK(raw_run(ask(0), "SET door 1"));
  CHECK_EQUAL(raw_number(ask(0), "WAIT 2 20000"), 2);
  char url[200], wanted[200];
  rig_url(&rig, 4, url, sizeof url);
  (void)snprintf(wanted, sizeof wanted,
                 "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/doors", rig.node[4].port,
                 rig.node[5].port, rig.node[3].port);
  CHECK(strcmp(url, wanted) == 0);
  rig_stop(&rig);
}

/* A user of their own, and a password of the servers: without them, nobody is served. */
static void test_passwords(void)
{
  static const struct rig_options options = {
      .password = "open", .sentinel_user = "guide", .sentinel_password = "sesame"};
  sentinels_start(&rig, &options);
  CHECK(raw_open(&one, rig.node[3].port));
  REFUSED(&one, "NOAUTH", "SENTINEL GET-MASTER-ADDR-BY-NAME " SERVICE);
  CHECK(!raw_run(&one, "AUTH sesame"));
  CHECK(raw_run(&one, "AUTH guide sesame"));
  CHECK_EQUAL(raw_number(&one, "SENTINEL GET-MASTER-ADDR-BY-NAME " SERVICE), 2);
  raw_close(&one);
  CHECK(raw_open(&one, rig.node[0].port));
  REFUSED(&one, "NOAUTH", "GET door");
  raw_close(&one);
  node_kill(&rig.node[0]);
  CHECK(sentinels_promote(&rig, 0) > 0);
  rig_stop(&rig);
}

static void test_password_without_user(void)
{
  static const struct rig_options options = {.sentinel_password = "sesame"};
  sentinels_start(&rig, &options);
  CHECK(raw_open(&one, rig.node[3].port));
  REFUSED(&one, "NOAUTH", "SENTINEL GET-MASTER-ADDR-BY-NAME " SERVICE);
  CHECK(raw_run(&one, "AUTH sesame"));
  raw_close(&one);
  rig_stop(&rig);
}

static void test_killed_master(void)
{
  sentinels_start(&rig, NULL);
  CHECK(raw_run(ask(0), "SET door 1"));
  CHECK_EQUAL(raw_number(ask(0), "WAIT 2 20000"), 2);
  int64_t killed = now_ms();
  node_kill(&rig.node[0]);
  int master = sentinels_promote(&rig, 0);
  if (!CHECK(master == 1 || master == 2)) return;
  printf("# promoted after %" PRId64 " ms\n", now_ms() - killed);
  CHECK_EQUAL(raw_number(ask(master), "GET door"), 1);
  CHECK(raw_run(ask(master), "SET door 2"));
  node_revive(&rig.node[0]);
  CHECK(node_becomes(&rig.node[0], "slave") && node_follows(&rig.node[0]));
  CHECK_EQUAL(raw_number(ask(0), "GET door"), 2);
  for (int i = 3; i < 6; i++)
    CHECK_EQUAL(sentinel_names(&rig, i), master);
  rig_stop(&rig);
}

/* It wakes as a master, knows nothing of the promotion, and takes writes until it is told. */
static void test_frozen_master(void)
{
  sentinels_start(&rig, NULL);
  CHECK(node_open(&rig.node[0], &one));
  CHECK(raw_run(&one, "SET door 1"));
  node_freeze(&rig.node[0]);
  int master = sentinels_promote(&rig, 0);
  CHECK(master > 0);
  raw_send(&one, "SET door 2"); /* it arrives before anything that the Sentinels send */
  node_thaw(&rig.node[0]);
  CHECK(raw_reply(&one) && strcmp(one.element[0].text, "OK") == 0);
  CHECK(node_becomes(&rig.node[0], "slave"));
  CHECK(!raw_run(&one, "PING") && one.count == 0); /* the Sentinel killed the connection */
  raw_close(&one);
  CHECK(node_follows(&rig.node[0]));
  CHECK_EQUAL(raw_number(ask(0), "GET door"), 1);
  rig_stop(&rig);
}

/* How many replicas a Sentinel takes for replicas, and not for the masters that they were before. */
static int known_replicas(int sentinel)
{
  struct raw *raw = ask(sentinel);
  int known = 0;
  int64_t count = raw_number(raw, "SENTINEL SLAVES " SERVICE);
  for (size_t i = 0; count > 0 && i + 1 < raw->count; i++) {
    known += strcmp(raw->element[i].text, "role-reported") == 0 &&
             strcmp(raw->element[i + 1].text, "slave") == 0;
  }
  return known;
}

/* When a fail-over has settled, no Sentinel will correct a replica, which may be the next master. */
static void test_settled(void)
{
  sentinels_start(&rig, NULL);
  node_freeze(&rig.node[0]);
  int master = sentinels_promote(&rig, 0);
  node_thaw(&rig.node[0]);
  if (!CHECK(master > 0) || !CHECK(sentinels_settle(&rig, master))) return;
  for (int i = 3; i < 6; i++)
    CHECK_EQUAL(known_replicas(i), 2);
  CHECK(sentinels_fail_over(&rig, master) >= 0);
  rig_stop(&rig);
}

static void test_manual_failover(void)
{
  sentinels_start(&rig, NULL);
  CHECK(node_open(&rig.node[0], &one));
  CHECK(raw_run(&one, "SET door 1"));
  CHECK(sentinels_fail_over(&rig, 0) > 0);
  CHECK(node_becomes(&rig.node[0], "slave"));
  CHECK(!raw_run(&one, "PING") && one.count == 0);
  raw_close(&one);
  rig_stop(&rig);
}

/* With one Sentinel gone the other two are a majority; with two gone, the last is none. */
static void test_dead_sentinels(void)
{
  sentinels_start(&rig, NULL);
  node_kill(&rig.node[3]);
  CHECK_EQUAL(sentinel_names(&rig, 3), -1);
  node_kill(&rig.node[0]);
  int master = sentinels_promote(&rig, 0);
  if (!CHECK(master > 0) || !CHECK(sentinels_settle(&rig, master))) return;
  node_kill(&rig.node[4]);
  node_kill(&rig.node[master]);
  CHECK(sentinels_be_patient(&rig, false));
  sleep_ms(5 * DOWN_AFTER_MS);
  CHECK_EQUAL(sentinel_names(&rig, 5), master);
  node_revive(&rig.node[4]);
  CHECK(sentinels_promote(&rig, master) > 0);
  rig_stop(&rig);
}

/* Two masters that both take writes, for as long as the partition lasts. */
static void test_split_brain(void)
{
  static const struct rig_options options = {.parted = true};
  sentinels_start(&rig, &options);
  CHECK(node_open(&rig.node[0], &one));
  CHECK(raw_run(&one, "SET door 1"));
  CHECK_EQUAL(raw_number(&one, "WAIT 2 20000"), 2);
  rig_part(&rig, 1U << 0);
  CHECK(raw_run(&one, "SET door 2"));
  CHECK_EQUAL(raw_number(&one, "WAIT 1 500"), 0);
  int master = sentinels_promote(&rig, 0);
  if (!CHECK(master > 0) || !CHECK(sentinels_settle(&rig, master))) return;
  CHECK(raw_run(&one, "SET door 3"));   /* a client's connection of before */
  CHECK(node_open(&rig.node[0], &two)); /* and a new one */
  CHECK_EQUAL(raw_number(&two, "GET door"), 3);
  CHECK(strcmp(node_role(&rig.node[0]), "master") == 0);
  CHECK_EQUAL(raw_number(ask(master), "GET door"), 1);
  CHECK(raw_run(ask(master), "SET door 4"));
  raw_send(&two, "WAIT 1 0");
  rig_part(&rig, 0);
  int64_t healed = now_ms();
  /* the Sentinel kills it, too */
  CHECK(!raw_reply_within(&two, MOVED_SOON) || raw_refused(&two, "UNBLOCKED"));
  CHECK(now_ms() < healed + MOVED_SOON);
  CHECK(node_becomes(&rig.node[0], "slave") && node_follows(&rig.node[0]));
  CHECK_EQUAL(raw_number(ask(0), "GET door"), 4);
  raw_close(&one);
  raw_close(&two);
  rig_stop(&rig);
}

/*
 * A replica that nobody has told of the promotion yet acknowledges what the old master writes when
 * the network is healed: one replica of two is not enough.
 */
static void test_replica_left_behind(void)
{
  static const struct rig_options options = {.parted = true};
  sentinels_start(&rig, &options);
  CHECK(node_open(&rig.node[0], &one));
  CHECK(raw_run(&one, "SET door 1"));
  CHECK_EQUAL(raw_number(&one, "WAIT 2 20000"), 2);
  node_freeze(&rig.node[2]);
  rig_part(&rig, 1U << 0);
  CHECK_EQUAL(sentinels_promote(&rig, 0), 1);
  for (int i = 3; i < 6; i++)
    node_kill(&rig.node[i]);
  CHECK(raw_run(&one, "SET door 2"));
  rig_part(&rig, 0);
  node_thaw(&rig.node[2]);
  CHECK_EQUAL(raw_number(&one, "WAIT 1 20000"), 1);
  CHECK(strcmp(node_role(&rig.node[1]), "master") == 0);
  CHECK_EQUAL(raw_number(ask(1), "GET door"), 1);
  /* had they been frozen, they would take the new master for silent, and promote the old one */
  for (int i = 3; i < 6; i++)
    node_revive(&rig.node[i]);
  CHECK(node_becomes(&rig.node[0], "slave") && sentinels_settle(&rig, 1));
  for (int i = 0; i < 3; i++)
    CHECK_EQUAL(raw_number(ask(i), "GET door"), 1);
  raw_close(&one);
  rig_stop(&rig);
}

/* min-replicas-to-write ends the old master's writes, but only after min-replicas-max-lag. */
static void test_min_replicas(void)
{
  static const struct rig_options options = {
      .parted = true, .config = "min-replicas-to-write 1\nmin-replicas-max-lag 3\n"};
  sentinels_start(&rig, &options);
  CHECK(node_open(&rig.node[0], &one));
  CHECK(raw_run(&one, "SET door 1"));
  rig_part(&rig, 1U << 0);
  int64_t parted = now_ms();
  CHECK(raw_run(&one, "SET door 2"));
  while (raw_run(&one, "SET door 3") && now_ms() < parted + MOVED_SOON)
    sleep_ms(20);
  CHECK(raw_refused(&one, "NOREPLICAS"));
  printf("# took writes for %" PRId64 " ms\n", now_ms() - parted);
  CHECK(raw_run(&one, "EVAL %s 1 door", "return redis.call('set', KEYS[1], 4)") ==
        (server_version() < 700)); /* 6.2 does not keep scripts from writing */
  CHECK(sentinels_promote(&rig, 0) > 0);
  raw_close(&one);
  rig_stop(&rig);
}

/* The greeting says what a server is. */
static void test_greetings(void)
{
  sentinels_start(&rig, NULL);
  for (int i = 0; i < NODES; i++) {
    CHECK(node_greets(&rig.node[i], "mode", i < 3 ? "standalone" : "sentinel"));
    CHECK(i >= 3 || node_greets(&rig.node[i], "role", i == 0 ? "master" : "replica"));
  }
  rig_stop(&rig);
}

const struct check_test check_tests[] = {
    {"rig_sentinels", test_sentinels},
    {"rig_sentinels_with_a_user", test_passwords},
    {"rig_sentinels_with_a_password", test_password_without_user},
    {"rig_sentinel_greetings", test_greetings},
    {"rig_killed_master", test_killed_master},
    {"rig_frozen_master_wakes", test_frozen_master},
    {"rig_settled", test_settled},
    {"rig_manual_failover", test_manual_failover},
    {"rig_dead_sentinels", test_dead_sentinels},
    {"rig_split_brain", test_split_brain},
    {"rig_replica_left_behind", test_replica_left_behind},
    {"rig_min_replicas", test_min_replicas},
    {NULL, NULL}};
