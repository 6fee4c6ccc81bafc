/* SPDX-License-Identifier: Apache-2.0 */
/* The front of the small Redis: connections, subscriptions, RESP in and out. */
#include "redis_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The longest command, and how many words it may have. */
#define COMMAND_SIZE  65536U
#define COMMAND_WORDS 512

struct channel {
  struct redis_client **clients;
  uint32_t used, size;
};

bool text_is(struct text text, const char *word)
{
  return text.size == strlen(word) && strncasecmp(text.data, word, text.size) == 0;
}

/* Replies */

void reply_clear(struct reply *reply)
{
  reply->used = 0;
}

void reply_free(struct reply *reply)
{
  free(reply->values);
  memset(reply, 0, sizeof *reply);
}

struct value *reply_add(struct reply *reply, enum value_kind kind, int64_t integer)
{
  if (reply->used == reply->size) {
    reply->size = reply->size == 0 ? 16 : reply->size * 2;
    reply->values = realloc(reply->values, reply->size * sizeof *reply->values);
    if (reply->values == NULL) abort();
  }
  struct value *value = &reply->values[reply->used++];
  *value = (struct value){.kind = kind, .integer = integer};
  return value;
}

void reply_text(struct reply *reply, enum value_kind kind, struct text text)
{
  reply_add(reply, kind, 0)->text = text;
}

void reply_error(struct reply *reply, const char *text)
{
  reply_clear(reply);
  reply_text(reply, VALUE_ERROR, text_of(text));
}

static void write_value(struct resp_writer *writer, const struct value *value, bool resp3)
{
  switch (value->kind) {
  case VALUE_NIL:
    resp_write_raw(writer, resp3 ? "_\r\n" : "$-1\r\n", resp3 ? 3 : 5);
    break;
  case VALUE_INTEGER:
    resp_write_header(writer, RESP_INTEGER, value->integer);
    break;
  case VALUE_TEXT:
    resp_write_bulk(writer, value->text.data, value->text.size);
    break;
  case VALUE_STATUS:
    resp_write_line(writer, RESP_SIMPLE_STRING, value->text.data, value->text.size);
    break;
  case VALUE_ERROR:
    resp_write_line(writer, RESP_SIMPLE_ERROR, value->text.data, strcspn(value->text.data, "\r\n"));
    break;
  case VALUE_ARRAY:
    resp_write_header(writer, RESP_ARRAY, value->integer);
    break;
  case VALUE_MAP:
    resp_write_header(writer, resp3 ? RESP_MAP : RESP_ARRAY,
                      resp3 ? value->integer : 2 * value->integer);
    break;
  }
}

void send_reply(struct redis_client *client, const struct reply *reply)
{
  struct redis *redis = client->redis;
  static uint8_t buffer[COMMAND_SIZE];
  struct resp_writer writer;
  size_t done = 0;
  do {
    resp_writer_init(&writer, buffer, sizeof buffer, done);
    for (uint32_t i = 0; i < reply->used; i++)
      write_value(&writer, &reply->values[i], client->resp3);
    if (writer.used > 0) redis->host.output(redis->host.context, client, buffer, writer.used);
    done += writer.used;
  } while (done < writer.total);
}

/* Subscriptions */

void send_push(struct redis_client *client, const void *data, size_t size)
{
  struct redis *redis = client->redis;
  if (client != redis->asking) {
    redis->host.output(redis->host.context, client, data, size);
    return;
  }
  redis->later = realloc(redis->later, redis->later_size + size);
  if (redis->later == NULL) abort();
  memcpy(redis->later + redis->later_size, data, size);
  redis->later_size += size;
}

static void push(struct redis_client *client, const char *kind, struct text channel,
                 const struct text *message, int64_t count)
{
  struct redis *redis = client->redis;
  uint8_t buffer[8192];
  struct resp_writer writer;
  resp_writer_init(&writer, buffer, sizeof buffer, 0);
  resp_write_header(&writer, client->resp3 ? RESP_PUSH : RESP_ARRAY, 3);
  resp_write_bulk(&writer, kind, strlen(kind));
  resp_write_bulk(&writer, channel.data, channel.size);
  if (message != NULL) resp_write_bulk(&writer, message->data, message->size);
  else resp_write_header(&writer, RESP_INTEGER, count);
  if (writer.total > sizeof buffer) abort();
  if (message == NULL) redis->host.output(redis->host.context, client, buffer, writer.used);
  else send_push(client, buffer, writer.used);
}

static int64_t subscription(const struct redis_client *client, struct text name, bool shard)
{
  for (uint32_t i = 0; i < client->subscribed; i++) {
    const struct redis_subscription *one = &client->channels[i];
    if (one->shard == shard && text_equal(one->channel, name)) return i;
  }
  return -1;
}

static struct dict *channels(struct redis *redis, bool shard)
{
  return shard ? &redis->shards : &redis->channels;
}

static void join(struct redis_client *client, struct text name, bool shard)
{
  if (subscription(client, name, shard) >= 0) return;
  bool fresh;
  struct entry *entry = dict_add(channels(client->redis, shard), name, &fresh);
  if (fresh) entry->object = calloc(1, sizeof(struct channel));
  struct channel *channel = entry->object;
  if (channel == NULL) abort();
  if (channel->used == channel->size) {
    channel->size = channel->size == 0 ? 1 : channel->size * 2;
    channel->clients = realloc(channel->clients, channel->size * sizeof(struct redis_client *));
    if (channel->clients == NULL) abort();
  }
  channel->clients[channel->used++] = client;
  client->channels = realloc(client->channels, (client->subscribed + 1) * sizeof *client->channels);
  char *own = malloc(name.size + 1);
  if (client->channels == NULL || own == NULL) abort();
  memcpy(own, name.data, name.size);
  client->channels[client->subscribed++] = (struct redis_subscription){{own, name.size}, shard};
}

static void part(struct redis_client *client, struct text name, bool shard)
{
  int64_t index = subscription(client, name, shard);
  if (index < 0) return;
  struct dict *all = channels(client->redis, shard);
  struct channel *channel = dict_find(all, name)->object;
  uint32_t at = 0;
  while (channel->clients[at] != client)
    at++;
  channel->clients[at] = channel->clients[--channel->used];
  if (channel->used == 0) {
    free(channel->clients);
    free(channel);
    dict_remove(all, name);
  }
  free((void *)(uintptr_t)client->channels[index].channel.data);
  client->channels[index] = client->channels[--client->subscribed];
}

int64_t publish(struct redis *redis, struct text name, struct text message, bool shard)
{
  struct entry *entry = dict_find(channels(redis, shard), name);
  if (entry == NULL) return 0;
  const struct channel *channel = entry->object;
  for (uint32_t i = 0; i < channel->used; i++)
    push(channel->clients[i], shard ? "smessage" : "message", name, &message, 0);
  return channel->used;
}

uint32_t redis_listeners(struct redis *redis, struct text name, bool shard)
{
  struct entry *entry = dict_find(channels(redis, shard), name);
  return entry != NULL ? ((struct channel *)entry->object)->used : 0;
}

uint32_t redis_channels(struct redis *redis, struct text *one)
{
  for (int shard = 0; shard < 2; shard++) {
    const struct dict *all = channels(redis, shard != 0);
    for (uint32_t i = 0; i < all->size; i++) {
      const struct entry *entry = &all->slots[i];
      if (entry->name != NULL) *one = (struct text){entry->name, entry->size};
    }
  }
  return redis->channels.used + redis->shards.used;
}

/* word: SUBSCRIBE, UNSUBSCRIBE, SSUBSCRIBE or SUNSUBSCRIBE. False: another one. */
static bool subscribe(struct redis_client *client, const struct text *argv, int argc)
{
  static const char *const words[] = {"subscribe", "unsubscribe", "ssubscribe", "sunsubscribe"};
  int word = 0;
  while (word < 4 && !text_is(argv[0], words[word]))
    word++;
  for (int i = 1; i < argc && word < 4; i++) {
    if (word % 2 == 0) join(client, argv[i], word > 1);
    else part(client, argv[i], word > 1);
    push(client, words[word], argv[i], NULL, client->subscribed);
  }
  return word < 4;
}

void redis_end_shards(struct redis_client *client)
{
  for (uint32_t i = client->subscribed; i-- > 0;) {
    char name[256];
    struct text channel = client->channels[i].channel;
    if (!client->channels[i].shard || channel.size > sizeof name) continue;
    memcpy(name, channel.data, channel.size);
    channel.data = name;
    part(client, channel, true);
    push(client, "sunsubscribe", channel, NULL, client->subscribed);
  }
}

/* Commands that concern the connection */

static void hello(struct redis_client *client, const struct text *argv, int argc,
                  struct reply *reply)
{
  if (argc > 1 && !text_is(argv[1], "2") && !text_is(argv[1], "3")) {
    reply_error(reply, "NOPROTO unsupported protocol version");
    return;
  }
  if (argc > 1) client->resp3 = text_is(argv[1], "3");
  static const char *const roles[] = {"master", "replica", "sentinel"};
  const struct redis *redis = client->redis;
  const char *mode = redis->cluster ? "cluster" : "standalone";
  reply_add(reply, VALUE_MAP, redis->role == REDIS_SENTINEL ? 6 : 7);
  reply_text(reply, VALUE_TEXT, text_of("server"));
  reply_text(reply, VALUE_TEXT, text_of("redis"));
  reply_text(reply, VALUE_TEXT, text_of("version"));
  reply_text(reply, VALUE_TEXT, text_of("7.0.15"));
  reply_text(reply, VALUE_TEXT, text_of("proto"));
  reply_add(reply, VALUE_INTEGER, client->resp3 ? 3 : 2);
  reply_text(reply, VALUE_TEXT, text_of("id"));
  reply_add(reply, VALUE_INTEGER, client->id);
  reply_text(reply, VALUE_TEXT, text_of("mode"));
  reply_text(reply, VALUE_TEXT, text_of(redis->role == REDIS_SENTINEL ? "sentinel" : mode));
  if (redis->role != REDIS_SENTINEL) {
    reply_text(reply, VALUE_TEXT, text_of("role"));
    reply_text(reply, VALUE_TEXT, text_of(roles[redis->role]));
  }
  reply_text(reply, VALUE_TEXT, text_of("modules"));
  reply_add(reply, VALUE_ARRAY, 0);
}

static void refresh(struct redis *redis)
{
  redis->micros = redis->host.micros(redis->host.context);
  redis->store.now = redis->micros / 1000;
}

/* Our scripts have four keys, and an argument that begins with id, expiry and mode. */
static bool refuses_count(struct redis *redis, const struct text *argv, int argc)
{
  char argument[200];
  int mode = 0;
  size_t size = redis->refused_id.size;
  if (size == 0 || argc != 8 || argv[7].size <= size) return false;
  if (memcmp(argv[7].data, redis->refused_id.data, size) != 0) return false;
  snprintf(argument, sizeof argument, "%.*s", (int)(argv[7].size - size), argv[7].data + size);
  if (sscanf(argument, " %*d %d ", &mode) != 1 || mode != -redis->refused_count) return false;
  redis->refused_id = (struct text){"", 0};
  return true;
}

void redis_execute(struct redis_client *client, const struct text *argv, int argc,
                   struct reply *reply)
{
  struct redis *redis = client->redis;
  reply_clear(reply);
  refresh(redis);
  redis->scripting = false;
  redis->caches = client->caches ? client : NULL;
  client->caches = false;
  bool evaluates = text_is(argv[0], "EVALSHA") || text_is(argv[0], "EVAL");
  if (redis->refusal != NULL && (evaluates || (redis->refuses_all && !text_is(argv[0], "HELLO")))) {
    reply_error(reply, redis->refusal);
  } else if (role_execute(client, argv, argc, reply)) {
    return;
  } else if (evaluates && refuses_count(redis, argv, argc)) {
    reply_error(reply, "NOPERM this user has no permissions to run the command");
  } else if (evaluates) {
    script_eval(client, text_is(argv[0], "EVALSHA"), argv, argc, reply);
  } else if (text_is(argv[0], "HELLO")) {
    hello(client, argv, argc, reply);
  } else if (text_is(argv[0], "SELECT") || text_is(argv[0], "AUTH")) {
    reply_text(reply, VALUE_STATUS, text_of("OK"));
  } else if (!tracking_execute(client, argv, argc, reply) && !subscribe(client, argv, argc) &&
             !command_execute(redis, argv, argc, reply)) {
    reply_error(reply, "ERR unknown command");
  }
}

/* Bytes in */

/* Takes one command from data. Returns the bytes used: 0, not whole yet; -1, not a command. */
static int64_t take_command(struct redis_client *client, const uint8_t *data, size_t size)
{
  static struct text words[COMMAND_WORDS];
  static struct reply reply;
  struct resp_decoder decoder;
  struct resp_event event = {.last = false};
  size_t start = 0;
  int count = 0;
  resp_decoder_init(&decoder, COMMAND_SIZE);
  while (!event.last) {
    size_t used;
    int status = resp_decode(&decoder, data + start, size - start, &used, &event);
    start += used;
    if (status == RESP_MORE) return size > COMMAND_SIZE ? -1 : 0;
    if (status < 0 || count == COMMAND_WORDS) return -1;
    if (event.depth == 0 && event.type != RESP_ARRAY) return -1;
    if (event.depth == 1 && event.type != RESP_BULK_STRING) return -1;
    if (event.depth == 1) words[count++] = (struct text){(const char *)event.data, event.size};
  }
  if (count == 0) return (int64_t)start;
  struct redis *redis = client->redis;
  redis->asking = redis->reply_first ? client : NULL;
  redis_execute(client, words, count, &reply);
  send_reply(client, &reply);
  redis->asking = NULL;
  if (redis->later_size > 0)
    redis->host.output(redis->host.context, client, redis->later, redis->later_size);
  redis->later_size = 0;
  return (int64_t)start;
}

static void store(struct redis_client *client, const uint8_t *data, size_t size)
{
  uint8_t *pending = NULL;
  if (size > 0) {
    pending = malloc(size);
    if (pending == NULL) abort();
    memcpy(pending, data, size);
  }
  free(client->pending);
  client->pending = pending;
  client->pending_size = size;
}

bool redis_receive(struct redis_client *client, const void *data, size_t size)
{
  const uint8_t *bytes = data;
  uint8_t *joined = NULL;
  if (client->pending_size > 0) {
    joined = realloc(client->pending, client->pending_size + size);
    if (joined == NULL) abort();
    memcpy(joined + client->pending_size, data, size);
    size += client->pending_size;
    client->pending = NULL;
    client->pending_size = 0;
    bytes = joined;
  }
  size_t start = 0;
  int64_t used = 1;
  while (start < size && used > 0 && !client->blocked) {
    used = take_command(client, bytes + start, size - start);
    if (used > 0) start += (size_t)used;
  }
  store(client, bytes + start, used < 0 ? 0 : size - start);
  free(joined);
  return used >= 0;
}

/* Life */

struct redis *redis_new(const struct redis_host *host)
{
  struct redis *redis = calloc(1, sizeof *redis);
  if (redis == NULL) abort();
  redis->host = *host;
  script_open(redis);
  return redis;
}

void redis_free(struct redis *redis)
{
  script_close(redis);
  store_flush(&redis->store);
  for (int shard = 0; shard < 2; shard++) {
    struct dict *all = channels(redis, shard != 0);
    for (uint32_t i = 0; i < all->size; i++) {
      struct channel *channel = all->slots[i].object;
      if (all->slots[i].name == NULL) continue;
      free(channel->clients);
      free(channel);
    }
    dict_free(all);
  }
  tracking_free(redis);
  reply_free(&redis->inner);
  free(redis->later);
  free(redis);
}

struct store *redis_store(struct redis *redis)
{
  refresh(redis);
  return &redis->store;
}

void redis_forget_scripts(struct redis *redis)
{
  script_forget(redis);
}

void redis_restarted(struct redis *redis)
{
  script_forget(redis);
  redis->last_client = 0;
}

void redis_set_reply_first(struct redis *redis, bool reply_first)
{
  redis->reply_first = reply_first;
}

bool redis_has_messages(const struct redis_client *client)
{
  return client->redis->asking == client && client->redis->later_size > 0;
}

void redis_set_full(struct redis *redis, bool full)
{
  redis->full = full;
}

void redis_set_migrating(struct redis *redis, bool migrating)
{
  redis->migrating = migrating;
}

void redis_set_refusal(struct redis *redis, const char *error, bool all)
{
  redis->refusal = error;
  redis->refuses_all = all;
}

void redis_refuse_count(struct redis *redis, struct text id, int count)
{
  redis->refused_id = id;
  redis->refused_count = count;
}

void redis_set_denied(struct redis *redis, const char *command)
{
  redis->denied = command;
}

struct redis_client *redis_connect(struct redis *redis, void *owner)
{
  struct redis_client *client = calloc(1, sizeof *client);
  if (client == NULL) abort();
  client->redis = redis;
  client->owner = owner;
  client->id = ++redis->last_client;
  return client;
}

void redis_disconnect(struct redis_client *client)
{
  while (client->subscribed > 0)
    part(client, client->channels[0].channel, client->channels[0].shard);
  role_forget(client);
  tracking_forget(client);
  free(client->channels);
  free(client->pending);
  free(client);
}
