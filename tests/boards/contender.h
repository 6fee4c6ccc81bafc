/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of several programs that contend for a lock: `rounds` times it acquires, runs a critical
 * section, and releases.
 *
 * The critical section is in the server, where all can see it, but apart from the lock and over a
 * connection of its own: it notes who is inside, reads a counter, and in a second request writes
 * the counter plus one, notes who is next in line, and leaves. Two holders at a time, or one out of
 * turn, leave a trace. The same source runs on boards and on the host.
 */
#ifndef CONTENDER_H
#define CONTENDER_H

#include "port.h"

#include <stdint.h>

struct contender {
  struct port_transport *lock; /* the client's connection       */
  struct port_transport *data; /* the critical section's        */
  uint32_t rounds;
  uint32_t parties; /* how many contend: nobody begins before all are there */
  uint32_t keep_ms; /* of fairlock_use_keeping(); 0: it does not keep */
};

/* Returns NULL, or what went wrong. Blocks until done. */
const char *contend(const struct contender *contender);

#endif
