/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that opens a door while it holds the lock door:7: ten times, for a tenth of a second
 * each. One task services the client, and any number of others may acquire with it.
 */
#include "esp_event.h"
#include "esp_log.h"
#include "esp_netif.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "nvs_flash.h"
#include "protocol_examples_common.h"
#include "sdkconfig.h"

#include "fairlock.h"
#include "fairlock_log.h"
#include "port_sockets.h"

#ifdef CONFIG_FAIRLOCK_TLS
#include "fairlock_esp_tls.h"
#endif

#define HOLDS   10
#define HOLD_MS 100

static const char TAG[] = "door";

static unsigned char receive_buffer[FAIRLOCK_RECEIVE_SIZE(CONFIG_FAIRLOCK_NAME_SIZE,
                                                          sizeof CONFIG_FAIRLOCK_CLIENT_ID - 1)];
static unsigned char send_buffer[CONFIG_FAIRLOCK_SEND_SIZE];
static struct port_sockets server;
static struct fairlock_client client;
static struct fairlock_log log_of_client;
static struct fairlock door;

/* Called if a hold ends before its time: close the door. */
static void lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  (void)handle;
  (void)context;
  ESP_LOGE(TAG, "lost: the door is closed");
}

static const struct fairlock_config config = {
    .receive_buffer = receive_buffer,
    .receive_size = sizeof receive_buffer,
    .send_buffer = send_buffer,
    .send_size = sizeof send_buffer,
    .client_id = CONFIG_FAIRLOCK_CLIENT_ID,
    .lease_ms = CONFIG_FAIRLOCK_LEASE_MS,
    .waiter_ms = CONFIG_FAIRLOCK_WAITER_MS,
    .lost = lost,
};

static void write_log(enum fairlock_log_event event, int status, const char *text, void *context)
{
  (void)status;
  (void)context;
  if (event == FAIRLOCK_LOG_CONNECTED) ESP_LOGI(TAG, "connected");
  else if (event == FAIRLOCK_LOG_ASKED)
    ESP_LOGW(TAG, "asked to release the hold with token %s", text);
  else if (event == FAIRLOCK_LOG_BROKEN) ESP_LOGW(TAG, "told that the hold was broken: %s", text);
  else ESP_LOGW(TAG, "connection: %s", text);
}

static void service(void *context)
{
  (void)context;
  fairlock_run(&client);
  vTaskDelete(NULL);
}

/* NULL: main/ca.pem, which is in the image, has no certificates. */
static struct port_transport *transport(void)
{
  port_sockets_host(&server, CONFIG_FAIRLOCK_SERVER_HOST, CONFIG_FAIRLOCK_SERVER_PORT);
#ifdef CONFIG_FAIRLOCK_TLS
  extern const unsigned char ca[] __asm__("_binary_ca_pem_start");
  extern const unsigned char end_of_ca[] __asm__("_binary_ca_pem_end");
  static const char name[] = CONFIG_FAIRLOCK_TLS_HOSTNAME;
  return fairlock_esp_tls(&server.transport, ca, (size_t)(end_of_ca - ca),
                          name[0] != 0 ? name : CONFIG_FAIRLOCK_SERVER_HOST);
#else
  return &server.transport;
#endif
}

/* False: the configuration is wrong. */
static bool start_client(void)
{
  struct port_transport *link = transport();
  if (link == NULL) {
    ESP_LOGE(TAG, "main/ca.pem is not a certificate");
    return false;
  }
  int status = fairlock_client_init(&client, &config, link);
  if (status == FAIRLOCK_OK) status = fairlock_init(&door, &client, "door:7");
  if (status != FAIRLOCK_OK) {
    ESP_LOGE(TAG, "fairlock: %s", fairlock_status_text(status));
    return false;
  }
  log_of_client.function = write_log;
  fairlock_set_log(&client, &log_of_client);
  return xTaskCreate(service, "fairlock", CONFIG_FAIRLOCK_STACK_SIZE, NULL,
                     CONFIG_FAIRLOCK_TASK_PRIORITY, NULL) == pdPASS;
}

void app_main(void)
{
  ESP_ERROR_CHECK(nvs_flash_init());
  ESP_ERROR_CHECK(esp_netif_init());
  ESP_ERROR_CHECK(esp_event_loop_create_default());
  ESP_ERROR_CHECK(example_connect());
  if (!start_client()) return;
  for (int holds = 0; holds < HOLDS;) {
    int status = fairlock_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    if (status != FAIRLOCK_OK) {
      ESP_LOGW(TAG, "not acquired: %s", fairlock_status_text(status));
      vTaskDelay(pdMS_TO_TICKS(1000));
      continue;
    }
    holds++;
    ESP_LOGI(TAG, "held, fencing token %llu", (unsigned long long)fairlock_token(&door));
    vTaskDelay(pdMS_TO_TICKS(HOLD_MS)); /* the work */
    ESP_LOGI(TAG, "released: %s", fairlock_status_text(fairlock_release(&door)));
  }
  ESP_LOGI(TAG, "done");
}
