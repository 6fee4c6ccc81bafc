/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client for other languages costs beside fairlock.h: an acquire and a release of a free
 * lock by each, in turns, on a server of our own. Best rounds, and their ratios.
 */
#include "scene.h"

#include <stdio.h>

enum { ROUNDS = 15, PAIRS = 2000 };

static struct client plain;
static struct fairlock handle;
static struct fls_client *client;
static struct fls_lock *lock;

static bool pair_of_plain(void)
{
  return fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) == FAIRLOCK_OK &&
         fairlock_release(&handle) == FAIRLOCK_OK;
}

static bool pair_of_waits(void)
{
  return acquire(lock) == FLS_OK && release(lock) == FLS_OK;
}

static bool pair_of_events(void)
{
  struct fls_event event = {.size = sizeof event};
  return fls_acquire(lock, FLS_FOREVER, FLS_RENEW, 1) == FLS_PENDING &&
         fls_next(client, SOON, &event) == 1 && fls_release(lock, 1) == FLS_PENDING &&
         fls_next(client, SOON, &event) == 1 && event.status == FLS_OK;
}

static const struct way {
  const char *name;
  bool (*pair)(void);
} ways[] = {
    {"fairlock.h", pair_of_plain}, {"fls_wait()", pair_of_waits}, {"fls_next()", pair_of_events}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void bench(void)
{
  double best[WAYS] = {0};
  begin();
  client_open(&plain, server.port);
  CHECK_EQUAL(fairlock_init(&handle, &plain.client, "plain"), FAIRLOCK_OK);
  client = open_service(NULL);
  lock = make_lock(client, "served", 0);
  for (int round = 0; round < ROUNDS; round++) {
    for (int way = 0; way < WAYS; way++) {
      bool right = true;
      int64_t began = now_us();
      for (int i = 0; i < PAIRS; i++)
        right &= ways[way].pair();
      double each = (double)(now_us() - began) / PAIRS;
      CHECK(right);
      if (round == 0 || each < best[way]) best[way] = each;
    }
  }
  for (int way = 0; way < WAYS; way++)
    printf("%-12s %6.1f us a pair   %.2f\n", ways[way].name, best[way], best[way] / best[0]);
  fls_close(client, SOON);
  client_close(&plain);
}

const struct check_test check_tests[] = {{"bench", bench}, {0}};
