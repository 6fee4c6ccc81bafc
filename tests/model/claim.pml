/* SPDX-License-Identifier: Apache-2.0
 * A claim that is shorter than the waiter timeout (a waiter's note would name it), so that heartbeats may be rare and a
 * waiter that dies when it is handed the lock still does not keep the others waiting. The lock is
 * that of lock.pml, with CLAIM < WAITER; besides, a promise of how long a free lock may stand while somebody waits.
 *
 *   IDLE    for how many ticks, at most, the lock is free while somebody waits who keeps the rules
 *   TELLS   a script that hands the lock over tells the next in line, by the message that asks (claim 0: a waiter asks
 *           the server now). The answer says when the claim ends
 *
 * What a claim needs, as far as we know:
 *   - it is believed for as long as the message says, and not for a waiter timeout
 *   - a place still lasts for the waiter timeout, so left_until has to count both
 *   - whoever becomes the first in line learns when the claim, or the hold, ends, or the lock stands free until its heartbeat:
 *     not only when somebody is handed the lock, but whenever one before it leaves the line (three clients; the run finds that)
 *   - it is longer than a message and the answer to its confirmation may take, or a waiter that is well loses its turn
 *
 * Left out: claims that differ from waiter to waiter. Each script reads that of its heir.
 */
#include "world.pml"
#undef MESSAGE
#define MESSAGE RESPONSE /* a claim is longer than a message and the answer to its confirmation take, or a waiter that is well loses its turn */

byte idle; /* for how long the lock has been free while somebody waits: no part of the server */
#undef also_ticks
#define also_ticks() idle_ticks()
inline idle_ticks() {
  idle = (ttl == 0 && in_line -> idle + 1 : 0);
  assert(idle <= IDLE) /* PROMISE idle: the lock does not stand free while somebody waits */
}

/* The first in line who listens is told. [first-told] */
#if TELLS
#undef tells_next
#define tells_next() tell_next()
#endif
inline tell_next() {
  n = 0;
  do
  :: n == len(queue) -> break
  :: else -> queue?w; queue!w; n++;
    if :: !found && listens[w] == 2 -> found = 1; down[LINE(w)]!w, GRANT, 0, 0 :: else fi
  od;
  found = 0; w = 0; n = 0
}
#include "handle.pml"
