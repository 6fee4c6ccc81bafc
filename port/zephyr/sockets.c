/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport over Zephyr's sockets; see port_zephyr.h. A connection is opened without blocking,
 * but with TLS, and on Zephyr 3.3, whose connect() always blocks. Receiving never blocks, and sending
 * only while Zephyr looks for a buffer; zsock_poll() does the waiting, also for room to write when the
 * last send found none.
 */
#include "port_zephyr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zephyr/kernel.h>
#include <zephyr/net/socket.h>
#include <zephyr/sys/fdtable.h>

/* Zephyr's own names from 3.7 on; before, those of the host for its simulated boards. */
#ifdef ZVFS_O_NONBLOCK
#define SET_FLAGS    ZVFS_F_SETFL
#define NOT_BLOCKING ZVFS_O_NONBLOCK
#else
#ifdef CONFIG_ARCH_POSIX
#include <fcntl.h>
#else
#include <zephyr/posix/fcntl.h>
#endif
#define SET_FLAGS    F_SETFL
#define NOT_BLOCKING O_NONBLOCK
#endif

/* One for readable, one for writable: with fewer, zsock_poll() fails whenever both are waited for. */
#if defined CONFIG_NET_SOCKETS_POLL_MAX && CONFIG_NET_SOCKETS_POLL_MAX < 2
#error "fairlock needs CONFIG_NET_SOCKETS_POLL_MAX of 2 or more"
#endif

/*
 * What the last send lacked: nothing, room in the connection's window, or the stack's memory.
 * FOUND_ROOM: room, which zsock_poll() has found since. A stack that lacks memory may say so, too.
 * CUT: it has failed for good, but recv() has yet to return what came before. OVER: recv() has said
 * that the connection has ended.
 */
enum { LACKS_NOTHING, LACKS_ROOM, FOUND_ROOM, LACKS_MEMORY, CUT, OVER };

/*
 * How long to wait, in ms, for what zsock_poll() does not tell of: for the stack's memory, or when
 * it fails itself.
 */
#define LOOK_MS 10U

/* A piece that is not made smaller when the stack lacks memory, in bytes. */
#define SMALLEST 64U

/* Where to connect to. */
struct place {
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
  } address;
  socklen_t size;
};
_Static_assert(sizeof(struct place) <= sizeof((struct port_zephyr *)NULL)->place,
               "it is kept there");

static uint32_t shorter(uint32_t timeout_ms)
{
  return timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS;
}

/*
 * Waits for events of the socket. Returns those that came, or 0. It never returns at once because
 * zsock_poll() fails, as it may for want of memory: the client would call again without a pause.
 */
static int wait_for(const struct port_zephyr *zephyr, int events, uint32_t timeout_ms)
{
  struct zsock_pollfd wanted = {.fd = zephyr->socket, .events = (short)events};
  int ready = zsock_poll(&wanted, 1, (int)timeout_ms);
  if (ready < 0 && timeout_ms > 0) (void)k_msleep((int32_t)shorter(timeout_ms));
  return ready > 0 ? wanted.revents : 0;
}

static void shut(struct port_zephyr *zephyr)
{
  if (zephyr->socket >= 0) (void)zsock_close(zephyr->socket);
  zephyr->socket = -1;
  zephyr->connected = false;
  zephyr->again = 0;
  zephyr->piece = 0;
  (void)atomic_set(&zephyr->send_lacks, LACKS_NOTHING);
}

/* host as an address, without the heap that a name needs. */
static bool literal(const struct port_zephyr *zephyr, struct place *place)
{
  uint16_t port = htons((uint16_t)strtoul(zephyr->service, NULL, 10));
  memset(place, 0, sizeof *place);
  if (strchr(zephyr->host, ':') != NULL) {
    place->address.v6.sin6_family = AF_INET6;
    place->address.v6.sin6_port = port;
    place->size = sizeof place->address.v6;
    return zsock_inet_pton(AF_INET6, zephyr->host, &place->address.v6.sin6_addr) == 1;
  }
  place->address.v4.sin_family = AF_INET;
  place->address.v4.sin_port = port;
  place->size = sizeof place->address.v4;
  return zsock_inet_pton(AF_INET, zephyr->host, &place->address.v4.sin_addr) == 1;
}

#ifdef CONFIG_DNS_RESOLVER
/* The address of the name whose turn it is. */
static bool resolve(const struct port_zephyr *zephyr, struct place *place)
{
  const struct zsock_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  struct zsock_addrinfo *list = NULL;
  unsigned count = 0;
  if (zsock_getaddrinfo(zephyr->host, zephyr->service, &hints, &list) != 0) return false;
  for (const struct zsock_addrinfo *entry = list; entry != NULL; entry = entry->ai_next)
    count++;
  const struct zsock_addrinfo *chosen = list;
  for (unsigned i = count > 0 ? zephyr->turn % count : 0; i > 0; i--)
    chosen = chosen->ai_next;
  bool fits = chosen != NULL && chosen->ai_addrlen <= sizeof place->address;
  if (fits) {
    memcpy(&place->address, chosen->ai_addr, chosen->ai_addrlen);
    place->size = chosen->ai_addrlen;
  }
  zsock_freeaddrinfo(list);
  return fits;
}
#else
static bool resolve(const struct port_zephyr *zephyr, struct place *place)
{
  (void)zephyr;
  (void)place;
  return false;
}
#endif

/* What TLS has to know before it connects. Returns 0, or why it cannot be. */
static int prepare_tls(const struct port_zephyr *zephyr)
{
  const char *name = zephyr->name != NULL ? zephyr->name : zephyr->host;
  if (zsock_setsockopt(zephyr->socket, SOL_TLS, TLS_SEC_TAG_LIST, zephyr->tags,
                       (socklen_t)(zephyr->tag_count * sizeof *zephyr->tags)) != 0)
    return errno;
  if (zsock_setsockopt(zephyr->socket, SOL_TLS, TLS_HOSTNAME, name, (socklen_t)strlen(name)) != 0)
    return errno;
  return 0;
}

/*
 * Begins to connect; with TLS, connects: Zephyr makes no handshake for a socket that does not block.
 * Returns 0 if it is connected, EINPROGRESS, or why it cannot.
 */
static int begin(struct port_zephyr *zephyr)
{
  struct place place;
  const int on = 1;
  int error = 0;
  bool tls = zephyr->tags != NULL;
  if (!literal(zephyr, &place) && !resolve(zephyr, &place)) return EHOSTUNREACH;
  memcpy(zephyr->place, &place, sizeof place);
  zephyr->socket =
      zsock_socket(place.address.any.sa_family, SOCK_STREAM, tls ? IPPROTO_TLS_1_2 : IPPROTO_TCP);
  if (zephyr->socket < 0) return errno;
  if (tls) error = prepare_tls(zephyr);
  else if (zsock_fcntl(zephyr->socket, SET_FLAGS, NOT_BLOCKING) != 0) error = errno;
  if (error != 0) return error;
  (void)zsock_setsockopt(zephyr->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return zsock_connect(zephyr->socket, &place.address.any, place.size) == 0 ? 0 : errno;
}

/*
 * The same by connecting once more. Without SO_ERROR: Zephyr has none up to 3.5, and zsock_poll() must not be called there
 * while it connects. It would look at the connection, which a refusal has freed, and the device would
 * fault. To connect once more only asks how far it has come.
 */
static int ask_again(const struct port_zephyr *zephyr, uint32_t timeout_ms)
{
  struct place place;
  memcpy(&place, zephyr->place, sizeof place);
  uint32_t began = port_clock_ms();
  for (;;) {
    int status = zsock_connect(zephyr->socket, &place.address.any, place.size);
    uint32_t spent = port_clock_ms() - began;
    if (status == 0 || errno == EISCONN) return 0;
    if (errno != EALREADY && errno != EINPROGRESS) return errno;
    if (spent >= timeout_ms) return EINPROGRESS;
    (void)k_msleep((int32_t)shorter(timeout_ms - spent));
  }
}

/* Goes on connecting for timeout_ms. Returns what begin() does. */
static int go_on(const struct port_zephyr *zephyr, uint32_t timeout_ms)
{
  int error = 0;
  socklen_t size = sizeof error;
  if (zsock_getsockopt(zephyr->socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
    return errno == ENOPROTOOPT ? ask_again(zephyr, timeout_ms) : errno;
  if (error != 0) return error;
  if (wait_for(zephyr, ZSOCK_POLLOUT, timeout_ms) == 0)
    return timeout_ms == 0 ? ask_again(zephyr, 0) : EINPROGRESS; /* it may tell of nothing then */
  return zsock_getsockopt(zephyr->socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

static int zephyr_connect(void *context, uint32_t timeout_ms)
{
  struct port_zephyr *zephyr = context;
  if (zephyr->connected) return PORT_OK;
  int error = zephyr->socket < 0 ? begin(zephyr) : EINPROGRESS;
  if (error == EINPROGRESS) error = go_on(zephyr, timeout_ms);
  if (error == EINPROGRESS) return PORT_WOULD_BLOCK;
  (void)atomic_set(&zephyr->error, error);
  if (error != 0) {
    shut(zephyr);
    zephyr->turn++;
    return PORT_UNREACHABLE;
  }
  zephyr->connected = true;
  return PORT_OK;
}

static bool lacks_memory(int error)
{
  return error == ENOBUFS || error == ENOMEM;
}

static bool may_retry(int error)
{
  return error == EAGAIN || error == EINTR || error == EINPROGRESS;
}

/*
 * A stack with few buffers takes only what fits into them at once, or says that it lacks memory, and
 * takes none. Zephyr 3.3 and 3.4 may take a second to say so, also to who is not to wait: so there is
 * one attempt in each call, and what was too much is not tried again until the connection ends.
 * A record of TLS that was not sent whole has to be offered again as it was: the client offers the
 * same bytes, and may offer more after them.
 */
static int zephyr_send(void *context, const void *data, size_t size)
{
  struct port_zephyr *zephyr = context;
  int before = (int)atomic_get(&zephyr->send_lacks);
  if (!zephyr->connected || before == OVER) return PORT_CLOSED;
  if (size > INT16_MAX) size = INT16_MAX;
  if (zephyr->piece != 0 && zephyr->piece < size) size = zephyr->piece;
  if (zephyr->again != 0 && zephyr->again < size) size = zephyr->again;
  ssize_t sent = zsock_send(zephyr->socket, data, size, ZSOCK_MSG_DONTWAIT);
  int lacks = sent > 0 ? LACKS_NOTHING : CUT;
  if (sent < 0 && may_retry(errno)) lacks = before < FOUND_ROOM ? LACKS_ROOM : LACKS_MEMORY;
  if (sent < 0 && lacks_memory(errno)) lacks = LACKS_MEMORY;
  if (lacks == LACKS_MEMORY && size > SMALLEST) zephyr->piece = size / 2;
  zephyr->again = zephyr->tags != NULL && lacks == LACKS_ROOM ? size : 0;
  (void)atomic_set(&zephyr->send_lacks, lacks);
  return sent > 0 ? (int)sent : PORT_WOULD_BLOCK;
}

/*
 * What came is not looked at but for room to write: zsock_recv() reports the rest, and more exactly.
 * There may be room without memory, so that is not waited for: the client would not stop offering.
 */
static int zephyr_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_zephyr *zephyr = context;
  if (!zephyr->connected) return PORT_CLOSED;
  int lacks = (int)atomic_get(&zephyr->send_lacks);
  int events = lacks == LACKS_ROOM ? ZSOCK_POLLIN | ZSOCK_POLLOUT : ZSOCK_POLLIN;
  if (lacks == LACKS_MEMORY) timeout_ms = shorter(timeout_ms);
  if (lacks == CUT) timeout_ms = 0; /* no more will come */
  int came = wait_for(zephyr, events, timeout_ms);
  if (came & ZSOCK_POLLOUT) (void)atomic_set(&zephyr->send_lacks, FOUND_ROOM);
  if (size > INT16_MAX) size = INT16_MAX;
  ssize_t got = zsock_recv(zephyr->socket, data, size, ZSOCK_MSG_DONTWAIT);
  if (got > 0) return (int)got;
  if (got < 0 && may_retry(errno) && lacks != CUT) return PORT_WOULD_BLOCK;
  (void)atomic_set(&zephyr->send_lacks, OVER);
  return PORT_CLOSED;
}

/* An attempt that is given up has taken too long: the next address may be better. */
static void zephyr_close(void *context)
{
  struct port_zephyr *zephyr = context;
  if (zephyr->socket >= 0 && !zephyr->connected) {
    (void)atomic_set(&zephyr->error, ETIMEDOUT);
    zephyr->turn++;
  }
  shut(zephyr);
}

void port_zephyr_tcp(struct port_zephyr *zephyr, const char *host, const char *service)
{
  *zephyr = (struct port_zephyr){
      .transport = {zephyr_connect, zephyr_send, zephyr_recv, zephyr_close, zephyr, NULL, NULL},
      .host = host,
      .service = service,
      .socket = -1,
  };
}

void port_zephyr_tls(struct port_zephyr *zephyr, const sec_tag_t *tags, size_t count,
                     const char *name)
{
  zephyr->tags = tags;
  zephyr->tag_count = count;
  zephyr->name = name;
}

int port_zephyr_error(const struct port_zephyr *zephyr)
{
  return (int)atomic_get(&zephyr->error);
}
