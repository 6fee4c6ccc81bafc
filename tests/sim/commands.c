/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data commands of the small Redis: those that scripts of the lock use, with the replies and
 * the refusals of the real one. Add one by writing its function and its line in the table at the
 * end.
 */
#include "redis_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char wrong_type[] =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
static const char not_integer[] = "ERR value is not an integer or out of range";
static const char syntax[] = "ERR syntax error";

struct call {
  struct redis *redis;
  const struct text *argv;
  int argc;
  struct reply *reply;
};

/* Only digits, as Redis writes them: no sign but one minus, no leading zero. */
bool parse_integer(struct text text, int64_t *value)
{
  char again[RESP_NUMBER_SIZE];
  if (!resp_parse_number(text.data, text.size, value)) return false;
  return text.size <= RESP_NUMBER_SIZE && resp_format_number(again, *value) == text.size &&
         memcmp(again, text.data, text.size) == 0;
}

static bool integer_argument(const struct call *call, int index, int64_t *value)
{
  if (parse_integer(call->argv[index], value)) return true;
  reply_error(call->reply, not_integer);
  return false;
}

static bool score_argument(const struct call *call, int index, double *value)
{
  char digits[64];
  char *end;
  struct text text = call->argv[index];
  if (text.size > 0 && text.size < sizeof digits && text.data[0] != ' ') {
    memcpy(digits, text.data, text.size);
    digits[text.size] = 0;
    *value = strtod(digits, &end);
    if (end == digits + text.size && !isnan(*value)) return true;
  }
  reply_error(call->reply, "ERR value is not a valid float");
  return false;
}

void reply_score(struct reply *reply, double score)
{
  size_t size;
  if (score > -1e15 && score < 1e15 && score == (double)(int64_t)score) {
    size = resp_format_number(reply->scratch, (int64_t)score);
  } else {
    size = (size_t)snprintf(reply->scratch, sizeof reply->scratch, "%.17g", score);
  }
  reply_text(reply, VALUE_TEXT, (struct text){reply->scratch, size});
}

/*
 * The key of the first argument. False: it is of another type, and the reply says so. *key is NULL
 * when there is none.
 */
static bool find(const struct call *call, enum store_type type, struct key **key)
{
  *key = store_find(&call->redis->store, call->argv[1]);
  if (*key == NULL || (*key)->type == type) return true;
  reply_error(call->reply, wrong_type);
  return false;
}

static struct key *or_new(const struct call *call, struct key *key, enum store_type type)
{
  return key != NULL ? key : store_add(&call->redis->store, call->argv[1], type);
}

static void drop_if_empty(const struct call *call, struct key *key)
{
  if (store_empty(key)) store_remove(&call->redis->store, key);
}

static void integer(const struct call *call, int64_t value)
{
  reply_add(call->reply, VALUE_INTEGER, value);
}

static void entry_value(const struct call *call, const struct entry *entry)
{
  if (entry == NULL) reply_add(call->reply, VALUE_NIL, 0);
  else reply_text(call->reply, VALUE_TEXT, (struct text){entry->value, entry->value_size});
}

/* Hashes */

static void hget(const struct call *call)
{
  struct key *key;
  if (!find(call, STORE_HASH, &key)) return;
  entry_value(call, key != NULL ? dict_find(&key->dict, call->argv[2]) : NULL);
}

static void hmget(const struct call *call)
{
  struct key *key;
  if (!find(call, STORE_HASH, &key)) return;
  reply_add(call->reply, VALUE_ARRAY, call->argc - 2);
  for (int i = 2; i < call->argc; i++)
    entry_value(call, key != NULL ? dict_find(&key->dict, call->argv[i]) : NULL);
}

static void hgetall(const struct call *call)
{
  struct key *key;
  if (!find(call, STORE_HASH, &key)) return;
  reply_add(call->reply, VALUE_ARRAY, key != NULL ? 2 * (int64_t)key->dict.used : 0);
  for (uint32_t i = 0; key != NULL && i < key->dict.size; i++) {
    const struct entry *entry = &key->dict.slots[i];
    if (entry->name == NULL) continue;
    reply_text(call->reply, VALUE_TEXT, (struct text){entry->name, entry->size});
    entry_value(call, entry);
  }
}

static void hset(const struct call *call)
{
  struct key *key;
  if (call->argc % 2 != 0) {
    reply_error(call->reply, "ERR wrong number of arguments for 'hset' command");
    return;
  }
  if (!find(call, STORE_HASH, &key)) return;
  key = or_new(call, key, STORE_HASH);
  int64_t added = 0;
  for (int i = 2; i + 1 < call->argc; i += 2) {
    bool fresh;
    entry_set(dict_add(&key->dict, call->argv[i], &fresh), call->argv[i + 1]);
    added += fresh;
  }
  integer(call, added);
}

static void hdel(const struct call *call)
{
  struct key *key;
  if (!find(call, STORE_HASH, &key)) return;
  int64_t removed = 0;
  for (int i = 2; key != NULL && i < call->argc; i++)
    removed += dict_remove(&key->dict, call->argv[i]);
  if (key != NULL) drop_if_empty(call, key);
  integer(call, removed);
}

static void hexists(const struct call *call)
{
  struct key *key;
  if (!find(call, STORE_HASH, &key)) return;
  integer(call, key != NULL && dict_find(&key->dict, call->argv[2]) != NULL);
}

static void hlen(const struct call *call)
{
  struct key *key;
  if (find(call, STORE_HASH, &key)) integer(call, key != NULL ? key->dict.used : 0);
}

static void hincrby(const struct call *call)
{
  struct key *key;
  int64_t by;
  int64_t old = 0;
  bool fresh;
  if (!integer_argument(call, 3, &by)) return;
  if (!find(call, STORE_HASH, &key)) return;
  const struct entry *entry = key != NULL ? dict_find(&key->dict, call->argv[2]) : NULL;
  if (entry != NULL && !parse_integer((struct text){entry->value, entry->value_size}, &old)) {
    reply_error(call->reply, "ERR hash value is not an integer");
    return;
  }
  key = or_new(call, key, STORE_HASH);
  char digits[RESP_NUMBER_SIZE];
  size_t size = resp_format_number(digits, old + by);
  entry_set(dict_add(&key->dict, call->argv[2], &fresh), (struct text){digits, size});
  integer(call, old + by);
}

/* Lists */

static void push(const struct call *call, bool front)
{
  struct key *key;
  if (!find(call, STORE_LIST, &key)) return;
  key = or_new(call, key, STORE_LIST);
  for (int i = 2; i < call->argc; i++)
    list_push(&key->list, call->argv[i], front);
  integer(call, key->list.used);
}

static void rpush(const struct call *call)
{
  push(call, false);
}

static void lpush(const struct call *call)
{
  push(call, true);
}

static void lpop(const struct call *call)
{
  struct key *key;
  if (!find(call, STORE_LIST, &key)) return;
  if (key == NULL) {
    reply_add(call->reply, VALUE_NIL, 0);
    return;
  }
  const struct item *item = list_at(&key->list, 0);
  size_t size = item->size < sizeof call->reply->scratch ? item->size : sizeof call->reply->scratch;
  memcpy(call->reply->scratch, item->data, size);
  reply_text(call->reply, VALUE_TEXT, (struct text){call->reply->scratch, size});
  list_remove(&key->list, 0);
  drop_if_empty(call, key);
}

static void llen(const struct call *call)
{
  struct key *key;
  if (find(call, STORE_LIST, &key)) integer(call, key != NULL ? key->list.used : 0);
}

static void item_value(const struct call *call, const struct item *item)
{
  if (item == NULL) reply_add(call->reply, VALUE_NIL, 0);
  else reply_text(call->reply, VALUE_TEXT, (struct text){item->data, item->size});
}

static void lindex(const struct call *call)
{
  struct key *key;
  int64_t index;
  if (!find(call, STORE_LIST, &key)) return;
  if (key != NULL && !integer_argument(call, 2, &index)) return;
  item_value(call, key != NULL ? list_at(&key->list, index) : NULL);
}

/* Puts the bounds of a range into 0 to used - 1, as Redis does. False: it is empty. */
static bool clip(int64_t *start, int64_t *stop, int64_t used)
{
  if (*start < 0) *start += used;
  if (*stop < 0) *stop += used;
  if (*start < 0) *start = 0;
  if (*stop >= used) *stop = used - 1;
  return *start <= *stop;
}

static void lrange(const struct call *call)
{
  struct key *key;
  int64_t start;
  int64_t stop;
  if (!integer_argument(call, 2, &start) || !integer_argument(call, 3, &stop)) return;
  if (!find(call, STORE_LIST, &key)) return;
  if (key == NULL || !clip(&start, &stop, key->list.used)) {
    reply_add(call->reply, VALUE_ARRAY, 0);
    return;
  }
  reply_add(call->reply, VALUE_ARRAY, stop - start + 1);
  for (int64_t i = start; i <= stop; i++)
    item_value(call, list_at(&key->list, i));
}

/* LPOS key element [MAXLEN number] */
static void lpos(const struct call *call)
{
  struct key *key;
  int64_t most = 0;
  if (call->argc != 3 && (call->argc != 5 || !text_is(call->argv[3], "MAXLEN"))) {
    reply_error(call->reply, syntax);
    return;
  }
  if (call->argc == 5 && (!parse_integer(call->argv[4], &most) || most < 0)) {
    reply_error(call->reply, "ERR MAXLEN can't be negative");
    return;
  }
  if (!find(call, STORE_LIST, &key)) return;
  int64_t at = key != NULL ? list_find(&key->list, call->argv[2], most > 0 ? most : INT64_MAX) : -1;
  if (at < 0) reply_add(call->reply, VALUE_NIL, 0);
  else integer(call, at);
}

/* The last place of data; -1: there is none. */
static int64_t find_last(const struct ring *list, struct text data)
{
  for (int64_t i = (int64_t)list->used - 1; i >= 0; i--) {
    const struct item *item = list_at(list, i);
    if (text_equal((struct text){item->data, item->size}, data)) return i;
  }
  return -1;
}

/* A negative count begins at the end. */
static void lrem(const struct call *call)
{
  struct key *key;
  int64_t count;
  if (!integer_argument(call, 2, &count)) return;
  if (!find(call, STORE_LIST, &key)) return;
  int64_t removed = 0;
  int64_t most = count < 0 ? -count : count;
  while (key != NULL && (most == 0 || removed < most)) {
    int64_t at = count < 0 ? find_last(&key->list, call->argv[3])
                           : list_find(&key->list, call->argv[3], INT64_MAX);
    if (at < 0) break;
    list_remove(&key->list, at);
    removed++;
  }
  if (key != NULL) drop_if_empty(call, key);
  integer(call, removed);
}

/* Sorted sets */

static void zscore(const struct call *call)
{
  struct key *key;
  if (!find(call, STORE_ZSET, &key)) return;
  const struct entry *entry = key != NULL ? dict_find(&key->dict, call->argv[2]) : NULL;
  if (entry == NULL) reply_add(call->reply, VALUE_NIL, 0);
  else reply_score(call->reply, entry->score);
}

/* ZADD key [XX | NX | GT] score member */
static void zadd(const struct call *call)
{
  struct key *key;
  double score;
  bool fresh;
  bool only_old = text_is(call->argv[2], "XX");
  bool only_new = text_is(call->argv[2], "NX");
  bool only_more = text_is(call->argv[2], "GT");
  int at = only_old || only_new || only_more ? 3 : 2;
  if (call->argc != at + 2) {
    reply_error(call->reply, syntax);
    return;
  }
  if (!score_argument(call, at, &score)) return;
  if (!find(call, STORE_ZSET, &key)) return;
  struct entry *entry = key != NULL ? dict_find(&key->dict, call->argv[at + 1]) : NULL;
  if (entry == NULL && only_old) {
    integer(call, 0);
    return;
  }
  if (entry != NULL && (only_new || (only_more && score <= entry->score))) {
    integer(call, 0);
    return;
  }
  key = or_new(call, key, STORE_ZSET);
  entry = dict_add(&key->dict, call->argv[at + 1], &fresh);
  entry->score = score;
  integer(call, fresh);
}

static void zincrby(const struct call *call)
{
  struct key *key;
  double by;
  bool fresh;
  if (!score_argument(call, 2, &by)) return;
  if (!find(call, STORE_ZSET, &key)) return;
  key = or_new(call, key, STORE_ZSET);
  struct entry *entry = dict_add(&key->dict, call->argv[3], &fresh);
  entry->score += by;
  reply_score(call->reply, entry->score);
}

static void zrem(const struct call *call)
{
  struct key *key;
  if (!find(call, STORE_ZSET, &key)) return;
  int64_t removed = 0;
  for (int i = 2; key != NULL && i < call->argc; i++)
    removed += dict_remove(&key->dict, call->argv[i]);
  if (key != NULL) drop_if_empty(call, key);
  integer(call, removed);
}

static void zcard(const struct call *call)
{
  struct key *key;
  if (find(call, STORE_ZSET, &key)) integer(call, key != NULL ? key->dict.used : 0);
}

static int by_score(const void *a, const void *b)
{
  const struct entry *const *x = a;
  const struct entry *const *y = b;
  if ((*x)->score < (*y)->score) return -1;
  if ((*x)->score > (*y)->score) return 1;
  return strcmp((*x)->name, (*y)->name);
}

static void zrange(const struct call *call)
{
  struct key *key;
  int64_t start;
  int64_t stop;
  if (!integer_argument(call, 2, &start) || !integer_argument(call, 3, &stop)) return;
  if (!find(call, STORE_ZSET, &key)) return;
  if (key == NULL || !clip(&start, &stop, key->dict.used)) {
    reply_add(call->reply, VALUE_ARRAY, 0);
    return;
  }
  const struct entry **entries = malloc(key->dict.used * sizeof *entries);
  if (entries == NULL) abort();
  uint32_t used = 0;
  for (uint32_t i = 0; i < key->dict.size; i++) {
    if (key->dict.slots[i].name != NULL) entries[used++] = &key->dict.slots[i];
  }
  qsort(entries, used, sizeof *entries, by_score);
  reply_add(call->reply, VALUE_ARRAY, stop - start + 1);
  for (int64_t i = start; i <= stop; i++) {
    reply_text(call->reply, VALUE_TEXT, (struct text){entries[i]->name, entries[i]->size});
  }
  free((void *)entries);
}

/* Keys */

static void exists(const struct call *call)
{
  int64_t count = 0;
  for (int i = 1; i < call->argc; i++)
    count += store_find(&call->redis->store, call->argv[i]) != NULL;
  integer(call, count);
}

static void del(const struct call *call)
{
  int64_t count = 0;
  for (int i = 1; i < call->argc; i++) {
    struct key *key = store_find(&call->redis->store, call->argv[i]);
    if (key == NULL) continue;
    store_remove(&call->redis->store, key);
    count++;
  }
  integer(call, count);
}

static void pexpire(const struct call *call)
{
  int64_t ms;
  if (!integer_argument(call, 2, &ms)) return;
  struct key *key = store_find(&call->redis->store, call->argv[1]);
  integer(call, key != NULL);
  if (key == NULL) return;
  if (ms <= 0) store_remove(&call->redis->store, key);
  else key->expires = call->redis->store.now + ms;
}

static void pttl(const struct call *call)
{
  const struct key *key = store_find(&call->redis->store, call->argv[1]);
  if (key == NULL) integer(call, -2);
  else integer(call, key->expires == STORE_NEVER ? -1 : key->expires - call->redis->store.now);
}

static void persist(const struct call *call)
{
  struct key *key = store_find(&call->redis->store, call->argv[1]);
  integer(call, key != NULL && key->expires != STORE_NEVER);
  if (key != NULL) key->expires = STORE_NEVER;
}

/* The rest */

static void time_now(const struct call *call)
{
  struct reply *reply = call->reply;
  size_t seconds = resp_format_number(reply->scratch, call->redis->micros / 1000000);
  size_t micros = resp_format_number(reply->scratch + 32, call->redis->micros % 1000000);
  reply_add(reply, VALUE_ARRAY, 2);
  reply_text(reply, VALUE_TEXT, (struct text){reply->scratch, seconds});
  reply_text(reply, VALUE_TEXT, (struct text){reply->scratch + 32, micros});
}

static void publish_message(const struct call *call)
{
  integer(call, publish(call->redis, call->argv[1], call->argv[2], false));
}

static void publish_to_shard(const struct call *call)
{
  integer(call, publish(call->redis, call->argv[1], call->argv[2], true));
}

static void pubsub(const struct call *call)
{
  bool shard = text_is(call->argv[1], "SHARDNUMSUB");
  if (!shard && !text_is(call->argv[1], "NUMSUB")) {
    reply_error(call->reply, "ERR unknown subcommand");
    return;
  }
  reply_add(call->reply, VALUE_ARRAY, 2 * (int64_t)(call->argc - 2));
  for (int i = 2; i < call->argc; i++) {
    reply_text(call->reply, VALUE_TEXT, call->argv[i]);
    integer(call, redis_listeners(call->redis, call->argv[i], shard));
  }
}

static void ping(const struct call *call)
{
  reply_text(call->reply, VALUE_STATUS, text_of("PONG"));
}

static void flushall(const struct call *call)
{
  store_flush(&call->redis->store);
  tracking_flush(call->redis);
  reply_text(call->reply, VALUE_STATUS, text_of("OK"));
}

/*
 * WRITES: marks a script as having changed something. GROWS: refused when there is no memory.
 * KEYLESS: its first argument is no key.
 */
enum { READS = 0, WRITES = 1, GROWS = 3, KEYLESS = 4 };

static const struct command {
  const char *name;
  int least, most; /* words */
  int flags;
  void (*run)(const struct call *call);
} commands[] = {
    {"time", 1, 1, KEYLESS, time_now},
    {"hget", 3, 3, READS, hget},
    {"hset", 4, 512, GROWS, hset},
    {"hdel", 3, 512, WRITES, hdel},
    {"hmget", 3, 512, READS, hmget},
    {"hgetall", 2, 2, READS, hgetall},
    {"hexists", 3, 3, READS, hexists},
    {"hlen", 2, 2, READS, hlen},
    {"hincrby", 4, 4, GROWS, hincrby},
    {"rpush", 3, 512, GROWS, rpush},
    {"lpush", 3, 512, GROWS, lpush},
    {"lpop", 2, 2, WRITES, lpop},
    {"llen", 2, 2, READS, llen},
    {"lindex", 3, 3, READS, lindex},
    {"lrange", 4, 4, READS, lrange},
    {"lpos", 3, 512, READS, lpos},
    {"lrem", 4, 4, WRITES, lrem},
    {"zadd", 4, 512, GROWS, zadd},
    {"zscore", 3, 3, READS, zscore},
    {"zincrby", 4, 4, GROWS, zincrby},
    {"zrem", 3, 512, WRITES, zrem},
    {"zcard", 2, 2, READS, zcard},
    {"zrange", 4, 4, READS, zrange},
    {"exists", 2, 512, READS, exists},
    {"del", 2, 512, WRITES, del},
    {"pexpire", 3, 3, WRITES, pexpire},
    {"pttl", 2, 2, READS, pttl},
    {"persist", 2, 2, WRITES, persist},
    {"publish", 3, 3, KEYLESS, publish_message},
    {"spublish", 3, 3, KEYLESS, publish_to_shard},
    {"pubsub", 2, 512, KEYLESS, pubsub},
    {"ping", 1, 2, KEYLESS, ping},
    {"flushall", 1, 2, WRITES | KEYLESS, flushall},
};

static const struct command *command_named(struct text name)
{
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    if ((name.data[0] | 32) == commands[i].name[0] && text_is(name, commands[i].name))
      return &commands[i];
  }
  return NULL;
}

/* Whether the command has changed its key, as far as its reply shows that. */
static bool has_changed(const struct call *call)
{
  const struct value *value = &call->reply->values[0];
  bool always = text_is(call->argv[0], "rpush") || text_is(call->argv[0], "lpush") ||
                text_is(call->argv[0], "hset") || text_is(call->argv[0], "zadd");
  if (value->kind == VALUE_INTEGER) return always || value->integer > 0;
  return value->kind == VALUE_TEXT;
}

/* Tells those that have the keys tracked, and has keys tracked. */
static void track(const struct call *call, int flags)
{
  struct redis *redis = call->redis;
  bool all = text_is(call->argv[0], "del") || text_is(call->argv[0], "exists");
  if (flags & KEYLESS || call->reply->values[0].kind == VALUE_ERROR) return;
  for (int i = 1; i < (all ? call->argc : 2); i++) {
    if (flags & WRITES && has_changed(call)) redis_changed(redis, call->argv[i]);
    if (flags == READS && redis->caches != NULL && !redis->scripting)
      tracking_read(redis->caches, call->argv[i]);
  }
}

bool command_execute(struct redis *redis, const struct text *argv, int argc, struct reply *reply)
{
  struct call call = {redis, argv, argc, reply};
  const struct command *command = argv[0].size > 0 ? command_named(argv[0]) : NULL;
  if (command == NULL) return false;
  if (argc < command->least || argc > command->most) {
    reply_error(reply, "ERR wrong number of arguments");
    return true;
  }
  if (redis->denied != NULL && redis->scripting && redis->ours &&
      strcmp(redis->denied, command->name) == 0) {
    reply_error(reply, "NOPERM this user has no permissions to run the command");
    return true;
  }
  if (redis->migrating && redis->scripting && redis->ours && !(command->flags & KEYLESS) &&
      store_find(&redis->store, argv[1]) == NULL) {
    reply_error(reply, "ERR Script attempted to access a non local key in a cluster node");
    return true;
  }
  if (redis->role == REDIS_REPLICA && redis->scripting && command->flags & WRITES) {
    reply_error(reply, "READONLY You can't write against a read only replica.");
    return true;
  }
  if (redis->full && command->flags == GROWS && !(redis->scripting && redis->dirty)) {
    reply_error(reply, "OOM command not allowed when used memory > 'maxmemory'.");
    return true;
  }
  if (command->flags & WRITES) redis->dirty = true;
  command->run(&call);
  track(&call, command->flags);
  return true;
}
