/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that ours share, and Redisson wants alone; see mixed.h. */
#include "mixed.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT  2
#define ROUNDS 30
#define PASSES 30

enum { READERS = 4, WRITERS = 2, JAVAS = 2, ALL = READERS + WRITERS + JAVAS };

/* The party shares the lock from now on. */
static void let_share(struct driver *driver, const char *party, const char *lock, int limit)
{
  CHECK_EQUAL(field(tell(driver, "%s %s share %d", party, lock, limit), 0), 1);
}

void test_redisson_sees_our_shares(void)
{
  let_share(ours, "ra", "shown2", 0);
  let_share(ours_2, "rb", "shown2", 0);
  CHECK(field(tell(ours, "ra shown2 lock 20000"), 0) > 0);
  CHECK(field(tell(ours_2, "rb shown2 lock 60000"), 0) > 0);
  CHECK_EQUAL(field(tell(java, "j shown2 locked"), 0), 1);
  int64_t ttl = field(tell(java, "j shown2 ttl"), 0);
  CHECK(ttl > 30000 && ttl <= 64000);
  CHECK_EQUAL(field(tell(java, "j shown2 count"), 0), 0);
  CHECK_EQUAL(field(tell(java, "j shown2 try"), 0), 0);
  check_text(tell(java, "j shown2 unlock"), "not-held");
  CHECK(released(ours_2, "rb", "shown2"));
  ttl = field(tell(java, "j shown2 ttl"), 0);
  CHECK(ttl > 0 && ttl <= 22000);
  CHECK_EQUAL(field(tell(java, "j shown2 try"), 0), 0);
  CHECK(released(ours, "ra", "shown2"));
  CHECK_EQUAL(field(tell(java, "j shown2 locked"), 0), 0);
  CHECK_EQUAL(field(tell(java, "j shown2 try"), 0), 1);
  CHECK_EQUAL(field(tell(ours, "ra shown2 try"), 0), 0);
  CHECK(released(java, "j", "shown2"));
}

/* It has the lock when the last share has gone, and not before; who came behind it shares after it. */
void test_last_share_wakes_redisson(void)
{
  static const char *const lock = "lastly";
  let_share(ours, "ra", lock, LIMIT);
  let_share(ours_2, "rb", lock, LIMIT);
  let_share(ours, "rc", lock, LIMIT);
  CHECK(field(tell(ours, "ra lastly lock"), 0) > 0);
  CHECK(field(tell(ours_2, "rb lastly lock"), 0) > 0);
  enqueue_listening(java, "j", lock, 1);
  enqueue(ours, "rc", lock, 2);
  CHECK(released(ours, "ra", lock));
  CHECK(hear(java, "j", 300) == NULL && hear(ours, "rc", 0) == NULL);
  int64_t at = field(tell(ours_2, "rb lastly unlock"), 0);
  int64_t took = granted(java, "j", PATIENT_S) - at;
  print_ms("last of our shares, next is Redisson", took);
  CHECK(took > 0 && took < WOKEN_MS * (int64_t)1000000);
  CHECK(hear(ours, "rc", 300) == NULL);
  at = field(tell(java, "j lastly unlock"), 0);
  took = granted(ours, "rc", PATIENT_S) - at;
  print_ms("Redisson, next is a share of ours", took);
  CHECK(took > 0 && took < WOKEN_MS * (int64_t)1000000);
  CHECK(released(ours, "rc", lock));
}

/*
 * The holders have died: it has the lock when the last of their leases has ended. They have renewed them
 * once since it stands in line: until then Redisson 3 looks at the end of the lease, not a moment later,
 * and then never again.
 */
void test_redisson_after_the_last_lease(void)
{
  struct driver *victim = mortal(OURS);
  let_share(victim, "ra", "leases", 0);
  let_share(victim, "rb", "leases", 0);
  CHECK(field(tell(victim, "ra leases lock"), 0) > 0);
  CHECK(field(tell(victim, "rb leases lock"), 0) > 0);
  enqueue_listening(java, "j", "leases", 1);
  sleep_ms(LEASE_MS / 2);
  driver_kill(victim);
  int64_t left = raw_number(&lab.redis, "PTTL leases"), killed = now_ns();
  int64_t took = granted(java, "j", PATIENT_S) - killed;
  print_ms("killed holders of shares, next is Redisson", took);
  CHECK(took > (left - 500) * 1000000);
  CHECK(released(java, "j", "leases"));
}

/* The longest lease ends early, and the holder of a shorter one has died. */
void test_redisson_hears_of_a_shorter_lease(void)
{
  struct driver *victim = mortal(OURS);
  let_share(ours, "ra", "shorter", 0);
  let_share(victim, "rb", "shorter", 0);
  CHECK(field(tell(ours, "ra shorter lock 240000"), 0) > 0);
  CHECK(field(tell(victim, "rb shorter lock"), 0) > 0);
  enqueue_listening(java, "j", "shorter", 1);
  sleep_ms(1000); /* it asks once more, and learns that it has to wait for 240 s */
  driver_kill(victim);
  int64_t at = field(tell(ours, "ra shorter unlock"), 0);
  int64_t took = granted(java, "j", PATIENT_S) - at;
  print_ms("a share of 240 s is released beside one of 5 s that has died, next is Redisson", took);
  CHECK(took > 0);
  CHECK(released(java, "j", "shorter"));
}

void test_redissons_force_unlock_ends_all_shares(void)
{
  let_share(ours, "ra", "forced2", LIMIT);
  let_share(ours_2, "rb", "forced2", LIMIT);
  let_share(ours_2, "rc", "forced2", LIMIT);
  CHECK(field(tell(ours, "ra forced2 lock"), 0) > 0);
  CHECK(field(tell(ours_2, "rb forced2 lock"), 0) > 0);
  enqueue(ours, "a", "forced2", 1);
  enqueue(ours_2, "rc", "forced2", 2);
  enqueue_listening(java, "j", "forced2", 3);
  CHECK_EQUAL(field(tell(java_2, "k forced2 force"), 0), 1);
  CHECK(granted(ours, "a", PATIENT_S) > 0);
  check_text(tell(ours, "ra forced2 unlock"), "not-held");
  check_text(tell(ours_2, "rb forced2 unlock"), "not-held");
  CHECK(released(ours, "a", "forced2"));
  CHECK(granted(ours_2, "rc", PATIENT_S) > 0 && released(ours_2, "rc", "forced2"));
  CHECK(granted(java, "j", PATIENT_S) > 0 && released(java, "j", "forced2"));
}

/* A dead one between two that share costs one waiter timeout of 5 s, and a heartbeat. */
void test_killed_redisson_waiter_before_shares(void)
{
  struct driver *victim = mortal(JAVA);
  let_share(ours, "ra", "dead2", 0);
  let_share(ours_2, "rb", "dead2", 0);
  CHECK(field(tell(ours, "ra dead2 lock"), 0) > 0);
  enqueue_listening(victim, "victim", "dead2", 1);
  enqueue(ours_2, "rb", "dead2", 2);
  driver_kill(victim);
  int64_t killed = now_ns();
  int64_t took = granted(ours_2, "rb", PATIENT_S) - killed;
  print_ms("killed Redisson waiter before one that shares", took);
  CHECK(took > 0 && took < 25000 * (int64_t)1000000);
  CHECK(released(ours, "ra", "dead2") && released(ours_2, "rb", "dead2"));
}

/* Redisson tells nobody: the first behind it that shares asks often. */
void test_redisson_gives_up_before_shares(void)
{
  let_share(ours, "ra", "upgiven", 0);
  let_share(ours_2, "rb", "upgiven", 0);
  let_share(ours_2, "rc", "upgiven", 0);
  CHECK(field(tell(ours, "ra upgiven lock"), 0) > 0);
  say(java, "j upgiven wait 3000 -1");
  CHECK(lab_queue_reaches(&lab, "upgiven", 1));
  enqueue(ours_2, "rb", "upgiven", 2);
  enqueue(ours_2, "rc", "upgiven", 3);
  const char *answer = hear(java, "j", 60000);
  CHECK(answer != NULL && field(answer, 0) == 0);
  int64_t at = answer != NULL ? field(answer, 1) : 0;
  int64_t took = granted(ours_2, "rb", PATIENT_S) - at;
  CHECK(granted(ours_2, "rc", PATIENT_S) > 0);
  print_ms("Redisson has given up, next is a share of ours", took);
  CHECK(took < WOKEN_MS * (int64_t)1000000);
  CHECK(released(ours, "ra", "upgiven"));
  CHECK(released(ours_2, "rb", "upgiven") && released(ours_2, "rc", "upgiven"));
}

/* One queue */

static void name_parties(struct party *parties, const char *lock)
{
  for (int i = 0; i < ALL; i++) {
    struct party *party = &parties[i];
    bool java_s = i >= READERS + WRITERS;
    party->driver = java_s ? (i % 2 == 0 ? java : java_2) : i % 2 == 0 ? ours : ours_2;
    snprintf(party->name, sizeof party->name, "%s%d",
             java_s        ? "java"
             : i < READERS ? "reader"
                           : "writer",
             i);
    if (i < READERS) let_share(party->driver, party->name, lock, LIMIT);
  }
}

static bool reads(const char *party)
{
  return strncmp(party, "reader", 6) == 0;
}

/* It holds once, and those beside it may be there. */
static void check_answer(const struct party *party, const char *answer)
{
  if (!CHECK(answer != NULL)) return;
  int64_t beside = field(answer, 2);
  CHECK_EQUAL(field(answer, 1), 1);
  CHECK(beside >= 1 && beside <= (reads(party->name) ? LIMIT : 1));
}

/* Readers that stood beside each other may have entered in any order; nobody else. */
static void check_log(const struct party *parties)
{
  if (!CHECK_EQUAL(raw_number(&lab.redis, "LRANGE log:shared 0 -1"), ALL)) return;
  for (int i = 0, end; i < ALL; i = end) {
    end = i + 1;
    while (end < ALL && reads(parties[i].name) && reads(parties[end].name))
      end++;
    for (int j = i; j < end; j++) {
      int found = 0;
      for (int k = i; k < end; k++)
        found += strcmp(lab.redis.element[k + 1].text, parties[j].name) == 0;
      if (!CHECK_EQUAL(found, 1)) printf("# %s\n", parties[j].name);
    }
  }
}

/* Readers, writers and Redisson arrive in a random order behind a holder, and are served in it. */
void test_shared_queue_in_order_of_arrival(void)
{
  struct party parties[ALL];
  struct party holders[] = {{ours_2, "reader9"}, {ours_2, "hold"}, {java_2, "hold"}};
  name_parties(parties, "shared");
  let_share(ours_2, "reader9", "shared", LIMIT);
  for (int round = 0; round < ROUNDS; round++) {
    struct party *holder = &holders[rand() % 3];
    shuffle(parties, ALL);
    /* who shares would enter beside a holder that does */
    for (int i = 1; i < ALL && holder == holders && reads(parties[0].name); i++) {
      struct party swap = parties[0];
      parties[0] = parties[i];
      parties[i] = swap;
    }
    raw_run(&lab.redis, "DEL log:shared");
    CHECK(field(tell(holder->driver, "%s shared lock", holder->name), 0) > 0);
    for (int i = 0; i < ALL; i++) {
      say(parties[i].driver, "%s shared pass", parties[i].name);
      if (!CHECK(lab_queue_reaches(&lab, "shared", i + 1))) return;
    }
    CHECK(released(holder->driver, holder->name, "shared"));
    for (int i = 0; i < ALL; i++)
      check_answer(&parties[i], hear(parties[i].driver, parties[i].name, 60000));
    check_log(parties);
  }
  printf("# %d passes, %d of them shared\n", ROUNDS * ALL, ROUNDS * READERS);
}

/* They arrive when they like. */
void test_shared_queue_running_free(void)
{
  struct party parties[ALL];
  name_parties(parties, "free2");
  for (int i = 0; i < ALL; i++)
    say(parties[i].driver, "%s free2 run %d 10", parties[i].name, PASSES);
  for (int i = 0; i < ALL; i++) {
    const char *answer = hear(parties[i].driver, parties[i].name, PATIENT_S * 10000);
    if (!CHECK(answer != NULL)) break;
    CHECK_EQUAL(field(answer, 0), 1);
    CHECK(field(answer, 1) >= 1 && field(answer, 1) <= (reads(parties[i].name) ? LIMIT : 1));
  }
  CHECK_EQUAL(raw_number(&lab.redis, "LLEN log:free2"), ALL * PASSES);
  CHECK_EQUAL(raw_number(&lab.redis, "EXISTS free2"), 0);
  CHECK_EQUAL(raw_number(&lab.redis, "EXISTS redisson_lock_queue:{free2}"), 0);
  printf("# %d passes, %d of them shared\n", ALL * PASSES, READERS * PASSES);
}
