/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers, writers and a keeper come again and again, while servers move for TIME seconds
 * (environment; default 40) as SEED says (default: the clock). A cluster and a set-up of Sentinels
 * take turns, each with a few moves: the master dies, freezes, is demoted by hand or by force, or its
 * slot moves; or a contender is killed. All replicas that there are have to acknowledge, so whatever
 * happens no two may believe who may not. The seed repeats the moves, not what they meet.
 */
#include "scene.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT = 2, READERS = 5, WRITERS = 2, KEEPER = READERS + WRITERS, CROWD, PAIRS = 3 };
enum { RIG_LIMIT_S = 3600 }; /* each move may wait for a few times MOVED_SOON */
enum { ASK_AGAIN_MS = 8000 };
enum { LEAST_MOVES = 3, MOST_MOVES = 7, LEAST_HOLDS = 20, MOST_HOLDS = 100 };

/* The first ones are for Sentinels, too. */
enum move { KILLED, FROZEN, BY_HAND, CRASHED, FORCED, TAKEN_OVER, SLOT_MOVED, MOVES };
static const char *const names[MOVES] = {
    "masters killed",    "masters frozen", "fail-overs by hand", "contenders killed",
    "fail-overs forced", "take-overs",     "slots moved"};

/* Who serves the lock, and with which replica, for the cluster; the Sentinels' other two follow. */
static int master, replica, slot;
static int masters[PAIRS], replicas[PAIRS];

static struct connection reader, writer, keeper;
static uint64_t seed, state;

static struct {
  int rigs[2], moves[MOVES], violations, lost, failed, worst_gap_ms;
  int64_t holds, shared;
} total;

/* splitmix64 */
static int draw(int low, int high)
{
  uint64_t z = state += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return low + (int)((z ^ (z >> 31)) % (uint64_t)(high - low + 1));
}

static void start_contender(int kind)
{
  const struct connection *connection = kind < READERS  ? &reader
                                        : kind < KEEPER ? &writer
                                                        : &keeper;
  (void)contest_round(&contest, connection, FAIRLOCK_RENEW, draw(2, 20));
}

static void start_contest(int first, int acknowledge)
{
  writer = scene_connection(first, acknowledge);
  writer.lease_ms = 6000;
  keeper = writer;
  keeper.keep_ms = 2000;
  reader = writer;
  reader.shares = true;
  reader.limit = LIMIT;
  contest_begin(&contest, DOOR);
  for (int i = 0; i < CROWD; i++)
    start_contender(i);
}

static bool more_hold(void)
{
  size_t wanted = atomic_load(contest.used) + (size_t)draw(LEAST_HOLDS, MOST_HOLDS);
  int64_t until = now_ms() + MOVED_SOON;
  while (atomic_load(contest.used) < wanted && now_ms() < until)
    sleep_ms(10);
  return atomic_load(contest.used) >= wanted;
}

/* One that has not been killed before; another one of its kind takes its place. */
static bool crash(void)
{
  if (contest.count == CONTENDERS) return true;
  int victim = draw(0, CROWD - 1);
  if (contest.contender[victim].pid == 0) return true;
  contest_kill(&contest, victim);
  start_contender(victim);
  return true;
}

/* The master does not answer until another has been promoted, which the result is. */
static int without_master(enum move move, int (*promote)(void))
{
  if (move == KILLED) node_kill(&rig.node[master]);
  else node_freeze(&rig.node[master]);
  int promoted = promote();
  if (move == KILLED) node_revive(&rig.node[master]);
  else node_thaw(&rig.node[master]);
  return promoted;
}

/* The cluster: three masters, and one replica for each */

static int promote_in_cluster(void)
{
  return cluster_promote(&rig, slot, master);
}

/*
 * A replica gives up a fail-over that the masters have not voted for within 5 s, and they do not vote
 * twice about one master in a while: so it is asked again, as an operator would. It refuses while the
 * others take its master, which has answered too late for a moment, for dead, and names the way out.
 */
static int ask_replica(const char *how)
{
  int64_t until = now_ms() + MOVED_SOON, again = 0;
  char said[128] = "";
  while (cluster_owner_by(&rig, replica, slot) != replica && now_ms() < until) {
    if (now_ms() >= again) {
      bool asked = cluster_fail_over(&rig, replica, how); /* refused: it has just been promoted */
      const char *words = asked ? "" : node_raw(&rig.node[replica])->element[0].text;
      if (strstr(words, "FORCE") != NULL) how = "FORCE";
      (void)snprintf(said, sizeof said, "%s", words);
      again = now_ms() + ASK_AGAIN_MS;
    }
    sleep_ms(20);
  }
  int promoted = cluster_promoted(&rig, slot, master);
  if (promoted != replica) printf("# the replica has answered last: %s\n", said);
  return promoted;
}

/* All agree who of the two serves the slot, and the other one follows it. */
static bool settled(int owner, int other)
{
  return cluster_owner(&rig, slot) == owner && strcmp(node_role(&rig.node[owner]), "master") == 0 &&
         strcmp(node_role(&rig.node[other]), "slave") == 0;
}

/*
 * Whoever was promoted may be demoted at once, when the cluster prefers what the other one says: an
 * epoch that two have taken, or one that came late.
 */
static bool settle_pair(void)
{
  int64_t until = now_ms() + MOVED_SOON;
  bool back = false;
  while (!settled(replica, master) && !(back = settled(master, replica)) && now_ms() < until)
    sleep_ms(20);
  if (!back) {
    for (int i = 0; i < PAIRS; i++) {
      if (masters[i] != master) continue;
      masters[i] = replica;
      replicas[i] = master;
    }
    int old = master;
    master = replica;
    replica = old;
  }
  return CHECK(settled(master, replica)) && CHECK(node_follows(&rig.node[replica]));
}

static bool fail_over_in_cluster(enum move move)
{
  const char *how = move == BY_HAND ? "" : move == FORCED ? "FORCE" : "TAKEOVER";
  bool absent = move == KILLED || move == FROZEN;
  int promoted = absent ? without_master(move, promote_in_cluster) : ask_replica(how);
  return CHECK_EQUAL(promoted, replica) && settle_pair();
}

static bool move_slot(void)
{
  int to = draw(0, PAIRS - 1);
  if (masters[to] == master) to = (to + 1) % PAIRS;
  if (!CHECK(cluster_move_all(&rig, slot, master, masters[to]))) return false;
  master = masters[to];
  replica = replicas[to];
  return true;
}

static bool move_in_cluster(enum move move)
{
  bool good = move == CRASHED      ? crash()
              : move == SLOT_MOVED ? move_slot()
                                   : fail_over_in_cluster(move);
  return good && CHECK(cluster_agrees(&rig, slot, master));
}

static void start_cluster(void)
{
  cluster_start(&rig, NULL);
  slot = cluster_slot(&rig, DOOR);
  master = cluster_owner(&rig, slot);
  for (int i = 0; i < PAIRS; i++) {
    masters[i] = i;
    replicas[i] = i + PAIRS;
  }
  replica = master + PAIRS;
  start_contest((master + 1) % PAIRS, 1);
}

/* Sentinel: a master and two replicas */

static int promote_by_sentinels(void)
{
  return sentinels_promote(&rig, master);
}

static bool move_by_sentinels(enum move move)
{
  if (move == CRASHED) return crash();
  bool absent = move == KILLED || move == FROZEN;
  int promoted =
      absent ? without_master(move, promote_by_sentinels) : sentinels_fail_over(&rig, master);
  if (!CHECK(promoted >= 0)) {
    sentinels_show(&rig);
    return false;
  }
  master = promoted;
  return CHECK(sentinels_settle(&rig, master));
}

static void start_sentinels(void)
{
  sentinels_start(&rig, NULL);
  master = 0;
  start_contest(3, 2);
}

/* Both */

static void check_contest(void)
{
  CHECK(contest_end(&contest));
  bool good = contest_good(&contest);
  CHECK(good);
  total.violations += !good;
  total.holds += (int64_t)atomic_load(contest.used);
  for (int i = 0; i < contest.count; i++) {
    struct contender *one = &contest.contender[i];
    int gap = atomic_load(&one->worst_gap_ms);
    total.lost += atomic_load(&one->lost);
    total.failed += atomic_load(&one->failed);
    if (gap > total.worst_gap_ms) total.worst_gap_ms = gap;
  }
  for (size_t i = 0; i < atomic_load(contest.used); i++)
    total.shared += contest.hold[i].shares;
}

/*
 * One rig, until it had its moves, or something went wrong. A take-over is the last one: no master has
 * voted for it, and the next fail-over by hand may wait for their votes for minutes.
 */
static void test_rig(bool cluster)
{
  bool good = true;
  if (cluster) start_cluster();
  else start_sentinels();
  (void)alarm(RIG_LIMIT_S);
  total.rigs[cluster]++;
  printf("# %s:", cluster ? "cluster" : "Sentinels");
  for (int left = draw(LEAST_MOVES, MOST_MOVES); good && left > 0; left--) {
    good = CHECK(more_hold());
    enum move move = (enum move)draw(0, cluster ? MOVES - 1 : CRASHED);
    printf(" %s,", names[move]);
    (void)fflush(stdout);
    good = good && (cluster ? move_in_cluster(move) : move_by_sentinels(move));
    good = good && CHECK(scene_replicated(master));
    total.moves[move]++;
    if (move == TAKEN_OVER) break;
  }
  good = good && CHECK(more_hold());
  check_contest();
  printf(" %zu holds\n", atomic_load(contest.used));
  rig_stop(&rig);
}

static void report(int64_t ms)
{
  printf("# seed %" PRIu64 ": %" PRId64 " s, %d clusters, %d set-ups of Sentinels", seed, ms / 1000,
         total.rigs[true], total.rigs[false]);
  for (int i = 0; i < MOVES; i++)
    printf(", %d %s", total.moves[i], names[i]);
  printf("; %" PRId64 " holds, %" PRId64 " of them shared, %d lost, %d failed, longest wait %d ms; "
         "%d violations\n",
         total.holds, total.shared, total.lost, total.failed, total.worst_gap_ms, total.violations);
}

static void test_moves(void)
{
  const char *time_text = getenv("TIME"), *seed_text = getenv("SEED");
  int seconds = time_text != NULL && atoi(time_text) > 0 ? atoi(time_text) : 40;
  bool given = seed_text != NULL && *seed_text != 0;
  seed = given ? strtoull(seed_text, NULL, 10) : (uint64_t)time(NULL) % 1000000000;
  state = seed;
  int64_t start = now_ms(), end = start + (int64_t)seconds * 1000;
  bool cluster = draw(0, 1) == 1;
  do {
    test_rig(cluster);
    cluster = !cluster;
  } while (now_ms() < end && total.violations == 0);
  report(now_ms() - start);
}

const struct check_test check_tests[] = {{"moves_two_never_believe", test_moves}, {NULL, NULL}};
