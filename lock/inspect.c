/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a lock without changing it: who holds it, and who waits.
 *
 * The answer has a part for each waiter, and may be long. Each part is passed to the program as it
 * arrives, and nothing is stored.
 */
#include "fairlock_operate.h"
#include "internal.h"

#include <string.h>

/*
 * Of values: four numbers of a holder, the last of them its kind, or two of a waiter, and how many of
 * both there are.
 */
enum { TTL, FENCE, COUNT, KIND, TOTAL };
enum { HOLDER_SIZE = 5, WAITER_SIZE = 3 };

/* Of a lock that nobody holds, as of a key that is not there. */
#define FREE_TTL (-2)

_Static_assert(TOTAL < VALUES, "there is room for the numbers");

static uint32_t waiters_of(const struct fairlock_engine *engine)
{
  return (uint32_t)engine->values[TOTAL];
}

static uint32_t holders_of(const struct fairlock_engine *engine)
{
  return (uint32_t)((uint64_t)engine->values[TOTAL] >> 32);
}

/* Takes apart the sum that inspect.lua describes. */
static void take_kind(struct fairlock_report *report, uint64_t kind)
{
  report->kind = kind & 1 ? FAIRLOCK_KIND_FAIRLOCK : FAIRLOCK_KIND_REDISSON;
  report->listens = (kind & 2) != 0;
  report->renews = (kind & 4) != 0;
  report->lease_ms = (uint32_t)(kind >> 3);
}

/*
 * Each request that a holder is heard by sets what is left of its lease to the whole of it, or, if it
 * shares, to up to a sixteenth more. A longer rest than that comes from elsewhere, and says nothing. A
 * handover that is not confirmed has no lease yet.
 */
static void judge(struct fairlock_report *report)
{
  int64_t lease_ms = report->lease_ms;
  int64_t unheard_ms = lease_ms - report->ttl_ms;
  if (report->shares && unheard_ms < 0 && -unheard_ms <= lease_ms / 16 + 1) unheard_ms = 0;
  bool known = lease_ms > 0 && report->ttl_ms >= 0 && unheard_ms >= 0;
  report->unheard_ms = known ? unheard_ms : -1;
  if (!known || !report->renews) return;
  report->life = 3 * unheard_ms > 2 * lease_ms ? FAIRLOCK_LIFE_DEAD : FAIRLOCK_LIFE_ALIVE;
}

/* The last hold of a free lock. Behind its holder's id, which has no space, may be words. */
static void take_last(const struct fairlock_engine *engine, struct fairlock_last *last,
                      const char *id, size_t size)
{
  const int64_t *values = engine->values;
  uint16_t end = (uint16_t)values[COUNT];
  const char *words = memchr(id, ' ', size);
  last->id = id;
  last->id_size = words != NULL ? (size_t)(words - id) : size;
  last->token = (uint64_t)values[FENCE];
  last->lasted_ms = values[KIND];
  if (end == FAIRLOCK_LAST_RELEASED) last->end = FAIRLOCK_LAST_RELEASED;
  if (end == FAIRLOCK_LAST_BROKEN) last->end = FAIRLOCK_LAST_BROKEN;
  if (words == NULL) return;
  last->words = words + 1;
  last->words_size = size - last->id_size - 1;
}

/* Nobody holds it. */
static void free_lock(const struct fairlock_engine *engine, struct fairlock_report *report)
{
  if (report->id_size > 0) take_last(engine, &report->last, report->id, report->id_size);
  report->ttl_ms = FREE_TTL;
  report->unheard_ms = -1;
  report->id = NULL;
  report->id_size = 0;
}

/* Before the id of the first of those who share may stand limits, each with a space behind it. */
static void take_limits(struct fairlock_report *report)
{
  size_t size = 0;
  for (size_t i = 0; i < report->id_size && report->id[i] <= '9'; i++) {
    if (report->id[i] == ' ') size = i + 1;
    else if (report->id[i] < '0') break;
  }
  if (size == 0) return;
  report->limits = report->id;
  report->limits_size = size - 1;
  report->id += size;
  report->id_size -= size;
}

static void take_holder(const struct fairlock_engine *engine, struct fairlock_report *report)
{
  const int64_t *values = engine->values;
  uint32_t limit = (uint32_t)((uint64_t)values[COUNT] >> 16);
  report->outdated = (uint64_t)values[COUNT] >> 48 != 0;
  report->waiter_count = waiters_of(engine);
  if (values[TTL] == FREE_TTL || report->id_size == 0) {
    free_lock(engine, report);
    return;
  }
  report->ttl_ms = values[TTL];
  report->token = (uint64_t)values[FENCE];
  report->hold_count = (uint32_t)(values[COUNT] & UINT16_MAX);
  report->shares = limit > 0;
  report->limit = limit > 0 ? limit - 1 : 0;
  take_kind(report, (uint64_t)values[KIND]);
  report->holder_index = (engine->element - 1) / HOLDER_SIZE;
  if (report->shares && report->holder_index == 0) take_limits(report);
  judge(report);
  report->holder_count = holders_of(engine);
}

static void take_waiter(const struct fairlock_engine *engine, uint32_t element,
                        struct fairlock_report *report)
{
  const int64_t *values = engine->values;
  report->place = element / WAITER_SIZE + 1;
  report->kind = values[0] > 0 ? FAIRLOCK_KIND_FAIRLOCK : FAIRLOCK_KIND_REDISSON;
  report->shares = values[0] > 2;
  report->life = values[1] > 0 ? FAIRLOCK_LIFE_ALIVE : FAIRLOCK_LIFE_DEAD;
  if (values[0] == 2) report->life = FAIRLOCK_LIFE_UNKNOWN;
  report->listens = values[1] > 1;
}

/* Takes an element: the number of both, then those of each holder and its id, then of each waiter. */
static void take_report(struct fairlock_engine *engine, const struct resp_event *event)
{
  struct fairlock_report report = {0};
  uint32_t element = engine->element - 1;
  if (engine->element == 0) {
    fairlock_reply_note_number(engine, event, TOTAL);
    return;
  }
  bool holds = element / HOLDER_SIZE < holders_of(engine);
  if (!holds) element -= HOLDER_SIZE * holders_of(engine);
  uint32_t size = holds ? HOLDER_SIZE : WAITER_SIZE;
  if (element % size != size - 1) {
    fairlock_reply_note_number(engine, event, element % size);
    return;
  }
  if (event->type != RESP_BULK_STRING) engine->malformed = true;
  if (engine->malformed) return;
  report.id = event->cut ? "?" : (const char *)event->data;
  report.id_size = event->cut ? 1 : event->size;
  if (holds) take_holder(engine, &report);
  else take_waiter(engine, element, &report);
  if (engine->report != NULL && !engine->report(&report, engine->report_context))
    engine->report = NULL;
}

/* The reply has ended: FAIRLOCK_OK if it is whole; if not, the connection breaks. */
static int end_report(struct fairlock_engine *engine)
{
  uint64_t elements =
      1 + (uint64_t)HOLDER_SIZE * holders_of(engine) + (uint64_t)WAITER_SIZE * waiters_of(engine);
  if (engine->value_type == RESP_ARRAY && !engine->malformed && holders_of(engine) > 0 &&
      engine->element == elements)
    return FAIRLOCK_OK;
  fairlock_engine_fail(engine, FAIRLOCK_PROTOCOL);
  return FAIRLOCK_PROTOCOL;
}

static void write_nothing(struct resp_writer *writer, const struct fairlock_request *request)
{
  (void)writer;
  (void)request;
}

static const struct fairlock_query inspection = {.script = &fairlock_inspect_script,
                                                 .words = 7,
                                                 .text = INSPECT_TEXT,
                                                 .write = write_nothing,
                                                 .element = take_report,
                                                 .end = end_report};

int fairlock_engine_inspect(struct fairlock *handle, fairlock_report_fn report, void *context,
                            uint32_t now)
{
  struct fairlock_engine *engine = handle->engine;
  const struct fairlock *other = engine->first;
  for (; other != NULL; other = fairlock_schedule_next(other, true)) {
    bool follows =
        other->keep & QUERIES && other->phase == RELEASING && other->result == FAIRLOCK_PENDING;
    bool queries = other->phase == QUERYING || follows;
    if (queries && other->by.inquiry == &engine->inspection) return FAIRLOCK_IN_PROGRESS;
  }
  engine->now = now;
  engine->inspection.query = &inspection;
  engine->report = report;
  engine->report_context = context;
  return fairlock_handle_begin_query(handle, &engine->inspection);
}
