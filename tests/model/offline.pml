/* SPDX-License-Identifier: Apache-2.0
 * The caller's side of a server that does not answer: fairlock_handle_on_failed(), patience_ends() and silent_since() of
 * lock/handle.c, and fail_all() of lock/engine.c. The lock and its clients are those of lock.pml, with OFFLINE=1.
 *
 * An operation that gets no useful answer for PATIENCE (offline_ms) ends for its caller, and goes on in the background: a
 * wait as a leave, a release as a release. What is promised of the lock is as without it. Besides, the caller is told in
 * time, and no earlier; and a program does not begin anything before it was told.
 *
 *   PATIENCE   offline_ms
 *   REFUSED    greetings that the server refuses: the operation fails at once
 *
 * Left out: an answer that is found too late after a freeze of the device (came_late, drained_at), because FREEZES says
 * that a device may be late with all; the time that a round trip adds to offline_ms, because here it is known.
 */
#include "world.pml"
#ifndef REFUSED
#define REFUSED 0
#endif
bit pending[N];     /* the program waits for its result */
bit good[N];        /* its last request was carried out, and answered on this connection */
byte silence[N];    /* for how long a useful answer has been missing, as the handle counts */
byte unheard[N];    /* since the operation began, or the last useful answer: no part of the handle */
bit trouble[N];     /* a connection has broken since, or a request was not carried out: no part of it, either */
byte refusals = REFUSED;

#undef phase_begins
#define phase_begins(p) begins(p)
inline begins(p) {
  if
  :: p == QUEUEING || p == TRYING || p == REENTERING || p == RELEASE_ONE || p == RELEASING ->
    pending[i] = 1; good[i] = 0; silence[i] = 0; unheard[i] = 0; trouble[i] = !our.up || (me.in_doubt & LEAVE) /* its acquire has to wait */
  :: p == LEAVING && (me.phase == QUEUEING || me.phase == TRYING) && our.up /* its caller gets the result when the leave is answered [told-without-connection] */
  :: else -> end_operation()
  fi
}

inline end_operation() { pending[i] = 0; good[i] = 0; silence[i] = 0; unheard[i] = 0; trouble[i] = 0 }

#undef answered
#define answered() an_answer()
inline an_answer() {
  good[i] = (what == YES || what == NO || what == GONE);
  if :: good[i] -> silence[i] = 0; unheard[i] = 0; trouble[i] = 0 :: else -> trouble[i] = 1 fi /* [useful-counts] */
}

/* The connection has broken. Of a leave, nothing more is to be told. */
#undef line_ends
#define line_ends(k) an_end(k)
inline an_end(k) {
  good[k] = 0; trouble[k] = pending[k];
  if :: handle[k].phase == LEAVING -> pending[k] = 0; silence[k] = 0; unheard[k] = 0; trouble[k] = 0 :: else fi
}

/* A waiter whose heartbeats were all answered misses none until the next one is due. [silent-from-due] */
#define misses_none(i) (handle[i].phase == QUEUEING && good[i] && handle[i].unanswered == 0 && handle[i].sends > 0)

#undef also_ticks
#define also_ticks() silence_ticks()
inline silence_ticks() { /* at each tick */
  i = 0;
  do
  :: i < N ->
    if
    :: pending[i] ->
      silence[i] = (misses_none(i) -> 0 : silence[i] + 1); unheard[i]++;
      assert(unheard[i] <= BEAT + PATIENCE + RESPONSE); /* PROMISE told: nobody waits longer for a result */
      assert(me.phase != RELEASING || unheard[i] <= PATIENCE); /* PROMISE told: nor for that of a release */
      assert(me.phase != LEAVING || our.up) /* PROMISE told: who gives up a wait is told at once if nobody is there */
    :: else
    fi;
    i++
  :: else -> break
  od
}

/* A try does not wait for a server that is away. */
#define patience(i) (handle[i].phase == TRYING -> 2 * RESPONSE : PATIENCE)
/* [patience-ends] */
#define fails(i)    (pending[i] && silence[i] >= patience(i) && !frozen[i])

#undef hasty
#define hasty      !pending[i]
#define patient(i) (!fails(i))
#undef thrown
#define thrown     each(patient, &&)

#include "handle.pml"

inline on_failed() {
  if
  :: waiting(i) -> /* it goes on as a leave, which has this much more time [wait-leaves] */
    silence[i] = (silence[i] > RESPONSE -> silence[i] - RESPONSE : 0); leave()
  :: else -> /* what is under way goes on [release-goes-on] */
    if :: holding(i) -> set_phase(HELD) :: else -> end_operation() fi
  fi
}

#define FAILS(x) \
  :: atomic { fails(x) -> i = x; \
      assert((me.phase == TRYING || unheard[i] >= PATIENCE) && (me.phase == LEAVING || trouble[i])); \
      on_failed(); doubt_ends(); i = 0 } \
  :: atomic { refusals > 0 && pending[x] && !line[x].up && !frozen[x] -> i = x; \
      refusals--; trouble[i] = 1; on_failed(); doubt_ends(); i = 0 }

active proctype caller()
{
  byte i;
  do
  FAILS(0) /* PROMISE told: nobody is told too early, nor who was answered all along */
  FAILS(1) /* PROMISE told: the same */
  od
}
