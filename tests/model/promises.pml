/* SPDX-License-Identifier: Apache-2.0
 * What is promised, in each state. Some is asserted on the way: order and tokens in grant() and begin_hold(),
 * late in script(). And spin itself finds a state in which nothing can happen any more.
 */

/* One holder: the server covers each belief, so nobody else is covered. */
#define believer(i)  (believes(i) -> 1 : 0)
#define uncovered(i) (believes(i) && !covers(i))
#define two_hold     (covers_beliefs && (each(uncovered, ||) || each(believer, +) > most_hold))
active proctype one_holder() { atomic { two_hold -> assert(false) } }

/* Nothing is left: when a handle is FREE, and nothing of it is under way that could change that, the server has nothing of it. */
#define pending(k)   (late[k]??[_, ACQUIRE, _, _] || late[k]??[_, TRY, _, _] || late[k]??[_, DOWNGRADE, _, _] || \
                      late[k]??[_, LEAVE, _, _])
#define quiet(i)     (empty(up[LINE(i)]) && empty(down[LINE(i)]) && !pending(LINE(i)))
#define left_over(i) (handle[i].phase == FREE && quiet(i) && has_any(i) && !brought_back(i))
active proctype nothing_left() { atomic { LEFT && each(left_over, ||) -> assert(false) } }

/* The hold count of the server is that of the program. */
#define wrong(i) (!LATE && handle[i].phase == HELD && quiet(i) && !handle[i].unconfirmed && miscounted(i))
active proctype counted() { atomic { REENTRIES && each(wrong, ||) -> assert(false) } }

#ifdef LIVE /* each wait comes to an end, though its program does not end it */
ltl live { [] (awaits(LIVE) -> <> !awaits(LIVE)) }
#endif

init {
  byte i;
  atomic {
    for (i : 0 .. N - 1) { me.acquires = (i == 0 -> ACQUIRES0 : ACQUIRES); run_client(i) }
    for (i : 0 .. LINES - 1) { run server(i); run connection(i) }
    i = 0; run clock()
  }
}
