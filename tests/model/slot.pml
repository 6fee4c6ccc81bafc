/* SPDX-License-Identifier: Apache-2.0
 * A slot of a cluster that moves to another node while requests come: lock/topology.c (TRYAGAIN, ASK, MOVED), and
 * the rule of lock/scripts/common.lua for it. The lock is that of lock.pml.
 *
 * Hash, queue (with its scores) and notes move one at a time. Meanwhile the old node carries out a script only if it has
 * all of them: a key that does not exist counts as moved. And it stops a script that uses a key which the script itself
 * has removed. Our clients never follow an ASK, because the keys are in two places: they ask again. So from the first
 * key that has moved to the end of the move, nothing is carried out, and the order of the keys does not matter. Then the
 * old node says MOVED, and clients connect to the new one.
 *
 *   MOVE   after how many ticks the move ends, at the latest
 *
 * A lock that is held and waited for has all its keys. It is handed on while its slot moves, and here each move begins
 * with such a lock: without all keys, nothing is carried out until the move has ended, as after the first key. SYNCED
 * makes runs smaller: a client has one request under way, and asks when it is handed the lock.
 *
 * Left out: README.md says what.
 */
#include "world.pml"

byte move;          /* how the slot is: */
#define AT_HOME 0
#define LEAVES  1   /* all keys are still there */
#define SPLIT   2   /* one has moved */
#define MOVED   3
byte move_ends = NEVER;
bit gone[N];        /* of a connection: it leads to the old node, which says MOVED */
byte hash_stays; /* the script has not removed the hash, but made it expire */

#define has_hash  (count[0] != NONE || count[1] != NONE || N > 2 && count[N - 1] != NONE)
#define has_queue (len(queue) > 0)
#define STOP(key, known) \
  if :: move == LEAVES && !(key) -> assert(known); what = FAILED; goto answer :: else fi;

/* PROMISE moves: a script that has begun ends. But an acquire that gives its hold up to the only waiter, and then queues. */
#undef BEGINS
#define BEGINS \
  hash_stays = 0; \
  if :: move == SPLIT || move == LEAVES && !(has_hash && has_queue) -> what = FAILED; goto answer :: else fi;
#undef USES_HASH
#define USES_HASH  STOP(has_hash || hash_stays, false)
/* A waiter leaves the queue by the last command that uses it. [queue-known] */
#undef USES_QUEUE
#define USES_QUEUE STOP(has_queue, former == i && heir < N)
#undef KEEPS_HASH
#define KEEPS_HASH hash_stays = 1

#undef serves
#define serves(k)   (!gone[k])
#undef line_ends
#define line_ends(k) gone[k] = 0
#undef also_done
#define also_done() hash_stays = 0
#undef also_ticks
#define also_ticks() move_ticks()

/* Its clients have to come to the new node, and to subscribe there. */
inline ends_move() {
  move = MOVED; move_ends = NEVER; in_line = 0; n = 0;
  do :: n < N -> listens[n] = 0; n++ :: else -> break od;
  n = 0;
  do :: n < LINES -> gone[n] = line[n].up; n++ :: else -> break od;
  n = 0
}

inline move_ticks() { later(move_ends); if :: move_ends == 0 -> ends_move() :: else fi }

#include "handle.pml"

active proctype cluster()
{
  do
  :: d_step { move == AT_HOME && has_hash && has_queue -> move = LEAVES; move_ends = MOVE }
  :: d_step { move == LEAVES -> move = SPLIT }
  :: d_step { move == SPLIT -> ends_move() }
  od
}
