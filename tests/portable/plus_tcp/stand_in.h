/* SPDX-License-Identifier: Apache-2.0 */
/* What a test has the stand-in for FreeRTOS-Plus-TCP do, and what it counts; see FreeRTOS.h. */
#ifndef PLUS_TCP_STAND_IN_H
#define PLUS_TCP_STAND_IN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xSOCKET;

struct plus_tcp_stand_in {
  /* how much may be sent and not acknowledged; 0: as much as by default */
  size_t stream_size;

  /* there is no memory for a socket */
  bool no_memory;

  /* no server acknowledges anything, so nobody is told of an end */
  atomic_bool unacknowledged;

  /* servers do not answer at all; until the stack gives up */
  bool silent, gives_up;

  /* it is slow to see that a connection is up */
  bool slow;

  /* what recv() says instead, once; 0: nothing */
  long recv_says;

  /* sockets that are not closed, and connections that were left open when theirs was */
  atomic_uint open, orphans;

  unsigned connects, lookups;

  /* the last time-out for receiving that was set */
  uint32_t receive_ticks;
};

extern struct plus_tcp_stand_in plus_tcp_stand_in;

/* The host's descriptor below a socket; NULL has -1. */
int plus_tcp_stand_in_fd(const struct xSOCKET *socket);

#endif
