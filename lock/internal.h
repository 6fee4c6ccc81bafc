/*
 * What the files of the engine share. It is five files, each with one job:
 *
 *   engine.c      the connection: opening, greeting, sending, dead connections, timers
 *   holder.c      the handles: what an operation, an answer, a message and the time do to each
 *   request.c     what the engine says: requests to bytes
 *   reply.c       what the server says: events of the decoder to answers and messages
 *   inspect.c     looking at a lock without touching it
 */
#ifndef FAIRLOCK_INTERNAL_H
#define FAIRLOCK_INTERNAL_H

#include "engine.h"
#include "scripts.h"

/* A waiter asks again so often, which is its heartbeat; three fit into the window, less the time of an answer. */
#define HEARTBEAT_MS 2000U

/* After an error that may pass, a request is repeated so late. */
#define RETRY_MS 500U

/* The soonest a waiter asks again after it was told to wait. */
#define SOONEST_MS 5U

/* What 0 in the configuration means. */
#define LEASE_MS    30000U
#define RESPONSE_MS 2000U
#define CONNECT_MS  5000U
#define OFFLINE_MS  10000U

static inline uint32_t config_or(uint32_t value, uint32_t otherwise)
{
  return value != 0 ? value : otherwise;
}

enum state { FREE, WAITING, HELD, ENDING, LOST, ASKING };

enum operation { NONE, ACQUIRE, TRY, REENTER, LESSEN, RELEASE, LEAVE, FORCE, INSPECT, REMOVE };

enum list { UNLISTED, READY, SENT };

/* Kinds of requests: bits, which are put together in flight and ghosts. */
enum kind {
  KIND_ACQUIRE = 1, /* may begin a hold, or enter the queue */
  KIND_KEEP = 2,    /* renews, confirms, re-enters: only if held */
  KIND_RELEASE = 4, /* ends or lessens the hold with a token */
  KIND_LEAVE = 8,   /* ends whatever the id has: queue entry or hold */
  KIND_FORCE = 16,
  KIND_INSPECT = 32
};

enum flags {
  RENEWS = 1,      /* the lease is renewed until release                    */
  SUBSCRIBED = 2,  /* the server has confirmed the subscription             */
  SUBSCRIBING = 4, /* a SUBSCRIBE is under way with the newest request      */
  AGAIN = 8,       /* after that, another request is wanted                 */
  CONTACTED = 16,  /* a request of the operation was sent                   */
  QUEUED = 32,     /* had to wait in the queue                              */
  CLOSING = 64,    /* the handle is being removed: unsubscribe              */
  ENDLESS = 128    /* the wait has no limit                                 */
};

enum stage { CLOSED, OPENING, GREETING, SELECTING, TIMING, UP };

/* a is at or after b. */
static inline bool reached(uint32_t a, uint32_t b)
{
  return (int32_t)(a - b) >= 0;
}

/* The requests of broken connections are void by now. A span, not a moment: our clock goes round, and this holds on. */
static inline bool ghosts_gone(const struct fairlock_engine *engine, uint32_t now)
{
  return engine->stage == UP && now - engine->since >= engine->void_ms;
}

/* The time has come. None that is set lies further ahead than the longest wait: what seems to was weeks ago. */
static inline bool due(uint32_t now, uint32_t time)
{
  return time - now - 1 >= FAIRLOCK_LONGEST_MS;
}

/* What is taken off an interval measured on two clocks that may differ by 1 % in rate, and by rounding. */
static inline uint32_t margin(uint32_t interval)
{
  return interval / 64 + 2;
}

static inline bool good_wait(uint32_t wait_ms)
{
  return wait_ms <= FAIRLOCK_LONGEST_MS || wait_ms == FAIRLOCK_FOREVER;
}

static inline bool good_lease(uint32_t lease_ms)
{
  return lease_ms == FAIRLOCK_RENEW || (lease_ms >= FAIRLOCK_SHORTEST_LEASE_MS && lease_ms <= FAIRLOCK_LONGEST_MS);
}

/* Numbers of a reply that are kept. */
#define VALUES (sizeof((struct fairlock_engine *)0)->values / sizeof(int64_t))

/* What an inspection needs; inspect.c has it, so that nothing of it is linked unless it is used. */
struct fairlock_inspection {
  const struct fairlock_script *script;
  void (*take)(struct fairlock_engine *engine, const struct resp_event *event);
};

/* engine.c */
void arm(struct fairlock_engine *engine, uint32_t time);
void want(struct fairlock *handle);
void unlist(struct fairlock *handle);
void append(struct fairlock *handle, enum list list);
void greeted(struct fairlock_engine *engine);
void refused(struct fairlock_engine *engine, int status);

/* holder.c */
void handle_answer(struct fairlock *handle, int status);
void handle_push(struct fairlock *handle, uint64_t token, int64_t at);
void handle_broken(struct fairlock *handle);
void handle_failed(struct fairlock *handle, int status);
int ask(struct fairlock *handle, enum operation operation);
void handle_tick(struct fairlock *handle);
void freeze_request(struct fairlock *handle);
bool held_back(struct fairlock *handle);

/* request.c */
size_t channel_size(const struct fairlock *handle);
void write_output(const struct fairlock_engine *engine, struct resp_writer *writer);

/* reply.c */
void take_number(struct fairlock_engine *engine, const struct resp_event *event, uint32_t index);
void take_event(struct fairlock_engine *engine, const struct resp_event *event);

#endif
