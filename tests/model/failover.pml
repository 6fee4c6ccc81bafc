/*
 * A fail-over, for two clients and two servers, checked in all its interleavings.
 *
 * Modelled are the master, which carries out acquire, renewal and release, each in a single step; the replica, which
 * gets what they have changed later, in order; a fail-over at any moment, which loses what is under way to the
 * replica; and the old master, which dies or lives on for clients that still speak to it. The queue and late requests
 * are the business of fairlock.pml.
 *
 * Time is only ordered. Each renewal gives the hold a later lease, by number. A server may end a hold at any moment
 * unless its holder believes in a lease that this server knows of: so a renewal that the replica has not got does not
 * keep the hold there. That is what clocks that agree within the margin are for.
 *
 * ACK: a hold begins, and a lease is extended, only when the replica has acknowledged it
 * [lock/topology.c: Replicas. A script that may begin a hold, or extend one]. Without it one holder is not what is promised, and the violation
 * has to be found. SPLIT: the old master lives on. BUG_... plants a bug: each has to be found.
 *
 * A note in brackets, [file: text], says what a step stands for: the text stands in that file. A test looks for it.
 */

#define N      2
#define NOBODY 2

#ifndef ACK
#define ACK 0
#endif
#ifndef SPLIT
#define SPLIT 0
#endif

mtype:request = { ACQ, KEEP, REL };
mtype:state = { FREE, ASKING, SYNCING, HELD, RELEASING };

/* The servers: the lock's holder, its token and its lease; and the last token. */
byte holder[2] = NOBODY;
byte token[2];
byte lease[2];
byte master;
bool dead[2];
bool linked = 1;       /* the replica gets what the master writes */
byte written, applied; /* records */
chan records = [4] of { byte, byte, byte };

/* The clients. */
chan to_server[N] = [1] of { mtype:request, byte };
chan to_client[N] = [1] of { bool, byte, byte, byte };
mtype:state state[N];
byte at[N];         /* the server it speaks to */
bool believes[N];
byte hold_token[N];
byte hold_lease[N]; /* it believes in that one */
bool renewing[N];
byte needed[N];     /* SYNCING: what the replica has to acknowledge ... */
byte told_token[N], told_lease[N]; /* ... of this hold, and of this lease */
byte turns[N];      /* acquisitions left */
byte renewals = 1;  /* of client 0 */
bool may_fail = 1;

byte newest; /* the largest token anybody believed in */

/* The last lease of the hold of a client with a token that has ended, wherever: earlier ones are over, too. */
byte over[16];
#define too_late(c, t, l) (over[8 * (c) + (t)] >= (l))

/* One holder; and tokens rise. */
inline believe(c, t, l)
{
  assert(!believes[1 - c]);
#if ACK
  assert(believes[c] || t > newest);
#endif
  newest = t;
  believes[c] = 1;
  hold_token[c] = t;
  hold_lease[c] = l;
  state[c] = HELD;
  renewing[c] = 0
}

inline write(s)
{
  if
  :: s == master && linked -> written++; records!holder[s], token[s], lease[s]
  :: else
  fi
}

hidden mtype:request q;
hidden byte t;

/* [lock/scripts/acquire.lua: if not keeps and not (before > earlier and before < 2 ^ 53) then] */
inline acquire(c, s)
{
  if
  :: holder[s] == c && t >= token[s] -> holder[s] = NOBODY
  :: else
  fi;
  if
  :: holder[s] == NOBODY ->
    holder[s] = c;
    token[s] = (t > token[s] -> t : token[s]) + 1; /* [lock/scripts/acquire.lua: if earlier > before then last =] */
    lease[s] = 1;
    write(s);
    to_client[c]!1, token[s], lease[s], written
  :: holder[s] == c ->
    lease[s]++;
    write(s);
    to_client[c]!1, token[s], lease[s], written
  :: else -> to_client[c]!0, 0, 0, 0
  fi
}

/* One after the other: who waits for the replica has nothing else under way [lock/topology.c: Nothing more is sent]. */
inline execute(c)
{
  to_server[c]?q(t);
  if
  :: q == ACQ -> acquire(c, at[c])
  :: q == KEEP && holder[at[c]] == c && token[at[c]] == t ->
    lease[at[c]]++;
    write(at[c]);
    to_client[c]!1, t, lease[at[c]], written
  :: q == REL && holder[at[c]] == c && token[at[c]] == t ->
    holder[at[c]] = NOBODY;
    write(at[c]);
    to_client[c]!1, t, 0, 0
  :: else -> to_client[c]!0, 0, 0, 0
  fi;
  q = 0;
  t = 0
}

#define may_end(s) (holder[s] != NOBODY && !(believes[holder[s]] && hold_token[holder[s]] == token[s] && \
                                             hold_lease[holder[s]] <= lease[s]))

inline end_lease(s)
{
  if
  :: over[8 * holder[s] + token[s]] < lease[s] -> over[8 * holder[s] + token[s]] = lease[s]
  :: else
  fi;
  holder[s] = NOBODY
}

/* The client's belief ends, by its clock or because it was told. */
inline end_belief(c)
{
  believes[c] = 0;
  hold_lease[c] = 0;
  renewing[c] = 0
}

/* The connection breaks, and the next one is to the new master: what was asked for is asked for again. */
inline go_over(c)
{
  do
  :: nempty(to_server[c]) -> to_server[c]?_, _
  :: nempty(to_client[c]) -> to_client[c]?_, _, _, _
  :: empty(to_server[c]) && empty(to_client[c]) -> break
  od;
  at[c] = master;
  if
  :: renewing[c] -> state[c] = HELD; renewing[c] = 0
  :: state[c] == ASKING || state[c] == SYNCING -> state[c] = ASKING; to_server[c]!ACQ(hold_token[c])
  :: state[c] == RELEASING -> to_server[c]!REL(hold_token[c])
  :: else
  fi
}

/* The replica takes over with what it has. */
inline fail_over(dies)
{
  may_fail = 0;
  linked = 0;
  do
  :: nempty(records) -> records?_, _, _
  :: empty(records) -> break
  od;
  dead[master] = dies;
  master = 1 - master
}

/* The old master comes back as the replica, when nobody speaks to it any more. */
inline come_back()
{
  holder[1 - master] = holder[master];
  token[1 - master] = token[master];
  lease[1 - master] = lease[master];
  dead[1 - master] = 0;
  applied = written;
  linked = 1
}

bool yes;
byte a_token, a_lease, a_record;

/* [lock/handle.c: reached(engine->now, lease_end(] What comes when its lease is over is not believed. */
inline believe_in_time(c, t, l)
{
  if
  :: !too_late(c, t, l) -> believe(c, t, l)
  :: too_late(c, t, l) && renewing[c] -> renewing[c] = 0; state[c] = HELD
  :: else -> hold_token[c] = t; state[c] = RELEASING; to_server[c]!REL(t)
  fi
}

inline take_answer(c)
{
  to_client[c]?yes, a_token, a_lease, a_record;
  if
  :: state[c] == RELEASING ->
    state[c] = FREE;
#ifdef BUG_TOKEN_FORGOTTEN
    hold_token[c] = 0 /* [lock/handle.c: a handle keeps the token of its last hold] */
#endif
  :: state[c] != RELEASING && !yes ->
    end_belief(c);
    state[c] = FREE
#ifdef BUG_RENEWAL_UNSYNCED
  :: state[c] != RELEASING && yes && ACK && !renewing[c] ->
#else
  :: state[c] != RELEASING && yes && ACK ->
#endif
    state[c] = SYNCING;
    needed[c] = a_record;
    told_token[c] = a_token;
    told_lease[c] = a_lease
  :: else -> believe_in_time(c, a_token, a_lease)
  fi;
  yes = 0;
  a_token = 0;
  a_lease = 0;
  a_record = 0
}

/* [lock/topology.c: bool enough = event->integer >= (int64_t)topology->replicas;] */
#ifdef BUG_NOT_ENOUGH
#define enough(c) true
#else
#define enough(c) (at[c] == master && linked && applied >= needed[c])
#endif

inline synced(c)
{
  believe_in_time(c, told_token[c], told_lease[c]);
  told_token[c] = 0;
  told_lease[c] = 0;
  needed[c] = 0
}

/* Too few: a renewal extends nothing, and a hold that nobody believes in is given back. */
inline unsynced(c)
{
  if
  :: renewing[c] -> renewing[c] = 0; state[c] = HELD
  :: else ->
    hold_token[c] = told_token[c];
    state[c] = RELEASING;
    to_server[c]!REL(hold_token[c])
  fi;
  told_token[c] = 0;
  told_lease[c] = 0;
  needed[c] = 0
}

proctype servers()
{
end:
  do
  :: d_step { nempty(to_server[0]) && !dead[at[0]] && empty(to_client[0]) && nfull(records) -> execute(0) }
  :: d_step { nempty(to_server[1]) && !dead[at[1]] && empty(to_client[1]) && nfull(records) -> execute(1) }
  :: d_step { nempty(records) ->
              records?holder[1 - master], token[1 - master], lease[1 - master]; applied++ }
  /* A lease ends. */
  :: d_step { !dead[0] && (master == 0 || !linked) && may_end(0) -> end_lease(0) }
  :: d_step { !dead[1] && (master == 1 || !linked) && may_end(1) -> end_lease(1) }
  :: d_step { !linked && at[0] == master && at[1] == master -> come_back() }
  :: d_step { may_fail -> fail_over(1) }
  :: d_step { may_fail && SPLIT -> fail_over(0) }
  od
}

proctype client(byte c)
{
end:
  do
  :: d_step { state[c] == FREE && turns[c] > 0 -> turns[c]--; state[c] = ASKING; to_server[c]!ACQ(hold_token[c]) }
  :: d_step { nempty(to_client[c]) -> take_answer(c) }
  :: d_step { state[c] == SYNCING && enough(c) -> synced(c) }
  :: d_step { state[c] == SYNCING && !(at[c] == master && linked) -> unsynced(c) }
  :: d_step { state[c] == HELD && c == 0 && renewals > 0 ->
              renewals--; renewing[c] = 1; state[c] = ASKING; to_server[c]!KEEP(hold_token[c]) }
  :: d_step { state[c] == HELD -> end_belief(c); state[c] = RELEASING; to_server[c]!REL(hold_token[c]) }
  /* Its clock ends the hold. */
  :: d_step { believes[c] && state[c] == HELD -> end_belief(c); state[c] = FREE }
  :: d_step { at[c] != master && (dead[at[c]] || SPLIT) -> go_over(c) }
  od
}

init {
  d_step { state[0] = FREE; state[1] = FREE; turns[0] = 2; turns[1] = 1 };
  atomic { run servers(); run client(0); run client(1) }
}
