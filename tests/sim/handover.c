/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A release hands the lock to the first waiter that listens, in the same step, and tells it. The
 * handover lasts for the timeout of that waiter, which confirms it with its next request.
 */
#include "world.h"

#include "internal.h"

/* A lock must not stay free while a waiter of ours listens. */
void check_handover(struct world *world, struct lock *lock)
{
  struct store *store = redis_store(world->redis);
  struct key *queue = store_find(store, lock->keys[1]);
  struct key *ours = store_find(store, lock->keys[3]);
  for (int64_t i = 0; queue != NULL && i < queue->list.used; i++) {
    const struct item *item = list_at(&queue->list, i);
    struct party *party = party_named(world, (struct text){item->data, item->size});
    /* a Redisson waiter has to come by itself */
    if (party == NULL || party->device == NULL) return;
    if (read_note(value_of(ours, party->id)).alive_until <= store->now || !party_listens(party))
      continue;
    world_fail(world, "%s is free, and %s waits", lock->text[0], party->id);
    return;
  }
}

static bool told_on(const struct link *link)
{
  if (link->server == NULL) return false;
  return link->told == link->world->step || redis_has_messages(link->server);
}

/*
 * Perhaps on a connection on which it was not heard yet, or on a dead one that the server still
 * keeps: its SUBSCRIBE may have been refused on the one on which it was heard last.
 */
static bool told(const struct party *party)
{
  const struct link *link = party->world->links;
  if (told_on(party->place.link)) return true;
  while (link != NULL && (link->owner != party->device || !told_on(link)))
    link = link->next;
  return link != NULL;
}

/* A party that is handed the lock by another party's script is told at once. */
void check_told(struct party *party, const struct party *by)
{
  const struct world *world = party->world;
  const struct link *link = party->place.link;
  if (party->device == NULL || party == by || link == NULL || link->server == NULL ||
      !world_ordered(world))
    return;
  if (!told(party))
    world_fail(party->world, "%s is not told that it holds %s", party->id, party->lock->text[0]);
}

/* A waiter that is handed the lock has its own claim to confirm it, and no hold before that. */
void check_claim(struct party *party)
{
  struct world *world = party->world;
  int64_t own = party->place.claim_ms;
  party->handover.claims = party->held.count == 0;
  party->handover.by_claim = party->handover.claims;
  party->handover.revived = party->place.revived || party->place.astray;
  if (!party->handover.claims || !world_ordered(world)) return;
  int64_t now = world_server_ms(world);
  int64_t claim = party->held.expires - now;
  if (claim == (party->held.shared ? share_end(world, own) - now : own)) return;
  world_fail(world, "%s is handed %s for %lld ms, and its claim is %lld ms", party->id,
             party->lock->text[0], (long long)claim, (long long)own);
}

/*
 * A handover that the holder has learned of is confirmed by its next request. A fail-over may bring back a
 * place that was left: a try that finds what that was handed takes it for a hold of its own.
 */
void check_confirmed(void *object, uint32_t stamp)
{
  const struct party *party = object;
  struct world *world = party->world;
  const struct lock *lock = party->lock;
  bool held = party_holds(party, stamp) && party->belief.holds;
  if (party->gone || !held || !party->handover.claims || party->job != JOB_HOLD) return;
  if (!world_ordered(world) || !progress_goes_through(party, party->lease.from)) return;
  if (party->handover.revived) return;
  world_fail(world, "%s holds %s, and has not confirmed it", party->id, lock->text[0]);
}
