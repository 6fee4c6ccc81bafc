/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are shared, on servers that move: two who hold beside each other at their limit, one more
 * that shares, one that wants the lock alone, and another that shares. Acknowledged holds survive, and
 * there are never more than may be. And replicas that have to acknowledge, one by one.
 */
#include "fairlock_follow.h"
#include "fairlock_share.h"
#include "scene.h"

#include <stdio.h>
#include <string.h>

enum { LIMIT = 2, THIRD = 2, WRITER = 3, LAST = 4, ALL = 5 };

static struct connection reader, writer;
static int64_t believed_us[LIMIT];

static void note_beliefs(void)
{
  for (int i = 0; i < LIMIT; i++)
    believed_us[i] = atomic_load(&contest.hold[i].until_us);
}

/* All of them, at a node; it has those who wait in this order. */
static void gather(int first, int replicas, int node)
{
  writer = scene_connection(first, replicas);
  reader = writer;
  reader.shares = true;
  reader.limit = LIMIT;
  contest_begin(&contest, DOOR);
  for (int i = 0; i < LIMIT; i++)
    CHECK(contest_holds(&contest, contest_hold(&contest, &reader, FAIRLOCK_RENEW)));
  for (int i = LIMIT; i < ALL; i++) {
    if (i == THIRD) (void)contest_hold(&contest, &reader, FAIRLOCK_RENEW);
    else (void)contest_pass(&contest, i == WRITER ? &writer : &reader, FAIRLOCK_RENEW, 20);
    CHECK(queue_reaches(node_raw(&rig.node[node]), DOOR, i - LIMIT + 1));
  }
  CHECK(scene_replicated(node));
  note_beliefs();
}

/* Both know that their leases were extended since then, and those who wait are back at this node. */
static bool goes_on(int node)
{
  const int64_t rounding_us = 10000;
  int64_t until = now_ms() + MOVED_SOON, since_s = scene_time(node);
  bool extended = false;
  while (now_ms() < until && !(extended && scene_waits(node, ALL - LIMIT, since_s))) {
    sleep_ms(50);
    extended = true;
    for (int i = 0; i < LIMIT; i++)
      extended &= atomic_load(&contest.hold[i].until_us) > believed_us[i] + rounding_us;
  }
  bool good = CHECK(extended && scene_waits(node, ALL - LIMIT, since_s));
  for (int i = 0; i < LIMIT; i++)
    good &= CHECK(contest_believes(&contest, i));
  return good && CHECK(!contest_believes(&contest, THIRD));
}

static void end(void)
{
  contest_let_go(&contest, 0);
  CHECK(contest_holds(&contest, THIRD));
  CHECK(contest_believes(&contest, 1));
  CHECK(contest_end(&contest));
  for (int i = 0; i < ALL; i++) {
    CHECK_EQUAL(atomic_load(&contest.contender[i].status), FAIRLOCK_OK);
    CHECK_EQUAL(atomic_load(&contest.contender[i].released), FAIRLOCK_OK);
  }
  CHECK(contest_good(&contest));
  CHECK_EQUAL(contest_disorder(&contest, THIRD, LAST), 0);
  rig_stop(&rig);
}

static void test_sentinel_killed(void)
{
  sentinels_start(&rig, NULL);
  gather(3, 1, 0);
  node_kill(&rig.node[0]);
  int master = sentinels_promote(&rig, 0);
  if (CHECK(master > 0)) CHECK(goes_on(master));
  end();
}

static void test_sentinel_manual(void)
{
  sentinels_start(&rig, NULL);
  gather(3, 0, 0);
  int master = sentinels_fail_over(&rig, 0);
  if (CHECK(master > 0)) CHECK(goes_on(master));
  end();
}

static void cluster_moves(bool killed, int replicas)
{
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), owner = cluster_owner(&rig, slot);
  gather((owner + 1) % 3, replicas, owner); /* the seed sends them on */
  if (killed) {
    node_kill(&rig.node[owner]);
    CHECK_EQUAL(cluster_promote(&rig, slot, owner), owner + 3);
    node_revive(&rig.node[owner]); /* the replica that has to acknowledge now */
  } else {
    CHECK(cluster_fail_over(&rig, owner + 3, ""));
    CHECK_EQUAL(cluster_promoted(&rig, slot, owner), owner + 3);
  }
  CHECK(goes_on(owner + 3));
  end();
}

static void test_cluster_killed(void)
{
  cluster_moves(true, 1);
}

static void test_cluster_failover(void)
{
  cluster_moves(false, 0);
}

/* Until so many more have held. */
static bool more_hold(size_t more)
{
  size_t wanted = atomic_load(contest.used) + more;
  int64_t until = now_ms() + MOVED_SOON;
  while (atomic_load(contest.used) < wanted && now_ms() < until)
    sleep_ms(10);
  return atomic_load(contest.used) >= wanted;
}

/*
 * Readers and writers come again and again, while the master dies twice; its replica has acknowledged
 * whatever they believe in.
 */
static void test_rounds(void)
{
  enum { READERS = 6, WRITERS = 2 };
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), owner = cluster_owner(&rig, slot), other = owner + 3;
  writer = scene_connection((owner + 1) % 3, 1);
  writer.lease_ms = 6000;
  reader = writer;
  reader.shares = true;
  reader.limit = LIMIT;
  contest_begin(&contest, DOOR);
  for (int i = 0; i < READERS + WRITERS; i++)
    (void)contest_round(&contest, i < READERS ? &reader : &writer, FAIRLOCK_RENEW, 5);
  for (int i = 0; i < 2; i++) {
    CHECK(more_hold(200));
    node_kill(&rig.node[owner]);
    CHECK_EQUAL(cluster_promote(&rig, slot, owner), other);
    node_revive(&rig.node[owner]);
    CHECK(more_hold(200));
    int swap = owner;
    owner = other;
    other = swap;
  }
  CHECK(contest_end(&contest));
  int lost = 0, shared = 0;
  for (int i = 0; i < READERS + WRITERS; i++) {
    lost += atomic_load(&contest.contender[i].lost);
    if (i < READERS) shared += atomic_load(&contest.contender[i].acquired);
  }
  printf("# %zu holds, %d of them shared, %d lost\n", atomic_load(contest.used), shared, lost);
  CHECK(contest_good(&contest));
  rig_stop(&rig);
}

/*
 * The slot moves to and fro, while readers and writers come again and again. Nobody loses a hold by
 * it: a script finds all keys that it needs, or does nothing and is sent on.
 */
static void test_slot_moves(void)
{
  enum { READERS = 6, WRITERS = 2, MOVES = 6 };
  cluster_start(&rig, NULL);
  int slot = cluster_slot(&rig, DOOR), from = cluster_owner(&rig, slot), to = (from + 1) % 3;
  writer = scene_connection(from, 0);
  reader = writer;
  reader.shares = true;
  reader.limit = LIMIT;
  contest_begin(&contest, DOOR);
  for (int i = 0; i < READERS + WRITERS; i++)
    (void)contest_round(&contest, i < READERS ? &reader : &writer, FAIRLOCK_RENEW, 5);
  for (int i = 0; i < MOVES; i++) {
    CHECK(more_hold(50));
    if (!CHECK(cluster_move_all(&rig, slot, from, to))) break;
    int swap = from;
    from = to;
    to = swap;
  }
  CHECK(more_hold(50));
  CHECK(contest_end(&contest));
  for (int i = 0; i < READERS + WRITERS; i++)
    CHECK_EQUAL(atomic_load(&contest.contender[i].lost), 0);
  CHECK(contest_good(&contest));
  printf("# %zu holds\n", atomic_load(contest.used));
  rig_stop(&rig);
}

/* A holder of the only share stays with the old master, which is cut off; another goes to the new one. */
static void test_split(void)
{
  struct rig_options options = {.parted = true};
  sentinels_start(&rig, &options);
  reader = scene_connection(3, 2);
  reader.lease_ms = 6000;
  reader.shares = true;
  reader.limit = 1;
  contest_begin(&contest, DOOR);
  int first = contest_hold(&contest, &reader, FAIRLOCK_RENEW);
  CHECK(contest_holds(&contest, first));
  rig_part(&rig, 1U << 0);
  int master = sentinels_promote(&rig, 0);
  CHECK(master > 0 && sentinels_settle(&rig, master));
  int second = contest_hold(&contest, &reader, FAIRLOCK_RENEW);
  sleep_ms(3 * (int64_t)reader.lease_ms);
  CHECK(!contest_believes(&contest, first));
  rig_part(&rig, 0);
  CHECK(contest_holds(&contest, second));
  CHECK(contest_end(&contest));
  CHECK(contest_good(&contest));
  rig_stop(&rig);
}

/* A master and its replica, which is promoted by hand */

enum { A, B, C, D, MEMBERS };

static struct member {
  struct client client;
  struct fairlock_topology topology;
  char address[64], seeds[80];
  struct fairlock_shared shared, other; /* which names a smaller limit */
} members[MEMBERS];

static struct server second;
static struct raw copy; /* what it has */

static struct fairlock *share_of(int i)
{
  return &members[i].shared.handle;
}

static void open_member(int i, int replicas)
{
  struct member *member = &members[i];
  memset(member, 0, sizeof *member);
  client_prepare(&member->client, 0);
  (void)snprintf(member->seeds, sizeof member->seeds, "127.0.0.1:%d,127.0.0.1:%d", server.port,
                 second.port);
  CHECK(port_posix_seeds(&member->client.socket, member->seeds));
  client_start(&member->client);
  member->topology.address = member->address;
  member->topology.address_size = sizeof member->address;
  member->topology.replicas = (uint32_t)replicas;
  CHECK_EQUAL(fairlock_follow(&member->client.client, &member->topology), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_shared(&member->shared, &member->client.client, DOOR, LIMIT),
              FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_shared(&member->other, &member->client.client, DOOR, 1), FAIRLOCK_OK);
}

static void begin_pair(int replicas)
{
  begin();
  server_start(&second, NULL);
  CHECK(raw_open(&copy, second.port));
  CHECK(raw_run(&copy, "REPLICAOF 127.0.0.1 %d", server.port));
  AWAIT(strstr(raw_text(&copy, "INFO replication"), "master_link_status:up") != NULL, sleep_ms(10));
  for (int i = 0; i < MEMBERS; i++)
    open_member(i, replicas);
}

static void end_pair(void)
{
  for (int i = 0; i < MEMBERS; i++) {
    CHECK_EQUAL(fairlock_deinit(share_of(i)), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_deinit(&members[i].other.handle), FAIRLOCK_OK);
    client_close(&members[i].client);
  }
  CHECK(nothing_left(&copy, DOOR));
  raw_close(&copy);
  server_stop(&second);
  server_restart(&server);
  raw_close(&redis);
  CHECK(raw_open(&redis, server.port));
}

static bool has(struct raw *raw, int i)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  fairlock_id(share_of(i), id, FAIRLOCK_HOLDER_ID_SIZE);
  return raw_number(raw, "HEXISTS " DOOR " %s", id) == 1;
}

static bool holds(int i)
{
  return fairlock_result(share_of(i)) == FAIRLOCK_OK && fairlock_hold_count(share_of(i)) > 0;
}

static void service_all(void)
{
  for (int i = 0; i < MEMBERS; i++)
    service_for(&members[i].client, 1);
}

/* A share that an acquire returns is on the replica; one that no replica has is none. */
static void test_acknowledged(void)
{
  begin_pair(1);
  CHECK_EQUAL(fairlock_acquire(share_of(A), 1000, 60000), FAIRLOCK_OK);
  CHECK(has(&copy, A));
  /* one that names a smaller limit waits */
  CHECK_EQUAL(fairlock_try_acquire(&members[B].other.handle, 60000), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_acquire(&members[B].other.handle, 1000, 60000), FAIRLOCK_TIMEOUT);
  CHECK_EQUAL(fairlock_try_acquire(share_of(B), 60000), FAIRLOCK_OK);
  CHECK(has(&copy, B));
  CHECK_EQUAL(fairlock_try_acquire(share_of(C), 60000), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_start_acquire(share_of(C), FAIRLOCK_FOREVER, 60000), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, DOOR) == 1, service_all());
  CHECK_EQUAL(fairlock_release(share_of(B)), FAIRLOCK_OK);
  AWAIT(holds(C), service_all());
  CHECK(holds(C) && has(&copy, C));
  CHECK_EQUAL(fairlock_acquire(share_of(A), 1000, 90000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(A)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_hold_count(share_of(A)), 1);
  CHECK_EQUAL(fairlock_release(share_of(C)), FAIRLOCK_OK);

  uint64_t token = fairlock_token(share_of(A));
  AWAIT(!has(&copy, C), sleep_ms(5));
  CHECK(raw_run(&copy, "REPLICAOF NO ONE"));
  AWAIT(raw_number(&redis, "WAIT 1 1") == 0, sleep_ms(5));
  CHECK_EQUAL(fairlock_try_acquire(share_of(B), 60000), FAIRLOCK_UNSYNCED);
  CHECK_EQUAL(fairlock_token(share_of(B)), 0);
  CHECK_EQUAL(fairlock_acquire(share_of(C), 2000, 60000), FAIRLOCK_UNSYNCED);
  CHECK(!has(&redis, B) && !has(&redis, C));
  CHECK(has(&redis, A));
  server_kill(&server);
  CHECK(has(&copy, A) && !has(&copy, B) && !has(&copy, C));
  CHECK(fairlock_remaining_ms(share_of(A)) > 0);
  CHECK(fairlock_token(share_of(A)) == token);
  CHECK_EQUAL(fairlock_release(share_of(A)), FAIRLOCK_OK);
  end_pair();
}

/* Whoever's share the new master lacks, because nobody waited for a replica, finds out. */
static void test_lacking(void)
{
  begin_pair(0);
  CHECK_EQUAL(fairlock_acquire(share_of(A), 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  AWAIT(has(&copy, A), sleep_ms(5));
  uint64_t first = fairlock_token(share_of(A));
  CHECK(raw_run(&copy, "REPLICAOF NO ONE"));
  AWAIT(raw_number(&redis, "WAIT 1 1") == 0, sleep_ms(5));
  CHECK_EQUAL(fairlock_acquire(share_of(B), 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t lost = fairlock_token(share_of(B));
  server_kill(&server);
  AWAIT(atomic_load(&members[B].client.losses) > 0, service_all());
  CHECK_EQUAL(atomic_load(&members[B].client.losses), 1);
  CHECK_EQUAL(fairlock_token(share_of(B)), 0);
  CHECK_EQUAL(fairlock_acquire(share_of(C), 10000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_token(share_of(C)) > first);
  CHECK(has(&copy, A) && has(&copy, C));
  CHECK_EQUAL(fairlock_try_acquire(share_of(D), FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_release(share_of(B)), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(share_of(C)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(share_of(B), 10000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_token(share_of(B)) > lost);
  CHECK(fairlock_token(share_of(A)) == first);
  CHECK_EQUAL(atomic_load(&members[A].client.losses), 0);
  CHECK_EQUAL(fairlock_release(share_of(A)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(share_of(B)), FAIRLOCK_OK);
  end_pair();
}

const struct check_test check_tests[] = {{"shared_acknowledged", test_acknowledged},
                                         {"shared_lacking", test_lacking},
                                         {"shared_sentinel_killed", test_sentinel_killed},
                                         {"shared_sentinel_manual", test_sentinel_manual},
                                         {"shared_cluster_killed", test_cluster_killed},
                                         {"shared_cluster_failover", test_cluster_failover},
                                         {"shared_rounds", test_rounds},
                                         {"shared_slot_moves", test_slot_moves},
                                         {"shared_split", test_split},
                                         {NULL, NULL}};
