/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An option: locks that the client keeps while nobody else wants them.
 */
#ifndef FAIRLOCK_OPTION_KEEP_H
#define FAIRLOCK_OPTION_KEEP_H

#include "fairlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in fairlock.h. */
#define fairlock_use_keeping PORT_NAMED(fairlock_use_keeping)

/* Of struct fairlock_keeping. Private. */
struct fairlock_keeping_state {
  struct fairlock_link link;

  /* true while a task receives, and so notices at once what the server says. NULL: not known */
  const bool *serviced;

  /* called when operations have ended here, to wake the tasks that wait for them; NULL: none */
  void (*answered)(void *context);
  void *context;

  /* when an operation was last delayed to receive first */
  uint32_t looked_at;

  /* an arming awaits answers */
  bool arming;

  /* sequence number of the last of them */
  uint16_t arm_sequence;

  /* whether this connection tracks keys */
  uint8_t tracking;

  /* the arming begins with CLIENT TRACKING */
  bool begins_tracking;

  /* an arming is written before the request that is being written */
  bool arms;

  /* the push that is being read names keys that have changed */
  bool invalidates;
};

/* An option: locks that are kept. */
struct fairlock_keeping {
  uint32_t keep_ms; /* at most, after the last acquire that was sent: 1 to two thirds of lease_ms */

  /* the rest is private */
  struct fairlock_keeping_state own;
};

/*
 * Makes the client keep its locks. If a lock was acquired with FAIRLOCK_RENEW, and nobody waits
 * when it is released, that release and the next acquire with FAIRLOCK_RENEW are answered here, and
 * nothing is sent: the hold goes on, with its token. With less than two thirds of the lease left,
 * an acquire begins another hold at the server. The keep ends when any client queues, which holds
 * two round trips later, or an operator asks. Until then the lock is not held:
 * fairlock_remaining_ms(), _hold_count() and _token() are 0, any task may acquire, and `lost` is
 * not called. Others see a holder: a try is refused, until the keep ends.
 *
 * Some task has to service the client. Before it exits, a program calls fairlock_deinit() for each
 * handle, or what is kept stays held until its lease ends. If nobody has done so for 100 ms, an
 * acquire or a release receives first, for up to a millisecond: fairlock_start_...(),
 * FAIRLOCK_PENDING as usual, then has its result after a later fairlock_poll(), otherwise at once.
 *
 * The server has to know CLIENT TRACKING (Redis since 6.0), and the user needs client|tracking,
 * client|caching and exists; otherwise the log says so, and nothing is kept. Returns FAIRLOCK_OK,
 * or FAIRLOCK_INVALID: keep_ms is out of its range. lock/README.md says more.
 */
int fairlock_use_keeping(struct fairlock_client *client, struct fairlock_keeping *keeping);

#ifdef __cplusplus
}
#endif

#endif
