/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that opens a door while it holds the lock door:7, for a tenth of a second each. One thread
 * services the client, and any number of others may acquire with it.
 */
#include <stdio.h>

#include "thread.h"
#include "ztimer.h"

#include "lwip/netif.h"
#include "lwip/tcpip.h"

#include "fairlock.h"
#include "fairlock_log.h"
#include "port_riot.h"

#ifdef MODULE_FAIRLOCK_CONFORMANCE
#include "conformance.h"
#endif

/* What the Makefile does not say. */
#ifndef SERVER_ADDRESS
#define SERVER_ADDRESS "192.0.2.2"
#endif
#ifndef SERVER_PORT
#define SERVER_PORT 6379
#endif
#ifndef HOLDS
#define HOLDS 10
#endif

#define HOLD_MS 100

static struct port_lwip server;
static char stack[THREAD_STACKSIZE_LARGE];

/* False: the server's address is none. */
static bool start_network(void)
{
  ip_addr_t address;
  if (!ipaddr_aton(SERVER_ADDRESS, &address)) return false;
#ifdef OWN_ADDRESS
  ip4_addr_t own, mask;
  if (!ip4addr_aton(OWN_ADDRESS, &own) || !ip4addr_aton(OWN_NETMASK, &mask)) return false;
  LOCK_TCPIP_CORE();
  netif_set_addr(netif_default, &own, &mask, NULL);
  UNLOCK_TCPIP_CORE();
#endif
  port_riot_init(&server, &address, SERVER_PORT);
  return true;
}

#ifdef MODULE_FAIRLOCK_CONFORMANCE

static struct {
  void (*run)(void *context);
  void *context;
} task;

static void print(const char *text)
{
  (void)fputs(text, stdout);
  (void)fflush(stdout);
}

static void *in_task(void *nothing)
{
  (void)nothing;
  task.run(task.context);
  return NULL;
}

/* The thread before has ended, or does at once: it has returned from run(). */
static bool start(void (*run)(void *context), void *context)
{
  task.run = run;
  task.context = context;
  ztimer_sleep(ZTIMER_MSEC, 20);
  return thread_create(stack, sizeof stack, THREAD_PRIORITY_MAIN, 0, in_task, NULL, "task") > 0;
}

static void work(void)
{
  const struct port_conformance port = {
      .transport = &server.transport, .write = print, .start = start};
  (void)port_conformance_run(&port);
}

#else

static unsigned char received[FAIRLOCK_RECEIVE_SIZE(16, 4)], sent[512];
static struct fairlock_client client;
static struct fairlock_log log_of_client;
static struct fairlock door;

/* Called if a hold ends before its time: close the door. */
static void lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  (void)handle;
  (void)context;
  puts("lost: the door is closed");
}

static const struct fairlock_config config = {
    .receive_buffer = received,
    .receive_size = sizeof received,
    .send_buffer = sent,
    .send_size = sizeof sent,
    .client_id = "riot",
    .lost = lost,
};

static void write_log(enum fairlock_log_event event, int status, const char *text, void *context)
{
  (void)status;
  (void)context;
  if (event == FAIRLOCK_LOG_CONNECTED) puts("connected");
  else printf("server: %s\n", text != NULL ? text : "");
}

static void *service(void *context)
{
  (void)context;
  fairlock_run(&client);
  return NULL;
}

/* False: the configuration is wrong. */
static bool start_client(void)
{
  int status = fairlock_client_init(&client, &config, &server.transport);
  if (status == FAIRLOCK_OK) status = fairlock_init(&door, &client, "door:7");
  if (status != FAIRLOCK_OK) {
    printf("fairlock: %s\n", fairlock_status_text(status));
    return false;
  }
  log_of_client.function = write_log;
  fairlock_set_log(&client, &log_of_client);
  return thread_create(stack, sizeof stack, THREAD_PRIORITY_MAIN - 1, 0, service, NULL,
                       "fairlock") > 0;
}

static void work(void)
{
  if (!start_client()) return;
  for (int holds = 0; holds < HOLDS;) {
    int status = fairlock_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    if (status != FAIRLOCK_OK) {
      printf("not acquired: %s\n", fairlock_status_text(status));
      ztimer_sleep(ZTIMER_MSEC, 1000);
      continue;
    }
    holds++;
    printf("held, fencing token %lu%09lu\n", (unsigned long)(fairlock_token(&door) / 1000000000U),
           (unsigned long)(fairlock_token(&door) % 1000000000U));
    ztimer_sleep(ZTIMER_MSEC, HOLD_MS); /* the work */
    printf("released: %s\n", fairlock_status_text(fairlock_release(&door)));
  }
}

#endif

int main(void)
{
  if (start_network()) work();
  puts("done");
  return 0;
}
