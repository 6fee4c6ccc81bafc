/*
 * The protocol of the fair lock, for three clients, checked in all its interleavings.
 *
 * Modelled are the two scripts, each a single step of the server; for each client the phases of lock/handle.c
 * with their flags, one handle per client, with up to two unanswered requests of a phase (the library has three);
 * connections that carry requests, answers and messages in order, that break, and that leave a request behind which
 * arrives late; a server that notices a dead connection late.
 *
 * Not modelled are re-entry, partial release, try without waiting, force-release, Redisson's clients, scripts that
 * fail, and a server that restarts. Time is not counted, only ordered: an event of time may come at any moment that
 * these rules allow.
 *
 *   clocks   a hold expires on the server only when nobody believes in it any more: what the drift margin is for
 *   void     the server refuses a late request before the client that sent it takes it to be void
 *   timeout  a waiter that is connected sends its heartbeat in time; one that is not, or that died, may lapse
 *   lease    a lease is longer than the time after which a request is void; a shorter one may leave a hold behind, for
 *            as long as itself
 *
 * Each run has a budget of faults, given by these definitions (README.md says which runs there are):
 *
 *   CRASH       client 2 dies. The clients are alike, so it does not matter which
 *   LOSE_REPLY  a connection breaks, and what was under way on it is lost
 *   LATE        a connection breaks, and the first request under way on it arrives late, or never
 *   CANCEL      a wait is given up
 *   EXTRA       acquisitions beyond the first of each client
 *   LOSE_HOLD   a client's clock ends its hold before its release
 *   SLOW        something takes longer than the rules allow: a hold expires before its holder has learned of it or its
 *               release has arrived, or a waiter that is cut off lapses
 *   HURRY       a heartbeat at any moment. Without it they come when nothing else happens
 *
 * What is claimed stands in believe(), check_order(), time() and monitor(). BUG_... plants a bug: each has to be found.
 *
 * A note in brackets, [file: text], says what a step stands for: the text stands in that file. A test looks for it.
 */

#define N      3
#define NOBODY 3

#ifndef CRASH
#define CRASH 0
#endif
#ifndef LOSE_REPLY
#define LOSE_REPLY 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef CANCEL
#define CANCEL 0
#endif
#ifndef EXTRA
#define EXTRA 0
#endif
#ifndef LOSE_HOLD
#define LOSE_HOLD 0
#endif
#ifndef SLOW
#define SLOW 0
#endif
#ifndef HURRY
#define HURRY 0
#endif

/* Requests [lock/internal.h: enum kind {]. SUB is the SUBSCRIBE before an acquire [lock/request.c: "SSUBSCRIBE"]. */
mtype:request = { SUB, ACQ, KEEP, REL, LEAVE };

/* [lock/internal.h: enum phase {]. TRYING, REENTERING, RELEASE_ONE, REMOVING and those who ask are not modelled. */
mtype:state = { FREE, QUEUEING, HELD, RELEASING, LEAVING, LOST, DEAD };

/* What comes back: an answer, {1, token} or {0 or -1, 0}, or a grant that is pushed. */
mtype:reply = { YES, NO, GRANT };

/* Bits of flight and doubt [lock/internal.h: Kinds of requests: bits]. */
#define F_ACQ   1
#define F_KEEP  2
#define F_REL   4
#define F_LEAVE 8

chan to_server[N] = [5] of { mtype:request, byte };
chan to_client[N] = [5] of { mtype:reply, byte };

/* The late request: one, of whom. */
mtype:request late;
byte late_token;
byte late_of = NOBODY;

/* The server's keys [lock/scripts/common.lua: -- KEYS  1 lock, a hash]. */
byte holder = NOBODY; /* <name>: its only field */
bool claim;           /* ... and that is 0 [lock/scripts/common.lua: Count 0: one of our waiters] */
byte token;           /* [lock/scripts/common.lua: token      the last fencing token] */
byte released;        /* [lock/scripts/common.lua: released   the token of the last hold that was released] */
byte queue[N];        /* redisson_lock_queue:{<name>} */
byte queued;          /* its length */
bool alive[N];        /* [lock/scripts/common.lua: one of our waiters: when it was heard last, s and us, and its waiter timeout, ms] and that is in the future */
bool listens[N];      /* it is subscribed on the client's connection ... */
bool echo[N];         /* ... or on a dead one that the server takes to be alive */

/* The clients [lock/engine.h: struct fairlock {]. */
mtype:state state[N];
byte hold_token[N];   /* token: of the hold, or of one given up unreleased */
byte out[N];          /* answers under way on this connection */
byte mine[N];         /* how many of them, the last ones, are to requests of this phase: unanswered */
byte flight[N];       /* in_flight */
byte doubt[N];        /* in_doubt */
bool gone[N];         /* [lock/internal.h: static inline bool doubt_over(] when it is connected */
bool clean[N];        /* [lock/handle.c: static bool settled(] of the newest request, if an acquire is in doubt */
bool up[N];           /* engine.stage == UP */
bool subscribed[N];   /* SUBSCRIBED */
byte subscribing[N];  /* SUBSCRIBING: answers until it is confirmed, together with that to the acquire after it */
bool owed[N];         /* QUEUED or OWED: the server may have something of it */
bool ready[N];        /* it stands in the list READY */
bool busy[N];         /* result == FAIRLOCK_PENDING */
bool cancelled[N];    /* leave_result < 0 */
bool first[N];        /* has not acquired yet */

/* What each may still do. */
byte extra = EXTRA;
bool may_crash = CRASH;
bool may_lose_reply = LOSE_REPLY;
bool may_be_late = LATE;
bool may_cancel = CANCEL;
bool may_lose_hold = LOSE_HOLD;
bool may_be_slow = SLOW;
bool may_hurry = HURRY;

/* For the claims alone. */
byte newest;          /* the largest token anybody believed in */
byte expired;         /* holds that expired: a bit for each token */
byte before[N];       /* waiters that arrived before: a bit for each */
bool arrived[N];      /* the server has put it in line */
bool excused[N];      /* was slower than the rules allow: may lose its place */
bool freed;           /* the lock is free because it was released, not because a lease ran out */
byte quiet;           /* rounds of heartbeats that brought nothing */

hidden byte k, m, w, found;

#define is_queued(c) ((queued > 0 && queue[0] == c) || (queued > 1 && queue[1] == c) || (queued > 2 && queue[2] == c))
#define has_expired(t) ((expired >> (t)) & 1)
#define waits(c) (state[c] == QUEUEING)
#define ending(c) (state[c] == RELEASING || state[c] == LEAVING)

/* [lock/handle.c: static bool nothing_there(] */
#define nothing_there(c) (!owed[c] && !((flight[c] | doubt[c]) & F_ACQ))

/* [lock/handle.c: bool fairlock_held_back(] */
#ifdef BUG_GHOST_LEAVE
#define held_back(c) 0
#else
#define held_back(c) (waits(c) && (doubt[c] & F_LEAVE) && !gone[c])
#endif

/* Claims */

/* Guarantee 1, one holder, and 7, rising tokens: client c begins to believe in token t. */
inline believe(c, t)
{
  state[c] = HELD;
  mine[c] = 0;
  hold_token[c] = t;
  assert(state[0] != HELD || c == 0);
  assert(state[1] != HELD || c == 1);
  assert(state[2] != HELD || c == 2);
  assert(t > newest);
  newest = t;
  quiet = 0
}

/* The place of c in line is given up, or has led to a grant: nobody is behind it any more. */
inline end_wait(c)
{
  before[0] = before[0] & ~(1 << c);
  before[1] = before[1] & ~(1 << c);
  before[2] = before[2] & ~(1 << c);
  before[c] = 0;
  arrived[c] = 0;
  excused[c] = 0;
  quiet = 0
}

/* The server sees for the first time that c wants the lock. */
inline arrive(c)
{
  if
  :: !arrived[c] ->
    before[c] = arrived[0] | (arrived[1] << 1) | (arrived[2] << 2);
    arrived[c] = 1
  :: else
  fi
}

#define overtaken(j, c) ((before[c] >> j) & 1 && waits(j) && up[j] && listens[j] && !excused[j] && holder != j)

/* Guarantee 2, first come, first served: c is granted the lock while nobody waits who came before and listens. */
inline check_order(c)
{
  assert(!overtaken(0, c));
  assert(!overtaken(1, c));
  assert(!overtaken(2, c))
}

/* The scripts. Each runs in one step. */

/* [lock/scripts/hand_over.lua: local function forget(waiter, note)] */
inline forget(c)
{
  found = 0;
  for (k : 0 .. N - 1) {
    if
    :: k < queued && queue[k] == c -> found = 1
    :: else
    fi;
    if
    :: found && k + 1 < N -> queue[k] = queue[k + 1]
    :: else
    fi
  }
  queued = queued - found;
  if
  :: queued < N -> queue[queued] = 0
  :: else
  fi;
  alive[c] = 0
}

/* [lock/scripts/common.lua: local function grant(owner, lease, holds)] handed: by a script of somebody else. */
inline own(c, handed)
{
  check_order(c);
  end_wait(c);
  token++;
  assert(token < 8);
  holder = c;
  claim = handed;
  freed = 0;
  forget(c)
}

/*
 * [lock/scripts/hand_over.lua: local function hand_over(caller)] Without Redisson's waiters `pending` is never true.
 * may_take: the caller may have the lock.
 */
inline hand_over(caller, may_take)
{
  may_take = 1;
  m = 0;
  do
  :: m >= queued || queue[m] == caller -> break /* [lock/scripts/hand_over.lua: if not waiter or waiter == caller then] */
  :: else ->
    w = queue[m];
    if
#ifndef BUG_NO_SKIP
    /* [lock/scripts/hand_over.lua: if not patience or heard_s * 1000 + heard_us / 1000 + patience <= now then] */
    :: !alive[w] -> forget(w); end_wait(w)
#endif
    /* [lock/scripts/hand_over.lua: elseif listens then] */
    :: alive[w] && (listens[w] || echo[w]) ->
      own(w, 1); /* [lock/scripts/hand_over.lua: local token = grant(waiter, patience, '0')] */
      if
      :: listens[w] && up[w] -> to_client[w]!GRANT(token)
      :: else
      fi;
      may_take = 0;
      break
#ifdef BUG_NO_SKIP
    :: else -> may_take = 0; break
#else
    :: else -> m++ /* [lock/scripts/hand_over.lua: place = place + 1] */
#endif
    fi
  od;
  w = 0;
  m = 0
}

hidden byte may_have;

/*
 * acquire.lua in a mode > 0 (ACQ), and in mode -1 (KEEP), with the token t. answer: 0 for a late request,
 * whose connection is gone.
 */
inline acquire(c, t, queueing, answer)
{
  if
  /* [lock/scripts/acquire.lua: if not keeps and not (before > earlier and before < 2 ^ 53) then] */
  :: holder == c && t == token && queueing ->
    released = token;
    holder = NOBODY;
    freed = 1
  :: else
  fi;
  if
  /* [lock/scripts/acquire.lua: elseif token == last or not keeps then] */
  :: holder == c && (t == token || queueing) ->
    claim = claim && queueing; /* [lock/scripts/acquire.lua: local confirms = count == '0' and keeps] */
    if
    :: answer -> to_client[c]!YES(token)
    :: else
    fi
  /* [lock/scripts/acquire.lua: if keeps then return {-1, 0, now} end] */
  :: !(holder == c && (t == token || queueing)) && !queueing ->
    if
    :: answer -> to_client[c]!NO(0)
    :: else
    fi
  :: else ->
    arrive(c);
    may_have = 0;
#ifdef BUG_NO_POLL
#define asks(c) (!is_queued(c))
#else
#define asks(c) true
#endif
    if /* [lock/scripts/acquire.lua: if hand_over(id) == true then] */
    :: holder == NOBODY && asks(c) -> hand_over(c, may_have)
    :: else
    fi;
    if
    :: may_have -> /* [lock/scripts/acquire.lua: local token = grant(id, lease, '1')] */
      own(c, 0);
      if
      :: answer -> to_client[c]!YES(token)
      :: else
      fi
    :: else ->
      alive[c] = 1; /* [lock/scripts/acquire.lua: call('hset', meta, id, time[1]] */
      if
      /* [lock/scripts/acquire.lua: local place = call('rpush', queue, id)] */
      :: !is_queued(c) -> queue[queued] = c; queued++
      :: else
      fi;
      if
      :: answer -> to_client[c]!NO(0)
      :: else
      fi
    fi;
    may_have = 0
  fi
}

/* [lock/scripts/release.lua: local held = count and (token == '' or token == last)] */
#ifdef BUG_TOKEN
#define names_hold(c, t) (holder == c)
#else
#define names_hold(c, t) (holder == c && (t == 0 || t == token))
#endif

hidden byte ended;

/* release.lua, mode 0: with the token of a hold (REL), or without one (LEAVE). */
inline release(c, t, answer)
{
  /* [lock/scripts/release.lua: local done = held or (token ~= '' and released == token)] */
  ended = names_hold(c, t) || (t != 0 && released == t);
  if
  :: names_hold(c, t) ->
    holder = NOBODY;
    released = token;
    freed = 1
  :: else ->
    if
    /* [lock/scripts/release.lua: if token == '' and mode == '0' and not held then forget(id, id) end] */
    :: t == 0 ->
      forget(c);
      if
      :: answer || !waits(c) || held_back(c) -> end_wait(c) /* else this ends a wait that it does not belong to */
      :: else
      fi
    :: else
    fi
  fi;
#ifndef BUG_NO_WAKE
  if /* [lock/scripts/release.lua: given = free and hand_over() == 'given'] */
  :: holder == NOBODY -> hand_over(NOBODY, may_have)
  :: else
  fi;
#endif
  if
  :: answer && ended -> to_client[c]!YES(0)
  :: answer && !ended -> to_client[c]!NO(0)
  :: else
  fi;
  ended = 0;
  may_have = 0
}

hidden mtype:request q;
hidden byte q_token;

inline execute(c, answer)
{
  if
  :: q == SUB -> listens[c] = 1
  :: q == ACQ -> acquire(c, q_token, 1, answer)
  :: q == KEEP -> acquire(c, q_token, 0, answer)
  :: q == REL || q == LEAVE -> release(c, q_token, answer)
  fi;
  q = 0;
  q_token = 0
}

proctype server()
{
  byte c;
end:
  do
  :: d_step { nempty(to_server[0]) -> to_server[0]?q(q_token); execute(0, up[0]) }
  :: d_step { nempty(to_server[1]) -> to_server[1]?q(q_token); execute(1, up[1]) }
  :: d_step { nempty(to_server[2]) -> to_server[2]?q(q_token); execute(2, up[2]) }
  /* A late request arrives. */
  :: d_step { late_of != NOBODY -> c = late_of; q = late; q_token = late_token; late = 0; late_token = 0;
              late_of = NOBODY; execute(c, 0); c = 0 }
  /* The server notices that a connection is dead. */
  :: d_step { echo[0] -> echo[0] = 0 }
  :: d_step { echo[1] -> echo[1] = 0 }
  :: d_step { echo[2] -> echo[2] = 0 }
  od
}

/* The clients. What is wanted is sent at once if it can be: to wait in the channel comes to the same. */

/* [lock/handle.c: void fairlock_freeze_request(] [lock/handle.c: uint8_t fairlock_kind(] */
inline send(c)
{
  if
  :: ready[c] && up[c] && !held_back(c) ->
    ready[c] = 0;
    if
    :: state[c] == QUEUEING ->
#ifdef BUG_SUBSCRIBE_LATE
      to_server[c]!ACQ(hold_token[c]);
#endif
      if
      :: !subscribed[c] && !subscribing[c] -> to_server[c]!SUB(0); subscribing[c] = out[c] + 1
      :: else
      fi;
#ifndef BUG_SUBSCRIBE_LATE
      to_server[c]!ACQ(hold_token[c]);
#endif
      flight[c] = flight[c] | F_ACQ
    :: state[c] == HELD -> to_server[c]!KEEP(hold_token[c]); flight[c] = flight[c] | F_KEEP
    :: state[c] == RELEASING -> to_server[c]!REL(hold_token[c]); flight[c] = flight[c] | F_REL
    :: state[c] == LEAVING -> to_server[c]!LEAVE(0); flight[c] = flight[c] | F_LEAVE
    fi;
    out[c]++;
    mine[c]++;
    clean[c] = gone[c] && ending(c) && (state[c] == LEAVING || !(doubt[c] & F_REL))
  :: else
  fi
}

/* [lock/engine.c: void fairlock_queue_send(struct fairlock *handle)] */
inline want(c)
{
  ready[c] = 1;
  send(c)
}

/* [lock/handle.c: void fairlock_on_broken(] Where the requests under way go is the business of the caller. */
inline broken(c)
{
  up[c] = 0;
  clean[c] = 0;
  echo[c] = echo[c] || listens[c];
  listens[c] = 0;
  do
  :: nempty(to_server[c]) -> to_server[c]?q(q_token)
  :: nempty(to_client[c]) -> to_client[c]?_(_)
  :: empty(to_server[c]) && empty(to_client[c]) -> break
  od;
  q = 0;
  q_token = 0;
  out[c] = 0;
  mine[c] = 0;
  doubt[c] = doubt[c] | (flight[c] & (F_ACQ | F_REL | F_LEAVE));
  gone[c] = (doubt[c] & (F_ACQ | F_LEAVE)) == 0;
  subscribed[c] = 0;
  subscribing[c] = 0;
  if
  :: state[c] == LEAVING -> busy[c] = 0; cancelled[c] = 0
  :: else
  fi;
  if
  :: waits(c) || (flight[c] != 0 && (state[c] == HELD || ending(c))) -> ready[c] = 1
  :: else
  fi;
  flight[c] = 0
}

/* The first request under way is to arrive late, if it may. */
inline take_late(c, may)
{
  if
  :: may && len(to_server[c]) > 0 ->
    may_be_late = 0;
    quiet = 0;
    to_server[c]?late(late_token);
    if
    :: late == SUB && len(to_server[c]) > 0 -> echo[c] = 1; to_server[c]?late(late_token)
    :: else
    fi;
    late_of = c
  :: else
  fi
}

/* [lock/handle.c: static void become_free(] */
inline become_free(c)
{
  state[c] = FREE;
  ready[c] = 0;
  mine[c] = 0;
  owed[c] = 0;
  quiet = 0;
#ifdef BUG_FORGET_LEAVE
  flight[c] = 0;
  doubt[c] = 0;
#else
  flight[c] = flight[c] & F_LEAVE; /* [lock/handle.c: handle->in_flight &= KIND_LEAVE; ] */
  doubt[c] = (gone[c] -> 0 : doubt[c] & F_LEAVE);
#endif
  gone[c] = (doubt[c] == 0);
  clean[c] = 0;
  busy[c] = 0;
  cancelled[c] = 0
}

/* [lock/handle.c: static void lose(] told: by the server; else a late renewal may have kept the hold alive there. */
inline lose(c, told)
{
  state[c] = LOST;
  mine[c] = 0;
  ready[c] = 0;
  owed[c] = !told;
  busy[c] = 0
}

/* [lock/handle.c: static void leave(] */
inline leave(c)
{
  if
#ifdef BUG_OWED
  :: !((flight[c] | doubt[c]) & F_ACQ) -> become_free(c)
  :: (flight[c] | doubt[c]) & F_ACQ ->
#else
  :: nothing_there(c) -> become_free(c)
  :: !nothing_there(c) ->
#endif
    state[c] = LEAVING;
    mine[c] = 0;
    cancelled[c] = busy[c] && up[c];
    busy[c] = cancelled[c];
    want(c)
  fi
}

/* [lock/handle.c: int fairlock_engine_acquire(] */
inline start_acquire(c)
{
  owed[c] = ending(c); /* [lock/handle.c: what it was leaving may still be there] */
  state[c] = QUEUEING;
  mine[c] = 0;
  busy[c] = 1;
  cancelled[c] = 0;
  want(c)
}

/* [lock/handle.c: int fairlock_engine_release(] */
inline start_release(c)
{
  state[c] = RELEASING;
  mine[c] = 0;
  doubt[c] = doubt[c] & ~F_REL;
  busy[c] = 1;
  want(c)
}

/* [lock/handle.c: static void hold(] What may have come by a handover has to be confirmed. */
inline hold(c, t)
{
  believe(c, t);
  busy[c] = 0;
  owed[c] = owed[c] || (doubt[c] & F_ACQ);
#ifndef BUG_NO_CONFIRM
  if
  :: owed[c] -> want(c)
  :: else
  fi
#endif
}

/* The clock shows what comes too late to be believed [lock/handle.c: reached(engine->now, lease_end(] */
#ifdef BUG_BELIEVE_LATE
#define too_late(t) 0
#else
#define too_late(t) has_expired(t)
#endif

/* [lock/handle.c: static void reply_waiting(] */
inline answer_waiting(c, type, t)
{
  if
  :: type == YES && too_late(t) -> want(c)
  :: type == YES && !too_late(t) -> hold(c, t)
  :: else -> owed[c] = 1
  fi
}

/* [lock/handle.c: static void reply_held(] */
inline answer_held(c, type, t)
{
  if
  :: type == YES && t == hold_token[c] -> owed[c] = 0
  :: else -> lose(c, 1)
  fi
}

/*
 * [lock/handle.c: static void reply_ending(] A late acquire may be carried out until it has expired, after the release
 * that this answers, too. Only what was sent after that settles it; and not a release that was sent before as well, as
 * that one may have done the work.
 */
#ifdef BUG_RELEASE_SETTLES
#define settles(c) gone[c]
#else
#define settles(c) clean[c]
#endif
inline answer_ending(c)
{
  if
#ifdef BUG_GHOST_ACQUIRE
  :: true -> become_free(c)
#else
  :: !(doubt[c] & F_ACQ) || settles(c) -> become_free(c)
#endif
  :: else ->
    busy[c] = 0;
    cancelled[c] = 0;
    state[c] = LEAVING;
    mine[c] = 0;
    if
    :: gone[c] -> want(c)
    :: else
    fi
  fi
}

#define kind(c) (waits(c) -> F_ACQ : (state[c] == HELD -> F_KEEP : (state[c] == RELEASING -> F_REL : F_LEAVE)))

hidden byte its;

/* [lock/handle.c: void fairlock_on_reply(] Those to requests of the phase count [lock/reply.c: next_answered(]. */
inline take_answer(c, type, t)
{
#ifdef BUG_PHASE
  its = state[c] != FREE && state[c] != LOST;
#else
  its = mine[c] > 0 && mine[c] == out[c];
#endif
  out[c]--;
  if
  :: subscribing[c] > 0 ->
    subscribing[c]--;
    subscribed[c] = subscribed[c] || subscribing[c] == 0
  :: else
  fi;
  if
  :: out[c] == 0 -> flight[c] = 0
  :: else
  fi;
  if
  :: its ->
    if
    :: mine[c] > 0 -> mine[c]--
    :: else
    fi;
    if
    :: mine[c] > 0 -> flight[c] = kind(c)
    :: else
    fi;
    if
    :: waits(c) -> answer_waiting(c, type, t)
    :: state[c] == HELD -> answer_held(c, type, t)
    :: ending(c) -> answer_ending(c)
    fi
  :: else
  fi;
  its = 0
}

/* [lock/handle.c: void fairlock_on_push(] [lock/handle.c: static void take_grant(] A leave under way may end this hold. */
#ifdef BUG_LEAVE_UNDER_WAY
#define in_doubt(c, t) too_late(t)
#else
#define in_doubt(c, t) (too_late(t) || (flight[c] & F_LEAVE))
#endif
inline take_push(c, t)
{
  if
  :: waits(c) && in_doubt(c, t) ->
    if
    :: mine[c] < 2 -> want(c)
    :: else
    fi
  :: waits(c) && !in_doubt(c, t) -> owed[c] = 1; hold(c, t)
  :: state[c] == FREE -> owed[c] = 1; leave(c)
  :: else
  fi
}

hidden mtype:reply r;
hidden byte r_token;

inline receive(c)
{
  to_client[c]?r(r_token);
  if
  :: r == GRANT -> take_push(c, r_token)
  :: else -> take_answer(c, r, r_token)
  fi;
  r = 0;
  r_token = 0
}

/* The clients are alike, but for the one that may crash: so they may as well begin in order. */
#define in_turn(c) (c == 0 || !first[c - 1] || (c == 2 && CRASH))
#define may_start(c) ((state[c] == FREE || (ending(c) && !busy[c])) && \
                      ((first[c] && in_turn(c)) || (!first[c] && extra > 0)))

/* Time and faults */

/* A hold expires when nobody believes in it. Before its holder learned of it only if that one is too slow. */
#ifdef BUG_MARGIN /* [lock/internal.h: static inline uint32_t margin(] */
#define believed 0
#else
#define believed (state[holder] == HELD && hold_token[holder] == token)
#endif
/* No acquire of c is under way or late: it is answered or void before a lease ends. */
#define acquiring(c) (to_server[c]??[ACQ(0)] || to_server[c]??[ACQ(1)] || to_server[c]??[ACQ(2)] || \
                      to_server[c]??[ACQ(3)] || to_server[c]??[ACQ(4)] || to_server[c]??[ACQ(5)] || \
                      to_server[c]??[ACQ(6)] || to_server[c]??[ACQ(7)])
#define settled(c) (!subscribing[c] && !(acquiring(c)) && late_of != c && (gone[c] || !(doubt[c] & F_ACQ)))

/* The holder has given the hold up, and is not about to say so. */
#define given_up (state[holder] == FREE || state[holder] == LOST || state[holder] == DEAD || \
                  (waits(holder) && hold_token[holder] == token))

inline expire()
{
  expired = expired | (1 << token);
  holder = NOBODY;
  freed = 0
}

/* The connection of c breaks. late_one: the first request under way is to come late; else all are lost. */
inline cut(c, late_one)
{
  take_late(c, late_one);
  broken(c);
  send(c)
}

inline crash(c)
{
  broken(c);
  state[c] = DEAD;
  hold_token[c] = 0;
  doubt[c] = 0;
  gone[c] = 1;
  ready[c] = 0;
  owed[c] = 0;
  cancelled[c] = 0;
  first[c] = 0;
  busy[c] = 0
}

/* From now on, late requests of c are void [lock/scripts/common.lua: then return {-2, 0, now} end], and c knows it. */
inline become_void(c)
{
#ifndef BUG_VOID
  if
  :: late_of == c -> late_of = NOBODY; late = 0; late_token = 0
  :: else
  fi;
#endif
  gone[c] = 1;
  if
  :: state[c] == LEAVING && !busy[c] && !ready[c] && mine[c] == 0 -> want(c)
  :: else -> send(c)
  fi
}

#define may_void(c) (!gone[c] || late_of == c)
#define may_lapse(c) (alive[c] && late_of != c && is_queued(c) && (state[c] == DEAD || state[c] == FREE))
#define may_lapse_slow(c) (may_be_slow && alive[c] && is_queued(c) && waits(c) && !up[c])

/* What has expired is in doubt no more [lock/handle.c: if (!ending(handle) && doubt_over(]. */
#define may_forget(c) (doubt[c] != 0 && gone[c] && up[c] && !ending(c))

/*
 * A waiter's heartbeat, whether or not the last one was answered
 * [lock/handle.c: if (due(engine->now, handle->timer)) fairlock_queue_send(handle);]
 */
#define may_beat(c) (waits(c) && up[c] && !ready[c] && mine[c] < 2)

proctype client(byte c)
{
end:
  do
  :: d_step { state[c] != DEAD && nempty(to_client[c]) -> receive(c) }
  :: d_step { may_start(c) ->
       if
       :: first[c] -> first[c] = 0
       :: else -> extra--
       fi;
       start_acquire(c) }
  :: d_step { state[c] == HELD -> start_release(c) }
  /* The caller of a lost hold releases it, and hears that it was lost. */
  :: d_step { state[c] == LOST -> leave(c) }
  /* A new connection [lock/engine.c: void fairlock_greeted(]. */
  :: d_step { !up[c] && ready[c] -> up[c] = 1; send(c) }
  /* Time. */
  :: d_step { may_void(c) -> become_void(c) }
  :: d_step { may_forget(c) -> owed[c] = owed[c] || (waits(c) && (doubt[c] & F_ACQ)); doubt[c] = 0 }
  :: d_step { may_lapse(c) -> alive[c] = 0 }
  :: d_step { may_lapse_slow(c) -> may_be_slow = 0; quiet = 0; excused[c] = 1; alive[c] = 0 }
  :: d_step { may_hurry && may_beat(c) -> may_hurry = 0; want(c) }
  /* The caller, and faults. */
  :: d_step { may_cancel && waits(c) -> may_cancel = 0; quiet = 0; leave(c) }
  :: d_step { may_lose_hold && state[c] == HELD && settled(c) -> may_lose_hold = 0; lose(c, 0) }
  :: d_step { may_lose_reply && up[c] -> may_lose_reply = 0; quiet = 0; cut(c, 0) }
  :: d_step { may_be_late && up[c] && nempty(to_server[c]) -> cut(c, 1) }
  :: d_step { may_crash && c == 2 -> may_crash = 0; quiet = 0; crash(c) }
  od
}

#define over(c) ((state[c] == FREE || state[c] == DEAD) && !first[c])
#define left_behind(c) (is_queued(c) && state[c] != DEAD)

inline beat(c)
{
  if
  :: may_beat(c) -> want(c)
  :: else
  fi
}

/* Nothing happens any more but heartbeats and, if there are any left, faults. */
#define rests(c) (empty(to_server[c]) && empty(to_client[c]) && !echo[c] && !may_void(c) && !may_lapse(c) && \
                  (up[c] || !ready[c]) && !first[c] && state[c] != HELD && state[c] != LOST)
#define calm (rests(0) && rests(1) && rests(2) && (holder == NOBODY || !given_up))

proctype time()
{
  do
  :: d_step { holder != NOBODY && !believed && given_up && settled(holder) -> expire() }
  :: d_step { holder != NOBODY && !believed && !given_up && may_be_slow && settled(holder) ->
              may_be_slow = 0; quiet = 0; excused[holder] = 1; expire() }
  /* All is quiet: heartbeats bring the queue on, the second round of them at the latest. */
  :: d_step { calm && !(over(0) && over(1) && over(2)) ->
              quiet++;
              assert(quiet <= 2);
              beat(0);
              beat(1);
              beat(2) }
  /* All is over: nothing is left behind. */
  :: d_step { calm && over(0) && over(1) && over(2) ->
              assert(holder == NOBODY);
              assert(!left_behind(0) && !left_behind(1) && !left_behind(2)) }
  od
}

#define idle(c) (may_beat(c) && listens[c] && is_queued(c) && alive[c] && empty(to_server[c]) && empty(to_client[c]))

/* A handover is confirmed as soon as its holder knows of it: else the lease is not the one that was asked for. */
#define unconfirmed(c) (state[c] == HELD && holder == c && hold_token[c] == token && claim && up[c] && !ready[c] && \
                        mine[c] == 0 && empty(to_server[c]) && empty(to_client[c]))

/* No lost wake-up: when a release frees the lock, no waiter that listens sleeps on. */
proctype monitor()
{
end:
  do
  :: d_step { holder == NOBODY && freed && (idle(0) || idle(1) || idle(2)) -> assert(false) }
  :: d_step { unconfirmed(0) || unconfirmed(1) || unconfirmed(2) -> assert(!claim) }
  od
}

init
{
  atomic {
    for (k : 0 .. N - 1) {
      state[k] = FREE;
      up[k] = 1;
      gone[k] = 1;
      first[k] = 1
    }
    k = 0;
    run server();
    run client(0);
    run client(1);
    run client(2);
    run time();
    run monitor()
  }
}
