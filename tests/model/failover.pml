/* SPDX-License-Identifier: Apache-2.0
 * A replica, which may become the master without the last scripts' changes: lock/topology.c, and what
 * lock/README.md promises in "Servers that move". The lock is that of lock.pml.
 *
 * SYNCED: an answer that begins or extends a hold counts only when the replica has the change (WAIT), as with
 * `replicas` set to all that can be promoted. Then all is promised that is without fail-overs: the new master
 * covers each belief, too. Without it, one holder is not promised, and holds may begin in another order than their
 * tokens were given (ANY_ORDER); the rest is.
 *
 *   FAILOVERS   how often the replica becomes the master
 *   UNSYNCED    WAITs that come back without the replica
 *   BEHIND      whether the new master's clock may be behind all tokens that were given. A token is then one more
 *               than the last. Otherwise it is of the time, and larger than all
 *
 * The replica has all, until some moment at which it falls behind; from then on it gets nothing more, and no WAIT
 * ends, until it becomes the master. That is all there is to choose: one that catches up again was only slow. A
 * fail-over is one step. Who was connected may get answers of the old master after it, but that carries out nothing
 * more. A message is not covered by a WAIT, so it only makes a waiter ask (SYNCED in message()). [grant-not-believed]
 * Left out: README.md says what.
 */
#include "world.pml"
#ifndef UNSYNCED
#define UNSYNCED 0
#endif
#ifndef BEHIND
#define BEHIND 0
#endif

byte failovers = FAILOVERS, unsynced = UNSYNCED;
bit lags;          /* the replica has fallen behind. What it has: */
byte r_count[N] = NONE, r_ttl, r_note[N] = NONE, r_token, r_released;
chan r_queue = [N] of { byte };
bit waits[N];      /* of a connection: the WAIT behind its last answer does not end */
bit gone[N];       /* of a connection: it leads to the old master */
byte highest;      /* of the tokens that any server has given */
bit clock_behind;
byte brought;      /* bits: whose hold or place, ended before, a fail-over has brought back. Its time will end it */

#undef next_token
#define next_token (clock_behind || highest < base -> base + 1 : highest + 1); \
                   highest = (token > highest -> token : highest)
#undef serves
#define serves(k)       (!gone[k])
#undef acknowledged
#define acknowledged(k) (!waits[k] || down[k]?[_, GRANT, _, _])
#undef brought_back
#define brought_back(i) (brought & (1 << i))
#undef covers_beliefs
#define covers_beliefs  SYNCED
#undef line_ends
#define line_ends(k)    waits[k] = 0; gone[k] = 0
#undef also_ticks
#define also_ticks()    replica_tick()

/* The script has answered. */
#undef also_done
#define also_done()     acknowledges()
inline acknowledges() {
  assert(!(what == YES && kind & (ACQUIRE | TRY)) || value > tok); /* PROMISE tokens: those of a handle rise */
  if :: kind == ACQUIRE -> brought = brought & ~(1 << i) :: else fi;
  what_is_over();
  if
  :: SYNCED && alive && what == YES && kind & (ACQUIRE | TRY | IF_HELD) -> /* it has written [always-writes] [renewals-wait] */
    if
    :: unsynced > 0 -> unsynced--; what = FAILED /* it may hold, but that does not count [unsynced-owes] */
    :: waits[LINE(i)] = lags /* [answer-after-wait] */
    fi
  :: else
  fi
}

inline what_is_over() {
  n = 0;
  do
  :: n < N && (count[n] != NONE || queue??[eval(n)]) -> n++
  :: n < N && count[n] == NONE && !queue??[eval(n)] -> brought = brought & ~(1 << n); n++
  :: n == N -> break
  od;
  n = 0
}

/* A replica knows the time at which a lease ends, so that passes there, too. */
inline replica_tick() {
  later(r_ttl); n = 0;
  do :: n < N -> later(r_note[n]); if :: r_ttl == 0 -> r_count[n] = NONE :: else fi; n++ :: else -> break od;
  what_is_over()
}

#include "handle.pml"

#define COPY(from, to) do :: nempty(to) -> to?w :: empty(to) -> break od; n = len(from); \
                       do :: n > 0 -> n--; from?w; from!w; to!w :: n == 0 -> break od; w = 0
#define asks(k)        (nempty(up[k]) || nempty(late[k]))

inline falls_behind() {
  say("falls_behind\n");
  lags = 1; r_token = token; r_released = released; r_ttl = ttl; COPY(queue, r_queue); i = 0;
  do :: i < N -> r_count[i] = count[i]; r_note[i] = note[i]; i++ :: else -> break od;
  i = 0
}

inline has_lost() {
  say("has_lost\n");
  token = r_token; released = r_released; ttl = r_ttl; COPY(r_queue, queue); i = 0;
  do :: i < N -> count[i] = r_count[i]; note[i] = r_note[i]; r_count[i] = NONE; r_note[i] = NONE; i++ :: else -> break od;
  i = 0; lags = 0; r_token = 0; r_released = 0; r_ttl = 0;
  do :: nempty(r_queue) -> r_queue?w :: empty(r_queue) -> break od;
  w = 0
}

/* Its clients have to come to it; and who has ended something before, or now is told by the old master, may find it here. */
inline becomes_master() {
  i = 0;
  do
  :: i < N -> listens[i] = 0; say("listens %d 0\n", i);
    if :: me.phase == FREE || me.phase == TRYING || ending(i) -> brought = brought | (1 << i) :: else fi;
    i++
  :: else -> break
  od;
  i = 0;
  do :: i < LINES -> gone[i] = line[i].up; i++ :: else -> break od;
  i = 0; in_line = 0;
  what_is_over()
}

active proctype replica()
{
  byte i;
  do
  :: d_step { failovers > 0 && !lags && each_line(asks, ||) -> falls_behind() }
  :: atomic { failovers > 0 -> failovers--;
      if :: lags -> has_lost() :: else fi;
      becomes_master();
      if :: BEHIND -> clock_behind = 1 :: BEHIND < 2 -> clock_behind = 0 fi }
  od
}
