/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients with the scripts' hashes alone (lock/scripts/hashes.c) and a real server: they wait until
 * somebody loads the scripts, keep their places and holds while these are gone for a while, and need
 * no more from the others than that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fairlock_share.h"
#include "harness.h"
#include "support/counters.h"

#ifndef FAIRLOCK
#define FAIRLOCK "build/fairlock" /* the makefile says where it really is */
#endif

static struct client client;
static struct fairlock handle;

/* As an operator does, or a client of the same release that has the texts. */
static bool fairlock(const char *subcommand)
{
  char line[256];
  (void)snprintf(line, sizeof line, FAIRLOCK " --url redis://127.0.0.1:%d %s >/dev/null",
                 server.port, subcommand);
  return system(line) == 0;
}

static bool load(void)
{
  return fairlock("load");
}

static bool flush(void)
{
  return raw_run(&redis, "SCRIPT FLUSH");
}

static bool unknown(void)
{
  return strncmp(client_error(&client), "NOSCRIPT: run fairlock load", 27) == 0;
}

static void open_without(const char *name)
{
  begin();
  CHECK(flush());
  client_prepare(&client, server.port);
  client.config.lease_ms = 6000;
  client.config.offline_ms = FAIRLOCK_FOREVER;
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, name), FAIRLOCK_OK);
}

static void close_all(void)
{
  CHECK_EQUAL(fairlock_deinit(&handle), FAIRLOCK_OK);
  client_close(&client);
}

/* A wait goes on until the scripts are there, and then it is as any. */
static void test_waits_for_load(void)
{
  open_without("door");
  CHECK_EQUAL(fairlock_try_acquire(&handle, FAIRLOCK_RENEW), FAIRLOCK_UNAVAILABLE);
  CHECK(unknown());
  CHECK_EQUAL(fairlock_acquire(&handle, 700, FAIRLOCK_RENEW), FAIRLOCK_UNAVAILABLE);
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_for(&client, 1200);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_PENDING);
  CHECK(nothing_left(&redis, "door"));
  CHECK(load());
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_release(&handle) == FAIRLOCK_OK && fairlock_release(&handle) == FAIRLOCK_OK);
  CHECK_EQUAL(inspect(&client, "door").status, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_force_release(&client.client, "door", 4, FAIRLOCK_ANY_TOKEN),
              FAIRLOCK_NOT_HELD);
  CHECK_EQUAL(counters_of(&client.client).connections, 1);
  close_all();
  CHECK(nothing_left(&redis, "door"));
}

/* Another client of the same release that uses the lock brings what this one needs. */
static void test_another_client_loads(void)
{
  open_without("door");
  CHECK_EQUAL(fairlock_start_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(unknown(), service_for(&client, 10));
  CHECK(fairlock("run other true"));
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(inspect(&client, "door").status, FAIRLOCK_UNAVAILABLE);
  CHECK(fairlock("status door"));
  CHECK_EQUAL(inspect(&client, "door").status, FAIRLOCK_OK);
  close_all();
}

/* The scripts go while it holds: renewals, a re-entry and a release wait for them. */
static void test_flush_while_held(void)
{
  open_without("door");
  CHECK(load());
  CHECK_EQUAL(fairlock_acquire(&handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(flush());
  AWAIT(unknown(), service_for(&client, 10));
  CHECK(fairlock_remaining_ms(&handle) > 0);
  CHECK_EQUAL(fairlock_start_acquire(&handle, 5000, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_for(&client, 600);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_PENDING);
  CHECK(load());
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK(flush());
  CHECK_EQUAL(fairlock_start_release(&handle), FAIRLOCK_PENDING);
  service_for(&client, 600);
  CHECK_EQUAL(fairlock_result(&handle), FAIRLOCK_PENDING);
  CHECK(load());
  CHECK_EQUAL(await_result(&client, &handle), FAIRLOCK_OK);
  CHECK_EQUAL(atomic_load(&client.losses), 0);
  close_all();
  CHECK(nothing_left(&redis, "door"));
}

/* The scripts go while three wait: each keeps its place, though nobody hears of the others meanwhile. */
static void test_flush_while_waiting(void)
{
  static struct actor actors[3];
  open_without("line");
  CHECK(load());
  CHECK_EQUAL(fairlock_acquire(&handle, 1000, 60000), FAIRLOCK_OK);
  for (int i = 0; i < 3; i++) {
    static const struct fairlock_config config = {.offline_ms = FAIRLOCK_FOREVER,
                                                  .waiter_ms = 20000};
    actor_start_with(&actors[i], server.port, "line", &config);
    actor_tell(&actors[i], 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    CHECK(queue_reaches(&redis, "line", i + 1));
  }
  int64_t before = scripts_run(&redis);
  CHECK(flush());
  for (int i = 0; i < 3; i++) { /* each asks now */
    char id[FAIRLOCK_HOLDER_ID_SIZE];
    (void)snprintf(id, sizeof id, "%s",
                   raw_text(&redis, "LINDEX redisson_lock_queue:{line} %d", i));
    CHECK_EQUAL(raw_number(&redis, "PUBLISH redisson_lock__channel:{line}:%s 0", id), 1);
  }
  AWAIT(scripts_run(&redis) >= before + 6, sleep_ms(20));
  CHECK_EQUAL(queue_length(&redis, "line"), 3);
  CHECK(load());
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  uint64_t token = fairlock_token(&handle);
  for (int i = 0; i < 3; i++) {
    struct event event = actor_hear(&actors[i], SOON);
    CHECK_EQUAL(event.status, FAIRLOCK_OK);
    CHECK(event.token > token);
    token = event.token;
    CHECK_EQUAL(actor_do(&actors[i], 'r', 0, 0).status, FAIRLOCK_OK);
    actor_end(&actors[i]);
  }
  close_all();
  CHECK(nothing_left(&redis, "line"));
}

/* Who shares uses a script that nobody loads who does not; a downgrade uses another one. */
static void test_shared(void)
{
  static struct fairlock_downgrading sharing;
  static struct fairlock_shared shared;
  static struct fairlock alone;
  open_without("door");
  CHECK(fairlock("run other true"));
  fairlock_use_downgrading(&client.client, &sharing);
  CHECK_EQUAL(fairlock_init_shared(&shared, &client.client, "hall", 2), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&shared.handle, FAIRLOCK_RENEW), FAIRLOCK_UNAVAILABLE);
  CHECK(unknown());
  CHECK_EQUAL(fairlock_start_acquire(&shared.handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
              FAIRLOCK_PENDING);
  CHECK(fairlock("run --shared other true"));
  CHECK_EQUAL(await_result(&client, &shared.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&shared.handle), FAIRLOCK_OK);
  CHECK(flush());
  CHECK_EQUAL(fairlock_start_acquire(&shared.handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW),
              FAIRLOCK_PENDING);
  service_for(&client, 600);
  CHECK_EQUAL(fairlock_result(&shared.handle), FAIRLOCK_PENDING);
  CHECK(load());
  CHECK_EQUAL(await_result(&client, &shared.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&shared.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(&alone, &client.client, "hall"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&alone, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_downgrade(&alone, &shared, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&shared.handle), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&alone), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&shared.handle), FAIRLOCK_OK);
  close_all();
  CHECK(nothing_left(&redis, "hall"));
}

/* Nor does its user need the right to send a script. */
static void test_without_the_right(void)
{
  begin();
  CHECK(load());
  CHECK(raw_run(&redis, "ACL SETUSER device on >secret ~* &* +@all -eval -script"));
  client_prepare(&client, server.port);
  client.config.user = "device";
  client.config.password = "secret";
  client_start(&client);
  CHECK_EQUAL(fairlock_init(&handle, &client.client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&handle, 1000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_release(&handle), FAIRLOCK_OK);
  CHECK_EQUAL(inspect(&client, "door").status, FAIRLOCK_OK);
  close_all();
  CHECK(raw_run(&redis, "ACL DELUSER device"));
}

const struct check_test check_tests[] = {
    {"no texts: a wait goes on until the scripts are loaded", test_waits_for_load},
    {"no texts: another client loads them", test_another_client_loads},
    {"no texts: the scripts go while it holds", test_flush_while_held},
    {"no texts: the scripts go while some wait", test_flush_while_waiting},
    {"no texts: a lock that is shared", test_shared},
    {"no texts: without the right to send a script", test_without_the_right},
    {NULL, NULL},
};
