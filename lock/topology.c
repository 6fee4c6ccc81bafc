/*
 * Servers that move: Sentinel, Cluster, promoted replicas, and replicas that have to acknowledge.
 *
 * A redirection is one event, "go there instead": a Sentinel redirects in the greeting, a node of a
 * cluster in an answer (MOVED), and where to go is noted in the caller's memory. There is one
 * connection and no table of slots. Any other break leads to the next seed.
 *
 * Replicas. A script that may begin a hold, or extend one, is followed by a WAIT, with the next
 * sequence number. When the script's reply says that it did so, its handle takes the WAIT's number,
 * too, and the reply counts only when the WAIT has been answered; with too few replicas the script
 * counts as refused, for now. Nothing more is sent before that, so no WAIT has to wait for another.
 * A grant by message is not believed: the waiter asks.
 *
 * The engine calls this file through its link alone, so a program that does not call
 * fairlock_follow() links none of it.
 */
#include "internal.h"

#include <string.h>

#define CONNECT_MS  1000U
#define OFFLINE_MS  60000U
#define REPLICAS_MS 500U /* or less; see replicas_ms() */

/* The longest pause between two rounds of the seeds. */
#define PAUSE_MAX_MS 1000U

/* Redirections in a row that are followed at once. */
#define REDIRECTIONS 4

/* What is known of the servers: bits of topology->state. */
enum state {
  /* seeds of this round are left */
  MORE = 1,

  /* `address` says where to go next */
  MOVED = 2,

  /* the connection is, or will be, to `address`, a "host:port", not to a seed */
  AWAY = 4,

  /* of this connection's server: a node of a cluster, a replica, knows SSUBSCRIBE (since 7.0) */
  CLUSTER = 8,
  REPLICA = 16,
  SHARDED = 32,

  /* the reply to a script that holds has come, and waits for the WAIT's */
  SCRIPT_DONE = 64,

  /* this connection's server has to show that it is in a replication group; it has */
  PROVES = 128,
  REPLICATED = 256
};

/* What follows the last such character, or all of the text when it has none. */
static const uint8_t *after_last(const uint8_t *text, const uint8_t *end, uint8_t character)
{
  while (end > text && end[-1] != character)
    end--;
  return end;
}

/*
 * Puts the text behind the first characters of the address. False, and nothing is changed, when
 * there is no room for it, or it could not be read back.
 */
static bool put(struct fairlock_topology *topology, size_t at, const void *text, size_t size)
{
  if (at + size >= topology->address_size || memchr(text, 0, size) != NULL) return false;
  memcpy(topology->address + at, text, size);
  topology->address[at + size] = 0;
  return true;
}

/*
 * Makes the next connection go to the address, at once. False when the transport cannot go there:
 * then there is no address, as the one in its place was not this connection's.
 */
static bool go_to_address(struct fairlock_engine *engine)
{
  struct fairlock_topology *topology = engine->topology;
  if (!topology->aim(topology->aim_context, topology->address)) {
    topology->address[0] = 0;
    return false;
  }
  topology->state |= MOVED;
  redirect(engine);
  return true;
}

/* What keeps the client from leaving for another node. */
enum hindrance { NO_HINDRANCE, GIVES_BACK, IN_USE };

/*
 * What locks of other slots keep the client from leaving for the node of this one. One that only has
 * to be given back, because its release was put off, or because something of it was in doubt when
 * its operation ended, is no longer in use. But it is given back first, as the server at hand may be
 * the one that has it: what was put off is sent now.
 */
static enum hindrance find_hindrance(struct fairlock_engine *engine, int64_t slot)
{
  enum hindrance found = NO_HINDRANCE;
  struct fairlock *handle = engine->first;
  for (; handle != NULL; handle = fairlock_schedule_next(handle, true)) {
    if (handle->phase == FREE || handle->phase == AUTHENTICATING ||
        fairlock_slot(handle->name, handle->name_size) == slot)
      continue;
    if (handle->keep & KEPT) handle->sends_at = engine->now;
    if (!ending(handle) || handle->result == FAIRLOCK_PENDING) found = IN_USE;
    else if (found == NO_HINDRANCE &&
             (handle->unanswered > 0 || fairlock_handle_wants_to_send(handle, engine->now)))
      found = GIVES_BACK;
  }
  fairlock_schedule_all(engine);
  return found;
}

/*
 * MOVED slot host:port. No host, or "?": that port of the host that answered. The request was not
 * carried out, and its handle sends it again, to that address. True: not before others have given
 * back here what they have to.
 */
static bool follow_moved(struct fairlock_engine *engine, const struct resp_event *event)
{
  struct fairlock_topology *topology = engine->topology;
  const uint8_t *end = event->data + event->size;
  const uint8_t *host = after_last(event->data, end, ' ');
  const uint8_t *port = after_last(host, end, ':');
  const uint8_t *number = event->data + sizeof "MOVED";
  int64_t slot;
  if (event->cut || host <= number || port == host) return false;
  if (!resp_parse_number(number, (size_t)(host - 1 - number), &slot)) return false;
  enum hindrance hindrance = find_hindrance(engine, slot);
  if (hindrance != NO_HINDRANCE) return hindrance == GIVES_BACK;
  const uint8_t *address = (const uint8_t *)topology->address;
  size_t kept = 0;
  if (port == host + 1 || (port == host + 2 && *host == '?')) {
    if (topology->state & AWAY) {
      kept = (size_t)(after_last(address, address + strlen(topology->address), ':') - address);
      if (kept-- == 0) return false; /* nobody knows any more which host that is */
    }
    host = port - 1;
  }
  if (put(topology, kept, host, (size_t)(end - host))) (void)go_to_address(engine);
  return false;
}

/*
 * A field of HELLO, or its value. Only mode is ever "cluster", only role is ever "replica", and
 * only version has a dot in its second or third place.
 */
static void route_hello(struct fairlock_engine *engine, const struct resp_event *event)
{
  struct fairlock_topology *topology = engine->topology;
  const uint8_t *version = event->data;
  if (fairlock_reply_begins(event, "cluster")) topology->state |= CLUSTER;
  if (fairlock_reply_begins(event, "replica")) topology->state |= REPLICA;
  if (event->size > 2 && (version[1] == '.' ? version[0] >= '7' : version[2] == '.'))
    topology->state |= SHARDED;
}

/* This server is not one to take locks from; the next seed may be. */
static void refuse(struct fairlock_engine *engine, int status, const char *why)
{
  memcpy(engine->error, why, strlen(why) + 1);
  if (engine->topology->state & MORE) fairlock_engine_fail(engine, status);
  else fairlock_engine_refused(engine, status);
}

/* True when the rest of the greeting is not for this server. */
static bool route_greeting(struct fairlock_engine *engine, const struct resp_event *event)
{
  const struct fairlock_topology *topology = engine->topology;
  if (event->depth == 1) route_hello(engine, event);
  if (!event->last || engine->value_type != RESP_MAP) return false;
  engine->sharded = (~topology->state & (CLUSTER | SHARDED)) == 0;
  if (topology->asks) fairlock_engine_advance_greeting(engine, RESOLVING);
  else if (topology->cluster && !(topology->state & CLUSTER))
    refuse(engine, FAIRLOCK_REFUSED, "not a node of a cluster");
  else if ((topology->state & (CLUSTER | REPLICA)) == REPLICA)
    fairlock_engine_fail(engine, FAIRLOCK_READONLY);
  return engine->stage == RESOLVING || engine->broken;
}

/* A Sentinel's answer: {host, port}, or null when it does not know the name. */
static void route_sentinel(struct fairlock_engine *engine, const struct resp_event *event)
{
  struct fairlock_topology *topology = engine->topology;
  bool text = event->depth == 1 && event->type == RESP_BULK_STRING && !event->cut;
  if (event->depth == 0 && event->type == RESP_ARRAY && event->integer == 2) return;
  if (event->type == RESP_NULL) {
    refuse(engine, FAIRLOCK_REFUSED, "unknown service");
    return;
  }
  if (!text) {
    fairlock_engine_fail(engine, FAIRLOCK_PROTOCOL);
    return;
  }
  bool host = engine->element++ == 0;
  bool good = put(topology, host ? 0 : strlen(topology->address), event->data, event->size) &&
              (host ? put(topology, event->size, ":", 1) : go_to_address(engine));
  if (!good) fairlock_engine_refused(engine, FAIRLOCK_TOO_LONG);
}

/*
 * The answer to ROLE: {"master", offset, {replicas}}. The offset is 0, and nobody replicates, only at
 * a master that has had no replica and was none itself since it started. Nobody who goes from seed
 * to seed could tell that from a stranger. A node of a cluster need not prove anything.
 */
static void route_role(struct fairlock_engine *engine, const struct resp_event *event)
{
  struct fairlock_topology *topology = engine->topology;
  bool counts = event->type == RESP_INTEGER || event->type == RESP_ARRAY;
  if (event->depth == 1 && counts && event->integer > 0) topology->state |= REPLICATED;
  if (!event->last) return;
  if (!(topology->state & (CLUSTER | REPLICATED)))
    refuse(engine, FAIRLOCK_UNAVAILABLE, "a master without replicas: one of several seeds");
  topology->state &= (uint16_t)~PROVES;
}

static void mark_unsynced(const struct fairlock_engine *engine)
{
  struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  if (handle != NULL) fairlock_handle_on_too_few_replicas(handle);
}

/* The channel is that of the handle, whose number ends it. */
static bool listens_on(const struct fairlock *handle, const struct resp_event *event)
{
  char end[1 + RESP_NUMBER_SIZE];
  if (handle == NULL) return false;
  size_t at = event->size;
  size_t size = 1 + resp_format_number(end + 1, handle->number);
  end[0] = ':';
  while (size > 0 && at > 0 && event->data[at - 1] == (uint8_t)end[size - 1]) {
    at--;
    size--;
  }
  return size == 0;
}

/*
 * In sharded messages the kinds begin with an s (smessage, ssubscribe), which the engine does not
 * expect.
 */
static void route_push(struct fairlock_engine *engine, struct resp_event *event)
{
  if (event->depth != 1) return;
  if (engine->sharded && engine->element == 0 && event->size > 0) {
    event->data++;
    event->size--;
  }
  bool grant = engine->element == 2 && engine->push_type == PUSH_MESSAGE;
  if (grant && engine->synced && engine->addressee != NULL && waiting(engine->addressee)) {
    event->data = (const uint8_t *)"0"; /* which makes it ask */
    event->size = 1;
  }
  /* nobody has asked: the slot has gone to another node */
  if (engine->sharded && engine->element == 1 && engine->push_type == PUSH_SUBSCRIBE &&
      !listens_on(fairlock_pipeline_next_subscribed(engine), event))
    fairlock_engine_fail(engine, FAIRLOCK_UNREACHABLE);
}

/*
 * A redirection that is not followed, or not yet. What ends a hold is never dropped: it is sent again
 * later, and until there is nothing left to end. Anything else is repeated at once, if it only has to
 * let others give back first. True: the engine must not see it.
 */
static bool stays(struct fairlock_engine *engine, struct resp_event *event, bool first)
{
  struct fairlock *listener = fairlock_pipeline_next_subscribed(engine);
  struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  bool ends = listener == NULL && handle != NULL && ending(handle) &&
              (handle->phase != REMOVING || handle->flags & OWED);
  if (!(ends || first) || !fairlock_pipeline_expects(engine)) return false;
  if (ends && handle->result == FAIRLOCK_PENDING) fairlock_reply_note_error(engine, event);
  else event->type = RESP_NULL; /* no refusal for the log */
  if (listener != NULL) {
    fairlock_pipeline_count(engine);
    fairlock_handle_on_subscribed(listener, FAIRLOCK_PENDING);
  } else {
    fairlock_reply_answered(engine, FAIRLOCK_PENDING);
  }
  if (ends) fairlock_handle_end_later(handle, FAIRLOCK_WRONG_SHARD);
  return true;
}

/*
 * What a cluster says while a slot moves: it passes when the slot has moved. A script that uses a key
 * that it has removed stops with one of the last three, in this order in Redis, in Valkey 9, and in
 * Redis 6.2.
 */
static bool slot_moves(const struct resp_event *event)
{
  static const char *const words[] = {"TRYAGAIN", "ASK", "ERR Script attempted", "ERR Attempted",
                                      "Lua script attempted"};
  size_t i = 0;
  while (i < sizeof words / sizeof *words && !fairlock_reply_begins(event, words[i]))
    i++;
  return i < sizeof words / sizeof *words;
}

/* An error instead of an answer. True: the engine must not see it. */
static bool route_error(struct fairlock_engine *engine, struct resp_event *event)
{
  struct fairlock_topology *topology = engine->topology;
  if (engine->stage < UP) { /* the next seed may accept us */
    if (topology->state & MORE) fairlock_engine_fail(engine, FAIRLOCK_UNREACHABLE);
    return topology->state & MORE;
  }
  bool moved = fairlock_reply_begins(event, "MOVED") && topology->aim != NULL;
  bool first = moved && follow_moved(engine, event);
  /* the master was demoted in the middle of a WAIT */
  bool unblocked = fairlock_reply_begins(event, "UNBLOCKED");
  if (unblocked) fairlock_engine_fail(engine, FAIRLOCK_READONLY);
  if (topology->state & SCRIPT_DONE) mark_unsynced(engine);
  topology->state &= (uint16_t)~SCRIPT_DONE;
  if (slot_moves(event) && fairlock_pipeline_expects(engine)) {
    fairlock_reply_on_error(engine, event, FAIRLOCK_UNAVAILABLE);
    return true;
  }
  return unblocked || (moved && !engine->broken && stays(engine, event, first));
}

/* An answer to a script, or to the WAIT behind it. True: the engine must not see it. */
static bool route_answer(struct fairlock_engine *engine, const struct resp_event *event)
{
  struct fairlock_topology *topology = engine->topology;
  struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  topology->redirections = 0;
  if (topology->state & SCRIPT_DONE) {
    bool enough = event->integer >= (int64_t)topology->replicas;
    topology->state &= (uint16_t)~SCRIPT_DONE;
    if (!enough) mark_unsynced(engine);
    /* or the WAIT is not written to its end */
    bool asked_for = !engine->writing;
    if (event->type != RESP_INTEGER || !asked_for) fairlock_engine_fail(engine, FAIRLOCK_PROTOCOL);
    else fairlock_reply_answered(engine, enough ? FAIRLOCK_OK : FAIRLOCK_UNSYNCED);
    return true;
  }
  if (!engine->synced || handle == NULL || !(waiting(handle) || holding(handle))) return false;
  if (event->depth != 1 || engine->element != 2 || !event->last || engine->values[0] != 1)
    return false;
  fairlock_reply_note_number(engine, event, 2);
  if (engine->value_type != RESP_ARRAY || engine->malformed) return false;
  topology->state |= SCRIPT_DONE;
  fairlock_pipeline_expect_wait(handle);
  return true;
}

/* This link is the innermost, so it passes on to the engine. */
static bool route_event(struct fairlock_engine *engine, struct resp_event *event,
                        struct fairlock_link *link)
{
  (void)link;
  if (engine->value_type == RESP_PUSH) {
    route_push(engine, event);
    return engine->broken;
  }
  bool error = is_error(engine);
  bool proves = engine->stage > GREETING && engine->topology->state & PROVES;
  /* a user of a cluster needs no right to ask for the role */
  if (error && !(proves && engine->topology->state & CLUSTER)) return route_error(engine, event);
  if (engine->stage == GREETING) return route_greeting(engine, event);
  if (proves) {
    route_role(engine, event);
    return true;
  }
  if (engine->stage == UP) return route_answer(engine, event);
  if (engine->stage != RESOLVING) return false;
  route_sentinel(engine, event);
  return true;
}

/* Writing */

/* By default they have half of the time that an answer has, rounded up: a WAIT of 0 never ends. */
static uint32_t replicas_ms(const struct fairlock_engine *engine)
{
  return config_or(engine->topology->replicas_ms,
                   shorter(REPLICAS_MS, (engine->response_ms + 1) / 2));
}

static void write_output(struct fairlock_engine *engine, struct resp_writer *writer,
                         struct fairlock_link *link)
{
  const struct fairlock_topology *topology = engine->topology;
  bool greeting = engine->request.handle == NULL;
  (void)link;
  if (greeting && topology->asks) {
    fairlock_request_write_hello(engine, writer);
    fairlock_request_write_command(writer, "SENTINEL", 3);
    fairlock_request_write_text(writer, "GET-MASTER-ADDR-BY-NAME");
    fairlock_request_write_text(writer, topology->service);
    return;
  }
  if (greeting) {
    fairlock_request_write_greeting(engine, writer, topology->state & PROVES);
    return;
  }
  fairlock_request_write_output(engine, writer);
  if (!engine->request.wait) return;
  fairlock_request_write_command(writer, "WAIT", 3);
  resp_write_bulk_number(writer, topology->replicas);
  resp_write_bulk_number(writer, replicas_ms(engine));
}

/* Chooses the next seed. */
static void choose_seed(struct fairlock_topology *topology)
{
  bool more = topology->aim != NULL && topology->aim(topology->aim_context, NULL);
  topology->several |= more;
  topology->state = more ? MORE : 0;
  if (topology->several && topology->service == NULL && !topology->cluster)
    topology->state |= PROVES;
}

/* Who we are on the next connection, which is to a Sentinel, or not. */
static void choose_user(struct fairlock_engine *engine, bool asks)
{
  struct fairlock_topology *topology = engine->topology;
  topology->asks = asks;
  engine->user = asks ? topology->sentinel_user : engine->config->user;
  engine->password = asks ? topology->sentinel_password : engine->config->password;
}

static bool on_closed(struct fairlock_engine *engine, struct fairlock_link *link)
{
  struct fairlock_topology *topology = engine->topology;
  bool more = topology->state & MORE;
  bool moved = topology->state & MOVED;
  (void)link;
  bool at_once = moved ? topology->redirections++ < REDIRECTIONS : more;
  engine->sharded = false;
  if (moved) topology->state = (uint16_t)(AWAY | (more ? MORE : 0));
  else choose_seed(topology);
  choose_user(engine, topology->service != NULL && !moved);
  if (at_once) engine->backoff_ms = 0;
  if (engine->backoff_ms > PAUSE_MAX_MS) engine->backoff_ms = PAUSE_MAX_MS;
  return moved || more;
}

static const struct fairlock_hooks hooks = {PLACE_TOPOLOGY, write_output, route_event, on_closed};

int fairlock_engine_follow(struct fairlock_engine *engine, struct fairlock_topology *topology,
                           bool (*aim)(void *context, const char *address), void *context)
{
  const struct fairlock_config *config = engine->config;
  bool room = topology->address != NULL && topology->address_size > 1;
  if (engine->topology != NULL) return FAIRLOCK_INVALID;
  if (topology->replicas_ms > engine->response_ms / 2) return FAIRLOCK_INVALID;
  if (topology->service != NULL && (!room || aim == NULL || topology->cluster))
    return FAIRLOCK_INVALID;
  topology->aim = room ? aim : NULL;
  topology->aim_context = context;
  topology->redirections = 0;
  topology->several = false;
  engine->topology = topology;
  (void)fairlock_links_insert(engine, &topology->link, &hooks);
  engine->synced = topology->replicas > 0;
  if (engine->synced) engine->window = 1;
  if (config->connect_ms == 0) engine->connect_ms = CONNECT_MS;
  if (config->offline_ms == 0) engine->offline_ms = OFFLINE_MS;
  choose_seed(topology);
  choose_user(engine, topology->service != NULL);
  return FAIRLOCK_OK;
}

/*
 * CRC16 (XMODEM) of what is between the first { and the next }, or of the whole name if nothing is.
 */
unsigned fairlock_slot(const void *name, size_t size)
{
  const uint8_t *text = name;
  size_t begin = 0;
  size_t end = size;
  unsigned crc = 0;
  while (begin < size && text[begin] != '{')
    begin++;
  for (end = begin; end < size && text[end] != '}';)
    end++;
  if (end == size || end == begin + 1) {
    end = size;
    begin = 0;
  } else {
    begin++;
  }
  for (; begin < end; begin++) {
    crc ^= (unsigned)text[begin] << 8;
    for (int shift = 0; shift < 8; shift++)
      crc = crc & 0x8000U ? crc << 1 ^ 0x1021U : crc << 1;
    crc &= 0xffffU;
  }
  return crc & 0x3fffU;
}
