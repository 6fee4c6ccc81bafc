/*
 * The scripts against hostile keys, on a real redis-server: another client that may write to the
 * server has filled the four keys of a lock with anything, of any type, and our scripts run on them
 * in any order.
 *
 * A seeded generator makes the contents and the requests; after each request an audit on the server
 * compares the keys before and after. Whatever was in the keys, even when Redis stops the script
 * half-way:
 *   - there is an answer of the promised shape, or an error that says why, and soon;
 *   - a key of a wrong type is an error, and nothing has changed;
 *   - a lock that a script has changed has a TTL, and so have our notes when a script has added to
 *     them;
 *   - an id that a script has put into the queue has a score;
 *   - held means held: the lock has the id with the count asked for; a new hold has a larger token
 *     than the last one;
 *   - an inspection changes nothing, and can be read.
 *
 * Arguments: name of a test; a failure prints the seed. HOSTILE_SEED and HOSTILE_ROUNDS in the
 * environment choose others.
 */
#include "server/harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "texts.h"

/* What a request asks for: the first two are one script. */
enum {
  FAIRLOCK_SCRIPT_ACQUIRE,
  FAIRLOCK_SCRIPT_RELEASE,
  FAIRLOCK_SCRIPT_BREAK,
  FAIRLOCK_SCRIPT_INSPECT
};

#define NAME    "k"
#define QUEUE   "redisson_lock_queue:{" NAME "}"
#define TIMEOUT "redisson_lock_timeout:{" NAME "}"
#define OURS    "fairlock:{" NAME "}"
#define CHANNEL "redisson_lock__channel:{" NAME "}:"

enum { ROUNDS = 4000, REQUESTS = 8, SLOW_MS = 5000, WRONG = 6 };
enum { LOCK, QUEUES, SCORES, NOTES };

static const char *const keys[] = {NAME, QUEUE, TIMEOUT, OURS};

/* Returns what is compared before and after: see struct audit. */
static const char audit_script[] =
    "local id = ARGV[1]\n"
    "local function try(...) local r = redis.pcall(...) if type(r) == 'table' and r.err then "
    "return false end return r "
    "end\n"
    "local digest = ''\n"
    "local reply = {}\n"
    "for i = 1, 4 do digest = digest .. redis.sha1hex(redis.call('dump', KEYS[i]) or '') end\n"
    "for i = 1, 4 do reply[i] = redis.call('type', KEYS[i]).ok end\n"
    "reply[5] = redis.call('pttl', KEYS[1])\n"
    "reply[6] = redis.call('pttl', KEYS[4])\n"
    "local count = try('hget', KEYS[1], id)\n"
    "reply[7] = count and '=' .. count or ''\n"
    "reply[8] = try('hget', KEYS[4], 'token') or ''\n"
    "reply[9] = try('zscore', KEYS[3], id) or ''\n"
    "reply[10] = try('lpos', KEYS[2], id) and 1 or 0\n"
    "reply[11] = try('hget', KEYS[4], id) or ''\n"
    "reply[12] = try('hlen', KEYS[4]) or 0\n"
    "reply[13] = digest\n"
    "return reply\n";

struct audit {
  char type[4][8];
  int64_t ttl, notes_ttl;
  char count[32]; /* "=" and the count; "": does not hold */
  char token[32], score[40], alive[32];
  bool queued;
  int64_t notes;
  char digest[4 * 40 + 1];
};

static uint64_t state;
static struct raw listener;
static char sha[4][41], audit_sha[41];

static uint32_t below(uint32_t limit)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)((state >> 11) % limit);
}

static const char *pick(const char *const *from, size_t count)
{
  return from[below((uint32_t)count)];
}

#define PICK(list) pick(list, sizeof(list) / sizeof(list)[0])

/* Hostile contents */

/* Ours, Redisson's, and some that are names of fields of ours. */
static const char *const ids[] = {"c:1",   "c:2",    "c:3",         "4d6f:77", "peer:1",   "",
                                  "token", "holder", "a:b:c",       "%s",      "released", "since",
                                  "woken", "\r\n",   "suspect:c:2", "{k}"};

static const char *const numbers[] = {"0",
                                      "1",
                                      "2",
                                      "-1",
                                      "65535",
                                      "nan",
                                      "inf",
                                      "-inf",
                                      "1e308",
                                      "-1e308",
                                      "1.5",
                                      " 7 ",
                                      "0x10",
                                      "abc",
                                      "",
                                      "1e400",
                                      "9007199254740991",
                                      "9007199254740992",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "99999999999999999999999",
                                      "1700000000000",
                                      "9007199254740000"};

static const char *const scores[] = {
    "0", "-1", "inf", "-inf", "1e308", "-1e308", "1700000000000", "4102444800000", "0.5"};

static const char *const fields[] = {"token",           "holder",         "released",
                                     "woken",           "since",          "suspect:c:2",
                                     "suspect:4d6f:77", "suspect:peer:1", "junk"};

/* Some seconds from now: in ms, or as the note on a waiter that is alive, or no longer. */
static const char *near_time(void)
{
  static char text[48];
  struct timespec time;
  (void)clock_gettime(CLOCK_REALTIME, &time);
  int64_t ms = (int64_t)time.tv_sec * 1000 + (int64_t)below(20000) - 10000;
  if (below(2)) (void)snprintf(text, sizeof text, "%" PRId64, ms);
  else (void)snprintf(text, sizeof text, "%" PRId64 " %d 5000", ms / 1000, (int)below(1000000));
  return text;
}

/* One of the types there are. */
static void fill_with(const char *key, unsigned type)
{
  static const char *const formats[WRONG] = {"SET %s value",  "SADD %s a b",   "RPUSH %s c:1 c:2",
                                             "ZADD %s 1 c:1", "HSET %s c:1 1", "XADD %s * a b"};
  (void)raw_run(&redis, formats[type], key);
}

static void fill_lock(void)
{
  unsigned holders = below(8) == 0 ? 3 : 1;
  for (unsigned i = 0; i < holders; i++)
    (void)raw_run(&redis, "HSET %s %s %s", NAME, PICK(ids), below(2) ? "1" : PICK(numbers));
  static const char *const leases[] = {"30000", "86400000", "9000000000000", "9000000000000000000"};
  if (below(4) != 0) (void)raw_run(&redis, "PEXPIRE %s %s", NAME, PICK(leases));
}

static void fill_queue(void)
{
  unsigned waiters = 1 + below(6);
  for (unsigned i = 0; i < waiters; i++) {
    const char *id = PICK(ids);
    (void)raw_run(&redis, "RPUSH %s %s", QUEUE, id);
    if (below(3) != 0) (void)raw_run(&redis, "ZADD %s %s %s", TIMEOUT, PICK(scores), id);
  }
}

static void fill_notes(void)
{
  unsigned notes = 1 + below(6);
  if (below(2)) (void)raw_run(&redis, "HSET %s token %s", OURS, PICK(numbers));
  for (unsigned i = 0; i < notes; i++) {
    const char *field = below(2) ? PICK(fields) : PICK(ids);
    (void)raw_run(&redis, "HSET %s %s %s", OURS, field, below(2) ? near_time() : PICK(numbers));
  }
  if (below(2)) (void)raw_run(&redis, "PEXPIRE %s %d", OURS, 60000 + (int)below(100000));
}

static void fill_keys(void)
{
  (void)raw_run(&redis, "DEL %s %s %s %s", NAME, QUEUE, TIMEOUT, OURS);
  if (below(2)) fill_lock();
  if (below(3) != 0) fill_queue();
  if (below(2)) (void)raw_run(&redis, "ZADD %s %s %s", TIMEOUT, PICK(scores), PICK(ids));
  if (below(3) != 0) fill_notes();
  if (below(8) == 0) {
    const char *key = PICK(keys);
    (void)raw_run(&redis, "DEL %s", key);
    fill_with(key, below(WRONG));
  }
}

/* The audit */

static void load(const char *text, size_t size, char name[41])
{
  (void)snprintf(name, 41, "%s", raw_text(&redis, "SCRIPT LOAD %b", (const void *)text, size));
}

static void load_script(const struct fairlock_script *script, char name[41])
{
  static char text[1 << 13];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text, 0);
  fairlock_script_unpack(&writer, script);
  load(text, writer.used, name);
}

static void load_scripts(void)
{
  for (int i = 0; i < 2; i++)
    load_script(&fairlock_lock_script, sha[i]);
  load_script(&fairlock_break_script, sha[FAIRLOCK_SCRIPT_BREAK]);
  load_script(&fairlock_inspect_script, sha[FAIRLOCK_SCRIPT_INSPECT]);
  load(audit_script, sizeof audit_script - 1, audit_sha);
}

static int64_t number_at(size_t index)
{
  return index < redis.count ? redis.element[index].integer : INT64_MIN;
}

static void text_at(char *to, size_t size, size_t index)
{
  (void)snprintf(to, size, "%s", index < redis.count ? redis.element[index].text : "?");
}

static void look(struct audit *audit, const char *id)
{
  memset(audit, 0, sizeof *audit);
  CHECK(raw_run(&redis, "EVALSHA %s 4 %s %s %s %s %s", audit_sha, NAME, QUEUE, TIMEOUT, OURS, id));
  CHECK_EQUAL(redis.count, 14);
  for (size_t i = 0; i < 4; i++)
    text_at(audit->type[i], sizeof audit->type[i], i + 1);
  audit->ttl = number_at(5);
  audit->notes_ttl = number_at(6);
  text_at(audit->count, sizeof audit->count, 7);
  text_at(audit->token, sizeof audit->token, 8);
  text_at(audit->score, sizeof audit->score, 9);
  audit->queued = number_at(10) == 1;
  text_at(audit->alive, sizeof audit->alive, 11);
  audit->notes = number_at(12);
  text_at(audit->digest, sizeof audit->digest, 13);
}

static bool same(const struct audit *a, const struct audit *b, size_t key)
{
  return memcmp(a->digest + 40 * key, b->digest + 40 * key, 40) == 0;
}

/* What no script may do, whatever it answers. */
static bool check_harmless(const struct audit *before, const struct audit *after)
{
  bool good = true;
  if (strcmp(after->type[LOCK], "hash") == 0 && !same(before, after, LOCK))
    good &= CHECK(after->ttl > 0);
  /* what somebody else has made without an end gets one by the first grant in 1000 s */
  if (after->notes > before->notes && before->notes_ttl != -1) good &= CHECK(after->notes_ttl > 0);
  if (after->queued && !before->queued) good &= CHECK(after->score[0] != 0);
  for (size_t i = 0; i < 4; i++) {
    static const char *const types[] = {"hash", "list", "zset", "hash"};
    bool wrong = strcmp(before->type[i], "none") != 0 && strcmp(before->type[i], types[i]) != 0;
    if (wrong) good &= CHECK(same(before, after, i));
  }
  return good;
}

/* An error says why; WRONGTYPE comes before anything was changed. */
static bool check_error(const char *text, const struct audit *before, const struct audit *after)
{
  bool good = CHECK(text[0] != 0);
  if (strncmp(text, "WRONGTYPE", 9) != 0) return good;
  for (size_t i = 0; i < 4; i++)
    good &= CHECK(same(before, after, i));
  return good;
}

/* Tokens that are no numbers from 0 to 2^53 - 1 count as none. */
static double token_of(const char *text)
{
  char *end;
  double token = strtod(text, &end);
  return *end == 0 && end != text && token >= 0 && token < 9007199254740991.0 ? token : 0;
}

/* Requests */

struct request {
  int script;
  const char *id;
  int mode, lease;
  const char *token;
};

static bool check_acquired(const struct request *request, int64_t value, const struct audit *before,
                           const struct audit *after)
{
  /* a handover is confirmed by the request that names its token, and by no other */
  bool handed = strcmp(before->count, "=0") == 0 && request->mode >= 0 &&
                (double)value == token_of(before->token);
  int holds = request->mode < 0 ? -request->mode : 1;
  bool good = CHECK(strtod(after->count + 1, NULL) == (handed ? 0 : holds));
  good &= CHECK(after->ttl > 0);
  if (before->count[0] != 0) return good;
  good &= CHECK(request->mode >= 0);
  good &= CHECK((double)value > token_of(before->token));
  good &= CHECK(after->ttl <= request->lease);
  good &= CHECK(strtod(after->token, NULL) == (double)value);
  return good;
}

static bool check_waiting(const struct request *request, const struct audit *before,
                          const struct audit *after)
{
  bool good = CHECK(after->count[0] == 0);
  /* planted without a place or an end, they are believed for up to 100 s */
  bool planted = before->score[0] != 0 && before->alive[0] != 0;
  if (request->mode > 0) {
    good &= CHECK((after->queued || (planted && !before->queued)) && after->score[0] != 0 &&
                  after->alive[0] != 0);
    good &= CHECK(after->notes_ttl > 0 || (planted && before->notes_ttl == -1));
  } else {
    good &= CHECK(before->queued || !after->queued);
  }
  return good;
}

static bool check_answer(const struct request *request, const struct audit *before,
                         const struct audit *after, int64_t answer, int64_t value)
{
  if (request->script == FAIRLOCK_SCRIPT_ACQUIRE) {
    if (answer == 1) return check_acquired(request, value, before, after);
    if (answer == 0) return check_waiting(request, before, after);
    return CHECK(answer == -1 || answer == -2);
  }
  bool good = CHECK(answer == 1 || answer == 0);
  if (request->script == FAIRLOCK_SCRIPT_BREAK) return good;
  bool leaves = request->mode == 0 && (answer == 1 || request->token[0] == 0);
  if (leaves) good &= CHECK(after->count[0] == 0);
  return good;
}

/* What comes before the holder: numbers that a client takes, but for a count that nobody can mean. */
static bool check_inspection(void)
{
  bool good = CHECK(redis.count > 6);
  for (size_t i = 1; good && i < 6; i++) {
    const struct raw_element *number = &redis.element[i];
    good = CHECK(number->type == RESP_INTEGER);
    if (i == 4) continue;
    good = good && CHECK(number->integer >= (i == 1 ? -2 : 0)) &&
           CHECK(number->integer <= (int64_t)1 << 53);
  }
  return good;
}

static void send_request(const struct request *request)
{
  const char *name = sha[request->script];
  if (request->script == FAIRLOCK_SCRIPT_INSPECT) {
    raw_send(&redis, "EVALSHA %s 4 %s %s %s %s", name, NAME, QUEUE, TIMEOUT, OURS);
  } else {
    char argument[200];
    (void)snprintf(argument, sizeof argument, "%s 9000000000000 %d %d%s%s", request->id,
                   request->mode, request->lease, request->token[0] != 0 ? " " : "",
                   request->token);
    raw_send(&redis, "EVALSHA %s 4 %s %s %s %s %s", name, NAME, QUEUE, TIMEOUT, OURS, argument);
  }
}

static struct request choose_request(void)
{
  static const char *const own[] = {"c:1", "c:2", "c:3"};
  static char token[32];
  struct request request = {(int)below(8) / 2, PICK(own), 0, 0, ""};
  struct audit audit;
  look(&audit, request.id);
  (void)snprintf(token, sizeof token, "%s",
                 strspn(audit.token, "0123456789") == strlen(audit.token) ? audit.token : "");
  if (below(3) == 0) request.token = token;
  if (request.script == FAIRLOCK_SCRIPT_ACQUIRE) {
    static const int modes[] = {-3, -2, -1, -1, 0, 0, 1, 5000};
    request.mode = modes[below(sizeof modes / sizeof modes[0])];
    request.lease = 1000 + (int)below(30000);
    if (request.mode < 0) request.token = token;
  } else if (request.script == FAIRLOCK_SCRIPT_BREAK) {
    request.mode = -1 - (int)below(2);
    if (below(2) == 0) request.id = "*";
  }
  return request;
}

static void take_messages(void)
{
  char bytes[4096];
  while (recv(listener.socket, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
    continue;
}

/* Runs one request on whatever there is. */
static bool run_request(const struct request *request, unsigned *answers, unsigned *errors)
{
  struct audit before;
  struct audit after;
  char error[128];
  look(&before, request->id);
  int64_t begun = now_ms();
  send_request(request);
  bool good = CHECK(raw_reply(&redis)) && CHECK(now_ms() - begun < SLOW_MS);
  bool failed = redis.count > 0 && redis.element[0].type == RESP_SIMPLE_ERROR;
  size_t count = redis.count;
  int64_t answer = number_at(1);
  int64_t value = number_at(2);
  text_at(error, sizeof error, 0);
  if (!failed && request->script == FAIRLOCK_SCRIPT_INSPECT) good &= check_inspection();
  look(&after, request->id);
  good &= check_harmless(&before, &after);
  if (failed) {
    ++*errors;
    return good & check_error(error, &before, &after);
  }
  ++*answers;
  if (request->script != FAIRLOCK_SCRIPT_INSPECT) {
    good &= CHECK_EQUAL(count, 4);
    return good && check_answer(request, &before, &after, answer, value);
  }
  good &= CHECK(count >= 7 && (count - 7) % 3 == 0);
  for (size_t i = 0; i < 4; i++)
    good &= CHECK(same(&before, &after, i));
  return good;
}

static void set_up(void)
{
  static const char *const listening[] = {"c:2", "peer:1", "token", "%s"};
  begin();
  load_scripts();
  if (listener.socket > 0) raw_close(&listener);
  CHECK(raw_open(&listener, server.port));
  for (size_t i = 0; i < sizeof listening / sizeof listening[0]; i++)
    CHECK(raw_run(&listener, "SUBSCRIBE " CHANNEL "%s", listening[i]));
}

static uint64_t environment(const char *name, uint64_t otherwise)
{
  const char *text = getenv(name);
  return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void test_any_contents(void)
{
  uint64_t first = environment("HOSTILE_SEED", 1);
  uint64_t rounds = environment("HOSTILE_ROUNDS", ROUNDS);
  unsigned answers = 0;
  unsigned errors = 0;
  set_up();
  for (uint64_t seed = first; seed < first + rounds; seed++) {
    bool good = true;
    state = seed * 0x9e3779b97f4a7c15;
    fill_keys();
    for (int i = 0; i < REQUESTS && good; i++) {
      struct request request = choose_request();
      good = run_request(&request, &answers, &errors);
      if (!good) {
        printf("# seed %" PRIu64 ", request %d: script %d id %s mode %d lease %d token %s\n", seed,
               i, request.script, request.id, request.mode, request.lease, request.token);
      }
    }
    take_messages();
    if (!good) break;
  }
  printf("# %u answers, %u errors\n", answers, errors);
  CHECK(answers > 0 && errors > 0);
}

/*
 * Each script meets each wrong type of each key, with and without a hold and a queue in the other
 * keys.
 */
static void test_wrong_types(void)
{
  static const struct request requests[] = {{FAIRLOCK_SCRIPT_ACQUIRE, "c:1", 1, 1000, ""},
                                            {FAIRLOCK_SCRIPT_ACQUIRE, "c:1", -2, 1000, "5"},
                                            {FAIRLOCK_SCRIPT_RELEASE, "c:1", 0, 0, "5"},
                                            {FAIRLOCK_SCRIPT_RELEASE, "c:1", 0, 0, ""},
                                            {FAIRLOCK_SCRIPT_BREAK, "*", -1, 0, ""},
                                            {FAIRLOCK_SCRIPT_BREAK, "c:1", -1, 0, "5"},
                                            {FAIRLOCK_SCRIPT_BREAK, "*", -2, 0, ""},
                                            {FAIRLOCK_SCRIPT_INSPECT, "c:1", 0, 0, ""}};
  unsigned answers = 0;
  unsigned errors = 0;
  set_up();
  for (size_t key = 0; key < 4; key++) {
    for (unsigned wrong = 0; wrong < WRONG; wrong++) {
      for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        CHECK(raw_run(&redis, "DEL %s %s %s %s", NAME, QUEUE, TIMEOUT, OURS));
        CHECK(raw_run(&redis, "HSET %s c:1 1", NAME) && raw_run(&redis, "PEXPIRE %s 30000", NAME));
        CHECK(raw_run(&redis, "RPUSH %s c:2 peer:1", QUEUE) &&
              raw_run(&redis, "ZADD %s 1 c:2 1 peer:1", TIMEOUT));
        CHECK(raw_run(&redis, "HSET %s token 5 holder c:1 c:2 %s", OURS, near_time()));
        CHECK(raw_run(&redis, "DEL %s", keys[key]));
        fill_with(keys[key], wrong);
        if (strcmp(raw_text(&redis, "TYPE %s", keys[key]), key == QUEUES   ? "list"
                                                           : key == SCORES ? "zset"
                                                                           : "hash") == 0)
          continue;
        CHECK(run_request(&requests[i], &answers, &errors));
      }
    }
  }
  CHECK(errors > answers); /* only an inspection does not read the scores of an empty queue */
}

/* Thousands of dead entries are removed by one script, in time. */
static void test_long_queue(void)
{
  unsigned answers = 0;
  unsigned errors = 0;
  const struct request request = {FAIRLOCK_SCRIPT_ACQUIRE, "c:1", 0, 1000, ""};
  set_up();
  for (int i = 0; i < 100; i++)
    CHECK(raw_run(&redis, "RPUSH %s %d:1 %d:2 %d:3 %d:4 %d:5 %d:6 %d:7 %d:8 %d:9 %d:10", QUEUE, i,
                  i, i, i, i, i, i, i, i, i));
  CHECK(run_request(&request, &answers, &errors));
  CHECK_EQUAL(answers, 1);
  CHECK_EQUAL(hold_count_of(&redis, NAME, "c:1"), 1);
  CHECK_EQUAL(queue_length(&redis, NAME), 0);
}

const struct check_test check_tests[] = {
    {"hostile keys: a wrong type changes nothing", test_wrong_types},
    {"hostile keys: any contents", test_any_contents},
    {"hostile keys: a long queue of nobody", test_long_queue},
    {NULL, NULL},
};
