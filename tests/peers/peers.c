/*
 * `peers TABLE SVG [PART-OF-NAME...]`: measures the peers, or those whose name contains a part,
 * side by side, and writes the table and the picture. Four programs of each peer run all the time
 * and do nothing until a line tells them to (README.md). In each round all peers take their turns,
 * so that what else the machine does meets all of them. The time of processors is the kernel's, by
 * process.
 */
#include "peers.h"
#include "support/clock.h"
#include "support/loopback.h"
#include "support/process.h"
#include "support/raw.h"
#include "support/server.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS      5
#define PAIRS       500
#define WARM_UPS    6 /* of PAIRS; Java takes that long */
#define PATIENCE_MS 120000
#define NUMBERS     1000 /* at most, in an answer */

struct program {
  pid_t pid;
  int in, out;
  size_t used;
  char buffer[32768];
};

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

#define OURS   "$BUILD/tests/peers/contender"
#define GO     "$BUILD/peers/go"
#define PYTHON "env PYTHONPATH=$BUILD/peers/python python3 tests/peers/python/contender.py"
#define NODE   "env NODE_PATH=$BUILD/peers/node/node_modules node tests/peers/node/contender.js"
#define JAVA   "java -cp \"$BUILD/peers/java:$REDISSON_JARS/*\" Contender"

static struct peer peers[] = {
    {.command = OURS " fairlock", .woken = "a message", .row.name = "fairlock"},
    {.command = OURS " hand", .woken = "polling, 10 ms", .row.name = "SET NX PX by hand"},
    {.command = GO " redislock", .woken = "polling, 100 ms", .row.name = "bsm/redislock"},
    {.command = GO " redsync", .woken = "polling, 50 to 250 ms", .row.name = "redsync"},
    {.command = PYTHON " redis-py", .woken = "polling, 100 ms", .row.name = "redis-py Lock"},
    {.command = PYTHON " python-redis-lock",
     .woken = "a list (BLPOP)",
     .row.name = "python-redis-lock"},
    {.command = NODE, .woken = "polling, 100 to 300 ms", .row.name = "node-redlock"},
    {.command = JAVA " plain", .woken = "a message to all", .row.name = "Redisson RLock"},
    {.command = JAVA " fair", .woken = "a message", .row.name = "Redisson RFairLock"},
    {.command = GO " etcd", .woken = "a watch", .row.name = "etcd Mutex", .etcd = true},
};
#define PEERS ((int)(sizeof peers / sizeof *peers))

static struct server redis;
static struct raw asked; /* the connection that asks the server for its figures */
static pid_t etcd;
static int etcd_port;

/* Programs */

/* The next line, or false: none came in time. */
static bool hear(struct program *program, char *line, size_t size)
{
  int64_t until = now_ms() + PATIENCE_MS;
  char *end;
  while ((end = memchr(program->buffer, '\n', program->used)) == NULL) {
    struct pollfd ready = {.fd = program->out, .events = POLLIN};
    if (now_ms() > until || program->used == sizeof program->buffer) return false;
    if (poll(&ready, 1, 1000) == 0) continue;
    ssize_t got =
        read(program->out, program->buffer + program->used, sizeof program->buffer - program->used);
    if (got <= 0) return false;
    program->used += (size_t)got;
  }
  size_t length = (size_t)(end - program->buffer);
  if (length >= size) return false;
  memcpy(line, program->buffer, length);
  line[length] = 0;
  program->used -= length + 1;
  memmove(program->buffer, end + 1, program->used);
  return true;
}

static void must(bool condition, const struct peer *peer, const char *what)
{
  if (condition) return;
  fprintf(stderr, "peers: %s: %s; see %s/peers/log\n", peer->row.name, what, getenv("BUILD"));
  exit(1);
}

static void start(struct peer *peer, struct program *program)
{
  char shell[512], port[8], line[128];
  snprintf(shell, sizeof shell, "exec 2>>$BUILD/peers/log; exec %s $1", peer->command);
  snprintf(port, sizeof port, "%d", peer->etcd ? etcd_port : redis.port);
  const char *const words[] = {"sh", "-c", shell, "sh", port, NULL};
  int64_t theirs = 0;
  program->pid = spawn_program(words, &program->in, &program->out);
  must(hear(program, line, sizeof line) &&
           sscanf(line, "ready %" SCNd64 " %31[^\n]", &theirs, peer->version) == 2,
       peer, "does not start");
  must(llabs(theirs - now_ns()) < 1000000000, peer, "has another clock");
}

static void tell(struct peer *peer, struct program *program, const char *verb, int count)
{
  char line[64];
  int length = snprintf(line, sizeof line, "%s %d\n", verb, count);
  must(write(program->in, line, (size_t)length) == length, peer, "does not listen");
}

/* Waits for "done BYTES". */
static int64_t await_done(struct peer *peer, struct program *program)
{
  char line[64];
  int64_t bytes = 0;
  must(hear(program, line, sizeof line) && sscanf(line, "done %" SCNd64, &bytes) == 1, peer,
       "does not end");
  return bytes;
}

static void hear_numbers(struct peer *peer, struct program *program, int64_t *numbers, int count)
{
  static char line[32768];
  must(hear(program, line, sizeof line), peer, "says nothing");
  char *at = line;
  for (int i = 0; i < count; i++) {
    char *before = at;
    numbers[i] = strtoll(before, &at, 10);
    must(at != before, peer, "says too little");
  }
}

/* What the kernel and the server count */

static double cpu_us(pid_t pid)
{
  clockid_t clock;
  struct timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
    give_up("no time of a process");
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

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

static void measure_pairs(struct peer *peer, int round)
{
  struct program *program = &peer->program[0];
  pid_t server = peer->etcd ? etcd : redis.pid;
  int64_t took[NUMBERS];
  tell(peer, program, "pairs", 1); /* wakes all up, and says how many bytes there were before */
  double bytes = (double)await_done(peer, program);
  hear_numbers(peer, program, took, 1);
  if (!peer->etcd) bytes = net_bytes();
  double client_cpu = cpu_us(program->pid);
  double server_cpu = cpu_us(server);
  tell(peer, program, "pairs", PAIRS);
  double bytes_after = (double)await_done(peer, program);
  peer->round[CLIENT_CPU][round] = (cpu_us(program->pid) - client_cpu) / PAIRS;
  peer->round[SERVER_CPU][round] = (cpu_us(server) - server_cpu) / PAIRS;
  hear_numbers(peer, program, took, PAIRS);
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
    tell(peer, &peer->program[i], "contend", each);
    sleep_ms(2); /* so that it is clear who is first */
  }
  for (int i = 0; i < CONTENDERS; i++) {
    int64_t numbers[NUMBERS];
    await_done(peer, &peer->program[i]);
    hear_numbers(peer, &peer->program[i], numbers, 3 * each);
    for (int k = 0; k < each; k++) {
      turns[i * each + k] = (struct turn){numbers[3 * k], numbers[3 * k + 1], numbers[3 * k + 2]};
    }
  }
  struct contest contest = judge(turns, TURNS);
  must(contest.exclusive, peer, "two held the lock at once");
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
    tell(peer, program, "pairs", PAIRS);
    await_done(peer, program);
    hear_numbers(peer, program, took, PAIRS);
  }
  measure_contest(peer, 0); /* the first round writes over this */
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

static void sum_up(struct peer *peer)
{
  for (int figure = 0; figure < FIGURES; figure++) {
    qsort(peer->round[figure], ROUNDS, sizeof peer->round[figure][0], ascending);
    peer->row.median[figure] = peer->round[figure][ROUNDS / 2];
  }
}

/* Writing */

/* Three digits are more than such a run can tell. */
static const char *short_number(double value)
{
  static char text[4][32];
  static int next;
  char *result = text[next++ % 4];
  snprintf(result, sizeof text[0], "%.*f", value < 1 ? 2 : value < 10 ? 1 : 0, value);
  return result;
}

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

static void write_table(FILE *file, const char *load_before, const char *load_after)
{
  char version[32] = "?", day[32];
  time_t now = time(NULL);
  const char *at = strstr(raw_text(&asked, "INFO server"), "redis_version:");
  if (at != NULL) sscanf(at, "redis_version:%31s", version);
  strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now));
  fprintf(file,
          "| | woken by | acquire + release: p50, p99, µs | release to acquired: p50, p99, ms | "
          "overtook, of %d | longest wait, ms | CPU per pair: client, server, µs | bytes per pair "
          "|\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
          TURNS);
  for (int i = 0; i < PEERS; i++) {
    if (peers[i].version[0] != 0) write_row(file, &peers[i]);
  }
  fprintf(
      file,
      "\nOf %s, on %ld cores, with Redis %s on loopback; load average before the run %s, at its "
      "end %s.\n",
      day, sysconf(_SC_NPROCESSORS_ONLN), version, load_before, load_after);
}

static void read_load(char *text, size_t size)
{
  double load[1] = {0};
  (void)getloadavg(load, 1);
  snprintf(text, size, "%.2f", load[0]);
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
  char client[8], member[8];
  etcd_port = free_port();
  snprintf(client, sizeof client, "%d", etcd_port);
  snprintf(member, sizeof member, "%d", free_port());
  const char *const words[] = {"sh", "-c", shell, "sh", client, member, NULL};
  etcd = spawn_program(words, NULL, NULL);
  int connection;
  AWAIT((connection = dial(etcd_port)) >= 0, sleep_ms(20));
  if (connection < 0) give_up("etcd does not start");
  (void)close(connection);
}

static bool chosen(const struct peer *peer, int argc, char **argv)
{
  for (int i = 3; i < argc; i++) {
    if (strstr(peer->row.name, argv[i]) != NULL) return true;
  }
  return argc == 3;
}

int main(int argc, char **argv)
{
  struct peer *taking_part[PEERS];
  struct row rows[PEERS];
  char load_before[16], load_after[16];
  int count = 0;
  if (argc < 3 || getenv("BUILD") == NULL) return 64;
  for (int i = 0; i < PEERS; i++) {
    if (chosen(&peers[i], argc, argv)) taking_part[count++] = &peers[i];
  }
  read_load(load_before, sizeof load_before);
  server_start(&redis, NULL);
  if (!raw_open(&asked, redis.port)) give_up("no connection to redis-server");
  start_etcd();
  for (int i = 0; i < count; i++) {
    fprintf(stderr, "starting and warming up %s\n", taking_part[i]->row.name);
    for (int k = 0; k < CONTENDERS; k++)
      start(taking_part[i], &taking_part[i]->program[k]);
    warm_up(taking_part[i]);
  }
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
  read_load(load_after, sizeof load_after);
  FILE *table = fopen(argv[1], "w");
  if (table == NULL) give_up(argv[1]);
  write_table(table, load_before, load_after);
  if (fclose(table) != 0 || !draw(argv[2], rows, count)) give_up("the results cannot be written");
  slay(etcd);
  server_stop(&redis);
  return 0;
}
