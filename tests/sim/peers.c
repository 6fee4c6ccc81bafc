/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redisson's waiters and ours share a queue. By its scores, Redisson drops no waiter of ours that
 * is heard in time; our scripts drop no Redisson waiter that would still have come.
 */
#include "world.h"

#include "texts.h"

#include <stdio.h>
#include <string.h>

/* By how much each acquisition by Redisson lowers every score, in ms. */
#define CHAIN 300000

/* Ours, by the scores */

/*
 * While one of ours holds, the score of the first in line lasts for the lease and 300 s more: a
 * Redisson waiter comes when the lease ends.
 */
void check_first(struct world *world, struct lock *lock)
{
  struct store *store = redis_store(world->redis);
  const struct key *hash = store_find(store, lock->keys[0]);
  const struct key *queue = store_find(store, lock->keys[1]);
  const struct key *scores = store_find(store, lock->keys[2]);
  /* without memory for the score, the lease goes on all the same */
  if (!world_ordered(world) || world_stopped(world, FAULT_FULL)) return;
  if (hash == NULL || queue == NULL || scores == NULL) return;
  const struct item *item = list_at(&queue->list, 0);
  const struct entry *score = dict_find(&scores->dict, (struct text){item->data, item->size});
  if (score == NULL || score->score >= (double)(hash->expires + CHAIN)) return;
  world_fail(world, "%s is held for %lld ms longer than %s, which is first in line, has time",
             lock->text[0], (long long)((double)(hash->expires + CHAIN) - score->score),
             item->data);
}

/*
 * Redisson's scripts drop the first in line once its score has passed: this must not hit one of
 * ours, even after all before it have acquired.
 */
void check_score(struct world *world, const struct party *party, const struct entry *score,
                 int64_t place)
{
  if (party == NULL || party->device == NULL || !party->place.queued || !world_ordered(world))
    return;
  if (!party_alive(party)) return;
  int64_t left = (int64_t)score->score - world_server_micros(world) / MS;
  if (left >= place * CHAIN) return;
  world_fail(world, "%s waits for %s at place %lld, with only %lld ms until Redisson drops it",
             party->id, party->lock->text[0], (long long)place, (long long)left);
}

/* Redisson's */

/* A text of two words, with a space between them. False: it has only one. */
static bool read_words(struct text text, struct text words[2])
{
  const char *blank = memchr(text.data, ' ', text.size);
  size_t size = blank != NULL ? (size_t)(blank - text.data) : text.size;
  words[0] = (struct text){text.data, size};
  if (blank != NULL) words[1] = (struct text){blank + 1, text.size - size - 1};
  return blank != NULL;
}

static void note_suspect(struct party *party)
{
  char field[80];
  struct text words[2];
  snprintf(field, sizeof field, "suspect:%s", party->id);
  struct store *store = redis_store(party->world->redis);
  struct text note = value_of(store_find(store, party->lock->keys[3]), field);
  bool whole = read_words(note, words);
  party->peer.suspect_score = (double)number_of(words[0]);
  if (whole) party->peer.suspected = (int64_t)number_of(words[1]);
}

/* What our scripts know of them, until a client of ours asks. */
void peers_note(const struct world *world, struct lock *lock)
{
  for (struct party *party = lock->queue.first; party != NULL; party = party->place.after) {
    if (party->device == NULL) note_suspect(party);
  }
  struct text words[2];
  const struct key *notes = store_find(redis_store(world->redis), lock->keys[3]);
  bool whole = read_words(value_of(notes, "woken"), words);
  lock->woken.party = whole ? party_named(world, words[0]) : NULL;
  if (lock->woken.party == NULL) return;
  lock->woken.score = (double)number_of(words[1]);
  lock->woken.at = (int64_t)number_of(value_of(notes, "since"));
}

/* It has acquired since then, and waits again with the same score: our scripts cannot know that. */
static bool has_acquired_since(const struct party *party, double score, int64_t at)
{
  return score != 0 && score == party->peer.score && party->peer.acquired >= at &&
         world_server_ms(party->world) >= at + REDISSON_TIMEOUT / MS;
}

/* It was woken, or found not listening, before it acquired. */
static bool seems_absent(const struct party *party)
{
  const struct lock *lock = party->lock;
  return (lock->woken.party == party &&
          has_acquired_since(party, lock->woken.score, lock->woken.at)) ||
         has_acquired_since(party, party->peer.suspect_score, party->peer.suspected);
}

/* Our scripts find 5 s after it came that it does not listen, or have woken it in vain. */
static bool may_be_dropped(const struct world *world, const struct party *party)
{
  bool waited = world->now - party->place.arrived >= REDISSON_TIMEOUT;
  if (party->gone || party->peer.late || seems_absent(party)) return true;
  return waited && !party_listens(party);
}

/* A Redisson waiter goes from the queue when it acquires, leaves, or its score has passed. */
void check_redisson(struct world *world, struct lock *lock, bool by_us)
{
  struct party *next;
  for (struct party *party = lock->queue.first; party != NULL; party = next) {
    const struct entry *entry = score_of(party);
    next = party->place.after;
    if (party->device != NULL) continue;
    bool passed = party->peer.score <= (double)(world_server_micros(world) / MS);
    /* dropped, and back at the end */
    bool again = passed && !by_us && entry != NULL && entry->score > party->peer.score;
    if (entry != NULL) party->peer.score = entry->score;
    if ((entry != NULL && !again) || party->held.is) continue;
    order_leave(party);
    if (!by_us || passed || !world_ordered(world) || may_be_dropped(world, party)) continue;
    world_fail(world, "%s is dropped from %s, and would have come", party->id, lock->text[1]);
  }
}
