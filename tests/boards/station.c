/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A firmware that acquires, holds and releases for ever, and says what it does; the test decides
 * what happens to it. Every line of its log reports one event: waiting, held TOKEN, lost, released
 * STATUS, failed STATUS. Arguments: the server's port, the lock's name, for how long to hold and to
 * rest, ms, the lease, and what the clock starts at.
 */
#include "board.h"
#include "fairlock.h"
#include "link.h"
#include "resp.h"

static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
static uint8_t send_buffer[512];
static struct fairlock_client client;
static struct fairlock handle;

static void lost(struct fairlock *of, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  (void)of;
  (void)context;
  board_write("lost\n");
}

static void say(const char *what, int64_t number)
{
  char text[RESP_NUMBER_SIZE + 1];
  text[resp_format_number(text, number)] = 0;
  board_write(what);
  board_write(text);
  board_write("\n");
}

/* Services the client for a while, and no longer than the hold lasts if there must be one. */
static void spend(uint32_t ms, bool holding)
{
  uint32_t began = port_clock_ms();
  while (port_clock_ms() - began < ms && (!holding || fairlock_remaining_ms(&handle) > 0))
    fairlock_poll(&client, 20);
}

int main(void)
{
  static struct fairlock_config config = {
      .receive_buffer = receive_buffer,
      .receive_size = sizeof receive_buffer,
      .send_buffer = send_buffer,
      .send_size = sizeof send_buffer,
      .offline_ms = FAIRLOCK_FOREVER,
      .lost = lost,
  };
  static char name[16];
  const char *argument = board_argument(2);
  for (unsigned i = 0; argument != NULL && i < sizeof name - 1 && argument[i] != 0; i++)
    name[i] = argument[i];
  uint32_t hold_ms = board_argument_number(3, 1000);
  uint32_t rest_ms = board_argument_number(4, 1000);
  config.lease_ms = board_argument_number(5, 3000);
  board_clock_set(board_argument_number(6, 0));
  if (!link_start(&client, &config) || fairlock_init(&handle, &client, name) != FAIRLOCK_OK)
    return 1;
  for (;;) {
    board_write("waiting\n");
    int status = fairlock_acquire(&handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    if (status != FAIRLOCK_OK) {
      say("failed ", status);
    } else {
      say("held ", (int64_t)fairlock_token(&handle));
      spend(hold_ms, true);
      say("released ", fairlock_release(&handle));
    }
    spend(rest_ms, false);
  }
}
