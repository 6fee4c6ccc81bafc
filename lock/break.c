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

static const struct fairlock_target *target_of(const struct fairlock *handle)
{
  return (const void *)((const char *)handle->by.inquiry -
                        offsetof(struct fairlock_target, own.inquiry));
}

/* Writes the words of the script's argument; break.lua describes them. */
static void write_words(struct resp_writer *writer, const struct fairlock_request *request)
{
  const struct fairlock_target *target = target_of(request->handle);
  const char *holder = target->holder != NULL ? target->holder : "*";
  resp_write_raw(writer, holder, strlen(holder));
  fairlock_request_write_number(writer, ' ', request->expires);
  fairlock_request_write_number(writer, ' ', target->own.mode);
  fairlock_request_write_number(writer, ' ', 0);
  if (target->token != 0 && target->token != FAIRLOCK_ANY_TOKEN)
    fairlock_request_write_number(writer, ' ', (int64_t)target->token);
}

static void write_argument(struct resp_writer *writer, const struct fairlock_request *request)
{
  struct resp_writer nowhere;
  resp_writer_init(&nowhere, NULL, 0, 0);
  write_words(&nowhere, request);
  resp_write_header(writer, RESP_BULK_STRING, (int64_t)nowhere.total);
  write_words(writer, request);
  resp_write_end(writer);
}

static void write_target(struct resp_writer *writer, const struct fairlock_request *request)
{
  const char *words = target_of(request->handle)->words;
  size_t size = words != NULL ? strlen(words) : 0;
  write_argument(writer, request);
  resp_write_header(writer, RESP_BULK_STRING, (int64_t)(size > 0 ? size + 1 : 0));
  if (size > 0) resp_write_raw(writer, " ", 1);
  resp_write_raw(writer, words, size);
  resp_write_end(writer);
}

/* True if others can read what is said as FORMAT.md has it: who, which does not begin with a digit, and why. */
static bool can_be_said(const char *words)
{
  size_t who = 0;
  if (words == NULL || *words == 0) return true;
  while (words[who] != 0 && words[who] != ' ')
    who++;
  bool digit = *words >= '0' && *words <= '9';
  return who > 0 && who <= 64 && !digit && strlen(words) <= who + 129;
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

/* The reply, {state, value, now}, has ended. */
static int end_break(struct fairlock_engine *engine)
{
  const int64_t *values = engine->values;
  int status = fairlock_reply_end(engine);
  if (status != FAIRLOCK_OK || values[0] == 1) return status;
  if (values[0] != -2) return values[1] != 0 ? FAIRLOCK_NOT_LISTENING : FAIRLOCK_NOT_HELD;
  /* the request had expired: it is sent again, by the server's present time */
  fairlock_reply_set_time(engine, values[2], fairlock_pipeline_next_answered(engine)->sent_at[0]);
  return FAIRLOCK_PENDING;
}

static const struct fairlock_query breaking = {.script = &fairlock_break_script,
                                               .words = 9,
                                               .text = BREAK_TEXT,
                                               .write = write_target,
                                               .element = fairlock_reply_take_number,
                                               .end = end_break};

static int begin_breaking(struct fairlock *handle, struct fairlock_target *target, int8_t mode,
                          uint32_t now)
{
  handle->engine->now = now;
  if (!can_be_named(target) || !can_be_said(target->words)) return FAIRLOCK_INVALID;
  int status = fairlock_handle_begin_query(handle, &target->own.inquiry);
  if (status != FAIRLOCK_PENDING) return status;
  target->own.inquiry.query = &breaking;
  target->own.mode = mode;
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
