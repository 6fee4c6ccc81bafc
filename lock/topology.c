/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that move: Sentinel, Cluster, promoted replicas, and replicas that have to acknowledge.
 *
 * A redirection is one event, "connect there instead": a Sentinel redirects in the greeting, a node
 * of a cluster in an answer (MOVED). The new address is stored in the program's memory. There is
 * one connection and no table of slots. After any other break, the next seed is tried.
 *
 * Replicas. A script that may begin or extend a hold is followed by a WAIT, which has the next
 * sequence number. If the script's reply says that it did begin or extend one, the request takes
 * the number of the WAIT, and the reply counts only when the WAIT was answered. If too few replicas
 * have acknowledged, the script counts as refused for now. Nothing else is sent before that, so no
 * WAIT has to wait for another. A grant by message is not believed, but makes the waiter ask.
 *
 * The engine calls this file only through its link, so a program that does not call
 * fairlock_follow() links none of it.
 */
#include "fairlock_follow.h"
#include "internal.h"

#include <string.h>

#define CONNECT_MS  1000U
#define OFFLINE_MS  60000U
#define REPLICAS_MS 500U /* the default, at most */

/* The longest pause between two rounds of the seeds. */
#define PAUSE_MAX_MS 1000U

/* How many redirections in a row are followed without a pause. */
#define REDIRECTIONS 4

/* What is known about the servers: bits of topology->own.state. */
enum state {
  /* not all seeds were tried in this round */
  MORE = 1,

  /* the next connection goes to `address` */
  MOVED = 2,

  /* the connection is, or will be, to `address`, a "host:port", not to a seed */
  AWAY = 4,

  /* this connection's server is a node of a cluster, a replica, and has SSUBSCRIBE (since 7.0) */
  CLUSTER = 8,
  REPLICA = 16,
  SHARDED = 32,

  /* a script that begins or extends a hold was answered, and the WAIT after it was not */
  SCRIPT_DONE = 64,

  /* this connection's server has to show that it has, or had, replicas; it has shown it */
  PROVES = 128,
  REPLICATED = 256
};

/* The text after the last such character; all of it if there is none. */
static const uint8_t *after_last(const uint8_t *text, const uint8_t *end, uint8_t character)
{
  while (end > text && end[-1] != character)
    end--;
  return end;
}

/*
 * Replaces the address from index `at` on by text. Returns false, and changes nothing, if there is
 * no room for it, or if text has a zero byte.
 */
static bool put(struct fairlock_topology *topology, size_t at, const void *text, size_t size)
{
  if (at + size >= topology->address_size || memchr(text, 0, size) != NULL) return false;
  memcpy(topology->address + at, text, size);
  topology->address[at + size] = 0;
  return true;
}

/*
 * Makes the next connection go to the address, without a pause. If the transport cannot connect to
 * it, returns false, and forgets the address.
 */
static bool go_to_address(struct fairlock_engine *engine)
{
  struct fairlock_topology *topology = engine->topology;
  if (!topology->own.aim(topology->own.aim_context, topology->address)) {
    topology->address[0] = 0;
    return false;
  }
  topology->own.state |= MOVED;
  redirect(engine);
  return true;
}

/* What prevents the client from connecting to another node. */
enum hindrance { NO_HINDRANCE, GIVES_BACK, IN_USE };

/*
 * Whether locks of other slots prevent the client from connecting to the node of this slot. A lock
 * that is kept, or whose release or leave is unanswered, is not in use; but the client first sends
 * that release or leave to the present server. So this also ends each keep of another slot.
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
  fairlock_turns_update_all(engine);
  return found;
}

/*
 * Handles "MOVED slot host:port". No host, or "?", means that port of the host that has answered.
 * The request was not carried out, and its handle sends it again, to that address. Returns true if
 * other locks have to be given back to the present server first.
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
    if (topology->own.state & AWAY) {
      kept = (size_t)(after_last(address, address + strlen(topology->address), ':') - address);
      if (kept-- == 0) return false; /* it is not known any more which host has answered */
    }
    host = port - 1;
  }
  if (put(topology, kept, host, (size_t)(end - host))) (void)go_to_address(engine);
  return false;
}

/*
 * Looks at a field of HELLO's map, or at its value. Only `mode` can be "cluster", only `role` can
 * be "replica", and only `version` has a dot as its second or third character.
 */
static void route_hello(struct fairlock_engine *engine, const struct resp_event *event)
{
  struct fairlock_topology *topology = engine->topology;
  const uint8_t *version = event->data;
  if (fairlock_reply_begins(event, "cluster")) topology->own.state |= CLUSTER;
  if (fairlock_reply_begins(event, "replica")) topology->own.state |= REPLICA;
  if (event->size > 2 && (version[1] == '.' ? version[0] >= '7' : version[2] == '.'))
    topology->own.state |= SHARDED;
}

/* Gives up this server, which cannot be used for locks; the next seed is tried. */
static void refuse(struct fairlock_engine *engine, int status, const char *why)
{
  memcpy(engine->error, why, strlen(why) + 1);
  if (engine->topology->own.state & MORE) fairlock_engine_fail(engine, status);
  else fairlock_engine_refused(engine, status);
}

/* Looks at the greeting. Returns true if the engine must not see the rest of it. */
static bool route_greeting(struct fairlock_engine *engine, const struct resp_event *event)
{
  const struct fairlock_topology *topology = engine->topology;
  if (event->depth == 1) route_hello(engine, event);
  if (!event->last || engine->value_type != RESP_MAP) return false;
  engine->sharded = (~topology->own.state & (CLUSTER | SHARDED)) == 0;
  if (topology->own.to_sentinel) fairlock_engine_advance_greeting(engine, RESOLVING);
  else if (topology->cluster && !(topology->own.state & CLUSTER))
    refuse(engine, FAIRLOCK_REFUSED, "not a node of a cluster");
  else if ((topology->own.state & (CLUSTER | REPLICA)) == REPLICA)
    fairlock_engine_fail(engine, FAIRLOCK_READONLY);
  return engine->stage == RESOLVING || engine->broken;
}

/* Handles the answer of a Sentinel: {host, port}, or null if it does not know the service. */
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
 * Handles the answer to ROLE: {"master", offset, {replicas}}. If the offset is 0 and there are no
 * replicas, this master has had none, and was none itself, since it started. Then it may have
 * nothing to do with the other seeds, and is not used. A node of a cluster is not checked.
 */
static void route_role(struct fairlock_engine *engine, const struct resp_event *event)
{
  struct fairlock_topology *topology = engine->topology;
  bool counts = event->type == RESP_INTEGER || event->type == RESP_ARRAY;
  if (event->depth == 1 && counts && event->integer > 0) topology->own.state |= REPLICATED;
  if (!event->last) return;
  if (!(topology->own.state & (CLUSTER | REPLICATED)))
    refuse(engine, FAIRLOCK_UNAVAILABLE, "a master without replicas: one of several seeds");
  topology->own.state &= (uint16_t)~PROVES;
}

static void mark_unsynced(const struct fairlock_engine *engine)
{
  struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  if (handle != NULL) fairlock_handle_owe(handle);
}

/* True if the channel is that of the handle: its name ends in the handle's number. */
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
 * Changes a push before the engine sees it. A sharded one becomes a plain one: its kind begins
 * with an s (smessage, ssubscribe). With `replicas`, a grant becomes a message that makes the waiter
 * ask. After an unsubscription that nobody asked for, the connection ends.
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
    event->data = (const uint8_t *)"0"; /* a message that makes the waiter ask */
    event->size = 1;
  }
  /* an unsubscription without a request: the slot has moved to another node */
  if (engine->sharded && engine->element == 1 && subscribes(engine) &&
      !listens_on(fairlock_pipeline_next_subscribed(engine), event))
    fairlock_engine_fail(engine, FAIRLOCK_UNREACHABLE);
}

/*
 * Handles a redirection that is not followed, or not yet. A release or a leave is never given up:
 * it is sent again later, until nothing is left to end. Other requests are repeated at once if they
 * only have to wait until other locks are given back. Returns true if the engine must not see the
 * event.
 */
static bool stays(struct fairlock_engine *engine, struct resp_event *event, bool first)
{
  struct fairlock *listener = fairlock_pipeline_next_subscribed(engine);
  struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  bool ends = listener == NULL && handle != NULL && ending(handle) &&
              (handle->phase != REMOVING || handle->flags & OWED);
  if (!(ends || first) || !fairlock_pipeline_expects(engine)) return false;
  if (ends && handle->result == FAIRLOCK_PENDING) fairlock_reply_note_error(engine, event);
  else event->type = RESP_NULL; /* so that the log reports no error */
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
 * True for the errors of a cluster while a slot moves, which pass when it has moved. The last three
 * come from a script that uses a key after removing it: in this order in Redis, Valkey 9 and Redis
 * 6.2.
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

/* Handles an error reply. Returns true if the engine must not see it. */
static bool route_error(struct fairlock_engine *engine, struct resp_event *event)
{
  struct fairlock_topology *topology = engine->topology;
  if (engine->stage < UP) { /* in the greeting: the next seed may accept us */
    bool denied = fairlock_reply_begins(event, "WRONGPASS") ||
                  fairlock_reply_begins(event, "NOAUTH") || fairlock_reply_begins(event, "NOPERM");
    int status = denied ? FAIRLOCK_DENIED : FAIRLOCK_UNREACHABLE;
    if (topology->own.state & MORE) fairlock_engine_fail(engine, status);
    return topology->own.state & MORE;
  }
  bool moved = fairlock_reply_begins(event, "MOVED") && topology->own.aim != NULL;
  bool first = moved && follow_moved(engine, event);
  /* the master was demoted during a WAIT */
  bool unblocked = fairlock_reply_begins(event, "UNBLOCKED");
  if (unblocked) fairlock_engine_fail(engine, FAIRLOCK_READONLY);
  if (topology->own.state & SCRIPT_DONE) mark_unsynced(engine);
  topology->own.state &= (uint16_t)~SCRIPT_DONE;
  if (slot_moves(event) && fairlock_pipeline_expects(engine)) {
    fairlock_reply_on_error(engine, event, FAIRLOCK_UNAVAILABLE);
    return true;
  }
  return unblocked || (moved && !engine->broken && stays(engine, event, first));
}

/*
 * Handles an answer to a script, or to the WAIT after it. Returns true if the engine must not see
 * it.
 */
static bool route_answer(struct fairlock_engine *engine, const struct resp_event *event)
{
  struct fairlock_topology *topology = engine->topology;
  struct fairlock *handle = fairlock_pipeline_next_answered(engine);
  topology->own.redirections = 0;
  if (topology->own.state & SCRIPT_DONE) {
    bool enough = event->integer >= (int64_t)topology->replicas;
    topology->own.state &= (uint16_t)~SCRIPT_DONE;
    if (!enough) mark_unsynced(engine);
    /* a WAIT that is still being written cannot be answered yet */
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
  topology->own.state |= SCRIPT_DONE;
  fairlock_pipeline_expect_wait(handle);
  return true;
}

/* This is the innermost link, so what it does not handle goes to the engine. */
static bool route_event(struct fairlock_engine *engine, struct resp_event *event,
                        struct fairlock_link *link)
{
  (void)link;
  if (engine->value_type == RESP_PUSH) {
    route_push(engine, event);
    return engine->broken;
  }
  bool error = is_error(engine);
  bool proves = engine->stage > GREETING && engine->topology->own.state & PROVES;
  /* with a cluster, an error to ROLE does not matter: its users need no right to it */
  if (error && !(proves && engine->topology->own.state & CLUSTER))
    return route_error(engine, event);
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

static void write_output(struct fairlock_engine *engine, struct resp_writer *writer,
                         struct fairlock_link *link)
{
  const struct fairlock_topology *topology = engine->topology;
  bool greeting = engine->request.handle == NULL;
  (void)link;
  if (greeting && topology->own.to_sentinel) {
    fairlock_request_write_hello(engine, writer);
    fairlock_request_write_command(writer, "SENTINEL", 3);
    fairlock_request_write_text(writer, "GET-MASTER-ADDR-BY-NAME");
    fairlock_request_write_text(writer, topology->service);
    return;
  }
  if (greeting) {
    fairlock_request_write_greeting(engine, writer, topology->own.state & PROVES);
    return;
  }
  fairlock_request_write_output(engine, writer);
  if (!engine->request.wait) return;
  fairlock_request_write_command(writer, "WAIT", 3);
  resp_write_bulk_number(writer, topology->replicas);
  resp_write_bulk_number(writer, topology->own.wait_ms);
}

/* Chooses the next seed. */
static void choose_seed(struct fairlock_topology *topology)
{
  bool more = topology->own.aim != NULL && topology->own.aim(topology->own.aim_context, NULL);
  topology->own.several |= more;
  topology->own.state = more ? MORE : 0;
  if (topology->own.several && topology->service == NULL && !topology->cluster)
    topology->own.state |= PROVES;
}

/* Chooses user and password for the next connection. */
static void choose_user(struct fairlock_engine *engine, bool to_sentinel)
{
  struct fairlock_topology *topology = engine->topology;
  topology->own.to_sentinel = to_sentinel;
  engine->user = to_sentinel ? topology->sentinel_user : engine->config->user;
  engine->password = to_sentinel ? topology->sentinel_password : engine->config->password;
}

static bool on_closed(struct fairlock_engine *engine, struct fairlock_link *link)
{
  struct fairlock_topology *topology = engine->topology;
  bool more = topology->own.state & MORE;
  bool moved = topology->own.state & MOVED;
  (void)link;
  bool at_once = moved ? topology->own.redirections++ < REDIRECTIONS : more;
  engine->sharded = false;
  if (moved) topology->own.state = (uint16_t)(AWAY | (more ? MORE : 0));
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
  topology->own.aim = room ? aim : NULL;
  topology->own.aim_context = context;
  topology->own.redirections = 0;
  topology->own.several = false;
  /* response_ms as it is configured; rounded up, because a WAIT of 0 would never end */
  topology->own.wait_ms =
      config_or(topology->replicas_ms, shorter(REPLICAS_MS, (engine->response_ms + 1) / 2));
  engine->topology = topology;
  (void)fairlock_links_insert(engine, &topology->own.link, &hooks);
  engine->synced = topology->replicas > 0;
  if (engine->synced) engine->window = 1;
  if (config->connect_ms == 0) engine->connect_ms = CONNECT_MS;
  if (config->offline_ms == 0) engine->offline_ms = OFFLINE_MS;
  choose_seed(topology);
  choose_user(engine, topology->service != NULL);
  return FAIRLOCK_OK;
}

/*
 * The slot is the CRC16 (XMODEM) of the text between the first { and the next }, or of the whole
 * name if there is no such text.
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
