/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handover costs the server, with more and more waiters in the queue. The waiters are ids
 * that one connection has subscribed for and put into the queue by our own script; nobody sends
 * heartbeats, so that only releases are measured.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 10000, HANDOVERS = 40 };

static const char name[] = "growth";

/* All of them listen and are in the queue; the first one holds. */
static void line_up(redisContext *peer, redisContext *listener, int count)
{
  char id[32];
  redisReply *reply;
  for (int i = 0; i < count; i++)
    redisAppendCommand(listener, "SUBSCRIBE redisson_lock__channel:{%s}:waiter:%d", name, i);
  for (int i = 0; i < count; i++) {
    if (redisGetReply(listener, (void **)&reply) != REDIS_OK) exit(1);
    freeReplyObject(reply);
  }
  for (int i = 0; i < count; i++) {
    (void)snprintf(id, sizeof id, "waiter:%d", i);
    append_request(peer, name, id, 0);
  }
  for (int i = 0; i < count; i++)
    take_reply(peer, i == 0);
}

/* Microseconds that the server spends in a release that hands the lock over. */
static double server_time(int port, int waiters)
{
  redisContext *peer = hiredis_open(port);
  redisContext *listener = hiredis_open(port);
  line_up(peer, listener, waiters + HANDOVERS + 1);
  freeReplyObject(redisCommand(peer, "CONFIG RESETSTAT"));
  for (int i = 0; i < HANDOVERS; i++) {
    redisReply *known = redisCommand(peer, "HMGET fairlock:{%s} holder token", name);
    if (known->elements != 2 || known->element[1]->str == NULL) exit(1);
    append_request(peer, name, known->element[0]->str, strtoull(known->element[1]->str, NULL, 10));
    freeReplyObject(known);
    take_reply(peer, 1);
  }
  double each = info_number(peer, "commandstats", "cmdstat_evalsha:usec_per_call=");
  if (info_number(peer, "commandstats", "cmdstat_publish:calls=") != HANDOVERS) {
    (void)fprintf(stderr, "bench: not every release handed the lock over\n");
    exit(1);
  }
  redisFree(listener);
  freeReplyObject(redisCommand(peer, "FLUSHALL"));
  redisFree(peer);
  return each;
}

void bench_growth(int port)
{
  static const int sizes[] = {10, 100, 1000, MOST};
  struct series ratio = {.count = 0};
  struct series each[4] = {{.count = 0}};
  for (int round = 0; round < 7; round++) {
    double time[4];
    for (int i = 0; i < 4; i++) {
      time[i] = server_time(port, sizes[i]);
      add(&each[i], time[i]);
    }
    add(&ratio, time[3] / time[0]);
  }
  for (int i = 0; i < 4; i++) {
    char row[40];
    (void)snprintf(row, sizeof row, "handover.server.us.%d", sizes[i]);
    print_row(row, &each[i], "server's time in the script for a handover, with so many waiters");
  }
  print_row("handover.server.growth", &ratio,
            "with 10000 waiters over that with 10; aim at most 1.5");
}
