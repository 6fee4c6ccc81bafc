/* SPDX-License-Identifier: Apache-2.0
 * What is between clients and server, and what may go wrong there.
 *
 * Promela in short. A `proctype` is a process. Processes take turns, a step each, in any order: spin
 * tries all orders. `atomic` and `d_step` make many statements one step, as Redis does with a script. In `if`
 * and `do`, any branch `::` may be taken whose first statement is possible; `else` if no other is; if none is,
 * the process waits. A `chan` is a queue: `!` appends, `?` takes the first, `??` takes from anywhere, `?[...]`
 * and `??[...]` ask whether that could be; there `_` is anything, and `eval(x)` the value of x. An `inline` is a
 * macro. `(a -> b : c)` chooses, as a ? b : c does in C.
 *
 * Time is counted in ticks. A tick passes only when nobody has anything left to do that is due, so nothing
 * takes for ever; within a tick, everything may happen in any order. Clocks disagree by less than a tick in
 * each interval, so the margin that the lock leaves (1/64 of a span) is a tick here.
 *
 * Names are those of lock/ and of lock/scripts. A comment [in-brackets] names a rule of faults.txt.
 *
 * What a run chooses (run.py):
 *   N, ACQUIRES0, ACQUIRES    handles; how often the first, and each other, acquires
 *   WAITER, CLAIM             after how long an unheard waiter is dead; how long an unconfirmed handover lasts
 *   BEAT, RESPONSE            a waiter sends as often; for so long a request is valid, and its answer is in time
 *   LEASE, SHORT, RENEWS      of each hold; of the last one of a client (0: the same); whether it is renewed
 *   TRIES, REENTRIES, CANCELS  what programs do besides: try, hold twice, give up a wait
 *   BREAKS, LATE, OFFLINE     connections that break; whether what was under way may still arrive; whether it
 *                             may take any time to connect again
 *   CRASHES, FREEZES          of devices: for good; for any time
 *   VOIDS, STOPS              requests that are found expired too early, or refused for now; scripts that are stopped
 */
#pragma once
#include "hooks.pml"

#define NEVER 99 /* a time that does not come */
#define NONE  98 /* no field, no note */
#define STOPPED 95 /* the value of an answer: the script was stopped half-way */
#define TRIPS 5  /* requests of a connection that may be under way */

/* What a request asks for: bits, as in lock/internal.h, because several may be in doubt. */
#define ACQUIRE   1
#define IF_HELD   2   /* confirm, renew, change the hold count: only if the caller still holds */
#define RELEASE   4   /* names the token of the hold that it ends */
#define LEAVE     8   /* ends whatever there is of the caller: place, claim, hold */
#define TRY       16  /* an acquire that does not queue */
#define DOWNGRADE 32  /* an acquire of one handle, and the release of another one, which holds alone */
#define TWICE     64  /* with IF_HELD: a hold count of 2 */
#define SUBSCRIBE 128

mtype = { FREE, QUEUEING, TRYING, HELD, REENTERING, RELEASE_ONE, RELEASING, LEAVING, LOST, CRASHED };

/* Answers: done; not now, or not held; the hold is gone; expired; refused. And a message: the lock is yours. */
mtype = { YES, NO, GONE, VOID, FAILED, GRANT };

/* A handle: struct fairlock. Times are how long it is until then. */
typedef Handle {
  mtype phase = FREE;
  bit queued;       /* the server has said that it has a place */
  bit owed;         /* an earlier wait or hold may still be on the server */
  bit unconfirmed;  /* its hold is a claim, as far as it knows */
  bit subscribed;
  bit settles;      /* its leave was sent when nothing was in doubt any more */
  byte in_doubt;    /* kinds that were under way when a connection broke, and may still be carried out */
  byte sent;        /* kinds that were sent on this connection */
  byte unanswered;  /* requests of this phase, whose answers count */
  byte forgotten;   /* requests of earlier phases, whose answers do not */
  byte holds;       /* its hold count */
  byte token;       /* of its hold, or of the last one */
  byte ends = NEVER; /* its hold, as it believes, or the time for which it leaves */
  byte left;        /* until all that it has sent, and what that may have begun, is over */
  byte sends = NEVER; /* its next request */
  byte acquires     /* how often its program will still acquire */
}
Handle handle[N];
#define me handle[i]
#define waiting(i) (handle[i].phase == QUEUEING || handle[i].phase == TRYING)
#define holding(i) (handle[i].phase == HELD || handle[i].phase == REENTERING || handle[i].phase == RELEASE_ONE)
#define lease(i)   (SHORT && handle[i].acquires == 0 -> SHORT : LEASE)
#define ending(i)  (handle[i].phase == RELEASING || handle[i].phase == LEAVING)

/* A connection: struct fairlock_engine. LINE(i): that of a handle, here one of its own. */
typedef Line {
  bit up;
  byte expires; /* until all its requests have expired */
  byte doubt    /* the same, as it counts after connecting again */
}
Line line[LINES];
#define our line[LINE(i)]
#define doubt_over(k) (line[k].up && line[k].doubt == 0)

/* Requests {who, kind, token, age}, and answers and messages {who, what, value, age}, in order. */
chan up[LINES] = [TRIPS] of { byte, byte, byte, byte };
chan down[LINES] = [TRIPS + 2] of { byte, mtype, byte, byte };
chan late[LINES] = [2] of { byte, byte, byte, byte }; /* of broken connections: may still arrive */
byte listens[N]; /* 2: yes. 1: the server thinks so, but the connection is dead. 0: no */

byte breaks = BREAKS, crashes = CRASHES, cancels = CANCELS, freezes = FREEZES, voids = VOIDS, stops = STOPS;
byte reentries = REENTRIES;
bit frozen[N];

/* Of one step: the request (who, kind, tok: the token that it names, age), its answer (what, value), and steps of the script. */
byte who, kind, tok, age, value, n, w, heir, former, rest, base, ended, alive, found;
mtype what;

#define has_room(k) (len(down[k]) < TRIPS)

/*
 * The order that is promised is that of waiters who keep the rules: who have a place, are awake, and whose
 * connection is whole. A grant to somebody behind one of them is an error.
 */
byte in_line;   /* bits: who waits so */
byte placed;    /* bits: whose present wait has its place */
byte before[N]; /* bits: who was in line when this one came */

/* An acquire arrives: who is in line is before one that has no place yet. And it has its place. */
inline comes() { if :: !(placed & (1 << i)) && !queue??[eval(i)] -> before[i] = in_line & ~(1 << i) :: else fi }

inline has_place() {
  if
  :: alive && me.phase == QUEUEING && !frozen[i] && !(placed & (1 << i)) && !up[LINE(i)]??[eval(i), LEAVE, _, _] ->
    n = 0; do :: n < N -> before[n] = before[n] & ~(1 << i); n++ :: else -> break od;
    placed = placed | (1 << i); in_line = in_line | (1 << i); n = 0
  :: else
  fi
}

#define breaks_rules(x) in_line = in_line & ~(1 << (x))
#define overtakes(x)    (in_line & before[x])

inline wait_ends() { placed = placed & ~(1 << i); breaks_rules(i); before[i] = 0 }
