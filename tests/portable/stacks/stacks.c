/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What TCP/IP stacks of devices do and a host's does not, on a transport over sockets: no SO_ERROR,
 * as Zephyr up to 3.5; few buffers, so that send() takes a small piece or none; a poll() that
 * fails, as Zephyr's with too few entries. The system's calls are wrapped here. Compiled for each
 * such transport, by the port_posix.h that comes first in the include path.
 */
#undef _FORTIFY_SOURCE /* its inline functions get in the way of the wrappers */

#include "check.h"
#include "port_posix.h"
#include "support/clock.h"
#include "support/loopback.h"
#include "support/wrapped.h"

#include <sys/socket.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef RESETS
#define RESETS 0 /* whether the transport resets its connection when it closes it */
#endif

/*
 * Whether the transport is that of POSIX: it asks for SO_ERROR, which POSIX has, offers all it has at
 * once, and gives an attempt to connect up when poll() fails.
 */
#ifndef OF_POSIX
#define OF_POSIX 0
#endif

/* What the wrapped calls do, and what they were asked for. */
static struct {
  bool no_so_error;
  bool poll_fails;
  bool poll_0_is_blind; /* it tells of nothing if it may not wait */
  int send_error;       /* 0: none */
  size_t send_limit;    /* send_error is for more than that */
  unsigned sends;
  size_t last_size;
  short poll_events; /* of the last poll() */
  int poll_ms;
} stack;

int getsockopt(int socket, int level, int option, void *restrict value, socklen_t *restrict size)
{
  static int (*real)(int, int, int, void *, socklen_t *);
  if (real == NULL) find_real("getsockopt", &real, sizeof real);
  if (!stack.no_so_error || level != SOL_SOCKET || option != SO_ERROR)
    return real(socket, level, option, value, size);
  errno = ENOPROTOOPT;
  return -1;
}

/* Nor SO_RCVTIMEO: all waits are by poll(). */
int setsockopt(int socket, int level, int option, const void *value, socklen_t size)
{
  static int (*real)(int, int, int, const void *, socklen_t);
  if (real == NULL) find_real("setsockopt", &real, sizeof real);
  if (level != SOL_SOCKET || option != SO_RCVTIMEO) return real(socket, level, option, value, size);
  errno = ENOPROTOOPT;
  return -1;
}

int poll(struct pollfd *wanted, nfds_t count, int timeout_ms)
{
  static int (*real)(struct pollfd *, nfds_t, int);
  if (real == NULL) find_real("poll", &real, sizeof real);
  if (count == 0) return real(wanted, count, timeout_ms); /* a pause of the test's */
  stack.poll_events = wanted->events;
  stack.poll_ms = timeout_ms;
  if (stack.poll_0_is_blind && timeout_ms == 0) return 0;
  if (!stack.poll_fails) return real(wanted, count, timeout_ms);
  errno = ENOMEM;
  return -1;
}

ssize_t send(int socket, const void *data, size_t size, int flags)
{
  static ssize_t (*real)(int, const void *, size_t, int);
  if (real == NULL) find_real("send", &real, sizeof real);
  stack.sends++;
  stack.last_size = size;
  if (stack.send_error == 0 || size <= stack.send_limit) return real(socket, data, size, flags);
  errno = stack.send_error;
  return -1;
}

/* A transport and the other end of its connection; -1: none. */
static struct port_posix server;
static int listener = -1;
static int peer = -1;

#define LINK (&server.transport)
#include "support/link.h"

/* What connect() says in the end: after ten seconds at most, PORT_WOULD_BLOCK. */
static int connect_in_the_end(void)
{
  int status = PORT_WOULD_BLOCK;
  for (int i = 0; i < 100 && status == PORT_WOULD_BLOCK; i++)
    status = link_connect(100);
  return status;
}

static void aim(int port)
{
  static char service[8];
  memset(&stack, 0, sizeof stack);
  (void)snprintf(service, sizeof service, "%d", port);
  port_posix_tcp(&server, "127.0.0.1", service);
}

static void open_link(void)
{
  int port;
  listener = listen_anywhere(&port);
  aim(port);
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  peer = take_call(listener);
  CHECK(peer >= 0);
}

static void close_link(void)
{
  link_close();
  (void)close(peer);
  (void)close(listener);
}

/*
 * Not one byte is taken: the connection stays, and recv() does not wait for room to write, which
 * there is, so that the client would offer the same again without a pause; nor for all of the time.
 */
static void no_buffers(int error)
{
  char data[1000] = {0};
  open_link();
  stack.send_error = error;
  CHECK_EQUAL(link_send(data, sizeof data), PORT_WOULD_BLOCK);
  CHECK(stack.sends < 12);
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), PORT_WOULD_BLOCK);
  CHECK_EQUAL(stack.poll_events & POLLOUT, 0);
  CHECK(stack.poll_ms > 0 && stack.poll_ms <= 10);
  stack.poll_ms = 0;
  CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_WOULD_BLOCK);
  CHECK_EQUAL(stack.poll_ms, 0);
  stack.send_error = 0;
  CHECK(link_send(data, sizeof data) > 0);
  CHECK_EQUAL(write(peer, "x", 1), 1);
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), 1);
  CHECK_EQUAL(stack.poll_ms, 1000);
  close_link();
}

static void test_no_buffers(void)
{
  no_buffers(ENOBUFS);
  no_buffers(ENOMEM);
}

/* Room to write is waited for when that is what was missing. */
static void test_no_room(void)
{
  char data[1] = {0};
  open_link();
  stack.send_error = EAGAIN;
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(stack.sends, 1);
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), PORT_WOULD_BLOCK);
  CHECK(stack.poll_events & POLLOUT);
  close_link();
}

/*
 * A stack without memory may say that it would block, and that there is room: it is offered the same
 * again after a pause, until it takes something.
 */
static void test_room_without_memory(void)
{
  char data[1] = {0};
  open_link();
  stack.send_error = EAGAIN;
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
    CHECK_EQUAL(link_recv(data, sizeof data, 1000), PORT_WOULD_BLOCK);
    CHECK_EQUAL(stack.poll_events & POLLOUT, i == 0 ? POLLOUT : 0);
    CHECK_EQUAL(stack.poll_ms, i == 0 ? 1000 : 10);
  }
  stack.send_error = 0;
  CHECK_EQUAL(link_send("x", 1), 1);
  stack.send_error = EAGAIN;
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), PORT_WOULD_BLOCK);
  CHECK(stack.poll_events & POLLOUT);
  close_link();
}

/* A stack keeps the memory of a connection that was closed in good order, but not of one that was reset. */
static void test_reset_at_close(void)
{
  char data[1];
  open_link();
  link_close();
  CHECK_EQUAL(read(peer, data, sizeof data), RESETS ? -1 : 0);
  (void)close(peer);
  (void)close(listener);
}

/* Another error still ends it, but first comes what the server has said, in pieces and without waits. */
static void test_broken(void)
{
  char data[2];
  open_link();
  CHECK_EQUAL(write(peer, "why", 3), 3);
  stack.send_error = EPIPE;
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(stack.sends, 1);
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), 2);
  CHECK_BYTES(data, 2, "wh", 2);
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), 1);
  CHECK_BYTES(data, 1, "y", 1);
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), PORT_CLOSED);
  CHECK(stack.poll_ms < 1000);
  CHECK_EQUAL(link_send("x", 1), PORT_CLOSED);
  close_link();
}

/* What ended is no state of the next connection. */
static void test_after_broken(void)
{
  char data[2];
  open_link();
  stack.send_error = EPIPE;
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_CLOSED);
  stack.send_error = 0;
  link_close();
  (void)close(peer);
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  peer = take_call(listener);
  CHECK_EQUAL(link_send("x", 1), 1);
  CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_WOULD_BLOCK);
  close_link();
}

/*
 * A task that waits then sleeps, for less than a second, because nothing wakes it: without a pause
 * it would keep the processor. What has come is received all the same.
 */
static void test_poll_fails_in_recv(void)
{
  char data[4];
  open_link();
  stack.poll_fails = true;
  uint32_t before = port_clock_ms();
  for (int i = 0; i < 10; i++)
    CHECK_EQUAL(link_recv(data, sizeof data, 1000), PORT_WOULD_BLOCK);
  uint32_t took = port_clock_ms() - before;
  CHECK(took >= 20);
  CHECK(took < 5000);
  CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_WOULD_BLOCK);
  CHECK_EQUAL(write(peer, "ab", 2), 2);
  int got = PORT_WOULD_BLOCK;
  for (int i = 0; i < 100 && got == PORT_WOULD_BLOCK; i++)
    got = link_recv(data, sizeof data, 100);
  CHECK_EQUAL(got, 2);
  (void)close(peer);
  peer = -1;
  got = PORT_WOULD_BLOCK;
  for (int i = 0; i < 100 && got == PORT_WOULD_BLOCK; i++)
    got = link_recv(data, sizeof data, 100);
  CHECK_EQUAL(got, PORT_CLOSED);
  close_link();
}

#if !OF_POSIX
static void test_connects_without_so_error(void)
{
  int port;
  listener = listen_anywhere(&port);
  aim(port);
  stack.no_so_error = true;
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  peer = take_call(listener);
  CHECK_EQUAL(link_send("x", 1), 1);
  close_link();
}

static void test_refused_without_so_error(void)
{
  aim(free_port());
  stack.no_so_error = true;
  CHECK_EQUAL(connect_in_the_end(), PORT_UNREACHABLE);
  link_close();
}

/*
 * The other end gets all that was offered, in the pieces that were taken. Before the first, send() may
 * say a few times that it would block: what it tries in the next call is then smaller.
 */
static void sends_in_pieces(int error)
{
  char offered[1000], got[sizeof offered];
  size_t done = 0, read_so_far = 0;
  int blocked = 0;
  for (size_t i = 0; i < sizeof offered; i++)
    offered[i] = (char)i;
  open_link();
  stack.send_error = error;
  stack.send_limit = 130;
  while (done < sizeof offered) {
    int sent = link_send(offered + done, sizeof offered - done);
    if (sent == PORT_WOULD_BLOCK && done == 0 && ++blocked < 12) continue;
    if (!CHECK(sent > 0 && sent <= 130)) break;
    done += (size_t)sent;
  }
  while (read_so_far < done) {
    ssize_t now = read(peer, got + read_so_far, done - read_so_far);
    if (!CHECK(now > 0)) break;
    read_so_far += (size_t)now;
  }
  CHECK_BYTES(got, read_so_far, offered, sizeof offered);
  close_link();
}

static void test_few_buffers(void)
{
  sends_in_pieces(ENOBUFS);
  sends_in_pieces(ENOMEM);
}

static void test_poll_fails_in_connect(void)
{
  int port;
  listener = listen_anywhere(&port);
  aim(port);
  stack.poll_fails = true;
  uint32_t before = port_clock_ms();
  for (int i = 0; i < 10; i++)
    CHECK_EQUAL(link_connect(1000), PORT_WOULD_BLOCK);
  CHECK(port_clock_ms() - before >= 20);
  stack.poll_fails = false;
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  peer = take_call(listener);
  close_link();
}

/* A superloop, which never waits, on a stack whose poll() tells only who waits. */
static int connect_without_waits(void)
{
  int status = PORT_WOULD_BLOCK;
  stack.poll_0_is_blind = true;
  for (int i = 0; i < 1000 && status == PORT_WOULD_BLOCK; i++) {
    status = link_connect(0);
    sleep_ms(10);
  }
  return status;
}

static void test_blind_poll(void)
{
  char data[2];
  int port;
  for (int i = 0; i < 2; i++) {
    listener = listen_anywhere(&port);
    aim(port);
    stack.no_so_error = i > 0;
    CHECK_EQUAL(connect_without_waits(), PORT_OK);
    peer = take_call(listener);
    stack.send_error = EAGAIN;
    CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
    CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_WOULD_BLOCK);
    stack.send_error = 0;
    CHECK_EQUAL(link_send("x", 1), 1);
    CHECK_EQUAL(write(peer, "y", 1), 1);
    int got = PORT_WOULD_BLOCK;
    for (int j = 0; j < 1000 && got == PORT_WOULD_BLOCK; j++) {
      got = link_recv(data, sizeof data, 0);
      sleep_ms(10);
    }
    CHECK_EQUAL(got, 1);
    close_link();
    aim(free_port());
    stack.no_so_error = i > 0;
    CHECK_EQUAL(connect_without_waits(), PORT_UNREACHABLE);
    link_close();
  }
}

/* Of such a stack send() says that it is still under way: it is tried again. */
static void test_send_in_progress(void)
{
  char data[1];
  open_link();
  stack.send_error = EINPROGRESS;
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), PORT_WOULD_BLOCK);
  CHECK(stack.poll_events & POLLOUT);
  stack.send_error = 0;
  CHECK_EQUAL(link_send("x", 1), 1);
  close_link();
}
#endif

const struct check_test check_tests[] = {
#if !OF_POSIX
    {"stack without SO_ERROR: connected", test_connects_without_so_error},
    {"stack without SO_ERROR: refused", test_refused_without_so_error},
    {"stack with few buffers", test_few_buffers},
    {"stack whose poll fails, in connect", test_poll_fails_in_connect},
    {"stack whose poll tells nothing without a wait", test_blind_poll},
    {"stack whose send is in progress", test_send_in_progress},
#endif
    {"stack without buffers", test_no_buffers},
    {"stack without room", test_no_room},
    {"stack with room, but without memory", test_room_without_memory},
    {"stack: end of a connection", test_reset_at_close},
    {"stack: broken connection", test_broken},
    {"stack: after a broken connection", test_after_broken},
    {"stack whose poll fails, in recv", test_poll_fails_in_recv},
    {0}};
