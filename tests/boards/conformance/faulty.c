/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether port/conformance finds what it should: a port with one mistake planted at a time, each of
 * which has to break the rule that is named beside it. Without a mistake the port keeps all rules.
 *
 *     faulty [NAME]     the mistakes whose name contains NAME
 *
 * All run side by side, each with a peer of its own, because most of their time is spent waiting.
 */
#define _GNU_SOURCE 1 /* what -std=c11 hides, and POLLRDHUP */

#include "conformance.h"
#include "peer.h"
#include "support/process.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum fault {
  /* no mistakes */
  NONE,
  ABANDONED_STAYS,
  OVER_IPV6,
  ROOM_MISSED,
  LATE_ONCE,
  WAS_RESET,

  PEER_WRONG,
  RECV_GARBLES,
  CLOCK_STANDS,
  CLOCK_GOES_BACK,
  CLOCK_SLOW,
  CLOCK_FAST,
  CLOCK_STOPS_IN_WAITS,
  CONNECT_ZERO,
  CONNECT_BLOCKS,
  CONNECT_HIDES_REFUSAL,
  CONNECT_BELIEVES,
  CONNECT_ONCE,
  SEND_ZERO,
  SEND_MINUS_ONE,
  SEND_BLOCKS,
  SEND_LOSES,
  SEND_CLOSED_WHEN_FULL,
  SEND_SEVEN_BITS,
  SEND_WAITS_FOR_RECV,
  RECV_DEAF,
  RECV_FILLS,
  RECV_SPINS,
  RECV_OVERSTAYS,
  RECV_ZERO,
  RECV_MINUS_ONE,
  RECV_NEEDS_INPUT,
  RECV_SLEEPS_THROUGH_ROOM,
  CLOSED_EARLY,
  SEND_CLOSED_EARLY,
  SEND_CLOSED_BY_END,
  END_UNSEEN,
  RESET_UNSEEN,
  CLOSE_KEEPS_DATA,
  CLOSE_LEAKS,
  TASK_ZERO,
  TASKS_ALIKE,
  MUTEX_OPEN,
  EVENT_LOST,
  EVENT_DEAF,
  EVENT_SPINS,
  EVENT_OVERSTAYS,
  EVENT_KEEPS_MUTEX
};

static const struct planted {
  enum fault fault;
  const char *name;
  const char *rule; /* the one that is tried, and that a mistake breaks; NULL: all */
  const char
      *note; /* what is said about it, if that matters; after a reset, what the device had sent */
} planted[] = {
    {NONE, "nothing", NULL, NULL},
    {ABANDONED_STAYS, "no mistake: an attempt that is given up becomes a connection", NULL, NULL},
    {OVER_IPV6, "no mistake: over IPv6", NULL, NULL},
    {LATE_ONCE, "no mistake: send waits for a processor once", "send: does not block", NULL},
    {ROOM_MISSED, "no mistake: recv misses the room four times", "send: does not block", NULL},
    {WAS_RESET, "no mistake: a reset before, in an echo", NULL, "E00000000000000\n"},
    {WAS_RESET, "no mistake: a reset before, in a command", "connect: reaches", "E0000"},
    {WAS_RESET, "no mistake: a reset before, in a wait", "connect: reaches", "T00000009999999\n"},
    {WAS_RESET, "no mistake: a reset before, while bytes come", "connect: reaches",
     "D00010000000500\n"},
    {WAS_RESET, "no mistake: a reset before, while nothing is read", "connect: reaches",
     "L00000000001000\n"},
    {WAS_RESET, "no mistake: a reset before, while nobody is let in", "connect: reaches",
     "Q00000000001000\n"},
    {WAS_RESET, "no mistake: a reset before, while nobody is answered", "connect: reaches",
     "F00000000001000\n"},
    {PEER_WRONG, "another program at the other end", "connect: reaches", "is no time"},
    {RECV_GARBLES, "recv changes bits", "bytes arrive", "an echo is not what was sent"},
    {RECV_GARBLES, "recv changes bits, and the clock is not blamed", "clock: keeps time",
     "an echo is not what was sent"},
    {CLOCK_STANDS, "a clock that stands still", "clock: never goes back", NULL},
    {CLOCK_GOES_BACK, "a clock that goes back", "clock: never goes back", NULL},
    {CLOCK_SLOW, "a slow clock", "clock: keeps time", NULL},
    {CLOCK_FAST, "a fast clock", "clock: keeps time", NULL},
    {CLOCK_STOPS_IN_WAITS, "a clock that stops in waits", "clock: keeps time", NULL},
    {CONNECT_ZERO, "connect returns 0", "connect: reaches", NULL},
    {CONNECT_ONCE, "connect works once", "connect: reaches", NULL},
    {CONNECT_BLOCKS, "connect blocks", "connect: keeps to its time", NULL},
    {CONNECT_HIDES_REFUSAL, "connect hides a refusal", "connect: says that it is refused", NULL},
    {CONNECT_BELIEVES, "connect takes a refusal for a connection",
     "connect: says that it is refused", NULL},
    {SEND_ZERO, "send returns 0", "send: does not block", NULL},
    {SEND_MINUS_ONE, "send returns -1 when full", "send: does not block", NULL},
    {SEND_BLOCKS, "send blocks", "send: does not block", NULL},
    {SEND_LOSES, "send loses what does not fit", "send: does not block", NULL},
    {SEND_CLOSED_WHEN_FULL, "send takes a full buffer for the end", "send: does not block", NULL},
    {SEND_SEVEN_BITS, "send changes bytes", "bytes arrive", NULL},
    {SEND_WAITS_FOR_RECV, "send waits for recv", "send: goes beside recv()", NULL},
    {RECV_DEAF, "recv never has anything", "bytes arrive", NULL},
    {RECV_FILLS, "recv waits until its buffer is full", "recv: returns with the first byte", NULL},
    {RECV_SPINS, "recv does not wait", "recv: waits", NULL},
    {RECV_OVERSTAYS, "recv waits for too long", "recv: waits", NULL},
    {RECV_ZERO, "recv returns 0", "recv: waits", NULL},
    {RECV_MINUS_ONE, "recv returns -1 when nothing came", "recv: waits", NULL},
    {RECV_NEEDS_INPUT, "recv returns what only connect may", "recv: waits", NULL},
    {RECV_SLEEPS_THROUGH_ROOM, "recv does not tell of room", "send: does not block", NULL},
    {CLOSED_EARLY, "closed before the last byte", "recv: the last byte", NULL},
    {SEND_CLOSED_EARLY, "send says closed before the last byte", "recv: the last byte",
     "send() returned PORT_CLOSED before"},
    {SEND_CLOSED_BY_END, "send says closed as soon as the peer has closed", "recv: the last byte",
     "send() returned PORT_CLOSED before"},
    {END_UNSEEN, "the end is not told", "recv: the last byte", NULL},
    {RESET_UNSEEN, "a reset is not told", "recv: tells of a reset", NULL},
    {CLOSE_KEEPS_DATA, "close keeps what was received", "close: leaves nothing", NULL},
    {CLOSE_LEAKS, "close leaves the connection open", "close: ends the connection",
     "the peer still has the connection before"},
    {TASK_ZERO, "a task is 0", "task: has a name", NULL},
    {TASKS_ALIKE, "tasks are alike", "task: has a name", NULL},
    {MUTEX_OPEN, "a mutex that lets everybody in", "mutex: shuts out", NULL},
    {EVENT_LOST, "an event that is lost before the wait", "event: set before", NULL},
    {EVENT_DEAF, "an event that wakes nobody", "event: wakes", NULL},
    {EVENT_SPINS, "an event that does not wait", "event: waits", NULL},
    {EVENT_OVERSTAYS, "an event that waits for too long", "event: waits", NULL},
    {EVENT_KEEPS_MUTEX, "an event that keeps the mutex", "event: wakes", NULL},
};

enum { COUNT = sizeof planted / sizeof *planted, OVERSTAY_MS = 3000 };

static enum fault fault;

/* The clock */

static atomic_uint stood_ms; /* not counted */

static uint32_t system_ms(void)
{
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint32_t)((uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U);
}

uint32_t port_clock_ms(void)
{
  static atomic_uint reads;
  static uint32_t start;
  uint32_t now = system_ms();
  if (start == 0) start = now;
  uint32_t passed = now - start;
  switch (fault) {
  case CLOCK_STANDS:
    return start;
  case CLOCK_GOES_BACK:
    return atomic_fetch_add(&reads, 1) % 64 == 63 ? now - 5 : now;
  case CLOCK_SLOW:
    return now - passed / 5;
  case CLOCK_FAST:
    return now + passed / 5;
  default:
    return now - atomic_load(&stood_ms);
  }
}

/* The transport, on a socket that does not block */

static struct link {
  struct port_transport transport;
  in_port_t port;
  int socket;
  bool connected;
  atomic_bool full;
  pthread_mutex_t mutex;
  size_t kept;
  char keep[64];
} link_up = {.socket = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};

static bool may_retry(void)
{
  return errno == EAGAIN || errno == EINTR;
}

/* As a busy machine does, which lets a task run only when its time is over. */
static void miss_room(struct pollfd *wanted, int timeout_ms)
{
  static int missed;
  if (fault != ROOM_MISSED || missed == 4 || (wanted->revents & POLLOUT) == 0) return;
  missed++;
  wanted->events = POLLIN;
  (void)poll(wanted, 1, timeout_ms);
}

static void wait_for(short events, int timeout_ms)
{
  struct pollfd wanted = {.fd = link_up.socket, .events = events};
  uint32_t began = system_ms();
  (void)poll(&wanted, 1, timeout_ms);
  miss_room(&wanted, timeout_ms);
  if (wanted.revents & POLLOUT) atomic_store(&link_up.full, false);
  if (fault == CLOCK_STOPS_IN_WAITS) (void)atomic_fetch_add(&stood_ms, system_ms() - began);
}

/* An attempt stays behind QEMU's user network, which is not told of its end. */
static bool stays_open(void)
{
  return fault == CLOSE_LEAKS || (fault == ABANDONED_STAYS && !link_up.connected);
}

static void link_close(void *context)
{
  (void)context;
  if (link_up.socket >= 0 && !stays_open()) (void)close(link_up.socket);
  link_up.socket = -1;
  if (fault != CONNECT_ONCE) link_up.connected = false;
  if (fault != CLOSE_KEEPS_DATA) link_up.kept = 0;
  atomic_store(&link_up.full, false);
}

static int dial_peer(int socket)
{
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = link_up.port};
  struct sockaddr_in6 six = {
      .sin6_family = AF_INET6, .sin6_port = link_up.port, .sin6_addr = in6addr_loopback};
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return fault == OVER_IPV6 ? connect(socket, (struct sockaddr *)&six, sizeof six)
                            : connect(socket, (struct sockaddr *)&four, sizeof four);
}

static int begin(void)
{
  const int one = 1;
  link_up.socket = socket(fault == OVER_IPV6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
  if (fcntl(link_up.socket, F_SETFL, O_NONBLOCK) != 0) give_up("fcntl");
  (void)setsockopt(link_up.socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return dial_peer(link_up.socket) == 0 || errno == EINPROGRESS ? 0 : errno;
}

static int link_connect(void *context, uint32_t timeout_ms)
{
  int error = 0;
  socklen_t size = sizeof error;
  if (link_up.connected) return PORT_OK;
  if (link_up.socket < 0) error = begin();
  struct pollfd wanted = {.fd = link_up.socket, .events = POLLOUT};
  int wait = fault == CONNECT_BLOCKS ? -1 : (int)timeout_ms;
  if (error == 0 && poll(&wanted, 1, wait) <= 0) return PORT_WOULD_BLOCK;
  if (error == 0) (void)getsockopt(link_up.socket, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0 && fault == CONNECT_BELIEVES) return PORT_OK;
  if (error != 0) link_close(context);
  if (error != 0) return fault == CONNECT_HIDES_REFUSAL ? PORT_WOULD_BLOCK : PORT_UNREACHABLE;
  link_up.connected = true;
  return fault == CONNECT_ZERO ? 0 : PORT_OK;
}

static int when_full(size_t size)
{
  atomic_store(&link_up.full, true);
  switch (fault) {
  case SEND_ZERO:
    return 0;
  case SEND_MINUS_ONE:
    return -1;
  case SEND_LOSES:
    return (int)size;
  case SEND_CLOSED_WHEN_FULL:
    return PORT_CLOSED;
  default:
    return PORT_WOULD_BLOCK;
  }
}

/* The peer has closed. */
static bool has_ended(void)
{
  struct pollfd ended = {.fd = link_up.socket, .events = POLLRDHUP};
  return poll(&ended, 1, 0) == 1;
}

/* As on a busy machine: for longer than a call may take. */
static void wait_for_processor(void)
{
  static const struct timespec long_time = {.tv_sec = OVERSTAY_MS / 1000};
  static bool waited;
  if (fault == LATE_ONCE && !waited) (void)nanosleep(&long_time, NULL);
  waited = true;
}

/* After an error recv() says that it has ended: what came before can still be read. */
static int link_send(void *context, const void *data, size_t size)
{
  char changed[64];
  (void)context;
  wait_for_processor();
  if (fault == SEND_SEVEN_BITS) {
    if (size > sizeof changed) size = sizeof changed;
    for (size_t i = 0; i < size; i++)
      changed[i] = (char)(((const char *)data)[i] & 0x7f);
    data = changed;
  }
  if (fault == SEND_CLOSED_BY_END && has_ended()) return PORT_CLOSED;
  if (fault == SEND_WAITS_FOR_RECV) (void)pthread_mutex_lock(&link_up.mutex);
  ssize_t sent = send(link_up.socket, data, size, MSG_NOSIGNAL);
  while (fault == SEND_BLOCKS && sent < 0 && may_retry()) {
    wait_for(POLLOUT, -1);
    sent = send(link_up.socket, data, size, MSG_NOSIGNAL);
  }
  if (fault == SEND_WAITS_FOR_RECV) (void)pthread_mutex_unlock(&link_up.mutex);
  if (sent > 0) return (int)sent;
  if (sent < 0 && may_retry()) return when_full(size);
  return fault == SEND_CLOSED_EARLY ? PORT_CLOSED : PORT_WOULD_BLOCK;
}

/* Turns '0' into '1', and back. */
static void garble(char *data, ssize_t size)
{
  for (ssize_t i = 0; i < size; i++)
    data[i] = fault == PEER_WRONG ? '-' : data[i] ^ 1;
}

static int receive(void *data, size_t size)
{
  if (fault == CLOSED_EARLY && has_ended()) return PORT_CLOSED;
  ssize_t got = recv(link_up.socket, data, size, 0);
  if (fault == RECV_GARBLES || fault == PEER_WRONG) garble(data, got);
  if (got > 0) return (int)got;
  if (got == 0)
    return fault == END_UNSEEN || fault == RESET_UNSEEN ? PORT_WOULD_BLOCK : PORT_CLOSED;
  if (may_retry() && fault == RECV_NEEDS_INPUT) return PORT_NEEDS_INPUT;
  if (may_retry() && fault == RECV_MINUS_ONE) return -1;
  if (may_retry()) return fault == RECV_ZERO ? 0 : PORT_WOULD_BLOCK;
  return fault == RESET_UNSEEN ? PORT_WOULD_BLOCK : PORT_CLOSED;
}

/* Takes what there is into a buffer of its own, and hands it out from there. */
static int receive_kept(void *data, size_t size)
{
  if (link_up.kept == 0) {
    int got = receive(link_up.keep, sizeof link_up.keep);
    if (got < 0) return got;
    link_up.kept = (size_t)got;
  }
  if (size > link_up.kept) size = link_up.kept;
  memcpy(data, link_up.keep, size);
  link_up.kept -= size;
  memmove(link_up.keep, link_up.keep + size, link_up.kept);
  return (int)size;
}

static int fill(char *data, size_t size, uint32_t timeout_ms)
{
  uint32_t began = system_ms();
  size_t done = 0;
  int got = PORT_WOULD_BLOCK;
  while (done < size && system_ms() - began < timeout_ms) {
    wait_for(POLLIN, (int)(timeout_ms - (system_ms() - began)));
    got = receive(data + done, size - done);
    if (got > 0) done += (size_t)got;
    else if (got != PORT_WOULD_BLOCK) break;
  }
  return done > 0 ? (int)done : got;
}

static int link_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  short events = POLLIN;
  (void)context;
  if (atomic_load(&link_up.full) && fault != RECV_SLEEPS_THROUGH_ROOM) events |= POLLOUT;
  if (fault == RECV_SPINS) timeout_ms = 0;
  if (fault == RECV_OVERSTAYS) timeout_ms += OVERSTAY_MS;
  if (fault == RECV_FILLS) return fill(data, size, timeout_ms);
  if (fault == SEND_WAITS_FOR_RECV) (void)pthread_mutex_lock(&link_up.mutex);
  if (link_up.kept == 0) wait_for(events, (int)timeout_ms);
  if (fault == SEND_WAITS_FOR_RECV) (void)pthread_mutex_unlock(&link_up.mutex);
  if (fault == RECV_DEAF) return PORT_WOULD_BLOCK;
  return fault == CLOSE_KEEPS_DATA ? receive_kept(data, size) : receive(data, size);
}

/* Tasks */

uintptr_t port_task_self(void)
{
  if (fault == TASK_ZERO) return 0;
  return fault == TASKS_ALIKE ? 1 : (uintptr_t)pthread_self();
}

void port_mutex_init(struct port_mutex *mutex)
{
  (void)pthread_mutex_init(&mutex->mutex, NULL);
}

void port_mutex_lock(struct port_mutex *mutex)
{
  if (fault != MUTEX_OPEN) (void)pthread_mutex_lock(&mutex->mutex);
}

void port_mutex_unlock(struct port_mutex *mutex)
{
  if (fault != MUTEX_OPEN) (void)pthread_mutex_unlock(&mutex->mutex);
}

void port_mutex_destroy(struct port_mutex *mutex)
{
  (void)pthread_mutex_destroy(&mutex->mutex);
}

void port_event_init(struct port_event *event)
{
  pthread_condattr_t attributes;
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&event->condition, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  (void)pthread_mutex_init(&event->gate, NULL);
  event->set = false;
}

static void sleep_on(struct port_event *event, uint32_t timeout_ms)
{
  struct timespec until;
  (void)clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
  until.tv_sec += (time_t)(timeout_ms / 1000) + until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  (void)pthread_mutex_lock(&event->gate);
  if (fault == EVENT_LOST) event->set = false;
  int status = 0;
  while (!event->set && status == 0)
    status = pthread_cond_timedwait(&event->condition, &event->gate, &until);
  event->set = false;
  (void)pthread_mutex_unlock(&event->gate);
}

void port_event_wait(struct port_event *event, struct port_mutex *mutex, uint32_t timeout_ms)
{
  if (fault == EVENT_SPINS) return;
  if (fault == EVENT_OVERSTAYS) timeout_ms += OVERSTAY_MS;
  if (fault != EVENT_KEEPS_MUTEX) port_mutex_unlock(mutex);
  sleep_on(event, timeout_ms);
  if (fault != EVENT_KEEPS_MUTEX) port_mutex_lock(mutex);
}

void port_event_set(struct port_event *event)
{
  (void)pthread_mutex_lock(&event->gate);
  if (fault != EVENT_DEAF) {
    event->set = true;
    (void)pthread_cond_signal(&event->condition);
  }
  (void)pthread_mutex_unlock(&event->gate);
}

void port_event_destroy(struct port_event *event)
{
  (void)pthread_cond_destroy(&event->condition);
  (void)pthread_mutex_destroy(&event->gate);
}

/* The test */

/* What became of one run. */
struct outcome {
  in_port_t port;
  bool ended;
  int broken;
  char text[4000];
};

static struct outcome *outcome;

static void collect(const char *text)
{
  size_t used = strlen(outcome->text);
  size_t size = strlen(text);
  if (used + size < sizeof outcome->text) memcpy(outcome->text + used, text, size + 1);
}

/* A connection that nobody closes, as of a device that was reset after it had sent this. */
static void leave_connection(const char *sent)
{
  int left = socket(AF_INET, SOCK_STREAM, 0);
  if (left < 0 || dial_peer(left) != 0) give_up("connect");
  if (send(left, sent, strlen(sent), MSG_NOSIGNAL) != (ssize_t)strlen(sent)) give_up("send");
  const struct timespec soon = {.tv_nsec = 200000000}; /* the peer has begun with it */
  (void)nanosleep(&soon, NULL);
}

/* In a process of its own. */
static void run(int index, void *context)
{
  struct outcome *outcomes = context;
  outcome = &outcomes[index];
  fault = planted[index].fault;
  link_up.port = htons(outcome->port);
  if (fault == WAS_RESET) leave_connection(planted[index].note);
  link_up.transport =
      (struct port_transport){link_connect, link_send, link_recv, link_close, NULL, NULL, NULL};
  const struct port_conformance port = {&link_up.transport, collect, peer_start_task,
                                        planted[index].rule};
  outcome->broken = port_conformance_run(&port);
  outcome->ended = true;
}

/* The first note, without its mark and its end. */
static void first_note(const char *text, char note[100])
{
  const char *at = strstr(text, "# ");
  size_t size = at != NULL ? strcspn(at + 2, "\n") : 0;
  if (size > 99) size = 99;
  memcpy(note, at != NULL ? at + 2 : "", size);
  note[size] = 0;
}

static bool judge(const struct planted *mistake, const struct outcome *came)
{
  char note[100];
  bool harmless = mistake->fault <= WAS_RESET;
  bool right = came->ended && came->broken == (harmless ? 0 : 1);
  first_note(came->text, note);
  if (!harmless && mistake->note != NULL) right = right && strstr(note, mistake->note) != NULL;
  if (!right) printf("%s", came->text);
  printf("%s planted: %s", right ? "ok" : "not ok", mistake->name);
  printf(harmless ? "\n" : ": \"%s\"\n", note);
  return right;
}

static bool has_ipv6(void)
{
  struct sockaddr_in6 own = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
  int made = socket(AF_INET6, SOCK_STREAM, 0);
  bool bound = made >= 0 && bind(made, (struct sockaddr *)&own, sizeof own) == 0;
  if (made >= 0) (void)close(made);
  if (!bound) printf("# this machine has no IPv6\n");
  return bound;
}

int main(int count, char **arguments)
{
  struct outcome *outcomes = share(COUNT * sizeof *outcomes);
  pid_t pids[COUNT] = {0};
  int wanted = 0;
  int right = 0;
  (void)alarm(300);
  for (int i = 0; i < COUNT; i++) {
    if (count > 1 && strstr(planted[i].name, arguments[1]) == NULL) continue;
    if (planted[i].fault == OVER_IPV6 && !has_ipv6()) continue;
    wanted++;
    outcomes[i].port = (in_port_t)peer_start();
    pids[i] = spawn(run, i, outcomes);
  }
  for (int i = 0; i < COUNT; i++) {
    if (pids[i] == 0) continue;
    (void)waitpid(pids[i], NULL, 0);
    right += judge(&planted[i], &outcomes[i]);
  }
  printf("# %d of %d as it should be\n", right, wanted);
  return right == wanted && wanted > 0 ? 0 : 1;
}
