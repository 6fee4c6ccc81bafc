/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of the fair lock, for who drives it: bytes in, bytes out, time in, deadline out.
 *
 * All guarantees of the lock are kept in the engine. It does no I/O, reads no clock, never blocks and
 * never allocates. Most programs need fairlock.h alone, whose functions join the engine to a port, and so
 * does an event loop: it has fairlock_poll() and fairlock_wants(). Use the engine itself to fit the lock
 * into a runtime that does its own I/O, as another language's, into a simulator, or into a fuzzer.
 * Statuses and the configuration are those of fairlock.h. What has no function here, such as servers that
 * move, kept locks, changing credentials, inspections and breaks, is only for programs of fairlock.h.
 *
 * One engine is one client: one connection to one server, any number of handles. A handle (struct
 * fairlock) is one holder's view of one named lock. The program provides the memory of all, keeps it
 * where it is, and looks at it by functions alone.
 *
 * Driving it:
 *     for (;;) {
 *       fairlock_engine_tick(e, now);
 *       if wants & FAIRLOCK_CLOSE    close, then fairlock_engine_closed()
 *       if wants & FAIRLOCK_CONNECT  fairlock_engine_opening(), so that connect_ms counts; connect,
 *                                    or look whether that has ended; then fairlock_engine_opened()
 *                                    or _closed(), or neither yet
 *       if connected                 send what fairlock_engine_output() gives, and tell
 *                                    fairlock_engine_sent(); receive to where
 *                                    fairlock_engine_input() says, and tell
 *                                    fairlock_engine_received(), with size 0 when there was
 *                                    nothing: only then does a late answer count against the
 *                                    server
 *       wait for bytes, at most fairlock_engine_deadline(e, now) ms
 *     }
 *
 * Times are uint32_t milliseconds of one clock that never jumps and wraps around at 2^32; they are
 * compared by their difference, so no interval may be longer than FAIRLOCK_DURATION_MAX_MS. While a
 * handle waits or holds, tick at least once a month: after 49 days the clock has wrapped around,
 * and the end of a hold that passed long ago would seem to be still to come.
 *
 * Two tasks must not be inside functions of one engine at the same time. Callbacks of the configuration
 * are called inside these functions. They may call fairlock_engine_result(), _token(), _hold_count() and
 * _remaining_ms(), also of a handle whose operation has just ended, and nothing else here.
 */
#ifndef FAIRLOCK_DRIVER_H
#define FAIRLOCK_DRIVER_H

#include "fairlock.h"

/* As in fairlock.h. */
#define fairlock_engine_init       PORT_RELEASED(fairlock_engine_init)
#define fairlock_engine_add        PORT_RELEASED(fairlock_engine_add)
#define fairlock_engine_add_shared PORT_RELEASED(fairlock_engine_add_shared)

#ifdef __cplusplus
extern "C" {
#endif

struct fairlock_rest;
struct fairlock_shared;
struct fairlock_sharing;

/* Makes engine ready. Returns FAIRLOCK_OK, _INVALID or _TOO_LONG. */
int fairlock_engine_init(struct fairlock_engine *engine, const struct fairlock_config *config);

/*
 * Makes handle a view of the lock called name, which stays the caller's and must stay valid. Any
 * bytes are allowed, NUL included; 1 to FAIRLOCK_NAME_MAX. A name is also a key: it must not be one
 * that something else uses, such as another lock's notes ("fairlock:{x}"). A handle that is in an
 * engine is taken out before it is added again. Returns FAIRLOCK_OK, _TOO_LONG, or _INVALID: the
 * name is empty, or wholly in braces, as "{x}" is, which has the queue of "x": take "{x}:lock".
 */
int fairlock_engine_add(struct fairlock_engine *engine, struct fairlock *handle, const char *name,
                        size_t size);

/* Lets engine have handles that share their locks: see fairlock_use_sharing(). */
void fairlock_engine_share(struct fairlock_engine *engine, struct fairlock_sharing *sharing);

/* The same for shared->handle, which shares the lock with others: see fairlock_init_shared(). */
int fairlock_engine_add_shared(struct fairlock_engine *engine, struct fairlock_shared *shared,
                               const char *name, size_t size, uint32_t limit);

/*
 * Takes handle out. Returns
 *   FAIRLOCK_OK           its memory is the caller's again. If its request was being written, the
 *                         engine wants the connection to be closed. It stores the address of the
 *                         handle until fairlock_engine_closed(), but does not access it
 *   FAIRLOCK_PENDING      the subscription is being ended, or the server still has to be told that
 *                         the handle no longer waits or holds. Call again when result is no longer
 *                         FAIRLOCK_PENDING, or at any time. Without a connection, result becomes
 *                         FAIRLOCK_UNREACHABLE after offline_ms, and the handle leaves when there is
 *                         a connection again. When its place or hold on the server has expired,
 *                         this returns FAIRLOCK_OK
 *   FAIRLOCK_IN_PROGRESS  it is held, or an operation is under way
 */
int fairlock_engine_remove(struct fairlock *handle, uint32_t now);

/*
 * Gives up what handle is doing, and takes it out at once: fairlock_abandon(). What is left of it is in
 * rest until that is free, which fairlock_engine_received(), _closed() and _deinit() tell. Returns
 * FAIRLOCK_OK or _TOO_LONG.
 */
int fairlock_engine_abandon(struct fairlock *handle, struct fairlock_rest *rest, uint32_t now);

/* The engine is not used any more: frees each rest of a handle that was abandoned. */
void fairlock_engine_deinit(struct fairlock_engine *engine);

/*
 * Operations, of a handle that was added and has not been taken out since. Each returns
 * FAIRLOCK_PENDING when it was begun; fairlock_engine_result() has its result. Any other value is final,
 * and nothing was begun; FAIRLOCK_IN_PROGRESS means that another operation is under way.
 *
 *   acquire   wait_ms 0 tries without queueing. A handle that holds re-enters, without waiting; a
 *             re-entry never shortens the lease. lease_ms: FAIRLOCK_RENEW, or FAIRLOCK_LEASE_MIN_MS
 *             to FAIRLOCK_DURATION_MAX_MS
 *   release   one level. After the last one the caller no longer holds, whatever the result is
 *   downgrade ends the hold of exclusive, and lets shared hold instead: an operation of both, with a
 *             result in each. See fairlock_downgrade()
 *   cancel    ends a wait; the acquire ends with FAIRLOCK_CANCELLED, unless it has just ended
 *             otherwise. Returns FAIRLOCK_OK, or FAIRLOCK_NOT_HELD when there is no wait
 */
int fairlock_engine_acquire(struct fairlock *handle, uint32_t wait_ms, uint32_t lease_ms,
                            uint32_t now);
int fairlock_engine_release(struct fairlock *handle, uint32_t now);
int fairlock_engine_cancel(struct fairlock *handle, uint32_t now);
int fairlock_engine_downgrade(struct fairlock *exclusive, struct fairlock_shared *shared,
                              uint32_t lease_ms, uint32_t now);

/*
 * The result of the handle's last operation, as fairlock_result(); FAIRLOCK_PENDING while it is under way.
 */
int fairlock_engine_result(const struct fairlock *handle);

/* The fencing token of the hold, and how many times it has to be released; 0: not held. */
uint64_t fairlock_engine_token(const struct fairlock *handle, uint32_t now);
uint32_t fairlock_engine_hold_count(const struct fairlock *handle, uint32_t now);

/*
 * Milliseconds for which it is still safe to act as the holder. 0: not held. handle was added, and
 * has not been taken out since.
 */
uint32_t fairlock_engine_remaining_ms(const struct fairlock *handle, uint32_t now);

/* What the engine wants to be done with the connection now: bits of enum fairlock_want. */
unsigned fairlock_engine_wants(const struct fairlock_engine *engine, uint32_t now);

/* Asks for a connection even if no operation needs one. */
void fairlock_engine_connect(struct fairlock_engine *engine, uint32_t now);

/* True when the connection is up and the server has answered the greeting. */
bool fairlock_engine_ready(const struct fairlock_engine *engine);

/*
 * Tell the engine that opening the connection begins; that it has succeeded; and that the
 * connection is closed, or opening it has failed. connect_ms begins with the first call of
 * fairlock_engine_opening(); further calls change nothing until opening has ended. Call
 * fairlock_engine_opened() once, after fairlock_engine_opening() and before _closed(). status: why,
 * FAIRLOCK_UNTRUSTED or a greater one below FAIRLOCK_OK; if fairlock_engine_fail() has ended the
 * connection, its status counts instead.
 */
void fairlock_engine_opening(struct fairlock_engine *engine, uint32_t now);
void fairlock_engine_opened(struct fairlock_engine *engine, uint32_t now);
void fairlock_engine_closed(struct fairlock_engine *engine, int status, uint32_t now);

/*
 * Bytes to send: *size of them, 0 for none. They stay valid until fairlock_engine_sent() or
 * _closed(). Call fairlock_engine_tick() with the same `now` before, so that a hold which has ended
 * while the device was frozen is not renewed. A request is shorter than SIZE_MAX.
 */
const uint8_t *fairlock_engine_output(struct fairlock_engine *engine, size_t *size, uint32_t now);

/*
 * Tells the engine that the first size bytes of the output were sent: at least 1, and at most as
 * many as fairlock_engine_output() has returned.
 */
void fairlock_engine_sent(struct fairlock_engine *engine, size_t size);

/*
 * Ends the connection for this reason, FAIRLOCK_UNTRUSTED or a greater one below FAIRLOCK_OK: the
 * engine then wants it to be closed.
 */
void fairlock_engine_fail(struct fairlock_engine *engine, int status);

/*
 * Returns where to put received bytes, and sets *size to how many fit there. That is at least 1,
 * unless the engine wants the connection to be closed.
 */
uint8_t *fairlock_engine_input(struct fairlock_engine *engine, size_t *size);

/*
 * Tells the engine that size bytes were received, on an open connection, into the memory that
 * fairlock_engine_input() has returned. size 0: there was nothing to receive. Only after that does
 * a late answer count against the server, because after a freeze of this device the bytes that have
 * arrived meanwhile have to be read first. Call fairlock_engine_tick() at least once between two
 * calls, so that an answer does not renew a hold which has ended unnoticed.
 */
void fairlock_engine_received(struct fairlock_engine *engine, size_t size, uint32_t now);

/* Does what is due. It is cheap if nothing is. */
void fairlock_engine_tick(struct fairlock_engine *engine, uint32_t now);

/*
 * In how many ms to call fairlock_engine_tick() again, if nothing else happens before; 0: now. At
 * most about 19 hours.
 */
uint32_t fairlock_engine_deadline(const struct fairlock_engine *engine, uint32_t now);

#ifdef __cplusplus
}
#endif

#endif
