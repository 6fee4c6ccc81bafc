/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that opens a door while it holds the lock door:7: ten times, for a tenth of a second
 * each.
 */
#include "pico/cyw43_arch.h"
#include "pico/stdlib.h"

#include "fairlock.h"
#include "fairlock_pico.h"

#include <stdio.h>

#define HOLDS   10
#define HOLD_MS 100

static unsigned char receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
static unsigned char send_buffer[512];
static struct port_lwip_seeds server;
static struct fairlock_client client;
static struct fairlock door;

/* Called if a hold ends before its time: close the door. */
static void lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  (void)handle;
  (void)context;
  printf("lost: the door is closed\n");
}

static const struct fairlock_config config = {
    .receive_buffer = receive_buffer,
    .receive_size = sizeof receive_buffer,
    .send_buffer = send_buffer,
    .send_size = sizeof send_buffer,
    .lost = lost,
};

/* The work. Meanwhile the client is serviced, which renews the hold. */
static void hold(void)
{
  printf("held, fencing token %llu\n", (unsigned long long)fairlock_token(&door));
  absolute_time_t end = make_timeout_time_ms(HOLD_MS);
  while (!time_reached(end))
    (void)fairlock_poll(&client, 10);
  printf("released: %s\n", fairlock_status_text(fairlock_release(&door)));
}

static int fail(const char *what)
{
  printf("%s\n", what);
  return 1;
}

int main(void)
{
  stdio_init_all();
  if (cyw43_arch_init() != 0) return fail("no Wi-Fi chip");
  cyw43_arch_enable_sta_mode();
  while (cyw43_arch_wifi_connect_timeout_ms(WIFI_SSID, WIFI_PASSWORD, CYW43_AUTH_WPA2_AES_PSK,
                                            30000) != 0)
    printf("no Wi-Fi yet\n");
  if (!port_lwip_init_seeds(&server, &fairlock_pico_hooks, SERVER))
    return fail("SERVER: HOST:PORT");
  int status = fairlock_client_init(&client, &config, &server.lwip.transport);
  if (status == FAIRLOCK_OK) status = fairlock_init(&door, &client, "door:7");
  if (status != FAIRLOCK_OK) return fail(fairlock_status_text(status));
  for (int i = 0; i < HOLDS; i++) {
    status = fairlock_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    if (status == FAIRLOCK_OK) hold();
    else printf("not held: %s\n", fairlock_status_text(status));
  }
  fairlock_client_deinit(&client);
  cyw43_arch_deinit();
  return 0;
}
