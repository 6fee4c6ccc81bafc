/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scripts cost the server with warm caches: its own time for each call, as INFO
 * commandstats has it, when many come at once. A busy machine makes that time several times as
 * long, so each row is a ratio: to a plain script that calls GET of no key as often as ours calls
 * any command, measured right after it, in batches that are short beside another program's turn.
 * Beside them the time of a script that does nothing.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCKS = SCRIPT_BATCH, ROUNDS = 61, FAR_BACK = 1000 };

static const char id[] = "0123456789abcdef0123456789abcdef:1";

void scripts_reset(redisContext *peer)
{
  freeReplyObject(redisCommand(peer, "CONFIG RESETSTAT"));
}

static double each_script(redisContext *peer)
{
  return info_number(peer, "commandstats", "cmdstat_evalsha:usec_per_call=");
}

struct script_cost scripts_cost(redisContext *peer)
{
  double commands = 0;
  redisReply *reply = redisCommand(peer, "INFO commandstats");
  must(reply != NULL && reply->str != NULL, "INFO commandstats");
  for (const char *at = reply->str; (at = strstr(at, "cmdstat_")) != NULL; at++) {
    const char *calls = strstr(at, ":calls=");
    must(calls != NULL, "the calls of a command");
    if (strncmp(at, "cmdstat_evalsha:", 16) != 0 && strncmp(at, "cmdstat_config|", 15) != 0 &&
        strncmp(at, "cmdstat_config:", 15) != 0) /* the reset itself */
      commands += strtod(calls + strlen(":calls="), NULL);
  }
  freeReplyObject(reply);
  double scripts = info_number(peer, "commandstats", "cmdstat_evalsha:calls=");
  return (struct script_cost){.us = each_script(peer), .commands = commands / scripts};
}

/* A script that only calls so many commands. */
static double plain(redisContext *peer, int commands)
{
  redisReply *reply =
      redisCommand(peer, "SCRIPT LOAD %s",
                   "for i = 1, tonumber(ARGV[1]) do redis.call('GET', KEYS[1]) end return {1,2,3}");
  must(reply != NULL && reply->type == REDIS_REPLY_STRING, "SCRIPT LOAD");
  scripts_reset(peer);
  for (int i = 0; i < LOCKS; i++)
    redisAppendCommand(peer, "EVALSHA %s 1 key %d", reply->str, commands);
  freeReplyObject(reply);
  for (int i = 0; i < LOCKS; i++)
    take_reply(peer, 1);
  return each_script(peer);
}

/* So many commands need not be a whole number: acquire and release call different ones. */
static double plain_of(redisContext *peer, double commands)
{
  int below = (int)commands;
  double each = plain(peer, below);
  if (commands > below) each += (commands - below) * (plain(peer, below + 1) - each);
  return each;
}

/*
 * Of the commands, too, the median is shown: a thousand seconds that end on the server's clock (see
 * grant() in common.lua) add some to the round in which they do.
 */
void add_script_cost(struct script_rows *rows, redisContext *peer, struct script_cost cost)
{
  must(cost.commands >= 1, "a script that calls no command");
  add(&rows->us, cost.us);
  add(&rows->ratio, cost.us / plain_of(peer, cost.commands));
  add(&rows->commands, cost.commands);
}

/* Acquires and releases many free locks for which nobody waits. */
static struct script_cost pair(redisContext *peer)
{
  static char names[LOCKS][16];
  long long tokens[LOCKS];
  for (int i = 0; i < LOCKS; i++)
    (void)snprintf(names[i], sizeof names[i], "lock:%d", i);
  scripts_reset(peer);
  for (int i = 0; i < LOCKS; i++)
    append_request(peer, names[i], id, 0);
  for (int i = 0; i < LOCKS; i++)
    tokens[i] = take_reply(peer, 1);
  for (int i = 0; i < LOCKS; i++)
    append_request(peer, names[i], id, (unsigned long long)tokens[i]);
  for (int i = 0; i < LOCKS; i++)
    take_reply(peer, 1);
  return scripts_cost(peer);
}

/* Heartbeats of the waiter at this place of the queue of a held lock. */
static struct script_cost heartbeat(redisContext *peer, int place)
{
  char who[24];
  for (int i = 0; i <= place; i++) {
    (void)snprintf(who, sizeof who, "waiter:%d", i);
    append_request(peer, "queue", who, 0);
  }
  for (int i = 0; i <= place; i++)
    take_reply(peer, i == 0);
  scripts_reset(peer);
  for (int i = 0; i < LOCKS; i++)
    append_request(peer, "queue", who, 0);
  for (int i = 0; i < LOCKS; i++)
    take_reply(peer, 0);
  struct script_cost each = scripts_cost(peer);
  freeReplyObject(redisCommand(peer, "FLUSHALL"));
  return each;
}

/* Releases of many locks, each of which somebody waits for. */
static struct script_cost handover(redisContext *peer, redisContext *listener)
{
  static char names[LOCKS][16];
  long long tokens[LOCKS];
  redisReply *reply;
  for (int i = 0; i < LOCKS; i++) {
    (void)snprintf(names[i], sizeof names[i], "lock:%d", i);
    reply = redisCommand(listener, "SUBSCRIBE redisson_lock__channel:{%s}:waiter:1", names[i]);
    freeReplyObject(reply);
    append_request(peer, names[i], id, 0);
    append_request(peer, names[i], "waiter:1", 0);
    tokens[i] = take_reply(peer, 1);
    take_reply(peer, 0);
  }
  scripts_reset(peer);
  for (int i = 0; i < LOCKS; i++)
    append_request(peer, names[i], id, (unsigned long long)tokens[i]);
  for (int i = 0; i < LOCKS; i++)
    take_reply(peer, 1);
  struct script_cost each = scripts_cost(peer);
  if (info_number(peer, "commandstats", "cmdstat_publish:calls=") != LOCKS) {
    (void)fprintf(stderr, "bench: not every release handed the lock over\n");
    exit(1);
  }
  for (int i = 0; i < LOCKS; i++) {
    if (redisGetReply(listener, (void **)&reply) != REDIS_OK) exit(1);
    freeReplyObject(reply);
  }
  freeReplyObject(redisCommand(peer, "FLUSHALL"));
  return each;
}

void print_script_rows(struct script_rows *rows, const char *name, const char *remark)
{
  char row[64];
  (void)snprintf(row, sizeof row, "server.%s.ratio", name);
  print_row(row, &rows->ratio, remark);
  (void)snprintf(row, sizeof row, "server.%s.us", name);
  print_row(row, &rows->us, NULL);
  (void)snprintf(row, sizeof row, "server.%s.commands", name);
  print_value(row, median(&rows->commands), "that the script calls");
}

void bench_server_time(int port)
{
  struct series none = {.count = 0};
  struct script_rows pairs = {.us = {.count = 0}};
  struct script_rows front = {.us = {.count = 0}};
  struct script_rows back = {.us = {.count = 0}};
  struct script_rows handed = {.us = {.count = 0}};
  redisContext *peer = hiredis_open(port);
  redisContext *listener = hiredis_open(port);
  (void)pair(peer);
  for (int round = 0; round < ROUNDS; round++) {
    add(&none, plain(peer, 0));
    add_script_cost(&pairs, peer, pair(peer));
    add_script_cost(&front, peer, heartbeat(peer, 10));
    add_script_cost(&back, peer, heartbeat(peer, FAR_BACK));
    add_script_cost(&handed, peer, handover(peer, listener));
  }
  print_row("server.nothing.us", &none, "server's time for a script that does nothing");
  print_script_rows(&pairs, "pair",
                    "an acquire or a release, over as many GETs in a script; aim at most 3.2");
  print_script_rows(&front, "heartbeat", "a heartbeat; aim at most 3.2");
  print_script_rows(&back, "heartbeat.1000", "one from place 1000; aim at most 3.2");
  print_script_rows(&handed, "handover", "a release that hands over; aim at most 4.4");
  freeReplyObject(redisCommand(peer, "FLUSHALL"));
  redisFree(listener);
  redisFree(peer);
}
