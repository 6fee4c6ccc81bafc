/*
 * The promises, checked after each script and each time a client was serviced.
 *
 * The server's memory, after each script, shows what the server did;
 * fairlock_engine_remaining_ms(), by the holder's own clock, says what the holder believes. The
 * server must cover each belief: the lock is the believer's, and its lease ends later than the
 * belief. It follows that no two beliefs overlap, which is checked all the same.
 */
#include "world.h"

#include "internal.h"

#include "scripts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Redisson's waiters have no timeout of their own. */
#define REDISSON_TIMEOUT ((int64_t)FAIRLOCK_REDISSON_TIMEOUT_MS * MS)
#define DAY_MS           ((int64_t)86400000)
#define FORTNIGHT_MS     (14 * DAY_MS)

/* By how much each acquisition by Redisson lowers every score, in ms. */
#define CHAIN 300000

static bool safe(const struct world *world)
{
  return !(world->profile.faults & UNSAFE) && !world->set_back;
}

/* True with two servers when a fail-over may lose nothing that anybody believes in. */
static bool strict(const struct world *world)
{
  return world->profile.synced && !world->profile.skewed;
}

/* False after a script that was stopped half-way: then any order is allowed. */
static bool ordered(const struct world *world)
{
  return safe(world) && !(world->profile.faults & FAULT_DENY);
}

static struct party *party_named(const struct world *world, struct text id)
{
  const struct entry *entry = dict_find(&world->parties, id);
  return entry != NULL ? entry->object : NULL;
}

static struct text value_of(const struct key *key, const char *field)
{
  const struct entry *entry = key != NULL ? dict_find(&key->dict, text_of(field)) : NULL;
  return entry != NULL ? (struct text){entry->value, entry->value_size} : (struct text){"", 0};
}

static uint64_t number_of(struct text text)
{
  int64_t value = 0;
  return resp_parse_number(text.data, text.size, &value) && value > 0 ? (uint64_t)value : 0;
}

/* What the server notes of a waiter: when it was heard last, in s and us, and its timeout in ms. */
struct note {
  int64_t alive_until;
  int64_t timeout_ms;
};

static struct note read_note(struct text text)
{
  uint64_t numbers[3] = {0};
  for (int i = 0; i < 3; i++) {
    const char *blank = memchr(text.data, ' ', text.size);
    size_t size = blank != NULL ? (size_t)(blank - text.data) : text.size;
    numbers[i] = number_of((struct text){text.data, size});
    if (blank != NULL) size++;
    text.data += size;
    text.size -= size;
  }
  return (struct note){.alive_until = (int64_t)(numbers[0] * 1000 + numbers[1] / 1000 + numbers[2]),
                       .timeout_ms = (int64_t)numbers[2]};
}

/* Who waits, as the server saw them arrive */

static void unqueue(struct party *party)
{
  struct lock *lock = party->lock;
  if (!party->queued) return;
  party->queued = false;
  party->astray = false;
  if (party->before != NULL) party->before->after = party->after;
  else lock->first = party->after;
  if (party->after != NULL) party->after->before = party->before;
  else lock->last = party->before;
}

static void enqueue(struct party *party)
{
  struct lock *lock = party->lock;
  party->queued = true;
  party->before = lock->last;
  party->after = NULL;
  if (lock->last != NULL) lock->last->after = party;
  else lock->first = party;
  lock->last = party;
}

static const struct entry *score_of(const struct party *party)
{
  struct key *scores = store_find(redis_store(party->world->redis), party->lock->keys[2]);
  return scores != NULL ? dict_find(&scores->dict, text_of(party->id)) : NULL;
}

static int64_t server_ms(const struct world *world)
{
  return world_server_micros(world) / MS;
}

/*
 * Whether the server's scripts take a waiter of ours for alive. In whole milliseconds, as the
 * scripts count.
 */
static bool alive(const struct party *party)
{
  return party->alive_until > server_ms(party->world);
}

static bool listens(const struct party *party)
{
  char channel[160];
  struct redis *redis = party->world->redis;
  struct lock *lock = party->lock;
  struct resp_writer writer;
  resp_writer_init(&writer, channel, sizeof channel, 0);
  resp_write_raw(&writer, "redisson_lock__channel", 22);
  resp_write_raw(&writer, lock->keys[1].data + 19, lock->keys[1].size - 19);
  resp_write_raw(&writer, ":", 1);
  resp_write_raw(&writer, party->id, strlen(party->id));
  struct text name = {channel, writer.used};
  return redis_listeners(redis, name, false) > 0 || redis_listeners(redis, name, true) > 0;
}

/*
 * The server has ended the subscriptions of a connection, as its slots were gone for a moment, and
 * what comes on it now was sent before the client was told.
 */
static bool sent_unaware(const struct link *link)
{
  return link->gone && (link->gone_told == 0 || link->sent_step <= link->gone_told);
}

/*
 * A heartbeat of a waiter whose last one came on the same connection. It is sent by the clock,
 * however slow the answers are, so it comes before the timeout, unless the device slept, something
 * delayed what it sends, or the server refused it.
 */
static void check_heartbeat(const struct party *party, const struct link *link)
{
  struct world *world = party->world;
  const struct device *device = party->device;
  if (!ordered(world) || party->link != link || device->link != link || device->blocked > 0) return;
  /* a SUBSCRIBE had come before the last heartbeat that was not refused */
  if (party->heard >= party->started &&
      world->refused_at < party->heard - 2 * device_round_trip(device) &&
      party->heard_step >= party->start_step && !listens(party) && !sent_unaware(link))
    world_fail(world, "%s waits for %s and does not listen", party->id, party->lock->text[0]);
  if (alive(party) || party->heard < world->moved_at) return;
  /* nothing is sent behind a WAIT, and each handle of the device may need one */
  if (world->profile.synced) return;
  if (party->heard < party->started || device->woke >= party->heard ||
      link->up_held >= party->heard)
    return;
  if (world->refused_at >= party->heard || world->forgot_at >= party->heard) return;
  world_fail(world,
             "%s is heard too late for its place in the queue of %s, on a connection that stands",
             party->id, party->lock->text[0]);
}

/*
 * A waiter was heard. Its place dates from its first arrival, unless it was silent for longer than
 * its timeout since.
 */
static void heard(struct party *party, struct link *link)
{
  struct world *world = party->world;
  struct lock *lock = party->lock;
  if (party->taken_out && ordered(world))
    world_fail(world, "%s waits for %s after it was taken out", party->id, lock->text[0]);
  if (!party->queued) {
    const struct entry *score = score_of(party);
    party->score = score != NULL ? score->score : 0;
    party->arrived = world->now;
    party->latest = ++lock->arrivals;
    if (!party->uncertain) party->earliest = party->latest;
    enqueue(party);
  } else if (party->device != NULL && !alive(party)) {
    party->latest = ++lock->arrivals;
    unqueue(party);
    enqueue(party);
  }
  party->revived = false;
  party->astray = false;
  party->heard = world->now;
  if (party->link != link) party->changed = world->now;
  party->link = link;
}

/* A waiter that must not be passed over: it was heard in time, and its connection is up. */
static bool kept_rules(struct party *party)
{
  struct world *world = party->world;
  if (party->device != NULL) {
    if (!alive(party)) return false;
    /* it no longer listens; its leave may have been refused */
    bool goes = party->gone || party->job >= JOB_REMOVE;
    const struct link *link = party->link;
    bool here = link != NULL && link->node == world->master && link->opened >= world->moved_at;
    bool stands = !goes && here && link->server != NULL;
    /* else its SUBSCRIBE may have been refused */
    bool subscribed = stands && world->refused_at < link->opened;
    return subscribed || listens(party);
  }
  if (party->late) return false;
  const struct entry *entry = score_of(party);
  return entry != NULL && entry->score > (double)(world_server_micros(world) / MS) &&
         listens(party);
}

/*
 * It may not have been listening when the Redisson waiter that takes the lock now was woken: the
 * connection on which it was heard was new to the server after that, or is not the present one.
 */
static bool was_away(const struct party *party)
{
  if (party->device == NULL || party->link == NULL) return false;
  return party->link != party->device->link ||
         party->changed > party->world->now - REDISSON_TIMEOUT;
}

/* A hold begins */

static void check_order(struct party *party)
{
  struct world *world = party->world;
  if (!ordered(world) || !party->queued) return;
  for (struct party *other = party->lock->first; other != NULL && other->latest < party->earliest;
       other = other->after) {
    if (other == party || !kept_rules(other) || (party->device == NULL && was_away(other)))
      continue;
    world_fail(world, "%s gets %s before %s, which came first", party->id, party->lock->text[0],
               other->id);
    return;
  }
}

/* One that did not wait may begin only when nobody waits. */
static void check_barging(struct party *party)
{
  struct world *world = party->world;
  if (!ordered(world) || party->queued) return;
  for (struct party *other = party->lock->first; other != NULL; other = other->after) {
    if (other == party || !kept_rules(other)) continue;
    world_fail(world, "%s gets %s without waiting, before %s", party->id, party->lock->text[0],
               other->id);
    return;
  }
}

/* How long a device may take to give back a hold that it does not want. */
static int64_t giving_back(const struct device *device)
{
  return 4 * SECOND + device->engine.waiter_ms * MS / 5 * 2 + 4 * device_round_trip(device);
}

/* A hold whose owner does not want it, and could say so, is given back soon. */
static void check_orphan(void *object, uint32_t stamp)
{
  struct party *party = object;
  struct world *world = party->world;
  const struct device *device = party->device;
  const struct lock *lock = party->lock;
  if (party->gone || lock->holder != party || party->lost == lock->token ||
      (uint32_t)lock->token != stamp || party->believes || lock->token == lock->revived)
    return;
  if (party->job != JOB_IDLE && party->job != JOB_ASK) return;
  /* what is in doubt lives for longer when the engine has not heard the server's time for hours */
  int64_t lately = world->now - giving_back(device) - device->engine.in_doubt_ms * MS;
  if (device->link == NULL || device->link->server == NULL || device->asleep_until > lately) return;
  if (device->link->opened > lately || device->link->opened == 0 || world->refused_at > lately)
    return;
  if (device->link->up_held > lately || device->link->node != world->master) return;
  if (world->profile.synced && party->asked_at > lately) return; /* given up only now */
  if (store_find(redis_store(world->redis), lock->keys[0]) == NULL) return;
  world_fail(world, "%s does not give %s back, which it does not want", party->id, lock->text[0]);
}

static void begin_hold(struct lock *lock, struct party *party, uint64_t token)
{
  struct world *world = party->world;
  /* a fail-over may bring a place in the queue back, until its timeout */
  bool brought_back = (party->revived || party->astray) && alive(party);
  if (party->taken_out && !brought_back && ordered(world))
    world_fail(world, "%s gets %s after it was taken out", party->id, lock->text[0]);
  check_order(party);
  check_barging(party);
  if (party->device != NULL) {
    if (token <= lock->highest) {
      world_fail(world, "%s gets token %llu of %s after %llu", party->id, (unsigned long long)token,
                 lock->text[0], (unsigned long long)lock->highest);
    }
    lock->highest = token;
    world->counters.grants++;
    if (party->queued) world->counters.waits++;
    if (ordered(world))
      world_later(world, giving_back(party->device) + 2 * SECOND, check_orphan, party,
                  (uint32_t)token);
  } else {
    party->acquired = server_ms(world);
    world->counters.redisson_grants++;
  }
  unqueue(party);
  party->over = false;
  party->uncertain = false;
  party->granted = token;
  party->held_step = party->asked_step;
  party->epoch = world->epoch;
  party->excused = false;
  party->late = false;
  TRACE(world, "%s holds %s, token %llu", party->id, lock->text[0], (unsigned long long)token);
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
  if (told_on(party->link)) return true;
  while (link != NULL && (link->owner != party->device || !told_on(link)))
    link = link->next;
  return link != NULL;
}

/* A party that is handed the lock by another party's script is told at once. */
static void check_told(struct party *party, const struct party *by)
{
  const struct world *world = party->world;
  const struct link *link = party->link;
  if (party->device == NULL || party == by || link == NULL || link->server == NULL ||
      !ordered(world))
    return;
  /* it no longer listens; a dead connection of its own still does */
  if (party->gone || party->job >= JOB_REMOVE) return;
  if (!told(party))
    world_fail(party->world, "%s is not told that it holds %s", party->id, party->lock->text[0]);
}

/* In the world's time; by a clock that is ahead by so much. */
static int64_t lease_end_at(int64_t expires, int64_t jump)
{
  if (expires == STORE_NEVER) return INT64_MAX;
  return (expires + 1) * MS - EPOCH - jump;
}

static int64_t lease_end_by(const struct key *key, int64_t jump)
{
  return lease_end_at(key->expires, jump);
}

static int64_t lease_end(const struct world *world, const struct key *key)
{
  return lease_end_by(key, world->jump);
}

/* A waiter that is handed the lock has its own timeout to confirm it, and no hold before that. */
static void check_claim(struct party *party, const struct key *hash, struct text count)
{
  struct world *world = party->world;
  party->claims = text_equal(count, text_of("0"));
  party->came_by_claim = party->claims;
  if (!party->claims || !ordered(world)) return;
  int64_t claim = hash->expires - server_ms(world);
  if (claim == party->timeout_ms) return;
  world_fail(world, "%s is handed %s for %lld ms, and its timeout is %lld ms", party->id,
             party->lock->text[0], (long long)claim, (long long)party->timeout_ms);
}

static void end_hold(struct party *party)
{
  if (party == NULL || party->device == NULL || party->gone) return;
  party->over = true;
  party->over_at = device_clock(party->device);
}

/*
 * While one of ours holds, the score of the first in line lasts for the lease and 300 s more: a
 * Redisson waiter comes when the lease ends.
 */
static void check_first(struct world *world, struct lock *lock)
{
  struct store *store = redis_store(world->redis);
  const struct key *hash = store_find(store, lock->keys[0]);
  const struct key *queue = store_find(store, lock->keys[1]);
  const struct key *scores = store_find(store, lock->keys[2]);
  if (!ordered(world) || world->profile.faults & FAULT_FULL || hash == NULL || queue == NULL ||
      scores == NULL)
    return;
  const struct item *item = list_at(&queue->list, 0);
  const struct entry *score = dict_find(&scores->dict, (struct text){item->data, item->size});
  if (score == NULL || score->score >= (double)(hash->expires + CHAIN)) return;
  world_fail(world, "%s is held for %lld ms longer than %s, which is first in line, has time",
             lock->text[0], (long long)((double)(hash->expires + CHAIN) - score->score),
             item->data);
}

/* Who has the lock by this hash; NULL: nobody. */
static struct party *holder_in(const struct world *world, const struct key *hash)
{
  const struct entry *entry = hash != NULL ? hash->dict.slots : NULL;
  while (entry != NULL && entry->name == NULL)
    entry++;
  return entry != NULL ? party_named(world, (struct text){entry->name, entry->size}) : NULL;
}

/* The lock as it stands after a script. */
static void look_at_holder(struct world *world, struct lock *lock, const struct party *by)
{
  struct store *store = redis_store(world->redis);
  struct key *hash = store_find(store, lock->keys[0]);
  struct party *holder = NULL;
  struct text count = {"", 0};
  uint64_t token = 0;
  if (hash != NULL) {
    const struct entry *entry = hash->dict.slots;
    while (entry->name == NULL)
      entry++;
    holder = party_named(world, (struct text){entry->name, entry->size});
    count = (struct text){entry->value, entry->value_size};
    if (hash->dict.used != 1)
      world_fail(world, "%s has %u holders", lock->text[0], hash->dict.used);
    if (hash->expires == STORE_NEVER) world_fail(world, "%s has no end", lock->text[0]);
    if (holder == NULL) {
      world_fail(world, "%s is held by a stranger", lock->text[0]);
      return;
    }
    if (holder->device != NULL)
      token = number_of(value_of(store_find(store, lock->keys[3]), "token"));
  }
  bool changed =
      holder != lock->holder || (holder != NULL && token != lock->token && holder->device != NULL);
  /* the note was evicted */
  if (token == 0 && world->profile.faults & FAULT_EVICT) changed = false;
  if (changed) end_hold(lock->holder);
  lock->holder = holder;
  lock->token = token;
  if (!changed || holder == NULL) return;
  begin_hold(lock, holder, token);
  if (holder->device != NULL) check_first(world, lock);
  if (holder->device != NULL) check_claim(holder, hash, count);
  check_told(holder, by);
}

/* Beliefs */

/* Which of the holds that somebody has ended by force it is; NULL: none of them. */
static struct forced *forced(struct party *party, uint64_t token)
{
  for (unsigned i = 0; i < REMEMBERED && i < party->forced_count; i++) {
    if (party->forced[i].token == token) return &party->forced[i];
  }
  return NULL;
}

/* The same of those that the master does not have as they were given. */
static struct stray *stray(struct party *party, uint64_t token)
{
  for (unsigned i = 0; i < REMEMBERED && i < party->stray_count; i++) {
    if (party->strays[i].token == token) return &party->strays[i];
  }
  return NULL;
}

static void add_stray(struct party *party, uint64_t token, int64_t until)
{
  struct stray *known = stray(party, token);
  if (known == NULL) {
    known = &party->strays[party->stray_count++ % REMEMBERED];
    *known = (struct stray){token, until};
  }
  if (known->until < until) known->until = until;
}

/* It believes in what some other server has told it. */
static bool believes_stray(struct party *party)
{
  const struct stray *of = stray(party, party->believed);
  return of != NULL && party->believes_until <= of->until;
}

/*
 * A hold that was ended by force may be believed in until the holder's next request is answered
 * (check_renewal sees to that), even if the message that granted it arrives only afterwards. A
 * hold, or a part of its lease, that a fail-over has lost may be believed in until its lease would
 * have ended; where holds wait for the replica, nothing of the kind is lost.
 */
static bool excused(struct party *party)
{
  if (believes_stray(party)) return true;
  if (!safe(party->world) || party->epoch != party->world->epoch) return true;
  return party->device != NULL ? forced(party, party->believed) != NULL : party->excused;
}

static void force_end(struct party *holder, uint64_t token, int64_t until)
{
  holder->world->counters.forced++;
  if (holder->device == NULL) {
    holder->excused = true;
    return;
  }
  struct forced *of = &holder->forced[holder->forced_count++ % REMEMBERED];
  *of = (struct forced){token, device_clock(holder->device), until};
}

/* The server must keep the lock for a believer until the belief ends. */
static void check_cover(struct party *party)
{
  struct world *world = party->world;
  struct lock *lock = party->lock;
  if (excused(party) || party->believes_until <= world->now) return;
  struct key *hash = store_find(redis_store(world->redis), lock->keys[0]);
  if (hash == NULL || dict_find(&hash->dict, text_of(party->id)) == NULL) {
    world_fail(world, "%s believes for %lld us more that it holds %s, but does not", party->id,
               (long long)(party->believes_until - world->now), lock->text[0]);
  } else if (lease_end(world, hash) < party->believes_until) {
    world_fail(world, "%s believes that it holds %s for %lld us longer than its lease", party->id,
               lock->text[0], (long long)(party->believes_until - lease_end(world, hash)));
  }
}

/*
 * Where holds wait for the replica, it has the lease, too: whenever it is promoted, the lock is
 * still the believer's.
 */
static void check_acknowledged(struct party *party)
{
  struct world *world = party->world;
  const struct lock *lock = party->lock;
  const struct node *replica = failover_replica(world);
  if (!strict(world) || excused(party) || party->believes_until <= world->now) return;
  const struct key *hash = store_find(redis_store(replica->redis), lock->keys[0]);
  bool holds = hash != NULL && dict_find(&hash->dict, text_of(party->id)) != NULL;
  if (holds && lease_end_by(hash, replica->jump) >= party->believes_until) return;
  world_fail(world, "%s believes that it holds %s, and %s would lose that", party->id,
             lock->text[0], replica->host);
}

static void check_alone(struct party *party)
{
  struct world *world = party->world;
  if (excused(party)) return;
  for (struct party *other = party->lock->believers; other != NULL; other = other->next_believer) {
    if (other == party || excused(other) || other->believes_until <= world->now) continue;
    world_fail(world, "%s and %s both believe that they hold %s", party->id, other->id,
               party->lock->text[0]);
    return;
  }
}

static void begin_belief(struct party *party, uint64_t token)
{
  struct lock *lock = party->lock;
  struct world *world = party->world;
  if (!party->believes) {
    party->next_believer = lock->believers;
    lock->believers = party;
  }
  if (party->device != NULL && token <= party->believed)
    world_fail(world, "%s believes in token %llu of %s after %llu of its own", party->id,
               (unsigned long long)token, lock->text[0], (unsigned long long)party->believed);
  party->believes = true;
  party->believed = token;
  if (party->device == NULL || excused(party)) return;
  /* the old master gave newer tokens, and all that was lost */
  if (!strict(world) && token == lock->revived) return;
  if (token <= lock->believed) {
    world_fail(world, "%s believes in token %llu of %s after %llu", party->id,
               (unsigned long long)token, lock->text[0], (unsigned long long)lock->believed);
  }
  lock->believed = token;
}

/* Whatever the server has lost: no answer to a request sent after the loss extends a belief. */
static void check_renewal(struct party *party, int64_t until)
{
  const struct fairlock *handle = &party->handle;
  if (party->device == NULL || until <= party->believes_until) return;
  const struct forced *of = forced(party, party->believed);
  if ((of == NULL && !party->over) || believes_stray(party)) return;
  uint32_t sent_at = handle->limit - handle->lease_ms + margin(handle->lease_ms);
  if ((int32_t)(sent_at - (of != NULL ? of->at : party->over_at)) <= 0) return;
  world_fail(party->world, "%s goes on believing that it holds %s, though the server has told it",
             party->id, party->lock->text[0]);
}

static void end_belief(struct party *party)
{
  struct party **at = &party->lock->believers;
  if (!party->believes) return;
  while (*at != party)
    at = &(*at)->next_believer;
  *at = party->next_believer;
  party->believes = false;
}

void check_belief(struct party *party, bool believes, int64_t until, uint64_t token)
{
  if (!believes) {
    end_belief(party);
    return;
  }
  bool again = party->believes && party->believed == token;
  if (again && party->believes_until == until) return;
  if (again) check_renewal(party, until);
  else begin_belief(party, token);
  party->believes_until = until;
  check_acknowledged(party);
  check_alone(party);
  check_cover(party);
}

/* The queue */

/* A lock must not stay free while a waiter of ours listens. */
static void check_handover(struct world *world, struct lock *lock)
{
  struct store *store = redis_store(world->redis);
  struct key *queue = store_find(store, lock->keys[1]);
  struct key *ours = store_find(store, lock->keys[3]);
  for (int64_t i = 0; queue != NULL && i < queue->list.used; i++) {
    const struct item *item = list_at(&queue->list, i);
    struct party *party = party_named(world, (struct text){item->data, item->size});
    /* a Redisson waiter has to come by itself */
    if (party == NULL || party->device == NULL) return;
    if (read_note(value_of(ours, party->id)).alive_until <= store->now || !listens(party)) continue;
    world_fail(world, "%s is free, and %s waits", lock->text[0], party->id);
    return;
  }
}

/*
 * Redisson's scripts drop the first in line once its score has passed: this must not hit one of
 * ours, even after all before it have acquired.
 */
static void check_score(struct world *world, const struct party *party, const struct entry *score,
                        int64_t place)
{
  if (party == NULL || party->device == NULL || !party->queued || !ordered(world)) return;
  if (!alive(party)) return;
  int64_t left = (int64_t)score->score - world_server_micros(world) / MS;
  if (left >= place * CHAIN) return;
  world_fail(world, "%s waits for %s at place %lld, with only %lld ms until Redisson drops it",
             party->id, party->lock->text[0], (long long)place, (long long)left);
}

/* Which Redisson waiter our scripts have woken last, by our notes: until a client of ours asks. */
static void note_woken(const struct world *world, struct lock *lock)
{
  const struct key *notes = store_find(redis_store(world->redis), lock->keys[3]);
  struct text woken = value_of(notes, "woken");
  const char *blank = memchr(woken.data, ' ', woken.size);
  size_t size = blank != NULL ? (size_t)(blank - woken.data) : 0;
  lock->woken = party_named(world, (struct text){woken.data, size});
  if (lock->woken == NULL) return;
  lock->woken_score = (double)number_of((struct text){blank + 1, woken.size - size - 1});
  lock->woken_at = (int64_t)number_of(value_of(notes, "since"));
}

/*
 * It has acquired since it was woken, which no client of ours has seen, and waits again with the
 * same score: our scripts cannot know that it has come.
 */
static bool seems_absent(const struct world *world, const struct party *party)
{
  const struct lock *lock = party->lock;
  return lock->woken == party && lock->woken_score == party->score &&
         party->acquired >= lock->woken_at &&
         server_ms(world) >= lock->woken_at + REDISSON_TIMEOUT / MS;
}

/*
 * A Redisson waiter goes from the queue when it acquires, leaves, or its score has passed. Our
 * scripts may drop it only if they find 5 s after it came that it does not listen, or if they have
 * woken it in vain.
 */
static void check_redisson(struct world *world, struct lock *lock, bool by_us)
{
  struct party *next;
  for (struct party *party = lock->first; party != NULL; party = next) {
    const struct entry *entry = score_of(party);
    next = party->after;
    if (party->device != NULL) continue;
    bool passed = party->score <= (double)(world_server_micros(world) / MS);
    /* dropped, and back at the end */
    bool again = passed && !by_us && entry != NULL && entry->score > party->score;
    if (entry != NULL) party->score = entry->score;
    if ((entry != NULL && !again) || lock->holder == party) continue;
    bool absent = world->now - party->arrived >= REDISSON_TIMEOUT && !listens(party);
    unqueue(party);
    if (!by_us || passed || absent || party->late || party->gone || !ordered(world)) continue;
    if (seems_absent(world, party)) continue;
    world_fail(world, "%s is dropped from %s, and would have come", party->id, lock->text[1]);
  }
}

static void check_queue(struct world *world, struct lock *lock)
{
  struct store *store = redis_store(world->redis);
  struct key *queue = store_find(store, lock->keys[1]);
  struct key *scores = store_find(store, lock->keys[2]);
  uint32_t waiting = queue != NULL ? queue->list.used : 0;
  uint32_t scored = scores != NULL ? scores->dict.used : 0;
  if (world->profile.faults & FAULT_EVICT) return;
  bool exact = !(world->profile.faults & FAULT_DENY); /* else a score may stay behind */
  if (exact ? waiting != scored : waiting > scored)
    world_fail(world, "%s: %u in the queue, %u with a score", lock->text[0], waiting, scored);
  if (waiting > 64 && !random_chance(&world->random, 20)) return;
  for (uint32_t i = 0; i < waiting && !world->failed; i++) {
    const struct item *item = list_at(&queue->list, i);
    struct text id = {item->data, item->size};
    const struct entry *score = dict_find(&scores->dict, id);
    if (score == NULL) world_fail(world, "%s: %s has no score", lock->text[0], item->data);
    else check_score(world, party_named(world, id), score, i);
    if (list_find(&queue->list, id, i) >= 0)
      world_fail(world, "%s: %s waits twice", lock->text[0], item->data);
  }
  const struct key *ours = store_find(store, lock->keys[3]);
  if (ours != NULL && ours->expires == STORE_NEVER && exact)
    world_fail(world, "%s has no end", lock->text[3]);
}

/* A script that was stopped half-way has dropped only the waiter that was served. */
static void check_dropped(struct world *world, struct lock *lock)
{
  struct store *store = redis_store(world->redis);
  struct key *queue = store_find(store, lock->keys[1]);
  for (struct party *party = lock->first; party != NULL && safe(world); party = party->after) {
    bool waits = queue != NULL && list_find(&queue->list, text_of(party->id), INT64_MAX) >= 0;
    if (waits || lock->holder == party || party->device == NULL) continue;
    if (!alive(party)) continue;
    world_fail(world, "a script that was stopped has dropped %s from %s", party->id, lock->text[1]);
    return;
  }
}

/* After the server's clock fell behind, a dead one may seem alive for an hour. */
static bool lives(const struct party *party)
{
  bool waits = !party->gone && party->job == JOB_ACQUIRE;
  return alive(party) && (waits || !party->world->set_back);
}

static bool ours_waits(const struct lock *lock)
{
  const struct party *party = lock->first;
  while (party != NULL && (party->device == NULL || !lives(party)))
    party = party->after;
  return party != NULL;
}

/*
 * Once nothing goes wrong any more, a free lock finds its next holder within a waiter timeout and a
 * heartbeat, or, while one of ours waits, one for each Redisson waiter that listens and does
 * nothing.
 */
static void check_idle(struct world *world, struct lock *lock)
{
  struct store *store = redis_store(world->redis);
  bool idle = store_find(store, lock->keys[0]) == NULL && store_find(store, lock->keys[1]) != NULL;
  bool jammed =
      /* Redisson's scripts fail at an entry whose score was evicted */
      world->profile.faults & FAULT_EVICT && !ours_waits(lock);
  if (!idle || jammed) {
    lock->idle_since = -1;
    return;
  }
  bool ours = ours_waits(lock);
  if (lock->idle_since < 0 || lock->idle_ours != ours) lock->idle_since = world->now;
  lock->idle_ours = ours;
  int64_t since = lock->idle_since > world->calm_at ? lock->idle_since : world->calm_at;
  /*
   * by then some client asks: at the latest at the end, when the clock that fell behind has caught
   * up
   */
  int64_t limit = world->set_back ? 4 * HOUR : HOUR;
  /* by then each Redisson waiter has given up */
  if (ours) limit = (20 + 8 * world->profile.redissons) * SECOND + world->longest;
  if (world->calm && world->now - since > limit) {
    world_fail(world, "%s is free, with somebody waiting, for %lld ms", lock->text[0],
               (long long)((world->now - since) / MS));
  }
}

/* A leave of an earlier wait must not end a later one. */
static void check_late_leave(struct party *party, const struct link *link)
{
  if (!safe(party->world) || party->world->profile.skewed)
    return; /* by other clocks it is not late */
  if (!party->queued || party->job != JOB_ACQUIRE || party->handle.phase != QUEUEING) return;
  if (party->heard_step < party->start_step || link->sent_step >= party->start_step) return;
  world_fail(party->world, "%s waits for %s, and is taken out by a late leave", party->id,
             party->lock->text[0]);
}

/*
 * A handle may be taken out when it has no place in the queue: the server has said so, or the place
 * has expired.
 */
void check_taken_out(const struct party *party)
{
  struct world *world = party->world;
  const struct lock *lock = party->lock;
  if (!ordered(world) || world->refused_at >= party->started) return;
  if (party->revived || party->astray) return;
  if (party->queued && alive(party))
    world_fail(world, "%s is taken out, and waits for %s", party->id, lock->text[0]);
}

/* After each script */

static struct lock *lock_named(const struct world *world, struct text name)
{
  int64_t index;
  if (name.size < 2 || !resp_parse_number(name.data + 1, name.size - 1, &index)) return NULL;
  return index < world->profile.locks ? &world->locks[index] : NULL;
}

/* What common.lua takes; of a Redisson script only the id. */
struct asked {
  struct text id;
  int64_t mode;
  uint64_t lease_ms, token;
  bool acquires;
  bool forces; /* ends somebody's hold */
  bool leaves; /* releases, or leaves the queue */
};

static struct asked asked_for(const struct execution *execution, int script)
{
  struct asked asked = {execution->arguments[0],           0,     0,    0,
                        script == FAIRLOCK_SCRIPT_ACQUIRE, false, false};
  struct text words[5] = {{"", 0}};
  struct text rest = asked.id;
  if (script < 0) return asked;
  for (int i = 0; i < 5 && rest.size > 0; i++) {
    const char *space = memchr(rest.data, ' ', rest.size);
    size_t size = space != NULL ? (size_t)(space - rest.data) : rest.size;
    words[i] = (struct text){rest.data, size};
    size += space != NULL;
    rest = (struct text){rest.data + size, rest.size - size};
  }
  asked.id = words[0];
  (void)resp_parse_number(words[2].data, words[2].size, &asked.mode);
  asked.lease_ms = number_of(words[3]);
  asked.token = number_of(words[4]);
  asked.forces = !asked.acquires && asked.mode < 0;
  asked.leaves = !asked.acquires && asked.mode == 0;
  return asked;
}

/* The hold count is the one that was asked for, however often; 0 until a handover is confirmed. */
static void check_count(struct party *party, int64_t mode)
{
  char digits[RESP_NUMBER_SIZE];
  struct text target = {digits, resp_format_number(digits, mode < 0 ? -mode : 1)};
  struct world *world = party->world;
  const struct key *hash = store_find(redis_store(world->redis), party->lock->keys[0]);
  struct text count = value_of(hash, party->id);
  if (party->claims) target = text_of("0");
  if (!text_equal(count, target)) {
    world_fail(world, "%s holds %s %.*s times, and asked for %.*s", party->id, party->lock->text[0],
               (int)count.size, count.data, (int)target.size, target.data);
  }
}

/* A repeated release finds the hold ended, as long as that was the last hold. */
static void check_repeated(struct party *party, uint64_t token, bool done)
{
  struct lock *lock = party->lock;
  if (done) lock->ended = token;
  else if (token == lock->ended && ordered(party->world))
    world_fail(party->world, "%s: %s is said not to be held, but this release has ended it",
               party->id, lock->text[0]);
}

/*
 * The confirmation of a handover sets the lease that the holder asks for; whatever comes later
 * never shortens it.
 */
static void check_lease(const struct party *party, bool confirms, uint64_t lease_ms, int64_t before)
{
  struct world *world = party->world;
  const struct key *hash = store_find(redis_store(world->redis), party->lock->keys[0]);
  if (hash == NULL || !safe(world)) return;
  int64_t asked = server_ms(world) + (int64_t)lease_ms;
  int64_t expected = !confirms && before > asked ? before : asked;
  if (hash->expires == expected) return;
  world_fail(
      world, "%s: the lease of %s ends %lld ms too %s", party->id, party->lock->text[0],
      (long long)(hash->expires > expected ? hash->expires - expected : expected - hash->expires),
      hash->expires > expected ? "late" : "early");
}

/*
 * From a connection before the present one, of the operation that the hold began with or of an
 * earlier one: the only request that may prolong a lease without the holder's knowing.
 */
static bool is_late_acquire(const struct party *party, const struct link *link, int64_t mode)
{
  return mode >= 0 && link != party->device->link;
}

/* The master has confirmed the hold; its lease may be shorter than what was lost. */
static void end_stray(struct party *party, const struct link *link)
{
  struct stray *of = stray(party, party->lock->token);
  if (of == NULL || link != party->device->link) return;
  bool believed = party->believes && party->believed == of->token;
  int64_t until = believed ? party->believes_until : 0;
  if (of->until > until) of->until = until;
}

static void follow_ours(struct party *party, const struct execution *execution,
                        const struct asked *asked, bool same, int64_t before)
{
  const struct value *values = execution->reply->values;
  int64_t state = execution->reply->used == 4 ? values[1].integer : -9;
  int64_t mode = asked->mode;
  if (values[0].kind == VALUE_ERROR || state == -2) return;
  if (asked->acquires && state == 1) {
    end_stray(party, execution->client->owner);
    bool confirms = party->claims && mode < 0;
    if (confirms) party->claims = false;
    check_lease(party, confirms || !same, asked->lease_ms, before);
    check_count(party, mode);
    check_first(party->world, party->lock);
    if (same && is_late_acquire(party, execution->client->owner, mode))
      program_prolonged(party, party->lock->token, (int64_t)asked->lease_ms);
  }
  if (asked->acquires) {
    if (mode > 0 && state == 0) {
      struct link *link = execution->client->owner;
      if (party->queued) check_heartbeat(party, link);
      heard(party, link);
      party->timeout_ms = mode;
      party->alive_until = server_ms(party->world) + mode;
      party->heard_step = link->sent_step;
    }
  } else if (asked->leaves && asked->token != 0) {
    if (state == 1) party->released = asked->token;
    check_repeated(party, asked->token, state == 1);
  }
}

static void trace_execution(struct world *world, const struct execution *execution,
                            const char *script)
{
  char line[512];
  size_t used = 0;
  if (world->step < world->trace_from) return;
  for (int i = 0; i < execution->argument_count && used < 300; i++) {
    used += (size_t)snprintf(line + used, sizeof line - used, " %.*s",
                             (int)execution->arguments[i].size, execution->arguments[i].data);
  }
  used += (size_t)snprintf(line + used, sizeof line - used, " ->");
  for (uint32_t i = 0; i < execution->reply->used && used < 450; i++) {
    const struct value *value = &execution->reply->values[i];
    if (value->kind == VALUE_INTEGER)
      used += (size_t)snprintf(line + used, sizeof line - used, " %lld", (long long)value->integer);
    else if (value->kind != VALUE_ARRAY)
      used += (size_t)snprintf(line + used, sizeof line - used, " %.40s",
                               value->text.data != NULL ? value->text.data : "nil");
  }
  world_trace(world, "server: %s %.*s%s", script, (int)execution->keys[0].size,
              execution->keys[0].data, line);
}

/* Which of ours it is; -1: Redisson's. */
static int script_index(const struct execution *execution)
{
  for (int i = 0; i < 2; i++) {
    if (memcmp(execution->sha1, fairlock_scripts[i].sha1, 40) == 0) return i;
  }
  return memcmp(execution->sha1, fairlock_inspect_script.sha1, 40) == 0 ? FAIRLOCK_SCRIPT_INSPECT
                                                                        : -1;
}

/*
 * A server that is not a master has carried something out. Nobody else sees it; but a party that is
 * told it holds there believes it, unless it waits for a replica.
 */
static void follow_stray(struct world *world, struct lock *lock, const struct execution *execution,
                         const struct asked *asked)
{
  const struct value *values = execution->reply->values;
  struct redis *redis = execution->client->redis;
  struct party *by = party_named(world, asked->id);
  bool done =
      values[0].kind != VALUE_ERROR && execution->reply->used == 4 && values[1].integer == 1;
  world->counters.strays++;
  if (done && asked->leaves && by != NULL) by->released = asked->token;
  if (asked->leaves && by != NULL && values[0].kind != VALUE_ERROR && by->queued) by->astray = true;
  if (strict(world) || !execution->wrote) return; /* a replica never writes */
  struct store *store = redis_store(redis);
  struct party *holder = holder_in(world, store_find(store, lock->keys[0]));
  if (holder == NULL || holder->device == NULL) return;
  const struct link *link = holder->device->link;
  if (link != NULL && link->node->redis == redis)
    add_stray(holder, number_of(value_of(store_find(store, lock->keys[3]), "token")), INT64_MAX);
}

/* An acquire has come to the master. */
static void note_asked(struct party *party, const struct link *link)
{
  party->asked_step = link->sent_step;
  party->asked_at = party->world->now;
}

void check_execution(struct world *world, const struct execution *execution)
{
  static const char *const names[] = {"redisson", "acquire", "release", "inspect"};
  struct lock *lock = lock_named(world, execution->keys[0]);
  int script = script_index(execution);
  world->counters.scripts++;
  if (lock == NULL || world->failed) return;
  trace_execution(world, execution, names[script + 1]);
  if (script == FAIRLOCK_SCRIPT_INSPECT) return;
  struct asked asked = asked_for(execution, script);
  struct party *party = party_named(world, asked.id);
  if (execution->client->redis != world->redis) {
    follow_stray(world, lock, execution, &asked);
    return;
  }
  bool refused = execution->reply->values[0].kind == VALUE_ERROR;
  if (script == FAIRLOCK_SCRIPT_ACQUIRE && party != NULL && execution->client->owner != NULL)
    note_asked(party, execution->client->owner);
  bool leaves = party != NULL && asked.leaves && asked.token == 0;
  bool void_one = !refused && execution->reply->values[1].integer == -2;
  if (leaves && !refused && !void_one && execution->client->owner != NULL)
    check_late_leave(party, execution->client->owner);
  if (leaves && !void_one) {
    party->uncertain = refused && party->queued;
    unqueue(party);
  }
  uint64_t token = lock->token;
  struct party *holder = lock->holder;
  look_at_holder(world, lock, party);
  check_redisson(world, lock, script >= 0 && !refused);
  if (token != 0 && lock->token != token) lock->ended = 0; /* perhaps not by a release */
  bool same = holder == lock->holder && token == lock->token;
  if (asked.forces && holder != NULL && !same)
    force_end(holder, token, lease_end_at(lock->expires, world->jump));
  if (party != NULL && party->device != NULL)
    follow_ours(party, execution, &asked, same, lock->expires);
  else if (party != NULL && execution->reply->values[0].kind == VALUE_INTEGER &&
           execution->argument_count > 3)
    heard(party, execution->client->owner);
  else if (party != NULL && execution->reply->values[0].kind == VALUE_TEXT)
    unqueue(party); /* Redisson's, and it gave up */
  const struct key *hash = store_find(redis_store(world->redis), lock->keys[0]);
  lock->expires = hash != NULL ? hash->expires : 0;
  note_woken(world, lock);
  check_queue(world, lock);
  if (refused && script >= 0) check_dropped(world, lock);
  check_idle(world, lock);
  for (struct party *believer = lock->believers; believer != NULL;
       believer = believer->next_believer) {
    check_cover(believer);
  }
  bool free_now = lock->holder == NULL;
  if (free_now && ordered(world) && script == FAIRLOCK_SCRIPT_RELEASE && !refused &&
      execution->reply->values[1].integer != -2) {
    check_handover(world, lock);
  }
}

/* The server's data are gone: holders may go on believing, all others start over. */
void check_wiped(struct world *world)
{
  world->epoch++;
  for (int i = 0; i < world->profile.locks; i++) {
    struct lock *lock = &world->locks[i];
    while (lock->first != NULL)
      unqueue(lock->first);
    end_hold(lock->holder);
    lock->holder = NULL;
    lock->ended = 0;
    lock->idle_since = -1;
  }
}

/* A place in the queue that the new master knows of. */
static void take_place(struct lock *lock, struct party *party, struct text note)
{
  struct note read = read_note(note);
  party->alive_until = read.alive_until;
  if (read.timeout_ms > 0) party->timeout_ms = read.timeout_ms;
  party->uncertain = false;
  party->revived = true;
  party->latest = ++lock->arrivals;
  party->earliest = party->latest;
  enqueue(party);
}

/* What the holder has lost: its hold, or a part of its lease. */
static void note_lost(const struct lock *lock, const struct party *holder, struct redis *old,
                      int64_t jump)
{
  struct party *party = lock->holder;
  const struct key *hash = store_find(redis_store(old), lock->keys[0]);
  if (party == NULL || hash == NULL || strict(party->world)) return;
  int64_t end = lease_end_by(hash, jump);
  bool kept = party == holder && party->granted == lock->token;
  add_stray(party, lock->token, kept ? end : INT64_MAX);
}

static void check_promoted_lock(struct world *world, struct lock *lock, struct redis *old,
                                int64_t jump)
{
  struct store *store = redis_store(world->redis);
  const struct key *hash = store_find(store, lock->keys[0]);
  const struct key *queue = store_find(store, lock->keys[1]);
  const struct key *notes = store_find(store, lock->keys[3]);
  struct party *holder = holder_in(world, hash);
  uint64_t token = number_of(value_of(notes, "token"));
  bool same = holder != NULL && holder == lock->holder && token == lock->token;
  while (lock->first != NULL)
    unqueue(lock->first);
  for (int64_t i = 0; queue != NULL && i < queue->list.used; i++) {
    const struct item *item = list_at(&queue->list, i);
    struct party *party = party_named(world, (struct text){item->data, item->size});
    if (party != NULL) take_place(lock, party, value_of(notes, party->id));
  }
  if (lock->holder != NULL) note_lost(lock, same ? holder : NULL, old, jump);
  if (!same) end_hold(lock->holder);
  lock->holder = holder;
  lock->token = holder != NULL ? token : 0;
  lock->highest = token;
  lock->revived = token;
  if (!strict(world) && lock->believed > token) lock->believed = token;
  lock->expires = hash != NULL ? hash->expires : 0;
  lock->ended = 0;
  lock->idle_since = -1;
  if (holder == NULL) return;
  holder->claims = text_equal(value_of(hash, holder->id), text_of("0"));
  if (same) return;
  holder->granted = token;
  holder->over = false;
  holder->came_by_claim = true; /* as far as anybody knows */
  struct forced *of = forced(holder, token);
  if (of == NULL) return;
  /* it is believed in for as long as the old master said */
  if (!strict(world)) add_stray(holder, token, of->until);
  of->token = 0;
}

void check_promoted(struct world *world, struct redis *old, int64_t jump)
{
  for (int i = 0; i < world->profile.locks && !world->failed; i++) {
    struct lock *lock = &world->locks[i];
    check_promoted_lock(world, lock, old, jump);
    for (struct party *party = lock->believers; party != NULL; party = party->next_believer)
      check_cover(party);
  }
}

/* The end */

void check_asking(struct world *world)
{
  if (world->replication == NULL || world->now < world->calm_at) return;
  for (const struct party *party = world->all_parties; party != NULL; party = party->next) {
    const struct device *device = party->device;
    if (device == NULL || party->gone || party->handle.phase != QUEUEING) continue;
    int64_t since = party->started;
    if (since < party->asked_at) since = party->asked_at;
    if (since < world->calm_at) since = world->calm_at;
    if (since < device->woke) since = device->woke;
    int64_t limit = world->longest + device->engine.waiter_ms * MS;
    if (world->now - since < limit) continue;
    world_fail(world, "%s waits for %s, and has not asked the master for %lld ms", party->id,
               party->lock->text[0], (long long)((world->now - since) / MS));
    return;
  }
}

/*
 * A handle that owes the server nothing may go while the server refuses to end its subscription;
 * nothing else leaves one.
 */
void check_subscriptions(struct world *world)
{
  struct text channel = {"", 0};
  uint32_t left = redis_channels(world->redis, &channel);
  for (const struct party *party = world->all_parties; party != NULL; party = party->next) {
    if (party->unheard && listens(party)) left--;
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
    bool whole = safe(world) && !(world->profile.faults & FAULT_DENY);
    for (int j = 1; swept && whole && j < 3; j++) {
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
    if (swept && ours->dict.used > 5)
      world_fail(world, "%s keeps %u notes", lock->text[3], ours->dict.used);
  }
}
