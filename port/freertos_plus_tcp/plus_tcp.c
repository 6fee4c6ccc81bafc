/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over FreeRTOS-Plus-TCP; see port_plus_tcp.h. The time-out of a socket is set before
 * each wait. FreeRTOS_recv() returns 0 for "nothing in time", and a negative error.
 */
#include "port_plus_tcp.h"

#include "FreeRTOS_IP.h"
#include "FreeRTOS_Sockets.h"

#include <stdatomic.h>

/*
 * How long to wait, in ms, for what a task inside FreeRTOS_recv() is not woken by: that there is room,
 * or that the connection is up.
 */
#define LOOK_MS 10U

/* Longer waits are cut: port.h allows an early return, and pdMS_TO_TICKS() must not overflow. */
#define LONGEST_MS 60000U

_Static_assert(sizeof(atomic_int) == sizeof(int), "there is no room for the atomic");

/* port_plus_tcp.h has to compile as C99 and C++, so it cannot say _Atomic. */
static atomic_int *lacks_room(struct port_plus_tcp *tcp)
{
  return (atomic_int *)&tcp->lacks_room;
}

static uint32_t shorter(uint32_t timeout_ms)
{
  return timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS;
}

/* At least one for a wait: with none, a wait shorter than a tick would spin. */
static TickType_t ticks(uint32_t ms)
{
  TickType_t count = pdMS_TO_TICKS(ms < LONGEST_MS ? ms : LONGEST_MS);
  return count == 0 && ms > 0 ? 1 : count;
}

/* For receiving and connecting. */
static void set_timeout(struct xSOCKET *socket, uint32_t ms)
{
  TickType_t timeout = ticks(ms);
  (void)FreeRTOS_setsockopt(socket, 0, FREERTOS_SO_RCVTIMEO, &timeout, sizeof timeout);
}

/* Waits for bytes, and takes them, or, with FREERTOS_MSG_PEEK, leaves them there. */
static int receive(struct port_plus_tcp *tcp, void *data, size_t size, uint32_t timeout_ms,
                   BaseType_t flags)
{
  set_timeout(tcp->socket, timeout_ms);
  BaseType_t got = FreeRTOS_recv(tcp->socket, data, size < INT16_MAX ? size : INT16_MAX, flags);
  if (got > 0) return (int)got;
  return got == 0 || got == -pdFREERTOS_ERRNO_EINTR || got == -pdFREERTOS_ERRNO_EWOULDBLOCK
             ? PORT_WOULD_BLOCK
             : PORT_CLOSED;
}

/* Frees a socket, of which the server is not told. */
static void discard(struct xSOCKET **socket)
{
  if (*socket != NULL) (void)FreeRTOS_closesocket(*socket);
  *socket = NULL;
}

/*
 * FreeRTOS_closesocket() sends nothing, and ends what FreeRTOS_shutdown() has begun: the FIN goes out
 * when the server has acknowledged all that was sent. So the socket stays for a while. Only a
 * connection that is up can be shut down: of others the server knows nothing, or knows the end.
 */
static void plus_tcp_close(void *context)
{
  struct port_plus_tcp *tcp = context;
  discard(&tcp->leaving);
  if (tcp->connected && FreeRTOS_shutdown(tcp->socket, FREERTOS_SHUT_RDWR) == 0) {
    tcp->leaving = tcp->socket;
    tcp->socket = NULL;
  }
  discard(&tcp->socket);
  tcp->connected = false;
  atomic_store(lacks_room(tcp), false);
}

static void set_server(struct freertos_sockaddr *server, const struct port_plus_tcp *tcp)
{
  *server = (struct freertos_sockaddr){0};
  server->sin_len = sizeof *server;
  server->sin_family = FREERTOS_AF_INET;
  server->sin_port = FreeRTOS_htons(tcp->port);
#if ipFR_TCP_VERSION_MAJOR >= 4
  server->sin_address.ulIP_IPv4 = FreeRTOS_htonl(tcp->address);
#else
  server->sin_addr = FreeRTOS_htonl(tcp->address);
#endif
}

/* Begins to connect, and waits. False: there is no socket. How far it has come, the socket tells. */
static bool begin(struct port_plus_tcp *tcp, uint32_t timeout_ms)
{
  struct freertos_sockaddr server;
  if (tcp->resolve != NULL && !tcp->resolve(tcp)) return false;
  discard(&tcp->leaving);
  struct xSOCKET *made =
      FreeRTOS_socket(FREERTOS_AF_INET, FREERTOS_SOCK_STREAM, FREERTOS_IPPROTO_TCP);
  if (made == FREERTOS_INVALID_SOCKET) return false;
  tcp->socket = made;
  set_server(&server, tcp);
  set_timeout(made, timeout_ms);
  (void)FreeRTOS_connect(made, &server, sizeof server);
  return true;
}

/*
 * Whether the connection is up. If bytes have come, it was, and the server has closed it already:
 * they are left for recv().
 */
static int look(struct port_plus_tcp *tcp, uint32_t timeout_ms)
{
  uint8_t byte;
  if (FreeRTOS_issocketconnected(tcp->socket) > 0) return PORT_OK;
  int got = receive(tcp, &byte, sizeof byte, timeout_ms, FREERTOS_MSG_PEEK);
  return got > 0 ? PORT_OK : got;
}

static int plus_tcp_connect(void *context, uint32_t timeout_ms)
{
  struct port_plus_tcp *tcp = context;
  uint32_t began = port_clock_ms();
  uint32_t spent = 0;
  int status = PORT_CLOSED;
  if (tcp->connected) return PORT_OK;
  if (tcp->socket != NULL || begin(tcp, timeout_ms)) {
    spent = port_clock_ms() - began;
    status = look(tcp, 0);
  }
  while (status == PORT_WOULD_BLOCK && spent < timeout_ms) {
    status = look(tcp, shorter(timeout_ms - spent));
    spent = port_clock_ms() - began;
  }
  tcp->connected = status == PORT_OK;
  if (status != PORT_CLOSED) return status;
  discard(&tcp->socket);
  return PORT_UNREACHABLE;
}

/*
 * The stack takes what fits into its stream buffer, and says 0 or ENOSPC when that is full. When the
 * connection has ended, bytes may have come before.
 */
static int plus_tcp_send(void *context, const void *data, size_t size)
{
  struct port_plus_tcp *tcp = context;
  if (!tcp->connected) return PORT_CLOSED;
  BaseType_t sent =
      FreeRTOS_send(tcp->socket, data, size < INT16_MAX ? size : INT16_MAX, FREERTOS_MSG_DONTWAIT);
  bool full =
      sent == 0 || sent == -pdFREERTOS_ERRNO_ENOSPC || sent == -pdFREERTOS_ERRNO_EWOULDBLOCK;
  atomic_store(lacks_room(tcp), full);
  if (sent > 0) return (int)sent;
  return full || FreeRTOS_rx_size(tcp->socket) > 0 ? PORT_WOULD_BLOCK : PORT_CLOSED;
}

/* When the last send() found no room, this returns soon: the client then offers the rest again. */
static int plus_tcp_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_plus_tcp *tcp = context;
  if (!tcp->connected) return PORT_CLOSED;
  if (atomic_load(lacks_room(tcp))) timeout_ms = shorter(timeout_ms);
  return receive(tcp, data, size, timeout_ms, 0);
}

void port_plus_tcp_init(struct port_plus_tcp *tcp, uint32_t address, uint16_t port)
{
  *tcp = (struct port_plus_tcp){
      .transport = {plus_tcp_connect, plus_tcp_send, plus_tcp_recv, plus_tcp_close, tcp, NULL,
                    NULL},
      .address = address,
      .port = port,
  };
}
