/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From release called here to acquire returned there: on loopback, beside a bare PUBLISH to a
 * subscriber; and through a proxy that delays each direction, in round trips.
 */
#include "bench.h"
#include "support/proxy.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two clients that hand a lock to and fro, each in a thread */

enum { ROUNDS = 60 };

struct player {
  struct bench_client client;
  struct fairlock door;
  double released[ROUNDS], acquired[ROUNDS];
  int rounds, pause_us;
};

static void *play(void *context)
{
  struct player *player = context;
  for (int i = 0; i < player->rounds; i++) {
    if (fairlock_acquire(&player->door, 60000, 30000) != FAIRLOCK_OK) exit(1);
    player->acquired[i] = now();
    usleep((unsigned)player->pause_us); /* so that the other one is in the queue */
    player->released[i] = now();
    if (fairlock_release(&player->door) != FAIRLOCK_OK) exit(1);
    /* let the other one run first: there may be no processor for both */
    usleep((unsigned)player->pause_us / 2);
  }
  return NULL;
}

/* Microseconds from a release to the acquisition that follows it, the median over some rounds. */
static double hand_to_and_fro(int port, int rounds, int pause_us, const char *name)
{
  static struct player players[2];
  struct series trips = {.count = 0};
  pthread_t thread[2];
  memset(players, 0, sizeof players);
  for (int i = 0; i < 2; i++) {
    bench_client_open(&players[i].client, port);
    fairlock_init(&players[i].door, &players[i].client.client, name);
    players[i].rounds = rounds;
    players[i].pause_us = pause_us;
  }
  for (int i = 0; i < 2; i++)
    pthread_create(&thread[i], NULL, play, &players[i]);
  for (int i = 0; i < 2; i++)
    pthread_join(thread[i], NULL);
  /*
   * the two take turns: the acquisition that follows a release is the earliest later one of the
   * other
   */
  for (int a = 0; a < 2; a++) {
    for (int i = 0; i < rounds - 1; i++) {
      for (int j = 0; j < rounds; j++) {
        double trip = players[1 - a].acquired[j] - players[a].released[i];
        if (trip <= 0) continue;
        if (i > 2 && j > 2) add(&trips, trip);
        break;
      }
    }
  }
  for (int i = 0; i < 2; i++) {
    fairlock_deinit(&players[i].door);
    bench_client_close(&players[i].client);
  }
  return median(&trips);
}

/* The minimum: a command here that has a message published there, both by hiredis. */

struct subscriber {
  redisContext *redis;
  double heard[ROUNDS];
  int rounds;
};

static void *listen_for(void *context)
{
  struct subscriber *subscriber = context;
  redisReply *reply;
  for (int i = 0;
       i < subscriber->rounds && redisGetReply(subscriber->redis, (void **)&reply) == REDIS_OK;
       i++) {
    subscriber->heard[i] = now();
    freeReplyObject(reply);
  }
  return NULL;
}

static void run(redisContext *peer, const char *command)
{
  redisReply *reply = redisCommand(peer, command);
  if (reply == NULL || reply->type == REDIS_REPLY_ERROR) exit(1);
  freeReplyObject(reply);
}

/*
 * Microseconds from the command to the message, the median over some rounds. prepare: a command for
 * each round, or NULL.
 */
static double command_to_message(int port, int rounds, int pause_us, const char *prepare,
                                 const char *command)
{
  static struct subscriber subscriber;
  struct series trips = {.count = 0};
  double said[ROUNDS];
  pthread_t thread;
  redisContext *peer = hiredis_open(port);
  subscriber.redis = hiredis_open(port);
  subscriber.rounds = rounds;
  run(subscriber.redis, "SUBSCRIBE trip:waiter");
  pthread_create(&thread, NULL, listen_for, &subscriber);
  for (int i = 0; i < rounds; i++) {
    if (prepare != NULL) run(peer, prepare);
    usleep((unsigned)pause_us);
    said[i] = now();
    run(peer, command);
  }
  pthread_join(thread, NULL);
  for (int i = 3; i < rounds; i++)
    add(&trips, subscriber.heard[i] - said[i]);
  redisFree(subscriber.redis);
  redisFree(peer);
  return median(&trips);
}

/*
 * The lower limit of a handover in a script: only the commands without which no lock of this data
 * layout can be handed over, one after the other, without any rules.
 */
static const char prepare_text[] =
    "redis.call('hset', KEYS[1], 'holder', 1) redis.call('rpush', KEYS[2], 'waiter') "
    "redis.call('zadd', KEYS[3], 1, 'waiter') redis.call('hset', KEYS[4], 'waiter', 1)";
static const char limit_text[] =
    "local lock, queue, timeout, ours, call = KEYS[1], KEYS[2], KEYS[3], KEYS[4], redis.call\n"
    "local time = call('time')\n"
    "if not call('hget', lock, ARGV[1]) then return 0 end\n"
    "local head = call('lindex', queue, '0')\n"
    "local alive, channel = call('hget', ours, head), 'trip:' .. head\n"
    "if not alive or call('pubsub', 'numsub', channel)[2] == 0 then return 0 end\n"
    "local token = time[1] .. time[2]\n"
    "call('del', lock)\n"
    "call('hset', ours, 'token', token, 'holder', head)\n"
    "call('hset', lock, head, '1')\n"
    "call('pexpire', lock, '5000')\n"
    "call('lrem', queue, '1', head)\n"
    "call('zrem', timeout, head)\n"
    "call('hdel', ours, head)\n"
    "call('publish', channel, token)\n"
    "return 1\n";

static void load_script(int port, const char *text, char command[120])
{
  redisContext *peer = hiredis_open(port);
  redisReply *reply = redisCommand(peer, "SCRIPT LOAD %s", text);
  if (reply == NULL || reply->type != REDIS_REPLY_STRING) exit(1);
  snprintf(command, 120, "EVALSHA %s 4 {limit}1 {limit}2 {limit}3 {limit}4 holder", reply->str);
  freeReplyObject(reply);
  redisFree(peer);
}

void bench_handover(int port)
{
  struct series ratio = {.count = 0};
  struct series limit = {.count = 0};
  struct series loopback_us = {.count = 0};
  struct series trips = {.count = 0};
  char prepare[120];
  char pass_on[120];
  load_script(port, prepare_text, prepare);
  load_script(port, limit_text, pass_on);
  for (int round = 0; round < 35; round++) {
    double a = hand_to_and_fro(port, 30, 3000, "handover");
    double b = command_to_message(port, 30, 3000, NULL, "PUBLISH trip:waiter 1763664000000000");
    double c = command_to_message(port, 30, 3000, prepare, pass_on);
    add(&loopback_us, a);
    add(&ratio, a / b);
    add(&limit, c / b);
  }
  print_row("handover.loopback.us", &loopback_us, "release called here to acquire returned there");
  print_row("handover.loopback.ratio", &ratio,
            "to PUBLISH called here to message there, by hiredis; aim at most 1.3");
  print_row("handover.loopback.limit", &limit,
            "the same ratio of hiredis with a script of only what the layout dictates");
  struct proxy slow;
  proxy_start(&slow, port);
  atomic_store(&slow.control->delay_ms, 5);
  for (int round = 0; round < 5; round++)
    add(&trips, hand_to_and_fro(slow.port, 20, 60000, "far") / 10000);
  print_row("handover.rtt", &trips, "round trips of 10 ms; aim at most 1.1");
}
