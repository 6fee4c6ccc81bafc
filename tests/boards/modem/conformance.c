/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port/conformance over a simulated modem: conformance [FAMILY [RULE]], where FAMILY is quectel or
 * simcom.
 */
#include "conformance.h"
#include "boards/conformance/peer.h"
#include "rig.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print(const char *text)
{
  (void)fputs(text, stdout);
  (void)fflush(stdout);
}

int main(int count, char **arguments)
{
  struct port_conformance port = {.transport = &modem.transport, .write = print};
  modem_family_number = count > 1 && strcmp(arguments[1], "simcom") == 0;
  if (count > 2) port.only = arguments[2];
  (void)alarm(300);
  modem_start(peer_start());
  return port_conformance_run(&port) > 0;
}
