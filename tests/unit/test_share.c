/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that share their lock, on the engine alone: what they send instead, beside each of the other
 * options and in pieces of any size, and that everything else is as for any handle.
 */
#include "engine_tests.h"
#include "fairlock_follow.h"
#include "fairlock_keep.h"
#include "fairlock_log.h"
#include "fairlock_share.h"
#include "scripts/hashes.h"

#define CALL(sha1)                                                                                 \
  "\r\n$7\r\nEVALSHA\r\n$40\r\n" sha1 "\r\n$1\r\n4\r\n$4\r\ndoor\r\n$26\r\nredisson_lock_queue:"   \
  "{door}\r\n$28\r\nredisson_lock_timeout:{door}\r\n$15\r\nfairlock:{door}\r\n"
#define SHARED  "*9" CALL(FAIRLOCK_SHARED_SHA1)
#define LOCK    "*8" CALL(FAIRLOCK_LOCK_SHA1)
#define UNKNOWN "-NOSCRIPT No matching script.\r\n"

static struct fairlock_shared c, d; /* with limits of 2, and of any number */
static struct fairlock_topology topology;
static struct fairlock_keeping keeper;
static struct fairlock_log journal;

static void add(void)
{
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &c, "door", 4, 2), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &d, "door", 4, 0), FAIRLOCK_OK);
}

static void begin_sharing(void)
{
  set_up();
  add();
  greet();
}

/* The same behind one more link: each request waits for a replica, and only one is under way. */
static void begin_with_replicas(void)
{
  set_up();
  memset(&topology, 0, sizeof topology);
  topology.replicas = 1;
  add();
  CHECK_EQUAL(fairlock_engine_follow(&engine, &topology, NULL, NULL), FAIRLOCK_OK);
  greet();
}

static void begin_with_keeper(void)
{
  set_up();
  keeper.keep_ms = 10000;
  add();
  CHECK_EQUAL(fairlock_engine_keep(&engine, &keeper), FAIRLOCK_OK);
  greet();
}

static bool ends_in(const char *text)
{
  size_t size = strlen(text);
  return output_size >= size && strcmp(output + output_size - size, text) == 0;
}

static bool logs(const char *text)
{
  return strstr(output, text) != NULL;
}

/* c holds, with this token. */
static void share_c(int64_t token)
{
  request(&c.handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
  if (!(c.handle.flags & 2)) push("subscribe", CHANNEL("3"), NULL);
  answer(1, token, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
  drain();
}

static void queue_c(void)
{
  request(&c.handle, 20000, FAIRLOCK_RENEW);
  push("subscribe", CHANNEL("3"), NULL);
  answer(0, -1, 0);
  CHECK(sends_nothing());
}

static void test_init(void)
{
  set_up();
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &c, "door", 4, FAIRLOCK_LIMIT_MAX + 1),
              FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &c, "door", 4, UINT32_MAX), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &c, "door", 0, 2), FAIRLOCK_INVALID);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &c, "door", FAIRLOCK_NAME_MAX + 1, 2),
              FAIRLOCK_TOO_LONG);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &c, "door", 4, 1), FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_add_shared(&engine, &d, "door", 4, FAIRLOCK_LIMIT_MAX), FAIRLOCK_OK);
  CHECK_EQUAL(d.limit, FAIRLOCK_LIMIT_MAX);
}

/* All that one of each kind sends, from its acquire to its end. */
static void test_bytes(void)
{
  begin_sharing();
  request(&c.handle, 1000, 30000);
  CHECK(strstr(output, "*2\r\n$9\r\nSUBSCRIBE\r\n$56\r\n" CHANNEL("3") "\r\n" SHARED) == output);
  CHECK(logs(":3 ") && logs(" 5000 30000\r\n") && ends_in("\r\n$1\r\n2\r\n"));
  push("subscribe", CHANNEL("3"), NULL);
  answer(1, 77, 0);
  request(&d.handle, 0, 30000);
  CHECK(strstr(output, SHARED) == output && ends_in("\r\n$1\r\n0\r\n"));
  answer(1, 78, 0);
  request(&a, 0, 30000);
  CHECK(strstr(output, LOCK) == output && ends_in(" 0 30000\r\n"));
  answer(0, 30000, 0);
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  CHECK_EQUAL(c.handle.token, 77);
  CHECK_EQUAL(fairlock_engine_release(&c.handle, now), FAIRLOCK_PENDING);
  CHECK(sends(SHARED) && logs(" 0 0 77\r\n") && ends_in("\r\n$1\r\n2\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&c.handle, now), FAIRLOCK_PENDING);
  CHECK(sends("*2\r\n$11\r\nUNSUBSCRIBE\r\n$56\r\n" CHANNEL("3") "\r\n" SHARED));
  push("unsubscribe", CHANNEL("3"), NULL);
  answer(0, 0, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_remove(&c.handle, now), FAIRLOCK_OK);
}

/* On a node of a cluster channels belong to shards. */
static void test_shards(void)
{
  begin_sharing();
  engine.sharded = true;
  request(&c.handle, 1000, 30000);
  CHECK(strstr(output, "*2\r\n$10\r\nSSUBSCRIBE\r\n") == output);
  feed("-NOPERM this user has no permissions\r\n");
  CHECK_EQUAL(c.handle.result, FAIRLOCK_PENDING);
}

/* Renewal, re-entry, release of one level, a cancelled wait: as any handle, by the other script. */
static void test_as_any(void)
{
  begin_sharing();
  share_c(77);
  pass(10000);
  CHECK(sends(SHARED) && logs(" -1 30000+ 77\r\n"));
  answer(1, 77, 0);
  request(&c.handle, 0, FAIRLOCK_RENEW);
  CHECK(logs(SHARED) && logs(" -2 30000+ 77\r\n"));
  answer(1, 77, 0);
  CHECK_EQUAL(c.handle.holds, 2);
  CHECK_EQUAL(fairlock_engine_release(&c.handle, now), FAIRLOCK_PENDING);
  CHECK(sends(SHARED) && logs(" -1 30000+ 77\r\n"));
  answer(1, 77, 0);
  CHECK_EQUAL(c.handle.holds, 1);
  CHECK_EQUAL(fairlock_engine_acquire(&d.handle, FAIRLOCK_FOREVER, 1000, now), FAIRLOCK_PENDING);
  drain();
  push("subscribe", CHANNEL("4"), NULL);
  answer(0, -1, 0);
  grant(CHANNEL("4"), "99", 0);
  CHECK_EQUAL(d.handle.result, FAIRLOCK_OK);
  CHECK(sends(SHARED) && logs(" -1 1000 99\r\n"));
  pass(1000);
  CHECK_EQUAL(losses, 1);
  CHECK_EQUAL(fairlock_engine_release(&d.handle, now), FAIRLOCK_LOST);
  CHECK(sends(SHARED) && logs(" 0 0\r\n"));
}

static void test_cancel(void)
{
  begin_sharing();
  queue_c();
  CHECK_EQUAL(fairlock_engine_cancel(&c.handle, now), FAIRLOCK_OK);
  CHECK(sends(SHARED) && logs(" 0 0\r\n"));
  answer(0, 0, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_CANCELLED);
  CHECK(sends_nothing());
}

/* In pieces */

/* What is sent in all, in a number that depends on each byte and on their order. */
static uint32_t sum_of_output(size_t *total)
{
  uint32_t sum = 2166136261U;
  size_t size;
  const uint8_t *data;
  *total = 0;
  while (data = fairlock_engine_output(&engine, &size, now), size > 0) {
    for (size_t i = 0; i < size; i++)
      sum = (sum ^ data[i]) * 16777619U;
    *total += size;
    fairlock_engine_sent(&engine, size);
  }
  return sum;
}

/* A request of each kind, through a buffer of so many bytes: behind the other it begins anywhere. */
static uint32_t sum_in_pieces(void (*begin_so)(void), size_t piece, bool text, size_t *total)
{
  begin_so();
  config.send_size = piece;
  if (text) engine.eval = UINT8_MAX; /* of each script */
  CHECK_EQUAL(fairlock_engine_acquire(&a, 0, 1000, now), FAIRLOCK_PENDING);
  CHECK_EQUAL(fairlock_engine_acquire(&c.handle, 1000, 1000, now), FAIRLOCK_PENDING);
  engine.window = UINT16_MAX;
  return sum_of_output(total);
}

static void check_pieces(void (*begin_so)(void), bool text)
{
  size_t total, whole;
  uint32_t sum = sum_in_pieces(begin_so, sizeof send_buffer, text, &whole);
  CHECK(whole > (text ? 5000 : 500));
  for (size_t piece = FAIRLOCK_SEND_MIN; piece < sizeof send_buffer; piece += text ? 37 : 1) {
    CHECK_EQUAL(sum_in_pieces(begin_so, piece, text, &total), sum);
    CHECK_EQUAL(total, whole);
  }
}

static void test_pieces(void)
{
  check_pieces(begin_sharing, false);
  check_pieces(begin_with_replicas, false);
  check_pieces(begin_with_keeper, false);
}

static void test_pieces_of_texts(void)
{
  check_pieces(begin_sharing, true);
  check_pieces(begin_with_replicas, true);
}

/* The leave of c is being written, as it has found a try in doubt; that has waited for so long. */
static void write_a_part_of_a_leave(void)
{
  size_t size;
  set_up();
  config.response_ms = 20000;
  config.send_size = FAIRLOCK_SEND_MIN;
  add();
  greet();
  request(&c.handle, 0, 1000);
  break_connection();
  pass(50);
  greet();
  drain();
  answer(0, 1000, 0);
  drain();
  answer(0, 0, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_BUSY);
  pass(engine.in_doubt_ms);
  (void)fairlock_engine_output(&engine, &size, now);
  CHECK_EQUAL(size, FAIRLOCK_SEND_MIN);
}

/* The caller's next operation is of another kind, and the rest of the request is what it was. */
static void test_inspection_in_the_middle(void)
{
  write_a_part_of_a_leave();
  pass(2 * engine.waiter_ms);
  CHECK_EQUAL(fairlock_engine_inspect(&c.handle, report_nothing, NULL, now), FAIRLOCK_PENDING);
  drain();
  CHECK(strstr(output, SHARED) == output);
  CHECK(logs(" 0 0\r\n$1\r\n2\r\n*7" CALL(FAIRLOCK_INSPECT_SHA1)));
}

/* The link that follows servers writes its WAIT behind the other script, and reads the answer. */
static void test_replicas(void)
{
  begin_with_replicas();
  request(&c.handle, 0, 30000);
  CHECK(strstr(output, SHARED) == output);
  CHECK(logs("\r\n$1\r\n2\r\n*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n"));
  answer(1, 77, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_PENDING);
  feed(":1\r\n");
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
  request(&d.handle, 0, 30000);
  answer(0, 2000, 0);
  feed(":1\r\n");
  CHECK_EQUAL(d.handle.result, FAIRLOCK_BUSY);
  CHECK_EQUAL(fairlock_engine_release(&c.handle, now), FAIRLOCK_PENDING);
  CHECK(sends(SHARED) && ends_in("\r\n$1\r\n2\r\n"));
  answer(1, 0, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
  break_connection();
  CHECK_EQUAL(engine.last_error, FAIRLOCK_UNREACHABLE);
}

/* Scripts that the server does not know */

static bool sends_text(void)
{
  drain();
  return logs("EVAL\r\n") && !logs("EVALSHA\r\n");
}

static bool sends_hash(void)
{
  drain();
  return logs("EVALSHA\r\n") && !logs("EVAL\r\n");
}

static void test_noscript_once(void)
{
  begin_sharing();
  request(&c.handle, 0, 1000);
  feed(UNKNOWN);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_PENDING);
  CHECK(sends_text());
  CHECK(logs("*9\r\n") && logs("'limit'")); /* it is the text of this script */
  answer(1, 77, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
  CHECK_EQUAL(engine.error[0], 0);
  request(&d.handle, 0, 1000);
  CHECK(logs(SHARED));
  answer(1, 78, 0);
}

/* Two scripts for one kind of request: each is sent its own text, once. */
static void test_noscript_of_both(void)
{
  begin_sharing();
  request(&c.handle, 0, 1000);
  request(&a, 0, 1000);
  feed(UNKNOWN);
  feed(UNKNOWN);
  CHECK(sends_text());
  CHECK(logs("*9\r\n$4\r\nEVAL\r\n"));
  answer(1, 77, 0);
  answer(0, 1000, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
  CHECK_EQUAL(a.result, FAIRLOCK_BUSY);
  request(&d.handle, 0, 1000);
  CHECK(logs(SHARED));
  answer(1, 78, 0);
}

/* One that always comes first does not use up the text of the other: that would never be known. */
static void come_first(struct fairlock *late, struct fairlock *first)
{
  begin_with_replicas();
  request(late, 0, 1000);
  CHECK_EQUAL(fairlock_engine_acquire(first, 0, 1000, now), FAIRLOCK_PENDING);
  pass(1);
  feed(UNKNOWN);
  feed(":0\r\n");
  CHECK(sends_hash());
  answer(0, 1000, 0);
  feed(":0\r\n");
  CHECK_EQUAL(first->result, FAIRLOCK_BUSY);
  CHECK(sends_text());
  answer(1, 77, 0);
  feed(":1\r\n");
  CHECK_EQUAL(late->result, FAIRLOCK_OK);
}

static void test_noscript_of_another(void)
{
  come_first(&c.handle, &a);
  come_first(&a, &c.handle);
}

/* A renewal and a release, too, whatever the kind; and not for one that no longer cares. */
static void test_noscript_of_each_kind(void)
{
  begin_sharing();
  share_c(77);
  pass(10000);
  CHECK(sends_hash());
  feed(UNKNOWN);
  CHECK(sends_text());
  answer(1, 77, 0);
  CHECK_EQUAL(fairlock_engine_release(&c.handle, now), FAIRLOCK_PENDING);
  CHECK(sends_hash());
  feed(UNKNOWN);
  CHECK(sends_text());
  answer(1, 0, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
  request(&c.handle, 1000, 1000);
  CHECK_EQUAL(fairlock_engine_cancel(&c.handle, now), FAIRLOCK_OK);
  feed(UNKNOWN);
  CHECK(sends_hash());
}

/* What else the server may refuse is as for any handle. */
static void test_refusals(void)
{
  begin_sharing();
  request(&c.handle, 0, 1000);
  feed("-NOPERM this user has no permissions\r\n");
  CHECK_EQUAL(c.handle.result, FAIRLOCK_DENIED);
  request(&c.handle, 20000, 1000);
  push("subscribe", CHANNEL("3"), NULL);
  feed("-LOADING Redis is loading the dataset in memory\r\n");
  CHECK_EQUAL(c.handle.result, FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  pass(500);
  CHECK(sends(SHARED));
}

/* The server rounds the end of a share up, by a sixteenth of its lease: so long its release is owed. */
static void test_release_outlasts_the_rounding(void)
{
  begin_sharing();
  request(&c.handle, 0, 900000);
  answer(1, 77, 0);
  break_connection();
  CHECK_EQUAL(fairlock_engine_release(&c.handle, now), FAIRLOCK_PENDING);
  pass(11000);
  pass(900000 + 900000 / 16 - 11000);
  greet();
  CHECK(sends(SHARED) && logs(" 0 0 77\r\n"));
}

static void breaks(const char *reply)
{
  begin_sharing();
  request(&c.handle, 0, 1000);
  feed(reply);
  if (!CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE))
    CHECK_BYTES("", 0, reply, strlen(reply));
  CHECK_EQUAL(c.handle.result, FAIRLOCK_PENDING);
}

/* What only looks like an answer breaks the connection, as for any handle. */
static void test_nonsense(void)
{
  breaks("*2\r\n:2\r\n:3\r\n");
  breaks("*4\r\n:2\r\n:3\r\n:4\r\n:5\r\n");
  breaks("~3\r\n:2\r\n:3\r\n:4\r\n");
  breaks("*3\r\n:2\r\n+x\r\n:4\r\n");
  breaks("*3\r\n:2\r\n*1\r\n:3\r\n:4\r\n");
  breaks("*3\r\n:2\r\n:3\r\n*1\r\n:4\r\n");
  breaks("*0\r\n");
  breaks(":2\r\n");
  begin_sharing();
  feed("*3\r\n:2\r\n:3\r\n:4\r\n"); /* nobody has asked */
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
}

/* An answer before its request was written to the end. */
static void test_answer_before_the_end(void)
{
  size_t size;
  begin_sharing();
  config.send_size = FAIRLOCK_SEND_MIN;
  CHECK_EQUAL(fairlock_engine_acquire(&c.handle, 0, 1000, now), FAIRLOCK_PENDING);
  (void)fairlock_engine_output(&engine, &size, now);
  answer(1, 3, 0);
  CHECK_EQUAL(fairlock_engine_wants(&engine, now), FAIRLOCK_CLOSE);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_PENDING);
}

/* Beside other options */

static void keep_c(void)
{
  begin_with_keeper();
  request(&c.handle, 0, FAIRLOCK_RENEW);
  CHECK(logs("TRACKING\r\n") && logs("EXISTS\r\n$26\r\nredisson_lock_queue:{door}\r\n"));
  CHECK(logs(SHARED));
  feed("+OK\r\n+OK\r\n:0\r\n");
  push("subscribe", CHANNEL("3"), NULL);
  answer(1, 77, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
  CHECK_EQUAL(fairlock_engine_release(&c.handle, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
}

static void recall_c(void)
{
  feed(">2\r\n$10\r\ninvalidate\r\n*1\r\n$26\r\nredisson_lock_queue:{door}\r\n");
}

/* A share is kept, taken back, and given back when somebody queues. */
static void test_keep(void)
{
  keep_c();
  CHECK_EQUAL(fairlock_engine_acquire(&c.handle, 0, FAIRLOCK_RENEW, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
  CHECK_EQUAL(c.handle.token, 77);
  CHECK_EQUAL(fairlock_engine_release(&c.handle, now), FAIRLOCK_PENDING);
  CHECK(sends_nothing());
  recall_c();
  CHECK(sends(SHARED) && logs(" 0 0 77\r\n"));
  answer(1, 0, 0);
  CHECK(sends_nothing());
}

/* An inspection, by the handle whose share is kept: it is given back first, by the right script. */
static void test_inspect_what_is_kept(void)
{
  keep_c();
  CHECK_EQUAL(fairlock_engine_inspect(&c.handle, report_nothing, NULL, now), FAIRLOCK_PENDING);
  CHECK(sends(SHARED) && logs(" 0 0 77\r\n"));
  answer(1, 0, 0);
  CHECK(sends("*7" CALL(FAIRLOCK_INSPECT_SHA1)));
  feed("*6\r\n:4294967296\r\n:-2\r\n:0\r\n:0\r\n:0\r\n$0\r\n\r\n");
  CHECK_EQUAL(c.handle.result, FAIRLOCK_OK);
}

/* It shares on the next connection, too, and with its limit. */
static void test_next_connection(void)
{
  keep_c();
  break_connection();
  pass(50);
  greet();
  CHECK(sends(SHARED) && logs(" 0 0 77\r\n") && ends_in("\r\n$1\r\n2\r\n"));
  answer(1, 0, 0);
  request(&c.handle, 0, 1000);
  CHECK(logs(SHARED));
  answer(0, 7, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_BUSY);
}

/* What breaks and looks is the same for all handles. */
static void test_queries(void)
{
  begin_sharing();
  CHECK_EQUAL(fairlock_engine_force(&c.handle, &anyone, now), FAIRLOCK_PENDING);
  CHECK(sends("*9" CALL(FAIRLOCK_BREAK_SHA1)));
  answer(2, 1, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_NOT_LISTENING);
  CHECK_EQUAL(fairlock_engine_inspect(&c.handle, report_nothing, NULL, now), FAIRLOCK_PENDING);
  CHECK(sends("*7" CALL(FAIRLOCK_INSPECT_SHA1)));
  feed(UNKNOWN);
  CHECK(sends_text());
}

static char told[128];

static void note(enum fairlock_log_event event, int status, const char *text, void *context)
{
  (void)status;
  (void)context;
  if (event == FAIRLOCK_LOG_REFUSED) memcpy(told, text, strlen(text) + 1);
}

/* No refusal by the server is told of, as there was none. */
static void test_log(void)
{
  begin_sharing();
  journal.function = note;
  fairlock_engine_set_log(&engine, &journal);
  request(&c.handle, 0, 1000);
  feed(UNKNOWN);
  drain();
  answer(0, 3, 0);
  CHECK_EQUAL(c.handle.result, FAIRLOCK_BUSY);
  CHECK_EQUAL(told[0], 0);
  break_connection();
}

const struct check_test check_tests[] = {
    {"share: which limits and clients", test_init},
    {"share: bytes", test_bytes},
    {"share: channels of shards", test_shards},
    {"share: renewal, re-entry, loss", test_as_any},
    {"share: a cancelled wait", test_cancel},
    {"share: in pieces of any size", test_pieces},
    {"share: texts in pieces of any size", test_pieces_of_texts},
    {"share: an inspection in the middle of a request", test_inspection_in_the_middle},
    {"share: replicas acknowledge", test_replicas},
    {"share: NOSCRIPT", test_noscript_once},
    {"share: NOSCRIPT of both scripts", test_noscript_of_both},
    {"share: NOSCRIPT while another comes first", test_noscript_of_another},
    {"share: NOSCRIPT of each kind", test_noscript_of_each_kind},
    {"share: a release outlasts the rounding of its end", test_release_outlasts_the_rounding},
    {"share: other refusals", test_refusals},
    {"share: nonsense breaks the connection", test_nonsense},
    {"share: an answer before the end of its request", test_answer_before_the_end},
    {"share: a share is kept", test_keep},
    {"share: an inspection of what is kept", test_inspect_what_is_kept},
    {"share: on the next connection", test_next_connection},
    {"share: looking and breaking", test_queries},
    {"share: the log", test_log},
    {NULL, NULL},
};
