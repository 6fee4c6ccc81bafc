/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster does what rig.h says, and its servers behave as the library expects: tested by raw
 * connections, without the library.
 */
#include "rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rig rig;
static struct raw one, two;

static struct raw *ask(int node)
{
  return node_raw(&rig.node[node]);
}

static bool sharded(void)
{
  return server_version() >= 700;
}

/* A node that is neither the owner of a slot nor its replica. */
static int other_master(int owner)
{
  return (owner + 1) % 3;
}

static bool moved_to(const struct raw *raw, int slot, int node)
{
  char wanted[64];
  (void)snprintf(wanted, sizeof wanted, "MOVED %d 127.0.0.1:%d", slot, rig.node[node].port);
  return raw->count > 0 && strcmp(raw->element[0].text, wanted) == 0;
}

static void test_cluster(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, "door"), owner = cluster_owner(&rig, slot);
  int replica = cluster_replica(&rig, owner);
  CHECK_EQUAL(replica, owner + 3);
  CHECK(raw_run(ask(owner), "SET door 1"));
  CHECK_EQUAL(raw_number(ask(owner), "WAIT 1 20000"), 1);
  CHECK(!raw_run(ask(other_master(owner)), "GET door"));
  CHECK(moved_to(ask(other_master(owner)), slot, owner));
  CHECK(!raw_run(ask(replica), "GET door"));
  CHECK(moved_to(ask(replica), slot, owner));
  CHECK(!raw_run(ask(other_master(owner)), "EVALSHA %s 1 door",
                 "0123456789012345678901234567890123456789"));
  CHECK(moved_to(ask(other_master(owner)), slot, owner));
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(cluster_owner(&rig, SLOTS * i / 3), i);
    CHECK_EQUAL(cluster_owner(&rig, SLOTS * (i + 1) / 3 - 1), i);
  }
  char url[200];
  rig_url(&rig, 5, url, sizeof url);
  CHECK(strncmp(url, "redis+cluster://127.0.0.1:", 26) == 0);
  CHECK_EQUAL(atoi(url + 26), rig.node[5].port);
  rig_stop(&rig);
}

static void test_cluster_kill(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, "door"), owner = cluster_owner(&rig, slot);
  CHECK(raw_run(ask(owner), "SET door 1"));
  CHECK_EQUAL(raw_number(ask(owner), "WAIT 1 20000"), 1);
  int64_t killed = now_ms();
  node_kill(&rig.node[owner]);
  CHECK_EQUAL(cluster_promote(&rig, slot, owner), owner + 3);
  printf("# promoted after %" PRId64 " ms\n", now_ms() - killed);
  CHECK_EQUAL(raw_number(ask(owner + 3), "GET door"), 1);
  node_revive(&rig.node[owner]);
  CHECK(node_becomes(&rig.node[owner], "slave") && node_follows(&rig.node[owner]));
  rig_stop(&rig);
}

static void test_cluster_freeze(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, "door"), owner = cluster_owner(&rig, slot);
  CHECK(raw_run(ask(owner), "SET door 1"));
  CHECK_EQUAL(raw_number(ask(owner), "WAIT 1 20000"), 1);
  node_freeze(&rig.node[owner]);
  CHECK_EQUAL(cluster_promote(&rig, slot, owner), owner + 3);
  node_thaw(&rig.node[owner]);
  CHECK(node_becomes(&rig.node[owner], "slave"));
  CHECK(!raw_run(ask(owner), "SET door 2"));
  CHECK(moved_to(ask(owner), slot, owner + 3));
  rig_stop(&rig);
}

/* True when the next reply or push has this word first. */
static bool hears(struct raw *raw, const char *word)
{
  return raw_reply(raw) && raw->count > 1 && strcmp(raw->element[1].text, word) == 0;
}

/*
 * A WAIT without an end ends when the master is demoted; in a cluster of Valkey 9 one goes on until
 * its time is over, and says how many replicas there were.
 */
static bool waits_on(void)
{
  return server_is_valkey() && server_version() >= 900;
}

static void send_wait(struct raw *raw, int replicas)
{
  raw_send(raw, "WAIT %d %d", replicas, waits_on() ? 15000 : 0);
}

static bool unblocked(struct raw *raw)
{
  if (!raw_reply_within(raw, MOVED_SOON)) return false;
  return waits_on() ? raw->element[0].type == ':' : raw_refused(raw, "UNBLOCKED");
}

static void test_cluster_failover(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, "door"), owner = cluster_owner(&rig, slot);
  CHECK(node_open(&rig.node[owner], &one));
  CHECK(raw_run(&one, "HELLO 3"));
  if (sharded()) {
    raw_send(&one, "SSUBSCRIBE {door}:1");
    CHECK(hears(&one, "ssubscribe"));
  }
  CHECK(node_open(&rig.node[owner], &two));
  send_wait(&two, 2);
  CHECK(cluster_fail_over(&rig, owner + 3, ""));
  CHECK_EQUAL(cluster_promoted(&rig, slot, owner), owner + 3);
  if (sharded()) CHECK(hears(&one, "sunsubscribe"));
  CHECK(unblocked(&two));
  raw_close(&two);
  CHECK(raw_run(&one, "PING")); /* the connection is left open */
  CHECK(!raw_run(&one, "SET door 1"));
  CHECK(moved_to(&one, slot, owner + 3));
  raw_close(&one);
  CHECK(cluster_fail_over(&rig, owner, "TAKEOVER"));
  CHECK_EQUAL(cluster_promoted(&rig, slot, owner + 3), owner);
  rig_stop(&rig);
}

/* The four keys of a lock, made on their owner. */
static const char *const keys[] = {"door", "redisson_lock_queue:{door}",
                                   "redisson_lock_timeout:{door}", "fairlock:{door}"};

static bool touch_all(struct raw *raw)
{
  return raw_run(raw, "EVAL %s 4 %s %s %s %s",
                 "for i = 1, 4 do redis.call('incr', KEYS[i]) end return 1", keys[0], keys[1],
                 keys[2], keys[3]);
}

static bool touch_all_asking(struct raw *raw)
{
  return raw_run(raw, "ASKING") && touch_all(raw);
}

/* The old owner has only some of the keys: before 7.0 it says the same as with none. */
static const char *split(void)
{
  return server_version() >= 700 ? "TRYAGAIN" : "ASK ";
}

/*
 * A slot that moves by hand. All keys here: served. Some: TRYAGAIN on both sides. None: ASK, and
 * ASKING helps.
 */
static void test_migration_by_hand(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, "door"), from = cluster_owner(&rig, slot), to = other_master(from);
  char ask_to[64];
  (void)snprintf(ask_to, sizeof ask_to, "ASK %d 127.0.0.1:%d", slot, rig.node[to].port);
  CHECK(touch_all(ask(from)));
  CHECK(cluster_move_begin(&rig, slot, from, to));
  CHECK(touch_all(ask(from)));
  CHECK(!touch_all(ask(to)) && moved_to(ask(to), slot, from));
  CHECK(!touch_all_asking(ask(to)) && raw_refused(ask(to), "TRYAGAIN"));
  for (int left = 3; left > 0; left--) {
    CHECK_EQUAL(cluster_move_key(&rig, slot, from, to), left);
    CHECK(!touch_all(ask(from)) && raw_refused(ask(from), split()));
    CHECK(!touch_all_asking(ask(to)) && raw_refused(ask(to), "TRYAGAIN"));
  }
  CHECK_EQUAL(cluster_move_key(&rig, slot, from, to), 0);
  CHECK(!touch_all(ask(from)) && raw_refused(ask(from), ask_to));
  CHECK(!touch_all(ask(to)) && moved_to(ask(to), slot, from));
  CHECK(touch_all_asking(ask(to)));
  CHECK(cluster_move_end(&rig, slot, from, to));
  CHECK(!touch_all(ask(from)) && moved_to(ask(from), slot, to));
  CHECK(touch_all(ask(to)));
  CHECK_EQUAL(raw_number(ask(to), "GET door"), 4);
  rig_stop(&rig);
}

/* A missing key counts as one that has moved: without a queue, the answer is always ASK. */
static void test_migration_of_some_keys(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, "door"), from = cluster_owner(&rig, slot), to = other_master(from);
  CHECK(raw_run(ask(from), "SET door 1"));
  CHECK(cluster_move_begin(&rig, slot, from, to));
  CHECK(!touch_all(ask(from)) && raw_refused(ask(from), split()));
  CHECK_EQUAL(cluster_move_key(&rig, slot, from, to), 0);
  CHECK(!touch_all(ask(from)) && raw_refused(ask(from), "ASK "));
  CHECK(!touch_all_asking(ask(to)) && raw_refused(ask(to), "TRYAGAIN"));
  CHECK(cluster_move_end(&rig, slot, from, to));
  CHECK(touch_all(ask(to)));
  rig_stop(&rig);
}

/* A script that removes a key and uses it again stops there: what it has done so far stays. */
static void test_script_in_migration(void)
{
  static const char script[] = "redis.call('del', KEYS[1]) return redis.call('exists', KEYS[1])";
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, "door"), from = cluster_owner(&rig, slot), to = other_master(from);
  CHECK(raw_run(ask(from), "SET door 1"));
  CHECK_EQUAL(raw_number(ask(from), "EVAL %s 1 door", script), 0);
  CHECK(raw_run(ask(from), "SET door 1"));
  CHECK(cluster_move_begin(&rig, slot, from, to));
  CHECK(!raw_run(ask(from), "EVAL %s 1 door", script));
  const char *text = ask(from)->element[0].text;
  printf("# %s\n", text);
  CHECK(raw_refused(ask(from), "ERR Script attempted to access a non local key") ||
        raw_refused(ask(from), "ERR Attempted to access a non local key") ||
        (raw_refused(ask(from), "ERR Error running script ") &&
         strstr(text, ": Lua script attempted to access a non local key") != NULL));
  CHECK_EQUAL(raw_number(ask(from), "CLUSTER COUNTKEYSINSLOT %d", slot), 0);
  rig_stop(&rig);
}

/* SSUBSCRIBE's listeners are told when the slot goes; SUBSCRIBE's are not. */
static void test_listeners_of_a_slot(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, "door"), from = cluster_owner(&rig, slot), to = other_master(from);
  CHECK(raw_run(ask(from), "SET door 1"));
  CHECK(node_open(&rig.node[from], &one) && raw_run(&one, "HELLO 3"));
  CHECK(node_open(&rig.node[from], &two) && raw_run(&two, "HELLO 3"));
  raw_send(&two, "SUBSCRIBE {door}:1");
  CHECK(hears(&two, "subscribe"));
  if (sharded()) {
    raw_send(&one, "SSUBSCRIBE {door}:1");
    CHECK(hears(&one, "ssubscribe"));
  }
  CHECK(cluster_move_begin(&rig, slot, from, to));
  CHECK_EQUAL(cluster_move_key(&rig, slot, from, to), 0);
  if (sharded()) { /* all keys have gone, and the channel has not */
    CHECK_EQUAL(raw_number(ask(from), "SPUBLISH {door}:1 hello"), 1);
    CHECK(hears(&one, "smessage"));
  }
  CHECK(cluster_move_end(&rig, slot, from, to));
  if (sharded()) CHECK(hears(&one, "sunsubscribe"));
  CHECK(raw_run(&one, "PING")); /* the connections stay, ... */
  CHECK(raw_run(&two, "PING")); /* ... and this was the next that came */
  CHECK(strcmp(two.element[0].text, "PONG") == 0);
  CHECK_EQUAL(raw_number(ask(to), "PUBLISH {door}:1 hello"), 0); /* another node's listener */
  CHECK(hears(&two, "message"));
  raw_close(&one);
  raw_close(&two);
  rig_stop(&rig);
}

/* As Valkey 9 does it, in one go; others do not know the command. */
static void test_migration_in_one_go(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, "door"), from = cluster_owner(&rig, slot), to = other_master(from);
  CHECK(touch_all(ask(from)));
  CHECK(node_open(&rig.node[from], &one) && raw_run(&one, "HELLO 3"));
  if (sharded()) {
    raw_send(&one, "SSUBSCRIBE {door}:1");
    CHECK(hears(&one, "ssubscribe"));
  }
  if (server_is_valkey() && server_version() >= 900) {
    CHECK(cluster_move_slot(&rig, slot, from, to));
    CHECK(hears(&one, "sunsubscribe"));
    CHECK(!touch_all(ask(from)) && moved_to(ask(from), slot, to));
    CHECK(touch_all(ask(to)));
  } else {
    CHECK(!cluster_move_slot(&rig, slot, from, to));
    CHECK_EQUAL(cluster_owner(&rig, slot), from);
  }
  raw_close(&one);
  rig_stop(&rig);
}

/* What a script finds out about listeners, and reaches. */

static int64_t number_of(struct raw *raw, const char *script)
{
  return raw_number(raw, "EVAL %s 1 door {door}:1", script);
}

#define NUMSUB      "return redis.call('pubsub', 'numsub', ARGV[1])[2]"
#define SHARDNUMSUB "return redis.call('pubsub', 'shardnumsub', ARGV[1])[2]"
#define PUBLISH     "return redis.call('publish', ARGV[1], 'hello')"
#define SPUBLISH    "return redis.call('spublish', ARGV[1], 'hello')"

static void test_listeners(void)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, "door"), owner = cluster_owner(&rig, slot);
  int other = other_master(owner);
  CHECK(node_open(&rig.node[other], &two) && raw_run(&two, "HELLO 3"));
  raw_send(&two, "SUBSCRIBE {door}:1");
  CHECK(hears(&two, "subscribe"));
  CHECK_EQUAL(number_of(ask(owner), NUMSUB), 0); /* of this node */
  CHECK_EQUAL(raw_number(ask(other), "PUBSUB NUMSUB {door}:1"), 2);
  CHECK_EQUAL(ask(other)->element[2].integer, 1);
  CHECK_EQUAL(number_of(ask(owner), PUBLISH), 0); /* of this node, and yet: */
  CHECK(hears(&two, "message"));
  if (!sharded()) {
    CHECK_EQUAL(number_of(ask(owner), SHARDNUMSUB), INT64_MIN);
    rig_stop(&rig);
    return;
  }
  CHECK(node_open(&rig.node[owner], &one) && raw_run(&one, "HELLO 3"));
  raw_send(&one, "SSUBSCRIBE {door}:1");
  CHECK(hears(&one, "ssubscribe"));
  CHECK_EQUAL(number_of(ask(owner), NUMSUB), 0);
  CHECK_EQUAL(number_of(ask(owner), SHARDNUMSUB), 1);
  CHECK_EQUAL(number_of(ask(owner), PUBLISH), 0);
  CHECK(hears(&two, "message"));
  CHECK_EQUAL(number_of(ask(owner), SPUBLISH), 1);
  CHECK(hears(&one, "smessage")); /* and nothing of PUBLISH before it */
  CHECK_EQUAL(raw_number(&one, "EVAL %s 1 door {door}:2", SPUBLISH), 0); /* between, on one line */
  raw_send(&one, "SUBSCRIBE {door}:3");
  CHECK(hears(&one, "subscribe"));
  CHECK_EQUAL(raw_number(ask(owner), "EVAL %s 1 door window", SPUBLISH), INT64_MIN);
  CHECK(raw_number(&two, "SSUBSCRIBE {door}:1") == INT64_MIN && moved_to(&two, slot, owner));
  CHECK(node_open(&rig.node[owner + 3], &two) && raw_run(&two, "HELLO 3"));
  raw_send(&two, "SSUBSCRIBE {door}:1");
  CHECK(hears(&two, "ssubscribe")); /* a replica accepts it, and its master does not count it */
  CHECK_EQUAL(number_of(ask(owner), SHARDNUMSUB), 1);
  CHECK_EQUAL(number_of(ask(owner), SPUBLISH), 1);
  CHECK(hears(&two, "smessage"));
  raw_close(&one);
  raw_close(&two);
  rig_stop(&rig);
}

static void test_cluster_greetings(void)
{
  cluster_start(&rig, NULL);
  for (int i = 0; i < NODES; i++) {
    CHECK(node_greets(&rig.node[i], "mode", "cluster"));
    CHECK(node_greets(&rig.node[i], "role", i < 3 ? "master" : "replica"));
  }
  rig_stop(&rig);
}

/*
 * A master that is cut off takes writes for the node timeout, and then none; its replica is
 * promoted meanwhile, or soon after.
 */
static void test_cluster_split_brain(void)
{
  static const struct rig_options options = {.parted = true};
  cluster_start(&rig, &options);
  int slot = cluster_slot(&rig, "door"), owner = cluster_owner(&rig, slot);
  CHECK(node_open(&rig.node[owner], &one));
  CHECK(raw_run(&one, "SET door 1"));
  CHECK_EQUAL(raw_number(&one, "WAIT 1 20000"), 1);
  rig_part(&rig, 1U << owner);
  int64_t parted = now_ms();
  CHECK(raw_run(&one, "SET door 2"));
  CHECK(cluster_be_patient(&rig, false));
  while (raw_run(&one, "SET door 2") && now_ms() < parted + MOVED_SOON)
    sleep_ms(10);
  CHECK(raw_refused(&one, "CLUSTERDOWN"));
  printf("# took writes for %" PRId64 " ms", now_ms() - parted);
  CHECK_EQUAL(cluster_promote(&rig, slot, owner), owner + 3);
  printf(", another was promoted within %" PRId64 " ms\n", now_ms() - parted);
  CHECK_EQUAL(cluster_owner_by(&rig, owner, slot), owner); /* in its own eyes */
  CHECK_EQUAL(raw_number(ask(owner + 3), "GET door"), 1);
  rig_part(&rig, 0);
  CHECK(node_becomes(&rig.node[owner], "slave") && node_follows(&rig.node[owner]));
  while (!raw_run(&one, "SET door 2") && raw_refused(&one, "CLUSTERDOWN") &&
         now_ms() < parted + 3 * MOVED_SOON)
    sleep_ms(10);
  CHECK(moved_to(&one, slot, owner + 3));
  raw_close(&one);
  rig_stop(&rig);
}

/* A TAKEOVER while the old master is cut off: both take writes. */
static void test_cluster_two_masters(void)
{
  static const struct rig_options options = {.parted = true};
  cluster_start(&rig, &options);
  int slot = cluster_slot(&rig, "door"), owner = cluster_owner(&rig, slot);
  CHECK(node_open(&rig.node[owner], &one) && raw_run(&one, "SET door 1"));
  CHECK_EQUAL(raw_number(&one, "WAIT 1 20000"), 1);
  rig_part(&rig, 1U << owner);
  CHECK(cluster_fail_over(&rig, owner + 3, "TAKEOVER"));
  CHECK_EQUAL(cluster_promoted(&rig, slot, owner), owner + 3);
  CHECK(raw_run(ask(owner + 3), "SET door 3"));
  CHECK(raw_run(&one, "SET door 2"));
  CHECK_EQUAL(raw_number(&one, "WAIT 1 100"), 0);
  CHECK(node_open(&rig.node[owner], &two));
  CHECK(raw_run(&two, "SET door 2")); /* a WAIT of one that has written nothing ends at once */
  send_wait(&two, 1);
  rig_part(&rig, 0);
  CHECK(unblocked(&two));
  CHECK(node_becomes(&rig.node[owner], "slave") && node_follows(&rig.node[owner]));
  CHECK_EQUAL(raw_number(ask(owner + 3), "GET door"), 3);
  raw_close(&one);
  raw_close(&two);
  rig_stop(&rig);
}

const struct check_test check_tests[] = {
    {"rig_cluster", test_cluster},
    {"rig_cluster_greetings", test_cluster_greetings},
    {"rig_cluster_kill", test_cluster_kill},
    {"rig_cluster_freeze", test_cluster_freeze},
    {"rig_cluster_failover", test_cluster_failover},
    {"rig_migration_by_hand", test_migration_by_hand},
    {"rig_migration_of_some_keys", test_migration_of_some_keys},
    {"rig_script_in_migration", test_script_in_migration},
    {"rig_migration_in_one_go", test_migration_in_one_go},
    {"rig_listeners", test_listeners},
    {"rig_listeners_of_a_slot", test_listeners_of_a_slot},
    {"rig_cluster_split_brain", test_cluster_split_brain},
    {"rig_cluster_two_masters", test_cluster_two_masters},
    {NULL, NULL}};
