/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiters that go: by time-out and cancel, which must leave no trace, and by dying, which must cost
 * the others nothing, or one waiter timeout at most. And waiters that only seem dead: they keep
 * their place, and never hold what is not theirs.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "support/proxy.h"
#include "support/counters.h"

#define CROWD 30

/* A holder in this process, on which tests let others wait. */
static struct client client;
static struct fairlock holder;

static void hold(const char *name)
{
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&holder, &client.client, name), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&holder, 100000), FAIRLOCK_OK);
}

static void end(const char *name)
{
  CHECK_EQUAL(fairlock_deinit(&holder), FAIRLOCK_OK);
  client_close(&client);
  CHECK(nothing_left(&redis, name));
}

/* Starts an actor and lets it wait as the one at this place. waiter_ms 0: the default, 5 s. */
static void line_up_for(struct actor *actor, int port, const char *name, char what, int place,
                        uint32_t waiter_ms)
{
  struct fairlock_config config = {.waiter_ms = waiter_ms};
  actor_start_with(actor, port, name, &config);
  actor_tell(actor, what, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, name, place));
}

static void line_up(struct actor *actor, int port, const char *name, char what, int place)
{
  line_up_for(actor, port, name, what, place, 0);
}

/* The same with a waiter timeout and a claim of its own. */
static void line_up_claiming(struct actor *actor, const char *name, int place, uint32_t waiter_ms,
                             uint32_t claim_ms)
{
  struct fairlock_config config = {.waiter_ms = waiter_ms, .claim_ms = claim_ms};
  actor_start_with(actor, server.port, name, &config);
  actor_tell(actor, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(queue_reaches(&redis, name, place));
}

/* Heartbeats each 24 s, and a claim of 2 s. */
static void line_up_rare(struct actor *actor, const char *name, int place)
{
  line_up_claiming(actor, name, place, 60000, 2000);
}

/* Makes the waiters in our hash appear to have been last heard from long ago. */
static void age(const char *name)
{
  char field[CROWD + 8][64];
  int64_t count = raw_number(&redis, "HKEYS fairlock:{%s}", name);
  for (int64_t i = 0; i < count && i < CROWD + 8; i++) {
    (void)snprintf(field[i], sizeof field[i], "%s", redis.element[i + 1].text);
  }
  for (int64_t i = 0; i < count && i < CROWD + 8; i++) {
    if (strchr(field[i], ':') != NULL)
      CHECK_EQUAL(raw_number(&redis, "HSET fairlock:{%s} %s %s", name, field[i], "1 0 5000"), 0);
  }
}

static void test_timeout(void)
{
  static struct client other;
  struct fairlock waiter;
  hold("timeout");
  client_open(&other, server.port);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, "timeout"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&other.client), FAIRLOCK_OK);
  for (int i = 1; i <= 3; i++) {
    CHECK_EQUAL(fairlock_acquire(&waiter, (uint32_t)(i * 100), FAIRLOCK_RENEW), FAIRLOCK_TIMEOUT);
    CHECK(no_trace_of_waiters(&redis, "timeout"));
  }
  CHECK_EQUAL(listeners(&redis, "timeout"), 1); /* kept while the handle lives */
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  CHECK_EQUAL(listeners(&redis, "timeout"), 0);
  client_close(&other);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  end("timeout");
}

static void test_cancel(void)
{
  static struct client other;
  struct fairlock waiter;
  hold("cancel");
  client_open(&other, server.port);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, "cancel"), FAIRLOCK_OK);
  for (int i = 0; i < 8; i++) { /* at each moment of the way into the queue */
    CHECK_EQUAL(fairlock_start_acquire(&waiter, FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
                FAIRLOCK_PENDING);
    for (int turn = 0; turn < i; turn++)
      fairlock_poll(&other.client, 20);
    CHECK_EQUAL(fairlock_cancel(&waiter), FAIRLOCK_OK);
    CHECK_EQUAL(await_result(&other, &waiter), FAIRLOCK_CANCELLED);
    CHECK(no_trace_of_waiters(&redis, "cancel"));
  }
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  CHECK_EQUAL(listeners(&redis, "cancel"), 0);
  client_close(&other);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  end("cancel");
}

/* Cancelled on a free lock, at any moment: it ends up free, or held by the one told so. */
static void test_cancel_race(void)
{
  static struct client other;
  struct fairlock waiter;
  begin();
  client_open(&other, server.port);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, "race"), FAIRLOCK_OK);
  for (int i = 0; i < 100; i++) {
    CHECK_EQUAL(fairlock_start_acquire(&waiter, FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
                FAIRLOCK_PENDING);
    for (int turn = 0; turn < i % 5; turn++)
      fairlock_poll(&other.client, (uint32_t)i % 3);
    int status = fairlock_cancel(&waiter);
    CHECK(status == FAIRLOCK_OK || status == FAIRLOCK_NOT_HELD);
    int result = await_result(&other, &waiter);
    CHECK(result == (status == FAIRLOCK_OK ? FAIRLOCK_CANCELLED : FAIRLOCK_OK));
    CHECK_EQUAL(raw_number(&redis, "EXISTS race"), result == FAIRLOCK_OK);
    if (result == FAIRLOCK_OK) CHECK_EQUAL(fairlock_release(&waiter), FAIRLOCK_OK);
    CHECK(nothing_left(&redis, "race"));
  }
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  client_close(&other);
}

/* Waiters that were killed are skipped at once. */
static void killed(int count, const char *name)
{
  static struct actor dead[CROWD];
  struct actor last;
  hold(name);
  for (int i = 0; i < count; i++)
    line_up_for(&dead[i], server.port, name, 'c', i + 1, 60000);
  line_up_for(&last, server.port, name, 'a', count + 1, 60000);
  for (int i = 0; i < count; i++)
    slay(dead[i].pid);
  AWAIT(listeners(&redis, name) <= 1, sleep_ms(2));
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK_EQUAL(actor_hear(&last, SOON).status, FAIRLOCK_OK);
  int64_t cost = now_ms() - began;
  printf("# %d killed: %d ms\n", count, (int)cost);
  CHECK(cost < SOON); /* and not what a waiter timeout is, or a heartbeat */
  CHECK(sane(&redis, name));
  age(name);
  CHECK_EQUAL(actor_do(&last, 'r', 0, 0).status, FAIRLOCK_OK);
  actor_end(&last);
  for (int i = 0; i < count; i++)
    actor_end(&dead[i]);
  end(name);
}

static void test_one_killed(void)
{
  killed(1, "killed:1");
}

static void test_thirty_killed(void)
{
  killed(CROWD, "killed:30");
}

/*
 * Waiters that are frozen still listen, as far as the server can tell. Together they cost one
 * waiter timeout at most. When they thaw, they hold nothing, not even the one whose grant is in its
 * socket; they queue again, and get their turn.
 */
static void frozen(int count, const char *name)
{
  static struct actor ice[CROWD];
  struct actor last;
  uint64_t tokens = 0;
  hold(name);
  for (int i = 0; i < count; i++)
    line_up(&ice[i], server.port, name, 'c', i + 1);
  line_up(&last, server.port, name, 'a', count + 1);
  for (int i = 0; i < count; i++)
    CHECK_EQUAL(kill(ice[i].pid, SIGSTOP), 0);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  struct event event = actor_hear(&last, SOON);
  CHECK_EQUAL(event.status, FAIRLOCK_OK);
  int64_t cost = now_ms() - began;
  printf("# %d frozen: %d ms\n", count, (int)cost);
  CHECK(cost < 15000);
  CHECK(sane(&redis, name));
  for (int i = 0; i < count; i++)
    CHECK_EQUAL(kill(ice[i].pid, SIGCONT), 0);
  CHECK(queue_reaches(&redis, name, count));
  for (int i = 0; i < count; i++)
    CHECK_EQUAL(actor_hear(&ice[i], 5).status, FAIRLOCK_PENDING);
  CHECK_EQUAL(hold_count_of(&redis, name, event.id), 1);
  CHECK(sane(&redis, name));
  CHECK_EQUAL(actor_do(&last, 'r', 0, 0).status, FAIRLOCK_OK);
  for (int i = 0; i < count; i++) {
    struct event thawed = actor_hear(&ice[i], SOON);
    CHECK_EQUAL(thawed.status, FAIRLOCK_OK);
    CHECK(thawed.token > event.token);
    tokens ^= thawed.token;
  }
  CHECK(count == 1 || tokens != 0);
  actor_end(&last);
  for (int i = 0; i < count; i++)
    actor_end(&ice[i]);
  end(name);
}

static void test_one_frozen(void)
{
  frozen(1, "frozen:1");
}

static void test_thirty_frozen(void)
{
  frozen(CROWD, "frozen:30");
}

/*
 * A waiter that dies as it is handed the lock costs its claim, and not its waiter timeout: the next one
 * is told when it becomes the first, asks when the claim ends, and does not wait for its own heartbeat.
 */
static void test_claim(void)
{
  struct actor ice, last;
  hold("claim");
  line_up_rare(&ice, "claim", 1);
  line_up_rare(&last, "claim", 2);
  CHECK_EQUAL(kill(ice.pid, SIGSTOP), 0);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK_EQUAL(actor_hear(&last, SOON).status, FAIRLOCK_OK);
  int64_t cost = now_ms() - began;
  printf("# a claim of 2000 ms: %d ms\n", (int)cost);
  CHECK(cost >= 1990 && cost < 8000);
  CHECK_EQUAL(actor_do(&last, 'r', 0, 0).status, FAIRLOCK_OK);
  slay(ice.pid);
  actor_end(&last);
  actor_end(&ice);
  end("claim");
}

/*
 * Several in a row: the heartbeat of the one behind them hands the lock to the next of them, which is
 * dead, too. It is told when that claim ends, though another is the first, and so hands it on again.
 * Their waiter timeouts, and its own heartbeats, come much later.
 */
static void test_claims_in_a_row(void)
{
  static struct actor ice[4];
  struct actor last;
  hold("row");
  for (int i = 0; i < 4; i++)
    line_up_claiming(&ice[i], "row", i + 1, 20000, 1000);
  line_up_claiming(&last, "row", 5, 20000, 1000);
  for (int i = 0; i < 4; i++)
    CHECK_EQUAL(kill(ice[i].pid, SIGSTOP), 0);
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK_EQUAL(actor_hear(&last, SOON).status, FAIRLOCK_OK);
  int64_t cost = now_ms() - began;
  printf("# four claims of 1000 ms, and a heartbeat each 8 s: %d ms\n", (int)cost);
  CHECK(cost < 18000);
  CHECK_EQUAL(actor_do(&last, 'r', 0, 0).status, FAIRLOCK_OK);
  for (int i = 0; i < 4; i++) {
    slay(ice[i].pid);
    actor_end(&ice[i]);
  }
  actor_end(&last);
  end("row");
}

/* So is one that becomes the first because the one before it leaves. */
static void test_claim_after_a_leave(void)
{
  static struct client other;
  struct fairlock waiter;
  struct actor last;
  hold("left");
  client_open(&other, server.port);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, "left"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&waiter, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&other, "left", 1);
  line_up_rare(&last, "left", 2);
  CHECK_EQUAL(raw_number(&redis, "PEXPIRE left %d", 3000), 1); /* the holder has vanished */
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_cancel(&waiter), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&other, &waiter), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(actor_hear(&last, SOON).status, FAIRLOCK_OK);
  CHECK(now_ms() - began < 8000);
  CHECK_EQUAL(actor_do(&last, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  client_close(&other);
  actor_end(&last);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_LOST);
  end("left");
}

/*
 * Killed and frozen ones mixed with living ones: the living keep their order, and all of it costs
 * one waiter timeout.
 */
static void test_mixed(void)
{
  static struct actor waiter[12];
  int64_t began = 0;
  uint64_t token = 0;
  hold("mixed");
  for (int i = 0; i < 12; i++)
    line_up(&waiter[i], server.port, "mixed", 'c', i + 1);
  for (int i = 0; i < 12; i += 3)
    slay(waiter[i].pid);
  for (int i = 1; i < 12; i += 3)
    CHECK_EQUAL(kill(waiter[i].pid, SIGSTOP), 0);
  began = now_ms();
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  for (int i = 2; i < 12; i += 3) {
    struct event event = actor_hear(&waiter[i], SOON);
    CHECK_EQUAL(event.status, FAIRLOCK_OK);
    CHECK(event.token > token);
    token = event.token;
  }
  CHECK(now_ms() - began < 15000);
  for (int i = 0; i < 12; i++) {
    if (i % 3 < 2) slay(waiter[i].pid); /* the others release first, and end then */
    actor_end(&waiter[i]);
  }
  age("mixed");
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  end("mixed");
}

/* Behind dead waiters only: a newcomer, even one that does not wait, gets the lock at once. */
static void test_only_dead_before(void)
{
  struct actor dead[3];
  hold("alone");
  for (int i = 0; i < 3; i++)
    line_up(&dead[i], server.port, "alone", 'c', i + 1);
  for (int i = 0; i < 3; i++)
    slay(dead[i].pid);
  AWAIT(listeners(&redis, "alone") == 0, sleep_ms(2));
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  age("alone");
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  for (int i = 0; i < 3; i++)
    actor_end(&dead[i]);
  end("alone");
}

/* A waiter timeout that leaves a loaded machine 7 s more than a waiter is cut off for. */
#define LONG_MS 10000

/*
 * A waiter cut off for 3 s keeps its place, even if meanwhile the lock went past it to one that was
 * connected.
 */
static void test_cut_off(void)
{
  struct proxy proxy;
  struct actor far, near, late;
  hold("cut");
  proxy_start(&proxy, server.port);
  line_up_for(&far, proxy.port, "cut", 'a', 1, LONG_MS);
  line_up_for(&near, server.port, "cut", 'a', 2, LONG_MS);
  line_up_for(&late, server.port, "cut", 'a', 3, LONG_MS);
  atomic_store(&proxy.control->refuse, 1);
  proxy_sever(&proxy);
  sleep_ms(3000);
  CHECK_EQUAL(queue_length(&redis, "cut"), 3);
  atomic_store(&proxy.control->refuse, 0);
  AWAIT(listeners(&redis, "cut") >= 3, sleep_ms(5));
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  struct event event = actor_hear(&far, SOON);
  CHECK_EQUAL(event.status, FAIRLOCK_OK);
  CHECK_EQUAL(event.stats.connections, 2);
  CHECK_EQUAL(actor_hear(&near, 0).status, FAIRLOCK_PENDING);
  CHECK_EQUAL(actor_do(&far, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_hear(&near, SOON).status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_do(&near, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_hear(&late, SOON).status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_do(&late, 'r', 0, 0).status, FAIRLOCK_OK);
  actor_end(&far);
  actor_end(&near);
  actor_end(&late);
  proxy_stop(&proxy);
  end("cut");
}

/*
 * The same, and the lock is handed over meanwhile: it goes to one that is connected, and then to
 * the one that is back.
 */
static void test_cut_off_at_handover(void)
{
  struct proxy proxy;
  struct actor far, near, late;
  hold("passed");
  proxy_start(&proxy, server.port);
  line_up_for(&far, proxy.port, "passed", 'a', 1, LONG_MS);
  line_up_for(&near, server.port, "passed", 'a', 2, LONG_MS);
  line_up_for(&late, server.port, "passed", 'a', 3, LONG_MS);
  atomic_store(&proxy.control->refuse, 1);
  proxy_sever(&proxy);
  AWAIT(listeners(&redis, "passed") <= 2, sleep_ms(2));
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  struct event first = actor_hear(&near, SOON);
  CHECK_EQUAL(first.status, FAIRLOCK_OK);
  sleep_ms(2500);
  atomic_store(&proxy.control->refuse, 0);
  AWAIT(listeners(&redis, "passed") >= 3, sleep_ms(5));
  CHECK_EQUAL(actor_hear(&far, 0).status, FAIRLOCK_PENDING);
  CHECK_EQUAL(actor_do(&near, 'r', 0, 0).status, FAIRLOCK_OK);
  struct event second = actor_hear(&far, SOON);
  CHECK_EQUAL(second.status, FAIRLOCK_OK);
  CHECK(second.token > first.token);
  CHECK_EQUAL(actor_hear(&late, 0).status, FAIRLOCK_PENDING);
  CHECK_EQUAL(actor_do(&far, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(actor_hear(&late, SOON).token > second.token);
  CHECK_EQUAL(actor_do(&late, 'r', 0, 0).status, FAIRLOCK_OK);
  actor_end(&far);
  actor_end(&near);
  actor_end(&late);
  proxy_stop(&proxy);
  end("passed");
}

/*
 * The network carries nothing for 3 s, in one direction or in both: the place is kept, and the lock
 * comes when the network works again.
 */
static void silence(enum proxy_mode to_server, enum proxy_mode to_client, const char *name)
{
  struct proxy proxy;
  struct actor far, near;
  hold(name);
  proxy_start(&proxy, server.port);
  line_up_for(&far, proxy.port, name, 'a', 1, LONG_MS);
  line_up_for(&near, server.port, name, 'a', 2, LONG_MS);
  atomic_store(&proxy.control->to_server, to_server);
  atomic_store(&proxy.control->to_client, to_client);
  sleep_ms(3000);
  atomic_store(&proxy.control->to_server, PROXY_PASS);
  atomic_store(&proxy.control->to_client, PROXY_PASS);
  /* what was lost is sent again */
  if (to_server == PROXY_DROP || to_client == PROXY_DROP) sleep_ms(8000);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  struct event first = actor_hear(&far, SOON);
  CHECK_EQUAL(first.status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_hear(&near, 0).status, FAIRLOCK_PENDING);
  CHECK_EQUAL(actor_do(&far, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(actor_hear(&near, SOON).token > first.token);
  CHECK_EQUAL(actor_do(&near, 'r', 0, 0).status, FAIRLOCK_OK);
  actor_end(&far);
  actor_end(&near);
  proxy_stop(&proxy);
  end(name);
}

static void test_silence(void)
{
  silence(PROXY_HOLD, PROXY_HOLD, "silent");
}

static void test_deaf(void)
{
  silence(PROXY_PASS, PROXY_DROP, "deaf");
}

static void test_mute(void)
{
  silence(PROXY_DROP, PROXY_PASS, "mute");
}

/*
 * The message of a handover is lost: the waiter finds out by asking, within the lease of the grant.
 */
static void test_lost_message(void)
{
  struct proxy proxy;
  struct actor far;
  hold("message");
  proxy_start(&proxy, server.port);
  line_up(&far, proxy.port, "message", 'a', 1);
  atomic_store(&proxy.control->drop_messages, 1);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  struct event event = actor_hear(&far, SOON);
  CHECK_EQUAL(event.status, FAIRLOCK_OK);
  CHECK_EQUAL(event.stats.polled, 1);
  CHECK_EQUAL(event.stats.granted, 0);
  CHECK_EQUAL(atomic_load(&proxy.control->drop_messages), 0);
  CHECK_EQUAL(actor_do(&far, 'r', 0, 0).status, FAIRLOCK_OK);
  actor_end(&far);
  proxy_stop(&proxy);
  end("message");
}

/*
 * A waiter that learns of the handover by asking, after its connection has ended or at a heartbeat,
 * confirms it at once, although its lease is renewed only minutes later: everybody sees that the
 * claim was taken.
 */
static void find_claim(bool cut, const char *name)
{
  struct proxy proxy;
  static struct client other;
  struct fairlock waiter;
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  hold(name);
  proxy_start(&proxy, server.port);
  client_prepare(&other, proxy.port);
  other.config.lease_ms = 600000;
  client_start(&other);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, name), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&waiter, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&other, name, 1);
  atomic_store(&proxy.control->drop_messages, 1);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  AWAIT(atomic_load(&proxy.control->drop_messages) == 0, sleep_ms(2));
  if (cut) proxy_sever(&proxy);
  CHECK_EQUAL(await_result(&other, &waiter), FAIRLOCK_OK);
  struct fairlock_counters counters = counters_of(&other.client);
  CHECK_EQUAL(counters.polled, 1);
  CHECK_EQUAL(counters.connections, cut ? 2 : 1);
  fairlock_id(&waiter, id, FAIRLOCK_HOLDER_ID_SIZE);
  AWAIT(hold_count_of(&redis, name, id) == 1, service_for(&other, 20));
  CHECK_EQUAL(hold_count_of(&redis, name, id), 1);
  CHECK_EQUAL(counters_of(&other.client).renewals, 0);
  CHECK_EQUAL(fairlock_release(&waiter), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  client_close(&other);
  proxy_stop(&proxy);
  end(name);
}

static void test_claim_found(void)
{
  find_claim(false, "found");
}

static void test_claim_after_a_cut(void)
{
  find_claim(true, "back");
}

/* The lock comes just when the waiter has given up: it goes on at once to the next, or is free. */
static void test_grant_after_timeout(void)
{
  enum { WAIT_MS = 5000 };
  struct proxy proxy;
  static struct client other;
  struct fairlock waiter;
  struct actor next;
  hold("late");
  proxy_start(&proxy, server.port);
  client_prepare(&other, proxy.port);
  other.config.waiter_ms = 120000; /* so does the claim of the lock that it is handed */
  client_start(&other);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, "late"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&waiter, WAIT_MS, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&other, "late", 1);
  line_up(&next, server.port, "late", 'a', 2);
  atomic_store(&proxy.control->to_client, PROXY_HOLD);
  /* the lock goes to the waiter, who hears nothing */
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  AWAIT(atomic_load(&proxy.control->messages) != 0, sleep_ms(2));
  service_for(&other, WAIT_MS); /* until its time is over, and it has left */
  CHECK_EQUAL(actor_hear(&next, SOON).status, FAIRLOCK_OK);
  atomic_store(&proxy.control->to_client, PROXY_PASS);
  CHECK_EQUAL(await_result(&other, &waiter), FAIRLOCK_TIMEOUT);
  CHECK_EQUAL(fairlock_remaining_ms(&waiter), 0);
  CHECK(actor_do(&next, 'l', 0, 0).held_ms > 0);
  CHECK_EQUAL(actor_do(&next, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  client_close(&other);
  actor_end(&next);
  proxy_stop(&proxy);
  end("late");
}

/*
 * A grant for a handle that wants nothing, as if it had been left in the queue by mistake: it is
 * given back at once.
 */
static void test_unexpected_grant(void)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  static struct client other;
  struct fairlock idle;
  hold("unexpected");
  client_open(&other, server.port);
  CHECK_EQUAL(fairlock_init(&idle, &other.client, "unexpected"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&other.client), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&idle, 100, FAIRLOCK_RENEW), FAIRLOCK_TIMEOUT);
  AWAIT(listeners(&redis, "unexpected") == 1, service_for(&other, 5)); /* from now on */
  fairlock_id(&idle, id, FAIRLOCK_HOLDER_ID_SIZE);
  CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{unexpected} %s", id));
  CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{unexpected} 9000000000000 %s", id));
  CHECK(raw_run(&redis, "HSET fairlock:{unexpected} %s %s", id, "9000000000 0 5000"));
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK_EQUAL(hold_count_of(&redis, "unexpected", id), 0); /* given, not confirmed */
  AWAIT(raw_number(&redis, "EXISTS unexpected") != 1, fairlock_poll(&other.client, 20));
  CHECK_EQUAL(fairlock_remaining_ms(&idle), 0);
  CHECK_EQUAL(counters_of(&other.client).acquisitions, 0);
  int64_t token = raw_number(&redis, "HGET fairlock:{unexpected} token");
  CHECK_EQUAL(raw_number(&redis, "HGET fairlock:{unexpected} released"),
              token); /* it did not just expire */
  CHECK_EQUAL(fairlock_try_acquire(&holder, 10000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&idle), FAIRLOCK_OK);
  client_close(&other);
  end("unexpected");
}

/*
 * Messages on its channel that no script has sent: a waiter asks, and believes nothing that the
 * server does not confirm.
 */
static void test_forged_messages(void)
{
  static const char *const texts[] = {"0",
                                      "1",
                                      "x",
                                      "0 0 0",
                                      "-5 -5",
                                      "99999999999999999999 1",
                                      "1760000000000000 1",
                                      "1760000000000000 1 5000",
                                      "1760000000000000 1760000000000000 5000"};
  struct actor waiter;
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  hold("forged");
  line_up(&waiter, server.port, "forged", 'a', 1);
  (void)raw_number(&redis, "LINDEX redisson_lock_queue:{forged} 0");
  memcpy(id, redis.element[0].text, redis.element[0].size + 1);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    CHECK_EQUAL(raw_number(&redis, "PUBLISH redisson_lock__channel:{forged}:%s %b", id, texts[i],
                           strlen(texts[i])),
                1);
  }
  CHECK_EQUAL(actor_hear(&waiter, 300).status, FAIRLOCK_PENDING);
  CHECK_EQUAL(queue_length(&redis, "forged"), 1);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  struct event event = actor_hear(&waiter, SOON);
  CHECK_EQUAL(event.status, FAIRLOCK_OK);
  CHECK_EQUAL(event.stats.connections, 1);
  CHECK_EQUAL(raw_number(&redis, "HGET fairlock:{forged} token"), (int64_t)event.token);
  CHECK_EQUAL(actor_do(&waiter, 'r', 0, 0).status, FAIRLOCK_OK);
  actor_end(&waiter);
  end("forged");
}

/*
 * Cancelled, timed out and taken out while there is no connection: the entry is removed by the next
 * connection, or expires.
 */
static void test_cancel_offline(void)
{
  struct proxy proxy;
  static struct client other;
  struct fairlock waiter;
  hold("offline");
  proxy_start(&proxy, server.port);
  client_open(&other, proxy.port);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, "offline"), FAIRLOCK_OK);
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(fairlock_start_acquire(&waiter, i == 0 ? FAIRLOCK_FOREVER : 3000, FAIRLOCK_RENEW),
                FAIRLOCK_PENDING);
    AWAIT(queue_length(&redis, "offline") == 1, fairlock_poll(&other.client, 10));
    uint32_t connects = counters_of(&other.client).connections;
    atomic_store(&proxy.control->refuse, 1);
    proxy_sever(&proxy);
    service_until_broken(&other, connects);
    if (i == 0) CHECK_EQUAL(fairlock_cancel(&waiter), FAIRLOCK_OK);
    int result = await_result(&other, &waiter);
    CHECK(result == FAIRLOCK_CANCELLED || result == FAIRLOCK_UNREACHABLE ||
          result == FAIRLOCK_TIMEOUT);
    CHECK_EQUAL(queue_length(&redis, "offline"), 1);
    atomic_store(&proxy.control->refuse, 0);
    AWAIT(queue_length(&redis, "offline") == 0, fairlock_poll(&other.client, 10));
    CHECK(no_trace_of_waiters(&redis, "offline"));
  }
  CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_OK);
  client_close(&other);
  proxy_stop(&proxy);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  end("offline");
}

/*
 * Taken out while the server does not know yet that the handle no longer waits: it stays until the
 * server has been told, and leaves nothing in the queue.
 */
static void test_deinit_offline(void)
{
  struct proxy proxy;
  static struct client other;
  struct fairlock waiter;
  hold("owed");
  proxy_start(&proxy, server.port);
  client_prepare(&other, proxy.port);
  other.config.offline_ms = 500;
  client_start(&other);
  CHECK_EQUAL(fairlock_init(&waiter, &other.client, "owed"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&waiter, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&redis, "owed") == 1, fairlock_poll(&other.client, 10));
  atomic_store(&proxy.control->refuse, 1);
  proxy_sever(&proxy);
  service_until_broken(&other, 1);
  CHECK_EQUAL(fairlock_cancel(&waiter), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&other, &waiter), FAIRLOCK_CANCELLED);
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(fairlock_deinit(&waiter), FAIRLOCK_UNREACHABLE);
    CHECK_EQUAL(queue_length(&redis, "owed"), 1);
  }
  atomic_store(&proxy.control->refuse, 0);
  int64_t until = now_ms() + SOON;
  int status;
  while (status = fairlock_deinit(&waiter), status != FAIRLOCK_OK && now_ms() < until)
    CHECK_EQUAL(status, FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(status, FAIRLOCK_OK);
  CHECK(no_trace_of_waiters(&redis, "owed"));
  CHECK_EQUAL(listeners(&redis, "owed"), 0);
  client_close(&other);
  proxy_stop(&proxy);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  end("owed");
}

/* When all clients vanish, nobody is left to forget them: every key has an end of its own. */
static void test_everybody_vanished(void)
{
  struct actor gone[3];
  begin();
  for (int i = 0; i < 3; i++) {
    actor_start(&gone[i], server.port, "vanished");
    actor_tell(&gone[i], 'a', FAIRLOCK_FOREVER, 1000);
    CHECK(queue_reaches(&redis, "vanished", i));
  }
  for (int i = 0; i < 3; i++)
    slay(gone[i].pid);
  static const char *const keys[] = {"redisson_lock_queue:{vanished}",
                                     "redisson_lock_timeout:{vanished}", "fairlock:{vanished}"};
  for (int i = 0; i < 3; i++) {
    int64_t left = raw_number(&redis, "PTTL %s", keys[i]);
    CHECK(left > 0 && left <= 14 * (int64_t)86400000);
  }
}

/*
 * Ends a hold of ours with a listening Redisson waiter in line, which takes the lock that it is
 * offered, or does not.
 */
static void offer_to_peer(bool taken)
{
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{peer} peer:1"));
  CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{peer} 9000000000000 peer:1"));
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  CHECK_EQUAL(queue_length(&redis, "peer"), 1);
  CHECK(strcmp(raw_text(&redis, "HGET fairlock:{peer} woken"), "peer:1 9000000000000") == 0);
  if (!taken) return;
  CHECK(raw_run(&redis, "HSET peer peer:1 1"));
  CHECK(raw_run(&redis, "PEXPIRE peer 60000"));
  CHECK(raw_run(&redis, "DEL redisson_lock_queue:{peer} redisson_lock_timeout:{peer}"));
}

/* As if it had been woken this long ago. */
static void woken_ago(int64_t ms)
{
  CHECK(raw_run(&redis, "TIME"));
  long long at = strtoll(redis.element[1].text, NULL, 10) * 1000 - ms;
  char text[24];
  (void)snprintf(text, sizeof text, "%lld", at);
  CHECK_EQUAL(raw_number(&redis, "HSET fairlock:{peer} since %s", text), 0);
}

/*
 * A Redisson waiter that was woken is dead if it has not come within 5 s. One that came, or that
 * was woken long before, and waits again is alive, though its score may happen to be the same.
 */
static void test_peer_that_waits_again(void)
{
  static struct raw peer;
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&holder, &client.client, "peer"), FAIRLOCK_OK);
  CHECK(raw_open(&peer, server.port));
  CHECK(raw_run(&peer, "SUBSCRIBE redisson_lock__channel:{peer}:peer:1"));
  offer_to_peer(true);
  woken_ago(7000);
  /* and we have seen that it came */
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_BUSY);
  CHECK(raw_run(&redis, "DEL peer"));
  offer_to_peer(true);
  woken_ago(60000);
  CHECK(raw_run(&redis, "DEL peer"));
  offer_to_peer(false);
  woken_ago(7000);
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(queue_length(&redis, "peer"), 0);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  raw_close(&peer);
  end("peer");
}

/* A free lock, and a Redisson waiter in line that was woken and does not listen. */
static void wake_silent_peer(void)
{
  begin();
  client_open(&client, server.port);
  CHECK_EQUAL(fairlock_init(&holder, &client.client, "peer"), FAIRLOCK_OK);
  CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{peer} peer:1"));
  CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{peer} 9000000000000 peer:1"));
  CHECK(raw_run(&redis, "HSET fairlock:{peer} since 0 woken %s", "peer:1 9000000000000"));
}

/*
 * A Redisson waiter that was woken has 5 s to come, and no more by beginning to listen, or by no
 * longer listening.
 */
static void test_peer_that_changes(void)
{
  static struct raw peer;
  wake_silent_peer();
  woken_ago(1000);
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_BUSY);
  CHECK_EQUAL(raw_number(&redis, "HEXISTS fairlock:{peer} suspect:peer:1"), 0);
  CHECK(raw_open(&peer, server.port));
  CHECK(raw_run(&peer, "SUBSCRIBE redisson_lock__channel:{peer}:peer:1"));
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_BUSY);
  CHECK_EQUAL(queue_length(&redis, "peer"), 1);
  raw_close(&peer);
  AWAIT(listeners(&redis, "peer") == 0, sleep_ms(2));
  woken_ago(7000);
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(queue_length(&redis, "peer"), 0);
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_OK);
  end("peer");
}

/*
 * That it was woken counts only while it is the first in line, where waking has put it. Behind a
 * waiter of ours that is cut off, it has come and waits again.
 */
static void test_peer_behind(void)
{
  static struct raw peer;
  wake_silent_peer();
  woken_ago(7000);
  CHECK(raw_run(&redis, "LPUSH redisson_lock_queue:{peer} ours:1"));
  CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{peer} 9000000000000 ours:1"));
  CHECK(raw_run(&redis, "HSET fairlock:{peer} ours:1 %s", "9000000000 0 5000"));
  CHECK(raw_open(&peer, server.port));
  CHECK(raw_run(&peer, "SUBSCRIBE redisson_lock__channel:{peer}:peer:1"));
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_BUSY);
  CHECK(strcmp(raw_text(&redis, "LINDEX redisson_lock_queue:{peer} 0"), "peer:1") == 0);
  CHECK_EQUAL(queue_length(&redis, "peer"), 2);
  /* and so it has 5 s from now on */
  CHECK_EQUAL(fairlock_try_acquire(&holder, 60000), FAIRLOCK_BUSY);
  CHECK_EQUAL(queue_length(&redis, "peer"), 2);
  CHECK(raw_run(&redis, "DEL redisson_lock_queue:{peer} redisson_lock_timeout:{peer}"));
  CHECK(raw_run(&redis, "HDEL fairlock:{peer} ours:1"));
  raw_close(&peer);
  end("peer");
}

/*
 * Redisson waiters that were noted as suspects, and then came or gave up: nobody tells us. The notes
 * do not outlast the next grant in another 1000 s, also when somebody always waits.
 */
static void test_suspects_that_left(void)
{
  struct actor waiter[2];
  hold("suspects");
  for (int i = 0; i < 2; i++)
    line_up(&waiter[i], server.port, "suspects", 'a', i + 1);
  for (int i = 0; i < 9; i++)
    CHECK(raw_run(&redis, "HSET fairlock:{suspects} suspect:jvm:%d %s", i, "9000000000000 1"));
  CHECK(raw_run(&redis, "HSET fairlock:{suspects} token 1000000 later:%s 1", "field"));
  CHECK_EQUAL(fairlock_force_release(&client.client, "suspects", 8, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_OK);
  CHECK_EQUAL(actor_hear(&waiter[0], SOON).status, FAIRLOCK_OK);
  for (int i = 0; i < 9; i++)
    CHECK_EQUAL(raw_number(&redis, "HEXISTS fairlock:{suspects} suspect:jvm:%d", i), 0);
  CHECK_EQUAL(raw_number(&redis, "HEXISTS fairlock:{suspects} later:field"), 1);
  CHECK_EQUAL(queue_length(&redis, "suspects"), 1);
  CHECK_EQUAL(actor_do(&waiter[0], 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_hear(&waiter[1], SOON).status, FAIRLOCK_OK);
  CHECK_EQUAL(actor_do(&waiter[1], 'r', 0, 0).status, FAIRLOCK_OK);
  for (int i = 0; i < 2; i++)
    actor_end(&waiter[i]);
  CHECK(raw_run(&redis, "HDEL fairlock:{suspects} later:field"));
  CHECK_EQUAL(fairlock_release(&holder), FAIRLOCK_LOST);
  end("suspects");
}

const struct check_test check_tests[] = {
    {"dead: everybody vanished", test_everybody_vanished},
    {"dead: taken out offline, with a leave owed", test_deinit_offline},
    {"dead: a Redisson waiter that waits again is not", test_peer_that_waits_again},
    {"dead: a Redisson waiter that begins and ends to listen", test_peer_that_changes},
    {"dead: a Redisson waiter that is woken behind another", test_peer_behind},
    {"dead: suspects that left by themselves", test_suspects_that_left},
    {"dead: a time-out leaves no trace", test_timeout},
    {"dead: a cancel leaves no trace", test_cancel},
    {"dead: a cancel at any moment", test_cancel_race},
    {"dead: one killed waiter", test_one_killed},
    {"dead: thirty killed waiters", test_thirty_killed},
    {"dead: one frozen waiter", test_one_frozen},
    {"dead: thirty frozen waiters", test_thirty_frozen},
    {"dead: one frozen waiter with a short claim", test_claim},
    {"dead: four frozen waiters with short claims", test_claims_in_a_row},
    {"dead: a leave before a waiter with a short claim", test_claim_after_a_leave},
    {"dead: killed, frozen and living ones", test_mixed},
    {"dead: only dead ones before", test_only_dead_before},
    {"dead: cut off for 3 s", test_cut_off},
    {"dead: cut off at the handover", test_cut_off_at_handover},
    {"dead: 3 s of silence", test_silence},
    {"dead: 3 s without replies", test_deaf},
    {"dead: 3 s without requests", test_mute},
    {"dead: the handover's message is lost", test_lost_message},
    {"dead: a claim found at a heartbeat is confirmed", test_claim_found},
    {"dead: a claim found on a new connection is confirmed", test_claim_after_a_cut},
    {"dead: the lock comes after the time-out", test_grant_after_timeout},
    {"dead: an unexpected grant is given back", test_unexpected_grant},
    {"dead: forged messages", test_forged_messages},
    {"dead: cancel and time-out without a connection", test_cancel_offline},
    {NULL, NULL},
};
