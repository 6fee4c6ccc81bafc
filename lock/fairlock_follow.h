/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An option: servers that move (Sentinel, Cluster, a promoted replica), and replicas to wait for.
 */
#ifndef FAIRLOCK_OPTION_FOLLOW_H
#define FAIRLOCK_OPTION_FOLLOW_H

#include "fairlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in fairlock.h. */
#define fairlock_follow PORT_NAMED(fairlock_follow)

/* Of struct fairlock_topology. Private. */
struct fairlock_topology_state {
  struct fairlock_link link;
  bool (*aim)(void *context, const char *address);
  void *aim_context;
  uint32_t wait_ms;     /* the timeout of WAIT, which must not change while that is written */
  uint16_t state;       /* what is known of the servers */
  uint8_t redirections; /* in a row */
  bool several;         /* seeds */
  bool to_sentinel;     /* the connection is, or will be, to a Sentinel */
};

/*
 * An option: servers that move. The transport's addresses are seeds, of one kind:
 *   with `service`  Sentinels, which are asked for the master
 *   with `cluster`  nodes of one cluster. If no seed is one: FAIRLOCK_REFUSED
 *   otherwise       nodes of a cluster, one server, or several servers of one master, which has to
 *       show by ROLE (the user needs +role) that it had a replica, or was one, since it started:
 *       with unrelated masters, which are FAIRLOCK_UNAVAILABLE, two clients could hold one lock
 * The client is connected to one server at a time: where a Sentinel or a MOVED sends it, up to four
 * times in a row without a pause; and at the next seed if its server is gone, read-only, or a
 * replica. It pauses for a second at most between two rounds of the seeds.
 */
struct fairlock_topology {
  char *address;                 /* room for "host:port". NULL: redirections are not followed */
  size_t address_size;           /* at least 2: 22 for any IPv4 address, 54 for IPv6, 263 for any
                                    host name. Without address, 0 */
  const char *service;           /* the master's name at Sentinels. NULL: the seeds are others */
  bool cluster;                  /* the seeds are nodes of a cluster; not with service */
  const char *sentinel_user;     /* for Sentinels. NULL: the default user */
  const char *sentinel_password; /* for the Sentinels. NULL: no authentication */
  uint32_t replicas;             /* so many replicas have to acknowledge each hold and renewal
                                    (WAIT): if all, each new master knows the hold. 0: none */
  uint32_t replicas_ms;          /* how long they may take, at most half of response_ms. 0: half of
                                    response_ms, at most 500 */

  /* the rest is private */
  struct fairlock_topology_state own;
};

/*
 * Makes the client follow servers. If `aim` of the transport is NULL, it has one address, and a
 * redirected operation ends with FAIRLOCK_WRONG_SHARD or _READONLY. Returns FAIRLOCK_OK, or
 * FAIRLOCK_INVALID: a service without room for an address or without `aim`, replicas_ms above half
 * of response_ms, or a second call.
 */
int fairlock_follow(struct fairlock_client *client, struct fairlock_topology *topology);

/*
 * The cluster slot of the lock called name, 0 to 16383, by the specification of Redis cluster.
 * Locks with slots on one node can share a client; the same part in braces gives the same slot:
 * "{line:4}door". A name with "{}", an open brace, or a "}" alone cannot be locked in a cluster.
 */
unsigned fairlock_slot(const void *name, size_t size);

#ifdef __cplusplus
}
#endif

#endif
