/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FreeRTOS's own kernel and lwIP's own task on the board: tasks share a client, by port/freertos, and
 * by port/sockets over lwIP's sockets (tasks.c); and the application of boards/freertos, with the
 * library that its page says how to build.
 */
#include "boards/conformance/peer.h"
#include "support/proxy.h"
#include "rig.h"

#include <stdio.h>

#define ROUNDS "50"

static struct board board;

static void start(const char *port_text, const char *runner, const char *sockets,
                  const char *may_break)
{
  const char *const arguments[] = {port_text, ROUNDS, runner, sockets, may_break, NULL};
  board_start(&board, "mps2-an385", "freertos", arguments);
}

static void check_sharing(const char *sockets)
{
  static const char *const runner[] = {"0", "1"};
  for (int i = 0; i < 2; i++) {
    begin();
    start(server.port_text, runner[i], sockets, "0");
    check_shared_press(&board);
  }
}

static void test_hooks(void)
{
  check_sharing("0");
}

static void test_sockets(void)
{
  check_sharing("1");
}

/* The server's name is resolved at each connect, by lwIP. */
static void test_sockets_by_name(void)
{
  begin();
  start(server.port_text, "1", "2", "0");
  check_shared_press(&board);
}

/* The connection is cut again and again: no call hangs, nothing is held twice. */
static void cut(const char *sockets)
{
  static struct proxy proxy;
  char port_text[8];
  begin();
  proxy_start(&proxy, server.port);
  (void)snprintf(port_text, sizeof port_text, "%d", proxy.port);
  start(port_text, "1", sockets, "1");
  for (int i = 0; i < 10; i++) {
    sleep_ms(150);
    proxy_sever(&proxy);
  }
  check_shared_press(&board);
  proxy_stop(&proxy);
}

static void test_hooks_cut(void)
{
  cut("0");
}

static void test_sockets_cut(void)
{
  cut("1");
}

/* The contract of port.h, with tasks. */
static void check_port(const char *sockets)
{
  char port_text[8];
  begin();
  (void)snprintf(port_text, sizeof port_text, "%d", peer_start());
  const char *const arguments[] = {port_text, "0", "0", sockets, "0", "1", NULL};
  board_start(&board, "mps2-an385", "freertos", arguments);
  check_conformance(&board, 19);
}

static void test_conformance_by_hooks(void)
{
  check_port("0");
}

static void test_conformance_by_sockets(void)
{
  check_port("1");
}

/* It takes turns with this host, outlasts its server, and says why there is none. */
static void test_application(void)
{
  static struct actor actor;
  begin();
  actor_start(&actor, server.port, "valve:7");
  const char *const arguments[] = {server.port_text, NULL};
  board_start(&board, "mps2-an385", "application", arguments);
  CHECK(board_says(&board, "connected"));
  CHECK(board_says(&board, "held, fencing token 1"));
  actor_tell(&actor, 'a', FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  CHECK(board_says(&board, "released: done"));
  CHECK_EQUAL(actor_hear(&actor, SOON).status, FAIRLOCK_OK);
  CHECK(queue_reaches(&redis, "valve:7", 1));
  CHECK(!board_said(&board, "held"));
  CHECK_EQUAL(actor_do(&actor, 'r', 0, 0).status, FAIRLOCK_OK);
  CHECK(board_says(&board, "held, fencing token "));
  server_kill(&server);
  CHECK(board_says(&board, "server: refused or reset"));
  server_restart(&server);
  CHECK(board_says(&board, "connected"));
  CHECK(board_says(&board, "held, fencing token "));
  actor_end(&actor);
  board_power_off(&board);
  raw_close(&redis);
  CHECK(raw_open(&redis, server.port));
}

const struct check_test check_tests[] = {
    {"freertos_application_takes_turns", test_application},
    {"freertos_tasks_share_a_client", test_hooks},
    {"freertos_tasks_share_a_client_by_sockets", test_sockets},
    {"freertos_tasks_share_a_client_by_name", test_sockets_by_name},
    {"freertos_connection_cut_often", test_hooks_cut},
    {"freertos_connection_cut_often_by_sockets", test_sockets_cut},
    {"freertos_conformance", test_conformance_by_hooks},
    {"freertos_conformance_by_sockets", test_conformance_by_sockets},
    {0},
};
