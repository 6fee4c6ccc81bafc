/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that downloads now and then, when at most so many of the fleet may do so at a time. The
 * devices, and hosts that run `fairlock run --limit 2 firmware -- ...`, wait in one queue. Nothing
 * blocks the loop. If a device loses its power while it downloads, its lease ends, and the next in
 * line begins.
 *
 * Arguments: the server's port, how often to download (3), for how long, in ms (500), and how many
 * may (2): the smallest number in use binds all devices and hosts.
 */
#include "board.h"
#include "fairlock.h"
#include "fairlock_share.h"
#include "link.h"

enum step { RESTING, WAITING, DOWNLOADING, STOPPING };

static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
static uint8_t send_buffer[256];
static struct fairlock_client client;
static struct fairlock_shared firmware;
static struct fairlock *const share = &firmware.handle;
static enum step step;
static uint32_t since;

/* The share ended before it was released, and another device may download in its place. */
static void lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  (void)handle;
  (void)context;
  if (step != RESTING) step = STOPPING; /* else the release has found it */
  board_write("lost its share: stopped\n");
}

static const struct fairlock_config config = {
    .receive_buffer = receive_buffer,
    .receive_size = sizeof receive_buffer,
    .send_buffer = send_buffer,
    .send_size = sizeof send_buffer,
    .lease_ms = 3000,               /* after a power failure, the next in line begins so soon */
    .offline_ms = FAIRLOCK_FOREVER, /* the server may be away for any time */
    .lost = lost,
};

static void go_to(enum step next, uint32_t now)
{
  step = next;
  since = now;
}

/* One turn of the state machine. Returns how many downloads have ended by it. */
static uint32_t turn(uint32_t now, uint32_t download_ms)
{
  switch (step) {
  case RESTING:
    if (now - since < 200) break;
    if (fairlock_start_acquire(share, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_PENDING) break;
    board_write("waiting\n");
    go_to(WAITING, now);
    break;
  case WAITING:
    if (fairlock_result(share) == FAIRLOCK_PENDING) break;
    if (fairlock_remaining_ms(share) > 0) {
      board_write("downloading\n");
      go_to(DOWNLOADING, now);
    } else {
      board_write(fairlock_status_text(fairlock_result(share)));
      board_write("\n");
      go_to(RESTING, now); /* not reachable: try again after a pause */
    }
    break;
  case DOWNLOADING:
    if (now - since < download_ms) break;
    board_write("done\n");
    go_to(STOPPING, now);
    break;
  case STOPPING:
    if (fairlock_start_release(share) == FAIRLOCK_IN_PROGRESS) break;
    go_to(RESTING, now);
    return 1;
  }
  return 0;
}

int main(void)
{
  uint32_t rounds = board_argument_number(2, 3);
  uint32_t download_ms = board_argument_number(3, 500);
  uint32_t limit = board_argument_number(4, 2);
  if (!link_start(&client, &config)) return 1;
  if (fairlock_init_shared(&firmware, &client, "firmware", limit) != FAIRLOCK_OK) return 1;
  while (rounds > 0 || fairlock_result(share) == FAIRLOCK_PENDING) {
    rounds -= turn(port_clock_ms(), download_ms);
    uint32_t in_ms = fairlock_poll(&client, 0);
    if (in_ms > 0) board_idle(); /* the rest of the device's work is done here */
  }
  board_write("stack used ");
  board_write_number((uint32_t)board_stack_used());
  board_write("\n");
  return 0;
}
