/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of different priorities on FreeRTOS that share one client, and with it one connection, as
 * boards/examples/tasks.c does on the small kernel. This tests port/freertos and, over lwIP's
 * sockets, port/sockets.
 *
 * Arguments: the server's port; how many rounds for each task (10); 1 if a separate task keeps
 * leases alive, 0 if the waiting tasks do; 1 to use sockets, 2 with the server's name, 0 the hooks of
 * port/freertos; 1 if the connection may break; 1 to run the conformance test of ports instead, with the port of its peer.
 */
#include "board.h"
#include "fairlock.h"
#include "network.h"
#include "port_freertos.h"
#include "port_sockets.h"
#include "system.h"
#include "tasks_conformance.h"

#include "task.h"

enum { WORKERS = 3, STACK_WORDS = 384, ROUND_MS = 2, SHORT_WAITS_MS = 200 };
enum { LOWEST, LOW, MIDDLE }; /* below those of system.c and of lwIP */

struct task {
  StaticTask_t memory;
  TaskHandle_t handle;
  StackType_t stack[STACK_WORDS];
};

struct worker {
  struct task task;
  struct fairlock handle;
};

static struct worker workers[WORKERS];
static struct task runner, computer;
static struct fairlock_client client;
static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
static uint8_t send_buffer[512];
static const struct fairlock_config config = {
    .receive_buffer = receive_buffer,
    .receive_size = sizeof receive_buffer,
    .send_buffer = send_buffer,
    .send_size = sizeof send_buffer,
};

/* What the lock guards. */
static volatile bool inside;
static volatile uint32_t rounds_done, clashes;

static volatile uint32_t failures, workers_done; /* changed in critical sections of the kernel's */
static volatile uint32_t short_waits;            /* in SHORT_WAITS_MS */
static uint32_t rounds;
static bool may_break;

static void report(const char *what, size_t number)
{
  board_write(what);
  board_write_number((uint32_t)number);
  board_write("\n");
}

static _Noreturn void finish(void)
{
  report("rounds ", rounds_done);
  report("clashes ", clashes);
  report("failures ", failures);
  report("short waits ", short_waits);
  for (int i = 0; i < WORKERS; i++)
    report("stack unused ",
           sizeof(StackType_t) * uxTaskGetStackHighWaterMark(workers[i].task.handle));
  board_exit(clashes == 0 && failures == 0 && short_waits <= SHORT_WAITS_MS / portTICK_PERIOD_MS + 2
                 ? 0
                 : 1);
}

static void critical_section(struct fairlock *handle)
{
  static uint64_t last_token;
  uint64_t token = fairlock_token(handle);
  if (inside || token <= last_token) clashes++;
  inside = true;
  last_token = token;
  vTaskDelay(pdMS_TO_TICKS(ROUND_MS));
  inside = false;
  rounds_done++;
}

static void fail(const char *what, int status)
{
  taskENTER_CRITICAL();
  failures++;
  board_write(what);
  board_write(fairlock_status_name(status));
  board_write("\n");
  taskEXIT_CRITICAL();
}

static void one_round(struct fairlock *handle)
{
  int status = fairlock_acquire(handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  if (status != FAIRLOCK_OK) {
    fail("acquire: ", status);
    return;
  }
  critical_section(handle);
  status = fairlock_release(handle);
  /* sent twice, and others have held since the first time */
  if (status == FAIRLOCK_UNKNOWN && may_break) return;
  if (status != FAIRLOCK_OK) fail("release: ", status);
}

static void work(void *context)
{
  struct worker *worker = context;
  for (uint32_t i = 0; i < rounds; i++)
    one_round(&worker->handle);
  taskENTER_CRITICAL();
  bool last = ++workers_done == WORKERS;
  taskEXIT_CRITICAL();
  if (last) finish();
  vTaskSuspend(NULL);
}

static void run_client(void *context)
{
  (void)context;
  for (;;)
    fairlock_run(&client);
}

/* A wait that is shorter than a tick must still wait. */
static void count_short_waits(void)
{
  static struct port_mutex mutex;
  static struct port_event event;
  uint32_t began = port_clock_ms();
  port_mutex_init(&mutex);
  port_event_init(&event);
  port_mutex_lock(&mutex);
  for (; port_clock_ms() - began < SHORT_WAITS_MS; short_waits++)
    port_event_wait(&event, &mutex, 1);
}

/* A task that never blocks, except at first: the others run because they preempt it. */
static void compute(void *context)
{
  (void)context;
  count_short_waits();
  for (volatile uint32_t i = 0;; i++)
    continue;
}

static void start(struct task *task, TaskFunction_t run, void *context, const char *name,
                  UBaseType_t priority)
{
  task->handle =
      xTaskCreateStatic(run, name, STACK_WORDS, context, priority, task->stack, &task->memory);
}

/* By lwIP's hooks, by a socket to an address, or by one to a name that lwipopts.h lists. */
enum { BY_HOOKS, BY_ADDRESS, BY_NAME };

static struct port_transport *transport(uint16_t port, uint32_t how)
{
  static struct port_sockets sockets;
  static struct port_lwip link;
  const ip_addr_t host = IPADDR4_INIT(lwip_htonl(NETWORK_HOST));
  if (how == BY_NAME) port_sockets_host(&sockets, "redis.example", port);
  else port_sockets_init(&sockets, NETWORK_HOST, port);
  port_lwip_init(&link, &port_freertos_hooks, &host, port);
  return how != BY_HOOKS ? &sockets.transport : &link.transport;
}

static bool start_workers(struct port_transport *link)
{
  if (fairlock_client_init(&client, &config, link) != FAIRLOCK_OK) return false;
  for (int i = 0; i < WORKERS; i++) {
    if (fairlock_init(&workers[i].handle, &client, "press") != FAIRLOCK_OK) return false;
    start(&workers[i].task, work, &workers[i], "worker", i == 0 ? MIDDLE : LOW);
  }
  if (board_argument_number(3, 1) == 1) start(&runner, run_client, NULL, "runner", MIDDLE);
  start(&computer, compute, NULL, "computer", LOWEST);
  return true;
}

int main(void)
{
  rounds = board_argument_number(2, 10);
  may_break = board_argument_number(5, 0) == 1;
  if (!board_init()) return 1;
  struct port_transport *link =
      transport((uint16_t)board_argument_number(1, 6379), board_argument_number(4, BY_HOOKS));
  if (board_argument_number(6, 0) == 1) conformance_start(link, MIDDLE);
  else if (!start_workers(link)) return 1;
  vTaskStartScheduler();
  return 1;
}
