/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several locks at once: all of them, or none.
 */
#ifndef FAIRLOCK_OPTION_SEVERAL_H
#define FAIRLOCK_OPTION_SEVERAL_H

#include "fairlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in fairlock.h. */
#define fairlock_acquire_all PORT_NAMED(fairlock_acquire_all)
#define fairlock_release_all PORT_NAMED(fairlock_release_all)

/*
 * Acquires the locks of count handles, waiting for up to wait_ms for all of them together; wait_ms
 * and lease_ms are those of fairlock_acquire(). They are taken one after the other, in the order of
 * the unsigned bytes of their names, whatever the order in handles; of two names of which one
 * begins with the other, the shorter first. So those who take several by this function, or in this
 * order, never wait for each other in a circle. Nor must who calls it hold a lock that comes behind
 * one of these. Each hold has its own token: fairlock_token().
 *
 * Those that were taken are held while the rest is waited for, so nobody else has them meanwhile.
 * If one of them is lost, or one is not acquired, all that were taken are released before this
 * returns. Returns
 *   FAIRLOCK_OK       all are held, each once more than before; also if count is 0
 *   FAIRLOCK_LOST     one was lost before all were held
 *   FAIRLOCK_INVALID  two have the same name
 *   others            as fairlock_acquire(), of the lock that was not acquired
 *
 * fairlock_cancel() ends it from another task if it is called for the handle that waits: for each,
 * until one returns FAIRLOCK_OK.
 *
 * Handles of one client need no other task. Handles of several clients, as of slots of a cluster
 * that are not on one node, need a task that services each, or it loses what it holds meanwhile.
 */
int fairlock_acquire_all(struct fairlock *const handles[], size_t count, uint32_t wait_ms,
                         uint32_t lease_ms);

/* fairlock_release() of each. Returns FAIRLOCK_OK, or the first other status; all are released. */
int fairlock_release_all(struct fairlock *const handles[], size_t count);

#ifdef __cplusplus
}
#endif

#endif
