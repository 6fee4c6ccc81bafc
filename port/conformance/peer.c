/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of a port under test: does what conformance.c asks for; see there for the commands.
 *
 *     conformance-peer [PORT]
 *
 * Prints "port N" once it listens, on all addresses, IPv4 and IPv6, at PORT or at any that is free.
 * It serves one connection at a time, until it is killed: the one that has spoken last. A device
 * that was reset does not close its connection, so its next one takes the place of that. One that
 * says nothing takes nobody's place: it may be an attempt that the port has given up, and that became
 * a connection all the same, as behind QEMU's user network, which is not told.
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
  OTHERS = 16,
  BUFFER = 1 << 17,
  BURST = 1 << 20,
  BURSTS = 6,
  BURST_MS = 700,
  GRACE_MS = 2000
};

#define FOR_EVER INT64_MAX

/* What happens to a connection: it stays, is over, or the peer closes or resets it. */
enum end { GOES_ON, OVER, HANGS_UP, RESETS };

/* What is to be done to the listener when the connection is over. */
struct plan {
  char letter; /* 'Q', 'F', or 0 for nothing */
  int64_t until;
};

static in_port_t own_port;
static int listener;

/* connections beside the one that is served, which have said nothing yet; -1: none */
static int others[OTHERS];

/* the connection before this one was still open when this one spoke */
static bool left_open;

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

static bool may_retry(void)
{
  return errno == EAGAIN || errno == EINTR;
}

/* Returns -1 where the system has no such addresses, or the port is taken. */
static int listen_on(const struct sockaddr *own, socklen_t size, int backlog)
{
  const int one = 1;
  const int none = 0;
  const int buffer = BUFFER;
  int made = socket(own->sa_family, SOCK_STREAM, 0);
  if (made < 0) return -1;
  (void)setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  /* of those that it accepts: a port is full soon, whatever this system thinks of buffers */
  (void)setsockopt(made, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  if (own->sa_family == AF_INET6) /* IPv4 as well */
    (void)setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &none, sizeof none);
  if (bind(made, own, size) == 0 && listen(made, backlog) == 0) return made;
  (void)close(made);
  return -1;
}

static int listen_again(int backlog)
{
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = own_port};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = own_port};
  socklen_t size = sizeof six;
  int made = listen_on((struct sockaddr *)&six, sizeof six, backlog);
  if (made < 0 && errno != EADDRINUSE)
    made = listen_on((struct sockaddr *)&four, sizeof four, backlog);
  /* the port is at the same place in both */
  if (made < 0 || getsockname(made, (struct sockaddr *)&six, &size) != 0) give_up("listen");
  own_port = six.sin6_port;
  return made;
}

/* Takes what has come in. Where there is no place, the oldest makes room. */
static void take_call(void)
{
  const int one = 1;
  int made = accept(listener, NULL, NULL);
  if (made < 0) return;
  (void)setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (others[0] >= 0) (void)close(others[0]);
  memmove(others, others + 1, sizeof others - sizeof *others);
  others[OTHERS - 1] = made;
}

/* Returns where in others there is one that has said something, or -1. Takes out those that ended. */
static int find_speaker(void)
{
  for (int i = 0; i < OTHERS; i++) {
    char byte;
    ssize_t got = others[i] < 0 ? -1 : recv(others[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0) return i;
    if (others[i] < 0 || (got < 0 && may_retry())) continue;
    (void)close(others[i]);
    others[i] = -1;
  }
  return -1;
}

/*
 * Waits for events of the socket, or for its end. False: that time has come, or another connection
 * has spoken, which takes its place.
 */
static bool wait_for(int socket, short events, int64_t until)
{
  for (;;) {
    struct pollfd all[2 + OTHERS] = {{.fd = socket, .events = events},
                                     {.fd = listener, .events = POLLIN}};
    for (int i = 0; i < OTHERS; i++)
      all[2 + i] = (struct pollfd){.fd = others[i], .events = POLLIN};
    int64_t left = until == FOR_EVER ? 1000 : until - now_ms();
    if (left <= 0) return false;
    if (poll(all, 2 + OTHERS, left < 1000 ? (int)left : 1000) < 0 && errno != EINTR)
      give_up("poll");
    if (all[0].revents != 0) return true;
    if (all[1].revents != 0) take_call();
    if (find_speaker() >= 0) return false;
  }
}

/* Waits for that long, or until the connection is gone. */
static bool pause_ms(int socket, uint32_t ms)
{
  int64_t until = now_ms() + ms;
  (void)wait_for(socket, 0, until);
  return now_ms() >= until;
}

/* Receives some bytes. Returns 0 or less at the end. */
static ssize_t receive(int socket, void *data, size_t size)
{
  while (wait_for(socket, POLLIN, FOR_EVER)) {
    ssize_t got = recv(socket, data, size, MSG_DONTWAIT);
    if (got >= 0 || !may_retry()) return got;
  }
  return -1;
}

static bool send_all(int socket, const void *data, size_t size)
{
  const char *at = data;
  while (size > 0) {
    if (!wait_for(socket, POLLOUT, FOR_EVER)) return false;
    ssize_t sent = send(socket, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && may_retry()) continue;
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
  while ((got = receive(socket, data, sizeof data)) > 0 && send_all(socket, data, (size_t)got))
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

/*
 * Reads up to the mark, and pauses after each of the first bursts, so that a port is full and has
 * room again more than once, also where it fills slowly because the machine is busy. Each burst is
 * twice the one before it: a system says that there is room when a part of its buffer is free, Linux a
 * third, and nobody here knows how large that is.
 */
static void read_late(int socket, uint32_t after_ms)
{
  static uint8_t data[65536];
  uint32_t at = 0;
  size_t burst = 0;
  int bursts = 0;
  bool right = true;
  ssize_t got;
  if (!pause_ms(socket, after_ms)) return;
  while ((got = receive(socket, data, sizeof data)) > 0) {
    for (ssize_t i = 0; i < got && data[i] != MARK; i++)
      right = right && data[i] == at++ % PATTERN;
    if (data[got - 1] == MARK) (void)send_all(socket, right ? "k" : "x", 1);
    burst += (size_t)got;
    if (burst < (size_t)BURST << bursts) continue;
    if (bursts++ < BURSTS && !pause_ms(socket, BURST_MS)) return;
    burst = 0;
  }
}

/* Whether the other end has closed, or does by that time. What still comes is thrown away. */
static bool closes(int socket, int64_t until)
{
  char data[4096];
  for (int64_t left = until - now_ms(); left > 0; left = until - now_ms()) {
    struct pollfd ended = {.fd = socket, .events = POLLIN};
    if (poll(&ended, 1, (int)left) <= 0) continue;
    ssize_t got = recv(socket, data, sizeof data, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !may_retry())) return true;
  }
  return false;
}

/* Waits until the other end closes. */
static void stay(int socket)
{
  char data[64];
  while (receive(socket, data, sizeof data) > 0)
    continue;
}

static enum end obey(int socket, const char *command, struct plan *plan)
{
  char digits[8] = {0};
  memcpy(digits, command + 1, 7);
  uint32_t number = (uint32_t)strtoul(digits, NULL, 10);
  memcpy(digits, command + 8, 7);
  uint32_t ms = (uint32_t)strtoul(digits, NULL, 10);
  if (number > 100000) return HANGS_UP;
  switch (command[0]) {
  case 'T':
    return tell_time(socket, ms) ? GOES_ON : OVER;
  case 'C':
    return send_all(socket, left_open ? "x" : "k", 1) ? GOES_ON : OVER;
  case 'E':
    echo(socket);
    return OVER;
  case 'D':
    if (send_pattern(socket, number, ms)) stay(socket);
    return OVER;
  case 'S':
    (void)send_pattern(socket, number, 0);
    return HANGS_UP;
  case 'L':
    read_late(socket, ms);
    return OVER;
  case 'R':
    return RESETS;
  case 'Q':
  case 'F':
    *plan = (struct plan){command[0], now_ms() + ms};
    return OVER;
  default:
    return HANGS_UP;
  }
}

/* Makes a listener whose queue is full: it leaves new connections without an answer. */
static int listen_full(int fillers[FILLERS])
{
  int full = listen_again(0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = own_port};
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < FILLERS; i++) {
    struct pollfd connected = {.events = POLLOUT};
    fillers[i] = connected.fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fillers[i] < 0 || fcntl(fillers[i], F_SETFL, O_NONBLOCK) != 0) give_up("socket");
    (void)connect(fillers[i], (struct sockaddr *)&own, sizeof own);
    if (poll(&connected, 1, 200) == 0) break;
  }
  return full;
}

static void sleep_until(int64_t time)
{
  for (int64_t left = time - now_ms(); left > 0; left = time - now_ms())
    (void)poll(NULL, 0, (int)left);
}

static void close_all(int sockets[], int count)
{
  for (int i = 0; i < count; i++) {
    if (sockets[i] >= 0) (void)close(sockets[i]);
    sockets[i] = -1;
  }
}

/* Closes the listener for a while, or fills it, and says 'k' when that is done. */
static void carry_out(int socket, const struct plan *plan)
{
  int fillers[FILLERS];
  memset(fillers, -1, sizeof fillers);
  (void)close(listener);
  close_all(others, OTHERS);
  listener = -1; /* nobody is to be let in */
  int full = plan->letter == 'F' ? listen_full(fillers) : -1;
  (void)send_all(socket, "k", 1);
  left_open = !closes(socket, plan->until);
  sleep_until(plan->until);
  close_all(&full, 1);
  close_all(fillers, FILLERS);
  listener = listen_again(OTHERS);
}

static bool read_command(int socket, char command[COMMAND_SIZE])
{
  for (size_t done = 0; done < COMMAND_SIZE;) {
    ssize_t got = receive(socket, command + done, COMMAND_SIZE - done);
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

static void serve(int socket)
{
  const struct linger at_once = {.l_onoff = 1};
  struct plan plan = {0};
  char command[COMMAND_SIZE];
  enum end end = GOES_ON;
  while (end == GOES_ON)
    end = read_command(socket, command) ? obey(socket, command, &plan) : OVER;
  if (plan.letter != 0) carry_out(socket, &plan);
  else left_open = end == OVER && !closes(socket, now_ms() + GRACE_MS);
  if (end == RESETS) (void)setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  (void)close(socket);
}

int main(int count, char **arguments)
{
  (void)signal(SIGPIPE, SIG_IGN);
  if (count > 1) own_port = htons((uint16_t)strtoul(arguments[1], NULL, 10));
  memset(others, -1, sizeof others);
  listener = listen_again(OTHERS);
  printf("port %u\n", (unsigned)ntohs(own_port));
  (void)fflush(stdout);
  for (;;) {
    (void)wait_for(-1, 0, FOR_EVER);
    int speaker = find_speaker();
    if (speaker < 0) continue;
    int socket = others[speaker];
    others[speaker] = -1;
    serve(socket);
  }
}
