/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESP, the protocol of Redis, versions 2 and 3: an encoder and an incremental decoder.
 *
 * This is a codec and nothing else: it does no I/O, reads no clock, allocates nothing, and keeps no
 * pointer into the caller's memory between two calls, except to the buffer of a writer. It can be
 * used without the rest of the library. All functions may be called from any task; one decoder or
 * writer belongs to one task at a time.
 *
 * Decoder. The caller keeps received bytes in a linear buffer and offers them again
 * until they are used:
 *
 *     used = 0;
 *     for (;;) {
 *         status = resp_decode(&decoder, buffer + start, size - start, &used, &event);
 *         if (status < 0) ...close the connection, the stream cannot be trusted any more
 *         if (status == RESP_MORE) break;
 *         start += used;
 *         ...event
 *     }
 *     start += used;   (RESP_MORE may use bytes, too: those of a payload that is passed over)
 *
 * Aggregates arrive as a header event followed by their elements, so the buffer needs room only for
 * the longest element that is wanted, however long the reply is. The same bytes give the same
 * events, however they are split. A payload longer than the limit is announced by an event with
 * `cut` set and then skipped; it is never stored. Nesting is bounded by RESP_DEPTH_MAX, without
 * recursion.
 *
 * Source of the rules: the RESP specification (redis.io, "Redis serialization protocol
 * specification"). RESP3's streamed strings and aggregates ("$?", "*?") are refused: no server
 * sends them.
 */
#ifndef FAIRLOCK_RESP_H
#define FAIRLOCK_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Aggregates that may be open at a time. HELLO's reply needs 4. */
#define RESP_DEPTH_MAX 4

/*
 * The buffer of a caller who decodes with limit L must hold at least L + RESP_OVERHEAD bytes: the
 * longest header (type, sign, 19 digits, CR LF), the payload, and its CR LF.
 */
#define RESP_OVERHEAD 25

/* The largest length and element count that is accepted; larger ones end in RESP_BAD_LENGTH. */
#define RESP_LENGTH_MAX 0x7fffffff

/* Kinds of values. Each is the value's first byte on the wire. */
enum resp_type {
  /* data: the text */
  RESP_SIMPLE_STRING = '+',

  /* data: the text, beginning with its code, as in "WRONGTYPE ..." */
  RESP_SIMPLE_ERROR = '-',

  /* integer: the value */
  RESP_INTEGER = ':',

  /* data: the payload */
  RESP_BULK_STRING = '$',

  /* integer: number of elements that follow */
  RESP_ARRAY = '*',

  /* also "$-1" and "*-1" of RESP2 */
  RESP_NULL = '_',

  /* integer: 0 or 1 */
  RESP_BOOLEAN = '#',

  /* data: the text; not parsed */
  RESP_DOUBLE = ',',

  /* data: the text; not parsed */
  RESP_BIG_NUMBER = '(',

  /* data: the payload */
  RESP_BULK_ERROR = '!',

  /* data: the payload, its format and a colon included, "txt:..." */
  RESP_VERBATIM_STRING = '=',

  /* integer: number of pairs; key and value follow for each */
  RESP_MAP = '%',

  /* integer: number of elements that follow */
  RESP_SET = '~',

  /* integer: number of pairs; they come before the value they annotate */
  RESP_ATTRIBUTE = '|',

  /* integer: number of elements that follow; out of band */
  RESP_PUSH = '>'
};

/* What resp_decode() returns. An error stays until the decoder is initialized again. */
enum resp_status {
  /* *event is filled in */
  RESP_EVENT = 1,

  /* no complete value is there yet: receive more bytes */
  RESP_MORE = 0,

  /* a value begins with an unknown byte, or a push is not outermost */
  RESP_BAD_TYPE = -1,

  /* a number is malformed or out of range, or a boolean is neither t nor f */
  RESP_BAD_NUMBER = -2,

  /* a length is negative or above RESP_LENGTH_MAX */
  RESP_BAD_LENGTH = -3,

  /* a line or payload does not end with CR LF where it has to */
  RESP_BAD_END = -4,

  /* more than RESP_DEPTH_MAX aggregates are open */
  RESP_TOO_DEEP = -5
};

/* A value, or the head of an aggregate. */
struct resp_event {
  /* kind of value */
  enum resp_type type;

  /* aggregates around this value; 0: it is outermost */
  uint8_t depth;

  /* with this event the outermost value is complete */
  bool last;

  /*
   * the text is longer than the limit: data holds its beginning (of a line) or is NULL (of a
   * payload)
   */
  bool cut;

  /* see resp_type; the announced length for a payload */
  int64_t integer;

  /* points into the caller's buffer: valid until the buffer changes */
  const uint8_t *data;

  /* bytes at data */
  size_t size;
};

/* Private to the decoder. Size: 28 bytes on a 32-bit target. */
struct resp_decoder {
  uint32_t limit;
  uint32_t skip;
  uint32_t left[RESP_DEPTH_MAX];
  uint8_t depth;
  uint8_t attributes;
  uint8_t passing;
  int8_t error;
};

/*
 * Makes decoder ready for the first byte of a stream. limit: the longest payload or line, in bytes,
 * that is delivered whole; 0: only empty ones are.
 */
void resp_decoder_init(struct resp_decoder *decoder, uint32_t limit);

/*
 * Takes the next event from size bytes at data. *used is always set: the number of bytes that must
 * not be offered again. Returns RESP_EVENT, RESP_MORE or an error of enum resp_status. In a buffer
 * that holds limit + RESP_OVERHEAD bytes, RESP_MORE always leaves room to receive more. Work: one
 * value is looked at, and one that is not whole yet is again by the next call, from its start.
 */
int resp_decode(struct resp_decoder *decoder, const void *data, size_t size, size_t *used,
                struct resp_event *event);

/*
 * Writer. It writes a window of a message that may be longer than the buffer: the bytes from `skip`
 * on, as many as there is room for. To send a message in pieces, write it again for each piece,
 * with `skip` moved on by what was sent: this needs one number of state, and no memory for the
 * message. What it costs is time: each piece goes through the message from its start. A function
 * copies the bytes that there is room for; a number takes 20 digits at most.
 */
struct resp_writer {
  /* the caller's, and its size */
  uint8_t *buffer;
  size_t size;

  /* bytes in the buffer */
  size_t used;

  /* bytes of the message still to be left out before the first one kept */
  size_t skip;

  /* bytes of the message so far: kept, left out, and without room; SIZE_MAX at most */
  size_t total;
};

/*
 * Starts a message in the size bytes at buffer, which stay the caller's. The first skip bytes of
 * the message are left out.
 */
void resp_writer_init(struct resp_writer *writer, void *buffer, size_t size, size_t skip);

/* Writes bytes as they are, for a payload put together from parts. */
void resp_write_raw(struct resp_writer *writer, const void *data, size_t size);

/*
 * Writes type, number and CR LF: an integer, the head of an aggregate with that many elements
 * (pairs for a map), or the head of a payload of that many bytes, to be followed by
 * resp_write_raw() and resp_write_end(). A number of elements or bytes is 0 to RESP_LENGTH_MAX: the
 * decoder takes no other.
 */
void resp_write_header(struct resp_writer *writer, enum resp_type type, int64_t number);

/* Ends a payload that was begun by resp_write_header(). */
void resp_write_end(struct resp_writer *writer);

/* Writes a payload of a type that carries its length: bulk string, bulk error, verbatim string. */
void resp_write_payload(struct resp_writer *writer, enum resp_type type, const void *data,
                        size_t size);

/* Writes a bulk string, such as an argument of a command: any bytes, NUL, CR and LF included. */
void resp_write_bulk(struct resp_writer *writer, const void *data, size_t size);

/* Writes a number as a bulk string of decimal digits, the form that arguments of commands have. */
void resp_write_bulk_number(struct resp_writer *writer, int64_t number);

/*
 * Writes a value that is one line: simple string, simple error, double, big number, boolean ("t",
 * "f") or null (""). The text must not contain CR or LF; nothing is written and false returned if
 * it does.
 */
bool resp_write_line(struct resp_writer *writer, enum resp_type type, const void *text,
                     size_t size);

/* Room for the digits of any int64_t, its sign included. */
#define RESP_NUMBER_SIZE 20

/* Writes number in decimal to text, without an end mark. Returns the number of characters. */
size_t resp_format_number(char text[RESP_NUMBER_SIZE], int64_t number);

/*
 * Reads a decimal number that makes up all of text: an optional sign and 1 to 19 digits. Returns
 * false, and leaves *number alone, if it is malformed or does not fit.
 */
bool resp_parse_number(const void *text, size_t size, int64_t *number);

#ifdef __cplusplus
}
#endif

#endif
