/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same as epoll.c in a loop of libuv: acquires, waits behind the holder, holds for a while,
 * releases. Nothing in it blocks but uv_run().
 *
 *     libuv PORT NAME HOLD_MS [WAITER_MS [CA_FILE]]
 *
 * Three rules of libuv matter. A socket must not be closed while it is watched, and any
 * fairlock_poll() may close it: so watching stops before it, and starts again after it. A uv_poll_t
 * is for one socket: a new socket needs a new one. And a timer counts from the loop's time, which
 * stands still within a turn, and in whole milliseconds of another clock than the client's: it
 * would wake too early, for nothing.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <fairlock/fairlock.h>
#include <fairlock/port_posix.h>
#ifdef WITH_TLS /* libuv_tls */
#include <fairlock/port_openssl.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

enum step { WAITING, HOLDING, RELEASING, DONE, FAILED };

static uint8_t receive_buffer[1024], send_buffer[1024];
static struct fairlock_config config = {.receive_buffer = receive_buffer,
                                        .receive_size = sizeof receive_buffer,
                                        .send_buffer = send_buffer,
                                        .send_size = sizeof send_buffer};
static struct port_posix server;
static struct fairlock_client client;
static struct fairlock door;

static uv_loop_t loop;
static uv_timer_t due_timer, hold_timer;
static uv_poll_t *watcher; /* NULL: none */
static int watched;        /* the socket that it is for */
static uint64_t hold_ms;
static enum step step = WAITING;
static unsigned by_time, by_socket; /* how often it was woken */
static uint32_t began;

/* Returns the transport for the client; NULL: the CA cannot be used. */
static struct port_transport *way_to(const char *port, const char *ca_file)
{
  port_posix_tcp(&server, "127.0.0.1", port);
#ifdef WITH_TLS
  static struct port_openssl tls;
  const struct port_openssl_config trust = {.ca_file = ca_file, .name = "localhost"};
  return port_openssl_init(&tls, &server.transport, &trust) == NULL ? &tls.transport : NULL;
#else
  (void)ca_file;
  return &server.transport;
#endif
}

static void service(void);

static void on_socket(uv_poll_t *handle, int status, int events)
{
  (void)handle;
  (void)status;
  (void)events;
  by_socket++;
  service();
}

static void on_due(uv_timer_t *handle)
{
  (void)handle;
  by_time++;
  service();
}

static void fail(int status)
{
  printf("failed: %s\n", fairlock_status_text(status));
  step = FAILED;
}

static void on_held_long_enough(uv_timer_t *handle)
{
  (void)handle;
  int status = fairlock_start_release(&door);
  step = RELEASING;
  if (status != FAIRLOCK_PENDING) fail(status);
  service();
}

static void free_handle(uv_handle_t *handle)
{
  free(handle);
}

static void drop_watcher(void)
{
  if (watcher != NULL) uv_close((uv_handle_t *)watcher, free_handle);
  watcher = NULL;
}

static void watch(void)
{
  unsigned wants = fairlock_wants(&client);
  int fd = port_posix_fd(&server);
  int events = 0;
  if (fd < 0) return;
  if (wants & FAIRLOCK_RECEIVE) events |= UV_READABLE;
  if (wants & (FAIRLOCK_SEND | FAIRLOCK_CONNECT)) events |= UV_WRITABLE;
  if (fd != watched) drop_watcher();
  if (watcher == NULL) {
    watcher = malloc(sizeof *watcher);
    if (watcher == NULL || uv_poll_init(&loop, watcher, fd) != 0) abort();
    watched = fd;
  }
  if (uv_poll_start(watcher, events, on_socket) != 0) abort();
}

/* What the program does with the lock, when an operation has ended. */
static void go_on(void)
{
  int status = fairlock_result(&door);
  if (status == FAIRLOCK_PENDING) return;
  if (step == WAITING && status == FAIRLOCK_OK) {
    printf("held after %u ms, woken by the time %u times, by the socket %u\n",
           (unsigned)(port_clock_ms() - began), by_time, by_socket);
    step = HOLDING;
    (void)uv_timer_start(&hold_timer, on_held_long_enough, hold_ms, 0);
  } else if (step == RELEASING && status == FAIRLOCK_OK) {
    printf("released\n");
    step = DONE;
  } else if (step != HOLDING) {
    fail(status);
  }
}

static void service(void)
{
  if (watcher != NULL) (void)uv_poll_stop(watcher);
  uint32_t due = fairlock_poll(&client, 0);
  if (step == WAITING || step == RELEASING) go_on();
  if (step == DONE || step == FAILED) {
    uv_stop(&loop);
    return;
  }
  watch();
  uv_update_time(&loop);
  (void)uv_timer_start(&due_timer, on_due, due > 0 ? (uint64_t)due + 1 : 0, 0);
}

int main(int count, char **arguments)
{
  if (count < 4) return 2;
  if (count > 4) config.waiter_ms = (uint32_t)strtoul(arguments[4], NULL, 10);
  setvbuf(stdout, NULL, _IOLBF, 0);
  hold_ms = strtoull(arguments[3], NULL, 10);
  struct port_transport *way = way_to(arguments[1], count > 5 ? arguments[5] : NULL);
  if (way == NULL || fairlock_client_init(&client, &config, way) != FAIRLOCK_OK) return 1;
  if (fairlock_init(&door, &client, arguments[2]) != FAIRLOCK_OK) return 1;
  if (uv_loop_init(&loop) != 0) return 1;
  (void)uv_timer_init(&loop, &due_timer);
  (void)uv_timer_init(&loop, &hold_timer);

  began = port_clock_ms();
  if (fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_PENDING) return 1;
  service();
  (void)uv_run(&loop, UV_RUN_DEFAULT);

  drop_watcher();
  uv_close((uv_handle_t *)&due_timer, NULL);
  uv_close((uv_handle_t *)&hold_timer, NULL);
  (void)uv_run(&loop, UV_RUN_DEFAULT); /* until all is closed */
  (void)uv_loop_close(&loop);
  (void)fairlock_deinit(&door);
  fairlock_client_deinit(&client);
  return step == DONE ? 0 : 1;
}
