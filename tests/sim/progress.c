/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever asks gets a result in time, and once nothing goes wrong any more, a free lock finds its
 * next holder.
 */
#include "world.h"

#include "internal.h"

/* What is sent is carried out */

void progress_asked(struct party *party, const struct link *link)
{
  party->progress.asked_step = link->sent_step;
  party->progress.asked_at = party->world->now;
}

bool progress_goes_through(const struct party *party, int64_t since)
{
  const struct device *device = party->device;
  const struct link *link = device->link;
  if (link == NULL || device->connecting || link->server == NULL || link->lost_up ||
      link->lost_down || link->node != device->world->master)
    return false;
  if (link->opened > since || link->up_held >= since || device->woke >= since) return false;
  return party->world->refused_at < since;
}

/* Operations */

static void watch(void *object, uint32_t stamp)
{
  struct party *party = object;
  struct world *world = party->world;
  struct progress *progress = &party->progress;
  if (party->gone || progress->operation != stamp || party->handle.result != FAIRLOCK_PENDING)
    return;
  int64_t frozen = party->device->asleep_total - progress->frozen;
  if (frozen > 0) {
    progress->frozen += frozen;
    progress->due += frozen;
    world_later(world, frozen, watch, party, stamp);
    return;
  }
  int64_t longest = progress->due + device_patience(party->device);
  if (longest > world->now) { /* round trips have become longer */
    world_later(world, longest - world->now, watch, party, stamp);
    return;
  }
  world_fail(world, "%s has no result (job %d)", party->id, (int)party->job);
}

void progress_started(struct party *party, uint32_t bound_ms)
{
  struct world *world = party->world;
  struct progress *progress = &party->progress;
  progress->operation++;
  progress->started = world->now;
  progress->start_step = world->step;
  progress->began_on = party->device->link;
  progress->frozen = party->device->asleep_total;
  if (bound_ms == FAIRLOCK_FOREVER) return;
  int64_t bound = (int64_t)bound_ms * MS;
  progress->due = world->now + bound + bound / 32;
  world_later(world, progress->due - world->now, watch, party, progress->operation);
}

/*
 * However long the device did nothing, a wait without a limit goes on while the connection is up,
 * unless the device slept through a grant.
 */
void check_given_up(struct party *party, int result)
{
  const struct link *link = party->device->link;
  if (result != FAIRLOCK_UNREACHABLE || !party->progress.endless || link == NULL ||
      link != party->progress.began_on)
    return;
  if (party->place.heard < party->progress.started ||
      party->granted > (uint64_t)(EPOCH + party->progress.started))
    return;
  bool stands = link->server != NULL && !link->lost_up && !link->lost_down;
  /* offline_ms may be less than what holds an answer up, and a refusal is no useful one */
  const struct world *world = party->world;
  bool silent = world->struck & FAULT_STALL || world->refused_at >= party->progress.started;
  if (stands && !silent)
    world_fail(party->world, "%s gives up as unreachable, on a connection that stands", party->id);
}

/*
 * The answer to the greeting comes in pieces, or late, and nothing is asked before all of it is there:
 * some is still under way, or has come so lately that the answer to the next part cannot be.
 */
static bool greeting_comes(const struct device *device)
{
  int64_t lately = device->world->now - device_round_trip(device);
  return device->engine.stage < UP && device->link->down_free >= lately;
}

/*
 * An acquire waits for late requests of earlier connections to expire, but for no longer than a
 * request lives, whatever the server's clock says: then it is sent.
 */
void check_asked(const struct party *party, int result)
{
  const struct device *device = party->device;
  int64_t life = (int64_t)device->engine.response_ms * MS * 3 / 2 + 3 * SECOND;
  int64_t since = party->world->now - life - 2 * device_round_trip(device);
  if (result != FAIRLOCK_UNREACHABLE || party->progress.asked_step >= party->progress.start_step)
    return;
  if (party->progress.started > since || !progress_goes_through(party, since) ||
      party->world->profile.hold > HOUR || greeting_comes(device))
    return;
  world_fail(party->world, "%s gives up as unreachable, and has not asked", party->id);
}

void check_asking(struct world *world)
{
  if (world->replication == NULL || world->now < world->calm_at) return;
  for (const struct party *party = world->all_parties; party != NULL; party = party->next) {
    const struct device *device = party->device;
    if (device == NULL || party->gone || party->handle.phase != QUEUEING) continue;
    int64_t since = party->progress.started;
    if (since < party->progress.asked_at) since = party->progress.asked_at;
    if (since < world->calm_at) since = world->calm_at;
    if (since < device->woke) since = device->woke;
    int64_t limit = world->longest + device->engine.waiter_ms * MS;
    if (world->now - since < limit) continue;
    world_fail(world, "%s waits for %s, and has not asked the master for %lld ms", party->id,
               party->lock->text[0], (long long)((world->now - since) / MS));
    return;
  }
}

/* Locks */

/* After the server's clock fell behind, a dead one may seem alive for an hour. */
static bool lives(const struct party *party)
{
  bool waits = !party->gone && party->job == JOB_ACQUIRE;
  return party_alive(party) && (waits || !party->world->set_back);
}

static bool ours_waits(const struct lock *lock)
{
  const struct party *party = lock->queue.first;
  while (party != NULL && (party->device == NULL || !lives(party)))
    party = party->place.after;
  return party != NULL;
}

/* Redisson's scripts fail at an entry whose score was evicted, and no script of ours comes. */
static bool jammed(const struct world *world, const struct lock *lock)
{
  return world->struck & FAULT_EVICT && !ours_waits(lock);
}

/*
 * Once nothing goes wrong any more, a free lock finds its next holder, and a shared one the next
 * that may share it, within a waiter timeout and a
 * heartbeat, or, while one of ours waits, one for each Redisson waiter that listens and does
 * nothing. One that begins to listen late costs two.
 */
void check_idle(struct world *world, struct lock *lock)
{
  struct store *store = redis_store(world->redis);
  const struct key *hash = store_find(store, lock->keys[0]);
  bool idle = hash == NULL && store_find(store, lock->keys[1]) != NULL;
  if (hold_is_shared(hash)) idle = next_to_share(world, lock) != NULL;
  if (!idle || jammed(world, lock)) {
    lock->idle.since = -1;
    return;
  }
  bool ours = ours_waits(lock);
  if (lock->idle.since < 0 || lock->idle.ours != ours) lock->idle.since = world->now;
  lock->idle.ours = ours;
  int64_t since = lock->idle.since > world->calm_at ? lock->idle.since : world->calm_at;
  /*
   * by then some client asks: at the latest at the end, when the clock that fell behind has caught
   * up
   */
  int64_t limit = world->set_back ? 4 * HOUR : HOUR;
  /* by then each Redisson waiter has given up */
  if (ours) limit = (20 + 8 * world->profile.redissons) * SECOND + world->longest;
  if (world->calm && world->now - since > limit) {
    world_fail(world, "%s is %s, with somebody waiting, for %lld ms", lock->text[0],
               hash == NULL ? "free" : "shared by fewer than may",
               (long long)((world->now - since) / MS));
  }
}
