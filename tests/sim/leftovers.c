/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is left behind: by a handle that is FREE there is neither a hold nor a place, one that is taken
 * out gets none, a hold that nobody wants is given back, and in the end no lock, no waiter and no
 * subscription is left.
 */
#include "world.h"

#include "internal.h"

#define DAY_MS       ((int64_t)86400000)
#define FORTNIGHT_MS (14 * DAY_MS)

/* By a handle that is FREE */

/* A fail-over may bring a place in the queue back, until its timeout, or its leave has missed the master. */
static bool place_brought_back(const struct party *party)
{
  return (party->place.revived || party->place.astray) && party_alive(party);
}

/* The same of a hold, until its lease ends. */
static bool hold_brought_back(const struct party *party)
{
  return party->left.astray != 0 || hold_revived(party, party->held.token);
}

/* A handle that is taken out does not repeat a leave that the server refuses for good: time ends what is left. */
static bool may_stay(const struct party *party)
{
  return party->job >= JOB_REMOVE && party->world->barred_at >= party->progress.started;
}

/*
 * The engine says that nothing of the handle is left, and no request of it that could begin anything: so
 * the server has neither a hold of it nor a place, not for a millisecond.
 */
void check_nothing_of(const struct party *party)
{
  struct world *world = party->world;
  const struct lock *lock = party->lock;
  if (party->gone || !world_ordered(world) || may_stay(party)) return;
  if (party->place.queued && party_alive(party) && !place_brought_back(party))
    world_fail(world, "%s is free, and waits for %s", party->id, lock->text[0]);
  if (!party->held.is || hold_brought_back(party)) return;
  const struct key *hash = store_find(redis_store(world->redis), lock->keys[0]);
  if (hold_end(hash, party, world->jump) <= world->now) return;
  world_fail(world, "%s is free, and holds %s", party->id, lock->text[0]);
}

void check_free(const struct party *party)
{
  if (party->device != NULL && party->handle.phase == FREE) check_nothing_of(party);
}

void check_gone_waits(const struct party *party)
{
  if (!party->left.taken_out || party->left.barred || !world_ordered(party->world)) return;
  world_fail(party->world, "%s waits for %s after it was taken out", party->id,
             party->lock->text[0]);
}

void check_gone_holds(const struct party *party)
{
  if (!party->left.taken_out || place_brought_back(party) || party->left.barred) return;
  if (!world_ordered(party->world)) return;
  world_fail(party->world, "%s gets %s after it was taken out", party->id, party->lock->text[0]);
}

void left_taken_out(struct party *party)
{
  party->left.taken_out = true;
  party->left.unheard = party->world->refused_at >= party->progress.started;
  party->left.barred = may_stay(party);
}

void left_astray(struct party *party, const struct link *link)
{
  if (link != NULL) party->left.astray = link->sent_step;
}

void left_heard(struct party *party, const struct link *link)
{
  if (link != NULL && link->sent_step > party->left.astray) party->left.astray = 0;
}

void left_done(struct party *party)
{
  party->left.at = party->world->now;
  party->left.asked = party->progress.started;
}

/* A hold that nobody wants */

/* How long a device may take to give back a hold that it does not want. */
static int64_t time_to_give_back(const struct device *device)
{
  return 4 * SECOND + device->engine.waiter_ms * MS / 5 * 2 + 4 * device_round_trip(device);
}

/* It could not say so since then, or the server would not hear it. */
static bool could_not_give_back(const struct party *party, int64_t since)
{
  const struct world *world = party->world;
  const struct device *device = party->device;
  const struct link *link = device->link;
  if (link == NULL || link->server == NULL || link->node != world->master) return true;
  if (link->opened == 0 || link->opened > since || link->up_held > since) return true;
  if (device->asleep_until > since || world->refused_at > since) return true;
  return world->profile.synced && party->progress.asked_at > since; /* given up only now */
}

/* It believes in the hold, or has something else to do with it, or cannot give it back. */
static bool not_now(const struct party *party)
{
  const struct world *world = party->world;
  const struct device *device = party->device;
  if (party->belief.holds || (party->job != JOB_IDLE && party->job != JOB_ASK)) return true;
  int64_t since = world->now - time_to_give_back(device);
  if (party->kept.is || party->kept.ended > since || party->left.at > since) return true;
  /* what is in doubt lives for longer when the engine has not heard the server's time for hours */
  return could_not_give_back(party, since - device->engine.in_doubt_ms * MS);
}

/*
 * A hold whose owner does not want it is given back soon. As long as it lasts, this looks again: the hold
 * may be given up later, and the connection may come back.
 */
static void check_orphan(void *object, uint32_t stamp)
{
  struct party *party = object;
  struct world *world = party->world;
  const struct lock *lock = party->lock;
  if (party->gone || !party_holds(party, stamp) || hold_brought_back(party)) return;
  if (!world_safe(world)) return;
  const struct key *hash = store_find(redis_store(world->redis), lock->keys[0]);
  if (hold_end(hash, party, world->jump) <= world->now) return;
  /* a release that was refused for good is not repeated */
  bool refused = world->barred_at >= party->left.asked;
  if (!refused && world_ordered(world) && !not_now(party))
    world_fail(world, "%s does not give %s back, which it does not want", party->id, lock->text[0]);
  else world_later(world, time_to_give_back(party->device), check_orphan, party, stamp);
}

void check_wanted(struct party *party, uint64_t token)
{
  world_later(party->world, time_to_give_back(party->device) + 2 * SECOND, check_orphan, party,
              (uint32_t)token);
}

/* The end */

/*
 * A handle that owes the server nothing may go while the server refuses to end its subscription;
 * nothing else leaves one.
 */
void check_subscriptions(struct world *world)
{
  struct text channel = {"", 0};
  uint32_t left = redis_channels(world->redis, &channel);
  for (const struct party *party = world->all_parties; party != NULL; party = party->next) {
    if (party->left.unheard && party_listens(party)) left--;
  }
  if (left > 0)
    world_fail(world, "%u subscriptions are left, one to %.*s", left, (int)channel.size,
               channel.data);
}

void check_nothing_left(struct world *world, bool swept)
{
  struct store *store = redis_store(world->redis);
  for (int i = 0; i < world->profile.locks && !world->failed; i++) {
    struct lock *lock = &world->locks[i];
    if (store_find(store, lock->keys[0]) != NULL)
      world_fail(world, "%s is left behind", lock->text[0]);
    /* a score may stay behind when ZREM was denied, and nobody looks for it */
    bool whole = world_safe(world) && !(world->struck & FAULT_DENY);
    for (int j = 1; swept && whole && j < 3; j++) {
      if (store_find(store, lock->keys[j]) != NULL)
        world_fail(world, "%s is left behind", lock->text[j]);
    }
    struct key *ours = store_find(store, lock->keys[3]);
    if (ours == NULL) continue;
    int64_t behind = world->set_back ? HOUR / MS : 0;
    bool ends = ours->expires <= store->now + FORTNIGHT_MS + 2 * DAY_MS + behind;
    /* PEXPIRE was denied: the first grant in the next 1000 s makes up for it */
    bool denied = !swept && world->struck & FAULT_DENY && ours->expires == STORE_NEVER;
    if (!ends && !denied) world_fail(world, "%s has no end", lock->text[3]);
    /* a later release has a field more, so have those who share */
    bool shared = world->profile.sharing > 0;
    unsigned more = (world->profile.other == RELEASE_LATER ? 1U : 0) + (shared ? 1U : 0);
    if (swept && ours->dict.used > 8U + more)
      world_fail(world, "%s keeps %u notes", lock->text[3], ours->dict.used);
  }
}
