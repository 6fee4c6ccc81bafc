/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends somebody else's hold, or asks its holder to release it, for an operator.
 *
 * The request names the hold, by its token or its holder, so that it does not touch a hold that has
 * begun since. The holder is asked by a message on the channel on which it has waited.
 */
#include "fairlock_operate.h"
#include "internal.h"

#include <string.h>

/* Writes the argument of the script; break.lua describes it. */
static void write_break(struct resp_writer *writer, const struct fairlock_request *request)
{
  const struct fairlock_target *target = request->handle->by.hold;
  const char *holder = target->holder != NULL ? target->holder : "*";
  resp_write_raw(writer, holder, strlen(holder));
  fairlock_request_write_number(writer, ' ', request->expires);
  fairlock_request_write_number(writer, ' ', target->own.mode);
  fairlock_request_write_number(writer, ' ', 0);
  if (target->token != 0 && target->token != FAIRLOCK_ANY_TOKEN)
    fairlock_request_write_number(writer, ' ', (int64_t)target->token);
}

/*
 * True if the request can name this hold: the holder's id has no space, because that separates
 * words, and is not *, which stands for any holder; and the token is one that a hold can have, or 0
 * with a holder. 0 alone is what a report has of a hold without a token: it must not mean all holds.
 */
static bool can_be_named(const struct fairlock_target *target)
{
  const char *holder = target->holder != NULL ? target->holder : "x";
  bool good = holder[0] != 0 && !(holder[0] == '*' && holder[1] == 0);
  for (; *holder != 0; holder++) {
    if (*holder == ' ' || (*holder >= '\t' && *holder <= '\r')) good = false;
  }
  if (target->token == 0) return good && target->holder != NULL;
  return good && (target->token <= LARGEST || target->token == FAIRLOCK_ANY_TOKEN);
}

static const struct fairlock_query breaking = {.script = &fairlock_break_script,
                                               .write_words = write_break};

static int begin_breaking(struct fairlock *handle, struct fairlock_target *target, int8_t mode,
                          uint32_t now)
{
  handle->engine->now = now;
  if (!can_be_named(target)) return FAIRLOCK_INVALID;
  int status = fairlock_handle_begin_query(handle, FORCING);
  if (status != FAIRLOCK_PENDING) return status;
  target->own.breaking = &breaking;
  target->own.mode = mode;
  handle->by.hold = target;
  return status;
}

int fairlock_engine_force(struct fairlock *handle, struct fairlock_target *target, uint32_t now)
{
  return begin_breaking(handle, target, -1, now);
}

int fairlock_engine_ask(struct fairlock *handle, struct fairlock_target *target, uint32_t now)
{
  return begin_breaking(handle, target, -2, now);
}
