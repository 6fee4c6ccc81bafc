/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port/conformance on a Client: all rules hold but one, because Client::connect() blocks by its API.
 * Prints ok for each rule, for that one if it is broken: if it is not, README.md and Fairlock.h have to
 * say something else.
 */
#include <Ethernet.h>
#include <Fairlock.h>

#include "conformance.h"

extern "C" {
#include "peer.h"
}

#include <stdio.h>
#include <unistd.h>

#define EXPECTED "connect: keeps to its time\n"

static char line[256];
static bool unexpected;

/* A line is complete. The comments of the rule that is expected to be broken are comments. */
static void finish()
{
  const char *broken = strncmp(line, "not ok ", 7) == 0 ? line + 7 : nullptr;
  if (broken != nullptr && strcmp(broken, EXPECTED) == 0) {
    (void)printf("ok connect: blocks for as long as the Client does\n");
  } else if (strcmp(line, "ok " EXPECTED) == 0) {
    (void)printf("not ok connect: blocks for as long as the Client does\n");
    unexpected = true;
  } else {
    (void)fputs(line, stdout);
    unexpected = unexpected || broken != nullptr;
  }
  line[0] = 0;
}

static void print(const char *text)
{
  strncat(line, text, sizeof line - strlen(line) - 1);
  if (strchr(line, '\n') != nullptr) finish();
}

int main(int count, char **arguments)
{
  static EthernetClient net;
  static FairlockClient locks;
  struct port_conformance port = {};
  (void)alarm(300);
  net.setConnectionTimeout(3000); /* shorter than that of many a stack */
  if (!locks.begin(net, "localhost", static_cast<uint16_t>(peer_start()))) return 1;
  port.transport = locks.transport();
  port.write = print;
  port.only = count > 1 ? arguments[1] : nullptr;
  int failed = port_conformance_run(&port);
  return unexpected || failed > 1 ? 1 : 0;
}
