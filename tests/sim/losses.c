/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loss is reported, once, and not while the hold still exists; no answer to a request sent after
 * the end of a hold extends the belief in it.
 */
#include "world.h"

#include "internal.h"

void loss_end_hold(struct party *party)
{
  if (party == NULL || party->device == NULL || party->gone) return;
  party->loss.over = true;
  party->loss.at = device_clock(party->device);
}

/* Who tells it may know no better, or the server's clock is not what it was. */
static bool loss_excused(const struct party *party)
{
  const struct world *world = party->world;
  const struct link *link = party->device->link;
  if (link != NULL && link->node != world->master) return true;
  return !world_safe(world);
}

void check_lost(struct party *party)
{
  struct world *world = party->world;
  const struct lock *lock = party->lock;
  const struct fairlock *handle = &party->handle;
  bool early = party->belief.holds && party->belief.until > world->now &&
               (int32_t)(device_clock(party->device) - handle->ends_at) < 0;
  bool still = party->held.is && party->held.token == party->belief.token;
  if (early && still && !loss_excused(party))
    world_fail(world, "%s is told that it lost %s, but holds it", party->id, lock->text[0]);
}

void check_told_of_loss(const struct party *party, bool held)
{
  bool keeps = party->job == JOB_HOLD || party->job == JOB_REENTER;
  if (held || !keeps || !party->belief.holds || party->loss.told == party->belief.token) return;
  world_fail(party->world, "%s is not told that it lost %s", party->id, party->lock->text[0]);
}

/* Whatever the server has lost: no answer to a request sent after the loss extends a belief. */
void check_renewal(struct party *party, int64_t until)
{
  const struct fairlock *handle = &party->handle;
  if (party->device == NULL || until <= party->belief.until) return;
  const struct forced *of = belief_forced(party, party->belief.token);
  if ((of == NULL && !party->loss.over) || belief_stray(party)) return;
  uint32_t sent_at = handle->ends_at - handle->lease_ms + margin(handle->lease_ms);
  if ((int32_t)(sent_at - (of != NULL ? of->at : party->loss.at)) <= 0) return;
  world_fail(party->world, "%s goes on believing that it holds %s, though the server has told it",
             party->id, party->lock->text[0]);
}
