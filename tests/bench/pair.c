/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One caller that acquires and releases an uncontended lock, beside hiredis that sends the same two
 * requests.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char name[] = "sixteen-byte-nam";

static double ours(struct fairlock *door, int count)
{
  double begin = now();
  for (int i = 0; i < count; i++) {
    if (fairlock_acquire(door, 1000, 30000) != FAIRLOCK_OK || fairlock_release(door) != FAIRLOCK_OK)
      exit(1);
  }
  return now() - begin;
}

/* Sends one request, waits for the answer, and returns its second number. */
static long long ask(redisContext *peer, unsigned long long token)
{
  append_request(peer, name, "0123456789abcdef0123456789abcdef:1", token);
  return take_reply(peer, 1);
}

static double theirs(redisContext *peer, int count)
{
  double begin = now();
  for (int i = 0; i < count; i++)
    ask(peer, (unsigned long long)ask(peer, 0));
  return now() - begin;
}

/* What people write by hand, which is not fair: SET NX PX, and a script that compares and deletes. */
static double by_hand(redisContext *peer, int count)
{
  static const char *const id = "0123456789abcdef0123456789abcdef:1";
  redisReply *script = redisCommand(peer, "SCRIPT LOAD %s",
                                    "if redis.call('get', KEYS[1]) == ARGV[1] then return "
                                    "redis.call('del', KEYS[1]) end return 0");
  double begin = now();
  for (int i = 0; i < count; i++) {
    redisReply *set = redisCommand(peer, "SET by:hand:%s %s NX PX 30000", name, id);
    redisReply *deleted = redisCommand(peer, "EVALSHA %s 1 by:hand:%s %s", script->str, name, id);
    if (set->type != REDIS_REPLY_STATUS || deleted->integer != 1) exit(1);
    freeReplyObject(set);
    freeReplyObject(deleted);
  }
  double time = now() - begin;
  freeReplyObject(script);
  return time;
}

double system_calls(const char *what, int port, int count)
{
  char self[256];
  char command[400];
  char line[200];
  double total = 0;
  ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  if (size <= 0) return 0;
  self[size] = 0;
  snprintf(command, sizeof command, "strace -f -qq -c '%s' %s %d %d 2>&1 >/dev/null", self, what,
           port, count);
  FILE *output = popen(command, "r");
  if (output == NULL) return 0;
  while (fgets(line, sizeof line, output) != NULL) {
    double share, seconds, each, calls;
    if (strstr(line, "total") != NULL &&
        sscanf(line, "%lf %lf %lf %lf", &share, &seconds, &each, &calls) == 4)
      total = calls;
  }
  must(pclose(output) == 0, "system calls");
  return total;
}

void bench_pair(int port)
{
  static struct bench_client client;
  static struct fairlock door;
  struct series ratio = {.count = 0};
  struct series times = {.count = 0};
  struct series plain = {.count = 0};
  redisContext *peer = hiredis_open(port);
  const int count = 500;
  bench_client_open(&client, port);
  fairlock_init(&door, &client.client, name);
  ours(&door, 500);
  theirs(peer, 500);
  for (int round = 0; round < 61; round++) {
    double a = ours(&door, count);
    double b = theirs(peer, count);
    add(&ratio, b / a);
    add(&times, a / count);
    add(&plain, a / by_hand(peer, count));
  }
  print_row("pair.ratio", &ratio, "speed of acquire + release over raw hiredis; aim at least 1.0");
  print_row("pair.us", &times, NULL);
  print_row(
      "pair.plain", &plain,
      "time over that of SET NX PX and a script that compares and deletes, by hiredis; aim at "
      "most 1.2");

  double before = net_bytes(peer);
  ours(&door, 1000);
  print_value("pair.bytes", (net_bytes(peer) - before) / 1000, "both ways; aim at most 700");
  double calls = (system_calls("pairs", port, 1100) - system_calls("pairs", port, 100)) / 1000;
  print_value("pair.syscalls", calls, "aim at most 4");
  fairlock_deinit(&door);
  bench_client_close(&client);
  redisFree(peer);
}
