/*
 * The other end of a port under test: does what conformance.c asks for; see there for the commands.
 *
 *     conformance-peer [PORT]
 *
 * Prints "port N" once it listens, on all addresses, at PORT or at any that is free. It serves one
 * connection at a time, until it is killed.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  COMMAND_SIZE = 16,
  PATTERN = 251,
  MARK = 0xff,
  FILLERS = 8,
  BURST = 1 << 20,
  BURST_MS = 100,
  SILENT_MS = 500
};

/* What happens to a connection: it stays, the peer closes it, or the peer resets it. */
enum end { GOES_ON, CLOSED, RESET };

/* What is to be done to the listener when the connection is over. */
struct plan {
  char letter; /* 'Q', 'F', or 0 for nothing */
  int64_t until;
};

static in_port_t own_port;

static int64_t now_ms(void)
{
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static _Noreturn void give_up(const char *why)
{
  perror(why);
  exit(71);
}

static int listen_again(int backlog)
{
  const int one = 1;
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = own_port};
  socklen_t size = sizeof own;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0) give_up("socket");
  (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr *)&own, size) != 0 || listen(listener, backlog) != 0 ||
      getsockname(listener, (struct sockaddr *)&own, &size) != 0)
    give_up("listen");
  own_port = own.sin_port;
  return listener;
}

/* Waits for that long, or until the connection is gone. */
static bool pause_ms(int socket, uint32_t ms)
{
  int64_t until = now_ms() + ms;
  for (int64_t left = ms; left > 0; left = until - now_ms()) {
    struct pollfd gone = {.fd = socket};
    if (poll(&gone, 1, left < 50 ? (int)left : 50) < 0 && errno != EINTR) give_up("poll");
    if (gone.revents != 0) return false;
  }
  return true;
}

static bool send_all(int socket, const void *data, size_t size)
{
  const char *at = data;
  while (size > 0) {
    ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    size -= (size_t)sent;
  }
  return true;
}

static bool tell_time(int socket, uint32_t after_ms)
{
  char digits[24];
  if (!pause_ms(socket, after_ms)) return false;
  int size = snprintf(digits, sizeof digits, "%010lld", (long long)(now_ms() % 4000000000));
  return send_all(socket, digits, (size_t)size);
}

static void echo(int socket)
{
  char data[4096];
  ssize_t got;
  while ((got = recv(socket, data, sizeof data, 0)) > 0 && send_all(socket, data, (size_t)got))
    continue;
}

static bool send_pattern(int socket, uint32_t count, uint32_t each_ms)
{
  static uint8_t pattern[100000];
  for (uint32_t i = 0; i < count && i < sizeof pattern; i++)
    pattern[i] = (uint8_t)(i % PATTERN);
  if (each_ms == 0) return send_all(socket, pattern, count);
  for (uint32_t i = 0; i < count; i++) {
    if (!pause_ms(socket, each_ms) || !send_all(socket, pattern + i, 1)) return false;
  }
  return true;
}

/* Reads up to the mark, in bursts, so that a port is full and has room again more than once. */
static void read_late(int socket, uint32_t after_ms)
{
  static uint8_t data[65536];
  uint32_t at = 0;
  size_t burst = 0;
  bool right = true;
  ssize_t got;
  if (!pause_ms(socket, after_ms)) return;
  while ((got = recv(socket, data, sizeof data, 0)) > 0) {
    for (ssize_t i = 0; i < got && data[i] != MARK; i++)
      right = right && data[i] == at++ % PATTERN;
    if (data[got - 1] == MARK) (void)send_all(socket, right ? "k" : "x", 1);
    burst += (size_t)got;
    if (burst >= BURST && !pause_ms(socket, BURST_MS)) return;
    burst %= BURST;
  }
}

/* Waits until the other end closes. */
static void stay(int socket)
{
  char data[64];
  while (recv(socket, data, sizeof data, 0) > 0)
    continue;
}

static enum end obey(int socket, const char *command, struct plan *plan)
{
  char digits[8] = {0};
  memcpy(digits, command + 1, 7);
  uint32_t number = (uint32_t)strtoul(digits, NULL, 10);
  memcpy(digits, command + 8, 7);
  uint32_t ms = (uint32_t)strtoul(digits, NULL, 10);
  if (number > 100000) return CLOSED;
  switch (command[0]) {
  case 'T':
    return tell_time(socket, ms) ? GOES_ON : CLOSED;
  case 'E':
    echo(socket);
    return CLOSED;
  case 'D':
    if (send_pattern(socket, number, ms)) stay(socket);
    return CLOSED;
  case 'S':
    (void)send_pattern(socket, number, 0);
    return CLOSED;
  case 'L':
    read_late(socket, ms);
    return CLOSED;
  case 'R':
    return RESET;
  case 'Q':
  case 'F':
    *plan = (struct plan){command[0], now_ms() + ms};
    return GOES_ON;
  default:
    return CLOSED;
  }
}

static void end_connection(int socket, enum end end)
{
  const struct linger at_once = {.l_onoff = 1};
  if (end == RESET) (void)setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  (void)close(socket);
}

/* Makes a listener whose queue is full: it leaves new connections without an answer. */
static int listen_full(int fillers[FILLERS])
{
  int listener = listen_again(0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = own_port};
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < FILLERS; i++) {
    struct pollfd connected = {.events = POLLOUT};
    fillers[i] = connected.fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fillers[i] < 0 || fcntl(fillers[i], F_SETFL, O_NONBLOCK) != 0) give_up("socket");
    (void)connect(fillers[i], (struct sockaddr *)&own, sizeof own);
    if (poll(&connected, 1, 200) == 0) break;
  }
  return listener;
}

static void sleep_until(int64_t time)
{
  for (int64_t left = time - now_ms(); left > 0; left = time - now_ms())
    (void)poll(NULL, 0, (int)left);
}

/* Closes the listener for a while, or fills it, and says 'k' when that is done. */
static int carry_out(int listener, int socket, const struct plan *plan)
{
  int fillers[FILLERS];
  (void)close(listener);
  memset(fillers, -1, sizeof fillers);
  listener = plan->letter == 'F' ? listen_full(fillers) : -1;
  (void)send_all(socket, "k", 1);
  stay(socket);
  (void)close(socket);
  sleep_until(plan->until);
  if (listener >= 0) (void)close(listener);
  for (int i = 0; i < FILLERS; i++) {
    if (fillers[i] >= 0) (void)close(fillers[i]);
  }
  return listen_again(8);
}

/*
 * Whether the connection is to be served. One that has said nothing gives way when another waits: an
 * attempt that the port has given up may still become a connection, and stay one, when something
 * stands between that is not told, such as QEMU's user network.
 */
static bool speaks(int listener, int socket)
{
  struct pollfd either[] = {{.fd = socket, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
  while (poll(either, 2, -1) < 0) {
    if (errno != EINTR) give_up("poll");
  }
  return poll(either, 1, SILENT_MS) != 0;
}

/* Returns the listener, which may be another one. */
static int serve(int listener, int socket)
{
  struct plan plan = {0};
  char command[COMMAND_SIZE];
  enum end end = speaks(listener, socket) ? GOES_ON : CLOSED;
  while (end == GOES_ON && plan.letter == 0) {
    if (recv(socket, command, sizeof command, MSG_WAITALL) == (ssize_t)sizeof command)
      end = obey(socket, command, &plan);
    else end = CLOSED;
  }
  if (plan.letter != 0) return carry_out(listener, socket, &plan);
  end_connection(socket, end);
  return listener;
}

int main(int count, char **arguments)
{
  const int one = 1;
  (void)signal(SIGPIPE, SIG_IGN);
  if (count > 1) own_port = htons((uint16_t)strtoul(arguments[1], NULL, 10));
  int listener = listen_again(8);
  printf("port %u\n", (unsigned)ntohs(own_port));
  (void)fflush(stdout);
  for (;;) {
    int socket = accept(listener, NULL, NULL);
    if (socket < 0) continue;
    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    listener = serve(listener, socket);
  }
}
