/*
 * A template; see port_sockets.h. Sockets do not block; waiting is done by select(), for writing, too, when the last
 * send() found no room. Where the stack has poll(), use that; where its headers have other names, change these lines:
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides on a host */

#include <sys/select.h>
#include <sys/socket.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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
  sockets->send_blocked = false;
}

/* Waits until the socket can be read, or written if asked for. */
static bool wait(const struct port_sockets *sockets, bool read, bool write, uint32_t timeout_ms)
{
  struct timeval limit = {.tv_sec = (long)(timeout_ms / 1000), .tv_usec = (long)(timeout_ms % 1000) * 1000};
  fd_set reading, writing;
  FD_ZERO(&reading);
  FD_ZERO(&writing);
  if (read) FD_SET(sockets->socket, &reading);
  if (write) FD_SET(sockets->socket, &writing);
  return select(sockets->socket + 1, &reading, &writing, NULL, &limit) > 0;
}

/* False: it cannot even begin. */
static bool begin(struct port_sockets *sockets)
{
  const struct sockaddr_in server = {
      .sin_family = AF_INET, .sin_port = htons(sockets->port), .sin_addr.s_addr = htonl(sockets->address)};
  const int on = 1;
  sockets->socket = socket(AF_INET, SOCK_STREAM, 0);
  if (sockets->socket < 0) return false;
  if (fcntl(sockets->socket, F_SETFL, O_NONBLOCK) != 0) return false;
  (void)setsockopt(sockets->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connect(sockets->socket, (const struct sockaddr *)&server, sizeof server) == 0 || errno == EINPROGRESS;
}

static int sockets_connect(void *context, uint32_t timeout_ms)
{
  struct port_sockets *sockets = context;
  int error = 0;
  socklen_t size = sizeof error;
  if (sockets->connected) return PORT_OK;
  if (sockets->socket < 0 && !begin(sockets)) error = errno;
  if (error == 0 && !wait(sockets, false, true, timeout_ms)) return PORT_WOULD_BLOCK;
  if (error == 0 && getsockopt(sockets->socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) {
    shut(sockets);
    return PORT_UNREACHABLE;
  }
  sockets->connected = true;
  return PORT_OK;
}

static int sockets_send(void *context, const void *data, size_t size)
{
  struct port_sockets *sockets = context;
  if (!sockets->connected) return PORT_CLOSED;
  ssize_t sent = send(sockets->socket, data, size < INT16_MAX ? size : INT16_MAX, MSG_NOSIGNAL);
  if (sent > 0) return (int)sent;
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return PORT_CLOSED;
  sockets->send_blocked = true;
  return PORT_WOULD_BLOCK;
}

static int sockets_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_sockets *sockets = context;
  if (!sockets->connected) return PORT_CLOSED;
  bool blocked = sockets->send_blocked;
  sockets->send_blocked = false;
  (void)wait(sockets, true, blocked, timeout_ms);
  ssize_t got = recv(sockets->socket, data, size < INT16_MAX ? size : INT16_MAX, 0);
  if (got > 0) return (int)got;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return PORT_WOULD_BLOCK;
  return PORT_CLOSED;
}

static void sockets_close(void *context)
{
  shut(context);
}

void port_sockets_init(struct port_sockets *sockets, uint32_t address, uint16_t port)
{
  *sockets = (struct port_sockets){
      .transport = {sockets_connect, sockets_send, sockets_recv, sockets_close, sockets},
      .address = address,
      .port = port,
      .socket = -1,
  };
}
