/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An inspection: one element of the reply, behind any others, whatever numbers they have named. No
 * number is stored outside of `values`, no byte outside of the element's text is read, nothing is
 * reported once an element was of a wrong kind, and who is reported as a holder has a place among as
 * many as were announced; of a free lock's last hold, id and words are those of the text. At the end, only a reply with as many elements as it has announced is whole.
 *
 * Assumed: an event as the decoder makes them; a reply of fewer elements than the decoder counts to.
 */
#include "fairlock_operate.h"
#include "proof.h"

#include "lock/inspect.c"

#include "event.h"
#include "memchr.h"

#define TEXT_SIZE     4
#define IMPLIES(a, b) (!(a) || (b))
#define LARGEST_TOTAL ((int64_t)LARGEST)

static struct fairlock_engine E;
static const struct resp_event *E_event;
static bool reported, failed;

/* The id and the words of the last hold are parts of the text, with one space between them. */
static void check_last(const struct fairlock_last *last, size_t size)
{
  CHECK(last->id != NULL || (last->id_size == 0 && last->words == NULL));
  CHECK(last->words != NULL || (last->words_size == 0 && last->id_size <= size));
  CHECK(last->words == NULL || last->id_size + 1 + last->words_size == size);
  CHECK(last->id_size == 0 || __CPROVER_r_ok(last->id, last->id_size));
  CHECK(last->words_size == 0 || __CPROVER_r_ok(last->words, last->words_size));
  CHECK(last->end <= FAIRLOCK_LAST_BROKEN);
  REACHED(last->id_size > 0 && last->words_size > 0);
  REACHED(last->id_size > 1 && last->words == NULL);
}

static bool on_report(const struct fairlock_report *report, void *context)
{
  CHECK(context == &E && !E.malformed && !reported);
  reported = true;
  CHECK(report->id == NULL || __CPROVER_r_ok(report->id, report->id_size));
  CHECK(E_event->cut ? report->id_size <= 1 : report->id_size <= E_event->size);
  CHECK(report->place > 0 || report->holder_index < holders_of(&E));
  CHECK(report->place > 0 || (report->waiter_count == waiters_of(&E) && report->id_size == 0) ||
        report->holder_count == holders_of(&E));
  CHECK(report->place == 0 || report->holder_count == 0);
  CHECK(report->last.id == NULL || (report->place == 0 && report->id == NULL));
  check_last(&report->last, E_event->cut ? 1 : E_event->size);
  CHECK(report->limits_size == 0 || __CPROVER_r_ok(report->limits, report->limits_size));
  CHECK(report->limits_size == 0 || (report->shares && report->holder_index == 0));
  REACHED(report->limits_size > 1 && report->id_size > 0);
  REACHED(report->place == 0 && report->holder_index > 0);
  REACHED(report->place > 1 && holders_of(&E) > 1);
  REACHED(report->place == 0 && report->id == NULL);
  return true;
}

void fairlock_reply_note_number(struct fairlock_engine *engine, const struct resp_event *event,
                                uint32_t index)
{
  (void)event;
  CHECK(engine == &E && index < VALUES);
  int64_t value = nondet_int64();
  ASSUME(value >= -2 && value <= LARGEST_TOTAL);
  if (nondet_bool()) E.values[index] = value;
  else E.malformed = true;
  REACHED(index == TOTAL);
  REACHED(index == KIND);
}

void fairlock_engine_fail(struct fairlock_engine *engine, int status)
{
  CHECK(engine == &E && status == FAIRLOCK_PROTOCOL);
  failed = true;
}

static void element(void)
{
  struct resp_event event;
  ASSUME(event.depth == 1 && event.size <= TEXT_SIZE);
  ASSUME(event.size == 0 || has_text(event.type));
  event.data = any_bytes(event.size);
  E_event = &event;
  bool malformed = E.malformed;
  take_report(&E, &event);
  CHECK(IMPLIES(malformed, !reported && E.malformed));
}

/* The whole count has no overflow: 5 * 2^32 and 3 * 2^32 at most. */
static void end(void)
{
  uint64_t announced = (uint64_t)E.values[TOTAL];
  int status = end_report(&E);
  CHECK((status == FAIRLOCK_OK) != failed);
  CHECK(failed || (!E.malformed && E.value_type == RESP_ARRAY && announced >> 32 > 0));
  CHECK(failed || E.element == 1 + 5 * (announced >> 32) + 3 * (uint64_t)(uint32_t)announced);
  REACHED(failed);
  REACHED(!failed && announced >> 32 > 1 && (uint32_t)announced > 1);
}

void harness(void)
{
  struct fairlock_engine any;
  E = any;
  for (unsigned i = 0; i < VALUES; i++)
    ASSUME(E.values[i] >= -2 && E.values[i] <= LARGEST_TOTAL);
  ASSUME(E.element <= RESP_LENGTH_MAX);
  E.report = on_report;
  E.report_context = &E;
  CALL();
}
