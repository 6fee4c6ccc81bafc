/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance test of ports as two tasks, in place of those of tasks.c. */
#ifndef TASKS_CONFORMANCE_H
#define TASKS_CONFORMANCE_H

#include "port.h"

/* Makes them, before the scheduler starts. The end of the test is that of the simulation. */
void conformance_start(struct port_transport *transport, unsigned priority);

#endif
