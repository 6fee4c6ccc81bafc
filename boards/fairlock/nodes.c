/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a server which others belong to it: CLUSTER SLOTS, or ROLE. */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* The index of an address; the count if it is not there. */
static size_t find(const struct nodes *nodes, const char *address)
{
  size_t i = 0;
  while (i < nodes->count && strcmp(nodes->address[i], address) != 0)
    i++;
  return i;
}

bool nodes_have(const struct nodes *nodes, const char *address)
{
  return find(nodes, address) < nodes->count;
}

void nodes_take_out(struct nodes *nodes, const char *address)
{
  size_t i = find(nodes, address);
  if (i == nodes->count) return;
  free(nodes->address[i]);
  nodes->address[i] = nodes->address[--nodes->count];
}

void nodes_add(struct nodes *nodes, const char *address)
{
  if (nodes_have(nodes, address)) return;
  char **more = realloc(nodes->address, (nodes->count + 1) * sizeof *more);
  char *copy = strdup(address);
  if (more == NULL || copy == NULL) {
    complain("out of memory");
    exit(EXIT_SYSTEM);
  }
  nodes->address = more;
  nodes->address[nodes->count++] = copy;
}

void nodes_forget(struct nodes *nodes)
{
  for (size_t i = 0; i < nodes->count; i++)
    free(nodes->address[i]);
  free(nodes->address);
  memset(nodes, 0, sizeof *nodes);
}

/* A node in an answer, which has its host first and then its port. */
struct node {
  struct nodes *nodes;
  const char *asked; /* the address of the server that was asked */
  char host[ADDRESS_SIZE];
  unsigned element; /* the index of the node's next element */
};

/* Adds the address of a node. An empty host means that of the server that was asked. */
static void add_node(const struct node *node, int64_t port)
{
  char address[ADDRESS_SIZE];
  const char *host = node->host;
  const char *colon = strrchr(node->asked, ':');
  int size = (int)strlen(host);
  if (size == 0 && colon != NULL) {
    host = node->asked;
    size = (int)(colon - node->asked);
  }
  int length = snprintf(address, sizeof address, "%.*s:%" PRId64, size, host, port);
  if (length > 0 && length < (int)sizeof address) nodes_add(node->nodes, address);
}

/* Takes an element of a node. The port is a number in CLUSTER SLOTS, and a string in ROLE. */
static void take_element(struct node *node, const struct resp_event *event)
{
  bool text = event->type == RESP_BULK_STRING && !event->cut && event->size < sizeof node->host;
  int64_t port = event->integer;
  unsigned element = node->element++;
  if (element == 0) {
    size_t size = text && !(event->size == 1 && event->data[0] == '?') ? event->size : 0;
    if (size > 0) memcpy(node->host, event->data, size);
    node->host[size] = 0;
  }
  if (element != 1) return;
  bool number =
      text ? resp_parse_number(event->data, event->size, &port) : event->type == RESP_INTEGER;
  if (number) add_node(node, port);
}

/*
 * Reads the answer to CLUSTER SLOTS, {{first slot, last slot, {host, port, ...}, replicas...},
 * ...}, in which the first node of each range of slots is the master.
 */
int nodes_of_cluster(struct nodes *nodes, struct query *query, bool replicas)
{
  const struct word words[] = {{"CLUSTER", 7}, {"SLOTS", 5}};
  struct node node = {.nodes = nodes, .asked = query->address};
  struct resp_event event;
  unsigned of_range = 0;
  int status = query_ask(query, words, 2);
  do {
    if (status == FAIRLOCK_OK) status = query_event(query, &event);
    if (status != FAIRLOCK_OK) return status;
    if (query_is_error(&event)) return query_refused(query, &event);
    if (event.depth == 1) of_range = 0;
    if (event.depth == 2 && of_range++ >= 2) node.element = 0;
    if (event.depth == 3 && (of_range == 3 || (replicas && of_range > 3)))
      take_element(&node, &event);
  } while (!event.last);
  return nodes->count > 0 ? FAIRLOCK_OK : FAIRLOCK_UNAVAILABLE;
}

/* Reads the answer to ROLE: {"master", offset, {{host, port, offset}, ...}}. */
int nodes_of_master(struct nodes *nodes, struct query *query)
{
  const struct word words[] = {{"ROLE", 4}};
  struct node node = {.nodes = nodes, .asked = query->address};
  struct resp_event event;
  int status = query_ask(query, words, 1);
  do {
    if (status == FAIRLOCK_OK) status = query_event(query, &event);
    if (status != FAIRLOCK_OK) return status;
    if (query_is_error(&event)) return query_refused(query, &event);
    if (event.depth == 2) node.element = 0;
    if (event.depth == 3) take_element(&node, &event);
  } while (!event.last);
  return FAIRLOCK_OK;
}
