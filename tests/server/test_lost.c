/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: how they run out, how they are kept alive, and how a holder learns that its hold is gone,
 * whatever took it. The holder must stop believing before the server forgets.
 */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include "support/counters.h"

/* Renewed each third of it, it outlasts whatever keeps a loaded machine from us for 4 s. */
#define LEASE_MS 6000

static struct client client;
static struct fairlock handle;

static void open_with_lease(uint32_t lease_ms, const char *name)
{
  client_prepare(&client, server.port);
  client.config.lease_ms = lease_ms;
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, name), FAIRLOCK_OK);
}

static void close_all(void)
{
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
}

/* Services the client until the loss was reported, or for SOON. */
static bool told(int losses)
{
  AWAIT(atomic_load(&client.losses) >= losses, fairlock_poll(&client.client, 50));
  return atomic_load(&client.losses) == losses;
}

/*
 * After a loss: the handle no longer believes that it holds, and after as many releases as there
 * were holds it is as new.
 */
static void check_lost(int holds)
{
  CHECK_EQUAL(atomic_load(&client.losses), 1);
  CHECK_EQUAL(fairlock_remaining_ms(&handle), 0);
  CHECK_EQUAL(fairlock_token(&handle), 0);
  CHECK_EQUAL(fairlock_hold_count(&handle), 0);
  CHECK_EQUAL(fairlock_acquire(&handle, 0, FAIRLOCK_RENEW), FAIRLOCK_LOST);
  for (int i = 0; i < holds; i++)
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(atomic_load(&client.losses), 1);
  CHECK_EQUAL(counters_of(&client.client).losses, 1);
}

/*
 * When the server has forgotten the hold, its holder has stopped believing in it. Nobody services
 * the client meanwhile.
 */
static void test_belief_ends_first(void)
{
  for (int lease = 1000; lease <= 3000; lease += 2000) {
    begin();
    open_with_lease(0, "belief");
    CHECK_EQUAL(fairlock_try_acquire(&handle, (uint32_t)lease), FAIRLOCK_OK);
    int64_t until = now_ms() + SOON;
    while (raw_number(&redis, "EXISTS belief") == 1 && now_ms() < until)
      continue;
    CHECK_EQUAL(fairlock_remaining_ms(&handle), 0);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_LOST);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_NOT_HELD);
    CHECK_EQUAL(atomic_load(&client.losses), 1);
    close_all();
  }
}

/* A fixed lease is not renewed, and its end is reported in the task that services the client. */
static void test_expiry(void)
{
  begin();
  open_with_lease(0, "expiry");
  CHECK_EQUAL(fairlock_try_acquire(&handle, 3000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 0, 3000), FAIRLOCK_OK);
  CHECK(told(1));
  CHECK_EQUAL(counters_of(&client.client).renewals, 0);
  check_lost(2);
  CHECK_EQUAL(fairlock_acquire(&handle, 5000, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  close_all();
  CHECK(nothing_left(&redis, "expiry"));
}

static void *run_client(void *context)
{
  (void)context;
  fairlock_run(&client.client);
  return NULL;
}

/* The watchdog keeps the lease alive for as long as the hold lasts, and the hold count with it. */
static void test_watchdog(void)
{
  pthread_t thread;
  begin();
  open_with_lease(LEASE_MS, "watchdog");
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&handle);
  CHECK_EQUAL(pthread_create(&thread, NULL, run_client, NULL), 0);
  int64_t until = now_ms() + LEASE_MS + LEASE_MS / 3;
  while (now_ms() < until) {
    sleep_ms(100);
    CHECK(raw_number(&redis, "PTTL watchdog") > 0);
    CHECK(fairlock_remaining_ms(&handle) > 0);
  }
  CHECK(counters_of(&client.client).renewals >= 2);
  CHECK(fairlock_token(&handle) == token);
  CHECK_EQUAL(fairlock_hold_count(&handle), 2);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  fairlock_stop(&client.client);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  CHECK_EQUAL(atomic_load(&client.losses), 0);
  sleep_ms(700); /* a renewal that came late would show */
  close_all();
  CHECK(nothing_left(&redis, "watchdog"));
}

/* Polls keep it alive as well. */
static void test_watchdog_by_polls(void)
{
  begin();
  open_with_lease(LEASE_MS, "polls");
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  int64_t until = now_ms() + LEASE_MS + LEASE_MS / 3;
  while (now_ms() < until) {
    fairlock_poll(&client.client, 200);
    CHECK(fairlock_remaining_ms(&handle) > 0);
  }
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  close_all();
}

/*
 * A renewed lease with nobody to service the client runs out; meanwhile somebody else holds, and
 * keeps what it holds.
 */
static void test_not_serviced(void)
{
  struct fairlock_config config = {.lease_ms = 600};
  struct actor holder, next;
  begin();
  actor_start_with(&holder, server.port, "unserviced", &config);
  actor_start(&next, server.port, "unserviced");
  CHECK_EQUAL(actor_do(&holder, 'a', 0, FAIRLOCK_RENEW).status, FAIRLOCK_OK);
  actor_tell(&holder, 'p', 3000, 0);
  CHECK_EQUAL(actor_do(&next, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW).status, FAIRLOCK_OK);
  struct event event = actor_hear(&holder, SOON);
  CHECK_EQUAL(event.held_ms, 0);
  event = actor_do(&holder, 'r', 0, 0);
  CHECK_EQUAL(event.status, FAIRLOCK_LOST);
  CHECK_EQUAL(event.losses, 1);
  event = actor_do(&next, 'l', 0, 0);
  CHECK(event.held_ms > 0);
  CHECK_EQUAL(hold_count_of(&redis, "unserviced", event.id), 1);
  CHECK_EQUAL(actor_do(&next, 'r', 0, 0).status, FAIRLOCK_OK);
  actor_end(&holder);
  actor_end(&next);
}

/* A holder that was frozen for longer than its lease does not believe in it when it thaws. */
static void test_frozen_holder(void)
{
  struct fairlock_config config = {.lease_ms = 600};
  struct actor holder, next;
  begin();
  actor_start_with(&holder, server.port, "frozen", &config);
  actor_start(&next, server.port, "frozen");
  struct event first = actor_do(&holder, 'a', 0, FAIRLOCK_RENEW);
  CHECK_EQUAL(first.status, FAIRLOCK_OK);
  CHECK_EQUAL(kill(holder.pid, SIGSTOP), 0);
  struct event second = actor_do(&next, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK_EQUAL(second.status, FAIRLOCK_OK);
  CHECK(second.token > first.token);
  CHECK_EQUAL(kill(holder.pid, SIGCONT), 0);
  struct event event = actor_do(&holder, 'l', 0, 0);
  CHECK_EQUAL(event.held_ms, 0);
  CHECK_EQUAL(actor_do(&holder, 'r', 0, 0).status, FAIRLOCK_LOST);
  CHECK_EQUAL(hold_count_of(&redis, "frozen", second.id), 1);
  actor_end(&holder);
  actor_end(&next);
}

static void test_deleted(void)
{
  begin();
  open_with_lease(LEASE_MS, "del");
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&handle);
  CHECK(raw_run(&redis, "DEL del"));
  CHECK(told(1));
  CHECK_EQUAL(raw_number(&redis, "EXISTS del"), 0);
  check_lost(2);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_token(&handle) > token);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  close_all();
  CHECK(nothing_left(&redis, "del"));
}

/* Somebody else holds by now: a re-entry or a release must not change that hold. */
static void test_taken_over(void)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  static struct client thief;
  struct fairlock stolen;
  begin();
  open_with_lease(0, "taken");
  client_open(&thief, server.port);
  CHECK_EQUAL(fairlock_init(&stolen, &thief.client, "taken"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&thief.client), FAIRLOCK_OK);
  fairlock_id(&stolen, id, FAIRLOCK_HOLDER_ID_SIZE);
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(fairlock_try_acquire(&handle, 60000), FAIRLOCK_OK);
    CHECK(raw_run(&redis, "DEL taken"));
    CHECK_EQUAL(fairlock_try_acquire(&stolen, 60000), FAIRLOCK_OK);
    if (i == 0) CHECK_EQUAL(fairlock_try_acquire(&handle, 60000), FAIRLOCK_LOST);
    if (i == 1) CHECK_EQUAL(fairlock_acquire(&handle, 10000, FAIRLOCK_RENEW), FAIRLOCK_LOST);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_LOST);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_NOT_HELD);
    CHECK_EQUAL(hold_count_of(&redis, "taken", id), 1);
    CHECK_EQUAL(raw_number(&redis, "HLEN taken"), 1);
    CHECK_EQUAL(fairlock_release(&stolen), FAIRLOCK_OK);
  }
  CHECK_EQUAL(fairlock_deinit(&stolen), FAIRLOCK_OK);
  client_close(&thief);
  close_all();
  CHECK(nothing_left(&redis, "taken"));
}

/* Our own id again, from a later hold: a release of the old one must not end it. */
static void test_old_release(void)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  begin();
  open_with_lease(0, "old");
  CHECK_EQUAL(fairlock_try_acquire(&handle, 60000), FAIRLOCK_OK);
  fairlock_id(&handle, id, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK(raw_run(&redis,
                "HSET fairlock:{old} token 9000000999999999")); /* as if there were a later hold */
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_LOST);        /* so that did not end it */
  /* but a heartbeat of the handle may have begun it, so the handle leaves */
  AWAIT(hold_count_of(&redis, "old", id) == -1, fairlock_poll(&client.client, 50));
  CHECK_EQUAL(hold_count_of(&redis, "old", id), -1);
  close_all();
}

/* The server as a fail-over that lost the last writes leaves it: with an earlier hold of `id`. */
static void bring_back(const char *id, uint64_t token)
{
  CHECK(raw_run(&redis, "DEL back"));
  CHECK(raw_run(&redis, "HSET back %s 1", id));
  CHECK(raw_run(&redis, "PEXPIRE back 60000"));
  CHECK(raw_run(&redis, "HSET fairlock:{back} token %ld holder %s released 0", (int64_t)token, id));
}

/*
 * A hold from before the last one is on the server again. It was given up: it is ended, and a new
 * one begins, with a token that is larger than the last one's, too.
 */
static void test_brought_back(void)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  begin();
  open_with_lease(0, "back");
  for (int wait = 0; wait < 2; wait++) {
    CHECK_EQUAL(fairlock_try_acquire(&handle, 60000), FAIRLOCK_OK);
    fairlock_id(&handle, id, FAIRLOCK_HOLDER_ID_SIZE);
    uint64_t first = fairlock_token(&handle);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_try_acquire(&handle, 60000), FAIRLOCK_OK);
    uint64_t last = fairlock_token(&handle);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
    bring_back(id, first);
    CHECK_EQUAL(fairlock_acquire(&handle, (uint32_t)wait * 10000, 60000), FAIRLOCK_OK);
    CHECK(fairlock_token(&handle) > last);
    CHECK_EQUAL(hold_count_of(&redis, "back", id), 1);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  }
  close_all();
}

/* A server took over without the last token: with the same clock, and with one that is behind. */
static void test_token_behind(void)
{
  const uint64_t ahead = 9000000999999999;
  begin();
  open_with_lease(0, "behind");
  for (int behind = 0; behind < 2; behind++) {
    if (behind) CHECK(raw_run(&redis, "HSET fairlock:{behind} token %ld", (int64_t)ahead - 1));
    CHECK_EQUAL(fairlock_try_acquire(&handle, 60000), FAIRLOCK_OK);
    uint64_t last = fairlock_token(&handle);
    CHECK(!behind || last == ahead);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
    CHECK(raw_run(&redis, "DEL fairlock:{behind}"));
    CHECK_EQUAL(fairlock_try_acquire(&handle, 60000), FAIRLOCK_OK);
    CHECK(behind ? fairlock_token(&handle) == ahead + 1 : fairlock_token(&handle) > last);
    CHECK(raw_number(&redis, "PTTL fairlock:{behind}") > 0);
    CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  }
  close_all();
}

static bool notes_outlive_lease(void)
{
  return raw_number(&redis, "PTTL fairlock:{notes}") > raw_number(&redis, "PTTL notes") + 3600000;
}

/*
 * What the server notes of a hold lasts for longer than the longest lease, and for longer than a
 * hold that is renewed on and on.
 */
static void test_notes_last(void)
{
  static struct client waiter;
  struct fairlock waiting;
  begin();
  open_with_lease(LEASE_MS, "notes");
  client_prepare(&waiter, server.port);
  client_start(&waiter);
  CHECK_EQUAL(fairlock_init(&waiting, &waiter.client, "notes"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(notes_outlive_lease());
  CHECK_EQUAL(raw_number(&redis, "PEXPIRE fairlock:{notes} 60000"),
              1); /* as if a long time had passed */
  AWAIT(notes_outlive_lease(), fairlock_poll(&client.client, 50));
  CHECK(notes_outlive_lease());
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);

  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_DURATION_MAX_MS), FAIRLOCK_OK);
  CHECK(notes_outlive_lease());
  CHECK_EQUAL(fairlock_start_acquire(&waiting, 60000, 60000), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "notes") != 0, fairlock_poll(&waiter.client, 50));
  CHECK_EQUAL(raw_number(&redis, "LLEN redisson_lock_queue:{notes}"), 1);
  CHECK(notes_outlive_lease());
  CHECK_EQUAL(fairlock_cancel(&waiting), FAIRLOCK_OK);
  while (fairlock_result(&waiting) == FAIRLOCK_PENDING)
    fairlock_poll(&waiter.client, 50);
  CHECK(notes_outlive_lease());
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  int64_t left = raw_number(&redis, "PTTL fairlock:{notes}");
  CHECK(left > 0 && left <= (int64_t)FAIRLOCK_DURATION_MAX_MS + 2 * 86400000);
  CHECK_EQUAL(fairlock_deinit(&waiting), FAIRLOCK_OK);
  client_close(&waiter);
  close_all();
}

/* The server comes back without its data: the hold is gone, and is not silently taken again. */
static void test_restart(void)
{
  static struct server own;
  static struct raw look;
  begin();
  server_start(&own, NULL);
  client_prepare(&client, own.port);
  client.config.lease_ms = LEASE_MS;
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "restart"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&handle);
  server_restart(&own);
  CHECK(told(1));
  CHECK(raw_open(&look, own.port));
  CHECK_EQUAL(raw_number(&look, "EXISTS restart"), 0);
  check_lost(1);
  CHECK_EQUAL(fairlock_acquire(&handle, 10000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_token(&handle) > token);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  raw_close(&look);
  close_all();
  server_stop(&own);
}

/*
 * Waiters survive a restart without persistence: they queue again by themselves, and one of them
 * gets the lock.
 */
static void test_restart_with_waiters(void)
{
  static struct server own;
  static struct raw look;
  struct actor waiter[3];
  begin();
  server_start(&own, NULL);
  client_prepare(&client, own.port);
  client.config.lease_ms = LEASE_MS;
  client_start(&client);
  CHECK(raw_open(&look, own.port));
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "again"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  for (int i = 0; i < 3; i++) {
    actor_start(&waiter[i], own.port, "again");
    actor_tell(&waiter[i], 'c', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    CHECK(queue_reaches(&look, "again", i + 1));
  }
  raw_close(&look);
  server_restart(&own);
  CHECK(told(1));
  for (int i = 0; i < 3; i++)
    CHECK_EQUAL(actor_hear(&waiter[i], SOON).status, FAIRLOCK_OK);
  for (int i = 0; i < 3; i++)
    actor_end(&waiter[i]);
  check_lost(1);
  CHECK(raw_open(&look, own.port));
  CHECK(sane(&look, "again"));
  raw_close(&look);
  close_all();
  server_stop(&own);
}

/*
 * The server is gone for good: the belief ends with the lease, and that is reported. The handle
 * stays while its hold may exist.
 */
static void test_server_gone(void)
{
  static struct server own;
  begin();
  server_start(&own, NULL);
  client_prepare(&client, own.port);
  client.config.lease_ms = LEASE_MS;
  client.config.offline_ms = 1000;
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "gone"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  server_kill(&own);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_UNREACHABLE);
  CHECK(fairlock_remaining_ms(&handle) <= LEASE_MS - LEASE_MS / 64); /* it still may be held */
  while (fairlock_remaining_ms(&handle) > 0 && now_ms() < began + SOON)
    fairlock_poll(&client.client, 50);
  CHECK(told(1));
  check_lost(1);
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_UNREACHABLE); /* what it left may still be there */
  int status;
  while (status = fairlock_deinit(&handle),
         status == FAIRLOCK_UNREACHABLE && now_ms() < began + SOON)
    continue;
  CHECK_EQUAL(status, FAIRLOCK_OK); /* and cannot be any more */
  client_close(&client);
  server_stop(&own);
}

static void test_forced(void)
{
  static struct client operator;
  begin();
  open_with_lease(LEASE_MS, "forced");
  client_open(&operator, server.port);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_force_release(&operator.client, "forced", 6, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_OK);
  CHECK(told(1));
  check_lost(1);
  client_close(&operator);
  close_all();
  CHECK(nothing_left(&redis, "forced"));
}

/*
 * The claim of a handover lasts for the waiter's timeout; the hold that it becomes, for its own
 * lease. A holder that then vanishes costs the next one that lease, not the claim.
 */
static void test_short_lease_after_handover(void)
{
  struct fairlock_config config = {.waiter_ms = 20000};
  struct actor brief, next;
  begin();
  open_with_lease(0, "brief");
  CHECK_EQUAL(fairlock_try_acquire(&handle, 60000), FAIRLOCK_OK);
  actor_start_with(&brief, server.port, "brief", &config);
  actor_start(&next, server.port, "brief");
  actor_tell(&brief, 'a', FAIRLOCK_FOREVER, 3000);
  CHECK(queue_reaches(&redis, "brief", 1));
  actor_tell(&next, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, "brief", 2));
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  struct event event = actor_hear(&brief, SOON);
  CHECK_EQUAL(event.status, FAIRLOCK_OK);
  CHECK_EQUAL(event.stats.granted, 1);
  CHECK(event.held_ms <= 3000);
  AWAIT(hold_count_of(&redis, "brief", event.id) != 0, sleep_ms(2));
  CHECK(raw_number(&redis, "PTTL brief") <= 3000); /* the claim's would be more */
  CHECK_EQUAL(actor_hear(&next, SOON).status, FAIRLOCK_OK);
  actor_end(&brief);
  actor_end(&next);
  close_all();
}

/* Each loss of one of a client's handles is reported, for the right handle and no other. */
static struct fairlock *loser;

static void note_loser(struct fairlock *lost, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  (void)context;
  loser = lost;
}

static void test_told_which(void)
{
  struct fairlock second;
  begin();
  client_prepare(&client, server.port);
  client.config.lease_ms = LEASE_MS;
  client.config.lost = note_loser;
  client_start(&client);
  loser = NULL;
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "which:1"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&second, &client.client, "which:2"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&second, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "DEL which:2"));
  AWAIT(loser != NULL, fairlock_poll(&client.client, 50));
  CHECK(loser == &second);
  CHECK(fairlock_remaining_ms(&handle) > 0);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&second), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_deinit(&second), FAIRLOCK_OK);
  close_all();
}

const struct check_test check_tests[] = {
    {"lost: belief ends before the lease", test_belief_ends_first},
    {"lost: a fixed lease runs out", test_expiry},
    {"lost: the watchdog renews", test_watchdog},
    {"lost: polls renew", test_watchdog_by_polls},
    {"lost: nobody services the client", test_not_serviced},
    {"lost: a frozen holder", test_frozen_holder},
    {"lost: by DEL", test_deleted},
    {"lost: taken over by somebody else", test_taken_over},
    {"lost: a release names its hold", test_old_release},
    {"lost: an earlier hold is brought back", test_brought_back},
    {"lost: a server knows less than the last token", test_token_behind},
    {"lost: notes on a hold last for longer than it", test_notes_last},
    {"lost: by a restart without persistence", test_restart},
    {"lost: waiters survive such a restart", test_restart_with_waiters},
    {"lost: the server is gone", test_server_gone},
    {"lost: by force-release", test_forced},
    {"lost: a short lease after a handover", test_short_lease_after_handover},
    {"lost: which handle is told", test_told_which},
    {NULL, NULL},
};
