/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the program's log what happens to the connection. The engine calls this file only through
 * its link, so a program without a log does not link it.
 */
#include "fairlock_follow.h"
#include "fairlock_log.h"
#include "internal.h"

#include <string.h>

static struct fairlock_log *log_of(struct fairlock_link *link)
{
  return (struct fairlock_log *)(void *)((char *)link - offsetof(struct fairlock_log, own.link));
}

static void log_event(const struct fairlock_log *log, enum fairlock_log_event event, int status,
                      const char *text)
{
  log->function(event, status, text, log->context);
}

static void log_text(const struct fairlock_log *log, enum fairlock_log_event kind, int status,
                     const struct resp_event *event)
{
  char text[FAIRLOCK_ERROR_SIZE];
  size_t size = event->size < sizeof text ? event->size : sizeof text - 1;
  memcpy(text, event->data, size);
  text[size] = 0;
  log_event(log, kind, status, text);
}

/*
 * Whether the event was a message that asks a holder to release, FAIRLOCK_LOG_ASKED, whose text is the token
 * of the hold, or tells it that this was broken, FAIRLOCK_LOG_BROKEN, with 0; 0: neither. Behind that may be
 * words, of which the first does not begin with a digit.
 */
static int told_holder(const struct fairlock_engine *engine, const struct resp_event *event)
{
  const struct fairlock *handle = engine->addressee;
  int64_t token;
  if (engine->value_type != RESP_PUSH || engine->push_type != PUSH_MESSAGE) return 0;
  if (engine->element != 3 || event->depth != 1 || handle == NULL || !holding(handle)) return 0;
  size_t at = 0;
  while (at < event->size && event->data[at] != ' ')
    at++;
  if (at + 1 < event->size && event->data[at + 1] >= '0' && event->data[at + 1] <= '9') return 0;
  if (!resp_parse_number(event->data, at, &token)) return 0;
  if (token == 0) return FAIRLOCK_LOG_BROKEN;
  return (uint64_t)token == handle->token ? FAIRLOCK_LOG_ASKED : 0;
}

/*
 * Lets the inner links and the engine handle the event first, and then reports what has happened.
 */
static bool on_event(struct fairlock_engine *engine, struct resp_event *event,
                     struct fairlock_link *link)
{
  struct fairlock_log *log = log_of(link);
  if (!event_inside(engine, event, link)) fairlock_reply_process(engine, event);
  bool error = event->depth == 0 && (event->type == RESP_SIMPLE_ERROR ||
                                     (event->type == RESP_BULK_ERROR && !event->cut));
  if (!log->own.up && engine->stage == UP) {
    log->own.up = true;
    log_event(log, FAIRLOCK_LOG_CONNECTED, FAIRLOCK_OK, NULL);
  }
  if (error && !redirected(engine)) log_text(log, FAIRLOCK_LOG_REFUSED, FAIRLOCK_REFUSED, event);
  int told = told_holder(engine, event);
  if (told != 0) log_text(log, (enum fairlock_log_event)told, FAIRLOCK_OK, event);
  return true;
}

/* Reports the end of the connection, before topology.c chooses the next server. */
static bool on_closed(struct fairlock_engine *engine, struct fairlock_link *link)
{
  struct fairlock_log *log = log_of(link);
  int why = engine->broken ? engine->failure : FAIRLOCK_UNREACHABLE;
  enum fairlock_log_event event =
      log->own.up ? FAIRLOCK_LOG_DISCONNECTED : FAIRLOCK_LOG_NOT_CONNECTED;
  if (redirected(engine)) log_event(log, FAIRLOCK_LOG_REDIRECTED, why, engine->topology->address);
  else log_event(log, event, why, fairlock_status_text(why));
  log->own.up = false;
  return closed_inside(engine, link);
}

static const struct fairlock_hooks hooks = {PLACE_LOG, write_inside, on_event, on_closed};

void fairlock_engine_set_log(struct fairlock_engine *engine, struct fairlock_log *log)
{
  log->own.up = engine->stage == UP;
  (void)fairlock_links_insert(engine, &log->own.link, &hooks);
}
