/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that clients have the small Redis track (CLIENT TRACKING ON OPTIN): those that are read right
 * after CLIENT CACHING YES. A client is told of the next change of each, once.
 */
#include "redis_internal.h"

#include <stdlib.h>

/* Who is told of a key. */
struct trackers {
  struct redis_client **clients;
  uint32_t used, size;
};

/* key: NULL for all keys. */
static void invalidate(struct redis_client *client, const struct text *key)
{
  uint8_t buffer[8192];
  struct resp_writer writer;
  resp_writer_init(&writer, buffer, sizeof buffer, 0);
  resp_write_header(&writer, RESP_PUSH, 2);
  resp_write_bulk(&writer, "invalidate", 10);
  if (key == NULL) {
    resp_write_raw(&writer, "_\r\n", 3);
  } else {
    resp_write_header(&writer, RESP_ARRAY, 1);
    resp_write_bulk(&writer, key->data, key->size);
  }
  if (writer.total > sizeof buffer) abort();
  send_push(client, buffer, writer.used);
}

static void forget_key(struct redis *redis, struct text key)
{
  struct trackers *trackers = dict_find(&redis->tracked, key)->object;
  free(trackers->clients);
  free(trackers);
  dict_remove(&redis->tracked, key);
}

void tracking_read(struct redis_client *client, struct text key)
{
  bool fresh;
  (void)dict_add(&client->tracked, key, &fresh);
  if (!fresh) return;
  struct entry *entry = dict_add(&client->redis->tracked, key, &fresh);
  if (fresh) entry->object = calloc(1, sizeof(struct trackers));
  struct trackers *trackers = entry->object;
  if (trackers == NULL) abort();
  if (trackers->used == trackers->size) {
    trackers->size = trackers->size == 0 ? 1 : trackers->size * 2;
    trackers->clients = realloc(trackers->clients, trackers->size * sizeof(struct redis_client *));
    if (trackers->clients == NULL) abort();
  }
  trackers->clients[trackers->used++] = client;
}

void redis_changed(struct redis *redis, struct text key)
{
  const struct entry *entry = dict_find(&redis->tracked, key);
  if (entry == NULL) return;
  const struct trackers *trackers = entry->object;
  for (uint32_t i = 0; i < trackers->used; i++) {
    dict_remove(&trackers->clients[i]->tracked, key);
    invalidate(trackers->clients[i], &key);
  }
  forget_key(redis, key);
}

void tracking_free(struct redis *redis)
{
  for (uint32_t i = 0; i < redis->tracked.size; i++) {
    struct trackers *trackers = redis->tracked.slots[i].object;
    if (redis->tracked.slots[i].name == NULL) continue;
    free(trackers->clients);
    free(trackers);
  }
  dict_free(&redis->tracked);
}

void tracking_flush(struct redis *redis)
{
  struct redis_client *client = redis->tracking;
  tracking_free(redis);
  for (; client != NULL; client = client->next_tracking) {
    dict_free(&client->tracked);
    invalidate(client, NULL);
  }
}

void tracking_forget(struct redis_client *client)
{
  struct redis *redis = client->redis;
  struct redis_client **link = &redis->tracking;
  if (!client->tracks) return;
  while (*link != client)
    link = &(*link)->next_tracking;
  *link = client->next_tracking;
  for (uint32_t i = 0; i < client->tracked.size; i++) {
    struct text key = {client->tracked.slots[i].name, client->tracked.slots[i].size};
    if (key.data == NULL) continue;
    struct trackers *trackers = dict_find(&redis->tracked, key)->object;
    uint32_t at = 0;
    while (trackers->clients[at] != client)
      at++;
    trackers->clients[at] = trackers->clients[--trackers->used];
    if (trackers->used == 0) forget_key(redis, key);
  }
  dict_free(&client->tracked);
}

bool tracking_execute(struct redis_client *client, const struct text *argv, int argc,
                      struct reply *reply)
{
  struct redis *redis = client->redis;
  if (argc < 3 || !text_is(argv[0], "CLIENT")) return false;
  bool on = argc == 4 && text_is(argv[1], "TRACKING") && text_is(argv[2], "ON") &&
            text_is(argv[3], "OPTIN");
  if (!on && !text_is(argv[1], "CACHING")) return false;
  if (!on && !client->tracks) {
    reply_error(reply, "ERR CLIENT CACHING can be called only when the client is in tracking mode "
                       "with OPTIN or OPTOUT mode enabled");
    return true;
  }
  if (on && !client->tracks) {
    client->tracks = true;
    client->next_tracking = redis->tracking;
    redis->tracking = client;
  }
  client->caches = !on;
  reply_text(reply, VALUE_STATUS, text_of("OK"));
  return true;
}
