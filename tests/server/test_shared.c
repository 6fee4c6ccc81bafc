/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that several share: how many hold beside each other, who waits for whom, and what those see
 * who know nothing of it.
 */
#include <stdio.h>
#include <string.h>

#include "scripts/hashes.h"

enum { MEMBERS = 6 };
#include "members.h"

static void test_beside(void)
{
  uint64_t before = 0;
  begin_with(0);
  for (int i = 0; i < MEMBERS; i++) {
    CHECK_EQUAL(fairlock_try_acquire(sharer(i), FAIRLOCK_RENEW), FAIRLOCK_OK);
    CHECK(fairlock_token(sharer(i)) > before);
    before = fairlock_token(sharer(i));
  }
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_hold_count(sharer(1)), 2);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  for (int i = 0; i < MEMBERS; i++)
    CHECK_EQUAL(fairlock_release(sharer(i)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(2), FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_release(&alone[0]), FAIRLOCK_OK);
  end_members();
}

/* Who is let in has as long to confirm it as its own claim, however rare its heartbeats are. */
static void test_claim(void)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  begin_patient(1, 60000, 2000);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(0, sharer(0));
  fairlock_id(sharer(0), id, FAIRLOCK_HOLDER_ID_SIZE);
  const char *note = raw_text(&redis, "HGET fairlock:{%s} %s", name, id);
  CHECK(strstr(note, " 60000 S1 C2000") != NULL);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  int64_t left = raw_number(&redis, "PTTL %s", name);
  CHECK(left > 0 && left < 2200); /* an end is rounded up by a sixteenth */
  await_hold(sharer(0));
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  end_members();
}

static void test_limit(void)
{
  begin_with(2);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(2), FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  queue(3, sharer(3));
  queue(4, sharer(4));
  CHECK_EQUAL(fairlock_try_acquire(sharer(2), FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  await_hold(sharer(3));
  CHECK(!holds(sharer(4)));
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  await_hold(sharer(4));
  CHECK_EQUAL(fairlock_release(sharer(3)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(4)), FAIRLOCK_OK);
  end_members();
}

/* The smallest limit in use binds, and nobody is refused for another one: so a limit is changed while it is used. */
static void test_other_limit(void)
{
  struct fairlock_shared other;
  begin_with(2);
  CHECK_EQUAL(fairlock_init_shared(&other, &clients[5].client, name, FAIRLOCK_LIMIT_MAX + 1),
              FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_init_shared(&other, &clients[5].client, name, 3), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), 2000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&other.handle, FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  queue(5, &other.handle);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  await_hold(&other.handle);
  CHECK_EQUAL(fairlock_try_acquire(sharer(2), FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  /* with the last holder the smaller one ends, and three get in */
  CHECK_EQUAL(fairlock_release(&other.handle), FAIRLOCK_OK);
  struct fairlock_shared more[2];
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(fairlock_init_shared(&more[i], &clients[i].client, name, 3), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_try_acquire(&more[i].handle, 60000), FAIRLOCK_OK);
  }
  CHECK_EQUAL(fairlock_try_acquire(sharer(2), FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_try_acquire(&other.handle, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&other.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&other.handle), FAIRLOCK_OK);
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(fairlock_release(&more[i].handle), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_deinit(&more[i].handle), FAIRLOCK_OK);
  }
  end_members();
}

/* First come, first served, whatever they want: who came before the writer reads before it. */
static void test_order(void)
{
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(1, sharer(1));
  queue(2, sharer(2));
  queue(3, &alone[3]);
  queue(4, sharer(4));
  queue(5, sharer(5));
  CHECK_EQUAL(fairlock_release(&alone[0]), FAIRLOCK_OK);
  await_hold(sharer(1));
  await_hold(sharer(2));
  CHECK(!holds(&alone[3]) && !holds(sharer(4)) && !holds(sharer(5)));
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(2)), FAIRLOCK_OK);
  await_hold(&alone[3]);
  CHECK(!holds(sharer(4)) && !holds(sharer(5)));
  CHECK_EQUAL(fairlock_release(&alone[3]), FAIRLOCK_OK);
  await_hold(sharer(4));
  await_hold(sharer(5));
  CHECK_EQUAL(fairlock_release(sharer(4)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(5)), FAIRLOCK_OK);
  end_members();
}

/* Whoever waits behind one that wants it alone enters soon after that one has given up. */
static void test_writer_gives_up(void)
{
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(1, &alone[1]);
  queue(2, sharer(2));
  queue(3, sharer(3));
  CHECK_EQUAL(fairlock_cancel(&alone[1]), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&clients[1], &alone[1]), FAIRLOCK_CANCELLED);
  await_hold(sharer(2));
  await_hold(sharer(3));
  for (int i = 0; i < 4; i++)
    if (i != 1) CHECK_EQUAL(fairlock_release(sharer(i)), FAIRLOCK_OK);
  end_members();
}

/*
 * They learn it long before their next heartbeat, which with this timeout comes after 16 s; and so
 * they do where they have only just queued, and where several have given up.
 */
static void test_writers_give_up(void)
{
  begin_patient(0, 40000, 0);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(1, &alone[1]);
  queue(2, &alone[2]);
  queue(3, sharer(3));
  queue(4, sharer(4));
  int64_t began = now_ms();
  for (int i = 1; i <= 2; i++) {
    CHECK_EQUAL(fairlock_cancel(&alone[i]), FAIRLOCK_OK);
    CHECK_EQUAL(await_result(&clients[i], &alone[i]), FAIRLOCK_CANCELLED);
    if (i == 1) CHECK(!holds(sharer(3)));
  }
  await_hold(sharer(3));
  await_hold(sharer(4));
  CHECK(now_ms() - began < 15000); /* 1.6 s each */
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(3)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(4)), FAIRLOCK_OK);
  end_members();
}

/* The end of a lease lets in who waits at the limit. */
static void test_crash(void)
{
  begin_with(1);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), 2000), FAIRLOCK_OK);
  queue(1, sharer(1));
  await_hold(sharer(1));
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  end_members();
}

static const char *id_of(struct fairlock *handle)
{
  static char id[FAIRLOCK_HOLDER_ID_SIZE];
  fairlock_id(handle, id, FAIRLOCK_HOLDER_ID_SIZE);
  return id;
}

/* By its score, in ms. */
static const char time_left[] =
    "return redis.call('zscore', 'redisson_lock_timeout:{shared}', ARGV[1]) - "
    "redis.call('time')[1] * 1000";

/* Redisson counts a place by the lock's TTL, not by the first lease that ends. */
static void test_score(void)
{
  begin_with(2);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), 600000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), 30000), FAIRLOCK_OK);
  queue(2, sharer(2));
  CHECK(raw_number(&redis, "EVAL %s 0 %s", time_left, id_of(sharer(2))) > 800000);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  await_hold(sharer(2));
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(2)), FAIRLOCK_OK);
  end_members();
}

/*
 * Each request of a holder has Redisson's first in line look again after the lease that ends last,
 * also of one whose own ends before.
 */
static void test_first_in_line(void)
{
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), 600000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), 30000), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(&redis, "RPUSH redisson_lock_queue:{shared} theirs:1"), 1);
  CHECK_EQUAL(raw_number(&redis, "ZADD redisson_lock_timeout:{shared} 1 theirs:1"), 1);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), 30000), FAIRLOCK_OK);
  CHECK(raw_number(&redis, "EVAL %s 0 theirs:1", time_left) > 890000);
  CHECK_EQUAL(raw_number(&redis, "DEL redisson_lock_queue:{shared} redisson_lock_timeout:{shared}"),
              2);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  end_members();
}

/* A downgrade that the server refuses half-way leaves the hold that there was. */
static void test_downgrade_refused(void)
{
  char from[FAIRLOCK_HOLDER_ID_SIZE];
  char request[FAIRLOCK_HOLDER_ID_SIZE + 80];
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_downgrade(&alone[0], &shared[0], FAIRLOCK_RENEW),
              FAIRLOCK_OK); /* loads it */
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  fairlock_id(&alone[0], from, FAIRLOCK_HOLDER_ID_SIZE);
  (void)snprintf(request, sizeof request, "%s 99999999999999 -%s 30000 %llu", id_of(sharer(0)),
                 strrchr(from, ':') + 1, (unsigned long long)fairlock_token(&alone[0]));
  CHECK(raw_run(&redis, "ACL SETUSER default -hdel"));
  CHECK(!raw_run(&redis,
                 "EVALSHA %s 4 shared redisson_lock_queue:{shared} redisson_lock_timeout:{shared} "
                 "fairlock:{shared} %s 0",
                 FAIRLOCK_DOWNGRADE_SHA1, request));
  CHECK(raw_run(&redis, "ACL SETUSER default +hdel"));
  CHECK_EQUAL(raw_number(&redis, "HLEN shared"), 1);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&alone[0]), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&alone[0]), FAIRLOCK_OK);
  end_members();
}

/* Those who have ended are cleaned out of the hash when they are many, and nothing else is. */
static void test_crowd(void)
{
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), 600000), FAIRLOCK_OK);
  for (int i = 0; i < 40; i++)
    CHECK_EQUAL(raw_number(&redis, "HSET shared ended:%d %s", i, "5 1000 1 1000"), 1);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), 30000), FAIRLOCK_OK);
  CHECK_EQUAL(raw_number(&redis, "HLEN shared"), 3);
  CHECK_EQUAL(raw_number(&redis, "HEXISTS shared shared"), 1);
  CHECK_EQUAL(fairlock_try_acquire(&alone[2], FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_try_acquire(sharer(3), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(3)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  end_members();
}

/* Who enters when one of Redisson's has gone lets those behind in, too. */
static void test_behind_redisson(void)
{
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(1, sharer(1));
  queue(2, sharer(2));
  CHECK_EQUAL(raw_number(&redis, "LPUSH redisson_lock_queue:{shared} gone:1"), 3);
  CHECK_EQUAL(raw_number(&redis, "ZADD redisson_lock_timeout:{shared} 1 gone:1"), 1);
  CHECK_EQUAL(raw_number(&redis, "DEL shared"), 1);
  AWAIT(holds(sharer(1)), service_for(&clients[1], 1));
  CHECK_EQUAL(raw_number(&redis, "HEXISTS shared %s", id_of(sharer(2))), 1);
  await_hold(sharer(2));
  CHECK_EQUAL(fairlock_release(&alone[0]), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(2)), FAIRLOCK_OK);
  end_members();
}

/* A script that was stopped has let somebody in, and left its place: nobody lets it in again. */
static void test_place_left(void)
{
  begin_with(2);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(1, sharer(1));
  CHECK_EQUAL(fairlock_release(&alone[0]), FAIRLOCK_OK);
  await_hold(sharer(1));
  AWAIT(strstr(raw_text(&redis, "HGET shared %s", id_of(sharer(1))), " 1 30000+") != NULL,
        service_all());
  const char *id = id_of(sharer(1));
  CHECK_EQUAL(raw_number(&redis, "LPUSH redisson_lock_queue:{shared} %s", id), 1);
  CHECK_EQUAL(raw_number(&redis, "ZADD redisson_lock_timeout:{shared} 99999999999999 %s", id), 1);
  CHECK_EQUAL(raw_number(&redis, "HSET fairlock:{shared} %s %s", id, "9999999999 0 5000 S2"), 1);
  CHECK_EQUAL(fairlock_try_acquire(sharer(2), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(queue_length(&redis, name), 0);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(2)), FAIRLOCK_OK);
  end_members();
}

/* A hold has an end, also where all that was in the lock had ended, and one of Redisson's is gone. */
static void test_ended(void)
{
  begin_with(2);
  CHECK(raw_run(&redis, "HSET shared ended:1 %s", "1 1 1 1"));
  CHECK(raw_run(&redis, "HSET shared shared %s", "1 1"));
  CHECK(raw_run(&redis, "PEXPIRE shared 60000"));
  CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{shared} peer:1"));
  CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{shared} 1 peer:1"));
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(raw_number(&redis, "PTTL shared") > 0);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  end_members();
}

/* A limit until a time that nobody can mean stops nobody. */
static void test_limit_of_nobody(void)
{
  begin_with(2);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "HSET fairlock:{shared} limit %s", "1 9007199254740991"));
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  end_members();
}

static struct fairlock_report reports[16];
static char limits[64]; /* of the first holder */
static int reported;

static bool note_report(const struct fairlock_report *report, void *context)
{
  (void)context;
  if (report->place == 0 && report->holder_index == 0) {
    reported = 0;
    (void)snprintf(limits, sizeof limits, "%.*s", (int)report->limits_size,
                   report->limits_size > 0 ? report->limits : "");
  }
  if (reported < 16) reports[reported++] = *report;
  return true;
}

static void look(void)
{
  CHECK_EQUAL(fairlock_inspect(&clients[5].client, name, sizeof name - 1, note_report, NULL),
              FAIRLOCK_OK);
}

static void test_inspect_and_break(void)
{
  begin_with(3);
  look();
  CHECK_EQUAL(reported, 1);
  CHECK(reports[0].id == NULL && reports[0].holder_count == 0 && !reports[0].shares);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), 20000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(2), 40000), FAIRLOCK_OK);
  queue(3, sharer(3));
  queue(4, &alone[4]);
  look();
  CHECK_EQUAL(reported, 5);
  static const int order[] = {1, 2, 0};
  for (uint32_t i = 0; i < 3; i++) {
    CHECK_EQUAL(reports[i].holder_count, 3);
    CHECK_EQUAL(reports[i].holder_index, i);
    CHECK_EQUAL(reports[i].waiter_count, 2);
    CHECK(reports[i].shares && reports[i].kind == FAIRLOCK_KIND_FAIRLOCK &&
          reports[i].life != FAIRLOCK_LIFE_DEAD);
    CHECK_EQUAL(reports[i].limit, 3);
    CHECK_EQUAL(reports[i].hold_count, 1);
    CHECK(reports[i].token == fairlock_token(sharer(order[i])));
  }
  CHECK_EQUAL(reports[0].lease_ms, 60000);
  CHECK(reports[0].ttl_ms > 50000 && reports[1].ttl_ms <= 43000);
  CHECK_EQUAL(reports[3].place, 1);
  CHECK(reports[3].shares && reports[3].kind == FAIRLOCK_KIND_FAIRLOCK && !reports[4].shares &&
        reports[4].kind == FAIRLOCK_KIND_FAIRLOCK);

  uint64_t token = fairlock_token(sharer(1));
  CHECK_EQUAL(fairlock_force_release(&clients[5].client, name, sizeof name - 1, token),
              FAIRLOCK_OK);
  await_hold(sharer(3));
  CHECK_EQUAL(fairlock_force_release(&clients[5].client, name, sizeof name - 1, token),
              FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(3)), FAIRLOCK_OK);
  CHECK(!holds(&alone[4]));
  CHECK_EQUAL(fairlock_force_release(&clients[5].client, name, sizeof name - 1, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_OK);
  await_hold(&alone[4]);
  CHECK_EQUAL(fairlock_release(sharer(2)), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(&alone[4]), FAIRLOCK_OK);
  end_members();
}

static int losses_of(int i)
{
  return clients[i].losses;
}

/* Those who share are told at once, too: the one that was meant, or all, and nobody else. */
static void test_told_of_a_break(void)
{
  begin_with(0);
  for (int i = 0; i < 4; i++)
    CHECK_EQUAL(fairlock_acquire(sharer(i), 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(4, &alone[4]);
  int64_t began = now_ms();
  CHECK_EQUAL(
      fairlock_force_release(&clients[5].client, name, sizeof name - 1, fairlock_token(sharer(1))),
      FAIRLOCK_OK);
  AWAIT(losses_of(1) > 0, service_all());
  CHECK(losses_of(1) == 1 && losses_of(0) + losses_of(2) + losses_of(3) == 0);
  CHECK(now_ms() - began < 5000); /* their next renewal is 10 s away */
  CHECK_EQUAL(fairlock_force_release(&clients[5].client, name, sizeof name - 1, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_OK);
  AWAIT(losses_of(0) + losses_of(2) + losses_of(3) == 3, service_all());
  CHECK(losses_of(0) == 1 && losses_of(1) == 1 && losses_of(2) == 1 && losses_of(3) == 1);
  CHECK(now_ms() - began < 5000);
  await_hold(&alone[4]);
  for (int i = 0; i < 4; i++)
    CHECK_EQUAL(fairlock_release(sharer(i)), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(&alone[4]), FAIRLOCK_OK);
  end_members();
}

/* A lock that was shared was held until the last of them had gone, who need not be who came last. */
static void test_last(void)
{
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(sharer(1));
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  sleep_ms(200);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  look();
  CHECK_EQUAL(reported, 1);
  CHECK(reports[0].id == NULL && reports[0].last.token == token);
  CHECK_EQUAL(reports[0].last.end, FAIRLOCK_LAST_RELEASED);
  CHECK(reports[0].last.lasted_ms >= 200);
  end_members();
}

/* What is not known is not made up: the lease of a claim, and a limit that no client names. */
static void test_inspect_oddities(void)
{
  begin_with(1);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "HSET fairlock:{shared} limit 99999999999999"));
  look();
  CHECK_EQUAL(reported, 1);
  CHECK_EQUAL(reports[0].limit, 0);
  CHECK_EQUAL(reports[0].lease_ms, 30000);
  queue(1, sharer(1));
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  look();
  CHECK_EQUAL(reported, 1);
  CHECK(reports[0].shares && reports[0].kind == FAIRLOCK_KIND_FAIRLOCK && reports[0].ttl_ms > 0);
  CHECK_EQUAL(reports[0].hold_count, 0);
  CHECK_EQUAL(reports[0].limit, 1);
  CHECK_EQUAL(reports[0].lease_ms, 0);
  CHECK_EQUAL(reports[0].unheard_ms, -1);
  await_hold(sharer(1));
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  end_members();
}

static const char *limits_of(const char *note)
{
  CHECK(raw_run(&redis, "HSET fairlock:{shared} limit %s", note));
  look();
  CHECK_EQUAL(reported, 2);
  CHECK(reports[1].limits_size == 0 && reports[1].id_size > 0);
  CHECK_EQUAL(reports[0].limit, reports[1].limit);
  return limits;
}

/* All limits in use are shown, nine at most, and each holder has its id. */
static void test_inspect_limits(void)
{
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), 20000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), 60000), FAIRLOCK_OK);
  char note[256];
  int64_t server_ms = raw_number(&redis, "EVAL %s 0", "return redis.call('time')[1] * 1000");
  (void)snprintf(note, sizeof note, "7 %lld 2 1000 5 9000000000000 12 %lld 0 %lld 1000000000 %lld",
                 (long long)server_ms + 9000, (long long)server_ms + 9000,
                 (long long)server_ms + 9000, (long long)server_ms + 9000);
  CHECK(strcmp(limits_of(note), "7 12") == 0);
  CHECK_EQUAL(reports[0].limit, 7);
  (void)snprintf(note, sizeof note, "7 %lld", (long long)server_ms + 9000);
  CHECK(strcmp(limits_of(note), "") == 0);
  CHECK_EQUAL(reports[0].limit, 7);
  CHECK(strcmp(limits_of("7"), "") == 0);
  CHECK_EQUAL(reports[0].limit, 0);
  size_t size = 0;
  for (int limit = 20; limit > 8; limit--)
    size += (size_t)snprintf(note + size, sizeof note - size, "%d %lld ", limit,
                             (long long)server_ms + 9000);
  CHECK(strcmp(limits_of(note), "9 10 11 12 13 14 15 16 17") == 0);
  CHECK_EQUAL(reports[0].limit, 9);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  /* beside one who has it alone there are none */
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], 20000), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "HSET fairlock:{shared} limit %s", note));
  look();
  CHECK(reported == 1 && reports[0].limit == 0 && reports[0].limits_size == 0);
  CHECK_EQUAL(reports[0].id_size, strlen(id_of(&alone[0])));
  CHECK_EQUAL(fairlock_release(&alone[0]), FAIRLOCK_OK);
  end_members();
}

/* An operator ends a limit that was wrong together with the last share of it. */
static void test_limit_is_broken(void)
{
  struct fairlock_shared other;
  struct fairlock_client *client = &clients[5].client;
  begin_with(1);
  CHECK_EQUAL(fairlock_init_shared(&other, client, name, 2), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), 600000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&other.handle, FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_force_release(client, name, sizeof name - 1, fairlock_token(sharer(0))),
              FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&other.handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(2), FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(&other.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&other.handle), FAIRLOCK_OK);
  end_members();
}

/* Requests come again after their connection broke. */
static void test_broken_connections(void)
{
  begin_with(2);
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(2, sharer(2));
  for (int i = 0; i < 3; i++)
    break_connection(&clients[i]);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  await_hold(sharer(2));
  CHECK_EQUAL(fairlock_release(sharer(2)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  end_members();
}

const struct check_test check_tests[] = {
    {"shared: beside each other", test_beside},
    {"shared: as many as may", test_limit},
    {"shared: a claim of its own", test_claim},
    {"shared: another limit", test_other_limit},
    {"shared: first come, first served", test_order},
    {"shared: one that wants it alone gives up", test_writer_gives_up},
    {"shared: two that want it alone give up", test_writers_give_up},
    {"shared: all has ended", test_ended},
    {"shared: a limit that nobody can mean", test_limit_of_nobody},
    {"shared: a lease ends", test_crash},
    {"shared: the score of a place", test_score},
    {"shared: when the first in line looks again", test_first_in_line},
    {"shared: many who have ended", test_crowd},
    {"shared: a downgrade that is refused half-way", test_downgrade_refused},
    {"shared: behind one of Redisson's that has gone", test_behind_redisson},
    {"shared: a place that a script has left", test_place_left},
    {"shared: looked at and broken", test_inspect_and_break},
    {"shared: told of a break", test_told_of_a_break},
    {"shared: who held it last", test_last},
    {"shared: looked at, and odd", test_inspect_oddities},
    {"shared: limits of an inspection", test_inspect_limits},
    {"shared: its limit is broken", test_limit_is_broken},
    {"shared: connections break", test_broken_connections},
    {NULL, NULL},
};
