/*
 * The transport over BSD sockets.
 *
 * A request and its reply cost two system calls. Once connected, the socket is in blocking mode:
 * send() asks with MSG_DONTWAIT not to block, and recv() lets the kernel do the waiting, under
 * SO_RCVTIMEO. That option is changed only when it differs much from the time asked for. What the
 * kernel cannot do in this way is done by poll(): short waits, waits until the peer takes more, and
 * all waits on a system without SO_RCVTIMEO or MSG_DONTWAIT.
 *
 * Nothing here may raise SIGPIPE, block for longer than asked (except in the resolver), or allocate
 * memory. One task may be in send() while another is in recv(): all they share and change is
 * send_blocked.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "posix.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef MSG_DONTWAIT
#define STAYS_NONBLOCKING 0
#else
#define MSG_DONTWAIT      0
#define STAYS_NONBLOCKING 1
#endif

#ifndef SOCK_CLOEXEC
#define SOCK_CLOEXEC 0 /* fcntl() sets it a little later */
#endif

#ifndef MSG_NOSIGNAL
#if !defined SO_NOSIGPIPE && defined SIGPIPE
#error                                                                                             \
    "sending here may raise SIGPIPE: have the program ignore that signal, and define MSG_NOSIGNAL as 0"
#endif
#define MSG_NOSIGNAL 0
#endif

/* An address that is silent for this long gives way to the next. */
#define ATTEMPT_MS 1000U

/* The pause before a Unix server with too much to accept is tried again. */
#define BUSY_PAUSE_MS 10U

/* SO_RCVTIMEO is set to powers of two, up to what PORT_WAIT_MAX_MS allows. */
#define LONGEST_LIMIT_MS 512U

/* For shorter waits, the tick to which kernels round SO_RCVTIMEO up would be too coarse. */
#define SHORTEST_LIMIT_MS 16U

#define KEEPALIVE_IDLE_S   30
#define KEEPALIVE_PERIOD_S 10
#define KEEPALIVE_PROBES   3

_Static_assert(LONGEST_LIMIT_MS <= PORT_WAIT_MAX_MS, "recv() would wait longer than asked");
_Static_assert(sizeof(atomic_uchar) == sizeof(unsigned char),
               "send_blocked has no room for an atomic");

/* posix.h has to compile as C99 and C++, so it cannot say _Atomic. */
static atomic_uchar *send_blocked(struct port_posix *posix)
{
  return (atomic_uchar *)&posix->send_blocked;
}

static uint32_t least(uint32_t a, uint32_t b)
{
  return a < b ? a : b;
}

static bool may_retry(int error)
{
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/*
 * A socket's options. None is worth failing for: a system without it still has a working
 * connection.
 */
static void set_option(int socket, int level, int name, int value)
{
  (void)setsockopt(socket, level, name, &value, sizeof value);
}

static bool set_time_option(int socket, int name, uint32_t ms)
{
  struct timeval time = {0};
  time.tv_usec = (suseconds_t)ms * 1000; /* less than a second; see LONGEST_LIMIT_MS */
  return setsockopt(socket, SOL_SOCKET, name, &time, sizeof time) == 0;
}

/* The client has time-outs of its own; keepalive helps one that waits and sends nothing. */
static void keep_alive(int socket)
{
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined TCP_KEEPIDLE
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
#elif defined TCP_KEEPALIVE
  set_option(socket, IPPROTO_TCP, TCP_KEEPALIVE, KEEPALIVE_IDLE_S);
#endif
#ifdef TCP_KEEPINTVL
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_PERIOD_S);
#endif
#ifdef TCP_KEEPCNT
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
#endif
}

static bool set_nonblocking(int socket, bool nonblocking)
{
  int flags = fcntl(socket, F_GETFL);
  if (flags < 0) return false;
  flags = nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  return fcntl(socket, F_SETFL, flags) == 0;
}

static int open_socket(int family)
{
  int opened = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (opened < 0) return -1;
  if ((SOCK_CLOEXEC == 0 && fcntl(opened, F_SETFD, FD_CLOEXEC) != 0) ||
      !set_nonblocking(opened, true)) {
    (void)close(opened);
    return -1;
  }
#ifdef SO_NOSIGPIPE
  set_option(opened, SOL_SOCKET, SO_NOSIGPIPE, 1);
#endif
  /*
   * Some systems heed MSG_DONTWAIT only in recv(). There, send() blocks for a millisecond at most.
   */
  (void)set_time_option(opened, SO_SNDTIMEO, 1);
  if (family != AF_UNIX) {
    set_option(opened, IPPROTO_TCP, TCP_NODELAY, 1);
    keep_alive(opened);
  }
  return opened;
}

static void close_socket(struct port_posix *posix)
{
  if (posix->socket >= 0) (void)close(posix->socket);
  posix->socket = -1;
  posix->connected = false;
}

static void forget_addresses(struct port_posix *posix)
{
  if (posix->addresses != NULL) freeaddrinfo(posix->addresses);
  posix->addresses = NULL;
  posix->address = NULL;
  posix->untried = 0;
}

static struct addrinfo *address_after(const struct port_posix *posix)
{
  return posix->address->ai_next != NULL ? posix->address->ai_next : posix->addresses;
}

/* A host and a service as getaddrinfo() wants them. */
struct place {
  char host[PORT_POSIX_HOST_SIZE];
  char service[32];
};

/*
 * Reads "host:port" or "[host]:port", up to a comma; without a host, place keeps the one it has.
 * False when it is not of that form, or too long.
 */
static bool read_place(struct place *place, const char *text)
{
  size_t size = strcspn(text, ",");
  size_t colon = size;
  while (colon > 0 && text[colon - 1] != ':')
    colon--;
  if (colon == 0 || colon == size || size - colon >= sizeof place->service) return false;
  memcpy(place->service, text + colon, size - colon);
  place->service[size - colon] = 0;
  size_t end = colon - 1;
  if (end == 0) return true;
  if (end > 1 && text[0] == '[' && text[end - 1] == ']') {
    text++;
    end -= 2;
  }
  if (end >= sizeof place->host) return false;
  memcpy(place->host, text, end);
  place->host[end] = 0;
  return true;
}

static bool socket_aim(void *context, const char *address)
{
  struct port_posix *posix = context;
  struct place place;
  if (address != NULL && !read_place(&place, address)) return false;
  posix->skip = 0;
  posix->target = address;
  if (address != NULL) return true;
  if (posix->seeds == NULL) return false;
  const char *comma = posix->seed != NULL ? strchr(posix->seed, ',') : NULL;
  posix->seed = comma != NULL ? comma + 1 : posix->seeds;
  return strchr(posix->seed, ',') != NULL;
}

/*
 * Where connections go now. A host or service from a list or a redirection is copied to place;
 * others stay where they are.
 */
static void find_place(const struct port_posix *posix, struct place *place, const char **host,
                       const char **service)
{
  *host = posix->host;
  *service = posix->service;
  if (posix->seeds != NULL) {
    (void)read_place(place, posix->seed != NULL ? posix->seed : posix->seeds);
    *host = place->host;
    *service = place->service;
  }
  if (posix->target != NULL) {
    (void)read_place(place, posix->target);
    /* not ":port"; an IPv6 address may begin with a colon, too */
    if (strrchr(posix->target, ':') != posix->target) *host = place->host;
    *service = place->service;
  }
}

void port_posix_host(const void *context, char host[PORT_POSIX_HOST_SIZE])
{
  const struct port_posix *posix = context;
  struct place place;
  const char *name;
  const char *service;
  find_place(posix, &place, &name, &service);
  size_t size = service != NULL ? strlen(name) : 0; /* a Unix path has no service */
  if (size >= PORT_POSIX_HOST_SIZE) size = 0;       /* no name is that long */
  memcpy(host, name, size);
  host[size] = 0;
}

/* Resolves the host, and points at the address to begin with. */
static bool resolve(struct port_posix *posix)
{
  struct addrinfo hints = {0};
  struct place place;
  const char *host;
  const char *service;
  hints.ai_socktype = SOCK_STREAM;
  forget_addresses(posix);
  find_place(posix, &place, &host, &service);
  if (getaddrinfo(host, service, &hints, &posix->addresses) != 0) posix->addresses = NULL;
  if (posix->addresses == NULL) return false;
  unsigned count = 0;
  for (const struct addrinfo *address = posix->addresses; address != NULL;
       address = address->ai_next)
    count++;
  posix->untried = count - 1;
  posix->skip %= count;
  posix->address = posix->addresses;
  for (unsigned i = 0; i < posix->skip; i++)
    posix->address = address_after(posix);
  return true;
}

static bool next_address(struct port_posix *posix)
{
  close_socket(posix);
  if (posix->untried == 0) return false;
  posix->untried--;
  posix->skip++;
  posix->address = address_after(posix);
  return true;
}

static int connect_to(struct port_posix *posix, int family, const struct sockaddr *address,
                      socklen_t size)
{
  posix->attempt_began = port_clock_ms();
  posix->socket = open_socket(family);
  if (posix->socket < 0) return PORT_UNREACHABLE;
  if (connect(posix->socket, address, size) == 0) return PORT_OK;
  if (errno == EINPROGRESS || errno == EINTR) return PORT_OK; /* EINTR does not stop it either */
  return family == AF_UNIX && errno == EAGAIN ? PORT_WOULD_BLOCK : PORT_UNREACHABLE;
}

static int connect_to_path(struct port_posix *posix)
{
  struct sockaddr_un address = {0};
  size_t size = strlen(posix->host);
  if (size >= sizeof address.sun_path) return PORT_UNREACHABLE;
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, posix->host, size);
  return connect_to(posix, AF_UNIX, (const struct sockaddr *)&address, sizeof address);
}

/*
 * PORT_OK: the socket is connecting, or connected. PORT_WOULD_BLOCK: the system wants to be asked
 * again later.
 */
static int start_attempt(struct port_posix *posix)
{
  if (posix->service == NULL) return connect_to_path(posix);
  const struct addrinfo *address = posix->address;
  return connect_to(posix, address->ai_family, address->ai_addr, address->ai_addrlen);
}

/*
 * When the server is on this machine and not running, the system may pick the server's own port to
 * connect from, and so connect the socket to itself. The client would talk to its own echo, and
 * keep the server from getting its port back.
 */
static bool is_own_peer(const struct port_posix *posix)
{
  struct sockaddr_storage own = {0};
  struct sockaddr_storage peer = {0};
  socklen_t own_size = sizeof own;
  socklen_t peer_size = sizeof peer;
  if (posix->service == NULL) return false;
  if (getsockname(posix->socket, (struct sockaddr *)&own, &own_size) != 0) return false;
  if (getpeername(posix->socket, (struct sockaddr *)&peer, &peer_size) != 0) return false;
  return own_size == peer_size && memcmp(&own, &peer, own_size) == 0;
}

static int end_attempt(struct port_posix *posix)
{
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(posix->socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
    return PORT_UNREACHABLE;
  if (is_own_peer(posix)) return PORT_UNREACHABLE;
  if (!STAYS_NONBLOCKING && !set_nonblocking(posix->socket, false)) return PORT_UNREACHABLE;
  posix->connected = true;
  posix->receive_limit_ms = 0;
  atomic_store(send_blocked(posix), 0);
  return PORT_OK;
}

/*
 * Waits for the attempt under way, but while there are other addresses no longer than its share of
 * the time.
 */
static int await_attempt(struct port_posix *posix, uint32_t timeout_ms)
{
  uint32_t share = timeout_ms;
  if (posix->untried > 0)
    share = ATTEMPT_MS - least(ATTEMPT_MS, port_clock_ms() - posix->attempt_began);
  struct pollfd wanted = {.fd = posix->socket, .events = POLLOUT};
  int ready = poll(&wanted, 1, (int)least(share, timeout_ms));
  if (ready > 0) return end_attempt(posix);
  if (ready < 0) return errno == EINTR ? PORT_WOULD_BLOCK : PORT_UNREACHABLE;
  return posix->untried > 0 && share <= timeout_ms ? PORT_UNREACHABLE : PORT_WOULD_BLOCK;
}

static int attempt(struct port_posix *posix, uint32_t timeout_ms)
{
  int status = posix->socket < 0 ? start_attempt(posix) : PORT_OK;
  if (status == PORT_OK) return await_attempt(posix, timeout_ms);
  if (status == PORT_WOULD_BLOCK) {
    close_socket(posix);
    (void)poll(NULL, 0, (int)least(BUSY_PAUSE_MS, timeout_ms));
  }
  return status;
}

static int socket_connect(void *context, uint32_t timeout_ms)
{
  struct port_posix *posix = context;
  if (posix->connected) return PORT_OK;
  timeout_ms = least(timeout_ms, PORT_WAIT_MAX_MS);
  if (posix->socket < 0 && posix->service != NULL && !resolve(posix)) return PORT_UNREACHABLE;
  uint32_t began = port_clock_ms();
  int status;
  do {
    status = attempt(posix, timeout_ms - least(timeout_ms, port_clock_ms() - began));
  } while (status == PORT_UNREACHABLE && next_address(posix));
  if (status != PORT_WOULD_BLOCK) {
    forget_addresses(posix);
    posix->skip = 0;
  }
  return status;
}

static int socket_send(void *context, const void *data, size_t size)
{
  struct port_posix *posix = context;
  if (!posix->connected) return PORT_CLOSED;
  ssize_t sent =
      send(posix->socket, data, size < INT_MAX ? size : INT_MAX, MSG_DONTWAIT | MSG_NOSIGNAL);
  bool blocked = sent < 0 && may_retry(errno);
  atomic_store(send_blocked(posix), blocked);
  if (sent > 0) return (int)sent;
  return blocked ? PORT_WOULD_BLOCK : PORT_CLOSED;
}

static int receive(const struct port_posix *posix, void *data, size_t size, int flags)
{
  ssize_t received = recv(posix->socket, data, size < INT_MAX ? size : INT_MAX, flags);
  if (received > 0) return (int)received;
  return received < 0 && may_retry(errno) ? PORT_WOULD_BLOCK : PORT_CLOSED;
}

/*
 * Makes the kernel end a recv() in at most timeout_ms. The limit that is set already will do if it
 * is not longer, and not so much shorter that the wait would be cut into many pieces.
 */
static bool limit_receive(struct port_posix *posix, uint32_t timeout_ms)
{
  uint32_t limit = posix->receive_limit_ms;
  if (limit <= timeout_ms && limit > timeout_ms / 4) return true;
  limit = LONGEST_LIMIT_MS;
  while (limit > timeout_ms)
    limit /= 2;
  if (!set_time_option(posix->socket, SO_RCVTIMEO, limit)) return false;
  posix->receive_limit_ms = limit;
  return true;
}

/* Whether recv() itself can do the waiting. */
static bool kernel_waits(struct port_posix *posix, uint32_t timeout_ms)
{
  if (STAYS_NONBLOCKING || timeout_ms < SHORTEST_LIMIT_MS || atomic_load(send_blocked(posix)))
    return false;
  return limit_receive(posix, timeout_ms);
}

static int poll_receive(struct port_posix *posix, void *data, size_t size, uint32_t timeout_ms)
{
  struct pollfd wanted = {.fd = posix->socket, .events = POLLIN};
  if (atomic_load(send_blocked(posix))) wanted.events |= POLLOUT;
  if (poll(&wanted, 1, (int)timeout_ms) <= 0) return PORT_WOULD_BLOCK;
  if (wanted.revents & POLLOUT) atomic_store(send_blocked(posix), 0);
  if (wanted.revents == POLLOUT) return PORT_WOULD_BLOCK;
  return receive(posix, data, size, MSG_DONTWAIT);
}

static int socket_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_posix *posix = context;
  if (!posix->connected) return PORT_CLOSED;
  timeout_ms = least(timeout_ms, PORT_WAIT_MAX_MS);
  if (timeout_ms == 0) return receive(posix, data, size, MSG_DONTWAIT);
  if (kernel_waits(posix, timeout_ms)) return receive(posix, data, size, 0);
  return poll_receive(posix, data, size, timeout_ms);
}

static void socket_close(void *context)
{
  struct port_posix *posix = context;
  close_socket(posix);
  forget_addresses(posix);
  /*
   * skip stays: if the client gave up connecting, the next connect begins with the address that it
   * gave up on, so each address gets its turn even in a long list.
   */
}

static void init(struct port_posix *posix, const char *host, const char *service)
{
  memset(posix, 0, sizeof *posix);
  posix->transport.connect = socket_connect;
  posix->transport.send = socket_send;
  posix->transport.recv = socket_recv;
  posix->transport.close = socket_close;
  posix->transport.context = posix;
  posix->host = host;
  posix->service = service;
  posix->socket = -1;
}

void port_posix_tcp(struct port_posix *posix, const char *host, const char *service)
{
  init(posix, host, service);
  posix->transport.aim = socket_aim;
}

bool port_posix_seeds(struct port_posix *posix, const char *seeds)
{
  port_posix_tcp(posix, NULL, "");
  posix->seeds = seeds;
  for (const char *seed = seeds; seed != NULL; seed = strchr(seed, ',')) {
    struct place place;
    if (seed != seeds) seed++;
    if (*seed == ':' || !read_place(&place, seed)) return false;
  }
  return true;
}

bool port_posix_unix(struct port_posix *posix, const char *path)
{
  init(posix, path, NULL);
  return strlen(path) < sizeof((struct sockaddr_un *)0)->sun_path;
}

int port_posix_fd(const struct port_posix *posix)
{
  return posix->socket;
}
