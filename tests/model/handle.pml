/* SPDX-License-Identifier: Apache-2.0
 * The clients: a handle and its program (handle.c, reply.c), its connection (engine.c), and time.
 */
#include "lock.pml"

#define believes(i) (holding(i) && handle[i].ends > 0 && !excused(i))
#define in_flight(i) (handle[i].unanswered + handle[i].forgotten > 0 -> handle[i].sent : 0)
#define over(i)  (handle[i].phase == LOST || (holding(i) || ending(i)) && handle[i].ends == 0)
#define wants(i) (handle[i].sends == 0 && handle[i].phase != CRASHED && !frozen[i])

inline later(x) { if :: x > 0 && x < NONE -> x-- :: else fi }

/* [answers-by-phase]: answers to requests of another phase do not count. */
inline set_phase(p) { phase_begins(p); me.forgotten = me.forgotten + me.unanswered; me.unanswered = 0; me.phase = p }

/* The server has nothing of it, and no request that is under way can begin anything. */
#define nothing_there(i) (!handle[i].queued && !handle[i].unconfirmed && !handle[i].owed && \
                          !((in_flight(i) | handle[i].in_doubt) & ACQUIRE))

inline become_free() {
  set_phase(FREE); wait_ends();
  me.sent = me.sent & LEAVE; me.in_doubt = me.in_doubt & LEAVE; /* a late leave may end the next wait [leave-in-doubt] */
  me.queued = 0; me.owed = 0; me.unconfirmed = 0; me.settles = 0; me.holds = 0; me.left = 0;
  me.ends = NEVER; me.sends = NEVER;
  on_free()
}

/* Until when it repeats a release or a leave: if the server is away for longer, all that it had is over. [leaves-until-over] */
#define leaves_for(i) (OFFLINE -> handle[i].left : NEVER)

#define leaves(x)     set_phase(LEAVING); wait_ends(); me.holds = 0; me.ends = leaves_for(i); me.sends = x

inline leave() { if :: nothing_there(i) -> become_free() :: else -> leaves(0) fi }

/* Something may be left: an earlier heartbeat may have queued again. [lost-owes] */
inline lose() { set_phase(LOST); me.unconfirmed = 0; me.owed = 1; me.ends = NEVER; me.sends = NEVER }

#define renewal(i) (!RENEWS -> NEVER : (handle[i].unanswered > 0 -> handle[i].sends : (LEASE / 3 > age -> LEASE / 3 - age : 0)))
inline begin_hold() {
  me.unconfirmed = (me.queued || me.owed || (me.in_doubt & ACQUIRE) -> 1 : 0);
  me.sends = (me.unconfirmed -> 0 : renewal(i));
  set_phase(HELD); me.queued = 0; me.owed = 0; me.holds = 1;
  tokens_rise()
}

/* What is left of a span that began when the request was sent, `age` ago, less the margin. [dated-from-sending] [margin] */
inline safe_part(span) { rest = (span > age -> span - age : 0); slack(rest) }

/* All that was in doubt has expired. An acquire may have been carried out before. */
inline doubt_ends() {
  if :: doubt_over(LINE(i)) && !ending(i) -> me.owed = (me.owed || waiting(i) && (me.in_doubt & ACQUIRE) -> 1 : 0);
       me.in_doubt = 0 :: else fi
}

inline reply_waiting() {
  if
  :: what == YES -> safe_part(lease(i));
    if
    :: value > me.token && rest > 0 -> me.token = value; me.ends = rest; begin_hold() /* [token-larger] */
    :: else -> me.owed = 1; /* of no use, but it holds [useless-grant] */
      if :: me.phase == TRYING -> leave() :: else -> me.sends = 1 fi
    fi
  :: what == NO && me.phase == TRYING -> leave()
  :: what == NO && me.phase == QUEUEING -> me.queued = 1;
    if :: value + 1 < me.sends -> me.sends = value + 1 :: else fi
  :: what == VOID -> me.sends = 0
  :: what == FAILED -> me.owed = (me.owed || SYNCED || value == STOPPED -> 1 : 0); /* it may have begun something [stopped-owes] */
    if :: me.phase == TRYING || value == STOPPED || for_good -> leave() :: else -> breaks_rules(i); me.sends = 1 fi
  fi
}

inline reply_held() {
  if
  :: what == YES && value == me.token -> safe_part(lease(i));
    if :: RENEWS && !me.unconfirmed && rest < me.ends :: else -> me.ends = rest fi;
    me.sends = renewal(i);
    me.holds = (me.phase == REENTERING -> 2 : (me.phase == RELEASE_ONE -> 1 : me.holds));
    me.unconfirmed = 0;
    if :: me.phase != HELD -> set_phase(HELD) :: else fi
  :: what == VOID -> me.sends = 0
  :: what == FAILED -> if :: RENEWS || me.unconfirmed || me.phase != HELD -> me.sends = 1 :: else fi
  :: else -> lose()
  fi
}

#define leaves_again() leaves((our.up -> our.doubt : 0))

/* A late acquire may still begin a hold [late-acquire-undone], unless what was answered was sent when none could come any
 * more. A copy of a release may be answered after a late acquire that came behind the other copy [repeated-release]. */
#define settled(i) (!(handle[i].in_doubt & ACQUIRE) || \
                    handle[i].settles && !(handle[i].phase == RELEASING && (handle[i].in_doubt & RELEASE)))

/* A release or a leave was answered. Was that all? */
inline reply_ending() {
  if
  :: what == VOID -> me.sends = 0
  :: what == FAILED -> me.sends = 1
  :: what == NO && me.phase == RELEASING -> leaves_again() /* a heartbeat may have begun another hold [gone-leaves] */
  :: else -> if :: !settled(i) -> leaves_again() :: else -> if :: listens_still(i) -> me.sends = 1 :: else -> become_free() fi fi
  fi
}

/* The message of a handover. */
inline message() {
  if
  :: waiting(i) -> me.sends = 0;
    if
    :: SYNCED || (in_flight(i) & LEAVE) || value <= me.token /* [grant-crosses-leave] */
    :: else -> safe_part(CLAIM); /* [claim-believed] */
      if :: rest > lease(i) - MARGIN -> rest = lease(i) - MARGIN :: else fi;
      if :: rest == 0 -> me.owed = 1 :: else -> me.queued = 1; me.token = value; me.ends = rest; begin_hold() fi
    fi
  :: me.phase == FREE && value > 0 -> me.owed = 1; me.left = WAITER; leave() /* nobody wants it any more */
  :: else
  fi
}

#define kind_of(i) (waiting(i) -> ACQUIRE : (holding(i) -> IF_HELD : (handle[i].phase == RELEASING -> RELEASE : LEAVE)))
#define most(i)    (SYNCED || handle[i].phase == TRYING || ending(i) -> 1 : 3)

/* A late leave would end the wait: the acquire waits until that has expired. [leave-awaited] */
#define held_back(i) (waiting(i) && (handle[i].in_doubt & LEAVE) && !doubt_over(LINE(i)))
#define may_send(i)  (handle[i].unanswered < most(i) && !(SYNCED && handle[i].forgotten) && !held_back(i) && !has_heir(i) && \
                      len(up[LINE(i)]) < TRIPS - 1)

/* It may arrive late, its place be handed the lock late, and that claim, or the hold, last. [lasts-both] */
#define outlasts(span) (RESPONSE + HALF + WAITER + ((span) > CLAIM -> (span) : CLAIM))

inline send() {
  kind = kind_of(i); me.sent = in_flight(i) | kind;
  if :: subscribes_first() :: else fi; /* [listens-first] */
  if
  :: is_heir(i) -> up[LINE(i)]!i, DOWNGRADE, inherited, 0; name_hold()
  :: me.phase == TRYING -> up[LINE(i)]!i, TRY, me.token, 0
  :: me.phase == LEAVING -> up[LINE(i)]!i, LEAVE, 0, 0
  :: me.phase == REENTERING || me.phase == HELD && me.holds == 2 -> up[LINE(i)]!i, IF_HELD | TWICE, me.token, 0
  :: else -> up[LINE(i)]!i, kind, me.token, 0
  fi;
  me.unanswered++; me.settles = ending(i) && doubt_over(LINE(i)); our.expires = RESPONSE + 1;
  if :: OFFLINE && kind & (ACQUIRE | IF_HELD) && outlasts(lease(i)) > me.left -> me.left = outlasts(lease(i)) :: else fi;
  me.sends = (me.phase == QUEUEING -> BEAT : (holding(i) && RENEWS -> LEASE / 3 : NEVER));
  kind = 0
}

inline on_broken() { /* the handle's part of it */
  if :: listens[i] == 2 -> listens[i] = 1 :: listens[i] = 0 fi;
  say("listens %d %d\n", i, listens[i]);
  breaks_rules(i); kind = in_flight(i);
  me.in_doubt = me.in_doubt | (kind & (ACQUIRE | LEAVE | RELEASE));
  me.unanswered = 0; me.forgotten = 0; me.sent = 0; me.subscribed = 0; me.settles = 0;
  if :: waiting(i) || holding(i) && RENEWS || kind && (holding(i) || ending(i)) -> me.sends = 0 :: else fi;
  kind = 0; on_broken_too()
}

inline broken(k) {
  found = 0;
  do /* what the server has not read yet comes late, up to some request */
  :: nempty(up[k]) -> up[k]?who, kind, tok, age;
    if
    :: LATE && !found && kind != SUBSCRIBE && nfull(late[k]) -> late[k]!who, kind, tok, age
    :: kind != SUBSCRIBE -> found = 1
    :: kind == SUBSCRIBE
    fi
  :: empty(up[k]) -> break
  od;
  do :: nempty(down[k]) -> down[k]?who, what, value, age :: empty(down[k]) -> break od;
  line[k].up = 0; line[k].doubt = 0; line_ends(k);
  who = 0; kind = 0; tok = 0; age = 0; value = 0; what = FREE; found = 0;
  w = k; i = 0; do :: i < N -> if :: LINE(i) == w -> on_broken() :: else fi; i++ :: else -> break od; i = 0; w = 0
}

inline crash() {
  n = i; broken(LINE(i)); i = n; n = 0;
  become_free(); me.phase = CRASHED; me.in_doubt = 0; me.token = 0; me.acquires = 0; our.expires = 0
}

proctype client(byte i) {
  do
  :: atomic { me.acquires > 0 && (me.phase == FREE || ending(i) && hasty) && !awaited(i) && !frozen[i] && acts(i) -> tell(i);
      me.acquires--; me.owed = (ending(i) || me.owed -> 1 : 0); me.queued = 0; me.unconfirmed = 0; me.holds = 0; /* [ending-owes] */
      if :: set_phase(QUEUEING); does("WAIT\n") :: TRIES -> set_phase(TRYING); does("TRY\n") fi;
      me.ends = NEVER; me.sends = 0; doubt_ends() }
  :: atomic { waiting(i) && cancels > 0 && !frozen[i] && acts(i) -> tell(i); does("CANCEL\n"); cancels--; leave() }
  :: atomic { me.phase == HELD && me.ends > 0 && !frozen[i] && acts(i) -> tell(i);
      if
      :: me.holds == 1 -> me.in_doubt = me.in_doubt & ~RELEASE; set_phase(RELEASING); wait_ends(); me.ends = leaves_for(i); does("RELEASE\n")
      :: me.holds == 1 && reentries > 0 -> reentries--; set_phase(REENTERING); does("AGAIN\n")
      :: me.holds == 2 -> set_phase(RELEASE_ONE); does("RELEASE\n")
      fi;
      me.sends = 0 }
  :: atomic { me.phase == LOST && !frozen[i] -> tell(i); does("RELEASE\n"); leave() }
  :: atomic { wants(i) && our.up && may_send(i) && may_transmit(i) && first(i) -> tell(i); does("SEND\n"); transmit() }
  :: atomic { holding(i) && me.ends == 0 && !frozen[i] -> tell(i); does("OVER\n"); lose() }
  :: atomic { ending(i) && me.ends == 0 && !frozen[i] -> tell(i); does("OVER\n"); over_for(i); doubt_ends() }

  :: atomic { me.phase != CRASHED && me.phase != FREE && crashes > 0 -> crashes--; crash() }
  :: atomic { freezes > 0 && !frozen[i] && me.phase != FREE && me.phase != CRASHED && first(i) -> tell(i); does("FREEZE\n");
      freezes--; set_frozen(1); breaks_rules(i) }
  :: atomic { wakes(i) -> tell(i); does("THAW\n"); set_frozen(0) }
  od
}

#define all_answered(i) (LINE(i) != k || handle[i].unanswered + handle[i].forgotten == 0)
proctype connection(byte k) {
  byte i;
  do
  :: atomic { calls(k) && !line[k].up && reaches(k) -> tell(k); does("CONNECT\n");
      line[k].up = 1; i = 0;
      /* until all that may be under way has expired, by a clock that is right, or fast [doubt-awaited] */
      if :: line[k].doubt = line[k].expires :: line[k].expires > 0 -> line[k].doubt = line[k].expires + MARGIN fi;
      do :: i < N -> if :: LINE(i) == k -> doubt_ends() :: else fi; i++ :: else -> break od; i = 0 }
  :: atomic { nempty(down[k]) && !frozen[k] && acknowledged(k) && first(k) -> down[k]?i, what, value, age;
      tell(i); does("GOT %e %d %d\n", what, value, age);
      if
      :: on_push() /* message() */
      :: !is_push && me.forgotten > 0 -> me.forgotten--
      :: else -> me.unanswered--; me.sent = me.sent & kind_of(i); answered();
        if :: waiting(i) -> answer_to_waiter() :: holding(i) -> reply_held() :: else -> reply_ending() fi
      fi;
      doubt_ends();
      if :: me.unanswered + me.forgotten == 0 -> me.sent = 0 :: else fi;
      if :: !is_push && doubt_over(k) && each(all_answered, &&) -> line[k].expires = 0 :: else fi; /* nothing can come to be in doubt [idle-forgets] */
      what = FREE; value = 0; age = 0; rest = 0; i = 0 }
  :: atomic { line[k].up && (breaks > 0 && unlucky(k) || !serves(k)) && first(k) -> tell(k); does("BREAK\n");
      if :: serves(k) -> breaks-- :: else fi; broken(k) }
  od
}

/* The requests of one connection, in order, and late ones of those before it. */
#define subscribes(k) up[k]?[_, SUBSCRIBE, _, _]
proctype server(byte k) {
  byte i;
  do
  :: atomic { serves(k) && subscribes(k) && has_room(k) -> up[k]?i, kind, tok, age; subscribe(); say("listens %d 2\n", i); i = 0; kind = 0; tok = 0; age = 0 }
  :: atomic { each_line(has_room, &&) && token < TOKENS && reads && (nempty(late[k]) && arrives(k) || serves(k) && nempty(up[k]) && !subscribes(k)) ->
      if
      :: serves(k) && nempty(up[k]) && !subscribes(k) -> up[k]?i, kind, tok, age; alive = 1
      :: nempty(late[k]) && arrives(k) -> late[k]?i, kind, tok, age; alive = 0
      fi;
      script();
answer:
      say_call();
      also_done();
      if :: alive -> down[k]!i, what, value, age :: else fi;
      i = 0; kind = 0; tok = 0; age = 0; value = 0; heir = 0; former = 0; base = 0; ended = 0; rest = 0; what = FREE; alive = 0;
      n = 0; w = 0; found = 0 }
  :: atomic { listens[k] == 1 && arrives(k) -> listens[k] = 0; say("listens %d 0\n", k) } /* it notices that a connection is dead */
  od
}

/* Time passes only when each client has done what is due, and no answer is late (that would be a break). */
#define late_answer(k) (down[k]??[_, YES, _, RESPONSE] || down[k]??[_, NO, _, RESPONSE] || down[k]??[_, GONE, _, RESPONSE] || \
                        down[k]??[_, VOID, _, RESPONSE] || down[k]??[_, FAILED, _, RESPONSE] || \
                        down[k]?[_, GRANT, _, eval(MESSAGE)])
#define late_request(k) (up[k]?[_, _, _, RESPONSE])
#define send_due(i) (handle[i].sends == 0 && (line[LINE(i)].up || !OFFLINE) && (!line[LINE(i)].up || may_send(i)))
#define still(i)    (frozen[i] || handle[i].phase == CRASHED || \
                     !also_due(i) && !send_due(i) && !late_answer(LINE(i)) && !late_request(LINE(i)) && !over(i))

/* Requests and answers grow older. What has expired need not be kept. */
#define OLDER(channel, type, kept) \
  n = len(channel); \
  do :: n > 0 -> n--; channel?who, type, value, age; age = (age < WAITER + LEASE -> age + 1 : age); \
       if :: kept -> channel!who, type, value, age :: else -> say("expired %d %d %d\n", who, type, value) fi \
     :: else -> break od

proctype clock() {
  byte i;
  do
  :: d_step { thrown && each(still, &&) ->
      say_tick();
      server_tick();
      for (i : 0 .. N - 1) {
        tell(i); does("LOOK\n");
        later(note[i]); later(me.ends); later(me.left); later(me.sends); on_tick()
      }
      for (i : 0 .. LINES - 1) {
        later(line[i].expires); later(line[i].doubt);
        OLDER(up[i], kind, true); OLDER(down[i], what, true); OLDER(late[i], kind, kind == RELEASE || age <= RESPONSE)
      }
      for (i : 0 .. N - 1) { doubt_ends() }
      i = 0; n = 0; who = 0; kind = 0; age = 0; what = FREE; value = 0; does("TICK\n") }
  od
}
#include "promises.pml"
