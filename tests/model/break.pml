/* SPDX-License-Identifier: Apache-2.0
 * An operator, who ends somebody's hold, or asks its holder to release it: break.lua, break.c, and what a handle
 * does with a message that asks (fairlock_handle_on_message()). The operator sees a hold, and sends a request
 * that may be lost, late, and repeated: any of COPIES is carried out once, at any time until it has expired, or
 * never. What it does in between does not matter to the lock, so its own phases are not here.
 *
 *   FORCES   how many holds it ends. BY: how it names them, bits: 1 by token, 2 by holder, 4 not at all
 *   ASKS     how many holders it asks. HEARS: programs want to be asked, so that their handles listen from
 *            their first request on, and ask for that again with the next one after a break
 *   COPIES   of each request
 *
 * What is promised besides: the one who has it now. Its former holder may believe in its hold until its next
 * answer, or until the lease ends, and is not counted (`excused`); but what it still sends does nothing to
 * the next hold. A program that is asked may release, as it may at any time, or not.
 *
 * Left out: shares, of which break.lua ends one, or all; a break.lua that is stopped half-way; Redisson's
 * holders, which have no token, so that nobody can ask them.
 */
#ifndef TOKENS
#define TOKENS 30
#endif
#ifndef FORCES
#define FORCES 1
#endif
#ifndef ASKS
#define ASKS 0
#endif
#ifndef BY
#define BY 1
#endif
#ifndef HEARS
#define HEARS 0
#endif
#ifndef COPIES
#define COPIES 1
#endif
#include "hooks.pml"
#define ASKING 128 /* the message of one number: a token alone, where a grant has time and length, too */

int forced;       /* bits: the tokens of the holds that were ended so */
byte orders = FORCES, asks = ASKS;
byte to_token;    /* the request: whose hold; 0: whichever it is */
byte to_holder = N; /* N: whoever has it */
byte to_age, copies;
bit to_ask;
byte meant;       /* the token of the hold whose holder was asked last */

#undef excused
#define excused(i)         ((forced >> handle[i].token) & 1)
#undef also_listens
#define also_listens(kind) (HEARS && (kind & (ACQUIRE | IF_HELD))) /* [holder-listens] */
#undef on_message
#define on_message()       if :: value >= ASKING -> asked_to_release() :: else -> message() fi /* [ask-is-no-grant] */
#undef also_ticks
#define also_ticks()       operator_ticks()

#define believed(i) (handle[i].phase == HELD || handle[i].phase == REENTERING || handle[i].phase == RELEASE_ONE)
inline asked_to_release() {
  if
  :: handle[i].phase == QUEUEING || handle[i].phase == TRYING -> handle[i].sends = 0
  :: believed(i) && value - ASKING == handle[i].token -> /* [ask-of-this-hold] */
    assert(handle[i].token == meant) /* PROMISE asked: a program hears only of the hold that the operator meant */
  :: else
  fi
}

inline request_ends() { copies = 0; to_ask = 0; to_token = 0; to_holder = N; to_age = 0 }

inline operator_ticks() { /* what has expired need not be kept */
  if :: copies > 0 -> to_age++ :: else fi;
  if :: to_age > RESPONSE + 1 -> request_ends() :: else fi
}

#include "handle.pml"

#define by_token     (to_token == 0 || to_token == token)  /* [force-names-token] */
#define by_holder(x) (to_holder == N || to_holder == x)    /* [force-names-holder] */
#define named(x)     (held(x) && by_token && by_holder(x))
#define deprived(x)  (note[x] != NONE && note[x] > 0 && listens[x] && queue??[x])

inline force() {
  if
  :: each(named, ||) ->
    assert(!to_ask);                            /* PROMISE break: an ask ends nothing */
    assert(to_token == 0 || to_token == token); /* PROMISE break: only the hold that the operator named is ended */
    assert(to_holder == N || held(to_holder));  /* PROMISE break: or a hold of the holder that it named */
    assert(to_age <= RESPONSE);                 /* PROMISE break: and nothing once the operator has been told that it failed */
    forced = forced | (1 << token);
    drop_lock()                                 /* `released` is not set [force-is-no-release] */
  :: else
  fi;
  if :: ttl == 0 -> hand_over(N) :: else fi;    /* [force-hands-over] */
  assert(ttl > 0 || !each(deprived, ||))        /* PROMISE handed: who could have the free lock has it */
}

/* Changes nothing. [ask-ends-nothing] */
inline ask() {
  i = 0; do :: i < N && !named(i) -> i++ :: else -> break od;
  if
  :: i < N && listens[i] == 2 -> down[LINE(i)]!i, GRANT, ASKING + token, 0; meant = token
  :: else
  fi
}

active proctype operator()
{
  byte i;
  do
  :: atomic { copies == 0 && orders + asks > 0 && each(held, ||) -> /* it has looked, and names what it has seen */
      if :: orders > 0 -> orders--; to_ask = 0 :: asks > 0 -> asks--; to_ask = 1 fi;
      if
      :: BY & 1 -> to_token = token
      :: BY & 2 -> to_holder = 0; do :: !held(to_holder) -> to_holder++ :: else -> break od
      :: BY & 4
      fi;
      copies = COPIES }
  :: atomic { copies > 0 && each_line(has_room, &&) && token < TOKENS -> copies--;
      heir = N; former = N; base = token; ended = released;
      if :: to_age > RESPONSE -> goto answer :: else fi; /* [force-expires] */
      if :: to_ask -> ask() :: else -> force() fi;
answer:
      if :: copies == 0 -> request_ends() :: else fi;
      i = 0; heir = 0; former = 0; base = 0; ended = 0; what = FREE }
  od
}

/* Who wants to be asked can be. A hold that was ended is over: nobody has it again, and nobody's release finds that it has ended it. */
#define goes_on     (each(held, ||) && ((forced >> token) & 1))
#define as_released ((forced >> released) & 1)
#define deaf(i)     (HEARS && !BREAKS && believes(i) && !listens[i])
active proctype asked_promise() { atomic { each(deaf, ||) -> assert(false) } }
active proctype broken_promise() { atomic { goes_on || as_released -> assert(false) } }
