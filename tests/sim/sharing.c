/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who share a lock are at most as many as the limit of each of them says, the notes name that limit until
 * its lease ends, and nobody has the lock alone beside them. Those who may enter do so: at once if a script
 * has looked, and in time in any case.
 */
#include "world.h"

#include <math.h>

/* How many one script lets in: `most` of share.lua. */
#define LET_IN 3

bool may_share(const struct party *party, const struct party *other)
{
  return party->shares && other->shares;
}

int64_t share_end(const struct world *world, int64_t duration_ms)
{
  int exponent;
  (void)frexp((double)duration_ms, &exponent);
  int64_t step = exponent > 5 ? (int64_t)1 << (exponent - 5) : 1;
  return (world_server_ms(world) + duration_ms + step - 1) / step * step;
}

/* The next pair of the note `limit`: the limit, and in *until until when. Returns 0 when there is none. */
static int64_t next_limit(struct text *text, int64_t *until)
{
  int64_t numbers[2] = {0, 0};
  for (int i = 0; i < 2; i++) {
    size_t size = 0;
    while (size < text->size && text->data[size] != ' ')
      size++;
    if (!resp_parse_number(text->data, size, &numbers[i])) return 0;
    text->data += size + (size < text->size);
    text->size -= size + (size < text->size);
  }
  *until = numbers[1];
  return numbers[0];
}

static struct text limits_of(struct world *world, const struct lock *lock)
{
  const struct key *notes = store_find(redis_store(world->redis), lock->keys[3]);
  return value_of(notes, "limit");
}

/* The smallest limit in use, or INT64_MAX. */
static int64_t smallest_limit(struct world *world, const struct lock *lock)
{
  struct text text = limits_of(world, lock);
  int64_t smallest = INT64_MAX, limit, until, before = 0;
  while ((limit = next_limit(&text, &until)) > 0) {
    if (limit <= before)
      world_fail(world, "%s has a limit of %lld behind one of %lld", lock->text[0],
                 (long long)limit, (long long)before);
    before = limit;
    if (until > redis_store(world->redis)->now && limit < smallest) smallest = limit;
  }
  return smallest;
}

/* Each limit is in use at least until the lease ends of who named it. */
static void check_named(struct world *world, const struct lock *lock, const struct party *party)
{
  struct text text = limits_of(world, lock);
  int64_t limit, until = 0;
  if (party->limit == 0 || !party->held.shared) return;
  while ((limit = next_limit(&text, &until)) > 0 && limit != party->limit) {
  }
  if (limit == 0 || until < party->held.expires)
    world_fail(world, "%s shares %s, and its limit of %d is not in use", party->id, lock->text[0],
               party->limit);
}

/* On the server: whoever holds by a share, but a share that was handed over alone. */
static void check_limit(struct world *world, const struct lock *lock)
{
  uint64_t held = lock->now.used;
  const struct party *first = held > 0 ? lock->now.list[0] : NULL;
  for (uint32_t i = 0; i < held; i++) {
    const struct party *party = lock->now.list[i];
    if (held > 1 && !may_share(party, first))
      world_fail(world, "%s has %s beside %s", party->id, lock->text[0], first->id);
    if (party->held.shared != party->shares && party->held.count != 0)
      world_fail(world, "%s has %s %s", party->id, lock->text[0],
                 party->shares ? "alone, and wanted to share it" : "shared, and wanted it alone");
    if (party->limit > 0 && held > (uint64_t)party->limit)
      world_fail(world, "%llu share %s, of which at most %d may", (unsigned long long)held,
                 lock->text[0], party->limit);
    check_named(world, lock, party);
    world->counters.limits += party->limit != first->limit;
  }
}

/* A script that was stopped half-way may leave a TTL that is longer. */
static bool stopped(const struct world *world)
{
  return world_stopped(world, FAULT_DENY | FAULT_FULL | FAULT_REFUSE);
}

/*
 * The hash has those who share and their count, and lasts for as long as the last of them; or one
 * who has the lock alone.
 */
static void check_hash(struct world *world, struct lock *lock, const struct key *hash)
{
  int64_t now = redis_store(world->redis)->now;
  if (hash->expires <= now + 1 && stopped(world)) return;
  if (hash->expires == STORE_NEVER) world_fail(world, "%s has no end", lock->text[0]);
  if (!hold_is_shared(hash)) {
    if (hash->dict.used != 1)
      world_fail(world, "%s has %u holders", lock->text[0], hash->dict.used);
    return;
  }
  int64_t counted = holders_counted(hash, now);
  if (counted != lock->now.used)
    world_fail(world, "%s is shared by %u, and counts %lld", lock->text[0], lock->now.used,
               (long long)counted);
  int64_t latest = now; /* in its last millisecond it has no holder */
  for (uint32_t i = 0; i < lock->now.used; i++) {
    if (lock->now.list[i]->held.expires > latest) latest = lock->now.list[i]->held.expires;
  }
  if (hash->expires > latest + 10 && !stopped(world))
    world_fail(world, "%s lasts for %lld ms more than those who share it", lock->text[0],
               (long long)(hash->expires - latest));
}

/* A fail-over has set the clock back: what had ended, and is not counted any more, ends again. */
static bool went_back(const struct world *world)
{
  int64_t skew = world->profile.skew < 0 ? -world->profile.skew : world->profile.skew;
  return world->moved_at >= 0 && world->now < world->moved_at + skew + SECOND;
}

void check_holders(struct world *world, struct lock *lock)
{
  const struct key *hash = store_find(redis_store(world->redis), lock->keys[0]);
  if (hash == NULL || !world_safe(world) || went_back(world)) return;
  check_hash(world, lock, hash);
  check_limit(world, lock);
}

static bool room(struct world *world, const struct lock *lock, const struct party *party)
{
  if (lock->now.used == 0) return true;
  return (party->limit == 0 || lock->now.used < (uint32_t)party->limit) &&
         lock->now.used < smallest_limit(world, lock);
}

struct party *next_to_share(struct world *world, struct lock *lock)
{
  struct store *store = redis_store(world->redis);
  struct key *queue = store_find(store, lock->keys[1]);
  struct key *ours = store_find(store, lock->keys[3]);
  for (int64_t i = 0; queue != NULL && i < queue->list.used; i++) {
    const struct item *item = list_at(&queue->list, i);
    struct party *party = party_named(world, (struct text){item->data, item->size});
    if (party == NULL || party->device == NULL) return NULL; /* Redisson's, as hand_over.lua says */
    int64_t alive_until = read_note(value_of(ours, party->id)).alive_until;
    if (alive_until < store->now || !party_listens(party)) continue;
    if (alive_until == store->now) return NULL; /* until some time in this millisecond */
    return party->shares && room(world, lock, party) ? party : NULL;
  }
  return NULL;
}

/* A script of those who share has looked: nobody is left that may enter, unless it let in as many as it does. */
void check_let_in(struct world *world, struct lock *lock)
{
  int entered = 0;
  for (uint32_t i = 0; i < lock->now.used; i++) {
    const struct party *party = lock->now.list[i];
    entered += party->held.token != party->held_before.token;
    if (!party->held.shared) return;
  }
  if (lock->now.used == 0 || entered >= LET_IN || !world_ordered(world)) return;
  const struct party *next = next_to_share(world, lock);
  if (next != NULL) world_fail(world, "%s may share %s, and waits", next->id, lock->text[0]);
}
