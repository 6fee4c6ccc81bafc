/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec, request.c and texts.c, as any that keep their contracts, which are proved apart: in their place,
 * because a proof of all at once would not end.
 */
#ifndef PROOF_CODEC_H
#define PROOF_CODEC_H

#include "invariant.h"

void resp_decoder_init(struct resp_decoder *decoder, uint32_t limit)
{
  memset(decoder, 0, sizeof *decoder);
  decoder->limit = limit;
}

void resp_writer_init(struct resp_writer *writer, void *buffer, size_t size, size_t skip)
{
  *writer = (struct resp_writer){.buffer = buffer, .size = size, .skip = skip};
}

bool resp_parse_number(const void *text, size_t size, int64_t *number)
{
  CHECK(size == 0 || __CPROVER_r_ok(text, size));
  bool good = nondet_bool();
  ASSUME(!good || size > 0);
  if (good) *number = nondet_int64();
  return good;
}

/* Writes any part of a request of any length: as much as there is room for. */
void fairlock_request_write_output(const struct fairlock_engine *engine, struct resp_writer *writer)
{
  size_t rest = nondet_size();
  size_t written = nondet_size();
  size_t room = writer->size - writer->used;
  CHECK(engine == &E && __CPROVER_w_ok(writer->buffer, writer->size));
  CHECK(engine->request.handle == NULL || in_heap(engine->request.handle));
  ASSUME(writer->skip < SIZE_MAX / 4 && rest < SIZE_MAX / 4);
  ASSUME(written > 0 && written <= room);
  ASSUME(written == room || rest == 0);
  writer->used += written;
  writer->total = writer->skip + written + rest;
}

/* texts.c, or hashes.c. */
int fairlock_script_unknown(struct fairlock_engine *engine, struct resp_event *event, uint8_t kind)
{
  static const char text[20]; /* as engine_call.c's texts */
  CHECK(engine == &E && event->size <= sizeof text);
  engine->eval |= kind;
  if (nondet_bool()) {
    event->type = RESP_NULL;
    return FAIRLOCK_PENDING;
  }
  event->data = (const uint8_t *)text;
  event->size = sizeof text;
  return FAIRLOCK_UNAVAILABLE;
}

size_t fairlock_request_channel_size(const struct fairlock *handle)
{
  CHECK(in_heap(handle));
  return nondet_size();
}

bool fairlock_request_name_is_good(const char *name, size_t size)
{
  CHECK(name != NULL && size > 0 && size <= FAIRLOCK_NAME_MAX);
  return nondet_bool();
}

#endif
