/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a small Redis knows when there is more than one: a master whose replica acknowledges, a
 * replica, a node of a cluster, a Sentinel.
 *
 * The data go from one to the other outside of it (failover.c). Here a WAIT waits until that has
 * happened, and a client at the wrong server is told so, in the words of the real servers.
 */
#include "fairlock_follow.h"
#include "redis_internal.h"

#include "engine.h"

#include <stdio.h>
#include <string.h>

void redis_set_role(struct redis *redis, enum redis_role role, bool cluster)
{
  redis->role = role;
  redis->cluster = cluster;
}

void redis_set_master(struct redis *redis, const char *host)
{
  redis->master = host;
}

/* WAIT */

void role_forget(struct redis_client *client)
{
  struct redis_client **link = &client->redis->blocked;
  if (!client->blocked) return;
  while (*link != client)
    link = &(*link)->next_blocked;
  *link = client->next_blocked;
  client->blocked = false;
}

static void end_wait(struct redis_client *client, const struct reply *reply)
{
  role_forget(client);
  send_reply(client, reply);
  (void)redis_receive(client, "", 0); /* what stood behind it */
}

static void end_those(struct redis *redis, bool (*ends)(const struct redis_client *client))
{
  struct redis_client *next;
  for (struct redis_client *client = redis->blocked; client != NULL; client = next) {
    struct value value = {.kind = VALUE_INTEGER, .integer = client->wrote <= redis->acknowledged};
    struct reply reply = {.values = &value, .used = 1};
    next = client->next_blocked;
    if (ends(client)) end_wait(client, &reply);
  }
}

static bool acknowledged(const struct redis_client *client)
{
  return client->wrote <= client->redis->acknowledged;
}

static bool timed_out(const struct redis_client *client)
{
  const struct redis_host *host = &client->redis->host;
  return client->until <= host->micros(host->context);
}

void redis_acknowledge(struct redis *redis, uint64_t offset)
{
  redis->acknowledged = offset;
  end_those(redis, acknowledged);
}

void redis_end_waits(struct redis *redis)
{
  end_those(redis, timed_out);
}

void redis_unblock(struct redis_client *client, const char *error)
{
  struct value value = {.kind = VALUE_ERROR, .text = text_of(error)};
  const struct reply reply = {.values = &value, .used = 1};
  if (client->blocked) end_wait(client, &reply);
}

/* WAIT replicas ms. There is one replica, so a WAIT for more never succeeds. */
static void wait_for(struct redis_client *client, const struct text *argv, int argc,
                     struct reply *reply)
{
  struct redis *redis = client->redis;
  int64_t replicas;
  int64_t ms;
  if (argc != 3 || !parse_integer(argv[1], &replicas) || !parse_integer(argv[2], &ms) || ms <= 0) {
    reply_error(reply, "ERR value is not an integer or out of range");
  } else if (redis->role == REDIS_REPLICA) {
    reply_error(reply, "ERR WAIT cannot be used with replica instances.");
  } else if (replicas < 2 && client->wrote <= redis->acknowledged) {
    reply_add(reply, VALUE_INTEGER, 1);
  } else {
    client->blocked = true;
    client->until = redis->micros + ms * 1000;
    client->next_blocked = redis->blocked;
    redis->blocked = client;
    redis->host.blocked(redis->host.context, ms);
  }
}

/* The wrong server */

static void send_elsewhere(const struct redis *redis, struct text key, struct reply *reply)
{
  static char text[64];
  snprintf(text, sizeof text, "MOVED %u %s:1", fairlock_slot(key.data, key.size), redis->master);
  reply_error(reply, text);
}

bool role_execute(struct redis_client *client, const struct text *argv, int argc,
                  struct reply *reply)
{
  const struct redis *redis = client->redis;
  bool evaluates = text_is(argv[0], "EVALSHA") || text_is(argv[0], "EVAL");
  bool moved = redis->cluster && redis->role == REDIS_REPLICA;
  if (text_is(argv[0], "WAIT") && redis->host.blocked != NULL) {
    wait_for(client, argv, argc, reply);
  } else if (evaluates && moved && argc > 3) {
    send_elsewhere(redis, argv[3], reply);
  } else if (text_is(argv[0], "EXISTS") && moved && argc > 1) {
    send_elsewhere(redis, argv[1], reply);
  } else if (text_is(argv[0], "ROLE")) {
    /* the two servers replicate each other from the beginning */
    reply_add(reply, VALUE_ARRAY, 3);
    reply_text(reply, VALUE_TEXT, text_of(redis->role == REDIS_REPLICA ? "slave" : "master"));
    reply_add(reply, VALUE_INTEGER, 1);
    reply_add(reply, VALUE_ARRAY, 0);
  } else if (redis->role == REDIS_SENTINEL && text_is(argv[0], "SENTINEL")) {
    reply_add(reply, VALUE_ARRAY, 2);
    reply_text(reply, VALUE_TEXT, text_of(redis->master));
    reply_text(reply, VALUE_TEXT, text_of("1"));
  } else {
    return false;
  }
  return true;
}
