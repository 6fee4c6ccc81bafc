/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one more waiter, client or lock costs: bytes on the wire while it waits, memory.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support/counters.h"

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
  char service[8];
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
