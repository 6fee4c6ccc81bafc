/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that is reset while it holds: the watchdog bites, or somebody presses the button. The
 * server is not told, so the lock would stay held until its lease ends, for this device as for all
 * others. It keeps the fencing token in RAM that a reset leaves alone, and gives the hold back after
 * the start, before anything else. That hold may have ended long ago, and somebody else may hold:
 * then the token is an old one, and nothing is done.
 *
 * First of all, a device that starts must be safe without the lock: its motor stands. It loses its
 * place to those who wait, as it would by a release.
 *
 * Arguments: the server's port, for how long to hold, in ms (1000), and the lease (30000).
 */
#include "board.h"
#include "fairlock.h"
#include "fairlock_operate.h"
#include "link.h"
#include "resp.h"

/*
 * After power-up this has any contents, so it says whether it is ours. A chip that is left without
 * power keeps the same in its backup registers. The token has one handle of one lock; a program with
 * several keeps one for each.
 */
struct kept {
  uint64_t token;
  uint64_t complement;
};

__attribute__((section(".noinit"))) static volatile struct kept kept;

static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
static uint8_t send_buffer[256];
static struct fairlock_client client;
static struct fairlock door;

static void say(const char *what, int64_t number)
{
  char text[RESP_NUMBER_SIZE + 1];
  text[resp_format_number(text, number)] = 0;
  board_write(what);
  board_write(text);
  board_write("\n");
}

/* Services the client until the operation is over. */
static int await_end(void)
{
  while (fairlock_result(&door) == FAIRLOCK_PENDING)
    fairlock_poll(&client, 20);
  return fairlock_result(&door);
}

/* It need not be forgotten after the release: an old token harms nobody. */
static void remember(uint64_t token)
{
  kept.token = token;
  kept.complement = ~token;
}

static void give_back(void)
{
  struct fairlock_target hold = {.token = kept.token};
  if (hold.token == 0 || kept.complement != ~hold.token) {
    board_write("nothing kept\n");
    return;
  }
  int status;
  do { /* as long as there is no connection: a query does not wait for one */
    status = fairlock_start_force_release(&door, &hold);
    if (status == FAIRLOCK_PENDING) status = await_end();
  } while (status == FAIRLOCK_UNREACHABLE);
  say("given back ", status); /* FAIRLOCK_OK, or FAIRLOCK_NOT_HELD: it had ended before */
}

int main(void)
{
  static struct fairlock_config config = {
      .receive_buffer = receive_buffer,
      .receive_size = sizeof receive_buffer,
      .send_buffer = send_buffer,
      .send_size = sizeof send_buffer,
      .offline_ms = FAIRLOCK_FOREVER,
  };
  uint32_t hold_ms = board_argument_number(2, 1000);
  config.lease_ms = board_argument_number(3, 30000);
  if (!link_start(&client, &config) || fairlock_init(&door, &client, "door:7") != FAIRLOCK_OK)
    return 1;
  give_back();
  if (fairlock_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_OK) return 1;
  remember(fairlock_token(&door));
  say("held ", (int64_t)fairlock_token(&door));
  uint32_t began = port_clock_ms();
  while (port_clock_ms() - began < hold_ms && fairlock_remaining_ms(&door) > 0)
    fairlock_poll(&client, 20);
  say("released ", fairlock_release(&door));
  return 0;
}
