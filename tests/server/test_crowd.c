/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a lock costs the server that a thousand share, in commands, which no machine makes slower or
 * faster: each request runs no more than with ten holders, none of them reads all holders, and a
 * thousand waiters enter by as many requests. `make bench` has the times.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "texts.h"

#define NAME "crowd"

enum { CROWD = 1000, FEW = 10, LEASE = 600000 };

static char sha[41];
static uint64_t tokens[CROWD + 1];

static void load_script(void)
{
  static char text[1 << 14];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text, 0);
  fairlock_script_unpack(&writer, &fairlock_shared_script);
  (void)snprintf(sha, sizeof sha, "%s",
                 raw_text(&redis, "SCRIPT LOAD %b", (const void *)text, writer.used));
}

/* One request; returns the state of its answer. */
static int64_t ask(int who, int mode, int lease, uint64_t token)
{
  char words[100];
  int size = snprintf(words, sizeof words, "crowd:%d 9000000000000 %d %d", who, mode, lease);
  if (token > 0) (void)snprintf(words + size, sizeof words - (size_t)size, " %" PRIu64, token);
  CHECK(raw_run(&redis,
                "EVALSHA %s 4 " NAME " redisson_lock_queue:{" NAME "} redisson_lock_timeout:{" NAME
                "} fairlock:{" NAME "} %s %d",
                sha, words, CROWD));
  return CHECK_EQUAL(redis.count, 4) ? redis.element[1].integer : INT64_MIN;
}

static void join(int who, int lease)
{
  CHECK_EQUAL(ask(who, 0, lease, 0), 1);
  tokens[who] = redis.count == 4 ? (uint64_t)redis.element[2].integer : 0;
}

static void leave(int who)
{
  CHECK_EQUAL(ask(who, 0, 0, tokens[who]), 1);
}

/* How often a command was called since the count began; with none, how many all scripts have called. */
static int64_t called(const char *command)
{
  char field[40];
  int64_t sum = 0;
  const char *text = raw_text(&redis, "INFO commandstats");
  (void)snprintf(field, sizeof field, "cmdstat_%s", command);
  for (const char *at = text; (at = strstr(at, field)) != NULL; at++) {
    const char *calls = strstr(at, ":calls=");
    bool own = strncmp(at, "cmdstat_evalsha:", 16) == 0 || strncmp(at, "cmdstat_config", 14) == 0 ||
               strncmp(at, "cmdstat_info", 12) == 0;
    if (calls != NULL && (command[0] != 0 || !own))
      sum += strtoll(calls + strlen(":calls="), NULL, 10);
  }
  return sum;
}

static void begin_count(void)
{
  CHECK(raw_run(&redis, "CONFIG RESETSTAT"));
}

/* Which thousand seconds it is by the server's clock. */
static int64_t thousand(void)
{
  CHECK_EQUAL(raw_number(&redis, "TIME"), 2);
  return strtoll(redis.element[1].text, NULL, 10) / 1000;
}

/*
 * Begins a test, and runs the part of it that counts: once more if the server's thousand seconds have
 * ended meanwhile, because the next grant then cleans up the notes as well, by commands of its own. So
 * what was counted is checked only after this.
 */
static void within_a_thousand_seconds(void (*part)(void *counts), void *counts)
{
  int64_t began;
  do {
    begin();
    load_script();
    began = thousand();
    part(counts);
  } while (thousand() != began);
}

/* Each kind of request, by the last of so many who may hold: how many commands it runs. */
struct costs {
  int holders;
  int64_t join, renew, release, again, limit, hgetall;
};

static int64_t count_and_go_on(struct costs *costs)
{
  int64_t count = called("");
  costs->hgetall += called("hgetall:");
  begin_count();
  return count;
}

/* Leases of many lengths, so that they end at many times. */
static void count_costs(void *counts)
{
  struct costs *costs = counts;
  int holders = costs->holders;
  for (int i = 0; i < holders - 1; i++)
    join(i, LEASE + i * LEASE / holders);
  costs->hgetall = 0;
  begin_count();
  join(holders - 1, LEASE);
  costs->join = count_and_go_on(costs);
  CHECK_EQUAL(ask(holders / 2, -1, 2 * LEASE, tokens[holders / 2]), 1);
  costs->renew = count_and_go_on(costs);
  leave(holders / 2);
  costs->release = count_and_go_on(costs);
  join(holders / 2, LEASE);
  costs->again = count_and_go_on(costs);
  CHECK_EQUAL(ask(CROWD, 0, LEASE, 0), holders == CROWD ? 0 : 1);
  costs->limit = count_and_go_on(costs);
}

static struct costs costs_among(int holders)
{
  struct costs costs = {.holders = holders};
  within_a_thousand_seconds(count_costs, &costs);
  CHECK_EQUAL(costs.hgetall, 0);
  return costs;
}

static void test_commands(void)
{
  struct costs few = costs_among(FEW);
  struct costs many = costs_among(CROWD);
  /* one more where the TTL changes */
  CHECK(many.join <= few.join + 1 && many.renew <= few.renew + 1);
  CHECK(many.release <= few.release + 1 && many.again <= few.again + 1);
  CHECK(many.limit <= few.limit);
  CHECK(few.join > 0 && few.join <= 14 && few.renew <= 14 && few.release <= 14);
  printf("# %d, %d and %d commands to join, renew and release\n", (int)few.join, (int)few.renew,
         (int)few.release);
  /* ends are rounded, so a thousand have few */
  const char *table = raw_text(&redis, "HGET " NAME " shared");
  CHECK(strlen(table) > 0 && strlen(table) < 1000);
}

/* The number of who was let in, which the message is for. */
static int let_in(struct raw *listener)
{
  int who = -1;
  bool heard = raw_reply(listener) && listener->count == 4;
  if (!CHECK(heard)) return 0;
  CHECK(sscanf(listener->element[2].text, "redisson_lock__channel:{" NAME "}:crowd:%d", &who) == 1);
  CHECK(who >= 0 && who < CROWD);
  tokens[who] = strtoull(listener->element[3].text, NULL, 10);
  return who;
}

struct entering {
  int waiter_ms;
  int64_t hgetall, requests, commands;
};

/* All enter after one who had it alone, by one request each. */
static void count_entering(void *counts)
{
  static struct raw listener;
  struct entering *entering = counts;
  int waiter_ms = entering->waiter_ms;
  CHECK(raw_run(&redis, "HSET " NAME " alone:1 1") &&
        raw_run(&redis, "PEXPIRE " NAME " %d", LEASE));
  CHECK(raw_open(&listener, server.port));
  for (int i = 0; i < CROWD; i++) {
    CHECK(raw_run(&listener, "SUBSCRIBE redisson_lock__channel:{" NAME "}:crowd:%d", i));
    CHECK_EQUAL(ask(i, waiter_ms, LEASE, 0), 0);
  }
  CHECK(raw_run(&redis, "DEL " NAME));
  begin_count();
  CHECK_EQUAL(ask(0, waiter_ms, LEASE, 0), 1); /* its heartbeat finds the lock free */
  for (int i = 1; i < CROWD; i++) {
    int who = let_in(&listener);
    CHECK_EQUAL(who, i);
    CHECK_EQUAL(ask(who, -1, LEASE, tokens[who]), 1);
  }
  entering->hgetall = called("hgetall:");
  entering->requests = called("evalsha:");
  entering->commands = called("");
  CHECK_EQUAL(raw_number(&redis, "HLEN " NAME), CROWD + 1);
  raw_close(&listener);
}

static void enter_all(int waiter_ms)
{
  struct entering entering = {.waiter_ms = waiter_ms};
  within_a_thousand_seconds(count_entering, &entering);
  CHECK_EQUAL(entering.hgetall, 1); /* of the notes, by the first grant of all */
  CHECK_EQUAL(entering.requests, CROWD);
  int64_t each = entering.commands / CROWD;
  printf("# %d commands each\n", (int)each);
  CHECK(each <= 30);
}

/* Whatever their waiter timeout. */
static void test_enter(void)
{
  enter_all(5000);
  enter_all(600000);
}

struct cleaning {
  int64_t commands, hgetall, hgetall_later;
};

static void count_cleaning(void *counts)
{
  struct cleaning *cleaning = counts;
  for (int i = 0; i < CROWD; i++)
    join(i, i == 0 ? LEASE : 1000);
  sleep_ms(1000 + 1000 / 16 + 1); /* until all have ended */
  begin_count();
  join(CROWD, LEASE);
  cleaning->commands = called("");
  cleaning->hgetall = called("hgetall:");
  CHECK_EQUAL(raw_number(&redis, "HLEN " NAME), 3);
  leave(CROWD);
  join(1, LEASE);
  begin_count();
  leave(1);
  cleaning->hgetall_later = called("hgetall:");
}

/* Those whose leases have ended are cleaned out once, by few commands. */
static void test_crashed(void)
{
  struct cleaning cleaning;
  within_a_thousand_seconds(count_cleaning, &cleaning);
  CHECK_EQUAL(cleaning.hgetall, 1);
  CHECK(cleaning.commands <= 16);
  CHECK_EQUAL(cleaning.hgetall_later, 0);
}

const struct check_test check_tests[] = {
    {"crowd: a thousand cost no more commands than ten", test_commands},
    {"crowd: a thousand enter", test_enter},
    {"crowd: a thousand have crashed", test_crashed},
    {NULL, NULL},
};
