/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the instructions of a TLS handshake on a board: connects once, and prints, in thousands,
 * those that were spent above the transport below, in all and in the longest call. The simulator
 * has to count, too (-icount shift=0): each instruction then takes a nanosecond of simulated time,
 * which the timer measures.
 *
 * Argument 1: the server's port.
 */
#include "board.h"
#include "link.h"

#define TIMER_CONTROL REGISTER(0x40000000) /* timer 0 of the MPS2+ boards; it counts down */
#define TIMER_VALUE   REGISTER(0x40000004)
#define TIMER_RELOAD  REGISTER(0x40000008)
#define TICK_NS       (1000000000U / CLOCK_HZ)

static struct port_transport *below;
static uint32_t spent_below;

static uint32_t ticks(void)
{
  return UINT32_MAX - TIMER_VALUE;
}

static int counted_connect(void *context, uint32_t timeout_ms)
{
  uint32_t began = ticks();
  int status = below->connect(context, timeout_ms);
  spent_below += ticks() - began;
  return status;
}

static int counted_send(void *context, const void *data, size_t size)
{
  uint32_t began = ticks();
  int status = below->send(context, data, size);
  spent_below += ticks() - began;
  return status;
}

static int counted_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  uint32_t began = ticks();
  int status = below->recv(context, data, size, timeout_ms);
  spent_below += ticks() - began;
  return status;
}

static void counted_close(void *context)
{
  below->close(context);
}

/* One call of connect(), as a superloop makes them. */
static int count_call(const struct port_transport *tls, uint32_t *spent, uint32_t *longest)
{
  spent_below = 0;
  uint32_t began = ticks();
  int status = tls->connect(tls->context, 0);
  uint32_t call = ticks() - began - spent_below;
  *spent += call;
  if (call > *longest) *longest = call;
  return status;
}

static void report(const char *what, uint32_t count)
{
  board_write(what);
  board_write_number(count / 1000 * TICK_NS);
  board_write("\n");
}

int main(void)
{
  static uint8_t receive_buffer[FAIRLOCK_RECEIVE_SIZE(16, 0)];
  static uint8_t send_buffer[FAIRLOCK_SEND_MIN];
  static struct fairlock_client client;
  static const struct fairlock_config config = {
      .receive_buffer = receive_buffer,
      .receive_size = sizeof receive_buffer,
      .send_buffer = send_buffer,
      .send_size = sizeof send_buffer,
  };
  static struct port_transport counted = {
      counted_connect, counted_send, counted_recv, counted_close, NULL, NULL, NULL,
  };
  if (!link_start(&client, &config)) return 1;
  below = *link_below();
  counted.context = below->context;
  *link_below() = &counted;
  TIMER_RELOAD = UINT32_MAX;
  TIMER_VALUE = UINT32_MAX;
  TIMER_CONTROL = 1;
  uint32_t spent = 0, longest = 0;
  int status;
  while (status = count_call(client.transport, &spent, &longest),
         status == PORT_WOULD_BLOCK || status == PORT_NEEDS_INPUT)
    board_idle();
  if (status != PORT_OK) return 1;
  report("handshake ", spent);
  report("longest call ", longest);
  return 0;
}
