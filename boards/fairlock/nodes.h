/* SPDX-License-Identifier: Apache-2.0 */
/* The servers that belong to the server of a query. */
#ifndef NODES_H
#define NODES_H

#include "query.h"

/* Addresses, allocated, without duplicates. Has to be initialised to {0}. */
struct nodes {
  char **address;
  size_t count;
};

void nodes_add(struct nodes *nodes, const char *address);
bool nodes_have(const struct nodes *nodes, const char *address);

/* Takes an address out, if it is there. The order of the others may change. */
void nodes_take_out(struct nodes *nodes, const char *address);

/* Frees the addresses, after which there are none. */
void nodes_forget(struct nodes *nodes);

/*
 * Adds the masters of the cluster to which the query's server belongs. replicas: adds their
 * replicas, too. Returns a status; FAIRLOCK_OK: there is at least one.
 */
int nodes_of_cluster(struct nodes *nodes, struct query *query, bool replicas);

/* Adds the replicas of the query's server, which is a master. Returns a status. */
int nodes_of_master(struct nodes *nodes, struct query *query);

#endif
