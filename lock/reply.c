/*
 * What the server says: the events of the decoder become answers, in the order of the requests, and messages.
 *
 * Nothing the server sends is trusted. A reply that is not of the expected shape, a reply that nobody asked for, and
 * bytes that are no RESP break the connection; a message that is not for one of our handles is ignored.
 */
#include "internal.h"

#include <string.h>

/* The largest number that Lua, and so the server, holds exactly. No time and no token is larger. */
#define LARGEST ((uint64_t)1 << 53)

/* What a message is about. */
enum push { PUSH_OTHER, PUSH_SUBSCRIBE, PUSH_MESSAGE };

/* The text of the event begins with these words. */
static bool begins(const struct resp_event *event, const char *words)
{
  size_t i;
  for (i = 0; words[i] != 0; i++) {
    if (i == event->size || event->data[i] != (uint8_t)words[i]) return false;
  }
  return i == event->size || event->data[i] == ' ';
}

/* Codes at the beginning of error texts, and what they mean to us. */
static const struct {
  char code[12];
  int8_t status;
} errors[] = {
    {"NOAUTH", FAIRLOCK_DENIED},
    {"WRONGPASS", FAIRLOCK_DENIED},
    {"NOPERM", FAIRLOCK_DENIED},
    {"NOPROTO", FAIRLOCK_UNSUPPORTED},
    {"LOADING", FAIRLOCK_LOADING},
    {"BUSY", FAIRLOCK_LOADING},
    {"MASTERDOWN", FAIRLOCK_LOADING},
    {"CLUSTERDOWN", FAIRLOCK_LOADING},
    {"TRYAGAIN", FAIRLOCK_LOADING},
    {"READONLY", FAIRLOCK_READONLY},
    {"OOM", FAIRLOCK_OOM},
    {"MISCONF", FAIRLOCK_MISCONF},
    {"NOREPLICAS", FAIRLOCK_MISCONF},
};

static int classify(const struct resp_event *event)
{
  if (begins(event, "ERR The user executing the script")) return FAIRLOCK_DENIED; /* NOPERM, as Redis 7.0 says it */
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    if (begins(event, errors[i].code)) return errors[i].status;
  }
  return FAIRLOCK_REFUSED;
}

/* Keeps the text for the caller. */
static void keep_error(struct fairlock_engine *engine, const struct resp_event *event)
{
  size_t i;
  for (i = 0; i < event->size && i < FAIRLOCK_ERROR_SIZE - 1; i++)
    engine->error[i] = (char)event->data[i];
  engine->error[i] = 0;
}

static void bad_reply(struct fairlock_engine *engine)
{
  engine->broken = true;
  engine->trouble = FAIRLOCK_PROTOCOL;
}

/* The handle whose request is answered next, or NULL when a newer request of its has superseded that one. */
static struct fairlock *next_answered(const struct fairlock_engine *engine)
{
  struct fairlock *handle = engine->sent.first;
  return handle != NULL && handle->sequence == engine->last_received + 1 ? handle : NULL;
}

/* A request was answered. When none is left that may be under way, here or since an earlier connection, none is to be void. */
static void count_answer(struct fairlock_engine *engine)
{
  bool last = ++engine->last_received == engine->last_sent && !engine->writing;
  if (last && ghosts_gone(engine, engine->now)) engine->void_after = 0;
}

/*
 * An error instead of an answer. A SUBSCRIBE has no reply of its own when it succeeds, but an error when it is
 * refused: that one comes before the answer to the request it was sent with.
 */
static void take_error(struct fairlock_engine *engine, const struct resp_event *event)
{
  struct fairlock *handle = next_answered(engine);
  int status = classify(event);
  bool unknown = begins(event, "NOSCRIPT"); /* that a script is not known yet is our own affair */
  if (!unknown) keep_error(engine, event);
  if (engine->stage < UP) {
    if (engine->stage == GREETING && begins(event, "ERR unknown command")) status = FAIRLOCK_UNSUPPORTED;
    refused(engine, status);
    return;
  }
  if (handle != NULL && (handle->flags & SUBSCRIBING) && !(handle->flags & (SUBSCRIBED | CLOSING))) {
    handle->flags |= SUBSCRIBED; /* so that the next error is the request's own */
    if (handle->state == WAITING) handle->verdict = (int8_t)status;
    return;
  }
  count_answer(engine);
  if (handle == NULL) return;
  if (unknown) engine->eval |= handle->kind;
  handle_answer(handle, unknown ? FAIRLOCK_PENDING : status);
}

/* The reply is an array of so many numbers, as it has to be. */
static bool is_array(struct fairlock_engine *engine, uint32_t size)
{
  bool good = engine->value_type == RESP_ARRAY && engine->element == size && !engine->odd;
  if (!good) bad_reply(engine);
  return good;
}

/* The server has told its time, asked for it then. */
static void take_time(struct fairlock_engine *engine, int64_t server_now, uint32_t asked_at)
{
  engine->server_now = server_now;
  engine->asked_at = asked_at;
  engine->sampled_at = engine->now;
}

/* The answer to a request of ours: {state, value, now}. */
static void take_answer(struct fairlock_engine *engine)
{
  struct fairlock *handle = next_answered(engine);
  count_answer(engine);
  if (handle == NULL) return;
  int status = FAIRLOCK_OK;
  if (handle->kind != KIND_INSPECT) {
    if (!is_array(engine, 3)) return;
    take_time(engine, engine->values[2], handle->sent_at);
    if (engine->values[0] == -2) status = FAIRLOCK_PENDING; /* void: its time was reckoned wrongly, and is right now */
  }
  handle_answer(handle, status);
}

/* The answer to a part of the greeting: HELLO's map, SELECT's OK, TIME's {seconds, microseconds}. */
static void take_greeting(struct fairlock_engine *engine)
{
  if (engine->stage < GREETING) {
    bad_reply(engine);
  } else if (engine->stage == GREETING && engine->value_type != RESP_MAP) {
    refused(engine, FAIRLOCK_UNSUPPORTED);
  } else if (engine->stage == GREETING && engine->config->database > 0) {
    engine->stage = SELECTING;
  } else if (engine->stage < TIMING) {
    engine->stage = TIMING;
  } else if (is_array(engine, 2)) {
    /* microseconds fit 32 bits, and a division of 64 costs 900 bytes on a Cortex-M */
    take_time(engine, engine->values[0] * 1000 + (uint32_t)engine->values[1] / 1000, engine->filled_at);
    greeted(engine);
  }
}

/* The handle whose channel this is: its id ends the name. */
static struct fairlock *find_addressee(const struct fairlock_engine *engine, const struct resp_event *event)
{
  size_t at = event->size;
  int64_t number;
  while (at > 0 && event->data[at - 1] != ':')
    at--;
  if (at == 0 || !resp_parse_number(event->data + at, event->size - at, &number)) return NULL;
  for (struct fairlock *handle = engine->handles; handle != NULL; handle = handle->sibling) {
    if (handle->number == number) return channel_size(handle) == event->size ? handle : NULL;
  }
  return NULL;
}

/* The text of a message: "0", or the token and the time of a grant. */
static void take_message(struct fairlock_engine *engine, const struct resp_event *event)
{
  size_t first = 0;
  int64_t token;
  int64_t at = 0;
  while (first < event->size && event->data[first] != ' ')
    first++;
  size_t second = first + 1;
  if (!resp_parse_number(event->data, first, &token)) return;
  if (second <= event->size && !resp_parse_number(event->data + second, event->size - second, &at)) return;
  if ((uint64_t)token > LARGEST || (uint64_t)at > LARGEST) return; /* or below 0 */
  handle_push(engine->addressee, (uint64_t)token, at);
}

/* An element of a message: its kind, the channel, the text. */
static void take_push(struct fairlock_engine *engine, const struct resp_event *event)
{
  if (engine->element == 0) {
    engine->push_type = begins(event, "message")     ? PUSH_MESSAGE
                        : begins(event, "subscribe") ? PUSH_SUBSCRIBE
                                                     : PUSH_OTHER;
  } else if (engine->element == 1) {
    engine->addressee = find_addressee(engine, event);
    if (engine->push_type == PUSH_SUBSCRIBE && engine->addressee != NULL) engine->addressee->flags |= SUBSCRIBED;
  } else if (engine->element == 2 && engine->push_type == PUSH_MESSAGE && engine->addressee != NULL) {
    take_message(engine, event);
  }
}

void take_number(struct fairlock_engine *engine, const struct resp_event *event, uint32_t index)
{
  int64_t value = event->integer;
  bool number = event->type == RESP_INTEGER;
  if (event->type == RESP_BULK_STRING) number = resp_parse_number(event->data, event->size, &value);
  bool sane = number && value >= -2 && value <= (int64_t)LARGEST && index < VALUES;
  if (sane) engine->values[index] = value;
  else engine->odd = true;
}

static void take_element(struct fairlock_engine *engine, const struct resp_event *event)
{
  const struct fairlock *handle = next_answered(engine);
  if (engine->value_type == RESP_PUSH) {
    take_push(engine, event);
  } else if (engine->stage == UP && handle != NULL && handle->kind == KIND_INSPECT) {
    engine->inspection->take(engine, event);
  } else {
    take_number(engine, event, engine->element);
  }
  engine->element++;
}

void take_event(struct fairlock_engine *engine, const struct resp_event *event)
{
  if (event->type == RESP_ATTRIBUTE) {
    bad_reply(engine); /* none was asked for */
    return;
  }
  if (event->depth == 0) {
    engine->value_type = (uint8_t)event->type;
    engine->element = 0;
    engine->odd = false;
    engine->addressee = NULL;
  } else if (event->depth == 1) {
    take_element(engine, event);
  }
  if (!event->last || engine->value_type == RESP_PUSH) return;
  bool error = engine->value_type == RESP_SIMPLE_ERROR || engine->value_type == RESP_BULK_ERROR;
  if (engine->stage == UP && engine->last_received == engine->last_sent) {
    bad_reply(engine); /* nobody asked */
  } else if (error) {
    take_error(engine, event);
  } else if (engine->stage < UP) {
    take_greeting(engine);
  } else {
    take_answer(engine);
  }
}
