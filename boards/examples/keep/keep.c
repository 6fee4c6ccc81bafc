/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device on a slow line that keeps its lock, by fairlock_use_keeping(). It takes it again and again,
 * for a moment each, and hardly ever does anybody else want it. A pair of acquire and release costs
 * some 630 bytes, two thirds of a second at 9600 baud; one of a lock that is kept costs nothing,
 * and whoever asks gets the lock as soon as the line lets the device be told.
 *
 * It counts what goes over the line, and says so. Arguments: "-", how often to take the lock (16),
 * for how long to keep it, in ms (15000; 0: not at all), and the pause between two rounds, in ms
 * (200).
 */
#include "board.h"
#include "fairlock.h"
#include "fairlock_keep.h"
#include "port_uart.h"

#define BAUD      9600U
#define BITS      10U /* of a byte, with start and stop */
#define FIFO_SIZE 16U

/* One way of the line. The simulator's has no speed, so this one is given it here. */
struct way {
  uint32_t at;     /* when it last moved */
  uint32_t credit; /* bits that it might have moved since, times 1000 */
  uint32_t bytes;  /* so far */
};

static struct way in, out;
static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
static uint8_t send_buffer[256];
static struct fairlock_client client;
static struct fairlock door;
static struct fairlock_keeping keeper;

/* A heartbeat takes a third of a second, and the text of a script, which is rarely sent, four. */
static const struct fairlock_config config = {
    .receive_buffer = receive_buffer,
    .receive_size = sizeof receive_buffer,
    .send_buffer = send_buffer,
    .send_size = sizeof send_buffer,
    .waiter_ms = 15000,
    .response_ms = 8000,
};

static size_t room(struct way *way, size_t size)
{
  const uint32_t most = FIFO_SIZE * BITS * 1000;
  uint32_t now = port_clock_ms();
  uint32_t passed = now - way->at;
  way->at = now;
  way->credit += (passed < 1000 ? passed : 1000) * BAUD;
  if (way->credit > most) way->credit = most;
  size_t bytes = way->credit / (BITS * 1000);
  return size < bytes ? size : bytes;
}

static size_t moved(struct way *way, size_t size)
{
  way->credit -= (uint32_t)size * BITS * 1000;
  way->bytes += (uint32_t)size;
  return size;
}

static size_t read_line(void *context, void *data, size_t size)
{
  (void)context;
  return moved(&in, board_line_read(data, room(&in, size)));
}

static size_t write_line(void *context, const void *data, size_t size)
{
  (void)context;
  return moved(&out, board_line_write(data, room(&out, size)));
}

static void wait_line(void *context, uint32_t timeout_ms)
{
  (void)context;
  (void)timeout_ms;
  board_idle();
}

void port_idle(uint32_t ms)
{
  (void)ms; /* the tick ends it within a millisecond */
  board_idle();
}

static bool start_client(void)
{
  static const struct port_uart_line line = {read_line, write_line, wait_line, NULL};
  static struct port_uart uart;
  board_line_init();
  port_uart_init(&uart, &line, board_random());
  if (fairlock_client_init(&client, &config, &uart.transport) != FAIRLOCK_OK) return false;
  keeper.keep_ms = board_argument_number(3, 15000);
  if (keeper.keep_ms > 0 && fairlock_use_keeping(&client, &keeper) != FAIRLOCK_OK) return false;
  return fairlock_init(&door, &client, "door:7") == FAIRLOCK_OK;
}

/* One turn of the loop: services the client, and the rest of the device's work is done here. */
static void turn(void)
{
  (void)fairlock_poll(&client, 0);
  board_idle();
}

/* The end of what was begun. */
static int await_end(int status)
{
  if (status != FAIRLOCK_PENDING) return status;
  while (status = fairlock_result(&door), status == FAIRLOCK_PENDING)
    turn();
  return status;
}

static void rest(uint32_t ms)
{
  uint32_t began = port_clock_ms();
  while (port_clock_ms() - began < ms)
    turn();
}

static void say(const char *before, uint32_t number)
{
  board_write(before);
  board_write_number(number);
}

int main(void)
{
  uint32_t rounds = board_argument_number(2, 16);
  uint32_t pause_ms = board_argument_number(4, 200);
  uint32_t waited = 0;
  if (!start_client()) return 1;
  for (uint32_t round = 0; round < rounds; round++) {
    uint32_t began = port_clock_ms();
    if (await_end(fairlock_start_acquire(&door, FAIRLOCK_FOREVER, FAIRLOCK_RENEW)) != FAIRLOCK_OK)
      return 1;
    waited += port_clock_ms() - began;
    rest(20); /* what the lock is for */
    if (await_end(fairlock_start_release(&door)) != FAIRLOCK_OK) return 1;
    say("round ", round + 1);
    board_write("\n");
    rest(pause_ms);
  }
  if (await_end(fairlock_start_deinit(&door)) != FAIRLOCK_OK)
    return 1; /* what is kept is released */
  say("line: ", in.bytes + out.bytes);
  say(" bytes for ", rounds);
  say(" rounds, which waited ", waited);
  board_write(" ms\n");
  return 0;
}
