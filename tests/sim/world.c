/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world from its seed to its end: a time with faults, a calm time in which all must make
 * progress, an end in which all finish, and a check of what is left.
 */
#include "world.h"

#include "texts.h"

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

static void name_keys(struct lock *lock, int index)
{
  static const char *const formats[4] = {"L%d", "redisson_lock_queue:{L%d}",
                                         "redisson_lock_timeout:{L%d}", "fairlock:{L%d}"};
  for (int i = 0; i < 4; i++) {
    int size = snprintf(lock->text[i], sizeof lock->text[i], formats[i], index);
    lock->keys[i] = (struct text){lock->text[i], (size_t)size};
  }
  lock->idle.since = -1;
}

/* Who share a lock name the same limit, but some of them. */
static void choose_limit(struct world *world, struct lock *lock)
{
  if (world->profile.most > 0)
    lock->limit = (int)random_between(&world->random, 1, world->profile.most);
}

/* The server */

static int64_t server_micros(void *context)
{
  const struct node *node = context;
  const struct world *world = node->world;
  return node == world->master ? world_server_micros(world) : EPOCH + world->now + node->jump;
}

static void server_output(void *context, struct redis_client *to, const void *data, size_t size)
{
  (void)context;
  link_reply(to->owner, data, size);
}

static void server_executed(void *context, const struct execution *execution)
{
  const struct node *node = context;
  if (node->world->replication != NULL) failover_executed(node->world, execution);
  check_execution(node->world, execution);
}

static void on_waits(void *object, uint32_t stamp)
{
  const struct node *node = object;
  (void)stamp;
  redis_end_waits(node->redis);
}

static void server_blocked(void *context, int64_t ms)
{
  struct node *node = context;
  world_later(node->world, ms * MS, on_waits, node, 0);
}

/* Start */

static void start_device(void *object, uint32_t stamp)
{
  (void)stamp;
  device_start(object);
}

static void choose_latency(struct device *device)
{
  static const int64_t round_trips[] = {500 * MS, 2 * SECOND, 5 * SECOND, 20 * SECOND};
  struct world *world = device->world;
  device->slow = random_chance(&world->random, world->profile.slow);
  if (device->slow) device->latency = round_trips[random_below(&world->random, 4)] * 2 / 5;
  else device->latency = 1 + random_around(&world->random, world->profile.latency);
}

/* Half of the devices are of the other release, if there is one. */
static const struct redis_script *server_replaced(void *context, const struct redis_client *client,
                                                  const char *sha1, struct text request)
{
  const struct node *node = context;
  const struct device *device = device_of(client->owner);
  enum release other = node->world->profile.other;
  if (other == RELEASE_THIS || device == NULL || device->index % 2 == 0) return NULL;
  if (strcmp(sha1, fairlock_lock_script.sha1) != 0) return NULL;
  return &releases[other - 1][asks_of_lock(request)];
}

static void build(struct world *world)
{
  struct profile *profile = &world->profile;
  static const char *const hosts[NODES] = {"n0", "n1", "n2"};
  for (int i = 0; i < (profile->way == ONE_SERVER ? 1 : NODES); i++) {
    struct node *node = &world->nodes[i];
    struct redis_host host = {.micros = server_micros,
                              .output = server_output,
                              .executed = server_executed,
                              .replaced = server_replaced,
                              .blocked = server_blocked,
                              .context = node};
    *node = (struct node){world, redis_new(&host), hosts[i], 0, true};
    redis_set_reply_first(node->redis, (world->seed * 0x2545f4914f6cdd1dU) >> 63);
  }
  world->master = &world->nodes[NODE_A];
  world->redis = world->master->redis;
  world->moved_at = -1;
  world->barred_at = -1;
  world->locks = calloc((size_t)profile->locks, sizeof *world->locks);
  world->devices = calloc((size_t)profile->devices, sizeof *world->devices);
  if (world->locks == NULL || world->devices == NULL) abort();
  for (int i = 0; i < profile->locks; i++)
    name_keys(&world->locks[i], i);
  for (int i = 0; i < profile->locks; i++)
    choose_limit(world, &world->locks[i]);
  for (int i = 0; i < profile->devices; i++) {
    struct device *device = &world->devices[i];
    device->world = world;
    device->index = i;
    device->off = true;
    device->cut_from = -1;
    device->drift = random_between(&world->random, -profile->drift, profile->drift);
    device->clock_offset = (uint32_t)random_next(&world->random);
    choose_latency(device);
    device->blocked = random_chance(&world->random, 333) ? 50 : 0;
    world_later(world, random_below(&world->random, 10 * SECOND), start_device, device, 0);
  }
  redisson_start_all(world);
  faults_start(world);
  if (profile->way != ONE_SERVER) failover_start(world);
}

/* Run */

static void run_until(struct world *world, int64_t end)
{
  struct event event;
  while (!world->failed && events_take(&world->events, end, &event)) {
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
  world->calm_at = world->now + 90 * SECOND +
                   /* by then the last stalled data have come, and the server knows who is gone */
                   world->longest;
  redis_set_full(world->redis, false);
  redis_set_denied(world->redis, NULL);
  world->cut_next = false;
  world->cut_reply = false;
  redis_set_refusal(world->redis, NULL, false);
}

/* Everybody finishes; nobody begins. */
static void finish(struct world *world)
{
  int64_t limit = world->now + 60 * MINUTE +
                  (world->profile.hold + world->longest / 2) * 8 * world->profile.devices;
  if (world->set_back) limit += 2 * HOUR; /* leases are as much longer */
  TRACE(world, "the end begins");
  world->ending = true;
  while (!world->failed && !(all_gone(world) && redisson_idle(world))) {
    check_asking(world);
    if (world->now > limit) {
      world_fail(world, "somebody never finishes");
      for (int i = 0; i < world->profile.devices; i++) {
        for (int j = 0; j < HANDLES; j++) {
          const struct party *party = world->devices[i].parties[j];
          if (party != NULL)
            world_trace(world, "%s: job %d, phase %d", party->id, (int)party->job,
                        party->handle.phase);
        }
      }
    }
    run_until(world, world->now + 10 * SECOND);
  }
}

/* A last client takes each lock, and leaves. */
static void sweep(struct world *world)
{
  struct reply reply = {0};
  struct redis_client *client = redis_connect(world->redis, NULL);
  for (int i = 0; i < world->profile.locks; i++) {
    struct lock *lock = &world->locks[i];
    char id[24];
    snprintf(id, sizeof id, "sweeper:%d", i);
    if (party_named(world, text_of(id)) == NULL) world_add_party(world, id, lock);
    for (int script = 0; script < 2; script++) {
      char text[16384];
      char request[80];
      bool acquires = script == ASKS_ACQUIRE;
      snprintf(request, sizeof request, "%s 9999999999999 0 %s", id, acquires ? "100" : "0");
      const struct fairlock_script *source = &fairlock_lock_script;
      struct resp_writer writer;
      resp_writer_init(&writer, text, sizeof text, 0);
      fairlock_script_unpack(&writer, source);
      struct text argv[8] = {text_of("EVAL"), {text, writer.used}, text_of("4"),  lock->keys[0],
                             lock->keys[1],   lock->keys[2],       lock->keys[3], text_of(request)};
      redis_execute(client, argv, 8, &reply);
    }
  }
  reply_free(&reply);
  redis_disconnect(client);
}

static void look_back(struct world *world)
{
  run_until(world,
            world->now + 120 * SECOND + 4 * world->longest + (world->set_back ? 3 * HOUR : 0));
  if (world->failed) return;
  check_subscriptions(world);
  check_nothing_left(world, false);
  /* once more when suspects are gone, and when notes are dropped again */
  static const int64_t pauses[] = {6 * SECOND, 1000 * SECOND, 0};
  for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
    sweep(world);
    world->now += pauses[i];
  }
  check_nothing_left(world, true);
}

bool world_run(struct world *world, uint64_t seed, bool hunting)
{
  world->seed = seed;
  world->random.state = seed * 0x2545f4914f6cdd1dU;
  if (hunting) choose_hunt(world);
  else choose_profile(world);
  build(world);
  run_until(world, world->profile.duration);
  if (!world->failed) calm_down(world);
  run_until(world, world->now + 2 * MINUTE);
  if (!world->failed) finish(world);
  world->lived = world->now;
  if (!world->failed) look_back(world);
  return !world->failed;
}

void world_free(struct world *world)
{
  links_free(world);
  failover_free(world);
  for (int i = 0; i < NODES; i++) {
    if (world->nodes[i].redis != NULL) redis_free(world->nodes[i].redis);
  }
  redisson_free_all(world);
  for (int i = 0; i < world->profile.locks; i++)
    holders_free(&world->locks[i]);
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
