/* SPDX-License-Identifier: Apache-2.0
 * Waiters of Redisson's RFairLock in the same queue: the last REDISSONS of the N. hand_over.lua, for waiters
 * without a readable note, and what Redisson's own scripts do (tests/sim/redisson.c).
 *
 * Such a waiter queues, and listens up to a tick later. It takes the lock itself, and only from the head of the queue. So a
 * script that finds the lock free wakes it by a "0", and waits for it: 5 s, REDISSON ticks. It knows
 * nothing of notes and tokens. It may hang, while it seems to listen, or die, or give up.
 *
 * Its requests are never repeated, and it does nothing between one and its answer; so one that is under way is
 * one that it has not sent yet, and a step here is a request with its answer. Its hold has a lease that it does
 * not renew: a renewal is a longer lease.
 *
 * A score is counted in chains (300 s): how often Redisson may still subtract one before the waiter counts as
 * dead; 0: it does. Of a waiter of Redisson, `due` is when the score less a chain has passed: that is what it is
 * told, and it asks then; if it has passed already, Redisson never looks again. `woken` and `suspect` name a
 * score, and count only with that one: here they are forgotten when it changes.
 *
 *   REDISSONS, R_ACQUIRES, REDISSON   how many; how often each acquires; after how long one counts as gone
 *   HANGS, GIVES_UP                   how often one stands still, for any time; how often one gives up its wait
 *   DEAF                              begins with a waiter of ours whose connection has just broken, and a free lock
 *
 * Who was told more than a chain (asks_in: NONE) asks when nothing else is left to happen (chains_pass()). One
 * that was the first behind another one of Redisson, which died while it held, may never ask: that is Redisson's.
 *
 * Left out: 300 s that pass while others act (a run is shorter), so scores that heartbeats raise each 100 s; a clock
 * of Redisson that is wrong, or a limit of tryLock(), by more than a chain (JAVA.md); the same score twice, to the
 * millisecond, and with it `woken` that goes when a client has acquired, its 15 s, and that it counts for the head
 * only; waiters that share; several threads of one process, which are several waiters to the scripts.
 */
#ifndef REDISSONS
#define REDISSONS 1
#endif
#ifndef R_ACQUIRES
#define R_ACQUIRES 1
#endif
#ifndef REDISSON
#define REDISSON 3
#endif
#ifndef HANGS
#define HANGS 0
#endif
#ifndef GIVES_UP
#define GIVES_UP 0
#endif
#ifndef DEAF
#define DEAF 0
#endif
#include "hooks.pml"
#define OURS (N - REDISSONS)

byte score[N] = 98;   /* in chains; NONE: not in the queue */
byte due[N] = 99;
byte asks_in[N] = 99; /* when the waiter asks next, or listens at the latest */
byte suspect[N] = 98; /* how long ago it was first found not listening; NONE: it was not */
byte woken = N, since; /* who was woken last, and how long ago first */
byte idle;            /* for how long the lock has been free, while somebody waits who keeps the rules */
bit theirs;           /* the last hold was that of one of several of Redisson */
byte hangs = HANGS, gives_up = GIVES_UP;

#define due_now(i)    (asks_in[i] == 0 && handle[i].phase == QUEUEING)
#undef also_due
#define also_due(i)   ((i) >= OURS && due_now(i))
#undef also_done
#define also_done()   scores()
#undef also_ticks
#define also_ticks()  redisson_ticks()
#undef thrown
#define thrown        !only_chains
#undef run_client
#define run_client(i) if :: i < OURS -> begins_deaf(); run client(i) :: else -> handle[i].acquires = R_ACQUIRES; run redisson(i) fi
#undef on_message
#define on_message()  if :: value == 0 && me.phase == FREE :: else -> message() fi /* a "0" */
#undef awaits
#define awaits(i)     (handle[i].phase == QUEUEING && !frozen[i] && !((i) >= OURS && theirs && ttl == 0))
#undef look
#define look(caller)  look_at_all(caller)

/* Nothing is left to happen, but that a waiter of Redisson asks that was told more than a chain: that passes at once. */
#define sleeps(k)     ((k) >= OURS && handle[k].phase == QUEUEING && asks_in[k] == NONE && !frozen[k])
#define rests(k)      (sleeps(k) || handle[k].phase == FREE || handle[k].phase == CRASHED || (k) >= OURS && frozen[k])
#define silent(k)     (len(up[k]) + len(down[k]) == 0)
#define only_chains   (ttl == 0 && each(sleeps, ||) && each(rests, &&) && each(silent, &&))

#include "world.pml"
byte place, pending, ahead, pushed, past;

/* What was noted of the former score does not count any more. [note-of-this-score] */
inline other_score(x) {
  suspect[x] = NONE;
  if :: woken == x -> woken = N; since = 0 :: else fi
}

/* The first of ours begins as a waiter whose connection has just broken, and the lock is free. */
inline begins_deaf() {
  if
  :: DEAF && i == 0 ->
    queue!i; note[i] = WAITER; score[i] = 1; placed = 1;
    me.acquires--; me.phase = QUEUEING; me.queued = 1; me.in_doubt = ACQUIRE; me.sends = 0
  :: else
  fi
}

inline is_gone(x) { score[x] = NONE; other_score(x); if :: x >= OURS -> due[x] = NEVER :: else fi }

/* The lock is free: who gets it. heir: N: whoever asks may have it; more than N: nobody, yet. */
inline look_at_all(caller) {
  heir = N; found = 0; place = 0; pending = 0; ahead = 0; pushed = N; n = len(queue);
  do
  :: n == 0 -> break
  :: else -> n--; queue?w;
    if
    :: found || w == caller -> found = 1; queue!w
    :: !found && w != caller && w >= OURS -> look_at_redisson()
    :: !found && w != caller && w < OURS && note[w] == 0 -> note[w] = NONE; is_gone(w)
    :: !found && w != caller && w < OURS && note[w] > 0 ->
      assert(note[w] != NONE); /* PROMISE order: no place of ours is without a note */
      queue!w;
      if
      :: pending -> heir = N + 1; found = 1 /* [waits-for-suspect] */
      :: !pending && listens[w] -> heir = w; found = 1
      :: else -> ahead = ahead | (1 << w); place++
      fi
    fi
  od;
  if :: heir == N && pending -> heir = N + 1 :: else fi;
  if :: pushed < N && place > 0 -> to_head() :: else fi;
  found = 0; w = 0; place = 0; pending = 0; ahead = 0; pushed = 0
}

inline look_at_redisson() {
  if
  :: pending && listens[w] -> heir = N + 1; found = 1; queue!w /* not before the one who is waited for */
  :: else ->
    past = 0;
    if
    :: place == 0 && woken == w && since <= 3 * REDISSON -> past = since /* its wake counts */
    :: else ->
      if
      :: listens[w] -> woken = w; since = 0
      :: !listens[w] && suspect[w] == NONE -> suspect[w] = 0 /* it may listen soon [suspect-first] */
      :: else -> past = suspect[w]
      fi
    fi;
    if
    :: past >= REDISSON /* [gone-after] */ || !listens[w] && score[w] == 0 ->
      assert(!((in_line >> w) & 1)); /* PROMISE redisson: none that is alive is removed */
      is_gone(w)
    :: else ->
      queue!w;
      if
      :: listens[w] -> suspect[w] = NONE; pushed = w; heir = N + 1; found = 1;
        if :: listens[w] == 2 -> asks_in[w] = 0 :: else fi /* the "0" [woken] */
      :: else -> pending = 1; ahead = ahead | (1 << w); place++
      fi
    fi;
    past = 0
  fi
}

/* It takes the lock only from there [to-head]. Those that it passes get the chain that it will subtract [chain-given]. */
inline to_head() {
  n = 0; do :: n < OURS -> if :: ahead & (1 << n) -> score[n]++ :: else fi; n++ :: else -> break od;
  queue??eval(pushed); queue!pushed;
  n = len(queue) - 1;
  do :: n > 0 -> n--; queue?w; queue!w :: else -> break od
}

/* After a script of ours: scores of who has come and gone, and of the first in line. */
inline scores() {
  idle = (ttl > 0 -> 0 : idle);
  n = 0;
  do
  :: n < OURS ->
    if
    :: !queue??[eval(n)] -> score[n] = NONE
    :: queue??[eval(n)] && score[n] == NONE -> score[n] = len(queue)
    :: else
    fi;
    if :: count[n] != NONE -> theirs = 0 :: else fi;
    n++
  :: else -> break
  od;
  n = 0;
  if /* by which Redisson asks, or never does [first-asks] */
  :: len(queue) > 0 && (heir < N || what == YES && kind & (ACQUIRE | TRY | IF_HELD)) ->
    queue?<w>; score[w] = 1; other_score(w);
    if :: w >= OURS -> due[w] = ttl :: else fi;
    w = 0
  :: else
  fi
}

/*
 * One of ours that keeps the rules gets a free lock soon. (A waiter of Redisson may have to wait for 300 s behind a
 * waiter of ours that has died, if no client of ours asks: it sleeps for as long as it was told.)
 */
#define BOUND (REDISSONS * 2 * REDISSON + BEAT + RESPONSE)
#define keeps(x) (ttl == 0 && (x) >= OURS && ((in_line >> (x)) & 1))
inline redisson_ticks() {
  found = (in_line & ((1 << OURS) - 1) -> 1 : 0);
  i = OURS;
  do
  :: i < N -> later(due[i]); later(asks_in[i]);
    if :: suspect[i] < REDISSON -> suspect[i]++ :: else fi;
    i++
  :: else -> break
  od;
  if :: woken < N && since <= 3 * REDISSON -> since++ :: else fi;
  w = 0; if :: len(queue) > 0 -> queue?<w> :: else fi;
  assert(!(keeps(woken) && since == 1 || keeps(w) && asks_in[w] == NEVER && !theirs)); /* PROMISE taken: by who was woken, at once; by the first, after the lease of ours */
  w = 0;
  idle = (found && ttl == 0 -> idle + 1 : 0);
  assert(idle <= BOUND); /* PROMISE bounded: a free lock is taken soon */
  found = 0
}

#include "handle.pml"

/* Redisson's scripts. Heads that count as dead go first. */
inline evict() {
  found = 1;
  do
  :: found && len(queue) > 0 -> queue?<w>;
    if
    :: score[w] == 0 ->
      assert(!((in_line >> w) & 1) && (w >= OURS || note[w] == 0)); /* PROMISE evicted: Redisson removes nobody who is alive */
      queue?w; is_gone(w)
    :: else -> found = 0
    fi
  :: else -> break
  od;
  found = 0; w = 0
}

/* Those behind get a chain less. */
inline subtract() {
  n = len(queue); found = 0;
  do
  :: n > 0 -> n--; queue?w; queue!w;
    if :: found && score[w] > 0 -> score[w]--; other_score(w) :: else fi;
    if :: w == i -> found = 1 :: else fi
  :: else -> break
  od;
  if :: found -> queue??eval(i); is_gone(i) :: else fi;
  found = 0; w = 0
}

inline out_of_line() { breaks_rules(i); before[i] = 0; asks_in[i] = NEVER }

inline takes() {
  assert(!overtakes(i)); /* PROMISE order: nor is one of ours overtaken */
  subtract(); out_of_line();
  count[i] = 1; ttl = LEASE; idle = 0; theirs = REDISSONS > 1;
  me.phase = HELD; me.ends = LEASE; me.token = token; listens[i] = 0
}

inline queues() {
  n = len(queue); w = N; do :: n > 0 -> n--; queue?w; queue!w :: else -> break od;
  score[i] = (w == N -> 1 : score[w] + 1);
  due[i] = (w == N -> ttl : (w < OURS -> 0 : due[w]));
  queue!i;
  n = 0; do :: n < N -> before[n] = before[n] & ~(1 << i); n++ :: else -> break od;
  before[i] = in_line & ~(1 << i); in_line = in_line | (1 << i);
  n = 0; w = 0
}

inline asks() {
  evict();
  w = N; if :: len(queue) > 0 -> queue?<w> :: else fi;
  if
  :: ttl == 0 && (w == N || w == i) -> takes()
  :: else ->
    if :: !queue??[eval(i)] -> queues() :: else fi;
    asks_in[i] = (listens[i] < 2 -> 1 : (score[i] > 1 -> NONE : (due[i] > 0 -> due[i] : NEVER)))
  fi;
  w = 0
}

inline gives_back() {
  evict();
  if :: held(i) -> drop_lock() :: else fi;
  if
  :: ttl == 0 && len(queue) > 0 -> queue?<w>;
    if
    :: w < OURS && listens[w] == 2 -> down[LINE(w)]!w, GRANT, 0, 0
    :: w >= OURS && listens[w] == 2 -> asks_in[w] = 0
    :: else
    fi
  :: else
  fi;
  me.phase = FREE; me.ends = NEVER; me.token = 0; w = 0
}

/* Who does not wait any more is dead by then, for Redisson too. */
inline chains_pass() {
  n = 0;
  do
  :: n < N -> note[n] = (note[n] == NONE -> NONE : 0);
    if :: sleeps(n) -> asks_in[n] = 0 :: !sleeps(n) && score[n] < NONE -> score[n] = 0; other_score(n) :: else fi;
    do :: nempty(late[n]) -> late[n]?who, kind, tok, age :: empty(late[n]) -> break od;
    n++
  :: else -> break
  od;
  n = 0; who = 0; kind = 0; tok = 0; age = 0
}

proctype redisson(byte i)
{
  do
  :: atomic { me.phase == FREE && me.acquires > 0 && !frozen[i] -> me.acquires--; me.phase = QUEUEING; asks() }
  :: atomic { me.phase == QUEUEING && listens[i] < 2 && !frozen[i] -> listens[i] = 2; asks_in[i] = 0 }
  :: atomic { due_now(i) && listens[i] == 2 && !frozen[i] -> asks() }
  :: atomic { only_chains -> chains_pass() }
  :: atomic { me.phase == QUEUEING && gives_up > 0 && !frozen[i] -> gives_up--;
      subtract(); out_of_line(); me.phase = FREE; listens[i] = 0 }
  :: atomic { me.phase == HELD && !frozen[i] && each_line(has_room, &&) -> gives_back() }

  :: atomic { me.phase != FREE && me.phase != CRASHED && crashes > 0 -> crashes--;
      out_of_line(); me.phase = CRASHED; me.ends = NEVER; me.acquires = 0;
      if :: listens[i] == 2 -> listens[i] = 1 :: else fi }
  :: atomic { me.phase == QUEUEING && !frozen[i] && hangs > 0 -> hangs--; frozen[i] = 1; breaks_rules(i) }
  :: atomic { frozen[i] -> frozen[i] = 0 }
  od
}
