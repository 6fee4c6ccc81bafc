/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: from any window, one piece of a message goes to where the window has it, and no byte is
 * written outside of the buffer. So, by induction over the pieces, what is in the buffer are the bytes
 * of the message from skip on, as many as there is room for, and the same bytes for each split of a
 * message into windows.
 *
 * Assumed: a window as resp_writer_init() and other pieces leave it; a message that is shorter than
 * SIZE_MAX; a piece and a buffer of up to SIZE bytes.
 */
#include "proof.h"

#include "resp/encode.c"

/* Of so many bytes, those behind skip for which there is room. */
static size_t in_window(size_t total, size_t skip, size_t size)
{
  size_t behind = total > skip ? total - skip : 0;
  return behind < size ? behind : size;
}

void harness(void)
{
  size_t size = nondet_size(), piece = nondet_size(), skip = nondet_size(), total = nondet_size();
  struct resp_writer writer;
  ASSUME(size <= SIZE && piece <= SIZE && total <= SIZE_MAX - piece);
  uint8_t *buffer = any_bytes(size);
  const uint8_t *data = any_bytes(piece);

  resp_writer_init(&writer, buffer, size, skip);
  CHECK(writer.used == in_window(0, skip, size) && writer.skip == skip && writer.total == 0);

  size_t used = in_window(total, skip, size);
  writer = (struct resp_writer){buffer, size, used, skip > total ? skip - total : 0, total};
  size_t old = nondet_size(); /* any byte that is there already */
  uint8_t was = old < used ? buffer[old] : 0;
  resp_write_raw(&writer, data, piece);
  CHECK(writer.buffer == buffer && writer.size == size && writer.total == total + piece);
  CHECK(writer.used == in_window(writer.total, skip, size) && writer.used <= size);
  CHECK(writer.skip == (skip > writer.total ? skip - writer.total : 0));
  CHECK(old >= used || buffer[old] == was);
  size_t at = nondet_size(); /* any byte of the piece */
  bool inside = at < piece && total + at >= skip && total + at - skip < size;
  CHECK(!inside || buffer[total + at - skip] == data[at]);
  REACHED(inside && used > 0 && writer.used == size && used + piece > size);
  REACHED(inside && total < skip && writer.used > 1);
  REACHED(piece > 0 && writer.skip > 0);
  REACHED(piece == 0 && size == 0);
}
