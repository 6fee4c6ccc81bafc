/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random number generator whose whole state is one number, so that a seed replays everything.
 * (splitmix64.)
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
  uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
  uint64_t x = random->state += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/* 0 to limit - 1; 0 when limit is 0. */
static inline int64_t random_below(struct random *random, int64_t limit)
{
  return limit > 0 ? (int64_t)((random_next(random) >> 1) % (uint64_t)limit) : 0;
}

static inline int64_t random_between(struct random *random, int64_t least, int64_t most)
{
  return least + random_below(random, most - least + 1);
}

/* True with a probability of that many in a thousand. */
static inline bool random_chance(struct random *random, int permille)
{
  return random_below(random, 1000) < permille;
}

/* Mostly short, sometimes long: between 0 and 8 times the mean, spread over the powers of two. */
static inline int64_t random_around(struct random *random, int64_t mean)
{
  int64_t most = mean;
  while (most > 0 && most < mean * 8 && random_chance(random, 300))
    most *= 2;
  return random_below(random, most + 1);
}

#endif
