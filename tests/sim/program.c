/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs on the devices do: acquire, hold, re-enter, release, cancel, inspect, take
 * handles out and put others in, at random times.
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
  if (party->job != JOB_IDLE && party->job != JOB_ASK) left_done(party);
  next_step(party, JOB_IDLE,
            world->ending ? 0 : random_around(&world->random, world->profile.think));
}

static int64_t hold_time(struct world *world)
{
  return world->ending ? 0 : random_around(&world->random, world->profile.hold);
}

static void started(struct party *party, enum job job, uint32_t bound_ms)
{
  party->job = job;
  party->stamp++;
  party->under_way = party->handle.result == FAIRLOCK_PENDING;
  progress_started(party, bound_ms);
}

static void bad_status(struct party *party, const char *operation, int status)
{
  world_fail(party->world, "%s: %s gives %s", party->id, operation, fairlock_status_name(status));
}

/* Losses, and ends of operations: told by the engine */

static struct party *party_of(struct fairlock *handle)
{
  return (struct party *)(void *)((char *)handle - offsetof(struct party, handle));
}

/* Once for each operation, when its result is there. */
static void on_ended(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  struct party *party = party_of(handle);
  if (!party->under_way || end->status != handle->result || end->status == FAIRLOCK_PENDING)
    world_fail(context, "%s is told of an end that is none", party->id);
  party->under_way = false;
  party->kept.answered = false;
  if (end->status == FAIRLOCK_OK) check_keep_lasts(party);
}

static void on_lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  struct party *party = party_of(handle);
  struct world *world = context;
  const struct lock *lock = party->lock;
  world->counters.losses++;
  party->loss.told = handle->token;
  TRACE(world, "%s has lost %s", party->id, lock->text[0]);
  check_lost(party);
}

/* An operator asks: one that has given up belief, or begun another hold, is not asked. */
static void on_asked(struct fairlock *handle, const struct fairlock_asking *asking, void *context)
{
  (void)asking;
  struct party *party = (struct party *)(void *)((char *)handle - offsetof(struct party, handle));
  struct world *world = context;
  world->counters.asked++;
  TRACE(world, "%s is asked to release %s", party->id, party->lock->text[0]);
  if (handle->holds == 0)
    world_fail(world, "%s is asked, and does not hold %s", party->id, party->lock->text[0]);
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
  party->progress.endless = wait == FAIRLOCK_FOREVER;
  party->lease.asked_ms = choose_lease(device);
  int status =
      fairlock_engine_acquire(&party->handle, wait, party->lease.asked_ms, device_clock(device));
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

static void acquired(struct party *party, int result)
{
  struct world *world = party->world;
  check_given_up(party, result);
  check_asked(party, result);
  TRACE(world, "%s: acquire came to %s", party->id, fairlock_status_name(result));
  if (result == FAIRLOCK_OK) {
    int64_t hold = hold_time(world);
    party->lease.ends = 0;
    party->lease.from = world->now;
    /* one that began for an earlier operation, unseen, has that one's lease */
    bool earlier = party->lease.held_step < party->progress.start_step && !party->handover.by_claim;
    lease_may_last(party, party->handle.token, earlier ? INT64_MAX : lease_asked(party));
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
  party->lease.asked_ms = choose_lease(party->device);
  int status = fairlock_engine_acquire(&party->handle, 0, party->lease.asked_ms,
                                       device_clock(party->device));
  TRACE(world, "%s re-enters: %s", party->id, fairlock_status_name(status));
  if (status == FAIRLOCK_PENDING) started(party, JOB_REENTER, 10000);
  else if (status == FAIRLOCK_LOST) next_step(party, JOB_HOLD, 0);
  else bad_status(party, "re-enter", status);
}

static void release(struct party *party)
{
  struct world *world = party->world;
  party->repetition.releasing = party->handle.token;
  party->last = party->handle.holds == 1;
  party->downgrades = false;
  int status = fairlock_engine_release(&party->handle, device_clock(party->device));
  TRACE(world, "%s releases: %s", party->id, fairlock_status_name(status));
  if (status == FAIRLOCK_PENDING && !party->last)
    lease_may_last(party, party->repetition.releasing, (int64_t)party->handle.lease_ms * MS);
  if (status == FAIRLOCK_PENDING) started(party, JOB_RELEASE, 10000);
  else if (status == FAIRLOCK_LOST && !party->last) next_step(party, JOB_HOLD, 0);
  else if (status == FAIRLOCK_LOST) rest(party);
  else bad_status(party, "release", status);
}

/* Another handle of the device, which shares the lock and does nothing; NULL: there is none. */
static struct party *heir_of(const struct party *party)
{
  const struct profile *profile = &party->world->profile;
  bool may = profile->sharing > 0 && !party->shares && party->handle.holds == 1;
  for (int i = 0; may && i < HANDLES; i++) {
    struct party *other = party->device->parties[i];
    if (other == NULL || !other->shares || other->lock != party->lock) continue;
    if (other->job == JOB_IDLE) return other;
  }
  return NULL;
}

/* Two operations begin: the one handle is released, and the other acquires. */
static bool downgrade(struct party *party)
{
  struct world *world = party->world;
  struct party *heir = heir_of(party);
  if (heir == NULL || random_chance(&world->random, 500)) return false;
  uint32_t lease = choose_lease(party->device);
  party->repetition.releasing = party->handle.token;
  int status =
      fairlock_engine_downgrade(&party->handle, &heir->sharing, lease, device_clock(party->device));
  TRACE(world, "%s downgrades to %s: %s", party->id, heir->id, fairlock_status_name(status));
  if (status == FAIRLOCK_LOST) rest(party);
  if (status == FAIRLOCK_LOST) return true;
  if (status != FAIRLOCK_PENDING) return false;
  world->counters.downgrades++;
  party->last = true;
  party->downgrades = true;
  heir->progress.endless = true;
  heir->lease.asked_ms = lease;
  started(party, JOB_RELEASE, FAIRLOCK_FOREVER);
  started(heir, JOB_ACQUIRE, FAIRLOCK_FOREVER);
  if (random_chance(&world->random, world->profile.gives_up))
    next_step(heir, JOB_ACQUIRE, random_around(&world->random, world->profile.hold * 4));
  return true;
}

/* A downgrade is lost, too, when its share has ended before anybody knew of it. */
static void released(struct party *party, int result)
{
  struct world *world = party->world;
  TRACE(world, "%s: release came to %s", party->id, fairlock_status_name(result));
  if (result == FAIRLOCK_UNKNOWN) world->counters.unknowns++;
  if (!party->last) {
    next_step(party, JOB_HOLD, hold_time(world));
    return;
  }
  bool ended = party->downgrades && result == FAIRLOCK_LOST;
  if (!party->kept.answered && !ended) check_release(party, result);
  rest(party);
}

/* The rest */

static bool on_report(const struct fairlock_report *report, void *context)
{
  struct party *party = context;
  if (report->place == 0 && report->id == NULL && report->hold_count != 0) {
    world_fail(party->world, "%s: an inspection shows a count without a holder", party->id);
  }
  return true;
}

static void ask(struct party *party)
{
  struct world *world = party->world;
  bool force =
      (world->profile.faults & FAULT_FORCE) && !world->calm && random_chance(&world->random, 300);
  uint32_t now = device_clock(party->device);
  bool asks = !force && random_chance(&world->random, 300);
  /* the present hold, an earlier one, or any */
  const struct lock *lock = party->lock;
  uint64_t tokens[] = {lock->token, party->handle.token, FAIRLOCK_ANY_TOKEN};
  if (lock->now.used > 1)
    tokens[1] = lock->now.list[random_below(&world->random, lock->now.used)]->held.token;
  uint64_t token = tokens[random_below(&world->random, 3)];
  if (token == 0) token = FAIRLOCK_ANY_TOKEN; /* there was none */
  party->hold = (struct fairlock_target){.token = token};
  int status = force  ? fairlock_engine_force(&party->handle, &party->hold, now)
               : asks ? fairlock_engine_ask(&party->handle, &party->hold, now)
                      : fairlock_engine_inspect(&party->handle, on_report, party, now);
  TRACE(world, "%s %s: %s", party->id,
        force  ? "forces"
        : asks ? "asks"
               : "inspects",
        fairlock_status_name(status));
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
    check_nothing_of(party);
    left_taken_out(party);
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
    else if (!downgrade(party)) release(party);
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
  if (party->under_way)
    world_fail(party->world, "%s is not told that its operation has ended", party->id);
  switch (party->job) {
  case JOB_ACQUIRE:
    acquired(party, result);
    break;
  case JOB_REENTER:
    TRACE(party->world, "%s: re-entry came to %s", party->id, fairlock_status_name(result));
    /* one that was refused has extended nothing */
    bool refused = result <= FAIRLOCK_DENIED && result >= FAIRLOCK_REFUSED &&
                   party->device->link == party->progress.began_on;
    if (!refused) lease_may_last(party, party->handle.token, lease_asked(party));
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
  device->config.ended = on_ended;
  device->config.ended_context = party->world;
  if (device->index % 3 == 0) device->config.asked = on_asked;
  device->config.asked_context = party->world;
  rest(party);
}
