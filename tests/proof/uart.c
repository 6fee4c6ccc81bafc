/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's end of the serial line: one call of any function of its transport, from any state and
 * with any bytes on the line, stays inside of the caller's memory and of its own, keeps its state
 * valid, and returns what port.h says. So does any sequence of calls.
 *
 * Assumed: a valid state; a line that takes and gives no more than asked for. A wait is the last one
 * that there is time for, and a connect gets two bytes: what they leave is again a valid state.
 */
#include "proof.h"

#include "port/uart/uart.c"

enum { SIZE = 4 };

static unsigned answers;
static uint32_t clock_ms;

uint32_t port_clock_ms(void)
{
  return clock_ms;
}

static size_t line_read(void *context, void *data, size_t size)
{
  size_t got = nondet_size();
  (void)context;
  CHECK(__CPROVER_w_ok(data, size));
  ASSUME(got <= size && got <= SIZE);
  if (++answers > 2) got = 0;
  for (size_t i = 0; i < SIZE; i++) {
    if (i < got) ((uint8_t *)data)[i] = nondet_uint8();
  }
  return got;
}

static size_t line_write(void *context, const void *data, size_t size)
{
  size_t took = nondet_size();
  (void)context;
  CHECK(__CPROVER_r_ok(data, size));
  ASSUME(took <= size);
  return took;
}

static void line_wait(void *context, uint32_t timeout_ms)
{
  (void)context;
  CHECK(timeout_ms > 0);
  clock_ms += timeout_ms;
}

static const struct port_uart_line line = {line_read, line_write, line_wait, NULL};

static bool is_valid(const struct port_uart *uart)
{
  return uart->state <= ENDED && uart->heard < HEARD_NONCE + PORT_UART_NONCE &&
         uart->sent <= uart->size && uart->size <= sizeof uart->signal;
}

void harness(void)
{
  struct port_uart uart;
  port_uart_init(&uart, &line, nondet_uint32());
  CHECK(is_valid(&uart) && uart.state == IDLE);

  struct port_uart any;
  any.line = &line;
  ASSUME(is_valid(&any));
  uart = any;
  clock_ms = nondet_uint32();
  uint32_t timeout_ms = nondet_uint32();
  size_t size = nondet_size();
  ASSUME(size <= SIZE);
  uint8_t *data = any_bytes(size);
  int result = 0;
  switch (nondet_int()) {
  case 0:
    result = serial_connect(&uart, timeout_ms);
    CHECK(result == PORT_OK || result == PORT_WOULD_BLOCK || result == PORT_NEEDS_INPUT ||
          result == PORT_UNREACHABLE);
    CHECK((result == PORT_OK) == (uart.state == OPENED));
    REACHED(result == PORT_OK && any.state != OPENED);
    CHECK((result == PORT_NEEDS_INPUT) == (uart.state == OPENING && uart.sent == uart.size));
    REACHED(result == PORT_WOULD_BLOCK);
    REACHED(result == PORT_NEEDS_INPUT);
    REACHED(result == PORT_UNREACHABLE);
    break;
  case 1:
    result = serial_send(&uart, data, size);
    CHECK(result == PORT_WOULD_BLOCK || result == PORT_CLOSED ||
          (result > 0 && (size_t)result <= size));
    CHECK((result == PORT_CLOSED) == (any.state != OPENED));
    REACHED(result == SIZE);
    REACHED(result == 1 && uart.half);
    break;
  case 2:
    result = serial_recv(&uart, data, size, timeout_ms);
    CHECK(result == PORT_WOULD_BLOCK || result == PORT_CLOSED ||
          (result > 0 && (size_t)result <= size));
    REACHED(result == SIZE);
    REACHED(result == PORT_CLOSED && any.state == OPENED);
    REACHED(result == PORT_WOULD_BLOCK);
    break;
  default:
    serial_close(&uart);
    CHECK(uart.state == IDLE);
    REACHED(any.state == OPENED && uart.sent < uart.size);
  }
  CHECK(is_valid(&uart) && uart.line == &line);
}
