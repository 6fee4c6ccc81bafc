/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What engine.h says of the work of a call, counted: how many handles are looked at, and how often a
 * request is gone through. The linker puts the counters between the library's files (--wrap).
 */
#include "internal.h"
#include "texts.h"

#include "engine_fixture.h"

enum { HANDLES = 60, LEASE = 2500 };

static struct fairlock more[HANDLES];
static unsigned looks, bytes;

struct fairlock *__real_fairlock_schedule_next(const struct fairlock *handle, bool below);
bool __real_fairlock_handle_on_tick(struct fairlock *handle);
void __real_resp_write_raw(struct resp_writer *writer, const void *data, size_t size);
struct fairlock *__wrap_fairlock_schedule_next(const struct fairlock *handle, bool below);
bool __wrap_fairlock_handle_on_tick(struct fairlock *handle);
void __wrap_resp_write_raw(struct resp_writer *writer, const void *data, size_t size);

struct fairlock *__wrap_fairlock_schedule_next(const struct fairlock *handle, bool below)
{
  looks++;
  return __real_fairlock_schedule_next(handle, below);
}

bool __wrap_fairlock_handle_on_tick(struct fairlock *handle)
{
  looks++;
  return __real_fairlock_handle_on_tick(handle);
}

void __wrap_resp_write_raw(struct resp_writer *writer, const void *data, size_t size)
{
  bytes += (unsigned)size;
  __real_resp_write_raw(writer, data, size);
}

/* That many handles, which wait with the same limit, for a lease that is not renewed. */
static void begin_all(uint32_t wait_ms)
{
  set_up();
  for (int i = 0; i < HANDLES; i++) {
    CHECK_EQUAL(fairlock_engine_add(&engine, &more[i], "door", 4), FAIRLOCK_OK);
    CHECK_EQUAL(fairlock_engine_acquire(&more[i], wait_ms, LEASE, now), FAIRLOCK_PENDING);
  }
}

/* All of them are in the queue, on a connection that is up; but so many have the lock. */
static void queue_all(uint32_t wait_ms, int holders)
{
  char channel[sizeof CHANNEL("") + RESP_NUMBER_SIZE] = CHANNEL("");
  char *number = channel + strlen(channel);
  begin_all(wait_ms);
  greet();
  drain();
  for (int i = 0; i < HANDLES; i++) {
    const struct fairlock *next = fairlock_pipeline_next_subscribed(&engine);
    if (!CHECK(next != NULL)) return;
    number[resp_format_number(number, next->number)] = 0;
    push("subscribe", channel, NULL);
    if (i < HANDLES - holders) answer(0, -1, 0);
    else answer(1, i, 0);
  }
  drain();
  CHECK_EQUAL(output_size, 0);
}

/* How many handles a tick looks at after so much time. */
static unsigned looks_after(uint32_t ms)
{
  looks = 0;
  pass(ms);
  return looks;
}

/* Each heartbeat is due, or each wait ends, in the same tick. */
static void test_tick(void)
{
  queue_all(FAIRLOCK_FOREVER, 0);
  CHECK(looks_after(1999) <= 10);
  CHECK(looks_after(1) >= HANDLES);
  CHECK(looks <= 4 * HANDLES);
  queue_all(1000, 0);
  CHECK(looks_after(1000) >= HANDLES);
  CHECK(looks <= 4 * HANDLES);
  CHECK_EQUAL(more[HANDLES - 1].phase, LEAVING);
  begin_all(1000);
  CHECK(looks_after(1000) >= HANDLES);
  CHECK(looks <= 4 * HANDLES);
  CHECK(more[HANDLES - 1].phase != QUEUEING);
}

/* Half of them have heartbeats to send, which nobody fetches, while the holds of the others end. */
static void test_slow_tick(void)
{
  queue_all(FAIRLOCK_FOREVER, HANDLES / 2);
  CHECK(looks_after(LEASE) > 4 * HANDLES);
  CHECK(looks <= HANDLES * HANDLES);
  CHECK_EQUAL(losses, HANDLES / 2);
}

/* What is not due is not looked at; what is asked for without a connection is. */
static void test_questions(void)
{
  queue_all(FAIRLOCK_FOREVER, 0);
  looks = 0;
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_RECEIVE);
  CHECK(fairlock_engine_deadline(&engine, now) > 0);
  CHECK(looks <= 2);
  set_up();
  for (int i = 0; i < HANDLES; i++)
    CHECK_EQUAL(fairlock_engine_add(&engine, &more[i], "door", 4), FAIRLOCK_OK);
  looks = 0;
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0);
  CHECK_EQUAL(looks, HANDLES + 2);
}

/* Each handle is told of the end of the connection, and looked at once more when that has failed. */
static void test_closed(void)
{
  queue_all(FAIRLOCK_FOREVER, 0);
  looks = 0;
  break_connection();
  CHECK(looks >= HANDLES && looks <= 2 * (HANDLES + 2));
}

/* A message, and an error, look for their handle among all. */
static void test_received(void)
{
  queue_all(FAIRLOCK_FOREVER, 0);
  looks = 0;
  push("message", CHANNEL("900"), "0");
  CHECK(looks >= HANDLES && looks <= HANDLES + 2);
  pass(2000);
  drain();
  looks = 0;
  feed("-OOM command not allowed\r\n");
  CHECK(looks >= HANDLES && looks <= HANDLES + 2);
}

/*
 * A script as text, through the smallest buffer: each call that fills it goes through the request
 * from its start.
 */
static void test_output(void)
{
  unsigned calls = 0, most = 0;
  size_t size;
  set_up();
  config.send_size = FAIRLOCK_SEND_MIN;
  greet();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  drain();
  feed("-NOSCRIPT No matching script.\r\n");
  output_size = 0;
  for (;; calls++) {
    bytes = 0;
    (void)fairlock_engine_output(&engine, &size, now);
    if (size == 0) break;
    output_size += size;
    if (bytes > most) most = bytes;
    fairlock_engine_sent(&engine, size);
  }
  CHECK(output_size > 3000);
  CHECK_EQUAL(calls, (output_size + FAIRLOCK_SEND_MIN - 1) / FAIRLOCK_SEND_MIN);
  CHECK(calls > 100);
  /* the lengths of keys and argument are found by writing them once more */
  CHECK(most > fairlock_lock_script.size && most < output_size + 300);
}

const struct check_test check_tests[] = {{"work: tick", test_tick},
                                         {"work: tick, the square", test_slow_tick},
                                         {"work: wants and deadline", test_questions},
                                         {"work: closed", test_closed},
                                         {"work: received", test_received},
                                         {"work: output", test_output},
                                         {0}};
