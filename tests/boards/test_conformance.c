/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port/conformance on boards: the ports of lwIP and of the serial line keep the contract of port.h,
 * on a Cortex-M3. Both run at once, because they wait most of the time; the first test starts them.
 */
#include "boards/conformance/peer.h"
#include "rig.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define RULES 15 /* for a port of one task */

static struct board over_lwip, over_line;

static void start_over_lwip(void)
{
  static char port[8];
  const char *const arguments[] = {port, NULL};
  (void)snprintf(port, sizeof port, "%d", peer_start());
  board_start(&over_lwip, "mps2-an385", "conformance", arguments);
}

static void start_over_line(void)
{
  static char port[8];
  const char *const arguments[] = {"-", NULL};
  int line[2];
  if (!CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) == 0)) return;
  (void)snprintf(port, sizeof port, "%d", peer_start());
  (void)bridge_start_to(line[0], port);
  board_start_with_line(&over_line, "mps2-an385", "conformance_uart", arguments, line[1]);
  (void)close(line[0]);
  (void)close(line[1]);
}

static void test_lwip(void)
{
  (void)alarm(300);
  start_over_lwip();
  start_over_line();
  check_conformance(&over_lwip, RULES);
}

static void test_serial_line(void)
{
  check_conformance(&over_line, RULES);
}

const struct check_test check_tests[] = {
    {"conformance: lwIP on a board", test_lwip},
    {"conformance: a serial line of a board", test_serial_line},
    {NULL, NULL},
};
