/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `peers TABLE SVG [PART-OF-NAME...]`: measures the peers, or those whose name contains a part,
 * side by side, and writes the table and the picture. Four programs of each peer run all the time
 * and do nothing until a line tells them to (README.md). In each round all peers take their turns,
 * so that what else the machine does meets all of them. The time of processors is the kernel's, by
 * process.
 */
#include "peers.h"
#include "programs.h"
#include "support/clock.h"
#include "support/loopback.h"
#include "support/process.h"
#include "support/raw.h"
#include "support/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS   5
#define PAIRS    500
#define WARM_UPS 6 /* of PAIRS; Java takes that long */

struct peer {
  /* for the shell, which gets the port as $1 */
  const char *command;

  /* what makes a waiter go on */
  const char *woken;

  struct row row;
  bool etcd;
  char version[32];
  struct program program[CONTENDERS];
  double round[FIGURES][ROUNDS];
};

#define OURS "$BUILD/tests/peers/contender"
#define GO   "$BUILD/peers/go"
#define PYTHON                                                                                     \
  "env PYTHONPATH=$BUILD/peers/python $BUILD/python/used/bin/python "                              \
  "tests/peers/python/contender.py"
#define NODE "env NODE_PATH=$BUILD/peers/node/node_modules node tests/peers/node/contender.js"
#define RUST "$BUILD/peers/rust/release/contender"
#define JAVA "java -cp \"$BUILD/peers/java:$REDISSON_JARS/*\" Contender"

static struct peer peers[] = {
    {.command = OURS " fairlock", .woken = "a message", .row.name = "fairlock"},
    {.command = OURS " hand", .woken = "polling, 10 ms", .row.name = "SET NX PX by hand"},
    {.command = GO " fairlock", .woken = "a message", .row.name = "fairlock in Go"},
    {.command = GO " redislock", .woken = "polling, 100 ms", .row.name = "bsm/redislock"},
    {.command = GO " redsync", .woken = "polling, 50 to 250 ms", .row.name = "redsync"},
    {.command = PYTHON " fairlock", .woken = "a message", .row.name = "fairlock in Python"},
    {.command = PYTHON " redis-py", .woken = "polling, 100 ms", .row.name = "redis-py Lock"},
    {.command = PYTHON " python-redis-lock",
     .woken = "a list (BLPOP)",
     .row.name = "python-redis-lock"},
    {.command = PYTHON " fairlock.aio",
     .woken = "a message",
     .row.name = "fairlock in Python, asyncio"},
    {.command = PYTHON " redis.asyncio",
     .woken = "polling, 100 ms",
     .row.name = "redis-py asyncio Lock"},
    {.command = NODE " fairlock", .woken = "a message", .row.name = "fairlock in Node"},
    {.command = NODE " redlock", .woken = "polling, 100 to 300 ms", .row.name = "node-redlock"},
    {.command = NODE " redis-semaphore",
     .woken = "polling, 10 ms",
     .row.name = "redis-semaphore Mutex"},
    {.command = RUST " fairlock", .woken = "a message", .row.name = "fairlock in Rust"},
    {.command = RUST " fairlock-async",
     .woken = "a message",
     .row.name = "fairlock in Rust, async"},
    {.command = RUST " rslock", .woken = "polling, 0 to 200 ms", .row.name = "rslock"},
    {.command = RUST " redlock", .woken = "polling, 0 to 200 ms", .row.name = "redlock (Rust)"},
    {.command = JAVA " plain", .woken = "a message to all", .row.name = "Redisson RLock"},
    {.command = JAVA " fair", .woken = "a message", .row.name = "Redisson RFairLock"},
    {.command = GO " etcd", .woken = "a watch", .row.name = "etcd Mutex", .etcd = true},
};
#define PEERS ((int)(sizeof peers / sizeof *peers))

static struct server redis;
static struct raw asked; /* the connection that asks the server for its figures */
static pid_t etcd;
static int etcd_port;

/* What the server counts */

static double number_in(const char *info, const char *field)
{
  const char *at = strstr(info, field);
  return at != NULL ? strtod(at + strlen(field), NULL) : 0;
}

/* Bytes that the server has received and sent, without those of the questions. */
static double net_bytes(void)
{
  static double questions;
  double sum[2];
  for (int i = 0; i < 2; i++) {
    const char *info = raw_text(&asked, "INFO stats");
    sum[i] = number_in(info, "total_net_input_bytes:") + number_in(info, "total_net_output_bytes:");
  }
  double result = sum[0] - questions;
  questions += 2 * (sum[1] - sum[0]);
  return result;
}

/* Measuring */

static void hear(struct peer *peer, struct program *program, int64_t *numbers, int count)
{
  must(program_numbers(program, numbers) == count, peer->row.name, "says too little");
}

static void measure_pairs(struct peer *peer, int round)
{
  struct program *program = &peer->program[0];
  pid_t server = peer->etcd ? etcd : redis.pid;
  int64_t took[NUMBERS];
  program_tell(program, "pairs", 1); /* wakes all up, and says how many bytes there were before */
  double bytes = (double)program_done(program);
  (void)program_numbers(program, took);
  if (!peer->etcd) bytes = net_bytes();
  double client_cpu = cpu_us(program->pid);
  double server_cpu = cpu_us(server);
  program_tell(program, "pairs", PAIRS);
  double bytes_after = (double)program_done(program);
  peer->round[CLIENT_CPU][round] = (cpu_us(program->pid) - client_cpu) / PAIRS;
  peer->round[SERVER_CPU][round] = (cpu_us(server) - server_cpu) / PAIRS;
  hear(peer, program, took, PAIRS);
  if (!peer->etcd) bytes_after = net_bytes();
  peer->round[BYTES][round] = (bytes_after - bytes) / PAIRS;
  peer->round[PAIR_P50][round] = (double)percentile(took, PAIRS, 50) / 1e3;
  peer->round[PAIR_P99][round] = (double)percentile(took, PAIRS, 99) / 1e3;
}

static void measure_contest(struct peer *peer, int round)
{
  static struct turn turns[TURNS];
  const int each = TURNS / CONTENDERS;
  for (int i = 0; i < CONTENDERS; i++) {
    program_tell(&peer->program[i], "contend", each);
    sleep_ms(2); /* so that it is clear who is first */
  }
  for (int i = 0; i < CONTENDERS; i++) {
    int64_t numbers[NUMBERS];
    (void)program_done(&peer->program[i]);
    hear(peer, &peer->program[i], numbers, 3 * each);
    for (int k = 0; k < each; k++) {
      turns[i * each + k] =
          (struct turn){numbers[3 * k], numbers[3 * k + 1], numbers[3 * k + 2], false};
    }
  }
  struct contest contest = judge_contest(turns, TURNS);
  must(contest.exclusive, peer->row.name, "two held the lock at once");
  peer->round[HANDOVER_P50][round] = (double)contest.handover_p50 / 1e6;
  peer->round[HANDOVER_P99][round] = (double)contest.handover_p99 / 1e6;
  peer->round[OVERTAKING][round] = contest.overtaking;
  peer->round[LONGEST][round] = (double)contest.longest / 1e6;
}

static void warm_up(struct peer *peer)
{
  int64_t took[NUMBERS];
  for (int i = 0; i < WARM_UPS * CONTENDERS; i++) {
    struct program *program = &peer->program[i % CONTENDERS];
    program_tell(program, "pairs", PAIRS);
    (void)program_done(program);
    hear(peer, program, took, PAIRS);
  }
  measure_contest(peer, 0); /* the first round writes over this */
}

static void sum_up(struct peer *peer)
{
  for (int figure = 0; figure < FIGURES; figure++) {
    peer->row.median[figure] = median_of(peer->round[figure], ROUNDS);
  }
}

/* Writing */

static void write_row(FILE *file, const struct peer *peer)
{
  const double *median = peer->row.median;
  fprintf(file, "| %s %s | %s | %s, %s |", peer->row.name, peer->version, peer->woken,
          short_number(median[PAIR_P50]), short_number(median[PAIR_P99]));
  fprintf(file, " %s, %s | %.0f | %s |", short_number(median[HANDOVER_P50]),
          short_number(median[HANDOVER_P99]), median[OVERTAKING], short_number(median[LONGEST]));
  fprintf(file, " %s, %s | %.0f |\n", short_number(median[CLIENT_CPU]),
          short_number(median[SERVER_CPU]), median[BYTES]);
}

static void write_table(FILE *file, double load_before)
{
  fprintf(file,
          "| | woken by | acquire + release: p50, p99, µs | release to acquired: p50, p99, ms | "
          "overtook, of %d | longest wait, ms | CPU per pair: client, server, µs | bytes per pair "
          "|\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
          TURNS);
  for (int i = 0; i < PEERS; i++) {
    if (peers[i].version[0] != 0) write_row(file, &peers[i]);
  }
  fprintf(file, "\n");
  write_circumstances(file, &asked, load_before);
}

/* All together */

/* It writes each change to the disk before it answers, as it is meant to. */
static void start_etcd(void)
{
  static const char shell[] =
      "client=http://127.0.0.1:$1 member=http://127.0.0.1:$2; "
      "exec $BUILD/peers/etcd/usr/bin/etcd --logger=zap --log-level=error "
      "--data-dir=$BUILD/peers/etcd.data --listen-client-urls=$client "
      "--advertise-client-urls=$client --listen-peer-urls=$member "
      "--initial-advertise-peer-urls=$member --initial-cluster=default=$member "
      "2>>$BUILD/peers/log";
  etcd_port = free_port();
  etcd = server_by_shell("etcd", shell, etcd_port);
}

static void start(struct peer *peer)
{
  fprintf(stderr, "starting and warming up %s\n", peer->row.name);
  for (int i = 0; i < CONTENDERS; i++)
    program_start(&peer->program[i], peer->row.name, peer->command,
                  peer->etcd ? etcd_port : redis.port, peer->version);
  warm_up(peer);
}

int main(int argc, char **argv)
{
  struct peer *taking_part[PEERS];
  struct row rows[PEERS];
  int count = 0;
  if (argc < 3 || getenv("BUILD") == NULL) return 64;
  for (int i = 0; i < PEERS; i++) {
    if (chosen(peers[i].row.name, argv + 3)) taking_part[count++] = &peers[i];
  }
  if (count == 0) return 0;
  double load_before = load_now();
  server_start(&redis, NULL);
  if (!raw_open(&asked, redis.port)) give_up("no connection to redis-server");
  start_etcd();
  for (int i = 0; i < count; i++)
    start(taking_part[i]);
  for (int round = 0; round < ROUNDS; round++) {
    fprintf(stderr, "round %d of %d\n", round + 1, ROUNDS);
    for (int i = 0; i < count; i++) {
      measure_pairs(taking_part[i], round);
      measure_contest(taking_part[i], round);
    }
  }
  for (int i = 0; i < count; i++) {
    sum_up(taking_part[i]);
    rows[i] = taking_part[i]->row;
  }
  FILE *table = fopen(argv[1], "w");
  if (table == NULL) give_up(argv[1]);
  write_table(table, load_before);
  if (fclose(table) != 0 || !draw(argv[2], rows, count)) give_up("the results cannot be written");
  slay(etcd);
  server_stop(&redis);
  return 0;
}
