/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for NuttX's shell: it acquires a lock, holds it for a while, and releases it, some times
 * over, and prints a line for each.
 *
 *     fairlock_demo [HOST [PORT [NAME [ROUNDS [HOLD_MS]]]]]
 *
 * What is not given is as Kconfig says; ROUNDS is 10, and HOLD_MS 100. It ends with status 0 if each
 * round went well. All of a run's data is on its stack: two programs that run at the same time, and
 * two runs of one program, share what is static.
 */
#include <nuttx/config.h>

#include <fairlock/fairlock.h>
#include <fairlock/fairlock_log.h>
#include <fairlock/port_posix.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The number of a macro as a string. */
#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

struct demo {
  struct port_posix server;
  struct fairlock_config config;
  struct fairlock_client client;
  struct fairlock_log log;
  struct fairlock door;
  pthread_t servicing;
  unsigned char received[FAIRLOCK_RECEIVE_SIZE(CONFIG_EXAMPLES_FAIRLOCK_NAME_SIZE,
                                               sizeof CONFIG_EXAMPLES_FAIRLOCK_CLIENT_ID - 1)];
  unsigned char sent[CONFIG_EXAMPLES_FAIRLOCK_SEND_SIZE];
};

/* Called if a hold ends before its time: close the door. */
static void lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  (void)handle;
  (void)context;
  printf("lost: the door is closed\n");
}

static void write_log(enum fairlock_log_event event, int status, const char *text, void *context)
{
  const struct demo *demo = context;
  char why[PORT_POSIX_ERROR_SIZE];
  (void)status;
  port_posix_error(&demo->server, why, PORT_POSIX_ERROR_SIZE);
  if (event == FAIRLOCK_LOG_CONNECTED) printf("connected\n");
  else printf("server: %s (%s)\n", text != NULL ? text : "", why);
}

/* Renews the lease while the program works. */
static void *service(void *context)
{
  struct demo *demo = context;
  fairlock_run(&demo->client);
  return NULL;
}

static bool start_servicing(struct demo *demo)
{
  pthread_attr_t attributes;
  (void)pthread_attr_init(&attributes);
  (void)pthread_attr_setstacksize(&attributes, CONFIG_EXAMPLES_FAIRLOCK_STACKSIZE);
  bool started = pthread_create(&demo->servicing, &attributes, service, demo) == 0;
  (void)pthread_attr_destroy(&attributes);
  return started;
}

static int start(struct demo *demo, const char *host, const char *port, const char *name)
{
  demo->config = (struct fairlock_config){
      .receive_buffer = demo->received,
      .receive_size = sizeof demo->received,
      .send_buffer = demo->sent,
      .send_size = sizeof demo->sent,
      .client_id = CONFIG_EXAMPLES_FAIRLOCK_CLIENT_ID,
      .lease_ms = CONFIG_EXAMPLES_FAIRLOCK_LEASE_MS,
      .waiter_ms = CONFIG_EXAMPLES_FAIRLOCK_WAITER_MS,
      .lost = lost,
  };
  port_posix_tcp(&demo->server, host, port);
  int status = fairlock_client_init(&demo->client, &demo->config, &demo->server.transport);
  if (status != FAIRLOCK_OK) return status;
  demo->log = (struct fairlock_log){.function = write_log, .context = demo};
  fairlock_set_log(&demo->client, &demo->log);
  status = fairlock_init(&demo->door, &demo->client, name);
  if (status != FAIRLOCK_OK) fairlock_client_deinit(&demo->client);
  return status;
}

/* One hold. Returns the status of what failed. */
static int hold(struct fairlock *door, unsigned hold_ms)
{
  uint32_t began = port_clock_ms();
  int status = fairlock_acquire(door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  if (status != FAIRLOCK_OK) return status;
  printf("held, fencing token %llu, after %lu ms\n", (unsigned long long)fairlock_token(door),
         (unsigned long)(port_clock_ms() - began));
  (void)usleep(hold_ms * 1000U); /* the work; before each step of it, ask fairlock_remaining_ms() */
  status = fairlock_release(door);
  printf("released: %s\n", fairlock_status_text(status));
  return status;
}

int main(int argc, char *argv[])
{
  struct demo demo;
  int failed = 0;
  const char *host = argc > 1 ? argv[1] : CONFIG_EXAMPLES_FAIRLOCK_HOST;
  const char *port = argc > 2 ? argv[2] : TEXT(CONFIG_EXAMPLES_FAIRLOCK_PORT);
  const char *name = argc > 3 ? argv[3] : CONFIG_EXAMPLES_FAIRLOCK_NAME;
  unsigned rounds = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 10;
  unsigned hold_ms = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 100;

  int status = start(&demo, host, port, name);
  if (status != FAIRLOCK_OK || !start_servicing(&demo)) {
    printf("not started: %s\n", fairlock_status_text(status));
    return EXIT_FAILURE;
  }
  for (unsigned i = 0; i < rounds; i++) {
    status = hold(&demo.door, hold_ms);
    if (status == FAIRLOCK_OK) continue;
    printf("not held: %s\n", fairlock_status_text(status));
    failed++;
  }
  fairlock_stop(&demo.client);
  (void)pthread_join(demo.servicing, NULL);
  (void)fairlock_deinit(&demo.door);
  fairlock_client_deinit(&demo.client);
  printf("done: %u of %u rounds\n", rounds - (unsigned)failed, rounds);
  return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
