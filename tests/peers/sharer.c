/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sharer in C: `sharer lock|semaphore PORT`. It speaks the lines of README.md. Each of its
 * contenders is a thread with a client of its own, as on a device.
 */
#include "fairlock.h"
#include "fairlock_share.h"
#include "port_posix.h"
#include "support/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEASE_MS 10000
#define HOLD_US  20000
#define PAUSE_US 6000
#define LIMIT    4
#define SHARERS  16 /* the last ones are those that hold until they are told to end */
#define NUMBERS  6000

struct sharer {
  struct port_posix tcp;
  struct fairlock_config config;
  struct fairlock_client client;
  struct fairlock_shared shared;
  struct fairlock alone;
  unsigned char received[FAIRLOCK_RECEIVE_SIZE(64, 0)], sent[1024];
  pthread_t thread;
  struct fairlock *handle; /* what its turns are at */
};

static struct sharer sharers[SHARERS];
static int contenders = 1, holders;
static int64_t end_ns;

/* What is reported. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t numbers[NUMBERS];
static int count;

static void must(int condition, const char *what)
{
  if (condition) return;
  fprintf(stderr, "sharer: %s\n", what);
  exit(1);
}

static void open_sharer(struct sharer *sharer, const char *kind, const char *port)
{
  sharer->config = (struct fairlock_config){
      .receive_buffer = sharer->received,
      .receive_size = sizeof sharer->received,
      .send_buffer = sharer->sent,
      .send_size = sizeof sharer->sent,
  };
  uint32_t limit = strcmp(kind, "semaphore") == 0 ? LIMIT : 0;
  port_posix_tcp(&sharer->tcp, "127.0.0.1", port);
  must(fairlock_client_init(&sharer->client, &sharer->config, &sharer->tcp.transport) ==
           FAIRLOCK_OK,
       "client");
  must(fairlock_init_shared(&sharer->shared, &sharer->client, kind, limit) == FAIRLOCK_OK,
       "shared lock");
  must(fairlock_init(&sharer->alone, &sharer->client, kind) == FAIRLOCK_OK, "lock");
  must(fairlock_connect(&sharer->client) == FAIRLOCK_OK, "no server");
}

static void acquire(struct fairlock *handle)
{
  must(fairlock_acquire(handle, FAIRLOCK_FOREVER, LEASE_MS) == FAIRLOCK_OK, "acquire");
}

static void release(struct fairlock *handle)
{
  must(fairlock_release(handle) == FAIRLOCK_OK, "release");
}

static void report(const int64_t *more, int how_many)
{
  pthread_mutex_lock(&mutex);
  must(count + how_many <= NUMBERS, "too many numbers");
  memcpy(numbers + count, more, (size_t)how_many * sizeof *more);
  count += how_many;
  pthread_mutex_unlock(&mutex);
}

static void answer(void)
{
  printf("done 0\n");
  for (int i = 0; i < count; i++)
    printf("%" PRId64 " ", numbers[i]);
  printf("\n");
  fflush(stdout);
  count = 0;
}

static void run_pairs(int pairs)
{
  struct fairlock *handle = &sharers[0].shared.handle;
  for (int i = 0; i < pairs; i++) {
    int64_t start = now_ns();
    acquire(handle);
    release(handle);
    int64_t took = now_ns() - start;
    report(&took, 1);
  }
  answer();
}

/* Turns for so long, and at least one. */
static void *take_turns(void *context)
{
  struct fairlock *handle = ((struct sharer *)context)->handle;
  unsigned short seed[3] = {(unsigned short)now_ns(), (unsigned short)((uintptr_t)context >> 8), 0};
  do {
    int64_t turn[3] = {now_ns()};
    acquire(handle);
    turn[1] = now_ns();
    (void)usleep(HOLD_US);
    turn[2] = now_ns();
    release(handle);
    report(turn, 3);
    (void)usleep((useconds_t)(erand48(seed) * PAUSE_US));
  } while (now_ns() < end_ns);
  return NULL;
}

static void contend(bool alone, int ms)
{
  end_ns = now_ns() + (int64_t)ms * 1000000;
  for (int i = 0; i < contenders; i++) {
    struct sharer *sharer = &sharers[i];
    sharer->handle = alone ? &sharer->alone : &sharer->shared.handle;
    must(pthread_create(&sharer->thread, NULL, take_turns, sharer) == 0, "no thread");
  }
  for (int i = 0; i < contenders; i++)
    (void)pthread_join(sharers[i].thread, NULL);
  answer();
}

static void hold(int how_many)
{
  for (holders = 0; holders < how_many; holders++)
    acquire(&sharers[SHARERS - 1 - holders].shared.handle);
  answer();
}

static void end_holds(void)
{
  while (holders > 0)
    release(&sharers[SHARERS - holders--].shared.handle);
  answer();
}

static void serve(const char *verb, int number)
{
  if (strcmp(verb, "contenders") == 0) contenders = number;
  if (strcmp(verb, "pairs") == 0) run_pairs(number);
  if (strcmp(verb, "share") == 0) contend(false, number);
  if (strcmp(verb, "alone") == 0) contend(true, number);
  if (strcmp(verb, "hold") == 0) hold(number);
  if (strcmp(verb, "end") == 0) end_holds();
}

int main(int argc, char **argv)
{
  char line[64], verb[16];
  int number;
  must(argc == 3, "sharer lock|semaphore PORT");
  for (int i = 0; i < SHARERS; i++)
    open_sharer(&sharers[i], argv[1], argv[2]);
  printf("ready %" PRId64 " %s\n", now_ns(), FAIRLOCK_VERSION);
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (sscanf(line, "%15s %d", verb, &number) == 2) serve(verb, number);
  }
  return 0;
}
