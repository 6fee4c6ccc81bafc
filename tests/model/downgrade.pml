/* SPDX-License-Identifier: Apache-2.0
 * A hold that is exclusive becomes a share: downgrade.lua and downgrade.c.
 *
 * Handle 0 holds alone. Handle 1, its heir, is of the same client and connection, and is to share. From the beginning,
 * handle 0 is RELEASING, but its release is held back while the heir waits: the heir's request, which names the token
 * of that hold, ends it, and its answer answers the release. If the heir gives up, it leaves as any other, and the
 * release is sent. Handle 2, if there is one, is of another client.
 *
 * client.c: a task downgrades, while others may acquire with the heir, and cancel its wait.
 *
 * Left out: the heir's own last token where it is larger than that of the hold (only after a fail-over); crashes
 * and freezes of both handles at once; another lock of the same client.
 */
#ifndef DOWNGRADES
#define DOWNGRADES 1
#endif
#ifndef SHARERS
#define SHARERS 2 /* the heir; 6: and handle 2 */
#endif
#include "hooks.pml"
#undef LINE
#undef LINES
#undef each_line
#undef calls
#undef set_frozen
#define LINE(i) ((i) / 2)
#define set_frozen(x) frozen[i] = x /* none freezes here */
#if N > 2
#define LINES 2
#define each_line(f, op) (f(0) op f(1))
#else
#define LINES 1
#define each_line(f, op) (f(0))
#endif
#define calls(k) (wants(2 * (k)) || (k) == 0 && wants(1))

#include "shared.pml"

/* client.c */
active proctype task()
{
  byte i;
  do
  :: atomic { downgrades > 0 && handle[0].phase == HELD && handle[0].ends > 0 && handle[0].holds == 1 &&
      (handle[1].phase == FREE || ending(1)) ->
      downgrades--; task_waits = 1; other_operation = 0; lasts = handle[0].ends;
      i = 0; me.in_doubt = me.in_doubt & ~RELEASE; set_phase(RELEASING); wait_ends(); me.ends = leaves_for(i); me.sends = 0;
      i = 1; me.owed = (ending(1) || me.owed -> 1 : 0); me.queued = 0; me.unconfirmed = 0;
      set_phase(QUEUEING); me.holds = 1; me.ends = NEVER; me.sends = 0;
      inherited = handle[0].token;
      if :: me.token < inherited -> me.token = inherited :: else fi;
      i = 0 }
  :: atomic { task_waits && handle[0].phase != RELEASING && !waiting(1) ->
      assert(!other_operation); /* PROMISE result: what it returns is of its own downgrade */
      task_waits = 0; other_operation = 0 }
  :: atomic { task_waits && waiting(1) && !is_heir(1) -> other_operation = 1 }
  od
}
