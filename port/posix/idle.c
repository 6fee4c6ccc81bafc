/* port_idle() for a program that uses port/single on a POSIX system. */
#include "port.h"

#include <poll.h>

/* A signal ends it early. */
void port_idle(uint32_t ms)
{
  (void)poll(NULL, 0, (int)(ms < PORT_WAIT_MAX_MS ? ms : PORT_WAIT_MAX_MS));
}
