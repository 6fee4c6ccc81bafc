/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many handles on one client: beside redis-benchmark, which pipelines the same scripts, and beside
 * one hiredis connection each.
 */
#include "bench.h"
#include "engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 1000, MOST_THREADS = 64, THREAD_PAIRS = 9600 };

/* Acquires and releases a second, of 1000 locks by one client. */
static double ours(struct bench_client *client, struct fairlock *handles, int rounds)
{
  double begin = now();
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < MANY; i++)
      fairlock_engine_acquire(&handles[i], 1000, 30000, port_clock_ms());
    finish_all(client, handles, MANY);
    for (int i = 0; i < MANY; i++)
      fairlock_engine_release(&handles[i], port_clock_ms());
    finish_all(client, handles, MANY);
  }
  return (double)rounds * MANY / (now() - begin) * 1e6;
}

/* Requests a second of redis-benchmark, for a request whose key is drawn by it. */
static double redis_benchmark(int port, int count, bool release)
{
  char *formatted;
  char command[1200];
  char line[256];
  double rate = 0;
  int size = format_request(&formatted, "lock:__rand_int__", "0123456789abcdef0123456789abcdef:1",
                            release ? 1 : 0);
  int used = snprintf(command, sizeof command,
                      "redis-benchmark -p %d -c 1 -P 256 -n %d -r 100000000 --csv", port, count);
  /*
   * takes the formatted request apart again: each argument is on a line of its own, after its
   * length
   */
  char *save = NULL;
  strtok_r(formatted, "\r\n", &save);
  for (char *word;
       strtok_r(NULL, "\r\n", &save) != NULL && (word = strtok_r(NULL, "\r\n", &save)) != NULL;) {
    used += snprintf(command + used, sizeof command - (size_t)used, " '%s'", word);
  }
  (void)size;
  redisFreeCommand(formatted);
  FILE *output = popen(command, "r");
  if (output == NULL) return 0;
  while (fgets(line, sizeof line, output) != NULL) {
    char *at = strstr(line, "\",\"");
    if (at != NULL && strstr(line, "EVALSHA") != NULL) rate = strtod(at + 3, NULL);
  }
  pclose(output);
  return rate;
}

void bench_many(int port)
{
  static struct bench_client client;
  static struct fairlock handles[MANY];
  static char names[MANY][24];
  struct series ratio = {.count = 0};
  struct series rates = {.count = 0};
  redisContext *peer = hiredis_open(port);
  bench_client_open(&client, port);
  for (int i = 0; i < MANY; i++) {
    snprintf(names[i], sizeof names[i], "lock:%012d", i);
    fairlock_init(&handles[i], &client.client, names[i]);
  }
  ours(&client, handles, 2);
  for (int round = 0; round < 5; round++) {
    double a = ours(&client, handles, 20);
    double acquires = redis_benchmark(port, 20000, false);
    double releases = redis_benchmark(port, 20000, true);
    double b = 1 / (1 / acquires + 1 / releases);
    freeReplyObject(redisCommand(peer, "FLUSHALL"));
    add(&rates, a);
    if (b > 0) add(&ratio, a / b);
  }
  print_row("many.rate", &rates, "acquire + release a second, 1000 locks, one client");
  print_row("many.ratio", &ratio,
            "over redis-benchmark -P 256 with the same scripts; aim at least 0.8");
  bench_client_close(&client);
  redisFree(peer);
}

/* Threads */

static struct bench_client shared;
static int rounds; /* of each thread */

static void *our_thread(void *context)
{
  struct fairlock *handle = context;
  for (int i = 0; i < rounds; i++) {
    if (fairlock_acquire(handle, 1000, 30000) != FAIRLOCK_OK ||
        fairlock_release(handle) != FAIRLOCK_OK)
      exit(1);
  }
  return NULL;
}

struct their_thread {
  redisContext *redis;
  char name[24];
};

static void *their_thread(void *context)
{
  struct their_thread *self = context;
  for (int i = 0; i < rounds; i++) {
    unsigned long long token = 0;
    for (int step = 0; step < 2; step++) {
      append_request(self->redis, self->name, "0123456789abcdef0123456789abcdef:1", token);
      token = (unsigned long long)take_reply(self->redis, 1);
    }
  }
  return NULL;
}

static double in_threads(int count, void *(*run)(void *), char *contexts, size_t size)
{
  pthread_t threads[MOST_THREADS];
  double begin = now();
  for (int i = 0; i < count; i++)
    pthread_create(&threads[i], NULL, run, contexts + (size_t)i * size);
  for (int i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
  return now() - begin;
}

static void compare_threads(int port, int count, const char *name)
{
  static struct fairlock handles[MOST_THREADS];
  static struct their_thread peers[MOST_THREADS];
  struct series ratio = {.count = 0};
  bench_client_open(&shared, port);
  rounds = THREAD_PAIRS / count;
  for (int i = 0; i < count; i++) {
    snprintf(peers[i].name, sizeof peers[i].name, "thread:%09d", i);
    fairlock_init(&handles[i], &shared.client, peers[i].name);
    peers[i].redis = hiredis_open(port);
  }
  for (int round = 0; round < 12; round++) {
    double a = in_threads(count, our_thread, (char *)handles, sizeof handles[0]);
    double b = in_threads(count, their_thread, (char *)peers, sizeof peers[0]);
    if (round > 0) add(&ratio, b / a);
  }
  print_row(name, &ratio,
            "16, 2 or 64 threads on one client over as many hiredis connections; aim at least 1.0");
  for (int i = 0; i < count; i++) {
    fairlock_deinit(&handles[i]);
    redisFree(peers[i].redis);
  }
  bench_client_close(&shared);
}

void bench_threads(int port)
{
  compare_threads(port, 2, "threads.ratio.2");
  compare_threads(port, 16, "threads.ratio");
  compare_threads(port, MOST_THREADS, "threads.ratio.64");
}
