/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gets user and password from a function of the program: for each greeting, and again before they
 * expire, for an AUTH on the open connection.
 *
 * The AUTH is the request of a handle that has no other purpose. So the schedule says when it is
 * due, it is sent between other requests, and its answer is recognised by its sequence number. This
 * handle never acquires, and does not ask for a connection.
 *
 * The engine calls this file only through its link, so a program that does not call
 * fairlock_use_credentials() links none of it.
 */
#include "fairlock_credentials.h"
#include "fairlock_follow.h"
#include "internal.h"

#include <string.h>

/* The shortest time from an AUTH to the next one: if it was accepted, and if it was not. */
#define SOONEST_AUTH_MS 500U
#define AUTH_RETRY_MS   1000U

/* How often to ask for new credentials after the old ones have expired. */
#define LATE_RETRY_MS 5000U

static struct fairlock_credentials *credentials_of(struct fairlock_link *link)
{
  return (struct fairlock_credentials *)(void *)((char *)link -
                                                 offsetof(struct fairlock_credentials, own.link));
}

static bool ask(struct fairlock_credentials *credentials, bool sentinel)
{
  struct fairlock_engine *engine = credentials->own.handle.engine;
  struct fairlock_login login = {.sentinel = sentinel,
                                 .refused = credentials->own.refused[sentinel]};
  credentials->own.sentinel = sentinel;
  if (!credentials->function(&login, credentials->context)) return false;
  credentials->own.refused[sentinel] = false;
  engine->user = login.user;
  engine->password = login.password;
  credentials->own.given_at = engine->now;
  credentials->own.valid_ms =
      login.valid_ms < FAIRLOCK_DURATION_MAX_MS ? login.valid_ms : FAIRLOCK_DURATION_MAX_MS;
  return true;
}

/* Of an AUTH. An answer that begins before it was written to the end is looked at, and refused. */
static const struct fairlock_query no_script = {.text = 0, .element = fairlock_reply_take_number};

/* Makes the next AUTH due in so many ms. */
static void schedule(struct fairlock *handle, uint32_t in_ms)
{
  fairlock_handle_send_at(handle, handle->engine->now + in_ms);
}

/* The server has accepted the credentials, or they are being sent in a greeting. */
static void use(struct fairlock_credentials *credentials)
{
  struct fairlock *handle = &credentials->own.handle;
  uint32_t wait = credentials->own.valid_ms / 4 * 3;
  handle->phase = credentials->own.valid_ms > 0 ? AUTHENTICATING : FREE;
  handle->ends_at = credentials->own.given_at + credentials->own.valid_ms;
  schedule(handle, wait > SOONEST_AUTH_MS ? wait : SOONEST_AUTH_MS);
}

/* There are no new credentials, or the server has refused them. The connection goes on without. */
static void try_later(struct fairlock *handle)
{
  uint32_t now = handle->engine->now;
  bool over = has_come(now, handle->ends_at);
  uint32_t half = (handle->ends_at - now) / 2;
  schedule(handle, over ? LATE_RETRY_MS : half > AUTH_RETRY_MS ? half : AUTH_RETRY_MS);
}

/* Gets credentials for a greeting. Returns false if there are none, and breaks the connection. */
static bool ask_first(struct fairlock_credentials *credentials)
{
  static const char none[] = "no credentials at present";
  struct fairlock_engine *engine = credentials->own.handle.engine;
  const struct resp_event reason = {.data = (const uint8_t *)none, .size = sizeof none - 1};
  bool sentinel = engine->topology != NULL && engine->topology->own.to_sentinel;
  if (ask(credentials, sentinel)) {
    use(credentials);
    return true;
  }
  fairlock_reply_note_error(engine, &reason);
  fairlock_engine_fail(engine, FAIRLOCK_DENIED);
  return false;
}

/* Gets credentials for an AUTH. Returns false if there are none: then no AUTH is sent now. */
static bool ask_again(struct fairlock_credentials *credentials)
{
  struct fairlock *handle = &credentials->own.handle;
  if (ask(credentials, false) && handle->engine->password != NULL) return true;
  fairlock_pipeline_withdraw(handle);
  try_later(handle);
  return false;
}

static void write_output(struct fairlock_engine *engine, struct resp_writer *writer,
                         struct fairlock_link *link)
{
  struct fairlock_credentials *credentials = credentials_of(link);
  const struct fairlock *handle = engine->request.handle;
  bool begins = engine->request_done == 0;
  if (handle == NULL && begins && !ask_first(credentials)) return;
  if (handle == &credentials->own.handle) {
    if (begins && !ask_again(credentials)) return;
    fairlock_request_write_command(writer, "AUTH", 3);
    fairlock_request_write_login(engine, writer);
  } else {
    write_inside(engine, writer, link);
  }
}

/* True if the error says that the server refuses the credentials. */
static bool refuses(const struct resp_event *event)
{
  return fairlock_reply_begins(event, "WRONGPASS") || fairlock_reply_begins(event, "NOAUTH");
}

/* Handles the answer to an AUTH. */
static void on_auth(struct fairlock_credentials *credentials, const struct resp_event *event)
{
  struct fairlock_engine *engine = credentials->own.handle.engine;
  bool error = is_error(engine);
  if (!error && event->type != RESP_SIMPLE_STRING) {
    fairlock_engine_fail(engine, FAIRLOCK_PROTOCOL);
    return;
  }
  fairlock_pipeline_count(engine);
  (void)fairlock_pipeline_answered(&credentials->own.handle);
  if (!error) {
    use(credentials);
    return;
  }
  credentials->own.refused[false] = refuses(event);
  fairlock_reply_note_error(engine, event);
  try_later(&credentials->own.handle);
}

static bool on_event(struct fairlock_engine *engine, struct resp_event *event,
                     struct fairlock_link *link)
{
  struct fairlock_credentials *credentials = credentials_of(link);
  bool push = engine->value_type == RESP_PUSH;
  if (!push && fairlock_pipeline_next_answered(engine) == &credentials->own.handle &&
      fairlock_pipeline_expects(engine)) {
    on_auth(credentials, event);
    return true;
  }
  if (is_error(engine) && refuses(event)) {
    credentials->own.refused[credentials->own.sentinel] = true;
    fairlock_reply_note_error(engine, event);
    fairlock_engine_fail(engine, FAIRLOCK_DENIED);
    /*
     * operations that wait for a connection go on waiting; requests are sent again on the next one
     */
    if (engine->stage < UP) return true;
  }
  return event_inside(engine, event, link);
}

static const struct fairlock_hooks hooks = {PLACE_CREDENTIALS, write_output, on_event,
                                            closed_inside};

void fairlock_engine_use_credentials(struct fairlock_engine *engine,
                                     struct fairlock_credentials *credentials)
{
  struct fairlock *handle = &credentials->own.handle;
  struct fairlock_link *before = fairlock_links_insert(engine, &credentials->own.link, &hooks);
  if (before != NULL) fairlock_schedule_remove(&credentials_of(before)->own.handle);
  memset(handle, 0, sizeof *handle);
  handle->engine = engine;
  handle->query = &no_script;
  fairlock_schedule_insert(handle, engine->now + HORIZON_MS);
  credentials->own.refused[false] = false;
  credentials->own.refused[true] = false;
}
