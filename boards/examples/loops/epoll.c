/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock of a service in an event loop, here on epoll: acquires, waits behind the holder, holds for
 * a while, releases. Nothing in it blocks but epoll_wait().
 *
 *     epoll URL NAME HOLD_MS [WAITER_MS [CA_FILE]]
 *
 * The URL says which servers, and who we are there: redis://:password@host, unix:///path,
 * redis+sentinel://user:password@host,host/service; and for epoll_tls, the same program compiled
 * WITH_TLS, also rediss+sentinel:// and the like. CA_FILE has the CAs to trust; without it, those of the
 * system. Nothing of that changes the loop, which watches the socket below.
 *
 * The loop asks the client for three things after each fairlock_poll(): when to call again, which
 * socket to watch (port_posix_fd()), and for what (fairlock_wants()). Another timer of the loop
 * ends the hold. While it waits, it is woken twice for each heartbeat: by the time, to send it, and
 * by the socket, for the reply. It counts.
 *
 * The client is the loop's alone. Threads beside it that block, such as a pool, have another client, as in pool.c.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <errno.h>
#include <fairlock/fairlock.h>
#include <fairlock/fairlock_follow.h>
#include <fairlock/port_posix.h>
#ifdef WITH_TLS
#include <fairlock/port_openssl.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum step { WAITING, HOLDING, RELEASING, DONE, FAILED };

static uint8_t receive_buffer[1024], send_buffer[1024];
static struct fairlock_config config = {.receive_buffer = receive_buffer,
                                        .receive_size = sizeof receive_buffer,
                                        .send_buffer = send_buffer,
                                        .send_size = sizeof send_buffer};
static struct port_posix_server server;
static struct fairlock_topology servers; /* if there are several */
static struct fairlock_client client;
static struct fairlock door;

static int epoll, timer;
static long hold_ms;
static unsigned by_time, by_socket; /* how often it was woken */
static uint32_t began;

#ifdef WITH_TLS
static struct port_openssl tls;

static const char *read_url(const char *url, const char *ca_file)
{
  const struct port_openssl_config trust = {.ca_file = ca_file};
  return port_openssl_url(&tls, &server, url, &trust);
}

static void end_tls(void)
{
  port_openssl_deinit(&tls);
}
#else
static const char *read_url(const char *url, const char *ca_file)
{
  return ca_file == NULL ? port_posix_url(&server, url) : "a CA is for epoll_tls";
}

static void end_tls(void)
{
}
#endif

/* Makes a client of what the URL says. Returns NULL, or what is wrong, in words. */
static const char *make_client(const char *url, const char *ca_file)
{
  const char *wrong = read_url(url, ca_file);
  if (wrong != NULL) return wrong;
  config.user = server.user;
  config.password = server.password;
  config.database = server.database;
  if (server.moves) config.lease_ms = 60000; /* it has to outlast a fail-over */
  int status = fairlock_client_init(&client, &config, server.transport);
  if (status == FAIRLOCK_OK && server.moves) {
    servers.service = server.service;
    servers.cluster = server.cluster;
    servers.sentinel_password = getenv("SENTINEL_PASSWORD"); /* the URL's are the master's */
    servers.address = server.address;
    servers.address_size = sizeof server.address;
    status = fairlock_follow(&client, &servers);
  }
  return status == FAIRLOCK_OK ? NULL : fairlock_status_text(status);
}

static void add(int fd, uint32_t events)
{
  struct epoll_event event = {.events = events, .data.fd = fd};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) exit(1);
}

/*
 * A socket that the client closed has left the epoll set by itself; a new one may have its number,
 * and is not in the set yet.
 */
static void watch(void)
{
  unsigned wants = fairlock_wants(&client);
  int fd = port_posix_fd(&server.socket);
  struct epoll_event event = {.data.fd = fd};
  if (fd < 0) return;
  if (wants & FAIRLOCK_RECEIVE) event.events |= EPOLLIN;
  if (wants & (FAIRLOCK_SEND | FAIRLOCK_CONNECT)) event.events |= EPOLLOUT;
  if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0) return;
  if (errno == ENOENT) add(fd, event.events);
}

static void start_timer(void)
{
  struct itimerspec time = {
      .it_value = {.tv_sec = hold_ms / 1000, .tv_nsec = hold_ms % 1000 * 1000000}};
  if (timerfd_settime(timer, 0, &time, NULL) != 0) exit(1);
}

static bool timer_has_ended(void)
{
  uint64_t times;
  return read(timer, &times, sizeof times) == (ssize_t)sizeof times;
}

static enum step failed(int status)
{
  printf("failed: %s\n", fairlock_status_text(status));
  return FAILED;
}

/* What the program does with the lock. Returns the step that follows. */
static enum step go_on(enum step step)
{
  int status = fairlock_result(&door);
  switch (step) {
  case WAITING:
    if (status == FAIRLOCK_PENDING) return WAITING;
    if (status != FAIRLOCK_OK) return failed(status);
    printf("held after %u ms, woken by the time %u times, by the socket %u\n",
           (unsigned)(port_clock_ms() - began), by_time, by_socket);
    start_timer();
    return HOLDING;
  case HOLDING:
    if (!timer_has_ended()) return HOLDING;
    status = fairlock_start_release(&door);
    return status == FAIRLOCK_PENDING ? RELEASING : failed(status);
  case RELEASING:
    if (status == FAIRLOCK_PENDING) return RELEASING;
    if (status != FAIRLOCK_OK) return failed(status);
    printf("released\n");
    return DONE;
  default:
    return step;
  }
}

int main(int count, char **arguments)
{
  if (count < 4) return 2;
  if (count > 4) config.waiter_ms = (uint32_t)strtoul(arguments[4], NULL, 10);
  setvbuf(stdout, NULL, _IOLBF, 0);
  hold_ms = strtol(arguments[3], NULL, 10);
  const char *wrong = make_client(arguments[1], count > 5 ? arguments[5] : NULL);
  if (wrong != NULL) {
    printf("the URL: %s\n", wrong);
    return 1;
  }
  if (fairlock_init(&door, &client, arguments[2]) != FAIRLOCK_OK) return 1;
  epoll = epoll_create1(EPOLL_CLOEXEC);
  timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (epoll < 0 || timer < 0) return 1;
  add(timer, EPOLLIN);

  began = port_clock_ms();
  enum step step = WAITING;
  if (fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_PENDING) return 1;
  while (step != DONE && step != FAILED) {
    uint32_t due = fairlock_poll(&client, 0);
    enum step next = go_on(step);
    if (next != step) due = 0; /* it may have begun something: service the client first */
    step = next;
    watch();
    struct epoll_event events[2];
    if (epoll_wait(epoll, events, 2, (int)due) > 0) by_socket++;
    else by_time++;
  }
  while (fairlock_deinit(&door) == FAIRLOCK_IN_PROGRESS && step == DONE)
    continue;
  fairlock_client_deinit(&client);
  end_tls();
  (void)close(timer);
  (void)close(epoll);
  return step == DONE ? 0 : 1;
}
