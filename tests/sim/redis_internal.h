/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the small Redis share: redis.c is the front, commands.c the commands, script.c
 * Lua.
 */
#ifndef SIM_REDIS_INTERNAL_H
#define SIM_REDIS_INTERNAL_H

#include "redis.h"

#include <lua.h>

struct redis {
  struct redis_host host;
  struct store store;
  struct dict channels; /* name -> struct channel */
  struct dict shards;   /* the same, by shard */
  struct dict scripts;  /* SHA-1 -> reference to the function, in score */
  lua_State *lua;
  struct reply inner; /* of the command that a script calls */
  bool full;
  bool migrating;
  bool dirty; /* the script has written */
  bool scripting;
  const char *refusal;
  bool refuses_all; /* not scripts alone */
  int64_t last_client;
  const char *denied;
  struct text refused_id; /* whose next script for that hold count is refused; empty: nobody's */
  int refused_count;
  bool ours;      /* the script is one of ours */
  int64_t micros; /* the time, which stands still during a script */
  bool reply_first;
  struct redis_client *asking; /* whose messages wait for the reply, in later */
  uint8_t *later;
  size_t later_size;
  enum redis_role role;
  bool cluster;
  const char *master;    /* host, of whoever is it */
  uint64_t acknowledged; /* by the replica */
  struct redis_client *blocked;
  struct dict tracked; /* key -> who is told when it changes */
  struct redis_client *tracking;
  struct redis_client *caches; /* whose command reads what it wants to have tracked */
};

void reply_clear(struct reply *reply);
struct value *reply_add(struct reply *reply, enum value_kind kind, int64_t integer);
void reply_text(struct reply *reply, enum value_kind kind, struct text text);
void reply_error(struct reply *reply, const char *text);
void reply_score(struct reply *reply, double score);

bool parse_integer(struct text text, int64_t *value);

/* commands.c: the data commands. False: there is no such command. */
bool command_execute(struct redis *redis, const struct text *argv, int argc, struct reply *reply);

/* redis.c */
int64_t publish(struct redis *redis, struct text channel, struct text message, bool shard);
void send_reply(struct redis_client *client, const struct reply *reply);

/* roles.c: what only servers with a role know. False: it is not such a command. */
bool role_execute(struct redis_client *client, const struct text *argv, int argc,
                  struct reply *reply);
void role_forget(struct redis_client *client);

/* A push; to the client that asks, after its reply if the server does so. */
void send_push(struct redis_client *client, const void *data, size_t size);

/* tracking.c: CLIENT TRACKING and CACHING. False: it is not such a command. */
bool tracking_execute(struct redis_client *client, const struct text *argv, int argc,
                      struct reply *reply);
void tracking_read(struct redis_client *client, struct text key);
void tracking_flush(struct redis *redis);
void tracking_forget(struct redis_client *client);
void tracking_free(struct redis *redis);

/* script.c */
void script_open(struct redis *redis);
void script_close(struct redis *redis);
void script_forget(struct redis *redis);
void script_eval(struct redis_client *client, bool by_hash, const struct text *argv, int argc,
                 struct reply *reply);

bool text_is(struct text text, const char *word); /* regardless of case */

#endif
