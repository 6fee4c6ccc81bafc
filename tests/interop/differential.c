/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redisson's acquire and unlock, run by its own client, against our scripts: from the same random
 * state, after the same operation, the same party holds and the same order remains. `differential
 * VERSION [SEED [CASES]]`.
 *
 * Each state is planted twice, under two names. On the first, a party of a Redisson process carries
 * out the operation; on the second, the script that the library sends does, under the same id, and
 * is then sent once more, which must change nothing (guarantee 4 of README.md). The other waiters
 * are entries for which this program listens, or does not. Where the two differ on purpose, the
 * difference must be one that a guarantee of README.md names, and is counted under it; any other
 * difference fails, with the case's number and seed.
 */
#include "check.h"
#include "lab.h"
#include "texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHERS 4
#define CHAIN  300000
#define TOKEN  "1234567890123456"

/* A call of a script. */
#define SCRIPT_CALL                                                                                \
  "EVAL %s 4 %s redisson_lock_queue:{same} redisson_lock_timeout:{same} fairlock:{same} %s"

enum { TRY, LOCK, UNLOCK, FORCE, OPERATIONS };

static const char *const operations[] = {"try", "lock", "unlock", "force"};
static const char *const names[] = {"theirs", "same"}; /* of the lock: Redisson's world, ours */

/* A waiter of the planted queue. */
struct waiter {
  int who; /* 0: the party that operates; else one of the others                  */
  bool listens;
  bool expired; /* the time after which Redisson evicts it has passed                  */
  bool lapsed;  /* does not listen, and a window ago it did not either                 */
  bool stale;   /* does not listen, nor did it when it waited some other time           */
};

struct plan {
  int holder; /* -1: free; 0: the party that operates; OTHERS + 1: somebody else */
  int count;
  struct waiter queue[OTHERS + 1];
  int length;
  bool of_ours; /* the others are waiters of ours, on our side */
  int operation;
};

/* The data in Redis, in terms of the plan. */
struct state {
  int holder, count;
  int queue[16];
  int length;
  int woken; /* -1: nobody */
};

static struct lab lab;
static struct driver *java;
static struct raw ears; /* listens for the waiters */
static char me[128];
static unsigned seed;
static int cases = 400;

void check_write(const char *text)
{
  fputs(text, stdout);
  fflush(stdout);
}

static int dice(int sides)
{
  return (int)((unsigned)rand_r(&seed) % (unsigned)sides);
}

static const char *id_of(int who)
{
  static char text[2][64];
  static int turn;
  if (who == 0) return me;
  turn = !turn;
  snprintf(text[turn], sizeof text[turn], "0000000%d-0000-4000-8000-000000000000:%d", who,
           40 + who);
  return text[turn];
}

static int who_is(const char *id)
{
  for (int who = 0; who <= OTHERS + 1; who++) {
    if (strcmp(id, id_of(who)) == 0) return who;
  }
  return 99;
}

/* Planting */

static void draw(struct plan *plan)
{
  memset(plan, 0, sizeof *plan);
  plan->operation = dice(OPERATIONS);
  plan->holder = dice(3) == 0 ? -1 : dice(2) == 0 ? 0 : OTHERS + 1;
  plan->count = plan->holder == 0 ? 1 + dice(3) : 1;
  plan->of_ours = dice(4) == 0;
  for (int who = plan->holder == 0 ? 1 : 0; who <= OTHERS; who++) {
    if (dice(2) == 0) continue;
    int at = dice(plan->length + 1);
    memmove(&plan->queue[at + 1], &plan->queue[at],
            (size_t)(plan->length - at) * sizeof plan->queue[0]);
    plan->length++;
    struct waiter *waiter = &plan->queue[at];
    int fate = who == 0 ? 0 : dice(12);
    memset(waiter, 0, sizeof *waiter);
    waiter->who = who;
    waiter->listens = fate < 8;
    waiter->expired = fate == 6 || fate == 7 || fate == 8;
    waiter->lapsed = fate == 9;
    waiter->stale = fate == 10;
  }
}

static int64_t score_of(const struct plan *plan, int place, int64_t now)
{
  return plan->queue[place].expired ? now - 1000 : now + 20000 + (int64_t)(place + 1) * CHAIN;
}

/* Plants the note of our script that a Redisson waiter with that score did not listen. */
static void note_silence(int who, int64_t score, int64_t since)
{
  char note[64];
  snprintf(note, sizeof note, "%" PRId64 " %" PRId64, score, since);
  raw_run(&lab.redis, "HSET fairlock:{same} suspect:%s %s", id_of(who), note);
}

/*
 * Plants the note of our script on a waiter of ours: when it was heard, with a waiter timeout of 5
 * s.
 */
static void note_wait(int who, int64_t heard)
{
  char note[64];
  snprintf(note, sizeof note, "%" PRId64 " %" PRId64 " 5000", heard / 1000, heard % 1000 * 1000);
  raw_run(&lab.redis, "HSET fairlock:{same} %s %s", id_of(who), note);
}

/*
 * On our side, the others are Redisson's, unless a waiter of ours is known to be alive, or to have
 * been.
 */
static void plant_ours(const struct plan *plan, int64_t now)
{
  const char *key = "fairlock:{same}";
  raw_run(&lab.redis, "HSET %s token " TOKEN, key);
  if (plan->holder == 0) raw_run(&lab.redis, "HSET %s holder %s", key, me);
  for (int i = 0; i < plan->length; i++) {
    const struct waiter *waiter = &plan->queue[i];
    if (plan->of_ours || waiter->who == 0) {
      bool gone = !waiter->listens && (waiter->lapsed || waiter->expired);
      note_wait(waiter->who, now - (gone ? 5001 : 0));
    } else if (waiter->lapsed || waiter->stale) {
      note_silence(waiter->who, score_of(plan, i, now) - (waiter->stale ? CHAIN : 0), now - 6000);
    }
  }
}

static int64_t server_ms(void)
{
  raw_run(&lab.redis, "TIME");
  return strtoll(lab.redis.element[1].text, NULL, 10) * 1000 +
         strtoll(lab.redis.element[2].text, NULL, 10) / 1000;
}

static void clear_keys(void)
{
  for (int i = 0; i < 2; i++) {
    raw_run(&lab.redis, "DEL %s redisson_lock_queue:{%s} redisson_lock_timeout:{%s} fairlock:{%s}",
            names[i], names[i], names[i], names[i]);
  }
}

/*
 * Begins or stops listening for a waiter, in both worlds. Our own party always listens on our side,
 * and on Redisson's by itself.
 */
static void listen_for(int who, bool on)
{
  for (int i = 0; i < 2; i++) {
    if (who == 0 && i == 0) continue;
    raw_run(&ears, "%s redisson_lock__channel:{%s}:%s", on ? "SUBSCRIBE" : "UNSUBSCRIBE", names[i],
            id_of(who));
  }
}

static void plant(const struct plan *plan)
{
  int64_t now = server_ms();
  clear_keys();
  for (int i = 0; i < 2; i++) {
    const char *name = names[i];
    if (plan->holder >= 0) {
      raw_run(&lab.redis, "HSET %s %s %d", name, id_of(plan->holder), plan->count);
      raw_run(&lab.redis, "PEXPIRE %s 20000", name);
    }
    for (int place = 0; place < plan->length; place++) {
      const struct waiter *waiter = &plan->queue[place];
      raw_run(&lab.redis, "RPUSH redisson_lock_queue:{%s} %s", name, id_of(waiter->who));
      raw_run(&lab.redis, "ZADD redisson_lock_timeout:{%s} %ld %s", name,
              score_of(plan, place, now), id_of(waiter->who));
    }
  }
  plant_ours(plan, now);
  for (int i = 0; i < plan->length; i++) {
    if (plan->queue[i].who != 0) listen_for(plan->queue[i].who, plan->queue[i].listens);
  }
}

/* Reading */

static void read_state(struct state *state, const char *name)
{
  const struct raw_element *element = lab.redis.element;
  memset(state, 0, sizeof *state);
  state->holder = -1;
  state->woken = -1;
  int64_t size = raw_number(&lab.redis, "HGETALL %s", name);
  if (size > 0) {
    state->holder = who_is(element[1].text);
    state->count = size == 2 ? atoi(element[2].text) : 99; /* two holders */
  }
  size = raw_number(&lab.redis, "LRANGE redisson_lock_queue:{%s} 0 15", name);
  while (state->length < size) {
    state->length++;
    state->queue[state->length - 1] = who_is(element[state->length].text);
  }
}

/*
 * A waiter that is dead for both makes no difference, even if only one of them has removed it yet.
 */
static void drop_dead(struct state *state, const struct plan *plan)
{
  for (int i = 0; i < plan->length; i++) {
    const struct waiter *waiter = &plan->queue[i];
    if (waiter->listens || !waiter->expired) continue;
    int kept = 0;
    for (int k = 0; k < state->length; k++) {
      if (state->queue[k] != waiter->who) state->queue[kept++] = state->queue[k];
    }
    state->length = kept;
  }
}

/* Who was woken first in each world, by the messages that arrived since the last call. */
static void read_messages(struct state *theirs, struct state *own)
{
  while (raw_reply_within(&ears, 10)) {
    if (ears.count != 4 || strcmp(ears.element[1].text, "message") != 0) continue;
    const char *channel = ears.element[2].text;
    bool in_ours = strstr(channel, "{same}:") != NULL;
    struct state *state = in_ours ? own : theirs;
    if (state->woken < 0) state->woken = who_is(strchr(channel, '}') + 2);
  }
}

static bool same(const struct state *a, const struct state *b)
{
  if (a->holder != b->holder || a->count != b->count || a->length != b->length) return false;
  return memcmp(a->queue, b->queue, (size_t)a->length * sizeof a->queue[0]) == 0;
}

static void print_state(const char *what, const struct state *state)
{
  printf("#   %s: holder %d count %d, woken %d, queue", what, state->holder, state->count,
         state->woken);
  for (int i = 0; i < state->length; i++)
    printf(" %d", state->queue[i]);
  printf("\n");
}

/* Operating */

/* How many scripts the server has run. */
static int64_t scripts_run(void)
{
  static const char *const commands[] = {"cmdstat_eval:calls=", "cmdstat_evalsha:calls="};
  const char *text = raw_text(&lab.redis, "INFO commandstats");
  int64_t sum = 0;
  for (int i = 0; i < 2; i++) {
    const char *at = strstr(text, commands[i]);
    if (at != NULL) sum += strtol(at + strlen(commands[i]), NULL, 10);
  }
  return sum;
}

static bool holds_theirs(void)
{
  return raw_number(&lab.redis, "HEXISTS %s %s", names[0], me) == 1;
}

/* Redisson's client. 1 done, 0 refused or waiting. */
static int operate_theirs(const struct plan *plan)
{
  int64_t before = scripts_run();
  say(java, "me %s %s %s", names[0], operations[plan->operation],
      plan->operation == LOCK ? "20000" : "");
  for (int64_t until = now_ms() + SOON; now_ms() < until;) {
    const char *answer = hear(java, "me", 5);
    if (answer != NULL)
      return plan->operation == TRY ? field(answer, 0) == 1 : field(answer, 0) > 0;
    /* after subscribing it asks once more */
    if (plan->operation == LOCK && scripts_run() >= before + 2)
      return holds_theirs() && hear(java, "me", SOON) != NULL;
  }
  CHECK(false); /* Redisson's client neither answers nor waits */
  return -1;
}

/* Lets a party that still waits have the lock. */
static void settle(const struct plan *plan, int result)
{
  clear_keys();
  if (plan->operation != LOCK || result != 0) return;
  for (int i = 0; i < 100; i++) {
    raw_run(&lab.redis, "PUBLISH redisson_lock__channel:{%s}:%s 0", names[0], me);
    if (hear(java, "me", 100) != NULL) return;
  }
  CHECK(false); /* Redisson's client still waits */
}

/* The script that the library would send; the first number of its reply. */
static int run_script(const struct plan *plan)
{
  bool acquire = plan->operation == TRY || plan->operation == LOCK;
  char text[16384];
  char argument[200];
  int held = plan->holder == 0 ? plan->count : 0;
  int wanted = acquire ? held + 1 : held > 0 ? held - 1 : 0;
  if (plan->operation == UNLOCK && wanted > 0)
    acquire = true; /* which keeps the rest of the hold */
  const struct fairlock_script *script =
      plan->operation == FORCE ? &fairlock_break_script : &fairlock_lock_script;
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text - 1, 0);
  fairlock_script_unpack(&writer, script);
  text[writer.used] = 0;
  int mode = plan->operation == FORCE ? -1 : plan->operation == LOCK ? 5000 : 0;
  if (acquire && held > 0) mode = -wanted;
  bool names_token = acquire ? held > 0 : plan->operation != FORCE;
  snprintf(argument, sizeof argument, "%s %ld %d %d%s", plan->operation == FORCE ? "*" : me,
           server_ms() + 2000, mode, acquire ? 20000 : 0, names_token ? " " TOKEN : "");
  raw_send(&lab.redis, SCRIPT_CALL, text, names[1], argument);
  return raw_reply(&lab.redis) && lab.redis.count > 1 ? (int)lab.redis.element[1].integer : -1;
}

/*
 * Guarantee 4: the same request again changes nothing; but a force-release is the operator's, and
 * ends what it finds.
 */
static int operate_ours(const struct plan *plan, struct state *state)
{
  struct state again;
  int result = run_script(plan);
  read_state(state, names[1]);
  if (plan->operation == FORCE) return result;
  run_script(plan);
  read_state(&again, names[1]);
  if (!CHECK(same(state, &again))) print_state("ours, sent again", &again);
  return result;
}

/* Judging */

/*
 * 6: a waiter that Redisson would have woken to take the lock already has it, since it is ours; it
 * has yet to confirm that.
 */
static bool is_direct_handover(const struct plan *plan, const struct state *theirs,
                               const struct state *own)
{
  struct state expected = *theirs;
  if (theirs->holder >= 0 || theirs->length == 0) return false;
  if (!plan->of_ours && theirs->queue[0] != 0) return false;
  expected.holder = theirs->queue[0];
  expected.count = 0;
  expected.length--;
  memmove(&expected.queue[0], &expected.queue[1],
          (size_t)expected.length * sizeof expected.queue[0]);
  return same(&expected, own);
}

/*
 * Redisson enters the queue before it listens, so a silent waiter of its kind is given a waiter
 * timeout.
 */
static bool is_live(const struct plan *plan, const struct waiter *waiter)
{
  return waiter->listens || (!plan->of_ours && !waiter->expired && !waiter->lapsed);
}

/*
 * All live waiters are in their old order, except one that is the holder now, and except us at the
 * end.
 */
static bool keeps_order(const struct plan *plan, const struct state *own)
{
  int at = 0;
  for (int i = 0; i < plan->length; i++) {
    const struct waiter *waiter = &plan->queue[i];
    if (!is_live(plan, waiter) || (own->holder == waiter->who && plan->holder != waiter->who))
      continue;
    while (at < own->length && own->queue[at] != waiter->who)
      at++;
    if (at++ == own->length) return false;
  }
  return true;
}

/* Which of the plan's waiters is the first live one; -1: none. */
static int first_live(const struct plan *plan)
{
  for (int i = 0; i < plan->length; i++) {
    if (is_live(plan, &plan->queue[i])) return plan->queue[i].who;
  }
  return -1;
}

/* No live waiter was overtaken, and nobody lost the lock except by the operation. */
static bool is_fair(const struct plan *plan, const struct state *own)
{
  int first = first_live(plan);
  if (!keeps_order(plan, own)) return false;
  if (own->holder == plan->holder || own->holder < 0) return true;
  if (plan->holder > 0 && plan->operation != FORCE) return false;
  return first < 0 ? own->holder == 0 : own->holder == first;
}

/* Redisson evicts somebody who lives. */
static bool has_late(const struct plan *plan)
{
  for (int i = 0; i < plan->length; i++) {
    if (plan->queue[i].listens && plan->queue[i].expired) return true;
  }
  return false;
}

/* Redisson waits for somebody who is dead, or at least does not listen. */
static bool has_dead(const struct plan *plan)
{
  for (int i = 0; i < plan->length; i++) {
    if (!plan->queue[i].expired && !is_live(plan, &plan->queue[i])) return true;
  }
  return false;
}

/* The guarantee that explains a difference, or 0. */
static int explain(const struct plan *plan, const struct state *theirs, const struct state *own)
{
  if (is_direct_handover(plan, theirs, own)) return 6;
  if (!is_fair(plan, own)) return 0;
  return has_late(plan) ? 2 : has_dead(plan) ? 5 : 0;
}

static void print_plan(const struct plan *plan, int number, unsigned began)
{
  printf("# case %d of seed %u: %s, holder %d count %d, others %s, queue", number, began,
         operations[plan->operation], plan->holder, plan->count,
         plan->of_ours ? "ours" : "Redisson's");
  for (int i = 0; i < plan->length; i++) {
    const struct waiter *waiter = &plan->queue[i];
    printf(" %d%s%s%s", waiter->who, waiter->listens ? "" : " silent",
           waiter->expired ? " expired" : "",
           waiter->lapsed  ? " lapsed"
           : waiter->stale ? " stale"
                           : "");
    printf(i + 1 < plan->length ? "," : "");
  }
  printf("\n");
}

/*
 * The results of the operation itself. False: they differ though the states agree, and nothing
 * explains it.
 */
static bool results_agree(const struct plan *plan, int theirs, int own, int *unowned)
{
  if (plan->operation == FORCE || (theirs == 1) == (own == 1)) return true;
  if (plan->operation == UNLOCK && plan->holder < 0 && theirs == 1) {
    (*unowned)++; /* Redisson calls the unlock of a free lock a success */
    return true;
  }
  return false;
}

/* Each entry of the queue has a time, and nothing else has one: Redisson stumbles over either. */
static bool times_match(void)
{
  int64_t length = raw_number(&lab.redis, "LLEN redisson_lock_queue:{same}");
  return length == raw_number(&lab.redis, "ZCARD redisson_lock_timeout:{same}");
}

static void test_same_outcome_from_random_states(void)
{
  int counts[8] = {0};
  int unowned = 0;
  unsigned began = seed;
  for (int i = 0; i < cases; i++) {
    struct plan plan;
    struct state theirs, own;
    draw(&plan);
    plant(&plan);
    int their_result = operate_theirs(&plan);
    read_state(&theirs, names[0]);
    int our_result = operate_ours(&plan, &own);
    bool times = times_match();
    bool leased = own.holder < 0 || raw_number(&lab.redis, "PTTL same") > 0;
    read_messages(&theirs, &own);
    drop_dead(&theirs, &plan);
    drop_dead(&own, &plan);
    bool equal = same(&theirs, &own);
    int reason = equal ? 1 : explain(&plan, &theirs, &own);
    bool wakes = plan.operation != UNLOCK || !equal || has_late(&plan) || has_dead(&plan) ||
                 theirs.woken == own.woken || theirs.woken < 0 || own.woken == 0;
    bool good = times && leased && wakes && reason > 0 &&
                (!equal || results_agree(&plan, their_result, our_result, &unowned));
    counts[reason]++;
    if (!CHECK(good)) {
      print_plan(&plan, i, began);
      print_state("Redisson", &theirs);
      print_state("ours", &own);
      printf("#   results %d and %d, times %d, lease %d\n", their_result, our_result, times,
             leased);
    }
    settle(&plan, their_result);
    for (int who = 1; who <= OTHERS; who++)
      listen_for(who, false);
  }
  printf("# seed %u: of %d cases %d the same; %d differ by guarantee 2 (a live waiter keeps its "
         "place), %d by 5 (a "
         "dead one "
         "costs a window at most), %d by 6 (direct handover); %d unlocks of a free lock refused by "
         "us alone (4)\n",
         began, cases, counts[1], counts[2], counts[5], counts[6], unowned);
  CHECK(counts[1] > cases / 2);
}

const struct check_test check_tests[] = {
    {"same_outcome_from_random_states", test_same_outcome_from_random_states},
    {0},
};

int main(int argc, char **argv)
{
  if (argc < 2) {
    fprintf(stderr, "usage: differential VERSION-OF-REDISSON [SEED [CASES]]\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)now_ns();
  if (argc > 3) cases = atoi(argv[3]);
  lab_open(&lab, argv[1]);
  if (!raw_open(&ears, lab.server.port)) return 1;
  java = driver_start(&lab, JAVA, lab.server.port, NULL);
  snprintf(me, sizeof me, "%s", tell(java, "me - id"));
  listen_for(0, true);
  int failures = check_run(NULL);
  driver_kill(java);
  raw_close(&ears);
  lab_close(&lab);
  return failures > 0;
}
