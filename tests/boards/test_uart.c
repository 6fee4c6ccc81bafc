/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over a serial line: against a scripted other end, and, through the real bridge,
 * against a real server. The line is a socket here that takes as few bytes at a time as the test
 * wants.
 */
#include "port_uart.h"
#include "rig.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The line: ends[0] is the device's, ends[1] the other one. At most `width` bytes fit at a time,
 * and at 1 often none.
 */
static int ends[2] = {-1, -1};
static size_t width;

static bool busy(void)
{
  static uint32_t random = 1;
  random = random * 1664525U + 1013904223U;
  return width == 1 && random >> 31 == 0;
}

static size_t read_line(void *context, void *data, size_t size)
{
  (void)context;
  if (busy()) return 0;
  ssize_t got = recv(ends[0], data, size < width ? size : width, MSG_DONTWAIT);
  return got > 0 ? (size_t)got : 0;
}

static size_t write_line(void *context, const void *data, size_t size)
{
  (void)context;
  if (busy()) return 0;
  ssize_t sent = send(ends[0], data, size < width ? size : width, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent > 0 ? (size_t)sent : 0;
}

static void wait_line(void *context, uint32_t timeout_ms)
{
  struct pollfd line = {.fd = ends[0], .events = POLLIN};
  (void)context;
  (void)poll(&line, 1, timeout_ms < 5 ? (int)timeout_ms : 5);
}

static const struct port_uart_line line = {read_line, write_line, wait_line, NULL};
static struct port_uart uart;
static uint32_t starts; /* of the device */

#define LINK (&uart.transport)
#include "support/link.h"

static void open_line(size_t bytes)
{
  for (int i = 0; i < 2; i++) {
    if (ends[i] >= 0) (void)close(ends[i]);
  }
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  width = bytes;
  port_uart_init(&uart, &line, ++starts);
}

static bool send_all(const char *data, size_t size)
{
  int64_t until = now_ms() + SOON;
  while (size > 0 && now_ms() < until) {
    int sent = link_send(data, size);
    if (sent == PORT_CLOSED) return false;
    if (sent < 0) continue;
    data += sent;
    size -= (size_t)sent;
  }
  return size == 0;
}

static size_t receive_all(char *data, size_t size)
{
  size_t got = 0;
  int64_t until = now_ms() + SOON;
  while (got < size && now_ms() < until) {
    int some = link_recv(data + got, size - got, 20);
    if (some == PORT_CLOSED) break;
    if (some > 0) got += (size_t)some;
  }
  return got;
}

/* The other end, by hand */

static void say(const void *data, size_t size)
{
  CHECK(write(ends[1], data, size) == (ssize_t)size);
}

static void say_signal(char letter, const char *nonce)
{
  char signal[6] = {0x10, letter, nonce[0], nonce[1], nonce[2], nonce[3]};
  say(signal, sizeof signal);
}

/* What the device has sent since. */
static size_t hear(char *data, size_t size)
{
  ssize_t got = recv(ends[1], data, size, MSG_DONTWAIT);
  return got > 0 ? (size_t)got : 0;
}

/* The device asks for a connection, and this end reads its nonce. */
static void hear_open(char nonce[4])
{
  char asked[16];
  CHECK_EQUAL(link_connect(0), PORT_NEEDS_INPUT);
  CHECK_EQUAL(hear(asked, sizeof asked), 7);
  CHECK_BYTES(asked, 3, "\0\020O", 3);
  memcpy(nonce, asked + 3, 4);
  for (int i = 0; i < 4; i++)
    CHECK(nonce[i] >= 'A' && nonce[i] <= 'P');
}

static void connect_by_hand(char nonce[4])
{
  open_line(64);
  hear_open(nonce);
  say_signal('O', nonce);
  CHECK_EQUAL(link_connect(1000), PORT_OK);
}

/* Data, signals of others' connections, and halves of signals come before ours: passed over. */
static void test_stale_bytes(void)
{
  char nonce[4], data[16];
  open_line(64);
  say("old data", 8);
  hear_open(nonce);
  say("+OK\r\n", 5);
  say_signal('O', nonce[0] == 'A' ? "BBBB" : "AAAA");
  say("of another", 10);
  say_signal('C', nonce[0] == 'A' ? "BBBB" : "AAAA");
  say("\020O", 2);
  say(nonce, 2);
  CHECK_EQUAL(link_connect(20), PORT_NEEDS_INPUT);
  say_signal('O', nonce);
  say("ours", 4);
  CHECK_EQUAL(link_connect(1000), PORT_OK);
  CHECK_EQUAL(receive_all(data, 4), 4);
  CHECK_BYTES(data, 4, "ours", 4);
  CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_WOULD_BLOCK);
}

static void test_refused(void)
{
  char nonce[4], again[4];
  open_line(64);
  hear_open(nonce);
  say_signal('C', nonce);
  CHECK_EQUAL(link_connect(1000), PORT_UNREACHABLE);
  hear_open(again);
  say_signal('C', nonce);
  CHECK(memcmp(nonce, again, 4) != 0);
  CHECK_EQUAL(link_connect(20), PORT_NEEDS_INPUT);
  say_signal('O', again);
  CHECK_EQUAL(link_connect(1000), PORT_OK);
}

/* No start asks with a nonce of the 32 before, where each of them connected 100 times. */
static void test_nonces_of_starts(void)
{
  static char nonce[3200][4];
  int count = 0;
  for (int start = 0; start < 32; start++) {
    open_line(64);
    for (int i = 0; i < 100; i++) {
      hear_open(nonce[count]);
      say_signal('C', nonce[count]);
      CHECK_EQUAL(link_connect(1000), PORT_UNREACHABLE);
      for (int before = 0; before < count; before++) {
        if (memcmp(nonce[before], nonce[count], 4) == 0) CHECK_EQUAL(before, count);
      }
      count++;
    }
  }
}

static void test_closed(void)
{
  char nonce[4], data[16];
  connect_by_hand(nonce);
  say("last", 4);
  say_signal('C', nonce);
  say("junk", 4);
  CHECK_EQUAL(receive_all(data, sizeof data), 4);
  CHECK_BYTES(data, 4, "last", 4);
  CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_CLOSED);
  CHECK_EQUAL(link_send("x", 1), PORT_CLOSED);
  link_close();
  hear_open(nonce);
}

/* The device's own close, and what it leaves on the line. */
static void test_closing(void)
{
  char nonce[4], data[16];
  connect_by_hand(nonce);
  CHECK(send_all("half a requ", 11));
  link_close();
  link_close();
  CHECK_EQUAL(hear(data, sizeof data), 14);
  CHECK_BYTES(data, 14, "half a requ\0\020C", 14);
}

/* A doubled byte whose second half finds no room is not taken; nothing is lost or doubled. */
static void test_narrow_line(void)
{
  static const char text[] = "a\020b\020\020c";
  static const char doubled[] = "a\020\020b\020\020\020\020c";
  char nonce[4], data[32];
  connect_by_hand(nonce);
  width = 1;
  CHECK(send_all(text, 6));
  CHECK_EQUAL(hear(data, sizeof data), 9);
  CHECK_BYTES(data, 9, doubled, 9);
  say(doubled, 9);
  CHECK_EQUAL(receive_all(data, 6), 6);
  CHECK_BYTES(data, 6, text, 6);
}

/* With the real bridge */

/* The server gives back 4 KB of all bytes there are. */
static void echo(void)
{
  static char request[5000], reply[5000];
  int head = snprintf(request, sizeof request, "*2\r\n$4\r\nECHO\r\n$4096\r\n");
  for (int i = 0; i < 4096; i++)
    request[head + i] = (char)(i % 7 == 0 ? 0x10 : i);
  memcpy(request + head + 4096, "\r\n", 2);
  CHECK(send_all(request, (size_t)head + 4098));
  CHECK_EQUAL(receive_all(reply, 7 + 4098), 7 + 4098);
  CHECK_BYTES(reply, 7, "$4096\r\n", 7);
  CHECK_BYTES(reply + 7, 4098, request + head, 4098);
}

static pid_t begin_with_bridge(size_t bytes)
{
  begin();
  open_line(bytes);
  return bridge_start(ends[1]);
}

static void test_bridge(void)
{
  for (size_t bytes = 1; bytes <= 64; bytes *= 8) {
    (void)begin_with_bridge(bytes);
    CHECK_EQUAL(link_connect(SOON), PORT_OK);
    echo();
    link_close();
    CHECK_EQUAL(link_connect(SOON), PORT_OK);
    echo();
  }
}

/* A device that was reset, at any moment, starts over. */
static void test_bridge_after_reset(void)
{
  static const char *const halves[] = {"",      "\020",      "\020O", "\020OAB", "*2\r\n$4\r\nEC",
                                       "\020C", "*1\r\n\020"};
  (void)begin_with_bridge(64);
  for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
    CHECK_EQUAL(link_connect(SOON), PORT_OK);
    CHECK(send_all("PING\r\n", 6)); /* whose answer nobody reads */
    CHECK(write(ends[0], halves[i], strlen(halves[i])) == (ssize_t)strlen(halves[i]));
    port_uart_init(&uart, &line, ++starts);
    CHECK_EQUAL(link_connect(SOON), PORT_OK);
    echo();
    port_uart_init(&uart, &line, ++starts);
  }
}

/*
 * The old connection has something to read at the moment when the reset device asks for a new one:
 * the bridge must not wait for as much from the new one, whose file descriptor may have the same
 * number.
 */
static void test_bridge_reset_amid_reply(void)
{
  static const char confirmed[] = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
  char reply[sizeof confirmed - 1];
  int state;
  pid_t bridge = begin_with_bridge(64);
  CHECK_EQUAL(link_connect(SOON), PORT_OK);
  CHECK(send_all("SUBSCRIBE news\r\n", 16));
  CHECK_EQUAL(receive_all(reply, sizeof reply), sizeof reply);
  CHECK_BYTES(reply, sizeof reply, confirmed, sizeof reply);
  CHECK(kill(bridge, SIGSTOP) == 0 && waitpid(bridge, &state, WUNTRACED) == bridge &&
        WIFSTOPPED(state));
  CHECK_EQUAL(raw_number(&redis, "PUBLISH news flash"), 1);
  CHECK_EQUAL(raw_number(&redis, "EXISTS nothing"), 0); /* what was published is on its way */
  port_uart_init(&uart, &line, ++starts);
  CHECK_EQUAL(link_connect(0), PORT_NEEDS_INPUT);
  CHECK(kill(bridge, SIGCONT) == 0);
  CHECK_EQUAL(link_connect(SOON), PORT_OK);
  echo();
}

/* The server goes away, is not there, and comes back: seen at the other end of the line. */
static void test_bridge_without_server(void)
{
  char data[16];
  (void)begin_with_bridge(64);
  CHECK_EQUAL(link_connect(SOON), PORT_OK);
  server_kill(&server);
  CHECK_EQUAL(receive_all(data, sizeof data), 0);
  CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_CLOSED);
  link_close();
  CHECK_EQUAL(link_connect(SOON), PORT_UNREACHABLE);
  server_restart(&server);
  raw_close(&redis);
  CHECK(raw_open(&redis, server.port));
  CHECK_EQUAL(link_connect(SOON), PORT_OK);
  echo();
}

const struct check_test check_tests[] = {
    {"uart_stale_bytes_are_passed_over", test_stale_bytes},
    {"uart_refused", test_refused},
    {"uart_nonces_of_starts", test_nonces_of_starts},
    {"uart_closed", test_closed},
    {"uart_closing", test_closing},
    {"uart_narrow_line", test_narrow_line},
    {"uart_bridge", test_bridge},
    {"uart_bridge_after_reset", test_bridge_after_reset},
    {"uart_bridge_after_reset_amid_reply", test_bridge_reset_amid_reply},
    {"uart_bridge_without_server", test_bridge_without_server},
    {0},
};
