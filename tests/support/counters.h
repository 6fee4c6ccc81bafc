/* SPDX-License-Identifier: Apache-2.0 */
/* What a client has counted, for tests that look at one member of it. */
#ifndef FAIRLOCK_TESTS_COUNTERS_H
#define FAIRLOCK_TESTS_COUNTERS_H

#include "fairlock.h"

static inline struct fairlock_counters counters_of(struct fairlock_client *client)
{
  struct fairlock_counters counters;
  fairlock_read_counters(client, &counters, sizeof counters);
  return counters;
}

#endif
