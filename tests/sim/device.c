/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device: the real engine, a clock that drifts, and a program that services the client whenever
 * something arrives or is due.
 *
 * A frozen device does nothing until it thaws, but its clock goes on; then everything that has
 * piled up comes at once. A crashed one starts again with another client id.
 */
#include "world.h"

#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After this many reads in a row without a pause, the server is judged all the same. */
#define ENDLESS_READS 256

uint32_t device_clock(const struct device *device)
{
  int64_t local = device->world->now * (1000000 + device->drift) / 1000000;
  return device->clock_offset + (uint32_t)(local / 1000);
}

/* A round trip on its connection when nothing holds it up: with the most of jitter. */
int64_t device_round_trip(const struct device *device)
{
  return device->latency * 5 / 2 + 2 * MS;
}

/* Waiting for the server in vain, leaving, and connecting again each have a limit of their own. */
int64_t device_patience(const struct device *device)
{
  const struct fairlock_config *config = &device->config;
  int64_t waiter = config_or(config->waiter_ms, 5000);
  int64_t offline = config_or(config->offline_ms, (uint32_t)(2 * waiter));
  if (offline < device->engine.offline_ms) offline = device->engine.offline_ms;
  int64_t round_trip = device->engine.round_trip_ms + device_round_trip(device) / MS;
  int64_t needed = offline + 2 * waiter + 2 * (int64_t)config->response_ms +
                   4 * config->connect_ms + 12 * round_trip;
  return needed > 22000 ? needed * MS : 22 * SECOND;
}

int64_t device_when(const struct device *device, uint32_t clock)
{
  int64_t local = device->world->now * (1000000 + device->drift) / 1000000 / 1000;
  int64_t ahead = (int32_t)(clock - device_clock(device));
  if (ahead <= 0) return device->world->now;
  int64_t rate = 1000000 + device->drift;
  return ((local + ahead) * 1000 * 1000000 + rate - 1) / rate;
}

static void on_timer(void *object, uint32_t stamp)
{
  struct device *device = object;
  struct world *world = device->world;
  if (stamp != device->timer_stamp || device->off) return;
  if (device->asleep_until > world->now) {
    events_add(&world->events, device->asleep_until, on_timer, device, stamp);
    return;
  }
  device->timer_at = INT64_MAX;
  device_service(device);
}

static void wake_at(struct device *device, int64_t at)
{
  if (at >= device->timer_at) return;
  device->timer_at = at;
  events_add(&device->world->events, at, on_timer, device, ++device->timer_stamp);
}

/* The connection */

static bool is_present(const struct device *device, const struct link *link)
{
  return !device->off && device->link == link;
}

static void on_opened(void *owner, struct link *link)
{
  struct device *device = owner;
  if (!is_present(device, link)) return;
  device->connecting = false;
  TRACE(device->world, "d%dx%d is connected", device->index, device->incarnation);
  fairlock_engine_opened(&device->engine, device_clock(device));
  device_service(device);
}

static void on_arrived(void *owner, struct link *link, const void *data, size_t size)
{
  struct device *device = owner;
  const char *bytes = data;
  if (!is_present(device, link)) return;
  while (size > 0 && device->link == link) {
    size_t room;
    uint8_t *to = fairlock_engine_input(&device->engine, &room);
    size_t piece = size < room ? size : room;
    if (room == 0) {
      world_fail(device->world, "%s: the engine has no room to receive", device->client_id);
      return;
    }
    memcpy(to, bytes, piece);
    fairlock_engine_received(&device->engine, piece, device_clock(device));
    device->reads++;
    bytes += piece;
    size -= piece;
    device_service(device);
  }
}

static void on_broke(void *owner, struct link *link)
{
  struct device *device = owner;
  if (!is_present(device, link)) return;
  TRACE(device->world, "d%dx%d: the connection breaks", device->index, device->incarnation);
  device->link = NULL;
  device->connecting = false;
  fairlock_engine_closed(&device->engine, FAIRLOCK_UNREACHABLE, device_clock(device));
  device_service(device);
}

static int64_t asleep_until(void *owner)
{
  const struct device *device = owner;
  return device->asleep_until;
}

static const struct link_user link_user = {on_opened, on_arrived, on_broke, asleep_until};

const struct device *device_of(const struct link *link)
{
  return link != NULL && link->user == &link_user ? link->owner : NULL;
}

static void close_link(struct device *device)
{
  TRACE(device->world, "d%dx%d closes its connection: %s", device->index, device->incarnation,
        fairlock_status_name(device->engine.last_error));
  if (device->engine.last_error == FAIRLOCK_PROTOCOL)
    world_fail(device->world, "%s does not understand the server", device->client_id);
  if (device->link != NULL) link_close(device->link);
  device->link = NULL;
  device->connecting = false;
  fairlock_engine_closed(&device->engine, FAIRLOCK_UNREACHABLE, device_clock(device));
}

/* Where the next connection goes. With a Sentinel, both seeds are the Sentinel. */
static bool aim(void *context, const char *address)
{
  struct device *device = context;
  if (address != NULL) {
    device->target = address[1] - '0';
    return true;
  }
  device->seed = 1 - device->seed;
  device->target = device->world->profile.way == BY_SENTINEL ? NODE_SENTINEL : device->seed;
  return device->seed == 0;
}

static void follow(struct device *device)
{
  const struct profile *profile = &device->world->profile;
  struct fairlock_topology *topology = &device->topology;
  memset(topology, 0, sizeof *topology);
  topology->address = device->address;
  topology->address_size = sizeof device->address;
  if (profile->way == BY_SENTINEL) topology->service = "doors";
  topology->cluster = profile->way == BY_CLUSTER;
  topology->replicas = profile->synced;
  device->seed = 1;
  if (fairlock_engine_follow(&device->engine, topology, aim, device) != FAIRLOCK_OK)
    world_fail(device->world, "%s does not follow", device->client_id);
}

/* Keeps its locks, for any time that is allowed. */
static void keep(struct device *device)
{
  struct world *world = device->world;
  uint32_t most = config_or(device->config.lease_ms, LEASE_MS) / 3 * 2;
  if (world->profile.keepers == 0 || !random_chance(&world->random, world->profile.keepers)) return;
  device->keep.keep_ms = (uint32_t)random_between(&world->random, 1, most);
  if (fairlock_engine_keep(&device->engine, &device->keep) != FAIRLOCK_OK)
    world_fail(world, "%s does not keep", device->client_id);
}

/* Sends what there is. The connection sometimes takes only a part, and then nothing for a while. */
static void flush(struct device *device, uint32_t now)
{
  struct random *random = &device->world->random;
  while (device->link != NULL && !device->connecting &&
         fairlock_engine_wants(&device->engine, now) & FAIRLOCK_SEND) {
    size_t size;
    const uint8_t *data = fairlock_engine_output(&device->engine, &size, now);
    if (size == 0) return;
    bool blocked = random_chance(random, device->blocked);
    size_t taken = blocked ? (size_t)random_below(random, (int64_t)size) : size;
    if (taken > 0) {
      link_send(device->link, data, taken);
      fairlock_engine_sent(&device->engine, taken);
    }
    if (blocked) {
      wake_at(device, device->world->now + random_around(random, 20 * MS));
      return;
    }
  }
}

static void look_at(struct party *party)
{
  struct device *device = party->device;
  uint32_t held = fairlock_engine_remaining_ms(&party->handle, device_clock(device));
  check_told_of_loss(party, held > 0);
  int64_t until = held > 0 ? device_when(device, party->handle.ends_at) : 0;
  check_belief(party, held > 0, until, party->handle.token);
  program_look(party);
  check_kept(party);
  check_free(party);
}

/* A device that wants attention again and again while no time passes would drain its battery. */
static void check_spin(struct device *device)
{
  struct world *world = device->world;
  if (world->now - device->spin_at > SECOND) {
    device->spin_at = world->now;
    device->spins = 0;
  }
  if (++device->spins > 3000)
    world_fail(world, "%s services its client without end", device->client_id);
}

/*
 * A time-out has made the engine give up the connection. That must not happen while there is
 * something to read, unless the reading never ends. If a handle is being taken out, that may be the
 * reason instead.
 */
static void check_unread(const struct device *device)
{
  bool removes = false;
  for (int i = 0; i < HANDLES; i++)
    removes |= device->parties[i] != NULL && device->parties[i]->job == JOB_REMOVE;
  if (removes || device->link == NULL || device->link->waiting == 0) return;
  if (device->reads >= ENDLESS_READS) return;
  world_fail(device->world, "%s gives up a connection before it has read what came on it",
             device->client_id);
}

/* The first greeting was answered: the ids of its handles are known. */
static void name_party(struct device *device, struct party *party)
{
  struct world *world = device->world;
  bool fresh;
  snprintf(party->id, sizeof party->id, "%.*s:%u", (int)device->engine.id_size, device->engine.id,
           (unsigned)party->handle.number);
  dict_add(&world->parties, text_of(party->id), &fresh)->object = party;
  if (!fresh) world_fail(world, "two have the id %s", party->id);
}

static void name_parties(struct device *device)
{
  device->named = true;
  for (int i = 0; i < HANDLES; i++) {
    struct party *party = device->parties[i];
    if (party == NULL) continue;
    TRACE(device->world, "%s is %.*s:%u", party->id, (int)device->engine.id_size, device->engine.id,
          (unsigned)party->handle.number);
    name_party(device, party);
  }
}

void device_service(struct device *device)
{
  struct world *world = device->world;
  struct fairlock_engine *engine = &device->engine;
  uint32_t now = device_clock(device);
  bool reads = !engine->broken && engine->stage > OPENING;
  check_spin(device);
  if (engine->id_size > 0 && !device->named) name_parties(device);
  if (device->link != NULL && !device->connecting && device->link->waiting == 0) {
    fairlock_engine_received(engine, 0, now);
    device->reads = 0;
  }
  fairlock_engine_tick(engine, now);
  if (reads && engine->broken) check_unread(device);
  if (fairlock_engine_wants(engine, now) & FAIRLOCK_CLOSE) close_link(device);
  if (fairlock_engine_wants(engine, now) & FAIRLOCK_CONNECT && device->link == NULL) {
    fairlock_engine_opening(engine, now);
    device->connecting = true;
    struct node *node = &world->nodes[device->target];
    device->link = link_open(world, &link_user, device, device->latency, node);
    if (device->target == device->cut_from) link_lose(device->link);
  }
  flush(device, now);
  fairlock_engine_tick(engine, now);
  for (int i = 0; i < HANDLES; i++) {
    if (device->parties[i] != NULL && !world->failed) look_at(device->parties[i]);
  }
  flush(device, now);
  uint32_t wait = fairlock_engine_deadline(engine, now);
  if (wait == FAIRLOCK_FOREVER) return;
  int64_t at = device_when(device, now + wait);
  wake_at(device, at > world->now ? at : world->now + 1);
}

/* Life */

/* The handle shares the lock, with the limit of the others or with another one. */
static int add_shared(struct party *party)
{
  struct world *world = party->world;
  const struct lock *lock = party->lock;
  party->shares = true;
  party->limit = lock->limit;
  if (random_chance(&world->random, world->profile.others))
    party->limit = (int)random_below(&world->random, 5);
  return fairlock_engine_add_shared(&party->device->engine, &party->sharing, lock->keys[0].data,
                                    lock->keys[0].size, (uint32_t)party->limit);
}

static int add_handle(struct party *party)
{
  struct world *world = party->world;
  const struct text name = party->lock->keys[0];
  int sharing = world->profile.sharing;
  if (sharing > 0 && random_chance(&world->random, sharing)) return add_shared(party);
  return fairlock_engine_add(&party->device->engine, &party->handle, name.data, name.size);
}

struct party *device_add_party(struct device *device, int place)
{
  struct world *world = device->world;
  struct lock *lock = &world->locks[random_below(&world->random, world->profile.locks)];
  struct party *party = world_add_party(world, NULL, lock);
  party->device = device;
  if (add_handle(party) != FAIRLOCK_OK)
    world_fail(world, "%s: a handle could not be added", device->client_id);
  snprintf(party->id, sizeof party->id, "%s:%u", device->client_id, (unsigned)party->handle.number);
  if (device->named) name_party(device, party);
  device->parties[place] = party;
  return party;
}

/* A round trip of seconds needs settings that are made for it. */
static void suit_slow(struct device *device)
{
  struct fairlock_config *config = &device->config;
  struct random *random = &device->world->random;
  uint32_t round_trip = (uint32_t)(device_round_trip(device) / MS);
  config->waiter_ms = round_trip * (uint32_t)random_between(random, 3, 6);
  if (config->waiter_ms < FAIRLOCK_WAITER_MIN_MS) config->waiter_ms = FAIRLOCK_WAITER_MIN_MS;
  config->response_ms = random_chance(random, 500) ? 0 : round_trip;
  config->lease_ms = 30000 + 8 * round_trip;
  config->offline_ms = 0;
  config->connect_ms = random_chance(random, 500) ? 0 : 2 * round_trip;
}

/* Not by chance, as in profile.c: between the shortest claim and the waiter timeout, most near the former. */
static void choose_claim(struct device *device)
{
  struct fairlock_config *config = &device->config;
  struct random random = {device->world->seed * 1000 + (uint64_t)device->index};
  uint32_t span = config_or(config->waiter_ms, 5000) - FAIRLOCK_CLAIM_MIN_MS;
  if (!random_chance(&random, device->world->profile.claims)) return;
  config->claim_ms = FAIRLOCK_CLAIM_MIN_MS;
  config->claim_ms += (uint32_t)random_below(&random, random_chance(&random, 500) ? span : 1000);
}

static void configure(struct device *device)
{
  struct world *world = device->world;
  struct random *random = &world->random;
  struct fairlock_config *config = &device->config;
  size_t name = 24;
  uint32_t offline = 0;
  free(device->receive_buffer);
  free(device->send_buffer);
  memset(config, 0, sizeof *config);
  snprintf(device->client_id, sizeof device->client_id, "d%dx%d", device->index,
           device->incarnation);
  config->client_id = device->client_id;
  if (random_chance(random, world->profile.alike))
    config->client_id = random_chance(random, 700) ? "copied" : NULL;
  config->receive_size =
      FAIRLOCK_RECEIVE_SIZE(name, config->client_id != NULL ? strlen(config->client_id) : 0);
  if (random_chance(random, 500)) config->receive_size += (size_t)random_below(random, 500);
  config->send_size = FAIRLOCK_SEND_MIN + (size_t)random_around(random, 500);
  device->receive_buffer = malloc(config->receive_size);
  device->send_buffer = malloc(config->send_size);
  if (device->receive_buffer == NULL || device->send_buffer == NULL) abort();
  config->receive_buffer = device->receive_buffer;
  config->send_buffer = device->send_buffer;
  if (random_chance(random, 200)) config->lease_ms = (uint32_t)random_between(random, 3000, 60000);
  if (config->lease_ms > 0 && config->lease_ms < world->profile.least_lease)
    config->lease_ms = world->profile.least_lease;
  if (random_chance(random, 200)) config->response_ms = (uint32_t)random_between(random, 500, 4000);
  if (random_chance(random, 100)) offline = (uint32_t)random_between(random, 3000, 30000);
  if (random_chance(random, world->profile.patient))
    config->waiter_ms = (uint32_t)random_between(
        random, FAIRLOCK_WAITER_MIN_MS, FAIRLOCK_WAITER_MIN_MS << random_between(random, 0, 5));
  /*
   * three heartbeats go out unanswered, the last after 4/5 of the timeout: the place lasts until
   * the answer comes
   */
  if (random_chance(random, world->profile.tolerant)) {
    config->waiter_ms = FAIRLOCK_WAITER_MIN_MS;
    config->response_ms =
        (uint32_t)random_between(random, FAIRLOCK_WAITER_MIN_MS, FAIRLOCK_WAITER_MIN_MS * 3 / 2);
  }
  uint32_t longest = config_or(config->waiter_ms, 5000) / 2 * 3;
  if (config->response_ms > longest) config->response_ms = longest;
  /* an operation has to outlast the connection's death */
  if (offline > 0) config->offline_ms = offline > config->waiter_ms ? offline : config->waiter_ms;
  if (device->slow) suit_slow(device);
  choose_claim(device);
  if (random_chance(random, 200)) config->client_name = "device";
  if (random_chance(random, 200)) config->password = "secret";
}

void device_start(struct device *device)
{
  struct world *world = device->world;
  struct random *random = &world->random;
  device->off = false;
  device->named = false;
  device->incarnation++;
  device->timer_at = INT64_MAX;
  device->timer_stamp++;
  device->spins = 0;
  device->asleep_until = 0;
  configure(device);
  if (fairlock_engine_init(&device->engine, &device->config) != FAIRLOCK_OK) {
    world_fail(world, "%s: the engine does not start", device->client_id);
    return;
  }
  if (world->profile.way != ONE_SERVER) follow(device);
  keep(device);
  if (world->profile.sharing > 0)
    fairlock_engine_use_downgrading(&device->engine, &device->sharing);
  if (device_patience(device) > world->longest) world->longest = device_patience(device);
  int64_t handles = random_between(random, 1, world->profile.handles);
  for (int i = 0; i < handles; i++)
    program_start(device_add_party(device, i));
}

void device_stop(struct device *device, bool silently)
{
  if (device->off) return;
  TRACE(device->world, "%s %s", device->client_id, silently ? "loses power" : "crashes");
  device->off = true;
  for (int i = 0; i < HANDLES; i++) {
    struct party *party = device->parties[i];
    if (party == NULL) continue;
    party->gone = true;
    check_belief(party, false, 0, 0);
    device->parties[i] = NULL;
  }
  if (device->link != NULL) {
    if (silently) link_silence(device->link, true, true);
    link_close(device->link);
  }
  device->link = NULL;
  device->connecting = false;
}

/* Time has gone by, and what has come meanwhile is not read yet. */
static void thaw(void *object, uint32_t stamp)
{
  struct device *device = object;
  if (!device->off && device->incarnation == (int)stamp) device_service(device);
}

void device_freeze(struct device *device, int64_t time)
{
  if (device->off || device->asleep_until > device->world->now) return;
  TRACE(device->world, "%s freezes for %lld ms", device->client_id, (long long)(time / MS));
  device->asleep_until = device->world->now + time;
  device->asleep_total += time;
  device->woke = device->asleep_until;
  world_later(device->world, time, thaw, device, (uint32_t)device->incarnation);
}
