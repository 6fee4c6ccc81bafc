/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several locks of a cluster at once, with any names: an array of clients, one for each slot
 * in use.
 *
 *     slots HOST:PORT,HOST:PORT,... NAME...
 *
 * A client is on one node at a time, and its locks have to be in one slot. Where a program may
 * choose the names, "{door}inner" and "{door}outer" are in one slot, and one client is enough. Here
 * fairlock_slot() says which client a lock belongs to. Two slots of one node get two clients: slots
 * move one by one.
 *
 * Acquires all the locks, holds them until a line or the end of its input comes, and releases them.
 */
#include <fairlock/fairlock.h>
#include <fairlock/fairlock_follow.h>
#include <fairlock/port_posix.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARDS 16
#define LOCKS  64

struct shard {
  unsigned slot;
  struct port_posix socket;
  struct fairlock_topology topology;
  struct fairlock_config config;
  struct fairlock_client client;
  pthread_t runner;
  char address[263];
  uint8_t receive_buffer[1024], send_buffer[1024];
};

static struct shard shards[SHARDS];
static int shard_count;
static struct fairlock locks[LOCKS];
static int lock_count;

/* Keeps the leases of a client's locks alive. */
static void *run(void *context)
{
  struct shard *shard = context;
  fairlock_run(&shard->client);
  return NULL;
}

static bool start_shard(struct shard *shard, const char *seeds, unsigned slot)
{
  shard->slot = slot;
  shard->config = (struct fairlock_config){.receive_buffer = shard->receive_buffer,
                                           .receive_size = sizeof shard->receive_buffer,
                                           .send_buffer = shard->send_buffer,
                                           .send_size = sizeof shard->send_buffer};
  shard->topology.address = shard->address;
  shard->topology.address_size = sizeof shard->address;
  shard->topology.cluster = true;
  if (!port_posix_seeds(&shard->socket, seeds)) return false;
  int status = fairlock_client_init(&shard->client, &shard->config, &shard->socket.transport);
  if (status == FAIRLOCK_OK) status = fairlock_follow(&shard->client, &shard->topology);
  return status == FAIRLOCK_OK && pthread_create(&shard->runner, NULL, run, shard) == 0;
}

/* The client for a lock; NULL: too many slots. */
static struct fairlock_client *client_for(const char *seeds, const char *name)
{
  unsigned slot = fairlock_slot(name, strlen(name));
  for (int i = 0; i < shard_count; i++) {
    if (shards[i].slot == slot) return &shards[i].client;
  }
  if (shard_count == SHARDS || !start_shard(&shards[shard_count], seeds, slot)) return NULL;
  return &shards[shard_count++].client;
}

static int acquire(const char *seeds, const char *name)
{
  struct fairlock_client *client = client_for(seeds, name);
  if (client == NULL || lock_count == LOCKS) return FAIRLOCK_INVALID;
  int status = fairlock_init(&locks[lock_count], client, name);
  if (status != FAIRLOCK_OK) return status;
  return fairlock_acquire(&locks[lock_count++], FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
}

/* Returns how many had been lost before. */
static int release_all(void)
{
  int lost = 0;
  for (int i = 0; i < lock_count; i++) {
    lost += fairlock_release(&locks[i]) != FAIRLOCK_OK;
    while (fairlock_deinit(&locks[i]) != FAIRLOCK_OK) {
      /* the release is sent again, until its lease has ended at the latest */
    }
  }
  for (int i = 0; i < shard_count; i++) {
    fairlock_stop(&shards[i].client);
    pthread_join(shards[i].runner, NULL);
    fairlock_client_deinit(&shards[i].client);
  }
  return lost;
}

static int by_name(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
  if (argc < 3) {
    fprintf(stderr, "usage: slots HOST:PORT,HOST:PORT,... NAME...\n");
    return 2;
  }
  /* in the same order everywhere, so that no two programs wait for each other */
  qsort(argv + 2, (size_t)argc - 2, sizeof *argv, by_name);
  for (int i = 2; i < argc; i++) {
    int status = acquire(argv[1], argv[i]);
    if (status == FAIRLOCK_OK) continue;
    printf("%s: %s\n", argv[i], fairlock_status_text(status));
    (void)release_all();
    return 1;
  }
  printf("%d locks held by %d clients\n", lock_count, shard_count);
  fflush(stdout);
  (void)getchar();
  int lost = release_all();
  printf("released, %d lost\n", lost);
  return lost > 0;
}
