/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that move: a Sentinel set-up (one master, two replicas, three Sentinels) and a cluster
 * (three masters, three replicas), on loopback, on ports that were free, in one temporary folder
 * that goes away with the program, however it ends. The servers die with the program, too; begin()
 * of the harness ends those that a failed test left.
 *
 * A rig is large: make it static. Functions that wait return false when it takes longer than
 * MOVED_SOON. A test may take RIG_TEST_S.
 */
#ifndef RIG_H
#define RIG_H

#include "net.h"

#define NODES      NET_NODES
#define SERVICE    "doors" /* as the Sentinels call the master */
#define SLOTS      16384
#define MOVED_SOON 100000 /* a fail-over that was tried several times, on a loaded machine */
#define RIG_TEST_S 400    /* one test */

#define DOWN_AFTER_MS   1000  /* down-after-milliseconds of Sentinels that are not patient */
#define NODE_TIMEOUT_MS 1500  /* cluster-node-timeout of nodes that are not patient, */
#define PATIENT_MS      15000 /* and of those that are: cut connections are made anew in time */

struct rig;

struct node {
  const struct rig *rig;
  int index;
  pid_t pid; /* 0: killed */
  bool sentinel;
  bool frozen;
  int port; /* to connect to: the network's port, when there is a network; with TLS that of TLS */
  int own_port; /* where it listens */
  int bus_port, own_bus_port;
  char folder[64];
  char id[48]; /* in a cluster */
  struct raw raw;
};

struct rig_options {
  /* Connect the nodes by a network that can be partitioned. */
  bool parted;

  /* Lines of configuration of each server but the Sentinels, each ended by a line feed; or NULL */
  const char *config;

  /*
   * Folder of server.crt, server.key and ca.crt: the nodes speak TLS to clients and to each other.
   * NULL: they do not. Not with a network, nor in a cluster.
   */
  const char *certificates;

  /* Of the servers and of the Sentinels; NULL: none. A user needs a password. */
  const char *password, *sentinel_user, *sentinel_password;
};

struct rig {
  struct rig_options options;
  struct node node[NODES];
  struct net net;   /* when parted */
  unsigned cut_off; /* of rig_part() */
  bool cluster;
};

/* 602 for 6.2. Valkey's versions begin at 702. */
int server_version(void);
bool server_is_valkey(void);

/* Nodes */

/*
 * Kills it; starts it again on its port with its configuration, but without its data; freezes it;
 * lets it go on.
 */
void node_kill(struct node *node);
void node_revive(struct node *node);
void node_freeze(struct node *node);
void node_thaw(struct node *node);

/* The rig's own connection to a node, made anew when it has broken. */
struct raw *node_raw(struct node *node);

/* "master", "slave", "sentinel"; "" when it does not answer. Waits until it is that. */
const char *node_role(struct node *node);
bool node_becomes(struct node *node, const char *role);

/* A replica's link to its master is up, and it has all the data. */
bool node_follows(struct node *node);

/*
 * Cuts nodes, a set of bits 1 << index, off from the others; 0: heals. The rig must have a network.
 */
void rig_part(struct rig *rig, unsigned nodes);

void rig_stop(struct rig *rig);

/* The address to give to a client: seeds in order, beginning with node `first`. */
void rig_url(const struct rig *rig, int first, char *url, size_t size);

/* Sentinel: nodes 0 (the master), 1 and 2 (replicas), 3 to 5 (Sentinels) */

void sentinels_start(struct rig *rig, const struct rig_options *options);

/* The node that a Sentinel names as master; -1: none of them. */
int sentinel_names(struct rig *rig, int sentinel);

/*
 * Waits until all live Sentinels name a new master, and it says that it is one. -1: it took too
 * long. sentinels_promote(): because the old one is dead, frozen or cut off. sentinels_fail_over():
 * by hand, with SENTINEL FAILOVER.
 */
int sentinels_promote(struct rig *rig, int old);
int sentinels_fail_over(struct rig *rig, int old);

/* Prints what each node says of the master, for whoever looks for why none was promoted. */
void sentinels_show(struct rig *rig);

/*
 * Waits until the fail-over is over for the Sentinels, too: the other live servers, on the master's
 * side of the network, follow it, and each Sentinel knows. A master that dies before that is not
 * replaced: the Sentinel that leads the fail-over never completes it, and begins no other. And a
 * Sentinel that takes a replica for the master that it was demotes it, also when another one has just
 * promoted it.
 */
bool sentinels_settle(struct rig *rig, int master);

/*
 * Sentinels are patient, so that none promotes anybody because the machine is busy. They are not
 * while sentinels_promote() waits, or when they were told so.
 */
bool sentinels_be_patient(struct rig *rig, bool patient);

/* Cluster: nodes 0 to 2 (masters of a third of the slots each), 3 to 5 (their replicas) */

void cluster_start(struct rig *rig, const struct rig_options *options);

int cluster_slot(struct rig *rig, const char *key);

/* The owner of a slot as one node sees it, -1: none; as all live nodes see it, -1: they differ. */
int cluster_owner_by(struct rig *rig, int node, int slot);
int cluster_owner(struct rig *rig, int slot);

/* Waits until all live nodes see this owner. */
bool cluster_agrees(struct rig *rig, int slot, int owner);

/*
 * Waits until a slot has another owner, which answers as master and serves. -1: it took too long.
 * cluster_promote(): because the old one is dead, frozen or cut off. cluster_promoted(): because of
 * cluster_fail_over().
 */
int cluster_promote(struct rig *rig, int slot, int old);
int cluster_promoted(struct rig *rig, int slot, int old);

/*
 * Nodes are patient, so that none is taken for dead, and no replica promotes itself, because the
 * machine is busy. They are not while cluster_promote() waits, or when they were told so.
 */
bool cluster_be_patient(struct rig *rig, bool patient);

/* CLUSTER FAILOVER at a replica; how: "", "FORCE" or "TAKEOVER" */
bool cluster_fail_over(struct rig *rig, int replica, const char *how);

/*
 * A slot moves by hand, for a test to stop at each key: begin, move keys one at a time until it
 * returns 0 left (-1: an error), end. cluster_move_all(): all of that. cluster_move_slot(): in one go,
 * as Valkey 9 can; false: the server cannot, or it failed.
 */
bool cluster_move_begin(struct rig *rig, int slot, int from, int to);
int cluster_move_key(struct rig *rig, int slot, int from, int to);
bool cluster_move_end(struct rig *rig, int slot, int from, int to);
bool cluster_move_all(struct rig *rig, int slot, int from, int to);
bool cluster_move_slot(struct rig *rig, int slot, int from, int to);

#endif
