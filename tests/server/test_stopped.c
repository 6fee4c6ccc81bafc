/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts that the server stops half-way, at each of their commands in turn: what a missing right, a
 * lack of memory or a slot that moves away can do. A command that is refused is refused for the rest
 * of that script. Afterwards everybody goes on as clients do: the same request again, heartbeats,
 * confirmations, releases.
 *
 * Whatever the command: nobody holds beside an exclusive holder, and no more share than may; the lock
 * has an end; nobody who waits has lost both its place and its turn; and the next requests mend it,
 * until all have held and have gone, and nothing is left.
 *
 * Each stop is a trial on a lock of its own, and all trials go on side by side.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "texts.h"

enum {
  MEMBERS = 8, /* the last one comes when all others have gone */
  LIMIT = 4,
  LEASE = 1500,    /* ms */
  PATIENCE = 2000, /* the waiter timeout */
  LONGEST = 2000,  /* of those two */
  TRIALS = 1600,
  STOPS = 100 /* more commands than any script runs here */
};

enum script { LOCK, SHARED, DOWNGRADE, BREAK, SCRIPTS };

/* What a member is doing. */
enum state { IDLE, WAITS, HOLDS, LEAVES };

struct member {
  enum state state;
  bool shares, confirmed;
  uint64_t token; /* of its hold, or the last one that it gave up */
  int64_t until;  /* its hold, for all that it knows */
};

/* One request, of the member `by`. */
struct request {
  enum script script;
  int by, mode, lease;
  bool with_token;
};

struct trial {
  char name[24];
  const char *scene;
  int at;                /* which command was refused */
  char command[16];      /* and its name */
  bool stopped, repeats; /* the request was stopped; it has to be sent again */
  struct request wanted;
  struct member member[MEMBERS];
};

struct scene {
  const char *name;
  struct request (*prepare)(struct trial *);
};

static struct trial trials[TRIALS];
static char sha[SCRIPTS][41];
static struct raw listener;
static int stop; /* at which command the next script stops; 0: at none */

static const char *id_of(int index)
{
  static const char *const ids[MEMBERS] = {"a:1", "a:2", "a:3", "a:4", "a:5", "a:6", "a:7", "a:8"};
  return ids[index];
}

/*
 * In front of each script: counts its commands, and refuses one, whose name the key `stopped` then
 * has. What the script has done before with a key that is still there, it may do again, as nothing
 * that stops scripts comes and goes within one: then `stopped` is a dash.
 */
static const char wrapper[] =
    "local server, left, refused, done = redis, tonumber(ARGV[#ARGV]), nil, {}\n"
    "local function stops(name, key)\n"
    "  left = left - 1\n"
    "  if left == 0 then\n"
    "    local again = done[name .. key] and server.call('exists', key) == 1\n"
    "    refused = not again and name\n"
    "    server.call('set', 'stopped', refused or '-')\n"
    "  end\n"
    "  done[name .. key] = true\n"
    "  return refused == name\n"
    "end\n"
    "local redis = {\n"
    "  call = function(name, key, ...)\n"
    "    if stops(name, key or '') then error('STOPPED') end\n"
    "    if not key then return server.call(name) end\n"
    "    return server.call(name, key, ...)\n"
    "  end,\n"
    "  pcall = function(name, key, ...)\n"
    "    if stops(name, key or '') then return {err = 'STOPPED'} end\n"
    "    return server.pcall(name, key, ...)\n"
    "  end}\n";

/* What of a lock's hash counts now: see struct hash. */
static const char audit[] = "local ttl = redis.call('pttl', KEYS[1])\n"
                            "local t = redis.call('time')\n"
                            "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
                            "local hold = redis.call('hgetall', KEYS[1])\n"
                            "local alone, live, counted, latest = 0, 0, 0, now\n"
                            "for at = 1, #hold, 2 do\n"
                            "  local ends = hold[at + 1]:match('^%d+ (%d+) ')\n"
                            "  if hold[at] == 'shared' then\n"
                            "    for ends, holders in hold[at + 1]:gmatch('(%d+) (%d+)') do\n"
                            "      if tonumber(ends) > now then counted = counted + holders end\n"
                            "    end\n"
                            "  elseif not ends then\n"
                            "    alone = alone + 1\n"
                            "  elseif tonumber(ends) > now then\n"
                            "    live, latest = live + 1, math.max(latest, tonumber(ends))\n"
                            "  end\n"
                            "end\n"
                            "return {alone, live, counted, latest - now, ttl}\n";

/*
 * Of our waiters, those that have a place and no note, so that the place is taken for one of Redisson's;
 * and those that have a score and a note, and no place, which they are taken to have.
 */
static const char places[] =
    "local unnoted, unplaced = 0, 0\n"
    "for _, waiter in ipairs(redis.call('lrange', KEYS[1], 0, -1)) do\n"
    "  local noted = redis.call('hexists', KEYS[3], waiter) == 1\n"
    "  if waiter:find('^a:') and not noted then unnoted = unnoted + 1 end\n"
    "end\n"
    "for _, waiter in ipairs(redis.call('zrange', KEYS[2], 0, -1)) do\n"
    "  local placed = redis.call('lpos', KEYS[1], waiter)\n"
    "  local heard = redis.call('hget', KEYS[3], waiter)\n"
    "  if heard and heard:sub(1, 2) ~= '0 ' and not placed then unplaced = unplaced + 1 end\n"
    "end\n"
    "return {unnoted, unplaced}\n";

struct hash {
  int64_t alone, live, counted, rest, ttl;
};

static void load_script(const struct fairlock_script *script, char name[41])
{
  static char text[1 << 14];
  struct resp_writer writer;
  memcpy(text, wrapper, sizeof wrapper - 1);
  resp_writer_init(&writer, text + sizeof wrapper - 1, sizeof text - sizeof wrapper, 0);
  fairlock_script_unpack(&writer, script);
  size_t size = sizeof wrapper - 1 + writer.used;
  (void)snprintf(name, 41, "%s", raw_text(&redis, "SCRIPT LOAD %b", (const void *)text, size));
}

static void load_scripts(void)
{
  load_script(&fairlock_lock_script, sha[LOCK]);
  load_script(&fairlock_shared_script, sha[SHARED]);
  load_script(&fairlock_downgrade_script, sha[DOWNGRADE]);
  load_script(&fairlock_break_script, sha[BREAK]);
}

static bool tell(bool good, const struct trial *trial)
{
  if (!good) printf("# %s, %s refused, its command %d\n", trial->scene, trial->command, trial->at);
  return good;
}

/* What must be true of the lock at any time. */
static bool check_hash(const struct trial *trial)
{
  struct hash hash = {0};
  int64_t *const to[] = {&hash.alone, &hash.live, &hash.counted, &hash.rest, &hash.ttl};
  CHECK(raw_run(&redis, "EVAL %s 1 %s", audit, trial->name));
  for (size_t i = 0; i < 5 && i + 1 < redis.count; i++)
    *to[i] = redis.element[i + 1].integer;
  if (hash.ttl == -2 || (hash.ttl >= 0 && hash.ttl <= 1)) return true; /* free, or about to be */
  bool good = CHECK(hash.ttl > 0 && hash.ttl <= LONGEST + LONGEST / 16 + 1);
  good &= CHECK(hash.alone + (hash.live > 0) <= 1);
  good &= CHECK(hash.live <= LIMIT && hash.live <= hash.counted);
  if (!trial->stopped) good &= CHECK_EQUAL(hash.live, hash.counted);
  good &= CHECK(hash.rest <= hash.ttl + 1);
  return tell(good, trial);
}

/* What must be true of the queue at any time, however a script was stopped. */
static bool check_places(const struct trial *trial)
{
  CHECK(raw_run(&redis,
                "EVAL %s 3 redisson_lock_queue:{%s} redisson_lock_timeout:{%s} fairlock:{%s}",
                places, trial->name, trial->name, trial->name));
  if (!CHECK_EQUAL(redis.count, 3)) return false;
  bool good = CHECK_EQUAL(redis.element[1].integer, 0);
  good &= CHECK_EQUAL(redis.element[2].integer, 0);
  return tell(good, trial);
}

/* Members */

static void check_beliefs(const struct trial *trial, const struct member *newest)
{
  int holders = 0;
  bool alone = false;
  for (int i = 0; i < MEMBERS; i++) {
    const struct member *member = &trial->member[i];
    if (member->state != HOLDS || member->until <= now_ms()) continue;
    holders++;
    alone |= !member->shares;
  }
  if (!tell(CHECK(holders <= (alone ? 1 : LIMIT)), trial))
    printf("# %d hold, the last of them %s\n", holders, newest->shares ? "shares" : "alone");
}

static void learns(struct trial *trial, struct member *member, uint64_t token, int64_t until,
                   bool confirmed)
{
  if (member->state != HOLDS) CHECK(token > member->token);
  member->confirmed = confirmed;
  member->state = HOLDS;
  member->token = token;
  member->until = until;
  check_beliefs(trial, member);
}

/* A time of the server, ms, by our clock; rather too early. */
static int64_t by_our_clock(int64_t at)
{
  int64_t ours = now_ms();
  if (!CHECK(raw_number(&redis, "TIME") == 2)) return ours;
  int64_t seconds = strtoll(redis.element[1].text, NULL, 10);
  return ours + at - seconds * 1000 - strtoll(redis.element[2].text, NULL, 10) / 1000;
}

/* A grant is for a member that waits; others ignore it. */
static void on_message(const char *channel, const char *text)
{
  int which, timeout, number;
  uint64_t token;
  int64_t at;
  if (sscanf(channel, "redisson_lock__channel:{trial%d}:a:%d", &which, &number) != 2) return;
  if (sscanf(text, "%" SCNu64 " %" SCNd64 " %d", &token, &at, &timeout) != 3) return;
  struct trial *trial = &trials[which];
  struct member *member = &trial->member[number - 1];
  /* as in the engine: the confirmation, whose answer may be missing, asks for no more than the lease */
  int valid = timeout < LEASE ? timeout : LEASE;
  if (member->state == WAITS && token > member->token)
    learns(trial, member, token, by_our_clock(at + valid), false);
}

/* Takes what has come. True: the answer to SUBSCRIBE or UNSUBSCRIBE is among it. */
static bool take_messages(int timeout_ms)
{
  while (raw_reply_within(&listener, timeout_ms)) {
    if (!CHECK_EQUAL(listener.count, 4)) return true;
    if (strcmp(listener.element[1].text, "message") != 0) return true;
    on_message(listener.element[2].text, listener.element[3].text);
  }
  return false;
}

static void listens(const struct trial *trial, int index, const char *how)
{
  raw_send(&listener, "%s redisson_lock__channel:{%s}:%s", how, trial->name, id_of(index));
  CHECK(take_messages(SOON));
}

static void subscribe(const struct trial *trial, int index)
{
  listens(trial, index, "SUBSCRIBE");
}

/* Sends it. False: it was stopped. */
static bool ask(struct trial *trial, const struct request *request)
{
  struct member *member = &trial->member[request->by];
  char words[100];
  char limit[8] = "";
  char token[24] = "";
  bool downgrades = request->script == DOWNGRADE; /* the share is the next member's */
  if (request->with_token) (void)snprintf(token, sizeof token, " %" PRIu64, member->token);
  (void)snprintf(words, sizeof words, "%s 9000000000000 %d %d%s",
                 id_of(downgrades ? request->by + 1 : request->by),
                 downgrades ? -(request->by + 1) : request->mode, request->lease, token);
  if (request->script == SHARED || downgrades) (void)snprintf(limit, sizeof limit, "%d", LIMIT);
  return raw_run(&redis,
                 "EVALSHA %s 4 %s redisson_lock_queue:{%s} redisson_lock_timeout:{%s} "
                 "fairlock:{%s} %s %s %d",
                 sha[request->script], trial->name, trial->name, trial->name, trial->name, words,
                 limit, stop);
}

/* The state that the server has answered. */
static int64_t answer(void)
{
  return CHECK_EQUAL(redis.count, 4) ? redis.element[1].integer : INT64_MIN;
}

/* Acts on the answer. An error changes nothing: the member asks again. */
static void on_answer(struct trial *trial, const struct request *request, int64_t sent)
{
  struct member *member = &trial->member[request->by];
  int64_t state = answer();
  uint64_t token = redis.count == 4 ? (uint64_t)redis.element[2].integer : 0;
  if (request->script == BREAK || request->lease == 0) {
    CHECK(state == 0 || state == 1);
    if (request->script != BREAK && request->with_token && stop == 0 && !trial->repeats)
      (void)tell(CHECK(state == 1 || member->until <= now_ms()), trial);
    if (member->state == LEAVES) member->state = IDLE;
  } else if (request->script == DOWNGRADE) {
    (void)tell(CHECK(state == 1 || member->until <= now_ms()), trial);
    member->state = IDLE;
    if (state == 1) learns(trial, member + 1, token, sent + request->lease, true);
  } else if (state == 1) {
    learns(trial, member, token, sent + request->lease, true);
  } else if (request->mode < 0) {
    (void)tell(CHECK(member->until <= now_ms()), trial);
    member->state = IDLE;
  } else if (request->mode == 0) {
    member->state = IDLE;
  }
}

/* Does it, and looks at the lock afterwards. False: it was stopped. */
static bool request(struct trial *trial, const struct request *request)
{
  int64_t sent = now_ms();
  bool answered = ask(trial, request);
  if (answered) on_answer(trial, request, sent);
  else if (!CHECK(strstr(redis.element[0].text, "STOPPED") != NULL))
    printf("# %s\n", redis.element[0].text);
  if (!check_hash(trial) || !check_places(trial))
    printf("# after a request of %s\n", id_of(request->by));
  return answered;
}

static enum script script_of(const struct member *member)
{
  return member->shares ? SHARED : LOCK;
}

/* The usual requests */

static struct request acquire_of(struct trial *trial, int index, int mode)
{
  struct member *member = &trial->member[index];
  member->state = WAITS;
  return (struct request){script_of(member), index, mode, LEASE, member->token != 0};
}

static struct request confirm_of(struct trial *trial, int index)
{
  return (struct request){script_of(&trial->member[index]), index, -1, LEASE, true};
}

static struct request release_of(struct trial *trial, int index)
{
  struct member *member = &trial->member[index];
  bool held = member->state == HOLDS;
  member->state = LEAVES;
  return (struct request){script_of(member), index, 0, 0, held};
}

static void does(struct trial *trial, struct request wanted)
{
  (void)tell(CHECK(request(trial, &wanted)), trial);
}

/* Holds at once, or queues. */
static void holds(struct trial *trial, int index, bool shares)
{
  trial->member[index].shares = shares;
  does(trial, acquire_of(trial, index, 0));
  (void)tell(CHECK_EQUAL(trial->member[index].state, HOLDS), trial);
}

static void queues(struct trial *trial, int index, bool shares)
{
  trial->member[index].shares = shares;
  subscribe(trial, index);
  does(trial, acquire_of(trial, index, PATIENCE));
  (void)tell(CHECK_EQUAL(trial->member[index].state, WAITS), trial);
}

static void share_all(struct trial *trial, int from, int to)
{
  for (int i = from; i <= to; i++)
    holds(trial, i, true);
}

static void queue_shared(struct trial *trial, int from, int to)
{
  for (int i = from; i <= to; i++)
    queues(trial, i, true);
}

/* Scenes: what is there, and the request that is stopped. */

static struct request join_free(struct trial *trial)
{
  trial->member[0].shares = true;
  return acquire_of(trial, 0, 0);
}

static struct request join_one(struct trial *trial)
{
  share_all(trial, 0, 0);
  trial->member[1].shares = true;
  subscribe(trial, 1);
  return acquire_of(trial, 1, PATIENCE);
}

/* The lease of the one who held it has ended, and four wait who share. */
static struct request join_behind_others(struct trial *trial)
{
  holds(trial, 0, false);
  queue_shared(trial, 1, 4);
  CHECK(raw_run(&redis, "DEL %s", trial->name));
  trial->member[0].state = IDLE;
  trial->member[5].shares = true;
  subscribe(trial, 5);
  return acquire_of(trial, 5, PATIENCE);
}

/* The same, of one that wants it alone. */
static struct request join_behind_a_writer(struct trial *trial)
{
  share_all(trial, 0, 1);
  queues(trial, 2, false);
  queue_shared(trial, 3, 4);
  trial->member[5].shares = true;
  subscribe(trial, 5);
  return acquire_of(trial, 5, PATIENCE);
}

static struct request heartbeat(struct trial *trial)
{
  struct request wanted = join_behind_a_writer(trial);
  does(trial, wanted);
  return wanted;
}

static struct request try_at_the_limit(struct trial *trial)
{
  share_all(trial, 0, LIMIT - 1);
  trial->member[LIMIT].shares = true;
  return acquire_of(trial, LIMIT, 0);
}

static struct request wait_at_the_limit(struct trial *trial)
{
  share_all(trial, 0, LIMIT - 1);
  trial->member[LIMIT].shares = true;
  subscribe(trial, LIMIT);
  return acquire_of(trial, LIMIT, PATIENCE);
}

static struct request renew(struct trial *trial)
{
  share_all(trial, 0, 2);
  queues(trial, 3, false);
  return confirm_of(trial, 1);
}

/* A script that knows no shares hands it to the first of five. */
static struct request confirm_alone(struct trial *trial)
{
  holds(trial, 0, false);
  queue_shared(trial, 1, 5);
  does(trial, release_of(trial, 0));
  (void)take_messages(0);
  CHECK_EQUAL(trial->member[1].state, HOLDS);
  return confirm_of(trial, 1);
}

/* The same, which finds out by a heartbeat. */
static struct request find_alone(struct trial *trial)
{
  (void)confirm_alone(trial);
  trial->member[1].token = 0;
  return acquire_of(trial, 1, PATIENCE);
}

static struct request confirm_shared(struct trial *trial)
{
  does(trial, confirm_alone(trial));
  queues(trial, 6, true);
  (void)take_messages(0);
  CHECK_EQUAL(trial->member[2].state, HOLDS);
  return confirm_of(trial, 2);
}

static struct request release_one(struct trial *trial)
{
  share_all(trial, 0, 2);
  return release_of(trial, 1);
}

static struct request release_one_at_the_limit(struct trial *trial)
{
  share_all(trial, 0, LIMIT - 1);
  queue_shared(trial, LIMIT, LIMIT + 1);
  queues(trial, LIMIT + 2, false);
  return release_of(trial, 1);
}

static struct request release_last(struct trial *trial)
{
  share_all(trial, 0, 0);
  return release_of(trial, 0);
}

static struct request release_last_to_a_writer(struct trial *trial)
{
  share_all(trial, 0, 1);
  queues(trial, 2, false);
  queue_shared(trial, 3, 4);
  does(trial, release_of(trial, 0));
  return release_of(trial, 1);
}

/* The first in line does not listen any more, and then is dead. */
static struct request release_past_a_dead_one(struct trial *trial)
{
  share_all(trial, 0, LIMIT - 1);
  queue_shared(trial, LIMIT, LIMIT + 1);
  CHECK(raw_run(&redis, "HSET fairlock:{%s} %s %s", trial->name, id_of(LIMIT),
                "1000000000 0 5000 S4"));
  trial->member[LIMIT].state = IDLE;
  return release_of(trial, 1);
}

static struct request release_past_a_silent_one(struct trial *trial)
{
  share_all(trial, 0, LIMIT - 1);
  queue_shared(trial, LIMIT, LIMIT + 2);
  listens(trial, LIMIT, "UNSUBSCRIBE");
  return release_of(trial, 1);
}

/* Redisson's, the first in line, has gone. */
static void plant_suspect(const struct trial *trial)
{
  CHECK(raw_run(&redis, "RPUSH redisson_lock_queue:{%s} peer:1", trial->name));
  CHECK(raw_run(&redis, "ZADD redisson_lock_timeout:{%s} 9000000000000 peer:1", trial->name));
}

static struct request release_last_to_a_suspect(struct trial *trial)
{
  share_all(trial, 0, 0);
  plant_suspect(trial);
  queue_shared(trial, 1, 2);
  return release_of(trial, 0);
}

static struct request release_one_before_a_suspect(struct trial *trial)
{
  share_all(trial, 0, 1);
  plant_suspect(trial);
  queue_shared(trial, 2, 3);
  return release_of(trial, 0);
}

static struct request leave(struct trial *trial)
{
  share_all(trial, 0, LIMIT - 1);
  queue_shared(trial, LIMIT, LIMIT + 1);
  return release_of(trial, LIMIT);
}

static struct request leave_with_a_claim(struct trial *trial)
{
  (void)confirm_alone(trial);
  trial->member[1].state = WAITS;
  return release_of(trial, 1);
}

/* Its lease went on after it had given up its hold, and it wants a new one. */
static struct request acquire_anew(struct trial *trial)
{
  share_all(trial, 0, 1);
  queues(trial, 2, false);
  subscribe(trial, 1);
  return acquire_of(trial, 1, PATIENCE);
}

static struct request downgrade(struct trial *trial)
{
  holds(trial, 0, false);
  queue_shared(trial, 2, 3);
  queues(trial, 4, false);
  queues(trial, 5, true);
  trial->member[0].shares = trial->member[1].shares =
      true; /* from now on others may be beside it */
  return (struct request){DOWNGRADE, 0, 0, LEASE, true};
}

static struct request break_one(struct trial *trial)
{
  share_all(trial, 0, LIMIT - 1);
  queue_shared(trial, LIMIT, LIMIT + 1);
  trial->member[1].state = IDLE;
  return (struct request){BREAK, 1, -1, 0, true};
}

static struct request break_last(struct trial *trial)
{
  share_all(trial, 0, 0);
  queues(trial, 1, false);
  queue_shared(trial, 2, 3);
  CHECK(raw_run(&redis, "HSET %s x:1 %s", trial->name, "1 1 1 1"));
  trial->member[0].state = IDLE;
  return (struct request){BREAK, 0, -1, 0, true};
}

/* Those that know no shares, beside others that do */

static struct request alone_release_to_sharers(struct trial *trial)
{
  holds(trial, 0, false);
  queue_shared(trial, 1, 3);
  return release_of(trial, 0);
}

static struct request alone_waits_for_sharers(struct trial *trial)
{
  share_all(trial, 0, 1);
  subscribe(trial, 2);
  return acquire_of(trial, 2, PATIENCE);
}

static struct request alone_finds_sharers_ended(struct trial *trial)
{
  share_all(trial, 0, LIMIT - 1);
  queue_shared(trial, LIMIT, LIMIT + 1);
  CHECK(raw_run(&redis, "DEL %s", trial->name));
  for (int i = 0; i < LIMIT; i++)
    trial->member[i].state = IDLE;
  subscribe(trial, LIMIT + 2);
  return acquire_of(trial, LIMIT + 2, PATIENCE);
}

static struct request alone_leaves_before_sharers(struct trial *trial)
{
  share_all(trial, 0, 1);
  queues(trial, 2, false);
  queue_shared(trial, 3, 4);
  return release_of(trial, 2);
}

/* Another script was stopped when it had removed the waiter from the list, and not its score. */
static struct request lose_place(struct trial *trial, bool shares)
{
  holds(trial, 0, false);
  queues(trial, 1, false);
  queues(trial, 2, shares);
  queues(trial, 3, false);
  CHECK(raw_run(&redis, "HDEL fairlock:{%s} %s", trial->name, id_of(2)));
  CHECK(raw_run(&redis, "LREM redisson_lock_queue:{%s} 1 %s", trial->name, id_of(2)));
  return acquire_of(trial, 2, PATIENCE);
}

static struct request alone_has_lost_its_place(struct trial *trial)
{
  return lose_place(trial, false);
}

static struct request has_lost_its_place(struct trial *trial)
{
  return lose_place(trial, true);
}

/* Afterwards */

/* A member that waits keeps its place, or has its turn. */
static void check_not_dropped(const struct trial *trial, int index)
{
  const char *id = id_of(index);
  if (trial->member[index].state != WAITS) return;
  bool queued = raw_number(&redis, "LPOS redisson_lock_queue:{%s} %s", trial->name, id) >= 0;
  if (!tell(CHECK(queued || raw_number(&redis, "HEXISTS %s %s", trial->name, id) == 1), trial))
    printf("# %s was dropped\n", id);
}

/* What a member sends next: what was stopped, a heartbeat, a confirmation, or a release. */
static struct request next_of(struct trial *trial, int index)
{
  struct member *member = &trial->member[index];
  if (trial->repeats && trial->wanted.by == index) return trial->wanted;
  if (member->state == WAITS) return acquire_of(trial, index, PATIENCE);
  if (member->state == HOLDS && !member->confirmed) return confirm_of(trial, index);
  return release_of(trial, index);
}

/* One request of each, as clients do them. True when all have gone. */
static bool mend(struct trial *trial)
{
  bool all = true;
  for (int i = 0; i < MEMBERS; i++) {
    if (trial->member[i].state == IDLE && !(trial->repeats && trial->wanted.by == i)) continue;
    does(trial, next_of(trial, i));
    check_not_dropped(trial, i);
    if (trial->wanted.by == i) trial->repeats = false;
    all = false;
  }
  return all;
}

/* A newcomer comes again and again, until it finds nothing that others have left. */
static bool clean(struct trial *trial)
{
  struct member *newcomer = &trial->member[MEMBERS - 1];
  bool left = queue_length(&redis, trial->name) > 0 || raw_number(&redis, "EXISTS %s", trial->name);
  if (!left && newcomer->state == IDLE) return true;
  does(trial, newcomer->state == HOLDS ? release_of(trial, MEMBERS - 1)
                                       : acquire_of(trial, MEMBERS - 1, PATIENCE));
  return false;
}

/* Until there is nothing more to do for any trial. */
static void repeat(bool (*step)(struct trial *), int count)
{
  int64_t until = now_ms() + 300000;
  bool all = false;
  while (!all && now_ms() < until) {
    all = true;
    (void)take_messages(0);
    for (int i = 0; i < count; i++)
      all &= step(&trials[i]);
    sleep_ms(20);
  }
  for (int i = 0; i < count && !CHECK(all); i++)
    (void)tell(step(&trials[i]), &trials[i]);
}

static void mend_all(int count)
{
  stop = 0;
  repeat(mend, count);
  for (int i = 0; i < count; i++)
    subscribe(&trials[i], MEMBERS - 1);
  repeat(clean, count);
}

/* One stop. False: the script does not have so many commands. */
static bool try_stop(struct trial *trial, const struct scene *scene, int at)
{
  memset(trial, 0, sizeof *trial);
  (void)snprintf(trial->name, sizeof trial->name, "trial%d", (int)(trial - trials));
  trial->scene = scene->name;
  trial->at = at;
  stop = 0;
  trial->wanted = scene->prepare(trial);
  CHECK(raw_number(&redis, "DEL stopped") >= 0);
  trial->stopped = true;
  stop = at;
  trial->repeats = !request(trial, &trial->wanted);
  (void)snprintf(trial->command, sizeof trial->command, "%s", raw_text(&redis, "GET stopped"));
  trial->stopped = strcmp(trial->command, "-") != 0 && trial->command[0] != 0;
  for (int i = 0; i < MEMBERS; i++)
    if (i != trial->wanted.by) check_not_dropped(trial, i);
  (void)take_messages(0);
  return trial->command[0] != 0;
}

static void stop_at_each(const struct scene *scene)
{
  int count = 0;
  begin();
  load_scripts();
  CHECK(raw_open(&listener, server.port));
  for (; scene->name != NULL; scene++) {
    int at = 1;
    while (at < STOPS && count < TRIALS && try_stop(&trials[count++], scene, at))
      at++;
    CHECK(at < STOPS && count < TRIALS);
  }
  mend_all(count);
  printf("# %d trials\n", count);
  raw_close(&listener);
}

#define SCENE(function)                                                                            \
  {                                                                                                \
#function, function                                                                            \
  }

static void test_acquire(void)
{
  static const struct scene scenes[] = {SCENE(join_free),          SCENE(join_one),
                                        SCENE(join_behind_others), SCENE(join_behind_a_writer),
                                        SCENE(heartbeat),          SCENE(try_at_the_limit),
                                        SCENE(wait_at_the_limit),  SCENE(acquire_anew),
                                        SCENE(has_lost_its_place), {NULL, NULL}};
  stop_at_each(scenes);
}

static void test_hold(void)
{
  static const struct scene scenes[] = {SCENE(renew),      SCENE(confirm_alone),
                                        SCENE(find_alone), SCENE(confirm_shared),
                                        SCENE(downgrade),  {NULL, NULL}};
  stop_at_each(scenes);
}

static void test_release(void)
{
  static const struct scene scenes[] = {SCENE(release_one),
                                        SCENE(release_one_at_the_limit),
                                        SCENE(release_last),
                                        SCENE(release_last_to_a_writer),
                                        SCENE(release_past_a_dead_one),
                                        SCENE(release_past_a_silent_one),
                                        SCENE(leave),
                                        SCENE(leave_with_a_claim),
                                        {NULL, NULL}};
  stop_at_each(scenes);
}

static void test_suspects(void)
{
  static const struct scene scenes[] = {
      SCENE(release_last_to_a_suspect), SCENE(release_one_before_a_suspect), {NULL, NULL}};
  stop_at_each(scenes);
}

static void test_break(void)
{
  static const struct scene scenes[] = {SCENE(break_one), SCENE(break_last), {NULL, NULL}};
  stop_at_each(scenes);
}

static void test_alone(void)
{
  static const struct scene scenes[] = {
      SCENE(alone_release_to_sharers),  SCENE(alone_waits_for_sharers),
      SCENE(alone_finds_sharers_ended), SCENE(alone_leaves_before_sharers),
      SCENE(alone_has_lost_its_place),  {NULL, NULL}};
  stop_at_each(scenes);
}

const struct check_test check_tests[] = {
    {"stopped: acquire and heartbeat, shared", test_acquire},
    {"stopped: renewal, confirmation and downgrade", test_hold},
    {"stopped: release and leave, shared", test_release},
    {"stopped: release before Redisson's", test_suspects},
    {"stopped: break of a lock that is shared", test_break},
    {"stopped: alone beside sharers", test_alone},
    {NULL, NULL},
};
