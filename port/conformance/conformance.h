/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a port keeps the contract of port.h: tests for any port, which a program for the port
 * links and runs, on a host or on a board. It needs nothing but port.h, no heap and no stdio, about
 * 1 KB of RAM, and, at the other end of the transport, peer.c of this folder on some host.
 *
 *     static void print(const char *text) { ... to the console ... }
 *
 *     const struct port_conformance port = {.transport = &link.transport, .write = print};
 *     int failed = port_conformance_run(&port);
 *
 * For each rule it prints "ok NAME", or, after a line "# WHAT", "not ok NAME"; at the end a line "#
 * RULES rules, FAILED broken". It takes about 20 s, most of them waiting.
 *
 * A rule that is broken by a time, because a call or the test itself took too long, is tried again, four
 * times in all: a machine that is busy for seconds does that, too, but not each time. Each such try
 * prints its "# WHAT", also if "ok NAME" follows. A rule that is broken in another way is tried once.
 */
#ifndef PORT_CONFORMANCE_H
#define PORT_CONFORMANCE_H

#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the test needs of the port, and of the program. */
struct port_conformance {
  /* to a peer (peer.c), and not in use by anybody else */
  struct port_transport *transport;

  /* prints a piece of a line; a line ends with "\n" */
  void (*write)(const char *text);

  /*
   * Calls run(context) in another task, which ends, or sleeps for ever, when that returns. One
   * such task at a time is enough. False: no task could be started. NULL: a port for one task; the
   * rules for several tasks are left out.
   */
  bool (*start)(void (*run)(void *context), void *context);

  /* runs the rules whose names contain this; NULL: all */
  const char *only;
};

/* Tries the rules one after the other. Returns how many are broken. Not reentrant. */
int port_conformance_run(const struct port_conformance *port);

#ifdef __cplusplus
}
#endif

#endif
