/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the lock promises, one file for each promise. A promise owns its part of each party and each
 * lock, the checks of it, and its excuses: the reasons for which a world may break it. An excuse is
 * a function of its own, or a condition with a comment, next to the check.
 *
 *   exclusion.c   one holder, or those who share: the server covers what a holder believes
 *   sharing.c     who share are at most as many as their limit, and nobody has the lock alone beside
 *                 them
 *   losses.c      a holder learns that its hold has ended
 *   tokens.c      tokens rise
 *   order.c       first come, first served
 *   handover.c    a release hands the lock to the next in line, and says so
 *   repetition.c  a request that is repeated, or comes late, does no harm
 *   leases.c      a hold lasts for as long as was asked for
 *   queue.c       the data of the queue are whole, also after a script that was stopped half-way
 *   peers.c       Redisson's waiters and ours share a queue, and drop nobody
 *   progress.c    whoever asks gets a result, and a free lock its next holder
 *   leftovers.c   nothing is left behind
 *   kept.c        a lock that is kept is nobody's: whoever waits gets it
 *
 *   observe.c     what the server's memory shows, and the excuses that concern all promises
 *   holders.c     who holds, as it shows it
 *   checks.c      asks all of them, after each script
 */
#ifndef SIM_PROMISES_H
#define SIM_PROMISES_H

#include "redis.h"

#include <stdbool.h>
#include <stdint.h>

struct world;
struct lock;
struct link;
struct party;
struct device;

/*
 * How many of a party's holds are remembered that were ended by force, and as many that a server
 * lost: for each, the message that granted it may still be on its way.
 */
#define REMEMBERED 16

/* observe.c */

/*
 * No excuse for all promises but those on tokens, losses, results and progress: the server's clock has
 * not jumped or fallen behind, and no key was evicted so far.
 */
bool world_safe(const struct world *world);
/* One of these faults has stopped a script half-way, and lately. */
bool world_stopped(const struct world *world, unsigned faults);
/* Safe, and no script was denied a command lately. */
bool world_ordered(const struct world *world);
/* With two servers: a fail-over may lose nothing that anybody believes in. */
bool world_strict(const struct world *world);

int64_t world_server_ms(const struct world *world);
struct party *party_named(const struct world *world, struct text id); /* NULL: there is none */
struct text value_of(const struct key *key, const char *field);       /* empty: none */
uint64_t number_of(struct text text);                                 /* 0: it is none */
const struct entry *score_of(const struct party *party);              /* in the queue; NULL: none */
/* By our scripts, a waiter of ours was heard within its timeout. In whole ms, as they count. */
bool party_alive(const struct party *party);
bool party_listens(const struct party *party);
/* In the world's time; by a clock that is ahead by so much. */
int64_t expiry_time(int64_t expires, int64_t jump);

/* What the server notes of a waiter, in ms of its clock. */
struct note {
  int64_t alive_until;
  int64_t timeout_ms;
  int64_t claim_ms; /* the same if it names none */
};

struct note read_note(struct text text);

/* holders.c */

/* What the master's memory shows that a party has of its lock, after the last script. */
struct held {
  bool is;
  bool shared;
  uint64_t token;  /* 0: Redisson's */
  int64_t expires; /* ms of the server's clock */
  int64_t count;   /* 0: a claim */
};

/* Those who hold a lock, by their tokens. */
struct holders {
  struct party **list;
  uint32_t used, size;
};

/* Reads who holds now, and who has until now: party->held, party->held_before. */
void holders_read(struct world *world, struct lock *lock);
void holders_free(struct lock *lock);
bool hold_is_shared(const struct key *hash); /* NULL: there is none */
/* How many share, says the field that counts them. */
int64_t holders_counted(const struct key *hash, int64_t now);
/* When a party's hold ends, in the world's time; INT64_MIN: it has none. hash: NULL, none. */
int64_t hold_end(const struct key *hash, const struct party *party, int64_t jump);
uint64_t share_token(const struct key *hash, const struct entry *entry);
bool party_holds(const struct party *party, uint32_t token); /* its lower half */
bool hold_revived(const struct party *party, uint64_t token);

/* exclusion.c */

/* A hold that somebody else has ended by force. */
struct forced {
  uint64_t token;
  uint32_t at;   /* on the device's clock */
  int64_t until; /* when its lease would have ended */
};

/* A hold that the master does not have, or not for as long as its holder was told. */
struct stray {
  uint64_t token;
  int64_t until; /* it may be believed in until then; INT64_MAX: for as long as it is renewed */
};

/*
 * A hold that the master has from the one before it, which was told to end it by force. Once
 * failover_stream() is another, that one is a replica, and has the hold again.
 */
struct broken {
  uint64_t token;
  uint32_t stream;
};

struct belief {
  bool holds; /* it believes that it does */
  int64_t until;
  uint64_t token;
  struct party *next; /* of the lock's believers */
  uint64_t epoch;     /* of the server's data, when the hold began */
  struct forced forced[REMEMBERED];
  unsigned forced_count;
  struct stray strays[REMEMBERED];
  unsigned stray_count;
  struct broken broken;
};

void check_belief(struct party *party, bool believes, int64_t until, uint64_t token);
void check_covers(const struct lock *lock); /* of all believers */
bool belief_excused(struct party *party);
bool belief_stray(struct party *party); /* it believes in what another server has told it */
struct forced *belief_forced(struct party *party, uint64_t token); /* NULL: it was not */
void belief_end_by_force(struct party *holder, uint64_t token, int64_t until);
void belief_add_stray(struct party *party, uint64_t token, int64_t until);
/* The master before this one has ended by force a hold that this one has from it. */
void belief_note_broken(struct party *party, uint64_t token);
/* The master has confirmed the hold, on that connection. */
void belief_end_stray(struct party *party, const struct link *link);
/*
 * What the party had until now may not be what it believes since a fail-over from the old server,
 * whose clock was ahead by that. same: the new master has the same hold.
 */
void belief_note_lost(struct party *party, bool same, struct redis *old, int64_t jump);

/* sharing.c */

bool may_share(const struct party *party, const struct party *other);
void check_holders(struct world *world, struct lock *lock);
void check_let_in(struct world *world, struct lock *lock);
/* When a share that lasts for so long ends, ms of the server's clock. */
int64_t share_end(const struct world *world, int64_t duration_ms);
/* The first in line that is alive and listens, and shares the lock while there is room; NULL. */
struct party *next_to_share(struct world *world, struct lock *lock);

/* losses.c */

struct loss {
  bool over;     /* the server has ended its last hold, or lost it */
  uint32_t at;   /* on the device's clock */
  uint64_t told; /* the token of the last hold that the engine said was lost: its lease ends it */
};

void loss_end_hold(struct party *party); /* NULL: nobody */
void check_lost(struct party *party);    /* the engine says that the hold is lost */
void check_told_of_loss(const struct party *party, bool held);
void check_renewal(struct party *party, int64_t until);

/* tokens.c */

struct tokens {
  uint64_t given, believed; /* the highest */
  uint64_t alone;           /* the highest believed in by one who had the lock alone */
};

void check_token_given(const struct party *party, uint64_t token);
void check_token_own(const struct party *party, uint64_t token);
void check_token_believed(struct party *party, uint64_t token);

/* order.c */

/* A place in the queue, as the server saw it. */
struct place {
  bool queued;
  struct party *before, *after;
  uint64_t earliest, latest; /* arrivals: the first, and the first since when it was kept */
  int64_t heard, arrived;
  int64_t changed; /* when it was first heard on its present connection */
  struct link *link;
  /* of a waiter of ours, by its last heartbeat; until then it lives, ms of the server's clock */
  int64_t timeout_ms, claim_ms, alive_until;
  uint64_t heard_step; /* in which the request was sent */
  bool uncertain;      /* its leave was refused half-way: it may have kept its place */
  bool revived;        /* a place that the new master knew of: its leave may have been lost */
  bool astray;         /* it left on a server that is no master: the master has not heard of it */
};

/* Who waits, by arrival. */
struct arrivals {
  struct party *first, *last;
  uint64_t count;
};

void order_heard(struct party *party, struct link *link);
void order_leave(struct party *party);
void order_take_place(struct party *party, struct text note); /* that the new master knows of */
void check_order(struct party *party);
void check_barging(struct party *party);
void check_heartbeat(const struct party *party, const struct link *link);

/* handover.c */

struct handover {
  bool claims;   /* it was handed the lock, and has not confirmed it */
  bool by_claim; /* its last hold began so */
  bool revived;  /* to a place that a fail-over has brought back */
};

void check_told(struct party *party, const struct party *by);
void check_claim(struct party *party);
void check_handover(struct world *world, struct lock *lock);
void check_confirmed(void *party, uint32_t token); /* an event */

/* repetition.c */

struct repetition {
  uint64_t released;  /* of the last hold it has ended */
  uint64_t releasing; /* of the hold being released */
  uint64_t elsewhere; /* the highest that it has released on a server that was no master */
};

void check_count(const struct party *party, int64_t mode);
void check_repeated(struct party *party, uint64_t token, bool done);
void check_release(struct party *party, int result);
void check_late_leave(struct party *party, const struct link *link);

/* leases.c */

struct lease {
  uint32_t asked_ms;  /* of the operation; FAIRLOCK_RENEW: renewed */
  int64_t from;       /* when the holder learned of it */
  int64_t ends;       /* INT64_MAX: not known, or it is renewed */
  uint64_t held_step; /* in which the request was sent that the last hold began with, if any */
};

void check_lease(const struct party *party, bool confirms, uint64_t lease_ms, int64_t before);
int64_t lease_asked(const struct party *party);
/* The hold with the token may last on the server for this long from now on. */
void lease_may_last(struct party *party, uint64_t token, int64_t lease);
/* An acquire has extended the hold; perhaps a late one, of which the holder does not know. */
void lease_extended(struct party *party, const struct link *link, int64_t mode, uint64_t lease_ms);

/* queue.c */

void check_queue(struct world *world, struct lock *lock);
void check_dropped(struct world *world, struct lock *lock);
void check_whole(struct world *world, struct text error);

/* peers.c */

/* Redisson's waiters have no timeout of their own. */
#define REDISSON_TIMEOUT ((int64_t)FAIRLOCK_REDISSON_TIMEOUT_MS * MS)

/* Of a Redisson waiter. */
struct peer {
  bool late;        /* it was woken and could not act in time: it may have lost its place */
  bool forced;      /* somebody has forced its release */
  double score;     /* in the queue */
  int64_t acquired; /* when it began its last hold, ms of the server's clock */

  /* by our notes: its score when our scripts first found that it did not listen, and when, in ms */
  double suspect_score;
  int64_t suspected;
};

/* Which of them our scripts have woken, by our notes: its score then, and when, in ms. */
struct woken {
  struct party *party;
  double score;
  int64_t at;
};

void peers_note(const struct world *world, struct lock *lock);
void check_first(struct world *world, struct lock *lock);
void check_score(struct world *world, const struct party *party, const struct entry *score,
                 int64_t place);
void check_redisson(struct world *world, struct lock *lock, bool by_us);

/* progress.c */

/* An operation. */
struct progress {
  uint32_t operation; /* counts them */
  int64_t started;
  uint64_t start_step;
  const struct link *began_on; /* the connection then */
  int64_t due;                 /* when it is over, if it is answered */
  int64_t frozen;              /* the device's frozen time until now, as far as due contains it */
  bool endless;
  int64_t asked_at;    /* when its newest acquire came to the master, whatever the answer */
  uint64_t asked_step; /* in which that was sent */
};

/* A lock that is free, with somebody waiting. */
struct idle {
  int64_t since; /* -1: it is not so */
  bool ours;     /* and somebody of ours */
};

/* An operation was asked for. bound_ms: how long it may take; FAIRLOCK_FOREVER: no limit. */
void progress_started(struct party *party, uint32_t bound_ms);
void progress_asked(struct party *party, const struct link *link);
/* What a program sends reaches the server, and has done so since that time. */
bool progress_goes_through(const struct party *party, int64_t since);
void check_given_up(struct party *party, int result);
void check_asked(const struct party *party, int result);
void check_idle(struct world *world, struct lock *lock);
/* The network is whole: whoever waits has asked the master lately. */
void check_asking(struct world *world);

/* leftovers.c */

struct left {
  /* when its program was last done with the lock, and when it had asked for that */
  int64_t at, asked;
  uint64_t
      astray; /* the step in which it sent its last leave, to a server that was no master; 0: it did not */
  bool taken_out; /* it was, as the engine has said that nothing is left of it */
  bool unheard;   /* and the server refused meanwhile to end its subscription */
  bool barred;    /* and refused meanwhile, for good, to end its place */
};

void left_done(struct party *party);      /* its program is */
void left_taken_out(struct party *party); /* it is */
void left_astray(struct party *party, const struct link *link);
void left_heard(struct party *party, const struct link *link); /* by the master */
void check_free(const struct party *party);
void check_nothing_of(const struct party *party); /* the handle is FREE, or it is being taken out */
void check_gone_waits(const struct party *party);
void check_gone_holds(const struct party *party);
void check_wanted(struct party *party, uint64_t token); /* or given back in time */
void check_subscriptions(struct world *world);
void check_nothing_left(struct world *world, bool swept);

/* kept.c */

struct kept {
  bool is;        /* when it was last looked at */
  int64_t ended;  /* when it was seen not to be any more */
  uint64_t token; /* of the last hold that was kept: one may believe in it again */
  bool answered;  /* the release was answered by that, and not by the server */
};

bool kept_now(const struct party *party);
bool kept_hold(const struct party *party, uint64_t token);
void check_kept(struct party *party);
void check_keep_lasts(struct party *party); /* an operation has ended well */
void check_taken_back(const struct party *party);
void check_recalled(struct lock *lock); /* somebody has queued for it */

/* checks.c */

void check_execution(struct world *world, const struct execution *execution);
void check_wiped(struct world *world);
/* The master is another one now; before, the clock of the old one was ahead by that. */
void check_promoted(struct world *world, struct redis *old, int64_t jump);

#endif
