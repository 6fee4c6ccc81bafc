/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What port/zephyr does beyond the contract of port.h: names, IPv6, TLS. Zephyr is a stand-in (see
 * the headers beside this), so TLS here is what the socket is told of it.
 */
#undef _FORTIFY_SOURCE /* its inline functions get in the way of the wrappers */

#include "check.h"
#include "port_zephyr.h"
#include "support/loopback.h"
#include "support/wrapped.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zephyr/net/socket.h>

static struct port_zephyr server;
static char service[8];

static int connect_in_the_end(void)
{
  int status = PORT_WOULD_BLOCK;
  for (int i = 0; i < 100 && status == PORT_WOULD_BLOCK; i++)
    status = server.transport.connect(&server, 100);
  return status;
}

/* Listens, as seen by the transport at `host`. */
static int listen_for(const char *host)
{
  int port;
  int listener = listen_anywhere(&port);
  (void)snprintf(service, sizeof service, "%d", port);
  port_zephyr_tcp(&server, host, service);
  return listener;
}

/*
 * One name has two addresses: at the first nobody listens. One has an address that is too long; one
 * has none, but no error.
 */
static struct sockaddr_in addresses[2];
static struct addrinfo entries[2];
static unsigned lookups;

int getaddrinfo(const char *restrict name, const char *restrict port,
                const struct addrinfo *restrict hints, struct addrinfo **restrict list)
{
  (void)hints;
  lookups++;
  memset(entries, 0, sizeof entries);
  for (int i = 0; i < 2; i++) {
    addresses[i] = (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
        .sin_addr.s_addr = htonl(i == 0 ? 0x7f000002 : 0x7f000001),
    };
    entries[i].ai_addr = (struct sockaddr *)&addresses[i];
    entries[i].ai_addrlen = sizeof addresses[i];
  }
  entries[0].ai_next = &entries[1];
  *list = entries;
  if (strcmp(name, "long.example") == 0) entries[0].ai_addrlen = entries[1].ai_addrlen = 200;
  if (strcmp(name, "empty.example") == 0) *list = NULL;
  return strcmp(name, "none.example") == 0 ? EAI_NONAME : 0;
}

void freeaddrinfo(struct addrinfo *list)
{
  CHECK(list == entries || list == NULL);
}

static void test_addresses_in_turn(void)
{
  int listener = listen_for("two.example");
  lookups = 0;
  CHECK_EQUAL(connect_in_the_end(), PORT_UNREACHABLE);
  CHECK_EQUAL(port_zephyr_error(&server), ECONNREFUSED);
  server.transport.close(&server);
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  CHECK_EQUAL(port_zephyr_error(&server), 0);
  CHECK_EQUAL(lookups, 2);
  server.transport.close(&server);
  CHECK_EQUAL(connect_in_the_end(), PORT_OK); /* the one that has served */
  server.transport.close(&server);
  (void)close(listener);
}

/* An attempt that is given up is as good as one that fails. */
static void test_address_that_is_silent(void)
{
  port_zephyr_tcp(&server, "two.example", "9");
  unsigned before = server.turn;
  server.socket = socket(AF_INET, SOCK_STREAM, 0); /* as if it were being opened */
  server.transport.close(&server);
  CHECK_EQUAL(server.turn, before + 1);
  CHECK_EQUAL(port_zephyr_error(&server), ETIMEDOUT);
  server.transport.close(&server);
  CHECK_EQUAL(server.turn, before + 1);
}

static void test_names_that_are_none(void)
{
  static const char *const names[] = {"none.example", "long.example", "empty.example"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    port_zephyr_tcp(&server, names[i], "6379");
    CHECK_EQUAL(connect_in_the_end(), PORT_UNREACHABLE);
    CHECK_EQUAL(port_zephyr_error(&server), EHOSTUNREACH);
  }
}

/* No name service is asked for an address. */
static void test_addresses_without_lookup(void)
{
  int listener = listen_for("127.0.0.1");
  lookups = 0;
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  server.transport.close(&server);
  (void)close(listener);
  CHECK_EQUAL(lookups, 0);
}

static void test_ipv6(void)
{
  struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET6, SOCK_STREAM, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0) {
    check_skip("no IPv6 on this machine");
    return;
  }
  CHECK_EQUAL(listen(listener, 1), 0);
  CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&address, &size), 0);
  (void)snprintf(service, sizeof service, "%d", ntohs(address.sin6_port));
  port_zephyr_tcp(&server, "::1", service);
  lookups = 0;
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  CHECK_EQUAL(lookups, 0);
  server.transport.close(&server);
  (void)close(listener);
}

static void test_tls(void)
{
  static const sec_tag_t tags[] = {7, 42};
  int listener = listen_for("127.0.0.1");
  port_zephyr_tls(&server, tags, 2, "redis.example");
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  CHECK_BYTES(tls_stand_in.value[TLS_SEC_TAG_LIST], tls_stand_in.size[TLS_SEC_TAG_LIST], tags,
              sizeof tags);
  CHECK_BYTES(tls_stand_in.value[TLS_HOSTNAME], tls_stand_in.size[TLS_HOSTNAME], "redis.example",
              13);
  server.transport.close(&server);
  port_zephyr_tls(&server, tags, 1, NULL);
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  CHECK_EQUAL(tls_stand_in.size[TLS_SEC_TAG_LIST], sizeof *tags);
  CHECK_BYTES(tls_stand_in.value[TLS_HOSTNAME], tls_stand_in.size[TLS_HOSTNAME], "127.0.0.1", 9);
  server.transport.close(&server);
  (void)close(listener);
}

/* What was last offered to send(), how often it was called, and the error that it ends with; 0: none. */
static size_t offered;
static unsigned sends;
static int send_error;

ssize_t send(int socket, const void *data, size_t size, int flags)
{
  static ssize_t (*real)(int, const void *, size_t, int);
  if (real == NULL) find_real("send", &real, sizeof real);
  offered = size;
  sends++;
  if (send_error == 0) return real(socket, data, size, flags);
  errno = send_error;
  return -1;
}

/* What the client offers the second time is longer; the record that TLS has begun is not. */
static void test_tls_record_again(void)
{
  static const sec_tag_t tags[] = {7};
  char data[100] = {0};
  int listener = listen_for("127.0.0.1");
  for (int tls = 0; tls < 2; tls++) {
    if (tls) port_zephyr_tls(&server, tags, 1, NULL);
    CHECK_EQUAL(connect_in_the_end(), PORT_OK);
    send_error = EAGAIN;
    CHECK_EQUAL(server.transport.send(&server, data, 40), PORT_WOULD_BLOCK);
    CHECK_EQUAL(server.transport.send(&server, data, 60), PORT_WOULD_BLOCK);
    CHECK_EQUAL(offered, tls ? 40 : 60);
    send_error = 0;
    CHECK_EQUAL(server.transport.send(&server, data, 80), tls ? 40 : 80);
    CHECK_EQUAL(server.transport.send(&server, data, 80), 80);
    send_error = EAGAIN;
    CHECK_EQUAL(server.transport.send(&server, data, 40), PORT_WOULD_BLOCK);
    server.transport.close(&server); /* a new connection has no record begun */
    CHECK_EQUAL(connect_in_the_end(), PORT_OK);
    send_error = 0;
    CHECK_EQUAL(server.transport.send(&server, data, 80), 80);
    server.transport.close(&server);
  }
  (void)close(listener);
}

/*
 * Zephyr's send() may take a second to say that it lacks memory: one attempt in each call, and no
 * second one with as much, until the connection has ended.
 */
static void test_attempts_without_memory(void)
{
  static const size_t sizes[] = {512, 256, 128, 64, 64};
  char data[512] = {0};
  int listener = listen_for("127.0.0.1");
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  send_error = ENOBUFS;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    sends = 0;
    CHECK_EQUAL(server.transport.send(&server, data, sizeof data), PORT_WOULD_BLOCK);
    CHECK_EQUAL(sends, 1);
    CHECK_EQUAL(offered, sizes[i]);
  }
  send_error = 0;
  CHECK_EQUAL(server.transport.send(&server, data, sizeof data), 64);
  CHECK_EQUAL(server.transport.send(&server, data, 40), 40);
  server.transport.close(&server);
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  CHECK_EQUAL(server.transport.send(&server, data, sizeof data), sizeof data);
  server.transport.close(&server);
  (void)close(listener);
}

/* Zephyr up to 3.5: no SO_ERROR, and a poll() of a connection that is refused is a fault. */
static bool old;
static unsigned polls;
static unsigned pending; /* so many calls of connect() say that it goes on; the first begins it */
static unsigned connects;
static int connect_says; /* and then it ends with this error; 0: with what it is */

int getsockopt(int socket, int level, int option, void *restrict value, socklen_t *restrict size)
{
  static int (*real)(int, int, int, void *, socklen_t *);
  if (real == NULL) find_real("getsockopt", &real, sizeof real);
  if (!old || level != SOL_SOCKET || option != SO_ERROR)
    return real(socket, level, option, value, size);
  errno = ENOPROTOOPT;
  return -1;
}

int poll(struct pollfd *wanted, nfds_t count, int timeout_ms)
{
  static int (*real)(struct pollfd *, nfds_t, int);
  if (real == NULL) find_real("poll", &real, sizeof real);
  polls++;
  return real(wanted, count, timeout_ms);
}

int connect(int socket, const struct sockaddr *address, socklen_t size)
{
  static int (*real)(int, const struct sockaddr *, socklen_t);
  if (real == NULL) find_real("connect", &real, sizeof real);
  connects++;
  if (pending == 0 && connect_says == 0) return real(socket, address, size);
  if (connects == 1) (void)real(socket, address, size);
  errno = pending == 0 ? connect_says : connects == 1 ? EINPROGRESS : EALREADY;
  if (pending > 0) pending--;
  return -1;
}

/* Aims at the listener of an old Zephyr, with connect() as above. */
static void aim_old(unsigned goes_on_for, int then)
{
  old = true;
  polls = connects = 0;
  pending = goes_on_for;
  connect_says = then;
}

static void test_connect_without_poll(void)
{
  int listener = listen_for("127.0.0.1");
  aim_old(4, 0);
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  CHECK_EQUAL(connects, 5);
  server.transport.close(&server);
  aim_old(2, EISCONN);
  CHECK_EQUAL(connect_in_the_end(), PORT_OK);
  server.transport.close(&server);
  aim_old(3, ECONNRESET);
  CHECK_EQUAL(connect_in_the_end(), PORT_UNREACHABLE);
  CHECK_EQUAL(port_zephyr_error(&server), ECONNRESET);
  CHECK_EQUAL(connects, 4);
  CHECK_EQUAL(polls, 0);
  aim_old(0, 0);
  old = false;
  (void)close(listener);
}

/* It asks now and then, not all the time, and no longer than it may. */
static void test_connect_without_poll_in_time(void)
{
  int listener = listen_for("127.0.0.1");
  aim_old(10000, 0);
  CHECK_EQUAL(server.transport.connect(&server, 0), PORT_WOULD_BLOCK);
  CHECK_EQUAL(connects, 2);
  uint32_t began = port_clock_ms();
  CHECK_EQUAL(server.transport.connect(&server, 100), PORT_WOULD_BLOCK);
  CHECK(port_clock_ms() - began >= 100);
  CHECK(connects <= 15);
  CHECK_EQUAL(polls, 0);
  aim_old(0, 0);
  old = false;
  server.transport.close(&server);
  (void)close(listener);
}

const struct check_test check_tests[] = {
    {"zephyr: addresses in turn", test_addresses_in_turn},
    {"zephyr: address that is silent", test_address_that_is_silent},
    {"zephyr: names that are none", test_names_that_are_none},
    {"zephyr: addresses without lookup", test_addresses_without_lookup},
    {"zephyr: IPv6", test_ipv6},
    {"zephyr: TLS", test_tls},
    {"zephyr: TLS, a record again", test_tls_record_again},
    {"zephyr: attempts without memory", test_attempts_without_memory},
    {"zephyr: connect without poll", test_connect_without_poll},
    {"zephyr: connect without poll, in time", test_connect_without_poll_in_time},
    {0}};
