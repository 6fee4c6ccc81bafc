/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small Redis inside the process: the commands that the scripts of the lock use, the real Lua
 * 5.1, and RESP at the front.
 *
 * It reads no clock and opens no socket: time, and the way to a client, are functions of the
 * caller's. A script runs to its end at once, as in Redis. test_differential compares it with the
 * real one.
 */
#ifndef SIM_REDIS_H
#define SIM_REDIS_H

#include "resp.h"
#include "store.h"

enum value_kind {
  VALUE_NIL,
  VALUE_INTEGER,
  VALUE_TEXT,
  VALUE_STATUS,
  VALUE_ERROR,
  VALUE_ARRAY,
  VALUE_MAP
};

struct value {
  enum value_kind kind;
  int64_t integer; /* of an aggregate: how many values follow (a map: pairs) */
  struct text text;
};

/* A reply: a value, and after an aggregate its elements. */
struct reply {
  struct value *values;
  uint32_t used, size;
  char scratch[64];
};

struct redis_script {
  struct text text;
  const char *sha1;
};

struct redis;

enum redis_role { REDIS_MASTER, REDIS_REPLICA, REDIS_SENTINEL };

struct redis_subscription {
  struct text channel;
  bool shard; /* by SSUBSCRIBE */
};

/* The server's end of a connection. */
struct redis_client {
  struct redis *redis;
  void *owner;                         /* the caller's                   */
  struct redis_subscription *channels; /* that it has subscribed to      */
  uint32_t subscribed;
  uint8_t *pending; /* bytes of a command that is not whole yet, or that stand behind a WAIT */
  size_t pending_size;
  bool resp3;
  int64_t id;     /* CLIENT ID */
  uint64_t wrote; /* what replicas have to acknowledge: as far as its last write */
  bool blocked;   /* in WAIT, ... */
  int64_t until;  /* ... till then; microseconds of the server's clock */
  struct redis_client *next_blocked;
  bool tracks, caches; /* CLIENT TRACKING; CLIENT CACHING, for the next command */
  struct dict tracked;
  struct redis_client *next_tracking;
};

/* What a script was called with, and what it said. */
struct execution {
  struct redis_client *client;
  const char *sha1;
  const struct text *keys;
  int key_count;
  const struct text *arguments;
  int argument_count;
  const struct reply *reply;
  bool wrote; /* it has changed something */
};

struct redis_host {
  int64_t (*micros)(void *context); /* since the epoch */
  void (*output)(void *context, struct redis_client *to, const void *data, size_t size);
  /* after each script; NULL: none */
  void (*executed)(void *context, const struct execution *execution);
  /* what a client of another release runs in place of this script; NULL: the same */
  const struct redis_script *(*replaced)(void *context, const struct redis_client *client,
                                         const char *sha1, struct text request);
  /* a WAIT has begun that ends so much later; NULL: there is no WAIT */
  void (*blocked)(void *context, int64_t ms);
  void *context;
};

struct redis *redis_new(const struct redis_host *host);
void redis_free(struct redis *redis);
struct store *redis_store(struct redis *redis); /* at the server's present time */
void redis_forget_scripts(struct redis *redis);
void redis_restarted(struct redis *redis); /* scripts are forgotten, connections are counted anew */
uint32_t redis_listeners(struct redis *redis, struct text channel, bool shard);
/* How many channels have listeners; one: the name of one of them. */
uint32_t redis_channels(struct redis *redis, struct text *one);

/*
 * Whether a client that publishes to a channel it has subscribed to gets the reply first, as with
 * Redis from 7.2 on and Valkey, or the message.
 */
void redis_set_reply_first(struct redis *redis, bool reply_first);

/* The client is the one that asks, and messages will follow its reply. */
bool redis_has_messages(const struct redis_client *client);

/*
 * Writes are refused with OOM; scripts with the text, and, if all, subscriptions and TIME as well;
 * NULL ends that.
 */
void redis_set_full(struct redis *redis, bool full);
void redis_set_refusal(struct redis *redis, const char *error, bool all);

/*
 * The slots of all keys move away, though no key has moved yet: a key that does not exist counts as
 * one that has moved.
 */
void redis_set_migrating(struct redis *redis, bool migrating);

/* The key was changed from outside: those that have it tracked are told. */
void redis_changed(struct redis *redis, struct text key);

/* Scripts with four keys, as ours have, may not run this command; NULL ends that. */
void redis_set_denied(struct redis *redis, const char *command);

/* The next script of this id that asks for this hold count is refused. The id has to last. */
void redis_refuse_count(struct redis *redis, struct text id, int count);

/*
 * A new server is a single master. In a cluster, a server that is not a master redirects requests
 * for keys to the master; a Sentinel says where the master is. host has to stay valid; the port is
 * 1.
 */
void redis_set_role(struct redis *redis, enum redis_role role, bool cluster);
void redis_set_master(struct redis *redis, const char *host);

/* A replica has all that was written up to this offset; WAITs for no more than that end. */
void redis_acknowledge(struct redis *redis, uint64_t offset);

/* WAITs whose time is over end. */
void redis_end_waits(struct redis *redis);

/* Ends a client's WAIT with an error. */
void redis_unblock(struct redis_client *client, const char *error);

/* Ends what the client listens to by shard: the slots have gone to another node. */
void redis_end_shards(struct redis_client *client);

struct redis_client *redis_connect(struct redis *redis, void *owner);
void redis_disconnect(struct redis_client *client);

/* Bytes from the client. False: they are no commands; the connection has to be closed. */
bool redis_receive(struct redis_client *client, const void *data, size_t size);

/* A command, from a client or from a test. The reply is valid until the next one. */
void redis_execute(struct redis_client *client, const struct text *argv, int argc,
                   struct reply *reply);
void reply_free(struct reply *reply);

#endif
