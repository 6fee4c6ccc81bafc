/*
 * Reads a lock without changing it: who holds it, and who waits.
 *
 * The answer has a part for each waiter, and may be long. Each part is passed to the program as it
 * arrives, and nothing is stored.
 */
#include "internal.h"

/*
 * The index of the last element before the waiters: ttl, token, kind, hold count, waiters, holder.
 */
enum { HOLDER = 5 };

_Static_assert(HOLDER <= VALUES, "there is room for the numbers before the holder");

/* Takes apart the sum that inspect.lua describes. */
static void take_kind(struct fairlock_report *report, uint64_t kind)
{
  report->ours = (kind & 1) != 0;
  report->listens = (kind & 2) != 0;
  report->renews = (kind & 4) != 0;
  report->lease_ms = (uint32_t)(kind >> 3);
}

/*
 * Finds out when the holder was last heard. Each of its requests sets the TTL to the whole lease,
 * so the time since then is the lease less the TTL. If the TTL is longer than the lease, somebody
 * else has set it, and it says nothing. A handover that is not confirmed has no lease yet.
 */
static void judge(struct fairlock_report *report)
{
  int64_t unheard_ms = (int64_t)report->lease_ms - report->ttl_ms;
  bool known = report->lease_ms > 0 && report->ttl_ms >= 0 && unheard_ms >= 0;
  report->unheard_ms = known ? unheard_ms : -1;
  report->alive = !(known && report->renews && 3 * unheard_ms > 2 * (int64_t)report->lease_ms);
}

/*
 * Takes one element: first five numbers and the holder, then two numbers and the id of each waiter.
 */
static void take_report(struct fairlock_engine *engine, const struct resp_event *event)
{
  const int64_t *values = engine->values;
  struct fairlock_report report = {0};
  if (engine->element < HOLDER || engine->element % 3 != HOLDER % 3) {
    fairlock_reply_note_number(engine, event,
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
    take_kind(&report, (uint64_t)values[2]);
    report.hold_count = values[3];
    report.waiters = (uint32_t)values[4];
    judge(&report);
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
 * The reply has ended. Returns FAIRLOCK_OK if it was complete; if not, the connection breaks. If
 * even the holder has not come, the number of waiters may be that of an earlier reply.
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

static const struct fairlock_query inspection = {
    .script = &fairlock_inspect_script, .element = take_report, .end = end_report};

int fairlock_engine_inspect(struct fairlock *handle, fairlock_report_fn report, void *context,
                            uint32_t now)
{
  struct fairlock_engine *engine = handle->engine;
  const struct fairlock *other = engine->first;
  for (; other != NULL; other = fairlock_schedule_next(other, true)) {
    bool inspects =
        other->keep & INSPECTS && other->phase == RELEASING && other->result == FAIRLOCK_PENDING;
    if (other->phase == INSPECTING || inspects) return FAIRLOCK_IN_PROGRESS;
  }
  engine->now = now;
  engine->inspection = &inspection;
  engine->report = report;
  engine->report_context = context;
  return fairlock_handle_begin_query(handle, INSPECTING);
}
