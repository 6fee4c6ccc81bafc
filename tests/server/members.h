/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that share one lock, `name`, each with a handle of each kind. A test says how many there
 * are, MEMBERS, before it includes this.
 */
#include "fairlock_share.h"
#include "harness.h"

static struct client clients[MEMBERS];
static struct fairlock_downgrading sharing[MEMBERS];
static struct fairlock_shared shared[MEMBERS];
static struct fairlock alone[MEMBERS];

static const char name[] = "shared";

static struct fairlock *sharer(int i)
{
  return &shared[i].handle;
}

/* Each member has a client of its own, with these times, and a handle of each kind. */
static void begin_patient(uint32_t limit, uint32_t waiter_ms, uint32_t claim_ms)
{
  begin();
  for (int i = 0; i < MEMBERS; i++) {
    client_prepare(&clients[i], server.port);
    clients[i].config.waiter_ms = waiter_ms;
    clients[i].config.claim_ms = claim_ms;
    client_start(&clients[i]);
    fairlock_use_downgrading(&clients[i].client, &sharing[i]);
    CHECK_EQUAL(fairlock_init_shared(&shared[i], &clients[i].client, name, limit), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_init(&alone[i], &clients[i].client, name), FAIRLOCK_OK);
  }
}

static void begin_with(uint32_t limit)
{
  begin_patient(limit, 0, 0);
}

static void end_members(void)
{
  for (int i = 0; i < MEMBERS; i++) {
    CHECK_EQUAL(fairlock_deinit(sharer(i)), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_deinit(&alone[i]), FAIRLOCK_OK);
    client_close(&clients[i]);
  }
  CHECK(nothing_left(&redis, name));
}

static void service_all(void)
{
  for (int i = 0; i < MEMBERS; i++)
    service_for(&clients[i], 1);
}

/* Queues, and is in its place before this returns. */
static void queue(int i, struct fairlock *handle)
{
  int64_t before = queue_length(&redis, name);
  CHECK_EQUAL(fairlock_start_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  service_until_queued(&clients[i], name, before + 1);
}

static bool holds(struct fairlock *handle)
{
  return fairlock_result(handle) == FAIRLOCK_OK && fairlock_hold_count(handle) > 0;
}

static void await_hold(struct fairlock *handle)
{
  AWAIT(holds(handle), service_all());
  CHECK(holds(handle));
}
