/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the engine share. Its memory is in state.h. Each file has one job:
 *
 *   engine.c      the connection: opening, greeting, sending, dead connections, timers
 *   pipeline.c    unanswered requests: their sequence numbers, and whose answer comes next
 *   schedule.c    all handles, by when each is due
 *   turns.c       which handles are due, and which of them sends next
 *   handle.c      the handles: what an operation, a reply, a message and the time do to each
 *   request.c     writes requests
 *   texts.c       sends a script's text to a server that does not know it
 *   reply.c       turns the decoder's events into replies and messages
 *
 * and a program links these only if it uses them:
 *
 *   inspect.c     reads a lock without changing it
 *   break.c       ends somebody else's hold, or asks its holder to release it
 *   topology.c    servers that move, and replicas
 *   events.c      the log of the connection
 *   keep.c        locks that the client keeps while nobody else wants them
 *   credentials.c user and password that change
 *   share.c       locks that are shared
 *   downgrade.c   a hold that is exclusive becomes a shared one
 *   abandon.c     handles that are given up, and leave in the background
 *   links.c       the chain of those that take part in the connection: struct fairlock_hooks
 *   status.c      the statuses in words
 *   version.c     which release it is
 *
 * layers.txt says which of them calls which. None calls upward, but within two groups. request.c and
 * texts.c write one command together. engine.c, handle.c and reply.c are one state machine: what the
 * server says (reply.c) changes a handle, or ends the greeting or the connection (engine.c), and that
 * changes each handle.
 */
#ifndef FAIRLOCK_INTERNAL_H
#define FAIRLOCK_INTERNAL_H

#include "engine.h"
#include "port.h" /* PORT_ONE_TASK */
#include "scripts.h"
#include "timing.h"

/* Defaults, for 0 in the configuration. The other times follow from waiter_ms. */
#define LEASE_MS  30000U
#define WAITER_MS 5000U

/* The pause before a request is repeated after an error that may pass. */
#define RETRY_MS 500U

/* The shortest time after which a waiter asks again. */
#define SOONEST_MS 5U

/* If a tick comes so much later than the deadline, this device was frozen. */
#define OVERSLEPT_MS 500U

/* A longer time is not counted as a round trip, because a server may have been dead meanwhile. */
#define ROUND_TRIP_MAX_MS 60000U

static inline uint32_t config_or(uint32_t value, uint32_t otherwise)
{
  return value != 0 ? value : otherwise;
}

/* What a handle is doing. The order matters: see waiting(), holding(), ending() and querying(). */
enum phase {
  /* nothing */
  FREE,

  /* acquires, and waits in the queue */
  QUEUEING,

  /* acquires only if the lock is free */
  TRYING,

  /* holds, until `ends_at` */
  HELD,

  /* holds, and acquires once more */
  REENTERING,

  /* holds more than once, and releases once */
  RELEASE_ONE,

  /* releases; may go on in the background, after the caller has got the result */
  RELEASING,

  /* ends any place or hold that the server has of the handle; may go on in the background, too */
  LEAVING,

  /* leaves, and ends the subscription: the handle is being taken out */
  REMOVING,

  /* the hold has ended early; the caller has not released as often as it has acquired */
  LOST,

  /* looks at a lock, ends somebody's hold, or asks its holder to: by.inquiry */
  QUERYING,

  /* the handle of credentials.c: sends AUTH when it is due, on this connection only */
  AUTHENTICATING
};

static inline bool waiting(const struct fairlock *handle)
{
  return handle->phase == QUEUEING || handle->phase == TRYING;
}

static inline bool holding(const struct fairlock *handle)
{
  return handle->phase >= HELD && handle->phase <= RELEASE_ONE;
}

static inline bool ending(const struct fairlock *handle)
{
  return handle->phase >= RELEASING && handle->phase <= REMOVING;
}

static inline bool querying(const struct fairlock *handle)
{
  return handle->phase >= QUERYING;
}

/* Kinds of requests: bits, because kinds_sent and in_doubt hold several. */
enum kind {

  /* may begin a hold, or enter the queue */
  KIND_ACQUIRE = 1,

  /* renews, confirms, re-enters, releases one level: only if held */
  KIND_IF_HELD = 2,

  /* ends the hold that has a certain token */
  KIND_RELEASE = 4,

  /* ends any place or hold of the handle's id */
  KIND_LEAVE = 8,

  KIND_QUERY = 16,
  KIND_AUTH = 32
};

enum flags {
  /* the lease is renewed until release */
  RENEWS = 1,

  /* the server has confirmed the subscription */
  SUBSCRIBED = 2,

  /* a SUBSCRIBE or UNSUBSCRIBE awaits its answer */
  SUBSCRIBING = 4,

  /* waits, and is in the queue */
  QUEUED = 8,

  /* an earlier operation may have left a place or a hold on the server */
  OWED = 16,

  /* the wait has no limit */
  ENDLESS = 32,

  /* holds by a handover that was not confirmed yet */
  UNCONFIRMED = 64,

  /* waits for the hold that another handle has: see downgrade.c */
  INHERITS = 128
};

/* Bits of a handle's `keep`: see keep.c. */
enum keeping {
  /* nobody waited when the server was asked, and no push has come since */
  ARMED = 1,

  /* the release is delayed, and the server still has the hold */
  KEPT = 2,

  /* the server is being asked */
  ARMING = 4,

  /* its acquire or release waits until input was read */
  LOOKS = 8,

  /* an inspection, or what break.c does, follows its release */
  QUERIES = 16
};

enum stage { CLOSED, OPENING, GREETING, RESOLVING, SELECTING, TIMING, UP };

/* Kinds of pushes, in the order of their names in reply.c. */
enum push { PUSH_MESSAGE, PUSH_UNSUBSCRIBE, PUSH_SUBSCRIBE, PUSH_OTHER };

/* True if the push that is being read answers a SUBSCRIBE or UNSUBSCRIBE. */
static inline bool subscribes(const struct fairlock_engine *engine)
{
  return engine->push_type == PUSH_SUBSCRIBE || engine->push_type == PUSH_UNSUBSCRIBE;
}

/*
 * Gives up the connection without a failure, because the server has redirected us: the next one
 * goes to that address. Any other end is fairlock_engine_fail().
 */
static inline void redirect(struct fairlock_engine *engine)
{
  engine->broken = true;
  engine->failure = FAIRLOCK_OK;
}

static inline bool redirected(const struct fairlock_engine *engine)
{
  return engine->broken && engine->failure == FAIRLOCK_OK;
}

/* True if the value that is being read is an error reply. */
static inline bool is_error(const struct fairlock_engine *engine)
{
  return engine->value_type == RESP_SIMPLE_ERROR || engine->value_type == RESP_BULK_ERROR;
}

/* True if sequence number a comes after b. */
static inline bool comes_after(uint16_t a, uint16_t b)
{
  uint16_t distance = (uint16_t)(a - b);
  return distance != 0 && distance < 0x8000U;
}

/*
 * True if by `now` the requests of broken connections have expired. in_doubt_ms is a span since the
 * greeting, because a time would seem to be in the future again after half a turn of the clock.
 */
static inline bool doubt_over(const struct fairlock_engine *engine, uint32_t now)
{
  return engine->stage == UP && now - engine->stage_began >= engine->in_doubt_ms;
}

/* True if this tick is late, so that input may have arrived a while ago. */
static inline bool came_late(const struct fairlock_engine *engine)
{
  return engine->overslept || reached(engine->now, engine->next);
}

static inline bool good_wait(uint32_t wait_ms)
{
  return wait_ms + 1 <= FAIRLOCK_DURATION_MAX_MS + 1; /* FAIRLOCK_FOREVER + 1 is 0 */
}

/* 0, here and in the configuration, is the lease that is renewed. */
static inline bool good_lease(uint32_t lease_ms)
{
  return lease_ms == 0 ||
         (lease_ms >= FAIRLOCK_LEASE_MIN_MS && lease_ms <= FAIRLOCK_DURATION_MAX_MS);
}

/* Makes 0 of FAIRLOCK_RENEW. Returns false if the program's lease is not good. */
static inline bool take_lease(uint32_t *lease_ms)
{
  if (*lease_ms == FAIRLOCK_RENEW) *lease_ms = 0;
  else if (*lease_ms == 0) return false;
  return good_lease(*lease_ms);
}

/*
 * Numbers up to this one are exact in Lua, and so in the scripts. No time and no token is larger.
 */
#define LARGEST ((uint64_t)1 << 53)

/* How many numbers of a reply are stored. */
#define VALUES (sizeof((struct fairlock_engine *)0)->values / sizeof(int64_t))

/* Bits of engine->eval. */
enum text_bit {
  LOCK_TEXT = 1,
  BREAK_TEXT = 2,
  INSPECT_TEXT = 4,
  SHARED_TEXT = 8,
  DOWNGRADE_TEXT = 16
};

/*
 * What a handle's requests send, and how their answers are read. One for each script: a program links
 * those that it uses.
 */
struct fairlock_query {
  const struct fairlock_script *script;

  /* of the whole command */
  uint8_t words;

  /* its bit in engine->eval: enum text_bit */
  uint8_t text;

  /* writes the arguments behind the keys */
  void (*write)(struct resp_writer *writer, const struct fairlock_request *request);

  /* takes an element of the reply */
  void (*element)(struct fairlock_engine *engine, const struct resp_event *event);

  /*
   * The reply has ended. Returns the status of the request: FAIRLOCK_OK if it was carried out. After a
   * reply of another shape, it has broken the connection.
   */
  int (*end)(struct fairlock_engine *engine);
};

/* That of a handle which wants the lock alone: reply.c; and which shares it: share.c. */
extern const struct fairlock_query fairlock_lock_query;
extern const struct fairlock_query fairlock_shared_query;

/* What the handle sends now. */
static inline const struct fairlock_query *query_of(const struct fairlock *handle)
{
  return handle->phase == QUERYING ? handle->by.inquiry->query : handle->query;
}

/*
 * The request asks by this query. If the server does not know its script, the text is sent, once: the
 * server stores it, and receives later requests after it.
 */
static inline void set_query(struct fairlock_engine *engine, const struct fairlock_query *query)
{
  engine->request.query = query;
  engine->request.eval = engine->eval & query->text;
  engine->eval ^= engine->request.eval;
}

/* True if the handle is that of a struct fairlock_shared: its scripts have more arguments. */
static inline bool shares(const struct fairlock *handle)
{
  return handle->query->words > fairlock_lock_query.words;
}

static inline struct fairlock_shared *shared_of(struct fairlock *handle)
{
  return (struct fairlock_shared *)(void *)handle; /* its first member */
}

/* engine.c */

/* Sets waiter_ms and response_ms, from the configuration and the measured round trip. */
void fairlock_engine_set_timeouts(struct fairlock_engine *engine);

void fairlock_engine_greeted(struct fairlock_engine *engine);
void fairlock_engine_refused(struct fairlock_engine *engine, int status);

/* A part of the greeting was answered: goes on to the next one, without more time for it. */
static inline void fairlock_engine_advance_greeting(struct fairlock_engine *engine,
                                                    enum stage stage)
{
  engine->stage = (uint8_t)stage;
}

/*
 * Up to this time all input was read, so an answer that was due by then is missing. After a freeze
 * of this device, input that has arrived meanwhile has to be read first.
 */
static inline uint32_t fairlock_engine_read_until(const struct fairlock_engine *engine)
{
  return engine->stage > OPENING ? engine->drained_at : engine->now;
}

/* pipeline.c */
void fairlock_pipeline_send(struct fairlock *handle);
void fairlock_pipeline_withdraw(struct fairlock *handle);
uint16_t fairlock_pipeline_put_before(struct fairlock *handle, unsigned count);
void fairlock_pipeline_subscribe(struct fairlock *handle);
void fairlock_pipeline_count(struct fairlock_engine *engine);
uint32_t fairlock_pipeline_answered(struct fairlock *handle);
void fairlock_pipeline_expect_wait(struct fairlock *handle);
const struct fairlock *fairlock_pipeline_oldest(const struct fairlock_engine *engine);
struct fairlock *fairlock_pipeline_next_answered(const struct fairlock_engine *engine);
struct fairlock *fairlock_pipeline_next_subscribed(const struct fairlock_engine *engine);
bool fairlock_pipeline_subscription_next(const struct fairlock *handle);
uint8_t fairlock_pipeline_in_flight(const struct fairlock *handle);

/* From now on, answers to requests that the handle has sent so far are dropped. */
#if PORT_ONE_TASK
static inline void fairlock_pipeline_forget(struct fairlock *handle)
{
  handle->unanswered = 0;
}
#else
void fairlock_pipeline_forget(struct fairlock *handle);
#endif

/* Only these kinds of what the handle has sent may come to be in doubt; the others do no harm. */
static inline void fairlock_pipeline_limit_kinds(struct fairlock *handle, uint8_t kinds)
{
  handle->kinds_sent &= kinds;
}

/* The connection is closed, and no answer will come. (Each handle forgets its requests itself.) */
static inline void fairlock_pipeline_end(struct fairlock_engine *engine)
{
  engine->last_sent = 0;
  engine->last_received = 0;
}

/* True if so many requests await answers that no more may be sent. */
static inline bool fairlock_pipeline_full(const struct fairlock_engine *engine)
{
  return (uint16_t)(engine->last_sent - engine->last_received) >= engine->window;
}

/* True if a request awaits its answer, even one that its handle has forgotten. */
static inline bool fairlock_pipeline_busy(const struct fairlock_engine *engine)
{
  return engine->last_sent != engine->last_received;
}

/* True if an answer may come: the oldest unanswered request was written completely. */
static inline bool fairlock_pipeline_expects(const struct fairlock_engine *engine)
{
  if (!fairlock_pipeline_busy(engine)) return false;
  return !engine->writing || engine->request.sequence != (uint16_t)(engine->last_received + 1);
}

/* schedule.c and turns.c: a list without order for a program of one task, and otherwise a heap */

void fairlock_schedule_remove(struct fairlock *handle);

/* The handle that may send now, and is the first of those that may; NULL: none may. */
struct fairlock *fairlock_turns_sender(const struct fairlock_engine *engine);

/* When the caller has to come back at the latest; limit: when it has to for the connection. */
uint32_t fairlock_turns_next(const struct fairlock_engine *engine, uint32_t limit);

/* Does what is due of each handle. */
void fairlock_turns_tick(struct fairlock_engine *engine);

#if PORT_ONE_TASK

static inline void fairlock_schedule_insert(struct fairlock *handle, uint32_t due)
{
  (void)due;
  handle->place.next = handle->engine->first;
  handle->engine->first = handle;
}

static inline struct fairlock *fairlock_schedule_next(const struct fairlock *handle, bool below)
{
  (void)below;
  return handle->place.next;
}

static inline void fairlock_turns_update(struct fairlock *handle)
{
  (void)handle;
}

static inline void fairlock_turns_update_all(struct fairlock_engine *engine)
{
  (void)engine;
}

#else

void fairlock_schedule_insert(struct fairlock *handle, uint32_t due);

/*
 * For a walk through all handles: the handle after this one, or NULL. Each handle comes before
 * those below it in the heap. below: false passes over all handles below this one.
 */
struct fairlock *fairlock_schedule_next(const struct fairlock *handle, bool below);

/* Removes the first handle from a schedule that is not empty, and returns it. */
struct fairlock *fairlock_schedule_take(struct fairlock **schedule);

void fairlock_turns_update(struct fairlock *handle);
void fairlock_turns_update_all(struct fairlock_engine *engine);

#endif

/* handle.c */
/*
 * A request for this lease is sent now. It may be carried out until it expires; a place that it has
 * then in the queue may be handed the lock within a waiter timeout; and a claim lasts for another one.
 */
static inline void fairlock_handle_outlast(struct fairlock *handle, uint32_t lease_ms)
{
  const struct fairlock_engine *engine = handle->engine;
  uint32_t span = engine->response_ms + engine->waiter_ms + longer(lease_ms, engine->waiter_ms);
  /* a later time would seem to have come */
  uint32_t until = engine->now + shorter(span, FAIRLOCK_DURATION_MAX_MS);
  if (reached(until, handle->left_until)) handle->left_until = until;
}

void fairlock_handle_on_reply(struct fairlock *handle, int status, uint32_t sent_at);
void fairlock_handle_on_message(struct fairlock *handle, const int64_t message[3],
                                const uint8_t *words, size_t size);
void fairlock_handle_on_subscribed(struct fairlock *handle, int status);
void fairlock_handle_owe(struct fairlock *handle);
void fairlock_handle_on_broken(struct fairlock *handle);
void fairlock_handle_on_failed(struct fairlock *handle, int status);
void fairlock_handle_on_tick(struct fairlock *handle);
int fairlock_handle_begin_query(struct fairlock *handle, const struct fairlock_inquiry *inquiry);
void fairlock_handle_continue_query(struct fairlock *handle);
void fairlock_handle_freeze_request(struct fairlock *handle);
void fairlock_handle_end_later(struct fairlock *handle, int status);
void fairlock_handle_delay_release(struct fairlock *handle, uint32_t until);
/*
 * The caller may use the memory of the handle, or of the hold that it is to break, for something
 * else. So the rest of its request cannot be written, and the connection ends if there is a rest.
 */
static inline void abandon_request(const struct fairlock *handle)
{
  struct fairlock_engine *engine = handle->engine;
  if (engine->request.handle == handle) fairlock_engine_fail(engine, FAIRLOCK_UNREACHABLE);
}

void fairlock_handle_abandon(struct fairlock *handle);
void fairlock_handle_resume_hold(struct fairlock *handle, uint32_t sent_at);
void fairlock_handle_send_at(struct fairlock *handle, uint32_t time);
uint8_t fairlock_handle_kind(const struct fairlock *handle);
bool fairlock_handle_wants_to_send(const struct fairlock *handle, uint32_t now);
bool fairlock_handle_may_send(const struct fairlock *handle);
uint32_t fairlock_handle_ends_in(const struct fairlock *handle);
uint32_t fairlock_handle_due_in(const struct fairlock *handle);

/* request.c */
extern const char fairlock_request_channel_prefix[];

/* What is in front of the name in the keys of the queue, its scores and the notes; ended by "". */
extern const char fairlock_request_key_prefixes[];
void fairlock_request_write_bulk(struct resp_writer *writer, const struct fairlock *handle,
                                 const char *prefix);
void fairlock_request_write_text(struct resp_writer *writer, const char *text);
void fairlock_request_write_number(struct resp_writer *writer, char before, int64_t number);
void fairlock_request_write_command(struct resp_writer *writer, const char *name, int words);
bool fairlock_request_name_is_good(const char *name, size_t size);
void fairlock_request_write_queue(struct resp_writer *writer, const struct fairlock *handle);
size_t fairlock_request_channel_size(const struct fairlock *handle);
void fairlock_request_write_argument(struct resp_writer *writer,
                                     const struct fairlock_request *request);
void fairlock_request_write_login(const struct fairlock_engine *engine, struct resp_writer *writer);
void fairlock_request_write_hello(const struct fairlock_engine *engine, struct resp_writer *writer);
void fairlock_request_write_output(const struct fairlock_engine *engine,
                                   struct resp_writer *writer);

/*
 * Writes HELLO, [ROLE], [SELECT database], TIME. It is inline, so that the compiler leaves out ROLE
 * where topology.c does not call it.
 */
static inline void fairlock_request_write_greeting(const struct fairlock_engine *engine,
                                                   struct resp_writer *writer, bool role)
{
  uint32_t database = engine->config->database;
  fairlock_request_write_hello(engine, writer);
  if (role) fairlock_request_write_command(writer, "ROLE", 1);
  if (database > 0) {
    fairlock_request_write_command(writer, "SELECT", 2);
    resp_write_bulk_number(writer, database);
  }
  fairlock_request_write_command(writer, "TIME", 1);
}

/* reply.c */
bool fairlock_reply_begins(const struct resp_event *event, const char *words);
void fairlock_reply_note_error(struct fairlock_engine *engine, const struct resp_event *event);
void fairlock_reply_answered(struct fairlock_engine *engine, int status);
void fairlock_reply_set_time(struct fairlock_engine *engine, int64_t server_now, uint32_t asked_at);
void fairlock_reply_take_number(struct fairlock_engine *engine, const struct resp_event *event);
int fairlock_reply_end(struct fairlock_engine *engine);
void fairlock_reply_on_error(struct fairlock_engine *engine, struct resp_event *event, int status);
void fairlock_reply_note_number(struct fairlock_engine *engine, const struct resp_event *event,
                                uint32_t index);
void fairlock_reply_on_event(struct fairlock_engine *engine, struct resp_event *event);
void fairlock_reply_process(struct fairlock_engine *engine, struct resp_event *event);

/*
 * The optional features that take part in the connection form a chain of links. This is their
 * order, outermost first:
 *
 *   abandon      lets go of handles that were given up, when the others have done their part
 *   log          reports what the others have done
 *   credentials  gives user and password to a greeting, and sends AUTH
 *   keep         answers releases and acquires itself
 *   downgrade    holds a release back while another handle is to get that hold
 *   topology     follows servers, and waits for replicas
 *
 * Innermost is the engine, which writes (request.c) and reads (reply.c). A program links only the
 * features that it uses; without any, engine->links is NULL.
 */
enum link_place {
  PLACE_ABANDON,
  PLACE_LOG,
  PLACE_CREDENTIALS,
  PLACE_KEEP,
  PLACE_DOWNGRADE,
  PLACE_TOPOLOGY
};

/*
 * The functions of a link. Each gets its own link, does its part, and leaves everything else to the
 * same function of link->inner, or to the engine if that is NULL.
 */
struct fairlock_hooks {
  /* its place in the chain: enum link_place */
  uint8_t place;

  /*
   * Writes the greeting, if engine->request.handle is NULL, or else engine->request. If that does
   * not fit into the send buffer, this is called for each piece, and always writes from the start.
   * At the first call, when engine->request_done is 0, a link may write nothing: it has then
   * answered the request itself, and has called fairlock_pipeline_withdraw().
   */
  void (*write)(struct fairlock_engine *engine, struct resp_writer *writer,
                struct fairlock_link *link);

  /*
   * Handles an event of the decoder. Returns true if neither an inner link nor the engine may see it
   * after that.
   */
  bool (*event)(struct fairlock_engine *engine, struct resp_event *event,
                struct fairlock_link *link);

  /*
   * Handles the end of the connection; engine->broken and engine->failure say why. Returns true if
   * the next one is made soon, so that no operation has to fail.
   */
  bool (*closed)(struct fairlock_engine *engine, struct fairlock_link *link);
};

/* Of the link at PLACE_ABANDON: the engine ends, and so do all that wait to be let go of. */
struct fairlock_abandon_hooks {
  struct fairlock_hooks hooks;
  void (*end)(struct fairlock_engine *engine);
};

/* What a link leaves to those inside it: to the next one, or to the engine. */
static inline void write_inside(struct fairlock_engine *engine, struct resp_writer *writer,
                                struct fairlock_link *link)
{
  struct fairlock_link *inner = link->inner;
  if (inner != NULL) inner->hooks->write(engine, writer, inner);
  else fairlock_request_write_output(engine, writer);
}

static inline bool event_inside(struct fairlock_engine *engine, struct resp_event *event,
                                const struct fairlock_link *link)
{
  struct fairlock_link *inner = link->inner;
  return inner != NULL && inner->hooks->event(engine, event, inner);
}

static inline bool closed_inside(struct fairlock_engine *engine, struct fairlock_link *link)
{
  struct fairlock_link *inner = link->inner;
  return inner != NULL && inner->hooks->closed(engine, inner);
}

/* links.c */
struct fairlock_link *fairlock_links_insert(struct fairlock_engine *engine,
                                            struct fairlock_link *link,
                                            const struct fairlock_hooks *hooks);

#endif
