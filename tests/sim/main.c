/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator as a program.
 *
 *     sim                     the suite: a fixed set of seeds
 *     sim seed SEED [STEP]    one world, with a trace from STEP on
 *     sim soak SECONDS [SEED] worlds from that seed on, or with new ones, for that time; every other
 *                             one has locks that are shared
 *     sim hours HOURS [SEED]  the same for so many client-hours: from the same seed (1) on, always
 *                             the same worlds
 *     sim hunted SEED [STEP]  one of the worlds of the hunt
 *     sim hunt SECONDS [SEED] worlds of the hunt until a promise is broken, for that much processor
 *                             time at most; fails when none is: for mutants
 */
#include "world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef SIM_SEEDS
#define SIM_SEEDS 60
#endif

/* One world in so many of the suite is one more in which locks are shared. */
#define SHARING_EVERY 5

/* What was done so far. */
static struct {
  double client_hours;
  struct counters counters;
  uint64_t worlds, steps;
} total;

static void add_up(const struct world *world)
{
  const uint64_t *from = (const uint64_t *)&world->counters;
  uint64_t *to = (uint64_t *)&total.counters;
  for (size_t i = 0; i < sizeof total.counters / sizeof *to; i++)
    to[i] += from[i];
  total.client_hours +=
      (double)world->lived / 3.6e9 * (world->profile.devices + world->profile.redissons);
  total.worlds++;
  total.steps += world->step;
}

static void print_total(void)
{
  const struct counters *c = &total.counters;
  double minutes = (double)clock() / CLOCKS_PER_SEC / 60;
  printf("# %llu worlds, %.0f client-hours, %.0f a minute\n", (unsigned long long)total.worlds,
         total.client_hours, total.client_hours / minutes);
  printf("# %llu steps, %llu scripts, %llu holds (%llu after waiting), %llu of Redisson's, %llu "
         "faults, "
         "%llu connections\n",
         (unsigned long long)total.steps, (unsigned long long)c->scripts,
         (unsigned long long)c->grants, (unsigned long long)c->waits,
         (unsigned long long)c->redisson_grants, (unsigned long long)c->faults,
         (unsigned long long)c->connects);
  printf("# %llu fail-overs, %llu requests to a server that was no master, %llu unsynced\n",
         (unsigned long long)c->moves, (unsigned long long)c->strays,
         (unsigned long long)c->unsynced);
  if (c->shares > 0)
    printf("# %llu of the holds shared, %llu beside others, %llu times beside another limit, "
           "%llu downgrades\n",
           (unsigned long long)c->shares, (unsigned long long)c->beside,
           (unsigned long long)c->limits, (unsigned long long)c->downgrades);
  printf("# %llu times kept, %llu taken back\n", (unsigned long long)c->kept,
         (unsigned long long)c->taken_back);
  printf("# %llu losses, %llu unknown, %llu time-outs, %llu failures, %llu forced, %llu asked\n",
         (unsigned long long)c->losses, (unsigned long long)c->unknowns,
         (unsigned long long)c->timeouts, (unsigned long long)c->failures,
         (unsigned long long)c->forced, (unsigned long long)c->asked);
}

/* One world. True when all promises were kept. */
static bool run(uint64_t seed, uint64_t trace_from, bool hunting)
{
  struct world *world = calloc(1, sizeof *world);
  if (world == NULL) abort();
  world->trace_from = trace_from;
  bool good = world_run(world, seed, hunting);
  if (!good) {
    printf("# seed %llu, step %llu, %.6f s: %s\n", (unsigned long long)seed,
           (unsigned long long)world->step, (double)world->now / 1e6, world->failure);
    if (!hunting) {
      printf("# make sim SEED=%llu replays it; STEP=%llu shows the last steps\n",
             (unsigned long long)seed,
             (unsigned long long)(world->step > 2000 ? world->step - 2000 : 0));
    }
  }
  add_up(world);
  world_free(world);
  free(world);
  return good;
}

static bool test(uint64_t seed)
{
  bool kept = run(seed, UINT64_MAX, false);
  printf("%s simulated world %llu\n", kept ? "ok" : "not ok", (unsigned long long)seed);
  return kept;
}

static bool suite(void)
{
  bool good = true;
  for (uint64_t seed = 1; seed <= SIM_SEEDS; seed++)
    good &= test(seed);
  for (uint64_t seed = 1; seed <= SIM_SEEDS / SHARING_EVERY; seed++)
    good &= test(SHARING_SEEDS + seed);
  return good;
}

static void print_soak(uint64_t first, uint64_t last, uint64_t broken)
{
  const struct counters *c = &total.counters;
  printf(
      "# seeds %llu to %llu and %llu to %llu: %.0f client-hours, %llu holds, %llu of them shared, "
      "%llu faults, %llu fail-overs, %llu worlds with a promise broken\n",
      (unsigned long long)first, (unsigned long long)last,
      (unsigned long long)(SHARING_SEEDS + first), (unsigned long long)(SHARING_SEEDS + last),
      total.client_hours, (unsigned long long)c->grants, (unsigned long long)c->shares,
      (unsigned long long)c->faults, (unsigned long long)c->moves, (unsigned long long)broken);
}

/* Until so many client-hours have passed, or, if end is not 0, it is that late. */
static bool soak(uint64_t first, double hours, time_t end)
{
  uint64_t seed = first, broken = 0;
  do {
    broken += !run(seed, UINT64_MAX, false);
    broken += !run(SHARING_SEEDS + seed, UINT64_MAX, false);
    seed++;
  } while (total.client_hours < hours && (end == 0 || time(NULL) < end));
  print_soak(first, seed - 1, broken);
  printf("%s soak\n", broken == 0 ? "ok" : "not ok");
  return broken == 0;
}

static bool soak_for_seconds(uint64_t seconds, const char *seed)
{
  time_t now = time(NULL);
  uint64_t first = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)now * 1000;
  return soak(first, HUGE_VAL, now + (time_t)seconds);
}

static bool soak_for_hours(uint64_t hours, const char *seed)
{
  return soak(seed != NULL ? strtoull(seed, NULL, 10) : 1, (double)hours, 0);
}

/* In processor time, so that a busy machine does not matter. */
static bool hunt(uint64_t seconds, uint64_t seed)
{
  clock_t end = clock() + (clock_t)seconds * CLOCKS_PER_SEC;
  bool found = false;
  while (!found && clock() < end) {
    found = !run(seed, UINT64_MAX, true);
    if (!found && seed % 2 == 0 && seed < CUT_OFF_SEEDS)
      found = !run(CUT_OFF_SEEDS + seed / 2, UINT64_MAX, true);
    seed++;
  }
  printf("# %s after %.1f s, %llu worlds, %.0f client-hours\n", found ? "found" : "nothing found",
         (double)clock() / CLOCKS_PER_SEC, (unsigned long long)total.worlds, total.client_hours);
  return found;
}

int main(int argc, char **argv)
{
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char *what = argc > 1 ? argv[1] : "";
  uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  const char *more = argc > 3 ? argv[3] : NULL;
  bool good = false;
  if (argc == 1) {
    good = suite();
  } else if (strcmp(what, "seed") == 0 || strcmp(what, "hunted") == 0) {
    good = run(number, more != NULL ? strtoull(more, NULL, 10) : UINT64_MAX, what[0] == 'h');
    printf("%s seed %llu\n", good ? "ok" : "not ok", (unsigned long long)number);
  } else if (strcmp(what, "soak") == 0) {
    good = soak_for_seconds(number, more);
  } else if (strcmp(what, "hours") == 0) {
    good = soak_for_hours(number, more);
  } else if (strcmp(what, "hunt") == 0) {
    return hunt(number, more != NULL ? strtoull(more, NULL, 10) : 1) ? 0 : 1;
  } else {
    fprintf(stderr, "usage: sim [seed SEED [STEP] | hunted SEED [STEP] | soak SECONDS [SEED] | "
                    "hours HOURS [SEED] | hunt SECONDS [SEED]]\n");
    return 2;
  }
  print_total();
  return good ? 0 : 1;
}
