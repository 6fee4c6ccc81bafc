/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster; see rig.h. What a node knows is read from its CLUSTER NODES. */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of CLUSTER NODES. */
struct line {
  int node;
  bool master;
  bool handshake;
  bool linked;
  char of[48];      /* a replica: its master's id */
  const char *text; /* the slots are somewhere in it */
  size_t size;
};

static int node_at(const struct rig *rig, int port)
{
  for (int i = 0; i < NODES; i++) {
    if (rig->node[i].port == port) return i;
  }
  return -1;
}

/* Takes the next line of a text. False: there is none. */
static bool next_line(const struct rig *rig, const char **text, struct line *line)
{
  char address[400], flags[80], link[24];
  line->text = *text;
  line->size = strcspn(*text, "\n");
  if (sscanf(*text, "%*s %399s %79s %47s %*s %*s %*s %23s", address, flags, line->of, link) != 4)
    return false;
  const char *colon = strchr(address, ':');
  line->node = colon == NULL ? -1 : node_at(rig, atoi(colon + 1));
  line->master = strstr(flags, "master") != NULL;
  line->handshake = strstr(flags, "handshake") != NULL;
  line->linked = strcmp(link, "connected") == 0;
  *text = line->text + line->size + (line->text[line->size] == '\n');
  return true;
}

/* "0-5460" or "7" among the words behind the eighth; "[7->-id]" is a slot on the move. */
static bool has_slot(const struct line *line, int slot)
{
  const char *at = line->text, *end = line->text + line->size;
  for (int word = 0; word < 8 && at != NULL && at < end; word++) {
    at = memchr(at, ' ', (size_t)(end - at));
    if (at != NULL) at++;
  }
  while (at != NULL && at < end) {
    char *rest;
    if (*at != '[') {
      long first = strtol(at, &rest, 10), last = first;
      if (*rest == '-') last = strtol(rest + 1, NULL, 10);
      if (first <= slot && slot <= last) return true;
    }
    at = memchr(at, ' ', (size_t)(end - at));
    if (at != NULL) at++;
  }
  return false;
}

static const char *nodes_seen_by(struct node *node)
{
  struct raw *raw = node_raw(node);
  return raw->socket < 0 ? "" : raw_text(raw, "CLUSTER NODES");
}

int cluster_owner_by(struct rig *rig, int node, int slot)
{
  const char *text = nodes_seen_by(&rig->node[node]);
  struct line line;
  while (next_line(rig, &text, &line)) {
    if (line.master && has_slot(&line, slot)) return line.node;
  }
  return -1;
}

int cluster_owner(struct rig *rig, int slot)
{
  int agreed = -1;
  for (int i = 0; i < NODES; i++) {
    if (!node_answers(&rig->node[i])) continue;
    int owner = cluster_owner_by(rig, i, slot);
    if (agreed >= 0 && owner != agreed) return -1;
    agreed = owner;
  }
  return agreed;
}

int cluster_slot(struct rig *rig, const char *key)
{
  return (int)raw_number(node_raw(&rig->node[0]), "CLUSTER KEYSLOT %s", key);
}

bool cluster_be_patient(struct rig *rig, bool patient)
{
  bool good = true;
  for (int i = 0; i < NODES; i++) {
    struct node *node = &rig->node[i];
    if (!node_answers(node)) continue;
    good &= raw_run(node_raw(node), "CONFIG SET cluster-node-timeout %d",
                    patient ? PATIENT_MS : NODE_TIMEOUT_MS);
    good &= raw_run(node_raw(node), "CONFIG SET cluster-replica-no-failover %s",
                    patient ? "yes" : "no");
  }
  return good;
}

static bool serves(struct node *node)
{
  return strstr(raw_text(node_raw(node), "CLUSTER INFO"), "cluster_state:ok") != NULL;
}

/* As seen by nodes that the network does not cut off from most of the others. */
int cluster_promoted(struct rig *rig, int slot, int old)
{
  int64_t until = now_ms() + MOVED_SOON;
  while (now_ms() < until) {
    for (int i = 0; i < NODES; i++) {
      struct node *node = &rig->node[i];
      if (i == old || !node_answers(node) || cluster_owner_by(rig, i, slot) != i) continue;
      if (strcmp(node_role(node), "master") == 0 && serves(node)) return i;
    }
    sleep_ms(20);
  }
  return -1;
}

int cluster_promote(struct rig *rig, int slot, int old)
{
  CHECK(cluster_be_patient(rig, false));
  int master = cluster_promoted(rig, slot, old);
  CHECK(cluster_be_patient(rig, true));
  return master;
}

bool cluster_fail_over(struct rig *rig, int replica, const char *how)
{
  struct raw *raw = node_raw(&rig->node[replica]);
  return *how == 0 ? raw_run(raw, "CLUSTER FAILOVER") : raw_run(raw, "CLUSTER FAILOVER %s", how);
}

/* Slots on the move */

bool cluster_move_begin(struct rig *rig, int slot, int from, int to)
{
  return raw_run(node_raw(&rig->node[to]), "CLUSTER SETSLOT %d IMPORTING %s", slot,
                 rig->node[from].id) &&
         raw_run(node_raw(&rig->node[from]), "CLUSTER SETSLOT %d MIGRATING %s", slot,
                 rig->node[to].id);
}

int cluster_move_key(struct rig *rig, int slot, int from, int to)
{
  struct raw *raw = node_raw(&rig->node[from]);
  const char *password = rig->options.password;
  char key[512];
  if (raw_number(raw, "CLUSTER GETKEYSINSLOT %d 1", slot) != 1) return -1;
  (void)snprintf(key, sizeof key, "%s", raw->element[1].text);
  int port = rig->node[to].port;
  bool moved = password == NULL
                   ? raw_run(raw, "MIGRATE 127.0.0.1 %d %s 0 5000", port, key)
                   : raw_run(raw, "MIGRATE 127.0.0.1 %d %s 0 5000 AUTH %s", port, key, password);
  return moved ? (int)raw_number(raw, "CLUSTER COUNTKEYSINSLOT %d", slot) : -1;
}

bool cluster_agrees(struct rig *rig, int slot, int owner)
{
  int64_t until = now_ms() + MOVED_SOON;
  while (cluster_owner(rig, slot) != owner) {
    if (now_ms() > until) return false;
    sleep_ms(10);
  }
  return true;
}

/* The new owner first, so that the slot always has one. */
bool cluster_move_end(struct rig *rig, int slot, int from, int to)
{
  const char *id = rig->node[to].id;
  return raw_run(node_raw(&rig->node[to]), "CLUSTER SETSLOT %d NODE %s", slot, id) &&
         raw_run(node_raw(&rig->node[from]), "CLUSTER SETSLOT %d NODE %s", slot, id) &&
         cluster_agrees(rig, slot, to);
}

/* Keys come and go meanwhile. */
bool cluster_move_all(struct rig *rig, int slot, int from, int to)
{
  int64_t until = now_ms() + MOVED_SOON;
  int left = -1;
  if (!cluster_move_begin(rig, slot, from, to)) return false;
  while (left != 0 && now_ms() < until) {
    bool any = raw_number(node_raw(&rig->node[from]), "CLUSTER COUNTKEYSINSLOT %d", slot) > 0;
    left = any ? cluster_move_key(rig, slot, from, to) : 0;
  }
  return left == 0 && cluster_move_end(rig, slot, from, to);
}

bool cluster_move_slot(struct rig *rig, int slot, int from, int to)
{
  return raw_run(node_raw(&rig->node[from]), "CLUSTER MIGRATESLOTS SLOTSRANGE %d %d NODE %s", slot,
                 slot, rig->node[to].id) &&
         cluster_agrees(rig, slot, to);
}

/* The start */

/* By the commands of any version: a command of the harness has up to 64 words. */
bool node_take_slots(struct node *node, int first, int last)
{
  struct raw *raw = node_raw(node);
  if (server_version() >= 700) return raw_run(raw, "CLUSTER ADDSLOTSRANGE %d %d", first, last);
  for (int slot = first; slot <= last; slot++)
    raw_send(raw, "CLUSTER ADDSLOTS %d", slot);
  bool good = true;
  for (int slot = first; slot <= last; slot++)
    good &= raw_reply(raw) && raw->element[0].type != '-';
  return good;
}

static bool all_met(struct rig *rig)
{
  for (int i = 0; i < NODES; i++) {
    const char *text = nodes_seen_by(&rig->node[i]);
    struct line line;
    int met = 0;
    while (next_line(rig, &text, &line))
      met += !line.handshake && line.node >= 0;
    if (met != NODES) return false;
  }
  return true;
}

/* Everybody knows every master, with its slots, and every replica. */
static bool complete(struct rig *rig)
{
  for (int i = 0; i < NODES; i++) {
    struct node *node = &rig->node[i];
    const char *text = nodes_seen_by(node);
    struct line line;
    int replicas = 0;
    while (next_line(rig, &text, &line))
      replicas += line.linked && !line.master;
    if (replicas != 3 || !serves(node)) return false;
  }
  return cluster_owner(rig, 0) == 0 && cluster_owner(rig, SLOTS / 2) == 1 &&
         cluster_owner(rig, SLOTS - 1) == 2;
}

static void wait_for(struct rig *rig, bool (*what)(struct rig *rig), const char *why)
{
  int64_t until = now_ms() + MOVED_SOON;
  while (!what(rig)) {
    if (now_ms() > until) give_up(why);
    sleep_ms(20);
  }
}

static void follow(struct node *replica, const struct node *master)
{
  int64_t until = now_ms() + MOVED_SOON;
  while (!raw_run(node_raw(replica), "CLUSTER REPLICATE %s", master->id)) {
    if (now_ms() > until) give_up("a node of the cluster does not become a replica");
    sleep_ms(20);
  }
}

void cluster_start(struct rig *rig, const struct rig_options *options)
{
  rig_start(rig, options, true);
  for (int i = 0; i < NODES; i++) {
    struct node *node = &rig->node[i];
    node_start(rig, i, false);
    (void)snprintf(node->id, sizeof node->id, "%s", raw_text(node_raw(node), "CLUSTER MYID"));
    if (!raw_run(node_raw(node), "CLUSTER SET-CONFIG-EPOCH %d", i + 1)) give_up("no epoch");
    if (i < 3 && !node_take_slots(node, SLOTS * i / 3, SLOTS * (i + 1) / 3 - 1))
      give_up("no slots");
    if (i > 0 && !raw_run(node_raw(&rig->node[0]), "CLUSTER MEET 127.0.0.1 %d %d", node->port,
                          node->bus_port))
      give_up("the nodes of the cluster do not meet");
  }
  wait_for(rig, all_met, "the nodes of the cluster do not know each other");
  for (int i = 3; i < NODES; i++)
    follow(&rig->node[i], &rig->node[i - 3]);
  wait_for(rig, complete, "the cluster does not become complete");
  for (int i = 3; i < NODES; i++) {
    if (!node_follows(&rig->node[i])) give_up("a replica does not follow");
  }
  CHECK(cluster_be_patient(rig, true));
}
