/*
 * A world from its seed to its end: a time with faults, a calm time in which all must go on, an end in which all finish, and a
 * look at what is left.
 */
#include "world.h"

#include "scripts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Services to the other files */

void world_fail(struct world *world, const char *format, ...)
{
  va_list list;
  if (world->failed) return;
  world->failed = true;
  va_start(list, format);
  vsnprintf(world->failure, sizeof world->failure, format, list);
  va_end(list);
}

void world_trace(struct world *world, const char *format, ...)
{
  va_list list;
  printf("# %8llu %10.6f  ", (unsigned long long)world->step, (double)world->now / 1e6);
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  printf("\n");
}

int64_t world_server_micros(const struct world *world)
{
  return EPOCH + world->now + world->jump;
}

void world_later(struct world *world, int64_t delay, event_fn run, void *object, uint32_t stamp)
{
  events_add(&world->events, world->now + delay, run, object, stamp);
}

/* id: NULL, the caller will enter it when it is known. */
struct party *world_add_party(struct world *world, const char *id, struct lock *lock)
{
  struct party *party = calloc(1, sizeof *party);
  bool fresh;
  if (party == NULL) abort();
  party->world = world;
  party->lock = lock;
  party->next = world->all_parties;
  world->all_parties = party;
  if (id == NULL) return party;
  snprintf(party->id, sizeof party->id, "%s", id);
  dict_add(&world->parties, text_of(party->id), &fresh)->object = party;
  return party;
}

/* What kind of world */

static int64_t one_of(struct random *random, int64_t a, int64_t b, int64_t c)
{
  int64_t choice = random_below(random, 3);
  return choice == 0 ? a : choice == 1 ? b : c;
}

static void choose_size(struct profile *profile, struct random *random, bool small)
{
  int64_t size = random_below(random, small ? 85 : 100);
  if (size < 55) {
    profile->devices = (int)random_between(random, 2, 6);
    profile->locks = (int)random_between(random, 1, 2);
    profile->duration = random_between(random, 5, 30) * MINUTE;
  } else if (size < 85) {
    profile->devices = (int)random_between(random, 5, 30);
    profile->locks = (int)random_between(random, 1, 5);
    profile->duration = random_between(random, 3, 15) * MINUTE;
  } else if (size < 97) {
    profile->devices = (int)random_between(random, 50, 300);
    profile->locks = (int)random_between(random, 5, 60);
    profile->duration = random_between(random, 2, 6) * MINUTE;
  } else {
    profile->devices = (int)random_between(random, 1000, 3000);
    profile->locks = (int)random_between(random, 100, 600);
    profile->duration = random_between(random, 2, 3) * MINUTE;
  }
}

/* Nothing but broken connections, many of them, so that much is late and repeated; or evictions and losses. */
static void make_storm(struct profile *profile, struct random *random)
{
  profile->faults = FAULT_CUT | (random_chance(random, 300) ? FAULT_STALL : 0);
  if (random_chance(random, 150)) profile->faults = FAULT_EVICT | FAULT_FREEZE | FAULT_SILENCE;
  profile->fault_every = one_of(random, SECOND, 3 * SECOND, 10 * SECOND) / FAULTS;
  profile->think = one_of(random, 50 * MS, 500 * MS, 20 * SECOND);
  profile->duration = profile->duration / 2;
}

static void choose_profile(struct world *world, bool small)
{
  struct profile *profile = &world->profile;
  struct random *random = &world->random;
  choose_size(profile, random, small);
  profile->handles = (int)random_between(random, 1, 3);
  bool large = profile->devices > 30;
  profile->think = large ? one_of(random, SECOND, 20 * SECOND, MINUTE) : one_of(random, 50 * MS, SECOND, 20 * SECOND);
  profile->hold = one_of(random, 5 * MS, 200 * MS, 3 * SECOND);
  profile->latency = one_of(random, 100, 2 * MS, 40 * MS);
  profile->fault_every = one_of(random, 5 * SECOND, 30 * SECOND, 200 * SECOND) / profile->devices;
  profile->split = (int)one_of(random, 0, 20, 400);
  profile->waitless = (int)one_of(random, 50, 50, 500);
  profile->drift = (int)one_of(random, 0, 10000, 10000);
  profile->faults = (unsigned)random_next(random) & ((1U << FAULTS) - 1);
  if (random_chance(random, 900)) profile->faults &= ~(unsigned)UNSAFE;
  if (random_chance(random, 850)) profile->faults &= ~(unsigned)FAULT_DENY;
  if (random_chance(random, 600)) profile->faults &= ~(unsigned)FAULT_WIPE;
  if (profile->faults & FAULT_JUMP) profile->faults &= ~(unsigned)FAULT_WIPE; /* no token could rise */
  if (random_chance(random, 100)) profile->faults = 0;
  if (random_chance(random, 200)) make_storm(profile, random);
  if (random_chance(random, 300)) profile->peers = (int)random_between(random, 1, 1 + profile->devices / 3);
}

static void name_keys(struct lock *lock, int index)
{
  static const char *const formats[4] = {"L%d", "redisson_lock_queue:{L%d}", "redisson_lock_timeout:{L%d}",
                                         "fairlock:{L%d}"};
  for (int i = 0; i < 4; i++) {
    int size = snprintf(lock->text[i], sizeof lock->text[i], formats[i], index);
    lock->keys[i] = (struct text){lock->text[i], (size_t)size};
  }
  lock->idle_since = -1;
}

/* The server */

static int64_t server_micros(void *context)
{
  return world_server_micros(context);
}

static void server_output(void *context, struct redis_client *to, const void *data, size_t size)
{
  (void)context;
  link_reply(to->owner, data, size);
}

static void server_executed(void *context, const struct execution *execution)
{
  check_execution(context, execution);
}

/* Start */

static void start_device(void *object, uint32_t stamp)
{
  (void)stamp;
  device_start(object);
}

static void build(struct world *world)
{
  struct profile *profile = &world->profile;
  struct redis_host host = {server_micros, server_output, server_executed, world};
  world->redis = redis_new(&host);
  world->server_up = true;
  world->locks = calloc((size_t)profile->locks, sizeof *world->locks);
  world->devices = calloc((size_t)profile->devices, sizeof *world->devices);
  if (world->locks == NULL || world->devices == NULL) abort();
  for (int i = 0; i < profile->locks; i++)
    name_keys(&world->locks[i], i);
  for (int i = 0; i < profile->devices; i++) {
    struct device *device = &world->devices[i];
    device->world = world;
    device->index = i;
    device->off = true;
    device->drift = random_between(&world->random, -profile->drift, profile->drift);
    device->clock_offset = (uint32_t)random_next(&world->random);
    device->latency = 1 + random_around(&world->random, profile->latency);
    device->blocked = (int)one_of(&world->random, 0, 0, 50);
    world_later(world, random_below(&world->random, 10 * SECOND), start_device, device, 0);
  }
  peers_start(world);
  faults_start(world);
}

/* Run */

static void run_until(struct world *world, int64_t end)
{
  struct event event;
  while (!world->failed && events_take(&world->events, &event)) {
    if (event.at > end) {
      events_add(&world->events, event.at, event.run, event.object, event.stamp);
      break;
    }
    world->now = event.at;
    world->step++;
    event.run(event.object, event.stamp);
  }
  if (!world->failed && world->now < end) world->now = end;
}

static bool all_gone(const struct world *world)
{
  for (int i = 0; i < world->profile.devices; i++) {
    for (int j = 0; j < HANDLES; j++) {
      if (world->devices[i].parties[j] != NULL) return false;
    }
  }
  return true;
}

static void calm_down(struct world *world)
{
  TRACE(world, "calm");
  world->calm = true;
  world->calm_at =
      world->now + 90 * SECOND; /* by then the last stalled data have come, and the server knows who is gone */
  redis_set_full(world->redis, false);
  redis_set_denied(world->redis, NULL);
  world->cut_next = false;
  redis_set_refusal(world->redis, NULL);
}

/* Everybody finishes; nobody begins. */
static void finish(struct world *world)
{
  int64_t limit = world->now + 60 * MINUTE + world->profile.hold * 8 * world->profile.devices;
  TRACE(world, "the end begins");
  world->ending = true;
  while (!world->failed && !(all_gone(world) && peers_idle(world))) {
    if (world->now > limit) {
      world_fail(world, "somebody never finishes");
      for (int i = 0; i < world->profile.devices; i++) {
        for (int j = 0; j < HANDLES; j++) {
          const struct party *party = world->devices[i].parties[j];
          if (party != NULL)
            world_trace(world, "%s: job %d, state %d", party->id, (int)party->job, party->handle.state);
        }
      }
    }
    run_until(world, world->now + 10 * SECOND);
  }
}

/* Somebody comes by at each lock, and goes. */
static void sweep(struct world *world)
{
  struct reply reply = {0};
  struct redis_client *client = redis_connect(world->redis, NULL);
  struct party *sweeper = world_add_party(world, "sweeper:1", NULL);
  for (int i = 0; i < world->profile.locks; i++) {
    for (int script = 0; script < 2; script++) {
      struct lock *lock = &world->locks[i];
      sweeper->lock = lock;
      char text[16384];
      const struct fairlock_script *source = &fairlock_scripts[script];
      snprintf(text, sizeof text, "%s%s", source->part[0], source->part[1]);
      struct text argv[12] = {text_of("EVAL"),
                              text_of(text),
                              text_of("4"),
                              lock->keys[0],
                              lock->keys[1],
                              lock->keys[2],
                              lock->keys[3],
                              text_of("sweeper:1"),
                              text_of("9999999999999"),
                              text_of(script == 0 ? "1" : "0"),
                              text_of(script == 0 ? "100" : "0"),
                              text_of("0")};
      redis_execute(client, argv, script == 0 ? 12 : 11, &reply);
    }
  }
  reply_free(&reply);
  redis_disconnect(client);
}

static void look_back(struct world *world)
{
  run_until(world, world->now + 120 * SECOND);
  if (world->failed) return;
  if (redis_channels(world->redis) > 0) world_fail(world, "%u subscriptions are left", redis_channels(world->redis));
  check_nothing_left(world, false);
  for (int i = 0; i < 2; i++) {
    sweep(world);
    world->now += 6 * SECOND;
  }
  check_nothing_left(world, true);
}

bool world_run(struct world *world, uint64_t seed, bool small)
{
  world->seed = seed;
  world->random.state = seed * 0x2545f4914f6cdd1dU;
  choose_profile(world, small);
  build(world);
  run_until(world, world->profile.duration);
  if (!world->failed) calm_down(world);
  run_until(world, world->now + 2 * MINUTE);
  if (!world->failed) finish(world);
  if (!world->failed) look_back(world);
  return !world->failed;
}

void world_free(struct world *world)
{
  links_free(world);
  redis_free(world->redis);
  peers_free(world);
  for (int i = 0; i < world->profile.devices; i++) {
    free(world->devices[i].receive_buffer);
    free(world->devices[i].send_buffer);
  }
  while (world->all_parties != NULL) {
    struct party *party = world->all_parties;
    world->all_parties = party->next;
    free(party);
  }
  dict_free(&world->parties);
  events_free(&world->events);
  free(world->devices);
  free(world->locks);
}
