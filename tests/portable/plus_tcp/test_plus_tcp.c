/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What FreeRTOS-Plus-TCP does and other stacks do not, on the transport over it: a closed socket that
 * tells nobody, time-outs in ticks, errors as negative numbers, a connection that is over before it
 * was seen. The stack is a stand-in (see the headers beside this).
 */
#include "check.h"
#include "port_plus_tcp.h"
#include "stand_in.h"
#include "support/loopback.h"

#include "FreeRTOS.h"

#include <sys/socket.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define LONG_MS 20000U /* nothing here takes this long on a machine that is merely busy */

static struct plus_tcp_stand_in *const stack = &plus_tcp_stand_in;
static struct port_plus_tcp server;
static int listener = -1;
static int peer = -1;

#define LINK (&server.transport)
#include "support/link.h"

static int connect_in_the_end(void)
{
  int status = PORT_WOULD_BLOCK;
  for (int i = 0; i < 100 && status == PORT_WOULD_BLOCK; i++)
    status = link_connect(100);
  return status;
}

static void aim(uint16_t port)
{
  memset(stack, 0, sizeof *stack);
  port_plus_tcp_init(&server, 0x7f000001, port);
}

static void listen_for(void)
{
  int port;
  listener = listen_anywhere(&port);
  aim((uint16_t)port);
}

static void open_link(void)
{
  listen_for();
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  peer = take_call(listener);
  CHECK(peer >= 0);
}

/* The end of the client, and that nothing is left of it. */
static void close_link(void)
{
  link_close();
  link_close();
  CHECK_EQUAL(atomic_load(&stack->open), 0);
  if (peer >= 0) (void)close(peer);
  if (listener >= 0) (void)close(listener);
  peer = listener = -1;
}

/* Whether the peer sees the end of the connection within ms. */
static bool peer_sees_end(int ms)
{
  char byte;
  struct pollfd wanted = {.fd = peer, .events = POLLIN};
  return poll(&wanted, 1, ms) == 1 && recv(peer, &byte, 1, 0) <= 0;
}

static void test_close_tells_the_server(void)
{
  open_link();
  link_close();
  CHECK(peer_sees_end(LONG_MS));
  CHECK_EQUAL(atomic_load(&stack->orphans), 0);
  close_link();
}

/* The FIN waits for what was sent before: the socket has to be there until then. */
static void test_close_waits_for_acknowledgements(void)
{
  open_link();
  atomic_store(&stack->unacknowledged, true);
  link_close();
  CHECK_EQUAL(link_send("x", 1), PORT_CLOSED);
  CHECK(!peer_sees_end(50));
  CHECK_EQUAL(atomic_load(&stack->open), 1);
  atomic_store(&stack->unacknowledged, false);
  CHECK(peer_sees_end(LONG_MS));
  CHECK_EQUAL(atomic_load(&stack->orphans), 0);
  close_link();
}

/* A server that never acknowledges costs the memory of one socket, until the next one is made. */
static void test_one_socket_is_left_at_most(void)
{
  open_link();
  atomic_store(&stack->unacknowledged, true);
  for (int i = 0; i < 3; i++) {
    link_close();
    CHECK_EQUAL(atomic_load(&stack->open), 1);
    CHECK_EQUAL(connect_in_the_end(), PORT_OK);
    CHECK_EQUAL(atomic_load(&stack->open), 1);
  }
  close_link();
}

static void test_attempt_given_up_is_closed(void)
{
  listen_for();
  stack->silent = true;
  CHECK_EQUAL(link_connect(0), PORT_WOULD_BLOCK);
  link_close();
  CHECK_EQUAL(atomic_load(&stack->open), 0);
  close_link();
}

static void test_no_memory_for_a_socket(void)
{
  listen_for();
  stack->no_memory = true;
  CHECK_EQUAL(link_connect(100), PORT_UNREACHABLE);
  link_close();
  stack->no_memory = false;
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  close_link();
}

/* Each call takes its time, and one attempt is made for all of them. */
static void test_connects_in_steps(void)
{
  listen_for();
  stack->silent = true;
  uint32_t began = port_clock_ms();
  CHECK_EQUAL(link_connect(0), PORT_WOULD_BLOCK);
  CHECK_EQUAL(stack->receive_ticks, 0);
  CHECK_EQUAL(link_connect(40), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_connect(40), PORT_WOULD_BLOCK);
  CHECK(port_clock_ms() - began >= 80);
  CHECK(port_clock_ms() - began < LONG_MS);
  CHECK_EQUAL(stack->connects, 1);
  close_link();
}

/* It has never been up, though the state is that of a connection which has ended. */
static void test_stack_gives_up(void)
{
  listen_for();
  stack->silent = true;
  CHECK_EQUAL(link_connect(0), PORT_WOULD_BLOCK);
  stack->gives_up = true;
  CHECK_EQUAL(link_connect(100), PORT_UNREACHABLE);
  CHECK_EQUAL(atomic_load(&stack->open), 0);
  close_link();
}

static void test_refused(void)
{
  aim((uint16_t)free_port());
  CHECK_EQUAL(connect_in_the_end(), PORT_UNREACHABLE);
  CHECK_EQUAL(atomic_load(&stack->open), 0);
  close_link();
}

/* Until the bytes of the peer, and the end behind them, have come. */
static void wait_for_the_end(void)
{
  struct pollfd wanted = {.fd = plus_tcp_stand_in_fd(server.socket), .events = 0x2000 /* RDHUP */};
  CHECK_EQUAL(poll(&wanted, 1, LONG_MS), 1);
}

/* A server that is full says so, and closes. */
static void test_closed_before_it_was_seen(void)
{
  char data[8] = {0};
  listen_for();
  stack->slow = true;
  CHECK_EQUAL(link_connect(0), PORT_WOULD_BLOCK);
  peer = take_call(listener);
  CHECK_EQUAL(send(peer, "-full", 5, 0), 5);
  (void)close(peer);
  peer = -1;
  wait_for_the_end();
  stack->slow = false;
  CHECK_EQUAL(link_connect(100), PORT_OK);
  CHECK_EQUAL(link_recv(data, sizeof data, LONG_MS), 5);
  CHECK_BYTES(data, 5, "-full", 5);
  CHECK_EQUAL(link_recv(data, sizeof data, LONG_MS), PORT_CLOSED);
  close_link();
}

/* What it said comes out although nothing can be sent any more. */
static void test_send_after_the_end(void)
{
  char data[8] = {0};
  open_link();
  CHECK_EQUAL(send(peer, "-full", 5, 0), 5);
  (void)close(peer);
  peer = -1;
  wait_for_the_end();
  CHECK_EQUAL(link_send("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(link_recv(data, sizeof data, LONG_MS), 5);
  CHECK_EQUAL(link_send("x", 1), PORT_CLOSED);
  close_link();
}

/* Fills the stream. Returns how much was taken. */
static size_t fill(void)
{
  static const char data[1000];
  size_t total = 0;
  int sent;
  for (;;) {
    sent = link_send(data, sizeof data);
    if (sent <= 0) break;
    total += (size_t)sent;
    if (!CHECK(total < 100000000)) break;
  }
  CHECK_EQUAL(sent, PORT_WOULD_BLOCK);
  return total;
}

/* A little at a time: then recv() looks for room, and waits for bytes alone once there was some. */
static void test_sends_in_pieces(void)
{
  static char data[65536];
  open_link();
  stack->stream_size = 100;
  CHECK_EQUAL(link_send(data, 250), 100);
  size_t total = 100 + fill();
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), PORT_WOULD_BLOCK);
  CHECK_EQUAL(stack->receive_ticks, pdMS_TO_TICKS(10));
  CHECK_EQUAL(link_recv(data, sizeof data, 0), PORT_WOULD_BLOCK);
  CHECK_EQUAL(stack->receive_ticks, 0);
  while (total > 0) {
    ssize_t got = recv(peer, data, sizeof data, 0);
    if (!CHECK(got > 0)) break;
    total -= (size_t)got;
  }
  int sent = PORT_WOULD_BLOCK;
  for (uint32_t began = port_clock_ms(); sent < 0 && port_clock_ms() - began < LONG_MS;) {
    (void)link_recv(data, sizeof data, 1000);
    sent = link_send("x", 1);
  }
  CHECK_EQUAL(sent, 1);
  CHECK_EQUAL(send(peer, "y", 1, 0), 1);
  CHECK_EQUAL(link_recv(data, sizeof data, 1000), 1);
  CHECK_EQUAL(stack->receive_ticks, pdMS_TO_TICKS(1000));
  close_link();
}

/* What the last connection lacked says nothing of the next. */
static void test_room_after_a_close(void)
{
  char byte;
  open_link();
  (void)fill();
  link_close();
  (void)close(peer);
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  peer = take_call(listener);
  CHECK_EQUAL(send(peer, "y", 1, 0), 1);
  CHECK_EQUAL(link_recv(&byte, 1, 1000), 1);
  CHECK_EQUAL(stack->receive_ticks, pdMS_TO_TICKS(1000));
  close_link();
}

static void test_timeouts_in_ticks(void)
{
  static const struct {
    uint32_t ms, ticks;
  } cases[] = {{0, 0}, {1, 1}, {4, 1}, {100, 25}, {60000, 15000}, {UINT32_MAX, 15000}};
  char byte;
  open_link();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK_EQUAL(send(peer, "y", 1, 0), 1);
    struct pollfd wanted = {.fd = plus_tcp_stand_in_fd(server.socket), .events = POLLIN};
    CHECK_EQUAL(poll(&wanted, 1, LONG_MS), 1);
    CHECK_EQUAL(link_recv(&byte, 1, cases[i].ms), 1);
    CHECK_EQUAL(stack->receive_ticks, cases[i].ticks);
  }
  close_link();
}

static void test_what_recv_says(void)
{
  static const struct {
    long says;
    int status;
  } cases[] = {
      {-pdFREERTOS_ERRNO_EINTR, PORT_WOULD_BLOCK},
      {-pdFREERTOS_ERRNO_EWOULDBLOCK, PORT_WOULD_BLOCK},
      {-pdFREERTOS_ERRNO_ENOMEM, PORT_CLOSED},
      {-pdFREERTOS_ERRNO_ENOTCONN, PORT_CLOSED},
      {-pdFREERTOS_ERRNO_EINVAL, PORT_CLOSED},
  };
  char byte;
  open_link();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    stack->recv_says = cases[i].says;
    CHECK_EQUAL(link_recv(&byte, 1, 1000), cases[i].status);
  }
  close_link();
}

/* Looked up for each attempt. Without an address there is no socket, either. */
static void test_names(void)
{
  listen_for();
  uint16_t port = server.port;
  port_plus_tcp_host(&server, "redis.example", port);
  for (unsigned i = 1; i <= 2; i++) {
    CHECK_EQUAL(connect_in_the_end(), PORT_OK);
    CHECK_EQUAL(stack->lookups, i);
    link_close();
  }
  link_close();
  port_plus_tcp_host(&server, "none.example", port);
  CHECK_EQUAL(connect_in_the_end(), PORT_UNREACHABLE);
  CHECK_EQUAL(atomic_load(&stack->open), 0);
  close_link();
}

const struct check_test check_tests[] = {
    {"plus_tcp: close tells the server", test_close_tells_the_server},
    {"plus_tcp: close waits for acknowledgements", test_close_waits_for_acknowledgements},
    {"plus_tcp: one socket is left at most", test_one_socket_is_left_at_most},
    {"plus_tcp: attempt given up is closed", test_attempt_given_up_is_closed},
    {"plus_tcp: no memory for a socket", test_no_memory_for_a_socket},
    {"plus_tcp: connects in steps", test_connects_in_steps},
    {"plus_tcp: stack gives up", test_stack_gives_up},
    {"plus_tcp: refused", test_refused},
    {"plus_tcp: closed before it was seen", test_closed_before_it_was_seen},
    {"plus_tcp: send after the end", test_send_after_the_end},
    {"plus_tcp: sends in pieces", test_sends_in_pieces},
    {"plus_tcp: room after a close", test_room_after_a_close},
    {"plus_tcp: time-outs in ticks", test_timeouts_in_ticks},
    {"plus_tcp: what recv says", test_what_recv_says},
    {"plus_tcp: names", test_names},
    {0}};
