/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scenarios share: a rig, a holder whose lease of a minute is renewed, and waiters behind
 * it who came one after the other. A scenario does something to the servers in between. The lease
 * outlasts a fail-over that had to be tried twice, and nobody gives up because of one.
 */
#ifndef SCENE_H
#define SCENE_H

#include "contest.h"
#include "rig.h"

#define DOOR    "scene:door"
#define WAITERS 3

extern struct rig rig;
extern struct contest contest;

#define SCENE_LEASE_MS 60000

/* An address that begins with this node, and no end of patience. Valid until the next call. */
struct connection scene_connection(int first, int replicas);

/*
 * So many wait at this node, by channels of one kind or the other, and each of them has asked there
 * since scene_time(): who only listens may be taken for dead by what it last said at another node.
 */
bool scene_waits(int node, int count, int64_t since_s);
int64_t scene_time(int node);

/* The live replicas of a node have all that was written there until now. */
bool scene_replicated(int node);

/* Starts a holder (contender 0) and waiters (1 to WAITERS), and waits until a node has them all. */
void scene_gather(const struct connection *connection, int node);

/*
 * Waits until the holder knows that its lease has been extended, at this node, since the last
 * success, or since scene_gather(), and the waiters are back there: the order is kept if the lock
 * stays held until then. False: it has lost the lock, or it took too long. A client that has to
 * connect again extends its lease at once, any other at a third of it.
 */
bool scene_renewed(int node);

/*
 * Starts a contender that keeps the lock and takes it again and again, and waits until it has kept
 * it. scene_keeper_ends(): since the servers moved it has gone on and kept the lock there, a waiter
 * has recalled it, and no two have believed.
 */
void scene_keeper(const struct connection *connection);
void scene_keeper_ends(const struct connection *connection);

/* The holder lets go. All went well: in order, no two believers, tokens rise, nobody failed. */
void scene_end(void);

#endif
