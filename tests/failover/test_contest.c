/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contest finds what it should: with one server, nothing; with a master killed, the loss; with
 * two masters, two believers. And each check finds the fault in a log with one thing wrong.
 */
#include "contest.h"
#include "rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOCK     "contest:door"
#define LEASE_MS 8000

static struct contest contest;
static struct rig rig;

/* A redis:// address of a port of this machine. */
static struct connection at(int port, char url[40])
{
  (void)snprintf(url, 40, "redis://127.0.0.1:%d", port);
  return (struct connection){.url = url};
}

static void test_addresses(void)
{
  static struct client client;
  static const struct connection wrong[] = {{.url = "127.0.0.1:1"},
                                            {.url = "http://127.0.0.1:1"},
                                            {.url = "redis://127.0.0.1"},
                                            {.url = "redis+sentinel://127.0.0.1:1,/doors"},
                                            {.url = "redis+cluster://127.0.0.1:1,:2"}};
  static const struct connection right[] = {{.url = "redis+sentinel://127.0.0.1:1/doors"},
                                            {.url = "redis+cluster://127.0.0.1:1,127.0.0.1:2"},
                                            {.url = "redis://127.0.0.1:1", .replicas = 1}};
  begin();
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    CHECK(connect_by_url(&client, &wrong[i]) != NULL);
  for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
    CHECK(connect_by_url(&client, &right[i]) == NULL);
    client_close(&client);
  }
}

/* A holder, and those behind it in the order in which they came. */
static void test_order(void)
{
  char url[40];
  begin();
  struct connection connection = at(server.port, url);
  contest_begin(&contest, LOCK);
  int holder = contest_hold(&contest, &connection, 30000);
  CHECK(contest_holds(&contest, holder));
  for (int i = 1; i <= 4; i++) {
    CHECK_EQUAL(contest_pass(&contest, &connection, FAIRLOCK_RENEW, 20), i);
    CHECK(queue_reaches(&redis, LOCK, i));
  }
  CHECK(contest_believes(&contest, holder));
  contest_let_go(&contest, holder);
  CHECK(contest_end(&contest));
  CHECK_EQUAL(atomic_load(contest.used), 5);
  for (int i = 0; i < 5; i++) {
    CHECK_EQUAL(atomic_load(&contest.contender[i].status), FAIRLOCK_OK);
    CHECK_EQUAL(atomic_load(&contest.contender[i].released), FAIRLOCK_OK);
  }
  CHECK(contest_good(&contest));
  CHECK_EQUAL(contest_disorder(&contest, 1, 4), 0);
  printf("# a complaint of disorder that is wanted:\n");
  contest.hold[1].client = 2;
  contest.hold[2].client = 1;
  CHECK_EQUAL(contest_disorder(&contest, 1, 4), 1);
}

static void test_rounds(void)
{
  char url[40];
  begin();
  struct connection connection = at(server.port, url);
  contest_begin(&contest, LOCK);
  for (int i = 0; i < 4; i++)
    (void)contest_round(&contest, &connection, FAIRLOCK_RENEW, 5);
  int64_t until = now_ms() + SOON;
  while (atomic_load(contest.used) < 40 && now_ms() < until)
    sleep_ms(10);
  CHECK(contest_end(&contest));
  for (int i = 0; i < 4; i++) {
    CHECK(atomic_load(&contest.contender[i].acquired) > 0);
    CHECK_EQUAL(atomic_load(&contest.contender[i].failed), 0);
    CHECK_EQUAL(atomic_load(&contest.contender[i].lost), 0);
  }
  CHECK(contest_good(&contest));
}

/* When its server is gone, a holder believes until the end of its lease, and no longer. */
static void test_lost(void)
{
  char url[40];
  sentinels_start(&rig, NULL);
  struct connection connection = at(rig.node[0].port, url);
  connection.lease_ms = LEASE_MS;
  contest_begin(&contest, LOCK);
  int holder = contest_hold(&contest, &connection, FAIRLOCK_RENEW);
  CHECK(contest_holds(&contest, holder));
  node_kill(&rig.node[0]);
  int64_t killed = now_us();
  CHECK(contest_believes(&contest, holder));
  CHECK(sentinels_promote(&rig, 0) > 0);
  CHECK(contest_over(&contest, holder));
  CHECK_EQUAL(atomic_load(&contest.contender[holder].lost), 1);
  CHECK(atomic_load(&contest.hold[0].until_us) <= killed + LEASE_MS * 1000);
  rig_stop(&rig);
}

/* The hold that a killed contender left is known, and ends with its lease. */
static void test_killed(void)
{
  char url[40];
  begin();
  struct connection connection = at(server.port, url);
  contest_begin(&contest, LOCK);
  int holder = contest_hold(&contest, &connection, 2000);
  CHECK(contest_holds(&contest, holder));
  contest_kill(&contest, holder);
  int next = contest_pass(&contest, &connection, FAIRLOCK_RENEW, 5);
  CHECK(contest_over(&contest, next));
  CHECK(contest_end(&contest));
  CHECK_EQUAL(atomic_load(contest.used), 2);
  CHECK(contest_good(&contest));
}

/* Two masters, and a believer at each: the fault that all this is to find. */
static void test_split_brain(void)
{
  static const struct rig_options options = {.parted = true};
  char old_url[40], new_url[40];
  sentinels_start(&rig, &options);
  struct connection old = at(rig.node[0].port, old_url);
  contest_begin(&contest, LOCK);
  rig_part(&rig, 1U << 0);
  int master = sentinels_promote(&rig, 0);
  if (!CHECK(master > 0)) return;
  struct connection new = at(rig.node[master].port, new_url);
  int first = contest_hold(&contest, &old, 30000), second;
  CHECK(contest_holds(&contest, first));
  second = contest_hold(&contest, &new, 30000);
  CHECK(contest_holds(&contest, second));
  CHECK(contest_believes(&contest, first));
  sleep_ms(100);
  CHECK(contest_end(&contest));
  printf("# a complaint of two believers that is wanted:\n");
  struct verdict verdict = contest_verdict(&contest);
  CHECK_EQUAL(verdict.overlaps, 1);
  CHECK(verdict.overlap_us > 90 * 1000 && verdict.overlap_us < 30 * 1000 * 1000);
  rig_stop(&rig);
}

const struct check_test check_tests[] = {{"contest_addresses", test_addresses},
                                         {"contest_order", test_order},
                                         {"contest_rounds", test_rounds},
                                         {"contest_lost", test_lost},
                                         {"contest_killed", test_killed},
                                         {"contest_split_brain", test_split_brain},
                                         {NULL, NULL}};
