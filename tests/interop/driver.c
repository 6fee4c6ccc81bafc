/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of our side: the library, driven by lines. See lab.h for the lines; java/Driver.java
 * speaks the same.
 *
 * The process is one client with one connection; each party is a thread with a handle for each lock
 * it was asked about. Besides, a party has a connection of its own, for its critical sections. It
 * ends at the end of stdin, without giving anything back. It must not retry, correct or order
 * anything by itself.
 *
 * Arguments: PORT [lease=MS] [keep=MS] [waiter=MS] [run=0|1] [cluster=1]. run=1, the default: a
 * thread of its own keeps leases alive; run=0 leaves that to the calls that block, as a small
 * device would. cluster=1: the port is that of a node of a cluster. The passes then do not work:
 * they have one node in mind.
 */
#define _GNU_SOURCE
#include "fairlock.h"
#include "fairlock_follow.h"
#include "fairlock_keep.h"
#include "fairlock_operate.h"
#include "fairlock_share.h"
#include "lab.h"
#include "port_posix.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_PARTIES 128
#define MOST_LOCKS   64

struct party {
  char name[32];
  int pipe[2];
  pthread_t thread;
  struct raw redis;
  struct fairlock handles[MOST_LOCKS];
  struct fairlock_shared shared[MOST_LOCKS];
  bool shares[MOST_LOCKS]; /* it takes that one */
  char locks[MOST_LOCKS][64];
  int count;
};

static struct fairlock_client client;
static struct party parties[MOST_PARTIES];
static int party_count;
static int port;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inspecting = PTHREAD_MUTEX_INITIALIZER;

static void answer(const struct party *party, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void answer(const struct party *party, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&output);
  printf("%s ", party->name);
  vprintf(format, arguments);
  printf("\n");
  fflush(stdout);
  pthread_mutex_unlock(&output);
  va_end(arguments);
}

static int index_of(struct party *party, const char *lock)
{
  for (int i = 0; i < party->count; i++) {
    if (strcmp(party->locks[i], lock) == 0) return i;
  }
  if (party->count == MOST_LOCKS) exit(1);
  int i = party->count++;
  snprintf(party->locks[i], sizeof party->locks[i], "%s", lock);
  if (fairlock_init(&party->handles[i], &client, party->locks[i]) != FAIRLOCK_OK) exit(1);
  return i;
}

static struct fairlock *handle_of(struct party *party, const char *lock)
{
  int i = index_of(party, lock);
  return party->shares[i] ? &party->shared[i].handle : &party->handles[i];
}

/* From now on the party shares this lock. */
static void begin_to_share(struct party *party, const char *lock, long limit)
{
  int i = index_of(party, lock);
  struct fairlock_shared *shared = &party->shared[i];
  int status = party->shares[i]
                   ? FAIRLOCK_OK
                   : fairlock_init_shared(shared, &client, party->locks[i], (uint32_t)limit);
  party->shares[i] = status == FAIRLOCK_OK;
  answer(party, "%d", party->shares[i]);
}

/*
 * "LISTENS ALIVE OURS ID" for each; the holder first, with "TTL COUNT OURS ID", and "-" for its id
 * when there is none. Of several who share, the last.
 */
struct status {
  char text[ANSWER_SIZE];
  size_t size;
  int64_t ttl;
  bool locked;
};

static void add(struct status *status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A part of the truth would look like all of it, so what is too long for an answer ends the driver. */
static void add(struct status *status, const char *format, ...)
{
  size_t room = sizeof status->text - status->size;
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(status->text + status->size, room, format, arguments);
  va_end(arguments);
  if (size < 0 || (size_t)size >= room) exit(1);
  status->size += (size_t)size;
}

static bool report(const struct fairlock_report *item, void *context)
{
  struct status *status = context;
  if (item->place == 0) {
    memset(status, 0, sizeof *status);
    status->ttl = item->ttl_ms;
    status->locked = item->id != NULL;
    add(status, "%lld %lld", (long long)item->ttl_ms, (long long)item->hold_count);
  } else {
    add(status, " %d %d", item->listens, item->life != FAIRLOCK_LIFE_DEAD);
  }
  add(status, " %d %.*s", item->kind == FAIRLOCK_KIND_FAIRLOCK,
      item->id == NULL ? 1 : (int)item->id_size, item->id == NULL ? "-" : item->id);
  return true;
}

static int inspect(const char *lock, struct status *status)
{
  pthread_mutex_lock(&inspecting);
  int result = fairlock_inspect(&client, lock, strlen(lock), report, status);
  pthread_mutex_unlock(&inspecting);
  return result;
}

/* Those who share count as SHARE each, so that who is alone sees them. */
enum { SHARE = 1000 };

/* How many are beside the party, itself included; SHARE or more: one that shares is not alone. */
static long long beside(bool shares, long long inside)
{
  return !shares ? inside : inside % SHARE == 0 ? inside / SHARE : SHARE + inside;
}

static void pass(struct party *party, const char *lock, long long result[3])
{
  struct fairlock *handle = handle_of(party, lock);
  bool shares = party->shares[index_of(party, lock)];
  int weight = shares ? SHARE : 1;
  int status = fairlock_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  result[0] = now_ns();
  result[1] = status == FAIRLOCK_OK ? (long long)fairlock_hold_count(handle) : status;
  result[2] = beside(shares, raw_number(&party->redis, "INCRBY inside:%s %d", lock, weight));
  raw_run(&party->redis, "RPUSH log:%s %s", lock, party->name);
  raw_run(&party->redis, "DECRBY inside:%s %d", lock, weight);
  status = fairlock_release(handle);
  if (status != FAIRLOCK_OK) result[1] = status;
}

static void run(struct party *party, const char *lock, int passes, int pause)
{
  long long count = 0;
  long long inside = 0;
  unsigned seed = (unsigned)now_ns();
  for (int i = 0; i < passes; i++) {
    long long result[3];
    pass(party, lock, result);
    if (result[1] > count || result[1] < 0) count = result[1];
    if (result[2] > inside) inside = result[2];
    if (result[1] < 0) break;
    sleep_ms((int)((unsigned)rand_r(&seed) % (unsigned)(pause + 1)));
  }
  answer(party, "%lld %lld", count, inside);
}

static void bench(struct party *party, struct fairlock *handle, int rounds)
{
  int64_t *times = calloc((size_t)rounds, sizeof *times);
  if (times == NULL) exit(1);
  for (int i = 0; i < rounds; i++) {
    int64_t start = now_ns();
    if (fairlock_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_OK) exit(1);
    fairlock_release(handle);
    times[i] = now_ns() - start;
  }
  int64_t middle = median(times, rounds);
  answer(party, "%lld %lld %lld", (long long)middle, (long long)times[rounds / 10],
         (long long)times[rounds * 9 / 10]);
  free(times);
}

static uint32_t lease_of(long lease)
{
  return lease > 0 ? (uint32_t)lease : FAIRLOCK_RENEW;
}

/* The verbs that wait. */
static bool take(struct party *party, const char *verb, struct fairlock *handle, long first,
                 long second)
{
  int status;
  if (strcmp(verb, "lock") == 0) {
    status = fairlock_acquire(handle, FAIRLOCK_FOREVER, lease_of(first));
    if (status == FAIRLOCK_OK) answer(party, "%lld", (long long)now_ns());
    else answer(party, "error %s", fairlock_status_name(status));
  } else if (strcmp(verb, "try") == 0) {
    answer(party, "%d", fairlock_try_acquire(handle, lease_of(first)) == FAIRLOCK_OK);
  } else if (strcmp(verb, "wait") == 0) {
    status = fairlock_acquire(handle, (uint32_t)first, lease_of(second));
    answer(party, "%d %lld", status == FAIRLOCK_OK, (long long)now_ns());
  } else {
    return false;
  }
  return true;
}

static void unlock(struct party *party, struct fairlock *handle)
{
  long long before = now_ns();
  int status = fairlock_release(handle);
  if (status == FAIRLOCK_OK) answer(party, "%lld %lld", before, (long long)now_ns());
  else if (status == FAIRLOCK_NOT_HELD || status == FAIRLOCK_LOST) answer(party, "not-held");
  else answer(party, "error %s", fairlock_status_name(status));
}

static void look(struct party *party, const char *verb, const char *lock)
{
  struct status status = {0};
  int result = inspect(lock, &status);
  if (result != FAIRLOCK_OK) answer(party, "error %s", fairlock_status_name(result));
  else if (strcmp(verb, "status") == 0) answer(party, "%s", status.text);
  else if (strcmp(verb, "ttl") == 0) answer(party, "%lld", (long long)status.ttl);
  else if (strcmp(verb, "locked") == 0) answer(party, "%d", status.locked);
  else answer(party, "error verb");
}

static void carry_out(struct party *party, char *line)
{
  char lock[64] = "", verb[32] = "", id[FAIRLOCK_HOLDER_ID_SIZE];
  long first = -1;
  long second = -1;
  sscanf(line, "%*s %63s %31s %ld %ld", lock, verb, &first, &second);
  if (strcmp(verb, "share") == 0) {
    begin_to_share(party, lock, first);
    return;
  }
  struct fairlock *handle = handle_of(party, lock);
  if (take(party, verb, handle, first, second)) return;
  if (strcmp(verb, "id") == 0) {
    fairlock_id(handle, id, FAIRLOCK_HOLDER_ID_SIZE);
    answer(party, "%s", id);
  } else if (strcmp(verb, "clock") == 0) {
    answer(party, "%lld", (long long)now_ns());
  } else if (strcmp(verb, "unlock") == 0) {
    unlock(party, handle);
  } else if (strcmp(verb, "force") == 0) {
    answer(party, "%d",
           fairlock_force_release(&client, lock, strlen(lock), FAIRLOCK_ANY_TOKEN) == FAIRLOCK_OK);
  } else if (strcmp(verb, "count") == 0) {
    answer(party, "%u", (unsigned)fairlock_hold_count(handle));
  } else if (strcmp(verb, "pass") == 0) {
    long long result[3];
    pass(party, lock, result);
    answer(party, "%lld %lld %lld", result[0], result[1], result[2]);
  } else if (strcmp(verb, "run") == 0) {
    run(party, lock, (int)first, (int)second);
  } else if (strcmp(verb, "bench") == 0) {
    bench(party, handle, (int)first);
  } else {
    look(party, verb, lock);
  }
}

static void *live(void *context)
{
  struct party *party = context;
  char line[512];
  FILE *lines = fdopen(party->pipe[0], "r");
  if (lines == NULL || !raw_open(&party->redis, port)) exit(1);
  while (fgets(line, sizeof line, lines) != NULL)
    carry_out(party, line);
  return NULL;
}

static struct party *party_of(const char *name)
{
  for (int i = 0; i < party_count; i++) {
    if (strcmp(parties[i].name, name) == 0) return &parties[i];
  }
  if (party_count == MOST_PARTIES) exit(1);
  struct party *party = &parties[party_count++];
  snprintf(party->name, sizeof party->name, "%s", name);
  if (pipe(party->pipe) < 0 || pthread_create(&party->thread, NULL, live, party) != 0) exit(1);
  return party;
}

static void *keep_alive(void *context)
{
  fairlock_run(context);
  return NULL;
}

int main(int argc, char **argv)
{
  static char receive_buffer[1024], send_buffer[4096];
  static struct fairlock_config config = {.receive_buffer = receive_buffer,
                                          .receive_size = sizeof receive_buffer,
                                          .send_buffer = send_buffer,
                                          .send_size = sizeof send_buffer};
  static struct port_posix server;
  static char address[64], seed[32];
  static struct fairlock_topology topology = {
      .address = address, .address_size = sizeof address, .cluster = true};
  char line[512], name[32];
  bool runs = true;
  bool cluster = false;
  static struct fairlock_keeping keep;
  pthread_t runner;
  for (int i = 2; i < argc; i++) {
    if (strncmp(argv[i], "lease=", 6) == 0) config.lease_ms = (uint32_t)atoi(argv[i] + 6);
    if (strncmp(argv[i], "waiter=", 7) == 0) config.waiter_ms = (uint32_t)atoi(argv[i] + 7);
    if (strncmp(argv[i], "keep=", 5) == 0) keep.keep_ms = (uint32_t)atoi(argv[i] + 5);
    if (strcmp(argv[i], "run=0") == 0) runs = false;
    if (strcmp(argv[i], "cluster=1") == 0) cluster = true;
  }
  port = atoi(argv[1]);
  snprintf(seed, sizeof seed, "127.0.0.1:%d", port);
  if (!cluster) port_posix_tcp(&server, "127.0.0.1", argv[1]);
  else if (!port_posix_seeds(&server, seed)) return 1;
  if (fairlock_client_init(&client, &config, &server.transport) != FAIRLOCK_OK) return 1;
  if (cluster && fairlock_follow(&client, &topology) != FAIRLOCK_OK) return 1;
  if (keep.keep_ms > 0 && fairlock_use_keeping(&client, &keep) != FAIRLOCK_OK) return 1;
  if (fairlock_connect(&client) != FAIRLOCK_OK) return 1;
  if (runs && pthread_create(&runner, NULL, keep_alive, &client) != 0) return 1;
  printf("ready %lld\n", (long long)now_ns());
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (sscanf(line, "%31s", name) != 1) continue;
    size_t size = strlen(line);
    if (write(party_of(name)->pipe[1], line, size) != (ssize_t)size) return 1;
  }
  _exit(0);
}
