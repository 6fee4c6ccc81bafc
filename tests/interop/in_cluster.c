/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redisson and the library in one queue of a real cluster, three masters and three replicas:
 * `in_cluster VERSION [TEST]`, with the version of Redisson.
 *
 * From Redis 7 on, we listen to shard channels, and so does Redisson from 3.22 on; older ones
 * listen to plain channels. We send each kind a message on its own kind of channel. An older
 * Redisson sends us a plain message, which does not reach us: we find out when we ask again. So
 * only that handover is a poll.
 */
#include "check.h"
#include "lab.h"
#include "failover/rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAITERS 6
#define SUITE_S 600

static struct lab lab;
static struct rig rig;
static struct driver *driver[2][2]; /* by kind; each begins at another node */
static int64_t longest[2][2];       /* handover, from one kind to another */
static bool plain;                  /* this Redisson knows no shard channels, and the server does */

void check_write(const char *text)
{
  fputs(text, stdout);
  fflush(stdout);
}

/* Of ours: long, so that none polls, unless some have to. */
static int64_t waiter_ms(void)
{
  return plain ? 10000 : 60000;
}

/* Each kind comes after each. */
static enum kind kind_of(int waiter)
{
  static const enum kind kinds[WAITERS] = {JAVA, OURS, OURS, JAVA, JAVA, OURS};
  return kinds[waiter];
}

static struct driver *driver_of(int waiter)
{
  return driver[kind_of(waiter)][waiter % 2];
}

static int owner_of(const char *lock)
{
  return cluster_owner(&rig, cluster_slot(&rig, lock));
}

/* A waiter listens to the kind of channel that it knows, at the owner of the lock's slot. */
static bool listens_in_cluster(struct raw *raw, const char *lock, int waiter)
{
  char id[128];
  (void)snprintf(id, sizeof id, "%s", raw_text(raw, "LINDEX redisson_lock_queue:{%s} -1", lock));
  bool shard = server_version() >= 700 && !(plain && kind_of(waiter) == JAVA);
  for (int64_t until = now_ms() + SOON; now_ms() < until; sleep_ms(10)) {
    if (raw_run(raw, "PUBSUB %s redisson_lock__channel:{%s}:%s", shard ? "SHARDNUMSUB" : "NUMSUB",
                lock, id) &&
        raw->count == 3 && raw->element[2].integer == 1)
      return true;
  }
  return false;
}

/* Ours share, one at a time, so that the order is the same. */
static bool shares;

static void let_share(struct driver *its, const char *party, const char *lock)
{
  if (shares && its->kind == OURS)
    CHECK_EQUAL(field(tell(its, "%s %s share 1", party, lock), 0), 1);
}

static bool gather(struct raw *raw, const char *lock)
{
  for (int i = 0; i < WAITERS; i++) {
    char party[2] = {(char)('0' + i), 0};
    let_share(driver_of(i), party, lock);
    say(driver_of(i), "%s %s lock", party, lock);
    if (CHECK(queue_reaches(raw, lock, i + 1)) && CHECK(listens_in_cluster(raw, lock, i))) continue;
    const char *answer = hear(driver_of(i), party, 100);
    printf("# waiter %d: %s\n", i, answer != NULL ? answer : "no answer");
    return false;
  }
  return true;
}

/* Only the next in line may have been granted the lock. */
static bool others_wait(int next)
{
  for (int i = next + 1; i < WAITERS; i++) {
    if (hear(driver_of(i), (char[]){(char)('0' + i), 0}, 5) != NULL) return false;
  }
  return true;
}

/*
 * Who is woken is so before any poll: ours come every two fifths of a waiter timeout, theirs when the
 * lease of 30 s ends.
 */
static void check_handover(enum kind from, int waiter, int64_t ns)
{
  enum kind to = kind_of(waiter);
  bool polled = from == JAVA && (plain || to == JAVA); /* the latter is not ours to judge */
  int64_t poll_ms = to == OURS ? waiter_ms() * 2 / 5 : SOON;
  int64_t *most = &longest[from == JAVA][to == JAVA];
  if (ns > *most) *most = ns;
  CHECK(polled || ns < poll_ms * 1000000 * 9 / 10);
}

/* One after the other releases; each time the next in line holds, and nobody else. */
static void serve(const char *lock, struct driver *first)
{
  struct driver *holder = first;
  const char *party = "first";
  static char next[2];
  for (int i = 0; i < WAITERS; i++) {
    int64_t released = field(tell(holder, "%s %s unlock", party, lock), 0);
    CHECK(released > 0);
    next[0] = (char)('0' + i);
    const char *answer = hear(driver_of(i), next, SOON);
    int64_t granted = answer != NULL ? field(answer, 0) : 0;
    if (!CHECK(granted > 0) || !CHECK(others_wait(i))) {
      printf("# waiter %d: %s\n", i, answer != NULL ? answer : "no answer");
      return;
    }
    check_handover(holder->kind, i, granted - released);
    holder = driver_of(i);
    party = next;
  }
  CHECK(field(tell(holder, "%s %s unlock", party, lock), 0) > 0);
}

static void start_drivers(enum kind kind)
{
  char options[40];
  (void)snprintf(options, sizeof options, "cluster=1 waiter=%" PRId64, waiter_ms());
  for (int i = 0; i < 2; i++)
    driver[kind][i] =
        driver_start(&lab, kind, rig.node[i * 2].port, kind == OURS ? options : "cluster=1");
}

static void kill_drivers(enum kind kind)
{
  for (int i = 0; i < 2; i++)
    driver_kill(driver[kind][i]);
}

static void print_longest(void)
{
  static const char *const names[] = {"us", "Redisson"};
  for (int from = OURS; from <= JAVA; from++) {
    for (int to = OURS; to <= JAVA; to++)
      printf("# longest handover from %s to %s: %" PRId64 " ms\n", names[from], names[to],
             longest[from][to] / 1000000);
  }
}

/* A lock on each node, so that each driver is redirected. One client of ours is for one slot. */
static void one_queue(enum kind holder)
{
  for (int node = 0; node < 3; node++) {
    start_drivers(OURS);
    char lock[32];
    int number = 0;
    do
      (void)snprintf(lock, sizeof lock, "cluster:%d:%d", (int)holder, number++);
    while (owner_of(lock) != node);
    struct raw *raw = node_raw(&rig.node[node]);
    struct driver *first = driver[holder][0];
    let_share(first, "first", lock);
    const char *answer = tell(first, "first %s lock", lock);
    if (!CHECK(field(answer, 0) > 0)) {
      printf("# holder: %s\n", answer);
      return;
    }
    if (!gather(raw, lock)) return;
    serve(lock, first);
    CHECK(nothing_left(raw, lock));
    kill_drivers(OURS);
  }
}

static void test_after_redisson(void)
{
  one_queue(JAVA);
}

static void test_after_us(void)
{
  one_queue(OURS);
}

static void test_shares_after_redisson(void)
{
  shares = true;
  one_queue(JAVA);
  shares = false;
}

static void test_shares_after_us(void)
{
  shares = true;
  one_queue(OURS);
  shares = false;
}

const struct check_test check_tests[] = {{"shares_after_redisson", test_shares_after_redisson},
                                         {"shares_after_us", test_shares_after_us},
                                         {"after_redisson", test_after_redisson},
                                         {"after_us", test_after_us},
                                         {NULL, NULL}};

static bool is_before_shard_channels(const char *version)
{
  char *dot;
  long major = strtol(version, &dot, 10);
  return major < 3 || (major == 3 && *dot == '.' && strtol(dot + 1, NULL, 10) < 22);
}

int main(int argc, char **argv)
{
  if (argc < 2) {
    fprintf(stderr, "usage: in_cluster VERSION-OF-REDISSON [TEST]\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  lab.version = argv[1];
  cluster_start(&rig, NULL);
  (void)alarm(SUITE_S);
  plain = is_before_shard_channels(lab.version) && server_version() >= 700;
  start_drivers(JAVA);
  int failures = check_run(argc > 2 ? argv[2] : NULL);
  kill_drivers(JAVA);
  print_longest();
  rig_stop(&rig);
  return failures > 0;
}
