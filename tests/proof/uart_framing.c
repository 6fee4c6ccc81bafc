/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The framing of the serial line, by its two ends. What of SIZE bytes of the device's has been sent
 * has come out at the bridge, byte for byte, whatever the bytes are; at each write the line takes all
 * or nothing. A byte from the bridge, doubled here as carry_in() doubles it, comes out at the device;
 * carry_in() itself is not run. When the device asks for a connection, the bridge hears it and its
 * nonce, whatever it has heard before, such as a signal that a reset has cut short.
 *
 * Assumed: a line that neither loses nor changes bytes; SIZE bytes of data. That all is sent in the
 * end is not shown, only that it can be.
 */
#define main      bridge_main
#define take_byte bridge_take_byte
#define NONCE     NONCE_LETTERS
#include "port/uart/bridge.c"
#undef take_byte
#undef NONCE
#define DLE    0x10 /* as both ends have it */
#define OPEN   'O'
#define CLOSE  'C'
#define signal device_signal
#include "port/uart/uart.c"

#include "proof.h"

static struct bridge bridge;
static uint8_t heard[SIZE];
static size_t count;
static unsigned opened;

uint32_t port_clock_ms(void)
{
  return 0;
}

/* What obey_open() does is no part of the framing. */
bool any_open(struct bridge *there);
bool any_open(struct bridge *there)
{
  (void)there;
  opened++;
  return true;
}

/* What the device writes the bridge hears; sometimes the line takes nothing. */
static size_t line_write(void *context, const void *data, size_t size)
{
  const char *bytes = data;
  (void)context;
  if (nondet_bool()) return 0;
  for (size_t i = 0; i < size && i < 3 + PORT_UART_NONCE; i++) {
    bool is_data;
    CHECK(bridge_take_byte(&bridge, bytes[i], &is_data));
    if (!is_data) continue;
    CHECK(count < SIZE);
    heard[count++] = (uint8_t)bytes[i];
  }
  return size;
}

static const struct port_uart_line line = {NULL, line_write, NULL, NULL};

/* Offers SIZE bytes until they have gone; each call may get nothing through, and nothing is lost. */
static void device_to_bridge(struct port_uart *uart)
{
  uint8_t data[SIZE];
  size_t sent = 0;
  for (int i = 0; i < 2 * SIZE; i++) {
    int result = serial_send(uart, data + sent, SIZE - sent);
    if (result > 0) sent += (size_t)result;
    CHECK(count == sent);
  }
  for (size_t i = 0; i < SIZE; i++)
    CHECK(i >= sent || heard[i] == data[i]);
  REACHED(sent == SIZE && data[0] == DLE && data[1] == DLE);
  REACHED(sent == 1 && uart->half);
}

/* What carry_in() makes of a byte from the server: doubled, if it is a DLE. */
static void bridge_to_device(struct port_uart *uart)
{
  uint8_t byte = nondet_uint8();
  uart->heard = HEARD_DATA;
  if (byte == DLE) CHECK(!take_byte(uart, byte));
  CHECK(take_byte(uart, byte) && uart->heard == HEARD_DATA && uart->state == OPENED);
  REACHED(byte == DLE);
}

/* From any state of the bridge's ears. */
static void open_is_heard(struct port_uart *uart)
{
  struct bridge any;
  ASSUME(any.named < NONCE_LETTERS && any.server == -1);
  bridge = any;
  uart->state = IDLE;
  make_nonce(uart);
  device_signal(uart, OPEN, true);
  if (!flush(uart)) return;
  CHECK(opened == 1 && !bridge.naming && !bridge.escaped);
  for (int i = 0; i < PORT_UART_NONCE; i++)
    CHECK(bridge.nonce[i] == (char)uart->nonce[i]);
  REACHED(any.escaped);
  REACHED(any.naming && any.named == NONCE_LETTERS - 1);
}

void harness(void)
{
  struct port_uart uart;
  port_uart_init(&uart, &line, nondet_uint32());
  bridge = (struct bridge){.server = -1};
  uart.state = OPENED;
  switch (nondet_int()) {
  case 0:
    device_to_bridge(&uart);
    break;
  case 1:
    bridge_to_device(&uart);
    break;
  default:
    open_is_heard(&uart);
  }
}
