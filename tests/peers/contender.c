/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A contender in C: `contender fairlock|hand PORT`. It speaks the lines of README.md. "hand" is
 * what people write themselves: SET NX PX, asked again each 10 ms, and compare-and-delete.
 */
#include "fairlock.h"
#include "port_posix.h"
#include "support/clock.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOCK     "sixteen-byte-nam"
#define LEASE_MS 30000
#define HOLD_US  3000
#define PAUSE_US 6000
#define RETRY_US 10000

struct contender {
  const char *name;
  const char *version;
  void (*connect)(const char *port);
  void (*acquire)(void);
  void (*release)(void);
};

static void must(int condition, const char *what)
{
  if (condition) return;
  fprintf(stderr, "contender: %s\n", what);
  exit(1);
}

/* fairlock */

static struct port_posix tcp;
static struct fairlock_client client;
static struct fairlock door;

static void fairlock_begin(const char *port)
{
  static unsigned char received[FAIRLOCK_RECEIVE_SIZE(64, 0)], sent[1024];
  static const struct fairlock_config config = {
      .receive_buffer = received,
      .receive_size = sizeof received,
      .send_buffer = sent,
      .send_size = sizeof sent,
  };
  port_posix_tcp(&tcp, "127.0.0.1", port);
  must(fairlock_client_init(&client, &config, &tcp.transport) == FAIRLOCK_OK, "client");
  must(fairlock_init(&door, &client, LOCK) == FAIRLOCK_OK, "lock");
  must(fairlock_connect(&client) == FAIRLOCK_OK, "no server");
}

static void fairlock_take(void)
{
  must(fairlock_acquire(&door, FAIRLOCK_FOREVER, LEASE_MS) == FAIRLOCK_OK, "acquire");
}

static void fairlock_give(void)
{
  must(fairlock_release(&door) == FAIRLOCK_OK, "release");
}

/* By hand */

static redisContext *redis;
static char owner[32];

static void hand_begin(const char *port)
{
  redis = redisConnect("127.0.0.1", atoi(port));
  must(redis != NULL && redis->err == 0, "no server");
}

static bool set_if_free(void)
{
  redisReply *reply = redisCommand(redis, "SET %s %s NX PX %d", LOCK, owner, LEASE_MS);
  must(reply != NULL && reply->type != REDIS_REPLY_ERROR, "SET");
  bool set = reply->type == REDIS_REPLY_STATUS;
  freeReplyObject(reply);
  return set;
}

static void hand_acquire(void)
{
  (void)snprintf(owner, sizeof owner, "%08lx%016" PRIx64, mrand48() & 0xffffffff, now_ns());
  while (!set_if_free())
    (void)usleep(RETRY_US);
}

static void hand_release(void)
{
  static const char script[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                               "return redis.call('del', KEYS[1]) else return 0 end";
  redisReply *reply = redisCommand(redis, "EVAL %s 1 %s %s", script, LOCK, owner);
  must(reply != NULL && reply->integer == 1, "release");
  freeReplyObject(reply);
}

/* Both */

#define TEXT(number)  #number
#define TEXT_OF(text) TEXT(text)

static const struct contender contenders[] = {
    {"fairlock", FAIRLOCK_VERSION, fairlock_begin, fairlock_take, fairlock_give},
    {"hand",
     "(hiredis " TEXT_OF(HIREDIS_MAJOR) "." TEXT_OF(HIREDIS_MINOR) "." TEXT_OF(HIREDIS_PATCH) ")",
     hand_begin, hand_acquire, hand_release},
};

static void print_all(const int64_t *numbers, int count)
{
  printf("done 0\n");
  fflush(stdout);
  for (int i = 0; i < count; i++)
    printf("%" PRId64 " ", numbers[i]);
  printf("\n");
  fflush(stdout);
}

static void run_pairs(const struct contender *self, int count)
{
  int64_t *took = calloc((size_t)count, sizeof *took);
  must(took != NULL, "no memory");
  for (int i = 0; i < count; i++) {
    int64_t start = now_ns();
    self->acquire();
    self->release();
    took[i] = now_ns() - start;
  }
  print_all(took, count);
  free(took);
}

static void contend(const struct contender *self, int count)
{
  int64_t *events = calloc((size_t)count * 3, sizeof *events);
  must(events != NULL, "no memory");
  for (int i = 0; i < count; i++) {
    events[3 * i] = now_ns();
    self->acquire();
    events[3 * i + 1] = now_ns();
    (void)usleep(HOLD_US);
    events[3 * i + 2] = now_ns();
    self->release();
    (void)usleep((useconds_t)(drand48() * PAUSE_US));
  }
  print_all(events, count * 3);
  free(events);
}

int main(int argc, char **argv)
{
  const struct contender *self = contenders;
  char line[64];
  int count;
  must(argc == 3, "contender fairlock|hand PORT");
  if (strcmp(argv[1], self->name) != 0) self++;
  srand48((long)now_ns());
  self->connect(argv[2]);
  printf("ready %" PRId64 " %s\n", now_ns(), self->version);
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (sscanf(line, "pairs %d", &count) == 1) run_pairs(self, count);
    if (sscanf(line, "contend %d", &count) == 1) contend(self, count);
  }
  return 0;
}
