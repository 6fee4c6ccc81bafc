/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds a lock, as the server's memory shows it: one alone, or several that share it. Nothing
 * here judges anything, but that the hash can be read at all.
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>

static const char counts[] = "shared"; /* the field that says how many leases end when */

/* The numbers of a text, up to so many, with a space between them. Returns how many there are. */
static int read_numbers(struct text text, int64_t *numbers, int most)
{
  int count = 0;
  while (count < most && text.size > 0) {
    const char *blank = memchr(text.data, ' ', text.size);
    size_t size = blank != NULL ? (size_t)(blank - text.data) : text.size;
    if (!resp_parse_number(text.data, size, &numbers[count])) return count;
    count++;
    size += blank != NULL;
    text.data += size;
    text.size -= size;
  }
  return count;
}

static struct text value_in(const struct entry *entry)
{
  return (struct text){entry->value, entry->value_size};
}

bool hold_is_shared(const struct key *hash)
{
  return hash != NULL && dict_find(&hash->dict, text_of(counts)) != NULL;
}

/* What a field of the hash says. False: it is no hold, or not any more. */
static bool read_hold(const struct key *hash, const struct entry *entry, int64_t now,
                      struct held *held)
{
  int64_t words[3] = {0};
  bool shared = hold_is_shared(hash);
  int read = read_numbers(value_in(entry), words, 3);
  *held = (struct held){.is = read == (shared ? 3 : 1), .shared = shared, .expires = hash->expires};
  held->count = words[shared ? 2 : 0];
  if (!shared || !held->is) return held->is;
  held->token = (uint64_t)words[0];
  if (words[1] < held->expires) held->expires = words[1];
  return words[1] > now;
}

uint64_t share_token(const struct key *hash, const struct entry *entry)
{
  struct held held;
  (void)read_hold(hash, entry, INT64_MIN, &held);
  return held.token;
}

int64_t hold_end(const struct key *hash, const struct party *party, int64_t jump)
{
  struct held held;
  const struct entry *entry = hash != NULL ? dict_find(&hash->dict, text_of(party->id)) : NULL;
  if (entry == NULL) return INT64_MIN;
  (void)read_hold(hash, entry, INT64_MIN, &held);
  return expiry_time(held.expires - held.shared, jump); /* a share ends when that time begins */
}

bool party_holds(const struct party *party, uint32_t token)
{
  return party->held.is && (uint32_t)party->held.token == token;
}

/* A fail-over has brought the hold back: its release may have been lost. */
bool hold_revived(const struct party *party, uint64_t token)
{
  return token == party->lock->revived || token == party->revived;
}

static void add(struct holders *holders, struct party *party)
{
  if (holders->used == holders->size) {
    holders->size = holders->size == 0 ? 4 : holders->size * 2;
    holders->list = realloc(holders->list, holders->size * sizeof(struct party *));
    if (holders->list == NULL) abort();
  }
  uint32_t at = holders->used++;
  for (; at > 0 && holders->list[at - 1]->held.token > party->held.token; at--)
    holders->list[at] = holders->list[at - 1];
  holders->list[at] = party;
}

static void begin_reading(struct lock *lock)
{
  for (uint32_t i = 0; i < lock->before.used; i++)
    lock->before.list[i]->held_before = (struct held){0};
  struct holders old = lock->before;
  lock->before = lock->now;
  lock->now = old;
  lock->now.used = 0;
  for (uint32_t i = 0; i < lock->before.used; i++) {
    struct party *party = lock->before.list[i];
    party->held_before = party->held;
    party->held = (struct held){0};
  }
}

static void take_field(struct world *world, struct lock *lock, const struct key *hash,
                       const struct entry *entry)
{
  struct held held;
  struct store *store = redis_store(world->redis);
  if (text_equal((struct text){entry->name, entry->size}, text_of(counts))) return;
  bool lives = read_hold(hash, entry, store->now, &held);
  /* left by a script that was stopped, for a millisecond if the clock does not go back */
  if (!held.is && (hash->expires <= store->now + 1 || !world_safe(world))) return;
  if (!held.is) {
    world_fail(world, "%s: what %s has of it cannot be read: %.*s", lock->text[0], entry->name,
               (int)entry->value_size, entry->value);
    return;
  }
  struct party *party = party_named(world, (struct text){entry->name, entry->size});
  if (party == NULL) world_fail(world, "%s is held by a stranger", lock->text[0]);
  if (party == NULL || !lives) return;
  if (!held.shared && party->device != NULL)
    held.token = number_of(value_of(store_find(store, lock->keys[3]), "token"));
  party->held = held;
  add(&lock->now, party);
}

void holders_read(struct world *world, struct lock *lock)
{
  const struct key *hash = store_find(redis_store(world->redis), lock->keys[0]);
  begin_reading(lock);
  for (uint32_t i = 0; hash != NULL && i < hash->dict.size; i++) {
    if (hash->dict.slots[i].name != NULL) take_field(world, lock, hash, &hash->dict.slots[i]);
  }
  lock->token = lock->now.used > 0 ? lock->now.list[lock->now.used - 1]->held.token : 0;
}

/* The pairs of the field that counts: how many holders does it say end at this time, or at any that
 * is to come. */
int64_t holders_counted(const struct key *hash, int64_t now)
{
  struct text text = value_of(hash, counts);
  int64_t pair[2];
  int64_t sum = 0;
  while (read_numbers(text, pair, 2) == 2) {
    if (pair[0] > now) sum += pair[1];
    const char *blank = memchr(text.data, ' ', text.size);
    blank = memchr(blank + 1, ' ', text.size - (size_t)(blank + 1 - text.data));
    if (blank == NULL) break;
    text.size -= (size_t)(blank + 1 - text.data);
    text.data = blank + 1;
  }
  return sum;
}

void holders_free(struct lock *lock)
{
  free(lock->now.list);
  free(lock->before.list);
}
