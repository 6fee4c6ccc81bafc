/* What a handover costs the server, with more and more waiters in the queue. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct point waiters_curve[8];
int waiters_points;

enum { MOST = 10000, HANDOVERS = 50 };

/* Microseconds that the server spends in scripts for each handover: the release and the confirmation. */
static double server_time(int port, redisContext *peer, int waiters, const char *name)
{
  static struct bench_client client;
  static struct fairlock handles[MOST + HANDOVERS + 1];
  int count = waiters + HANDOVERS + 1;
  bench_client_open(&client, port);
  for (int i = 0; i < count; i++) {
    fairlock_init(&handles[i], &client.client, name);
    if (fairlock_start_acquire(&handles[i], FAIRLOCK_FOREVER, 600000) != FAIRLOCK_PENDING) exit(1);
  }
  char key[64];
  snprintf(key, sizeof key, "redisson_lock_queue:{%s}", name);
  for (long long queued = 0; queued < count - 1;) {
    fairlock_poll(&client.client, 10);
    redisReply *reply = redisCommand(peer, "LLEN %s", key);
    queued = reply->integer;
    freeReplyObject(reply);
  }
  /* no heartbeat comes within the next second and a half: each was just answered, or soon will be */
  freeReplyObject(redisCommand(peer, "CONFIG RESETSTAT"));
  for (int i = 0; i < HANDOVERS; i++) {
    if (fairlock_start_release(&handles[i]) != FAIRLOCK_PENDING) exit(1);
    while (fairlock_result(&handles[i]) == FAIRLOCK_PENDING || fairlock_result(&handles[i + 1]) == FAIRLOCK_PENDING) {
      fairlock_poll(&client.client, 100);
    }
  }
  double calls = info_number(peer, "commandstats", "cmdstat_evalsha:calls=");
  double each = info_number(peer, "commandstats", "cmdstat_evalsha:usec_per_call=");
  bench_client_close(&client);
  freeReplyObject(redisCommand(peer, "FLUSHALL"));
  return each * calls / HANDOVERS;
}

void bench_growth(int port)
{
  static const int sizes[] = {10, 100, 1000, MOST};
  struct series ratio = {.count = 0};
  struct series each[4] = {{.count = 0}};
  redisContext *peer = hiredis_open(port);
  for (int round = 0; round < 5; round++) {
    double time[4];
    for (int i = 0; i < 4; i++) {
      char name[32];
      snprintf(name, sizeof name, "growth %d", i);
      time[i] = server_time(port, peer, sizes[i], name);
      add(&each[i], time[i]);
    }
    add(&ratio, time[3] / time[0]);
  }
  for (int i = 0; i < 4; i++) {
    char name[40];
    snprintf(name, sizeof name, "handover.server.us.%d", sizes[i]);
    print_row(name, &each[i], "server's time in scripts for a handover, with so many waiters");
    waiters_curve[waiters_points++] = (struct point){sizes[i], median(&each[i])};
  }
  print_row("handover.server.growth", &ratio, "with 10000 waiters over that with 10; aim at most 1.5");
  redisFree(peer);
}
