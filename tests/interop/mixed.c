/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redisson and the library in one queue, as whole programs: what each sees of the other's lock, in
 * which order they are served, and what happens when one of them dies. `mixed VERSION [TEST]`, with
 * the version of Redisson.
 *
 * Order and exclusion are not judged by the lock's own data: each holder counts itself in a
 * critical section and adds itself to a log, and the order in which waiters arrived is taken from
 * the server (the queue as it grew, or MONITOR). Times are printed; what is checked of them is only
 * what tells being woken from polling.
 */
#include "check.h"
#include "mixed.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE   3 /* parties of each kind in a mixed queue */
#define ROUNDS 60
#define PASSES 40

struct lab lab;
struct driver *ours, *ours_2, *java, *java_2;

void check_write(const char *text)
{
  fputs(text, stdout);
  fflush(stdout);
}

void print_ms(const char *what, int64_t ns)
{
  printf("# %s: %" PRId64 ".%" PRId64 " ms\n", what, ns / 1000000, ns / 100000 % 10);
}

void enqueue(struct driver *driver, const char *party, const char *lock, int64_t length)
{
  say(driver, "%s %s lock", party, lock);
  CHECK(lab_queue_reaches(&lab, lock, length));
}

void enqueue_listening(struct driver *driver, const char *party, const char *lock, int64_t length)
{
  char id[128];
  snprintf(id, sizeof id, "%s", tell(driver, "%s %s id", party, lock));
  enqueue(driver, party, lock, length);
  CHECK(listens(&lab, lock, id));
}

int64_t granted(struct driver *driver, const char *party, int seconds)
{
  const char *answer = hear(driver, party, seconds * 1000);
  int64_t at = answer != NULL ? field(answer, 0) : 0;
  return at > 0 ? at : -1;
}

bool released(struct driver *driver, const char *party, const char *lock)
{
  return field(tell(driver, "%s %s unlock", party, lock), 0) > 0;
}

void check_text(const char *is, const char *expected)
{
  if (strcmp(is, expected) != 0) printf("# is '%s', expected '%s'\n", is, expected);
  CHECK(strcmp(is, expected) == 0);
}

/* The same data */

static void test_redisson_sees_our_hold(void)
{
  CHECK(field(tell(ours, "a seen lock 20000"), 0) > 0);
  CHECK_EQUAL(field(tell(java, "j seen locked"), 0), 1);
  int64_t ttl = field(tell(java, "j seen ttl"), 0);
  CHECK(ttl > 0 && ttl <= 20000);
  CHECK_EQUAL(field(tell(java, "j seen count"), 0), 0);
  CHECK_EQUAL(field(tell(java, "j seen try"), 0), 0);
  check_text(tell(java, "j seen unlock"), "not-held");
  CHECK(field(tell(ours, "a seen lock 20000"), 0) > 0);
  CHECK_EQUAL(raw_number(&lab.redis, "HVALS seen"), 1);
  check_text(lab.redis.element[1].text, "2");
  CHECK(released(ours, "a", "seen"));
  CHECK_EQUAL(field(tell(java, "j seen locked"), 0), 1);
  CHECK(released(ours, "a", "seen"));
  CHECK_EQUAL(field(tell(java, "j seen locked"), 0), 0);
  CHECK_EQUAL(field(tell(java, "j seen try"), 0), 1);
  CHECK_EQUAL(field(tell(java, "j seen count"), 0), 1);
  CHECK(released(java, "j", "seen"));
}

static void test_we_see_redissons_hold(void)
{
  char id[128];
  CHECK(field(tell(java, "j shown lock 20000"), 0) > 0);
  CHECK(field(tell(java, "j shown lock 20000"), 0) > 0);
  CHECK_EQUAL(field(tell(ours, "a shown locked"), 0), 1);
  int64_t ttl = field(tell(ours, "a shown ttl"), 0);
  CHECK(ttl > 0 && ttl <= 20000);
  CHECK_EQUAL(field(tell(ours, "a shown count"), 0), 0);
  CHECK_EQUAL(field(tell(ours, "a shown try"), 0), 0);
  check_text(tell(ours, "a shown unlock"), "not-held");
  snprintf(id, sizeof id, "2 0 %s", tell(java, "j shown id"));
  const char *status = tell(ours, "a shown status");
  status += strcspn(status, " ");
  check_text(status + (*status == ' '), id);
  CHECK(released(java, "j", "shown"));
  CHECK(released(java, "j", "shown"));
  CHECK_EQUAL(field(tell(ours, "a shown locked"), 0), 0);
}

/* An inspection shows the kind of each waiter, that it listens, and its place. */
static void test_status_marks_each_kind(void)
{
  char expected[512], first[128], second[128], third[128];
  snprintf(first, sizeof first, "%s", tell(java, "j1 marks id"));
  snprintf(second, sizeof second, "%s", tell(ours, "b marks id"));
  snprintf(third, sizeof third, "%s", tell(java_2, "j2 marks id"));
  CHECK(field(tell(ours, "a marks lock"), 0) > 0);
  enqueue(java, "j1", "marks", 1);
  enqueue(ours, "b", "marks", 2);
  enqueue(java_2, "j2", "marks", 3);
  CHECK(listens(&lab, "marks", first) && listens(&lab, "marks", third));
  snprintf(expected, sizeof expected, "1 1 0 %s 1 1 1 %s 1 1 0 %s", first, second, third);
  const char *status = tell(ours_2, "c marks status");
  for (int i = 0; i < 4 && status != NULL; i++)
    status = strchr(status + 1, ' ');
  check_text(status != NULL ? status + 1 : "", expected);
  CHECK(released(ours, "a", "marks"));
  CHECK(granted(java, "j1", 20) > 0 && released(java, "j1", "marks"));
  CHECK(granted(ours, "b", 20) > 0 && released(ours, "b", "marks"));
  CHECK(granted(java_2, "j2", 20) > 0 && released(java_2, "j2", "marks"));
}

/* All of a queue is shown, however long it is. These wait as Redisson's do, but nobody is there. */
static void test_status_of_a_long_queue(void)
{
  static char expected[ANSWER_SIZE];
  size_t size = (size_t)snprintf(expected, sizeof expected, "-2 0 0 -");
  for (int i = 0; i < 200; i++) {
    char id[64];
    snprintf(id, sizeof id, "00000000-0000-0000-0000-0000000000ab:%d", 100 + i);
    CHECK(raw_run(&lab.redis, "RPUSH redisson_lock_queue:{long} %s", id));
    CHECK(raw_run(&lab.redis, "ZADD redisson_lock_timeout:{long} 9000000000000 %s", id));
    size += (size_t)snprintf(expected + size, sizeof expected - size, " 0 1 0 %s", id);
  }
  check_text(tell(ours, "a long status"), expected);
  CHECK(raw_run(&lab.redis, "DEL redisson_lock_queue:{long} redisson_lock_timeout:{long}"));
}

static void test_our_force_release_ends_redissons_hold(void)
{
  CHECK(field(tell(java, "j broken lock"), 0) > 0);
  enqueue(java_2, "k", "broken", 1);
  enqueue(ours, "a", "broken", 2);
  CHECK_EQUAL(field(tell(ours_2, "c broken force"), 0), 1);
  CHECK(granted(java_2, "k", 20) > 0);
  check_text(tell(java, "j broken unlock"), "not-held");
  CHECK(released(java_2, "k", "broken"));
  CHECK(granted(ours, "a", 20) > 0 && released(ours, "a", "broken"));
  CHECK_EQUAL(field(tell(ours_2, "c broken force"), 0), 0);
}

static void test_redissons_force_unlock_ends_our_hold(void)
{
  CHECK(field(tell(ours, "a forced lock"), 0) > 0);
  enqueue(ours_2, "b", "forced", 1);
  enqueue(java, "j", "forced", 2);
  CHECK_EQUAL(field(tell(java_2, "k forced force"), 0), 1);
  CHECK(granted(ours_2, "b", 20) > 0);
  check_text(tell(ours, "a forced unlock"), "not-held");
  CHECK(released(ours_2, "b", "forced"));
  CHECK(granted(java, "j", 20) > 0 && released(java, "j", "forced"));
}

/* A name that has braces gets no further ones. */
static void test_names_with_braces(void)
{
  CHECK(field(tell(ours, "a {rack}7 lock"), 0) > 0);
  say(java, "j {rack}7 lock");
  AWAIT(raw_number(&lab.redis, "LLEN redisson_lock_queue:{rack}7") == 1, sleep_ms(2));
  say(ours_2, "b {rack}7 lock");
  AWAIT(raw_number(&lab.redis, "LLEN redisson_lock_queue:{rack}7") == 2, sleep_ms(2));
  CHECK(released(ours, "a", "{rack}7"));
  CHECK(granted(java, "j", 20) > 0 && released(java, "j", "{rack}7"));
  CHECK(granted(ours_2, "b", 20) > 0 && released(ours_2, "b", "{rack}7"));
}

/* A waiter that gives up leaves nothing behind, and costs those behind it nothing. */
static void test_a_waiter_that_gives_up(void)
{
  CHECK(field(tell(ours, "a given lock"), 0) > 0);
  say(java, "j given wait 10000 -1");
  CHECK(lab_queue_reaches(&lab, "given", 1));
  say(ours_2, "b given wait 10000 -1");
  CHECK(lab_queue_reaches(&lab, "given", 2));
  enqueue(java_2, "k", "given", 3);
  enqueue(ours_2, "c", "given", 4);
  CHECK_EQUAL(field(hear(java, "j", 60000), 0), 0);
  CHECK_EQUAL(field(hear(ours_2, "b", 60000), 0), 0);
  CHECK(lab_queue_reaches(&lab, "given", 2));
  CHECK_EQUAL(raw_number(&lab.redis, "ZCARD redisson_lock_timeout:{given}"), 2);
  CHECK(released(ours, "a", "given"));
  CHECK(granted(java_2, "k", 20) > 0 && released(java_2, "k", "given"));
  CHECK(granted(ours_2, "c", 20) > 0 && released(ours_2, "c", "given"));
}

/* One queue */

void shuffle(struct party *parties, int count)
{
  for (int i = count - 1; i > 0; i--) {
    int j = rand() % (i + 1);
    struct party swap = parties[i];
    parties[i] = parties[j];
    parties[j] = swap;
  }
}

/* Checks a pass: alone inside, held once. */
static int64_t check_pass(struct party *party)
{
  const char *answer = hear(party->driver, party->name, 30000);
  if (!CHECK(answer != NULL)) return -1;
  CHECK_EQUAL(field(answer, 1), 1);
  CHECK_EQUAL(field(answer, 2), 1);
  return field(answer, 0);
}

/*
 * Queues up all parties in the order in which they stand, behind a holder, and lets them pass one
 * by one.
 */
static void check_round(struct party *holder, struct party *parties, int count,
                        int64_t *first_handover)
{
  raw_run(&lab.redis, "DEL log:mixed");
  CHECK(field(tell(holder->driver, "%s mixed lock", holder->name), 0) > 0);
  for (int i = 0; i < count; i++) {
    say(parties[i].driver, "%s mixed pass", parties[i].name);
    if (!CHECK(lab_queue_reaches(&lab, "mixed", i + 1))) return;
  }
  int64_t at = field(tell(holder->driver, "%s mixed unlock", holder->name), 0);
  for (int i = 0; i < count; i++) {
    int64_t passed = check_pass(&parties[i]);
    if (i == 0) *first_handover = passed - at;
  }
  if (!CHECK_EQUAL(raw_number(&lab.redis, "LRANGE log:mixed 0 -1"), count)) return;
  for (int i = 0; i < count; i++)
    check_text(lab.redis.element[i + 1].text, parties[i].name);
}

static void name_parties(struct party *parties)
{
  for (int i = 0; i < SIDE; i++) {
    parties[i].driver = i % 2 == 0 ? ours : ours_2;
    snprintf(parties[i].name, sizeof parties[i].name, "our%d", i);
    parties[SIDE + i].driver = i % 2 == 0 ? java : java_2;
    snprintf(parties[SIDE + i].name, sizeof parties[SIDE + i].name, "java%d", i);
  }
}

/* Random arrivals, served in their order. Both are woken by both. */
static void test_mixed_queue_in_order_of_arrival(void)
{
  static const char *const kinds[] = {"ours", "Redisson"};
  struct party parties[2 * SIDE];
  struct party holders[2] = {{ours_2, "hold"}, {java_2, "hold"}};
  int64_t times[2][2][ROUNDS];
  int counts[2][2] = {{0}};
  name_parties(parties);
  for (int i = 0; i < ROUNDS; i++) {
    int64_t time = -1;
    int from = rand() % 2;
    shuffle(parties, 2 * SIDE);
    check_round(&holders[from], parties, 2 * SIDE, &time);
    int to = parties[0].driver->kind == JAVA;
    times[from][to][counts[from][to]++] = time;
  }
  for (int i = 0; i < 4; i++) {
    char what[64];
    int count = counts[i / 2][i % 2];
    if (count == 0) continue;
    int64_t middle = median(times[i / 2][i % 2], count);
    snprintf(what, sizeof what, "handover %s to %s, median of %d", kinds[i / 2], kinds[i % 2],
             count);
    print_ms(what, middle);
    CHECK(middle > 0 && middle < (int64_t)WOKEN_MS * 1000000);
  }
}

/*
 * Follows MONITOR: who enters the queue, and whether the lock is always taken by the first in it.
 */
struct observer {
  char queue[128][96];
  int length;
  int grants, entries;
  char given[96]; /* a waiter of ours that was handed the lock and has not confirmed it yet */
  int odd;
};

static void observe(struct observer *observer, const char *line)
{
  char id[96];
  const char *entry = strstr(line, "] \"rpush\" \"redisson_lock_queue:{free}\" ");
  const char *grant = strstr(line, "] \"hset\" \"free\" ");
  if (entry != NULL && sscanf(strstr(entry, "} ") == NULL ? entry : entry,
                              "] \"rpush\" %*s \"%95[^\"]\"", id) == 1) {
    observer->entries++;
    if (observer->length < 128) snprintf(observer->queue[observer->length++], sizeof id, "%s", id);
  }
  int count;
  if (grant == NULL || sscanf(grant, "] \"hset\" \"free\" \"%95[^\"]\" \"%d\"", id, &count) != 2 ||
      count > 1)
    return;
  bool confirms = count == 1 && strcmp(observer->given, id) == 0; /* what was handed to it before */
  snprintf(observer->given, sizeof id, "%s", count == 0 ? id : "");
  if (confirms) return;
  observer->grants++;
  if (observer->length == 0) return;
  if (strcmp(observer->queue[0], id) != 0) {
    observer->odd++;
    printf("# %s took the lock before %s\n", id, observer->queue[0]);
  }
  observer->length--;
  memmove(observer->queue[0], observer->queue[1],
          (size_t)observer->length * sizeof observer->queue[0]);
}

/* The parties arrive when they like. The server's own record says who was first. */
static void test_mixed_queue_running_free(void)
{
  struct party parties[2 * SIDE];
  static struct observer observer;
  static struct raw monitor;
  name_parties(parties);
  if (!CHECK(raw_open(&monitor, lab.server.port))) return;
  CHECK(raw_run(&monitor, "MONITOR"));
  for (int i = 0; i < 2 * SIDE; i++)
    say(parties[i].driver, "%s free run %d 10", parties[i].name, PASSES);
  for (int i = 0; i < 2 * SIDE; i++) {
    int done = 0;
    const char *answer = NULL;
    while (answer == NULL && done++ < PATIENT_S * 10) {
      while (raw_reply_within(&monitor, 0))
        observe(&observer, monitor.element[0].text);
      answer = hear(parties[i].driver, parties[i].name, 100);
    }
    if (!CHECK(answer != NULL)) break;
    CHECK_EQUAL(field(answer, 0), 1);
    CHECK_EQUAL(field(answer, 1), 1);
  }
  while (raw_reply_within(&monitor, 200))
    observe(&observer, monitor.element[0].text);
  raw_close(&monitor);
  printf("# %d grants, %d of them after a wait\n", observer.grants, observer.entries);
  CHECK_EQUAL(observer.grants, 2 * SIDE * PASSES);
  CHECK_EQUAL(observer.odd, 0);
  CHECK_EQUAL(observer.length, 0);
}

/*
 * Each acquisition by Redisson moves the eviction of every waiter forward by 300 s: ours must
 * survive a hundred of them.
 */
static void test_a_hundred_redisson_acquisitions(void)
{
  enum { CROWD = 100, ALL = CROWD + 3 };
  static struct party parties[ALL];
  struct party holder = {ours_2, "hold"};
  int64_t time;
  for (int i = 0; i < ALL; i++) {
    bool our_place = i == 0 || i == ALL / 2 || i == ALL - 1;
    parties[i].driver = our_place ? ours : i % 2 == 0 ? java : java_2;
    snprintf(parties[i].name, sizeof parties[i].name, "%s%d", our_place ? "our" : "crowd", i);
  }
  check_round(&holder, parties, ALL, &time);
}

/*
 * Redisson's tryLock() subtracts its limit from all scores, instead of 300 s: ours must survive two
 * limits of 300 s. With longer ones it may lose its place.
 */
static void test_redisson_that_waits_for_at_most_300_s(void)
{
  struct driver *const limited[] = {java, java_2};
  char id[128];
  CHECK(field(tell(ours, "first limit lock"), 0) > 0);
  for (int i = 0; i < 2; i++) {
    say(limited[i], "limited limit wait 300000 -1");
    CHECK(lab_queue_reaches(&lab, "limit", i + 1));
  }
  snprintf(id, sizeof id, "%s", tell(ours_2, "ours limit id"));
  enqueue_listening(ours_2, "ours", "limit", 3);
  CHECK(released(ours, "first", "limit"));
  for (int i = 0; i < 2; i++) {
    CHECK_EQUAL(granted(limited[i], "limited", PATIENT_S), 1); /* "1", and the time */
    int64_t left = raw_number(&lab.redis,
                              "EVAL return(redis.call('zscore',KEYS[1],ARGV[1])-1000*redis.call("
                              "'time')[1]) 1 redisson_lock_timeout:{limit} %s",
                              id);
    printf("# Redisson would evict ours in %lld s\n", (long long)left / 1000);
    CHECK(left > 0);
    CHECK(released(limited[i], "limited", "limit"));
  }
  CHECK(granted(ours_2, "ours", PATIENT_S) > 0);
  CHECK(released(ours_2, "ours", "limit"));
}

/* Faults across the border */

struct driver *mortal(enum kind kind)
{
  char options[32];
  snprintf(options, sizeof options, kind == JAVA ? "watchdog=%d" : "lease=%d", LEASE_MS);
  return driver_start(&lab, kind, lab.server.port, options);
}

/*
 * A holder of kind `first` with five waiters of kind `dead` behind it, which are killed, and then
 * the waiters `second` and, if not NULL, `third`. Prints how long after the release `second` gets
 * the lock.
 */
static int64_t wait_behind_the_dead(const char *what, struct driver *first, enum kind dead,
                                    struct driver *second, struct driver *third)
{
  static int count;
  char lock[16], party[16];
  struct driver *victim = mortal(dead);
  snprintf(lock, sizeof lock, "dead%d", count++);
  CHECK(field(tell(first, "first %s lock", lock), 0) > 0);
  for (int i = 0; i < 5; i++) {
    snprintf(party, sizeof party, "victim%d", i);
    enqueue_listening(victim, party, lock, i + 1);
  }
  driver_kill(victim);
  enqueue_listening(second, "second", lock, 6);
  if (third != NULL) enqueue_listening(third, "third", lock, 7);
  int64_t released_at = field(tell(first, "first %s unlock", lock), 0);
  int64_t took = granted(second, "second", PATIENT_S) - released_at;
  CHECK(took > 0);
  print_ms(what, took);
  CHECK(released(second, "second", lock));
  if (third != NULL)
    CHECK(granted(third, "third", PATIENT_S) > 0 && released(third, "third", lock));
  return took;
}

/*
 * All five cost one waiter timeout of 5 s, and a heartbeat of 2 s. One after the other they would cost
 * five of each.
 */
#define WINDOW_NS ((int64_t)25000 * 1000000)

static void test_killed_redisson_waiters_before_ours(void)
{
  CHECK(wait_behind_the_dead("5 killed Redisson waiters, released by us, next is ours", ours, JAVA,
                             ours_2, NULL) < WINDOW_NS);
  CHECK(wait_behind_the_dead("5 killed Redisson waiters, released by Redisson, next is ours", java,
                             JAVA, ours_2, NULL) < WINDOW_NS);
}

static void test_our_killed_waiters_before_redisson(void)
{
  CHECK(wait_behind_the_dead("5 killed waiters of ours, released by us, next is Redisson", ours,
                             OURS, java, NULL) < WINDOW_NS);
  CHECK(wait_behind_the_dead(
            "5 killed waiters of ours, released by Redisson, next is Redisson, ours behind it",
            java_2, OURS, java, ours) < WINDOW_NS);
}

/*
 * A host that lost its power closes nothing: for the server, it goes on listening. A stopped
 * process looks the same.
 */
static void test_stopped_redisson_waiter_before_ours(void)
{
  struct driver *victim = mortal(JAVA);
  CHECK(field(tell(ours, "a stopped lock"), 0) > 0);
  enqueue_listening(victim, "victim", "stopped", 1);
  enqueue(ours_2, "b", "stopped", 2);
  sleep_ms(1000); /* it asks once more */
  kill(victim->pid, SIGSTOP);
  sleep_ms(200); /* a request that is on its way finds the holder, and does not get the lock */
  int64_t released_at = field(tell(ours, "a stopped unlock"), 0);
  int64_t took = granted(ours_2, "b", PATIENT_S) - released_at;
  print_ms("stopped Redisson waiter, next is ours", took);
  CHECK(took > 0); /* Redisson would wait for 300 s */
  kill(victim->pid, SIGCONT);
  if (lab_queue_reaches(&lab, "stopped", 1)) { /* it is in the queue again */
    CHECK(released(ours_2, "b", "stopped"));
    CHECK(granted(victim, "victim", 20) > 0);
    CHECK_EQUAL(field(tell(victim, "victim stopped count"), 0), 1);
  } else { /* it was stopped within a request, which then takes too long for it */
    const char *answer = hear(victim, "victim", 20000);
    printf("# the stopped waiter says: %s\n", answer != NULL ? answer : "nothing");
    CHECK(answer != NULL && strstr(answer, "Timeout") != NULL);
    CHECK(released(ours_2, "b", "stopped"));
  }
  driver_kill(victim);
}

/*
 * The same with four threads of one process: each has its own 5 s, and a heartbeat. Each was told,
 * so when the process goes on, all of them queue again.
 */
static void test_stopped_redisson_threads_before_ours(void)
{
  enum { THREADS = 4 };
  char party[16];
  struct driver *victim = mortal(JAVA);
  CHECK(field(tell(ours, "a threads lock"), 0) > 0);
  for (int i = 0; i < THREADS; i++) {
    snprintf(party, sizeof party, "victim%d", i);
    enqueue_listening(victim, party, "threads", i + 1);
  }
  enqueue(ours_2, "b", "threads", THREADS + 1);
  sleep_ms(1000); /* each asks once more */
  kill(victim->pid, SIGSTOP);
  int64_t released_at = field(tell(ours, "a threads unlock"), 0);
  int64_t took = granted(ours_2, "b", THREADS * PATIENT_S) - released_at;
  print_ms("4 threads of a stopped Redisson process, next is ours", took);
  CHECK(took > 0); /* Redisson would wait for 300 s for each */
  kill(victim->pid, SIGCONT);
  CHECK(lab_queue_reaches(&lab, "threads", THREADS));
  CHECK(released(ours_2, "b", "threads"));
  driver_kill(victim);
}

/*
 * A holder is killed after a renewal. Prints how long `second`, which is next, waits for it; -1
 * when it did not get the lock within `seconds`.
 */
static int64_t wait_for_the_lease(const char *what, enum kind dead, struct driver *second,
                                  struct driver *third, int seconds)
{
  static int count;
  char lock[16], text[128];
  struct driver *victim = mortal(dead);
  snprintf(lock, sizeof lock, "lease%d", count++);
  CHECK(field(tell(victim, "victim %s lock", lock), 0) > 0);
  enqueue(second, "second", lock, 1);
  if (third != NULL) enqueue(third, "third", lock, 2);
  sleep_ms(LEASE_MS / 2);
  driver_kill(victim);
  int64_t left = raw_number(&lab.redis, "PTTL %s", lock);
  int64_t killed_at = now_ns();
  int64_t took = granted(second, "second", seconds);
  snprintf(text, sizeof text, "%s, the lease's last %d ms included", what, (int)left);
  if (took < 0) {
    printf("# %s: more than %d s\n", text, seconds);
    return -1;
  }
  took -= killed_at;
  print_ms(text, took);
  CHECK(released(second, "second", lock));
  if (third != NULL)
    CHECK(granted(third, "third", PATIENT_S) > 0 && released(third, "third", lock));
  return took;
}

static void test_killed_redisson_holder_before_ours(void)
{
  CHECK(wait_for_the_lease("killed Redisson holder, next is ours", JAVA, ours, java, PATIENT_S) >
        0);
}

static void test_our_killed_holder_before_redisson(void)
{
  CHECK(wait_for_the_lease("killed holder of ours, next is Redisson", OURS, java, NULL, PATIENT_S) >
        0);
  CHECK(wait_for_the_lease("killed holder of ours, next is Redisson, ours behind it", OURS, java,
                           ours, PATIENT_S) > 0);
}

/*
 * For comparison: Redisson alone, and with a waiter of ours at the end, whose heartbeat wakes the
 * first in line.
 */
static void test_killed_redisson_holder_before_redisson(void)
{
  struct driver *waiter = mortal(JAVA);
  wait_for_the_lease("killed Redisson holder, next is Redisson", JAVA, waiter, NULL, 30);
  driver_kill(waiter);
  CHECK(wait_for_the_lease("killed Redisson holder, next is Redisson, ours behind it", JAVA, java,
                           ours, PATIENT_S) > 0);
}

/*
 * Until it is kept: a hold that begins before the last release was answered is in doubt, and its
 * release is sent.
 */
static bool keeps(struct driver *keeper, const char *lock)
{
  bool kept = false;
  AWAIT(kept, {
    if (field(tell(keeper, "k %s lock", lock), 0) <= 0 || !released(keeper, "k", lock)) break;
    kept = raw_number(&lab.redis, "EXISTS %s", lock) == 1;
  });
  return kept;
}

/* A lock of ours that is kept for 20 s: a Redisson waiter recalls it. */
static void test_redisson_recalls_our_kept_lock(void)
{
  struct driver *keeper = driver_start(&lab, OURS, lab.server.port, "keep=20000");
  int64_t took[20];
  for (int i = 0; i < 20; i++) {
    CHECK(keeps(keeper, "kept"));
    int64_t began = now_ns();
    CHECK(field(tell(java, "j kept lock"), 0) > 0);
    took[i] = now_ns() - began;
    CHECK(released(java, "j", "kept"));
  }
  int64_t middle = median(took, 20);
  print_ms("kept lock of ours, recalled by Redisson, median of 20", middle);
  CHECK(middle < WOKEN_MS * (int64_t)1000000);
  driver_kill(keeper);
}

/* What stands in Redis of the last release. */
static const char *last_released(const char *lock)
{
  static char text[32];
  snprintf(text, sizeof text, "%s", raw_text(&lab.redis, "HGET fairlock:{%s} released", lock));
  return text;
}

/*
 * A lock that is used all the time is given back when the keep ends, for those who only try. Whether
 * one of them comes before the keeper takes it again is chance, so it takes it no more then.
 */
static void test_a_keep_ends_for_redisson_that_tries(void)
{
  struct driver *keeper = driver_start(&lab, OURS, lab.server.port, "keep=2000");
  CHECK(keeps(keeper, "ends"));
  char before[32];
  snprintf(before, sizeof before, "%s", last_released("ends"));
  AWAIT(strcmp(last_released("ends"), before) != 0,
        CHECK(field(tell(keeper, "k ends lock"), 0) > 0 && released(keeper, "k", "ends")));
  CHECK(strcmp(last_released("ends"), before) != 0);
  bool tried = false;
  AWAIT(tried, tried = field(tell(java, "j ends try"), 0) == 1);
  CHECK(tried && released(java, "j", "ends"));
  driver_kill(keeper);
}

const struct check_test check_tests[] = {
    {"redisson_sees_our_hold", test_redisson_sees_our_hold},
    {"we_see_redissons_hold", test_we_see_redissons_hold},
    {"status_marks_each_kind", test_status_marks_each_kind},
    {"status_of_a_long_queue", test_status_of_a_long_queue},
    {"our_force_release_ends_redissons_hold", test_our_force_release_ends_redissons_hold},
    {"redissons_force_unlock_ends_our_hold", test_redissons_force_unlock_ends_our_hold},
    {"names_with_braces", test_names_with_braces},
    {"a_waiter_that_gives_up", test_a_waiter_that_gives_up},
    {"mixed_queue_in_order_of_arrival", test_mixed_queue_in_order_of_arrival},
    {"mixed_queue_running_free", test_mixed_queue_running_free},
    {"a_hundred_redisson_acquisitions", test_a_hundred_redisson_acquisitions},
    {"redisson_that_waits_for_at_most_300_s", test_redisson_that_waits_for_at_most_300_s},
    {"killed_redisson_waiters_before_ours", test_killed_redisson_waiters_before_ours},
    {"our_killed_waiters_before_redisson", test_our_killed_waiters_before_redisson},
    {"stopped_redisson_waiter_before_ours", test_stopped_redisson_waiter_before_ours},
    {"stopped_redisson_threads_before_ours", test_stopped_redisson_threads_before_ours},
    {"killed_redisson_holder_before_ours", test_killed_redisson_holder_before_ours},
    {"our_killed_holder_before_redisson", test_our_killed_holder_before_redisson},
    {"redisson_sees_our_shares", test_redisson_sees_our_shares},
    {"last_share_wakes_redisson", test_last_share_wakes_redisson},
    {"redisson_after_the_last_lease", test_redisson_after_the_last_lease},
    {"redisson_hears_of_a_shorter_lease", test_redisson_hears_of_a_shorter_lease},
    {"redissons_force_unlock_ends_all_shares", test_redissons_force_unlock_ends_all_shares},
    {"killed_redisson_waiter_before_shares", test_killed_redisson_waiter_before_shares},
    {"redisson_gives_up_before_shares", test_redisson_gives_up_before_shares},
    {"shared_queue_in_order_of_arrival", test_shared_queue_in_order_of_arrival},
    {"shared_queue_running_free", test_shared_queue_running_free},
    {"redisson_recalls_our_kept_lock", test_redisson_recalls_our_kept_lock},
    {"a_keep_ends_for_redisson_that_tries", test_a_keep_ends_for_redisson_that_tries},
    {"killed_redisson_holder_before_redisson", test_killed_redisson_holder_before_redisson},
    {0},
};

int main(int argc, char **argv)
{
  if (argc < 2) {
    fprintf(stderr, "usage: mixed VERSION-OF-REDISSON [TEST]\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  srand((unsigned)now_ns());
  lab_open(&lab, argv[1]);
  ours = driver_start(&lab, OURS, lab.server.port, NULL);
  ours_2 = driver_start(&lab, OURS, lab.server.port, NULL);
  java = driver_start(&lab, JAVA, lab.server.port, NULL);
  java_2 = driver_start(&lab, JAVA, lab.server.port, NULL);
  int failures = check_run(argc > 2 ? argv[2] : NULL);
  driver_kill(ours);
  driver_kill(ours_2);
  driver_kill(java);
  driver_kill(java_2);
  lab_close(&lab);
  return failures > 0;
}
