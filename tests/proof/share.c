/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What share.c writes in place of a request. The inner links write a request of their own, and
 * something behind it: of these bytes none but what is behind reaches the buffer, in its place of the
 * window, whatever was written before. So, as for the writer, the bytes of all pieces together are
 * those of the shared request and of what is behind it, however they are split.
 *
 * Assumed: a window as other pieces leave it (writer); what numbers take (format); requests and
 * buffers of up to SIZE bytes.
 */
#include "proof.h"

#include "lock/share.c"

#include "resp/encode.c"

static uint8_t *plain, *behind;
static size_t plain_size, behind_size;
static bool linked;

void fairlock_request_write_output(const struct fairlock_engine *engine, struct resp_writer *writer)
{
  (void)engine;
  resp_write_raw(writer, plain, plain_size);
}

/* The inner link, as topology.c's. */
static void write_both(struct fairlock_engine *engine, struct resp_writer *writer,
                       struct fairlock_link *link)
{
  CHECK(link != NULL);
  fairlock_request_write_output(engine, writer);
  resp_write_raw(writer, behind, behind_size);
}

/* Of so many bytes, those behind skip for which there is room. */
static size_t in_window(size_t total, size_t skip, size_t size)
{
  size_t rest = total > skip ? total - skip : 0;
  return rest < size ? rest : size;
}

static void additions(void)
{
  static const struct fairlock_hooks inner_hooks = {.write = write_both};
  struct fairlock_link inner = {&inner_hooks, NULL};
  struct fairlock_link link = {NULL, nondet_bool() ? &inner : NULL};
  struct fairlock_engine engine;
  size_t size = nondet_size(), skip = nondet_size(), total = nondet_size();
  plain_size = nondet_size();
  behind_size = nondet_size();
  ASSUME(size <= SIZE && plain_size <= SIZE && behind_size <= SIZE);
  ASSUME(total <= SIZE_MAX / 4 && skip <= SIZE_MAX / 4);
  uint8_t *buffer = any_bytes(size);
  plain = any_bytes(plain_size);
  behind = any_bytes(behind_size);

  size_t used = in_window(total, skip, size);
  struct resp_writer writer = {buffer, size, used, skip > total ? skip - total : 0, total};
  size_t old = nondet_size(); /* any byte that is there already */
  uint8_t was = old < used ? buffer[old] : 0;
  fairlock_share_write_additions(&engine, &writer, &link);
  size_t written = link.inner != NULL ? behind_size : 0;
  CHECK(writer.buffer == buffer && writer.size == size && writer.total == total + written);
  CHECK(writer.used == in_window(writer.total, skip, size) && writer.used <= size);
  CHECK(old >= used || buffer[old] == was);
  size_t at = nondet_size(); /* any byte of what is behind */
  bool inside = at < written && total + at >= skip && total + at - skip < size;
  CHECK(!inside || buffer[total + at - skip] == behind[at]);
  REACHED(inside && plain_size > 1 && used > 0);
  REACHED(inside && total < skip);
  REACHED(link.inner == NULL && plain_size > 1 && used < size);
}

void harness(void)
{
  CALL();
}
