/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong: at random times, one of the faults that the profile allows hits somebody. */
#include "world.h"

#include <stddef.h>

static struct device *any_device(struct world *world)
{
  return &world->devices[random_below(&world->random, world->profile.devices)];
}

/* A connection of some device; NULL: none is open. */
static struct link *any_link(struct world *world)
{
  for (int i = 0; i < 8; i++) {
    struct device *device = any_device(world);
    if (!device->off && device->link != NULL) return device->link;
  }
  return NULL;
}

static void start_again(void *object, uint32_t stamp)
{
  struct device *device = object;
  if (device->off && device->incarnation == (int)stamp && !device->world->ending)
    device_start(device);
}

static void stop_device(struct world *world, bool silently)
{
  struct device *device = any_device(world);
  if (device->off) return;
  device_stop(device, silently);
  world_later(world, random_around(&world->random, 4 * SECOND), start_again, device,
              (uint32_t)device->incarnation);
}

static void server_start(void *object, uint32_t stamp)
{
  struct node *node = object;
  (void)stamp;
  TRACE(node->world, "the server starts");
  node->up = true;
}

static void server_stop(struct world *world, bool wipe)
{
  struct node *node = world->master;
  if (!node->up || failover_goes_on(world)) return;
  TRACE(world, "the server stops%s", wipe ? " and loses its data" : "");
  node->up = false;
  for (struct link *link = world->links; link != NULL; link = link->next) {
    if (link->node == node) link_server_close(link);
  }
  redis_restarted(world->redis);
  if (wipe) {
    store_flush(redis_store(world->redis));
    check_wiped(world);
  }
  world_later(world, random_around(&world->random, 2 * SECOND), server_start, node, 0);
}

static void server_well(void *object, uint32_t stamp)
{
  struct world *world = object;
  (void)stamp;
  world->refused_at = world->now;
  if (world->barred_at == INT64_MAX) world->barred_at = world->now;
  redis_set_refusal(world->redis, NULL, false);
  redis_set_full(world->redis, false);
  redis_set_denied(world->redis, NULL);
  redis_set_migrating(world->redis, false);
}

/* The server's slots move. The holder and those who wait may not notice. */
static void migrate(struct world *world)
{
  TRACE(world, "the slots move");
  if (world->replication == NULL) world->barred_at = INT64_MAX; /* nobody follows */
  redis_set_migrating(world->redis, true);
  world_later(world, random_around(&world->random, 3 * SECOND), server_well, world, 0);
}

static void refuse(struct world *world)
{
  static const char *const errors[] = {
      "LOADING Redis is loading the dataset in memory",
      "READONLY You can't write against a read only replica.",
      "MISCONF Redis is configured to save RDB snapshots",
      "CLUSTERDOWN The cluster is down",
      "BUSY Redis is busy running a script",
  };
  redisson_late(world);
  world->refused_at = INT64_MAX;
  if (random_chance(&world->random, 300)) {
    migrate(world);
    return;
  }
  const char *error = errors[random_below(&world->random, 5)];
  bool all = random_chance(&world->random, 500);
  TRACE(world, "%s is refused: %s", all ? "all" : "each script", error);
  redis_set_refusal(world->redis, error, all);
  world_later(world, random_around(&world->random, 3 * SECOND), server_well, world, 0);
}

static void deny(struct world *world)
{
  static const char *const commands[] = {"hset", "pexpire", "zadd", "rpush",  "lrem",
                                         "zrem", "hdel",    "del",  "publish"};
  const char *command = commands[random_below(&world->random, 9)];
  TRACE(world, "%s is denied", command);
  world->refused_at = INT64_MAX;
  world->barred_at = INT64_MAX;
  redis_set_denied(world->redis, command);
  world_later(world, random_around(&world->random, 3 * SECOND), server_well, world, 0);
}

/* Another host has taken over, whose clock is behind. */
static void fall_behind(struct world *world)
{
  if (!world->master->up || world->set_back) return;
  int64_t by =
      random_below(&world->random, random_chance(&world->random, 500) ? HOUR : 20 * SECOND);
  world->jump -= by;
  world->set_back = true;
  TRACE(world, "the server's clock will be behind by %lld ms", (long long)(by / MS));
  server_stop(world, false);
}

static void jump(struct world *world)
{
  int64_t by = random_between(&world->random, -10 * SECOND, 10 * SECOND);
  world->jump += by;
  TRACE(world, "the server's clock jumps by %lld ms", (long long)(by / MS));
}

/* Not our notes: without them, and with a clock that was set back, tokens could not rise. */
static void evict(struct world *world)
{
  struct lock *lock = &world->locks[random_below(&world->random, world->profile.locks)];
  bool jumps = (world->profile.faults & (FAULT_JUMP | FAULT_BEHIND)) != 0;
  int64_t which =
      !jumps && random_chance(&world->random, 500) ? 3 : random_below(&world->random, 3);
  struct store *store = redis_store(world->redis);
  struct key *key = store_find(store, lock->keys[which]);
  TRACE(world, "the server evicts %s", lock->text[which]);
  if (key == NULL) return;
  store_remove(store, key);
  redis_changed(world->redis, lock->keys[which]);
}

static void cause(struct world *world, unsigned kind)
{
  struct random *random = &world->random;
  struct link *link = any_link(world);
  switch (kind) {
  case FAULT_CUT:
    if (random_chance(random, 500)) world->cut_next = true;
    else if (random_chance(random, 300)) world->cut_reply = true;
    else if (link != NULL) link_cut(link);
    break;
  case FAULT_SILENCE:
    if (link != NULL) link_silence(link, random_chance(random, 600), random_chance(random, 600));
    break;
  case FAULT_STALL:
    if (link != NULL) link_stall(link, random_around(random, 1500 * MS));
    break;
  case FAULT_CRASH:
  case FAULT_POWER:
    if (random_chance(random, 300)) redisson_crash(world);
    else stop_device(world, kind == FAULT_POWER);
    break;
  case FAULT_FREEZE:
    device_freeze(any_device(world),
                  random_around(random, random_chance(random, 500) ? SECOND : 8 * SECOND));
    break;
  case FAULT_RESTART:
  case FAULT_WIPE:
    server_stop(world, kind == FAULT_WIPE);
    break;
  case FAULT_SCRIPTS:
    redis_forget_scripts(world->redis);
    break;
  case FAULT_FULL:
    world->refused_at = INT64_MAX;
    redis_set_full(world->redis, true);
    redisson_late(world);
    world_later(world, random_around(random, 2 * SECOND), server_well, world, 0);
    break;
  case FAULT_REFUSE:
    refuse(world);
    break;
  case FAULT_DENY:
    deny(world);
    break;
  case FAULT_BEHIND:
    fall_behind(world);
    break;
  case FAULT_JUMP:
    jump(world);
    break;
  case FAULT_EVICT:
    evict(world);
    break;
  default:
    break;
  }
}

/* Faults of the whole server are rarer than those of one device. */
static bool is_general(unsigned kind)
{
  return (kind & (FAULT_RESTART | FAULT_WIPE | FAULT_FULL | FAULT_REFUSE | FAULT_SCRIPTS |
                  FAULT_JUMP | FAULT_DENY | FAULT_BEHIND)) != 0;
}

static void on_fault(void *object, uint32_t stamp)
{
  struct world *world = object;
  unsigned kind = 1U << random_below(&world->random, FAULTS);
  if (world->calm) return;
  if (world->profile.faults & kind && (!is_general(kind) || random_chance(&world->random, 150))) {
    TRACE(world, "fault %u", kind);
    world->counters.faults++;
    world->struck |= kind;
    cause(world, kind);
  }
  world_later(world, random_around(&world->random, world->profile.fault_every / 4), on_fault, world,
              stamp);
}

void faults_start(struct world *world)
{
  if (world->profile.faults != 0) world_later(world, 0, on_fault, world, 0);
}
