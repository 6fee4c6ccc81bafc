/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boards that take a lock over TLS from a real server: one that has pinned the server's key, and two
 * that trust a CA, by BearSSL and by Mbed TLS. What they do not trust, they do not talk to.
 */
#include "rig.h"
#include "secure.h"

#include <stdio.h>
#include <string.h>

static struct server secure;
static struct board board;

static void power_on(const char *image, const char *rounds)
{
  const char *const arguments[] = {secure.port_text, rounds, "100", NULL};
  board_start(&board, "mps2-an385", image, arguments);
}

static void check_lock(const char *image, const char *certificate)
{
  begin();
  secure_start(&secure, certificate, "no");
  power_on(image, "2");
  CHECK(board_says(&board, "held after "));
  CHECK(board_says(&board, "done"));
  CHECK(board_says(&board, "held after "));
  CHECK(board_says(&board, "done"));
  CHECK_EQUAL(board_ends(&board), 0);
  server_stop(&secure);
}

static void test_pinned(void)
{
  check_lock("superloop_pinned", "server");
}

static void test_ca(void)
{
  check_lock("superloop_ca", "server");
  check_lock("superloop_ca", "rsa");
}

static void test_mbedtls(void)
{
  check_lock("superloop_mbedtls", "server");
  check_lock("superloop_mbedtls", "rsa");
}

/* The board tries again and again, until the server is one that it trusts. */
static void check_refusal(const char *image, const char *certificate)
{
  begin();
  secure_start(&secure, certificate, "no");
  power_on(image, "1");
  CHECK(board_says(&board, "waiting"));
  CHECK(board_says(&board, "waiting"));
  CHECK(board_says(&board, "waiting"));
  CHECK(!board_said(&board, "held"));
  board_power_off(&board);
  server_stop(&secure);
}

static void test_wrong_key(void)
{
  check_refusal("superloop_pinned", "elsewhere");
  check_refusal("superloop_pinned", "rsa");
}

static void test_wrong_certificate(void)
{
  check_refusal("superloop_ca", "elsewhere");
  check_refusal("superloop_ca", "expired");
  check_refusal("superloop_ca", "future");
  check_refusal("superloop_mbedtls", "elsewhere");
  check_refusal("superloop_mbedtls", "expired");
  check_refusal("superloop_mbedtls", "future");
  check_refusal("superloop_mbedtls", "moved");
}

/* The server restarts while the board holds: it connects again, and takes the lock again. */
static void check_restart(const char *image)
{
  begin();
  secure_start(&secure, "server", "no");
  power_on(image, "2");
  CHECK(board_says(&board, "held after "));
  server_restart(&secure);
  CHECK(board_says(&board, "held after "));
  CHECK(board_says(&board, "done"));
  CHECK_EQUAL(board_ends(&board), 0);
  server_stop(&secure);
}

static void test_server_restarts(void)
{
  check_restart("superloop_pinned");
  check_restart("superloop_mbedtls");
}

/* Counted, not timed: the program gets to run several times during a handshake. */
static void test_steps(void)
{
  static const char *const images[] = {"handshake_pinned", "handshake_ca", "handshake_mbedtls"};
  static const int most[] = {14000, 14000, 50000};
  begin();
  secure_start(&secure, "server", "no");
  for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
    int longest = 0;
    const char *const arguments[] = {secure.port_text, NULL};
    board_options = " -icount shift=0";
    board_start(&board, "mps2-an385", images[i], arguments);
    board_options = "";
    CHECK(board_says(&board, "longest call "));
    CHECK_EQUAL(sscanf(board.line, "longest call %d", &longest), 1);
    CHECK(longest > 1000 && longest < most[i]);
    CHECK_EQUAL(board_ends(&board), 0);
  }
  server_stop(&secure);
}

const struct check_test check_tests[] = {
    {"qemu_tls_with_a_pinned_key", test_pinned},
    {"qemu_tls_with_a_ca", test_ca},
    {"qemu_tls_by_mbedtls", test_mbedtls},
    {"qemu_tls_wrong_key", test_wrong_key},
    {"qemu_tls_wrong_certificate", test_wrong_certificate},
    {"qemu_tls_server_restarts", test_server_restarts},
    {"qemu_tls_handshake_in_steps", test_steps},
    {0},
};
