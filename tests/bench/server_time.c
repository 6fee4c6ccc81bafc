/*
 * What the scripts cost the server with warm caches: its own time for each call, as INFO
 * commandstats has it, when many come at once. Beside them the time of a script that does nothing.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCKS = 200, ROUNDS = 21, FAR_BACK = 1000 };

static const char id[] = "0123456789abcdef0123456789abcdef:1";

static void reset(redisContext *peer)
{
  freeReplyObject(redisCommand(peer, "CONFIG RESETSTAT"));
}

static double each_script(redisContext *peer)
{
  return info_number(peer, "commandstats", "cmdstat_evalsha:usec_per_call=");
}

static double nothing(redisContext *peer)
{
  redisReply *reply = redisCommand(peer, "SCRIPT LOAD %s", "return {1,2,3}");
  reset(peer);
  for (int i = 0; i < LOCKS; i++)
    redisAppendCommand(peer, "EVALSHA %s 1 key argument", reply->str);
  freeReplyObject(reply);
  for (int i = 0; i < LOCKS; i++)
    take_reply(peer, 1);
  return each_script(peer);
}

/* Acquires and releases many free locks for which nobody waits. */
static double pair(redisContext *peer)
{
  static char names[LOCKS][16];
  long long tokens[LOCKS];
  for (int i = 0; i < LOCKS; i++)
    (void)snprintf(names[i], sizeof names[i], "lock:%d", i);
  reset(peer);
  for (int i = 0; i < LOCKS; i++)
    append_request(peer, names[i], id, 0);
  for (int i = 0; i < LOCKS; i++)
    tokens[i] = take_reply(peer, 1);
  for (int i = 0; i < LOCKS; i++)
    append_request(peer, names[i], id, (unsigned long long)tokens[i]);
  for (int i = 0; i < LOCKS; i++)
    take_reply(peer, 1);
  return 2 * each_script(peer);
}

/* Heartbeats of the waiter at this place of the queue of a held lock. */
static double heartbeat(redisContext *peer, int place)
{
  char who[24];
  for (int i = 0; i <= place; i++) {
    (void)snprintf(who, sizeof who, "waiter:%d", i);
    append_request(peer, "queue", who, 0);
  }
  for (int i = 0; i <= place; i++)
    take_reply(peer, i == 0);
  reset(peer);
  for (int i = 0; i < LOCKS; i++)
    append_request(peer, "queue", who, 0);
  for (int i = 0; i < LOCKS; i++)
    take_reply(peer, 0);
  double each = each_script(peer);
  freeReplyObject(redisCommand(peer, "FLUSHALL"));
  return each;
}

/* Releases of many locks, each of which somebody waits for. */
static double handover(redisContext *peer, redisContext *listener)
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
  reset(peer);
  for (int i = 0; i < LOCKS; i++)
    append_request(peer, names[i], id, (unsigned long long)tokens[i]);
  for (int i = 0; i < LOCKS; i++)
    take_reply(peer, 1);
  double each = each_script(peer);
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

void bench_server_time(int port)
{
  struct series handed = {.count = 0};
  struct series none = {.count = 0};
  struct series pairs = {.count = 0};
  struct series front = {.count = 0};
  struct series back = {.count = 0};
  redisContext *peer = hiredis_open(port);
  redisContext *listener = hiredis_open(port);
  (void)pair(peer);
  for (int round = 0; round < ROUNDS; round++) {
    add(&none, nothing(peer));
    add(&pairs, pair(peer));
    add(&front, heartbeat(peer, 10));
    add(&back, heartbeat(peer, FAR_BACK));
    add(&handed, handover(peer, listener));
  }
  print_row("server.nothing.us", &none, "server's time for a script that does nothing");
  print_row("server.pair.us", &pairs, "for acquire and release together; aim at most 11");
  print_row("server.heartbeat.us", &front, "for a heartbeat; aim at most 6");
  print_row("server.heartbeat.us.1000", &back, "for one from place 1000; aim at most 7");
  print_row("server.handover.us", &handed, "for a release that hands over; aim at most 12");
  freeReplyObject(redisCommand(peer, "FLUSHALL"));
  redisFree(listener);
  redisFree(peer);
}
