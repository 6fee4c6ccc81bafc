/* SPDX-License-Identifier: Apache-2.0
 * Locks that are kept after their release until somebody queues (keep.c).
 *
 * The last release is delayed: the server still has the hold, and the next acquire takes it back without a request.
 * CLIENT CACHING and EXISTS before a request arm the queue: the server pushes once when it changes. A try does not
 * queue, so the keep also ends KEEP ticks after the request that began or confirmed the hold. Only renewed holds are
 * kept, so RENEWS is 1. Left out: pushes because somebody leaves the queue (they only end a keep), refused armings,
 * queries and operators who ask for a kept lock, and that arming and SUBSCRIBE are two commands.
 *
 *   KEEP   keep_ms, at most two thirds of LEASE
 */
#include "world.pml"

mtype = { ARMS, CHANGED }; /* an answer: whether somebody waits already; a push: the queue has changed */
bit tracks[N];  /* of the server: it will push */
bit arming[N], armed[N];
byte kept[N];   /* 1: its release is delayed. 2: it was, and is sent */
byte since[N] = NEVER; /* how long ago the request was sent that began or confirmed the hold */

#define waits(i)   (handle[i].phase == QUEUEING || handle[i].phase == TRYING)
#define in_time(i) (since[i] < KEEP)
#define old_push(i) (down[i]?[_, CHANGED, _, 1] || down[i]??[_, CHANGED, _, 1] || down[i]??[_, CHANGED, _, 2] || down[i]??[_, CHANGED, _, 3])
#define certain(i) (handle[i].in_doubt == 0 && !handle[i].unconfirmed)
#define may_keep(i) (armed[i] && in_time(i)) /* [keep-ends] */
#define lasts(i)   (since[i] + MARGIN <= LEASE / 3) /* [lasts] */
#define delays(i)  (handle[i].phase == RELEASING && kept[i] == 0 && certain(i) && may_keep(i))
#define resumes(i) (waits(i) && !handle[i].queued && kept[i] == 1 && handle[i].owed && may_keep(i) && lasts(i))
/* What has arrived is read before. */
#define looks(i)   ((delays(i) || resumes(i)) && old_push(i))

#define arms(i)    ((waits(i) && !handle[i].queued || handle[i].phase == HELD && in_time(i)) && !armed[i] && !arming[i])
#undef subscribes_first
#define subscribes_first() me.phase == QUEUEING && !me.subscribed || arms(i) -> \
                           up[LINE(i)]!i, SUBSCRIBE, arms(i), 0; me.subscribed = 1; arming[i] = arming[i] || arms(i)
#undef subscribe
#define subscribe() listens[i] = 2; \
                    if :: tok -> tracks[i] = 1; down[LINE(i)]!i, ARMS, (len(queue) > 0), 0 :: else fi /* [exists-asked] */
#undef is_push
#define is_push     (what == GRANT || what == ARMS || what == CHANGED)
#undef on_push
#define on_push()   what == CHANGED -> recall() \
                    :: what == ARMS -> arming[i] = 0; armed[i] = (value -> 0 : 1) \
                    :: what == GRANT -> message()
#undef on_broken_too
#define on_broken_too() recall(); arming[i] = 0; tracks[i] = 0; if :: kept[i] == 1 -> kept[i] = 2 :: else fi /* [closed-ends-keep] */
#undef on_tick
#define on_tick()   since[i] = (since[i] < NEVER -> since[i] + 1 : NEVER); if :: since[i] > LEASE -> since[i] = NEVER :: else fi
#undef may_transmit
#define may_transmit(i) !looks(i)
#undef transmit
#define transmit()  if :: delays(i) -> delay() :: resumes(i) -> resume() :: else -> note_time(); send() fi

/* Somebody joins the queue: whoever has armed it is told, once. */
#undef USES_QUEUE
#define USES_QUEUE n = 0; do :: n < N -> if :: tracks[n] -> tracks[n] = 0; down[LINE(n)]!n, CHANGED, 0, 0 :: else fi; n++ :: else -> break od; n = 0;

inline recall() {
  armed[i] = 0; /* [push-disarms] */
  if :: kept[i] == 1 && me.phase == RELEASING -> me.sends = 0 :: else fi /* [push-ends-keep] */
}

inline delay() { kept[i] = 1; me.sends = KEEP - since[i]; me.holds = 0 }

/* The hold is the caller's again, with its token, dated from its request. [not-prolonged] */
inline resume() {
  assert(count[i] != NONE && token == me.token && newest == me.token); /* PROMISE kept: a hold that is taken back is the server's, and the last */
  assert(!(in_line & ~(1 << i)) || down[LINE(i)]??[eval(i), CHANGED, _, 0]); /* PROMISE order: nobody waits, or the push has not arrived yet */
  age = since[i]; safe_part(LEASE); me.ends = rest;
  assert(rest >= LEASE - LEASE / 3); /* PROMISE lasting: it lasts two thirds of a lease */
  kept[i] = 0; set_phase(HELD); me.owed = 0; me.holds = 1; me.sends = rest / 4;
  age = 0; rest = 0
}

inline note_time() {
  if :: waits(i) && !me.queued && me.unanswered == 0 || me.phase == HELD && me.unconfirmed && me.unanswered == 0 -> since[i] = 0 :: else fi;
  if :: me.phase == RELEASING -> kept[i] = 2 :: waits(i) || me.phase == LEAVING -> kept[i] = 0 :: else fi
}
#include "handle.pml"

/* PROMISE kept: while it is kept, the server has it, and nobody waits for it longer than until the push has arrived. */
#define keeping(i) (kept[i] == 1 && handle[i].phase == RELEASING && handle[i].sends > 0)
#define outstays(i)  (keeping(i) && (!(held(i) && token == handle[i].token) || \
                    (in_line & ~(1 << i)) && !down[LINE(i)]??[_, CHANGED, _, _]))
active proctype kept_promise() { atomic { each(outstays, ||) -> assert(false) } }
