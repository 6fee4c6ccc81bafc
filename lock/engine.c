/*
 * The connection: opening, greeting, sending in order, noticing that it is dead, and time.
 *
 * Handles that want to send stand in the list READY. When the send buffer is empty it is filled
 * with their requests. Each request gets a sequence number when it begins to be written, and the
 * server answers in that order; a SUBSCRIBE has a number of its own. Handles that await answers
 * stand in the list SENT, in the order of the oldest request of each; an answer that its handle no
 * longer cares about finds no entry there and is dropped. An answer that does not come in time
 * means that the connection is dead: it is closed, and whatever was under way is sent again on the
 * next one.
 */
#include "internal.h"

#include <string.h>

/*
 * How far ahead `next` lies when nothing is due. Kept short on purpose: a `next` that seems to lie
 * further ahead has passed, so even a tick that comes weeks late is seen to be late.
 */
#define FAR (FAIRLOCK_DURATION_MAX_MS / 16)

/* The most requests that may await answers at a time: 16 bits have to tell which came first. */
#define SEQUENCES 30000U

static uint32_t earlier(uint32_t a, uint32_t b)
{
  return reached(a, b) ? b : a;
}

void fairlock_arm(struct fairlock_engine *engine, uint32_t time)
{
  if (!reached(time, engine->next)) engine->next = time;
}

/* Times that follow from the configuration and from what was measured */

static uint32_t longer(uint32_t a, uint32_t b)
{
  return a > b ? a : b;
}

void fairlock_set_timeouts(struct fairlock_engine *engine)
{
  const struct fairlock_config *config = engine->config;
  uint32_t waiter_ms = config_or(config->waiter_ms, WAITER_MS);
  uint32_t response_ms = config_or(config->response_ms, waiter_ms / 5 * 2);
  engine->waiter_ms = longer(waiter_ms, 3 * engine->round_trip_ms);
  engine->response_ms = longer(response_ms, response_ms / 2 + 2 * engine->round_trip_ms);
}

/* Lists */

/* Puts handle behind `after`; NULL: at the front. */
static void insert(struct fairlock *handle, enum list which, struct fairlock *after)
{
  struct fairlock_list *list = &handle->engine->lists[which];
  struct fairlock **link = after != NULL ? &after->next[which] : &list->first;
  handle->next[which] = *link;
  *link = handle;
  if (list->last == after) list->last = handle;
  handle->listed |= (uint8_t)(1U << which);
}

void fairlock_list_remove(struct fairlock *handle, enum list which)
{
  struct fairlock_list *list = &handle->engine->lists[which];
  struct fairlock *before = NULL;
  if (!(handle->listed & 1U << which)) return;
  for (struct fairlock *other = list->first; other != handle; other = other->next[which])
    before = other;
  if (before != NULL) before->next[which] = handle->next[which];
  else list->first = handle->next[which];
  if (list->last == handle) list->last = before;
  handle->listed &= (uint8_t) ~(1U << which);
}

/* Puts a handle that awaits answers in its place among the others. */
void fairlock_list_sent(struct fairlock *handle)
{
  struct fairlock_list *list = &handle->engine->lists[SENT];
  struct fairlock *after = NULL;
  if (list->last != NULL && comes_after(handle->sequence[0], list->last->sequence[0])) {
    after = list->last;
  } else {
    for (struct fairlock *other = list->first; other != NULL; other = other->next[SENT]) {
      if (comes_after(other->sequence[0], handle->sequence[0])) break;
      after = other;
    }
  }
  insert(handle, SENT, after);
}

/* The handle wants to send, now or as soon as one of its requests has been answered. */
void fairlock_queue_send(struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  engine->changed = true;
  if (handle->unanswered == FAIRLOCK_UNANSWERED_MAX) handle->timer = engine->now;
  else if (!(handle->listed & 1U << READY)) insert(handle, READY, engine->lists[READY].last);
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
  engine->changed = true;
  engine->window = SEQUENCES;
  fairlock_set_timeouts(engine);
  engine->connect_ms = config_or(config->connect_ms, engine->waiter_ms);
  engine->offline_ms = config_or(config->offline_ms, 2 * engine->waiter_ms);
  if (config->receive_buffer == NULL || config->send_buffer == NULL) return FAIRLOCK_INVALID;
  if (config->response_ms > FAIRLOCK_DURATION_MAX_MS / 4 ||
      config->connect_ms > FAIRLOCK_DURATION_MAX_MS / 4)
    return FAIRLOCK_INVALID;
  if (engine->waiter_ms - FAIRLOCK_WAITER_MIN_MS > FAIRLOCK_WAITER_MAX_MS - FAIRLOCK_WAITER_MIN_MS)
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
  const struct fairlock_config *config = engine->config;
  size_t id = config->client_id != NULL ? strlen(config->client_id) : 0;
  if (config->receive_size < FAIRLOCK_RECEIVE_SIZE(size, id)) return FAIRLOCK_TOO_LONG;
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

/*
 * The entropy for jitter is `now`: even among devices that were switched on together the clocks
 * differ when a connection breaks.
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
 * The first attempt to reconnect comes within 50 ms, each later one may take twice as long as the
 * one before, up to 5 s.
 */
static uint32_t back_off(struct fairlock_engine *engine)
{
  uint32_t most = 5000;
  if (engine->failures < 7) most = (uint32_t)50 << engine->failures++;
  return most / 2 + random_below(engine, most / 2 + 1);
}

static void enter(struct fairlock_engine *engine, enum stage stage)
{
  engine->stage = (uint8_t)stage;
  engine->stage_began = engine->now;
  engine->changed = true;
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
  if (engine->stage == CLOSED) enter(engine, OPENING);
}

void fairlock_engine_opened(struct fairlock_engine *engine, uint32_t now)
{
  engine->now = now;
  enter(engine, GREETING);
  engine->drained_at = now;
  engine->reads = 0;
  engine->writing = true;
  engine->request_done = 0;
}

void fairlock_engine_fail(struct fairlock_engine *engine, int status)
{
  engine->broken = true;
  engine->last_error = (int8_t)status;
}

/* Adds a number to the id in base 32, the lowest digit first, which needs no division. */
static void add_to_id(struct fairlock_engine *engine, uint32_t number)
{
  do {
    unsigned digit = number & 31;
    engine->id[engine->id_size++] = (char)(digit < 10 ? '0' + digit : 'a' - 10 + digit);
    number >>= 5;
  } while (number > 0);
}

/*
 * Makes the client's id, once. It is unique: while a server runs, no two connections have the same
 * number, and one that gets the same number after a restart has another time.
 */
static void make_id(struct fairlock_engine *engine)
{
  const char *id = engine->config->client_id;
  if (engine->id_size > 0) return;
  if (id != NULL) {
    engine->id_size = (uint8_t)strlen(id);
    memcpy(engine->id, id, engine->id_size);
    engine->id[engine->id_size++] = '.';
  }
  add_to_id(engine, (uint32_t)engine->values[2]);
  engine->id[engine->id_size++] = '.';
  add_to_id(engine, (uint32_t)engine->values[0]);
  /* five digits, always */
  add_to_id(engine, (uint32_t)engine->values[1] | (uint32_t)1 << 20);
  engine->random ^= (uint32_t)engine->values[1];
}

/*
 * The greeting was answered: the server's time is known, and with it when the requests of old
 * connections have expired. The wait for that is never longer than the longest life of a request,
 * whatever this server's clock says: it may be another server by now.
 */
void fairlock_greeted(struct fairlock_engine *engine)
{
  int64_t wait = engine->last_expiry - engine->server_now + 1;
  if (wait < 0) wait = 0;
  if (wait > engine->request_life_ms) wait = engine->request_life_ms;
  engine->in_doubt_ms = (uint32_t)wait + margin((uint32_t)wait);
  make_id(engine);
  enter(engine, UP);
  engine->connect_requested = false;
  engine->counters.connects++;
}

/* The server refused the greeting. */
void fairlock_refused(struct fairlock_engine *engine, int status)
{
  fairlock_engine_fail(engine, status);
  if (status == FAIRLOCK_UNAVAILABLE) return;
  for (struct fairlock *handle = engine->handles; handle != NULL; handle = handle->sibling)
    fairlock_on_failed(handle, status);
}

void fairlock_engine_closed(struct fairlock_engine *engine, int status, uint32_t now)
{
  engine->now = now;
  bool failed = engine->stage != UP;
  enter(engine, CLOSED);
  engine->backoff_ms = (uint16_t)back_off(engine);
  if (engine->topology != NULL && engine->topology->router->closed(engine)) {
    failed = false;
  } else {
    if (engine->last_error == FAIRLOCK_OK) engine->last_error = (int8_t)status;
    engine->connect_requested = false;
  }
  engine->broken = false;
  engine->writing = false;
  engine->request.handle = NULL;
  engine->send_start = 0;
  engine->send_end = 0;
  engine->receive_end = 0;
  for (struct fairlock *handle = engine->handles; handle != NULL; handle = handle->sibling) {
    fairlock_on_broken(handle);
    /* retrying does not change the certificates */
    bool in_vain = engine->last_error == FAIRLOCK_UNTRUSTED;
    if (failed && (in_vain || handle->phase == TRYING || asking(handle)))
      fairlock_on_failed(handle, engine->last_error);
  }
  engine->last_sent = 0;
  engine->last_received = 0;
  resp_decoder_init(&engine->decoder, engine->decoder.limit);
}

/* Too many requests await answers to send another. */
static bool window_full(const struct fairlock_engine *engine)
{
  return (uint16_t)(engine->last_sent - engine->last_received) >= engine->window;
}

unsigned fairlock_engine_wants(const struct fairlock_engine *engine, uint32_t now)
{
  bool ready = engine->lists[READY].first != NULL;
  if (engine->broken) return FAIRLOCK_CLOSE;
  if (engine->stage == OPENING) return FAIRLOCK_CONNECT;
  if (engine->stage == CLOSED) {
    bool needed = engine->connect_requested || ready;
    return needed && now - engine->stage_began >= engine->backoff_ms ? FAIRLOCK_CONNECT : 0;
  }
  bool more = engine->writing || (engine->stage == UP && ready && !window_full(engine));
  return FAIRLOCK_RECEIVE | (more || engine->send_end > 0 ? FAIRLOCK_SEND : 0U);
}

/* Sending */

static uint32_t connection_limit(const struct fairlock_engine *engine);

/*
 * Begins the next request, unless one is being written. False when there is none, or while an
 * answer is late: if its request was lost, the answer to the next would be taken for its own.
 */
static bool take_request(struct fairlock_engine *engine)
{
  if (engine->writing) return true;
  struct fairlock *handle = engine->lists[READY].first;
  if (handle == NULL || engine->stage != UP) return false;
  if (window_full(engine) || reached(engine->now, connection_limit(engine))) return false;
  while (fairlock_held_back(handle)) {
    fairlock_list_remove(handle, READY);
    handle = engine->lists[READY].first;
    if (handle == NULL) return false;
  }
  fairlock_list_remove(handle, READY);
  fairlock_freeze_request(handle);
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
    while (engine->send_end < room && take_request(engine)) {
      struct resp_writer writer;
      resp_writer_init(&writer, buffer + engine->send_end, room - engine->send_end,
                       engine->request_done);
      if (engine->topology != NULL) engine->topology->router->write_output(engine, &writer);
      else fairlock_write_output(engine, &writer);
      engine->send_end += writer.used;
      engine->request_done += writer.used;
      if (engine->request_done < writer.total) continue;
      engine->writing = false;
      engine->request.handle = NULL;
    }
    if (engine->send_end > 0) {
      engine->filled_at = now;
      engine->changed = true;
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
  if (size > 0) engine->reads++;
  else engine->reads = 0;
  if (engine->reads == 0) { /* or 256 in a row: a server that never pauses is judged, too */
    engine->drained_at = now;
    engine->overslept = false;
    engine->changed = true;
  }
  int status = RESP_EVENT;
  while (status == RESP_EVENT && !engine->broken) {
    struct resp_event event;
    size_t used;
    status = resp_decode(&engine->decoder, buffer + start, end - start, &used, &event);
    start += used;
    if (status == RESP_EVENT) fairlock_take_event(engine, &event);
  }
  if (status < 0) fairlock_engine_fail(engine, FAIRLOCK_PROTOCOL);
  engine->receive_end = end - start;
  for (size_t i = 0; i < engine->receive_end && start > 0; i++)
    /* a few bytes, if any: memmove() would be more code than they are worth */
    buffer[i] = buffer[start + i];
}

/* Time */

/*
 * The time up to which the server's silence is certain: after a freeze of this device, what has
 * piled up has to be read before.
 */
uint32_t fairlock_judged_at(const struct fairlock_engine *engine)
{
  return engine->stage > OPENING ? engine->drained_at : engine->now;
}

/*
 * When the connection needs attention. Closed: when it may be opened again. Otherwise: when it
 * counts as dead, because it takes too long to open or to greet, an answer is late, or bytes cannot
 * be sent.
 */
static uint32_t connection_limit(const struct fairlock_engine *engine)
{
  const struct fairlock *oldest = engine->lists[SENT].first;
  bool written =
      oldest != NULL && !(engine->writing && engine->request.sequence == oldest->sequence[0]);
  uint32_t limit = engine->now + FAR;
  if (engine->stage == CLOSED) {
    bool pausing = engine->now - engine->stage_began < engine->backoff_ms;
    return pausing ? engine->stage_began + engine->backoff_ms : engine->now;
  }
  if (engine->stage < UP) {
    uint32_t greeted = engine->stage_began + engine->connect_ms;
    if (engine->stage > OPENING) greeted += engine->response_ms;
    limit = earlier(limit, greeted);
  }
  /* also for a request that no handle cares about any more: others may be waiting behind it */
  if (engine->send_end > 0 || engine->last_sent != engine->last_received) {
    uint32_t since = written ? oldest->sent_at[0] : engine->filled_at;
    limit = earlier(limit, since + engine->response_ms);
  }
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
  if (engine->drained_at != now && due(now, engine->next + OVERSLEPT_MS)) engine->overslept = true;
  uint32_t limit = connection_limit(engine);
  bool dead = engine->stage != CLOSED && reached(fairlock_judged_at(engine), limit);
  if (dead) fairlock_engine_fail(engine, FAIRLOCK_UNREACHABLE);
  engine->next = dead || (engine->stage == CLOSED && reached(now, limit)) ? now + FAR : limit;
  for (struct fairlock *handle = engine->handles; handle != NULL; handle = handle->sibling)
    fairlock_on_tick(handle);
  engine->changed = false;
}

uint32_t fairlock_engine_deadline(const struct fairlock_engine *engine, uint32_t now)
{
  if (engine->broken || overdue(engine, now)) return 0;
  return engine->next - now;
}
