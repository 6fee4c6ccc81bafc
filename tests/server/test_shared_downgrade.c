/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From alone to shared: who gets in by that and who does not, and what is left when requests and
 * answers are lost or late.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "scripts/hashes.h"

enum { MEMBERS = 5 };
#include "members.h"

/* The server knows the script from now on, and carries it out without being asked again. */
static void load_script(void)
{
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_downgrade(&alone[0], &shared[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
}

/* None of them has lost its hold. */
static void end_all(void)
{
  for (int i = 0; i < MEMBERS; i++)
    CHECK_EQUAL(clients[i].losses, 0);
  end_members();
}

/* How many share the lock, by what stands in Redis; -1: it is not shared. */
static int64_t holders(void)
{
  const char *text = raw_text(&redis, "HGET %s shared", name);
  int64_t sum = 0;
  if (*text == 0) return -1;
  for (bool at = true; *text != 0; at = !at) {
    size_t size = strcspn(text, " ");
    if (!at) sum += strtol(text, NULL, 10);
    text += size + (text[size] != 0);
  }
  return sum;
}

/* Those first in line join, up to who wants it alone; who tries has to wait for that one. */
static void test_join(void)
{
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t before = fairlock_token(&alone[0]);
  queue(1, sharer(1));
  queue(2, sharer(2));
  queue(3, &alone[3]);
  queue(4, sharer(4));
  CHECK_EQUAL(fairlock_downgrade(&alone[0], &shared[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_token(sharer(0)) > before);
  CHECK_EQUAL(fairlock_hold_count(&alone[0]), 0);
  await_hold(sharer(1));
  await_hold(sharer(2));
  CHECK_EQUAL(holders(), 3);
  CHECK(!holds(&alone[3]) && !holds(sharer(4)));
  for (int i = 0; i < 3; i++)
    CHECK_EQUAL(fairlock_release(sharer(i)), FAIRLOCK_OK);
  await_hold(&alone[3]);
  CHECK(!holds(sharer(4)));
  CHECK_EQUAL(fairlock_release(&alone[3]), FAIRLOCK_OK);
  await_hold(sharer(4));
  CHECK_EQUAL(fairlock_release(sharer(4)), FAIRLOCK_OK);
  end_all();
}

/* Nobody gets in between, even if all want it alone. */
static void test_nobody_between(void)
{
  begin_with(2);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(1, &alone[1]);
  queue(2, sharer(2));
  CHECK_EQUAL(fairlock_downgrade(&alone[0], &shared[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  service_all();
  CHECK(holds(sharer(0)) && !holds(&alone[1]) && !holds(sharer(2)));
  CHECK_EQUAL(fairlock_try_acquire(sharer(3), FAIRLOCK_RENEW), FAIRLOCK_BUSY);
  CHECK_EQUAL(holders(), 1);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  await_hold(&alone[1]);
  CHECK_EQUAL(fairlock_release(&alone[1]), FAIRLOCK_OK);
  await_hold(sharer(2));
  CHECK_EQUAL(fairlock_release(sharer(2)), FAIRLOCK_OK);
  end_all();
}

/* Long after its beginning: renewals of the hold come before it and after it. */
static void test_renewed(void)
{
  begin_with(0);
  struct client brief;
  struct fairlock_downgrading option;
  struct fairlock_shared share;
  struct fairlock hold;
  client_prepare(&brief, server.port);
  brief.config.lease_ms = 600;
  client_start(&brief);
  fairlock_use_downgrading(&brief.client, &option);
  CHECK_EQUAL(fairlock_init(&hold, &brief.client, name), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_shared(&share, &brief.client, name, 0), FAIRLOCK_OK);
  for (int i = 0; i < 5; i++) {
    CHECK_EQUAL(fairlock_acquire(&hold, 5000, FAIRLOCK_RENEW), FAIRLOCK_OK);
    service_for(&brief, 150 + 25 * i); /* the first renewal is sent after 200 */
    CHECK_EQUAL(fairlock_downgrade(&hold, &share, FAIRLOCK_RENEW), FAIRLOCK_OK);
    service_for(&brief, 300);
    CHECK_EQUAL(fairlock_release(&share.handle), FAIRLOCK_OK);
  }
  CHECK_EQUAL(brief.losses, 0);
  CHECK_EQUAL(fairlock_deinit(&hold), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&share.handle), FAIRLOCK_OK);
  client_close(&brief);
  end_all();
}

/* The server has carried it out, and the answer is lost: the repeated one finds the share. */
static void test_lost_answer(void)
{
  char lost[1024];
  begin_with(0);
  load_script();
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(1, &alone[1]);
  CHECK_EQUAL(fairlock_start_downgrade(&alone[0], &shared[0], 5000), FAIRLOCK_PENDING);
  AWAIT(holders() == 1, sleep_ms(1));
  int64_t left = raw_number(&redis, "PTTL %s", name);
  AWAIT(raw_number(&redis, "PTTL %s", name) < left - 500, sleep_ms(10));
  CHECK(recv(port_posix_fd(&clients[0].socket), lost, sizeof lost, MSG_DONTWAIT) > 0);
  break_connection(&clients[0]);
  CHECK_EQUAL(await_result(&clients[0], sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_result(&alone[0]), FAIRLOCK_OK);
  CHECK_EQUAL(holders(), 1);
  CHECK(raw_number(&redis, "PTTL %s", name) >= (int64_t)fairlock_remaining_ms(sharer(0)));
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  await_hold(&alone[1]);
  CHECK_EQUAL(fairlock_release(&alone[1]), FAIRLOCK_OK);
  end_all();
}

/*
 * What the script answers to the request for this hold of alone[0], if it comes now. newer: the
 * largest token that the share's handle has had, if that is larger; 0: it is not.
 */
static int64_t late_answer_with(uint64_t token, const char *newer)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE], from[FAIRLOCK_HOLDER_ID_SIZE], words[160];
  fairlock_id(&alone[0], from, FAIRLOCK_HOLDER_ID_SIZE);
  fairlock_id(sharer(0), id, FAIRLOCK_HOLDER_ID_SIZE);
  int size = snprintf(words, sizeof words, "%s 9000000000000 -%s 30000+ %llu", id,
                      strrchr(from, ':') + 1, (unsigned long long)token);
  CHECK(raw_run(&redis,
                "EVALSHA " FAIRLOCK_DOWNGRADE_SHA1
                " 4 %s redisson_lock_queue:{%s} redisson_lock_timeout:{%s} fairlock:{%s} %b 0 %s",
                name, name, name, name, words, (size_t)size, newer));
  return redis.element[1].integer;
}

static int64_t late_answer(uint64_t token)
{
  return late_answer_with(token, "0");
}

/*
 * A fail-over has lost the newest token: the share gets a larger one than its handle has ever had, and
 * so does whoever comes after it. A repeated request finds that share.
 */
static void test_newer_token(void)
{
  char lost[1024];
  begin_with(0);
  load_script();
  CHECK(raw_run(&redis, "HSET fairlock:{%s} token 4000000000000000", name));
  CHECK_EQUAL(fairlock_try_acquire(sharer(0), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_token(sharer(0)) == 4000000000000001);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "DEL fairlock:{%s}", name));
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&alone[0]);
  CHECK(token < 4000000000000000);
  CHECK_EQUAL(fairlock_start_downgrade(&alone[0], &shared[0], FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(holders() == 1, sleep_ms(1));
  AWAIT(recv(port_posix_fd(&clients[0].socket), lost, sizeof lost, MSG_DONTWAIT) > 0, sleep_ms(1));
  break_connection(&clients[0]);
  CHECK_EQUAL(await_result(&clients[0], sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_result(&alone[0]), FAIRLOCK_OK);
  CHECK(fairlock_token(sharer(0)) == 4000000000000002);
  CHECK_EQUAL(late_answer_with(token, "4000000000000001"), 1);
  CHECK_EQUAL(late_answer_with(token, "4000000000000002"), -1); /* that share is known already */
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_token(sharer(1)) == 4000000000000003);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  end_all();
}

/* The request comes late: after the share, and after another exclusive hold has begun. */
static void test_late(void)
{
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&alone[0]);
  CHECK_EQUAL(fairlock_downgrade(&alone[0], &shared[0], 5000), FAIRLOCK_OK);
  CHECK_EQUAL(late_answer(token), 1);
  CHECK(raw_number(&redis, "PTTL %s", name) > 10000); /* whoever gets this answer believes so */
  CHECK_EQUAL(holders(), 1);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(late_answer(token), -1);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(late_answer(token), -1);
  CHECK_EQUAL(fairlock_release(&alone[0]), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(sharer(1), FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(late_answer(token), -1);
  CHECK_EQUAL(holders(), 1);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  end_all();
}

/* A place in the queue that is left of an earlier wait gives no second share. */
static void test_left_in_the_queue(void)
{
  begin_with(0);
  load_script();
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&alone[0]);
  queue(0, sharer(0));
  queue(1, sharer(1));
  CHECK_EQUAL(late_answer(token), 1);
  CHECK_EQUAL(holders(), 2);
  CHECK_EQUAL(queue_length(&redis, name), 0);
  await_hold(sharer(0)); /* it takes the share for what it waits for */
  await_hold(sharer(1));
  CHECK_EQUAL(fairlock_release(&alone[0]), FAIRLOCK_OK); /* its hold was released by that */
  CHECK_EQUAL(holders(), 2);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  end_all();
}

/* The hold was ended by somebody else, who is not disturbed. */
static void test_lost(void)
{
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(1, &alone[1]);
  CHECK_EQUAL(fairlock_force_release(&clients[2].client, name, sizeof name - 1, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_OK);
  await_hold(&alone[1]);
  CHECK_EQUAL(fairlock_downgrade(&alone[0], &shared[0], FAIRLOCK_RENEW), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_hold_count(&alone[0]) + fairlock_hold_count(sharer(0)), 0);
  CHECK_EQUAL(fairlock_result(&alone[0]), FAIRLOCK_LOST);
  CHECK_EQUAL(clients[0].losses, 1);
  clients[0].losses = 0;
  CHECK_EQUAL(fairlock_release(&alone[1]), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_downgrade(&alone[0], &shared[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  end_all();
}

/* Who waits names another limit: the smaller one binds. */
static void test_other_limit(void)
{
  struct fairlock_shared other;
  begin_with(3);
  CHECK_EQUAL(fairlock_init_shared(&other, &clients[0].client, name, 1), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  queue(1, sharer(1));
  CHECK_EQUAL(fairlock_downgrade(&alone[0], &other, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(queue_length(&redis, name), 1);
  CHECK_EQUAL(fairlock_release(&other.handle), FAIRLOCK_OK);
  await_hold(sharer(1));
  CHECK_EQUAL(fairlock_release(sharer(1)), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&other.handle), FAIRLOCK_OK);
  end_all();
}

/* Who counts on being alone further out goes on doing so. */
static void test_reentered(void)
{
  begin_with(0);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_downgrade(&alone[0], &shared[0], FAIRLOCK_RENEW), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_hold_count(&alone[0]), 2);
  CHECK_EQUAL(fairlock_release(&alone[0]), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_downgrade(&alone[0], &shared[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(sharer(0)), FAIRLOCK_OK);
  end_all();
}

/* Given up at any time, it leaves nothing. */
static void test_cancelled(void)
{
  begin_with(0);
  load_script();
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(fairlock_try_acquire(&alone[0], FAIRLOCK_RENEW), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_start_downgrade(&alone[0], &shared[0], FAIRLOCK_RENEW), FAIRLOCK_PENDING);
    if (i > 0) AWAIT(holders() == 1, sleep_ms(1));
    CHECK_EQUAL(fairlock_cancel(sharer(0)), FAIRLOCK_OK);
    CHECK_EQUAL(await_result(&clients[0], sharer(0)), FAIRLOCK_CANCELLED);
    CHECK_EQUAL(await_result(&clients[0], &alone[0]), FAIRLOCK_UNKNOWN);
    CHECK_EQUAL(raw_number(&redis, "EXISTS %s", name), 0);
  }
  end_all();
}

const struct check_test check_tests[] = {
    {"downgrade: those first in line join", test_join},
    {"downgrade: nobody gets in between", test_nobody_between},
    {"downgrade: between renewals", test_renewed},
    {"downgrade: the answer is lost", test_lost_answer},
    {"downgrade: a newer token of the heir's own", test_newer_token},
    {"downgrade: a late request", test_late},
    {"downgrade: a place that is left in the queue", test_left_in_the_queue},
    {"downgrade: the hold was ended", test_lost},
    {"downgrade: another limit", test_other_limit},
    {"downgrade: acquired twice", test_reentered},
    {"downgrade: cancelled", test_cancelled},
    {NULL, NULL},
};
