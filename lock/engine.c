/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection: opening it, the greeting, sending in order, noticing that it is dead, and timers.
 *
 * Whenever the send buffer is empty, it is filled with the requests of the handles that are due to
 * send. If an answer does not come in time, the connection is dead: it is closed, and the handles
 * send their unanswered requests again on the next one.
 */
#include "internal.h"

#include <string.h>

/* How many requests may await answers at a time: fewer than half of all 16-bit sequence numbers. */
#define SEQUENCES 30000U

/* Times that follow from the configuration and from the measured round trip */

void fairlock_engine_set_timeouts(struct fairlock_engine *engine)
{
  const struct fairlock_config *config = engine->config;
  uint32_t waiter_ms = config_or(config->waiter_ms, WAITER_MS);
  uint32_t response_ms = config_or(config->response_ms, waiter_ms / 5 * 2);
  engine->waiter_ms = longer(waiter_ms, 3 * engine->round_trip_ms);
  engine->claim_ms = longer(config_or(config->claim_ms, waiter_ms), 3 * engine->round_trip_ms);
  engine->response_ms = longer(response_ms, response_ms / 2 + 2 * engine->round_trip_ms);
}

/* Set-up */

static bool good_id(const char *id)
{
  for (; *id != 0; id++) {
    if (*id <= ' ' || *id > '~' || *id == ':') return false;
  }
  return true;
}

int fairlock_engine_init(struct fairlock_engine *engine, const struct fairlock_config *config)
{
  size_t id = config->client_id != NULL ? strlen(config->client_id) : 0;
  memset(engine, 0, sizeof *engine);
  engine->config = config;
  engine->user = config->user;
  engine->password = config->password;
  engine->window = SEQUENCES;
  fairlock_engine_set_timeouts(engine);
  engine->connect_ms = config_or(config->connect_ms, engine->waiter_ms);
  engine->offline_ms = config_or(config->offline_ms, 2 * engine->waiter_ms);
  if (config->receive_buffer == NULL || config->send_buffer == NULL) return FAIRLOCK_INVALID;
  /* the last of three unanswered heartbeats is sent after 4/5 of waiter_ms, and has to be valid */
  if (engine->response_ms > engine->waiter_ms / 2 * 3 ||
      config->connect_ms > FAIRLOCK_DURATION_MAX_MS / 4)
    return FAIRLOCK_INVALID;
  if (engine->waiter_ms - FAIRLOCK_WAITER_MIN_MS > FAIRLOCK_WAITER_MAX_MS - FAIRLOCK_WAITER_MIN_MS)
    return FAIRLOCK_INVALID;
  if (engine->claim_ms - FAIRLOCK_CLAIM_MIN_MS > engine->waiter_ms - FAIRLOCK_CLAIM_MIN_MS)
    return FAIRLOCK_INVALID;
  if (!good_lease(config->lease_ms) || !good_wait(config->offline_ms)) return FAIRLOCK_INVALID;
  if (id > FAIRLOCK_ID_MAX) return FAIRLOCK_TOO_LONG;
  if (config->client_id != NULL && (id == 0 || !good_id(config->client_id)))
    return FAIRLOCK_INVALID;
  if (config->send_size < FAIRLOCK_SEND_MIN) return FAIRLOCK_TOO_LONG;
  if (config->receive_size < FAIRLOCK_RECEIVE_SIZE(1U, id)) return FAIRLOCK_TOO_LONG;
  resp_decoder_init(&engine->decoder, (uint32_t)(config->receive_size - RESP_OVERHEAD));
  return FAIRLOCK_OK;
}

int fairlock_engine_add(struct fairlock_engine *engine, struct fairlock *handle, const char *name,
                        size_t size)
{
  if (name == NULL || size == 0) return FAIRLOCK_INVALID;
  if (size > FAIRLOCK_NAME_MAX) return FAIRLOCK_TOO_LONG;
  if (!fairlock_request_name_is_good(name, size)) return FAIRLOCK_INVALID;
  const struct fairlock_config *config = engine->config;
  size_t id = config->client_id != NULL ? strlen(config->client_id) : 0;
  if (config->receive_size < FAIRLOCK_RECEIVE_SIZE(size, id)) return FAIRLOCK_TOO_LONG;
  memset(handle, 0, sizeof *handle);
  handle->engine = engine;
  handle->name = name;
  handle->name_size = (uint16_t)size;
  handle->number = ++engine->last_number;
  handle->query = &fairlock_lock_query;
  fairlock_schedule_insert(handle, engine->now + HORIZON_MS);
  return FAIRLOCK_OK;
}

/* The connection's life */

/*
 * A number below limit, computed from `now`. That is random enough for jitter: even if devices were
 * switched on together, their clocks differ when a connection breaks.
 */
static uint32_t random_below(struct fairlock_engine *engine, uint32_t limit)
{
  uint32_t x = engine->random ^ engine->now;
  if (x == 0) x = 1;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  engine->random = x;
  return x % limit;
}

/*
 * How long to pause before connecting again: up to 50 ms at first, and twice as much each time, up
 * to 5 s.
 */
static uint32_t back_off(struct fairlock_engine *engine)
{
  uint32_t most = 5000;
  if (engine->failures < 7) most = (uint32_t)50 << engine->failures++;
  return most / 2 + random_below(engine, most / 2 + 1);
}

static void set_stage(struct fairlock_engine *engine, enum stage stage)
{
  engine->stage = (uint8_t)stage;
  engine->stage_began = engine->now;
}

void fairlock_engine_connect(struct fairlock_engine *engine, uint32_t now)
{
  engine->connect_requested = engine->stage != UP;
  if (engine->stage == CLOSED) engine->backoff_ms = 0;
  engine->next = now;
}

bool fairlock_engine_ready(const struct fairlock_engine *engine)
{
  return engine->stage == UP;
}

void fairlock_engine_opening(struct fairlock_engine *engine, uint32_t now)
{
  engine->now = now;
  if (engine->stage == CLOSED) set_stage(engine, OPENING);
}

void fairlock_engine_opened(struct fairlock_engine *engine, uint32_t now)
{
  engine->now = now;
  set_stage(engine, GREETING);
  engine->drained_at = now;
  engine->reads = 0;
  engine->writing = true;
  engine->request_done = 0;
}

void fairlock_engine_fail(struct fairlock_engine *engine, int status)
{
  engine->broken = true;
  engine->failure = (int8_t)status;
}

/* Appends a number to the id, in base 32, which needs no division; the lowest digit comes first. */
static void add_to_id(struct fairlock_engine *engine, uint32_t number)
{
  do {
    unsigned digit = number & 31;
    engine->id[engine->id_size++] = (char)(digit < 10 ? '0' + digit : 'a' - 10 + digit);
    number >>= 5;
  } while (number > 0);
}

/*
 * Makes the client's id, once, from the number and the time of its first connection. It is unique:
 * while a server runs, no two connections have the same number, and after a restart the time
 * differs.
 */
static void make_id(struct fairlock_engine *engine)
{
  const char *id = engine->config->client_id;
  if (engine->id_size > 0) return;
  if (id != NULL) {
    while (*id != 0)
      engine->id[engine->id_size++] = *id++;
    engine->id[engine->id_size++] = '.';
  }
  add_to_id(engine, (uint32_t)engine->values[2]);
  engine->id[engine->id_size++] = '.';
  add_to_id(engine, (uint32_t)engine->values[0]);
  /* bit 20 makes it always five digits */
  add_to_id(engine, (uint32_t)engine->values[1] | (uint32_t)1 << 20);
  engine->random ^= (uint32_t)engine->values[1];
}

/*
 * The greeting was answered, so the server's time is known, and with it when the requests of old
 * connections have expired. Another server's clock may differ, so that wait is clamped: at least until
 * the newest request is response_ms old by our clock, which was its life, and at most the longest life
 * of a request.
 */
void fairlock_engine_greeted(struct fairlock_engine *engine)
{
  uint32_t wait = engine->last_expiry + 1 - (uint32_t)engine->server_now;
  uint32_t age = engine->now - engine->requested_at;
  uint32_t left = age < engine->response_ms ? engine->response_ms - age : 0;
  if (!reached(wait, left)) wait = left;
  wait = shorter(wait, engine->request_life_ms);
  engine->in_doubt_ms = wait + margin(wait);
  make_id(engine);
  set_stage(engine, UP);
  engine->connect_requested = false;
  engine->counters.connections++;
  fairlock_turns_update_all(engine);
}

/*
 * True for handles whose operation fails at once when an attempt to connect fails: tries,
 * inspections, and what break.c does. If certificates are not trusted, also waiters that are not in
 * the queue yet. A waiter in the queue goes on, because the certificates may be being replaced.
 */
static bool gives_up(const struct fairlock *handle, int status)
{
  bool comes = handle->phase == QUEUEING && !(handle->flags & QUEUED);
  return handle->phase == TRYING || querying(handle) || (comes && status == FAIRLOCK_UNTRUSTED);
}

/* An attempt to connect has failed. all: every operation fails, not only those that cannot wait. */
static void fail_all(struct fairlock_engine *engine, int status, bool all)
{
  struct fairlock *handle = engine->first;
  for (; handle != NULL; handle = fairlock_schedule_next(handle, true)) {
    if (all || gives_up(handle, status)) fairlock_handle_on_failed(handle, status);
  }
  fairlock_turns_update_all(engine);
}

/* The server has refused the greeting. Unless it is only unavailable, every operation fails. */
void fairlock_engine_refused(struct fairlock_engine *engine, int status)
{
  fairlock_engine_fail(engine, status);
  if (status == FAIRLOCK_UNAVAILABLE) return;
  fail_all(engine, status, true);
}

void fairlock_engine_closed(struct fairlock_engine *engine, int status, uint32_t now)
{
  engine->now = now;
  bool failed = engine->stage != UP;
  struct fairlock *handle = engine->first;
  for (; handle != NULL; handle = fairlock_schedule_next(handle, true))
    fairlock_handle_on_broken(handle);
  set_stage(engine, CLOSED);
  /* a redirection is no answer: why the last server gave none still counts */
  if (engine->broken && engine->failure != FAIRLOCK_OK) engine->last_error = engine->failure;
  engine->backoff_ms = (uint16_t)back_off(engine);
  struct fairlock_link *links = engine->links;
  if (links != NULL && links->hooks->closed(engine, links)) {
    failed = false;
  } else {
    if (!engine->broken) engine->last_error = status;
    engine->connect_requested = false;
  }
  engine->broken = false;
  engine->writing = false;
  engine->request.handle = NULL;
  engine->send_start = 0;
  engine->send_end = 0;
  engine->receive_end = 0;
  fairlock_pipeline_end(engine);
  if (failed) fail_all(engine, engine->last_error, false);
  else fairlock_turns_update_all(engine);
  resp_decoder_init(&engine->decoder, engine->decoder.limit);
}

void fairlock_engine_deinit(struct fairlock_engine *engine)
{
  const struct fairlock_link *link = engine->links;
  if (link == NULL || link->hooks->place != PLACE_ABANDON) return;
  const struct fairlock_abandon_hooks *hooks = (const void *)link->hooks;
  hooks->end(engine);
}

/*
 * True if a connection has to be made now. The schedule does not order handles by when they send
 * while there is no connection, so this asks each of them.
 */
static bool connection_needed(const struct fairlock_engine *engine, uint32_t now)
{
  const struct fairlock *handle = engine->first;
  if (now - engine->stage_began < engine->backoff_ms) return false;
  if (engine->connect_requested) return true;
  while (handle != NULL && !fairlock_handle_wants_to_send(handle, now))
    handle = fairlock_schedule_next(handle, true);
  return handle != NULL;
}

/* The handle that sends next, or NULL. */
static struct fairlock *next_to_send(const struct fairlock_engine *engine)
{
  return fairlock_pipeline_full(engine) ? NULL : fairlock_turns_sender(engine);
}

unsigned fairlock_engine_wants(const struct fairlock_engine *engine, uint32_t now)
{
  if (engine->broken) return FAIRLOCK_CLOSE;
  if (engine->stage == OPENING) return FAIRLOCK_CONNECT;
  if (engine->stage == CLOSED) return connection_needed(engine, now) ? FAIRLOCK_CONNECT : 0;
  bool more = engine->writing || next_to_send(engine) != NULL;
  return FAIRLOCK_RECEIVE | (more || engine->send_end > 0 ? FAIRLOCK_SEND : 0U);
}

/* Sending */

static uint32_t connection_limit(const struct fairlock_engine *engine);

/*
 * Begins the next request, unless one is being written. Returns false if there is none, or while an
 * answer is late: its request may be lost, and then the answer to the next would be taken for its
 * own.
 */
static bool begin_request(struct fairlock_engine *engine)
{
  if (engine->writing) return true;
  if (reached(engine->now, connection_limit(engine))) return false;
  struct fairlock *handle = next_to_send(engine);
  if (handle == NULL) return false;
  fairlock_handle_freeze_request(handle);
  engine->request_done = 0;
  engine->writing = true;
  return true;
}

const uint8_t *fairlock_engine_output(struct fairlock_engine *engine, size_t *size, uint32_t now)
{
  uint8_t *buffer = engine->config->send_buffer;
  size_t room = engine->config->send_size;
  engine->now = now;
  if (engine->send_end == 0 && engine->stage > OPENING && !engine->broken) {
    while (engine->send_end < room && begin_request(engine)) {
      struct resp_writer writer;
      resp_writer_init(&writer, buffer + engine->send_end, room - engine->send_end,
                       engine->request_done);
      struct fairlock_link *links = engine->links;
      if (links != NULL) links->hooks->write(engine, &writer, links);
      else fairlock_request_write_output(engine, &writer);
      engine->send_end += writer.used;
      engine->request_done += writer.used;
      if (engine->request_done < writer.total) continue;
      engine->writing = false;
      engine->request.handle = NULL;
    }
    if (engine->send_end > 0) engine->filled_at = now;
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
  if (size > 0) engine->reads++;
  else engine->reads = 0;
  if (engine->reads == 0) { /* 0 also after 256 reads, for a server that never pauses */
    engine->drained_at = now;
    engine->overslept = false;
  }
  int status = RESP_EVENT;
  while (!engine->broken) {
    struct resp_event event;
    size_t used;
    status = resp_decode(&engine->decoder, buffer + start, end - start, &used, &event);
    start += used;
    if (status != RESP_EVENT) break;
    fairlock_reply_on_event(engine, &event);
  }
  if (status < 0) fairlock_engine_fail(engine, FAIRLOCK_PROTOCOL);
  engine->receive_end = end - start;
  for (size_t i = 0; i < engine->receive_end && start > 0; i++)
    /* mostly there are none, or few: memmove() would be more code than that is worth */
    buffer[i] = buffer[start + i];
}

/* Time */

/*
 * When the connection needs attention. If it is closed: when it may be opened again. Otherwise:
 * when it will count as dead, because opening it or the greeting takes too long, an answer is late,
 * or bytes cannot be sent.
 */
static uint32_t connection_limit(const struct fairlock_engine *engine)
{
  const struct fairlock *oldest = fairlock_pipeline_oldest(engine);
  uint32_t limit = engine->now + HORIZON_MS;
  if (engine->stage == CLOSED) {
    bool pausing = engine->now - engine->stage_began < engine->backoff_ms;
    return pausing ? engine->stage_began + engine->backoff_ms : limit;
  }
  if (engine->stage < UP) {
    uint32_t greeted = engine->stage_began + engine->connect_ms;
    if (engine->stage > OPENING) greeted += engine->response_ms;
    limit = earlier(limit, greeted);
  }
  /* also if no handle waits for that answer any more: other requests may be waiting behind it */
  if (engine->send_end > 0 || fairlock_pipeline_busy(engine)) {
    uint32_t since = oldest != NULL ? oldest->sent_at[0] : engine->filled_at;
    limit = earlier(limit, since + engine->response_ms);
  }
  return limit;
}

/* When the caller has to come back at the latest. */
static uint32_t next_due(const struct fairlock_engine *engine)
{
  return fairlock_turns_next(engine, connection_limit(engine));
}

void fairlock_engine_tick(struct fairlock_engine *engine, uint32_t now)
{
  engine->now = now;
  if (engine->drained_at != now && has_come(now, engine->next + OVERSLEPT_MS))
    engine->overslept = true;
  uint32_t limit = connection_limit(engine);
  bool dead = engine->stage != CLOSED && reached(fairlock_engine_read_until(engine), limit);
  if (dead) fairlock_engine_fail(engine, FAIRLOCK_UNREACHABLE);
  fairlock_turns_tick(engine);
  engine->next = dead ? now + HORIZON_MS : next_due(engine);
}

uint32_t fairlock_engine_deadline(const struct fairlock_engine *engine, uint32_t now)
{
  uint32_t wait = next_due(engine) - now;
  return engine->broken || wait > HORIZON_MS ? 0 : wait;
}
