/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens with two masters: each new one is larger than all before it, because the clocks agree; but
 * a waiter may learn of an older one later, and what has seen the newer one has to refuse it.
 */
#include <stdio.h>
#include <string.h>

#include "fairlock_follow.h"
#include "harness.h"

#define DOOR "door"

static struct server old, new;
static struct raw at_old, at_new;
static struct client holder, late, other;
static struct fairlock held, given, taken;

/* Waits at the old server. The handover may take a minute to be confirmed. */
static void wait_in_line(struct client *client, struct fairlock *handle, const char *seeds,
                         int64_t place)
{
  static struct fairlock_topology topology[2];
  static char address[2][32];
  topology[place - 1].address = address[place - 1];
  topology[place - 1].address_size = sizeof address[0];
  client_prepare(client, old.port);
  CHECK(port_posix_seeds(&client->socket, seeds));
  client->config.waiter_ms = 60000;
  client_start(client);
  CHECK_EQUAL(fairlock_follow(&client->client, &topology[place - 1]), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_init(handle, &client->client, DOOR), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_start_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  AWAIT(queue_length(&at_old, DOOR) == place, service_for(client, 10));
}

static bool replicates(void)
{
  return strstr(raw_text(&at_new, "INFO replication"), "master_link_status:up") != NULL;
}

/*
 * The old master has handed the lock over to a waiter that gives up at the same moment, so it hands
 * the lock to the next. The new one knows only of the first handover, and the waiter comes back.
 */
static void test_older_after_newer(void)
{
  char seeds[64];
  begin();
  server_start(&old, NULL);
  server_start(&new, NULL);
  CHECK(raw_open(&at_old, old.port));
  CHECK(raw_open(&at_new, new.port));
  CHECK(raw_run(&at_new, "REPLICAOF 127.0.0.1 %d", old.port));
  AWAIT(replicates(), sleep_ms(20));
  (void)snprintf(seeds, sizeof seeds, "127.0.0.1:%d,127.0.0.1:%d", old.port, new.port);

  client_open(&holder, old.port);
  CHECK_EQUAL(fairlock_init(&held, &holder.client, DOOR), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&held, 0, 60000), FAIRLOCK_OK);
  wait_in_line(&late, &given, seeds, 1);
  wait_in_line(&other, &taken, seeds, 2);
  CHECK_EQUAL(fairlock_release(&held), FAIRLOCK_OK); /* hands it to `late`, which does not look */
  AWAIT(queue_length(&at_new, DOOR) == 1, sleep_ms(10));
  CHECK(raw_run(&at_new, "REPLICAOF NO ONE")); /* from now on there are two masters */

  CHECK_EQUAL(fairlock_cancel(&given), FAIRLOCK_OK);
  CHECK_EQUAL(await_result(&late, &given), FAIRLOCK_CANCELLED);
  CHECK_EQUAL(await_result(&other, &taken), FAIRLOCK_OK);
  service_for(&other, 50);

  server_kill(&old); /* or its connections: `late` goes to the new one */
  service_for(&late, 50);
  CHECK_EQUAL(fairlock_acquire(&given, 5000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_remaining_ms(&taken) > 0);
  CHECK(fairlock_token(&given) > 0);
  CHECK(fairlock_token(&given) < fairlock_token(&taken)); /* begun later, and to be refused */

  uint64_t newest = fairlock_token(&taken);
  CHECK_EQUAL(fairlock_release(&given), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_acquire(&given, 5000, FAIRLOCK_RENEW), FAIRLOCK_OK);
  CHECK(fairlock_token(&given) > newest); /* given anew */
  CHECK_EQUAL(fairlock_release(&given), FAIRLOCK_OK);
  int status = fairlock_release(&taken);
  CHECK(status == FAIRLOCK_LOST || status == FAIRLOCK_UNKNOWN); /* or sent to the one that died */

  CHECK_EQUAL(fairlock_deinit(&held), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_deinit(&given), FAIRLOCK_OK);
  AWAIT(fairlock_deinit(&taken) == FAIRLOCK_OK, service_for(&other, 10));
  client_close(&holder);
  client_close(&late);
  client_close(&other);
  raw_close(&at_old);
  raw_close(&at_new);
  server_stop(&old);
  server_stop(&new);
}

const struct check_test check_tests[] = {
    {"tokens_older_after_newer", test_older_after_newer},
    {0},
};
