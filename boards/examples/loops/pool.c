/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event loop and a pool of threads beside it, all of which want the same lock.
 *
 *     pool PORT NAME TURNS
 *
 * They have two clients. That of the loop is the loop's alone, as in epoll.c. That of the pool is
 * serviced by a thread inside fairlock_run(); the workers block in fairlock_acquire(), each with a
 * handle of its own, and tell the loop by an eventfd of what they have done. With one client for
 * all, the thread inside fairlock_run() would read the loop's grants, and the loop would hear of
 * them at its next heartbeat.
 *
 * The loop and each worker hold the lock TURNS times, in turn. The program says how long the
 * longest handover took, which is far from a heartbeat, and how often the loop was woken.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <fairlock/fairlock.h>
#include <fairlock/port_posix.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { WORKERS = 4, HOLD_MS = 5, WAITER_MS = 20000 /* a heartbeat each 8 s */ };

struct connection {
  struct port_posix socket;
  struct fairlock_config config;
  struct fairlock_client client;
  uint8_t received[1024], sent[1024];
};

static struct connection loops, pools;
static struct fairlock door, doors[WORKERS];
static uint64_t turns;
static int done;                     /* an eventfd: counts the workers' turns */
static _Atomic uint32_t released_at; /* by port_clock_ms() */
static uint32_t longest;             /* handover, in ms; only the holder writes it */

static void must(int status, int be)
{
  if (status == be) return;
  printf("failed: %s\n", fairlock_status_text(status));
  exit(1);
}

static void connect_to(struct connection *to, const char *port)
{
  port_posix_tcp(&to->socket, "127.0.0.1", port);
  to->config = (struct fairlock_config){.receive_buffer = to->received,
                                        .receive_size = sizeof to->received,
                                        .send_buffer = to->sent,
                                        .send_size = sizeof to->sent,
                                        .waiter_ms = WAITER_MS};
  must(fairlock_client_init(&to->client, &to->config, &to->socket.transport), FAIRLOCK_OK);
}

static void note_grant(void)
{
  uint32_t took = port_clock_ms() - atomic_load(&released_at);
  if (took > longest) longest = took;
}

static void *service(void *unused)
{
  must(fairlock_run(&pools.client), FAIRLOCK_OK);
  return unused;
}

static void *work(void *handle)
{
  uint64_t one = 1;
  for (uint64_t turn = 0; turn < turns; turn++) {
    must(fairlock_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_OK);
    note_grant();
    (void)usleep(HOLD_MS * 1000);
    atomic_store(&released_at, port_clock_ms());
    must(fairlock_release(handle), FAIRLOCK_OK);
    if (write(done, &one, sizeof one) != (ssize_t)sizeof one) exit(1);
  }
  return NULL;
}

/* Goes on with the loop's turns, which are short. True if it has done something. */
static bool go_on(uint64_t *left)
{
  static bool holds;
  if (*left == 0 || fairlock_result(&door) == FAIRLOCK_PENDING) return false;
  must(fairlock_result(&door), FAIRLOCK_OK);
  holds = !holds;
  if (holds) {
    note_grant();
    atomic_store(&released_at, port_clock_ms());
    must(fairlock_start_release(&door), FAIRLOCK_PENDING);
  } else if (--*left > 0) {
    must(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  }
  return true;
}

/* Sleeps until the socket or the workers have something, for at most `due` ms. */
static void rest(uint32_t due, uint64_t *busy)
{
  unsigned wants = fairlock_wants(&loops.client);
  struct pollfd fds[2] = {{.fd = port_posix_fd(&loops.socket)}, {.fd = done, .events = POLLIN}};
  uint64_t count = 0;
  if (wants & FAIRLOCK_RECEIVE) fds[0].events |= POLLIN;
  if (wants & (FAIRLOCK_SEND | FAIRLOCK_CONNECT)) fds[0].events |= POLLOUT;
  if (poll(fds, 2, due > INT32_MAX ? -1 : (int)due) < 0) exit(1);
  if (fds[1].revents != 0 && read(done, &count, sizeof count) == (ssize_t)sizeof count)
    *busy -= count;
}

int main(int count, char **arguments)
{
  pthread_t server, workers[WORKERS];
  if (count < 4) return 2;
  turns = strtoull(arguments[3], NULL, 10);
  uint64_t left = turns, busy = turns * WORKERS;
  unsigned woken = 0;
  done = eventfd(0, EFD_CLOEXEC);
  connect_to(&loops, arguments[1]);
  connect_to(&pools, arguments[1]);
  must(fairlock_init(&door, &loops.client, arguments[2]), FAIRLOCK_OK);
  atomic_store(&released_at, port_clock_ms());
  if (done < 0 || pthread_create(&server, NULL, service, NULL) != 0) return 1;
  for (int i = 0; i < WORKERS; i++) {
    must(fairlock_init(&doors[i], &pools.client, arguments[2]), FAIRLOCK_OK);
    if (pthread_create(&workers[i], NULL, work, &doors[i]) != 0) return 1;
  }
  must(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW), FAIRLOCK_PENDING);
  for (; left > 0 || busy > 0; woken++) {
    uint32_t due = fairlock_poll(&loops.client, 0);
    if (go_on(&left)) due = 0; /* it may have begun something: service the client first */
    rest(due, &busy);
  }
  for (int i = 0; i < WORKERS; i++) {
    (void)pthread_join(workers[i], NULL);
    must(fairlock_deinit(&doors[i]), FAIRLOCK_OK);
  }
  must(fairlock_deinit(&door), FAIRLOCK_OK);
  printf("%u turns, the longest handover %u ms, the loop woken %u times\n",
         (unsigned)turns * (WORKERS + 1), longest, woken);
  fairlock_stop(&pools.client);
  (void)pthread_join(server, NULL);
  fairlock_client_deinit(&pools.client);
  fairlock_client_deinit(&loops.client);
  return close(done);
}
