/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that are cancelled inside port/posix: each finishes what it was called for first.
 *
 * A thread that has cancelled itself ends at the first function that lets it, whether that waits or
 * not. So nothing here depends on who is faster.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "check.h"
#include "port_posix.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void (*called)(void);
static bool returned;

static void *call(void *context)
{
  int state;
  (void)context;
  (void)pthread_cancel(pthread_self());
  called();
  returned = true;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  CHECK_EQUAL(state, PTHREAD_CANCEL_ENABLE);
  (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  pthread_testcancel();
  return NULL;
}

/* Whether the function, called by a thread that is cancelled, returns, and the thread ends after it. */
static bool outlasts(void (*function)(void))
{
  pthread_t thread;
  void *result = NULL;
  called = function;
  returned = false;
  if (!CHECK_EQUAL(pthread_create(&thread, NULL, call, NULL), 0)) return false;
  CHECK_EQUAL(pthread_join(thread, &result), 0);
  return CHECK(returned) && CHECK(result == PTHREAD_CANCELED);
}

/* ---- tasks ---- */

static struct port_mutex mutex, inner;
static struct port_event event;

static void set_up_tasks(void)
{
  port_mutex_init(&mutex);
  port_mutex_init(&inner);
  port_event_init(&event);
}

static void tear_down_tasks(void)
{
  port_event_destroy(&event);
  port_mutex_destroy(&inner);
  port_mutex_destroy(&mutex);
}

/* As the client calls a function of the program, which writes a line. */
static void call_back(void)
{
  port_mutex_lock(&mutex);
  pthread_testcancel();
  port_mutex_lock(&inner);
  pthread_testcancel();
  port_mutex_unlock(&inner);
  pthread_testcancel();
  port_mutex_unlock(&mutex);
}

static void wait_in_vain(void)
{
  port_mutex_lock(&mutex);
  port_event_wait(&event, &mutex, 20);
  pthread_testcancel();
  port_mutex_unlock(&mutex);
}

static void wait_for_set(void)
{
  port_mutex_lock(&mutex);
  port_event_set(&event);
  port_event_wait(&event, &mutex, 20);
  pthread_testcancel();
  port_mutex_unlock(&mutex);
}

static void idle(void)
{
  port_idle(20);
}

static void test_tasks(void)
{
  set_up_tasks();
  /* one that ended inside leaves the mutex locked, for which the next would wait for ever */
  if (!outlasts(call_back) || !outlasts(wait_in_vain) || !outlasts(wait_for_set)) return;
  (void)outlasts(idle);
  CHECK_EQUAL(pthread_mutex_trylock(&mutex.mutex), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex.mutex), 0);
  tear_down_tasks();
}

static bool still_off;

static void *off_before(void *context)
{
  int state;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  wait_in_vain();
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  still_off = state == PTHREAD_CANCEL_DISABLE;
  return context;
}

/* A thread that has switched it off itself finds that as it was. */
static void test_off_before(void)
{
  pthread_t thread;
  set_up_tasks();
  CHECK_EQUAL(pthread_create(&thread, NULL, off_before, NULL), 0);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  CHECK(still_off);
  tear_down_tasks();
}

/* ---- the transport ---- */

static struct port_posix posix;
static struct port_transport *const transport = &posix.transport;
static int server = -1, peer = -1;
static char service[8];
static int status;

/* A server that has room for so many in its queue. */
static void listen_for(int backlog)
{
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  server = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQUAL(bind(server, (const struct sockaddr *)&address, sizeof address), 0);
  CHECK_EQUAL(listen(server, backlog), 0);
  CHECK_EQUAL(getsockname(server, (struct sockaddr *)&address, &size), 0);
  (void)snprintf(service, sizeof service, "%u", (unsigned)ntohs(address.sin_port));
}

static void connect_all_the_way(void)
{
  do
    status = transport->connect(transport->context, 100);
  while (status == PORT_WOULD_BLOCK);
}

static void close_it(void)
{
  transport->close(transport->context);
}

static void send_some(void)
{
  status = transport->send(transport->context, "ping", 4);
}

static void receive_what_is_there(void)
{
  char data[8];
  status = transport->recv(transport->context, data, sizeof data, 0);
}

static void receive_for_a_moment(void)
{
  char data[8];
  status = transport->recv(transport->context, data, sizeof data, 5);
}

static void receive_for_longer(void)
{
  char data[8];
  status = transport->recv(transport->context, data, sizeof data, 40);
}

static void connect_for_longer(void)
{
  status = transport->connect(transport->context, 40);
}

/* From connecting to closing, with this transport. */
static void check_connection(void)
{
  if (!outlasts(connect_all_the_way) || !CHECK_EQUAL(status, PORT_OK)) return;
  peer = accept(server, NULL, NULL);
  (void)outlasts(send_some);
  CHECK_EQUAL(status, 4);
  (void)outlasts(receive_what_is_there);
  (void)outlasts(receive_for_a_moment);
  (void)outlasts(receive_for_longer);
  CHECK_EQUAL(status, PORT_WOULD_BLOCK);
  int file = port_posix_fd(&posix);
  (void)outlasts(close_it);
  CHECK(write(file, "", 1) < 0);
  (void)close(peer);
}

static void test_transport(void)
{
  listen_for(4);
  port_posix_tcp(&posix, "127.0.0.1", service);
  check_connection();
  (void)close(server);
}

/* The name is looked up by a thread, for which the transport waits. */
static void test_name(void)
{
  listen_for(4);
  port_posix_tcp(&posix, "localhost", service);
  check_connection();
  (void)close(server);
}

/* The server's queue is full: it answers neither yes nor no. */
static void test_silent_server(void)
{
  int fillers[8];
  listen_for(0);
  port_posix_tcp(&posix, "127.0.0.1", service);
  for (int i = 0; i < 8; i++) {
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    CHECK_EQUAL(getsockname(server, (struct sockaddr *)&address, &size), 0);
    fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)connect(fillers[i], (const struct sockaddr *)&address, sizeof address);
  }
  (void)outlasts(connect_for_longer);
  CHECK_EQUAL(status, PORT_WOULD_BLOCK);
  (void)outlasts(connect_for_longer);
  (void)outlasts(close_it);
  for (int i = 0; i < 8; i++)
    (void)close(fillers[i]);
  (void)close(server);
}

/* A Unix server whose queue is full wants to be asked again. */
static void test_busy_server(void)
{
  char folder[] = "/tmp/fairlock-test-XXXXXX";
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct port_posix fillers[4];
  int filled = PORT_OK;
  CHECK(mkdtemp(folder) != NULL);
  (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/s", folder);
  server = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(bind(server, (const struct sockaddr *)&address, sizeof address), 0);
  CHECK_EQUAL(listen(server, 0), 0);
  for (int i = 0; i < 4; i++) {
    CHECK(port_posix_unix(&fillers[i], address.sun_path));
    filled = fillers[i].transport.connect(&fillers[i], 0);
  }
  CHECK_EQUAL(filled, PORT_WOULD_BLOCK);
  CHECK(port_posix_unix(&posix, address.sun_path));
  (void)outlasts(connect_for_longer);
  CHECK_EQUAL(status, PORT_WOULD_BLOCK);
  (void)outlasts(close_it);
  for (int i = 0; i < 4; i++)
    fillers[i].transport.close(&fillers[i]);
  (void)close(server);
  (void)unlink(address.sun_path);
  (void)rmdir(folder);
}

const struct check_test check_tests[] = {{"cancel: tasks", test_tasks},
                                         {"cancel: off before", test_off_before},
                                         {"cancel: transport", test_transport},
                                         {"cancel: name", test_name},
                                         {"cancel: silent server", test_silent_server},
                                         {"cancel: busy server", test_busy_server},
                                         {0}};
