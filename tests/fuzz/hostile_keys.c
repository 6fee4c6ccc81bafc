/* SPDX-License-Identifier: Apache-2.0 */
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
 *   - a script that shares lets nobody in beside one who has the lock alone, nor more than may, by
 *     the table of those who share;
 *   - while the notes say that a lock needs something, who neither holds nor waits changes nothing;
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

/* What a request asks for: the first two are one script, and so are the next but two. */
enum {
  FAIRLOCK_SCRIPT_ACQUIRE,
  FAIRLOCK_SCRIPT_RELEASE,
  FAIRLOCK_SCRIPT_BREAK,
  FAIRLOCK_SCRIPT_INSPECT,
  SCRIPT_SHARE,
  SCRIPT_UNSHARE,
  SCRIPT_DOWNGRADE,
  SCRIPT_COUNT
};

#define NAME    "k"
#define QUEUE   "redisson_lock_queue:{" NAME "}"
#define TIMEOUT "redisson_lock_timeout:{" NAME "}"
#define OURS    "fairlock:{" NAME "}"
#define CHANNEL "redisson_lock__channel:{" NAME "}:"

enum { ROUNDS = 4000, REQUESTS = 8, SLOW_MS = 5000, WRONG = 6, LIMIT = 3 };
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
    "local function contents(key)\n"
    "  local fields, pairs = try('hgetall', key), {}\n"
    "  if not fields then return redis.call('dump', key) or '' end\n"
    "  for i = 1, #fields, 2 do pairs[#pairs + 1] = #fields[i] .. ' ' .. fields[i] .. fields[i + "
    "1] end\n"
    "  table.sort(pairs)\n" /* a large hash has no order of its own */
    "  return table.concat(pairs, '\\n')\n"
    "end\n"
    "for i = 1, 4 do digest = digest .. redis.sha1hex(contents(KEYS[i])) end\n"
    "for i = 1, 4 do reply[i] = redis.call('type', KEYS[i]).ok end\n"
    "reply[5] = redis.call('pttl', KEYS[1])\n"
    "reply[6] = redis.call('pttl', KEYS[4])\n"
    "local t = redis.call('time')\n"
    "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
    "local function live(ends) return tonumber(ends) > now and tonumber(ends) < 1e14 end\n"
    "local count = try('hget', KEYS[1], id)\n"
    "local token, ends, holds = (count or ''):match('^(%d+) (%d+) (%d+) %S')\n"
    "reply[14] = token or ''\n"
    "if token then count = live(ends) and holds\n"
    "elseif ARGV[2] == '1' and try('hget', KEYS[1], 'shared') then count = false end\n"
    "reply[7] = count and '=' .. count or ''\n"
    "reply[8] = try('hget', KEYS[4], 'token') or ''\n"
    "reply[9] = try('zscore', KEYS[3], id) or ''\n"
    "reply[10] = try('lpos', KEYS[2], id) and 1 or 0\n"
    "reply[11] = try('hget', KEYS[4], id) or ''\n"
    "reply[12] = try('hlen', KEYS[4]) or 0\n"
    "reply[13] = digest\n"
    "reply[18] = (try('llen', KEYS[2]) or 0) > 0 and 1 or 0\n"
    "reply[19] = try('hexists', KEYS[4], 'needs') or 0\n"
    "local hold = try('hgetall', KEYS[1]) or {}\n"
    "reply[15], reply[16], reply[17] = 0, 0, 0\n"
    "for at = 1, #hold, 2 do\n"
    "  if hold[at] == 'shared' then\n"
    "    reply[16] = 1\n"
    "    for ends, holders in hold[at + 1]:gmatch('(%d+) (%d+)') do\n"
    "      if live(ends) then reply[17] = reply[17] + math.min(holders, 1e6) end\n"
    "    end\n"
    "  elseif hold[at] ~= id then\n"
    "    reply[15] = reply[15] + 1\n"
    "  end\n"
    "end\n"
    "return reply\n";

struct audit {
  char type[4][8];
  int64_t ttl, notes_ttl;
  char count[32]; /* "=" and the count; "": does not hold */
  char token[32], score[40], alive[32];
  bool queued;
  int64_t notes;
  char own[32];    /* the token of its share */
  int64_t others;  /* fields of the lock hash, but those of the id and of the table */
  bool waiters;    /* somebody is in the queue */
  bool shared;     /* there is a table */
  int64_t sharers; /* by it */
  bool needs;      /* the notes have that field */
  char digest[4 * 40 + 1];
};

static uint64_t state;
static struct raw listener;
static char sha[SCRIPT_COUNT][41], audit_sha[41];
static bool sharing; /* what stands in a lock that is shared, too, and its scripts */

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
                                  "woken", "\r\n",   "suspect:c:2", "{k}",     "shared",   "limit"};

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

static const char *const fields[] = {"token", "holder",      "released",        "woken",
                                     "since", "suspect:c:2", "suspect:4d6f:77", "suspect:peer:1",
                                     "junk",  "limit",       "shared"};

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

/* A number, or a time some seconds from now. */
static const char *number_or_time(void)
{
  static char text[32];
  if (below(2)) return PICK(numbers);
  (void)snprintf(text, sizeof text, "%s", near_time());
  text[strcspn(text, " ")] = 0;
  return text;
}

/* Sets a field to a text that is repeated so often. */
static const char repeat[] =
    "redis.call('hset', KEYS[1], ARGV[1], string.rep(ARGV[2], tonumber(ARGV[3])))";

/* The field of one who shares, and the table of all; now and then true, and seldom very long. */
static void fill_shares(void)
{
  unsigned holders = below(4);
  for (unsigned i = 0; i < holders; i++) {
    (void)raw_run(&redis, "HSET %s %s %s", NAME, PICK(ids), below(4) ? "" : PICK(numbers));
    (void)raw_run(&redis, "EVAL %s 1 %s %s %s %d", repeat, NAME, PICK(ids), PICK(numbers),
                  below(20) ? 1 : 20000);
  }
  for (unsigned i = 0; i < holders; i++) {
    char value[128];
    int used = snprintf(value, sizeof value, "%s", PICK(numbers));
    used += snprintf(value + used, sizeof value - (size_t)used, " %s", number_or_time());
    used += snprintf(value + used, sizeof value - (size_t)used, " %s", PICK(numbers));
    (void)snprintf(value + used, sizeof value - (size_t)used, " %s%s", PICK(numbers),
                   below(2) ? "+" : "");
    (void)raw_run(&redis, "HSET %s %s %s", NAME, PICK(ids), value);
  }
  unsigned pairs = below(4);
  char table[256] = "";
  size_t size = 0;
  for (unsigned i = 0; i < pairs; i++) {
    size += (size_t)snprintf(table + size, sizeof table - size, "%s ", number_or_time());
    size +=
        (size_t)snprintf(table + size, sizeof table - size, "%s ", below(2) ? "1" : PICK(numbers));
  }
  (void)raw_run(&redis, "EVAL %s 1 %s shared %s %d", repeat, NAME, table, below(20) ? 1 : 3000);
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
  for (unsigned i = 0; sharing && i < notes; i++) {
    char note[96];
    static const char *const marks[] = {" S", " S0", " S3", " S-1", " S99999999999999999999", " T"};
    (void)snprintf(note, sizeof note, "%s%s", near_time(), PICK(marks));
    (void)raw_run(&redis, "HSET %s %s %s", OURS, PICK(ids), note);
  }
  if (sharing && below(2)) {
    char note[96];
    int used = snprintf(note, sizeof note, "%s ", below(2) ? "3" : PICK(numbers));
    (void)snprintf(note + used, sizeof note - (size_t)used, "%s", number_or_time());
    (void)raw_run(&redis, "HSET %s limit %s", OURS, note);
  }
  uint32_t dice = (uint32_t)(state >> 32); /* what else a seed stands for stays */
  if (dice % 8 == 0) {
    int length = dice % 5 == 0 ? 100000 : (int)(dice % 3);
    (void)raw_run(&redis, "EVAL %s 1 %s needs %s %d", repeat, OURS, ids[dice % 11], length);
  }
  if (below(2)) (void)raw_run(&redis, "PEXPIRE %s %d", OURS, 60000 + (int)below(100000));
}

static void fill_keys(void)
{
  (void)raw_run(&redis, "DEL %s %s %s %s", NAME, QUEUE, TIMEOUT, OURS);
  if (below(2)) fill_lock();
  if (sharing && below(2)) fill_shares();
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
  static char text[1 << 14];
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
  for (int i = SCRIPT_SHARE; i <= SCRIPT_UNSHARE; i++)
    load_script(&fairlock_shared_script, sha[i]);
  load_script(&fairlock_downgrade_script, sha[SCRIPT_DOWNGRADE]);
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
  CHECK(raw_run(&redis, "EVALSHA %s 4 %s %s %s %s %s %d", audit_sha, NAME, QUEUE, TIMEOUT, OURS, id,
                (int)sharing));
  CHECK_EQUAL(redis.count, 20);
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
  text_at(audit->own, sizeof audit->own, 14);
  audit->others = number_at(15);
  audit->shared = number_at(16) == 1;
  audit->sharers = number_at(17);
  audit->waiters = number_at(18) == 1;
  audit->needs = number_at(19) == 1;
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

/* Nothing is different but TTLs. */
static bool all_same(const struct audit *before, const struct audit *after)
{
  bool good = true;
  for (size_t i = 0; i < 4; i++)
    good &= CHECK(same(before, after, i));
  return good;
}

/* An error says why; WRONGTYPE and NEEDS come before anything was changed, and NEEDS is short. */
static bool check_error(const char *text, const struct audit *before, const struct audit *after)
{
  bool good = CHECK(text[0] != 0);
  bool needs = strncmp(text, "NEEDS ", 6) == 0;
  if (needs) good &= CHECK(before->needs && strlen(text) < 100);
  if (needs || strstr(text, "WRONGTYPE") != NULL) /* Redis 6.2 says more before it */
    good &= all_same(before, after);
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
  /* only requests that name its token confirm a handover, and change a count: an acquire goes on */
  bool goes_on =
      before->count[0] != 0 && request->mode >= 0 && (double)value == token_of(before->token);
  int holds = request->mode < 0 ? -request->mode : 1;
  bool good = CHECK(goes_on ? strcmp(after->count, before->count) == 0
                            : strtod(after->count + 1, NULL) == holds);
  good &= CHECK(after->ttl > 0);
  if (before->count[0] != 0) return good;
  good &= CHECK(request->mode >= 0);
  good &= CHECK((double)value > token_of(before->token));
  good &= CHECK(after->ttl <= request->lease);
  good &= CHECK(strtod(after->token, NULL) == (double)value);
  return good;
}

/* One that shares holds, perhaps since before. */
static bool check_shares(const struct request *request, int64_t value, const struct audit *before,
                         const struct audit *after)
{
  bool good = CHECK(after->shared && after->ttl > 0);
  good &= CHECK(strtod(after->own, NULL) == (double)value);
  if (before->count[0] != 0 && strcmp(after->own, before->own) == 0) return good;
  if (before->count[0] != 0 && before->own[0] == 0) return good; /* it had the lock alone */
  good &= CHECK(request->mode >= 0 || request->script == SCRIPT_DOWNGRADE);
  good &= CHECK((double)value > token_of(before->token));
  bool alone = !before->shared && before->others > 0; /* somebody has it */
  good &= CHECK(!alone || request->script == SCRIPT_DOWNGRADE);
  /* who waits may name a larger limit */
  if (!before->waiters && request->script == SCRIPT_SHARE) good &= CHECK(after->sharers <= LIMIT);
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
  if (request->script == FAIRLOCK_SCRIPT_ACQUIRE || request->script >= SCRIPT_SHARE) {
    bool shares = request->script >= SCRIPT_SHARE;
    if (request->script == SCRIPT_UNSHARE) return CHECK(answer == 1 || answer == 0);
    if (answer == 1 && shares) return check_shares(request, value, before, after);
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

/*
 * What comes before a holder: numbers that a client takes, but for a count that nobody can mean. How long
 * the last hold of a free lock lasted may be -1: it is not known.
 */
static bool check_holder(size_t first)
{
  bool good = true;
  int64_t least[4] = {-2, 0, 0, redis.element[first].integer == -2 ? -1 : 0};
  for (size_t i = first; good && i < first + 4; i++) {
    const struct raw_element *number = &redis.element[i];
    good = CHECK(number->type == RESP_INTEGER);
    if (i == first + 2) continue;
    good = good && CHECK(number->integer >= least[i - first]) &&
           CHECK(number->integer <= (int64_t)1 << 53);
  }
  return good;
}

static bool check_inspection(void)
{
  size_t holders = (size_t)(number_at(1) >> 32);
  size_t waiters = (size_t)(number_at(1) & UINT32_MAX);
  bool good = CHECK(holders > 0) && CHECK_EQUAL(redis.count, 2 + 5 * holders + 3 * waiters);
  for (size_t i = 0; good && i < holders; i++)
    good = check_holder(2 + 5 * i);
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
    raw_send(&redis, "EVALSHA %s 4 %s %s %s %s %s %d", name, NAME, QUEUE, TIMEOUT, OURS, argument,
             LIMIT);
  }
}

/* Of one that shares: what it asks for, and the token that it may know. */
static struct request choose_shared(void)
{
  static const char *const own[] = {"c:1", "c:2", "c:3"};
  static const int modes[] = {-3, -2, -1, -1, 0, 0, 5000, 5000};
  static char token[32];
  struct audit audit;
  struct request request = {SCRIPT_SHARE + (int)below(5) / 2, PICK(own), 0, 0, ""};
  look(&audit, request.id);
  bool number = audit.own[0] != 0 && strlen(audit.own) < 16;
  (void)snprintf(token, sizeof token, "%s", number ? audit.own : "");
  if (below(3) != 0) request.token = token;
  if (request.script == SCRIPT_UNSHARE) return request;
  request.lease = 1000 + (int)below(30000);
  if (request.script == SCRIPT_SHARE) request.mode = modes[below(8)];
  if (request.script == SCRIPT_DOWNGRADE) { /* from one of the same client */
    request.mode = -1 - ((int)(request.id[2] - '1') + 1 + (int)below(2)) % 3;
    (void)snprintf(token, sizeof token, "%.0f", token_of(audit.token));
    request.token = token;
  }
  return request;
}

/* Those that want the lock alone never shared it: their ids are others. */
static struct request choose_request(void)
{
  static const char *const own[] = {"c:1", "c:2", "c:3"};
  static char token[32];
  if (sharing && below(3) != 0) return choose_shared();
  struct request request = {(int)below(8) / 2, PICK(own), 0, 0, ""};
  if (sharing && request.script < FAIRLOCK_SCRIPT_BREAK) request.id = "x:1";
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
    /* nonsense in what is shared is passed over, or it might be an error for as long as it stands */
    if (request->script >= SCRIPT_SHARE)
      good &= CHECK(strstr(error, "WRONGTYPE") != NULL || strncmp(error, "NEEDS ", 6) == 0);
    return good & check_error(error, &before, &after);
  }
  ++*answers;
  if (request->script != FAIRLOCK_SCRIPT_INSPECT) {
    good &= CHECK_EQUAL(count, 4);
    bool there = before.count[0] != 0 || before.score[0] != 0;
    if (before.needs && !there) good &= all_same(&before, &after);
    return good && check_answer(request, &before, &after, answer, value);
  }
  return good & all_same(&before, &after);
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

static void try_contents(void)
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

static void test_any_contents(void)
{
  sharing = false;
  try_contents();
}

static void test_any_shares(void)
{
  sharing = true;
  try_contents();
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
                                            {FAIRLOCK_SCRIPT_INSPECT, "c:1", 0, 0, ""},
                                            {SCRIPT_SHARE, "c:1", 5000, 1000, ""},
                                            {SCRIPT_SHARE, "c:1", -2, 1000, "5"},
                                            {SCRIPT_UNSHARE, "c:1", 0, 0, "5"},
                                            {SCRIPT_UNSHARE, "c:1", 0, 0, ""},
                                            {SCRIPT_DOWNGRADE, "c:3", -1, 1000, "5"}};
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

/* What no client of the format can mean stops nobody who shares. */
static void test_times_of_nobody(void)
{
  unsigned answers = 0;
  unsigned errors = 0;
  const struct request request = {SCRIPT_SHARE, "c:1", 0, 1000, ""};
  set_up();
  CHECK(raw_run(&redis, "HSET %s limit %s", OURS, "7 9007199254740991"));
  CHECK(raw_run(&redis, "HSET %s x:1 %s", NAME, "5 9007199254740991 1 1000"));
  CHECK(raw_run(&redis, "HSET %s shared %s", NAME, "9007199254740991 1000"));
  CHECK(raw_run(&redis, "PEXPIRE %s 30000", NAME));
  CHECK(run_request(&request, &answers, &errors));
  CHECK_EQUAL(answers, 1);
  CHECK_EQUAL(raw_number(&redis, "HEXISTS %s c:1", NAME), 1);
}

const struct check_test check_tests[] = {
    {"hostile keys: a wrong type changes nothing", test_wrong_types},
    {"hostile keys: any contents", test_any_contents},
    {"hostile keys: any contents, shared", test_any_shares},
    {"hostile keys: times that nobody can mean", test_times_of_nobody},
    {"hostile keys: a long queue of nobody", test_long_queue},
    {NULL, NULL},
};
