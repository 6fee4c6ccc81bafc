/*
 * What an operator does to somebody else's hold: ends it, or asks its holder to release it.
 *
 * The request names the hold, by token or holder, so a hold that has begun since is not touched. A
 * holder is asked by a message on the channel where it has waited.
 */
#include "internal.h"

#include <string.h>

/* The argument that break.lua describes. */
static void write_break(struct resp_writer *writer, const struct fairlock_request *request)
{
  const struct fairlock_hold *hold = request->handle->by.hold;
  const char *holder = hold->holder != NULL ? hold->holder : "*";
  resp_write_raw(writer, holder, strlen(holder));
  fairlock_request_write_number(writer, ' ', request->expires);
  fairlock_request_write_number(writer, ' ', hold->mode);
  fairlock_request_write_number(writer, ' ', 0);
  if (hold->token != 0) fairlock_request_write_number(writer, ' ', (int64_t)hold->token);
}

/*
 * The request can say which hold is meant: its words have no space in them, a * stands for whoever
 * holds, and no hold has a larger token.
 */
static bool can_be_named(const struct fairlock_hold *hold)
{
  const char *holder = hold->holder != NULL ? hold->holder : "x";
  bool good = holder[0] != 0 && !(holder[0] == '*' && holder[1] == 0);
  for (; *holder != 0; holder++) {
    if (*holder == ' ' || (*holder >= '\t' && *holder <= '\r')) good = false;
  }
  return good && hold->token <= LARGEST;
}

static const struct fairlock_breaking breaking = {&fairlock_break_script, write_break};

static int begin_breaking(struct fairlock *handle, struct fairlock_hold *hold, int8_t mode,
                          uint32_t now)
{
  handle->engine->now = now;
  if (!can_be_named(hold)) return FAIRLOCK_INVALID;
  int status = fairlock_handle_begin_query(handle, FORCING);
  if (status != FAIRLOCK_PENDING) return status;
  hold->breaking = &breaking;
  hold->mode = mode;
  handle->by.hold = hold;
  return status;
}

int fairlock_engine_force(struct fairlock *handle, struct fairlock_hold *hold, uint32_t now)
{
  return begin_breaking(handle, hold, -1, now);
}

int fairlock_engine_ask(struct fairlock *handle, struct fairlock_hold *hold, uint32_t now)
{
  return begin_breaking(handle, hold, -2, now);
}
