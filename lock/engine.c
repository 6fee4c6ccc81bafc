/*
 * The connection: opening, greeting, sending in order, noticing that it is dead, and time.
 *
 * Handles that want to send stand in the list `ready`. When the send buffer is empty it is filled with their
 * requests, each of which then stands in the list `sent` under a sequence number until its answer, the one
 * with the same number, arrives. A handle that wants to send again moves to `ready`, and the answer to its older request
 * then finds nobody. An answer that does not come in time means that the connection is dead: it is closed, and
 * whatever was under way is wanted again on the next one.
 */
#include "internal.h"

#include <string.h>

/* Nothing is due for so long. Shorter than it might be: for all of our clock's round but this, `next` is seen to be past. */
#define FAR (FAIRLOCK_LONGEST_MS / 16)

static uint32_t earlier(uint32_t a, uint32_t b)
{
  return reached(a, b) ? b : a;
}

void arm(struct fairlock_engine *engine, uint32_t time)
{
  engine->next = earlier(engine->next, time);
}

/* Lists */

static struct fairlock_list *list_of(struct fairlock_engine *engine, enum list list)
{
  return list == READY ? &engine->ready : &engine->sent;
}

void unlist(struct fairlock *handle)
{
  if (handle->list == UNLISTED) return;
  struct fairlock_list *list = list_of(handle->engine, (enum list)handle->list);
  if (handle->previous != NULL) handle->previous->next = handle->next;
  else list->first = handle->next;
  if (handle->next != NULL) handle->next->previous = handle->previous;
  else list->last = handle->previous;
  handle->list = UNLISTED;
}

void append(struct fairlock *handle, enum list to)
{
  struct fairlock_list *list = list_of(handle->engine, to);
  handle->previous = list->last;
  handle->next = NULL;
  if (list->last != NULL) list->last->next = handle;
  else list->first = handle;
  list->last = handle;
  handle->list = (uint8_t)to;
}

/* The handle wants to send. Not while a SUBSCRIBE is under way: its outcome shows in the answer to its request. */
void want(struct fairlock *handle)
{
  handle->engine->changed = true;
  if (handle->flags & SUBSCRIBING) {
    handle->flags |= AGAIN;
  } else if (handle->list != READY) {
    unlist(handle);
    append(handle, READY);
  }
}

/* Set-up */

static bool good_id(const char *id)
{
  for (; *id != 0; id++) {
    if (*id <= ' ' || *id > '~' || *id == ':') return false;
  }
  return true;
}

static void random_id(struct fairlock_engine *engine, const uint8_t *entropy)
{
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 16; i++) {
    engine->id[2 * i] = digits[entropy[i] >> 4];
    engine->id[2 * i + 1] = digits[entropy[i] & 15];
  }
  engine->id_size = 32;
}

int fairlock_engine_init(struct fairlock_engine *engine, const struct fairlock_config *config, const uint8_t *entropy)
{
  memset(engine, 0, sizeof *engine);
  engine->config = config;
  engine->changed = true;
  engine->response_ms = config_or(config->response_ms, RESPONSE_MS);
  engine->connect_ms = config_or(config->connect_ms, CONNECT_MS);
  engine->offline_ms = config_or(config->offline_ms, OFFLINE_MS);
  if (config->receive_buffer == NULL || config->send_buffer == NULL) return FAIRLOCK_INVALID;
  if (config->response_ms > FAIRLOCK_LONGEST_MS || config->connect_ms > FAIRLOCK_LONGEST_MS) return FAIRLOCK_INVALID;
  if (!good_lease(config->lease_ms) || !good_wait(config->offline_ms)) return FAIRLOCK_INVALID;
  if (entropy != NULL) memcpy(&engine->random, entropy, sizeof engine->random);
  engine->random |= 1; /* never 0 */
  if (config->client_id != NULL) {
    size_t size = strlen(config->client_id);
    if (size > FAIRLOCK_ID_MAX) return FAIRLOCK_TOO_LONG;
    if (size == 0 || !good_id(config->client_id)) return FAIRLOCK_INVALID;
    memcpy(engine->id, config->client_id, size);
    engine->id_size = (uint8_t)size;
  } else {
    if (entropy == NULL) return FAIRLOCK_NO_ENTROPY;
    random_id(engine, entropy);
  }
  if (config->send_size < FAIRLOCK_SEND_MIN) return FAIRLOCK_TOO_LONG;
  if (config->receive_size < FAIRLOCK_RECEIVE_SIZE(1U, engine->id_size)) return FAIRLOCK_TOO_LONG;
  resp_decoder_init(&engine->decoder, (uint32_t)(config->receive_size - RESP_OVERHEAD));
  return FAIRLOCK_OK;
}

int fairlock_engine_add(struct fairlock_engine *engine, struct fairlock *handle, const char *name, size_t size)
{
  if (name == NULL || size == 0) return FAIRLOCK_INVALID;
  if (size > FAIRLOCK_NAME_MAX) return FAIRLOCK_TOO_LONG;
  if (engine->config->receive_size < FAIRLOCK_RECEIVE_SIZE(size, engine->id_size)) return FAIRLOCK_TOO_LONG;
  memset(handle, 0, sizeof *handle);
  handle->engine = engine;
  handle->name = name;
  handle->name_size = (uint16_t)size;
  handle->number = ++engine->last_number;
  handle->sibling = engine->handles;
  engine->handles = handle;
  return FAIRLOCK_OK;
}

/* The connection's life */

static uint32_t random_below(struct fairlock_engine *engine, uint32_t limit)
{
  uint32_t x = engine->random;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  engine->random = x;
  return x % limit;
}

/* The first attempt to reconnect comes within 50 ms, the later ones within twice the time each, up to 5 s. */
static uint32_t back_off(struct fairlock_engine *engine)
{
  uint32_t most = 5000;
  if (engine->failures < 7) most = 50U << engine->failures++;
  return most / 2 + random_below(engine, most / 2 + 1);
}

static void enter(struct fairlock_engine *engine, enum stage stage)
{
  engine->stage = (uint8_t)stage;
  engine->since = engine->now;
  engine->changed = true;
}

void fairlock_engine_connect(struct fairlock_engine *engine, uint32_t now)
{
  engine->wanted = engine->stage != UP;
  if (engine->stage == CLOSED) engine->pause = 0;
  engine->next = now;
}

bool fairlock_engine_ready(const struct fairlock_engine *engine)
{
  return engine->stage == UP;
}

void fairlock_engine_opening(struct fairlock_engine *engine, uint32_t now)
{
  engine->now = now;
  if (engine->stage == CLOSED) enter(engine, OPENING);
}

void fairlock_engine_opened(struct fairlock_engine *engine, uint32_t now)
{
  engine->now = now;
  enter(engine, GREETING);
  engine->writing = true;
  engine->request_done = 0;
}

/* The greeting was answered: the server's time is known, and with it when the requests of old connections are void. */
void greeted(struct fairlock_engine *engine)
{
  int64_t wait = engine->void_after - engine->server_now + 1;
  if (wait < 0) wait = 0;
  if (wait > FAIRLOCK_LONGEST_MS / 2) wait = FAIRLOCK_LONGEST_MS / 2;
  engine->void_ms = (uint32_t)wait + margin((uint32_t)wait);
  enter(engine, UP);
  engine->wanted = false;
  engine->stats.connects++;
}

/* The server refuses the greeting. */
void refused(struct fairlock_engine *engine, int status)
{
  engine->broken = true;
  engine->trouble = (int8_t)status;
  if (status == FAIRLOCK_LOADING) return;
  for (struct fairlock *handle = engine->handles; handle != NULL; handle = handle->sibling) {
    handle_failed(handle, status);
  }
}

void fairlock_engine_closed(struct fairlock_engine *engine, int status, uint32_t now)
{
  engine->now = now;
  bool never_up = engine->stage != UP;
  if (engine->trouble == FAIRLOCK_OK) engine->trouble = (int8_t)status;
  enter(engine, CLOSED);
  engine->pause = (uint16_t)back_off(engine);
  engine->broken = false;
  engine->wanted = false;
  engine->writing = false;
  engine->request.handle = NULL;
  engine->send_start = 0;
  engine->send_end = 0;
  engine->receive_end = 0;
  engine->last_sent = 0;
  engine->last_received = 0;
  resp_decoder_init(&engine->decoder, engine->decoder.limit);
  for (struct fairlock *handle = engine->handles; handle != NULL; handle = handle->sibling) {
    handle_broken(handle);
    if (never_up && (handle->operation == TRY || handle->state == ASKING)) {
      handle_failed(handle, engine->trouble);
    }
  }
}

unsigned fairlock_engine_wants(const struct fairlock_engine *engine, uint32_t now)
{
  if (engine->broken) return FAIRLOCK_CLOSE;
  if (engine->stage == OPENING) return FAIRLOCK_CONNECT;
  if (engine->stage == CLOSED) {
    bool needed = engine->wanted || engine->ready.first != NULL;
    return needed && now - engine->since >= engine->pause ? FAIRLOCK_CONNECT : 0;
  }
  bool more = engine->writing || (engine->stage == UP && engine->ready.first != NULL);
  return FAIRLOCK_RECEIVE | (more || engine->send_end > 0 ? FAIRLOCK_SEND : 0U);
}

/* Sending */

/* Takes the next request on, unless one is being written. False when there is none. */
static bool take_request(struct fairlock_engine *engine)
{
  if (engine->writing) return true;
  if (engine->stage != UP) return false;
  struct fairlock *handle = engine->ready.first;
  while (handle != NULL && held_back(handle)) {
    unlist(handle);
    handle = engine->ready.first;
  }
  if (handle == NULL) return false;
  unlist(handle);
  freeze_request(handle);
  engine->request_done = 0;
  engine->writing = true;
  return true;
}

static void end_request(struct fairlock_engine *engine)
{
  struct fairlock *handle = engine->request.handle;
  engine->writing = false;
  engine->request.handle = NULL;
  if (handle == NULL) return;
  engine->stats.requests++;
  handle->sequence = ++engine->last_sent;
  if (handle->list == UNLISTED && handle->flight != 0) append(handle, SENT);
  arm(engine, handle->sent_at + engine->response_ms);
}

const uint8_t *fairlock_engine_output(struct fairlock_engine *engine, size_t *size, uint32_t now)
{
  uint8_t *buffer = engine->config->send_buffer;
  size_t room = engine->config->send_size;
  engine->now = now;
  if (engine->send_end == 0 && engine->stage > OPENING && !engine->broken) {
    while (engine->send_end < room && take_request(engine)) {
      struct resp_writer writer;
      resp_writer_init(&writer, buffer + engine->send_end, room - engine->send_end, engine->request_done);
      write_output(engine, &writer);
      engine->send_end += writer.used;
      engine->request_done += writer.used;
      if (engine->request_done == writer.total) end_request(engine);
    }
    if (engine->send_end > 0) {
      engine->filled_at = now;
      arm(engine, now + engine->response_ms);
    }
  }
  *size = engine->send_end - engine->send_start;
  return buffer + engine->send_start;
}

void fairlock_engine_sent(struct fairlock_engine *engine, size_t size)
{
  engine->send_start += size;
  if (engine->send_start < engine->send_end) return;
  engine->send_start = 0;
  engine->send_end = 0;
}

/* Receiving */

uint8_t *fairlock_engine_input(struct fairlock_engine *engine, size_t *size)
{
  *size = engine->config->receive_size - engine->receive_end;
  return (uint8_t *)engine->config->receive_buffer + engine->receive_end;
}

void fairlock_engine_received(struct fairlock_engine *engine, size_t size, uint32_t now)
{
  uint8_t *buffer = engine->config->receive_buffer;
  size_t end = engine->receive_end + size;
  size_t start = 0;
  engine->now = now;
  int status = RESP_EVENT;
  while (status == RESP_EVENT && !engine->broken) {
    struct resp_event event;
    size_t used;
    status = resp_decode(&engine->decoder, buffer + start, end - start, &used, &event);
    start += used;
    if (status == RESP_EVENT) take_event(engine, &event);
  }
  if (status < 0) {
    engine->broken = true;
    engine->trouble = FAIRLOCK_PROTOCOL;
  }
  engine->receive_end = end - start;
  for (size_t i = 0; i < engine->receive_end && start > 0; i++)
    buffer[i] = buffer[start + i]; /* a few bytes, if any: memmove() would be more code than they are worth */
}

/* Time */

/*
 * When it is the connection's turn: closed, it may be opened again; otherwise it counts as dead, because it takes
 * too long to open or to greet, an answer is late, or bytes cannot be sent.
 */
static uint32_t connection_limit(const struct fairlock_engine *engine)
{
  uint32_t limit = engine->now + FAR;
  if (engine->stage == CLOSED)
    return engine->now - engine->since < engine->pause ? engine->since + engine->pause : engine->now;
  if (engine->stage < UP) limit = earlier(limit, engine->since + engine->connect_ms);
  if (engine->sent.first != NULL) limit = earlier(limit, engine->sent.first->sent_at + engine->response_ms);
  if (engine->send_end > 0) limit = earlier(limit, engine->filled_at + engine->response_ms);
  return limit;
}

static bool overdue(const struct fairlock_engine *engine, uint32_t now)
{
  return engine->changed || engine->next - now - 1 >= FAR;
}

void fairlock_engine_tick(struct fairlock_engine *engine, uint32_t now)
{
  if (!overdue(engine, now)) return;
  engine->now = now;
  uint32_t limit = connection_limit(engine);
  bool over = reached(now, limit);
  if (over && engine->stage != CLOSED) {
    engine->broken = true;
    engine->trouble = FAIRLOCK_UNREACHABLE;
  }
  engine->next = over ? now + FAR : limit;
  for (struct fairlock *handle = engine->handles; handle != NULL; handle = handle->sibling)
    handle_tick(handle);
  engine->changed = false;
}

uint32_t fairlock_engine_deadline(const struct fairlock_engine *engine, uint32_t now)
{
  if (engine->broken || overdue(engine, now)) return 0;
  return engine->next - now;
}
