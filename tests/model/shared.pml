/* SPDX-License-Identifier: Apache-2.0
 * A lock that some share: shared.lua and share.lua, beside lock.lua as it is. The handles of the mask SHARERS
 * share it, at most LIMIT at a time; the others want it alone. With OTHER the last handle names that limit,
 * and the smallest limit in use binds.
 *
 * The lock hash of a lock that is shared has a field for each holder, with its token, its end, and its hold
 * count; and one, `shared`, that counts them, so that no script reads a thousand fields. lock.lua knows nothing
 * of that. It finds a lock that somebody else holds; and when it is free, it hands it to whoever is the first in
 * line, alone. The next request of a sharer to whom that happened makes a share of it, and lets others in.
 *
 * Left out: waiters of Redisson; that ends are rounded up (the server then holds for longer than the client
 * believes, as the margin does); without OTHER, which limit is in use; the fields of leases
 * that have ended, and their removal; answers that come sooner than a tick behind one who wants the lock alone.
 */
#ifndef LIMIT
#define LIMIT 0 /* how many may share; 0: any number */
#endif
#ifndef OTHER
#define OTHER 0
#endif
#ifndef MOST
#define MOST 3 /* enter in one script */
#endif
#define ENDED  96 /* to a downgrade: the hold that it names is gone */
#include "hooks.pml"
#undef for_good
#define for_good (value == ENDED)
#include "lock.pml"

typedef Share { byte token; byte ends; byte count }
Share share[N];                     /* the fields of holders. ends 0: none; count 0: a claim */
bit shared;                         /* the hash has the field `shared` */
byte leases_end[LEASE + CLAIM + 1]; /* it: how many leases end in so many ticks */
byte newest_share;                  /* the largest token that a sharer has believed in: no part of the server */
byte in_use[2];                     /* the note `limit`: for how long LIMIT, and OTHER, are in use */

/* Of one script: what it has read of the caller, and who enters, with which token. */
byte its, till, own_count, asker, gone, holders, entered, enters[N];
byte alone, lives, begins, leaves, taken, may_enter, asks, barred;

#define shares(x)   ((SHARERS >> (x)) & 1)
#define names(x)    (OTHER && (x) == N - 1 -> OTHER : LIMIT)
#define is_full(limit) ((limit) > 0 && holders >= (limit))
#define binds(k)    (in_use[k] > 0 && is_full(k -> OTHER : LIMIT))
#define in_force    (OTHER -> binds(0) || binds(1) : is_full(LIMIT)) /* [smallest-binds] */
#define full(x)     (is_full(names(x)) || in_force)

/* Its limit is in use for as long as the hold lasts. Where nobody else holds, none is left from before. */
inline name_limit(x, span) {
  if :: OTHER && holders == 0 -> in_use[0] = 0; in_use[1] = 0 :: else fi;
  if
  :: OTHER && x == N - 1 && in_use[1] < span -> in_use[1] = span /* [limit-named] */
  :: OTHER && LIMIT && x != N - 1 && in_use[0] < span -> in_use[0] = span
  :: else
  fi
}

inline read_share() {
  alone = held(i); /* lock.lua has handed it over [claim-becomes-share] */
  gone = (alone -> i : N);
  its = (alone -> token : share[i].token);
  till = (alone -> ttl : share[i].ends);
  own_count = (alone -> count[i] : share[i].count);
  lives = till > 0; leaves = 0; taken = 0; may_enter = 0; asks = 0; barred = 0; entered = 0; holders = 0;
  begins = (kind == ACQUIRE || kind == TRY);
  n = 0; do :: n < N -> enters[n] = 0; n++ :: else -> break od;
  n = 0; do :: n <= LEASE + CLAIM -> holders = holders + leases_end[n]; n++ :: else -> break od;
  n = 0
}

/* x enters, with the next token. */
inline enter(x, span, holds) {
  name_limit(x, span);
  base++; enters[x] = base; entered++; holders++;
  if :: x == i -> till = span; own_count = holds :: else fi;
  assert(!overtakes(x)); /* PROMISE order: as in grant() */
  breaks_rules(x)
}

/* The caller enters in its turn, or nobody behind it does. */
inline own_turn() {
  asks = 0;
  if :: entered == MOST || full(i) -> barred = 1 :: else -> enter(i, lease(i), 1) fi /* [limit] */
}

/* Lets in those first in line, and the caller if it asks: at the end if it does not wait. */
inline let_in() {
  n = len(queue);
  do
  :: n == 0 -> break
  :: else -> n--; queue?w;
    if
    :: entered == MOST -> barred = 1 /* the requests of these let in more */
    :: else
    fi;
    if
    :: barred -> queue!w
    :: !barred && asks && w == i -> own_turn(); queue!w
    :: !barred && !(asks && w == i) && note[w] == 0 -> /* dead: removed, but if it could not enter, it may be back */
      if :: in_force -> barred = 1; queue!w :: else -> note[w] = NONE fi
    :: !barred && !(asks && w == i) && note[w] > 0 && !listens[w] -> queue!w
    :: !barred && !(asks && w == i) && note[w] > 0 && listens[w] ->
      if
      :: !shares(w) || full(w) -> barred = 1; queue!w /* nobody overtakes it [exclusive-stops] [full-stops] */
      :: else ->
        if
        :: share[w].ends > 0 -> note[w] = NONE /* a script that was stopped has let it in */
        :: else -> enter(w, CLAIM, 0); queue!w
        fi
      fi
    fi
  od;
  if :: asks && !barred -> own_turn() :: else fi;
  asks = 0; w = 0
}

/* The caller's field goes, or another one takes its place. */
inline take_out() { if :: !alone -> taken = 1; holders-- :: else fi }

/*
 * Writes who has entered, and the caller's field. A field, and the count of all, are written together, because a
 * script may stop before any command; and who enters leaves the queue, and is told, when that is done.
 */
inline write() {
  if :: entered > 0 -> COMMAND token = base :: else fi;
  if :: entered > 0 || leaves -> COMMAND released = ended :: else fi;
  COMMAND
  if :: taken -> leases_end[share[i].ends] = leases_end[share[i].ends] - 1 :: else fi;
  if :: taken -> share[i].token = 0; share[i].ends = 0; share[i].count = 0 :: else fi;
  if :: gone < N -> count[gone] = NONE :: else fi;
  n = 0;
  do
  :: n < N && enters[n] > 0 ->
    share[n].token = enters[n]; share[n].ends = (n == i -> till : CLAIM); share[n].count = (n == i -> own_count : 0);
    leases_end[share[n].ends] = leases_end[share[n].ends] + 1; n++ /* [counted-together] */
  :: n < N && enters[n] == 0 -> n++
  :: n == N -> break
  od;
  shared = 1; ttl = 0; n = 0; /* that of the lease which ends last [ttl-of-last] */
  do :: n <= LEASE + CLAIM -> if :: leases_end[n] > 0 -> ttl = n :: else fi; n++ :: else -> break od;
  n = 0;
  do
  :: n < N && enters[n] > 0 ->
    if :: queue??[eval(n)] -> forget(n) :: else fi;
    if
    :: listens[n] == 2 && (n != i || kind & (RELEASE | LEAVE)) -> COMMAND down[LINE(n)]!n, GRANT, enters[n], 0
    :: else
    fi;
    enters[n] = 0; n++
  :: n < N && enters[n] == 0 -> n++
  :: n == N -> break
  od;
  entered = 0; taken = 0; gone = N; n = 0
}

/* PROMISE counts: the field `shared` is the sum of the others. */
inline counts_agree() {
  n = 0;
  do
  :: n < N -> if :: share[n].ends > 0 -> leases_end[share[n].ends] = leases_end[share[n].ends] - 1 :: else fi; n++
  :: else -> break
  od;
  n = 0; do :: n <= LEASE + CLAIM -> assert(leases_end[n] == 0); n++ :: else -> break od;
  n = 0;
  do
  :: n < N -> if :: share[n].ends > 0 -> leases_end[share[n].ends] = leases_end[share[n].ends] + 1 :: else fi; n++
  :: else -> break
  od;
  n = 0
}

inline drop_shares() {
  n = 0; do :: n < N -> share[n].token = 0; share[n].ends = 0; share[n].count = 0; n++ :: else -> break od;
  n = 0; do :: n <= LEASE + CLAIM -> leases_end[n] = 0; n++ :: else -> break od;
  n = 0; shared = 0
}

/* Confirms, renews, changes the hold count; or an acquire has come before, or finds a claim. */
inline goes_on() {
  if :: queue??[eval(i)] -> forget(i) :: else fi; /* whoever let it in was stopped before */
  may_enter = alone || kind & IF_HELD && own_count == 0; /* others may enter, too */
  if :: kind & IF_HELD && own_count == 0 || till < lease(i) -> rest = lease(i) :: else -> rest = till fi;
  if :: kind & IF_HELD -> own_count = (kind & TWICE -> 2 : 1) :: else fi;
  take_out(); till = rest; rest = 0; name_limit(i, till); holders++; enters[i] = its; /* [limit-lasts] */
  if :: alone -> write() :: else fi; /* alone, only the notes say its token: before others get theirs */
  if :: may_enter -> let_in() :: else fi;
  write();
  what = YES; value = its
}

/* Nobody shares the lock now: it is free, and handed over as by lock.lua. */
inline hand_over_free() {
  COMMAND drop_lock(); drop_shares(); /* as in end_hold() */
  asker = (begins -> i : N);
  hand_over(asker);
  assert(heir < N || !begins); /* who may take a free lock has entered before */
  asker = 0;
  if :: leaves && heir == N -> COMMAND released = ended :: else fi
}

#define may_end(n) (leases_end[n] > 0 || OTHER && (in_use[0] == n && binds(0) || in_use[1] == n && binds(1)))

/* It queues. The first in line asks when the TTL, or the first of what fills the lock, has ended. */
inline place_share() {
  if :: !queue??[eval(i)] -> COMMAND note[i] = 0; COMMAND queue!i :: else fi;
  COMMAND note[i] = WAITER;
  value = NEVER;
  if :: queue?[eval(i)] && ttl > 0 -> value = ttl :: else fi;
  n = 1;
  do
  :: value < NEVER && full(i) && n <= LEASE + CLAIM && !may_end(n) -> n++
  :: value < NEVER && full(i) && n <= LEASE + CLAIM && may_end(n) -> value = n; n = LEASE + CLAIM + 1
  :: else -> break
  od;
  n = 0;
  has_place()
}

/* The first acquire, or a release, or a leave. */
inline enter_or_leave() {
  leaves = lives && (begins || kind == LEAVE || its == tok); /* an acquire gives up what was held before [names-share] */
  if :: leaves -> ended = its; take_out() :: else fi;
  if :: begins && tok > base -> base = tok :: else fi;
  if :: kind == LEAVE && (queue??[eval(i)] || !leaves) -> forget(i) :: else fi;
  may_enter = ttl == 0 || shared || leaves; /* else somebody has it alone [none-beside-exclusive] */
  asks = begins;
  if :: may_enter -> let_in() :: else fi;
  asks = 0;
  if
  :: enters[i] > 0 -> what = YES; value = enters[i]
  :: else -> what = NO
  fi;
  if
  :: entered > 0 || shared && holders > 0 -> if :: entered > 0 || leaves -> write() :: else fi
  :: !(entered > 0 || shared && holders > 0) && may_enter -> hand_over_free()
  :: else
  fi;
  if
  :: !begins -> what = (leaves || kind == RELEASE && ended == tok -> YES : NO)
  :: begins && what == NO && kind == ACQUIRE -> place_share()
  :: else
  fi
}

inline end_of_share() {
  counts_agree();
  its = 0; till = 0; own_count = 0; holders = 0;
  lives = 0; begins = 0; leaves = 0; taken = 0; alone = 0; gone = 0; may_enter = 0; barred = 0
}

#ifdef DOWNGRADES
#include "heir.pml"
#else
inline downgrade() { skip }
inline downgrade_tick() { skip }
#endif

inline script_of_shares() {
  read_share();
  if
  :: lives && (kind & IF_HELD && its == tok || begins && is_new(its)) -> goes_on()
  :: !lives && kind & IF_HELD || lives && kind & IF_HELD && its != tok -> what = GONE
  :: else -> enter_or_leave()
  fi;
  end_of_share()
}

#define script() any_script()
inline any_script() {
  value = 0; heir = N; former = N; base = token; ended = released; BEGINS
  if :: kind != RELEASE && age > RESPONSE -> what = VOID; goto answer :: else fi;
  if :: voids > 0 && alive && kind != RELEASE -> voids--; if :: what = VOID :: what = FAILED fi; goto answer :: true fi;
  if :: kind == ACQUIRE || kind == TRY -> comes() :: else fi;
  assert(alive || kind != LEAVE || !(placed & (1 << i))); /* PROMISE late: as in lock.pml */
  if :: alive && kind == LEAVE -> wait_ends() :: else fi;
  if
  :: kind == DOWNGRADE -> downgrade()
  :: shares(i) && kind != DOWNGRADE -> script_of_shares()
  :: !shares(i) && (kind == ACQUIRE || kind == TRY) -> acquire()
  :: !shares(i) && kind & IF_HELD -> if_held()
  :: else -> end_hold()
  fi
}

#define server_tick() shares_tick()
inline shares_tick() {
  later(ttl); later(in_use[0]); later(in_use[1]);
  n = 1; do :: n <= LEASE + CLAIM -> leases_end[n - 1] = leases_end[n]; n++ :: else -> break od;
  leases_end[0] = 0; n = 0;
  do
  :: n < N -> later(share[n].ends); if :: share[n].ends == 0 -> share[n].token = 0; share[n].count = 0 :: else fi; n++
  :: else -> break
  od;
  n = 0;
  if :: ttl == 0 -> drop_lock(); drop_shares() :: else fi;
  downgrade_tick()
}

/* What the promises ask the server. */
#define has_share(i)  (shares(i) && shared && share[i].ends > 0 && ttl >= share[i].ends)
#undef covers
#define covers(i)     (has_share(i) && share[i].token == handle[i].token && share[i].ends >= handle[i].ends || \
                       !shared && held(i) && token == handle[i].token && ttl >= handle[i].ends)
#undef has_any
#define has_any(i)    (held(i) && !(STOPS && count[i] == 0) || share[i].ends > 0 && !(STOPS && share[i].count == 0) || \
                       queue??[eval(i)])
#undef miscounted
#define miscounted(i) (held(i) && count[i] != handle[i].holds || has_share(i) && share[i].count != handle[i].holds)
/* As many as the smallest limit says of those who believe. */
#undef most_hold
#define most_hold     (OTHER && believes(N - 1) && !(LIMIT && LIMIT < OTHER) -> OTHER : (LIMIT -> LIMIT : N))
/* PROMISE tokens: that of a hold of somebody alone is larger than all before, and smaller than all behind. */
#define tokens_rise() tokens_of_shares_rise()
inline tokens_of_shares_rise() {
  assert(ANY_ORDER || me.token > newest && (shares(i) || me.token > newest_share));
  if
  :: !shares(i) -> newest = me.token
  :: shares(i) && me.token > newest_share -> newest_share = me.token
  :: else
  fi
}
#include "handle.pml"
