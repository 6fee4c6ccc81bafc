/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends requests for which the library has no function, such as SCAN for the keys. It uses the
 * library's transports, so TLS, addresses and passwords work as everywhere else. It blocks, and
 * gives up a connection on which nothing arrives for a while.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "query.h"

#include <poll.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fairlock.h"
#include "text.h"

#define CONNECT_MS 5000U
#define ANSWER_MS  10000U
#define STEP_MS    200U

static struct word word(const char *text)
{
  return (struct word){text, strlen(text)};
}

/* True if a step that began then has taken too long, or all steps have. */
static bool is_late(const struct query *query, uint32_t began, uint32_t most_ms)
{
  uint32_t now = port_clock_ms();
  return now - began > most_ms ||
         (query->budget_ms > 0 && now - query->opened_at > query->budget_ms);
}

static int send_all(struct query *query)
{
  const struct port_transport *below = query->session->below;
  uint32_t began = port_clock_ms();
  size_t sent = 0;
  while (sent < query->unsent) {
    int took = below->send(below->context, query->send + sent, query->unsent - sent);
    if (took > 0) sent += (size_t)took;
    else if (took != PORT_WOULD_BLOCK || is_late(query, began, ANSWER_MS))
      return FAIRLOCK_UNREACHABLE;
    else (void)poll(NULL, 0, 1);
  }
  query->unsent = 0;
  return FAIRLOCK_OK;
}

int query_ask(struct query *query, const struct word *words, int count)
{
  for (;;) {
    struct resp_writer writer;
    size_t room = sizeof query->send - query->unsent;
    resp_writer_init(&writer, query->send + query->unsent, room, 0);
    resp_write_header(&writer, RESP_ARRAY, count);
    for (int i = 0; i < count; i++)
      resp_write_bulk(&writer, words[i].data, words[i].size);
    if (writer.total <= room) {
      query->unsent += writer.total;
      return FAIRLOCK_OK;
    }
    if (query->unsent == 0) return FAIRLOCK_TOO_LONG;
    int status = send_all(query);
    if (status != FAIRLOCK_OK) return status;
  }
}

/*
 * Moves the bytes that were not read yet to the front of the buffer, and receives more after them.
 */
static int receive(struct query *query)
{
  const struct port_transport *below = query->session->below;
  uint32_t began = port_clock_ms();
  memmove(query->received, query->received + query->start, query->end - query->start);
  query->end -= query->start;
  query->start = 0;
  for (;;) {
    int got = below->recv(below->context, query->received + query->end,
                          sizeof query->received - query->end, STEP_MS);
    if (got > 0) {
      query->end += (size_t)got;
      return FAIRLOCK_OK;
    }
    if (got == PORT_UNTRUSTED) return FAIRLOCK_UNTRUSTED;
    if (got != PORT_WOULD_BLOCK || is_late(query, began, ANSWER_MS)) return FAIRLOCK_UNREACHABLE;
  }
}

int query_event(struct query *query, struct resp_event *event)
{
  int status = query->unsent > 0 ? send_all(query) : FAIRLOCK_OK;
  while (status == FAIRLOCK_OK) {
    size_t used;
    int got = resp_decode(&query->decoder, query->received + query->start,
                          query->end - query->start, &used, event);
    query->start += used;
    if (got == RESP_EVENT) return FAIRLOCK_OK;
    if (got < 0) return FAIRLOCK_PROTOCOL;
    status = receive(query);
  }
  return status;
}

void query_copy(char *to, size_t room, const struct resp_event *event)
{
  bool text = event->type == RESP_BULK_STRING && event->data != NULL && !event->cut;
  snprintf(to, room, "%.*s", text ? (int)event->size : 0, text ? (const char *)event->data : "");
}

size_t beside_key(char key[BESIDE_KEY_SIZE], const char *prefix, const char *name, size_t size)
{
  bool plain = memchr(name, '{', size) == NULL;
  size_t used = (size_t)snprintf(key, BESIDE_KEY_SIZE, "%s%s", prefix, plain ? "{" : "");
  memcpy(key + used, name, size);
  used += size;
  if (plain) key[used++] = '}';
  return used;
}

bool query_is_error(const struct resp_event *event)
{
  return event->type == RESP_SIMPLE_ERROR || event->type == RESP_BULK_ERROR;
}

static bool says(const struct resp_event *event, const char *text)
{
  return event->size >= strlen(text) && memcmp(event->data, text, strlen(text)) == 0;
}

int query_refused(struct query *query, const struct resp_event *event)
{
  static const char *const denied[] = {"NOPERM", "NOAUTH", "WRONGPASS"};
  static const char *const passing[] = {"LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN",
                                        "ERR max number of clients"};
  size_t size = event->data != NULL ? event->size : 0;
  if (size >= sizeof query->error) size = sizeof query->error - 1;
  if (size > 0) memcpy(query->error, event->data, size);
  query->error[size] = 0;
  for (size_t i = 0; size > 0 && i < sizeof denied / sizeof denied[0]; i++)
    if (says(event, denied[i])) return FAIRLOCK_DENIED;
  for (size_t i = 0; size > 0 && i < sizeof passing / sizeof passing[0]; i++)
    if (says(event, passing[i])) return FAIRLOCK_UNAVAILABLE;
  return FAIRLOCK_REFUSED;
}

int query_failed(struct query *query, const struct session *first, int status, bool beside)
{
  if (status == FAIRLOCK_UNREACHABLE || status == FAIRLOCK_UNTRUSTED)
    session_reason(query->session, query->connected, query->error);
  return (beside ? session_other_failed : session_failed)(first, status, query->address,
                                                          query->error);
}

int query_time(struct query *query, int64_t *server_ms)
{
  struct resp_event event;
  int64_t numbers[2] = {0};
  unsigned count = 0;
  do {
    int status = query_event(query, &event);
    if (status != FAIRLOCK_OK) return status;
    if (query_is_error(&event)) return query_refused(query, &event);
    if (event.depth == 0) continue;
    if (count == 2 || !resp_parse_number(event.data, event.size, &numbers[count++]))
      return FAIRLOCK_PROTOCOL;
  } while (!event.last);
  if (count != 2 || numbers[0] < 0 || numbers[0] > UINT32_MAX || numbers[1] < 0 ||
      numbers[1] >= 1000000)
    return FAIRLOCK_PROTOCOL;
  *server_ms = numbers[0] * 1000 + numbers[1] / 1000;
  return FAIRLOCK_OK;
}

/* Reads one answer of the greeting. HELLO's map says whether the server is a node of a cluster. */
static int take_greeting(struct query *query)
{
  struct resp_event event;
  bool mode = false;
  do {
    int status = query_event(query, &event);
    if (status != FAIRLOCK_OK) return status;
    if (query_is_error(&event)) return query_refused(query, &event);
    if (event.depth != 1 || event.type != RESP_BULK_STRING || event.cut) {
      mode = false;
      continue;
    }
    if (mode && event.size == 7 && says(&event, "cluster")) query->cluster = true;
    mode = event.size == 4 && says(&event, "mode");
  } while (!event.last);
  return FAIRLOCK_OK;
}

static int greet(struct query *query)
{
  const struct fairlock_config *config = &query->session->config;
  const char *user = config->user != NULL ? config->user : "default";
  char number[16];
  struct word hello[] = {word("HELLO"), word("3"), word("AUTH"), word(user), {NULL, 0}};
  int words = 2;
  if (config->password != NULL) {
    hello[4] = word(config->password);
    words = 5;
  }
  int status = query_ask(query, hello, words);
  if (status == FAIRLOCK_OK) status = take_greeting(query);
  if (status != FAIRLOCK_OK || config->database == 0) return status;
  snprintf(number, sizeof number, "%lu", (unsigned long)config->database);
  struct word select[] = {word("SELECT"), word(number)};
  status = query_ask(query, select, 2);
  return status == FAIRLOCK_OK ? take_greeting(query) : status;
}

static int connect_to(struct query *query)
{
  const struct port_transport *below = query->session->below;
  uint32_t began = port_clock_ms();
  if (*query->address != 0 && below->aim != NULL && !below->aim(below->context, query->address))
    return FAIRLOCK_UNREACHABLE;
  for (;;) {
    int status = below->connect(below->context, STEP_MS);
    if (status == PORT_OK) return FAIRLOCK_OK;
    if (status == PORT_UNTRUSTED) return FAIRLOCK_UNTRUSTED;
    bool goes_on = status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT;
    if (!goes_on || is_late(query, began, CONNECT_MS)) return FAIRLOCK_UNREACHABLE;
  }
}

int query_open(struct query *query, const char *address)
{
  snprintf(query->address, sizeof query->address, "%s", address);
  resp_decoder_init(&query->decoder, QUERY_TEXT_MAX);
  query->opened_at = port_clock_ms();
  query->start = 0;
  query->end = 0;
  query->unsent = 0;
  query->error[0] = 0;
  query->cluster = false;
  int status = connect_to(query);
  query->connected = status == FAIRLOCK_OK;
  if (status == FAIRLOCK_OK) status = greet(query);
  if (status != FAIRLOCK_OK) query_close(query);
  return status;
}

void query_close(struct query *query)
{
  const struct port_transport *below = query->session->below;
  below->close(below->context);
}

/* The servers that belong to the server of a query: CLUSTER SLOTS, or ROLE. */

void nodes_add(struct nodes *nodes, const char *address)
{
  for (size_t i = 0; i < nodes->count; i++)
    if (strcmp(nodes->address[i], address) == 0) return;
  nodes->address = with_room(nodes->address, nodes->count, &nodes->room, sizeof *nodes->address);
  nodes->address[nodes->count++] = copied(address, strlen(address));
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
int nodes_of_cluster(struct nodes *nodes, struct query *query, unsigned kinds)
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
    unsigned kind = of_range == 3 ? MASTERS : REPLICAS;
    if (event.depth == 3 && (kinds & kind) != 0) take_element(&node, &event);
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
