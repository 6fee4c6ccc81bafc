/*
 * What the files of the engine share. There are fourteen, each with one job:
 *
 *   engine.c      the connection: opening, greeting, sending, dead connections, timers
 *   pipeline.c    what is under way: sequence numbers, and whose answer comes next
 *   schedule.c    when which handle is next due
 *   handle.c      the handles: what an operation, a reply, a message and the time do to each
 *   request.c     what the engine says: requests to bytes
 *   texts.c       the scripts' texts, for a server that does not know them
 *   reply.c       what the server says: events of the decoder to replies and messages
 *   inspect.c     looking at a lock without touching it
 *   break.c       ending somebody else's hold, or asking for its end
 *   topology.c    servers that move, and replicas
 *   events.c      tells what happens to the connection
 *   keep.c        locks that stay ours while nobody else wants them
 *   credentials.c user and password that change
 *   links.c       which of the optional features take part, and in which order
 *   version.c     says which release it is
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

/* After an error that may pass, a request is repeated this much later. */
#define RETRY_MS 500U

/* The soonest a waiter asks again after it was told to wait. */
#define SOONEST_MS 5U

/* A tick that comes this much later than the deadline means that this device was frozen. */
#define OVERSLEPT_MS 500U

/* A longer sample is not taken for a round trip: it could not be told from a dead server. */
#define ROUND_TRIP_MAX_MS 60000U

static inline uint32_t config_or(uint32_t value, uint32_t otherwise)
{
  return value != 0 ? value : otherwise;
}

/* What a handle is doing. The order matters: see waiting(), holding(), ending() and asking(). */
enum phase {
  /* nothing */
  FREE,

  /* acquires, and waits in the queue */
  QUEUEING,

  /* acquires only if the lock is free */
  TRYING,

  /* the caller may believe that it holds, until `ends_at` */
  HELD,

  /* held, and acquires once more */
  REENTERING,

  /* held more than once, and releases once */
  RELEASE_ONE,

  /* releases; may go on in the background, after the caller was told the result */
  RELEASING,

  /* ends whatever the server has of the handle; may go on in the background, too */
  LEAVING,

  /* leaves, and ends the subscription: the handle is being taken out */
  REMOVING,

  /* the hold ended early; lasts until the caller has released as often as it had acquired */
  LOST,

  /* ends somebody's hold, or asks its holder to */
  FORCING,

  /* asks who holds and who waits */
  INSPECTING,

  /* of credentials.c: says AUTH at its time, on this connection only */
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

static inline bool asking(const struct fairlock *handle)
{
  return handle->phase >= FORCING;
}

/* Kinds of requests: bits, because kinds_sent and in_doubt hold several. */
enum kind {

  /* may begin a hold, or enter the queue */
  KIND_ACQUIRE = 1,

  /* renews, confirms, re-enters, releases one level: only if held */
  KIND_IF_HELD = 2,

  /* ends the hold with a token */
  KIND_RELEASE = 4,

  /* ends whatever the id has: queue entry or hold */
  KIND_LEAVE = 8,

  KIND_FORCE = 16,
  KIND_INSPECT = 32,
  KIND_AUTH = 64
};

enum flags {
  /* the lease is renewed until release */
  RENEWS = 1,

  /* the server has confirmed the subscription */
  SUBSCRIBED = 2,

  /* a SUBSCRIBE or UNSUBSCRIBE awaits its answer */
  SUBSCRIBING = 4,

  /* waiting: the server has us in the queue */
  QUEUED = 8,

  /* an earlier operation may have left something on the server */
  OWED = 16,

  /* the wait has no limit */
  ENDLESS = 32,

  /* held, but the server has not heard that we know of it */
  UNCONFIRMED = 64
};

/* Bits of a handle's `keep`: see keep.c. */
enum keeping {
  /* nobody waited when the server was asked, and nothing was pushed since */
  ARMED = 1,

  /* the release was put off, and the server has the hold */
  KEPT = 2,

  /* the server is being asked */
  ARMING = 4,

  /* its acquire or release waits until what has arrived was read */
  LOOKS = 8,

  /* an inspection, or what break.c does, follows its release */
  INSPECTS = 16,
  BREAKS = 32
};

enum stage { CLOSED, OPENING, GREETING, RESOLVING, SELECTING, TIMING, UP };

/* What a push is. */
enum push { PUSH_OTHER, PUSH_SUBSCRIBE, PUSH_MESSAGE };

/*
 * The connection is given up without a failure: the next one goes where the server has sent us. Any
 * other end is fairlock_engine_fail().
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

/* What comes is an error, not an answer or a push. */
static inline bool is_error(const struct fairlock_engine *engine)
{
  return engine->value_type == RESP_SIMPLE_ERROR || engine->value_type == RESP_BULK_ERROR;
}

/* Sequence number a comes after b. */
static inline bool comes_after(uint16_t a, uint16_t b)
{
  uint16_t distance = (uint16_t)(a - b);
  return distance != 0 && distance < 0x8000U;
}

/*
 * By `now`, the requests of broken connections have expired. Kept as a span since the greeting: a
 * moment would seem to lie ahead again when our clock has gone half round.
 */
static inline bool doubt_over(const struct fairlock_engine *engine, uint32_t now)
{
  return engine->stage == UP && now - engine->stage_began >= engine->in_doubt_ms;
}

/* We are late, so input may have been waiting here for a while. */
static inline bool came_late(const struct fairlock_engine *engine)
{
  return engine->overslept || reached(engine->now, engine->next);
}

static inline bool good_wait(uint32_t wait_ms)
{
  return wait_ms <= FAIRLOCK_DURATION_MAX_MS || wait_ms == FAIRLOCK_FOREVER;
}

static inline bool good_lease(uint32_t lease_ms)
{
  return lease_ms == FAIRLOCK_RENEW ||
         (lease_ms >= FAIRLOCK_LEASE_MIN_MS && lease_ms <= FAIRLOCK_DURATION_MAX_MS);
}

/* The largest number that Lua, and so the server, holds exactly. No time and no token is larger. */
#define LARGEST ((uint64_t)1 << 53)

/* Numbers of a reply that are kept. */
#define VALUES (sizeof((struct fairlock_engine *)0)->values / sizeof(int64_t))

/*
 * What an inspection needs. inspect.c defines it, so a program that never inspects links none of
 * it.
 */
struct fairlock_inspection {
  const struct fairlock_script *script;
  void (*element)(struct fairlock_engine *engine, const struct resp_event *event);
  int (*end)(struct fairlock_engine *engine);
};

/* What breaking needs. break.c defines it, for the same reason. */
struct fairlock_breaking {
  const struct fairlock_script *script;
  void (*write_words)(struct resp_writer *writer, const struct fairlock_request *request);
};

/* engine.c */

/* Sets waiter_ms and response_ms, which follow the configuration and the measured round trip. */
void fairlock_engine_set_timeouts(struct fairlock_engine *engine);

void fairlock_engine_greeted(struct fairlock_engine *engine);
void fairlock_engine_refused(struct fairlock_engine *engine, int status);

/* The next part of the greeting is answered next; its time goes on. */
static inline void fairlock_engine_advance_greeting(struct fairlock_engine *engine,
                                                    enum stage stage)
{
  engine->stage = (uint8_t)stage;
}

/*
 * The time up to which the server's silence is certain: after a freeze of this device, what has
 * piled up has to be read before.
 */
static inline uint32_t fairlock_engine_read_until(const struct fairlock_engine *engine)
{
  return engine->stage > OPENING ? engine->drained_at : engine->now;
}

/* pipeline.c */
void fairlock_pipeline_send(struct fairlock *handle);
void fairlock_pipeline_forget(struct fairlock *handle);
void fairlock_pipeline_withdraw(struct fairlock *handle);
uint16_t fairlock_pipeline_put_before(struct fairlock *handle, unsigned count);
void fairlock_pipeline_subscribe(struct fairlock *handle);
void fairlock_pipeline_count(struct fairlock_engine *engine);
uint32_t fairlock_pipeline_answered(struct fairlock *handle);
void fairlock_pipeline_expect_wait(struct fairlock *handle);
struct fairlock *fairlock_pipeline_next_answered(const struct fairlock_engine *engine);
struct fairlock *fairlock_pipeline_next_subscribed(const struct fairlock_engine *engine);
bool fairlock_pipeline_subscription_next(const struct fairlock *handle);
uint8_t fairlock_pipeline_in_flight(const struct fairlock *handle);

/* Of what the handle has sent so far, only these kinds would do harm if they were carried out late. */
static inline void fairlock_pipeline_limit_kinds(struct fairlock *handle, uint8_t kinds)
{
  handle->kinds_sent &= kinds;
}

/* The connection is closed: no answer will come. The handles are told one by one. */
static inline void fairlock_pipeline_end(struct fairlock_engine *engine)
{
  engine->last_sent = 0;
  engine->last_received = 0;
}

/* Too many requests await answers to send another. */
static inline bool fairlock_pipeline_full(const struct fairlock_engine *engine)
{
  return (uint16_t)(engine->last_sent - engine->last_received) >= engine->window;
}

/* Some request awaits its answer, though perhaps no handle cares about it any more. */
static inline bool fairlock_pipeline_busy(const struct fairlock_engine *engine)
{
  return engine->last_sent != engine->last_received;
}

/* An answer may come: the request that is next was written to its end. */
static inline bool fairlock_pipeline_expects(const struct fairlock_engine *engine)
{
  if (!fairlock_pipeline_busy(engine)) return false;
  return !engine->writing || engine->request.sequence != (uint16_t)(engine->last_received + 1);
}

/* The oldest request that some handle cares about and that was written to its end, or NULL. */
static inline const struct fairlock *fairlock_pipeline_oldest(const struct fairlock_engine *engine)
{
  const struct fairlock *oldest = engine->oldest;
  bool writing = oldest != NULL && engine->writing && oldest == engine->request.handle;
  return writing && oldest->unanswered == 1 ? NULL : oldest;
}

/* schedule.c */
void fairlock_schedule_insert(struct fairlock *handle, uint32_t due);
void fairlock_schedule_remove(struct fairlock *handle);
void fairlock_schedule_all(struct fairlock_engine *engine);

/*
 * The handle after this one, in no particular order but each before those below it; without those
 * below this one unless `below`. NULL: there are no more.
 */
#if PORT_ONE_TASK
inline struct fairlock *fairlock_schedule_next(const struct fairlock *handle, bool below)
{
  return below ? handle->right : NULL;
}
#else
struct fairlock *fairlock_schedule_next(const struct fairlock *handle, bool below);
#endif

/* handle.c */
void fairlock_handle_on_reply(struct fairlock *handle, int status, uint32_t sent_at);
void fairlock_handle_on_message(struct fairlock *handle, uint64_t token, int64_t at,
                                uint32_t claim_ms);
void fairlock_handle_on_subscribed(struct fairlock *handle, int status);
void fairlock_handle_on_too_few_replicas(struct fairlock *handle);
void fairlock_handle_on_broken(struct fairlock *handle);
void fairlock_handle_on_failed(struct fairlock *handle, int status);
bool fairlock_handle_on_tick(struct fairlock *handle);
int fairlock_handle_begin_query(struct fairlock *handle, enum phase phase);
void fairlock_handle_continue_query(struct fairlock *handle, enum phase phase);
void fairlock_handle_freeze_request(struct fairlock *handle);
void fairlock_handle_end_later(struct fairlock *handle, int status);
void fairlock_handle_delay_release(struct fairlock *handle, uint32_t until);
void fairlock_handle_resume_hold(struct fairlock *handle, uint32_t sent_at);
void fairlock_handle_send_at(struct fairlock *handle, uint32_t time);
uint8_t fairlock_handle_kind(const struct fairlock *handle);
bool fairlock_handle_wants_to_send(const struct fairlock *handle, uint32_t now);
bool fairlock_handle_may_send(const struct fairlock *handle);
uint32_t fairlock_handle_due_in(const struct fairlock *handle);
uint32_t fairlock_handle_ends_in(const struct fairlock *handle);

/* request.c */
void fairlock_request_write_text(struct resp_writer *writer, const char *text);
void fairlock_request_write_number(struct resp_writer *writer, char before, int64_t number);
void fairlock_request_write_command(struct resp_writer *writer, const char *name, int words);
bool fairlock_request_name_is_good(const char *name, size_t size);
void fairlock_request_write_queue(struct resp_writer *writer, const struct fairlock *handle);
size_t fairlock_request_channel_size(const struct fairlock *handle);
void fairlock_request_write_login(const struct fairlock_engine *engine, struct resp_writer *writer);
void fairlock_request_write_hello(const struct fairlock_engine *engine, struct resp_writer *writer);
void fairlock_request_write_output(const struct fairlock_engine *engine,
                                   struct resp_writer *writer);

/* HELLO, [ROLE], [SELECT database], TIME. Here so that without a topology there is no ROLE. */
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
void fairlock_reply_on_error(struct fairlock_engine *engine, struct resp_event *event, int status);
void fairlock_reply_note_number(struct fairlock_engine *engine, const struct resp_event *event,
                                uint32_t index);
void fairlock_reply_on_event(struct fairlock_engine *engine, struct resp_event *event);
void fairlock_reply_process(struct fairlock_engine *engine, struct resp_event *event);

/*
 * The optional features that have a part in the connection are a chain of links, and each stands
 * between what is outside of it and what is inside. This is the order, outermost first:
 *
 *   log          tells what the others have done
 *   credentials  gives user and password to a greeting, and says AUTH
 *   keep         answers releases and acquires itself
 *   topology     follows servers, and waits for replicas
 *
 * and within all of them the engine writes (request.c) and reads (reply.c). A program links those
 * that it uses; without any, engine->links is NULL.
 */
enum link_place { PLACE_LOG, PLACE_CREDENTIALS, PLACE_KEEP, PLACE_TOPOLOGY };

/*
 * What a link is called for. Each function is handed its own link, does its part, and passes on what
 * is not its own to the same function of link->inner, or to the engine if that is NULL.
 */
struct fairlock_hooks {
  /* where it stands in that order: enum link_place */
  uint8_t place;

  /*
   * Bytes are to be written: of the greeting if engine->request.handle is NULL, otherwise of
   * engine->request. From their start for each piece of the send buffer, of which the first is the one
   * with engine->request_done 0. A link that leaves the first without a byte has dealt with the
   * request, which is not sent: fairlock_pipeline_withdraw().
   */
  void (*write)(struct fairlock_engine *engine, struct resp_writer *writer,
                struct fairlock_link *link);

  /* An event of what the server says. True: it has been dealt with. */
  bool (*event)(struct fairlock_engine *engine, struct resp_event *event,
                struct fairlock_link *link);

  /*
   * The connection has ended; engine->broken and engine->failure say why. True: the next one is made
   * soon, and no operation fails because of this end.
   */
  bool (*closed)(struct fairlock_engine *engine, struct fairlock_link *link);
};

/* links.c */
struct fairlock_link *fairlock_links_insert(struct fairlock_engine *engine,
                                            struct fairlock_link *link,
                                            const struct fairlock_hooks *hooks);

#endif
