/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspections.
 */
#include "engine_tests.h"

enum { REPORTS = 6 };

static struct fairlock_report reports[REPORTS];
static char ids[REPORTS][16];
static char limits[32]; /* of the first */
static char last_id[16], last_words[16];
static unsigned reported;

static bool note_report(const struct fairlock_report *report, void *context)
{
  (void)context;
  if (reported == REPORTS) return true;
  reports[reported] = *report;
  if (report->id != NULL && report->id_size < 16)
    memcpy(ids[reported], report->id, report->id_size);
  if (reported == 0) {
    memset(limits, 0, sizeof limits);
    if (report->limits_size > 0 && report->limits_size < sizeof limits)
      memcpy(limits, report->limits, report->limits_size);
  }
  memset(last_id, 0, sizeof last_id);
  memset(last_words, 0, sizeof last_words);
  if (report->last.id_size > 0) memcpy(last_id, report->last.id, report->last.id_size);
  if (report->last.words_size > 0) memcpy(last_words, report->last.words, report->last.words_size);
  reported++;
  return true;
}

static void begin_inspection(void)
{
  begin();
  reported = 0;
  CHECK_EQUAL(fairlock_engine_inspect(&a, note_report, NULL, now), FAIRLOCK_PENDING);
  drain();
}

void test_inspect(void)
{
  begin();
  reported = 0;
  CHECK_EQUAL(fairlock_engine_inspect(&a, note_report, NULL, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_inspect(&b, note_report, NULL, now), FAIRLOCK_IN_PROGRESS);
  drain();
  feed("*12\r\n:4294967298\r\n:1500\r\n$2\r\n42\r\n:2\r\n:1\r\n$3\r\nh:1\r\n");
  feed(":1\r\n:2\r\n$3\r\nw:1\r\n:0\r\n:1\r\n$3\r\nw:2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(reported, 3);
  CHECK_EQUAL(reports[0].place, 0);
  CHECK_EQUAL(reports[0].ttl_ms, 1500);
  CHECK_EQUAL(reports[0].token, 42);
  CHECK_EQUAL(reports[0].hold_count, 2);
  CHECK_EQUAL(reports[0].waiter_count, 2);
  CHECK_EQUAL(reports[0].holder_count, 1);
  CHECK(!reports[0].shares && !reports[1].shares && !reports[2].shares);
  CHECK(reports[0].kind == FAIRLOCK_KIND_FAIRLOCK && strcmp(ids[0], "h:1") == 0);
  CHECK_EQUAL(reports[1].place, 1);
  CHECK(reports[1].kind == FAIRLOCK_KIND_FAIRLOCK && reports[1].life == FAIRLOCK_LIFE_ALIVE &&
        reports[1].listens && strcmp(ids[1], "w:1") == 0);
  CHECK(reports[2].kind == FAIRLOCK_KIND_REDISSON && reports[2].life == FAIRLOCK_LIFE_ALIVE &&
        !reports[2].listens && strcmp(ids[2], "w:2") == 0);
}

/* The program has seen enough after this many. */
static unsigned enough;

static bool note_some(const struct fairlock_report *report, void *context)
{
  (void)note_report(report, context);
  return reported < enough;
}

/* The rest of the answer is read, and nobody is told of it; after a break, too, when all begins again. */
void test_inspect_stopped(void)
{
  for (enough = 1; enough <= 3; enough++) {
    begin();
    reported = 0;
    CHECK_EQUAL(fairlock_engine_inspect(&a, note_some, NULL, now), FAIRLOCK_PENDING);
    for (int twice = 0; twice < 2; twice++) {
      drain();
      feed("*12\r\n:4294967298\r\n:1500\r\n$2\r\n42\r\n:2\r\n:1\r\n$3\r\nh:1\r\n");
      feed(":1\r\n:2\r\n$3\r\nw:1\r\n:0\r\n:1\r\n$3\r\nw");
      CHECK_EQUAL(a.result, FAIRLOCK_PENDING);
      if (twice == 0) {
        break_connection();
        greet();
      }
    }
    feed(":2\r\n");
    CHECK_EQUAL(a.result, FAIRLOCK_OK);
    CHECK_EQUAL(reported, enough < 3 ? enough : 3);
    CHECK_EQUAL(fairlock_engine_inspect(&a, note_report, NULL, now), FAIRLOCK_PENDING);
  }
}

/* A holder's lease, and when it was heard last: {ttl, kind, hold count}, and what follows. */
void test_inspect_holder(void)
{
  static const struct {
    const char *ttl, *kind, *count;
    uint32_t lease_ms;
    int64_t unheard_ms;
    bool listens, renews;
    enum fairlock_life life;
  } rows[] = {
      /* 30000 * 8 + 7: it listens and renews */
      {"30000", "240007", "1", 30000, 0, true, true, FAIRLOCK_LIFE_ALIVE},
      {"20000", "240007", "1", 30000, 10000, true, true, FAIRLOCK_LIFE_ALIVE},
      {"10000", "240005", "1", 30000, 20000, false, true, FAIRLOCK_LIFE_ALIVE},
      {"9999", "240005", "1", 30000, 20001, false, true, FAIRLOCK_LIFE_DEAD},
      {"0", "240007", "1", 30000, 30000, true, true, FAIRLOCK_LIFE_DEAD},
      {"1000", "240001", "1", 30000, 29000, false, false, FAIRLOCK_LIFE_UNKNOWN},
      {"30001", "240007", "1", 30000, -1, true, true, FAIRLOCK_LIFE_UNKNOWN},
      {"-1", "240007", "1", 30000, -1, true, true, FAIRLOCK_LIFE_UNKNOWN},
      {"1000", "1", "0", 0, -1, false, false, FAIRLOCK_LIFE_UNKNOWN},
      {"1000", "0", "1", 0, -1, false, false, FAIRLOCK_LIFE_UNKNOWN},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    begin_inspection();
    feed("*6\r\n:4294967296\r\n:");
    feed(rows[i].ttl);
    feed("\r\n$2\r\n42\r\n:");
    feed(rows[i].count);
    feed("\r\n:");
    feed(rows[i].kind);
    feed("\r\n$3\r\nh:1\r\n");
    CHECK_EQUAL(reported, 1);
    CHECK_EQUAL(reports[0].lease_ms, rows[i].lease_ms);
    CHECK_EQUAL(reports[0].unheard_ms, rows[i].unheard_ms);
    CHECK_EQUAL(reports[0].listens, rows[i].listens);
    CHECK_EQUAL(reports[0].renews, rows[i].renews);
    CHECK_EQUAL(reports[0].life, rows[i].life);
    CHECK_EQUAL(reports[0].kind == FAIRLOCK_KIND_FAIRLOCK, rows[i].kind[0] != '0');
  }
}

/* Of a free lock: the last hold. What is behind its id are words; another end is none that is known. */
void test_inspect_last(void)
{
  static const struct {
    const char *count, *lasted, *holder, *id, *words;
    int end;
  } rows[] = {
      {"0", "-1", "3\r\nh:1", "h:1", "", FAIRLOCK_LAST_EXPIRED},
      {"1", "1200", "3\r\nh:1", "h:1", "", FAIRLOCK_LAST_RELEASED},
      {"2", "9000000000000", "3\r\nh:1", "h:1", "", FAIRLOCK_LAST_BROKEN},
      {"2", "0", "16\r\nh:1 anna@ops why", "h:1", "anna@ops why", FAIRLOCK_LAST_BROKEN},
      {"3", "0", "4\r\nh:1 ", "h:1", "", FAIRLOCK_LAST_EXPIRED},
      {"281474976710657", "0", "3\r\nh:1", "h:1", "", FAIRLOCK_LAST_RELEASED}, /* needs */
      {"1", "1200", "0\r\n", NULL, "", FAIRLOCK_LAST_EXPIRED},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    begin_inspection();
    feed("*6\r\n:4294967296\r\n:-2\r\n$2\r\n42\r\n:");
    feed(rows[i].count);
    feed("\r\n:");
    feed(rows[i].lasted);
    feed("\r\n$");
    feed(rows[i].holder);
    feed("\r\n");
    CHECK_EQUAL(a.result, FAIRLOCK_OK);
    CHECK_EQUAL(reported, 1);
    const struct fairlock_report *got = &reports[0];
    CHECK(got->id == NULL && got->id_size == 0 && got->kind == FAIRLOCK_KIND_NONE);
    CHECK(got->holder_count == 0 && got->hold_count == 0 && got->token == 0 && got->lease_ms == 0);
    CHECK(got->ttl_ms == -2 && got->unheard_ms == -1 && !got->renews && !got->listens);
    CHECK_EQUAL(got->outdated, strlen(rows[i].count) > 9);
    CHECK_EQUAL(got->last.end, rows[i].end);
    CHECK_EQUAL(got->last.id == NULL, rows[i].id == NULL);
    if (rows[i].id == NULL) {
      CHECK(got->last.token == 0 && got->last.lasted_ms == 0 && got->last.words_size == 0);
      continue;
    }
    CHECK_EQUAL(got->last.token, 42);
    int64_t lasted_ms = 0;
    CHECK(resp_parse_number((const uint8_t *)rows[i].lasted, strlen(rows[i].lasted), &lasted_ms));
    CHECK_EQUAL(got->last.lasted_ms, lasted_ms);
    CHECK_BYTES(last_id, strlen(last_id), rows[i].id, strlen(rows[i].id));
    CHECK_BYTES(last_words, strlen(last_words), rows[i].words, strlen(rows[i].words));
  }
}

/*
 * Three who share, up to four of them, and two who wait: one that shares, and one of a later release.
 * A lease is rounded up by a sixteenth of it at most, so what is left may be that much more.
 */
void test_inspect_sharers(void)
{
  begin_inspection();
  feed("*22\r\n:12884901890\r\n"); /* 3 * 2^32 + 2; 5 * 2^16 + 2, and 1 */
  feed(":31877\r\n$2\r\n44\r\n:327682\r\n:240007\r\n$3\r\nh:3\r\n");
  feed(":9999\r\n$2\r\n42\r\n:327681\r\n:240005\r\n$3\r\nh:1\r\n");
  feed(":5000\r\n$2\r\n43\r\n:327680\r\n:40001\r\n$3\r\nh:2\r\n");
  feed(":5\r\n:2\r\n$3\r\nw:1\r\n:2\r\n:1\r\n$3\r\nw:2\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(reported, 5);
  for (unsigned i = 0; i < 3; i++) {
    CHECK_EQUAL(reports[i].place, 0);
    CHECK_EQUAL(reports[i].holder_index, i);
    CHECK_EQUAL(reports[i].holder_count, 3);
    CHECK_EQUAL(reports[i].waiter_count, 2);
    CHECK_EQUAL(reports[i].limit, 4);
    CHECK(reports[i].shares && reports[i].kind == FAIRLOCK_KIND_FAIRLOCK);
    CHECK_EQUAL(reports[i].hold_count, 2 - i);
  }
  CHECK(strcmp(ids[0], "h:3") == 0 && strcmp(ids[1], "h:1") == 0 && strcmp(ids[2], "h:2") == 0);
  CHECK_EQUAL(reports[0].ttl_ms, 31877);
  CHECK_EQUAL(reports[0].unheard_ms, -1);
  CHECK(reports[0].life == FAIRLOCK_LIFE_UNKNOWN && reports[0].listens && reports[0].renews);
  CHECK_EQUAL(reports[1].unheard_ms, 20001);
  CHECK(reports[1].life == FAIRLOCK_LIFE_DEAD && !reports[1].listens);
  CHECK_EQUAL(reports[1].token, 42);
  CHECK_EQUAL(reports[2].unheard_ms, 0);
  CHECK(reports[2].life == FAIRLOCK_LIFE_UNKNOWN && !reports[2].renews);
  CHECK_EQUAL(reports[3].place, 1);
  CHECK(reports[3].shares && reports[3].kind == FAIRLOCK_KIND_FAIRLOCK &&
        reports[3].life == FAIRLOCK_LIFE_ALIVE);
  CHECK(strcmp(ids[3], "w:1") == 0);
  CHECK_EQUAL(reports[4].place, 2);
  CHECK(!reports[4].shares && reports[4].life == FAIRLOCK_LIFE_UNKNOWN);
}

/* Several limits in use stand before the first holder's id, and nothing else is taken for them. */
void test_inspect_limits(void)
{
  static const struct {
    const char *count, *text, *limits, *id;
  } rows[] = {
      {"196609", "2 15 1000 h:1", "2 15 1000", "h:1"},
      {"196609", "2 15 9f:1", "2 15", "9f:1"},
      {"196609", "h:1", "", "h:1"},
      {"196609", "12:1", "", "12:1"},
      {"196609", "2/1 h:1", "", "2/1 h:1"},
      {"196609", "2 15 ", "2 15", ""},
      {"1", "2 15 h:1", "", "2 15 h:1"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    uint8_t bulk[32];
    struct resp_writer writer;
    begin_inspection();
    feed("*6\r\n:4294967296\r\n:9\r\n$2\r\n42\r\n:");
    feed(rows[i].count);
    feed("\r\n:1\r\n");
    resp_writer_init(&writer, bulk, sizeof bulk, 0);
    resp_write_bulk(&writer, rows[i].text, strlen(rows[i].text));
    feed_bytes((const char *)bulk, writer.used);
    CHECK_EQUAL(reported, 1);
    CHECK(strcmp(limits, rows[i].limits) == 0);
    CHECK_EQUAL(reports[0].id_size, strlen(rows[i].id));
    CHECK(memcmp(ids[0], rows[i].id, strlen(rows[i].id)) == 0);
  }
  begin_inspection();
  feed("*11\r\n:8589934592\r\n:9\r\n$2\r\n42\r\n:196609\r\n:1\r\n$7\r\n2 3 h:1\r\n");
  feed(":9\r\n$2\r\n43\r\n:196609\r\n:1\r\n$7\r\n2 3 h:2\r\n");
  CHECK_EQUAL(reported, 2);
  CHECK(strcmp(limits, "2 3") == 0 && reports[0].id_size == 3);
  CHECK(reports[1].limits_size == 0 && reports[1].id_size == 7);
}

/* What is left of a share's lease, and whether its holder was heard. */
void test_inspect_rounded_end(void)
{
  static const struct {
    const char *ttl, *count;
    int64_t unheard_ms;
    uint32_t limit;
  } rows[] = {{"30000", "131073", 0, 1},      {"31877", "131073", -1, 1}, {"31876", "65537", 0, 0},
              {"30001", "65601537", 0, 1000}, {"29999", "65537", 1, 0},   {"31876", "1", -1, 0},
              {"30001", "1", -1, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    begin_inspection();
    feed("*6\r\n:4294967296\r\n:");
    feed(rows[i].ttl);
    feed("\r\n$2\r\n42\r\n:");
    feed(rows[i].count);
    feed("\r\n:240007\r\n$3\r\nh:1\r\n");
    CHECK_EQUAL(reported, 1);
    CHECK_EQUAL(reports[0].unheard_ms, rows[i].unheard_ms);
    CHECK_EQUAL(reports[0].limit, rows[i].limit);
    CHECK_EQUAL(reports[0].shares, strlen(rows[i].count) > 1);
  }
}

/* A waiter of a later release, whose note cannot be read here. */
void test_inspect_later_release(void)
{
  begin_inspection();
  feed("*9\r\n:4294967297\r\n:-2\r\n$1\r\n0\r\n:0\r\n:0\r\n$0\r\n\r\n:2\r\n:1\r\n$3\r\nw:1\r\n");
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(reported, 2);
  CHECK(reports[0].kind == FAIRLOCK_KIND_NONE && reports[0].life == FAIRLOCK_LIFE_UNKNOWN);
  CHECK(reports[1].kind == FAIRLOCK_KIND_FAIRLOCK && reports[1].life == FAIRLOCK_LIFE_UNKNOWN &&
        !reports[1].listens);
}

/* An id that is too long is shown as "?", and the lock may be free although somebody waits. */
void test_inspect_oddities(void)
{
  static char long_id[400];
  begin_inspection();
  feed("*9\r\n:4294967297\r\n:-2\r\n$1\r\n0\r\n:0\r\n:0\r\n$0\r\n\r\n:1\r\n:2\r\n$300\r\n");
  memset(long_id, 'x', 300);
  memcpy(long_id + 300, "\r\n", 3);
  feed(long_id);
  CHECK_EQUAL(a.result, FAIRLOCK_OK);
  CHECK_EQUAL(reported, 2);
  CHECK(reports[0].id == NULL);
  CHECK_EQUAL(reports[1].place, 1);
  CHECK_BYTES(ids[1], 1, "?", 1);
}

static void inspect_nonsense(const char *reply, unsigned expected)
{
  reported = 0;
  CHECK_EQUAL(fairlock_engine_inspect(&a, note_report, NULL, now), FAIRLOCK_PENDING);
  CHECK(sends("EVALSHA"));
  feed(reply);
  if (!CHECK_EQUAL(a.result, FAIRLOCK_PROTOCOL)) CHECK_BYTES("", 0, reply, strlen(reply));
  CHECK_EQUAL(reported, expected);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  break_connection();
  greet();
}

/* What makes no sense is no inspection, even when some of it was reported. */
void test_inspect_nonsense(void)
{
  begin();
  inspect_nonsense("+OK\r\n", 0);
  inspect_nonsense(":1\r\n", 0);
  inspect_nonsense("_\r\n", 0);
  inspect_nonsense("*0\r\n", 0);
  inspect_nonsense("*3\r\n:1\r\n:2\r\n:3\r\n", 0);
  inspect_nonsense("*5\r\n:4294967296\r\n:9\r\n:1\r\n:1\r\n:1\r\n", 0);
  inspect_nonsense("~6\r\n:4294967296\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n", 1);
  /* the holder, a number or an id is of another kind */
  inspect_nonsense("*6\r\n:4294967296\r\n:9\r\n:1\r\n:1\r\n:1\r\n:7\r\n", 0);
  inspect_nonsense("*6\r\n:4294967296\r\n:9\r\n+x\r\n:1\r\n:1\r\n$1\r\nh\r\n", 0);
  inspect_nonsense("*6\r\n+x\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n", 0);
  inspect_nonsense("*9\r\n:4294967297\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n:1\r\n:2\r\n:3\r\n", 1);
  inspect_nonsense(
      "*9\r\n:4294967297\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n:1\r\n+x\r\n$1\r\nw\r\n", 1);
  /* no holder, not even an empty one */
  inspect_nonsense("*1\r\n:0\r\n", 0);
  inspect_nonsense("*4\r\n:1\r\n:1\r\n:2\r\n$1\r\nw\r\n", 1);
  /* more waiters or holders than announced, or fewer, or a part of one */
  inspect_nonsense("*6\r\n:4294967297\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n", 1);
  inspect_nonsense("*8\r\n:4294967297\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n:1\r\n:2\r\n", 1);
  inspect_nonsense(
      "*9\r\n:4294967296\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n:1\r\n:2\r\n$1\r\nw\r\n", 2);
  inspect_nonsense("*6\r\n:8589934592\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n", 1);
  /* both numbers as large as they can be, and one of them */
  inspect_nonsense("*6\r\n:9007199254740992\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n", 1);
  inspect_nonsense("*6\r\n:9007199254740991\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n", 1);
  inspect_nonsense("*6\r\n:8589934591\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n", 1);
  inspect_nonsense("*3\r\n:4294967295\r\n:1\r\n:2\r\n", 0);
  inspect_nonsense("*6\r\n:9007199254740993\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n", 0);
  /* the second of two holders is not whole, or its number is none */
  inspect_nonsense("*10\r\n:8589934592\r\n:9\r\n:1\r\n:65537\r\n:1\r\n$1\r\nh\r\n"
                   ":9\r\n:2\r\n:65537\r\n:1\r\n",
                   1);
  inspect_nonsense("*11\r\n:8589934592\r\n:9\r\n:1\r\n:65537\r\n:1\r\n$1\r\nh\r\n"
                   ":9\r\n:2\r\n+x\r\n:1\r\n$1\r\ni\r\n",
                   1);
  /* numbers of waiters that would suit the next reply, if they were kept */
  inspect_nonsense("*6\r\n:4294967297\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n", 1);
  inspect_nonsense("*0\r\n", 0);
  inspect_nonsense("*6\r\n:-1\r\n:9\r\n:1\r\n:1\r\n:1\r\n$1\r\nh\r\n", 1);
  inspect_nonsense("*3\r\n:4294967296\r\n:9\r\n:1\r\n", 0);
}
