/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second server. It is a replica: a script's changes reach it later, in order, and then the
 * master is told (WAIT). Then the master dies, or is cut off and lives on, or hands over in good
 * order; the replica is promoted, with the data it has by then and a clock of its own. The old
 * master comes back, perhaps for a while as a master that does not know of the promotion, and
 * becomes the replica of the new one.
 *
 * A record is a copy of the keys of a lock after a script, so that a replica never has half of a
 * script's changes. There is one fail-over at a time, and the next one begins when the replica has
 * all that the master had when the two were connected again.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#define KEYS 4

struct record {
  struct record *next;
  uint64_t offset;
  struct text names[KEYS];
  struct key *copies[KEYS];
};

/* How the master is left. */
enum move { DIES, LOSES_POWER, IS_CUT_OFF, HANDS_OVER, LOSES_REPLICA, MOVES };

struct replication {
  struct node *replica;
  struct record *first, *last; /* under way */
  uint64_t written, applied;
  uint32_t
      stream; /* counts the times at which the two met: what belongs to an earlier one is lost */
  bool linked;
  int64_t free_at, acknowledged_at; /* nothing comes before */
  enum move move;
  bool goes_on;
};

static struct replication *of(const struct world *world)
{
  return world->replication;
}

bool failover_goes_on(const struct world *world)
{
  return world->replication != NULL && of(world)->goes_on;
}

uint32_t failover_stream(const struct world *world)
{
  return of(world)->stream;
}

struct node *failover_replica(const struct world *world)
{
  return world->replication != NULL ? of(world)->replica : NULL;
}

/* Replication */

static void free_record(struct record *record)
{
  for (int i = 0; i < KEYS; i++)
    store_drop(record->copies[i]);
  free(record);
}

static struct record *take_record(struct replication *replication)
{
  struct record *record = replication->first;
  replication->first = record->next;
  if (record->next == NULL) replication->last = NULL;
  return record;
}

static void acknowledge(void *object, uint32_t stamp)
{
  struct world *world = object;
  struct replication *replication = of(world);
  if (stamp == replication->stream) redis_acknowledge(world->redis, replication->applied);
}

static void apply_first(struct replication *replication)
{
  struct record *record = take_record(replication);
  struct store *store = redis_store(replication->replica->redis);
  for (int i = 0; i < KEYS; i++) {
    store_put(store, record->names[i], record->copies[i]);
    record->copies[i] = NULL;
  }
  replication->applied = record->offset;
  free_record(record);
}

static int64_t delay(struct world *world)
{
  int64_t lag = world->profile.lag;
  int64_t held_up = random_chance(&world->random, 5) ? random_around(&world->random, SECOND) : 0;
  return lag / 2 + random_around(&world->random, lag) + held_up;
}

static void arrive(void *object, uint32_t stamp)
{
  struct world *world = object;
  struct replication *replication = of(world);
  if (stamp != replication->stream) return;
  apply_first(replication);
  int64_t at = world->now + world->profile.lag / 2;
  if (at < replication->acknowledged_at) at = replication->acknowledged_at;
  replication->acknowledged_at = at;
  events_add(&world->events, at, acknowledge, world, stamp);
}

static void send_record(struct world *world, const struct execution *execution)
{
  struct replication *replication = of(world);
  struct store *store = redis_store(world->redis);
  struct record *record = calloc(1, sizeof *record);
  if (record == NULL) abort();
  record->offset = replication->written;
  for (int i = 0; i < KEYS && i < execution->key_count; i++) {
    struct lock *lock = world->locks;
    while (!text_equal(lock->keys[0], execution->keys[0]))
      lock++;
    record->names[i] = lock->keys[i];
    record->copies[i] = store_copy(store_find(store, lock->keys[i]));
  }
  if (replication->last != NULL) replication->last->next = record;
  else replication->first = record;
  replication->last = record;
  int64_t at = world->now + delay(world);
  if (at < replication->free_at) at = replication->free_at;
  replication->free_at = at;
  events_add(&world->events, at, arrive, world, replication->stream);
}

/* On a server that is no longer a master nothing is acknowledged: it has no replica. */
void failover_executed(struct world *world, const struct execution *execution)
{
  struct replication *replication = of(world);
  if (!execution->wrote) return;
  execution->client->wrote = ++replication->written;
  if (replication->linked && execution->client->redis == world->redis)
    send_record(world, execution);
}

static void unlink_replica(struct replication *replication)
{
  replication->linked = false;
  replication->stream++;
  while (replication->first != NULL)
    free_record(take_record(replication));
}

/* The replica gets all that the master has, and then what is new. */
static void link_replica(struct world *world)
{
  struct replication *replication = of(world);
  struct store *from = redis_store(world->redis);
  struct store *to = redis_store(replication->replica->redis);
  unlink_replica(replication);
  store_flush(to);
  for (int i = 0; i < world->profile.locks; i++) {
    for (int j = 0; j < KEYS; j++) {
      struct text name = world->locks[i].keys[j];
      store_put(to, name, store_copy(store_find(from, name)));
    }
  }
  replication->applied = replication->written;
  replication->linked = true;
  replication->free_at = 0;
  replication->acknowledged_at = 0;
  events_add(&world->events, world->now + world->profile.lag, acknowledge, world,
             replication->stream);
}

/* The replica gets what is under way to it. */
static void hurry(struct replication *replication)
{
  while (replication->first != NULL)
    apply_first(replication);
  unlink_replica(replication);
}

/* Fail-over */

static void plan(struct world *world);

static void trace(const struct node *node, const char *what)
{
  TRACE(node->world, "%s %s", node->host, what);
}

/* Sentinels and nodes of a cluster learn who the master is. */
static void spread(void *object, uint32_t stamp)
{
  struct world *world = object;
  (void)stamp;
  for (int i = 0; i < NODES; i++)
    redis_set_master(world->nodes[i].redis, world->master->host);
}

static bool clustered(const struct world *world)
{
  return world->profile.way == BY_CLUSTER;
}

static void promote(struct world *world)
{
  struct replication *replication = of(world);
  struct node *old = world->master;
  struct node *new = replication->replica;
  unlink_replica(replication);
  old->jump = world->jump;
  world->jump = new->jump;
  world->master = new;
  world->redis = new->redis;
  replication->replica = old;
  world->moved_at = world->now;
  redis_acknowledge(new->redis, 0);
  redis_set_role(new->redis, REDIS_MASTER, clustered(world));
  trace(new, "is promoted");
  world->counters.moves++;
  check_promoted(world, old->redis, old->jump);
  bool late = random_chance(&world->random, 300);
  world_later(world, late ? random_around(&world->random, 2 * SECOND) : 0, spread, world, 0);
}

/* Every connection to the node is closed, or told that the node has no slots any more. */
static void turn_away(struct node *node)
{
  struct world *world = node->world;
  bool closes = random_chance(&world->random, 500);
  bool tells = clustered(world) && random_chance(&world->random, 700);
  for (struct link *link = world->links; link != NULL; link = link->next) {
    if (link->node != node || link->server == NULL) continue;
    bool blocked = link->server->blocked;
    redis_unblock(link->server, "UNBLOCKED force unblock from blocking operation, instance state "
                                "changed (master -> replica?)");
    if (closes || blocked) link_server_close(link);
    else if (tells) link_end_slots(link);
  }
}

/* The old master becomes the replica of the new one. */
static void come_back(void *object, uint32_t stamp)
{
  struct world *world = object;
  struct node *node = of(world)->replica;
  (void)stamp;
  for (int i = 0; i < world->profile.devices; i++)
    world->devices[i].cut_from = -1;
  node->up = true;
  redis_set_role(node->redis, REDIS_REPLICA, clustered(world));
  trace(node, "is a replica");
  turn_away(node);
  link_replica(world);
  of(world)->goes_on = false;
  plan(world);
}

/* It starts, and for a while thinks that it is still the master. */
static void start_stale(void *object, uint32_t stamp)
{
  struct world *world = object;
  struct node *node = of(world)->replica;
  (void)stamp;
  trace(node, "starts, and is a master");
  node->up = true;
  world_later(world, random_around(&world->random, SECOND), come_back, world, 0);
}

static void take_over(void *object, uint32_t stamp)
{
  struct world *world = object;
  struct random *random = &world->random;
  (void)stamp;
  promote(world);
  if (world->failed) return;
  bool dead = !of(world)->replica->up;
  bool stale = dead && random_chance(random, 500);
  world_later(world, random_around(random, 8 * SECOND), stale ? start_stale : come_back, world, 0);
}

static void stop_node(struct node *node, bool silently)
{
  struct world *world = node->world;
  trace(node, silently ? "loses power" : "dies");
  node->up = false;
  for (struct link *link = world->links; link != NULL; link = link->next) {
    if (link->node != node) continue;
    if (silently) link_lose(link);
    else link_server_close(link);
  }
  redis_restarted(node->redis);
}

/* Some devices can reach the old one alone, some the new one alone, and some both. */
static void cut_off(struct node *node)
{
  struct world *world = node->world;
  trace(node, "is cut off");
  for (int i = 0; i < world->profile.devices; i++) {
    struct device *device = &world->devices[i];
    device->cut_from = (int)random_below(&world->random, 3) - 1;
    struct link *link = device->link;
    if (link != NULL && device->cut_from >= 0 && link->node == &world->nodes[device->cut_from])
      link_silence(link, true, true);
  }
}

/* What is under way arrives as far as some record. */
static void lose_suffix(struct world *world)
{
  struct replication *replication = of(world);
  while (replication->first != NULL && random_chance(&world->random, 300))
    apply_first(replication);
  unlink_replica(replication);
}

static void begin(void *object, uint32_t stamp)
{
  struct world *world = object;
  struct random *random = &world->random;
  struct replication *replication = of(world);
  (void)stamp;
  if (world->calm) return;
  if (!world->master->up) {
    plan(world);
    return;
  }
  replication->goes_on = true;
  replication->move = (enum move)random_below(random, MOVES);
  int64_t detected =
      100 * MS + random_around(random, random_chance(random, 500) ? SECOND : 4 * SECOND);
  switch (replication->move) {
  case DIES:
  case LOSES_POWER:
    lose_suffix(world);
    stop_node(world->master, replication->move == LOSES_POWER);
    break;
  case IS_CUT_OFF:
    lose_suffix(world);
    cut_off(world->master);
    break;
  case HANDS_OVER:
    hurry(replication);
    promote(world);
    come_back(world, 0);
    return;
  default:
    trace(replication->replica, "is away");
    unlink_replica(replication);
    world_later(world, random_around(random, 8 * SECOND), come_back, world, 0);
    return;
  }
  world_later(world, detected, take_over, world, 0);
}

static void plan(struct world *world)
{
  world_later(world, random_around(&world->random, world->profile.move_every), begin, world, 0);
}

void failover_start(struct world *world)
{
  struct replication *replication = calloc(1, sizeof *replication);
  if (replication == NULL) abort();
  world->replication = replication;
  replication->replica = &world->nodes[NODE_B];
  replication->replica->jump = world->profile.skew;
  redis_set_role(world->nodes[NODE_A].redis, REDIS_MASTER, clustered(world));
  redis_set_role(world->nodes[NODE_B].redis, REDIS_REPLICA, clustered(world));
  redis_set_role(world->nodes[NODE_SENTINEL].redis, REDIS_SENTINEL, false);
  spread(world, 0);
  link_replica(world);
  plan(world);
}

void failover_free(struct world *world)
{
  if (world->replication == NULL) return;
  unlink_replica(of(world));
  free(of(world));
}
