/* SPDX-License-Identifier: Apache-2.0
 * A program takes a handle out, and may use its memory for another (handle.c: fairlock_engine_remove, REMOVING).
 *
 * From then on the engine does not know the handle: it can neither undo what a late request begins, nor count the
 * answer to a SUBSCRIBE. So the handle first leaves, and ends its subscription, which is answered here, too. With
 * AGAIN, the second handle, of the same connection, acquires when the first is out: it is the one that was added in
 * its place, with an id of its own. Left out: a request that is half written (abandon_request), and refused answers.
 *
 *   REMOVES, AGAIN   bits of the handles that are taken out; how often the second acquires after that
 */
#include "hooks.pml"
mtype = { REMOVED, LISTENS };
bit removing[3];    /* it is LEAVING for that: REMOVING in the code */
bit subscribing[3]; /* a SUBSCRIBE or UNSUBSCRIBE awaits its answer */

#define unsubscribes(i)    (removing[i] && me.subscribed && !subscribing[i]) /* [unsubscribes] */
#undef listens_still
#define listens_still(i)   (removing[i] && me.subscribed) /* its SUBSCRIBE was not answered yet, when it left [unsubscribes-again] */
#undef subscribes_first
#define subscribes_first() unsubscribes(i) || me.phase == QUEUEING && !me.subscribed -> \
                           up[LINE(i)]!i, SUBSCRIBE, removing[i], 0; me.subscribed = 1; subscribing[i] = 1
#undef subscribe
#define subscribe()        listens[i] = (tok -> 0 : 2); down[LINE(i)]!i, LISTENS, tok, 0

/* The answer to a subscription is no answer to a request, so it is counted only while its handle is there. */
#undef is_push
#define is_push   (what == GRANT || what == LISTENS)
#undef on_push
#define on_push() what == LISTENS -> assert(me.phase != REMOVED) /* PROMISE removed */; subscribing[i] = 0; me.subscribed = (value -> 0 : 1) \
                  :: what == GRANT -> if :: me.phase != REMOVED -> message() :: else fi

#define is_out()        me.phase = REMOVED; removing[i] = 0; me.in_doubt = 0; me.subscribed = 0; \
                        if :: AGAIN && i == 0 -> handle[1].acquires = AGAIN :: else fi
#undef on_free
#define on_free()       if :: removing[i] -> is_out() :: else fi
#undef on_broken_too
#define on_broken_too() subscribing[i] = 0; if :: removing[i] && nothing_there(i) -> become_free() :: else fi

/* Its time is over, and an answer is missing that nobody could count then, or nobody would end the subscription: the connection has to end. [uncounted-breaks] [subscription-ends] */
#undef over_for
#define over_for(i) \
  if :: removing[i] && our.up && me.subscribed -> former = i; broken(LINE(i)); i = former; former = 0 :: else fi; \
  if :: me.phase != REMOVED -> become_free() :: else fi
#include "pair.pml"

#define owes(i)   ((ending(i) || !nothing_there(i)) && !(OFFLINE && handle[i].left == 0))
#define may_go(i) ((REMOVES & (1 << i)) && handle[i].acquires == 0 && !frozen[i] && !removing[i] && \
                   (handle[i].phase == FREE || handle[i].phase == LOST || ending(i)))

inline goes() { removing[i] = 1; set_phase(LEAVING); wait_ends(); me.holds = 0; me.sends = 0 }

inline remove() {
  if
  :: owes(i) -> goes(); me.owed = 1; me.ends = leaves_for(i) /* [leaves-first] */
  :: !owes(i) && our.up && me.subscribed -> goes(); me.ends = 2 * RESPONSE
  :: else -> set_phase(REMOVED); is_out()
  fi
}

active proctype program()
{
  byte i;
  do
  :: atomic { may_go(0) -> i = 0; remove(); i = 0 }
  :: atomic { may_go(1) -> i = 1; remove(); i = 0 }
  od
}

/* PROMISE removed: the server has nothing of it, and sends it nothing, for ever. */
#define haunts(i) (handle[i].phase == REMOVED && (has_any(i) || listens[i] == 2))
active proctype removed_promise() { atomic { each(haunts, ||) -> assert(false) } }
