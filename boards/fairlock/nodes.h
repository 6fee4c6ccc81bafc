/* The servers that belong to the one that a query is connected to. */
#ifndef NODES_H
#define NODES_H

#include "query.h"

/* Addresses, allocated, each once. Begins as {0}. */
struct nodes {
  char **address;
  size_t count;
};

void nodes_add(struct nodes *nodes, const char *address);

/* Empties it. */
void nodes_forget(struct nodes *nodes);

/*
 * Adds the masters of the cluster that the query's server is a node of, and with replicas all that
 * it knows. Returns a status; FAIRLOCK_OK: there is one at least.
 */
int nodes_of_cluster(struct nodes *nodes, struct query *query, bool replicas);

/* Adds the replicas of the query's server, a master. Returns a status. */
int nodes_of_master(struct nodes *nodes, struct query *query);

#endif
