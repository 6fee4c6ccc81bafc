/*
 * What the programs on the devices do: acquire, hold, re-enter, release, cancel, inspect, take
 * handles out and put others in, at random times; and what they check: that each operation has a
 * result in time, and that the result is true.
 */
#include "world.h"

#include "internal.h"

#include <stddef.h>

/* In ms. Shorter than the time after which the world looks for what is left. */
#define LONGEST_LEASE 60000

static void wake(void *object, uint32_t stamp);

static void next_step(struct party *party, enum job job, int64_t delay)
{
  party->job = job;
  world_later(party->world, delay, wake, party, ++party->stamp);
}

static void rest(struct party *party)
{
  struct world *world = party->world;
  next_step(party, JOB_IDLE,
            world->ending ? 0 : random_around(&world->random, world->profile.think));
}

static int64_t hold_time(struct world *world)
{
  return world->ending ? 0 : random_around(&world->random, world->profile.hold);
}

/* Operations in time */

static void watch(void *object, uint32_t stamp)
{
  struct party *party = object;
  struct world *world = party->world;
  if (party->gone || party->operation != stamp || party->handle.result != FAIRLOCK_PENDING) return;
  int64_t frozen = party->device->asleep_total - party->frozen;
  if (frozen > 0) {
    party->frozen += frozen;
    party->due += frozen;
    world_later(world, frozen, watch, party, stamp);
    return;
  }
  int64_t longest = party->due + device_patience(party->device);
  if (longest > world->now) { /* round trips have become longer */
    world_later(world, longest - world->now, watch, party, stamp);
    return;
  }
  const struct link *link = party->device->link;
  if (party->job == JOB_REMOVE &&
      (link == NULL || link->opened == 0 || link->opened > party->due)) {
    /* each connection that breaks leaves new doubt, which has to end first */
    party->due = world->now;
    world_later(world, SECOND, watch, party, stamp);
    return;
  }
  world_fail(world, "%s has no result (job %d)", party->id, (int)party->job);
}

/* An operation was asked for. bound: how long it may take; FAIRLOCK_FOREVER ms: no limit. */
static void started(struct party *party, enum job job, uint32_t bound_ms)
{
  party->job = job;
  party->stamp++;
  party->operation++;
  party->started = party->world->now;
  party->start_step = party->world->step;
  party->began_on = party->device->link;
  party->frozen = party->device->asleep_total;
  if (bound_ms == FAIRLOCK_FOREVER) return;
  int64_t bound = (int64_t)bound_ms * MS;
  party->due = party->world->now + bound + bound / 32;
  world_later(party->world, party->due - party->world->now, watch, party, party->operation);
}

static void bad_status(struct party *party, const char *operation, int status)
{
  world_fail(party->world, "%s: %s gives %s", party->id, operation, fairlock_status_name(status));
}

/* Losses: told by the engine */

static void on_lost(struct fairlock *handle, void *context)
{
  struct party *party = (struct party *)(void *)((char *)handle - offsetof(struct party, handle));
  struct world *world = context;
  const struct lock *lock = party->lock;
  world->counters.losses++;
  party->lost = handle->token;
  TRACE(world, "%s has lost %s", party->id, lock->text[0]);
  bool early = party->believes && party->believes_until > world->now &&
               (int32_t)(device_clock(party->device) - handle->limit) < 0;
  bool still = lock->holder == party && lock->token == party->believed;
  const struct link *link = party->device->link;
  if (link != NULL && link->node != world->master) still = false; /* who tells it knows no better */
  if (early && still && !world->set_back && party->epoch == world->epoch &&
      !(world->profile.faults & UNSAFE)) {
    world_fail(world, "%s is told that it lost %s, but holds it", party->id, lock->text[0]);
  }
}

/* What the program sends reaches the server, and has done so since that time. */
static bool goes_through(const struct party *party, int64_t since)
{
  const struct device *device = party->device;
  const struct link *link = device->link;
  if (link == NULL || device->connecting || link->server == NULL || link->lost_up ||
      link->lost_down || link->node != device->world->master)
    return false;
  if (link->opened > since || link->up_held >= since || device->woke >= since) return false;
  return party->world->refused_at < since;
}

/* Leases: one that is not renewed ends in its time, and the lock is free then */

static int64_t asked_lease(const struct party *party)
{
  return party->lease != FAIRLOCK_RENEW ? (int64_t)party->lease * MS : INT64_MAX;
}

static void check_lease_over(void *object, uint32_t stamp)
{
  const struct party *party = object;
  struct world *world = party->world;
  const struct lock *lock = party->lock;
  bool held = lock->holder == party && (uint32_t)lock->token == stamp;
  if (party->gone || !held || party->ends == INT64_MAX || lock->token == lock->revived) return;
  /*
   * a request that too few replicas have acknowledged is sent again, and sets the lease each time
   */
  if (world->profile.synced) return;
  if (world->profile.faults & (UNSAFE | FAULT_DENY) || world->set_back) return;
  int64_t slack = SECOND + 2 * device_round_trip(party->device);
  if (world->now < party->ends + slack || !goes_through(party, party->lease_from)) return;
  if (store_find(redis_store(world->redis), lock->keys[0]) == NULL) return;
  world_fail(world, "%s has %s for longer than it asked for", party->id, lock->text[0]);
}

/* The hold with the token may last on the server for this long from now on. */
static void may_last(struct party *party, uint64_t token, int64_t lease)
{
  struct world *world = party->world;
  int64_t end = lease == INT64_MAX ? lease : world->now + lease;
  if (end <= party->ends) return;
  party->ends = end;
  if (end == INT64_MAX) return;
  int64_t slack = SECOND + 2 * device_round_trip(party->device);
  world_later(world, end + slack - world->now, check_lease_over, party, (uint32_t)token);
}

/*
 * A late request has extended the lease. It was in doubt when its repetition on the new connection,
 * or the next operation, succeeded, so the holder does not know that the lease is longer now.
 */
void program_prolonged(struct party *party, uint64_t token, int64_t lease_ms)
{
  TRACE(party->world, "%s has %s for longer by a late acquire", party->id, party->lock->text[0]);
  may_last(party, token, lease_ms * MS);
}

/*
 * A handover that the holder has learned of is confirmed by its next request: at once, or when the
 * lease is renewed.
 */
static void check_confirmed(void *object, uint32_t stamp)
{
  const struct party *party = object;
  struct world *world = party->world;
  const struct lock *lock = party->lock;
  bool held = lock->holder == party && (uint32_t)lock->token == stamp && party->believes;
  if (party->gone || !held || !party->claims || party->job != JOB_HOLD) return;
  if (party->handle.flags & RENEWS) return;
  if (world->profile.faults & (UNSAFE | FAULT_DENY) || world->set_back) return;
  if (!goes_through(party, party->lease_from)) return;
  /* it was handed over to a place in the queue whose end a fail-over has lost */
  if (world->moved_at >= 0 && world->moved_at > party->lease_from - 5 * MINUTE) return;
  world_fail(world, "%s holds %s, and has not confirmed it", party->id, lock->text[0]);
}

/* Acquiring */

static uint32_t choose_wait(struct world *world)
{
  struct random *random = &world->random;
  if (random_chance(random, world->profile.waitless)) return 0;
  if (random_chance(random, 400)) return FAIRLOCK_FOREVER;
  return (uint32_t)random_between(random, 1, 1 << random_between(random, 4, 17));
}

/* Longer than a round trip: with a shorter one an acquisition can never succeed. */
static uint32_t choose_lease(const struct device *device)
{
  struct random *random = &device->world->random;
  int64_t least = FAIRLOCK_LEASE_MIN_MS + 6 * device->latency / MS;
  if (least < device->world->profile.least_lease) least = device->world->profile.least_lease;
  if (random_chance(random, 500)) return FAIRLOCK_RENEW;
  int64_t lease = random_between(random, least, least << random_between(random, 1, 9));
  int64_t most = LONGEST_LEASE + 6 * device_round_trip(device) / MS;
  return (uint32_t)(lease < most ? lease : most);
}

static void acquire(struct party *party)
{
  struct world *world = party->world;
  struct device *device = party->device;
  uint32_t wait = choose_wait(world);
  party->endless = wait == FAIRLOCK_FOREVER;
  party->lease = choose_lease(device);
  int status = fairlock_engine_acquire(&party->handle, wait, party->lease, device_clock(device));
  TRACE(world, "%s acquires %s, wait %u: %s", party->id, party->lock->text[0], (unsigned)wait,
        fairlock_status_name(status));
  if (status != FAIRLOCK_PENDING) {
    bad_status(party, "acquire", status);
    return;
  }
  started(party, JOB_ACQUIRE, wait);
  if (wait > 0 && random_chance(&world->random, world->profile.gives_up)) {
    next_step(party, JOB_ACQUIRE, random_around(&world->random, world->profile.hold * 4));
  }
}

static void cancel(struct party *party)
{
  int status = fairlock_engine_cancel(&party->handle, device_clock(party->device));
  TRACE(party->world, "%s cancels: %s", party->id, fairlock_status_name(status));
  if (status == FAIRLOCK_OK) started(party, JOB_ACQUIRE, 1);
  else if (status != FAIRLOCK_NOT_HELD) bad_status(party, "cancel", status);
}

/*
 * However long the device did nothing, a wait without a limit goes on while the connection is up,
 * unless the device slept through a grant.
 */
static void check_given_up(struct party *party, int result)
{
  const struct world *world = party->world;
  const struct link *link = party->device->link;
  if (result != FAIRLOCK_UNREACHABLE || !party->endless || link == NULL || link != party->began_on)
    return;
  if (party->heard < party->started || party->granted > (uint64_t)(EPOCH + party->started)) return;
  bool stands = link->server != NULL && !link->lost_up && !link->lost_down;
  if (stands && !(world->profile.faults & (FAULT_STALL | FAULT_REFUSE | FAULT_FULL)))
    world_fail(party->world, "%s gives up as unreachable, on a connection that stands", party->id);
}

/*
 * An acquire waits for late requests of earlier connections to expire, but for no longer than a
 * request lives, whatever the server's clock says: then it is sent.
 */
static void check_asked(const struct party *party, int result)
{
  const struct device *device = party->device;
  int64_t life = (int64_t)device->engine.response_ms * MS * 3 / 2 + 3 * SECOND;
  int64_t since = party->world->now - life - 2 * device_round_trip(device);
  if (result != FAIRLOCK_UNREACHABLE || party->asked_step >= party->start_step) return;
  if (party->started > since || !goes_through(party, since) || party->world->profile.hold > HOUR)
    return;
  world_fail(party->world, "%s gives up as unreachable, and has not asked", party->id);
}

static void acquired(struct party *party, int result)
{
  struct world *world = party->world;
  check_given_up(party, result);
  check_asked(party, result);
  TRACE(world, "%s: acquire came to %s", party->id, fairlock_status_name(result));
  if (result == FAIRLOCK_OK) {
    int64_t hold = hold_time(world);
    party->ends = 0;
    party->lease_from = world->now;
    /* one that began for an earlier operation, unseen, has that one's lease */
    bool earlier = party->held_step < party->start_step && !party->came_by_claim;
    may_last(party, party->handle.token, earlier ? INT64_MAX : asked_lease(party));
    if (hold < MINUTE && random_chance(&world->random, 5)) hold *= 40;
    int64_t soon = 100 * MS + 4 * device_round_trip(party->device);
    if (world->profile.synced) soon += HANDLES * 2 * SECOND; /* each waits for the replica */
    world_later(world, soon, check_confirmed, party, (uint32_t)party->handle.token);
    next_step(party, JOB_HOLD, hold);
    return;
  }
  if (result == FAIRLOCK_UNSYNCED) world->counters.unsynced++;
  if (result == FAIRLOCK_TIMEOUT) world->counters.timeouts++;
  else world->counters.failures++;
  rest(party);
}

/* Holding */

static void reenter(struct party *party)
{
  struct world *world = party->world;
  if (random_chance(&world->random, world->profile.denied))
    redis_refuse_count(world->redis, text_of(party->id), party->handle.holds + 1);
  party->lease = choose_lease(party->device);
  int status =
      fairlock_engine_acquire(&party->handle, 0, party->lease, device_clock(party->device));
  TRACE(world, "%s re-enters: %s", party->id, fairlock_status_name(status));
  if (status == FAIRLOCK_PENDING) started(party, JOB_REENTER, 10000);
  else if (status == FAIRLOCK_LOST) next_step(party, JOB_HOLD, 0);
  else bad_status(party, "re-enter", status);
}

static void release(struct party *party)
{
  struct world *world = party->world;
  party->token = party->handle.token;
  party->last = party->handle.holds == 1;
  int status = fairlock_engine_release(&party->handle, device_clock(party->device));
  TRACE(world, "%s releases: %s", party->id, fairlock_status_name(status));
  if (status == FAIRLOCK_PENDING && !party->last)
    may_last(party, party->token, (int64_t)party->handle.lease_ms * MS);
  if (status == FAIRLOCK_PENDING) started(party, JOB_RELEASE, 10000);
  else if (status == FAIRLOCK_LOST && !party->last) next_step(party, JOB_HOLD, 0);
  else if (status == FAIRLOCK_LOST) rest(party);
  else bad_status(party, "release", status);
}

/* A release that returns OK has ended the hold; one that returns LOST has not. */
static void check_release(struct party *party, int result)
{
  struct world *world = party->world;
  bool by_us = party->released == party->token;
  if (world->profile.faults & UNSAFE) return;
  if (result == FAIRLOCK_OK && !by_us)
    world_fail(world, "%s: release gives OK, but the hold had ended", party->id);
  /* a hold that came back with a fail-over was released before */
  if (result == FAIRLOCK_LOST && by_us && party->token != party->lock->revived)
    world_fail(world, "%s: release gives LOST, but has ended the hold", party->id);
}

static void released(struct party *party, int result)
{
  struct world *world = party->world;
  TRACE(world, "%s: release came to %s", party->id, fairlock_status_name(result));
  if (result == FAIRLOCK_UNKNOWN) {
    world->counters.unknowns++;
    party->unknown = true;
  }
  if (!party->last) {
    next_step(party, JOB_HOLD, hold_time(world));
    return;
  }
  check_release(party, result);
  rest(party);
}

/* The rest */

static void on_report(const struct fairlock_report *report, void *context)
{
  struct party *party = context;
  if (report->place == 0 && report->id == NULL && report->hold_count != 0) {
    world_fail(party->world, "%s: an inspection shows a count without a holder", party->id);
  }
}

static void ask(struct party *party)
{
  struct world *world = party->world;
  bool force =
      (world->profile.faults & FAULT_FORCE) && !world->calm && random_chance(&world->random, 300);
  uint32_t now = device_clock(party->device);
  int status = force ? fairlock_engine_force(&party->handle, now)
                     : fairlock_engine_inspect(&party->handle, on_report, party, now);
  TRACE(world, "%s %s: %s", party->id, force ? "forces" : "inspects", fairlock_status_name(status));
  if (status == FAIRLOCK_PENDING) started(party, JOB_ASK, 10000);
  else if (status == FAIRLOCK_IN_PROGRESS) rest(party); /* a leave goes on */
  else bad_status(party, "ask", status);
}

static void take_out(struct party *party)
{
  struct world *world = party->world;
  struct device *device = party->device;
  int status = fairlock_engine_remove(&party->handle, device_clock(device));
  TRACE(world, "%s is taken out: %s", party->id, fairlock_status_name(status));
  if (status == FAIRLOCK_PENDING) {
    started(party, JOB_REMOVE, 10000);
  } else if (status == FAIRLOCK_IN_PROGRESS) {
    next_step(party, JOB_REMOVED, SECOND);
  } else if (status == FAIRLOCK_OK) {
    if (!party->unknown) check_taken_out(party);
    party->taken_out = !party->unknown;
    party->unheard = world->refused_at >= party->started;
    party->job = JOB_GONE;
    party->gone = true;
    for (int i = 0; i < HANDLES; i++) {
      if (device->parties[i] != party) continue;
      device->parties[i] = NULL;
      if (!world->ending) program_start(device_add_party(device, i));
    }
  } else {
    bad_status(party, "take out", status);
  }
}

static void step(struct party *party)
{
  struct world *world = party->world;
  switch (party->job) {
  case JOB_IDLE:
    if (world->ending || random_chance(&world->random, world->profile.taken_out)) take_out(party);
    else if (random_chance(&world->random, 30)) ask(party);
    else acquire(party);
    break;
  case JOB_ACQUIRE:
    cancel(party);
    break;
  case JOB_HOLD:
    if (party->handle.holds < 4 && random_chance(&world->random, 150)) reenter(party);
    else release(party);
    break;
  case JOB_REMOVED:
    take_out(party);
    break;
  default:
    break;
  }
}

static void wake(void *object, uint32_t stamp)
{
  struct party *party = object;
  struct device *device = party->device;
  if (party->gone || party->stamp != stamp || device->off || party->world->failed) return;
  if (device->asleep_until > party->world->now) {
    events_add(&party->world->events, device->asleep_until, wake, party, stamp);
    return;
  }
  step(party);
  if (!party->world->failed) device_service(device);
}

/* After the client was serviced: is the operation over? */
void program_look(struct party *party)
{
  int result = party->handle.result;
  if (result == FAIRLOCK_PENDING) return;
  switch (party->job) {
  case JOB_ACQUIRE:
    acquired(party, result);
    break;
  case JOB_REENTER:
    TRACE(party->world, "%s: re-entry came to %s", party->id, fairlock_status_name(result));
    /* one that was refused has extended nothing */
    bool refused = result <= FAIRLOCK_DENIED && result >= FAIRLOCK_REFUSED &&
                   party->device->link == party->began_on;
    if (!refused) may_last(party, party->handle.token, asked_lease(party));
    next_step(party, JOB_HOLD, hold_time(party->world));
    break;
  case JOB_RELEASE:
    released(party, result);
    break;
  case JOB_ASK:
    rest(party);
    break;
  case JOB_REMOVE:
    next_step(party, JOB_REMOVED, 0);
    break;
  default:
    break;
  }
}

void program_start(struct party *party)
{
  struct device *device = party->device;
  device->config.lost = on_lost;
  device->config.lost_context = party->world;
  rest(party);
}
