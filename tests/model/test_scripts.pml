/* SPDX-License-Identifier: Apache-2.0
 * For the random runs that test_scripts.py repeats on a server: what they say of a script call, and their
 * weather. A random run does soon what it may do at any time. So that requests are late by ticks, devices
 * freeze and connections are dead for ticks, and faults come one by one, dice are thrown in each tick.
 */
#include "world.pml"
#undef wakes
#undef reaches
#undef arrives
#undef unlucky
#undef say
#undef say_tick
#undef say_call
#undef thrown
bit rough[N]; /* of a handle: it thaws, connects, and its late requests arrive, when this is over */
bit busy;     /* connections only break when requests are under way */
bit thrown;
#define say(...)   printf(__VA_ARGS__)
#define say_tick() printf("tick\n"); thrown = 0
#define say_call() says()
#define wakes(i)   (frozen[i] && !rough[i])
#define reaches(k) (!rough[k] || !OFFLINE)
#define arrives(k) (!rough[k])
#define unlucky(k) (!busy || nempty(up[k]))

inline says() { /* the request, its answer, and what the server has then */
  printf("call %d %d %d %d %d %e %d server %d %d %d counts", i, kind, tok, age, lease(i), what, value, ttl, token, released);
  n = 0; do :: n < N -> printf(" %d", count[n]); n++ :: else -> break od;
  printf(" notes");
  n = 0; do :: n < N -> printf(" %d", note[n]); n++ :: else -> break od;
  printf(" queue");
  n = len(queue); do :: n > 0 -> n--; queue?w; queue!w; printf(" %d", w) :: else -> break od;
#ifdef SHARERS
  printf(" shares %d %d %d", shared, in_use[0], in_use[1]);
  n = 0; do :: n < N -> printf(" %d %d %d", share[n].token, share[n].ends, share[n].count); n++ :: else -> break od;
#endif
  printf("\n"); n = 0; w = 0
}

#include MODEL

/* In one of three ticks, one. */
inline dice(left, budget) { if :: left = 0 :: left = 0 :: left = budget fi }

active proctype weather()
{
  byte i;
  do
  :: atomic { !thrown -> thrown = 1;
      dice(breaks, BREAKS); dice(cancels, CANCELS); dice(freezes, FREEZES); dice(reentries, REENTRIES);
#if FAILOVERS > 0
      dice(failovers, FAILOVERS);
#endif
      if :: busy = 1 :: busy = 0 fi;
      for (i : 0 .. N - 1) { if :: rough[i] = 1 :: rough[i] = 0 :: skip :: skip fi }
      i = 0 }
  od
}
