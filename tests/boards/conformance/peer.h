/* SPDX-License-Identifier: Apache-2.0 */
/* The peer of port/conformance, as the suites start it, and second tasks as threads. */
#ifndef CONFORMANCE_PEER_H
#define CONFORMANCE_PEER_H

#include <stdbool.h>

/* Starts a peer, which ends with this program. Returns its port. */
int peer_start(void);

/* For struct port_conformance: a thread for each task. */
bool peer_start_task(void (*run)(void *context), void *context);

#endif
