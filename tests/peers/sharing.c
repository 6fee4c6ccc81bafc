/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sharing TABLES [PART-OF-NAME...]`: measures read/write locks and semaphores as peers.c measures
 * locks, and writes two tables. Each peer has two programs, whose contenders are threads or the like
 * (README.md). At a read/write lock, the first has all readers, and the second the writer; at a
 * semaphore, each has half of the contenders. In the end, some are killed while they wait or hold.
 */
#include "peers.h"
#include "programs.h"
#include "support/clock.h"
#include "support/loopback.h"
#include "support/process.h"
#include "support/server.h"

#include <stdlib.h>

#define ROUNDS     5
#define PAIRS      200
#define WARM_UPS   8 /* of PAIRS */
#define SHARERS    16
#define LIMIT      4     /* of the semaphores; the programs have it, too */
#define HOLD_MS    20    /* so */
#define LEASE_MS   10000 /* so */
#define CONTEST_MS 2000
#define SETTLE_MS  100

enum result {
  TURNS_TAKEN,
  OVERTAKEN,
  MOST,
  ALONE,
  SHARED,
  AT_ONCE,
  PAIR_MEDIAN,
  PAIR_WORST,
  CPU_PER_HOLD,
  RESULTS
};

struct peer {
  const char *name;

  /* for the shell, which gets the port as $1 */
  const char *command;

  /* what its page says of the order of service */
  const char *says;

  bool semaphore, zookeeper;
  char version[32];
  struct program program[3]; /* the third is not in the contest */
  double round[RESULTS][ROUNDS];

  /* how long somebody waited behind a program that was killed, as a part of a lease */
  double after_waiter, after_holder;
};

#define OURS    "$BUILD/tests/peers/sharer"
#define NODE    "env NODE_PATH=$BUILD/peers/node/node_modules node tests/peers/node/sharer.js"
#define JAVA(x) "java -cp \"$BUILD/peers/java:" x "/*\" Sharer"

static struct peer peers[] = {
    {.name = "fairlock, shared", .command = OURS " lock", .says = "fair"},
    {.name = "Redisson RReadWriteLock",
     .command = JAVA("$REDISSON_JARS") " redisson lock",
     .says = "not fair"},
    {.name = "Curator InterProcessReadWriteLock",
     .command = JAVA("$CURATOR_JARS") " curator lock",
     .says = "fair",
     .zookeeper = true},
    {.name = "fairlock, limit 4", .command = OURS " semaphore", .says = "fair", .semaphore = true},
    {.name = "Redisson RPermitExpirableSemaphore",
     .command = JAVA("$REDISSON_JARS") " redisson semaphore",
     .says = "not fair",
     .semaphore = true},
    {.name = "redis-semaphore", .command = NODE, .says = "fair", .semaphore = true},
    {.name = "Curator InterProcessSemaphoreV2",
     .command = JAVA("$CURATOR_JARS") " curator semaphore",
     .says = "mostly fair",
     .semaphore = true,
     .zookeeper = true},
};
#define PEERS ((int)(sizeof peers / sizeof *peers))

static struct server redis;
static struct raw asked;
static pid_t zookeeper;
static int zookeeper_port;

/* It writes each change to the disk before it answers, as it is meant to. */
static void start_zookeeper(void)
{
  static const char shell[] =
      "exec java -Dzookeeper.admin.enableServer=false -cp \"$CURATOR_JARS/*\" "
      "org.apache.zookeeper.server.ZooKeeperServerMain $1 $BUILD/peers/zookeeper.data "
      "2>>$BUILD/peers/log";
  zookeeper_port = free_port();
  zookeeper = server_by_shell("ZooKeeper", shell, zookeeper_port);
}

/* Measuring */

static void measure_pairs(struct peer *peer, int round)
{
  struct program *program = &peer->program[0];
  int64_t took[NUMBERS];
  program_tell(program, "pairs", PAIRS);
  (void)program_done(program);
  must(program_numbers(program, took) == PAIRS, peer->name, "says too little");
  peer->round[PAIR_MEDIAN][round] = (double)percentile(took, PAIRS, 50) / 1e3;
  peer->round[PAIR_WORST][round] = (double)percentile(took, PAIRS, 99) / 1e3;
}

/* The turns that a program reports, beginning at turns. */
static size_t hear_turns(struct program *program, struct turn *turns, bool alone)
{
  int64_t numbers[NUMBERS];
  (void)program_done(program);
  int count = program_numbers(program, numbers);
  must(count > 0 && count % 3 == 0, program->name, "says too little");
  for (int i = 0; i < count / 3; i++)
    turns[i] = (struct turn){numbers[3 * i], numbers[3 * i + 1], numbers[3 * i + 2], alone};
  return (size_t)count / 3;
}

static void measure_contest(struct peer *peer, int round)
{
  static struct turn turns[2 * NUMBERS / 3];
  pid_t server = peer->zookeeper ? zookeeper : redis.pid;
  double cpu = cpu_us(server);
  program_tell(&peer->program[0], "share", CONTEST_MS);
  sleep_ms(2 * HOLD_MS); /* the writer comes when the readers hold */
  program_tell(&peer->program[1], peer->semaphore ? "share" : "alone", CONTEST_MS);
  size_t count = hear_turns(&peer->program[0], turns, false);
  count += hear_turns(&peer->program[1], turns + count, !peer->semaphore);
  peer->round[CPU_PER_HOLD][round] = (cpu_us(server) - cpu) / (double)count;
  struct sharing sharing = judge_sharing(turns, count, peer->semaphore ? LIMIT : 0);
  must(sharing.kept, peer->name, "some held who may not hold together");
  peer->round[OVERTAKEN][round] = sharing.overtaken;
  peer->round[TURNS_TAKEN][round] = (double)count;
  peer->round[MOST][round] = sharing.most;
  peer->round[ALONE][round] = (double)sharing.longest_alone / sharing.hold;
  peer->round[SHARED][round] = (double)sharing.longest_shared / sharing.hold;
  peer->round[AT_ONCE][round] = sharing.at_once;
}

static void start_program(struct peer *peer, int index, int contenders)
{
  program_start(&peer->program[index], peer->name, peer->command,
                peer->zookeeper ? zookeeper_port : redis.port, peer->version);
  program_tell(&peer->program[index], "contenders", contenders);
}

static void start(struct peer *peer)
{
  int64_t took[NUMBERS];
  fprintf(stderr, "starting and warming up %s\n", peer->name);
  for (int i = 0; i < 2; i++) {
    start_program(peer, i, peer->semaphore ? SHARERS / 2 : i == 0 ? SHARERS : 1);
    for (int k = 0; k < WARM_UPS / 2; k++) {
      program_tell(&peer->program[i], "pairs", PAIRS);
      (void)program_done(&peer->program[i]);
      (void)program_numbers(&peer->program[i], took);
    }
  }
  measure_contest(peer, 0); /* the first round writes over this */
}

/* Those that are killed: all peers at a time, because they only wait. */

static void finish(struct program *program)
{
  int64_t none[NUMBERS];
  (void)program_done(program);
  (void)program_numbers(program, none);
}

/* Takes all that a semaphore has, or a share of the lock. */
static void hold_all(struct peer *peer, struct program *program)
{
  program_tell(program, "hold", peer->semaphore ? LIMIT : 1);
  finish(program);
}

/* One turn, which begins when nothing is held any more. */
static void begin_to_wait(struct peer *peer, struct program *program)
{
  program_tell(program, "contenders", 1);
  program_tell(program, peer->semaphore ? "share" : "alone", 0);
}

/* How long the program waited for the turn that it has begun, since a time, as a part of a lease. */
static double waited(struct program *program, int64_t since_ns)
{
  struct turn turn;
  (void)hear_turns(program, &turn, false);
  return turn.acquired < since_ns ? 0 : (double)(turn.acquired - since_ns) / 1e6 / LEASE_MS;
}

/* The second program holds, the first waits and is killed, and the third waits behind it. */
static void kill_waiters(struct peer **taking_part, int count)
{
  int64_t ended[PEERS];
  fprintf(stderr, "killing those who wait\n");
  for (int i = 0; i < count; i++) {
    start_program(taking_part[i], 2, 1);
    hold_all(taking_part[i], &taking_part[i]->program[1]);
    begin_to_wait(taking_part[i], &taking_part[i]->program[0]);
  }
  sleep_ms(SETTLE_MS);
  for (int i = 0; i < count; i++)
    program_tell(&taking_part[i]->program[2], "share", 0);
  sleep_ms(SETTLE_MS);
  for (int i = 0; i < count; i++) {
    slay(taking_part[i]->program[0].pid);
    ended[i] = now_ns();
    program_tell(&taking_part[i]->program[1], "end", 0);
    finish(&taking_part[i]->program[1]);
  }
  for (int i = 0; i < count; i++)
    taking_part[i]->after_waiter = waited(&taking_part[i]->program[2], ended[i]);
}

/* The third program holds and is killed, and the second waits. */
static void kill_holders(struct peer **taking_part, int count)
{
  int64_t killed[PEERS];
  fprintf(stderr, "killing those who hold\n");
  for (int i = 0; i < count; i++) {
    hold_all(taking_part[i], &taking_part[i]->program[2]);
    begin_to_wait(taking_part[i], &taking_part[i]->program[1]);
  }
  sleep_ms(SETTLE_MS);
  for (int i = 0; i < count; i++) {
    killed[i] = now_ns();
    slay(taking_part[i]->program[2].pid);
  }
  for (int i = 0; i < count; i++)
    taking_part[i]->after_holder = waited(&taking_part[i]->program[1], killed[i]);
}

/* Writing */

static void write_row(FILE *file, struct peer *peer)
{
  double median[RESULTS];
  for (int i = 0; i < RESULTS; i++)
    median[i] = median_of(peer->round[i], ROUNDS);
  fprintf(file, "| %s %s | %s | %.0f of %.0f | %.0f |", peer->name, peer->version, peer->says,
          median[OVERTAKEN], median[TURNS_TAKEN], median[MOST]);
  if (!peer->semaphore) fprintf(file, " %.1f,", median[ALONE]);
  fprintf(file, " %.1f | %.1f | %s, %s | %s | %.2f, %.2f |\n", median[SHARED], median[AT_ONCE],
          short_number(median[PAIR_MEDIAN]), short_number(median[PAIR_WORST]),
          short_number(median[CPU_PER_HOLD]), peer->after_holder, peer->after_waiter);
}

static bool any_of(bool semaphores)
{
  for (int i = 0; i < PEERS; i++) {
    if (peers[i].semaphore == semaphores && peers[i].version[0] != 0) return true;
  }
  return false;
}

static void write_table(FILE *file, bool semaphores, const char *contest, const char *whose)
{
  if (!any_of(semaphores)) return;
  fprintf(file,
          "| %s | says it is | overtaken | at most by | longest wait%s, holds | hold at once | "
          "acquire + release: p50, p99, µs | server's CPU per hold, µs | killed holder, waiter: "
          "leases |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
          contest, whose);
  for (int i = 0; i < PEERS; i++) {
    if (peers[i].semaphore == semaphores && peers[i].version[0] != 0) write_row(file, &peers[i]);
  }
  fprintf(file, "\n");
}

static void write_tables(const char *path, double load_before)
{
  FILE *file = fopen(path, "w");
  if (file == NULL) give_up(path);
  write_table(file, false, "a writer among 16 readers", ": writer's, readers'");
  write_table(file, true, "16 at a semaphore of 4", "");
  write_circumstances(file, &asked, load_before);
  if (fclose(file) != 0) give_up(path);
}

/* All together */

static void measure(struct peer **taking_part, int count)
{
  for (int i = 0; i < count; i++)
    start(taking_part[i]);
  for (int round = 0; round < ROUNDS; round++) {
    fprintf(stderr, "round %d of %d\n", round + 1, ROUNDS);
    for (int i = 0; i < count; i++) {
      measure_pairs(taking_part[i], round);
      measure_contest(taking_part[i], round);
    }
  }
  kill_waiters(taking_part, count);
  kill_holders(taking_part, count);
}

int main(int argc, char **argv)
{
  struct peer *taking_part[PEERS];
  int count = 0;
  if (argc < 2 || getenv("BUILD") == NULL) return 64;
  for (int i = 0; i < PEERS; i++) {
    if (chosen(peers[i].name, argv + 2)) taking_part[count++] = &peers[i];
  }
  if (count == 0) return 0;
  double load_before = load_now();
  server_start(&redis, NULL);
  if (!raw_open(&asked, redis.port)) give_up("no connection to redis-server");
  start_zookeeper();
  measure(taking_part, count);
  write_tables(argv[1], load_before);
  slay(zookeeper);
  server_stop(&redis);
  return 0;
}
