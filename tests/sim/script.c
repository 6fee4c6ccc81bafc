/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts in the small Redis: Debian's Lua 5.1, which is what Redis itself has built in, with
 * Redis's rules of turning replies into Lua's values and back.
 */
#include "redis_internal.h"
#include "sha1.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS 512

/*
 * Redis to Lua: nil becomes false, a status or an error a table. Pushes the value at *at, and moves
 * *at on.
 */
static void push_value(lua_State *lua, const struct reply *reply, uint32_t *at)
{
  const struct value *value = &reply->values[(*at)++];
  switch (value->kind) {
  case VALUE_NIL:
    lua_pushboolean(lua, 0);
    break;
  case VALUE_INTEGER:
    lua_pushnumber(lua, (lua_Number)value->integer);
    break;
  case VALUE_TEXT:
    lua_pushlstring(lua, value->text.data, value->text.size);
    break;
  case VALUE_STATUS:
  case VALUE_ERROR:
    lua_createtable(lua, 0, 1);
    lua_pushlstring(lua, value->text.data, value->text.size);
    lua_setfield(lua, -2, value->kind == VALUE_ERROR ? "err" : "ok");
    break;
  default:
    lua_createtable(lua, (int)value->integer, 0);
    for (int i = 1; i <= value->integer; i++) {
      push_value(lua, reply, at);
      lua_rawseti(lua, -2, i);
    }
    break;
  }
}

/*
 * Lua to Redis: a number loses its fraction, false is nil, a table ends at its first nil. Takes the
 * top of the stack, whose strings have to stay where they are.
 */
static void take_value(lua_State *lua, struct reply *reply)
{
  struct text text;
  switch (lua_type(lua, -1)) {
  case LUA_TSTRING:
    text.data = lua_tolstring(lua, -1, &text.size);
    reply_text(reply, VALUE_TEXT, text);
    return;
  case LUA_TNUMBER:
    reply_add(reply, VALUE_INTEGER, (int64_t)lua_tonumber(lua, -1));
    return;
  case LUA_TBOOLEAN:
    if (lua_toboolean(lua, -1)) reply_add(reply, VALUE_INTEGER, 1);
    else reply_add(reply, VALUE_NIL, 0);
    return;
  case LUA_TTABLE:
    break;
  default:
    reply_add(reply, VALUE_NIL, 0);
    return;
  }
  static const char *const marks[] = {"err", "ok"};
  for (int i = 0; i < 2; i++) {
    lua_getfield(lua, -1, marks[i]);
    bool found = lua_type(lua, -1) == LUA_TSTRING;
    if (found) {
      text.data = lua_tolstring(lua, -1, &text.size);
      reply_text(reply, i == 0 ? VALUE_ERROR : VALUE_STATUS, text);
    }
    lua_pop(lua, 1);
    if (found) return;
  }
  uint32_t head = reply->used;
  reply_add(reply, VALUE_ARRAY, 0);
  for (int i = 1;; i++) {
    lua_rawgeti(lua, -1, i);
    bool end = lua_isnil(lua, -1);
    if (!end) {
      take_value(lua, reply);
      reply->values[head].integer = i;
    }
    lua_pop(lua, 1);
    if (end) return;
  }
}

/*
 * The words of a command, from Lua's stack. Numbers as Redis writes them. False: something else is
 * among them.
 */
static bool take_words(lua_State *lua, struct text *words, char digits[][32], int count)
{
  for (int i = 0; i < count; i++) {
    if (lua_type(lua, i + 1) == LUA_TNUMBER) {
      double number = lua_tonumber(lua, i + 1);
      words[i].data = digits[i];
      if (number > -1e15 && number < 1e15 && number == (double)(int64_t)number &&
          (number != 0 || 1 / number > 0)) {
        words[i].size = resp_format_number(digits[i], (int64_t)number);
      } else {
        words[i].size = (size_t)snprintf(digits[i], sizeof digits[i], "%.17g", number);
      }
    } else if (lua_type(lua, i + 1) == LUA_TSTRING) {
      words[i].data = lua_tolstring(lua, i + 1, &words[i].size);
    } else {
      return false;
    }
  }
  return true;
}

static int call_redis(lua_State *lua, bool raise)
{
  static struct text words[ARGUMENTS];
  static char digits[ARGUMENTS][32];
  struct redis *redis = lua_touserdata(lua, lua_upvalueindex(1));
  struct reply *reply = &redis->inner;
  int count = lua_gettop(lua);
  uint32_t at = 0;
  reply_clear(reply);
  if (count == 0 || count > ARGUMENTS) {
    reply_error(reply, "ERR Please specify at least one argument for this redis.call() call");
  } else if (!take_words(lua, words, digits, count)) {
    reply_error(reply, "ERR Lua redis lib command arguments must be strings or integers");
  } else if (!command_execute(redis, words, count, reply)) {
    reply_error(reply, "ERR Unknown Redis command called from script");
  }
  push_value(lua, reply, &at);
  if (raise && reply->values[0].kind == VALUE_ERROR) return lua_error(lua);
  return 1;
}

static int redis_call(lua_State *lua)
{
  return call_redis(lua, true);
}

static int redis_pcall(lua_State *lua)
{
  return call_redis(lua, false);
}

/* Redis refuses new global variables. */
static int no_globals(lua_State *lua)
{
  return luaL_error(
      lua, "ERR Attempt to modify a readonly table or access an undefined global variable");
}

static void set_function(lua_State *lua, struct redis *redis, const char *name,
                         lua_CFunction function)
{
  lua_pushlightuserdata(lua, redis);
  lua_pushcclosure(lua, function, 1);
  lua_setfield(lua, -2, name);
}

static void open_library(lua_State *lua, const char *name, lua_CFunction open)
{
  lua_pushcfunction(lua, open);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

void script_open(struct redis *redis)
{
  lua_State *lua = luaL_newstate();
  if (lua == NULL) abort();
  redis->lua = lua;
  open_library(lua, "", luaopen_base);
  open_library(lua, LUA_TABLIBNAME, luaopen_table);
  open_library(lua, LUA_STRLIBNAME, luaopen_string);
  open_library(lua, LUA_MATHLIBNAME, luaopen_math);
  lua_newtable(lua);
  set_function(lua, redis, "call", redis_call);
  set_function(lua, redis, "pcall", redis_pcall);
  lua_setglobal(lua, "redis");
  lua_newtable(lua);
  lua_setglobal(lua, "KEYS");
  lua_newtable(lua);
  lua_setglobal(lua, "ARGV");
  lua_newtable(lua);
  lua_pushcfunction(lua, no_globals);
  lua_setfield(lua, -2, "__newindex");
  lua_pushcfunction(lua, no_globals);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

void script_forget(struct redis *redis)
{
  for (uint32_t i = 0; i < redis->scripts.size; i++) {
    const struct entry *entry = &redis->scripts.slots[i];
    if (entry->name != NULL) luaL_unref(redis->lua, LUA_REGISTRYINDEX, (int)entry->score);
  }
  dict_free(&redis->scripts);
}

void script_close(struct redis *redis)
{
  lua_close(redis->lua);
  dict_free(&redis->scripts);
}

/* Compiles and keeps a script. NULL: it does not compile, and the reply says so. */
static struct entry *load(struct redis *redis, struct text text, const char *sha1,
                          struct reply *reply)
{
  bool fresh;
  if (luaL_loadbuffer(redis->lua, text.data, text.size, "@user_script") != 0) {
    reply_error(reply, "ERR Error compiling script");
    lua_pop(redis->lua, 1);
    return NULL;
  }
  struct entry *entry = dict_add(&redis->scripts, text_of(sha1), &fresh);
  entry->score = luaL_ref(redis->lua, LUA_REGISTRYINDEX);
  return entry;
}

static void set_table(lua_State *lua, const char *name, const struct text *words, int count)
{
  lua_createtable(lua, count, 0);
  for (int i = 0; i < count; i++) {
    lua_pushlstring(lua, words[i].data, words[i].size);
    lua_rawseti(lua, -2, i + 1);
  }
  lua_setglobal(lua, name);
}

/*
 * The script failed: an error of redis.call keeps its code, one of Lua's own becomes ERR. On the
 * top of the stack.
 */
static void take_failure(lua_State *lua, struct reply *reply)
{
  static char text[512];
  const char *message = NULL;
  reply_clear(reply);
  if (lua_istable(lua, -1)) {
    lua_getfield(lua, -1, "err");
    message = lua_tostring(lua, -1);
    snprintf(text, sizeof text, "%s", message != NULL ? message : "ERR unknown");
    lua_pop(lua, 1);
  } else {
    message = lua_tostring(lua, -1);
    snprintf(text, sizeof text, "ERR %s", message != NULL ? message : "unknown");
  }
  reply_error(reply, text);
}

/* The text's SHA-1; the same few texts come again and again, so the last ones are remembered. */
static const char *hash_of(struct text text)
{
  static struct {
    char *data;
    size_t size;
    char digest[41];
  } known[16];
  static unsigned next;
  for (int i = 0; i < 16; i++) {
    if (known[i].size == text.size && known[i].data != NULL &&
        memcmp(known[i].data, text.data, text.size) == 0) {
      return known[i].digest;
    }
  }
  unsigned at = next++ % 16;
  free(known[at].data);
  known[at].data = malloc(text.size + 1);
  if (known[at].data == NULL) abort();
  memcpy(known[at].data, text.data, text.size);
  known[at].size = text.size;
  sha1_hex(text.data, text.size, known[at].digest);
  return known[at].digest;
}

/*
 * The script that the client runs: of its release. It has the digest of ours, so that the engine
 * and the checks need not know.
 */
static struct entry *replace(const struct redis_client *client, struct entry *entry,
                             const char *digest, struct text request, struct reply *reply)
{
  struct redis *redis = client->redis;
  const struct redis_script *other = NULL;
  if (redis->host.replaced != NULL)
    other = redis->host.replaced(redis->host.context, client, digest, request);
  if (other == NULL) return entry;
  entry = dict_find(&redis->scripts, text_of(other->sha1));
  return entry != NULL ? entry : load(redis, other->text, other->sha1, reply);
}

/* EVAL text, or EVALSHA hash, then: number of keys, keys, arguments. */
void script_eval(struct redis_client *client, bool by_hash, const struct text *argv, int argc,
                 struct reply *reply)
{
  struct redis *redis = client->redis;
  lua_State *lua = redis->lua;
  int64_t keys;
  char digest[41] = "";
  if (argc < 3 || !parse_integer(argv[2], &keys) || keys < 0 || keys > argc - 3) {
    reply_error(reply, "ERR wrong number of arguments or keys");
    return;
  }
  if (!by_hash) memcpy(digest, hash_of(argv[1]), 41);
  else if (argv[1].size == 40) memcpy(digest, argv[1].data, 40);
  struct entry *entry = dict_find(&redis->scripts, text_of(digest));
  if (entry == NULL && by_hash) {
    reply_error(reply, "NOSCRIPT No matching script. Please use EVAL.");
    return;
  }
  if (entry == NULL) entry = load(redis, argv[1], digest, reply);
  if (entry != NULL) entry = replace(client, entry, digest, argv[argc - 1], reply);
  if (entry == NULL) return;
  for (int i = 0; i < keys && redis->migrating; i++) {
    if (store_find(&redis->store, argv[3 + i]) != NULL) continue;
    reply_error(reply, "TRYAGAIN Multiple keys request during rehashing of slot");
    return;
  }
  set_table(lua, "KEYS", argv + 3, (int)keys);
  set_table(lua, "ARGV", argv + 3 + keys, argc - 3 - (int)keys);
  redis->scripting = true;
  redis->ours = keys == 4;
  redis->dirty = false;
  lua_rawgeti(lua, LUA_REGISTRYINDEX, (int)entry->score);
  if (lua_pcall(lua, 0, 1, 0) == 0) take_value(lua, reply);
  else take_failure(lua, reply);
  redis->scripting = false;
  struct execution execution = {client,    digest,          argv + 3,
                                (int)keys, argv + 3 + keys, argc - 3 - (int)keys,
                                reply,     redis->dirty};
  if (redis->host.executed != NULL) redis->host.executed(redis->host.context, &execution);
  lua_settop(lua, 0);
}
