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
#include <poll.h>
#include <unistd.h>

#include "port_sockets.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* a system without signals */
#endif

static void shut(struct port_sockets *sockets)
{
  if (sockets->socket >= 0) (void)close(sockets->socket);
  sockets->socket = -1;
  sockets->connected = false;
  atomic_store(&sockets->send_blocked, false);
}

/* Begins to connect. False: even that failed. */
static bool begin(struct port_sockets *sockets)
{
  const struct sockaddr_in server = {.sin_family = AF_INET,
                                     .sin_port = htons(sockets->port),
                                     .sin_addr.s_addr = htonl(sockets->address)};
  const int on = 1;
  sockets->socket = socket(AF_INET, SOCK_STREAM, 0);
  if (sockets->socket < 0) return false;
  if (fcntl(sockets->socket, F_SETFL, O_NONBLOCK) != 0) return false;
  (void)setsockopt(sockets->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connect(sockets->socket, (const struct sockaddr *)&server, sizeof server) == 0 ||
         errno == EINPROGRESS;
}

static int sockets_connect(void *context, uint32_t timeout_ms)
{
  struct port_sockets *sockets = context;
  int error = 0;
  socklen_t size = sizeof error;
  if (sockets->connected) return PORT_OK;
  if (sockets->socket < 0 && !begin(sockets)) error = errno;
  struct pollfd wanted = {.fd = sockets->socket, .events = POLLOUT};
  if (error == 0 && poll(&wanted, 1, (int)timeout_ms) <= 0) return PORT_WOULD_BLOCK;
  if (error == 0 && getsockopt(sockets->socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
    error = errno;
  if (error != 0) {
    shut(sockets);
    return PORT_UNREACHABLE;
  }
  sockets->connected = true;
  return PORT_OK;
}

static bool may_retry(int error)
{
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static int sockets_send(void *context, const void *data, size_t size)
{
  struct port_sockets *sockets = context;
  if (!sockets->connected) return PORT_CLOSED;
  ssize_t sent = send(sockets->socket, data, size < INT16_MAX ? size : INT16_MAX, MSG_NOSIGNAL);
  bool blocked = sent < 0 && may_retry(errno);
  atomic_store(&sockets->send_blocked, blocked);
  if (sent > 0) return (int)sent;
  return blocked ? PORT_WOULD_BLOCK : PORT_CLOSED;
}

/* poll()'s result is not looked at: recv() reports the same, and more exactly. */
static int sockets_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_sockets *sockets = context;
  if (!sockets->connected) return PORT_CLOSED;
  struct pollfd wanted = {.fd = sockets->socket, .events = POLLIN};
  if (atomic_load(&sockets->send_blocked)) wanted.events |= POLLOUT;
  (void)poll(&wanted, 1, (int)timeout_ms);
  if (wanted.revents & POLLOUT) atomic_store(&sockets->send_blocked, false);
  ssize_t got = recv(sockets->socket, data, size < INT16_MAX ? size : INT16_MAX, 0);
  if (got > 0) return (int)got;
  return got < 0 && may_retry(errno) ? PORT_WOULD_BLOCK : PORT_CLOSED;
}

static void sockets_close(void *context)
{
  shut(context);
}

void port_sockets_init(struct port_sockets *sockets, uint32_t address, uint16_t port)
{
  *sockets = (struct port_sockets){
      .transport = {sockets_connect, sockets_send, sockets_recv, sockets_close, sockets, NULL},
      .address = address,
      .port = port,
      .socket = -1,
  };
}
