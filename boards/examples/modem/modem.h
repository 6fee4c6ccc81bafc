/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport over a cellular modem that is driven by AT commands over a UART.
 *
 *     static const char *const setup[] = {"AT+QICSGP=1,1,\"internet\"", "AT+QIACT=1", NULL};
 *     static const struct modem_config config = {
 *         .family = &modem_quectel, .line = &line, .setup = setup, .host = "192.0.2.7", .port = 6379};
 *     static struct modem modem;
 *     if (!modem_init(&modem, &config)) ... a command is too long ...
 *     ... give &modem.transport to the client ...
 *
 * The modem has the TCP connection, and keeps what has arrived until it is asked for. One command is
 * under way at a time: the functions of the transport write what the line takes, read what has come,
 * and go on from there, so none waits for longer than it was asked to.
 *
 *   - A connection begins with ATE0, then what the family and the program prepare, then a close,
 *     because a modem that was not reset together with the device may still be connected, and only
 *     then the open.
 *   - A modem that does not answer ATE0 may be inside a send that a reset of the device, or a byte
 *     lost on the line, has cut short: it takes commands for data. The send is then filled out, with
 *     ESC, which some modems take as its end. The server then gets a request that somebody else has
 *     finished: it does not have the form that the lock's scripts ask for, so they refuse it. With
 *     `restart`, a modem that stays silent is restarted.
 *   - Answers are believed only after the line was quiet for MODEM_QUIET_MS, so those to commands of
 *     before are not taken for ours.
 *   - A piece that was received is handed on when the modem's OK has come behind it, at the place
 *     where it belongs. So a byte that the line lost or added ends the connection, and does not
 *     become data. A byte that was changed is not noticed, nor are several that make up for each
 *     other: where the line is long or noisy, use TLS or a multiplexer with a checksum (CMUX).
 *   - close() cannot wait for the modem. It lets it know as soon as the line takes the command, or the
 *     send under way is complete; the next connect() does the rest. A program that stops calling
 *     the client calls modem_closing() until it says false.
 *
 * For a client with one task (port/single): sending and receiving share the line.
 *
 * The line: receive by interrupt or DMA, into a buffer larger than what arrives between two calls,
 * or use RTS/CTS (AT+IFC=2,2, to be prepared by `setup`). A loop with a period also needs a buffer
 * to transmit: with 16 bytes and 10 ms the line carries 1,600 bytes a second.
 *
 * A request and its reply take two or three commands, some 100 bytes more on the line, and 0.1 s
 * (LTE) to some seconds (NB-IoT) in the network. So give the client a response_ms and connect_ms of
 * 10,000 or more, a waiter_ms of at least as much, and leases of a minute.
 */
#ifndef MODEM_H
#define MODEM_H

#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The line is quiet, and nothing of before comes any more, after this time without a byte. */
#ifndef MODEM_QUIET_MS
#define MODEM_QUIET_MS 200U
#endif

/* A modem that says nothing to ATE0 for so long is taken for one that is inside a send. */
#ifndef MODEM_CALL_MS
#define MODEM_CALL_MS 1000U
#endif

/* A modem that does not answer another command for so long hangs. */
#ifndef MODEM_ANSWER_MS
#define MODEM_ANSWER_MS 5000U
#endif

/* After so many calls without an answer the modem is restarted; it has to start in that time. */
#ifndef MODEM_CALLS
#define MODEM_CALLS 20U
#endif

/* Bytes in a piece; families allow up to 1460. The client's requests are some 300 bytes. */
#ifndef MODEM_SEND_SIZE
#define MODEM_SEND_SIZE 256U
#endif
#ifndef MODEM_RECEIVE_SIZE
#define MODEM_RECEIVE_SIZE 128U
#endif

/* The longest command, with its host name. */
#ifndef MODEM_COMMAND_SIZE
#define MODEM_COMMAND_SIZE 96U
#endif

/* How much of a line is kept: the longest text of a family that is compared. */
#define MODEM_TEXT_SIZE 24U

/* What the platform does for the transport. Kept by pointer; may be in flash. */
struct modem_line {
  /* Takes up to size bytes from the line, without blocking. Returns how many, 0 included. */
  size_t (*read)(void *context, void *data, size_t size);

  /* Hands up to size bytes to the line, without blocking. Returns how many, 0 included. */
  size_t (*write)(void *context, const void *data, size_t size);

  /*
   * Sleeps until the line may have something to read or room to write, at most timeout_ms. May
   * return early.
   */
  void (*wait)(void *context, uint32_t timeout_ms);

  /* Begins to restart the modem, by its reset or power pin, without blocking. NULL: it cannot. */
  void (*restart)(void *context);

  /* handed to all four */
  void *context;
};

/*
 * What modems of a family say, and are told. A line is compared as far as the text here goes. %h
 * is the host, %p the port, and %n how many bytes.
 */
struct modem_family {
  /* commands before the others, ended by NULL; that one fails is passed over */
  const char *const *prepare;

  /* opens a connection, and what is said once it is open, or is not; OK comes before either */
  const char *open, *opened, *refused;

  /*
   * sends after a prompt, and what is said when it is taken, and when nothing of it was, because
   * there is no room
   */
  const char *send, *sent, *full;

  /* asks for received bytes, and what is said before the number of those that follow */
  const char *receive, *received;

  /* closes the connection, and what is said then */
  const char *close, *closed;

  /* what is said unasked: bytes have arrived; the peer has closed */
  const char *arrived, *ended;

  /* how long to prepare, and to close, may take, in ms */
  uint32_t prepare_ms, close_ms;

  /* ask for received bytes so often, in ms, in case the line has lost what is said unasked */
  uint32_t poll_ms;
};

/* BG95, BG96, EC2x, EG9x: AT+QIOPEN, context 1, connection 0. */
extern const struct modem_family modem_quectel;

/* SIM7600, A76xx: AT+CIPOPEN, connection 0. */
extern const struct modem_family modem_simcom;

/* What a modem needs to know. Kept by pointer; may be in flash. */
struct modem_config {
  const struct modem_family *family;
  const struct modem_line *line;

  /*
   * The program's commands before each connection, for the SIM, the network and its context, ended
   * by NULL; % as in those of the family. That one fails is passed over: a context that is up
   * already is one that cannot be activated. NULL: none
   */
  const char *const *setup;

  /* a name or an address, for the modem to resolve */
  const char *host;
  uint16_t port;
};

/* A transport over a modem. */
struct modem {
  /* for the client; all the rest is private */
  struct port_transport transport;

  const struct modem_config *config;

  /* what is under way, and since when; when received bytes were last asked for */
  uint8_t step;
  uint32_t since, asked;

  /* whether there is a connection, or one is wanted */
  uint8_t link;

  /* the command of those to prepare that is under way */
  uint8_t prepared;

  /* calls without an answer */
  uint8_t calls;

  /* the modem was told to open, and not to close; it has taken that, so it can be told to close */
  bool open, accepted;

  /* it had no room for what is in send, and said so at that time */
  bool full;
  uint32_t refused;

  /* there may be bytes to ask for; the peer has closed */
  bool arrived, ended;

  /* the last thing done was to receive: to send comes next */
  bool received;

  /* the last send() would have blocked */
  bool send_blocked;

  /* what is still to be written to the line */
  const char *out;
  size_t left;

  /* bytes in send; in receive, and those of them that were handed on */
  size_t send_size, receive_size, taken;

  /* how many the command under way is about, and how many of those have come */
  size_t expected, come;

  /* the beginning of the line that is being received */
  size_t text_size;
  char text[MODEM_TEXT_SIZE];

  char command[MODEM_COMMAND_SIZE];
  char send[MODEM_SEND_SIZE];
  char receive[MODEM_RECEIVE_SIZE];
};

/* Returns false if a command does not fit, or the host has a byte that does not belong there. */
bool modem_init(struct modem *modem, const struct modem_config *config);

/*
 * Goes on with what close() has begun, without blocking. Returns whether the modem may still have a
 * connection that it was not told to close. For a program that has ended its client; one that goes
 * on with it need not call this.
 */
bool modem_closing(struct modem *modem);

#ifdef __cplusplus
}
#endif

#endif
