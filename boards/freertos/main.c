/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole application on FreeRTOS with lwIP: one task services the client, another opens a valve
 * while it holds the lock "valve:7". README.md says what to build it with; `make freertos` runs it
 * on a simulated board.
 *
 * Yours are SERVER_ADDRESS and SERVER_PORT, board_init(), board_print(), and the clock of port.h,
 * port_clock_ms().
 */
#include "FreeRTOS.h"
#include "task.h"

#include "lwip/ip_addr.h"

#include "fairlock.h"
#include "fairlock_log.h"
#include "port_freertos.h"

#ifndef SERVER_ADDRESS
#define SERVER_ADDRESS "192.0.2.7"
#endif
#ifndef SERVER_PORT
#define SERVER_PORT 6379
#endif

enum { WAIT_MS = 60000, WORK_MS = 500, REST_MS = 200, AGAIN_MS = 1000 };

/* In words of a StackType_t, 4 bytes. What the library needs of it: boards/README.md. */
enum { STACK_WORDS = 384 };

/* The network has to make progress while these two compute, so lwIP's task is above them. */
enum { WORK_PRIORITY = 1, SERVICE_PRIORITY = 2 };

/* Starts clock, pins and lwIP: tcpip_init(), netif_add(), netif_set_up(). No link is needed yet. */
bool board_init(void);

/* Writes to the console, from any task. */
void board_print(const char *text);

static struct port_lwip server;
static struct fairlock_client client;
static struct fairlock valve;
static struct fairlock_log events;
static unsigned char received[FAIRLOCK_RECEIVE_SIZE(16, 8)], sent[512];

static StaticTask_t service_memory, work_memory;
static StackType_t service_stack[STACK_WORDS], work_stack[STACK_WORDS];

static volatile bool valve_open;

static void say(const char *text, const char *more)
{
  board_print(text);
  board_print(more);
  board_print("\n");
}

/*
 * The hold has ended before it was released: shut the valve at once. Called in whichever task is
 * inside the client, so it must be short, and must not call the library.
 */
static void lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  (void)handle;
  (void)context;
  valve_open = false;
  board_print("lost: the valve is shut\n");
}

/* Each connection that is made, refused or ended. The transport knows best why one is not made. */
static void note(enum fairlock_log_event event, int status, const char *text, void *context)
{
  (void)status;
  (void)context;
  const char *reason = event == FAIRLOCK_LOG_NOT_CONNECTED ? port_lwip_error(&server) : "";
  if (event == FAIRLOCK_LOG_CONNECTED) say("connected", "");
  else say("server: ", reason[0] != 0 || text == NULL ? reason : text);
}

static const struct fairlock_config config = {
    .receive_buffer = received,
    .receive_size = sizeof received,
    .send_buffer = sent,
    .send_size = sizeof sent,
    .client_id = "board",
    .lost = lost,
};

/* Renews the lease, whatever the other task does. */
static void service(void *nothing)
{
  (void)nothing;
  for (;;)
    (void)fairlock_run(&client);
}

/* The work, in steps that are short beside the lease. */
static void use_valve(void)
{
  valve_open = true;
  for (int ms = 0; ms < WORK_MS && valve_open; ms += 10)
    vTaskDelay(pdMS_TO_TICKS(10));
  valve_open = false;
}

static void work(void *nothing)
{
  char token[RESP_NUMBER_SIZE + 1];
  (void)nothing;
  for (;;) {
    int status = fairlock_acquire(&valve, WAIT_MS, FAIRLOCK_RENEW);
    if (status != FAIRLOCK_OK) {
      say("not acquired: ", fairlock_status_text(status));
      vTaskDelay(pdMS_TO_TICKS(AGAIN_MS));
      continue;
    }
    token[resp_format_number(token, (int64_t)fairlock_token(&valve))] = 0;
    say("held, fencing token ", token);
    use_valve();
    say("released: ", fairlock_status_text(fairlock_release(&valve)));
    vTaskDelay(pdMS_TO_TICKS(REST_MS));
  }
}

/* Before the scheduler runs, or in a task once lwIP has been started. */
static bool start_lock(void)
{
  ip_addr_t address;
  if (!ipaddr_aton(SERVER_ADDRESS, &address)) return false;
  port_lwip_init(&server, &port_freertos_hooks, &address, SERVER_PORT);
  if (fairlock_client_init(&client, &config, &server.transport) != FAIRLOCK_OK) return false;
  events.function = note;
  if (fairlock_set_log(&client, &events) != FAIRLOCK_OK) return false;
  if (fairlock_init(&valve, &client, "valve:7") != FAIRLOCK_OK) return false;
  (void)xTaskCreateStatic(service, "service", STACK_WORDS, NULL, SERVICE_PRIORITY, service_stack,
                          &service_memory);
  (void)xTaskCreateStatic(work, "work", STACK_WORDS, NULL, WORK_PRIORITY, work_stack, &work_memory);
  return true;
}

int main(void)
{
  if (!board_init() || !start_lock()) return 1;
  vTaskStartScheduler();
  return 1;
}
