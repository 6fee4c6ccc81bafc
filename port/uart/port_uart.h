/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport over a serial line, for devices without TCP/IP: at the line's other end a bridge,
 * such as bridge.c on a gateway, carries the bytes on to the server.
 *
 *     static struct port_uart link;
 *     port_uart_init(&link, &line, starts);
 *     ... give &link.transport to the client ...
 *
 * A plain pipe of bytes is not enough: the client must learn that the server closed the connection,
 * and no bytes of an old connection may appear in a new one, whichever side was reset in between.
 * So the line carries signals in addition to the data. The byte 0x10 (DLE) begins a signal, and is
 * doubled where it is data:
 *
 *     device to bridge   DLE O nnnn   close what is open, and open a connection; n: a nonce,
 *                                     letters A to P
 *                        DLE C        close
 *     bridge to device   DLE O nnnn   the connection that this nonce asked for is open
 *                        DLE C nnnn   it is closed, or could not be opened
 *     both               DLE DLE      the data byte DLE;   DLE and anything else: nothing
 *
 * The device ignores all that comes before its nonce, and so the answers to what it asked before a
 * reset. It sends a NUL before each signal, so that a signal which a reset has cut short does not
 * spoil the next one.
 *
 * The line must neither lose nor change bytes: use flow control (RTS/CTS), or receive by interrupt
 * or DMA into a buffer larger than what arrives between two calls. Damage usually shows as a
 * malformed reply or as no reply, and ends the connection; but it can also change a number without
 * being noticed. Where the line is noisy, put a link layer with a checksum under it.
 */
#ifndef PORT_UART_H
#define PORT_UART_H

#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the platform does for the transport. Kept by pointer; may be in flash. */
struct port_uart_line {
  /* Takes up to size bytes from the line, without blocking. Returns how many, 0 included. */
  size_t (*read)(void *context, void *data, size_t size);

  /* Hands up to size bytes to the line, without blocking. Returns how many, 0 included. */
  size_t (*write)(void *context, const void *data, size_t size);

  /*
   * Sleeps until the line may have something to read or room to write, at most timeout_ms. May
   * return early.
   */
  void (*wait)(void *context, uint32_t timeout_ms);

  /* handed to all three */
  void *context;
};

/* Letters of a nonce. */
#define PORT_UART_NONCE 4

/* A transport over a serial line. */
struct port_uart {
  /* for the client; all the rest is private */
  struct port_transport transport;

  const struct port_uart_line *line;
  uint8_t state;

  /* what has arrived of a signal: DLE, its letter, how much of its nonce */
  uint8_t heard;

  /* letter of that signal */
  uint8_t letter;

  /* bytes of signal: all, and those sent */
  uint8_t size, sent;

  /* the last send() would have blocked */
  bool send_blocked;

  /* one half of a doubled DLE has been sent */
  bool half;

  /* that signal's nonce, so far, is ours */
  bool ours;

  /* the nonce, as a number */
  uint16_t number;

  uint8_t nonce[PORT_UART_NONCE];

  /* what goes out when connecting and closing */
  uint8_t signal[3 + PORT_UART_NONCE];
};

/*
 * start: a number that differs after each start of the device, so that it can tell the bridge's
 * answers to its requests from answers to those before the reset, which may still be on the line. A
 * count of starts in non-volatile memory, a real-time clock or a random number generator will do;
 * the chip's serial number will not, nor will a clock that begins again with each start.
 */
void port_uart_init(struct port_uart *uart, const struct port_uart_line *line, uint32_t start);

#ifdef __cplusplus
}
#endif

#endif
