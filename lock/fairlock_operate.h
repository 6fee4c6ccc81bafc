/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For operators: looks at a lock, ends its hold, or asks its holder to release it; and what that
 * holder is told.
 */
#ifndef FAIRLOCK_OPTION_OPERATE_H
#define FAIRLOCK_OPTION_OPERATE_H

#include "fairlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in fairlock.h. */
#define fairlock_start_force_release PORT_NAMED(fairlock_start_force_release)
#define fairlock_start_ask_release   PORT_NAMED(fairlock_start_ask_release)

/* What a holder or a waiter uses. */
enum fairlock_kind {
  FAIRLOCK_KIND_NONE,     /* there is nobody: the lock is free */
  FAIRLOCK_KIND_REDISSON, /* a fair lock of Redisson */
  FAIRLOCK_KIND_FAIRLOCK  /* this library, of any release */
};

/* Whether a holder or a waiter seems to be alive. */
enum fairlock_life {
  FAIRLOCK_LIFE_UNKNOWN, /* a free lock; a holder that does not renew, such as Redisson's; a waiter
                            with the unreadable note of a later release */
  FAIRLOCK_LIFE_ALIVE,   /* heard in time */
  FAIRLOCK_LIFE_DEAD     /* a waiter not heard within its timeout; a holder that missed two
                            renewals */
};

/* How the last hold of a lock has ended. */
enum fairlock_last_end {
  FAIRLOCK_LAST_EXPIRED,  /* not by a release: its lease ran out, or its key was deleted */
  FAIRLOCK_LAST_RELEASED, /* it was released, or given up */
  FAIRLOCK_LAST_BROKEN    /* by fairlock_force_release() or `fairlock break` */
};

/*
 * The last hold of a free lock, if that is known: for one or two days, and not of Redisson's. If it was
 * shared, who came last, and when and how the last of all holds ended that did not expire.
 */
struct fairlock_last {
  const char *id;             /* of its holder, without a NUL; NULL: not known, and the rest is 0 */
  size_t id_size;             /* bytes at id. It is "?" if the receive buffer has no room for it */
  uint64_t token;             /* its fencing token, which is the server's time when it began, in us
                                 since 1970, or slightly more */
  int64_t lasted_ms;          /* for how long it was held; -1: not known */
  enum fairlock_last_end end; /* how it has ended */
  const char *words;          /* who broke it, and perhaps a space and why, without a NUL: as for
                                 struct fairlock_asking */
  size_t words_size;          /* how many; 0: nobody has said it */
};

/* One entry of an inspection. The second part is for place 0 alone. */
struct fairlock_report {
  const char *id;          /* of the holder or waiter, without a NUL; NULL: the lock is free */
  size_t id_size;          /* bytes at id. It is "?" if the receive buffer has no room for it */
  enum fairlock_kind kind; /* of client */
  enum fairlock_life life; /* as far as is known */
  bool listens;            /* it hears of a handover, or fairlock_ask_release() */
  bool shares;             /* it shares the lock, or waits to */
  uint32_t place;          /* 0: a holder, or nobody holds; 1: first in line, and so on */

  uint32_t waiter_count; /* how many wait */
  uint32_t holder_count; /* how many hold; 0: the lock is free */
  uint32_t holder_index; /* which of them this is, from 0, the one whose lease ends last */
  uint32_t limit;        /* the smallest limit in use of those who share; 0: none, or exclusive */
  int64_t ttl_ms;        /* the rest of the lease; -1: it does not end; -2: the lock is free */
  uint32_t hold_count;   /* 0: free, or a handover that is not confirmed yet */
  uint64_t token;        /* the fencing token; 0: free, or none, or it cannot be read */
  uint32_t lease_ms;     /* the whole lease; 0: free, or not known: Redisson's, of an earlier
                            release, re-entered */
  int64_t unheard_ms;    /* since the holder was heard, by the server's clock; -1: not known */
  bool renews;           /* as with FAIRLOCK_RENEW; false: or not known */
  bool outdated;         /* whoever comes now gets FAIRLOCK_OUTDATED */

  /* Of the first holder, if several limits are in use: up to nine in decimal, ascending, a space
     between them, without a NUL. 0 bytes: fewer, or the id is "?" */
  const char *limits;
  size_t limits_size;

  struct fairlock_last last; /* of a free lock */
};

/*
 * A callback: one entry. First the holders (place 0), one if the lock is not shared, then the
 * waiters in order. After false it is not called again, and the inspection ends with FAIRLOCK_OK
 * when the rest was read. If the connection breaks, all begins again.
 */
typedef bool (*fairlock_report_fn)(const struct fairlock_report *report, void *context);

/*
 * Reports who holds the lock called name, and who waits, and changes nothing. Returns FAIRLOCK_OK,
 * _IN_PROGRESS (another task inspects with this client), or a failure as fairlock_acquire(), with a
 * report that may be incomplete.
 */
int fairlock_inspect(struct fairlock_client *client, const void *name, size_t size,
                     fairlock_report_fn report, void *context);

#define FAIRLOCK_ANY_TOKEN UINT64_MAX /* of no hold: stands for each */

/*
 * Ends the hold of the lock called name, and hands the lock to the next in line. token: only a hold
 * with this fencing token, as reported; FAIRLOCK_ANY_TOKEN: whoever holds, or all who share it.
 * The holder is told at once, by a message, and renews, which finds that its hold is lost: if it
 * listens, as with `asked` of its configuration, or after a wait in the queue, and renews its lease.
 * Otherwise, or if the message is lost, it believes that it holds until its next renewal or release.
 * So does a waiter whose grant is on its way. Where that matters, fence with the token.
 *   FAIRLOCK_OK        it has ended; during a fail-over, perhaps on the old master alone: inspect
 *       again
 *   FAIRLOCK_NOT_HELD  the lock is free, or has another hold: nothing was done, or that hold was
 *       ended, but the connection broke before the answer
 *   FAIRLOCK_INVALID   token is 0, or above 2^53. A hold with token 0, such as Redisson's, is named
 *       by its holder: fairlock_start_force_release()
 *   others             as for fairlock_acquire(). With FAIRLOCK_ANY_TOKEN, a broken connection has
 *       the request sent again, which may end the next hold, too
 */
int fairlock_force_release(struct fairlock_client *client, const void *name, size_t size,
                           uint64_t token);

/*
 * Asks the holder to release: its client calls `asked` of its configuration, and decides. Does not
 * wait for that. Returns as above, but
 *   FAIRLOCK_OK             the message was sent to a holder that listens. It may be lost, or
 *       ignored
 *   FAIRLOCK_NOT_LISTENING  its holder cannot be asked: it does not listen, or is Redisson's
 */
int fairlock_ask_release(struct fairlock_client *client, const void *name, size_t size,
                         uint64_t token);

/*
 * What `asked` is told, once for each message of fairlock_ask_release() or `fairlock break --ask`.
 * The hold goes on until the program releases it. A message may be lost, as is one for which the
 * receive buffer has no room: up to 215 bytes with words.
 */
struct fairlock_asking {
  uint64_t token;    /* of the hold */
  const char *words; /* who asks, a word, and perhaps a space and why: any bytes, without a NUL,
                        which anybody may have sent: escape what you show */
  size_t size;       /* how many; 0: the message does not say it */
};

/* Of struct fairlock_target. Private. */
struct fairlock_target_state {
  struct fairlock_inquiry inquiry;
  int8_t mode;
};

/* The hold that is meant: one that has this token and this holder. */
struct fairlock_target {
  uint64_t token;     /* its fencing token, at most 2^53; FAIRLOCK_ANY_TOKEN: any, or none. So is 0
                         with a holder, as in a report; without one it is FAIRLOCK_INVALID */
  const char *holder; /* its id, as reported, with a NUL; NULL: any. One that no client makes, as it
                         is empty, is *, or has white space, is FAIRLOCK_INVALID. A holder without
                         tokens, such as Redisson's, is meant also in a new hold */
  const char *words;  /* who asks for this, a word of at most 64 bytes that does not begin with a
                         digit, and perhaps a space and why, at most 128 bytes, with a NUL: else
                         FAIRLOCK_INVALID. The holder is told, and so is who inspects the lock. NULL,
                         "": it is not said */

  /* the rest is private */
  struct fairlock_target_state own;
};

/*
 * Without blocking, as fairlock_start_acquire(), with a handle that neither holds nor waits. target
 * stays unchanged until the operation has ended.
 */
int fairlock_start_force_release(struct fairlock *handle, struct fairlock_target *target);
int fairlock_start_ask_release(struct fairlock *handle, struct fairlock_target *target);
int fairlock_start_inspect(struct fairlock *handle, fairlock_report_fn report, void *context);

#ifdef __cplusplus
}
#endif

#endif
