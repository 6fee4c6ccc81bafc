/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that share their lock. Such a handle goes through the same phases, and its answers and
 * messages mean the same. Only its script is another one, which has the limit as a further argument.
 */
#include "fairlock_share.h"
#include "internal.h"

static void write_arguments(struct resp_writer *writer, const struct fairlock_request *request)
{
  uint32_t lease_ms = request->lease_ms;
  /* the script rounds the end of a share up, by a sixteenth at most */
  if (lease_ms != 0) fairlock_handle_outlast(request->handle, lease_ms + lease_ms / 16);
  fairlock_request_write_argument(writer, request);
  resp_write_bulk_number(writer, shared_of(request->handle)->limit);
}

const struct fairlock_query fairlock_shared_query = {.script = &fairlock_shared_script,
                                                     .words = 9,
                                                     .text = SHARED_TEXT,
                                                     .write = write_arguments,
                                                     .element = fairlock_reply_take_number,
                                                     .end = fairlock_reply_end};

int fairlock_engine_add_shared(struct fairlock_engine *engine, struct fairlock_shared *shared,
                               const char *name, size_t size, uint32_t limit)
{
  if (limit > FAIRLOCK_LIMIT_MAX) return FAIRLOCK_INVALID;
  int status = fairlock_engine_add(engine, &shared->handle, name, size);
  if (status != FAIRLOCK_OK) return status;
  shared->handle.query = &fairlock_shared_query;
  shared->limit = (uint16_t)limit;
  return FAIRLOCK_OK;
}
