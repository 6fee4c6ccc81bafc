/* SPDX-License-Identifier: Apache-2.0 */
/* For operators: looking at a lock, ending its hold, and asking its holder to release it. */
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
  FAIRLOCK_LIFE_UNKNOWN, /* nothing tells: a holder that does not renew, such as Redisson's; a waiter
                            of a later release, whose note cannot be read here; a free lock */
  FAIRLOCK_LIFE_ALIVE,   /* heard in time */
  FAIRLOCK_LIFE_DEAD     /* a waiter not heard within its timeout, or a holder that has missed two
                            renewals */
};

/* One entry of an inspection. Valid during the call only. The second part is for place 0 alone. */
struct fairlock_report {
  const char *id; /* the id of the holder or of a waiter, without a NUL; NULL: the lock is free */
  size_t id_size; /* bytes at id. One that the receive buffer has no room for is "?" */
  enum fairlock_kind kind; /* of client */
  enum fairlock_life life; /* as far as is known */
  bool listens;   /* it listens: a handover would reach a waiter, and fairlock_ask_release() the
                     holder */
  bool shares;    /* it shares the lock, or waits to */
  uint32_t place; /* 0: a holder (or nobody holds), 1: first in line, and so on */

  uint32_t waiter_count; /* how many wait */
  uint32_t holder_count; /* how many hold; 0: the lock is free */
  uint32_t holder_index; /* which of them this is, from 0: the one whose lease ends last is first */
  uint32_t limit; /* how many may share: the smallest limit in use; 0: none is, or exclusive */
  int64_t ttl_ms; /* how much of the lease is left; -1: it does not end; -2: the lock is free */
  uint32_t hold_count; /* 0: the lock is free, or was handed over and is not confirmed yet */
  uint64_t token;      /* the fencing token; 0: free, or none, or it cannot be read */
  uint32_t lease_ms;   /* the whole lease; 0: free, or not known: Redisson's, of an earlier release,
                         re-entered */
  int64_t unheard_ms;  /* since the holder was last heard, by the server's clock; -1: not known */
  bool renews;         /* as with FAIRLOCK_RENEW; false: or not known */
  bool outdated; /* a later release uses the lock in a way that this one does not know: whoever
                          comes now gets FAIRLOCK_OUTDATED */

  /* Of the first holder, where several limits are in use: up to nine of them, the smallest first, in decimal,
   * a space between them, without a NUL. 0 bytes: there are not so many, or the id is "?" */
  const char *limits;
  size_t limits_size;
};

/*
 * A callback: one entry. The holders come first (place 0), one if the lock is not shared, then each
 * waiter in order. Returns whether to go on: after false it is not called again, and the inspection
 * ends with FAIRLOCK_OK when the rest of the answer was read. If the connection breaks meanwhile, all begins again
 * with the first holder.
 */
typedef bool (*fairlock_report_fn)(const struct fairlock_report *report, void *context);

/*
 * Reports who holds the lock called name, and who waits, in order, and changes nothing. Returns
 * FAIRLOCK_OK, FAIRLOCK_IN_PROGRESS (another task is inspecting with this client), or a failure as
 * for fairlock_acquire(), after which the report may be incomplete.
 */
int fairlock_inspect(struct fairlock_client *client, const void *name, size_t size,
                     fairlock_report_fn report, void *context);

/*
 * Ends the hold of the lock called name, and hands the lock to the next in line. token: only a hold
 * with this fencing token, as fairlock_inspect() has reported it; FAIRLOCK_ANY_TOKEN: whoever holds,
 * or all who share it. The holder finds out at its next renewal or release, and until then believes
 * that it holds; so does a waiter whose grant is on its way. Where that matters, fence with the token.
 *   FAIRLOCK_OK        that hold has ended; during a fail-over, perhaps on the old master alone: inspect
 *                      once more
 *   FAIRLOCK_NOT_HELD  the lock is free, or has another hold by now: nothing was done. Also if that
 *                      hold was ended, but the connection broke before the answer came
 *   FAIRLOCK_INVALID   token is 0, or larger than 2^53. A hold that was reported with token 0, such
 *                      as Redisson's, is named by its holder: fairlock_start_force_release()
 *   others             as for fairlock_acquire(). With FAIRLOCK_ANY_TOKEN, if the connection breaks,
 *                      the request is sent again, and may then end the next hold, too
 */
#define FAIRLOCK_ANY_TOKEN UINT64_MAX /* of no hold: stands for each */
int fairlock_force_release(struct fairlock_client *client, const void *name, size_t size,
                           uint64_t token);

/*
 * Asks the holder of the lock called name to release it: its client calls `asked` of its
 * configuration, and decides. Does not wait for the end of the hold. As above, but for
 *   FAIRLOCK_OK             the message was sent to a holder that listens. It may be lost, or ignored
 *   FAIRLOCK_NOT_LISTENING  its holder cannot be asked: it does not listen, or is Redisson's
 */
int fairlock_ask_release(struct fairlock_client *client, const void *name, size_t size,
                         uint64_t token);

/* Of struct fairlock_target. Private. */
struct fairlock_target_state {
  const struct fairlock_query *breaking;
  int8_t mode;
};

/* The hold that is meant: one that has this token and this holder. */
struct fairlock_target {
  uint64_t token;     /* its fencing token, at most 2^53; FAIRLOCK_ANY_TOKEN: any, or none. So is 0
                         with a holder, as in a report; without one it is FAIRLOCK_INVALID */
  const char *holder; /* the id of its holder, as in struct fairlock_report, with a NUL; NULL: any
                         holder. An id that is empty, is *, or has white space is FAIRLOCK_INVALID:
                         no client makes it. If a holder without tokens, such as Redisson's, has
                         acquired the lock again, the new hold is meant, too */

  /* the rest is private */
  struct fairlock_target_state own;
};

/*
 * The same without blocking, as fairlock_start_acquire(), with a handle that neither holds nor
 * waits. target stays unchanged until the operation has ended.
 */
int fairlock_start_force_release(struct fairlock *handle, struct fairlock_target *target);
int fairlock_start_ask_release(struct fairlock *handle, struct fairlock_target *target);
int fairlock_start_inspect(struct fairlock *handle, fairlock_report_fn report, void *context);

#ifdef __cplusplus
}
#endif

#endif
