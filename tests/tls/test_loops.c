/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The examples of boards/examples/loops over TLS. A connection is writable all through the handshake,
 * so a loop that waits for that would not sleep for a moment while the server is silent. Here the
 * server does not run for a while, and its kernel takes the connection. The examples count how often
 * they are woken.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "safe.h"

#ifndef EXAMPLES
#define EXAMPLES "build/tls/examples" /* the makefile says where they really are */
#endif

#define SILENT_MS 3000

/* Heartbeats and attempts to connect are far longer than the test. */
#define WAITER_MS "60000"

/* Connected, some records of the handshake and of the greeting, tickets, the grant. */
#define MOST_WAKINGS 40

/* Whether somebody is connected to the port, perhaps by the kernel alone. */
static bool is_called(int port)
{
  char line[256];
  bool found = false;
  FILE *sockets = fopen("/proc/net/tcp", "r");
  if (sockets == NULL) give_up("/proc/net/tcp");
  while (!found && fgets(line, sizeof line, sockets) != NULL) {
    unsigned own = 0;
    unsigned state = 0;
    found = sscanf(line, "%*d: %*x:%x %*x:%*x %x", &own, &state) == 2 && own == (unsigned)port &&
            state == 1; /* established */
  }
  (void)fclose(sockets);
  return found;
}

/* scheme: that of the URL which the example takes; "": it takes a port */
static void sleeps_through_silence(const char *path, const char *scheme)
{
  char line[100] = "";
  char where[64];
  int output;
  unsigned ms = 0;
  unsigned by_time = 0;
  unsigned by_socket = 0;
  begin();
  serve_with("server", "TLSv1.2 TLSv1.3", "no");
  (void)snprintf(where, sizeof where, "%s%d", scheme, tls_port);
  const char *words[] = {path, where, "loop", "100", WAITER_MS, FILE_OF("ca.crt"), NULL};
  CHECK_EQUAL(kill(server.pid, SIGSTOP), 0);
  pid_t pid = spawn_program(words, NULL, &output);
  AWAIT(is_called(tls_port), sleep_ms(5));
  sleep_ms(SILENT_MS);
  CHECK_EQUAL(kill(server.pid, SIGCONT), 0);
  FILE *lines = fdopen(output, "r");
  if (!CHECK(lines != NULL)) return;
  CHECK(fgets(line, sizeof line, lines) != NULL);
  CHECK_EQUAL(sscanf(line, "held after %u ms, woken by the time %u times, by the socket %u", &ms,
                     &by_time, &by_socket),
              3);
  printf("# %s", line);
  CHECK(ms >= SILENT_MS / 2); /* it has met the silence */
  CHECK(by_time + by_socket <= MOST_WAKINGS);
  CHECK(fgets(line, sizeof line, lines) != NULL && strcmp(line, "released\n") == 0);
  CHECK_EQUAL(reap(pid), 0);
  (void)fclose(lines);
  CHECK(nothing_left(&redis, "loop"));
}

static void test_epoll(void)
{
  sleeps_through_silence(EXAMPLES "/epoll_tls", "rediss://127.0.0.1:");
}

static void test_libuv(void)
{
  sleeps_through_silence(EXAMPLES "/libuv_tls", "");
}

const struct check_test check_tests[] = {
    {"loops: epoll sleeps while the handshake is not answered", test_epoll},
    {"loops: libuv sleeps while the handshake is not answered", test_libuv},
    {0}};
