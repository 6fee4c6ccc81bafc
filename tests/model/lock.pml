/* SPDX-License-Identifier: Apache-2.0
 * The server: one lock that is held alone. lock.lua, with common.lua and hand_over.lua; a script is one step.
 */
#pragma once
#include "world.pml"

byte count[N] = NONE; /* the lock hash: the hold count of each id in it. 0: a claim, handed over and not confirmed */
byte ttl;             /* of the hash; 0: there is none, and the lock is free */
chan queue = [N] of { byte };
byte note[N] = NONE;  /* until a waiter that is not heard from is dead; 0: it is */
byte token, released; /* the last token; that of the last hold that was released */
byte newest;          /* the last token that somebody believed in: no part of the server */

/* Redis may refuse any command that writes, and the script ends there. What was written before stays. */
#if STOPS > 0
#define COMMAND if :: stops > 0 -> stops--; what = FAILED; value = STOPPED; goto answer :: true fi;
#else
#define COMMAND
#endif

#define held(x)   (count[x] != NONE)
#define is_new(t) ((t) > tok)

inline drop_lock() { n = 0; do :: n < N -> count[n] = NONE; n++ :: else -> break od; n = 0; ttl = 0 }

/* Gives the free lock to x: the token first, because a hold without one would have that of another. [token-first] */
inline grant(x, span, holds) {
  COMMAND token = next_token; released = ended;
  USES_HASH COMMAND count[x] = holds; ttl = span;
  assert(!overtakes(x)); /* PROMISE order: nobody waits who came before, and has kept the rules */
  breaks_rules(x)
}

/* Removes the place before the note: a place without note would be one of Redisson's. [place-before-note] */
inline forget(x) {
  COMMAND if :: queue??[eval(x)] -> queue??eval(x) :: else fi;
  COMMAND note[x] = NONE; tells_next()
}

/* Finds the heir, the first in line before `caller` who is alive and listens, or N. */
inline find_heir(caller) {
  heir = N; found = 0; n = len(queue);
  do
  :: n == 0 -> break
  :: else -> n--; queue?w;
    if
    :: found || w == caller -> found = 1; queue!w
    :: else -> assert(note[w] != NONE); /* PROMISE order: no place is without a note */
      if
      :: note[w] == 0 -> note[w] = NONE                           /* dead: removed [dead-skipped] */
      :: note[w] > 0 && listens[w] -> heir = w; found = 1; queue!w
      :: else -> queue!w                                          /* passed over, keeps its place [deaf-passed] */
      fi
    fi
  od;
  found = 0; w = 0
}

/* Hands the free lock to the heir. It owns the lock before it leaves the queue. [owns-before-leaving]
 * What `former` had in the hash (N: nothing) goes then, too. */
inline hand_over(caller) {
  look(caller); /* find_heir() */
  if
  :: heir < N ->
    assert(note[heir] > 0 && listens[heir]); /* PROMISE dead: nobody who is dead or deaf is handed the lock */
    USES_HASH COMMAND grant(heir, CLAIM, 0); /* HDEL is tried first: it cannot be refused when two are in the hash [hdel-tried] */
    if :: former < N && former != heir -> count[former] = NONE :: else fi; /* [heir-in-first] */
    forget(heir);
    COMMAND if :: listens[heir] == 2 -> down[LINE(heir)]!heir, GRANT, token, 0 :: else fi
  :: else
  fi
}

/* An acquire, or a waiter's heartbeat. It names the token of the last hold that its handle has had. [token-named] */
inline acquire() {
  base = (tok > token -> tok : token); /* this server may be a new master, without the newest [newest-token] */
  if
  :: held(i) && is_new(token) -> /* this request has come before, or there is a claim: it is the caller's */
    COMMAND if :: ttl < lease(i) -> ttl = lease(i) :: else fi;
    what = YES; value = token
  :: else ->
    what = NO; value = NEVER;
    if :: held(i) -> former = i; ended = token; COMMAND released = token :: else fi; /* a hold that was given up [given-up] */
    if
    :: held(i) || ttl == 0 -> /* free [claim-is-a-hold] */
      hand_over(i); /* [no-overtaking] */
      if
      :: heir == N -> grant(i, lease(i), 1); forget(i); what = YES; value = token /* [heartbeat-takes] */
      :: heir > N -> if :: held(i) -> drop_lock() :: else fi /* waits for one of redisson.pml */
      :: else
      fi
    :: else
    fi;
    if
    :: what == NO && kind == ACQUIRE ->
      if :: !queue??[eval(i)] -> USES_QUEUE COMMAND note[i] = 0; COMMAND queue!i :: else fi; /* [note-before-place] */
      COMMAND note[i] = WAITER;
      if :: queue?[eval(i)] -> value = ttl :: else fi; /* the first in line asks again when that has passed */
      has_place()
    :: else
    fi
  fi
}

/* Confirms, renews, changes the hold count. */
inline if_held() {
  if
  :: held(i) && tok == token ->
    if :: count[i] == 0 || ttl < lease(i) -> COMMAND ttl = lease(i) :: else fi; /* a claim may be longer than the lease */
    COMMAND count[i] = (kind & TWICE -> 2 : 1); /* never an increment: it may come twice [count-not-increment] */
    what = YES; value = token
  :: else -> what = GONE
  fi
}

/* A release, which names its token, or a leave, which ends whatever there is. */
inline end_hold() {
  rest = (held(i) && (kind == LEAVE || tok == token) -> 1 : 0); /* [release-names-token] */
  if
  :: rest -> ended = token; COMMAND drop_lock(); KEEPS_HASH /* by a TTL of 1 ms: should the script stop now, nobody holds */
  :: !rest && kind == LEAVE -> forget(i)
  :: else
  fi;
  if :: ttl == 0 -> hand_over(N) :: else fi; /* a free lock is handed over by any of them */
  if :: rest && heir >= N -> COMMAND released = ended :: else fi;
  what = (rest || kind == RELEASE && ended == tok -> YES : NO); /* done before: the same answer */
  rest = 0
}

/* Carries out {kind, tok, age} of i. alive: it came on the present connection. */
inline script() {
  value = 0; heir = N; former = N; base = token; ended = released; BEGINS
  if :: kind != RELEASE && age > RESPONSE -> what = VOID; goto answer :: else fi; /* [expires] */
  if :: voids > 0 && alive && kind != RELEASE -> voids--; if :: what = VOID :: what = FAILED fi; goto answer :: true fi;
  if
  :: kind == ACQUIRE || kind == TRY -> comes(); acquire()
  :: kind & IF_HELD -> if_held()
  :: else ->
    assert(alive || kind != LEAVE || !(placed & (1 << i))); /* PROMISE late: a late leave ends no later wait or hold */
    if :: alive && kind == LEAVE -> wait_ends() :: else fi; /* a heartbeat before it may have marked that wait as placed again */
    end_hold()
  fi
}

inline server_tick() { later(ttl); if :: ttl == 0 -> drop_lock() :: else fi; also_ticks() }

/* What the promises ask the server. */
#define covers(i)     (held(i) && token == handle[i].token && ttl >= handle[i].ends)
#define has_any(i)    (held(i) && !(STOPS && count[i] == 0) || queue??[eval(i)]) /* after a stop a claim may be left: it ends */
#define miscounted(i) (held(i) && count[i] != handle[i].holds)
#define most_hold     1
inline tokens_rise() {
  assert(ANY_ORDER || me.token > newest || excused(i)); /* PROMISE tokens: they rise from hold to hold */
  newest = (excused(i) -> newest : me.token)
}
