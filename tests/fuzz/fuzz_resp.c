/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the codec: any bytes, in any split, give the same events, and what the writer writes
 * is what the decoder reads.
 *
 * An input is a head of six bytes and a stream. Head: the decoder's limit (two bytes, little
 * endian, 0 to 1023), and four sizes of the pieces in which the stream is received, used in turn
 * (each 1 to 256). The stream is decoded at once, from memory of exactly its size; then in pieces,
 * through a linear buffer of exactly limit + RESP_OVERHEAD bytes as resp.h describes it. Both must
 * give the same events and the same end, and depths that agree with the counts announced. The
 * events are then written again, which must give the same bytes through any window, and those bytes
 * must give the same events.
 *
 * rules.mk makes two programs of it: one with libFuzzer, and one with replay.c that runs what is
 * committed here.
 */
#include "resp.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

enum { HEAD = 6, LARGEST_STREAM = 4096, LARGEST_LIMIT = 1023 };

/* What is compared of an event. */
struct seen {
  enum resp_type type;
  uint8_t depth;
  bool last;
  bool cut;
  int64_t integer;
  size_t size;
  uint64_t hash;
};

/*
 * Each event takes at least 3 bytes of the stream, except that a cut line may be told from fewer.
 */
struct log {
  struct seen seen[LARGEST_STREAM];
  size_t count;
  int status;
  size_t used;
};

static void require(bool condition, const char *what)
{
  if (condition) return;
  fprintf(stderr, "violated: %s\n", what);
  abort();
}

/* A copy in memory of its own, so that the sanitizer sees each byte read beyond it. */
static uint8_t *copy_of(const uint8_t *data, size_t size)
{
  uint8_t *copy = malloc(size > 0 ? size : 1);
  require(copy != NULL, "there is memory");
  if (size > 0) memcpy(copy, data, size);
  return copy;
}

static uint64_t hash_of(const uint8_t *data, size_t size)
{
  uint64_t hash = 14695981039346656037U;
  for (size_t i = 0; i < size; i++)
    hash = (hash ^ data[i]) * 1099511628211U;
  return hash;
}

static void add_event(struct log *log, const struct resp_event *event, uint32_t limit,
                      const uint8_t *data, size_t size)
{
  require(log->count < LARGEST_STREAM, "a stream has fewer events than bytes");
  require(event->size <= limit, "no text is longer than the limit");
  require(event->depth <= RESP_DEPTH_MAX, "nesting is bounded");
  require(event->size == 0 || (event->data >= data && event->data + event->size <= data + size),
          "text lies in the data");
  log->seen[log->count++] = (struct seen){event->type,
                                          event->depth,
                                          event->last,
                                          event->cut,
                                          event->integer,
                                          event->size,
                                          event->size > 0 ? hash_of(event->data, event->size) : 0};
}

/* Takes all events of the bytes at data; returns the bytes used. */
static size_t take_events(struct log *log, struct resp_decoder *decoder, uint32_t limit,
                          const uint8_t *data, size_t size)
{
  struct resp_event event;
  size_t start = 0;
  size_t used;
  while ((log->status = resp_decode(decoder, data + start, size - start, &used, &event)) ==
         RESP_EVENT) {
    require(used > 0 && used <= size - start, "an event uses bytes that there are");
    add_event(log, &event, limit, data + start, size - start);
    start += used;
  }
  require(used <= size - start, "no more is used than there is");
  if (log->status < 0) {
    int again = resp_decode(decoder, "+OK\r\n", 5, &used, &event);
    require(again == log->status && used == 0, "an error sticks");
    return start;
  }
  log->used += start + used;
  return start + used;
}

static void decode_at_once(struct log *log, uint32_t limit, const uint8_t *stream, size_t size)
{
  struct resp_decoder decoder;
  uint8_t *data = copy_of(stream, size);
  log->count = 0;
  log->used = 0;
  resp_decoder_init(&decoder, limit);
  take_events(log, &decoder, limit, data, size);
  free(data);
}

static void decode_in_pieces(struct log *log, uint32_t limit, const uint8_t pieces[4],
                             const uint8_t *stream, size_t size)
{
  struct resp_decoder decoder;
  const size_t room = limit + RESP_OVERHEAD;
  uint8_t *buffer = malloc(room);
  size_t held = 0;
  size_t received = 0;
  log->count = 0;
  log->used = 0;
  log->status = RESP_MORE;
  require(buffer != NULL, "there is memory");
  resp_decoder_init(&decoder, limit);
  for (unsigned turn = 0; received < size && log->status == RESP_MORE; turn++) {
    size_t piece = pieces[turn % 4] + 1U;
    require(held < room, "there is room for more");
    if (piece > size - received) piece = size - received;
    if (piece > room - held) piece = room - held;
    memcpy(buffer + held, stream + received, piece);
    received += piece;
    held += piece;
    size_t used = take_events(log, &decoder, limit, buffer, held);
    held -= used;
    memmove(buffer, buffer + used, held);
  }
  free(buffer);
}

static void require_same(const struct log *one, const struct log *other)
{
  require(one->count == other->count, "the number of events is the same");
  for (size_t i = 0; i < one->count; i++) {
    const struct seen *a = &one->seen[i];
    const struct seen *b = &other->seen[i];
    require(a->type == b->type && a->depth == b->depth && a->last == b->last,
            "events have the same place");
    require(a->cut == b->cut && a->integer == b->integer, "events have the same value");
    require(a->size == b->size && a->hash == b->hash, "events have the same text");
  }
  require(one->status == other->status, "the end is the same");
}

/* Counts again which aggregates are open, and requires that each event says so. */
static void check_structure(const struct log *log)
{
  uint64_t left[RESP_DEPTH_MAX + 1];
  bool attribute[RESP_DEPTH_MAX + 1];
  unsigned depth = 0;
  for (size_t i = 0; i < log->count; i++) {
    const struct seen *seen = &log->seen[i];
    bool aggregate = memchr("*%~|>", (int)seen->type, 5) != NULL;
    bool pairs = seen->type == RESP_MAP || seen->type == RESP_ATTRIBUTE;
    bool ends = seen->type != RESP_ATTRIBUTE;
    require(seen->depth == depth, "an event tells its depth");
    require(seen->type != RESP_PUSH || depth == 0, "a push is outermost");
    if (aggregate && seen->integer > 0) {
      require(depth < RESP_DEPTH_MAX && !seen->last, "an open aggregate is not complete");
      attribute[depth] = seen->type == RESP_ATTRIBUTE;
      left[depth++] = (uint64_t)seen->integer * (pairs ? 2 : 1);
      continue;
    }
    while (ends && depth > 0) {
      ends = --left[depth - 1] == 0 && !attribute[depth - 1];
      if (left[depth - 1] == 0) depth--;
    }
    require(seen->last == ends, "the last event of an outermost value says so");
  }
}

/* Writes an event as it would stand in a stream. */
static void write_event(struct resp_writer *writer, const struct resp_event *event)
{
  bool taken = true;
  switch (event->type) {
  case RESP_SIMPLE_STRING:
  case RESP_SIMPLE_ERROR:
  case RESP_DOUBLE:
  case RESP_BIG_NUMBER:
    taken = resp_write_line(writer, event->type, event->data, event->size);
    break;
  case RESP_NULL:
    taken = resp_write_line(writer, event->type, NULL, 0);
    break;
  case RESP_BOOLEAN:
    taken = resp_write_line(writer, event->type, event->integer ? "t" : "f", 1);
    break;
  case RESP_BULK_STRING:
    resp_write_bulk(writer, event->data, event->size);
    break;
  case RESP_BULK_ERROR:
  case RESP_VERBATIM_STRING:
    resp_write_payload(writer, event->type, event->data, event->size);
    break;
  default:
    resp_write_header(writer, event->type, event->integer);
    break;
  }
  require(taken, "a line that was read can be written");
}

/* Writes all events of the stream up to the first one that is cut, through a window. */
static void write_events(struct resp_writer *writer, uint32_t limit, const uint8_t *stream,
                         size_t size)
{
  struct resp_decoder decoder;
  struct resp_event event;
  size_t used;
  resp_decoder_init(&decoder, limit);
  for (size_t start = 0;
       resp_decode(&decoder, stream + start, size - start, &used, &event) == RESP_EVENT;
       start += used) {
    if (event.cut) return;
    write_event(writer, &event);
  }
}

/* A number that an integer of the stream may hold is the same after it was written. */
static void check_numbers(const struct log *log)
{
  for (size_t i = 0; i < log->count; i++) {
    char text[RESP_NUMBER_SIZE];
    int64_t back;
    size_t size = resp_format_number(text, log->seen[i].integer);
    require(size > 0 && size <= sizeof text, "a number fits its room");
    require(resp_parse_number(text, size, &back) && back == log->seen[i].integer,
            "a number is read as written");
  }
}

static void check_writer(struct log *log, uint32_t limit, const uint8_t pieces[4],
                         const uint8_t *stream, size_t size)
{
  static struct log again;
  static uint8_t whole[2 * LARGEST_STREAM];
  struct resp_writer writer;
  resp_writer_init(&writer, whole, sizeof whole, 0);
  write_events(&writer, limit, stream, size);
  size_t length = writer.total;
  require(writer.used == length, "what is written is not much longer than what was read");

  decode_at_once(&again, limit, whole, length);
  size_t count = 0;
  while (count < log->count && !log->seen[count].cut)
    count++;
  require(again.count == count, "what is written has as many events");
  log->count = count;
  log->status = again.status;
  require(again.status == RESP_MORE && again.used == length, "what is written is whole");
  require_same(log, &again);

  unsigned turn = 0;
  for (size_t sent = 0; sent < length; sent += writer.used) {
    size_t room = pieces[turn++ % 4] + 1U;
    uint8_t *window = malloc(room);
    require(window != NULL, "there is memory");
    resp_writer_init(&writer, window, room, sent);
    write_events(&writer, limit, stream, size);
    require(writer.total == length, "the message is the same through any window");
    require(writer.used == (room < length - sent ? room : length - sent), "a window is filled");
    require(memcmp(window, whole + sent, writer.used) == 0, "a window shows the message");
    free(window);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
  static struct log at_once;
  static struct log in_pieces;
  if (size < HEAD || size > HEAD + LARGEST_STREAM) return 0;
  uint32_t limit = (input[0] | (uint32_t)input[1] << 8) & LARGEST_LIMIT;
  const uint8_t *pieces = input + 2;
  const uint8_t *stream = input + HEAD;
  size -= HEAD;
  decode_at_once(&at_once, limit, stream, size);
  decode_in_pieces(&in_pieces, limit, pieces, stream, size);
  require_same(&at_once, &in_pieces);
  require(at_once.status < 0 || at_once.used == in_pieces.used, "the same bytes are used");
  check_structure(&at_once);
  check_numbers(&at_once);
  check_writer(&at_once, limit, pieces, stream, size);
  return 0;
}
