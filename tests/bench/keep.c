/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock that is kept, beside a mutex that nobody else wants; how long a waiter waits for it; and
 * what a device saves that locks once a second.
 */
#include "bench.h"
#include "fairlock_keep.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/proxy.h"

#define KEEP_MS 20000

static struct {
  struct bench_client client;
  struct fairlock_keeping keep;
  struct fairlock door;
} keeper;

/* keep_ms 0: it does not keep. */
static void open_keeper(int port, uint32_t keep_ms, const char *name)
{
  memset(&keeper, 0, sizeof keeper);
  bench_client_prepare(&keeper.client, port);
  keeper.keep.keep_ms = keep_ms;
  must(fairlock_client_init(&keeper.client.client, &keeper.client.config,
                            &keeper.client.socket.transport) == FAIRLOCK_OK,
       "init");
  if (keep_ms > 0)
    must(fairlock_use_keeping(&keeper.client.client, &keeper.keep) == FAIRLOCK_OK, "keep");
  must(fairlock_init(&keeper.door, &keeper.client.client, name) == FAIRLOCK_OK, "init");
}

static void close_keeper(void)
{
  must(fairlock_deinit(&keeper.door) == FAIRLOCK_OK, "deinit");
  bench_client_close(&keeper.client);
}

static void pairs(int count)
{
  for (int i = 0; i < count; i++) {
    if (fairlock_acquire(&keeper.door, 1000, FAIRLOCK_RENEW) != FAIRLOCK_OK ||
        fairlock_release(&keeper.door) != FAIRLOCK_OK)
      exit(1);
  }
}

static double kept(int count)
{
  double begin = now();
  pairs(count);
  return now() - begin;
}

static double mutex(int count)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  double begin = now();
  for (int i = 0; i < count; i++) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
  }
  return now() - begin;
}

static void *run_client(void *context)
{
  (void)context;
  fairlock_run(&keeper.client.client);
  return NULL;
}

/* From the call to the grant, behind a keeper that does nothing, in ms. */
static void recall(int port, struct series *times)
{
  static struct bench_client client;
  static struct fairlock door;
  pthread_t thread;
  open_keeper(port, KEEP_MS, "recall");
  must(pthread_create(&thread, NULL, run_client, NULL) == 0, "thread");
  bench_client_open(&client, port);
  must(fairlock_init(&door, &client.client, "recall") == FAIRLOCK_OK, "init");
  for (int i = 0; i < 20; i++) {
    pairs(2);
    double begin = now();
    must(fairlock_acquire(&door, 10000, FAIRLOCK_RENEW) == FAIRLOCK_OK, "acquire");
    add(times, (now() - begin) / 1000);
    must(fairlock_release(&door) == FAIRLOCK_OK, "release");
  }
  must(fairlock_deinit(&door) == FAIRLOCK_OK, "deinit");
  bench_client_close(&client);
  must(fairlock_deinit(&keeper.door) == FAIRLOCK_OK, "deinit");
  fairlock_stop(&keeper.client.client);
  pthread_join(thread, NULL);
  bench_client_close(&keeper.client);
}

/* Both ways, of a keep that has come to its end, with the pair that began it. */
static double bytes_of_a_keep(int port, redisContext *peer)
{
  open_keeper(port, 50, "sixteen-byte-nam");
  pairs(1);
  double before = net_bytes(peer);
  for (int i = 0; i < 10; i++) {
    double end = now() + 60000;
    while (now() < end)
      fairlock_poll(&keeper.client.client, 5);
    pairs(1);
  }
  double bytes = (net_bytes(peer) - before) / 10;
  close_keeper();
  return bytes;
}

/* The same of a pair that is not kept. */
static double bytes_of_a_pair(int port, redisContext *peer)
{
  open_keeper(port, 0, "sixteen-byte-nam");
  pairs(1);
  double before = net_bytes(peer);
  pairs(100);
  double bytes = (net_bytes(peer) - before) / 100;
  close_keeper();
  return bytes;
}

int only_kept_pairs(int port, int count)
{
  open_keeper(port, KEEP_MS, "kept alone");
  pairs(count);
  close_keeper();
  return 0;
}

void bench_keep(int port)
{
  struct series times = {.count = 0};
  struct series ratio = {.count = 0};
  struct series trips = {.count = 0};
  redisContext *peer = hiredis_open(port);
  const int count = 20000;
  open_keeper(port, KEEP_MS, "kept");
  pairs(10);
  double before = net_bytes(peer);
  for (int round = 0; round < 41; round++) {
    double a = kept(count);
    double b = mutex(count);
    add(&times, a * 1000 / count);
    add(&ratio, a / b);
  }
  print_value("keep.bytes", (net_bytes(peer) - before) / (41.0 * count), "of a pair; aim 0");
  double calls = (system_calls("kept", port, 1100) - system_calls("kept", port, 100)) / 1000;
  print_value("keep.syscalls", calls, "of a pair; aim 0");
  print_row("keep.ns", &times, "of a pair; aim at most 300");
  print_row("keep.mutex", &ratio, "time of a pair over an uncontended mutex");
  close_keeper();

  struct proxy slow;
  proxy_start(&slow, port);
  atomic_store(&slow.control->delay_ms, 5);
  recall(slow.port, &trips);
  for (int i = 0; i < trips.count; i++)
    trips.value[i] /= 10;
  print_row("keep.recall.rtt", &trips, "round trips of 10 ms; aim at most 2.2");
  proxy_stop(&slow);

  double keep = bytes_of_a_keep(port, peer);
  print_value("keep.cycle.bytes", keep, "of a keep, both ways");
  print_value("keep.day.bytes", keep * 86400 * 1000 / KEEP_MS, "a pair each second, kept for 20 s");
  print_value("keep.day.plain", bytes_of_a_pair(port, peer) * 86400, "the same, not kept");
  redisFree(peer);
}
