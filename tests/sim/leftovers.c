/*
 * Nothing is left behind: a handle that is taken out has no place and gets no hold, a hold that
 * nobody wants is given back, and in the end no lock, no waiter and no subscription is left.
 */
#include "world.h"

#include "internal.h"

#define DAY_MS       ((int64_t)86400000)
#define FORTNIGHT_MS (14 * DAY_MS)

/* A handle that was taken out */

void check_gone_waits(const struct party *party)
{
  if (!party->left.taken_out || party->left.barred || !world_ordered(party->world)) return;
  world_fail(party->world, "%s waits for %s after it was taken out", party->id,
             party->lock->text[0]);
}

/* A fail-over may bring a place in the queue back, until its timeout. */
static bool place_brought_back(const struct party *party)
{
  return (party->place.revived || party->place.astray) && party_alive(party);
}

void check_gone_holds(const struct party *party)
{
  if (!party->left.taken_out || place_brought_back(party) || party->left.barred) return;
  if (!world_ordered(party->world)) return;
  world_fail(party->world, "%s gets %s after it was taken out", party->id, party->lock->text[0]);
}

/*
 * By how much the waiter timeout may have become shorter since the place was heard: the engine follows
 * the round trips that it measures, and waited for the timeout of its last leave.
 */
static int64_t waits_less(const struct party *party)
{
  uint32_t shortest = party->device->config.waiter_ms;
  int64_t less = party->place.timeout_ms - (shortest != 0 ? shortest : WAITER_MS);
  return less > 0 ? less : 0;
}

/*
 * A handle may be taken out when it has no place in the queue: the server has said so, or the place
 * has expired.
 */
void check_taken_out(const struct party *party)
{
  struct world *world = party->world;
  const struct lock *lock = party->lock;
  if (!world_ordered(world) || world->refused_at >= party->progress.started) return;
  if (party->place.revived || party->place.astray) return;
  if (party->place.queued && party->place.alive_until - waits_less(party) > world_server_ms(world))
    world_fail(world, "%s is taken out, and waits for %s", party->id, lock->text[0]);
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

/*
 * The engine has said that nothing of the handle is left, so it will never give the hold back. What is
 * left of the lease is more than by what the clocks may differ.
 */
static bool forgotten(const struct party *party, int64_t end)
{
  const struct world *world = party->world;
  if (party->handle.phase != FREE || !world_safe(world) || world->set_back) return false;
  return end - world->now > party->handle.lease_ms * MS / 32 + SECOND;
}

/* It believes in the hold, or has something else to do with it, or cannot give it back. */
static bool not_now(const struct party *party)
{
  const struct world *world = party->world;
  const struct device *device = party->device;
  if (party->belief.holds || (party->job != JOB_IDLE && party->job != JOB_ASK)) return true;
  int64_t since = world->now - time_to_give_back(device);
  if (party->kept.is || party->kept.ended > since) return true;
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
  if (party->gone || !party_holds(party, stamp) || hold_revived(party, party->held.token)) return;
  if (world->barred_at >= party->lease.from)
    return; /* a release that was refused is not repeated */
  const struct key *hash = store_find(redis_store(world->redis), lock->keys[0]);
  int64_t end = hold_end(hash, party, world->jump);
  if (end <= world->now) return;
  if (forgotten(party, end) || !not_now(party))
    world_fail(world, "%s does not give %s back, which it does not want", party->id, lock->text[0]);
  else world_later(world, time_to_give_back(party->device), check_orphan, party, stamp);
}

void check_wanted(struct party *party, uint64_t token)
{
  if (!world_ordered(party->world)) return;
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
    for (int j = 1; swept && world_ordered(world) && j < 3; j++) {
      if (store_find(store, lock->keys[j]) != NULL)
        world_fail(world, "%s is left behind", lock->text[j]);
    }
    struct key *ours = store_find(store, lock->keys[3]);
    if (ours == NULL) continue;
    int64_t behind = world->set_back ? HOUR / MS : 0;
    bool ends = ours->expires <= store->now + FORTNIGHT_MS + 2 * DAY_MS + behind;
    /* PEXPIRE was denied: the first grant in the next 1000 s makes up for it */
    bool denied = !swept && world->profile.faults & FAULT_DENY && ours->expires == STORE_NEVER;
    if (!ends && !denied) world_fail(world, "%s has no end", lock->text[3]);
    /* a later release has one field more, and so have those who share */
    bool shared = world->profile.sharing > 0;
    unsigned more = (world->profile.other == RELEASE_LATER ? 1U : 0) + (shared ? 1U : 0);
    if (swept && ours->dict.used > 6U + more)
      world_fail(world, "%s keeps %u notes", lock->text[3], ours->dict.used);
  }
}
