/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of the serial line; see port_uart.h. It runs on a gateway that has the line as its
 * standard input and output, and carries the device's bytes to a server and back:
 *
 *     stty -F /dev/ttyS1 115200 raw -echo crtscts
 *     uart-bridge 192.0.2.7 6379 </dev/ttyS1 >/dev/ttyS1
 *
 * It does not interpret what it carries. It ends when the line does.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { DLE = 0x10, OPEN = 'O', CLOSE = 'C', NONCE = 4 };

struct bridge {
  const char *host, *service;
  /* -1: none */
  int server;
  bool escaped, naming;
  /* letters of the nonce under way */
  size_t named;
  char nonce[NONCE];
};

static bool write_all(int to, const void *data, size_t size)
{
  const char *at = data;
  while (size > 0) {
    ssize_t done = write(to, at, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    size -= (size_t)done;
  }
  return true;
}

static bool tell(const struct bridge *bridge, char letter)
{
  char signal[2 + NONCE] = {DLE, letter};
  memcpy(signal + 2, bridge->nonce, NONCE);
  return write_all(STDOUT_FILENO, signal, sizeof signal);
}

static void hang_up(struct bridge *bridge)
{
  if (bridge->server >= 0) (void)close(bridge->server);
  bridge->server = -1;
}

/* The first address that answers within 5 s. */
static int dial(const char *host, const char *service)
{
  const struct timeval limit = {.tv_sec = 5};
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  const int one = 1;
  struct addrinfo *addresses;
  int server = -1;
  if (getaddrinfo(host, service, &hints, &addresses) != 0) return -1;
  for (struct addrinfo *address = addresses; address != NULL && server < 0;
       address = address->ai_next) {
    server = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
    if (server < 0) continue;
    /* limits connect(), too */
    (void)setsockopt(server, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    (void)setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(server, address->ai_addr, address->ai_addrlen) == 0) break;
    (void)close(server);
    server = -1;
  }
  freeaddrinfo(addresses);
  return server;
}

/* The nonce of an OPEN is complete: connects, and reports the result. */
static bool obey_open(struct bridge *bridge)
{
  bridge->server = dial(bridge->host, bridge->service);
  return tell(bridge, bridge->server >= 0 ? OPEN : CLOSE);
}

/* Handles one byte from the line. *data: whether it is data. False: the line is broken. */
static bool take_byte(struct bridge *bridge, char byte, bool *data)
{
  *data = false;
  if (bridge->naming && byte >= 'A' && byte <= 'P') {
    bridge->nonce[bridge->named++] = byte;
    bridge->naming = bridge->named < NONCE;
    return bridge->naming || obey_open(bridge);
  }
  bridge->naming = false;
  if (!bridge->escaped) {
    bridge->escaped = byte == DLE;
    *data = !bridge->escaped;
    return true;
  }
  bridge->escaped = false;
  *data = byte == DLE;
  if (byte == OPEN || byte == CLOSE) hang_up(bridge);
  bridge->naming = byte == OPEN;
  bridge->named = 0;
  return true;
}

/* From the line to the server. False: the line has come to its end. */
static bool carry_out(struct bridge *bridge)
{
  char raw[512], data[512];
  size_t kept = 0;
  ssize_t got = read(STDIN_FILENO, raw, sizeof raw);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  for (ssize_t i = 0; i < got; i++) {
    bool is_data;
    int before = bridge->server;
    if (!take_byte(bridge, raw[i], &is_data)) return false;
    if (bridge->server != before) kept = 0; /* what came before was for another connection */
    if (is_data && bridge->server >= 0) data[kept++] = raw[i];
  }
  if (bridge->server >= 0 && kept > 0 && !write_all(bridge->server, data, kept)) {
    hang_up(bridge);
    return tell(bridge, CLOSE);
  }
  return true;
}

/*
 * From the server to the line. False: the line is broken. Does not wait: what poll() saw may have
 * been on a connection that a new one has replaced since.
 */
static bool carry_in(struct bridge *bridge)
{
  char raw[256], packed[512];
  size_t size = 0;
  ssize_t got = recv(bridge->server, raw, sizeof raw, MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) {
    hang_up(bridge);
    return tell(bridge, CLOSE);
  }
  for (ssize_t i = 0; i < got; i++) {
    if (raw[i] == DLE) packed[size++] = DLE;
    packed[size++] = raw[i];
  }
  return write_all(STDOUT_FILENO, packed, size);
}

int main(int argc, char **argv)
{
  if (argc != 3) {
    (void)fprintf(stderr,
                  "usage: %s HOST PORT, with the serial line as standard input and output\n",
                  argv[0]);
    return 64;
  }
  struct bridge bridge = {.host = argv[1], .service = argv[2], .server = -1};
  (void)signal(SIGPIPE, SIG_IGN);
  for (;;) {
    struct pollfd ends[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = bridge.server, .events = POLLIN}};
    if (poll(ends, 2, -1) < 0 && errno != EINTR) return 71;
    if (ends[0].revents != 0 && !carry_out(&bridge)) return 0;
    if (bridge.server >= 0 && ends[1].revents != 0 && !carry_in(&bridge)) return 0;
  }
}
