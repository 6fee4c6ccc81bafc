/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are shared: what a thousand holders cost the server, measured as in server_time.c; how
 * long it takes a thousand to enter; and how long a writer waits among sixteen readers who want the
 * lock again as soon as they have released it.
 */
#include "bench.h"
#include "fairlock_share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "texts.h"

enum { CROWD = 1000, BATCH = SCRIPT_BATCH, ROUNDS = 31, LEASE_MS = 600000 };
enum { READERS = 16, HOLD_MS = 20, RUN_MS = 2000, RUNS = 5 };

static long long tokens[CROWD + 1];

/* A request of one that shares; lease 0: its release. */
static void append_share(redisContext *peer, int who, int mode, int lease, long long token)
{
  char words[120];
  long long expires = ((long long)time(NULL) + 100) * 1000;
  int size = snprintf(words, sizeof words, "crowd:%d %lld %d %d", who, expires, mode, lease);
  if (token > 0) (void)snprintf(words + size, sizeof words - (size_t)size, " %lld", token);
  redisAppendCommand(peer,
                     "EVALSHA %s 4 crowd redisson_lock_queue:{crowd} redisson_lock_timeout:{crowd} "
                     "fairlock:{crowd} %s %d",
                     fairlock_shared_script.sha1, words, CROWD);
}

static void load_shared(redisContext *peer)
{
  static char text[1 << 14];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text, 0);
  fairlock_script_unpack(&writer, &fairlock_shared_script);
  freeReplyObject(redisCommand(peer, "SCRIPT LOAD %b", text, writer.used));
}

/* Those from first on join, with leases of many lengths, so that they end at many times. */
static void join(redisContext *peer, int first, int count)
{
  for (int i = first; i < first + count; i++)
    append_share(peer, i, 0, LEASE_MS + i * 500, 0);
  for (int i = first; i < first + count; i++)
    tokens[i] = take_reply(peer, 1);
}

static void leave(redisContext *peer, int first, int count)
{
  for (int i = first; i < first + count; i++)
    append_share(peer, i, 0, 0, tokens[i]);
  for (int i = first; i < first + count; i++)
    take_reply(peer, 1);
}

static struct script_cost renew(redisContext *peer, int first)
{
  scripts_reset(peer);
  for (int i = first; i < first + BATCH; i++)
    append_share(peer, i, -1, LEASE_MS + i * 500, tokens[i]);
  for (int i = first; i < first + BATCH; i++)
    take_reply(peer, 1);
  return scripts_cost(peer);
}

/* One more tries. */
static struct script_cost try_at_limit(redisContext *peer)
{
  scripts_reset(peer);
  for (int i = 0; i < BATCH; i++)
    append_share(peer, CROWD, 0, LEASE_MS, 0);
  for (int i = 0; i < BATCH; i++)
    take_reply(peer, 0);
  return scripts_cost(peer);
}

static struct script_cost joins(redisContext *peer, int first)
{
  scripts_reset(peer);
  join(peer, first, BATCH);
  return scripts_cost(peer);
}

static struct script_cost leaves(redisContext *peer, int first)
{
  scripts_reset(peer);
  leave(peer, first, BATCH);
  return scripts_cost(peer);
}

/* Beside so many others: 0 or nearly all that may. */
static void measure(redisContext *peer, int others)
{
  static struct script_rows in, on, out, full;
  char name[32];
  memset(&in, 0, sizeof in), memset(&on, 0, sizeof on);
  memset(&out, 0, sizeof out), memset(&full, 0, sizeof full);
  join(peer, 0, others);
  for (int round = 0; round < ROUNDS; round++) {
    add_script_cost(&in, peer, joins(peer, others));
    add_script_cost(&on, peer, renew(peer, others));
    if (others + BATCH == CROWD) add_script_cost(&full, peer, try_at_limit(peer));
    add_script_cost(&out, peer, leaves(peer, others));
  }
  (void)snprintf(name, sizeof name, "join.%d", others + BATCH);
  print_script_rows(&in, name, "who joins up to so many others");
  (void)snprintf(name, sizeof name, "share.%d", others + BATCH);
  print_script_rows(&on, name, "a renewal of one of them");
  (void)snprintf(name, sizeof name, "leave.%d", others + BATCH);
  print_script_rows(&out, name, "a release of one of them");
  if (full.us.count > 0) print_script_rows(&full, "limit", "a try when as many hold as may");
  leave(peer, 0, others);
}

/* A thousand wait, and enter; milliseconds of the server. */
static double enter(redisContext *peer, redisContext *listener, int waiter_ms)
{
  redisReply *reply;
  append_request(peer, "crowd", "alone:1", 0);
  long long alone = take_reply(peer, 1);
  for (int i = 0; i < CROWD; i++) {
    append_share(peer, i, waiter_ms, LEASE_MS, 0);
    take_reply(peer, 0);
  }
  scripts_reset(peer);
  append_request(peer, "crowd", "alone:1", (unsigned long long)alone);
  take_reply(peer, 1);
  for (int i = 0; i < CROWD; i++) {
    int who = -1;
    must(redisGetReply(listener, (void **)&reply) == REDIS_OK && reply->elements == 3, "a message");
    must(sscanf(reply->element[1]->str, "redisson_lock__channel:{crowd}:crowd:%d", &who) == 1 &&
             who == i,
         "a grant in order");
    tokens[i] = atoll(reply->element[2]->str);
    freeReplyObject(reply);
    append_share(peer, i, -1, LEASE_MS, tokens[i]);
    take_reply(peer, 1);
  }
  double us = info_number(peer, "commandstats", "cmdstat_evalsha:usec=");
  leave(peer, 0, CROWD);
  return us / 1000;
}

static void measure_entering(redisContext *peer, int port)
{
  struct series brief = {.count = 0};
  struct series lasting = {.count = 0};
  redisContext *listener = hiredis_open(port);
  for (int i = 0; i < CROWD; i++)
    freeReplyObject(redisCommand(listener, "SUBSCRIBE redisson_lock__channel:{crowd}:crowd:%d", i));
  for (int round = 0; round < 9; round++) {
    add(&brief, enter(peer, listener, 5000));
    add(&lasting, enter(peer, listener, 600000));
  }
  print_row("server.enter.5s.ms", &brief,
            "server's time until 1000 who waited share, waiter timeout 5 s; aim at most 100");
  print_row("server.enter.600s.ms", &lasting, "the same with 600 s; aim at most 100");
  redisFree(listener);
}

/* Readers and a writer */

struct contender {
  struct bench_client client;
  struct fairlock_shared shared;
  struct fairlock alone;
  struct fairlock *lock; /* whichever of the two it wants */
  double since, longest; /* us */
  bool holds;
};

static struct contender contenders[READERS + 1]; /* the last one writes */

static void want(struct contender *each)
{
  each->since = now();
  each->holds = false;
  must(fairlock_start_acquire(each->lock, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) == FAIRLOCK_PENDING,
       "a wait");
}

static void open_contender(struct contender *each, int port, bool writes)
{
  bench_client_open(&each->client, port);
  must(fairlock_init_shared(&each->shared, &each->client.client, "book", 0) == FAIRLOCK_OK &&
           fairlock_init(&each->alone, &each->client.client, "book") == FAIRLOCK_OK,
       "two handles");
  each->lock = writes ? &each->alone : &each->shared.handle;
  want(each);
}

/* Waits, holds for a while, and waits again. */
static void go_on(struct contender *each)
{
  (void)fairlock_poll(&each->client.client, 0);
  int result = fairlock_result(each->lock);
  if (result == FAIRLOCK_PENDING) return;
  must(result == FAIRLOCK_OK, "a hold");
  if (!each->holds) {
    each->holds = true;
    if (now() - each->since > each->longest) each->longest = now() - each->since;
    each->since = now();
  } else if (fairlock_hold_count(each->lock) == 0) {
    want(each);
  } else if (now() - each->since >= HOLD_MS * 1000) {
    (void)fairlock_start_release(each->lock);
  }
}

static void measure_writer(int port)
{
  struct series writer = {.count = 0};
  struct series reader = {.count = 0};
  memset(contenders, 0, sizeof contenders);
  for (int i = 0; i <= READERS; i++)
    open_contender(&contenders[i], port, i == READERS);
  for (int run = 0; run < RUNS; run++) {
    double until = now() + RUN_MS * 1000.0;
    double longest = 0;
    for (int i = 0; i <= READERS; i++)
      contenders[i].longest = 0;
    while (now() < until)
      for (int i = 0; i <= READERS; i++)
        go_on(&contenders[i]);
    for (int i = 0; i < READERS; i++)
      if (contenders[i].longest > longest) longest = contenders[i].longest;
    add(&writer, contenders[READERS].longest / (HOLD_MS * 1000));
    add(&reader, longest / (HOLD_MS * 1000));
  }
  print_row("shared.writer.longest", &writer,
            "longest wait of a writer among 16 readers, in holds of 20 ms; aim at most 2");
  print_row("shared.reader.longest", &reader, "of any of the readers; aim at most 3");
  for (int i = 0; i <= READERS; i++)
    bench_client_close(&contenders[i].client);
}

void bench_shared(int port)
{
  redisContext *peer = hiredis_open(port);
  load_shared(peer);
  measure(peer, 0);
  measure(peer, CROWD - BATCH);
  measure_entering(peer, port);
  measure_writer(port);
  freeReplyObject(redisCommand(peer, "FLUSHALL"));
  redisFree(peer);
}
