/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hold lasts for as long as was asked for: a confirmation sets the lease, nothing shortens it
 * later, and one that is not renewed ends in its time. Only a late acquire from an earlier
 * connection may extend it without the holder's knowing.
 */
#include "world.h"

/*
 * The confirmation of a handover sets the lease that the holder asks for; whatever comes later
 * never shortens it.
 */
void check_lease(const struct party *party, bool confirms, uint64_t lease_ms, int64_t before)
{
  struct world *world = party->world;
  int64_t expires = party->held.expires;
  if (!party->held.is || !world_safe(world)) return;
  int64_t asked = party->held.shared ? share_end(world, (int64_t)lease_ms)
                                     : world_server_ms(world) + (int64_t)lease_ms;
  int64_t expected = !confirms && before > asked ? before : asked;
  if (expires == expected) return;
  world_fail(world, "%s: the lease of %s ends %lld ms too %s", party->id, party->lock->text[0],
             (long long)(expires > expected ? expires - expected : expected - expires),
             expires > expected ? "late" : "early");
}

int64_t lease_asked(const struct party *party)
{
  return party->lease.asked_ms != FAIRLOCK_RENEW ? (int64_t)party->lease.asked_ms * MS : INT64_MAX;
}

/* How much later than its lease a hold may end. */
static int64_t lease_slack(const struct party *party)
{
  int64_t rounded = party->shares && party->lease.ends < INT64_MAX ? party->handle.lease_ms : 0;
  return SECOND + 2 * device_round_trip(party->device) + rounded * MS / 16;
}

/*
 * The lease is set anew where nobody asked for that: a request that too few replicas have acknowledged is
 * sent again, and sets it each time.
 */
static bool lease_excused(const struct party *party)
{
  return !world_ordered(party->world) || party->world->profile.synced;
}

static void check_lease_over(void *object, uint32_t stamp)
{
  const struct party *party = object;
  struct world *world = party->world;
  const struct lock *lock = party->lock;
  bool held = party_holds(party, stamp);
  if (party->gone || !held || party->lease.ends == INT64_MAX || lease_excused(party)) return;
  if (world->now < party->lease.ends + lease_slack(party)) return;
  if (!progress_goes_through(party, party->lease.from)) return;
  const struct key *hash = store_find(redis_store(world->redis), lock->keys[0]);
  if (hold_end(hash, party, world->jump) <= world->now) return;
  world_fail(world, "%s has %s for longer than it asked for", party->id, lock->text[0]);
}

void lease_may_last(struct party *party, uint64_t token, int64_t lease)
{
  struct world *world = party->world;
  int64_t end = lease == INT64_MAX ? lease : world->now + lease;
  if (end <= party->lease.ends) return;
  party->lease.ends = end;
  if (end == INT64_MAX) return;
  world_later(world, end + lease_slack(party) - world->now, check_lease_over, party,
              (uint32_t)token);
}

/*
 * From a connection before the present one, of the operation that the hold began with or of an
 * earlier one: the only request that may prolong a lease without the holder's knowing.
 */
static bool is_late_acquire(const struct party *party, const struct link *link, int64_t mode)
{
  return mode >= 0 && link != party->device->link;
}

/*
 * A late request was in doubt when its repetition on the new connection, or the next operation,
 * succeeded, so the holder does not know that the lease is longer now.
 */
void lease_extended(struct party *party, const struct link *link, int64_t mode, uint64_t lease_ms)
{
  if (!is_late_acquire(party, link, mode)) return;
  if (party->job == JOB_ACQUIRE) { /* nor of the hold: that has the lease of the late one */
    party->lease.held_step = link->sent_step;
    return;
  }
  TRACE(party->world, "%s has %s for longer by a late acquire", party->id, party->lock->text[0]);
  lease_may_last(party, party->held.token, (int64_t)lease_ms * MS);
}
