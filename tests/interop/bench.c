/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redisson and the library side by side, in one run on one machine: `bench VERSION...`, with
 * versions of Redisson. Each row is "name: value"; a value that was measured often is the median,
 * followed by the 10th and the 90th percentile.
 *
 * Redisson runs with its defaults, and so does the library; each with one client in each process.
 * In rows that begin with "ours" the blocking calls service the client, as on a small device; in
 * "ours-thread" a thread of its own does. INTEROP_LONG=1 really waits for as long as killed waiters
 * cost with Redisson's defaults (half an hour).
 */
#include "lab.h"
#include "support/proxy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DELAY_MS    5
#define WARM_UP     3000
#define ROUNDS      3000
#define HANDOVERS   200
#define DELAYED     60
#define HOLDERS     5
#define RENEWED_MS  12000 /* a lease of 30 s has been renewed once by then */
#define LEASE_S     30.0
#define PATIENCE_MS 60000

/* What is compared. */
struct side {
  char name[32];
  enum kind kind;
  const char *options;
  const char *version; /* of Redisson */
};

static struct lab lab;
static struct proxy wire, far_away; /* counts; delays */

static void row(const struct side *side, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void row(const struct side *side, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  printf("%s.", side->name);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
}

static void row_of(const struct side *side, const char *name, int64_t *values, int count,
                   double unit)
{
  double middle = (double)median(values, count) / unit;
  row(side, "%s: %.2f (%.2f .. %.2f)", name, middle, (double)values[count / 10] / unit,
      (double)values[count * 9 / 10] / unit);
}

static struct driver *start(const struct side *side, int port, const char *options)
{
  lab.version = side->version;
  return driver_start(&lab, side->kind, port, options);
}

static struct driver *start_side(const struct side *side, int port)
{
  return start(side, port, side->options);
}

static void clear(void)
{
  raw_run(&lab.redis, "FLUSHALL");
}

/* Uncontended */

static void bench_uncontended(struct side *side)
{
  struct driver *driver = start_side(side, lab.server.port);
  tell(driver, "a alone bench %d", WARM_UP);
  char answer[128];
  snprintf(answer, sizeof answer, "%s", tell(driver, "a alone bench %d", ROUNDS));
  row(side, "acquire_release_us: %.1f (%.1f .. %.1f)", (double)field(answer, 0) / 1000,
      (double)field(answer, 1) / 1000, (double)field(answer, 2) / 1000);
  driver_kill(driver);
}

/* Handover */

/*
 * The lock goes to and fro between two processes. Returns how long it took from the call of release
 * to the end of acquire.
 */
static int64_t hand_over(struct driver *from, struct driver *to, int settle_ms)
{
  say(to, "a ball lock");
  if (!lab_queue_reaches(&lab, "ball", 1)) exit(1);
  sleep_ms(settle_ms); /* Redisson subscribes, and asks once more, after it entered the queue */
  int64_t released = field(tell(from, "a ball unlock"), 0);
  const char *answer = hear(to, "a", PATIENCE_MS);
  return answer != NULL ? field(answer, 0) - released : 0;
}

static void bench_handover(struct side *side, const char *name, int port, int rounds, int settle_ms)
{
  int64_t times[HANDOVERS];
  struct driver *pair[2] = {start_side(side, port), start_side(side, port)};
  clear();
  tell(pair[0], "a ball lock");
  for (int i = 0; i < rounds; i++)
    hand_over(pair[i % 2], pair[!(i % 2)], settle_ms);
  for (int i = 0; i < rounds; i++) {
    times[i] = hand_over(pair[(i + rounds) % 2], pair[!((i + rounds) % 2)], settle_ms);
  }
  row_of(side, name, times, rounds, 1e6);
  driver_kill(pair[0]);
  driver_kill(pair[1]);
}

/* Time in the server */

/* What the scripts took since the last reset, in microseconds; and how many there were. */
static int64_t script_time(int64_t *calls)
{
  static const char *const names[] = {"cmdstat_eval:", "cmdstat_evalsha:"};
  const char *info = raw_text(&lab.redis, "INFO commandstats");
  int64_t sum = 0;
  *calls = 0;
  for (int i = 0; i < 2; i++) {
    long long count, time;
    const char *line = strstr(info, names[i]);
    if (line == NULL || sscanf(line + strlen(names[i]), "calls=%lld,usec=%lld", &count, &time) != 2)
      continue;
    sum += time;
    *calls += count;
  }
  return sum;
}

/*
 * Adds waiters without a living client to the end of the queue, or to its head. They are alive for
 * an hour.
 */
static void crowd(struct side *side, const char *lock, int count, bool ahead)
{
  static const char script[] =
      "local t = redis.call('time') local now = t[1] * 1000 "
      "for i = 1, tonumber(ARGV[1]) do local id = 'crowd-0000-4000-8000-000000000000:' .. i "
      "redis.call(ARGV[3], KEYS[1], id) redis.call('zadd', KEYS[2], now + 3600000 + i * 300000, "
      "id) "
      "if ARGV[2] == '1' then redis.call('hset', KEYS[3], id, t[1] + 3600 .. ' 0 5000') end end";
  raw_run(&lab.redis,
          "EVAL %s 3 redisson_lock_queue:{%s} redisson_lock_timeout:{%s} fairlock:{%s} %d %d %s",
          script, lock, lock, lock, count, side->kind == OURS, ahead ? "lpush" : "rpush");
}

static int64_t timed_handover(struct side *side, struct driver *from, struct driver *to,
                              int waiters)
{
  int64_t calls;
  clear();
  tell(from, "a crowd lock");
  say(to, "a crowd lock");
  if (!lab_queue_reaches(&lab, "crowd", 1)) exit(1);
  sleep_ms(20);
  crowd(side, "crowd", waiters, false);
  tell(from, "b warm bench 100"); /* a server that just slept takes several times as long */
  raw_run(&lab.redis, "CONFIG RESETSTAT");
  tell(from, "a crowd unlock");
  if (hear(to, "a", PATIENCE_MS) == NULL) exit(1);
  sleep_ms(20); /* a grant is confirmed after it is used */
  int64_t time = script_time(&calls);
  clear();
  tell(to, "a crowd unlock");
  return time;
}

/* What a waiter costs while it waits, at the end of the queue. */
static void bench_waiting(struct side *side, int waiters)
{
  struct driver *holder = start_side(side, lab.server.port);
  struct driver *waiter = start_side(side, lab.server.port);
  int64_t calls;
  clear();
  tell(holder, "a wait lock");
  say(waiter, "a wait lock");
  if (!lab_queue_reaches(&lab, "wait", 1)) exit(1);
  crowd(side, "wait", waiters, true);
  sleep_ms(100);
  raw_run(&lab.redis, "CONFIG RESETSTAT");
  sleep_ms(6500);
  int64_t time = script_time(&calls);
  row(side, "server_us_per_second_of_one_waiting_behind_%d: %.1f (%" PRId64 " requests in 6.5 s)",
      waiters, (double)time / 6.5, calls);
  driver_kill(holder);
  driver_kill(waiter);
}

static void bench_server_time(struct side *side)
{
  static const int waiters[] = {10, 100, 1000, 10000};
  struct driver *pair[2] = {start_side(side, lab.server.port), start_side(side, lab.server.port)};
  for (int i = 0; i < 4; i++) {
    int64_t times[21];
    char name[64];
    for (int k = 0; k < 25; k++)
      times[k < 4 ? 0 : k - 4] = timed_handover(side, pair[k % 2], pair[!(k % 2)], waiters[i]);
    snprintf(name, sizeof name, "server_us_per_handover_with_%d_waiting", waiters[i]);
    row_of(side, name, times, 21, 1);
  }
  driver_kill(pair[0]);
  driver_kill(pair[1]);
  bench_waiting(side, 10);
  bench_waiting(side, 10000);
}

/* Bytes */

static void bench_bytes(struct side *side)
{
  enum { TIMES = 100 };
  struct driver *pair[2] = {start_side(side, wire.port), start_side(side, wire.port)};
  clear();
  tell(pair[0], "a counted bench 20");
  int64_t to_server = wire.control->bytes_to_server, to_clients = wire.control->bytes_to_client;
  tell(pair[0], "a counted bench %d", TIMES);
  row(side, "bytes_per_acquire_release: %" PRId64 " sent, %" PRId64 " received",
      (wire.control->bytes_to_server - to_server) / TIMES,
      (wire.control->bytes_to_client - to_clients) / TIMES);
  tell(pair[0], "a ball lock");
  for (int i = 0; i < 4; i++)
    hand_over(pair[i % 2], pair[!(i % 2)], 5);
  to_server = wire.control->bytes_to_server, to_clients = wire.control->bytes_to_client;
  for (int i = 0; i < TIMES; i++)
    hand_over(pair[i % 2], pair[!(i % 2)], 5);
  row(side, "bytes_per_handover: %" PRId64 " sent, %" PRId64 " received",
      (wire.control->bytes_to_server - to_server) / TIMES,
      (wire.control->bytes_to_client - to_clients) / TIMES);
  driver_kill(pair[0]);
  driver_kill(pair[1]);
}

/* Resources */

static long resident_kb(const struct driver *driver)
{
  char path[64], line[256];
  long kb = -1;
  snprintf(path, sizeof path, "/proc/%d/status", (int)driver->pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) return -1;
  while (fgets(line, sizeof line, file) != NULL)
    sscanf(line, "VmRSS: %ld", &kb);
  fclose(file);
  return kb;
}

static int64_t connections(void)
{
  const char *info = raw_text(&lab.redis, "INFO clients");
  const char *line = strstr(info, "connected_clients:");
  return line != NULL ? strtoll(line + strlen("connected_clients:"), NULL, 10) : -1;
}

static void bench_resources(struct side *side)
{
  sleep_ms(1000); /* until the server has noticed who is gone */
  int64_t before = connections();
  struct driver *driver = start_side(side, lab.server.port);
  tell(driver, "a used bench 1000");
  sleep_ms(500);
  /* of the driver's two parties, for their critical sections */
  int64_t own = side->kind == OURS ? 2 : 0;
  row(side, "connections_per_client: %" PRId64, connections() - before - own);
  row(side, "resident_kb_per_process: %ld", resident_kb(driver));
  driver_kill(driver);
  sleep_ms(200);
}

/* Deaths */

/*
 * Until when Redisson keeps the last of the queue in its place, if it is not heard of: ms from now.
 */
static int64_t longest_stay(const char *lock)
{
  raw_run(&lab.redis, "TIME");
  int64_t now = strtoll(lab.redis.element[1].text, NULL, 10) * 1000;
  bool any =
      raw_number(&lab.redis, "ZRANGE redisson_lock_timeout:{%s} -1 -1 WITHSCORES", lock) == 2;
  return any ? (int64_t)strtod(lab.redis.element[2].text, NULL) - now : -1;
}

/*
 * A holder, five waiters that are killed, one more that lives; release, and see when that one gets
 * the lock.
 */
static void bench_killed_waiters(struct side *side, const char *options, const char *name,
                                 int patience_ms)
{
  struct driver *holder = start(side, lab.server.port, options);
  struct driver *victim = start(side, lab.server.port, options);
  struct driver *heir = start(side, lab.server.port, options);
  clear();
  tell(holder, "a doomed lock");
  for (int i = 0; i < 5; i++) {
    say(victim, "v%d doomed lock", i);
    if (!lab_queue_reaches(&lab, "doomed", i + 1)) exit(1);
  }
  int64_t stay = longest_stay("doomed");
  sleep_ms(300);
  driver_kill(victim);
  say(heir, "a doomed lock");
  if (!lab_queue_reaches(&lab, "doomed", 6)) exit(1);
  sleep_ms(300);
  int64_t released = field(tell(holder, "a doomed unlock"), 0);
  if (patience_ms == 0) {
    row(side, "%s: %.1f (not waited for: when Redisson would evict the last of them)", name,
        (double)stay / 1000);
  } else {
    const char *answer = hear(heir, "a", patience_ms);
    if (answer != NULL) row(side, "%s: %.3f", name, (double)(field(answer, 0) - released) / 1e9);
    else row(side, "%s: more than %d", name, patience_ms / 1000);
  }
  driver_kill(holder);
  driver_kill(heir);
}

static void bench_deaths(struct side *side)
{
  const char *patience = getenv("INTEROP_LONG");
  if (side->kind == OURS) {
    bench_killed_waiters(side, NULL, "seconds_that_5_killed_waiters_cost", PATIENCE_MS);
    return;
  }
  bench_killed_waiters(side, NULL, "seconds_that_5_killed_waiters_cost",
                       patience != NULL ? 2400000 : 0);
  if (strncmp(side->version, "3.", 2) == 0) return; /* has no such setting */
  bench_killed_waiters(side, "fairwait=5000",
                       "seconds_that_5_killed_waiters_cost_with_fairLockWaitTimeout_5_s", 300000);
}

/* A process that holds some locks, and one that waits for them. */
struct pair {
  struct driver *holder, *waiter;
  int64_t killed_at, left[HOLDERS]; /* of the leases then */
};

static void begin_takeover(struct side *side, struct pair *pair)
{
  pair->holder = start_side(side, lab.server.port);
  pair->waiter = start_side(side, lab.server.port);
  for (int i = 0; i < HOLDERS; i++) {
    char lock[64];
    snprintf(lock, sizeof lock, "%s-%d", side->name, i);
    tell(pair->holder, "h%d %s lock", i, lock);
    say(pair->waiter, "w%d %s lock", i, lock);
    if (!lab_queue_reaches(&lab, lock, 1)) exit(1);
  }
}

static void kill_holder(struct side *side, struct pair *pair)
{
  driver_kill(pair->holder);
  pair->killed_at = now_ns();
  for (int i = 0; i < HOLDERS; i++) {
    pair->left[i] = raw_number(&lab.redis, "PTTL %s-%d", side->name, i) * 1000000;
  }
}

static void end_takeover(struct side *side, struct pair *pair)
{
  int64_t took[HOLDERS], after[HOLDERS];
  int late = 0;
  for (int i = 0; i < HOLDERS; i++) {
    char party[16];
    int64_t passed = (now_ns() - pair->killed_at) / 1000000;
    snprintf(party, sizeof party, "w%d", i);
    const char *answer =
        hear(pair->waiter, party, passed < PATIENCE_MS ? (int)(PATIENCE_MS - passed) : 1);
    took[i] = answer != NULL ? field(answer, 0) - pair->killed_at : 0;
    after[i] = took[i] - pair->left[i];
    if (answer == NULL) late++;
  }
  if (late > 0) {
    row(side, "killed_holder_takeover_per_lease: more than %.1f (%d of %d)",
        PATIENCE_MS / 1000 / LEASE_S, late, HOLDERS);
  } else {
    row_of(side, "killed_holder_takeover_per_lease", took, HOLDERS, LEASE_S * 1e9);
    row_of(side, "killed_holder_takeover_ms_after_the_lease_ended", after, HOLDERS, 1e6);
  }
  driver_kill(pair->waiter);
}

static void bench_side(struct side *side)
{
  bench_uncontended(side);
  bench_handover(side, "handover_ms", lab.server.port, HANDOVERS, 5);
  bench_handover(side, "handover_ms_each_way_5_ms_farther", far_away.port, DELAYED, 40);
  bench_server_time(side);
  bench_bytes(side);
  bench_resources(side);
  bench_deaths(side);
}

int main(int argc, char **argv)
{
  static struct side sides[10];
  static struct pair pairs[10];
  int count = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  lab_open(&lab, "");
  proxy_start(&wire, lab.server.port);
  proxy_start(&far_away, lab.server.port);
  atomic_store(&far_away.control->delay_ms, DELAY_MS);
  sides[count++] = (struct side){.name = "ours", .kind = OURS, .options = "run=0"};
  sides[count++] = (struct side){.name = "ours-thread", .kind = OURS};
  for (int i = 1; i < argc && count < 10; i++, count++) {
    sides[count] = (struct side){.kind = JAVA, .version = argv[i]};
    snprintf(sides[count].name, sizeof sides[count].name, "redisson-%s", argv[i]);
  }
  for (int i = 0; i < count; i++)
    bench_side(&sides[i]);
  clear();
  for (int i = 1; i < count; i++)
    begin_takeover(&sides[i], &pairs[i]);
  sleep_ms(RENEWED_MS);
  for (int i = 1; i < count; i++)
    kill_holder(&sides[i], &pairs[i]);
  for (int i = 1; i < count; i++)
    end_takeover(&sides[i], &pairs[i]);
  lab_close(&lab);
  return 0;
}
