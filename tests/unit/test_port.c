/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The POSIX port, through port.h, with real sockets on loopback and in a temporary folder. The
 * tests of a "transport:" ask nothing but what port.h does; tests/server/sockets runs them on
 * port/sockets, too.
 *
 * The system calls that matter are wrapped: the wrappers count, note where connect() goes, resolve
 * the host names below, and on demand play a system that is short of something. Everything else
 * goes to the real ones. The default action of SIGPIPE is left in place, so that a SIGPIPE ends the
 * suite.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */
#undef _FORTIFY_SOURCE    /* its inline functions get in the way of the wrappers */

#include "check.h"
#include "fairlock.h"
#include "port_posix.h"
#include "support/wrapped.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef RTLD_NEXT
#define RTLD_NEXT                                                                                  \
  ((void *)-1L) /* shown only by _GNU_SOURCE, which makes connect() incompatible with ISO C */
#endif

#define LONG_MS 20000U /* nothing here takes this long on a machine that is merely busy */

/* ---- the wrapped calls ---- */

#define HOST_SEVERAL "several.test" /* resolves to `several` */
#define HOST_UNKNOWN "unknown.test"
#define HOST_BROKEN  "broken.test" /* the system cannot even ask */
#define HOST_SLOW    "slow.test"   /* as HOST_SEVERAL, but only when `answering` */

static struct sockaddr_in several_address[4];
static struct addrinfo several[4];
static atomic_int several_given_back;
static atomic_bool answering;
static atomic_int asked, answered; /* lookups of HOST_SLOW that have begun, and ended */
static bool without_threads;
static atomic_int running; /* threads that have begun, or soon do, and not ended */

static atomic_int calls;           /* send, recv, poll, setsockopt           */
static atomic_int limits_set;      /* setsockopt of SO_RCVTIMEO               */
static bool without_receive_limit; /* SO_RCVTIMEO is not supported            */
static bool without_memory;        /* nothing can be sent, though there is room */
static int polled_ms, polled_for;  /* how long poll() was to wait last, and for what */
static in_port_t own_port;         /* the port to bind new sockets to; 0: none */
static in_port_t tried[16];
static unsigned tried_count;

static void pause_ms(long ms)
{
  struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
  (void)nanosleep(&time, NULL);
}

ssize_t send(int socket, const void *data, size_t size, int flags)
{
  static _Thread_local ssize_t (*real)(int, const void *, size_t, int);
  if (real == NULL) find_real("send", &real, sizeof real);
  atomic_fetch_add(&calls, 1);
  if (!without_memory) return real(socket, data, size, flags);
  errno = EAGAIN;
  return -1;
}

ssize_t recv(int socket, void *data, size_t size, int flags)
{
  static _Thread_local ssize_t (*real)(int, void *, size_t, int);
  if (real == NULL) find_real("recv", &real, sizeof real);
  atomic_fetch_add(&calls, 1);
  return real(socket, data, size, flags);
}

int poll(struct pollfd *files, nfds_t count, int timeout_ms)
{
  static _Thread_local int (*real)(struct pollfd *, nfds_t, int);
  if (real == NULL) find_real("poll", &real, sizeof real);
  atomic_fetch_add(&calls, 1);
  if (count > 0 && without_memory) {
    polled_ms = timeout_ms;
    polled_for = files->events;
  }
  return real(files, count, timeout_ms);
}

int setsockopt(int socket, int level, int name, const void *value, socklen_t size)
{
  static _Thread_local int (*real)(int, int, int, const void *, socklen_t);
  if (real == NULL) find_real("setsockopt", &real, sizeof real);
  atomic_fetch_add(&calls, 1);
  if (level == SOL_SOCKET && name == SO_RCVTIMEO) {
    if (without_receive_limit) {
      errno = ENOPROTOOPT;
      return -1;
    }
    atomic_fetch_add(&limits_set, 1);
  }
  return real(socket, level, name, value, size);
}

int connect(int socket, const struct sockaddr *address, socklen_t size)
{
  static _Thread_local int (*real)(int, const struct sockaddr *, socklen_t);
  if (real == NULL) find_real("connect", &real, sizeof real);
  if (address->sa_family == AF_INET && tried_count < sizeof tried / sizeof *tried) {
    struct sockaddr_in inet;
    memcpy(&inet, address, sizeof inet);
    tried[tried_count++] = inet.sin_port;
  }
  return real(socket, address, size);
}

int socket(int family, int type, int protocol)
{
  static _Thread_local int (*real)(int, int, int);
  if (real == NULL) find_real("socket", &real, sizeof real);
  int opened = real(family, type, protocol);
  if (opened >= 0 && own_port != 0) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = own_port};
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(opened, (const struct sockaddr *)&own, sizeof own) != 0) abort();
  }
  return opened;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
  static _Thread_local int (*real)(const char *, const char *, const struct addrinfo *,
                                   struct addrinfo **);
  if (real == NULL) find_real("getaddrinfo", &real, sizeof real);
  bool name = strstr(host, ".test") != NULL;
  if (name && hints->ai_flags & AI_NUMERICHOST) return EAI_NONAME;
  if (strcmp(host, HOST_UNKNOWN) == 0) return EAI_NONAME;
  if (strcmp(host, HOST_BROKEN) == 0) {
    errno = EMFILE;
    return EAI_SYSTEM;
  }
  if (strcmp(host, HOST_SLOW) == 0) {
    atomic_fetch_add(&asked, 1);
    while (!atomic_load(&answering))
      pause_ms(1);
    atomic_fetch_add(&answered, 1);
  } else if (strcmp(host, HOST_SEVERAL) != 0) {
    return real(host, service, hints, result);
  }
  *result = several;
  return 0;
}

struct work {
  void *(*run)(void *);
  void *context;
};

static void *run_counted(void *context)
{
  struct work work = *(struct work *)context;
  free(context);
  void *result = work.run(work.context);
  atomic_fetch_sub(&running, 1);
  return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *context)
{
  static _Thread_local int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (real == NULL) find_real("pthread_create", &real, sizeof real);
  struct work *work = without_threads ? NULL : malloc(sizeof *work);
  if (work == NULL) return EAGAIN;
  *work = (struct work){run, context};
  atomic_fetch_add(&running, 1);
  int error = real(thread, attributes, run_counted, work);
  if (error == 0) return 0;
  atomic_fetch_sub(&running, 1);
  free(work);
  return error;
}

void freeaddrinfo(struct addrinfo *list)
{
  static _Thread_local void (*real)(struct addrinfo *);
  if (real == NULL) find_real("freeaddrinfo", &real, sizeof real);
  if (list == several) atomic_fetch_add(&several_given_back, 1);
  else real(list);
}

/* Makes HOST_SEVERAL resolve to these ports of 127.0.0.1, in this order. */
static void resolve_to(const in_port_t *ports, size_t count)
{
  memset(several, 0, sizeof several);
  for (size_t i = 0; i < count; i++) {
    several_address[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = ports[i]};
    several_address[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    several[i].ai_family = AF_INET;
    several[i].ai_socktype = SOCK_STREAM;
    several[i].ai_addr = (struct sockaddr *)&several_address[i];
    several[i].ai_addrlen = sizeof several_address[i];
    several[i].ai_next = i + 1 < count ? &several[i + 1] : NULL;
  }
  atomic_store(&several_given_back, 0);
  tried_count = 0;
}

/* ---- servers and connections ---- */

/* The transport of the test that runs. */
static struct port_posix posix;

static uint32_t since(uint32_t began)
{
  return port_clock_ms() - began;
}

static in_port_t port_of(int server)
{
  struct sockaddr_storage address = {0};
  socklen_t size = sizeof address;
  if (getsockname(server, (struct sockaddr *)&address, &size) != 0) abort();
  /* the port is at the same place in IPv4 and IPv6 addresses */
  struct sockaddr_in inet;
  memcpy(&inet, &address, sizeof inet);
  return inet.sin_port;
}

/* A socket bound to a free port of loopback. Returns -1 if the system lacks the family. */
static int bind_loopback(int family)
{
  struct sockaddr_in inet = {.sin_family = AF_INET};
  struct sockaddr_in6 inet6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int bound = socket(family, SOCK_STREAM, 0);
  if (bound < 0) return -1;
  int failed = family == AF_INET ? bind(bound, (const struct sockaddr *)&inet, sizeof inet)
                                 : bind(bound, (const struct sockaddr *)&inet6, sizeof inet6);
  if (failed == 0) return bound;
  (void)close(bound);
  return -1;
}

static int listen_on(int family, int backlog)
{
  int server = bind_loopback(family);
  if (server >= 0 && listen(server, backlog) != 0) abort();
  return server;
}

/* The port as a text; a few of the last ones stay. */
static char *service_of(int server)
{
  static char texts[8][8];
  static unsigned next;
  char *text = texts[next++ % 8];
  (void)snprintf(text, 8, "%u", (unsigned)ntohs(port_of(server)));
  return text;
}

/* Listens on a free port, to which posix goes by this name of the host. */
static int serve(const char *host)
{
  int server = listen_on(AF_INET, 4);
  port_posix_tcp(&posix, host, service_of(server));
  return server;
}

static int connect_once(uint32_t ms)
{
  return posix.transport.connect(posix.transport.context, ms);
}

static int connect_for(uint32_t ms)
{
  uint32_t began = port_clock_ms();
  int status;
  do {
    status = connect_once(100);
  } while (status == PORT_WOULD_BLOCK && since(began) < ms);
  return status;
}

static int send_to(const void *data, size_t size)
{
  return posix.transport.send(posix.transport.context, data, size);
}

static int receive_from(void *data, size_t size, uint32_t timeout_ms)
{
  return posix.transport.recv(posix.transport.context, data, size, timeout_ms);
}

/* Receives until there is something other than PORT_WOULD_BLOCK. */
static int receive_any(void *data, size_t size)
{
  uint32_t began = port_clock_ms();
  int got;
  do {
    got = receive_from(data, size, PORT_WAIT_MAX_MS);
  } while (got == PORT_WOULD_BLOCK && since(began) < LONG_MS);
  return got;
}

static void close_transport(void)
{
  posix.transport.close(posix.transport.context);
}

/* The server that the transport is connected to, and that one's end of the connection. */
static struct {
  int server;
  int peer;
} wire;

static bool link_up(void)
{
  wire.peer = -1;
  wire.server = listen_on(AF_INET, 4);
  port_posix_tcp(&posix, "127.0.0.1", service_of(wire.server));
  if (CHECK_EQUAL(connect_for(LONG_MS), PORT_OK)) wire.peer = accept(wire.server, NULL, NULL);
  return CHECK(wire.peer >= 0);
}

static void link_down(void)
{
  close_transport();
  if (wire.peer >= 0) (void)close(wire.peer);
  (void)close(wire.server);
}

/* Has a connected transport and its peer exchange a few bytes. */
static void check_exchange(int peer)
{
  char data[8] = {0};
  CHECK_EQUAL(send_to("ping", 4), 4);
  ssize_t size = recv(peer, data, sizeof data, 0);
  CHECK_BYTES(data, (size_t)size, "ping", 4);
  CHECK_EQUAL(send(peer, "+ok", 3, 0), 3);
  CHECK_EQUAL(receive_any(data, sizeof data), 3);
  CHECK_BYTES(data, 3, "+ok", 3);
}

/* Connects posix to the server, exchanges, and closes all. */
static void check_service(int server)
{
  if (CHECK_EQUAL(connect_for(LONG_MS), PORT_OK)) {
    int peer = accept(server, NULL, NULL);
    check_exchange(peer);
    (void)close(peer);
  }
  close_transport();
}

/* A listening socket whose queue is full, so that it lets further connections wait for ever. */
struct silent {
  int server;
  int fillers[8];
  unsigned count;
};

static void silent_down(struct silent *silent)
{
  for (unsigned i = 0; i < silent->count; i++)
    (void)close(silent->fillers[i]);
  (void)close(silent->server);
}

/* False: the test is skipped. */
static bool silent_up(struct silent *silent)
{
  silent->count = 0;
  silent->server = listen_on(AF_INET, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = port_of(silent->server)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  while (silent->count < sizeof silent->fillers / sizeof *silent->fillers) {
    int filler = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    silent->fillers[silent->count++] = filler;
    (void)connect(filler, (const struct sockaddr *)&address, sizeof address);
    struct pollfd connected = {.fd = filler, .events = POLLOUT};
    if (poll(&connected, 1, 200) == 0) return true;
  }
  check_skip("a full queue does not hold connections up here");
  silent_down(silent);
  return false;
}

static int open_files(void)
{
  int count = 0;
  for (int file = 0; file < 256; file++) {
    if (fcntl(file, F_GETFD) >= 0) count++;
  }
  return count;
}

/* ---- connecting ---- */

static void test_tcp_ipv4(void)
{
  int server = serve("127.0.0.1");
  check_service(server);
  (void)close(server);
}

/* What an event loop watches. */
static void test_fd(void)
{
  int server = serve("127.0.0.1");
  CHECK_EQUAL(port_posix_fd(&posix), -1);
  CHECK_EQUAL(connect_for(LONG_MS), PORT_OK);
  struct pollfd watched = {.fd = port_posix_fd(&posix), .events = POLLIN | POLLOUT};
  CHECK_EQUAL(poll(&watched, 1, 0), 1);
  CHECK_EQUAL(watched.revents, POLLOUT);
  close_transport();
  CHECK_EQUAL(port_posix_fd(&posix), -1);
  (void)close(server);
}

static void test_tcp_ipv6(void)
{
  int server = listen_on(AF_INET6, 4);
  if (server < 0) {
    check_skip("no IPv6 here");
    return;
  }
  port_posix_tcp(&posix, "::1", service_of(server));
  check_service(server);
  (void)close(server);
}

static void test_tcp_host_name(void)
{
  int server = serve("localhost");
  check_service(server);
  (void)close(server);
}

static void test_tcp_refused_then_accepted(void)
{
  int server = bind_loopback(AF_INET); /* nobody else gets the port, and nobody listens yet */
  port_posix_tcp(&posix, "127.0.0.1", service_of(server));
  int before = open_files();
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK_EQUAL(open_files(), before + 2); /* the pipe that ends waits, until close() */
  posix.transport.close(&posix);
  CHECK_EQUAL(open_files(), before);
  CHECK_EQUAL(listen(server, 4), 0);
  check_service(server);
  CHECK_EQUAL(open_files(), before);
  (void)close(server);
}

static void test_tcp_bad_names(void)
{
  port_posix_tcp(&posix, HOST_UNKNOWN, "6379");
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  port_posix_tcp(&posix, "127.0.0.1", "no-such-service");
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
}

/* ---- seeds, and going elsewhere ---- */

/* "HOST:PORT" of a server; more: further seeds. The last four stay. */
static char *address_of(int server, const char *host, const char *more)
{
  static char texts[4][64];
  static unsigned next;
  char *text = texts[next++ % 4];
  (void)snprintf(text, sizeof texts[0], "%s:%u%s", host, (unsigned)ntohs(port_of(server)), more);
  return text;
}

static bool aim(const char *address)
{
  return posix.transport.aim(posix.transport.context, address);
}

static void test_seeds_that_are_none(void)
{
  static char seed[400];
  static const char *const bad[] = {
      "",          "host",         "host:",
      ":6379",     "::1:6379", /* brackets are missing */
      "host:1,",   ",host:1",      "host:1,,host:2",
      "host:1,:2", "host:1,other", "host:12345678901234567890123456789012"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    if (!CHECK(!port_posix_seeds(&posix, bad[i]))) check_write(bad[i]);
  }
  CHECK(port_posix_seeds(&posix, "host:1"));
  CHECK(port_posix_seeds(&posix, "host:1,[::1]:2,[fe80::1]:redis"));
  CHECK(port_posix_seeds(&posix, "host:1234567890123456789012345678901"));
  memset(seed, 'h', sizeof seed);
  memcpy(seed + 255, ":1", 3);
  CHECK(port_posix_seeds(&posix, seed));
  memset(seed, 'h', sizeof seed);
  memcpy(seed + 256, ":1", 3);
  CHECK(!port_posix_seeds(&posix, seed));
}

/* The first seed is used without aim(), the others by aim(NULL), round and round. */
static void test_seeds_in_turn(void)
{
  int server = listen_on(AF_INET, 4);
  int other = listen_on(AF_INET, 4);
  char both[64] = ",";
  strcpy(both + 1, address_of(other, "localhost", ""));
  CHECK(port_posix_seeds(&posix, address_of(server, "127.0.0.1", both)));
  check_service(server);
  for (int i = 0; i < 2; i++) {
    CHECK(aim(NULL)); /* the first again, when it was not asked for before */
    check_service(server);
    CHECK(!aim(NULL)); /* none follows */
    check_service(other);
  }
  (void)close(other);
  (void)close(server);
}

static void test_one_seed(void)
{
  int server = listen_on(AF_INET, 4);
  CHECK(port_posix_seeds(&posix, address_of(server, "127.0.0.1", "")));
  CHECK(!aim(NULL));
  check_service(server);
  CHECK(!aim(NULL));
  check_service(server);
  (void)close(server);
}

static void test_aim_at_an_address(void)
{
  int server = serve("127.0.0.1");
  int other = listen_on(AF_INET, 4);
  CHECK(aim(address_of(other, "localhost", "")));
  check_service(other);
  check_service(other); /* until it is told otherwise */
  CHECK(!aim(NULL));    /* back; there is no other */
  check_service(server);
  CHECK(aim(address_of(other, "", ""))); /* ":port" */
  check_service(other);
  CHECK(!aim("nowhere"));
  CHECK(!aim("nowhere:"));
  CHECK(!aim(""));
  check_service(other); /* which has changed nothing */
  (void)close(other);
  (void)close(server);
}

/* The name that whoever answers there should have. */
static bool goes_to(const char *host)
{
  char text[PORT_POSIX_HOST_SIZE];
  memset(text, '#', sizeof text);
  port_posix_host(posix.transport.context, text, PORT_POSIX_HOST_SIZE);
  return strcmp(text, host) == 0;
}

static void test_host(void)
{
  CHECK(port_posix_seeds(&posix, "one:1,[::1]:2"));
  CHECK(goes_to("one"));
  CHECK(aim(NULL));
  CHECK(goes_to("one"));
  CHECK(!aim(NULL));
  CHECK(goes_to("::1"));
  CHECK(aim("other:3"));
  CHECK(goes_to("other"));
  CHECK(aim(":4"));
  CHECK(goes_to("::1"));
  CHECK(aim(NULL));
  CHECK(goes_to("one"));
  port_posix_tcp(&posix, "192.0.2.7", "6379");
  CHECK(goes_to("192.0.2.7"));
  CHECK(port_posix_unix(&posix, "/run/redis.sock"));
  CHECK(goes_to(""));
}

/* ":port" is of the seed in use. */
static void test_aim_at_a_port_of_a_seed(void)
{
  int server = listen_on(AF_INET, 4);
  int other = listen_on(AF_INET, 4);
  CHECK(port_posix_seeds(&posix, address_of(server, "127.0.0.1", "," HOST_UNKNOWN ":1")));
  CHECK(aim(NULL));
  CHECK(aim(address_of(other, "", "")));
  check_service(other);
  CHECK(!aim(NULL));
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  (void)close(other);
  (void)close(server);
}

static void test_aim_ipv6(void)
{
  int server = listen_on(AF_INET6, 4);
  if (server < 0) {
    check_skip("no IPv6 here");
    return;
  }
  CHECK(port_posix_seeds(&posix, address_of(server, "[::1]", "")));
  check_service(server);
  port_posix_tcp(&posix, HOST_UNKNOWN, "1");
  CHECK(aim(address_of(server, "[::1]", "")));
  check_service(server);
  CHECK(aim(address_of(server, "::1", "")));
  check_service(server);
  (void)close(server);
}

/* A Unix socket cannot be redirected. */
static void test_aim_of_unix(void)
{
  CHECK(port_posix_unix(&posix, "/nowhere"));
  CHECK(posix.transport.aim == NULL);
}

static void test_several_first_refuses(void)
{
  int refusing = bind_loopback(AF_INET);
  int server = listen_on(AF_INET, 4);
  resolve_to((in_port_t[]){port_of(refusing), port_of(server)}, 2);
  port_posix_tcp(&posix, HOST_SEVERAL, "0");
  check_service(server);
  CHECK_EQUAL(tried_count, 2);
  CHECK_EQUAL(atomic_load(&several_given_back), 1);
  tried_count = 0;
  check_service(server);
  CHECK_EQUAL(tried_count, 2); /* the order is the resolver's each time */
  CHECK_EQUAL(tried[0], port_of(refusing));
  (void)close(server);
  (void)close(refusing);
}

static void test_several_all_refuse(void)
{
  int refusing = bind_loopback(AF_INET);
  in_port_t port = port_of(refusing);
  resolve_to((in_port_t[]){port, port, port}, 3);
  port_posix_tcp(&posix, HOST_SEVERAL, "0");
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK_EQUAL(tried_count, 3);
  CHECK_EQUAL(atomic_load(&several_given_back), 1);
  (void)close(refusing);
}

static void test_silent_server(void)
{
  struct silent silent;
  if (!silent_up(&silent)) return;
  port_posix_tcp(&posix, "127.0.0.1", service_of(silent.server));
  int before = open_files();
  CHECK_EQUAL(connect_once(0), PORT_WOULD_BLOCK);
  CHECK(port_posix_fd(&posix) >= 0);
  uint32_t began = port_clock_ms();
  CHECK_EQUAL(connect_once(200), PORT_WOULD_BLOCK);
  CHECK(since(began) >= 150);
  CHECK(since(began) < LONG_MS);
  CHECK_EQUAL(connect_for(1500), PORT_WOULD_BLOCK); /* the only address is never given up */
  close_transport();
  CHECK_EQUAL(open_files(), before);
  silent_down(&silent);
}

static void test_several_first_is_silent(void)
{
  struct silent silent;
  if (!silent_up(&silent)) return;
  int server = listen_on(AF_INET, 4);
  resolve_to((in_port_t[]){port_of(silent.server), port_of(server)}, 2);
  port_posix_tcp(&posix, HOST_SEVERAL, "0");
  check_service(server);
  CHECK_EQUAL(atomic_load(&several_given_back), 1);
  (void)close(server);
  silent_down(&silent);
}

/* Connects, and closes again without a word from the server. Returns where it went first. */
static in_port_t visit(void)
{
  tried_count = 0;
  CHECK_EQUAL(connect_for(LONG_MS), PORT_OK);
  close_transport();
  return tried[0];
}

/* An address that accepts and says nothing is not tried again before the others. */
static void test_several_first_is_mute(void)
{
  char seed[] = HOST_SEVERAL ":0";
  int mute = listen_on(AF_INET, 8);
  int server = listen_on(AF_INET, 8);
  int refusing = bind_loopback(AF_INET);
  resolve_to((in_port_t[]){port_of(mute), port_of(server), port_of(refusing)}, 3);
  port_posix_tcp(&posix, HOST_SEVERAL, "0");
  CHECK_EQUAL(visit(), port_of(mute));
  tried_count = 0;
  CHECK_EQUAL(connect_for(LONG_MS), PORT_OK);
  if (CHECK_EQUAL(tried[0], port_of(server))) {
    int peer = accept(server, NULL, NULL);
    check_exchange(peer);
    (void)close(peer);
  }
  close_transport();
  CHECK_EQUAL(visit(), port_of(mute)); /* the order is the resolver's again */
  CHECK_EQUAL(visit(), port_of(server));
  CHECK_EQUAL(visit(), port_of(refusing)); /* from there to the first */
  CHECK_EQUAL(visit(), port_of(server));
  CHECK(!aim(NULL)); /* which goes nowhere else */
  CHECK_EQUAL(visit(), port_of(refusing));
  CHECK(aim(HOST_SEVERAL ":0"));
  CHECK_EQUAL(visit(), port_of(mute));
  CHECK(!aim(NULL));
  CHECK_EQUAL(visit(), port_of(mute));
  CHECK(port_posix_seeds(&posix, seed));
  CHECK_EQUAL(visit(), port_of(mute));
  CHECK(!aim(NULL));
  CHECK_EQUAL(visit(), port_of(server));
  CHECK(!aim(NULL));
  CHECK_EQUAL(visit(), port_of(refusing));
  CHECK(port_posix_seeds(&posix, HOST_SEVERAL ":0," HOST_SEVERAL ":1"));
  CHECK_EQUAL(visit(), port_of(mute));
  CHECK(aim(NULL));
  CHECK(!aim(NULL));
  CHECK_EQUAL(visit(), port_of(mute)); /* of another seed */
  (void)close(refusing);
  (void)close(server);
  (void)close(mute);
}

static void test_several_given_up(void)
{
  struct silent silent;
  if (!silent_up(&silent)) return;
  int refusing = bind_loopback(AF_INET);
  resolve_to((in_port_t[]){port_of(refusing), port_of(silent.server)}, 2);
  port_posix_tcp(&posix, HOST_SEVERAL, "0");
  CHECK_EQUAL(connect_for(300), PORT_WOULD_BLOCK);
  CHECK_EQUAL(tried_count, 2);
  close_transport();
  CHECK_EQUAL(atomic_load(&several_given_back), 1);
  tried_count = 0;
  CHECK_EQUAL(connect_for(300), PORT_WOULD_BLOCK);
  CHECK_EQUAL(tried_count, 1);
  CHECK_EQUAL(tried[0], port_of(silent.server)); /* its turn was cut off */
  close_transport();
  CHECK_EQUAL(atomic_load(&several_given_back), 2);
  (void)close(refusing);
  silent_down(&silent);
}

/* ---- names that take long to resolve ---- */

static void hold_answers(void)
{
  atomic_store(&answering, false);
  atomic_store(&asked, 0);
  atomic_store(&answered, 0);
  atomic_store(&several_given_back, 0);
}

/* A server whose name is not resolved before the resolver may answer. */
static int listen_slowly(void)
{
  int server = listen_on(AF_INET, 4);
  hold_answers();
  resolve_to((in_port_t[]){port_of(server)}, 1);
  return server;
}

static void begin_slowly(void)
{
  port_posix_tcp(&posix, HOST_SLOW, "0");
  CHECK_EQUAL(connect_once(10), PORT_WOULD_BLOCK);
}

/* So many lookups have begun. Their threads begin when the system lets them. */
static void check_asked(int times)
{
  uint32_t began = port_clock_ms();
  while (atomic_load(&asked) < times && since(began) < LONG_MS)
    pause_ms(1);
  CHECK_EQUAL(atomic_load(&asked), times);
}

/* Lets the resolver answer, and waits until every lookup has given its memory back. */
static void let_answers_go(void)
{
  uint32_t began = port_clock_ms();
  atomic_store(&answering, true);
  while (atomic_load(&several_given_back) < atomic_load(&asked) && since(began) < LONG_MS)
    pause_ms(1);
  CHECK_EQUAL(atomic_load(&answered), atomic_load(&asked));
  CHECK_EQUAL(atomic_load(&several_given_back), atomic_load(&asked));
  pause_ms(20); /* for the threads to end */
}

/* Lets it answer, and waits until its thread has kept the answer for whoever asks next. */
static void let_thread_answer(void)
{
  uint32_t began = port_clock_ms();
  atomic_store(&answering, true);
  while (atomic_load(&running) > 0 && since(began) < LONG_MS)
    pause_ms(1);
  CHECK_EQUAL(atomic_load(&running), 0);
}

/* A resolver that does not answer blocks nobody, and is waited for in the next attempt, too. */
static void test_slow_name(void)
{
  int server = listen_slowly();
  port_posix_tcp(&posix, HOST_SLOW, "0");
  uint32_t began = port_clock_ms();
  for (int i = 0; i < 100; i++)
    CHECK_EQUAL(connect_once(0), PORT_WOULD_BLOCK);
  CHECK(since(began) < LONG_MS);
  CHECK_EQUAL(port_posix_fd(&posix), -1);
  began = port_clock_ms();
  CHECK_EQUAL(connect_once(200), PORT_WOULD_BLOCK);
  CHECK(since(began) >= 199);
  CHECK(since(began) < LONG_MS);
  for (int i = 0; i < 3; i++) {
    close_transport();
    CHECK_EQUAL(connect_once(10), PORT_WOULD_BLOCK);
  }
  check_asked(1);
  atomic_store(&answering, true);
  check_service(server);
  check_asked(1);
  check_service(server);
  check_asked(2); /* for each connection */
  let_answers_go();
  (void)close(server);
}

/* The transport is ended while the resolver is asked. */
static void test_slow_name_given_up(void)
{
  hold_answers();
  resolve_to((in_port_t[]){htons(1)}, 1);
  for (int closes = 1; closes <= 3; closes++) {
    port_posix_tcp(&posix, HOST_SLOW, "0");
    CHECK_EQUAL(connect_once(10), PORT_WOULD_BLOCK);
    for (int i = 0; i < closes; i++)
      close_transport();
    /* once more: what was begun is kept for the next attempt */
    if (closes == 1) close_transport();
    memset(&posix, 0x55, sizeof posix);
  }
  check_asked(3);
  let_answers_go();
}

/* The answer came while nobody waited: it is used soon, and given back otherwise. */
static void test_slow_name_late_answer(void)
{
  int server = listen_slowly();
  begin_slowly();
  close_transport();
  atomic_store(&answering, true);
  check_service(server);
  check_asked(1);
  hold_answers();
  CHECK_EQUAL(connect_once(10), PORT_WOULD_BLOCK);
  close_transport();
  let_thread_answer();
  pause_ms(5100);
  check_service(server);
  check_asked(2); /* the old one is not used */
  let_answers_go();
  (void)close(server);
}

/* A client that is sent elsewhere does not wait for the name. */
static void test_slow_name_and_elsewhere(void)
{
  int server = listen_slowly();
  begin_slowly();
  close_transport();
  CHECK(aim(address_of(server, "127.0.0.1", "")));
  check_service(server);
  CHECK(!aim(NULL));
  CHECK_EQUAL(connect_once(10), PORT_WOULD_BLOCK);
  check_asked(2);
  CHECK(aim(HOST_SLOW ":1"));
  CHECK_EQUAL(connect_once(10), PORT_WOULD_BLOCK);
  check_asked(3);
  close_transport();
  close_transport();
  let_answers_go();
  (void)close(server);
}

/* A client does not wait for the resolver, and leaves nothing behind. */
static void test_slow_name_of_a_client(void)
{
  static uint8_t received[256];
  static uint8_t sent[256];
  static const struct fairlock_config config = {.receive_buffer = received,
                                                .receive_size = sizeof received,
                                                .send_buffer = sent,
                                                .send_size = sizeof sent,
                                                .connect_ms = 100};
  static struct fairlock_client client;
  struct fairlock door;
  hold_answers();
  resolve_to((in_port_t[]){htons(1)}, 1);
  port_posix_tcp(&posix, HOST_SLOW, "0");
  CHECK_EQUAL(fairlock_client_init(&client, &config, &posix.transport), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_connect(&client), FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_init(&door, &client, "door"), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_try_acquire(&door, 1000), FAIRLOCK_UNREACHABLE);
  CHECK_EQUAL(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, 1000), FAIRLOCK_PENDING);
  uint32_t began = port_clock_ms();
  while (!(fairlock_wants(&client) & FAIRLOCK_CONNECT) && since(began) < LONG_MS)
    (void)fairlock_poll(&client, 0);
  CHECK(fairlock_poll(&client, 0) <= 10); /* it is watched by time */
  CHECK(since(began) < LONG_MS);
  check_asked(1);
  fairlock_client_deinit(&client);
  memset(&posix, 0x55, sizeof posix);
  let_answers_go();
}

/* Where no thread can be made, it blocks, and works. */
static void test_name_without_threads(void)
{
  int server = listen_on(AF_INET, 4);
  resolve_to((in_port_t[]){port_of(server)}, 1);
  port_posix_tcp(&posix, HOST_SEVERAL, "0");
  without_threads = true;
  check_service(server);
  without_threads = false;
  CHECK_EQUAL(atomic_load(&several_given_back), 1);
  (void)close(server);
}

static void test_connected_to_itself(void)
{
  int bound = bind_loopback(AF_INET);
  in_port_t port = port_of(bound);
  port_posix_tcp(&posix, "127.0.0.1", service_of(bound));
  (void)close(bound);
  own_port = port;
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  own_port = 0;
  close_transport();
}

static void test_options(void)
{
  if (!link_up()) return;
  int value = 0;
  socklen_t size = sizeof value;
  CHECK(fcntl(port_posix_fd(&posix), F_GETFD) & FD_CLOEXEC);
  CHECK_EQUAL(getsockopt(port_posix_fd(&posix), IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
  CHECK(value != 0);
  CHECK_EQUAL(getsockopt(port_posix_fd(&posix), SOL_SOCKET, SO_KEEPALIVE, &value, &size), 0);
  CHECK(value != 0);
  /* is still connected */
  CHECK_EQUAL(posix.transport.connect(posix.transport.context, 0), PORT_OK);
  check_exchange(wire.peer);
  link_down();
}

static void test_closed_transport(void)
{
  char data[4];
  if (!link_up()) return;
  close_transport();
  close_transport();
  CHECK_EQUAL(send_to("x", 1), PORT_CLOSED);
  CHECK_EQUAL(receive_from(data, sizeof data, 0), PORT_CLOSED);
  CHECK_EQUAL(receive_from(data, sizeof data, 1000), PORT_CLOSED);
  check_service(wire.server);
  link_down();
}

/* ---- Unix sockets ---- */

struct local {
  char folder[64];
  char path[80];
  int server;
};

static void local_up(struct local *local, int backlog)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  (void)snprintf(local->folder, sizeof local->folder, "/tmp/test_port_XXXXXX");
  if (mkdtemp(local->folder) == NULL) abort();
  (void)snprintf(local->path, sizeof local->path, "%s/socket", local->folder);
  memcpy(address.sun_path, local->path, strlen(local->path) + 1);
  local->server = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(local->server, (const struct sockaddr *)&address, sizeof address) != 0) abort();
  if (backlog >= 0 && listen(local->server, backlog) != 0) abort();
}

static void local_down(struct local *local)
{
  (void)close(local->server);
  (void)unlink(local->path);
  (void)rmdir(local->folder);
}

static void test_unix(void)
{
  struct local local = {0};
  local_up(&local, 4);
  CHECK(port_posix_unix(&posix, local.path));
  check_service(local.server);
  check_service(local.server);
  local_down(&local);
}

static void test_unix_unreachable(void)
{
  struct local local = {0};
  char path[sizeof((struct sockaddr_un *)0)->sun_path + 1];
  local_up(&local, -1);
  CHECK(port_posix_unix(&posix, local.path));
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE); /* nobody listens */
  (void)unlink(local.path);
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE); /* no such file */
  memset(path, 'x', sizeof path);
  path[sizeof path - 1] = 0;
  CHECK(!port_posix_unix(&posix, path)); /* one too long */
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  path[sizeof path - 2] = 0;
  CHECK(port_posix_unix(&posix, path));
  local_down(&local);
}

/* Fills the server's queue. Returns whether the system then says EAGAIN; others refuse. */
static bool fill_queue(const struct local *local, int *fillers, unsigned count)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, local->path, strlen(local->path) + 1);
  for (unsigned i = 0; i < count; i++) {
    fillers[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (connect(fillers[i], (const struct sockaddr *)&address, sizeof address) != 0)
      return errno == EAGAIN;
  }
  return false;
}

static void empty_queue(int server)
{
  int peer;
  (void)fcntl(server, F_SETFL, O_NONBLOCK);
  while ((peer = accept(server, NULL, NULL)) >= 0)
    (void)close(peer);
  (void)fcntl(server, F_SETFL, 0);
}

static void test_unix_busy(void)
{
  struct local local = {0};
  int fillers[8];
  local_up(&local, 0);
  memset(fillers, -1, sizeof fillers);
  if (fill_queue(&local, fillers, 8)) {
    (void)port_posix_unix(&posix, local.path);
    int before = open_files();
    CHECK_EQUAL(connect_once(0), PORT_WOULD_BLOCK);
    CHECK_EQUAL(connect_for(300), PORT_WOULD_BLOCK);
    CHECK_EQUAL(open_files(), before + 2); /* the pipe that ends waits, until close() */
    empty_queue(local.server);
    check_service(local.server);
  } else {
    check_skip("a full queue does not hold connections up here");
  }
  for (unsigned i = 0; i < 8; i++) {
    if (fillers[i] >= 0) (void)close(fillers[i]);
  }
  local_down(&local);
}

/* ---- why it failed ---- */

/* The port says this, and says it again. */
static bool says(const char *words)
{
  char text[PORT_POSIX_ERROR_SIZE];
  bool same = true;
  for (int i = 0; i < 2; i++) {
    memset(text, '#', sizeof text);
    port_posix_error(&posix, text, PORT_POSIX_ERROR_SIZE);
    if (memchr(text, 0, sizeof text) == NULL || strcmp(text, words) != 0) same = false;
  }
  if (!same) check_write(text);
  return same;
}

static void test_why_a_name_fails(void)
{
  port_posix_tcp(&posix, HOST_UNKNOWN, "6379");
  CHECK(says(""));
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK(says(gai_strerror(EAI_NONAME)));
  close_transport();
  CHECK(says(gai_strerror(EAI_NONAME)));
  port_posix_tcp(&posix, HOST_BROKEN, "6379");
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK(says(strerror(EMFILE)));
  port_posix_tcp(&posix, "127.0.0.1", "no-such-service");
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK(says(gai_strerror(EAI_SERVICE)));
}

static void test_why_an_address_fails(void)
{
  int server = bind_loopback(AF_INET);
  port_posix_tcp(&posix, "127.0.0.1", service_of(server));
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK(says(strerror(ECONNREFUSED)));
  CHECK_EQUAL(listen(server, 4), 0);
  CHECK_EQUAL(connect_for(LONG_MS), PORT_OK);
  CHECK(says(""));
  close_transport();
  CHECK(says("")); /* we did that */
  (void)close(server);
}

static void test_why_it_takes_too_long(void)
{
  struct silent silent;
  if (!silent_up(&silent)) return;
  resolve_to((in_port_t[]){port_of(silent.server), port_of(silent.server)}, 2);
  port_posix_tcp(&posix, HOST_SEVERAL, "0");
  CHECK_EQUAL(connect_once(100), PORT_WOULD_BLOCK);
  CHECK(says(""));
  CHECK_EQUAL(connect_for(1500), PORT_WOULD_BLOCK); /* both are tried */
  CHECK(says(strerror(ETIMEDOUT)));
  close_transport();
  CHECK(says(strerror(ETIMEDOUT)));
  resolve_to((in_port_t[]){port_of(silent.server)}, 1);
  port_posix_tcp(&posix, HOST_SEVERAL, "0");
  do /* the resolver's thread may begin late */
    CHECK_EQUAL(connect_once(100), PORT_WOULD_BLOCK);
  while (tried_count == 0);
  close_transport();
  CHECK(says(strerror(ETIMEDOUT)));
  silent_down(&silent);
}

static void test_why_a_path_fails(void)
{
  struct local local = {0};
  char path[sizeof((struct sockaddr_un *)0)->sun_path + 1];
  local_up(&local, 4);
  CHECK(port_posix_unix(&posix, local.path));
  uid_t user = geteuid();
  CHECK_EQUAL(chmod(local.path, 0), 0);
  CHECK_EQUAL(user == 0 ? seteuid(1) : 0, 0); /* root may connect to any */
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK(says(strerror(EACCES)));
  CHECK_EQUAL(seteuid(user), 0);
  (void)close(local.server);
  CHECK_EQUAL(chmod(local.path, 0700), 0);
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK(says(strerror(ECONNREFUSED)));
  (void)unlink(local.path);
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK(says(strerror(ENOENT)));
  memset(path, 'x', sizeof path);
  path[sizeof path - 1] = 0;
  CHECK(!port_posix_unix(&posix, path));
  CHECK_EQUAL(connect_for(LONG_MS), PORT_UNREACHABLE);
  CHECK(says(strerror(ENAMETOOLONG)));
  local.server = -1;
  local_down(&local);
}

static void test_why_a_name_takes_too_long(void)
{
  hold_answers();
  port_posix_tcp(&posix, HOST_SLOW, "0");
  CHECK_EQUAL(connect_for(100), PORT_WOULD_BLOCK);
  CHECK(says(""));
  close_transport();
  CHECK(says(gai_strerror(EAI_AGAIN)));
  close_transport();
  CHECK(says(gai_strerror(EAI_AGAIN)));
  let_answers_go();
}

static void test_why_it_broke(void)
{
  struct linger abort_it = {.l_onoff = 1, .l_linger = 0};
  char byte;
  if (!link_up()) return;
  (void)close(wire.peer);
  CHECK_EQUAL(receive_any(&byte, 1), PORT_CLOSED);
  CHECK(says("the server closed the connection"));
  while (send_to("x", 1) > 0)
    pause_ms(1);
  CHECK(says("the server closed the connection")); /* that came first */
  close_transport();
  CHECK_EQUAL(connect_for(LONG_MS), PORT_OK);
  CHECK(says(""));
  /* the connection that was closed above was the first in the queue */
  wire.peer = accept(wire.server, NULL, NULL);
  (void)setsockopt(wire.peer, SOL_SOCKET, SO_LINGER, &abort_it, sizeof abort_it);
  (void)close(wire.peer);
  wire.peer = -1;
  CHECK_EQUAL(receive_any(&byte, 1), PORT_CLOSED);
  CHECK(says(strerror(ECONNRESET)));
  link_down();
}

/* ---- sending and receiving ---- */

static int send_until_refused(void)
{
  int sent = 1;
  uint32_t began = port_clock_ms();
  while (sent > 0 && since(began) < LONG_MS)
    sent = send_to("x", 1);
  return sent;
}

static void test_short_reads(void)
{
  char data[8] = {0};
  if (!link_up()) return;
  CHECK_EQUAL(send(wire.peer, "0123456789", 10, 0), 10);
  CHECK_EQUAL(receive_any(data, 3), 3);
  CHECK_BYTES(data, 3, "012", 3);
  CHECK_EQUAL(receive_from(data, 3, 0), 3);
  CHECK_EQUAL(receive_from(data, 3, 5), 3);
  CHECK_EQUAL(receive_from(data, 3, 500), 1);
  CHECK_BYTES(data, 1, "9", 1);
  CHECK_EQUAL(receive_from(data, 3, 0), PORT_WOULD_BLOCK);
  link_down();
}

static void test_peer_closes(void)
{
  char data[8];
  if (!link_up()) return;
  CHECK_EQUAL(send(wire.peer, "end", 3, 0), 3);
  (void)close(wire.peer);
  wire.peer = -1;
  CHECK_EQUAL(receive_any(data, sizeof data), 3);
  errno = EAGAIN; /* means nothing when recv() did not fail */
  CHECK_EQUAL(receive_any(data, sizeof data), PORT_CLOSED);
  CHECK_EQUAL(receive_from(data, sizeof data, 0), PORT_CLOSED);
  CHECK_EQUAL(receive_from(data, sizeof data, 5), PORT_CLOSED);
  CHECK_EQUAL(send_until_refused(), PORT_CLOSED);
  CHECK_EQUAL(send_to("x", 1), PORT_CLOSED); /* now without an error pending: EPIPE */
  CHECK_EQUAL(send_to("x", 1), PORT_CLOSED);
  link_down();
}

/* The server says why, closes, and resets what comes after that: what it said is received. */
static void test_last_words(void)
{
  char data[8];
  if (!link_up()) return;
  CHECK_EQUAL(send(wire.peer, "why", 3, 0), 3);
  (void)close(wire.peer);
  wire.peer = -1;
  CHECK_EQUAL(send_until_refused(), PORT_WOULD_BLOCK);
  CHECK_EQUAL(receive_from(data, 2, 1000), 2);
  CHECK_EQUAL(send_to("x", 1), PORT_WOULD_BLOCK);
  CHECK_EQUAL(receive_from(data + 2, 2, 1000), 1);
  CHECK_BYTES(data, 3, "why", 3);
  CHECK_EQUAL(receive_from(data, sizeof data, 1000), PORT_CLOSED);
  CHECK_EQUAL(send_to("x", 1), PORT_CLOSED);
  link_down();
}

static void test_peer_resets(void)
{
  char data[8];
  if (!link_up()) return;
  struct linger abort_it = {.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(wire.peer, SOL_SOCKET, SO_LINGER, &abort_it, sizeof abort_it);
  (void)close(wire.peer);
  wire.peer = -1;
  CHECK_EQUAL(receive_any(data, sizeof data), PORT_CLOSED);
  CHECK_EQUAL(send_to("x", 1), PORT_CLOSED);
  CHECK_EQUAL(receive_any(data, sizeof data), PORT_CLOSED);
  link_down();
}

static unsigned char byte_at(size_t place)
{
  return (unsigned char)(place * 7 + place / 251);
}

static void fill(unsigned char *data, size_t size, size_t place)
{
  for (size_t i = 0; i < size; i++)
    data[i] = byte_at(place + i);
}

static bool matches(const unsigned char *data, size_t size, size_t place)
{
  for (size_t i = 0; i < size; i++) {
    if (data[i] != byte_at(place + i)) return false;
  }
  return true;
}

/* Sends the byte pattern until the transport takes no more. Returns how many bytes it took. */
static size_t stuff(void)
{
  static unsigned char data[50000];
  size_t total = 0;
  for (;;) {
    fill(data, sizeof data, total);
    int sent = send_to(data, sizeof data);
    if (sent == PORT_WOULD_BLOCK) return total;
    if (!CHECK(sent > 0)) return total;
    total += (size_t)sent;
  }
}

static void test_send_would_block(void)
{
  static unsigned char data[50000];
  char byte;
  if (!link_up()) return;
  size_t total = stuff();
  CHECK(total > 0);
  uint32_t began = port_clock_ms();
  /* not writable yet: waits */
  CHECK_EQUAL(receive_from(&byte, 1, 200), PORT_WOULD_BLOCK);
  CHECK(since(began) >= 150);
  CHECK_EQUAL(send(wire.peer, "!", 1, 0), 1);
  CHECK_EQUAL(receive_any(&byte, 1), 1); /* replies come through meanwhile */

  size_t read = 0;
  bool same = true;
  while (read < total) {
    ssize_t got = recv(wire.peer, data, sizeof data, 0);
    if (!CHECK(got > 0)) break;
    same = same && matches(data, (size_t)got, read);
    read += (size_t)got;
  }
  CHECK(same);
  CHECK_EQUAL(read, total);
  atomic_store(&calls, 0);
  CHECK_EQUAL(receive_from(&byte, 1, 1000), PORT_WOULD_BLOCK);
  CHECK_EQUAL(atomic_load(&calls), 1); /* writable again: poll() says so, and that is all */
  atomic_store(&limits_set, 0);
  CHECK_EQUAL(receive_from(&byte, 1, 100), PORT_WOULD_BLOCK);
  CHECK_EQUAL(atomic_load(&limits_set), 1); /* and says so once: this one waits in recv() */
  check_exchange(wire.peer);
  link_down();
}

/* A stack that says so of its memory, as NuttX's: the pauses are short, and room is not waited for. */
static void test_send_without_memory(void)
{
  char byte;
  if (!link_up()) return;
  without_memory = true;
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(send_to("x", 1), PORT_WOULD_BLOCK);
    CHECK_EQUAL(receive_from(&byte, 1, 1000), PORT_WOULD_BLOCK);
    CHECK_EQUAL(polled_for & POLLOUT, i == 0 ? POLLOUT : 0);
    CHECK_EQUAL(polled_ms, i == 0 ? 1000 : 10);
  }
  without_memory = false;
  check_exchange(wire.peer);
  link_down();
}

static void *drain_later(void *context)
{
  static unsigned char data[50000];
  (void)context;
  pause_ms(200);
  while (recv(wire.peer, data, sizeof data, MSG_DONTWAIT) > 0) {
  }
  return NULL;
}

/* Whether recv() with all the time in the world returns because sending is possible again. */
static void test_receive_wakes_to_send(void)
{
  char byte;
  pthread_t drainer;
  if (!link_up()) return;
  (void)stuff();
  CHECK_EQUAL(pthread_create(&drainer, NULL, drain_later, NULL), 0);
  int sent = PORT_WOULD_BLOCK;
  unsigned rounds = 0;
  uint32_t began = port_clock_ms();
  while (sent == PORT_WOULD_BLOCK && since(began) < LONG_MS) {
    CHECK_EQUAL(receive_from(&byte, 1, 1000), PORT_WOULD_BLOCK);
    sent = send_to("x", 1);
    rounds++;
  }
  CHECK_EQUAL(sent, 1);
  CHECK(rounds < 100); /* it sleeps meanwhile */
  CHECK_EQUAL(pthread_join(drainer, NULL), 0);
  link_down();
}

/* Waits as the client does, and returns the time it took; *rounds: in how many pieces. */
static uint32_t wait_in_recv(uint32_t ms, unsigned *rounds)
{
  char byte;
  uint32_t began = port_clock_ms();
  *rounds = 0;
  while (since(began) < ms) {
    uint32_t left = ms - since(began);
    if (left > ms) break;
    CHECK_EQUAL(receive_from(&byte, 1, left), PORT_WOULD_BLOCK);
    ++*rounds;
  }
  return since(began);
}

/*
 * A recv() must not wait longer than asked, except that kernels round the time-out up to their
 * tick. A limit of 32 ms stays, because later waits are polled.
 */
static void check_limit(uint32_t asked_ms)
{
  struct timeval limit = {0};
  socklen_t size = sizeof limit;
  CHECK_EQUAL(getsockopt(port_posix_fd(&posix), SOL_SOCKET, SO_RCVTIMEO, &limit, &size), 0);
  if (without_receive_limit) CHECK_EQUAL(limit.tv_usec, 0);
  else
    CHECK(limit.tv_sec == 0 &&
          limit.tv_usec <= (long)(asked_ms < 32 ? 32 : asked_ms) * 1000 + 10000);
}

static void check_waits(void)
{
  static const uint32_t waits[] = {1, 5, 15, 1000, 300, 100, 17, 16};
  unsigned rounds;
  char byte;
  for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
    uint32_t began = port_clock_ms();
    CHECK_EQUAL(receive_from(&byte, 1, waits[i]), PORT_WOULD_BLOCK);
    CHECK(since(began) < LONG_MS);
    if (waits[i] >= 16) check_limit(waits[i]); /* shorter ones are polled */
    CHECK(wait_in_recv(waits[i], &rounds) < LONG_MS);
    CHECK(rounds <= 40); /* far from spinning */
  }
  CHECK_EQUAL(receive_from(&byte, 1, 0), PORT_WOULD_BLOCK);
}

static void test_receive_time_outs(void)
{
  if (!link_up()) return;
  check_waits();
  check_exchange(wire.peer);
  link_down();
}

/* Another task ends a wait, one that has begun or is to come, and one wait alone. */
static void *wake_later(void *context)
{
  (void)context;
  (void)usleep(100000); /* so that it waits in poll() by then */
  posix.transport.wake(&posix);
  return NULL;
}

static void test_wake(void)
{
  pthread_t thread;
  unsigned rounds;
  if (!link_up()) return;
  char byte;
  (void)wait_in_recv(50, &rounds);
  for (int i = 0; i < 50; i++)
    posix.transport.wake(&posix);
  uint32_t began = port_clock_ms();
  CHECK_EQUAL(receive_from(&byte, 1, 1000), PORT_WOULD_BLOCK);
  CHECK(since(began) < 1000);
  CHECK(wait_in_recv(100, &rounds) >= 100);
  CHECK(rounds <= 2);
  began = port_clock_ms();
  CHECK_EQUAL(pthread_create(&thread, NULL, wake_later, &posix), 0);
  CHECK_EQUAL(receive_from(&byte, 1, 1000), PORT_WOULD_BLOCK);
  CHECK(since(began) < 1000);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  check_exchange(wire.peer);
  link_down();
  posix.transport.wake(&posix); /* does nothing */
}

static void test_receive_without_limit(void)
{
  if (!link_up()) return;
  without_receive_limit = true;
  check_waits();
  check_exchange(wire.peer);
  without_receive_limit = false;
  link_down();
}

/* A request and its reply are two system calls, whatever part of the time-out is left. */
static void test_calls_per_exchange(void)
{
  char data[4];
  bool ok = true;
  int extra = 0;
  if (!link_up()) return;
  atomic_store(&limits_set, 0);
  for (uint32_t i = 0; i < 400 && ok; i++) {
    ok = send(wire.peer, "r", 1, 0) ==
         1; /* the reply comes before the request, but the calls are the same */
    atomic_store(&calls, 0);
    ok = ok && send_to("q", 1) == 1 && receive_from(data, 4, 600 + i) == 1;
    extra += atomic_load(&calls) - 2;
  }
  CHECK(ok);
  CHECK_EQUAL(atomic_load(&limits_set), 1);
  CHECK_EQUAL(extra, 1);
  link_down();
}

static void on_signal(int number)
{
  (void)number;
}

static atomic_bool interrupting;

static void *interrupt(void *context)
{
  pthread_t target = *(pthread_t *)context;
  while (atomic_load(&interrupting)) {
    (void)pthread_kill(target, SIGUSR1);
    pause_ms(5);
  }
  return NULL;
}

static void test_interrupted(void)
{
  struct sigaction action = {.sa_handler = on_signal};
  struct sigaction old;
  pthread_t self = pthread_self();
  pthread_t thread;
  char byte;
  unsigned rounds;
  if (!link_up()) return;
  (void)sigaction(SIGUSR1, &action, &old);
  atomic_store(&interrupting, true);
  CHECK_EQUAL(pthread_create(&thread, NULL, interrupt, &self), 0);
  CHECK(wait_in_recv(300, &rounds) >= 300);
  (void)stuff();
  (void)receive_from(&byte, 1, 100);
  close_transport();
  CHECK_EQUAL(connect_for(LONG_MS), PORT_OK);
  atomic_store(&interrupting, false);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  (void)sigaction(SIGUSR1, &old, NULL);
  link_down();
}

/* ---- one task sends while another receives ---- */

#define STREAM_SIZE 3000000U

static void *echo(void *context)
{
  static char data[20000];
  int peer = *(const int *)context;
  ssize_t got;
  while ((got = recv(peer, data, sizeof data, 0)) > 0) {
    for (ssize_t sent = 0; sent < got;) {
      ssize_t part = send(peer, data + sent, (size_t)(got - sent), MSG_NOSIGNAL);
      if (part <= 0) return NULL;
      sent += part;
    }
  }
  return NULL;
}

static void *send_stream(void *context)
{
  static unsigned char data[30000];
  (void)context;
  uint32_t began = port_clock_ms();
  size_t total = 0;
  while (total < STREAM_SIZE && since(began) < 3 * LONG_MS) {
    size_t size = STREAM_SIZE - total < sizeof data ? STREAM_SIZE - total : sizeof data;
    fill(data, size, total);
    int sent = send_to(data, size);
    if (sent == PORT_WOULD_BLOCK) pause_ms(1);
    else if (sent < 0) break;
    else total += (size_t)sent;
  }
  return NULL;
}

static void test_send_beside_receive(void)
{
  static unsigned char data[7000];
  pthread_t echoer, sender;
  if (!link_up()) return;
  CHECK_EQUAL(pthread_create(&echoer, NULL, echo, &wire.peer), 0);
  CHECK_EQUAL(pthread_create(&sender, NULL, send_stream, &posix), 0);
  size_t total = 0;
  bool same = true;
  uint32_t began = port_clock_ms();
  while (total < STREAM_SIZE && since(began) < 3 * LONG_MS) {
    int got = receive_from(data, sizeof data, 1 + (uint32_t)(total % 1000));
    if (got == PORT_WOULD_BLOCK) continue;
    if (!CHECK(got > 0)) break;
    same = same && matches(data, (size_t)got, total);
    total += (size_t)got;
  }
  CHECK(same);
  CHECK_EQUAL(total, STREAM_SIZE);
  CHECK_EQUAL(pthread_join(sender, NULL), 0);
  close_transport();
  CHECK_EQUAL(pthread_join(echoer, NULL), 0);
  link_down();
}

/* ---- threads ---- */

struct shared {
  struct port_mutex mutex;
  struct port_event event;
  unsigned count;
  uintptr_t self;
};

static void shared_up(struct shared *shared)
{
  memset(shared, 0, sizeof *shared);
  port_mutex_init(&shared->mutex);
  port_event_init(&shared->event);
}

static void shared_down(struct shared *shared)
{
  port_event_destroy(&shared->event);
  port_mutex_destroy(&shared->mutex);
}

static void *count_up(void *context)
{
  struct shared *shared = context;
  for (int i = 0; i < 20000; i++) {
    port_mutex_lock(&shared->mutex);
    shared->count++;
    port_mutex_unlock(&shared->mutex);
  }
  return NULL;
}

static void test_mutex_excludes(void)
{
  struct shared shared;
  pthread_t threads[4];
  shared_up(&shared);
  for (int i = 0; i < 4; i++)
    CHECK_EQUAL(pthread_create(&threads[i], NULL, count_up, &shared), 0);
  for (int i = 0; i < 4; i++)
    CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
  CHECK_EQUAL(shared.count, 80000);
  shared_down(&shared);
}

static void test_event_before_wait(void)
{
  struct shared shared;
  shared_up(&shared);
  port_mutex_lock(&shared.mutex);
  port_event_set(&shared.event);
  port_event_set(&shared.event);
  uint32_t began = port_clock_ms();
  port_event_wait(&shared.event, &shared.mutex, 2 * LONG_MS);
  CHECK(since(began) < LONG_MS);
  began = port_clock_ms();
  unsigned rounds = 0;
  for (uint32_t spent = 0; spent < 100; spent = since(began)) {
    port_event_wait(&shared.event, &shared.mutex, 100 - spent);
    rounds++;
  }
  CHECK(rounds < 50); /* used up: these waits are waits */
  port_event_wait(&shared.event, &shared.mutex, 0);
  port_mutex_unlock(&shared.mutex);
  shared_down(&shared);
}

static void test_event_time_out(void)
{
  struct shared shared;
  unsigned rounds = 0;
  shared_up(&shared);
  port_mutex_lock(&shared.mutex);
  uint32_t began = port_clock_ms();
  for (uint32_t spent = 0; spent < 1100; spent = since(began)) {
    port_event_wait(&shared.event, &shared.mutex, 1100 - spent);
    rounds++;
  }
  CHECK(since(began) < LONG_MS);
  CHECK(rounds < 100);
  CHECK(pthread_mutex_trylock(&shared.mutex.mutex) != 0); /* it is locked again */
  port_mutex_unlock(&shared.mutex);
  shared_down(&shared);
}

static void *set_soon(void *context)
{
  struct shared *shared = context;
  pause_ms(50);
  port_mutex_lock(&shared->mutex); /* only possible while the other one waits */
  shared->count = 1;
  port_event_set(&shared->event);
  port_mutex_unlock(&shared->mutex);
  return NULL;
}

static void test_event_wakes(void)
{
  struct shared shared;
  pthread_t thread;
  shared_up(&shared);
  port_mutex_lock(&shared.mutex);
  CHECK_EQUAL(pthread_create(&thread, NULL, set_soon, &shared), 0);
  uint32_t began = port_clock_ms();
  while (shared.count == 0 && since(began) < LONG_MS)
    port_event_wait(&shared.event, &shared.mutex, 2 * LONG_MS);
  CHECK_EQUAL(shared.count, 1);
  CHECK(since(began) < LONG_MS);
  port_mutex_unlock(&shared.mutex);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  shared_down(&shared);
}

/*
 * An event on the stack of a task whose waits end by time as often as by a raise; NULL: there is
 * none.
 */
struct passing {
  struct port_mutex mutex;
  struct port_event *event;
  bool over;
};

static void *set_often(void *context)
{
  struct passing *passing = context;
  bool over = false;
  while (!over) {
    port_mutex_lock(&passing->mutex);
    if (passing->event != NULL) port_event_set(passing->event);
    over = passing->over;
    port_mutex_unlock(&passing->mutex);
  }
  return NULL;
}

/* Whoever set an event does not touch it any more when its wait is over. */
static void test_event_gone_after_wait(void)
{
  struct passing passing = {.over = false};
  pthread_t threads[2];
  port_mutex_init(&passing.mutex);
  for (int i = 0; i < 2; i++)
    CHECK_EQUAL(pthread_create(&threads[i], NULL, set_often, &passing), 0);
  port_mutex_lock(&passing.mutex);
  for (uint32_t round = 0; round < 2000; round++) {
    struct port_event event;
    unsigned char gone[sizeof event];
    port_event_init(&event);
    passing.event = &event;
    port_event_wait(&event, &passing.mutex, round % 2);
    port_event_wait(&event, &passing.mutex, 1);
    passing.event = NULL;
    port_event_destroy(&event);
    memset(&event, 0x55, sizeof event);
    memset(gone, 0x55, sizeof gone);
    port_mutex_unlock(&passing.mutex);
    (void)sched_yield();
    port_mutex_lock(&passing.mutex);
    if (!CHECK(memcmp(&event, gone, sizeof gone) == 0)) break;
  }
  passing.over = true;
  port_mutex_unlock(&passing.mutex);
  for (int i = 0; i < 2; i++)
    CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
  port_mutex_destroy(&passing.mutex);
}

static void *note_self(void *context)
{
  struct shared *shared = context;
  shared->self = port_task_self();
  return NULL;
}

static void test_task_self(void)
{
  struct shared shared;
  pthread_t thread;
  shared_up(&shared);
  CHECK_EQUAL(pthread_create(&thread, NULL, note_self, &shared), 0);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  CHECK(shared.self != 0);
  CHECK(port_task_self() != 0);
  CHECK(port_task_self() == port_task_self());
  CHECK(port_task_self() != shared.self);
  shared_down(&shared);
}

/* ---- clock ---- */

static uint32_t system_ms(clockid_t clock)
{
  struct timespec now;
  if (clock_gettime(clock, &now) != 0) abort();
  return (uint32_t)((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
}

static void test_clock(void)
{
#ifdef CLOCK_BOOTTIME
  clockid_t clock = CLOCK_BOOTTIME;
#else
  clockid_t clock = CLOCK_MONOTONIC;
#endif
  uint32_t last = port_clock_ms();
  for (int i = 0; i < 50; i++) {
    uint32_t before = system_ms(clock);
    uint32_t now = port_clock_ms();
    uint32_t after = system_ms(clock);
    CHECK(now - before <= after - before);
    CHECK(now - last < LONG_MS); /* never back */
    last = now;
    pause_ms(2);
  }
}

/* Idling really waits: a few calls are enough for the whole time. */
static void test_idle(void)
{
  unsigned idles = 0;
  uint32_t began = port_clock_ms();
  for (uint32_t spent = 0; spent < 100; spent = since(began)) {
    port_idle(100 - spent);
    idles++;
  }
  CHECK(idles < 50);
  CHECK(since(began) < LONG_MS);
}

const struct check_test check_tests[] = {
    {"port transport: tcp ipv4", test_tcp_ipv4},
    {"port transport: fd", test_fd},
    {"port tcp ipv6", test_tcp_ipv6},
    {"port tcp host name", test_tcp_host_name},
    {"port tcp refused, then accepted", test_tcp_refused_then_accepted},
    {"port tcp bad names", test_tcp_bad_names},
    {"port seeds that are none", test_seeds_that_are_none},
    {"port seeds in turn", test_seeds_in_turn},
    {"port one seed", test_one_seed},
    {"port aim at an address", test_aim_at_an_address},
    {"port tells the host", test_host},
    {"port aim at a port of a seed", test_aim_at_a_port_of_a_seed},
    {"port aim ipv6", test_aim_ipv6},
    {"port aim of unix", test_aim_of_unix},
    {"port several addresses, first refuses", test_several_first_refuses},
    {"port several addresses, all refuse", test_several_all_refuse},
    {"port transport: silent server", test_silent_server},
    {"port several addresses, first is silent", test_several_first_is_silent},
    {"port several addresses, first is mute", test_several_first_is_mute},
    {"port several addresses, given up", test_several_given_up},
    {"port slow name", test_slow_name},
    {"port slow name, given up", test_slow_name_given_up},
    {"port slow name, late answer", test_slow_name_late_answer},
    {"port slow name, and elsewhere", test_slow_name_and_elsewhere},
    {"port slow name of a client", test_slow_name_of_a_client},
    {"port name without threads", test_name_without_threads},
    {"port connected to itself", test_connected_to_itself},
    {"port socket options", test_options},
    {"port transport: closed", test_closed_transport},
    {"port unix", test_unix},
    {"port unix unreachable", test_unix_unreachable},
    {"port unix busy", test_unix_busy},
    {"port says why a name fails", test_why_a_name_fails},
    {"port says why an address fails", test_why_an_address_fails},
    {"port says why: it takes too long", test_why_it_takes_too_long},
    {"port says why a path fails", test_why_a_path_fails},
    {"port says why: a name takes too long", test_why_a_name_takes_too_long},
    {"port says why it broke", test_why_it_broke},
    {"port transport: short reads", test_short_reads},
    {"port transport: peer closes", test_peer_closes},
    {"port transport: peer resets", test_peer_resets},
    {"port transport: last words", test_last_words},
    {"port send would block", test_send_would_block},
    {"port send takes nothing though there is room", test_send_without_memory},
    {"port transport: receive wakes to send", test_receive_wakes_to_send},
    {"port wake ends a wait", test_wake},
    {"port transport: receive time-outs", test_receive_time_outs},
    {"port receive without SO_RCVTIMEO", test_receive_without_limit},
    {"port calls per exchange", test_calls_per_exchange},
    {"port transport: interrupted", test_interrupted},
    {"port transport: send beside receive", test_send_beside_receive},
    {"port mutex excludes", test_mutex_excludes},
    {"port event before wait", test_event_before_wait},
    {"port event time-out", test_event_time_out},
    {"port event wakes", test_event_wakes},
    {"port event gone after its wait", test_event_gone_after_wait},
    {"port task self", test_task_self},
    {"port clock", test_clock},
    {"port idle", test_idle},
    {0}};
