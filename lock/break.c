/*
 * Ends somebody else's hold, or asks its holder to release it, for an operator.
 *
 * The request names the hold, by its token or its holder, so that it does not touch a hold that has
 * begun since. The holder is asked by a message on the channel on which it has waited.
 */
#include "internal.h"

#include <string.h>

/* Writes the argument of the script; break.lua describes it. */
static void write_break(struct resp_writer *writer, const struct fairlock_request *request)
{
  const struct fairlock_hold *hold = request->handle->by.hold;
  const char *holder = hold->holder != NULL ? hold->holder : "*";
  resp_write_raw(writer, holder, strlen(holder));
  fairlock_request_write_number(writer, ' ', request->expires);
  fairlock_request_write_number(writer, ' ', hold->own.mode);
  fairlock_request_write_number(writer, ' ', 0);
  if (hold->token != 0 && hold->token != FAIRLOCK_ANY_TOKEN)
    fairlock_request_write_number(writer, ' ', (int64_t)hold->token);
}

/*
 * True if the request can name this hold: the holder's id has no space, because that separates
 * words, and is not *, which stands for any holder; and the token is one that a hold can have, or 0
 * with a holder. 0 alone is what a report has of a hold without a token: it must not mean all holds.
 */
static bool can_be_named(const struct fairlock_hold *hold)
{
  const char *holder = hold->holder != NULL ? hold->holder : "x";
  bool good = holder[0] != 0 && !(holder[0] == '*' && holder[1] == 0);
  for (; *holder != 0; holder++) {
    if (*holder == ' ' || (*holder >= '\t' && *holder <= '\r')) good = false;
  }
  if (hold->token == 0) return good && hold->holder != NULL;
  return good && (hold->token <= LARGEST || hold->token == FAIRLOCK_ANY_TOKEN);
}

static const struct fairlock_query breaking = {.script = &fairlock_break_script,
                                               .write_words = write_break};

static int begin_breaking(struct fairlock *handle, struct fairlock_hold *hold, int8_t mode,
                          uint32_t now)
{
  handle->engine->now = now;
  if (!can_be_named(hold)) return FAIRLOCK_INVALID;
  int status = fairlock_handle_begin_query(handle, FORCING);
  if (status != FAIRLOCK_PENDING) return status;
  hold->own.breaking = &breaking;
  hold->own.mode = mode;
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
