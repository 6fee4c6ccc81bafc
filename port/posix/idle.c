/* SPDX-License-Identifier: Apache-2.0 */
/* port_idle() for a program that uses port/single on a POSIX system. */
#include "cancel.h"
#include "port.h"

#include <poll.h>

/* A signal ends it early. */
void port_idle(uint32_t ms)
{
  int cancel = hold_off_cancel();
  (void)poll(NULL, 0, (int)(ms < PORT_WAIT_MAX_MS ? ms : PORT_WAIT_MAX_MS));
  allow_cancel(cancel);
}
