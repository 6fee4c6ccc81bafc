/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stories of test_replies and test_late, played by handles that share the lock: requests that are
 * lost or come late, replies that are lost, scripts that are unknown.
 */
#include "fairlock_share.h"
#include "story.h"
#include "support/counters.h"

static void play(enum cast who, const char *what, size_t order, int strand_ms, bool settle)
{
  cast = who;
  sweep(what, order, strand_ms, settle);
  cast = ALONE;
}

static void test_requests_lost(void)
{
  play(BESIDE, "cut before", offsetof(struct proxy_control, cut_before), 0, false);
}

static void test_replies_lost(void)
{
  unknown_scripts = true;
  play(BESIDE, "scripts flushed, cut after", offsetof(struct proxy_control, cut_after), 0, false);
  unknown_scripts = false;
}

static void test_replies_lost_mixed(void)
{
  play(MIXED, "cut after", offsetof(struct proxy_control, cut_after), 0, false);
}

static void test_late_at_rest(void)
{
  play(BESIDE, "stranded for a while", offsetof(struct proxy_control, strand), 150, true);
}

static void test_late_mixed(void)
{
  play(MIXED, "stranded for longer", offsetof(struct proxy_control, strand), 400, false);
}

static void test_noscript(void)
{
  cast = BESIDE;
  tell_with_flushes();
  cast = MIXED;
  tell_with_flushes();
  cast = ALONE;
}

/* Requests that come after they have expired, of one that shares beside another */

static struct proxy proxy;
static struct client client, beside;
static struct fairlock_sharing sharing, sharing_beside;
static struct fairlock_shared late, other;

enum { LATE_MS = 2600, VALID_MS = 3500 }; /* longer than a request is valid; when it has come */

static const char name[] = "void";

static void open_late(void)
{
  begin();
  proxy_start(&proxy, server.port);
  atomic_store(&proxy.control->strand_ms, LATE_MS);
  client_prepare(&client, proxy.port);
  client.config.lease_ms = 1000;
  client_start(&client);
  client_open(&beside, server.port);
  fairlock_use_sharing(&client.client, &sharing);
  fairlock_use_sharing(&beside.client, &sharing_beside);
  CHECK_EQUAL(fairlock_init_shared(&late, &client.client, name, 2), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init_shared(&other, &beside.client, name, 2), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&other.handle, 1000, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&late.handle, 1000, 60000), FAIRLOCK_OK);
}

static void close_late(void)
{
  CHECK_EQUAL(fairlock_deinit(&late.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&other.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&other.handle), FAIRLOCK_OK);
  client_close(&client);
  client_close(&beside);
  proxy_stop(&proxy);
  CHECK(nothing_left(&redis, name));
}

static void strand_next(void)
{
  atomic_store(&proxy.control->strand, atomic_load(&proxy.control->requests) + 1);
}

static bool late_holds(void)
{
  char id[FAIRLOCK_HOLDER_ID_SIZE];
  fairlock_id(&late.handle, id, FAIRLOCK_HOLDER_ID_SIZE);
  return raw_number(&redis, "HEXISTS void %s", id) == 1;
}

/* It begins no hold that nobody knows of, and takes nobody's room. */
static void test_void_acquire(void)
{
  open_late();
  CHECK_EQUAL(fairlock_release(&late.handle), FAIRLOCK_OK);
  strand_next();
  int64_t began = now_ms();
  CHECK_EQUAL(fairlock_acquire(&late.handle, 5000, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(atomic_load(&proxy.control->strand), 0);
  CHECK_EQUAL(fairlock_release(&late.handle), FAIRLOCK_OK);
  while (now_ms() < began + VALID_MS) {
    CHECK(!late_holds());
    sleep_ms(20);
  }
  close_late();
}

/* A release does not end the next hold, whose token it does not name. */
static void test_void_release(void)
{
  open_late();
  strand_next();
  int64_t began = now_ms();
  int status = fairlock_release(&late.handle);
  CHECK(status == FAIRLOCK_OK || status == FAIRLOCK_UNKNOWN);
  CHECK_EQUAL(atomic_load(&proxy.control->strand), 0);
  CHECK_EQUAL(fairlock_acquire(&late.handle, 5000, 60000), FAIRLOCK_OK);
  while (now_ms() < began + VALID_MS)
    service_for(&client, 20);
  CHECK(late_holds());
  CHECK_EQUAL(fairlock_release(&late.handle), FAIRLOCK_OK);
  close_late();
}

/* Nor does it while it is valid: it may come after the next acquire. */
static void test_release_in_passing(void)
{
  open_late();
  atomic_store(&proxy.control->strand_ms, 300);
  strand_next();
  int64_t began = now_ms();
  int status = fairlock_release(&late.handle);
  CHECK(status == FAIRLOCK_OK || status == FAIRLOCK_UNKNOWN);
  CHECK_EQUAL(fairlock_acquire(&late.handle, 5000, 60000), FAIRLOCK_OK);
  while (now_ms() < began + 1000)
    service_for(&client, 20);
  CHECK(late_holds());
  CHECK_EQUAL(fairlock_release(&late.handle), FAIRLOCK_OK);
  CHECK(!late_holds());
  close_late();
}

/* A leave that comes late does not end the next hold. */
static void test_void_leave(void)
{
  open_late();
  CHECK_EQUAL(fairlock_release(&late.handle), FAIRLOCK_OK);
  struct fairlock_shared third;
  CHECK_EQUAL(fairlock_init_shared(&third, &beside.client, name, 2), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&third.handle, 1000, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&late.handle, FAIRLOCK_FOREVER, 60000), FAIRLOCK_PENDING);
  service_until_queued(&client, name, 1);
  strand_next();
  CHECK_EQUAL(fairlock_cancel(&late.handle), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&client, &late.handle), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(atomic_load(&proxy.control->strand), 0);
  CHECK_EQUAL(fairlock_release(&third.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&third.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&late.handle, FAIRLOCK_FOREVER, 60000), FAIRLOCK_OK);
  service_for(&client, VALID_MS);
  CHECK(late_holds());
  CHECK_EQUAL(fairlock_release(&late.handle), FAIRLOCK_OK);
  close_late();
}

/* A lease that has ended is not brought back by a renewal that was on its way. */
static void test_late_renewal(void)
{
  open_late();
  CHECK_EQUAL(fairlock_release(&late.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&late.handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&late.handle);
  atomic_store(&proxy.control->to_server, PROXY_HOLD);
  AWAIT(atomic_load(&client.losses) > 0, service_for(&client, 20));
  CHECK_EQUAL(atomic_load(&client.losses), 1);
  sleep_ms(1100); /* the lease, and what it was rounded by */
  atomic_store(&proxy.control->to_server, PROXY_PASS);
  CHECK_EQUAL(fairlock_release(&late.handle), FAIRLOCK_LOST);
  CHECK_EQUAL(fairlock_acquire(&late.handle, 10000, 60000), FAIRLOCK_OK);
  CHECK(fairlock_token(&late.handle) > token);
  CHECK_EQUAL(fairlock_release(&late.handle), FAIRLOCK_OK);
  close_late();
}

/*
 * The message that hands it the lock is lost with its connection, so it learns by asking that it
 * holds, and confirms that at once, although its lease is renewed only minutes later. Whoever held
 * the lock before has shared it, or has not: then the claim is exclusive until the waiter asks.
 */
static void find_claim(uint32_t limit, struct fairlock *before)
{
  proxy_start(&proxy, server.port);
  client_prepare(&client, proxy.port);
  client.config.lease_ms = 600000;
  client_start(&client);
  fairlock_use_sharing(&client.client, &sharing);
  CHECK_EQUAL(fairlock_init_shared(&late, &client.client, name, limit), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(before, 0, 60000), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(&late.handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
              FAIRLOCK_PENDING);
  service_until_queued(&client, name, 1);
  atomic_store(&proxy.control->drop_messages, 1);
  CHECK_EQUAL(fairlock_release(before), FAIRLOCK_OK);
  AWAIT(atomic_load(&proxy.control->drop_messages) == 0, sleep_ms(2));
  proxy_sever(&proxy);
  CHECK_EQUAL(await_result(&client, &late.handle), FAIRLOCK_OK);
  AWAIT(inspect(&beside, name).hold_count == 1, service_for(&client, 20));
  CHECK_EQUAL(inspect(&beside, name).hold_count, 1);
  CHECK_EQUAL(counters_of(&client.client).renewals, 0);
  CHECK_EQUAL(fairlock_release(&late.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&late.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(before), FAIRLOCK_OK);
  client_close(&client);
  proxy_stop(&proxy);
}

static void test_claim_after_a_cut(void)
{
  struct fairlock alone;
  begin();
  client_open(&beside, server.port);
  fairlock_use_sharing(&beside.client, &sharing_beside);
  CHECK_EQUAL(fairlock_init_shared(&other, &beside.client, name, 1), FAIRLOCK_OK);
  find_claim(1, &other.handle);
  CHECK_EQUAL(fairlock_init(&alone, &beside.client, name), FAIRLOCK_OK);
  find_claim(0, &alone);
  client_close(&beside);
  CHECK(nothing_left(&redis, name));
}

const struct check_test check_tests[] = {
    {"shared late: each request lost", test_requests_lost},
    {"shared late: each reply lost, scripts unknown", test_replies_lost},
    {"shared late: each reply lost, of one that shares", test_replies_lost_mixed},
    {"shared late: while nothing else happens", test_late_at_rest},
    {"shared late: while the story goes on", test_late_mixed},
    {"shared late: an acquire that is void", test_void_acquire},
    {"shared late: a release that is void", test_void_release},
    {"shared late: a release that is not void yet", test_release_in_passing},
    {"shared late: a leave that is void", test_void_leave},
    {"shared late: a renewal after the lease", test_late_renewal},
    {"shared late: a claim found on a new connection is confirmed", test_claim_after_a_cut},
    {"shared late: NOSCRIPT for each operation", test_noscript},
    {NULL, NULL},
};
