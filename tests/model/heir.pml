/* SPDX-License-Identifier: Apache-2.0
 * What a downgrade is for both handles, and for the server: see downgrade.pml.
 */
byte downgrades = DOWNGRADES;
byte inherited_token;   /* of the hold that the heir waits for */
byte lasts;             /* that hold, as handle 0 believed: no part of the code */
byte written;           /* the token that a downgrade has written last: the note `holder` is then the heir's */
bit task_waits;         /* a task waits for its downgrade */
bit other_operation;    /* the heir has begun something else since */

/* The client */

#undef inherited
#define inherited  inherited_token
#undef is_heir
#define is_heir(i) ((i) == 1 && waiting(1) && handle[1].holds > 0)
#undef has_heir
#define has_heir(i) ((i) == 0 && is_heir(1) && handle[0].phase == RELEASING && inherited == handle[0].token) /* [release-held-back] */

/* While a task waits for a downgrade, others may not use the heir (struct fairlock, awaited). [heir-awaited] */
#undef awaited
#define awaited(i) ((i) == 1 && task_waits)

/*
 * The heir's request may end the hold of handle 0, answered or not. It is settled by the time of its sending, that of
 * the first of those under way, because what comes before its answer may be a late acquire of handle 0. [heir-settles]
 */
#undef name_hold
#define name_hold() names_hold()
inline names_hold() {
  if
  :: has_heir(0) ->
    handle[0].in_doubt = handle[0].in_doubt | RELEASE;
    handle[0].settles = (doubt_over(0) && (me.unanswered == 0 || handle[0].settles) -> 1 : 0)
  :: else
  fi
}

/* The heir has its answer, and no longer waits. Then that answers the release, or the release is sent. */
inline settle() {
  i = 0;
  me.in_doubt = me.in_doubt & ~RELEASE;
  if
  :: holding(1) -> what = YES; reply_ending()
  :: !holding(1) && value == ENDED -> what = NO; reply_ending()
  :: else -> me.sends = 0
  fi
}

#undef answer_to_waiter
#define answer_to_waiter() answer_to_heir()
inline answer_to_heir() {
  former = has_heir(0) && i == 1;
  reply_waiting();
  assert(!(former && holding(1)) || newest <= inherited); /* PROMISE between: nobody has had it alone since */
  if :: former && !waiting(1) -> settle() :: else fi;
  former = 0
}

/* The server */

inline downgrade() {
  read_share();
  if
  :: !alone && lives && its > tok -> /* it has come before [downgrade-repeats] */
    if :: queue??[eval(i)] -> forget(i) :: else fi;
    if :: till < lease(i) -> rest = lease(i) :: else -> rest = till fi;
    take_out(); till = rest; rest = 0; name_limit(i, till); holders++; enters[i] = its;
    write();
    what = YES; value = its
  :: !(!alone && lives && its > tok) && (ttl == 0 || shared || !held(0) || token != tok && token != written) -> /* that hold is gone [names-hold] [stopped-goes-on] */
    assert(!alive || !has_heir(0) || lasts == 0); /* PROMISE kept: no hold is lost before its time, but by an acquire of its own handle */
    what = FAILED; value = ENDED
  :: else ->
    gone = 0; /* in the same HSET as the share [one-script] */
    enter(i, lease(i), 1);
    written = base; its = base;
    write();
    ended = tok; /* not before: if the script stops, the release may not find its hold released [released-after] */
    let_in();
    if :: entered > 0 -> write() :: else -> COMMAND released = ended fi;
    what = YES; value = its
  fi;
  end_of_share()
}

inline downgrade_tick() { later(lasts) }
