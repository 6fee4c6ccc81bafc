/* SPDX-License-Identifier: Apache-2.0 */
/* What the scenarios share; see scene.h. */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>

struct rig rig;
struct contest contest;

/* The holder's lease; when it was last extended, as far as we know, and until when it then believed. */
static int64_t lease_ms, extended_ms, believed_us;

/* What the keeper had before the servers moved. */
static uint64_t kept;

struct connection scene_connection(int first, int replicas)
{
  static char url[400];
  rig_url(&rig, first, url, sizeof url);
  return (struct connection){
      .url = url, .replicas = replicas, .lease_ms = SCENE_LEASE_MS, .offline_ms = FAIRLOCK_FOREVER};
}

static void note_extension(void)
{
  extended_ms = now_ms();
  believed_us = atomic_load(&contest.hold[0].until_us);
}

/* WAIT counts from what the same connection wrote last. */
bool scene_replicated(int node)
{
  struct raw *raw = node_raw(&rig.node[node]);
  return raw_run(raw, "SET {" DOOR "}:mark 1 PX 1") &&
         raw_number(raw, "WAIT %d %d", rig.cluster ? 1 : 2, MOVED_SOON) == (rig.cluster ? 1 : 2);
}

void scene_gather(const struct connection *connection, int node)
{
  contest_begin(&contest, DOOR);
  CHECK(contest_holds(&contest, contest_hold(&contest, connection, FAIRLOCK_RENEW)));
  for (int i = 1; i <= WAITERS; i++) {
    (void)contest_pass(&contest, connection, FAIRLOCK_RENEW, 20);
    CHECK(queue_reaches(node_raw(&rig.node[node]), DOOR, i));
  }
  CHECK(scene_replicated(node));
  lease_ms = connection->lease_ms;
  note_extension();
}

int64_t scene_time(int node)
{
  struct raw *raw = node_raw(&rig.node[node]);
  return raw_number(raw, "TIME") == 2 ? atoll(raw->element[1].text) : INT64_MAX;
}

/* A waiter's note begins with the time: seconds, microseconds, its timeout. */
static int heard_since(struct raw *raw, int64_t since_s)
{
  int heard = 0;
  int64_t count = raw_number(raw, "HVALS fairlock:{" DOOR "}");
  for (int64_t i = 1; i <= count; i++) {
    long long seconds, us, timeout;
    bool note = sscanf(raw->element[i].text, "%lld %lld %lld", &seconds, &us, &timeout) == 3;
    heard += note && seconds > since_s;
  }
  return heard;
}

/* A holder that has not had to connect again since it acquired listens, too. */
bool scene_waits(int node, int count, int64_t since_s)
{
  struct raw *raw = node_raw(&rig.node[node]);
  if (raw_number(raw, "PUBSUB CHANNELS redisson_lock__channel:{" DOOR "}:*") < count &&
      raw_number(raw, "PUBSUB SHARDCHANNELS redisson_lock__channel:{" DOOR "}:*") < count)
    return false;
  return heard_since(raw, since_s) >= count;
}

/* The lease that this node knows of was asked for since then, and the holder knows. */
static bool extended_at(int node)
{
  const int64_t rounding_us = 10000;
  int64_t now = now_ms();
  int64_t left = raw_number(node_raw(&rig.node[node]), "PTTL " DOOR);
  return left > 0 && now + left > extended_ms + lease_ms &&
         atomic_load(&contest.hold[0].until_us) > believed_us + rounding_us;
}

bool scene_renewed(int node)
{
  int64_t until = now_ms() + MOVED_SOON, since_s = scene_time(node);
  while (now_ms() < until && contest_believes(&contest, 0)) {
    if (extended_at(node) && scene_waits(node, WAITERS, since_s)) {
      note_extension();
      return true;
    }
    sleep_ms(50);
  }
  return false;
}

void scene_end(void)
{
  CHECK(contest_believes(&contest, 0));
  contest_let_go(&contest, 0);
  CHECK(contest_end(&contest));
  for (int i = 0; i <= WAITERS; i++) {
    CHECK_EQUAL(atomic_load(&contest.contender[i].status), FAIRLOCK_OK);
    CHECK_EQUAL(atomic_load(&contest.contender[i].released), FAIRLOCK_OK);
  }
  CHECK(contest_good(&contest));
  CHECK_EQUAL(contest_disorder(&contest, 1, WAITERS), 0);
  rig_stop(&rig);
}

/* The token of its last two holds, between which it has kept the lock; 0: it has not. */
static uint64_t token_kept(void)
{
  size_t used = atomic_load(contest.used);
  if (used < 2) return 0;
  const struct hold *last = &contest.hold[used - 1];
  return atomic_load(&last->written) && last[0].token == last[-1].token ? last->token : 0;
}

void scene_keeper(const struct connection *connection)
{
  struct connection keeping = *connection;
  keeping.keep_ms = 15000;
  contest_begin(&contest, DOOR);
  (void)contest_round(&contest, &keeping, FAIRLOCK_RENEW, 20);
  AWAIT((kept = token_kept()) != 0, sleep_ms(5));
  CHECK(kept != 0);
}

void scene_keeper_ends(const struct connection *connection)
{
  uint64_t next = kept;
  int64_t until = now_ms() + MOVED_SOON;
  while ((next == 0 || next == kept) && now_ms() < until) {
    sleep_ms(5);
    next = token_kept();
  }
  CHECK(next != 0 && next != kept);
  int waiter = contest_pass(&contest, connection, FAIRLOCK_RENEW, 20);
  CHECK(contest_over(&contest, waiter));
  CHECK_EQUAL(atomic_load(&contest.contender[waiter].status), FAIRLOCK_OK);
  CHECK_EQUAL(atomic_load(&contest.contender[waiter].released), FAIRLOCK_OK);
  CHECK(contest_end(&contest));
  CHECK(contest_good(&contest));
  rig_stop(&rig);
}
