/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server says: turns the events of the decoder into answers, which come in the order of
 * the requests, and into messages.
 *
 * Nothing that the server sends is trusted. A reply of an unexpected shape, a reply without a
 * request, and bytes that are not RESP break the connection. A message for none of our handles is
 * ignored.
 */
#include "internal.h"

#include <string.h>

/* The index in `values` where the connection's number is stored until the greeting is complete. */
enum { HELLO_ID = 2 };

/* True if the text of the event begins with these words. */
bool fairlock_reply_begins(const struct resp_event *event, const char *words)
{
  size_t i;
  for (i = 0; words[i] != 0; i++) {
    if (i == event->size || event->data[i] != (uint8_t)words[i]) return false;
  }
  return i == event->size || event->data[i] == ' ';
}

/*
 * The beginnings of error texts, and the statuses that they mean. A server that has reached
 * maxclients says "ERR max number of clients reached" at once, before any request. For NOPERM in a
 * script, Redis 7.0 says "ERR The user executing the script can't ...", 6.2 the same without ERR, and
 * 7.2 and Valkey "ERR ACL failure in script: ...". topology.c has the errors of a cluster while a slot
 * moves. NEEDS is our scripts' own.
 */
#define ERRORS(ROW)                                                                                \
  ROW("NOAUTH", DENIED)                                                                            \
  ROW("WRONGPASS", DENIED)                                                                         \
  ROW("NOPERM", DENIED)                                                                            \
  ROW("ERR The", DENIED)                                                                           \
  ROW("The", DENIED)                                                                               \
  ROW("ERR ACL", DENIED)                                                                           \
  ROW("NOPROTO", UNSUPPORTED)                                                                      \
  ROW("ERR unknown", UNSUPPORTED)                                                                  \
  ROW("LOADING", UNAVAILABLE)                                                                      \
  ROW("BUSY", UNAVAILABLE)                                                                         \
  ROW("MASTERDOWN", UNAVAILABLE)                                                                   \
  ROW("CLUSTERDOWN", UNAVAILABLE)                                                                  \
  ROW("ERR max", UNAVAILABLE)                                                                      \
  ROW("READONLY", READONLY)                                                                        \
  ROW("OOM", OOM)                                                                                  \
  ROW("MISCONF", MISCONF)                                                                          \
  ROW("NOREPLICAS", MISCONF)                                                                       \
  ROW("NEEDS", OUTDATED)                                                                           \
  ROW("MOVED", WRONG_SHARD)

/* The texts in one string, which takes the least flash, and the statuses in the same order. */
#define ROW_TEXT(text, status)   text "\0"
#define ROW_STATUS(text, status) FAIRLOCK_##status,
static const char error_texts[] = ERRORS(ROW_TEXT);
static const int8_t error_statuses[] = {ERRORS(ROW_STATUS) FAIRLOCK_REFUSED};

/* The place in this list of words, each ended by a 0, of those with which the event begins. */
static unsigned find_words(const struct resp_event *event, const char *words)
{
  unsigned place = 0;
  for (; *words != 0 && !fairlock_reply_begins(event, words); place++)
    words += strlen(words) + 1;
  return place;
}

static int classify(const struct resp_event *event)
{
  return error_statuses[find_words(event, error_texts)];
}

/* Stores the error's text for fairlock_error(). */
void fairlock_reply_note_error(struct fairlock_engine *engine, const struct resp_event *event)
{
  size_t size = 0;
  for (; size < event->size && size < FAIRLOCK_ERROR_SIZE - 1; size++)
    engine->error[size] = (char)event->data[size];
  engine->error[size] = 0;
}

static void bad_reply(struct fairlock_engine *engine)
{
  fairlock_engine_fail(engine, FAIRLOCK_PROTOCOL);
}

/*
 * True for the first answers on a connection: that to its first script, and what comes before it. (So it
 * is again after 65,536 of them, when one sample counts as any other.)
 */
static bool first(const struct fairlock_engine *engine)
{
  return engine->last_received - 1U < 5;
}

/*
 * Measures the round trip by an answer that has come now to a request that was sent at asked_at. If
 * we are late, the answer may have arrived earlier, and is not used.
 *
 * A greeting may have lain in the socket of a server that stood still, as systems accept connections
 * for it. That cannot be told from a long way, so it counts, but only until the first answers.
 */
static void measure(struct fairlock_engine *engine, uint32_t asked_at)
{
  uint32_t sample = engine->now - asked_at;
  if (came_late(engine) || sample > ROUND_TRIP_MAX_MS) return;
  if (sample > engine->round_trip_ms || first(engine)) engine->round_trip_ms = sample;
  else engine->round_trip_ms -= (engine->round_trip_ms - sample + 7) / 8;
  fairlock_engine_set_timeouts(engine);
}

/* Handles the answer to the SUBSCRIBE or UNSUBSCRIBE of the handle. */
static void on_subscription_answer(struct fairlock *handle, int status)
{
  fairlock_pipeline_count(handle->engine);
  fairlock_handle_on_subscribed(handle, status);
}

/*
 * Redis 6.2 puts the place where a script stopped before the reason: "ERR Error running script
 * (call to f_SHA1): @user_script:3: @user_script: 3: -OOM command not allowed". Removes it. The
 * reason begins with the first capital letter after the place.
 */
static void strip_place(struct resp_event *event)
{
  if (!fairlock_reply_begins(event, "ERR Error")) return;
  for (size_t i = 9; i < event->size; i++) {
    if (event->data[i] < 'A' || event->data[i] > 'Z') continue;
    event->data += i;
    event->size -= i;
    return;
  }
}

/* The server's time is known by an answer to a request that was sent at asked_at. */
void fairlock_reply_set_time(struct fairlock_engine *engine, int64_t server_now, uint32_t asked_at)
{
  engine->server_now = server_now;
  engine->asked_at = asked_at;
  engine->sampled_at = engine->now;
}

/*
 * Handles the answer to the oldest request, which has this status. FAIRLOCK_OK: the reply, {state,
 * value, now}, is in engine->values.
 */
void fairlock_reply_answered(struct fairlock_engine *engine, int status)
{
  struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  fairlock_pipeline_count(engine);
  if (handle == NULL) return;
  uint32_t sent_at = fairlock_pipeline_answered(handle);
  if (status == FAIRLOCK_OK && handle->phase != QUERYING) {
    measure(engine, sent_at);
    fairlock_reply_set_time(engine, engine->values[2], sent_at);
    /*
     * the request had expired, because our estimate of the server's time was wrong: it is sent
     * again
     */
    if (engine->values[0] == -2) status = FAIRLOCK_PENDING;
  }
  fairlock_handle_on_reply(handle, status, sent_at);
}

/* Returns the status of a request whose script the server does not know. */
static int on_unknown_script(struct fairlock_engine *engine, struct resp_event *event)
{
  const struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  return fairlock_script_unknown(engine, event, handle != NULL ? query_of(handle)->text : 0);
}

/* Handles an error reply, which means this status. */
void fairlock_reply_on_error(struct fairlock_engine *engine, struct resp_event *event, int status)
{
  struct fairlock *handle = fairlock_pipeline_next_subscribed(engine);
  /*
   * a link has ended the connection, for a redirection or for new credentials: the request is sent
   * again, and the caller gets no error
   */
  if (engine->broken) status = FAIRLOCK_PENDING;
  else if (engine->stage == UP && fairlock_reply_begins(event, "NOSCRIPT"))
    status = on_unknown_script(engine, event);
  if (status != FAIRLOCK_PENDING) fairlock_reply_note_error(engine, event);
  if (engine->stage < UP) fairlock_engine_refused(engine, status);
  else if (handle != NULL) on_subscription_answer(handle, status);
  else fairlock_reply_answered(engine, status);
}

/* Returns true if the reply is an array of `size` numbers; otherwise breaks the connection. */
static bool is_array(struct fairlock_engine *engine, uint32_t size)
{
  bool good = engine->value_type == RESP_ARRAY && engine->element == size && !engine->malformed;
  if (!good) bad_reply(engine);
  return good;
}

void fairlock_reply_take_number(struct fairlock_engine *engine, const struct resp_event *event)
{
  fairlock_reply_note_number(engine, event, engine->element);
}

/* The end of a reply {state, value, now}. */
int fairlock_reply_end(struct fairlock_engine *engine)
{
  return is_array(engine, 3) ? FAIRLOCK_OK : FAIRLOCK_PROTOCOL;
}

const struct fairlock_query fairlock_lock_query = {.script = &fairlock_lock_script,
                                                   .words = 8,
                                                   .text = LOCK_TEXT,
                                                   .write = fairlock_request_write_argument,
                                                   .element = fairlock_reply_take_number,
                                                   .end = fairlock_reply_end};

/* Handles the answer to a script. */
static void on_answer(struct fairlock_engine *engine)
{
  const struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  int status = FAIRLOCK_OK;
  if (handle == NULL && fairlock_pipeline_next_subscribed(engine) != NULL) {
    bad_reply(engine);
    return;
  }
  if (handle != NULL) status = query_of(handle)->end(engine);
  /* after a wrong reply, the request stays unanswered, and is sent again on the next connection */
  if (handle != NULL && status == FAIRLOCK_PROTOCOL && handle->phase != QUERYING) return;
  fairlock_reply_answered(engine, status);
}

/* Handles the answer to a part of the greeting: HELLO's map, SELECT's OK, TIME's {seconds, us}. */
static void on_greeting(struct fairlock_engine *engine)
{
  if (engine->stage < GREETING) {
    bad_reply(engine);
  } else if (engine->stage == GREETING && engine->value_type != RESP_MAP) {
    fairlock_engine_refused(engine, FAIRLOCK_UNSUPPORTED);
  } else if (engine->stage == GREETING && engine->config->database > 0) {
    fairlock_engine_advance_greeting(engine, SELECTING);
  } else if (engine->stage < TIMING) {
    fairlock_engine_advance_greeting(engine, TIMING);
  } else if (is_array(engine, 2)) {
    /* microseconds fit into 32 bits, and a 64-bit division takes 900 bytes on a Cortex-M */
    measure(engine, engine->filled_at);
    fairlock_reply_set_time(engine, engine->values[0] * 1000 + (uint32_t)engine->values[1] / 1000,
                            engine->filled_at);
    fairlock_engine_greeted(engine);
  }
}

/*
 * Takes an element of HELLO's map, and stores the number of this connection, for the client's id.
 */
static void on_hello_element(struct fairlock_engine *engine, const struct resp_event *event)
{
  if (engine->id_is_next) fairlock_reply_note_number(engine, event, HELLO_ID);
  engine->id_is_next = engine->element % 2 == 0 && fairlock_reply_begins(event, "id");
}

/* The handle that listens on this channel, whose name ends in the handle's id; or NULL. */
static struct fairlock *find_addressee(const struct fairlock_engine *engine,
                                       const struct resp_event *event)
{
  size_t at = event->size;
  int64_t number;
  while (at > 0 && event->data[at - 1] != ':')
    at--;
  if (at == 0 || !resp_parse_number(event->data + at, event->size - at, &number)) return NULL;
  struct fairlock *handle = engine->first;
#if !PORT_ONE_TASK
  /* of thousands, the one whose SUBSCRIBE, or request behind it, is answered next */
  if (engine->oldest != NULL && engine->oldest->number == number) handle = engine->oldest;
#endif
  while (handle != NULL && handle->number != number)
    handle = fairlock_schedule_next(handle, true);
  if (handle == NULL || !(handle->flags & (SUBSCRIBED | SUBSCRIBING))) return NULL;
  return fairlock_request_channel_size(handle) == event->size ? handle : NULL;
}

/*
 * Handles the text of a message. It is a grant: its token, its time, how long it lasts, and perhaps
 * words of a later release. Or it is a token, and perhaps words, of which the first does not begin with
 * a digit: who sent it, and why. Anything else, such as Redisson's "0", tells a waiter to ask now.
 */
static void on_message(struct fairlock_engine *engine, const struct resp_event *event)
{
  int64_t numbers[3];
  size_t size = event->size;
  const uint8_t *text = event->data;
  unsigned count = 0;
  for (; count < 3; count++) {
    size_t length = 0;
    while (length < size && text[length] != ' ')
      length++;
    if (!resp_parse_number(text, length, &numbers[count])) break;
    if ((uint64_t)numbers[count] > LARGEST) break; /* too large, or negative */
    if (length < size) length++;
    text += length;
    size -= length;
  }
  bool alone = count == 1 && (size == 0 || *text < '0' || *text > '9');
  uint32_t claim_ms = 0;
  /* a claim that is longer than this can tell is too long to be believed anyway */
  if (count == 3) claim_ms = numbers[2] < UINT32_MAX ? (uint32_t)numbers[2] : UINT32_MAX;
  if (claim_ms == 0 && !alone) numbers[0] = 0;
  numbers[2] = claim_ms;
  fairlock_handle_on_message(engine->addressee, numbers, text, size);
}

/* Takes an element of a push: its kind, the channel, the text. */
static void on_push_element(struct fairlock_engine *engine, const struct resp_event *event)
{
  struct fairlock *handle = engine->addressee;
  if (engine->element == 0) {
    engine->push_type = (uint8_t)find_words(event, "message\0unsubscribe\0subscribe\0");
  } else if (engine->element == 1) {
    engine->addressee = find_addressee(engine, event);
    handle = engine->addressee;
    if (handle != NULL && subscribes(engine) && fairlock_pipeline_subscription_next(handle))
      on_subscription_answer(handle, FAIRLOCK_OK);
  } else if (engine->element == 2 && engine->push_type == PUSH_MESSAGE && handle != NULL) {
    on_message(engine, event);
  }
}

void fairlock_reply_note_number(struct fairlock_engine *engine, const struct resp_event *event,
                                uint32_t index)
{
  int64_t value = event->integer;
  bool number = event->type == RESP_INTEGER;
  if (event->type == RESP_BULK_STRING) number = resp_parse_number(event->data, event->size, &value);
  bool sane = number && value >= -2 && value <= (int64_t)LARGEST && index < VALUES;
  if (sane) engine->values[index] = value;
  else engine->malformed = true;
}

static void on_element(struct fairlock_engine *engine, const struct resp_event *event)
{
  const struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  if (engine->value_type == RESP_PUSH) {
    on_push_element(engine, event);
  } else if (engine->stage == GREETING) {
    on_hello_element(engine, event);
  } else if (engine->stage == UP && handle != NULL) {
    query_of(handle)->element(engine, event);
  } else {
    fairlock_reply_take_number(engine, event);
  }
  engine->element++;
}

/* An event that none of the options has dealt with. */
void fairlock_reply_process(struct fairlock_engine *engine, struct resp_event *event)
{
  if (event->depth == 1) on_element(engine, event);
  if (!event->last || engine->value_type == RESP_PUSH) return;
  if (engine->stage == UP && !fairlock_pipeline_expects(engine)) {
    bad_reply(engine);
  } else if (is_error(engine)) {
    fairlock_reply_on_error(engine, event, classify(event));
  } else if (engine->stage < UP) {
    on_greeting(engine);
  } else {
    on_answer(engine);
  }
}

void fairlock_reply_on_event(struct fairlock_engine *engine, struct resp_event *event)
{
  if (event->type == RESP_ATTRIBUTE) {
    bad_reply(engine); /* there is no request that this could answer */
    return;
  }
  if (event->depth == 0) {
    engine->value_type = (uint8_t)event->type;
    engine->element = 0;
    engine->malformed = false;
    engine->id_is_next = false;
    engine->addressee = NULL;
  }
  if (is_error(engine)) strip_place(event);
  struct fairlock_link *links = engine->links;
  if (links != NULL && links->hooks->event(engine, event, links)) return;
  fairlock_reply_process(engine, event);
}
