/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving up a handle without waiting: for destructors, finalizers, and waits that nobody needs.
 */
#ifndef FAIRLOCK_OPTION_ABANDON_H
#define FAIRLOCK_OPTION_ABANDON_H

#include "fairlock_share.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in fairlock.h. */
#define fairlock_abandon PORT_NAMED(fairlock_abandon)

struct fairlock_rest;

/*
 * A callback: the memory of rest is the program's again, which may free it. Called once for each,
 * in whichever task services the client, and perhaps before fairlock_abandon() returns.
 */
typedef void (*fairlock_freed_fn)(struct fairlock_rest *rest, void *context);

/* Of struct fairlock_rest. Private. */
struct fairlock_rest_state {
  /* in the chain: that of one of them */
  struct fairlock_link link;
  struct fairlock_rest *next;
};

/* What is left of a handle that was given up, until the server has been told. */
struct fairlock_rest {
  fairlock_freed_fn freed; /* called when this memory is free. NULL: nobody is told */
  void *context;           /* passed to freed */
  char *name;              /* room for a copy of the lock's name. NULL: no copy, the name stays as
                              long as this memory */
  size_t name_size;        /* bytes of that room, at least those of the name */

  /* the rest is private */
  struct fairlock_rest_state own;
  struct fairlock_shared handle;
};

/*
 * Gives up whatever handle is doing (waiting, holding, releasing, being kept or taken out,
 * inspecting, or nothing), and takes it out of its client. Its memory is the caller's again at
 * once, and `ended`, `lost` and `asked` are called for it no more. Its place or hold on the server,
 * whatever the hold count, is ended in the background while some task services the client; rest is
 * needed until then. That takes a round trip; without a connection at most the lease, a waiter
 * timeout, response_ms, and until an attempt to connect has failed. If the server refuses it for
 * good, rest is freed, and what is left ends there.
 *
 * Any task may call it, also for another's hold, after that one's last call with handle. If a call
 * waits for handle, end that by fairlock_cancel(), and let its task abandon it.
 * fairlock_client_deinit() frees each rest, told or not.
 *   FAIRLOCK_OK           the handle is out, and `freed` was called or will be
 *   FAIRLOCK_IN_PROGRESS  nothing was done: a call waits for the handle
 *   FAIRLOCK_TOO_LONG     nothing was done: the name needs more room
 *   FAIRLOCK_FORKED       all memory is free; `freed` is not called
 */
int fairlock_abandon(struct fairlock *handle, struct fairlock_rest *rest);

#ifdef __cplusplus
}
#endif

#endif
