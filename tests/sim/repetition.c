/*
 * A request that is repeated has the effect and the answer of the first, and one that comes late
 * does no harm.
 */
#include "world.h"

#include "internal.h"

/*
 * The hold count is the one that was asked for, however often; 0 until a handover is confirmed. A
 * late acquire does not change that of a share.
 */
void check_count(const struct party *party, int64_t mode)
{
  int64_t target = party->handover.claims ? 0 : mode < 0 ? -mode : 1;
  const struct held *before = &party->held_before;
  if (party->shares && mode >= 0 && before->is && before->token == party->held.token)
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
  if (world->profile.faults & UNSAFE) return;
  if (result == FAIRLOCK_OK && !by_us)
    world_fail(world, "%s: release gives OK, but the hold had ended", party->id);
  /* a hold that came back with a fail-over was released before */
  if (result == FAIRLOCK_LOST && by_us && !hold_revived(party, party->repetition.releasing))
    world_fail(world, "%s: release gives LOST, but has ended the hold", party->id);
}

/* A leave of an earlier wait must not end a later one. */
void check_late_leave(struct party *party, const struct link *link)
{
  if (!world_safe(party->world)) return;
  if (party->world->profile.skewed) return; /* by other clocks it is not late */
  if (!party->place.queued || party->job != JOB_ACQUIRE || party->handle.phase != QUEUEING) return;
  if (party->place.heard_step < party->progress.start_step ||
      link->sent_step >= party->progress.start_step)
    return;
  world_fail(party->world, "%s waits for %s, and is taken out by a late leave", party->id,
             party->lock->text[0]);
}
