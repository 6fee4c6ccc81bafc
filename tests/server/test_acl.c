/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user with the least rights: the rules that lock/PRODUCTION.md lists are enough for everything,
 * and none of them is superfluous. And what a missing right leaves behind: a script may be stopped
 * half-way by it, but must never leave a hold without an end or a queue entry without a score, and
 * must drop no waiter unserved.
 */
#include <stdio.h>
#include <string.h>

#include "dialect.h"
#include "fairlock_keep.h"
#include "fairlock_share.h"
#include "harness.h"
#include "support/counters.h"

static void prepare_client(struct client *opened, const char *user)
{
  client_prepare(opened, server.port);
  opened->config.user = user;
  opened->config.password = "secret";
  opened->config.offline_ms = 3000;
}

static void open_client(struct client *opened, const char *user)
{
  prepare_client(opened, user);
  client_start(opened);
}

/*
 * The commands that a user needs, for all operations, where Redisson's clients use the lock, too.
 * lock/PRODUCTION.md has the same (tests/release).
 */
static const char *const commands[] = {
    "time",   "subscribe", "unsubscribe",   "evalsha",
    "eval",   "publish",   "pubsub|numsub", "pubsub|shardnumsub",
    "del",    "pttl",      "pexpire",       "hget",
    "hmget",  "hset",      "hdel",          "hgetall",
    "lindex", "hlen",      "lrange",        "lpos",
    "lpush",  "rpush",     "lrem",          "zadd",
    "zscore", "zrem",      "zincrby",
};
#define COMMANDS (sizeof commands / sizeof commands[0])

static const char keys_rule[] =
    "~acl* ~redisson_lock_queue:{acl* ~redisson_lock_timeout:{acl* ~fairlock:{acl*";
static const char channels_rule[] = "&redisson_lock__channel:{acl*";

/*
 * A new user with only these rules, except for the command left out. In Redis 6.2 a new user may
 * use all channels, and resetchannels revokes that.
 */
static void make_user(const char *user, const char *keys, const char *channels,
                      const char *left_out)
{
  char rules[1024];
  int used = snprintf(rules, sizeof rules, "ACL SETUSER %s on >secret resetchannels %s %s", user,
                      keys, channels);
  for (size_t i = 0; i < COMMANDS; i++) {
    if (left_out != NULL && strcmp(commands[i], left_out) == 0) continue;
    used += snprintf(rules + used, sizeof rules - (size_t)used, " +%s", commands[i]);
  }
  CHECK(raw_run(&redis, rules));
}

/* Whether the server has refused this command to somebody since ACL LOG RESET. */
static bool refused(const char *command)
{
  int64_t entries = raw_number(&redis, "ACL LOG 100");
  for (size_t i = 0; entries > 0 && i + 1 < redis.count; i++) {
    bool object = redis.element[i].text != NULL && strcmp(redis.element[i].text, "object") == 0;
    if (object && dialect_is_command(redis.element[i + 1].text, command)) return true;
  }
  return false;
}

/* A waiter of Redisson's that listens, second in line behind one of ours that does not. */
static void plant_peer(struct raw *peer)
{
  CHECK(raw_open(peer, server.port));
  CHECK(raw_run(peer, "SUBSCRIBE redisson_lock__channel:{acl}:peer:1"));
  CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{acl} ghost:1 peer:1"));
  CHECK(raw_run(&redis,
                "ZADD redisson_lock_timeout:{acl} 9000000000000 ghost:1 9000000300000 peer:1"));
  CHECK(raw_run(&redis, "HSET fairlock:{acl} ghost:1 %s", "9000000000 0 5000"));
}

static void uproot_peer(struct raw *peer)
{
  raw_close(peer);
  CHECK(raw_run(&redis,
                "DEL acl redisson_lock_queue:{acl} redisson_lock_timeout:{acl} fairlock:{acl}"));
}

/*
 * Each operation there is, by one user. Returns how many of them were denied; any other result that
 * an unlimited user would not get is a failure of the test if `whole`.
 */
static int use_all(const char *user, bool whole)
{
  static struct client first, second;
  static struct raw peer;
  static struct fairlock one, two;
  int denied = 0;
  int status[13];
  open_client(&first, user);
  open_client(&second, user);
  CHECK_EQUAL(fairlock_init(&one, &first.client, "acl"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&two, &second.client, "acl"), FAIRLOCK_OK);
  status[0] = fairlock_connect(&first.client);
  status[1] = fairlock_acquire(&one, 1000, FAIRLOCK_RENEW);
  status[2] = fairlock_acquire(&one, 0, FAIRLOCK_RENEW);
  status[3] = fairlock_release(&one);
  (void)fairlock_start_acquire(&two, SOON, FAIRLOCK_RENEW);
  AWAIT(fairlock_result(&two) != FAIRLOCK_PENDING || queue_length(&redis, "acl") == 1,
        service_for(&second, 5));
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  fairlock_id(&two, id, FAIRLOCK_HOLDER_ID_SIZE);
  /* it asks again, and as if for the first time in a hundred seconds */
  int64_t before = scripts_run(&redis);
  (void)raw_run(&redis, "HSET fairlock:{acl} %s %s", id, "1000000000 0 5000");
  CHECK(raw_number(&redis, "PUBLISH redisson_lock__channel:{acl}:%s 0", id) >= 0);
  AWAIT(fairlock_result(&two) != FAIRLOCK_PENDING || scripts_run(&redis) > before,
        service_for(&second, 5));
  status[4] = inspect(&first, "acl").status;
  status[5] = fairlock_release(&one);
  status[6] = await_result(&second, &two);
  status[12] = fairlock_ask_release(&first.client, "acl", 3, fairlock_token(&two));
  status[7] = fairlock_force_release(&first.client, "acl", 3, FAIRLOCK_ANY_TOKEN);
  status[8] = fairlock_release(&two);
  if (fairlock_remaining_ms(&one) > 0) (void)fairlock_release(&one);
  uproot_peer(&(struct raw){.socket = -1});
  plant_peer(&peer);
  status[9] = fairlock_try_acquire(&one, FAIRLOCK_RENEW);
  uproot_peer(&peer);
  status[10] = fairlock_deinit(&two);
  status[11] = fairlock_deinit(&one);
  for (int i = 0; i < 13; i++) {
    denied += status[i] == FAIRLOCK_DENIED;
    int expected = i == 8 ? FAIRLOCK_LOST : i == 9 ? FAIRLOCK_BUSY : FAIRLOCK_OK;
    if (whole) CHECK_EQUAL(status[i], expected);
  }
  client_close(&first);
  client_close(&second);
  return denied;
}

/* What handles that share do: join, wait at the limit, enter, leave; and one of them is broken. */
static void share_all(struct client clients[3], struct fairlock_shared shared[3])
{
  CHECK_EQUAL(fairlock_try_acquire(&shared[0].handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  /* enough that have ended for somebody who enters to clean up */
  for (int i = 0; i < 40; i++)
    CHECK(raw_run(&redis, "HSET acl ended:%d %s", i, "1 1 1 1000"));
  CHECK_EQUAL(fairlock_try_acquire(&shared[1].handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(&redis, "HLEN acl"), 3);
  CHECK_EQUAL(fairlock_try_acquire(&shared[2].handle, FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_start_acquire(&shared[2].handle, SOON, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&clients[2], "acl", 1);
  CHECK_EQUAL(inspect(&clients[2], "acl").status, FAIRLOCK_OK);
  CHECK_EQUAL(
      fairlock_force_release(&clients[1].client, "acl", 3, fairlock_token(&shared[0].handle)),
      FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&clients[2], &shared[2].handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&shared[0].handle), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(&shared[1].handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&shared[2].handle), FAIRLOCK_OK);
}

/* The same rules are enough for those who share. */
static void test_shared(void)
{
  static struct client clients[3];
  static struct fairlock_downgrading sharing[3];
  static struct fairlock_shared shared[3];
  static struct raw peer;
  struct fairlock alone;
  begin();
  make_user("minimal", keys_rule, channels_rule, NULL);
  CHECK(raw_run(&redis, "ACL LOG RESET"));
  for (int i = 0; i < 3; i++) {
    open_client(&clients[i], "minimal");
    fairlock_use_downgrading(&clients[i].client, &sharing[i]);
    CHECK_EQUAL(fairlock_init_shared(&shared[i], &clients[i].client, "acl", 2), FAIRLOCK_OK);
  }
  share_all(clients, shared);
  CHECK_EQUAL(fairlock_init(&alone, &clients[0].client, "acl"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&alone, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_downgrade(&alone, &shared[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&shared[0].handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&alone), FAIRLOCK_OK);
  plant_peer(&peer);
  CHECK_EQUAL(fairlock_try_acquire(&shared[1].handle, FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  uproot_peer(&peer);
  CHECK_EQUAL(raw_number(&redis, "ACL LOG"), 0);
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(fairlock_deinit(&shared[i].handle), FAIRLOCK_OK);
    client_close(&clients[i]);
  }
  CHECK(raw_run(&redis, "ACL DELUSER minimal"));
}

static void test_minimal(void)
{
  begin();
  make_user("minimal", keys_rule, channels_rule, NULL);
  CHECK(raw_run(&redis, "ACL LOG RESET"));
  CHECK_EQUAL(use_all("minimal", true), 0);
  CHECK_EQUAL(raw_number(&redis, "ACL LOG"), 0);
  CHECK(raw_run(&redis, "ACL DELUSER minimal"));
}

/* What a program needs besides that keeps its locks. */
static void test_keeper(void)
{
  static struct client client;
  static struct fairlock_keeping keeper = {.keep_ms = 10000};
  struct fairlock handle;
  begin();
  make_user("keeper", keys_rule, channels_rule, NULL);
  CHECK(raw_run(&redis, "ACL SETUSER keeper +client|tracking +client|caching +exists"));
  CHECK(raw_run(&redis, "ACL LOG RESET"));
  open_client(&client, "keeper");
  CHECK_EQUAL(fairlock_use_keeping(&client.client, &keeper), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "acl"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(&redis, "EXISTS acl"), 1);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(&redis, "EXISTS acl"), 0);
  CHECK_EQUAL(raw_number(&redis, "ACL LOG"), 0);
  client_close(&client);
  CHECK(raw_run(&redis, "ACL DELUSER keeper"));
}

/* What the rules do not name stays forbidden: other commands, other keys, other channels. */
static void test_no_more(void)
{
  static const char *const others[] = {
      "GET acl",        "SET acl x",       "KEYS *",          "FLUSHALL",
      "SCRIPT FLUSH",   "PUBSUB CHANNELS", "CONFIG GET *",    "ACL WHOAMI",
      "PSUBSCRIBE *",   "HGET other a",    "DEL acl other",   "EVAL return 1 other",
      "HLEN fairlock:", "SUBSCRIBE other", "PUBLISH other x",
  };
  static struct raw user;
  begin();
  make_user("minimal", keys_rule, channels_rule, NULL);
  CHECK(raw_open(&user, server.port));
  CHECK(raw_run(&user, "AUTH minimal secret"));
  CHECK(raw_run(&user, "HGETALL acl"));
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    bool done = raw_run(&user, others[i]);
    if (!CHECK(!done && dialect_denies(user.element[0].text)))
      printf("# not forbidden: %s\n", others[i]);
  }
  raw_close(&user);
  CHECK(raw_run(&redis, "ACL DELUSER minimal"));
}

static void test_each_is_needed(void)
{
  begin();
  for (size_t i = 0; i < COMMANDS; i++) {
    CHECK(raw_run(&redis, "FLUSHALL"));
    CHECK(raw_run(&redis, "SCRIPT FLUSH"));
    CHECK(raw_run(&redis, "ACL LOG RESET"));
    make_user("fewer", keys_rule, channels_rule, commands[i]);
    (void)use_all("fewer", false);
    if (!CHECK(refused(commands[i]))) printf("# never needed: %s\n", commands[i]);
    CHECK(raw_run(&redis, "ACL DELUSER fewer"));
  }
}

/*
 * A right is revoked in the middle: one client holds, two wait in line, and then the release has to
 * do without one command. One trial for each command, all of them at the same time, each with a
 * lock and a user of its own.
 */
struct trial {
  struct client client[3]; /* the holder and two waiters */
  struct fairlock handle[3];
  char user[16], name[16];
  bool done[3]; /* was served, or was told that it is not */
};

static struct trial trials[COMMANDS];

static void service_trials(int ms)
{
  int64_t until = now_ms() + ms;
  do {
    for (size_t i = 0; i < COMMANDS; i++) {
      for (int j = 0; j < 3; j++)
        fairlock_poll(&trials[i].client[j].client, 0);
    }
    sleep_ms(2);
  } while (now_ms() < until);
}

static void start_trial(size_t index)
{
  struct trial *trial = &trials[index];
  memset(trial, 0, sizeof *trial);
  (void)snprintf(trial->user, sizeof trial->user, "user%d", (int)index);
  (void)snprintf(trial->name, sizeof trial->name, "acl%d", (int)index);
  make_user(trial->user, keys_rule, channels_rule, NULL);
  for (int i = 0; i < 3; i++) {
    prepare_client(&trial->client[i], trial->user);
    trial->client[i].config.waiter_ms = 60000;  /* none is given up because its turn here is late */
    trial->client[i].config.offline_ms = 60000; /* none leaves, being denied, while we look */
    client_start(&trial->client[i]);
    CHECK_EQUAL(fairlock_init(&trial->handle[i], &trial->client[i].client, trial->name),
                FAIRLOCK_OK);
    if (i == 0) {
      CHECK_EQUAL(fairlock_acquire(&trial->handle[0], 1000, 12000), FAIRLOCK_OK);
    } else {
      CHECK_EQUAL(fairlock_start_acquire(&trial->handle[i], FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
                  FAIRLOCK_PENDING);
      AWAIT(queue_length(&redis, trial->name) == i, fairlock_poll(&trial->client[i].client, 5));
    }
  }
}

/*
 * A waiter that still waits must be in the queue, or have the lock, perhaps unconfirmed. Who cannot
 * be given the lock, because that begins with a right that is missing, keeps its note, too.
 */
static void check_not_dropped(struct trial *trial, int index, bool noted)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  fairlock_id(&trial->handle[index], id, FAIRLOCK_HOLDER_ID_SIZE);
  if (fairlock_result(&trial->handle[index]) != FAIRLOCK_PENDING) return;
  bool queued = raw_number(&redis, "LPOS redisson_lock_queue:{%s} %s", trial->name, id) >= 0;
  CHECK(queued || hold_count_of(&redis, trial->name, id) >= 0);
  if (queued && noted)
    CHECK_EQUAL(raw_number(&redis, "HEXISTS fairlock:{%s} %s", trial->name, id), 1);
}

/* Releases what was granted meanwhile. True when all have been served, or told why not. */
static bool finish_trial(struct trial *trial)
{
  bool all = true;
  for (int i = 0; i < 3; i++) {
    struct fairlock *handle = &trial->handle[i];
    int result = fairlock_result(handle);
    if (trial->done[i] || result == FAIRLOCK_PENDING) {
      all &= trial->done[i];
      continue;
    }
    if (fairlock_remaining_ms(handle) > 0) {
      (void)fairlock_start_release(handle);
      all = false;
    } else {
      bool told = result == FAIRLOCK_OK || result == FAIRLOCK_DENIED || result == FAIRLOCK_LOST ||
                  result == FAIRLOCK_UNKNOWN;
      if (!CHECK(told)) printf("# %s: %s\n", trial->name, fairlock_status_name(result));
      trial->done[i] = true;
    }
  }
  return all;
}

static bool sane_trial(size_t index, const char *when)
{
  bool good = sane(&redis, trials[index].name);
  if (!good) printf("# without %s, %s\n", commands[index], when);
  return good;
}

static void test_half_way(void)
{
  begin();
  for (size_t i = 0; i < COMMANDS; i++)
    start_trial(i);
  for (size_t i = 0; i < COMMANDS; i++) {
    size_t size = strcspn(commands[i], "|"); /* Redis 6.2 takes away whole commands only */
    CHECK(raw_run(&redis, "ACL SETUSER %s -%b", trials[i].user, commands[i], size));
    (void)fairlock_start_release(&trials[i].handle[0]);
  }
  for (int round = 0; round < 8; round++) {
    service_trials(400);
    for (size_t i = 0; i < COMMANDS; i++) {
      if (!sane_trial(i, "after the release")) round = 8;
      for (int j = 1; j < 3; j++)
        check_not_dropped(&trials[i], j, strcmp(commands[i], "hset") == 0);
      (void)finish_trial(&trials[i]);
    }
  }
  for (size_t i = 0; i < COMMANDS; i++)
    CHECK(raw_run(&redis, "ACL SETUSER %s +%s", trials[i].user, commands[i]));
  int64_t until = now_ms() + 100000;
  bool all = false;
  while (!all && now_ms() < until) {
    service_trials(50);
    all = true;
    for (size_t i = 0; i < COMMANDS; i++)
      all &= finish_trial(&trials[i]);
  }
  CHECK(all);
  for (size_t i = 0; i < COMMANDS; i++) {
    (void)sane_trial(i, "at the end");
    for (int j = 0; j < 3; j++) {
      if (!trials[i].done[j]) printf("# without %s, %d was not served\n", commands[i], j);
      client_close(&trials[i].client[j]);
    }
    CHECK(raw_run(&redis, "ACL DELUSER %s", trials[i].user));
  }
}

/*
 * There are notes to delete, and no right to write the new ones: the last token must stay, or the
 * next one might be smaller.
 */
static void test_token_stays(void)
{
  struct fairlock handle;
  static struct client client;
  begin();
  make_user("denied", keys_rule, channels_rule, "hset");
  open_client(&client, "denied");
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "acl"), FAIRLOCK_OK);
  CHECK(raw_run(&redis,
                "HSET fairlock:{acl} token 9000000000000000 a:1 1 b:1 1 c:1 1 d:1 1 e:1 1 f:1 1"));
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_DENIED);
  CHECK_EQUAL(raw_number(&redis, "HGET fairlock:{acl} token"), 9000000000000000);
  CHECK(raw_run(&redis, "ACL SETUSER denied +hset"));
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL((int64_t)fairlock_token(&handle), 9000000000000001);
  CHECK_EQUAL(raw_number(&redis, "HLEN fairlock:{acl}"), 4);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
  CHECK(raw_run(&redis, "ACL DELUSER denied"));
}

/*
 * A try takes the lock past a waiter that does not listen, and is stopped after that, because HDEL is
 * refused. The handle is FREE, so nothing of its hold may be left.
 */
static void test_stopped_try(void)
{
  struct fairlock handle;
  static struct client client;
  begin();
  make_user("denied", keys_rule, channels_rule, "hdel");
  open_client(&client, "denied");
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "acl"), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{acl} ghost:1"));
  CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{acl} 9000000000000 ghost:1"));
  CHECK(raw_run(&redis, "HSET fairlock:{acl} ghost:1 %s", "9000000000 0 5000"));
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_DENIED);
  CHECK(raw_number(&redis, "HGET fairlock:{acl} token") > 0);
  CHECK_EQUAL(raw_number(&redis, "EXISTS acl"), 0);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
  uproot_peer(&(struct raw){.socket = -1});
  CHECK(raw_run(&redis, "ACL DELUSER denied"));
}

/*
 * A downgrade is stopped between the notes, which say its new token, and the lock. The release that
 * follows has to end the hold, whose token is no longer the newest. Redis has such rights since 7.0.
 */
static void test_stopped_downgrade(void)
{
  static struct client client;
  static struct fairlock_downgrading sharing;
  static struct fairlock_shared shared;
  struct fairlock alone;
  begin();
  make_user("denied", keys_rule, channels_rule, NULL);
  if (!raw_run(&redis, "ACL SETUSER denied (~fairlock:{acl* +hset)")) {
    CHECK(raw_run(&redis, "ACL DELUSER denied"));
    return;
  }
  open_client(&client, "denied");
  fairlock_use_downgrading(&client.client, &sharing);
  CHECK_EQUAL(fairlock_init(&alone, &client.client, "acl"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_shared(&shared, &client.client, "acl", 0), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&alone, 120000), FAIRLOCK_OK);
  int64_t token = raw_number(&redis, "HGET fairlock:{acl} token");
  CHECK(raw_run(&redis, "ACL SETUSER denied -hset"));
  CHECK_EQUAL(fairlock_downgrade(&alone, &shared, FAIRLOCK_RENEW), FAIRLOCK_DENIED);
  CHECK(raw_number(&redis, "HGET fairlock:{acl} token") > token);
  int64_t until = now_ms() + 60000; /* half of the lease */
  AWAIT(raw_number(&redis, "EXISTS acl") == 0 || now_ms() > until, service_for(&client, 10));
  CHECK_EQUAL(raw_number(&redis, "EXISTS acl"), 0);
  CHECK_EQUAL(fairlock_deinit(&shared.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&alone), FAIRLOCK_OK);
  client_close(&client);
  CHECK(raw_run(&redis, "ACL DELUSER denied"));
}

/* Without the right to give keys a TTL, nothing is left that would stay for ever. */
static void test_notes_without_end(void)
{
  struct fairlock handle;
  static struct client client;
  begin();
  make_user("denied", keys_rule, channels_rule, "pexpire");
  open_client(&client, "denied");
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "acl"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_DENIED);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
  CHECK_EQUAL(raw_number(&redis, "DBSIZE"), 0);
  CHECK(raw_run(&redis, "ACL DELUSER denied"));
}

/*
 * A renewal also raises the score of the first in line. When the server refuses that, the lease is
 * renewed all the same.
 */
static void test_score_refused(void)
{
  struct fairlock handle;
  static struct client client;
  begin();
  make_user("scoreless", keys_rule, channels_rule, NULL);
  client_prepare(&client, server.port);
  client.config.user = "scoreless";
  client.config.password = "secret";
  client.config.lease_ms = 6000;
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "acl"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{acl} peer:1"));
  CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{acl} 9000000000000 peer:1"));
  CHECK(raw_run(&redis, "ACL SETUSER scoreless -zadd"));
  CHECK(raw_run(&redis, "ACL LOG RESET"));
  AWAIT(counters_of(&client.client).renewals >= 2, service_for(&client, 10));
  CHECK(refused("zadd"));
  CHECK(fairlock_remaining_ms(&handle) > 0);
  CHECK_EQUAL(counters_of(&client.client).losses, 0);
  CHECK(counters_of(&client.client).renewals > 0);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
  uproot_peer(&(struct raw){.socket = -1});
  CHECK(raw_run(&redis, "ACL DELUSER scoreless"));
}

/* Two waiters of another client, who listen by SSUBSCRIBE. */
static void plant_sharded(struct raw *peer, const char *note)
{
  CHECK(raw_open(peer, server.port));
  for (int i = 0; i < 2; i++) {
    CHECK(raw_run(peer, "SSUBSCRIBE redisson_lock__channel:{acl}:shard:%d", i));
    CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{acl} shard:%d", i));
    CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{acl} 9000000000000 shard:%d", i));
    CHECK(raw_run(&redis, "HSET fairlock:{acl} shard:%d %s", i, note));
  }
}

/*
 * Outside of a cluster nobody is asked for the right to SPUBLISH. Who is not allowed to tell a waiter hands the lock
 * over all the same, to its end: the waiter finds that by its heartbeat.
 */
static void test_message_refused(void)
{
  static struct client client;
  static struct fairlock_downgrading sharing;
  static struct fairlock_shared shared;
  static struct raw peer;
  struct fairlock handle;
  begin();
  if (dialect_is_old()) return; /* it has no SSUBSCRIBE */
  make_user("minimal", keys_rule, channels_rule, NULL);
  open_client(&client, "minimal");
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "acl"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  plant_sharded(&peer, "9000000000 0 5000");
  CHECK(raw_run(&redis, "ACL LOG RESET"));
  int64_t token = (int64_t)fairlock_token(&handle);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK(refused("spublish"));
  CHECK_EQUAL(raw_number(&redis, "HGET fairlock:{acl} released"), token);
  CHECK_EQUAL(hold_count_of(&redis, "acl", "shard:0"), 0);
  CHECK_EQUAL(queue_length(&redis, "acl"), 1);
  uproot_peer(&peer);

  fairlock_use_downgrading(&client.client, &sharing);
  CHECK_EQUAL(fairlock_init_shared(&shared, &client.client, "acl", 3), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 0, FAIRLOCK_RENEW), FAIRLOCK_OK);
  plant_sharded(&peer, "9000000000 0 5000 S0");
  CHECK_EQUAL(fairlock_downgrade(&handle, &shared, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(&redis, "HLEN acl"), 4);
  CHECK_EQUAL(queue_length(&redis, "acl"), 0);
  CHECK_EQUAL(fairlock_release(&shared.handle), FAIRLOCK_OK);
  uproot_peer(&peer);
  CHECK_EQUAL(fairlock_deinit(&shared.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
  CHECK(raw_run(&redis, "ACL DELUSER minimal"));
}

/*
 * The user may not do something right from the start: the status says so, with the server's text.
 */
static void denied(const char *keys, const char *channels, const char *left_out, bool tries)
{
  struct fairlock handle;
  static struct client client;
  begin();
  make_user("denied", keys, channels, left_out);
  open_client(&client, "denied");
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "acl"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), tries ? FAIRLOCK_OK : FAIRLOCK_DENIED);
  if (tries) CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  if (tries) CHECK(raw_run(&redis, "HSET acl other:1 1"));
  CHECK_EQUAL(fairlock_acquire(&handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_DENIED);
  const char *error = client_error(&client);
  if (!CHECK(dialect_denies(error))) printf("# the error text is \"%s\"\n", error);
  CHECK_EQUAL(fairlock_remaining_ms(&handle), 0);
  if (tries) CHECK(raw_run(&redis, "DEL acl"));
  CHECK(nothing_left(&redis, "acl"));
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
  CHECK(raw_run(&redis, "ACL DELUSER denied"));
}

static void test_no_command(void)
{
  denied(keys_rule, channels_rule, "evalsha", false);
}

static void test_no_script_command(void)
{
  denied(keys_rule, channels_rule, "hset", false);
}

static void test_no_key(void)
{
  denied("~acl* ~redisson_lock_queue:{acl* ~redisson_lock_timeout:{acl*", channels_rule, NULL,
         false);
}

static void test_no_subscribe(void)
{
  denied(keys_rule, channels_rule, "subscribe", true);
}

static void test_no_channel(void)
{
  denied(keys_rule, "&other:*", NULL, true);
}

/* May not even ask for the time: the greeting fails. */
static void test_no_time(void)
{
  static struct client client;
  begin();
  make_user("denied", keys_rule, channels_rule, "time");
  open_client(&client, "denied");
  CHECK_EQUAL(fairlock_connect(&client.client), FAIRLOCK_DENIED);
  CHECK(strncmp(client_error(&client), "NOPERM", 6) == 0);
  client_close(&client);
  CHECK(raw_run(&redis, "ACL DELUSER denied"));
}

const struct check_test check_tests[] = {
    {"acl: a user with the minimal rules", test_minimal},
    {"acl: handles that share", test_shared},
    {"acl: a program that keeps its locks", test_keeper},
    {"acl: the minimal rules allow no more", test_no_more},
    {"acl: each rule is needed", test_each_is_needed},
    {"acl: NOPERM for a command", test_no_command},
    {"acl: NOPERM for a command inside the script", test_no_script_command},
    {"acl: NOPERM for a key", test_no_key},
    {"acl: NOPERM for SUBSCRIBE", test_no_subscribe},
    {"acl: NOPERM for the channel", test_no_channel},
    {"acl: NOPERM for TIME", test_no_time},
    {"acl: a right is taken away half-way", test_half_way},
    {"acl: a message that is refused stops nothing", test_message_refused},
    {"acl: the last token outlasts a right that is missing", test_token_stays},
    {"acl: a try is stopped half-way", test_stopped_try},
    {"acl: a downgrade is stopped half-way", test_stopped_downgrade},
    {"acl: a renewal does without ZADD", test_score_refused},
    {"acl: notes without an end", test_notes_without_end},
    {NULL, NULL},
};
