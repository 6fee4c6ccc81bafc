/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine has besides driver.h, for client.c and for the tests: the options of fairlock.h, what is
 * done to a lock rather than to a hold, and how long calls take. It is not installed, and no part of it is
 * promised.
 *
 * What a handle is doing is its phase (internal.h), and what it sends follows from that. A request carries
 * the target hold count and can be repeated; a waiter's heartbeats and a holder's renewals go out by the
 * clock, up to three of them before the first is answered.
 *
 * Work. No call loops for longer than this, with n handles. Schedule: to change when a handle is
 * due costs log n steps as a rule, and n at worst.
 *   add, acquire, release, cancel, remove, abandon, force   one such change, and n to leave the list of those
 *               that await answers; inspect: n
 *   tick        one for each handle that is due, and a few looks at it. The square of n at worst:
 *               when many holds end while many others wait to send, or after weeks without a tick
 *   deadline    the handles that wait for room to send; wants: without a connection, n
 *   output      the requests that fill the send buffer, each with a change of the schedule. A request
 *               that does not fit is written again from its start by each call, so an EVAL of 4.3 KB
 *               that leaves through FAIRLOCK_SEND_MIN bytes is gone through some 130 times
 *   received    each value in the bytes that are there, receive_size at most: n for a message, an
 *               answer or an error, and for MOVED the bytes of n names; report is called for each
 *               entry of an inspection. The end of a greeting, also by a refusal: as closed
 *   closed      each handle, with a change: the square of n at worst. With handles that were abandoned:
 *               as remove for each of them, here and at each answer
 *   remaining_ms, ready, connect, opening, opened, sent, fail, input   no loop; opened, with
 *               credentials: one change
 *
 * The functions of fairlock.h add, with t tasks inside blocking calls of the client:
 *   remaining_ms, token, hold_count, result, id, error and the like   no loop; wants: n
 *   slot              the bytes of the name
 *   init              the bytes of the name; log n as a rule, n at worst
 *   adopt             t
 *   start_..., cancel one operation: n, t; then what is due, and all that there is to send: one
 *                     send() of the transport for each part that it takes
 *   poll              the same up to three times, without the operation, and two receives with what
 *                     they bring, up to receive_size bytes each
 *   acquire, release, deinit, wait, connect, force_release, inspect, run
 *                     turns of the same, until the result is there; of an inspection, report is
 *                     called once for the holder and once for each waiter
 *
 * Two tasks must not be inside functions of one engine at the same time: client.c has a mutex for
 * that.
 */
#ifndef FAIRLOCK_ENGINE_H
#define FAIRLOCK_ENGINE_H

#include "driver.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fairlock_keeping;

/*
 * Makes engine follow servers that move. Call it before the first operation. aim, with its context,
 * tells the transport where the next connection goes, as in port.h; NULL: the transport has one
 * address, and nothing is followed. With a topology, connect_ms is 1000 by default, and offline_ms
 * 60000. Returns FAIRLOCK_OK or _INVALID.
 */
int fairlock_engine_follow(struct fairlock_engine *engine, struct fairlock_topology *topology,
                           bool (*aim)(void *context, const char *address), void *context);

/*
 * Calls log->function for each event of the connection from now on, instead of that of an earlier
 * log. log must stay valid as long as the engine.
 */
void fairlock_engine_set_log(struct fairlock_engine *engine, struct fairlock_log *log);

/*
 * Makes engine keep its locks. Call it before the first operation. An operation that is answered
 * without the server ends inside fairlock_engine_output(), which then has nothing to send for it.
 * Returns FAIRLOCK_OK or _INVALID.
 */
int fairlock_engine_keep(struct fairlock_engine *engine, struct fairlock_keeping *keep);

/*
 * Asks credentials->function for user and password from now on, not the configuration and the
 * topology. Call it before the first operation. credentials must stay valid as long as the engine.
 */
void fairlock_engine_use_credentials(struct fairlock_engine *engine,
                                     struct fairlock_credentials *credentials);

/*
 * Operations on a lock rather than on a hold, with a handle that is neither held nor waiting. They return
 * as those of driver.h do.
 *
 *   force     ends the hold. FAIRLOCK_NOT_HELD: the lock is free, or has another hold;
 *             FAIRLOCK_INVALID: there can be no such hold
 *   ask       asks the holder to release, see fairlock_asked_fn. FAIRLOCK_NOT_HELD as above;
 *             FAIRLOCK_NOT_LISTENING: the lock has that hold, but its holder cannot be asked
 *   inspect   reports holder and waiters, until report returns false; the rest is read all the same.
 *             FAIRLOCK_PROTOCOL: the reply was not valid, or was incomplete, and so is the report
 * target and report must not be NULL. An engine has one inspection at a time: FAIRLOCK_IN_PROGRESS.
 */
int fairlock_engine_force(struct fairlock *handle, struct fairlock_target *target, uint32_t now);
int fairlock_engine_ask(struct fairlock *handle, struct fairlock_target *target, uint32_t now);
int fairlock_engine_inspect(struct fairlock *handle,
                            bool (*report)(const struct fairlock_report *report, void *context),
                            void *context, uint32_t now);

/*
 * Of client.c: as fairlock_start_acquire() and fairlock_start_release(), by a task that calls
 * fairlock_wait() next. So the task inside fairlock_run() is not woken to receive the answer.
 */
int fairlock_client_prepare_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms);
int fairlock_client_prepare_release(struct fairlock *handle);

#ifdef __cplusplus
}
#endif

#endif
