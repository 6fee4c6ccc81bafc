/* SPDX-License-Identifier: Apache-2.0
 * For a simulation that is repeated on the engine (test_engine.py, -DENGINE). It says what it does: before
 * each step, how the handle is. It does as engine and machine do: what is over ends before anything else;
 * clocks agree; a margin is shorter than a tick, and RESPONSE is longer than it says by half a tick. It has
 * good times and bad ones, so that a run does not have all its faults at its beginning: in a bad one, as many
 * of a kind as that option says. LOSES: requests are lost with their connection; DROPS: an operator ends holds.
 */
#include "hooks.pml"
#undef does
#undef tell
#undef slack
#undef MARGIN
#undef HALF
#undef first
#undef acts
#undef reaches
#undef wakes
#undef reads
#undef hasty
#ifdef DROPS
#undef covers_beliefs
#define covers_beliefs 0
#endif
#define does(...) printf(__VA_ARGS__)
#define tell(i) \
  does("%d %e %d %d %d %d ", i, handle[i].phase, handle[i].queued, handle[i].owed, handle[i].unconfirmed, handle[i].subscribed); \
  does("%d %d %d %d ", handle[i].in_doubt, handle[i].unanswered, handle[i].holds, handle[i].token); \
  does("%d %d %d %d ", handle[i].ends, handle[i].left, handle[i].sends, line[LINE(i)].doubt); \
  does("%d %d %d %d:", line[LINE(i)].up, frozen[i], handle[i].forgotten, \
      (len(up[LINE(i)]) < TRIPS - 1 -> handle[i].sends == 0 && may_send(i) : 2))

#define slack(x) skip
#define MARGIN   0
#define HALF     1

#define first(i)   (!frozen[i] && !((holding(i) || ending(i)) && handle[i].ends == 0))
#define acts(i)    (first(i) && !idle)
#define reaches(i) (first(i) && !away)
#define wakes(i)   (frozen[i] && !asleep)
#define reads      (!slow)
bit idle;   /* programs only wait and hold */
bit hasty;  /* they acquire again before a release has ended */
bit away;   /* nobody can connect */
bit asleep; /* who is frozen stays so */
bit slow;   /* the server reads nothing, and connections break before it does */

#include "handle.pml"

active proctype chance()
{
  do
  :: atomic { true -> breaks = 0; cancels = 0; freezes = 0; voids = 0; stops = 0; reentries = 0;
      if
      :: breaks = BREAKS :: cancels = CANCELS :: freezes = FREEZES :: voids = VOIDS :: stops = STOPS
      :: breaks = BREAKS; cancels = CANCELS :: breaks = BREAKS; stops = STOPS
      :: true :: true
      fi;
      if :: LOSES -> slow = 1; breaks = BREAKS :: slow = 0 fi;
      if :: reentries = REENTRIES :: true :: true fi;
      if :: idle = 1 :: idle = 0 fi;
      if :: hasty = 1 :: hasty = 0 fi;
      if :: away = OFFLINE :: away = 0 :: true :: true fi;
      if :: asleep = 1 :: asleep = 0 :: true :: true :: true :: true fi }
  :: true :: true :: true :: true :: true :: true
  od
}

#ifdef DROPS /* an operator ends the hold: promises about a hold do not count then */
active proctype operator()
{
  do
  :: atomic { ttl > 0 -> released = token; drop_lock() }
  :: true :: true :: true :: true :: true :: true :: true :: true :: true :: true :: true :: true :: true
  :: true :: true :: true :: true :: true :: true :: true :: true :: true :: true :: true :: true :: true
  od
}
#endif
