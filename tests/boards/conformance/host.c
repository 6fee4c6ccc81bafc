/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port/conformance on the ports of hosts: compiled once for each, by the folders that come first in
 * the include path.
 */
#include "conformance.h"
#include "peer.h"
#include "port_posix.h"

#include <stdio.h>
#include <unistd.h>

static void print(const char *text)
{
  (void)fputs(text, stdout);
  (void)fflush(stdout);
}

int main(int count, char **arguments)
{
  static struct port_posix peer;
  static char service[8];
  struct port_conformance port = {.transport = &peer.transport, .write = print};
#if !PORT_ONE_TASK
  port.start = peer_start_task;
#endif
  if (count > 1) port.only = arguments[1];
  (void)alarm(300);
  (void)snprintf(service, sizeof service, "%d", peer_start());
  port_posix_tcp(&peer, "127.0.0.1", service);
  return port_conformance_run(&port) > 0;
}
