/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over BSD sockets.
 *
 * A request and its reply take two system calls. Once connected, the socket is in blocking mode:
 * send() does not block, because it passes MSG_DONTWAIT, and in recv() the kernel waits, for as
 * long as SO_RCVTIMEO says. That option is set again only if it differs much from the timeout. The
 * other waits use poll(): short ones, those until the peer accepts more, those while nothing comes for
 * longer than IDLE_MS, which can be woken by a pipe, and all on a system without SO_RCVTIMEO or
 * MSG_DONTWAIT.
 *
 * Nothing here may raise SIGPIPE, block for longer than its timeout, or allocate memory (only
 * resolve.c, which resolves host names, allocates). One task may be in send() while another is in
 * recv(); the only fields that both change are send_blocked and failure.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */
#undef _GNU_SOURCE        /* with it, strerror_r() is a different function */

#include "cancel.h"
#include "port_posix.h"
#include "process.h"
#include "resolve.h"

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
#include <time.h>
#include <unistd.h>

#ifdef MSG_DONTWAIT
#define STAYS_NONBLOCKING 0
#else
#define MSG_DONTWAIT      0
#define STAYS_NONBLOCKING 1
#endif

#ifndef SOCK_CLOEXEC
#define SOCK_CLOEXEC 0 /* fcntl() sets it instead, a moment later */
#endif

#ifndef MSG_NOSIGNAL
#if !defined SO_NOSIGPIPE && defined SIGPIPE
#error                                                                                             \
    "sending here may raise SIGPIPE: have the program ignore that signal, and define MSG_NOSIGNAL as 0"
#endif
#define MSG_NOSIGNAL 0
#endif

/* After this time without an answer from an address, the next one is tried. */
#define ATTEMPT_MS 1000U

/* The pause before connecting again to a Unix socket whose queue of connections is full. */
#define BUSY_PAUSE_MS 10U

/* SO_RCVTIMEO is set to powers of two, up to what PORT_WAIT_MAX_MS allows. */
#define LONGEST_LIMIT_MS 512U

/*
 * So long the kernel waits in recv() where a wait can be woken. Then poll() waits, also for the pipe:
 * replies come sooner, mostly, and need no such call.
 */
#define IDLE_MS 32U

/* Shorter waits use poll(), because kernels round SO_RCVTIMEO up to a tick. */
#define SHORTEST_LIMIT_MS 16U

#define KEEPALIVE_IDLE_S   30
#define KEEPALIVE_PERIOD_S 10
#define KEEPALIVE_PROBES   3

_Static_assert(LONGEST_LIMIT_MS <= PORT_WAIT_MAX_MS, "recv() would wait longer than asked");
_Static_assert(sizeof(atomic_uchar) == sizeof(unsigned char) && sizeof(atomic_int) == sizeof(int),
               "there is no room for the atomics");

/*
 * Values of send_blocked: the last send() would have blocked, poll() has found room since, and a stack
 * that lacks memory has then taken nothing all the same, as NuttX, or has said so. Room is not waited
 * for then: the client would offer the same again and again without a pause. CUT: send() has failed for
 * good, but recv() has yet to return what came before. OVER: recv() has said that it ended.
 */
enum { TAKEN, BLOCKED, FOUND_ROOM, STARVED, CUT, OVER };

/* How long to wait until a stack that lacks memory is offered the same again. */
#define LOOK_MS 10U

/* port_posix.h has to compile as C99 and C++, so it cannot say _Atomic. */
static atomic_uchar *send_blocked(struct port_posix *posix)
{
  return (atomic_uchar *)&posix->send_blocked;
}

/* A value of `failure` besides those of resolve.h: the server has closed the connection. */
#define ENDED INT_MAX

static void note(struct port_posix *posix, int failure)
{
  atomic_store((atomic_int *)&posix->failure, failure);
}

/* Notes errno. Returns PORT_UNREACHABLE. */
static int fail(struct port_posix *posix, int error)
{
  note(posix, error);
  return PORT_UNREACHABLE;
}

static uint32_t shorter(uint32_t a, uint32_t b)
{
  return a < b ? a : b;
}

static bool may_retry(int error)
{
  switch (error) {
  case EAGAIN:
#if EWOULDBLOCK != EAGAIN
  case EWOULDBLOCK:
#endif
  case EINTR:
    return true;
  default:
    return false;
  }
}

/* Sets an option. Failures are ignored, because the connection works without it, too. */
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

/* Keepalive notices a dead connection while the client waits and sends nothing. */
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

static atomic_int *wake_end(const struct port_posix *posix, int end)
{
  return (atomic_int *)&posix->wake[end];
}

static bool set_nonblocking(int socket, bool nonblocking)
{
  int flags = fcntl(socket, F_GETFL);
  if (flags < 0) return false;
  flags = nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  return fcntl(socket, F_SETFL, flags) == 0;
}

/*
 * Makes the pipe that ends waits, if there is none, and other tasks that could want that. Without one,
 * waits just take their time. The end to write to comes last: who sees it may use it.
 */
static void open_wake(struct port_posix *posix)
{
  int ends[2];
  if (PORT_ONE_TASK || atomic_load(wake_end(posix, 1)) >= 0 || pipe(ends) != 0) return;
  for (int i = 0; i < 2; i++) {
    (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    (void)set_nonblocking(ends[i], true);
    atomic_store(wake_end(posix, i), ends[i]);
  }
}

/* The fields are cleared before, as that of the socket. */
static void close_wake(struct port_posix *posix)
{
  for (int i = 1; i >= 0; i--) {
    int end = atomic_exchange(wake_end(posix, i), -1);
    if (end >= 0) (void)close(end);
  }
}

/* A wait has ended with this error. */
static void note_signal(int error)
{
#ifdef PORT_SIGNALS
  if (error == EINTR) port_posix_note_signal();
#else
  (void)error;
#endif
}

/*
 * Waits for events of the socket, or until the wait is to end. Returns what poll() does, 0 also for the
 * latter; *came: the events.
 */
static int poll_socket(const struct port_posix *posix, short events, short *came,
                       uint32_t timeout_ms)
{
  char bytes[16];
  struct pollfd wanted[2] = {{.fd = posix->socket, .events = events},
                             {.fd = atomic_load(wake_end(posix, 0)), .events = POLLIN}};
  int ready = poll(wanted, wanted[1].fd >= 0 ? 2 : 1, (int)timeout_ms);
  if (ready < 0) note_signal(errno);
  *came = wanted[0].revents;
  if (ready <= 0 || wanted[1].revents == 0) return ready;
  while (read(wanted[1].fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes)
    continue;
  return ready - 1;
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
  /* for systems whose send() ignores MSG_DONTWAIT: it then blocks for a millisecond at most */
  (void)set_time_option(opened, SO_SNDTIMEO, 1);
#ifdef __NuttX__
  /* close() then resets the connection: a stack with few of them has its memory back at once */
  const struct linger reset = {.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(opened, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
#endif
  if (family != AF_UNIX) {
    set_option(opened, IPPROTO_TCP, TCP_NODELAY, 1);
    keep_alive(opened);
  }
  return opened;
}

/*
 * Another thread may call fork() in the middle of this, and the child closes what it finds in the
 * struct. So the field is cleared before the socket is closed: then the child does not close it
 * again.
 */
static void close_socket(struct port_posix *posix)
{
  int open = posix->socket;
  posix->socket = -1;
  posix->connected = false;
  if (open >= 0) (void)close(open);
}

/* The field is cleared first here, too. */
static void forget_addresses(struct port_posix *posix)
{
  struct addrinfo *addresses = posix->addresses;
  posix->addresses = NULL;
  posix->address = NULL;
  posix->untried = 0;
  if (addresses != NULL) freeaddrinfo(addresses);
}

static struct addrinfo *address_after(const struct port_posix *posix)
{
  return posix->address->ai_next != NULL ? posix->address->ai_next : posix->addresses;
}

/* A host and a service, as getaddrinfo() needs them. */
struct place {
  char host[PORT_POSIX_HOST_SIZE];
  char service[32];
};

/*
 * Reads "host:port" or "[host]:port", up to a comma. If there is no host, place->host stays as it
 * is. Returns false if text does not have that form, or is too long.
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
  if (address != NULL || posix->target != NULL) posix->skip = 0; /* another host */
  posix->target = address;
  if (address != NULL) return true;
  if (posix->seeds == NULL) return false;
  const char *before = posix->seed != NULL ? posix->seed : posix->seeds;
  const char *comma = posix->seed != NULL ? strchr(posix->seed, ',') : NULL;
  posix->seed = comma != NULL ? comma + 1 : posix->seeds;
  if (posix->seed != before) posix->skip = 0;
  return strchr(posix->seed, ',') != NULL;
}

/*
 * Sets *host and *service to where connections go now. They point into place, if they come from a
 * list or a redirection, and otherwise to the program's strings.
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

void port_posix_host(const void *context, char *host, size_t room)
{
  const struct port_posix *posix = context;
  struct place place;
  const char *name;
  const char *service;
  find_place(posix, &place, &name, &service);
  size_t size = service != NULL ? strlen(name) : 0; /* a Unix path has no service */
  if (size >= room) size = 0;                       /* no name is that long */
  memcpy(host, name, size);
  host[size] = 0;
}

/* True if host is an address, which needs no resolver; finds it then. */
static bool read_address(struct port_posix *posix, const char *host, const char *service)
{
  struct addrinfo hints = {0};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  bool read = getaddrinfo(host, service, &hints, &posix->addresses) == 0;
  if (!read) posix->addresses = NULL;
  return read;
}

/* The field is cleared first here, too. */
static void end_lookup(struct port_posix *posix)
{
  struct port_posix_lookup *lookup = posix->lookup;
  posix->lookup = NULL;
  if (lookup != NULL) port_posix_give_up(lookup);
}

/*
 * Finds the addresses of the host; PORT_WOULD_BLOCK: not yet. If the client gives up, the lookup
 * goes on, and the next connect() waits for it. So a slow resolver succeeds in the end, and never
 * has two lookups of one host at a time.
 */
static int find_addresses(struct port_posix *posix, uint32_t timeout_ms)
{
  struct place place;
  const char *host;
  const char *service;
  forget_addresses(posix);
  find_place(posix, &place, &host, &service);
  if (posix->lookup != NULL && !port_posix_resolves(posix->lookup, host, service))
    end_lookup(posix);
  if (posix->lookup == NULL) {
    if (read_address(posix, host, service)) return PORT_OK;
    posix->lookup = port_posix_resolve(host, service);
    if (posix->lookup == NULL) return fail(posix, ENOMEM);
  }
  posix->resolving = !port_posix_resolved(posix->lookup, timeout_ms);
  if (posix->resolving) return PORT_WOULD_BLOCK;
  int failure = port_posix_take_answer(posix->lookup, &posix->addresses);
  posix->lookup = NULL;
  return failure == 0 ? PORT_OK : fail(posix, failure);
}

/* Finds the addresses of the host, and chooses the first one to try. */
static int resolve(struct port_posix *posix, uint32_t timeout_ms)
{
  int status = find_addresses(posix, timeout_ms);
  if (status != PORT_OK) return status;
  unsigned count = 0;
  for (const struct addrinfo *address = posix->addresses; address != NULL;
       address = address->ai_next)
    count++;
  if (count == 0) return fail(posix, RESOLVER(EAI_NONAME)); /* an answer without addresses */
  posix->untried = count - 1;
  posix->skip %= count;
  posix->address = posix->addresses;
  for (unsigned i = 0; i < posix->skip; i++)
    posix->address = address_after(posix);
  return PORT_OK;
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
  if (posix->socket < 0) return fail(posix, errno);
  if (connect(posix->socket, address, size) == 0) return PORT_OK;
  if (errno == EINPROGRESS || errno == EINTR) return PORT_OK; /* after EINTR it goes on, too */
  (void)fail(posix, errno);
  return family == AF_UNIX && errno == EAGAIN ? PORT_WOULD_BLOCK : PORT_UNREACHABLE;
}

static int connect_to_path(struct port_posix *posix)
{
  struct sockaddr_un address = {0};
  size_t size = strlen(posix->host);
  if (size >= sizeof address.sun_path) return fail(posix, ENAMETOOLONG);
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, posix->host, size);
  return connect_to(posix, AF_UNIX, (const struct sockaddr *)&address, sizeof address);
}

/*
 * Begins to connect to an address. PORT_OK: the socket is connecting, or connected.
 * PORT_WOULD_BLOCK: the system has to be asked again later.
 */
static int start_attempt(struct port_posix *posix)
{
  if (posix->service == NULL) return connect_to_path(posix);
  const struct addrinfo *address = posix->address;
  return connect_to(posix, address->ai_family, address->ai_addr, address->ai_addrlen);
}

/*
 * True if the socket is connected to itself. If the server is on this machine and does not run, the
 * system may choose the server's port for our end. The client would then receive what it sends, and
 * the server could not get its port back.
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
  if (getsockopt(posix->socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return fail(posix, error);
  if (is_own_peer(posix)) return fail(posix, ECONNREFUSED);
  if (!STAYS_NONBLOCKING && !set_nonblocking(posix->socket, false)) return fail(posix, errno);
  note(posix, 0);
  posix->connected = true;
  posix->heard = false;
  posix->receive_limit_ms = 0;
  atomic_store(send_blocked(posix), 0);
  return PORT_OK;
}

/*
 * Waits for the present attempt; if there are other addresses, no longer than its share of the
 * time.
 */
static int await_attempt(struct port_posix *posix, uint32_t timeout_ms)
{
  uint32_t share = timeout_ms;
  if (posix->untried > 0)
    share = ATTEMPT_MS - shorter(ATTEMPT_MS, port_clock_ms() - posix->attempt_began);
  uint32_t began = port_clock_ms();
  short came;
  int ready = poll_socket(posix, POLLOUT, &came, shorter(share, timeout_ms));
  if (ready > 0) return end_attempt(posix);
  if (ready < 0) return errno == EINTR ? PORT_WOULD_BLOCK : fail(posix, errno);
  bool over = port_clock_ms() - began >= share; /* or it was woken */
  return posix->untried > 0 && share <= timeout_ms && over ? fail(posix, ETIMEDOUT)
                                                           : PORT_WOULD_BLOCK;
}

static int attempt(struct port_posix *posix, uint32_t timeout_ms)
{
  int status = posix->socket < 0 ? start_attempt(posix) : PORT_OK;
  if (status == PORT_OK) return await_attempt(posix, timeout_ms);
  if (status == PORT_WOULD_BLOCK) {
    close_socket(posix);
    (void)poll(NULL, 0, (int)shorter(BUSY_PAUSE_MS, timeout_ms));
  }
  return status;
}

static int try_to_connect(struct port_posix *posix, uint32_t timeout_ms)
{
  if (posix->connected) return PORT_OK;
  timeout_ms = shorter(timeout_ms, PORT_WAIT_MAX_MS);
  uint32_t began = port_clock_ms();
  int status = PORT_OK;
  open_wake(posix);
  if (posix->socket < 0 && posix->service != NULL) status = resolve(posix, timeout_ms);
  if (status != PORT_OK) return status;
  do {
    status = attempt(posix, timeout_ms - shorter(timeout_ms, port_clock_ms() - began));
  } while (status == PORT_UNREACHABLE && next_address(posix));
  if (status != PORT_WOULD_BLOCK) forget_addresses(posix);
  if (status == PORT_UNREACHABLE) posix->skip = 0;
  return status;
}

/* Notes why the connection is broken, unless that is noted already. Returns PORT_CLOSED. */
static int broken(struct port_posix *posix, int error)
{
  int none = 0;
  (void)atomic_compare_exchange_strong((atomic_int *)&posix->failure, &none, error);
  return PORT_CLOSED;
}

static int send_now(struct port_posix *posix, const void *data, size_t size)
{
  unsigned char before = atomic_load(send_blocked(posix));
  if (!posix->connected || before == OVER) return PORT_CLOSED;
  ssize_t sent =
      send(posix->socket, data, size < INT_MAX ? size : INT_MAX, MSG_DONTWAIT | MSG_NOSIGNAL);
  int error = sent < 0 ? errno : 0;
  unsigned char how = TAKEN;
  if (may_retry(error)) how = before < FOUND_ROOM ? BLOCKED : STARVED;
  else if (error == ENOBUFS || error == ENOMEM) how = STARVED;
  else if (sent <= 0) how = CUT;
  if (how == CUT) (void)broken(posix, error);
  atomic_store(send_blocked(posix), how);
  return sent > 0 ? (int)sent : PORT_WOULD_BLOCK;
}

static int receive(struct port_posix *posix, void *data, size_t size, int flags)
{
  ssize_t received = recv(posix->socket, data, size < INT_MAX ? size : INT_MAX, flags);
  if (received > 0) {
    posix->heard = true;
    posix->idle = false;
    return (int)received;
  }
  int error = received < 0 ? errno : ENDED;
  note_signal(error);
  bool cut = atomic_load(send_blocked(posix)) == CUT; /* then no more will come */
  if (may_retry(error) && !cut) return PORT_WOULD_BLOCK;
  atomic_store(send_blocked(posix), OVER);
  return broken(posix, error);
}

/*
 * Makes the kernel end recv() after at most timeout_ms. The limit that is set already stays, if it
 * is not longer than that, nor so much shorter that it would cut the wait into many pieces.
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

/* True if the kernel can wait inside recv(); otherwise poll() has to. */
static bool kernel_waits(struct port_posix *posix, uint32_t timeout_ms)
{
  unsigned char how = atomic_load(send_blocked(posix));
  bool woken = atomic_load(wake_end(posix, 0)) >= 0;
  if (STAYS_NONBLOCKING || timeout_ms < SHORTEST_LIMIT_MS || how == BLOCKED || how == STARVED)
    return false;
  if (woken && posix->idle) return false;
  posix->idle = true;
  return limit_receive(posix, woken ? shorter(timeout_ms, IDLE_MS) : timeout_ms);
}

/*
 * Sleeps when poll() has failed, as it may for want of memory: the client would call again without a
 * pause. Not by poll(), which would fail again.
 */
static void rest(uint32_t timeout_ms)
{
  struct timespec pause = {0};
  pause.tv_nsec = (long)shorter(timeout_ms, LOOK_MS) * 1000000L;
  (void)nanosleep(&pause, NULL);
}

static int poll_receive(struct port_posix *posix, void *data, size_t size, uint32_t timeout_ms)
{
  short came;
  unsigned char how = atomic_load(send_blocked(posix));
  if (how == STARVED) timeout_ms = shorter(timeout_ms, LOOK_MS);
  int ready = poll_socket(posix, how == BLOCKED ? POLLIN | POLLOUT : POLLIN, &came, timeout_ms);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return PORT_WOULD_BLOCK;
  if (ready < 0) rest(timeout_ms);
  if (came & POLLOUT) atomic_store(send_blocked(posix), FOUND_ROOM);
  if (came == POLLOUT) return PORT_WOULD_BLOCK;
  return receive(posix, data, size, MSG_DONTWAIT);
}

static int receive_within(struct port_posix *posix, void *data, size_t size, uint32_t timeout_ms)
{
  if (!posix->connected) return PORT_CLOSED;
  timeout_ms = shorter(timeout_ms, PORT_WAIT_MAX_MS);
  if (atomic_load(send_blocked(posix)) == CUT) timeout_ms = 0;
  if (timeout_ms == 0) return receive(posix, data, size, MSG_DONTWAIT);
  if (kernel_waits(posix, timeout_ms)) return receive(posix, data, size, 0);
  return poll_receive(posix, data, size, timeout_ms);
}

static void close_all(struct port_posix *posix)
{
  if (posix->socket >= 0 && !posix->connected) note(posix, ETIMEDOUT);
  /*
   * Every address has its turn, even in a long list. If the client gave up while connecting to an
   * address, the next connect() begins with it; if an address accepted and then said nothing, with
   * the one after it. If something was received, the next connect() begins with the first address
   * again.
   */
  if (posix->connected) posix->skip = posix->heard ? 0 : posix->skip + 1;
  close_socket(posix);
  close_wake(posix);
  forget_addresses(posix);
  /* the client gives up this attempt; if it ends, it calls close() once more */
  if (posix->resolving) note(posix, RESOLVER(EAI_AGAIN));
  else end_lookup(posix);
  posix->resolving = false;
}

/* The functions of the transport. They delay pthread_cancel(). */

static int socket_connect(void *context, uint32_t timeout_ms)
{
  int cancel = hold_off_cancel();
  int status = try_to_connect(context, timeout_ms);
  allow_cancel(cancel);
  return status;
}

static int socket_send(void *context, const void *data, size_t size)
{
  int cancel = hold_off_cancel();
  int status = send_now(context, data, size);
  allow_cancel(cancel);
  return status;
}

static int socket_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  int cancel = hold_off_cancel();
  int status = receive_within(context, data, size, timeout_ms);
  allow_cancel(cancel);
  return status;
}

static void socket_close(void *context)
{
  int cancel = hold_off_cancel();
  close_all(context);
  allow_cancel(cancel);
}

static void socket_wake(void *context)
{
  int end = atomic_load(wake_end(context, 1));
  int cancel = hold_off_cancel();
  ssize_t written = end >= 0 ? write(end, "", 1) : 0;
  (void)written; /* if the pipe is full, who waits is woken anyway */
  allow_cancel(cancel);
}

static void init(struct port_posix *posix, const char *host, const char *service)
{
  memset(posix, 0, sizeof *posix);
  posix->transport.connect = socket_connect;
  posix->transport.send = socket_send;
  posix->transport.recv = socket_recv;
  posix->transport.close = socket_close;
  posix->transport.wake = socket_wake;
  posix->transport.context = posix;
  posix->host = host;
  posix->service = service;
  posix->socket = -1;
  posix->wake[0] = -1;
  posix->wake[1] = -1;
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

void port_posix_error(const struct port_posix *posix, char *text, size_t room)
{
  int failure = atomic_load((const atomic_int *)&posix->failure);
  char words[256] = "";
  const char *from = words;
  if (failure < 0) from = gai_strerror(RESOLVER(failure));
  else if (failure == ENDED) from = "the server closed the connection";
  else if (failure > 0) (void)strerror_r(failure, words, sizeof words);
  size_t size = strlen(from);
  if (size >= room) size = room - 1;
  memcpy(text, from, size);
  text[size] = 0;
}

int port_posix_fd(const struct port_posix *posix)
{
  return posix->socket;
}
