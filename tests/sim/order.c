/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First come, first served: a hold begins in the order of arrival among waiters that kept the rules
 * (heard within their timeouts, connected), and without waiting only when nobody waits. On a
 * connection that is up, heartbeats come in time, and the waiter listens.
 */
#include "world.h"

#include "texts.h"

/* Who waits, as the server saw them arrive */

void order_leave(struct party *party)
{
  struct lock *lock = party->lock;
  if (!party->place.queued) return;
  party->place.queued = false;
  if (party->place.before != NULL) party->place.before->place.after = party->place.after;
  else lock->queue.first = party->place.after;
  if (party->place.after != NULL) party->place.after->place.before = party->place.before;
  else lock->queue.last = party->place.before;
}

static void enqueue(struct party *party)
{
  struct lock *lock = party->lock;
  party->place.queued = true;
  party->place.before = lock->queue.last;
  party->place.after = NULL;
  if (lock->queue.last != NULL) lock->queue.last->place.after = party;
  else lock->queue.first = party;
  lock->queue.last = party;
}

/*
 * A waiter was heard. Its place dates from its first arrival, unless it was silent for longer than
 * its timeout since.
 */
void order_heard(struct party *party, struct link *link)
{
  struct world *world = party->world;
  struct lock *lock = party->lock;
  check_gone_waits(party);
  if (!party->place.queued) {
    const struct entry *score = score_of(party);
    party->peer.score = score != NULL ? score->score : 0;
    party->place.arrived = world->now;
    party->place.latest = ++lock->queue.count;
    if (!party->place.uncertain) party->place.earliest = party->place.latest;
    enqueue(party);
    check_recalled(lock);
  } else if (party->device != NULL && !party_alive(party)) {
    party->place.latest = ++lock->queue.count;
    order_leave(party);
    enqueue(party);
  }
  party->place.revived = false;
  party->place.astray = false;
  party->place.heard = world->now;
  if (party->place.link != link) party->place.changed = world->now;
  party->place.link = link;
}

void order_take_place(struct party *party, struct text note)
{
  struct note read = read_note(note);
  party->place.alive_until = read.alive_until;
  if (read.timeout_ms > 0) party->place.timeout_ms = read.timeout_ms;
  if (read.claim_ms > 0) party->place.claim_ms = read.claim_ms;
  party->place.uncertain = false;
  party->place.revived = true;
  party->place.latest = ++party->lock->queue.count;
  party->place.earliest = party->place.latest;
  enqueue(party);
}

/* Holds begin in turn */

/* A script that was stopped half-way may have left a waiter in line of whom nobody was told. */
static bool any_order(const struct world *world)
{
  return !world_safe(world) || world->struck & FAULT_DENY;
}

/* It still listens, or would but for the server; or else its SUBSCRIBE may have been refused. */
static bool subscribed(const struct party *party)
{
  const struct world *world = party->world;
  const struct link *link = party->place.link;
  /* it no longer listens; its leave may have been refused */
  bool goes = party->gone || party->job >= JOB_REMOVE;
  bool here = link != NULL && link->node == world->master && link->opened >= world->moved_at;
  bool stands = !goes && here && link->server != NULL;
  return (stands && world->refused_at < link->opened) || party_listens(party);
}

/* A waiter that must not be passed over: it was heard in time, and its connection is up. */
static bool kept_rules(const struct party *party)
{
  const struct world *world = party->world;
  if (party->device != NULL) return party_alive(party) && subscribed(party);
  if (party->peer.late) return false;
  const struct entry *entry = score_of(party);
  return entry != NULL && entry->score > (double)world_server_ms(world) && party_listens(party);
}

/*
 * It may not have been listening when the Redisson waiter that takes the lock now was woken: the
 * connection on which it was heard was new to the server after that, or is not the present one.
 */
static bool was_away(const struct party *party)
{
  if (party->device == NULL || party->place.link == NULL) return false;
  return party->place.link != party->device->link ||
         party->place.changed > party->world->now - REDISSON_TIMEOUT;
}

void check_order(struct party *party)
{
  struct world *world = party->world;
  if (any_order(world) || !party->place.queued) return;
  for (struct party *other = party->lock->queue.first;
       other != NULL && other->place.latest < party->place.earliest; other = other->place.after) {
    if (other == party || !kept_rules(other) || (party->device == NULL && was_away(other)))
      continue;
    world_fail(world, "%s gets %s before %s, which came first", party->id, party->lock->text[0],
               other->id);
    return;
  }
}

/* One that did not wait may begin only when nobody waits. */
void check_barging(struct party *party)
{
  struct world *world = party->world;
  if (any_order(world) || party->place.queued) return;
  for (struct party *other = party->lock->queue.first; other != NULL; other = other->place.after) {
    if (other == party || !kept_rules(other)) continue;
    world_fail(world, "%s gets %s without waiting, before %s", party->id, party->lock->text[0],
               other->id);
    return;
  }
}

/* Heartbeats */

/*
 * The server has ended the subscriptions of a connection, as its slots were gone for a moment, and
 * what comes on it now was sent before the client was told.
 */
static bool sent_unaware(const struct link *link)
{
  return link->gone && (link->gone_told == 0 || link->sent_step <= link->gone_told);
}

/* A SUBSCRIBE came before the last heartbeat that was not refused. */
static bool has_subscribed(const struct party *party)
{
  const struct place *place = &party->place;
  int64_t before = place->heard - 2 * device_round_trip(party->device);
  return place->heard >= party->progress.started &&
         place->heard_step >= party->progress.start_step && party->world->refused_at < before;
}

/* Nothing is sent behind a WAIT, and each other handle of the device may need one. */
static bool waits_for_others(const struct device *device)
{
  int handles = 0;
  for (int i = 0; i < HANDLES; i++)
    handles += device->parties[i] != NULL;
  return device->world->profile.synced && handles > 1;
}

/* The device slept, something delayed what it sends, or the server was another or refused it. */
static bool delayed(const struct party *party, const struct link *link)
{
  const struct world *world = party->world;
  int64_t heard = party->place.heard;
  if (heard < world->moved_at || waits_for_others(party->device)) return true;
  if (party->device->woke >= heard || link->up_held >= heard) return true;
  return world->refused_at >= heard;
}

/*
 * A heartbeat of a waiter whose last one came on the same connection. It is sent by the clock,
 * however slow the answers are, so it comes before the timeout.
 */
void check_heartbeat(const struct party *party, const struct link *link)
{
  struct world *world = party->world;
  const struct device *device = party->device;
  bool same = party->place.link == link && device->link == link;
  if (!world_ordered(world) || !same) return;
  if (has_subscribed(party) && !party_listens(party) && !sent_unaware(link))
    world_fail(world, "%s waits for %s and does not listen", party->id, party->lock->text[0]);
  if (party_alive(party) || delayed(party, link)) return;
  world_fail(world,
             "%s is heard too late for its place in the queue of %s, on a connection that stands",
             party->id, party->lock->text[0]);
}
