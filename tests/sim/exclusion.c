/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One holder, or several that share. What a holder believes, by its own clock,
 * fairlock_engine_remaining_ms() says. The server must cover each belief: the lock, or a share of
 * it, is the believer's, and its lease ends later than the belief. It follows that no two beliefs
 * overlap but those of at most so many who share, which is checked all the same.
 */
#include "world.h"

#include <string.h>

/* Excuses */

struct forced *belief_forced(struct party *party, uint64_t token)
{
  for (unsigned i = 0; i < REMEMBERED && i < party->belief.forced_count; i++) {
    if (party->belief.forced[i].token == token) return &party->belief.forced[i];
  }
  return NULL;
}

/* Which of the holds that the master does not have as they were given. */
static struct stray *stray(struct party *party, uint64_t token)
{
  for (unsigned i = 0; i < REMEMBERED && i < party->belief.stray_count; i++) {
    if (party->belief.strays[i].token == token) return &party->belief.strays[i];
  }
  return NULL;
}

void belief_add_stray(struct party *party, uint64_t token, int64_t until)
{
  struct stray *known = stray(party, token);
  if (known == NULL) {
    known = &party->belief.strays[party->belief.stray_count++ % REMEMBERED];
    *known = (struct stray){token, until};
  }
  if (known->until < until) known->until = until;
}

/*
 * A fail-over has lost it, or a part of its lease: it may be believed in until its lease would have
 * ended. Where holds wait for the replica, nothing of the kind is lost.
 */
bool belief_stray(struct party *party)
{
  const struct stray *of = stray(party, party->belief.token);
  return of != NULL && party->belief.until <= of->until;
}

/* The server has restarted without its data since the hold began. */
static bool wiped(const struct party *party)
{
  return party->belief.epoch != party->world->epoch;
}

/*
 * It was ended by force: it may be believed in until the holder's next request is answered
 * (check_renewal sees to that), even if the message that granted it arrives only afterwards.
 */
static bool ended_by_force(struct party *party)
{
  if (party->device == NULL) return party->peer.forced;
  return belief_forced(party, party->belief.token) != NULL;
}

bool belief_excused(struct party *party)
{
  return belief_stray(party) || !world_safe(party->world) || wiped(party) || ended_by_force(party);
}

void belief_note_broken(struct party *party, uint64_t token)
{
  party->belief.broken = (struct broken){token, failover_stream(party->world)};
}

/*
 * The old master was told to end the hold by force, and the new one was not. The old one gets the
 * data of the new one before it can be promoted again, so the hold is not lost.
 */
static bool broken_before(const struct party *party)
{
  const struct broken *broken = &party->belief.broken;
  return broken->token == party->belief.token && broken->stream == failover_stream(party->world);
}

void belief_end_by_force(struct party *holder, uint64_t token, int64_t until)
{
  holder->world->counters.forced++;
  if (holder->device == NULL) {
    holder->peer.forced = true;
    return;
  }
  struct forced *of = &holder->belief.forced[holder->belief.forced_count++ % REMEMBERED];
  *of = (struct forced){token, device_clock(holder->device), until};
}

/* Its lease may be shorter than what was lost. */
void belief_end_stray(struct party *party, const struct link *link)
{
  struct stray *of = stray(party, party->held.token);
  if (of == NULL || link != party->device->link) return;
  bool believed = party->belief.holds && party->belief.token == of->token;
  int64_t until = believed ? party->belief.until : 0;
  if (of->until > until) of->until = until;
}

void belief_note_lost(struct party *party, bool same, struct redis *old, int64_t jump)
{
  const struct key *hash = store_find(redis_store(old), party->lock->keys[0]);
  int64_t end = hold_end(hash, party, jump);
  if (end == INT64_MIN || world_strict(party->world)) return;
  bool kept = same && party->granted == party->held_before.token;
  belief_add_stray(party, party->held_before.token, kept ? end : INT64_MAX);
}

/* The promise */

/* The server must keep the lock for a believer until the belief ends. */
static void check_cover(struct party *party)
{
  struct world *world = party->world;
  struct lock *lock = party->lock;
  if (belief_excused(party) || party->belief.until <= world->now) return;
  const struct key *hash = store_find(redis_store(world->redis), lock->keys[0]);
  int64_t end = hold_end(hash, party, world->jump);
  if (end == INT64_MIN) {
    world_fail(world, "%s believes for %lld us more that it holds %s, but does not", party->id,
               (long long)(party->belief.until - world->now), lock->text[0]);
  } else if (end < party->belief.until) {
    world_fail(world, "%s believes that it holds %s for %lld us longer than its lease", party->id,
               lock->text[0], (long long)(party->belief.until - end));
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
  if (!world_strict(world) || belief_excused(party) || party->belief.until <= world->now) return;
  const struct key *hash = store_find(redis_store(replica->redis), lock->keys[0]);
  if (hold_end(hash, party, replica->jump) >= party->belief.until || broken_before(party)) return;
  world_fail(world, "%s believes that it holds %s, and %s would lose that", party->id,
             lock->text[0], replica->host);
}

/* Beside a belief there are at most those of others who share, as many as each one's limit allows. */
static void check_alone(struct party *party)
{
  struct world *world = party->world;
  int together = 1, most = party->limit;
  if (belief_excused(party)) return;
  for (struct party *other = party->lock->believers; other != NULL; other = other->belief.next) {
    if (other == party || belief_excused(other) || other->belief.until <= world->now) continue;
    together++;
    if (most == 0 || (other->limit > 0 && other->limit < most)) most = other->limit;
    if (may_share(party, other) && (most == 0 || together <= most)) continue;
    world_fail(world, "%s and %s both believe that they hold %s%s", party->id, other->id,
               party->lock->text[0], together > 2 ? ", which is more than may" : "");
    return;
  }
}

void check_covers(const struct lock *lock)
{
  for (struct party *party = lock->believers; party != NULL; party = party->belief.next)
    check_cover(party);
}

/* Beliefs begin, go on and end */

static void begin_belief(struct party *party, uint64_t token)
{
  struct lock *lock = party->lock;
  if (!party->belief.holds) {
    party->belief.next = lock->believers;
    lock->believers = party;
  }
  check_token_own(party, token);
  if (party->device != NULL && token == party->belief.token) {
    party->world->counters.taken_back++;
    check_taken_back(party);
  }
  party->belief.holds = true;
  party->belief.token = token;
  check_token_believed(party, token);
}

static void end_belief(struct party *party)
{
  struct party **at = &party->lock->believers;
  if (!party->belief.holds) return;
  while (*at != party)
    at = &(*at)->belief.next;
  *at = party->belief.next;
  party->belief.holds = false;
}

void check_belief(struct party *party, bool believes, int64_t until, uint64_t token)
{
  if (!believes) {
    end_belief(party);
    return;
  }
  bool again = party->belief.holds && party->belief.token == token;
  if (again && party->belief.until == until) return;
  if (again) check_renewal(party, until);
  else begin_belief(party, token);
  party->belief.until = until;
  check_acknowledged(party);
  check_alone(party);
  check_cover(party);
}
