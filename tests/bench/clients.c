/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many clients on one lock: is each served as often as the others, and in order? And what one more
 * waiter, client or lock costs: bytes on the wire while it waits, memory.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support/counters.h"

struct point clients_curve[8];
int clients_points;

static char service[8];

/* Each client acquires `rounds` times. Returns handovers a second. */
static double compete(int count, int rounds, int *violations, double *jain)
{
  struct small_client *clients = calloc((size_t)count, sizeof *clients);
  int *grants = calloc((size_t)count, sizeof *grants);
  if (clients == NULL || grants == NULL) exit(1);
  for (int i = 0; i < count; i++)
    small_client_open(&clients[i], service, "clients");
  for (int i = 0; i < count; i++)
    small_client_arrive(&clients[i]);
  double begin = now();
  int total = count * rounds;
  *violations = 0;
  double last_beat = now();
  for (int turn = 0; turn < total; turn++) {
    /* the first to arrive is always first in line */
    struct small_client *holder = &clients[turn % count];
    double limit = now() + 200000;
    while (fairlock_result(&holder->door) == FAIRLOCK_PENDING && now() < limit)
      fairlock_poll(&holder->client, 20);
    if (fairlock_remaining_ms(&holder->door) == 0) {
      ++*violations;
      while (fairlock_result(&holder->door) == FAIRLOCK_PENDING) {
        for (int i = 0; i < count; i++)
          fairlock_poll(&clients[i].client, 0);
      }
    }
    grants[turn % count]++;
    if (fairlock_release(&holder->door) != FAIRLOCK_OK) exit(1);
    if (turn + count < total) small_client_arrive(holder);
    if (now() - last_beat > 500000) { /* the others' heartbeats */
      for (int i = 0; i < count; i++)
        fairlock_poll(&clients[i].client, 0);
      last_beat = now();
    }
  }
  double rate = total / (now() - begin) * 1e6;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < count; i++) {
    sum += grants[i];
    squares += (double)grants[i] * grants[i];
    fairlock_client_deinit(&clients[i].client);
  }
  *jain = sum * sum / (count * squares);
  free(clients);
  free(grants);
  return rate;
}

void bench_clients(int port)
{
  static const int sizes[] = {2, 10, 100, 1000};
  (void)most_files();
  snprintf(service, sizeof service, "%d", port);
  for (int i = 0; i < 4; i++) {
    int violations;
    double jain;
    double rate = compete(sizes[i], sizes[i] == 1000 ? 3 : 1000 / sizes[i], &violations, &jain);
    clients_curve[clients_points++] = (struct point){sizes[i], rate};
    char name[40];
    snprintf(name, sizeof name, "clients.rate.%d", sizes[i]);
    print_value(name, rate, "handovers a second between so many clients, each with a connection");
    if (sizes[i] < 1000) continue;
    print_value("clients.fair", jain, "Jain's index of grants per client; aim over 0.999");
    print_value("clients.violations", violations, "grants out of order; aim 0");
  }
}

/*
 * Bytes a minute, both ways, of a waiter that only waits: those of its next heartbeats, as often as
 * they go out.
 */
static double idle_bytes(int port, uint32_t waiter_ms, uint32_t beats)
{
  static struct bench_client waiter;
  static struct fairlock waits;
  redisContext *peer = hiredis_open(port);
  bench_client_prepare(&waiter, port);
  waiter.config.waiter_ms = waiter_ms;
  bench_client_start(&waiter);
  fairlock_init(&waits, &waiter.client, "sixteen-byte-nam");
  fairlock_start_acquire(&waits, FAIRLOCK_FOREVER, 30000);
  while (counters_of(&waiter.client).requests == 0 || waits.unanswered != 0)
    fairlock_poll(&waiter.client, 100);
  double before = net_bytes(peer);
  uint32_t sent = counters_of(&waiter.client).requests;
  while (counters_of(&waiter.client).requests - sent < beats || waits.unanswered != 0)
    fairlock_poll(&waiter.client, 100);
  double bytes = (net_bytes(peer) - before) / beats;
  fairlock_cancel(&waits);
  bench_client_close(&waiter);
  redisFree(peer);
  return bytes * 60000 / (waiter_ms / 5 * 2);
}

void bench_wait(int port)
{
  static struct bench_client holder;
  static struct fairlock held;
  redisContext *peer = hiredis_open(port);
  bench_client_open(&holder, port);
  fairlock_init(&held, &holder.client, "sixteen-byte-nam");
  if (fairlock_acquire(&held, 1000, 600000) != FAIRLOCK_OK) exit(1);
  print_value(
      "wait.idle.bytes.5s", idle_bytes(port, 5000, 5),
      "a minute, both ways, of a waiter that only waits, with a waiter timeout of 5 s; aim 9000");
  print_value("wait.idle.bytes.60s", idle_bytes(port, 60000, 1), "the same with 60 s; aim 900");
  bench_client_close(&holder);
  freeReplyObject(redisCommand(peer, "FLUSHALL"));
  redisFree(peer);
}

static double resident(void)
{
  long pages = 0;
  long size;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &size, &pages) != 2) exit(1);
  fclose(file);
  return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void bench_memory(int port)
{
  enum { CLIENTS = 500, LOCKS = 10000 };
  snprintf(service, sizeof service, "%d", port);
  struct small_client *clients = calloc(CLIENTS + 1, sizeof *clients);
  if (clients == NULL) exit(1);
  small_client_open(&clients[CLIENTS], service, "memory");
  double before = resident();
  for (int i = 0; i < CLIENTS; i++) {
    small_client_open(&clients[i], service, "memory");
    if (fairlock_try_acquire(&clients[i].door, 1000) == FAIRLOCK_OK)
      fairlock_release(&clients[i].door);
  }
  print_value("memory.client", (resident() - before) / CLIENTS,
              "bytes, with a connection, a lock and two buffers of 256; aim at most 2048");
  for (int i = 0; i <= CLIENTS; i++)
    fairlock_client_deinit(&clients[i].client);
  free(clients);
  static struct bench_client client;
  bench_client_open(&client, port);
  before = resident();
  struct fairlock *locks = calloc(LOCKS, sizeof *locks);
  if (locks == NULL) exit(1);
  for (int i = 0; i < LOCKS; i++)
    fairlock_init(&locks[i], &client.client, "memory");
  print_value("memory.lock", (resident() - before) / LOCKS,
              "bytes of a further lock; aim at most 128");
  bench_client_close(&client);
  free(locks);
}
