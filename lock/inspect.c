/*
 * Looking at a lock without touching it: who holds it, who waits.
 *
 * The answer may be long, one part for each waiter; it is handed to the caller part by part as it
 * arrives, and never stored.
 */
#include "internal.h"

/* Elements before the waiters' own: ttl, token, kind, hold count, number of waiters, holder. */
enum { HOLDER = 5 };

_Static_assert(HOLDER <= VALUES, "there is room for the numbers before the holder");

/* Takes an element: five numbers and the holder, then two numbers and the id for each waiter. */
static void take_report(struct fairlock_engine *engine, const struct resp_event *event)
{
  const int64_t *values = engine->values;
  struct fairlock_report report = {0};
  if (engine->element < HOLDER || engine->element % 3 != HOLDER % 3) {
    fairlock_keep_number(engine, event,
                         engine->element < HOLDER ? engine->element : engine->element % 3);
    return;
  }
  if (event->type != RESP_BULK_STRING) engine->malformed = true;
  if (engine->malformed) return;
  report.id = event->cut ? "?" : (const char *)event->data;
  report.id_size = event->cut ? 1 : event->size;
  if (engine->element == HOLDER) {
    report.ttl_ms = values[0];
    report.token = (uint64_t)values[1];
    report.ours = values[2] == 1;
    report.hold_count = values[3];
    report.waiters = (uint32_t)values[4];
    report.alive = true;
    if (report.id_size == 0) report.id = NULL;
  } else {
    report.place = (engine->element - HOLDER) / 3;
    report.ours = values[0] > 0;
    report.later = values[0] > 1;
    report.alive = values[1] > 0;
    report.listens = values[1] > 1;
  }
  engine->report(&report, engine->report_context);
}

/*
 * The reply has ended: FAIRLOCK_OK if it is whole; if not, the connection breaks. Before the holder,
 * the number of waiters may be that of an earlier reply.
 */
static int end_report(struct fairlock_engine *engine)
{
  uint32_t waiters = (uint32_t)engine->values[HOLDER - 1];
  if (engine->value_type == RESP_ARRAY && !engine->malformed && engine->element > HOLDER &&
      engine->element == HOLDER + 1 + 3 * waiters)
    return FAIRLOCK_OK;
  fairlock_engine_fail(engine, FAIRLOCK_PROTOCOL);
  return FAIRLOCK_PROTOCOL;
}

static const struct fairlock_inspection inspection = {&fairlock_inspect_script, take_report,
                                                      end_report};

int fairlock_engine_inspect(struct fairlock *handle, fairlock_report_fn report, void *context,
                            uint32_t now)
{
  struct fairlock_engine *engine = handle->engine;
  const struct fairlock *other = engine->first;
  for (; other != NULL; other = fairlock_schedule_next(other, true)) {
    if (other->phase == INSPECTING) return FAIRLOCK_IN_PROGRESS;
  }
  engine->now = now;
  engine->inspection = &inspection;
  engine->report = report;
  engine->report_context = context;
  return fairlock_begin_query(handle, INSPECTING);
}
