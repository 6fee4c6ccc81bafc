/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that take part in the connection, all of them at once: each has its place, in whatever
 * order they were set, and does its part there.
 */
#include "follow_fixture.h"
#include "fairlock_credentials.h"
#include "fairlock_keep.h"
#include "fairlock_log.h"
#include "fairlock_share.h"

static struct fairlock_log journal;
static struct fairlock_credentials credentials;
static struct fairlock_keeping keep;
static struct fairlock_downgrading downgrading;
static struct fairlock_shared shared;
static int told[FAIRLOCK_LOG_BROKEN + 1];

static void note(enum fairlock_log_event event, int status, const char *text, void *context)
{
  (void)status;
  (void)text;
  (void)context;
  told[event]++;
}

static bool give(struct fairlock_login *login, void *context)
{
  (void)context;
  login->password = "secret";
  return true;
}

enum option { LOG, CREDENTIALS, KEEPER, DOWNGRADING, TOPOLOGY, OPTIONS };

static void use(enum option option)
{
  if (option == LOG) {
    fairlock_engine_set_log(&engine, &journal);
  } else if (option == CREDENTIALS) {
    fairlock_engine_use_credentials(&engine, &credentials);
  } else if (option == KEEPER) {
    CHECK_EQUAL(fairlock_engine_keep(&engine, &keep), FAIRLOCK_OK);
  } else if (option == DOWNGRADING) {
    fairlock_engine_use_downgrading(&engine, &downgrading);
  } else {
    follow();
  }
}

static void prepare(void)
{
  set_up_seeds(1);
  memset(told, 0, sizeof told);
  topology.replicas = 1;
  journal.function = note;
  credentials.function = give;
  keep.keep_ms = 10000;
}

/* Outermost first. */
static void check_order(void)
{
  CHECK(engine.links == &journal.own.link);
  CHECK(journal.own.link.inner == &credentials.own.link);
  CHECK(credentials.own.link.inner == &keep.own.link);
  CHECK(keep.own.link.inner == &downgrading.own.link);
  CHECK(downgrading.own.link.inner == &topology.own.link);
  CHECK(topology.own.link.inner == NULL);
}

static void greet_node(void)
{
  fairlock_engine_connect(&engine, now);
  fairlock_engine_opening(&engine, now);
  fairlock_engine_opened(&engine, now);
  CHECK(sends("AUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\n"));
  feed("%3\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$2\r\nid\r\n:74\r\n$4\r\nmode\r\n$7\r\ncluster\r\n");
  tell_time(0);
  CHECK(fairlock_engine_ready(&engine));
}

/* A share, acknowledged by a replica. It is not renewed, so it is not put off. */
static void share(void)
{
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &shared, "door", 4, 10), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_acquire(&shared.handle, 0, 30000, now), FAIRLOCK_PENDING);
  CHECK(sends("\r\n$2\r\n10\r\n*3\r\n$4\r\nWAIT\r\n"));
  answer(1, 78, 0);
  feed(":1\r\n");
  CHECK_EQUAL(shared.handle.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_release(&shared.handle, now), FAIRLOCK_PENDING);
  CHECK(sends("\r\n$2\r\n10\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(shared.handle.result, FAIRLOCK_OK);
}

/* An acquire that is armed, and acknowledged by a replica; a release that is put off; a MOVED. */
static void check_parts(void)
{
  greet_node();
  CHECK_EQUAL(told[FAIRLOCK_LOG_CONNECTED], 1);
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends("TRACKING\r\n"));
  CHECK(strstr(output, "EVALSHA") != NULL && strstr(output, "WAIT\r\n") != NULL);
  feed("+OK\r\n+OK\r\n:0\r\n");
  push("ssubscribe", CHANNEL("1"), NULL);
  answer(1, 77, 0);
  feed(":1\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_release(&a, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  share();
  CHECK_EQUAL(fairlock_engine_acquire(&b, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  drain();
  feed("+OK\r\n:0\r\n-MOVED 8632 10.0.0.3:6379\r\n");
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  break_connection();
  CHECK_EQUAL(told[FAIRLOCK_LOG_REDIRECTED], 1);
  CHECK_EQUAL(told[FAIRLOCK_LOG_REFUSED], 0);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CONNECT); /* at once */
}

/* All 120. */
static void test_any_order(void)
{
  for (unsigned order = 0; order < OPTIONS * OPTIONS * OPTIONS * OPTIONS * OPTIONS; order++) {
    unsigned option[OPTIONS];
    unsigned all = 0;
    for (unsigned i = 0, rest = order; i < OPTIONS; i++, rest /= OPTIONS) {
      option[i] = rest % OPTIONS;
      all |= 1U << option[i];
    }
    if (all != (1U << OPTIONS) - 1) continue;
    prepare();
    for (unsigned i = 0; i < OPTIONS; i++)
      use((enum option)option[i]);
    check_order();
    check_parts();
  }
}

/* Set again, each takes its own place, not one behind itself. */
static void test_again(void)
{
  prepare();
  for (unsigned option = 0; option < OPTIONS; option++)
    use((enum option)option);
  for (unsigned option = 0; option < TOPOLOGY; option++)
    use((enum option)option);
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, aim, &seeds), FAIRLOCK_INVALID);
  check_order();
  check_parts();
}

/* A second one takes the place of the first, which is called no more. */
static void test_instead(void)
{
  prepare();
  for (unsigned option = 0; option < OPTIONS; option++)
    use((enum option)option);
  static struct fairlock_log other_journal;
  static struct fairlock_credentials other_credentials;
  static struct fairlock_keeping other_keep;
  static struct fairlock_downgrading other_downgrading;
  other_journal = journal;
  other_credentials = credentials;
  other_keep = keep;
  fairlock_engine_set_log(&engine, &other_journal);
  fairlock_engine_use_credentials(&engine, &other_credentials);
  CHECK_EQUAL(fairlock_engine_keep(&engine, &other_keep), FAIRLOCK_OK);
  fairlock_engine_use_downgrading(&engine, &other_downgrading);
  memset(&downgrading, 0x5a, sizeof downgrading);
  memset(&journal, 0x5a, sizeof journal);
  memset(&credentials, 0x5a, sizeof credentials);
  memset(&keep, 0x5a, sizeof keep);
  CHECK(engine.links == &other_journal.own.link);
  check_parts();
}

/* Each alone, and each without one of the others: whoever is inside, it passes on. */
static void test_some(void)
{
  for (unsigned some = 0; some < 1U << OPTIONS; some++) {
    prepare();
    for (unsigned option = 0; option < OPTIONS; option++) {
      if (some & 1U << option) use((enum option)option);
    }
    greet();
    struct fairlock *handle = &a;
    if (some & 1U << DOWNGRADING) {
      CHECK_EQUAL(fairlock_engine_add_shared(&engine, &shared, "door", 4, 10), FAIRLOCK_OK);
      handle = &shared.handle;
    }
    CHECK_EQUAL(fairlock_engine_acquire(handle, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
    drain();
    CHECK_EQUAL(strstr(output, "\r\n$2\r\n10\r\n") != NULL, (some & 1U << DOWNGRADING) != 0);
    CHECK_EQUAL(strstr(output, "TRACKING") != NULL, (some & 1U << KEEPER) != 0);
    CHECK_EQUAL(strstr(output, "WAIT\r\n") != NULL, (some & 1U << TOPOLOGY) != 0);
    if (some & 1U << KEEPER) feed("+OK\r\n+OK\r\n:0\r\n");
    break_connection();
    CHECK_EQUAL(handle->result, some & 1U << TOPOLOGY ? FAIRLOCK_PENDING : handle->result);
    CHECK_EQUAL(told[FAIRLOCK_LOG_DISCONNECTED], some & 1U << LOG ? 1 : 0);
    CHECK_EQUAL(engine.links == NULL, some == 0);
  }
}

const struct check_test check_tests[] = {{"links: any order", test_any_order},
                                         {"links: set again", test_again},
                                         {"links: another in its place", test_instead},
                                         {"links: some of them", test_some},
                                         {0}};
