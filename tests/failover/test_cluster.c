/* SPDX-License-Identifier: Apache-2.0 */
/* The library in a cluster: any seed, masters that die or are demoted, slots that move. */
#include "scene.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "support/counters.h"

#ifndef EXAMPLES
#define EXAMPLES "build/examples" /* the makefile says where they really are */
#endif

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

/* With FORCE and TAKEOVER a replica does not wait for the writes that it has not received yet. */
static bool has_all_waiters(int replica)
{
  struct raw *raw = node_raw(&rig.node[replica]);
  return raw_run(raw, "READONLY") && queue_reaches(raw, DOOR, WAITERS);
}

static void fail_over(const char *how)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), owner = cluster_owner(&rig, slot);
  struct connection connection = scene_connection(owner, 0);
  scene_gather(&connection, owner);
  CHECK(has_all_waiters(owner + 3));
  CHECK(cluster_fail_over(&rig, owner + 3, how));
  CHECK_EQUAL(cluster_promoted(&rig, slot, owner), owner + 3);
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

/* The result for a newcomer that waits only for a moment. */
static int coming(const struct connection *connection)
{
  static struct client client;
  struct fairlock handle;
  if (!CHECK(connect_by_url(&client, connection) == NULL)) return FAIRLOCK_PENDING;
  CHECK_EQUAL(fairlock_init(&handle, &client.client, DOOR), FAIRLOCK_OK);
  int status = fairlock_acquire(&handle, 1000, FAIRLOCK_RENEW);
  AWAIT(fairlock_start_deinit(&handle) == FAIRLOCK_OK, fairlock_poll(&client.client, 100));
  client_close(&client);
  return status;
}

/*
 * Stops for two seconds at each key: longer than the client waits between two tries. Only
 * operations whose offline_ms ends meanwhile fail.
 */
static void test_resharding(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), from = cluster_owner(&rig, slot), to = (from + 1) % 3;
  struct connection connection = scene_connection(from, 0);
  connection.lease_ms = 2 * SCENE_LEASE_MS; /* it is not extended before the end of the move */
  scene_gather(&connection, from);
  CHECK_EQUAL(coming(&connection), FAIRLOCK_TIMEOUT);
  CHECK(cluster_move_begin(&rig, slot, from, to));
  for (int left = 1; left > 0;) {
    sleep_ms(2000);
    left = cluster_move_key(&rig, slot, from, to);
    CHECK(left >= 0);
    CHECK(contest_believes(&contest, 0));
    if (left > 0) CHECK_EQUAL(coming(&connection), FAIRLOCK_UNAVAILABLE);
  }
  sleep_ms(2000);
  CHECK(cluster_move_end(&rig, slot, from, to));
  CHECK(scene_renewed(to));
  scene_end();
}

/* Moves what is left of a slot, and ends the move. */
static bool move_rest(int slot, int from, int to)
{
  int left = (int)raw_number(node_raw(&rig.node[from]), "CLUSTER COUNTKEYSINSLOT %d", slot);
  while (left > 0)
    left = cluster_move_key(&rig, slot, from, to);
  return left == 0 && cluster_move_end(&rig, slot, from, to);
}

/* Nobody tells a keeper that its slot has moved: it finds out when it next asks. */
static void test_keeper(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), from = cluster_owner(&rig, slot), to = (from + 1) % 3;
  struct connection connection = scene_connection(from, 0);
  scene_keeper(&connection);
  CHECK(cluster_move_begin(&rig, slot, from, to));
  CHECK(move_rest(slot, from, to));
  scene_keeper_ends(&connection);
}

/* The same when its node is demoted. */
static void test_keeper_failover(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), owner = cluster_owner(&rig, slot);
  struct connection connection = scene_connection(owner, 0);
  scene_keeper(&connection);
  CHECK(cluster_fail_over(&rig, owner + 3, ""));
  CHECK_EQUAL(cluster_promoted(&rig, slot, owner), owner + 3);
  scene_keeper_ends(&connection);
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

/*
 * While a slot moves, a script that has removed a key can no longer use that key, for it counts as
 * moved. All keys of a lock that is held and waited for are still there, so it is handed on.
 */
static void test_handover_in_resharding(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), from = cluster_owner(&rig, slot), to = (from + 1) % 3;
  struct connection connection = scene_connection(from, 0);
  contest_begin(&contest, DOOR);
  CHECK(contest_holds(&contest, contest_hold(&contest, &connection, FAIRLOCK_RENEW)));
  for (int i = 1; i <= 3; i++) {
    if (i == 2) (void)contest_hold(&contest, &connection, FAIRLOCK_RENEW);
    else (void)contest_pass(&contest, &connection, FAIRLOCK_RENEW, 20);
    CHECK(queue_reaches(node_raw(&rig.node[from]), DOOR, i));
  }
  CHECK(cluster_move_begin(&rig, slot, from, to));
  contest_let_go(&contest, 0);
  CHECK(contest_over(&contest, 0));
  CHECK_EQUAL(atomic_load(&contest.contender[0].released), FAIRLOCK_OK);
  CHECK(contest_over(&contest, 1));
  CHECK(contest_holds(&contest, 2));
  CHECK(move_rest(slot, from, to));
  CHECK(contest_believes(&contest, 2));
  CHECK(contest_end(&contest));
  for (int i = 0; i < 4; i++)
    CHECK_EQUAL(atomic_load(&contest.contender[i].released), FAIRLOCK_OK);
  CHECK(contest_good(&contest));
  CHECK_EQUAL(contest_disorder(&contest, 0, 3), 0);
  rig_stop(&rig);
}

/* All who wait have died: their release removes the lock and the queue. */
static void test_dead_waiters_in_resharding(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), from = cluster_owner(&rig, slot), to = (from + 1) % 3;
  struct connection connection = scene_connection(from, 0);
  scene_gather(&connection, from);
  for (int i = 1; i <= WAITERS; i++)
    contest_kill(&contest, i);
  sleep_ms(6000); /* more than their timeout */
  CHECK(cluster_move_begin(&rig, slot, from, to));
  contest_let_go(&contest, 0);
  CHECK(contest_over(&contest, 0));
  CHECK_EQUAL(atomic_load(&contest.contender[0].released), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(node_raw(&rig.node[from]), "CLUSTER COUNTKEYSINSLOT %d", slot), 1);
  CHECK(move_rest(slot, from, to));
  rig_stop(&rig);
}

/* A hold is broken, and the only waiter leaves. */
static void test_break_in_resharding(void)
{
  static struct client client;
  struct fairlock handle;
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), from = cluster_owner(&rig, slot), to = (from + 1) % 3;
  struct connection connection = scene_connection(from, 0);
  contest_begin(&contest, DOOR);
  CHECK(contest_holds(&contest, contest_hold(&contest, &connection, FAIRLOCK_RENEW)));
  (void)contest_hold(&contest, &connection, FAIRLOCK_RENEW);
  CHECK(queue_reaches(node_raw(&rig.node[from]), DOOR, 1));
  if (!CHECK(connect_by_url(&client, &connection) == NULL)) return;
  CHECK_EQUAL(fairlock_init(&handle, &client.client, DOOR), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&handle, 10000, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  int64_t until = now_ms() + MOVED_SOON;
  while (queue_length(node_raw(&rig.node[from]), DOOR) < 2 && now_ms() < until)
    fairlock_poll(&client.client, 10);
  CHECK(cluster_move_begin(&rig, slot, from, to));
  CHECK_EQUAL(fairlock_force_release(&client.client, DOOR, strlen(DOOR), FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_OK);
  CHECK(contest_holds(&contest, 1));
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_TIMEOUT);
  CHECK_EQUAL(raw_number(node_raw(&rig.node[from]), "CLUSTER COUNTKEYSINSLOT %d", slot), 2);
  CHECK(move_rest(slot, from, to));
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
  CHECK(contest_end(&contest));
  CHECK_EQUAL(atomic_load(&contest.contender[0].lost), 1);
  CHECK_EQUAL(atomic_load(&contest.contender[1].released), FAIRLOCK_OK);
  rig_stop(&rig);
}

/* The name of a lock on the same node as DOOR, in another slot. */
static void find_neighbour(int owner, char name[32])
{
  int slot = cluster_slot(&rig, DOOR), other = -1;
  for (int i = 0; other < 0 || other == slot || cluster_owner(&rig, other) != owner; i++) {
    (void)snprintf(name, 32, "scene:window:%d", i);
    other = cluster_slot(&rig, name);
  }
}

/* Both on one node at first; then the slot of one moves away while the other is held. */
static void test_two_slots(void)
{
  static struct client client;
  struct fairlock door, window;
  char name[32];
  cluster_start(&rig, NULL);
  int owner = cluster_owner(&rig, cluster_slot(&rig, DOOR)), to = (owner + 1) % 3;
  find_neighbour(owner, name);
  int slot = cluster_slot(&rig, name);
  struct connection connection = scene_connection(to, 0);
  connection.lease_ms = 30000;
  if (!CHECK(connect_by_url(&client, &connection) == NULL)) return;
  CHECK_EQUAL(fairlock_init(&door, &client.client, DOOR), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&window, &client.client, name), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&window, FAIRLOCK_RENEW), FAIRLOCK_OK); /* does not listen */
  CHECK_EQUAL(fairlock_release(&window), FAIRLOCK_OK);
  CHECK(cluster_move_begin(&rig, slot, owner, to));
  for (int left = (int)raw_number(node_raw(&rig.node[owner]), "CLUSTER COUNTKEYSINSLOT %d", slot);
       left > 0;)
    left = cluster_move_key(&rig, slot, owner, to);
  CHECK(cluster_move_end(&rig, slot, owner, to));
  uint32_t connects = counters_of(&client.client).connections;
  CHECK_EQUAL(fairlock_acquire(&window, 5000, FAIRLOCK_RENEW), FAIRLOCK_WRONG_SHARD);
  CHECK(strstr(client_error(&client), "MOVED") != NULL);
  uint32_t renewals = counters_of(&client.client).renewals;
  int64_t until = now_ms() + MOVED_SOON;
  while (counters_of(&client.client).renewals == renewals && now_ms() < until)
    service_for(&client, 10);
  CHECK(counters_of(&client.client).renewals > renewals);
  CHECK(fairlock_remaining_ms(&door) > 0);
  CHECK_EQUAL(client.losses, 0);
  CHECK_EQUAL(counters_of(&client.client).connections, connects);
  CHECK_EQUAL(fairlock_release(&door), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&window, 5000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&door, FAIRLOCK_RENEW), FAIRLOCK_WRONG_SHARD);
  CHECK(fairlock_remaining_ms(&window) > 0);
  CHECK_EQUAL(fairlock_release(&window), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&window), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  client_close(&client);
  rig_stop(&rig);
}

/* The name of a lock on a node. */
static void find_name(int owner, char name[32])
{
  int number = 0;
  do
    (void)snprintf(name, 32, "scene:%d:%d", owner, number++);
  while (cluster_owner(&rig, cluster_slot(&rig, name)) != owner);
}

static void pass_through(struct fairlock *door)
{
  CHECK_EQUAL(fairlock_acquire(door, 5000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(door), FAIRLOCK_OK);
  sleep_ms(50);
}

/* What is kept on one node is given back there before the client goes to another. */
static void test_kept_elsewhere(void)
{
  static struct client client;
  struct fairlock door, window;
  char name[32];
  cluster_start(&rig, NULL);
  int owner = cluster_owner(&rig, cluster_slot(&rig, DOOR));
  find_name((owner + 1) % 3, name);
  struct connection connection = scene_connection(owner, 0);
  connection.keep_ms = 20000;
  if (!CHECK(connect_by_url(&client, &connection) == NULL)) return;
  CHECK_EQUAL(fairlock_init(&door, &client.client, DOOR), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&window, &client.client, name), FAIRLOCK_OK);
  for (int i = 0; i < 3; i++) {
    /* behind a redirection the acquire is in doubt for a while, and its hold is not kept */
    AWAIT(raw_number(node_raw(&rig.node[owner]), "EXISTS " DOOR) == 1, pass_through(&door));
    CHECK_EQUAL(fairlock_acquire(&window, i % 2 == 0 ? 5000 : 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
    CHECK_EQUAL(raw_number(node_raw(&rig.node[owner]), "EXISTS " DOOR), 0);
    CHECK_EQUAL(fairlock_release(&window), FAIRLOCK_OK);
  }
  CHECK_EQUAL(fairlock_deinit(&window), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&door), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(node_raw(&rig.node[(owner + 1) % 3]), "EXISTS %s", name), 0);
  client_close(&client);
  rig_stop(&rig);
}

/* The same password on all nodes; a redirected client gives it again. */
static void test_password(void)
{
  static struct client client;
  struct rig_options options = {.password = "data"};
  cluster_start(&rig, &options);
  int owner = cluster_owner(&rig, cluster_slot(&rig, DOOR));
  struct connection connection = scene_connection((owner + 1) % 3, 0);
  if (!CHECK(connect_by_url(&client, &connection) == NULL)) return;
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_DENIED);
  client_close(&client);
  connection.password = options.password;
  scene_gather(&connection, owner);
  scene_end();
}

static bool renewed(struct raw *raw, const char *name)
{
  int64_t until = now_ms() + MOVED_SOON, before = INT64_MAX;
  while (now_ms() < until) {
    int64_t left = raw_number(raw, "PTTL %s", name);
    if (left > before) return true;
    before = left > 0 ? left : INT64_MAX;
    sleep_ms(50);
  }
  return false;
}

/*
 * The example: locks on all nodes, one of them with a neighbour in its slot. A master hands over
 * while it holds.
 */
static void test_example(void)
{
  static char names[4][40], line[80];
  const char *words[] = {EXAMPLES "/slots", NULL, names[0], names[1], names[2], names[3], NULL};
  int in, out;
  cluster_start(&rig, NULL);
  for (int i = 0; i < 3; i++)
    find_name(i, names[i]);
  (void)snprintf(names[3], sizeof names[3], "{%.31s}2", names[1]);
  words[1] = scene_connection(2, 0).url + strlen("redis+cluster://");
  pid_t pid = spawn_program(words, &in, &out);
  FILE *lines = fdopen(out, "r");
  if (!CHECK(lines != NULL && fgets(line, sizeof line, lines) != NULL)) return;
  CHECK_BYTES(line, strlen(line), "4 locks held by 3 clients\n",
              strlen("4 locks held by 3 clients\n"));
  for (int i = 0; i < 4; i++)
    CHECK_EQUAL(raw_number(node_raw(&rig.node[i == 3 ? 1 : i]), "HLEN %s", names[i]), 1);
  CHECK(cluster_fail_over(&rig, 4, ""));
  CHECK_EQUAL(cluster_promoted(&rig, cluster_slot(&rig, names[1]), 1), 4);
  CHECK(renewed(node_raw(&rig.node[4]), names[1]));
  CHECK(renewed(node_raw(&rig.node[4]), names[3]));
  (void)close(in);
  CHECK(fgets(line, sizeof line, lines) != NULL);
  CHECK_BYTES(line, strlen(line), "released, 0 lost\n", strlen("released, 0 lost\n"));
  CHECK_EQUAL(reap(pid), 0);
  (void)fclose(lines);
  for (int i = 0; i < 4; i++) {
    int owner = i == 1 || i == 3 ? 4 : i;
    CHECK_EQUAL(raw_number(node_raw(&rig.node[owner]), "EXISTS %s", names[i]), 0);
  }
  rig_stop(&rig);
}

/*
 * The owner is cut off from the others with its holder; another contender goes to its successor.
 * The only replica has to acknowledge.
 */
static void test_split(void)
{
  struct rig_options options = {.parted = true};
  cluster_start(&rig, &options);
  int slot = cluster_slot(&rig, DOOR), owner = cluster_owner(&rig, slot);
  struct connection connection = scene_connection((owner + 1) % 3, 1);
  connection.lease_ms = 6000;
  contest_begin(&contest, DOOR);
  int first = contest_hold(&contest, &connection, FAIRLOCK_RENEW);
  CHECK(contest_holds(&contest, first));
  rig_part(&rig, 1U << owner);
  CHECK_EQUAL(cluster_promote(&rig, slot, owner), owner + 3);
  int second = contest_hold(&contest, &connection, FAIRLOCK_RENEW);
  sleep_ms(2 * (int64_t)connection.lease_ms);
  CHECK(!contest_believes(&contest, first));
  rig_part(&rig, 0);
  CHECK(contest_holds(&contest, second));
  CHECK(contest_end(&contest));
  CHECK(contest_good(&contest));
  rig_stop(&rig);
}

const struct check_test check_tests[] = {
    {"cluster_seeds", test_seeds},
    {"cluster_killed_master", test_killed_master},
    {"cluster_failover", test_failover},
    {"cluster_failover_forced", test_failover_forced},
    {"cluster_takeover", test_takeover},
    {"cluster_resharding", test_resharding},
    {"cluster_keeper", test_keeper},
    {"cluster_keeper_failover", test_keeper_failover},
    {"cluster_resharding_in_one_go", test_resharding_in_one_go},
    {"cluster_handover_in_resharding", test_handover_in_resharding},
    {"cluster_dead_waiters_in_resharding", test_dead_waiters_in_resharding},
    {"cluster_break_in_resharding", test_break_in_resharding},
    {"cluster_two_slots", test_two_slots},
    {"cluster_kept_elsewhere", test_kept_elsewhere},
    {"cluster_password", test_password},
    {"cluster_example", test_example},
    {"cluster_split", test_split},
    {NULL, NULL}};
