/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several tasks that share one client, and with it one connection: each has a handle, and they take
 * turns at a lock with blocking calls, as if each were alone. They are preempted at any moment, by
 * each other and by a task that only computes. Only the distributed lock guards what they share, so
 * a mistake would show.
 *
 * Arguments: the server's port; how many rounds for each task (10); and 1 if a separate task keeps
 * leases alive (fairlock_run), 0 if the waiting tasks do, which is enough for holds shorter than
 * the lease.
 */
#include "board.h"
#include "fairlock.h"
#include "kernel.h"
#include "network.h"

enum { WORKERS = 3, STACK_WORDS = 320 };

struct worker {
  struct kernel_task task;
  struct fairlock handle;
  uint32_t stack[STACK_WORDS] __attribute__((aligned(8)));
};

static struct worker workers[WORKERS];
static struct kernel_task runner, computer;
static uint32_t runner_stack[STACK_WORDS] __attribute__((aligned(8)));
static uint32_t computer_stack[64] __attribute__((aligned(8)));

static struct fairlock_client client;
static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
static uint8_t send_buffer[512];
static const struct fairlock_config config = {
    .receive_buffer = receive_buffer,
    .receive_size = sizeof receive_buffer,
    .send_buffer = send_buffer,
    .send_size = sizeof send_buffer,
};

/* Only the task that has this mutex may use lwIP. */
static struct port_mutex network;

static void network_lock(void)
{
  port_mutex_lock(&network);
}

static void network_unlock(void)
{
  port_mutex_unlock(&network);
}

static void turn_network(uint32_t timeout_ms)
{
  network_lock();
  bool arrived = network_look();
  network_unlock();
  if (!arrived && timeout_ms > 0) kernel_sleep(1);
}

static const struct port_lwip_hooks hooks = {turn_network, network_lock, network_unlock};

/* What the lock guards. */
static volatile bool inside;
static volatile uint32_t rounds_done, clashes, failures, finished;
static uint32_t rounds;

static void critical_section(struct fairlock *handle)
{
  static uint64_t last_token;
  uint64_t token = fairlock_token(handle);
  if (inside || token <= last_token) clashes++;
  inside = true;
  last_token = token;
  kernel_sleep(2);
  inside = false;
  rounds_done++;
}

static void work(void *context)
{
  struct worker *worker = context;
  for (uint32_t i = 0; i < rounds; i++) {
    if (fairlock_acquire(&worker->handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_OK) {
      failures++;
      continue;
    }
    critical_section(&worker->handle);
    if (fairlock_release(&worker->handle) != FAIRLOCK_OK) failures++;
  }
  /* only now has everybody released, too */
  network_lock();
  bool last = ++finished == WORKERS;
  network_unlock();
  if (last) kernel_stop();
  for (;;)
    kernel_sleep(KERNEL_FOREVER);
}

static void run_client(void *context)
{
  (void)context;
  for (;;)
    fairlock_run(&client);
}

/* A task that never blocks: the others run because they preempt it. */
static void compute(void *context)
{
  (void)context;
  for (volatile uint32_t i = 0;; i++)
    continue;
}

static void report(const char *what, size_t number)
{
  board_write(what);
  board_write_number((uint32_t)number);
  board_write("\n");
}

int main(void)
{
  static struct port_lwip link;
  const ip_addr_t host = IPADDR4_INIT(lwip_htonl(NETWORK_HOST));
  rounds = board_argument_number(2, 10);
  port_mutex_init(&network);
  if (!network_init()) return 1;
  port_lwip_init(&link, &hooks, &host, (uint16_t)board_argument_number(1, 6379));
  if (fairlock_client_init(&client, &config, &link.transport) != FAIRLOCK_OK) return 1;
  for (int i = 0; i < WORKERS; i++) {
    if (fairlock_init(&workers[i].handle, &client, "press") != FAIRLOCK_OK) return 1;
    kernel_add(&workers[i].task, work, &workers[i], workers[i].stack, STACK_WORDS);
  }
  if (board_argument_number(3, 1) == 1)
    kernel_add(&runner, run_client, NULL, runner_stack, STACK_WORDS);
  kernel_add(&computer, compute, NULL, computer_stack, 64);
  kernel_run();
  report("rounds ", rounds_done);
  report("clashes ", clashes);
  report("failures ", failures);
  for (int i = 0; i < WORKERS; i++)
    report("stack unused ", kernel_stack_unused(&workers[i].task));
  return rounds_done == WORKERS * rounds && clashes == 0 && failures == 0 ? 0 : 1;
}
