/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that are given up, on the engine alone: in whatever phase, their memory is free at once, the
 * server is told, nobody else is, and the memory of the rest is given back once, when nothing can be left.
 */
#include "engine_tests.h"
#include "fairlock_abandon.h"
#include "fairlock_keep.h"
#include "fairlock_log.h"

static struct fairlock_rest rest, second;
static char name[8];
static unsigned freed, ended;
static struct fairlock_shared c;
static struct fairlock_keeping keeper;

static void on_freed(struct fairlock_rest *its, void *context)
{
  CHECK(context == &freed);
  memset(its, 0x5a, sizeof *its);
  memset(name, 0x5a, sizeof name);
  freed++;
}

static void on_ended(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  (void)handle;
  (void)end;
  ++*(unsigned *)context;
}

static void prepare(void)
{
  freed = 0;
  ended = 0;
  rest = (struct fairlock_rest){
      .freed = on_freed, .context = &freed, .name = name, .name_size = sizeof name};
  second = (struct fairlock_rest){.freed = on_freed, .context = &freed};
}

static void begin_quietly(void)
{
  prepare();
  set_up();
  config.ended = on_ended;
  config.ended_context = &ended;
  greet();
}

/* a is given up; whatever uses its memory from now on, nothing of it is read. */
static void abandon_a(void)
{
  unsigned before = ended;
  CHECK_EQUAL(fairlock_engine_abandon(&a, &rest, now), FAIRLOCK_OK);
  memset(&a, 0x5a, sizeof a);
  CHECK_EQUAL(ended, before);
}

static void note(enum fairlock_log_event event, int status, const char *text, void *context)
{
  (void)event;
  (void)status;
  (void)text;
  (void)context;
}

static void idle(void)
{
  unsigned before = ended;
  pass(20000);
  CHECK(sends_nothing());
  CHECK_EQUAL(freed, 1);
  CHECK_EQUAL(ended, before);
  CHECK_EQUAL(losses, 0);
  CHECK(engine.links == NULL);
  CHECK(engine.first == &b); /* the other one is alone */
}

static void leaves_and_is_freed(void)
{
  drain();
  CHECK_EQUAL(freed, 0);
  answer(1, 0, 0);
  idle();
}

/* a holds, and does not listen. */
static void hold_a(uint32_t lease_ms)
{
  request(&a, 0, lease_ms);
  answer(1, 5, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  ended = 0;
}

static void test_idle(void)
{
  begin_quietly();
  abandon_a();
  idle();
}

static void test_before_anything_was_sent(void)
{
  begin_quietly();
  CHECK_EQUAL(fairlock_engine_acquire(&a, 1000, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  abandon_a();
  idle();
}

static void test_trying(void)
{
  begin_quietly();
  request(&a, 0, FAIRLOCK_RENEW);
  abandon_a();
  drain();
  answer(1, 7, 0); /* of the try: it does not count any more */
  CHECK_EQUAL(freed, 0);
  answer(1, 0, 0);
  idle();
}

static void test_waiting(void)
{
  begin_quietly();
  queue_a(FAIRLOCK_FOREVER);
  abandon_a();
  CHECK(sends("UNSUBSCRIBE"));
  grant(CHANNEL("1"), "99", 0); /* it crosses the leave, which ends it */
  push("unsubscribe", CHANNEL("1"), NULL);
  CHECK_EQUAL(freed, 0);
  answer(1, 0, 0);
  idle();
}

static void test_holding(void)
{
  begin_quietly();
  hold_a(30000);
  abandon_a();
  leaves_and_is_freed();
}

/* It listens, too. */
static void test_handed_over(void)
{
  begin_quietly();
  acquire_a(30000);
  ended = 0;
  abandon_a();
  CHECK(sends("UNSUBSCRIBE"));
  push("unsubscribe", CHANNEL("1"), NULL);
  leaves_and_is_freed();
}

static void test_reentering_and_releasing(void)
{
  for (int last = 0; last < 2; last++) {
    begin_quietly();
    hold_a(30000);
    if (last) CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
    else request(&a, 0, FAIRLOCK_RENEW);
    drain();
    abandon_a();
    drain();
    answer(1, last ? 0 : 1, 0); /* of the release, or the re-entry */
    CHECK_EQUAL(freed, 0);
    answer(0, 0, 0);
    idle();
  }
}

static void test_lost(void)
{
  begin_quietly();
  hold_a(1000);
  pass(1000);
  CHECK_EQUAL(losses, 1);
  losses = 0;
  abandon_a();
  leaves_and_is_freed();
}

static void test_taken_out(void)
{
  begin_quietly();
  queue_a(FAIRLOCK_FOREVER);
  cancel_a();
  CHECK_EQUAL(fairlock_engine_remove(&a, now), FAIRLOCK_PENDING);
  CHECK(sends("UNSUBSCRIBE"));
  abandon_a();
  CHECK(!sends("UNSUBSCRIBE"));
  push("unsubscribe", CHANNEL("1"), NULL);
  answer(0, 0, 0);
  CHECK_EQUAL(freed, 0);
  answer(0, 0, 0);
  idle();
}

static void test_inspecting_and_breaking(void)
{
  for (int breaks = 0; breaks < 2; breaks++) {
    begin_quietly();
    if (breaks) CHECK_EQUAL(fairlock_engine_force(&a, &anyone, now), FAIRLOCK_PENDING);
    else CHECK_EQUAL(fairlock_engine_inspect(&a, report_nothing, NULL, now), FAIRLOCK_PENDING);
    drain();
    abandon_a();
    CHECK_EQUAL(freed, 1);
    answer(1, 0, 0);
    idle();
  }
}

/* The rest of its request cannot be written. */
static void test_half_written_break(void)
{
  size_t size;
  begin_quietly();
  config.send_size = FAIRLOCK_SEND_MIN;
  CHECK_EQUAL(fairlock_engine_force(&a, &anyone, now), FAIRLOCK_PENDING);
  (void)fairlock_engine_output(&engine, &size, now);
  abandon_a();
  CHECK_EQUAL(freed, 1);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  config.send_size = sizeof send_buffer;
}

static void test_kept(void)
{
  begin_quietly();
  keeper.keep_ms = 10000;
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keeper), FAIRLOCK_OK);
  request(&a, 0, FAIRLOCK_RENEW);
  feed("+OK\r\n+OK\r\n:0\r\n");
  push("subscribe", CHANNEL("1"), NULL);
  answer(1, 5, 0);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  abandon_a();
  CHECK(sends("UNSUBSCRIBE"));
  push("unsubscribe", CHANNEL("1"), NULL);
  answer(1, 0, 0);
  CHECK_EQUAL(freed, 1);
  pass(20000);
  CHECK(sends_nothing());
}

/* Its limit goes with it. */
static void test_shared(void)
{
  begin_quietly();
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &c, "door", 4, 2), FAIRLOCK_OK);
  request(&c.handle, 0, FAIRLOCK_RENEW);
  answer(1, 5, 0);
  CHECK_EQUAL(fairlock_engine_abandon(&c.handle, &rest, now), FAIRLOCK_OK);
  memset(&c, 0x5a, sizeof c);
  CHECK(sends("\r\n$1\r\n2\r\n")); /* the limit */
  answer(1, 0, 0);
  CHECK_EQUAL(freed, 1);
  CHECK(engine.links == NULL);
}

/* What is told beside it takes each event first. */
static void test_told_of(void)
{
  static struct fairlock_log journal;
  begin_quietly();
  memset(&journal, 0, sizeof journal);
  journal.function = note;
  fairlock_engine_set_log(&engine, &journal);
  hold_a(30000);
  abandon_a();
  drain();
  CHECK_EQUAL(freed, 0);
  answer(1, 0, 0);
  CHECK_EQUAL(freed, 1);
  CHECK(engine.links == &journal.own.link);
}

/* A message to it has come half-way. */
static void test_addressed(void)
{
  begin_quietly();
  queue_a(FAIRLOCK_FOREVER);
  feed(">3\r\n+message\r\n");
  feed("$56\r\n" CHANNEL("1") "\r\n");
  CHECK(engine.addressee == &a);
  abandon_a();
  CHECK(engine.addressee == &rest.handle.handle);
  feed("$2\r\n99\r\n");
  CHECK(sends("UNSUBSCRIBE"));
  push("unsubscribe", CHANNEL("1"), NULL);
  CHECK_EQUAL(freed, 0);
  answer(1, 0, 0);
  idle();
}

/* One whose request is half-way out goes on from its new place. */
static void test_half_written(void)
{
  begin_quietly();
  config.send_size = FAIRLOCK_SEND_MIN;
  size_t size;
  CHECK_EQUAL(fairlock_engine_acquire(&a, 1000, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  (void)fairlock_engine_output(&engine, &size, now);
  CHECK_EQUAL(size, FAIRLOCK_SEND_MIN);
  abandon_a();
  CHECK(sends("redisson_lock__channel"));
  push("subscribe", CHANNEL("1"), NULL);
  answer(0, -1, 0);
  CHECK(sends("UNSUBSCRIBE") || engine.request.handle == NULL);
  push("unsubscribe", CHANNEL("1"), NULL);
  answer(1, 0, 0);
  config.send_size = sizeof send_buffer;
  pass(500);
  while (!sends_nothing()) {
    if (strstr(output, "UNSUBSCRIBE") != NULL) push("unsubscribe", CHANNEL("1"), NULL);
    answer(1, 0, 0);
  }
  CHECK_EQUAL(freed, 1);
}

/* A connection that breaks: the next one tells the server. */
static void test_broken(void)
{
  begin_quietly();
  hold_a(30000);
  abandon_a();
  drain();
  reconnect();
  leaves_and_is_freed();
}

/* Nobody can be told: it is given back when all that it can have left has ended. */
static void stays_alone(uint32_t offline_ms)
{
  begin_quietly();
  engine.offline_ms = offline_ms;
  hold_a(30000);
  abandon_a();
  drain();
  break_connection();
  unsigned attempts = 0;
  uint32_t from = now;
  for (; freed == 0 && now - from < 60000; attempts++) {
    pass(fairlock_engine_deadline(&engine, now));
    if (!(fairlock_engine_wants(&engine, now) & FAIRLOCK_CONNECT)) continue;
    fairlock_engine_opening(&engine, now);
    fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
  }
  CHECK(now - from > 30000 && now - from < 50000);
  pass(20000);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), 0); /* and no more connections for it */
  CHECK_EQUAL(freed, 1);
  CHECK_EQUAL(ended, 0);
}

static void test_without_a_server(void)
{
  stays_alone(10000);
  stays_alone(FAIRLOCK_FOREVER);
}

/* The server refuses it for good: there is nothing to wait for. */
static void test_refused(void)
{
  begin_quietly();
  hold_a(30000);
  abandon_a();
  drain();
  feed("-NOPERM this user has no permissions\r\n");
  idle();
}

/* Refused for now: it is told again. */
static void test_refused_for_now(void)
{
  begin_quietly();
  hold_a(30000);
  abandon_a();
  drain();
  feed("-LOADING Redis is loading the dataset in memory\r\n");
  CHECK_EQUAL(freed, 0);
  pass(500);
  CHECK(sends("client-1"));
  leaves_and_is_freed();
}

/* Several, in any order: each is given back when its own is over. */
static void test_several(void)
{
  begin_quietly();
  request(&a, 0, FAIRLOCK_RENEW);
  request(&b, 0, FAIRLOCK_RENEW);
  answer(1, 5, 0);
  answer(1, 6, 0);
  abandon_a();
  CHECK_EQUAL(fairlock_engine_abandon(&b, &second, now), FAIRLOCK_OK);
  drain();
  answer(1, 0, 0); /* a's */
  CHECK_EQUAL(freed, 1);
  CHECK(second.handle.handle.engine == &engine);
  answer(1, 0, 0);
  CHECK_EQUAL(freed, 2);
  CHECK(engine.links == NULL && engine.first == NULL);

  begin_quietly();
  request(&b, 0, FAIRLOCK_RENEW);
  request(&a, 0, FAIRLOCK_RENEW);
  answer(1, 5, 0);
  answer(1, 6, 0);
  CHECK_EQUAL(fairlock_engine_abandon(&b, &second, now), FAIRLOCK_OK);
  drain();
  abandon_a();
  drain();
  answer(1, 0, 0);
  CHECK_EQUAL(freed, 1);
  fairlock_engine_deinit(&engine);
  CHECK_EQUAL(freed, 2);
  fairlock_engine_deinit(&engine);
  CHECK_EQUAL(freed, 2);
}

enum { MANY = 200 };

/* Handles that hold, and are given up. */
static void abandon_many(void)
{
  static struct fairlock many[MANY];
  static struct fairlock_rest rests[MANY];
  for (int i = 0; i < MANY; i++) {
    CHECK_EQUAL(fairlock_engine_add(&engine, &many[i], "many", 4), FAIRLOCK_OK);
    request(&many[i], 0, FAIRLOCK_RENEW);
    answer(1, i + 5, 0);
  }
  for (int i = 0; i < MANY; i++) {
    rests[i] = (struct fairlock_rest){.freed = on_freed, .context = &freed};
    CHECK_EQUAL(fairlock_engine_abandon(&many[i], &rests[i], now), FAIRLOCK_OK);
  }
}

/* Of many, a few are looked at after each answer: none of those that are out waits for long, and none stays. */
static void test_many(void)
{
  begin_quietly();
  abandon_many();
  drain();
  CHECK_EQUAL(freed, 0);
  for (unsigned i = 1; i <= MANY; i++) {
    answer(1, 0, 0);
    CHECK(i - freed <= (MANY - i) / 3);
  }
  CHECK_EQUAL(freed, MANY);
  CHECK(engine.links == NULL);
  abandon_many();
  fairlock_engine_deinit(&engine);
  CHECK_EQUAL(freed, 2 * MANY);
}

/* A name that stays needs no room; one that is to be copied does. Nobody has to be told. */
static void test_names(void)
{
  begin_quietly();
  rest.name_size = 3;
  hold_a(30000);
  CHECK_EQUAL(fairlock_engine_abandon(&a, &rest, now), FAIRLOCK_TOO_LONG);
  CHECK_EQUAL(a.holds, 1);
  rest.name_size = 4;
  CHECK_EQUAL(fairlock_engine_abandon(&a, &rest, now), FAIRLOCK_OK);
  CHECK(rest.handle.handle.name == name && memcmp(name, "door", 4) == 0);
  second.freed = NULL;
  CHECK_EQUAL(fairlock_engine_abandon(&b, &second, now), FAIRLOCK_OK);
  drain();
  answer(1, 0, 0);
  CHECK_EQUAL(freed, 1);
  CHECK(engine.first == NULL);
}

const struct check_test check_tests[] = {
    {"one that does nothing", test_idle},
    {"before anything was sent", test_before_anything_was_sent},
    {"one that tries", test_trying},
    {"one that waits", test_waiting},
    {"one that holds", test_holding},
    {"one that was handed the lock", test_handed_over},
    {"one that re-enters, or releases", test_reentering_and_releasing},
    {"one that has lost its hold", test_lost},
    {"one that is being taken out", test_taken_out},
    {"one that inspects, or breaks", test_inspecting_and_breaking},
    {"one whose break is half-way out", test_half_written_break},
    {"one whose lock is kept", test_kept},
    {"one that shares", test_shared},
    {"beside a log", test_told_of},
    {"half-way through a message to it", test_addressed},
    {"one whose request is half-way out", test_half_written},
    {"the connection breaks", test_broken},
    {"no server", test_without_a_server},
    {"refused for good", test_refused},
    {"refused for now", test_refused_for_now},
    {"several", test_several},
    {"many", test_many},
    {"names", test_names},
    {0}};
