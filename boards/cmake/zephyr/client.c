/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of fairlock_zephyr.h. Its log goes to Zephyr's: what an operator has to look at as a
 * warning, what comes and goes as information.
 */
#include "fairlock_log.h"
#include "fairlock_zephyr.h"

#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>

LOG_MODULE_REGISTER(fairlock, CONFIG_FAIRLOCK_LOG_LEVEL);

/* The number of a macro as a string. */
#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

static K_THREAD_STACK_DEFINE(stack, CONFIG_FAIRLOCK_STACK_SIZE);

static struct k_thread thread;
static struct port_zephyr server;
static struct fairlock_client client;
static struct fairlock_log log_of_client;
static unsigned char receive_buffer[FAIRLOCK_RECEIVE_SIZE(CONFIG_FAIRLOCK_NAME_SIZE,
                                                          sizeof CONFIG_FAIRLOCK_CLIENT_ID - 1)];
static unsigned char send_buffer[CONFIG_FAIRLOCK_SEND_SIZE];
static struct fairlock_config config = {
    .receive_buffer = receive_buffer,
    .receive_size = sizeof receive_buffer,
    .send_buffer = send_buffer,
    .send_size = sizeof send_buffer,
    .client_id = CONFIG_FAIRLOCK_CLIENT_ID,
    .lease_ms = CONFIG_FAIRLOCK_LEASE_MS,
    .waiter_ms = CONFIG_FAIRLOCK_WAITER_MS,
};

static fairlock_lost_fn tell;

static void lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  LOG_ERR("a lock is lost");
  if (tell != NULL) tell(handle, loss, context);
}

static void write_log(enum fairlock_log_event event, int status, const char *text, void *context)
{
  (void)status;
  (void)context;
  switch (event) {
  case FAIRLOCK_LOG_CONNECTED:
    LOG_INF("connected");
    break;
  case FAIRLOCK_LOG_NOT_CONNECTED:
    LOG_WRN("not connected: %s (errno %d)", text, port_zephyr_error(&server));
    break;
  case FAIRLOCK_LOG_DISCONNECTED:
    LOG_WRN("disconnected: %s", text);
    break;
  case FAIRLOCK_LOG_REDIRECTED:
    LOG_WRN("sent elsewhere: %s", text);
    break;
  case FAIRLOCK_LOG_REFUSED:
    LOG_WRN("refused: %s", text);
    break;
  case FAIRLOCK_LOG_ASKED:
    LOG_WRN("asked to release the hold with token %s", text);
    break;
  case FAIRLOCK_LOG_BROKEN:
    LOG_WRN("told that the hold was broken: %s", text);
    break;
  }
}

static void service(void *first, void *second, void *third)
{
  (void)first;
  (void)second;
  (void)third;
  fairlock_run(&client);
}

#ifdef CONFIG_FAIRLOCK_TLS
static void use_tls(void)
{
  static const sec_tag_t tags[] = {CONFIG_FAIRLOCK_TLS_SEC_TAG};
  const char *name = CONFIG_FAIRLOCK_TLS_HOSTNAME;
  port_zephyr_tls(&server, tags, 1, name[0] != 0 ? name : NULL);
}
#endif

struct fairlock_client *fairlock_zephyr_start(fairlock_lost_fn on_loss, void *context)
{
  port_zephyr_tcp(&server, CONFIG_FAIRLOCK_SERVER_HOST, TEXT(CONFIG_FAIRLOCK_SERVER_PORT));
#ifdef CONFIG_FAIRLOCK_TLS
  use_tls();
#endif
  tell = on_loss;
  config.lost = lost;
  config.lost_context = context;
  int status = fairlock_client_init(&client, &config, &server.transport);
  if (status != FAIRLOCK_OK) {
    LOG_ERR("CONFIG_FAIRLOCK_...: %s", fairlock_status_text(status));
    return NULL;
  }
  log_of_client.function = write_log;
  fairlock_set_log(&client, &log_of_client);
  k_tid_t id = k_thread_create(&thread, stack, K_THREAD_STACK_SIZEOF(stack), service, NULL, NULL,
                               NULL, CONFIG_FAIRLOCK_THREAD_PRIORITY, 0, K_NO_WAIT);
  (void)k_thread_name_set(id, "fairlock");
  return &client;
}

const struct port_zephyr *fairlock_zephyr_transport(void)
{
  return &server;
}
