/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that is repeated has the effect and the answer of the first, and one that comes late
 * does no harm.
 */
#include "world.h"

#include "internal.h"

/*
 * The hold count is the one that was asked for, however often; 0 until a handover is confirmed. A
 * late acquire does not change it, but one of the kept release, of which it sets that of an exclusive hold.
 */
void check_count(const struct party *party, int64_t mode)
{
  int64_t target = party->handover.claims ? 0 : mode < 0 ? -mode : 1;
  const struct held *before = &party->held_before;
  bool sets =
      party->world->profile.other == RELEASE_KEPT && !party->shares && party->held.count == 1;
  if (mode >= 0 && !sets && before->is && before->token == party->held.token)
    target = before->count;
  if (party->held.is && party->held.count == target) return;
  world_fail(party->world, "%s holds %s %lld times, and asked for %lld", party->id,
             party->lock->text[0], (long long)party->held.count, (long long)target);
}

/* A repeated release finds the hold ended, as long as that was the last hold. */
void check_repeated(struct party *party, uint64_t token, bool done)
{
  struct lock *lock = party->lock;
  if (done) lock->ended = token;
  else if (token == lock->ended && world_ordered(party->world))
    world_fail(party->world, "%s: %s is said not to be held, but this release has ended it",
               party->id, lock->text[0]);
}

/* A release that returns OK has ended the hold; one that returns LOST has not. */
void check_release(struct party *party, int result)
{
  struct world *world = party->world;
  bool by_us = party->repetition.released == party->repetition.releasing;
  if (world->struck & UNSAFE) return;
  if (result == FAIRLOCK_OK && !by_us)
    world_fail(world, "%s: release gives OK, but the hold had ended", party->id);
  if (result == FAIRLOCK_LOST && by_us)
    world_fail(world, "%s: release gives LOST, but has ended the hold", party->id);
}

/* A leave of an earlier wait must not end a later one, nor a hold that began with that. */
void check_late_leave(struct party *party, const struct link *link)
{
  struct world *world = party->world;
  uint64_t began = party->progress.start_step;
  bool acquires = party->job == JOB_ACQUIRE || party->job == JOB_HOLD;
  if (!world_safe(world) || !acquires || link->sent_step >= began) return;
  bool waits =
      party->place.queued && party->handle.phase == QUEUEING && party->place.heard_step >= began;
  bool holds = party->held.is && party->held.expires > world_server_ms(world) &&
               party->lease.held_step >= began && !hold_revived(party, party->held.token);
  if (waits || holds)
    world_fail(world, "%s %s %s, and is taken out by a late leave", party->id,
               waits ? "waits for" : "holds", party->lock->text[0]);
}
