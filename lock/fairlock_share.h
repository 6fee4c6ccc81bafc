/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are shared, up to a limit or without one; and an option: holds that become shared.
 */
#ifndef FAIRLOCK_OPTION_SHARE_H
#define FAIRLOCK_OPTION_SHARE_H

#include "fairlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in fairlock.h. */
#define fairlock_use_downgrading   PORT_NAMED(fairlock_use_downgrading)
#define fairlock_init_shared       PORT_NAMED(fairlock_init_shared)
#define fairlock_init_shared_bytes PORT_NAMED(fairlock_init_shared_bytes)

#define FAIRLOCK_LIMIT_MAX 1000U /* the largest limit */

/* Of struct fairlock_shared, for downgrade.c. Private. */
struct fairlock_shared_state {
  /* whose hold it is to get */
  uint32_t from_number;
  uint64_t from_token;

  /* of the request that is being written: the token of its own last hold; 0: not newer */
  uint64_t newer;
};

/* Of struct fairlock_downgrading. Private. */
struct fairlock_downgrading_state {
  struct fairlock_link link;
};

/* A handle that shares its lock. */
struct fairlock_shared {
  struct fairlock handle; /* for all functions of a handle */

  /* the rest is private */
  uint16_t limit;
  struct fairlock_shared_state own;
};

/*
 * Makes shared->handle a view of the lock called name, as fairlock_init() and _init_bytes() do,
 * that shares it: up to limit such handles hold it at a time, 1 to FAIRLOCK_LIMIT_MAX; 0: any
 * number. Who wants it exclusively, by fairlock_init() or in Redisson, waits in the same queue
 * until none does. Of different limits, the smallest in use binds all: each is in use until the
 * lease of who named it would end, or its waiter timeout if that is longer, unless nobody else
 * holds. So programs that start with a new limit change it. The token is larger than that of each
 * exclusive hold before it; of two who share, the later may have the smaller one, as its share was
 * kept, or the answer to its request was lost.
 *
 * There is no upgrade: release, acquire exclusively by a second handle, and look again at what was
 * read. Who waits by the one while it holds by the other waits for ever, if two do. Returns
 * FAIRLOCK_OK, _TOO_LONG, or _INVALID: a name or a limit out of its range.
 */
int fairlock_init_shared(struct fairlock_shared *shared, struct fairlock_client *client,
                         const char *name, uint32_t limit);
int fairlock_init_shared_bytes(struct fairlock_shared *shared, struct fairlock_client *client,
                               const void *name, size_t size, uint32_t limit);

/* An option: holds that are exclusive become shared ones. */
struct fairlock_downgrading {
  struct fairlock_downgrading_state own; /* private */
};

/* Lets the client downgrade. Returns FAIRLOCK_OK. */
int fairlock_use_downgrading(struct fairlock_client *client, struct fairlock_downgrading *option);

/*
 * From exclusive to shared: shared, of the same client and lock, gets the hold of exclusive, with a
 * larger token and this lease. Others may join, but nobody gets in between. If exclusive is not
 * held exactly once, by the calling task, or shared is in use, or the client does not use
 * downgrading, nothing is done: FAIRLOCK_NOT_HELD, _INVALID, _WRONG_TASK, _IN_PROGRESS. Otherwise
 * exclusive holds no longer, whatever is returned:
 *   FAIRLOCK_OK    shared holds
 *   FAIRLOCK_LOST  the hold had ended before, or the new one by the time the call returned
 *   others         as for fairlock_acquire() without a limit. If something is left of a hold, the
 *       client ends it while it is serviced, or its lease does
 * Without blocking, both handles have a result: shared's as of an acquire, which fairlock_cancel()
 * may end, exclusive's as of a release.
 */
int fairlock_downgrade(struct fairlock *exclusive, struct fairlock_shared *shared,
                       uint32_t lease_ms);
int fairlock_start_downgrade(struct fairlock *exclusive, struct fairlock_shared *shared,
                             uint32_t lease_ms);

#ifdef __cplusplus
}
#endif

#endif
