/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FreeRTOS and FreeRTOS-Plus-TCP on POSIX threads and the host's sockets; see FreeRTOS.h and
 * stand_in.h. What a host's sockets do otherwise is done as that stack does it: a socket that is
 * closed leaves its connection open; a shutdown sends its FIN when all before it is acknowledged,
 * unless the socket is closed first; send() takes what its stream has room for, and waits if it is
 * not told otherwise; recv() says 0 for nothing; a peer's FIN ends the connection in both directions.
 */
#undef _FORTIFY_SOURCE

#include "stand_in.h"

#include "FreeRTOS.h"
#include "FreeRTOS_IP.h"
#include "FreeRTOS_DNS.h"
#include "FreeRTOS_Sockets.h"
#include "semphr.h"
#include "task.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STREAM_SIZE 4096
#define TICK_MS     (1000 / configTICK_RATE_HZ)

#ifndef POLLRDHUP
#define POLLRDHUP 0x2000 /* shown only by _GNU_SOURCE */
#endif

struct plus_tcp_stand_in plus_tcp_stand_in;

/* ---- FreeRTOS ---- */

TaskHandle_t xTaskGetCurrentTaskHandle(void)
{
  static _Thread_local char self;
  return &self;
}

static SemaphoreHandle_t make(StaticSemaphore_t *memory, int is_mutex)
{
  pthread_condattr_t attributes;
  memset(memory, 0, sizeof *memory);
  memory->is_mutex = is_mutex;
  memory->count = is_mutex ? 1 : 0;
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&memory->condition, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  (void)pthread_mutex_init(&memory->mutex, NULL);
  return memory;
}

SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *memory)
{
  return make(memory, 1);
}

SemaphoreHandle_t xSemaphoreCreateBinaryStatic(StaticSemaphore_t *memory)
{
  return make(memory, 0);
}

static struct timespec after(TickType_t ticks)
{
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_sec += (time_t)(ticks / configTICK_RATE_HZ);
  time.tv_nsec += (long)(ticks % configTICK_RATE_HZ) * TICK_MS * 1000000L;
  if (time.tv_nsec < 1000000000L) return time;
  time.tv_nsec -= 1000000000L;
  time.tv_sec++;
  return time;
}

BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks)
{
  struct timespec until = after(ticks == portMAX_DELAY ? 0 : ticks);
  int status = 0;
  (void)pthread_mutex_lock(&semaphore->mutex);
  while (semaphore->count == 0 && status == 0) {
    if (ticks == portMAX_DELAY)
      status = pthread_cond_wait(&semaphore->condition, &semaphore->mutex);
    else status = pthread_cond_timedwait(&semaphore->condition, &semaphore->mutex, &until);
  }
  BaseType_t taken = semaphore->count > 0 ? pdTRUE : pdFALSE;
  semaphore->count = 0;
  semaphore->holder = pthread_self();
  (void)pthread_mutex_unlock(&semaphore->mutex);
  return taken;
}

BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore)
{
  (void)pthread_mutex_lock(&semaphore->mutex);
  if (semaphore->is_mutex && !pthread_equal(semaphore->holder, pthread_self())) abort();
  BaseType_t given = semaphore->count == 0 ? pdTRUE : pdFALSE;
  semaphore->count = 1;
  (void)pthread_cond_signal(&semaphore->condition);
  (void)pthread_mutex_unlock(&semaphore->mutex);
  return given;
}

void vSemaphoreDelete(SemaphoreHandle_t semaphore)
{
  (void)pthread_cond_destroy(&semaphore->condition);
  (void)pthread_mutex_destroy(&semaphore->mutex);
}

/* ---- FreeRTOS-Plus-TCP ---- */

enum state { UNUSED_YET, CONNECTING, ESTABLISHED, ENDED };

struct xSOCKET {
  struct xSOCKET *next;
  int fd;
  TickType_t receive_ticks, send_ticks;
  _Atomic(enum state) state;
  /* shutdown() was called; its FIN is sent */
  bool shuts, shut;
  /* closed, and the peer not told: only the descriptor is left */
  bool orphan;
};

struct xSOCKET plus_tcp_no_socket;

/* All sockets. The stack's own task looks at them, too. */
static struct xSOCKET *sockets;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

int plus_tcp_stand_in_fd(const struct xSOCKET *socket)
{
  return socket != NULL ? socket->fd : -1;
}

static int look_at(int fd, int events, int ms)
{
  struct pollfd wanted = {.fd = fd, .events = (short)events};
  return poll(&wanted, 1, ms) > 0 ? wanted.revents : 0;
}

static size_t waiting(const struct xSOCKET *socket, unsigned long request)
{
  int count = 0;
  return ioctl(socket->fd, request, &count) == 0 && count > 0 ? (size_t)count : 0;
}

/* How far the connection has come, as the host has it. */
static enum state update(struct xSOCKET *socket)
{
  int error = 0;
  socklen_t size = sizeof error;
  if (socket->state == CONNECTING && plus_tcp_stand_in.gives_up) socket->state = ENDED;
  if (socket->state == CONNECTING && !plus_tcp_stand_in.silent && !plus_tcp_stand_in.slow &&
      look_at(socket->fd, POLLOUT, 0) != 0) {
    (void)getsockopt(socket->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    socket->state = error == 0 ? ESTABLISHED : ENDED;
  }
  if (socket->state == ESTABLISHED &&
      look_at(socket->fd, POLLRDHUP, 0) & (POLLRDHUP | POLLHUP | POLLERR))
    socket->state = ENDED;
  return socket->state;
}

static bool acknowledged(const struct xSOCKET *socket)
{
  return !atomic_load(&plus_tcp_stand_in.unacknowledged) && waiting(socket, SIOCOUTQ) == 0;
}

/* A segment for a socket that is closed is answered with a reset. */
static bool reset(struct xSOCKET *socket)
{
  const struct linger now = {.l_onoff = 1, .l_linger = 0};
  if (!socket->orphan || look_at(socket->fd, POLLIN, 0) == 0) return false;
  (void)setsockopt(socket->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  return true;
}

static void *stack_task(void *unused)
{
  const struct timespec pause = {.tv_nsec = 1000000};
  for (;;) {
    (void)pthread_mutex_lock(&guard);
    for (struct xSOCKET **link = &sockets; *link != NULL;) {
      struct xSOCKET *socket = *link;
      if (socket->shuts && !socket->shut && !socket->orphan && acknowledged(socket))
        socket->shut = shutdown(socket->fd, SHUT_WR) == 0;
      if (!reset(socket)) {
        link = &socket->next;
        continue;
      }
      *link = socket->next;
      (void)close(socket->fd);
      free(socket);
    }
    (void)pthread_mutex_unlock(&guard);
    (void)nanosleep(&pause, NULL);
  }
  return unused;
}

static void start(void)
{
  pthread_t thread;
  if (pthread_create(&thread, NULL, stack_task, NULL) != 0) abort();
  (void)pthread_detach(thread);
}

Socket_t FreeRTOS_socket(BaseType_t domain, BaseType_t type, BaseType_t protocol)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, start);
  if (plus_tcp_stand_in.no_memory) return FREERTOS_INVALID_SOCKET;
  if (domain != FREERTOS_AF_INET || type != FREERTOS_SOCK_STREAM ||
      protocol != FREERTOS_IPPROTO_TCP)
    return FREERTOS_INVALID_SOCKET;
  struct xSOCKET *made = calloc(1, sizeof *made);
  if (made == NULL) return FREERTOS_INVALID_SOCKET;
  const int on = 1;
  made->fd = socket(AF_INET, SOCK_STREAM, 0);
  made->receive_ticks = made->send_ticks = portMAX_DELAY;
  if (fcntl(made->fd, F_SETFL, O_NONBLOCK) != 0) abort();
  (void)fcntl(made->fd, F_SETFD, FD_CLOEXEC);
  (void)setsockopt(made->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)pthread_mutex_lock(&guard);
  made->next = sockets;
  sockets = made;
  (void)pthread_mutex_unlock(&guard);
  atomic_fetch_add(&plus_tcp_stand_in.open, 1);
  return made;
}

BaseType_t FreeRTOS_setsockopt(Socket_t socket, int32_t level, int32_t option, const void *value,
                               size_t size)
{
  (void)level;
  if (size != sizeof(TickType_t)) return -pdFREERTOS_ERRNO_EINVAL;
  if (option == FREERTOS_SO_SNDTIMEO) {
    memcpy(&socket->send_ticks, value, size);
  } else if (option == FREERTOS_SO_RCVTIMEO) {
    memcpy(&socket->receive_ticks, value, size);
    plus_tcp_stand_in.receive_ticks = socket->receive_ticks;
  } else {
    return -pdFREERTOS_ERRNO_EINVAL;
  }
  return 0;
}

static int64_t now_ms(void)
{
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t until_ms(TickType_t ticks)
{
  return ticks == portMAX_DELAY ? INT64_MAX : now_ms() + (int64_t)ticks * TICK_MS;
}

/* In pieces: what a test changes meanwhile has to be seen. */
static int piece(int64_t until)
{
  int64_t left = until - now_ms();
  return left < 0 ? 0 : left < TICK_MS ? (int)left : TICK_MS;
}

static struct sockaddr_in host_address(const struct freertos_sockaddr *address)
{
  struct sockaddr_in host = {.sin_family = AF_INET, .sin_port = address->sin_port};
#if ipFR_TCP_VERSION_MAJOR >= 4
  host.sin_addr.s_addr = address->sin_address.ulIP_IPv4;
#else
  host.sin_addr.s_addr = address->sin_addr;
#endif
  return host;
}

/* Waits only if it begins to connect; else it says how it stands. */
BaseType_t FreeRTOS_connect(Socket_t socket, const struct freertos_sockaddr *address, uint32_t size)
{
  const struct sockaddr_in host = host_address(address);
  int64_t until = until_ms(socket->receive_ticks);
  plus_tcp_stand_in.connects++;
  if (size != sizeof *address || address->sin_len != sizeof *address ||
      address->sin_family != FREERTOS_AF_INET || socket->state != UNUSED_YET)
    return -pdFREERTOS_ERRNO_EINVAL;
  socket->state = CONNECTING;
  if (!plus_tcp_stand_in.silent)
    (void)connect(socket->fd, (const struct sockaddr *)&host, sizeof host);
  if (socket->receive_ticks == 0) return -pdFREERTOS_ERRNO_EWOULDBLOCK;
  while (update(socket) == CONNECTING && now_ms() < until)
    (void)look_at(plus_tcp_stand_in.silent ? -1 : socket->fd, POLLOUT, piece(until));
  if (socket->state == ESTABLISHED) return 0;
  return socket->state == CONNECTING ? -pdFREERTOS_ERRNO_ETIMEDOUT : -pdFREERTOS_ERRNO_ENOTCONN;
}

BaseType_t FreeRTOS_issocketconnected(ConstSocket_t socket)
{
  return update((Socket_t)socket) == ESTABLISHED ? pdTRUE : pdFALSE;
}

BaseType_t FreeRTOS_rx_size(ConstSocket_t socket)
{
  return (BaseType_t)waiting(socket, FIONREAD);
}

/* Takes what the stream has room for, without waiting. */
static size_t add(struct xSOCKET *socket, const void *data, size_t size)
{
  size_t stream = plus_tcp_stand_in.stream_size != 0 ? plus_tcp_stand_in.stream_size : STREAM_SIZE;
  size_t used = waiting(socket, SIOCOUTQ);
  size_t room = used < stream ? stream - used : 0;
  ssize_t sent = room > 0 ? send(socket->fd, data, size < room ? size : room, MSG_NOSIGNAL) : 0;
  return sent > 0 ? (size_t)sent : 0;
}

BaseType_t FreeRTOS_send(Socket_t socket, const void *data, size_t size, BaseType_t flags)
{
  const char *rest = data;
  size_t left = size;
  int64_t until = until_ms(flags & FREERTOS_MSG_DONTWAIT ? 0 : socket->send_ticks);
  if (socket->state == UNUSED_YET || update(socket) == ENDED) return -pdFREERTOS_ERRNO_ENOTCONN;
  if (socket->shuts) return 0;
  for (;;) {
    size_t some = add(socket, rest, left);
    rest += some;
    left -= some;
    if (left == 0 || now_ms() >= until) break;
    if (update(socket) == ENDED) break;
    (void)look_at(-1, 0, piece(until));
  }
  if (left < size) return (BaseType_t)(size - left);
  return update(socket) == ENDED ? -pdFREERTOS_ERRNO_ENOTCONN : -pdFREERTOS_ERRNO_ENOSPC;
}

/* A connection that comes up wakes nobody here, as it does not there. */
static void wait_for_bytes(const struct xSOCKET *socket, int64_t until)
{
  if (socket->state == ESTABLISHED) (void)look_at(socket->fd, POLLIN | POLLRDHUP, piece(until));
  else (void)look_at(-1, 0, piece(until));
}

BaseType_t FreeRTOS_recv(Socket_t socket, void *data, size_t size, BaseType_t flags)
{
  int64_t until = until_ms(flags & FREERTOS_MSG_DONTWAIT ? 0 : socket->receive_ticks);
  BaseType_t says = plus_tcp_stand_in.recv_says;
  plus_tcp_stand_in.recv_says = 0;
  if (socket->state == UNUSED_YET) return -pdFREERTOS_ERRNO_EINVAL;
  while (says == 0 && waiting(socket, FIONREAD) == 0) {
    /* what came before the end has come by now */
    if (update(socket) == ENDED && waiting(socket, FIONREAD) == 0)
      says = -pdFREERTOS_ERRNO_ENOTCONN;
    else if (waiting(socket, FIONREAD) == 0 && now_ms() >= until) return 0;
    else wait_for_bytes(socket, until);
  }
  if (says != 0) return says;
  return (BaseType_t)recv(socket->fd, data, size, flags & FREERTOS_MSG_PEEK ? MSG_PEEK : 0);
}

BaseType_t FreeRTOS_shutdown(Socket_t socket, BaseType_t how)
{
  (void)how;
  if (update(socket) != ESTABLISHED) return -pdFREERTOS_ERRNO_ENOTCONN;
  (void)pthread_mutex_lock(&guard);
  socket->shuts = true;
  (void)pthread_mutex_unlock(&guard);
  return 0;
}

/*
 * Frees the socket. If its connection is up, and no FIN was sent, the peer is not told. The stack's
 * task sees a shutdown before the close that follows it.
 */
BaseType_t FreeRTOS_closesocket(Socket_t socket)
{
  struct xSOCKET **link = &sockets;
  enum state state = update(socket);
  (void)pthread_mutex_lock(&guard);
  if (socket->shuts && !socket->shut && acknowledged(socket))
    socket->shut = shutdown(socket->fd, SHUT_WR) == 0;
  socket->orphan = state == ESTABLISHED && !socket->shut;
  if (socket->orphan) atomic_fetch_add(&plus_tcp_stand_in.orphans, 1);
  while (*link != socket)
    link = &(*link)->next;
  if (!socket->orphan) {
    *link = socket->next;
    (void)close(socket->fd);
    free(socket);
  }
  (void)pthread_mutex_unlock(&guard);
  atomic_fetch_sub(&plus_tcp_stand_in.open, 1);
  return 1;
}

uint32_t FreeRTOS_gethostbyname(const char *name)
{
  struct in_addr address;
  plus_tcp_stand_in.lookups++;
  if (strcmp(name, "redis.example") == 0) return htonl(INADDR_LOOPBACK);
  return inet_pton(AF_INET, name, &address) == 1 ? address.s_addr : 0;
}
