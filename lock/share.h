/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How handles that share their lock write and read, for share.c and downgrade.c. What is inline here
 * costs the one of them nothing that only the other needs. Private to the engine.
 */
#ifndef FAIRLOCK_SHARE_H
#define FAIRLOCK_SHARE_H

#include "fairlock_share.h"
#include "internal.h"

#include <string.h>

static inline const struct fairlock_shared *fairlock_shared_of(const struct fairlock *handle)
{
  return (const struct fairlock_shared *)(const void *)handle; /* its first member */
}

static inline struct fairlock_sharing *fairlock_sharing_of(struct fairlock_link *link)
{
  return (struct fairlock_sharing *)(void *)((char *)link -
                                             offsetof(struct fairlock_sharing, own.link));
}

/*
 * A request begins to be written. Decides whether the script is sent as text: one of own.eval's bits
 * says so. The engine's are for the script of those who want a lock alone. If two scripts took each
 * other's, one that comes first again and again would leave the other without.
 */
static inline void fairlock_share_choose_form(struct fairlock_engine *engine,
                                              struct fairlock_sharing *sharing, uint8_t own)
{
  struct fairlock_request *request = &engine->request;
  uint32_t lease_ms = request->lease_ms;
  /* the script rounds the end of a share up, by a sixteenth at most */
  if (lease_ms != 0) fairlock_handle_outlast(request->handle, lease_ms + lease_ms / 16);
  engine->eval |= request->eval;
  request->eval = sharing->own.eval & own;
  sharing->own.eval ^= request->eval;
}

/*
 * Writes the request as request.c does, but for the script, and the limit behind the argument. newer: a
 * token behind the limit; 0: none.
 */
static inline void fairlock_share_write_request(struct resp_writer *writer,
                                                const struct fairlock_request *request,
                                                const struct fairlock_script *script,
                                                uint64_t newer)
{
  const struct fairlock *handle = request->handle;
  if (request->subscribe) {
    const char *command = request->kind == KIND_LEAVE ? "SUNSUBSCRIBE" : "SSUBSCRIBE";
    fairlock_request_write_command(writer, handle->engine->sharded ? command : command + 1, 2);
    fairlock_request_write_bulk(writer, handle, fairlock_request_channel_prefix);
  }
  fairlock_script_write(writer, script, request->eval, newer != 0 ? 10 : 9);
  fairlock_request_write_text(writer, "4");
  resp_write_bulk(writer, handle->name, handle->name_size);
  for (const char *prefix = fairlock_request_key_prefixes; *prefix != 0;
       prefix += strlen(prefix) + 1)
    fairlock_request_write_bulk(writer, handle, prefix);
  fairlock_request_write_bulk(writer, handle, NULL);
  resp_write_bulk_number(writer, fairlock_shared_of(handle)->limit);
  if (newer != 0) resp_write_bulk_number(writer, (int64_t)newer);
}

/* Writes with a request what the inner links add to it: all that they write but the request itself. */
static inline void fairlock_share_write_additions(struct fairlock_engine *engine,
                                                  struct resp_writer *writer,
                                                  const struct fairlock_link *link)
{
  struct resp_writer nowhere;
  resp_writer_init(&nowhere, NULL, 0, 0);
  fairlock_request_write_output(engine, &nowhere);
  writer->skip += nowhere.total;
  write_inside(engine, writer, link);
  writer->total -= nowhere.total;
}

/* share.c */
extern const struct fairlock_hooks fairlock_share_hooks;

#endif
