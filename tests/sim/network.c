/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections. Each direction is a stream: what is sent later never arrives earlier, but data may
 * arrive in pieces, late, or after some moment not at all. When one end closes, an empty packet
 * after the data tells the other.
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>

/* How long the server keeps a connection on which nothing arrives. */
#define KEEPALIVE (90 * SECOND)

struct packet {
  struct link *link;
  struct packet *previous, *next;
  bool up;
  bool end;       /* of the stream */
  bool gone;      /* says that the slots are gone */
  bool postponed; /* it has come, and the client sleeps */
  uint64_t step;  /* in which it was sent */
  uint64_t order; /* of its event */
  size_t size;
  char data[];
};

static void packet_free(struct world *world, struct packet *packet)
{
  if (packet->previous != NULL) packet->previous->next = packet->next;
  else world->packets = packet->next;
  if (packet->next != NULL) packet->next->previous = packet->previous;
  free(packet);
}

static void server_gone(struct link *link)
{
  if (link->server == NULL) return;
  redis_disconnect(link->server);
  link->server = NULL;
}

static void arrive_up(struct link *link, const struct packet *packet)
{
  if (link->server == NULL || link->drop_up) return;
  link->sent_step = packet->step;
  if (packet->end) server_gone(link);
  else if (!redis_receive(link->server, packet->data, packet->size)) link_server_close(link);
}

static void arrive_down(struct link *link, const struct packet *packet)
{
  if (!link->open || (link->drop_down && !packet->end)) return;
  if (packet->gone && --link->gone_pieces == 0) link->gone_told = link->world->step;
  if (packet->end) {
    link->open = false;
    link->user->broke(link->owner, link);
  } else {
    link->user->arrived(link->owner, link, packet->data, packet->size);
  }
}

static void arrive(void *object, uint32_t stamp)
{
  struct packet *packet = object;
  struct link *link = packet->link;
  struct world *world = link->world;
  int64_t awake = packet->up   ? link->up_late
                  : link->open ? link->user->asleep_until(link->owner)
                               : 0;
  if (awake > world->now) {
    if (!packet->up && !packet->postponed) link->waiting++;
    packet->postponed = true;
    events_put(&world->events, (struct event){awake, packet->order, arrive, packet, stamp});
    return;
  }
  if (!packet->up && packet->postponed) link->waiting--;
  if (packet->up) arrive_up(link, packet);
  else arrive_down(link, packet);
  packet_free(world, packet);
}

static void send_piece(struct link *link, bool up, const void *data, size_t size, bool end)
{
  struct world *world = link->world;
  struct packet *packet = malloc(sizeof *packet + size);
  if (packet == NULL) abort();
  *packet = (struct packet){.link = link,
                            .next = world->packets,
                            .up = up,
                            .end = end,
                            .gone = link->ends_slots && !up,
                            .step = world->step,
                            .size = size};
  if (packet->gone) link->gone_pieces++;
  if (size > 0) memcpy(packet->data, data, size);
  if (world->packets != NULL) world->packets->previous = packet;
  world->packets = packet;
  int64_t at = world->now + link->latency + random_below(&world->random, link->latency / 4 + 1);
  int64_t *free_at = up ? &link->up_free : &link->down_free;
  if (at < *free_at) at = *free_at;
  *free_at = at;
  packet->order = events_add(&world->events, at, arrive, packet, 0);
}

/* Until then, what the client sends may take longer. */
static void hold_up(struct link *link, int64_t until)
{
  if (link->up_held < until) link->up_held = until;
}

/* In one piece, or in several that arrive one after the other. */
static void send_all(struct link *link, bool up, const void *data, size_t size)
{
  struct world *world = link->world;
  const char *bytes = data;
  while (size > 1 && random_chance(&world->random, world->profile.split)) {
    size_t piece = 1 + (size_t)random_below(&world->random, (int64_t)size - 1);
    send_piece(link, up, bytes, piece, false);
    int64_t *free_at = up ? &link->up_free : &link->down_free;
    *free_at += random_around(&world->random, link->latency);
    if (up) hold_up(link, *free_at + link->latency * 2);
    bytes += piece;
    size -= piece;
  }
  send_piece(link, up, bytes, size, false);
}

static void accept_link(void *object, uint32_t stamp)
{
  struct link *link = object;
  struct world *world = link->world;
  if (stamp == 0) {
    if (link->lost_up || link->lost_down) return;
    if (link->node->up) link->server = redis_connect(link->node->redis, link);
    world_later(world, link->latency, accept_link, link, 1);
    return;
  }
  int64_t awake = link->user->asleep_until(link->owner);
  if (awake > world->now) {
    events_add(&world->events, awake, accept_link, link, stamp);
  } else if (link->server == NULL) {
    if (!link->open) return;
    link->open = false;
    link->user->broke(link->owner, link);
  } else if (link->open && !link->lost_down) {
    link->opened = world->now;
    link->user->opened(link->owner, link);
  }
}

struct link *link_open(struct world *world, const struct link_user *user, void *owner,
                       int64_t latency, struct node *node)
{
  struct link *link = calloc(1, sizeof *link);
  if (link == NULL) abort();
  link->world = world;
  link->node = node;
  link->user = user;
  link->owner = owner;
  link->open = true;
  link->latency = latency;
  link->next = world->links;
  world->links = link;
  world->counters.connects++;
  world_later(world, latency, accept_link, link, 0);
  return link;
}

void link_send(struct link *link, const void *data, size_t size)
{
  struct world *world = link->world;
  if (!link->open || link->lost_up) return;
  send_all(link, true, data, size);
  if (!world->cut_next) return;
  world->cut_next = false;
  link_cut(link);
}

static void keepalive(void *object, uint32_t stamp)
{
  struct link *link = object;
  (void)stamp;
  link_server_close(link);
}

void link_close(struct link *link)
{
  struct world *world = link->world;
  if (!link->open) return;
  link->open = false;
  if (link->lost_up) world_later(world, KEEPALIVE, keepalive, link, 0);
  else send_piece(link, true, NULL, 0, true);
}

void link_server_close(struct link *link)
{
  if (link->server == NULL) return;
  server_gone(link);
  if (!link->lost_down) send_piece(link, false, NULL, 0, true);
}

/* The connection breaks when a part of the reply is sent. */
static void break_off(struct link *link, const void *data, size_t size)
{
  struct world *world = link->world;
  send_piece(link, false, data, 1 + (size_t)random_below(&world->random, (int64_t)size - 1), false);
  send_piece(link, false, NULL, 0, true);
  link->lost_up = true;
  link->lost_down = true;
  world_later(world, 0, keepalive, link, 0); /* the server is at work for it */
}

void link_reply(struct link *link, const void *data, size_t size)
{
  struct world *world = link->world;
  link->told = world->step;
  if (link->lost_down) return;
  if (!world->cut_reply || size < 2) {
    send_all(link, false, data, size);
    return;
  }
  world->cut_reply = false;
  break_off(link, data, size);
}

/*
 * The client learns of it soon, with or without the replies under way. What it has sent before is
 * lost, or arrives in time, or seconds later, when the client may already have a new connection.
 */
void link_cut(struct link *link)
{
  struct world *world = link->world;
  if (!link->open) return;
  int64_t kind = random_below(&world->random, 4);
  if (kind == 0) link->drop_up = true;
  if (kind >= 2) link->up_late = world->now + random_around(&world->random, 1500 * MS);
  if (link->drop_up) server_gone(link);
  else send_piece(link, true, NULL, 0, true);
  link->drop_down |= random_chance(&world->random, 700);
  send_piece(link, false, NULL, 0, true);
  link->lost_up = true;
  link->lost_down = true;
}

void link_silence(struct link *link, bool up, bool down)
{
  link->lost_up |= up;
  link->lost_down |= down;
  if (up) link->drop_up |= random_chance(&link->world->random, 500);
  world_later(link->world, KEEPALIVE, keepalive, link, 0);
}

void link_stall(struct link *link, int64_t time)
{
  int64_t until = link->world->now + time;
  bool up = random_chance(&link->world->random, 700);
  bool down = !up || random_chance(&link->world->random, 500);
  if (up) hold_up(link, until);
  if (up && link->up_free < until) link->up_free = until;
  if (down && link->down_free < until) link->down_free = until;
}

void link_lose(struct link *link)
{
  link->lost_up = true;
  link->lost_down = true;
  server_gone(link);
}

void link_end_slots(struct link *link)
{
  link->gone = true;
  link->ends_slots = true;
  redis_end_shards(link->server);
  link->ends_slots = false;
}

void links_free(struct world *world)
{
  while (world->packets != NULL)
    packet_free(world, world->packets);
  while (world->links != NULL) {
    struct link *link = world->links;
    world->links = link->next;
    server_gone(link);
    free(link);
  }
}
