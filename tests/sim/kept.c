/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock that is kept is nobody's: whoever waits gets it. A device that has been told of a waiter
 * neither keeps the lock nor takes it back, and gives it back at once. One that cannot be told is
 * like any holder that is cut off: the others wait for its lease, which the server ends. None does so
 * when the keep is over.
 */
#include "world.h"

#include "internal.h"

/* The device keeps the lock, and has not been told that it should not. */
bool kept_now(const struct party *party)
{
  return party->handle.phase == RELEASING && !(~party->handle.keep & (KEPT | ARMED));
}

bool kept_hold(const struct party *party, uint64_t token)
{
  return party->kept.token == token;
}

/* On the server, which drops those that are dead. */
static bool in_queue(const struct party *party)
{
  const struct key *queue = store_find(redis_store(party->world->redis), party->lock->keys[1]);
  return queue != NULL && list_find(&queue->list, text_of(party->id), INT64_MAX) >= 0;
}

/*
 * A waiter that the device has been told of; NULL: there is none. The device has been connected to
 * the master since before that waited, and all that was sent to it has come.
 */
static const struct party *told_of(const struct party *party)
{
  const struct world *world = party->world;
  const struct link *link = party->device->link;
  if (link == NULL || link->server == NULL || link->lost_down || link->node != world->master)
    return NULL;
  if (!world_ordered(world) || link->waiting > 0 || link->down_free >= world->now) return NULL;
  const struct party *other = party->lock->queue.first;
  for (; other != NULL; other = other->place.after) {
    int64_t arrived = other->place.arrived;
    if (other == party || arrived <= link->opened || arrived <= world->moved_at) continue;
    if (in_queue(other)) return other;
  }
  return NULL;
}

void check_kept(struct party *party)
{
  struct world *world = party->world;
  bool now = kept_now(party);
  if (party->kept.is && !now) party->kept.ended = world->now;
  if (!party->kept.is && now) world->counters.kept++;
  party->kept.is = now;
  const struct party *waiter = now ? told_of(party) : NULL;
  if (waiter == NULL) return;
  world_fail(world, "%s keeps %s, and %s waits", party->id, party->lock->text[0], waiter->id);
}

/*
 * A release or an acquire was answered without the server, which is right only until the keep is over.
 * Called before anything else happens: the hold may be recalled before the program looks.
 */
void check_keep_lasts(struct party *party)
{
  const struct fairlock *handle = &party->handle;
  bool taken_back =
      handle->phase == HELD && party->job == JOB_ACQUIRE && kept_hold(party, handle->token);
  party->kept.answered = kept_now(party);
  if (party->kept.answered) party->kept.token = handle->token;
  if (!party->kept.answered && !taken_back) return;
  if (handle->engine->now - handle->kept_since < party->device->keep.keep_ms) return;
  world_fail(party->world, "%s %s %s, whose keep is over", party->id,
             taken_back ? "takes back" : "keeps", party->lock->text[0]);
}

void check_taken_back(const struct party *party)
{
  const struct party *waiter = told_of(party);
  if (waiter == NULL) return;
  world_fail(party->world, "%s takes %s back, and %s waits", party->id, party->lock->text[0],
             waiter->id);
}

/*
 * To a server that was no master any more, where it may have held again since: the master does not
 * know, and waits for the lease.
 */
static bool gave_back_elsewhere(const struct party *party)
{
  const struct repetition *repetition = &party->repetition;
  uint64_t token = party->held.token;
  return repetition->released == token || repetition->elsewhere >= token;
}

/* Two trips, and some time to spare, after somebody has queued. */
static void check_given_back(void *object, uint32_t stamp)
{
  const struct party *party = object;
  const struct lock *lock = party->lock;
  bool holds = party_holds(party, stamp);
  if (party->gone || !holds || !kept_hold(party, party->held.token) || party->belief.holds) return;
  if (gave_back_elsewhere(party) || hold_revived(party, party->held.token)) return;
  /* what is behind a WAIT is sent later */
  if (party->world->profile.synced || told_of(party) == NULL || party->job != JOB_IDLE) return;
  int64_t since = party->world->now - SECOND - 3 * device_round_trip(party->device);
  if (party->kept.ended > since || party->progress.started > since) return;
  if (!progress_goes_through(party, since)) return;
  if (party->world->barred_at >= party->left.asked) return; /* its release may have been refused */
  world_fail(party->world, "%s has not given back %s, which was recalled", party->id,
             lock->text[0]);
}

void check_recalled(struct lock *lock)
{
  for (uint32_t i = 0; i < lock->now.used; i++) {
    struct party *party = lock->now.list[i];
    if (party->device == NULL || !kept_hold(party, party->held.token)) continue;
    world_later(party->world, 2 * SECOND + 4 * device_round_trip(party->device), check_given_back,
                party, (uint32_t)party->held.token);
  }
}
