/* The library in a cluster: any seed, masters that die or are demoted, slots that move. */
#include "scene.h"

#include <stdio.h>

/* Each node as the first of the address, one of the others dead. */
static void test_seeds(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), owner = cluster_owner(&rig, slot);
  node_kill(&rig.node[(owner + 1) % 3 + 3]); /* a replica of another slot's */
  for (int i = 0; i < NODES; i++) {
    struct connection connection = scene_connection(i, 0);
    contest_begin(&contest, DOOR);
    (void)contest_pass(&contest, &connection, FAIRLOCK_RENEW, 1);
    CHECK(contest_end(&contest));
    CHECK_EQUAL(atomic_load(&contest.contender[0].status), FAIRLOCK_OK);
    CHECK_EQUAL(atomic_load(&contest.contender[0].released), FAIRLOCK_OK);
  }
  rig_stop(&rig);
}

static void test_killed_master(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), owner = cluster_owner(&rig, slot);
  struct connection connection = scene_connection(0, 1);
  scene_gather(&connection, owner);
  node_kill(&rig.node[owner]);
  CHECK_EQUAL(cluster_promote(&rig, slot, owner), owner + 3);
  node_revive(&rig.node[owner]); /* the replica that has to acknowledge now */
  CHECK(scene_renewed(owner + 3));
  scene_end();
}

static void fail_over(const char *how)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), owner = cluster_owner(&rig, slot);
  struct connection connection = scene_connection(owner, 0);
  scene_gather(&connection, owner);
  CHECK(cluster_fail_over(&rig, owner + 3, how));
  CHECK_EQUAL(cluster_promote(&rig, slot, owner), owner + 3);
  CHECK(scene_renewed(owner + 3));
  scene_end();
}

static void test_failover(void)
{
  fail_over("");
}

static void test_failover_forced(void)
{
  fail_over("FORCE");
}

static void test_takeover(void)
{
  fail_over("TAKEOVER");
}

/* Stops for two seconds at each key: longer than the client waits between two tries. */
static void test_resharding(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), from = cluster_owner(&rig, slot), to = (from + 1) % 3;
  struct connection connection = scene_connection(from, 0);
  scene_gather(&connection, from);
  CHECK(cluster_move_begin(&rig, slot, from, to));
  for (int left = 1; left > 0;) {
    sleep_ms(2000);
    left = cluster_move_key(&rig, slot, from, to);
    CHECK(left >= 0);
    CHECK(contest_believes(&contest, 0));
  }
  sleep_ms(2000);
  CHECK(cluster_move_end(&rig, slot, from, to));
  CHECK(scene_renewed(to));
  scene_end();
}

static void test_resharding_in_one_go(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), from = cluster_owner(&rig, slot), to = (from + 1) % 3;
  struct connection connection = scene_connection(from, 0);
  scene_gather(&connection, from);
  bool can = server_is_valkey() && server_version() >= 900;
  CHECK_EQUAL(cluster_move_slot(&rig, slot, from, to), can);
  CHECK(scene_renewed(can ? to : from));
  scene_end();
}

const struct check_test check_tests[] = {
    {"cluster_seeds", test_seeds},
    {"cluster_killed_master", test_killed_master},
    {"cluster_failover", test_failover},
    {"cluster_failover_forced", test_failover_forced},
    {"cluster_takeover", test_takeover},
    {"cluster_resharding", test_resharding},
    {"cluster_resharding_in_one_go", test_resharding_in_one_go},
    {NULL, NULL}};
