/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network that can be partitioned: a process that relays bytes between the nodes of a rig. Each
 * node has two public ports, one for commands and one for the cluster's bus; what connects to them
 * is relayed to where the node listens. The network knows who connects by the source address: node
 * i connects from 127.0.0.(10 + i), anything else is a client.
 *
 * In a partition, a connection between nodes on different sides stays open but carries nothing, as
 * with a pulled cable; so does a new one. Clients reach both sides. When the network is healed,
 * connections that were cut off are closed. tests/support/proxy does not fit: it takes RESP values
 * apart, and neither a replication stream nor the bus is made of them.
 */
#ifndef NET_H
#define NET_H

#include "harness.h"

#define NET_NODES 6

enum net_kind { NET_COMMANDS, NET_BUS, NET_KINDS };

struct net {
  pid_t pid;
  int port[NET_NODES][NET_KINDS]; /* the public ones */
  struct net_control *control;
};

/* The address that node i is to connect from. */
void net_source(int node, char text[24]);

void net_start(struct net *net);
void net_stop(struct net *net);

/* Tells where a node listens. */
void net_serve(struct net *net, int node, enum net_kind kind, int port);

/* Cuts a set of nodes, bits 1 << node, off from the others; 0: heals. Waits until it is done. */
void net_part(struct net *net, unsigned nodes);

#endif
