/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Independent locks over the masters of a cluster: what an acquire and its release cost the client
 * and the servers, in processor time, with one master and with three, beside a plain server.
 *
 * The locks are in three slots, one for each third of a cluster, and each slot has a client, as a
 * cluster asks for (boards/examples/cluster). Each setup has the same three clients with the same
 * locks, so that only the servers differ. There are no replicas. The time that the servers use by
 * themselves, as nodes of a cluster do to keep in touch, is subtracted.
 *
 * A machine with few processors cannot show what three masters can do at a time. The cost of a pair
 * can: a master with a processor to itself takes as many pairs a second as fit into a second.
 */
#include "bench.h"
#include "failover/cluster.h"
#include "fairlock_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MASTERS = 3, SHARDS = 3, LOCKS = 100, ROUNDS = 7, SINGLE_ROUNDS = 3, MANY_ROUNDS = 20 };

/* The client of a slot, and its locks. */
struct shard {
  struct bench_client base;
  struct fairlock_topology topology;
  char address[64];
  struct fairlock lock[LOCKS];
  char name[LOCKS][24];
};

struct setup {
  const char *name;
  const char *seeds; /* NULL: a plain server */
  int masters;
  redisContext *peer[MASTERS];
  struct shard shard[SHARDS];
  double idle; /* share of a processor that the servers use by themselves */
  struct series client_us[2], server_us[2];
};

static struct rig rig;

/* The servers */

/* Whether nodes first to last are a cluster: each knows the owner of every slot. */
static bool complete(int first, int last)
{
  int count = last - first + 1;
  for (int i = first; i <= last; i++) {
    const char *state = raw_text(node_raw(&rig.node[i]), "CLUSTER INFO");
    if (strstr(state, "cluster_state:ok") == NULL) return false;
    for (int part = 0; part < count; part++) {
      if (cluster_owner_by(&rig, i, SLOTS * part / count) != first + part) return false;
    }
  }
  return true;
}

static void start_masters(int first, int last)
{
  int count = last - first + 1;
  int64_t until = now_ms() + MOVED_SOON;
  for (int part = 0; part < count; part++) {
    struct node *node = &rig.node[first + part];
    node_start(&rig, first + part, false);
    struct raw *raw = node_raw(node);
    must(raw_run(raw, "CLUSTER SET-CONFIG-EPOCH %d", part + 1), "no epoch");
    must(raw_run(raw, "CONFIG SET cluster-node-timeout 15000"), "no timeout");
    must(node_take_slots(node, SLOTS * part / count, SLOTS * (part + 1) / count - 1), "no slots");
    if (part == 0) continue;
    must(raw_run(node_raw(&rig.node[first]), "CLUSTER MEET 127.0.0.1 %d %d", node->port,
                 node->bus_port),
         "the masters do not meet");
  }
  while (!complete(first, last)) {
    must(now_ms() < until, "the cluster does not become complete");
    sleep_ms(20);
  }
}

/*
 * Node 0 is a cluster, and nodes 1 to 3 are another. The rig begins as a test does: it uses the
 * suite's server, which is ours, empties it of data and scripts, and sets a time limit.
 */
static void start_servers(int port)
{
  must(raw_open(&redis, port), "no server");
  rig_start(&rig, NULL, true);
  start_masters(0, 0);
  start_masters(1, MASTERS);
  (void)alarm(0);
}

/* The clients */

/* A name "{group}NUMBER" in this third of the slots. */
static void name_lock(int third, int number, char name[24])
{
  for (int group = 0;; group++) {
    (void)snprintf(name, 24, "{group:%d}:%d", group, number);
    if ((int)fairlock_slot(name, strlen(name)) * SHARDS / SLOTS == third) return;
  }
}

static void open_shard(struct shard *shard, int third, int port, const char *seeds)
{
  struct bench_client *base = &shard->base;
  bench_client_prepare(base, port);
  shard->topology.address = shard->address;
  shard->topology.address_size = sizeof shard->address;
  shard->topology.cluster = true;
  if (seeds != NULL) must(port_posix_seeds(&base->socket, seeds), "seeds");
  must(fairlock_client_init(&base->client, &base->config, &base->socket.transport) == FAIRLOCK_OK,
       "client");
  if (seeds != NULL)
    must(fairlock_follow(&base->client, &shard->topology) == FAIRLOCK_OK, "follow");
  for (int i = 0; i < LOCKS; i++) {
    name_lock(third, i, shard->name[i]);
    must(fairlock_init(&shard->lock[i], &base->client, shard->name[i]) == FAIRLOCK_OK, "lock");
  }
}

/* first: the node, -1: the plain server at port. */
static void open_setup(struct setup *setup, int first, int port)
{
  static char seeds[2][80];
  size_t used = 0;
  setup->masters = first > 0 ? MASTERS : 1;
  for (int i = 0; i < setup->masters; i++) {
    int at = first < 0 ? port : rig.node[first + i].port;
    setup->peer[i] = hiredis_open(at);
    if (first < 0) continue;
    char *text = seeds[first > 0];
    used += (size_t)snprintf(text + used, sizeof seeds[0] - used, "%s127.0.0.1:%d",
                             i > 0 ? "," : "", at);
    setup->seeds = text;
  }
  for (int i = 0; i < SHARDS; i++)
    open_shard(&setup->shard[i], i, port, setup->seeds);
}

static void close_setup(struct setup *setup)
{
  for (int i = 0; i < SHARDS; i++)
    bench_client_close(&setup->shard[i].base);
  for (int i = 0; i < setup->masters; i++)
    redisFree(setup->peer[i]);
}

/* What is measured */

/* One pair after the other, of the slots in turn. */
static int single(struct setup *setup)
{
  for (int round = 0; round < SINGLE_ROUNDS; round++) {
    for (int i = 0; i < LOCKS * SHARDS; i++) {
      struct fairlock *lock = &setup->shard[i % SHARDS].lock[i / SHARDS];
      must(fairlock_acquire(lock, 5000, 30000) == FAIRLOCK_OK, "acquire");
      must(fairlock_release(lock) == FAIRLOCK_OK, "release");
    }
  }
  return SINGLE_ROUNDS * LOCKS * SHARDS;
}

static void finish(struct setup *setup)
{
  for (int i = 0; i < SHARDS; i++)
    fairlock_poll(&setup->shard[i].base.client, 0); /* all have sent before any is waited for */
  for (int i = 0; i < SHARDS; i++)
    finish_all(&setup->shard[i].base, setup->shard[i].lock, LOCKS);
}

/* All locks at once. */
static int many(struct setup *setup)
{
  for (int round = 0; round < MANY_ROUNDS; round++) {
    for (int i = 0; i < LOCKS * SHARDS; i++)
      (void)fairlock_start_acquire(&setup->shard[i % SHARDS].lock[i / SHARDS], 5000, 30000);
    finish(setup);
    for (int i = 0; i < LOCKS * SHARDS; i++)
      (void)fairlock_start_release(&setup->shard[i % SHARDS].lock[i / SHARDS]);
    finish(setup);
  }
  return MANY_ROUNDS * LOCKS * SHARDS;
}

/* Microseconds of a processor, so far. */
static double client_cpu(void)
{
  struct rusage used;
  must(getrusage(RUSAGE_SELF, &used) == 0, "getrusage");
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double masters_cpu(const struct setup *setup)
{
  double sum = 0;
  for (int i = 0; i < setup->masters; i++)
    sum += server_cpu(setup->peer[i]);
  return sum;
}

static void measure(struct setup *setup, int way)
{
  double servers_used = masters_cpu(setup);
  double client_used = client_cpu();
  double begin = now();
  int pairs = way == 0 ? single(setup) : many(setup);
  double time = now() - begin;
  add(&setup->client_us[way], (client_cpu() - client_used) / pairs);
  add(&setup->server_us[way], (masters_cpu(setup) - servers_used - setup->idle * time) / pairs);
}

static void measure_idle(struct setup *setup, int count)
{
  double begin[3];
  double used[3];
  for (int i = 0; i < count; i++) {
    begin[i] = now();
    used[i] = masters_cpu(&setup[i]);
  }
  sleep_ms(3000);
  for (int i = 0; i < count; i++)
    setup[i].idle = (masters_cpu(&setup[i]) - used[i]) / (now() - begin[i]);
}

static void print_way(struct setup *setup, int way)
{
  static const char *const whose[] = {"client", "server"};
  for (int side = 0; side < 2; side++) {
    char row[48];
    char remark[96];
    (void)snprintf(row, sizeof row, "cluster.%s%s.us.%s", way == 0 ? "" : "many.", whose[side],
                   setup->name);
    (void)snprintf(remark, sizeof remark, "processor time of the %s for a pair%s",
                   side == 0 ? "client" : "servers", way == 0 ? "" : ", 300 locks at once");
    print_row(row, side == 0 ? &setup->client_us[way] : &setup->server_us[way], remark);
  }
}

void bench_cluster(int port)
{
  static struct setup setup[3] = {{.name = "plain"}, {.name = "1"}, {.name = "3"}};
  start_servers(port);
  for (int i = 0; i < 3; i++) {
    open_setup(&setup[i], i == 0 ? -1 : i - 1, port);
    (void)single(&setup[i]); /* the scripts are loaded, each client is where its slot is */
  }
  measure_idle(setup, 3);
  print_value("cluster.idle.percent.1", 100 * setup[1].idle,
              "of a core: a master by itself; taken off below");
  print_value("cluster.idle.percent.3", 100 * setup[2].idle, "the same, three masters together");
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < 3; i++)
      measure(&setup[i], 0);
    for (int i = 0; i < 3; i++)
      measure(&setup[i], 1);
  }
  for (int way = 0; way < 2; way++) {
    for (int i = 0; i < 3; i++)
      print_way(&setup[i], way);
  }
  for (int i = 0; i < 3; i++)
    close_setup(&setup[i]);
  for (int i = 0; i <= MASTERS; i++)
    node_kill(&rig.node[i]);
  raw_close(&redis);
}
