/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's end of the serial line; see port_uart.h. Data goes straight from the client's buffer
 * to the line, as much as the line takes; received bytes are unpacked in place in the client's
 * buffer, as unpacking only shortens them. Nothing is stored here but the signal under way. No
 * function but connect() and recv() ever waits.
 */
#include "port_uart.h"

#define DLE   0x10
#define OPEN  'O'
#define CLOSE 'C'

enum state { IDLE, OPENING, OPENED, ENDED };

/* Values of `heard`; from HEARD_NONCE on, it counts the bytes of the nonce. */
enum heard { HEARD_DATA, HEARD_ESCAPE, HEARD_NONCE };

/* Sends what is left of the signal. True: all of it is out. */
static bool flush(struct port_uart *uart)
{
  const struct port_uart_line *line = uart->line;
  size_t left = (size_t)(uart->size - uart->sent);
  if (left > 0)
    uart->sent =
        (uint8_t)(uart->sent + line->write(line->context, uart->signal + uart->sent, left));
  return uart->sent == uart->size;
}

/*
 * Begins to send a signal. If the previous one is not sent completely, the rest of it is dropped.
 */
static void signal(struct port_uart *uart, uint8_t letter, bool with_nonce)
{
  uart->signal[0] = 0;
  uart->signal[1] = DLE;
  uart->signal[2] = letter;
  for (int i = 0; i < PORT_UART_NONCE; i++)
    uart->signal[3 + i] = uart->nonce[i];
  uart->size = with_nonce ? 3 + PORT_UART_NONCE : 3;
  uart->sent = 0;
  (void)flush(uart);
}

/* A signal with our nonce has come. */
static void obey(struct port_uart *uart)
{
  if (uart->letter == OPEN && uart->state == OPENING) uart->state = OPENED;
  if (uart->letter == CLOSE && uart->state != IDLE) uart->state = ENDED;
}

/* Takes one byte off the line. True: it is data, to be handed on. */
static bool take_byte(struct port_uart *uart, uint8_t byte)
{
  switch (uart->heard) {
  case HEARD_DATA:
    if (byte == DLE) uart->heard = HEARD_ESCAPE;
    return byte != DLE;
  case HEARD_ESCAPE:
    uart->heard = byte == OPEN || byte == CLOSE ? HEARD_NONCE : HEARD_DATA;
    uart->letter = byte;
    uart->ours = true;
    return byte == DLE;
  default:
    if (byte < 'A' || byte > 'P') { /* the signal was cut short */
      uart->heard = byte == DLE ? HEARD_ESCAPE : HEARD_DATA;
      return false;
    }
    uart->ours = uart->ours && byte == uart->nonce[uart->heard - HEARD_NONCE];
    uart->heard++;
    if (uart->heard < HEARD_NONCE + PORT_UART_NONCE) return false;
    uart->heard = HEARD_DATA;
    if (uart->ours) obey(uart);
    return false;
  }
}

/* Reads what there is, up to size bytes, and leaves only the data of it at data. */
static size_t unpack(struct port_uart *uart, uint8_t *data, size_t size)
{
  size_t got = uart->line->read(uart->line->context, data, size);
  size_t kept = 0;
  for (size_t i = 0; i < got; i++) {
    uint8_t byte = data[i];
    if (take_byte(uart, byte) && uart->state == OPENED) data[kept++] = byte;
  }
  return kept;
}

/* Waits, if there is time left. False: there is no time left. */
static bool wait(const struct port_uart *uart, uint32_t began, uint32_t timeout_ms)
{
  uint32_t passed = port_clock_ms() - began;
  if (passed >= timeout_ms) return false;
  uart->line->wait(uart->line->context, timeout_ms - passed);
  return true;
}

/* Makes a nonce that the device has not used since it started, nor shortly before. */
static void make_nonce(struct port_uart *uart)
{
  uart->number++;
  for (int i = 0; i < PORT_UART_NONCE; i++)
    uart->nonce[i] = (uint8_t)('A' + (uart->number >> 4 * i & 15));
}

/*
 * Data of the new connection must not be lost, so this reads a byte at a time, and none after the
 * connection is open.
 */
static int serial_connect(void *context, uint32_t timeout_ms)
{
  struct port_uart *uart = context;
  uint32_t began = port_clock_ms();
  if (uart->state == IDLE) {
    make_nonce(uart);
    signal(uart, OPEN, true);
    uart->half = false;
    uart->state = OPENING;
  }
  do {
    uint8_t byte;
    (void)flush(uart);
    while (uart->state == OPENING && uart->line->read(uart->line->context, &byte, 1) == 1)
      (void)take_byte(uart, byte);
  } while (uart->state == OPENING && wait(uart, began, timeout_ms));
  if (uart->state == OPENED) return PORT_OK;
  if (uart->state == OPENING) return uart->sent == uart->size ? PORT_NEEDS_INPUT : PORT_WOULD_BLOCK;
  uart->state = IDLE;
  return PORT_UNREACHABLE;
}

/*
 * Writes a byte of data. False: it did not fit, or only half of a doubled one did, and the client
 * will offer it again.
 */
static bool put(struct port_uart *uart, uint8_t byte)
{
  const struct port_uart_line *line = uart->line;
  if (byte == DLE && !uart->half) {
    if (line->write(line->context, &byte, 1) == 0) return false;
    uart->half = true;
  }
  if (line->write(line->context, &byte, 1) == 0) return false;
  uart->half = false;
  return true;
}

static int serial_send(void *context, const void *data, size_t size)
{
  struct port_uart *uart = context;
  const uint8_t *bytes = data;
  size_t sent = 0;
  if (uart->state != OPENED) return PORT_CLOSED;
  while (sent < size && sent < INT16_MAX && put(uart, bytes[sent]))
    sent++;
  uart->send_blocked = sent == 0;
  return sent > 0 ? (int)sent : PORT_WOULD_BLOCK;
}

static int serial_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct port_uart *uart = context;
  uint32_t began = port_clock_ms();
  if (size > INT16_MAX) size = INT16_MAX;
  do {
    size_t got = unpack(uart, data, size);
    if (got > 0) return (int)got;
    if (uart->state != OPENED) return PORT_CLOSED;
  } while (wait(uart, began, timeout_ms) && !uart->send_blocked);
  return PORT_WOULD_BLOCK;
}

static void serial_close(void *context)
{
  struct port_uart *uart = context;
  if (uart->state == OPENING || uart->state == OPENED) signal(uart, CLOSE, false);
  uart->state = IDLE;
}

/*
 * The nonces of one start are consecutive numbers. They begin far from those of earlier starts,
 * even where starts are only counted: 40503 is odd, so no two of 65536 starts begin with the same
 * one, and it is 65536 divided by the golden ratio, so its multiples are spread evenly.
 */
void port_uart_init(struct port_uart *uart, const struct port_uart_line *line, uint32_t start)
{
  *uart = (struct port_uart){
      .transport = {serial_connect, serial_send, serial_recv, serial_close, uart, NULL, NULL},
      .line = line,
      .number = (uint16_t)((start ^ start >> 16) * 40503U),
      .state = IDLE,
  };
}
