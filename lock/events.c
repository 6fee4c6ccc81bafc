/*
 * Tells the caller what happens to the connection.
 *
 * The engine knows nothing of this: the log takes the place of a topology, sees what arrives and
 * each end of a connection, and passes both on to the topology that was there before, if any. So a
 * program that does not log links none of it, and pays nothing.
 */
#include "internal.h"

#include <string.h>

/* What an engine without a topology does. */

static bool take_nothing(struct fairlock_engine *engine, struct resp_event *event)
{
  (void)engine;
  (void)event;
  return false;
}

static void write_plainly(struct fairlock_engine *engine, struct resp_writer *writer)
{
  fairlock_write_output(engine, writer);
}

static bool stay(struct fairlock_engine *engine)
{
  (void)engine;
  return false;
}

static const struct fairlock_router plain = {take_nothing, write_plainly, stay};

/* The log */

static struct fairlock_log *log_of(struct fairlock_engine *engine)
{
  /* its first member */
  return (struct fairlock_log *)(void *)engine->topology;
}

static void tell(const struct fairlock_log *log, enum fairlock_log_event event, int status,
                 const char *text)
{
  log->function(event, status, text, log->context);
}

/* The server's error, which has been dealt with. */
static void tell_refused(const struct fairlock_log *log, const struct resp_event *event)
{
  char text[FAIRLOCK_ERROR_SIZE];
  size_t size = event->size < sizeof text ? event->size : sizeof text - 1;
  memcpy(text, event->data, size);
  text[size] = 0;
  tell(log, FAIRLOCK_LOG_REFUSED, FAIRLOCK_REFUSED, text);
}

static bool redirected(const struct fairlock_engine *engine)
{
  return engine->broken && engine->last_error == FAIRLOCK_OK;
}

/* Has the engine take the event as if there were no log, and tells the log what came of it. */
static bool see(struct fairlock_engine *engine, struct resp_event *event)
{
  struct fairlock_log *log = log_of(engine);
  bool error = event->depth == 0 && (event->type == RESP_SIMPLE_ERROR ||
                                     (event->type == RESP_BULK_ERROR && !event->cut));
  const struct fairlock_router *own = log->topology.router;
  log->topology.router = log->router;
  fairlock_take_event(engine, event);
  log->topology.router = own;
  if (!log->up && engine->stage == UP) {
    log->up = true;
    tell(log, FAIRLOCK_LOG_CONNECTED, FAIRLOCK_OK, NULL);
  }
  /* a NOSCRIPT refuses nothing: the engine sends the script and goes on */
  if (error && !redirected(engine) && !fairlock_begins(event, "NOSCRIPT")) tell_refused(log, event);
  return true;
}

static void pass_on(struct fairlock_engine *engine, struct resp_writer *writer)
{
  log_of(engine)->router->write_output(engine, writer);
}

static bool see_end(struct fairlock_engine *engine)
{
  struct fairlock_log *log = log_of(engine);
  int why = engine->broken ? engine->last_error : FAIRLOCK_UNREACHABLE;
  if (redirected(engine)) tell(log, FAIRLOCK_LOG_REDIRECTED, why, log->topology.address);
  else tell(log, log->up ? FAIRLOCK_LOG_DISCONNECTED : FAIRLOCK_LOG_NOT_CONNECTED, why, NULL);
  log->up = false;
  return log->router->closed(engine);
}

static const struct fairlock_router logging = {see, pass_on, see_end};

void fairlock_engine_keep_log(struct fairlock_engine *engine, struct fairlock_log *log)
{
  if (engine->topology == &log->topology) return; /* it is kept already */
  log->up = false;
  log->router = &plain;
  memset(&log->topology, 0, sizeof log->topology);
  if (engine->topology != NULL) {
    log->topology = *engine->topology;
    log->router = engine->topology->router;
  }
  if (log->router == &logging) {
    /* this log replaces another: log_of() finds it as the topology, so there can be only one */
    log->up = log_of(engine)->up;
    log->router = log_of(engine)->router;
  }
  log->topology.router = &logging;
  engine->topology = &log->topology;
}
