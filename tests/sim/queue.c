/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of the queue are whole after each script, also after one that was stopped half-way.
 */
#include "world.h"

#include <string.h>

/* A place of ours has a note: without it, it would be taken for one of Redisson's. */
static void check_note(const struct lock *lock, const struct party *party, const struct key *ours)
{
  struct world *world = party->world;
  if (party->device == NULL || world->profile.other == RELEASE_KEPT) return;
  if (ours == NULL || dict_find(&ours->dict, text_of(party->id)) == NULL)
    world_fail(world, "%s: %s has no note", lock->text[1], party->id);
}

void check_queue(struct world *world, struct lock *lock)
{
  struct store *store = redis_store(world->redis);
  struct key *queue = store_find(store, lock->keys[1]);
  struct key *scores = store_find(store, lock->keys[2]);
  const struct key *ours = store_find(store, lock->keys[3]);
  uint32_t waiting = queue != NULL ? queue->list.used : 0;
  uint32_t scored = scores != NULL ? scores->dict.used : 0;
  if (world->struck & FAULT_EVICT) return;    /* any of the keys may have gone alone */
  bool exact = !(world->struck & FAULT_DENY); /* else a score may stay behind */
  if (exact ? waiting != scored : waiting > scored)
    world_fail(world, "%s: %u in the queue, %u with a score", lock->text[0], waiting, scored);
  if (waiting > 64 && !random_chance(&world->random, 20)) return;
  for (uint32_t i = 0; i < waiting && !world->failed; i++) {
    const struct item *item = list_at(&queue->list, i);
    struct text id = {item->data, item->size};
    const struct entry *score = dict_find(&scores->dict, id);
    if (score == NULL) world_fail(world, "%s: %s has no score", lock->text[0], item->data);
    else check_score(world, party_named(world, id), score, i);
    if (party_named(world, id) != NULL) check_note(lock, party_named(world, id), ours);
    if (list_find(&queue->list, id, i) >= 0)
      world_fail(world, "%s: %s waits twice", lock->text[0], item->data);
  }
  if (ours != NULL && ours->expires == STORE_NEVER && exact)
    world_fail(world, "%s has no end", lock->text[3]);
}

/* A script that was stopped half-way has dropped only the waiter that was served. */
void check_dropped(struct world *world, struct lock *lock)
{
  struct store *store = redis_store(world->redis);
  struct key *queue = store_find(store, lock->keys[1]);
  for (struct party *party = lock->queue.first; party != NULL && world_safe(world);
       party = party->place.after) {
    bool waits = queue != NULL && list_find(&queue->list, text_of(party->id), INT64_MAX) >= 0;
    if (waits || party->held.is || party->device == NULL) continue;
    if (!party_alive(party)) continue;
    world_fail(world, "a script that was stopped has dropped %s from %s", party->id, lock->text[1]);
    return;
  }
}

/*
 * While the slots move, a release uses no key that it has removed: it would stop there. An acquire
 * may, when its id gives a hold up to the only waiter, and then queues; it is asked again.
 */
void check_whole(struct world *world, struct text error)
{
  static const char stopped[] = "ERR Script attempted";
  if (error.size >= sizeof stopped && memcmp(error.data, stopped, sizeof stopped - 1) == 0)
    world_fail(world, "a release has used a key that it had removed");
}
