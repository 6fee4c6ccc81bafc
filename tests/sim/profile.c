/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kind of world a seed makes: how many take part, how fast they are, and what may go wrong.
 * The worlds of the suite are of all sizes and kinds; those of the hunt for a mutant are small, and
 * each has many faults of one kind.
 */
#include "world.h"

static int64_t one_of(struct random *random, int64_t a, int64_t b, int64_t c)
{
  int64_t choice = random_below(random, 3);
  return choice == 0 ? a : choice == 1 ? b : c;
}

static void choose_size(struct profile *profile, struct random *random)
{
  int64_t size = random_below(random, 100);
  if (size < 55) {
    profile->devices = (int)random_between(random, 2, 6);
    profile->locks = (int)random_between(random, 1, 2);
    profile->duration = random_between(random, 5, 30) * MINUTE;
  } else if (size < 85) {
    profile->devices = (int)random_between(random, 5, 30);
    profile->locks = (int)random_between(random, 1, 5);
    profile->duration = random_between(random, 3, 15) * MINUTE;
  } else if (size < 97) {
    profile->devices = (int)random_between(random, 50, 300);
    profile->locks = (int)random_between(random, 5, 60);
    profile->duration = random_between(random, 2, 6) * MINUTE;
  } else {
    profile->devices = (int)random_between(random, 1000, 3000);
    profile->locks = (int)random_between(random, 100, 600);
    profile->duration = random_between(random, 2, 3) * MINUTE;
  }
}

/*
 * Nothing but broken connections, many of them, so that much is late and repeated; or evictions and
 * losses.
 */
static void make_storm(struct profile *profile, struct random *random)
{
  profile->faults = FAULT_CUT | (random_chance(random, 300) ? FAULT_STALL : 0);
  if (random_chance(random, 150)) profile->faults = FAULT_EVICT | FAULT_FREEZE | FAULT_SILENCE;
  profile->fault_every = one_of(random, SECOND, 3 * SECOND, 10 * SECOND) / FAULTS;
  profile->think = one_of(random, 50 * MS, 500 * MS, 20 * SECOND);
  profile->duration = profile->duration / 2;
}

/*
 * Holds, waits and pauses of more than a day, the time after which the server forgets what was left
 * behind.
 */
static void take_days(struct profile *profile, struct random *random)
{
  profile->devices = 2;
  profile->redissons = 0;
  profile->locks = 1;
  profile->handles = 1;
  profile->faults = random_chance(random, 700) ? 0 : FAULT_CUT | FAULT_RESTART;
  profile->fault_every = HOUR / FAULTS;
  profile->hold = 30 * HOUR;
  profile->split = 0;
  profile->think = one_of(random, SECOND, HOUR, 30 * HOUR);
  profile->waitless = random_chance(random, 850) ? 1000 : 0;
  profile->duration = 60 * HOUR;
}

/*
 * Waiter timeouts of several lengths in one queue, copied configurations, and connections whose
 * round trips take seconds.
 */
static void choose_clients(struct profile *profile, struct random *random)
{
  profile->patient = (int)one_of(random, 0, 300, 1000);
  profile->alike = (int)one_of(random, 0, 100, 500);
  if (profile->devices > 30 || !random_chance(random, 150)) return;
  profile->slow = (int)one_of(random, 200, 500, 1000);
  profile->duration *= 4;
}

/*
 * Two servers, with no other faults: only the fail-over loses data. The clocks agree within what
 * the leases allow for, or do not.
 */
static void add_server(struct profile *profile, struct random *random)
{
  profile->way = (enum way)random_between(random, BY_SEEDS, BY_CLUSTER);
  profile->faults &= FAULT_CUT | FAULT_SILENCE | FAULT_STALL | FAULT_CRASH | FAULT_POWER |
                     FAULT_FREEZE | FAULT_RESTART | FAULT_SCRIPTS | FAULT_FORCE;
  profile->redissons = 0;
  profile->locks = profile->way == BY_CLUSTER ? 1 : profile->locks; /* one slot for a client */
  profile->move_every = one_of(random, 5 * SECOND, 20 * SECOND, MINUTE);
  profile->lag = one_of(random, 200, 10 * MS, 200 * MS);
  profile->synced = random_chance(random, 600);
  profile->skewed = random_chance(random, 250);
  profile->least_lease = (uint32_t)one_of(random, 3000, 3000, 10000);
  int64_t margin = (int64_t)profile->least_lease * (15625 - profile->drift) / 1000000;
  int64_t most = profile->skewed ? one_of(random, SECOND, 5 * SECOND, MINUTE) : margin * MS;
  profile->skew = random_between(random, -most, most);
}

static void choose(struct world *world)
{
  struct profile *profile = &world->profile;
  struct random *random = &world->random;
  choose_size(profile, random);
  profile->handles = (int)random_between(random, 1, 3);
  bool large = profile->devices > 30;
  profile->think = large ? one_of(random, SECOND, 20 * SECOND, MINUTE)
                         : one_of(random, 50 * MS, SECOND, 20 * SECOND);
  profile->hold = one_of(random, 5 * MS, 200 * MS, 3 * SECOND);
  profile->latency = one_of(random, 100, 2 * MS, 40 * MS);
  profile->fault_every = one_of(random, 5 * SECOND, 30 * SECOND, 200 * SECOND) / profile->devices;
  profile->split = (int)one_of(random, 0, 20, 400);
  profile->waitless = (int)one_of(random, 50, 50, 500);
  profile->taken_out = 20;
  profile->denied = 50;
  profile->gives_up = 200;
  profile->drift = (int)one_of(random, 0, 10000, 10000);
  profile->faults = (unsigned)random_next(random) & ((1U << FAULTS) - 1);
  if (random_chance(random, 900)) profile->faults &= ~(unsigned)UNSAFE;
  if (random_chance(random, 850)) profile->faults &= ~(unsigned)FAULT_DENY;
  if (random_chance(random, 600)) profile->faults &= ~(unsigned)FAULT_WIPE;
  if (random_chance(random, 800)) profile->faults &= ~(unsigned)FAULT_BEHIND;
  /* no token could rise */
  if (profile->faults & (FAULT_JUMP | FAULT_BEHIND)) profile->faults &= ~(unsigned)FAULT_WIPE;
  if (random_chance(random, 100)) profile->faults = 0;
  if (random_chance(random, 200)) make_storm(profile, random);
  if (random_chance(random, 300))
    profile->redissons = (int)random_between(random, 1, 1 + profile->devices / 3);
  choose_clients(profile, random);
  if (random_chance(random, 50)) take_days(profile, random);
}

/* Half of the devices are of another release, in some worlds. */
static void mix_releases(struct world *world)
{
  struct profile *profile = &world->profile;
  uint64_t choice = world->seed * 0x9e3779b97f4a7c15U >> 61;
  if (choice < 2) profile->other = RELEASE_LATER;
  else if (choice == 2) profile->other = RELEASE_KEPT;
}

/* Not by chance: all else in the world stays as it was. */
static void choose_keepers(struct world *world)
{
  static const int permille[] = {0, 0, 0, 0, 0, 300, 700, 1000};
  world->profile.keepers = permille[world->seed * 0xd1342543de82ef95U >> 61];
}

/* The same. What the kept release is asked has no word for it. */
static void choose_claims(struct world *world)
{
  static const int permille[] = {0, 0, 0, 0, 500, 1000, 1000, 1000};
  if (world->profile.other == RELEASE_KEPT) return;
  world->profile.claims = permille[world->seed * 0x9fb21c651e98df25U >> 61];
}

/*
 * How many of the handles share their lock, how many of them may at a time, and how many mistake
 * that. Only in worlds with large seeds, so that the others stay as they were.
 */
static void choose_sharing(struct world *world)
{
  struct profile *profile = &world->profile;
  if (world->seed < SHARING_SEEDS) return;
  profile->sharing = (int)one_of(&world->random, 300, 600, 900);
  profile->most = (int)one_of(&world->random, 0, 2, 8);
  profile->others = (int)one_of(&world->random, 0, 50, 500);
}

void choose_profile(struct world *world)
{
  struct profile *profile = &world->profile;
  choose(world);
  bool suits = profile->devices <= 30 && profile->hold < HOUR;
  if (suits && random_chance(&world->random, 300)) add_server(profile, &world->random);
  mix_releases(world);
  choose_keepers(world);
  choose_claims(world);
  choose_sharing(world);
}

/* The worlds of the hunt */

/* Nothing but broken connections, whose bytes arrive late. */
static void break_often(struct profile *profile, struct random *random)
{
  profile->faults = FAULT_CUT | (random_chance(random, 300) ? FAULT_STALL : 0);
  profile->fault_every = one_of(random, 300 * MS, SECOND, 3 * SECOND) / FAULTS;
}

/*
 * Fewer of them, and a client that has released or given up pauses for a while: so what it left
 * behind is seen.
 */
static void rest_often(struct profile *profile, struct random *random)
{
  break_often(profile, random);
  profile->fault_every = one_of(random, 3 * SECOND, 10 * SECOND, 30 * SECOND) / FAULTS;
  profile->duration *= 2;
  profile->think = 20 * SECOND;
  profile->hold = one_of(random, 5 * MS, 200 * MS, SECOND);
  profile->gives_up = (int)one_of(random, 100, 300, 600);
  profile->taken_out = (int)one_of(random, 20, 200, 500);
}

/*
 * The same, with the shortest waiter timeout. Devices freeze for longer than that: an acquire comes when
 * nobody can undo it.
 */
static void freeze_often(struct profile *profile, struct random *random)
{
  rest_often(profile, random);
  profile->devices = 2;
  profile->handles = 2;
  profile->faults = FAULT_CUT | FAULT_FREEZE;
  profile->fault_every = one_of(random, SECOND, 3 * SECOND, 10 * SECOND) / FAULTS;
  profile->hold = one_of(random, 100 * MS, 300 * MS, SECOND);
  profile->think = one_of(random, 2 * SECOND, 5 * SECOND, 10 * SECOND);
  profile->waitless = (int)one_of(random, 0, 300, 500);
  profile->tolerant = 1000;
  profile->duration = HOUR;
}

/*
 * Two clients, whose links are silent for longer than that: a claim ends before what is sent to confirm it
 * and to release it comes, and the heartbeat before that begins another hold.
 */
static void confirm_late(struct profile *profile, struct random *random)
{
  freeze_often(profile, random);
  profile->handles = 1;
  profile->faults = FAULT_STALL;
  profile->fault_every = one_of(random, 5 * SECOND, 5 * SECOND, 10 * SECOND) / FAULTS;
  profile->hold = SECOND;
  profile->think = one_of(random, 2 * SECOND, 2 * SECOND, 3 * SECOND);
  profile->waitless = 0;
  profile->gives_up = 0;
}

/*
 * A client that gives up a wait begins the next at once, while it still has its place in the queue.
 */
static void come_again(struct profile *profile, struct random *random)
{
  break_often(profile, random);
  profile->fault_every = one_of(random, SECOND, 3 * SECOND, 10 * SECOND) / FAULTS;
  profile->think = 50 * MS;
  profile->hold = one_of(random, 200 * MS, SECOND, 3 * SECOND);
  profile->gives_up = 600;
  profile->waitless = 50;
  profile->duration = 20 * MINUTE;
}

/* Scripts are stopped half-way. */
static void stop_scripts(struct profile *profile, struct random *random)
{
  profile->faults = FAULT_DENY | (random_chance(random, 500) ? FAULT_FULL | FAULT_POWER : 0);
  profile->fault_every = SECOND / FAULTS;
}

static void add_redisson(struct profile *profile, struct random *random)
{
  profile->redissons = (int)random_between(random, 2, 4);
  profile->faults =
      FAULT_CRASH | FAULT_POWER | FAULT_FREEZE | (random_chance(random, 500) ? FAULT_CUT : 0);
  if (random_chance(random, 300)) profile->faults = 0; /* they go and come again */
  profile->fault_every = one_of(random, SECOND, 10 * SECOND, 100 * SECOND) / FAULTS;
}

/* Clients die and freeze, and clock rates differ as much as they may. */
static void kill_often(struct profile *profile, struct random *random)
{
  profile->faults = FAULT_CRASH | FAULT_POWER | FAULT_FREEZE | FAULT_SILENCE;
  profile->fault_every = one_of(random, SECOND, 3 * SECOND, 10 * SECOND) / FAULTS;
}

static void lose_data(struct profile *profile, struct random *random)
{
  profile->faults = FAULT_EVICT | FAULT_FREEZE | FAULT_SILENCE;
  if (random_chance(random, 300)) profile->faults = FAULT_EVICT | FAULT_JUMP | FAULT_DENY;
  profile->fault_every = one_of(random, 300 * MS, SECOND, 3 * SECOND) / FAULTS;
}

/*
 * Holds of minutes, in a queue with Redisson's waiters: all wait for longer than the scores last.
 */
static void hold_long(struct profile *profile, struct random *random)
{
  profile->redissons = (int)random_between(random, 1, 3);
  profile->faults = random_chance(random, 500) ? 0 : FAULT_POWER | FAULT_FREEZE;
  profile->fault_every = MINUTE;
  profile->hold = one_of(random, 20 * SECOND, 2 * MINUTE, 5 * MINUTE);
  profile->latency = 40 * MS; /* behind a dead one they ask again and again, as fast as they can */
  profile->gives_up = 50;
  profile->duration = 2 * HOUR;
}

/*
 * The server refuses again and again for a moment, so that a client asks again for what it gave up
 * while its leave is under way.
 */
static void refuse_often(struct profile *profile, struct random *random)
{
  profile->faults = FAULT_REFUSE;
  profile->fault_every = SECOND / FAULTS;
  profile->latency = one_of(random, 100 * MS, 200 * MS, 300 * MS);
  profile->hold = one_of(random, 20 * MS, 100 * MS, 300 * MS);
  profile->think = one_of(random, 200 * MS, 500 * MS, SECOND);
  profile->gives_up = 600;
  profile->waitless = 50;
  profile->duration = HOUR; /* it is rare */
}

/*
 * Answers come later than the next heartbeat, and waiter timeouts are short and long. Rarely: the
 * timeouts follow the round trips that were measured.
 */
static void answer_late(struct profile *profile, struct random *random)
{
  profile->faults = FAULT_STALL;
  profile->fault_every = one_of(random, SECOND, 3 * SECOND, 10 * SECOND) / FAULTS;
  profile->hold = one_of(random, SECOND, 3 * SECOND, 10 * SECOND);
  profile->think = SECOND;
  profile->patient = 700;
  profile->tolerant = 700;
  profile->gives_up = 50;
  profile->duration = HOUR;
}

/* The server's clock falls behind, and what broken connections carry arrives late. */
static void turn_back(struct profile *profile, struct random *random)
{
  profile->faults = FAULT_BEHIND | FAULT_CUT;
  profile->fault_every = one_of(random, SECOND, 3 * SECOND, 10 * SECOND) / FAULTS;
  if (random_chance(random, 500)) profile->faults |= FAULT_POWER | FAULT_CRASH;
  if (random_chance(random, 500)) profile->redissons = 2;
  profile->alike = 500;
}

/* Re-entries are refused, while the hold goes on for longer than its lease. */
static void refuse_reentries(struct profile *profile, struct random *random)
{
  profile->faults = 0;
  profile->hold = one_of(random, SECOND, 3 * SECOND, 10 * SECOND);
  profile->think = SECOND;
  profile->denied = 700;
  profile->duration = HOUR;
}

/* The master changes all the time. */
static void fail_over(struct profile *profile, struct random *random)
{
  profile->duration = random_between(random, 10, 30) * MINUTE;
  profile->faults &= FAULT_CUT | FAULT_CRASH | FAULT_FORCE;
  profile->fault_every = MINUTE / FAULTS;
  add_server(profile, random);
  profile->move_every = one_of(random, 5 * SECOND, 10 * SECOND, 20 * SECOND);
  profile->hold = one_of(random, 200 * MS, 3 * SECOND, 10 * SECOND);
}

static void nothing_special(struct profile *profile, struct random *random)
{
  (void)profile;
  (void)random;
}

/* Worlds that take little time come more often. */
void choose_hunt(struct world *world)
{
  static void (*const hunts[])(struct profile *, struct random *) = {
      nothing_special, break_often, rest_often,       stop_scripts, add_redisson,
      kill_often,      lose_data,   hold_long,        take_days,    refuse_often,
      answer_late,     turn_back,   refuse_reentries, come_again,   lose_data,
      lose_data,       turn_back,   fail_over,        fail_over,
  };
  const uint64_t count = sizeof hunts / sizeof hunts[0];
  struct profile *profile = &world->profile;
  choose(world);
  profile->devices = (int)random_between(&world->random, 2, 4);
  profile->redissons = 0;
  profile->locks = 1;
  profile->duration = random_between(&world->random, 3, 10) * MINUTE;
  profile->think = one_of(&world->random, 50 * MS, SECOND, 20 * SECOND);
  if (world->seed < CUT_OFF_SEEDS || world->seed >= SHARING_SEEDS)
    hunts[world->seed % count](profile, &world->random);
  else if (world->seed % 3 == 0) freeze_often(profile, &world->random);
  else confirm_late(profile, &world->random);
  mix_releases(world);
  choose_keepers(world);
  choose_claims(world);
  choose_sharing(world);
}
