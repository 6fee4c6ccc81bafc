/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A template; see port_sockets.h. Sockets do not block; poll() does the waiting, also for room to
 * write when the last send() found none. Where the stack has only select(), use that, and mind
 * FD_SETSIZE: a larger descriptor writes beyond the set. Where its headers have other names, change
 * these lines:
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides on a host */

#include <sys/socket.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <unistd.h>
#ifdef ESP_PLATFORM
#include <sys/poll.h>
#else
#include <poll.h>
#endif

#include "port_sockets.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* a system without signals */
#endif

/*
 * What the last send() lacked: nothing, room in the connection's window, or the stack's memory.
 * FOUND_ROOM: room, which poll() has found since. A stack that lacks memory may say so, too (NuttX).
 * CUT: it has failed for good, but recv() has yet to return what came before. OVER: recv() has said
 * that the connection has ended.
 */
enum { LACKS_NOTHING, LACKS_ROOM, FOUND_ROOM, LACKS_MEMORY, CUT, OVER };

/*
 * How long to wait, in ms, for what poll() does not tell of: for the stack's memory, or when poll()
 * itself fails.
 */
#define LOOK_MS 10U

/* A piece that is not made smaller when the stack lacks memory. */
#define SMALLEST 64U

_Static_assert(sizeof(atomic_int) == sizeof(int), "there is no room for the atomic");

/* port_sockets.h has to compile as C99 and C++, so it cannot say _Atomic. */
static atomic_int *send_lacks(struct port_sockets *sockets)
{
  return (atomic_int *)&sockets->send_lacks;
}

static bool lacks_memory(int error)
{
  return error == ENOBUFS || error == ENOMEM;
}

/* What a call says that can be made again later; of send(), some stacks say EINPROGRESS for it. */
static bool may_retry(int error)
{
  switch (error) {
  case EAGAIN:
#if EWOULDBLOCK != EAGAIN
  case EWOULDBLOCK:
#endif
  case EINTR:
  case EINPROGRESS:
    return true;
  default:
    return false;
  }
}

static uint32_t shorter(uint32_t timeout_ms)
{
  return timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS;
}

/* Sleeps when poll() has failed, on what each threads port has. Nothing sets the event. */
static void sleep_ms(uint32_t ms)
{
  struct port_mutex mutex;
  struct port_event event;
  if (ms == 0) return;
  port_mutex_init(&mutex);
  port_event_init(&event);
  port_mutex_lock(&mutex);
  port_event_wait(&event, &mutex, ms);
  port_mutex_unlock(&mutex);
  port_event_destroy(&event);
  port_mutex_destroy(&mutex);
}

/*
 * Waits for events of the socket. Returns those that came, or 0. It never returns at once because
 * poll() fails, as it may for want of memory: the client would call again without a pause.
 */
static int wait_for(const struct port_sockets *sockets, short events, uint32_t timeout_ms)
{
  struct pollfd wanted = {.fd = sockets->socket, .events = events};
  int ready = poll(&wanted, 1, (int)timeout_ms);
  if (ready < 0) sleep_ms(shorter(timeout_ms));
  return ready > 0 ? wanted.revents : 0;
}

static void shut(struct port_sockets *sockets)
{
  if (sockets->socket >= 0) (void)close(sockets->socket);
  sockets->socket = -1;
  sockets->connected = false;
  atomic_store(send_lacks(sockets), LACKS_NOTHING);
}

/* Calls connect(). Returns 0 if it is connected, EINPROGRESS, or why it cannot be. */
static int ask(const struct port_sockets *sockets)
{
  const struct sockaddr_in server = {.sin_family = AF_INET,
                                     .sin_port = htons(sockets->port),
                                     .sin_addr.s_addr = htonl(sockets->address)};
  if (connect(sockets->socket, (const struct sockaddr *)&server, sizeof server) == 0) return 0;
  if (errno == EISCONN) return 0;
  return errno == EALREADY || may_retry(errno) ? EINPROGRESS : errno;
}

/* Begins to connect. Returns what ask() does. */
static int begin(struct port_sockets *sockets)
{
  if (sockets->resolve != NULL && !sockets->resolve(sockets)) return EHOSTUNREACH;
  const int on = 1;
  const struct linger reset = {.l_onoff = 1, .l_linger = 0};
  sockets->socket = socket(AF_INET, SOCK_STREAM, 0);
  if (sockets->socket < 0) return errno;
  if (fcntl(sockets->socket, F_SETFL, O_NONBLOCK) != 0) return errno;
  (void)setsockopt(sockets->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  /* close() then resets the connection: a stack with few of them has its memory back at once */
  (void)setsockopt(sockets->socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  return ask(sockets);
}

/* Why connecting failed; 0: it did not. came: the events that ended the wait for it. */
static int connect_error(const struct port_sockets *sockets, int came)
{
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(sockets->socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0) return error;
  if (errno != ENOPROTOOPT) return errno;
  /* Stacks without SO_ERROR, as Zephyr's up to 3.5, say it by poll() alone. */
  return came & (POLLERR | POLLHUP | POLLNVAL) ? ECONNREFUSED : 0;
}

/*
 * Goes on connecting for timeout_ms. Returns what ask() does. There are stacks whose poll() never tells
 * of anything if it may not wait: there, connect() is called again, and only says how far it is.
 */
static int go_on(const struct port_sockets *sockets, uint32_t timeout_ms)
{
  int came = wait_for(sockets, POLLOUT, timeout_ms);
  if (came == 0 && timeout_ms > 0) return EINPROGRESS;
  int error = connect_error(sockets, came);
  return came == 0 && error == 0 ? ask(sockets) : error;
}

static int sockets_connect(void *context, uint32_t timeout_ms)
{
  struct port_sockets *sockets = context;
  if (sockets->connected) return PORT_OK;
  int error = sockets->socket < 0 ? begin(sockets) : EINPROGRESS;
  if (error == EINPROGRESS) error = go_on(sockets, timeout_ms);
  if (error == EINPROGRESS) return PORT_WOULD_BLOCK;
  if (error != 0) {
    shut(sockets);
    sockets->turn++;
    return PORT_UNREACHABLE;
  }
  sockets->connected = true;
  return PORT_OK;
}

/*
 * A stack with few buffers takes only what fits into them at once, or says that it lacks memory, and
 * takes none. After any other error recv() returns what has come, and then says that it has ended.
 */
static int sockets_send(void *context, const void *data, size_t size)
{
  struct port_sockets *sockets = context;
  int before = atomic_load(send_lacks(sockets));
  if (!sockets->connected || before == OVER) return PORT_CLOSED;
  if (size > INT16_MAX) size = INT16_MAX;
  ssize_t sent = send(sockets->socket, data, size, MSG_NOSIGNAL);
  while (sent < 0 && lacks_memory(errno) && size > SMALLEST) {
    size /= 2;
    sent = send(sockets->socket, data, size, MSG_NOSIGNAL);
  }
  int lacks = sent > 0 ? LACKS_NOTHING : CUT;
  if (sent < 0 && may_retry(errno)) lacks = before < FOUND_ROOM ? LACKS_ROOM : LACKS_MEMORY;
  if (sent < 0 && lacks_memory(errno)) lacks = LACKS_MEMORY;
  atomic_store(send_lacks(sockets), lacks);
  return sent > 0 ? (int)sent : PORT_WOULD_BLOCK;
}

/*
 * What came is not looked at but for room to write: recv() reports the rest, and more exactly. There
 * may be room without memory, so that is not waited for: the client would not stop offering.
 */
static int sockets_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_sockets *sockets = context;
  if (!sockets->connected) return PORT_CLOSED;
  int lacks = atomic_load(send_lacks(sockets));
  short events = lacks == LACKS_ROOM ? POLLIN | POLLOUT : POLLIN;
  if (lacks == LACKS_MEMORY) timeout_ms = shorter(timeout_ms);
  if (lacks == CUT) timeout_ms = 0; /* no more will come */
  int came = wait_for(sockets, events, timeout_ms);
  if (came & POLLOUT) atomic_store(send_lacks(sockets), FOUND_ROOM);
  ssize_t got = recv(sockets->socket, data, size < INT16_MAX ? size : INT16_MAX, 0);
  if (got > 0) return (int)got;
  if (got < 0 && may_retry(errno) && lacks != CUT) return PORT_WOULD_BLOCK;
  atomic_store(send_lacks(sockets), OVER);
  return PORT_CLOSED;
}

/* An attempt that is given up has taken too long: the next address may be better. */
static void sockets_close(void *context)
{
  struct port_sockets *sockets = context;
  if (sockets->socket >= 0 && !sockets->connected) sockets->turn++;
  shut(sockets);
}

void port_sockets_init(struct port_sockets *sockets, uint32_t address, uint16_t port)
{
  *sockets = (struct port_sockets){
      .transport = {sockets_connect, sockets_send, sockets_recv, sockets_close, sockets, NULL,
                    NULL},
      .address = address,
      .port = port,
      .socket = -1,
  };
}
