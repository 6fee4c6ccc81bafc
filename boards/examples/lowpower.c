/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A superloop in low power: between two turns the processor sleeps, with no tick, until the time
 * that fairlock_poll() has returned, or until something arrives over the serial line. It acquires,
 * waits behind the holder, holds for a while and releases.
 *
 * While it waits it is woken twice for each heartbeat: by the time, to send it, and by the line,
 * for the reply. It counts, and says so. Arguments: "-", for how long to hold (ms), and the waiter
 * timeout (ms): a heartbeat is sent every two fifths of it.
 */
#include "board.h"
#include "fairlock.h"
#include "port_uart.h"
#include "sleep.h"

enum step { WAITING, HOLDING, RELEASING, DONE, FAILED };

static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
static uint8_t send_buffer[512]; /* a request goes out in one piece */
static struct fairlock_client client;
static struct fairlock door;
static struct fairlock_config config = {.receive_buffer = receive_buffer,
                                        .receive_size = sizeof receive_buffer,
                                        .send_buffer = send_buffer,
                                        .send_size = sizeof send_buffer};

static uint32_t began, held_since, hold_ms;
static uint32_t by_time, by_line; /* how often it was woken */

static size_t read_line(void *context, void *data, size_t size)
{
  (void)context;
  return sleep_line_read(data, size);
}

static size_t write_line(void *context, const void *data, size_t size)
{
  (void)context;
  return sleep_line_write(data, size);
}

/* Nothing here waits in the transport, or anywhere but in the loop. */
static void wait_line(void *context, uint32_t timeout_ms)
{
  (void)context;
  (void)timeout_ms;
}

void port_idle(uint32_t ms)
{
  (void)ms;
}

static bool start_client(void)
{
  static const struct port_uart_line line = {read_line, write_line, wait_line, NULL};
  static struct port_uart uart;
  sleep_init();
  port_uart_init(&uart, &line, board_random());
  return fairlock_client_init(&client, &config, &uart.transport) == FAIRLOCK_OK &&
         fairlock_init(&door, &client, "door:7") == FAIRLOCK_OK;
}

static void say(const char *before, uint32_t number)
{
  board_write(before);
  board_write_number(number);
}

static enum step hold(void)
{
  held_since = port_clock_ms();
  say("held after ", held_since - began);
  say(" ms, woken by the time ", by_time);
  say(" times, by the line ", by_line);
  board_write("\n");
  return HOLDING;
}

/* What the program does with the lock. Returns the step that follows. */
static enum step go_on(enum step step)
{
  int status = fairlock_result(&door);
  if (status == FAIRLOCK_PENDING) return step;
  switch (step) {
  case WAITING:
    return status == FAIRLOCK_OK ? hold() : FAILED;
  case HOLDING:
    if (port_clock_ms() - held_since < hold_ms) return HOLDING;
    return fairlock_start_release(&door) == FAIRLOCK_PENDING ? RELEASING : FAILED;
  case RELEASING:
    return status == FAIRLOCK_OK ? DONE : FAILED;
  default:
    return step;
  }
}

/* The time until the client or the program has something to do. */
static uint32_t time_to_sleep(enum step step, uint32_t due)
{
  uint32_t held = port_clock_ms() - held_since;
  if (step != HOLDING) return due;
  uint32_t left = held < hold_ms ? hold_ms - held : 0;
  return left < due ? left : due;
}

int main(void)
{
  hold_ms = board_argument_number(2, 200);
  config.waiter_ms = board_argument_number(3, 0);
  if (!start_client()) return 1;
  began = port_clock_ms();
  enum step step = WAITING;
  if (fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW) != FAIRLOCK_PENDING) return 1;
  while (step != DONE && step != FAILED) {
    uint32_t due = fairlock_poll(&client, 0);
    enum step next = go_on(step);
    bool changed = next != step; /* it may have begun something: service the client first */
    step = next;
    if (changed) continue;
    bool waits = fairlock_wants(&client) == FAIRLOCK_RECEIVE; /* and does not connect, or send */
    bool line = sleep_for(time_to_sleep(step, due));
    if (waits && line) by_line++;
    else if (waits) by_time++;
  }
  board_write(step == DONE ? "released\n" : "failed\n");
  return step == DONE ? 0 : 1;
}
