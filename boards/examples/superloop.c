/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A superloop that holds a lock now and then. The loop has a period of 10 ms and keeps it, even
 * while it waits for the lock or cannot reach the server: nothing it calls blocks.
 *
 * Its work is to move a motor, say, which only one device in the plant may do at a time. Arguments:
 * the server's port, how often to do it (3), and for how long, in ms (500).
 */
#include "board.h"
#include "fairlock.h"
#include "link.h"

#define PERIOD_MS 10U

enum step { RESTING, WAITING, MOVING, STOPPING };

struct work {
  enum step step;
  uint32_t since;
  uint32_t move_ms;
  uint32_t rounds;
  uint32_t turns; /* of the loop, while waiting */
};

static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
static uint8_t send_buffer[256];
static struct fairlock_client client;
static struct fairlock door;

/*
 * The hold ended before it was released: all that moves must stop now. Called from inside
 * fairlock_poll(), so not while the loop is stuck: a hardware timer, loaded after each poll with
 * fairlock_remaining_ms(), has to cut the power then. It may be the release that finds it, when nothing
 * moves any more.
 */
static void lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  struct work *work = context;
  (void)handle;
  if (work->step == MOVING) work->step = STOPPING;
  board_write("lost the lock: stopped\n");
}

static struct work work;

static const struct fairlock_config config = {
    .receive_buffer = receive_buffer,
    .receive_size = sizeof receive_buffer,
    .send_buffer = send_buffer,
    .send_size = sizeof send_buffer,
    .offline_ms = FAIRLOCK_FOREVER, /* the server may be away for any time */
    .lost = lost,
    .lost_context = &work,
};

static void go_to(enum step step, uint32_t now)
{
  work.step = step;
  work.since = now;
}

/* One turn of the state machine that uses the lock. */
static void turn(uint32_t now)
{
  switch (work.step) {
  case RESTING:
    if (now - work.since < 200) break;
    if (fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_PENDING) break;
    board_write("waiting\n");
    work.turns = 0;
    go_to(WAITING, now);
    break;
  case WAITING:
    work.turns++;
    if (fairlock_result(&door) == FAIRLOCK_PENDING) break;
    if (fairlock_remaining_ms(&door) > 0) {
      board_write("held after ");
      board_write_number(work.turns);
      board_write(" turns: moving\n");
      go_to(MOVING, now);
    } else {
      go_to(RESTING, now); /* not reachable, or refused: try again after a pause */
    }
    break;
  case MOVING:
    if (now - work.since < work.move_ms) break;
    board_write("done\n");
    go_to(STOPPING, now);
    break;
  case STOPPING:
    if (fairlock_start_release(&door) == FAIRLOCK_IN_PROGRESS) break;
    work.rounds--;
    go_to(RESTING, now);
    break;
  }
}

int main(void)
{
  uint32_t longest = 0;
  work.rounds = board_argument_number(2, 3);
  work.move_ms = board_argument_number(3, 500);
  if (!link_start(&client, &config) || fairlock_init(&door, &client, "door:7") != FAIRLOCK_OK)
    return 1;
  while (work.rounds > 0 || fairlock_result(&door) == FAIRLOCK_PENDING) {
    uint32_t began = port_clock_ms();
    turn(began);
    fairlock_poll(&client, 0);
    uint32_t took = port_clock_ms() - began;
    if (took > longest) longest = took;
    while (port_clock_ms() - began < PERIOD_MS)
      board_idle(); /* the rest of the device's work is done here */
  }
  board_write("longest turn ");
  board_write_number(longest);
  board_write(" ms\nstack used ");
  board_write_number((uint32_t)board_stack_used());
  board_write("\n");
  return 0;
}
