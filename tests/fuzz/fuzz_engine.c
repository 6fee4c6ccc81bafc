/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine against a hostile server: the input is a list of steps, each of which is an operation
 * of the caller's, a passing of time, a change of the connection, or bytes from the server: raw
 * ones, or well-formed answers and messages with numbers of the fuzzer's, so that it gets far. The
 * clock wraps around on the way.
 *
 * A witness (witness.c) reads both directions. Checked after each step, for each handle:
 *   - what is sent is well-formed, and at most one request of each handle at a time without
 *     anything from the server, of which no more than three await their answers;
 *   - a hold begins only while an acquire is pending, and only with a token and for no longer than
 *     an answer to a request of that handle, or a message on its channel, allows; it is believed in
 *     for no longer than that;
 *   - a hold does not change its token; its hold count changes by the caller's operations only; it
 *     is lost once;
 *   - the caller is told of the end of each operation, once, when its result is there;
 *   - an operation that is over stays over; one that goes on without a useful answer is over after
 *     offline_ms; a wait with a limit is over soon after it;
 *   - the lists hold each handle that they should, once, in the order of the requests;
 *   - the deadline is true: before it, nothing is due, and at it the engine has something to do
 *     only once.
 *
 * In a part of the inputs the engine follows servers that move, by Sentinels or without, and in a
 * part of those replicas have to acknowledge. Then each script that may begin or prolong a hold has
 * a WAIT behind it, nothing is sent before that is answered, and a hold is believed in only with
 * enough replicas, never because of a message. The address that the transport is given is in the
 * caller's memory.
 *
 * In a part of the inputs a function gives user and password, or none, and says how long they last.
 * It is called once for a greeting or an AUTH, and what it gave before is gone then; an AUTH goes out
 * between requests, and only when the greeting was answered.
 *
 * In a part of the inputs the engine keeps its locks. Then a hold may also begin without an answer:
 * the one that was released last, with its token and for no longer than it was believed in, while
 * the witness has seen the server say that nobody waits, and no push since.
 *
 * In a part of the inputs handles share their lock, and in a part of those, two or all have the same
 * name, so that the one which holds alone can downgrade to one which shares. From then on the first
 * does not hold, whatever comes. The second begins a hold only with a larger token than both have
 * had. Its requests name the hold, which is not released as long as it waits; and both end.
 *
 * Reading and writing beyond the buffers, which are exactly as large as was said, is the
 * sanitizers' affair.
 */
#include "fairlock_credentials.h"
#include "fairlock_follow.h"
#include "fairlock_keep.h"
#include "fairlock_operate.h"
#include "fairlock_share.h"
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) fail(#condition, __LINE__);                                                  \
  } while (0)

enum { HANDLES = WITNESS_LOCKS, LEASE = 1000, RECEIVE_SPARE = 64 };

/* What the caller knows of a handle, and what must follow from it. */
struct caller {
  bool there;
  bool asking; /* an inspection or a force-release: has no hold and no queue entry */
  struct fairlock_target hold;
  bool acquires;  /* the operation is to end with a hold */
  bool endless;   /* the wait has no limit, or the operation none that is known */
  bool touched;   /* by an operation in this step */
  bool under_way; /* its end has not been told */
  uint32_t began; /* the operation */
  /* ms after which it must be over, with whatever answers, while round trips take no time */
  uint32_t limit;
  uint32_t answered; /* the last answer of use, or began */
  uint32_t lease;    /* that was asked for last, ms */
  int result;        /* after the last step */
  uint64_t token;    /* of the hold after the last step; 0: none */
  uint64_t kept;     /* the token of the hold that was put off last; 0: none */
  uint64_t most;     /* the largest one so far, which the next has to exceed; 0: any may come */
  uint64_t given;    /* the token of the hold that is being downgraded; 0: none is */
  uint32_t until;    /* how long it may be believed in */
  uint16_t holds;
  unsigned losses, wins; /* of holds */
};

static struct fairlock_engine engine;
/* Those that share use all of a slot, the others its handle. */
static struct fairlock_shared slots[HANDLES];
static struct caller callers[HANDLES];
static struct witness witness;
static struct fairlock_config config;
static uint32_t now, start;
/* bytes of the output that the witness has seen, but that were not taken yet */
static size_t unseen;
static unsigned reports;

/* Servers that move */
static struct fairlock_topology topology;
static unsigned seeds, turn;
static bool follows, goes_anywhere, was_redirected;

/* Locks that are kept */
static struct fairlock_keeping keep;
static bool keeps;
static struct fairlock_downgrading sharing;
static bool all_share;  /* all handles but the first do */
static bool downgrades; /* the second has the name of the first, and perhaps the third has, too */

/* Credentials that change. What was given last is freed at the next call. */
static struct fairlock_credentials credentials;
static bool changes;
static char *given;
static unsigned asked;

static struct hostile hostile;
static uint8_t backlog[HOSTILE_SIZE]; /* what the server has said, but was not delivered yet */
static size_t backlog_start, backlog_end;
/* the engine was last told that there is nothing to receive, or was offline */
static uint32_t drained;
static uint32_t due; /* when the engine has asked to be called again, at the latest */
static bool slept;   /* it was called much later, and there has been something to receive since */
static uint32_t longest_trip; /* round trip that the engine has measured */

static void fail(const char *what, int line)
{
  fprintf(stderr, "line %d, violated: %s\n", line, what);
  abort();
}

static unsigned next(void)
{
  return hostile_next(&hostile);
}

/* The server's bytes */

/* Delivers what the server has said so far, or a part of it. */
static void deliver(size_t most)
{
  while (backlog_start < backlog_end && most > 0 &&
         fairlock_engine_wants(&engine, now) & FAIRLOCK_RECEIVE) {
    size_t room;
    uint8_t *to = fairlock_engine_input(&engine, &room);
    CHECK(room > 0);
    size_t part = backlog_end - backlog_start;
    if (part > room) part = room;
    if (part > most) part = most;
    if (engine.id_size == 0 || (follows && engine.stage < UP))
      part = 1; /* the witness has to know the id, and whether there are shards, before more */
    witness.sharded = engine.sharded;
    witness.late = slept || (int32_t)(now - due) >= 0;
    witness_received(&witness, backlog + backlog_start, part, now);
    memcpy(to, backlog + backlog_start, part);
    fairlock_engine_received(&engine, part, now);
    if (engine.id_size > 0) witness_knows(&witness, engine.id, engine.id_size);
    if (engine.round_trip_ms > longest_trip) longest_trip = engine.round_trip_ms;
    backlog_start += part;
    most -= part;
  }
}

/* The longest waiter timeout so far; and what an operation may take when nobody answers. */
static uint32_t longest_timeout(void)
{
  return 3 * longest_trip > WAITER_MS ? 3 * longest_trip : WAITER_MS;
}

static uint32_t longest_patience(void)
{
  return engine.offline_ms + 4 * longest_trip;
}

/*
 * A look at the connection finds nothing, or there is none. One that has to be closed first is not
 * looked at.
 */
static void look_for_bytes(void)
{
  unsigned wants = fairlock_engine_wants(&engine, now);
  bool connected = (wants & FAIRLOCK_RECEIVE) != 0;
  if (wants & FAIRLOCK_CLOSE || (connected && backlog_start < backlog_end)) return;
  if (connected) fairlock_engine_received(&engine, 0, now);
  drained = now;
}

/* Whether the caller has overslept, so that the next bytes to read may have come long ago. */
static void notice_sleep(void)
{
  if (drained == now) slept = false;
  else if ((int32_t)(now - due) >= (int32_t)OVERSLEPT_MS) slept = true;
}

/* Lets the server say something; what it had said before comes first. */
static void say(enum hostile_words words)
{
  deliver(SIZE_MAX);
  hostile.now = 1700000000000 + (int64_t)(now - start);
  for (int i = 0; i < HANDLES; i++)
    hostile.tokens[i] = slots[i].handle.token;
  backlog_start = 0;
  backlog_end = hostile_say(&hostile, words, backlog);
}

/* The caller */

static int index_of(const struct fairlock *handle)
{
  int i = 0;
  while (i < HANDLES && handle != &slots[i].handle)
    i++;
  CHECK(i < HANDLES);
  return i;
}

static bool report(const struct fairlock_report *part, void *context)
{
  volatile char sink = 0;
  for (size_t i = 0; part->id != NULL && i < part->id_size; i++)
    sink = (char)(sink ^ part->id[i]);
  CHECK(part->id_size <= config.receive_size);
  ++*(unsigned *)context;
  return true;
}

static void lost(struct fairlock *handle, const struct fairlock_loss *loss, void *context)
{
  (void)loss;
  CHECK(context == &config);
  CHECK(fairlock_engine_remaining_ms(handle, now) == 0);
  callers[index_of(handle)].losses++;
}

static void ended(struct fairlock *handle, const struct fairlock_end *end, void *context)
{
  struct caller *caller = &callers[index_of(handle)];
  CHECK(context == &config);
  CHECK(caller->under_way && handle->result == end->status && end->status != FAIRLOCK_PENDING);
  caller->under_way = false;
}

static void was_asked(struct fairlock *handle, const struct fairlock_asking *asking, void *context)
{
  (void)asking;
  CHECK(context == &config);
  CHECK(handle->holds > 0 && callers[index_of(handle)].there);
}

static void began(struct caller *caller, uint32_t limit)
{
  caller->under_way = true;
  caller->acquires = false;
  caller->given = 0;
  caller->began = now;
  caller->answered = now;
  caller->endless = limit == FAIRLOCK_FOREVER;
  caller->limit = limit;
}

/*
 * Acquires; a wait is over when its limit has passed and the queue was left, for which there is the
 * lease's time.
 */
static int acquire(struct caller *caller, struct fairlock *handle, uint32_t wait, uint32_t lease)
{
  int status = fairlock_engine_acquire(handle, wait, lease, now);
  uint32_t most = (wait == 0 ? 2 * WAITER_MS : wait) + LEASE_MS + WAITER_MS;
  if (status != FAIRLOCK_PENDING) return status;
  began(caller, wait == FAIRLOCK_FOREVER ? FAIRLOCK_FOREVER : most);
  caller->acquires = true;
  caller->lease = lease != FAIRLOCK_RENEW ? lease : LEASE_MS;
  witness_inherits(&witness, (unsigned)index_of(handle), 0, 0, 0);
  return status;
}

static int release(struct caller *caller, struct fairlock *handle)
{
  uint16_t holds = handle->holds;
  bool was_lost = handle->phase == LOST;
  int status = fairlock_engine_release(handle, now);
  if (status == FAIRLOCK_PENDING) {
    began(caller, 2 * LEASE_MS);
    /* whatever comes of it */
    if (holds == 1) CHECK(fairlock_engine_remaining_ms(handle, now) == 0);
  }
  if (was_lost) CHECK(status == FAIRLOCK_LOST);
  return status;
}

static int ask_something(struct caller *caller, struct fairlock *handle, bool inspect)
{
  caller->hold.token = handle->token != 0 ? handle->token : FAIRLOCK_ANY_TOKEN;
  int status = inspect              ? fairlock_engine_inspect(handle, report, &reports, now)
               : handle->number % 2 ? fairlock_engine_ask(handle, &caller->hold, now)
                                    : fairlock_engine_force(handle, &caller->hold, now);
  if (status == FAIRLOCK_PENDING) began(caller, FAIRLOCK_FOREVER);
  return status;
}

static int take_out(struct caller *caller, struct fairlock *handle)
{
  int status = fairlock_engine_remove(handle, now);
  /* as long as a late acquire may come */
  if (status == FAIRLOCK_PENDING) began(caller, FAIRLOCK_FOREVER);
  if (status != FAIRLOCK_OK) return status;
  const struct fairlock *other = engine.first;
  for (; other != NULL; other = fairlock_schedule_next(other, true))
    CHECK(other != handle);
  /* the memory is the caller's again; who uses it finds no engine in it */
  memset(&slots[index_of(handle)], 0, sizeof slots[0]);
  caller->there = false;
  witness.numbers[index_of(handle)] = 0;
  return status;
}

/* One of those that share names a limit, and the next one none. */
static int add(unsigned which)
{
  const struct witness_lock *lock = &witness_locks[witness.names[which]];
  bool sharer = all_share && which > 0;
  memset(&witness.heirs[which], 0, sizeof witness.heirs[which]);
  witness.limits[which] = sharer ? (int)(which - 1) * 7 : -1;
  if (!sharer) return fairlock_engine_add(&engine, &slots[which].handle, lock->name, lock->size);
  return fairlock_engine_add_shared(&engine, &slots[which], lock->name, lock->size,
                                    (uint32_t)witness.limits[which]);
}

static void operate(unsigned what, unsigned which)
{
  struct caller *caller = &callers[which];
  struct fairlock *handle = &slots[which].handle;
  if (!caller->there) {
    memset(caller, 0, sizeof *caller);
    caller->there = add(which) == FAIRLOCK_OK;
    CHECK(caller->there);
    witness.numbers[which] = handle->number;
    return;
  }
  int before = handle->result;
  int status = 0;
  caller->touched = true;
  switch (what) {
  case 0:
    status = acquire(caller, handle, 0, LEASE);
    break;
  case 1:
    status = acquire(caller, handle, FAIRLOCK_FOREVER, FAIRLOCK_RENEW);
    break;
  case 2:
    status = acquire(caller, handle, next() * 16U, LEASE);
    break;
  case 3:
    status = release(caller, handle);
    break;
  case 4:
    status = fairlock_engine_cancel(handle, now);
    CHECK(status == FAIRLOCK_OK || status == FAIRLOCK_NOT_HELD);
    if (status == FAIRLOCK_OK && handle->result == FAIRLOCK_PENDING && caller->endless) {
      caller->endless = false;
      caller->limit = now - caller->began + LEASE_MS + WAITER_MS;
    }
    return;
  case 5:
    status = ask_something(caller, handle, false);
    break;
  case 6:
    status = ask_something(caller, handle, true);
    break;
  default:
    status = take_out(caller, handle);
    break;
  }
  /* which may be asked for again at any time */
  bool removed = what == 7 && handle->phase == REMOVING;
  if (before == FAIRLOCK_PENDING)
    CHECK(status == FAIRLOCK_IN_PROGRESS || status == FAIRLOCK_INVALID ||
          (removed && status == FAIRLOCK_PENDING));
}

/* What a downgrade has to return. */
static int downgrades_to(const struct fairlock *from, const struct fairlock *heir)
{
  unsigned name = witness.names[index_of(from)];
  if (shares(from) || witness.names[index_of(heir)] != name) return FAIRLOCK_INVALID;
  if (from->result == FAIRLOCK_PENDING || heir->result == FAIRLOCK_PENDING)
    return FAIRLOCK_IN_PROGRESS;
  if (holding(heir) || heir->phase == LOST) return FAIRLOCK_IN_PROGRESS;
  if (from->phase == LOST) return FAIRLOCK_LOST;
  if (!holding(from)) return FAIRLOCK_NOT_HELD;
  return from->holds > 1 ? FAIRLOCK_INVALID : FAIRLOCK_PENDING;
}

/* The larger of two tokens; 0: it is so large that nobody counts on from it. */
static uint64_t larger(uint64_t a, uint64_t b)
{
  if (a < b) a = b;
  return a < LARGEST ? a : 0;
}

/* Both are under way now: one as in a release, the other as in an acquire without a limit. */
static void began_downgrade(struct caller *from, struct caller *heir, uint64_t token,
                            uint32_t lease)
{
  from->touched = heir->touched = true;
  began(from, 2 * LEASE_MS);
  began(heir, FAIRLOCK_FOREVER);
  heir->acquires = true;
  heir->lease = lease != FAIRLOCK_RENEW ? lease : LEASE_MS;
  from->given = token;
  heir->most = larger(heir->most, token);
  from->kept = heir->kept = 0;
}

/* From one handle to another one, of those that share, if both are there. */
static void downgrade(unsigned choices)
{
  unsigned which = choices % HANDLES, to = 1 + choices / 4 % (HANDLES - 1);
  struct fairlock *from = &slots[which].handle;
  uint32_t lease = choices & 16 ? LEASE : FAIRLOCK_RENEW;
  if (!callers[which].there || !callers[to].there) return;
  int expected = downgrades_to(from, &slots[to].handle);
  uint64_t token = from->token, last = slots[to].handle.token;
  if (expected == FAIRLOCK_LOST) callers[which].touched = true;
  int status = fairlock_engine_downgrade(from, &slots[to], lease, now);
  CHECK(status == expected);
  if (status != FAIRLOCK_PENDING) return;
  CHECK(fairlock_engine_remaining_ms(from, now) == 0);
  began_downgrade(&callers[which], &callers[to], token, lease);
  witness_inherits(&witness, to, from->number, token, last);
}

/* The connection */

static void connect(void)
{
  if (!(fairlock_engine_wants(&engine, now) & FAIRLOCK_CONNECT)) return;
  fairlock_engine_opening(&engine, now);
  if (next() % 8 == 1) return;
  fairlock_engine_opened(&engine, now);
  witness.sentinel = follows && topology.service != NULL && !was_redirected;
  witness.sharded = engine.sharded;
  bool proves = follows && seeds > 1 && !topology.service && !topology.cluster && !was_redirected;
  unsigned greetings = 2U + (config.database > 0 ? 1U : 0U) + (proves ? 1U : 0U);
  witness_connected(&witness, witness.sentinel ? 0 : greetings);
  unseen = 0;
  backlog_start = backlog_end = 0;
}

static void disconnect(void)
{
  if (engine.stage == 0) return;
  fairlock_engine_closed(&engine, FAIRLOCK_UNREACHABLE, now);
  witness_connected(&witness, 0);
  unseen = 0;
  CHECK((fairlock_engine_wants(&engine, now) & ~(unsigned)FAIRLOCK_CONNECT) == 0);
}

/* Takes what the engine wants to send, all of it or a part. */
static void drain(bool all)
{
  unsigned before = witness.scripts;
  if (fairlock_engine_wants(&engine, now) == FAIRLOCK_RECEIVE) {
    size_t none; /* asking for output when none is wanted gives nothing, and changes nothing */
    (void)fairlock_engine_output(&engine, &none, now);
    CHECK(none == 0);
  }
  while (fairlock_engine_wants(&engine, now) & FAIRLOCK_SEND) {
    size_t size;
    const uint8_t *data = fairlock_engine_output(&engine, &size, now);
    if (size == 0) break;
    CHECK(size <= config.send_size && size >= unseen);
    if (!witness_sent(&witness, data + unseen, size - unseen, now))
      fail("the engine sends what it may", __LINE__);
    unseen = size;
    size_t taken = all ? size : 1 + next() % size;
    fairlock_engine_sent(&engine, taken);
    unseen -= taken;
    if (!all && next() % 2 == 0) break;
  }
  CHECK(witness.scripts - before <= HANDLES + 1); /* and one that was begun before */
  if (engine.synced) CHECK(witness.scripts - before <= 1);
}

/* Checks */

/* The requests that await their answers: oldest first, and the handles by their oldest. */
static void check_sequences(const struct fairlock *handle, const struct fairlock *previous)
{
  CHECK(handle->unanswered > 0 && handle->unanswered <= FAIRLOCK_UNANSWERED_MAX);
  if (previous != NULL) CHECK(comes_after(handle->sequence[0], previous->sequence[0]));
  if (!engine.broken) CHECK(comes_after(handle->sequence[0], engine.last_received));
  for (unsigned i = 1; i < handle->unanswered; i++)
    CHECK(comes_after(handle->sequence[i], handle->sequence[i - 1]));
  CHECK(handle->sequence[handle->unanswered - 1] == handle->newest);
  CHECK(!comes_after(handle->newest, engine.last_sent));
}

static bool is_there(const struct fairlock *handle)
{
  if (handle == &credentials.own.handle) return changes;
  for (int i = 0; i < HANDLES; i++)
    if (handle == &slots[i].handle) return callers[i].there;
  return false;
}

static void check_awaiting(void)
{
  const struct fairlock *previous = NULL;
  unsigned found = 0;
  for (const struct fairlock *handle = engine.oldest; handle != NULL;
       handle = handle->place.next_answered) {
    CHECK(is_there(handle));
    check_sequences(handle, previous);
    CHECK(++found <= HANDLES + 1);
    previous = handle;
  }
  CHECK(found == 0 || engine.youngest == previous);
  for (int i = 0; i < HANDLES; i++)
    if (callers[i].there && slots[i].handle.unanswered > 0) CHECK(found-- > 0);
  if (changes && credentials.own.handle.unanswered > 0) CHECK(found-- > 0);
  CHECK(found == 0);
}

/* Each handle stands in the schedule once. */
static void check_schedule(void)
{
  const struct fairlock *handle = engine.first;
  unsigned found = 0;
  for (; handle != NULL; handle = fairlock_schedule_next(handle, true)) {
    CHECK(is_there(handle));
    CHECK(++found <= HANDLES + 1);
    if (handle->place.up == NULL) CHECK(handle == engine.first);
    else
      CHECK((handle->place.up->place.left == handle) != (handle->place.up->place.right == handle));
  }
  for (int i = 0; i < HANDLES; i++)
    if (callers[i].there) CHECK(found-- > 0);
  if (changes) CHECK(found-- > 0);
  CHECK(found == 0);
}

static void check_lists(void)
{
  check_awaiting();
  check_schedule();
  CHECK(!comes_after(engine.last_received, engine.last_sent) || engine.broken);
}

/* A hold: how it may have begun, and how long it may be believed in. */
static void check_hold(const struct fairlock *handle, struct caller *caller)
{
  uint32_t held = fairlock_engine_remaining_ms(handle, now);
  uint32_t until = 0;
  if (held == 0) {
    if (caller->token != 0 && holding(handle)) caller->until = now;
    if (handle->keep & KEPT && ending(handle)) {
      CHECK(caller->given == 0); /* that hold is the heir's, or nobody's */
      caller->kept = handle->token;
    }
    if (!holding(handle)) caller->token = 0;
    return;
  }
  CHECK(handle->token != 0 && handle->holds > 0);
  bool allowed = witness_allows(&witness, handle->number, handle->token, &until);
  if (caller->token == 0) {
    /* one that was kept: the belief in it has not ended */
    bool back = keeps && handle->token == caller->kept && (int32_t)(caller->until - now) > 0;
    if (!allowed && back) {
      CHECK(witness.armed[witness.names[index_of(handle)]]);
      allowed = true;
      until = caller->until;
    }
    /* nobody else can begin a hold */
    CHECK(allowed);
    /* and only one that was asked for */
    CHECK(caller->result == FAIRLOCK_PENDING && handle->result == FAIRLOCK_OK);
    CHECK(caller->acquires && handle->holds == 1 && held <= caller->lease);
    CHECK(handle->token > caller->most || handle->token == caller->kept);
    caller->most = larger(handle->token, 0);
    caller->wins++;
    caller->until = until;
    caller->token = handle->token;
    caller->holds = handle->holds;
  }
  CHECK(handle->token == caller->token);
  int step = (int)handle->holds - caller->holds;
  CHECK(step == 0 || (caller->result == FAIRLOCK_PENDING && (step == 1 || step == -1)));
  caller->holds = handle->holds;
  if ((int32_t)held <= (int32_t)(caller->until - now)) return;
  /* prolonged, by an answer to a request of its own */
  CHECK(witness_allows(&witness, handle->number, 0, &until));
  CHECK((int32_t)held <= (int32_t)(until - now));
  caller->until = until;
}

static bool in(uint64_t handles, const struct fairlock *handle)
{
  return handles & (uint64_t)1 << handle->number % 64;
}

/*
 * If the server says that the hold is gone, the handle that was to get it does not go on waiting, and
 * the one that had it is told that it was lost; but not while a request is unanswered that may have
 * ended it. A message that begins a hold is no answer: the one that had it is released.
 */
static void check_downgrade(const struct fairlock *handle, unsigned which)
{
  struct witness_heir *heir = &witness.heirs[which];
  bool gone = in(witness.refused, handle) && !engine.broken;
  CHECK(!gone || !waiting(handle));
  bool granted = holding(handle) || handle->phase == LOST;
  /* an error that is longer than its buffer counts for the engine before the witness has its end */
  if (heir->waits && !waiting(handle) && witness.received.used > 0) heir->doubted = false;
  for (int i = 0; i < HANDLES && heir->from != 0; i++) {
    const struct fairlock *from = &slots[i].handle;
    const struct caller *caller = &callers[i];
    if (!caller->there || from->number != heir->from || caller->given != heir->token) continue;
    if (caller->result != FAIRLOCK_PENDING) continue;
    CHECK(!holding(from));
    bool told = from->result == FAIRLOCK_OK || from->result == FAIRLOCK_LOST;
    CHECK(!told || in(witness.answered, from) || in(witness.answered, handle));
    CHECK(granted || !gone || from->result == FAIRLOCK_LOST);
    CHECK(granted || !heir->doubted || from->result != FAIRLOCK_LOST);
  }
}

static void check_verdict(const struct fairlock *handle, struct caller *caller)
{
  CHECK(handle->result <= FAIRLOCK_PENDING && handle->result >= FAIRLOCK_OUTDATED);
  CHECK(caller->under_way == (handle->result == FAIRLOCK_PENDING));
  if (caller->result == FAIRLOCK_PENDING && handle->result == FAIRLOCK_OK && caller->acquires) {
    CHECK(holding(handle) || handle->phase == LOST);
  }
  if (caller->result != FAIRLOCK_PENDING && !caller->touched)
    CHECK(handle->result == caller->result);
  /*
   * A message makes a waiter ask, and its silence counts from then. So does that of a handle which
   * has to ask again because of an answer that was read late.
   */
  if (in(witness.answered | witness.messages | witness.repeats, handle)) caller->answered = now;
  if (handle->result == FAIRLOCK_PENDING) {
    int32_t unheard = (int32_t)(drained - caller->answered);
    int32_t most = (int32_t)(longest_patience() + longest_timeout());
    if (config.offline_ms != FAIRLOCK_FOREVER) CHECK(unheard < most);
    int32_t limit =
        /* of it and the leave: round trips may have become longer */
        (int32_t)(caller->limit + 7 * longest_trip);
    if (!caller->endless) CHECK((int32_t)(drained - caller->began) < limit);
  }
  caller->result = handle->result;
  caller->touched = false;
  CHECK(caller->losses <= caller->wins);
}

/* What a caller can see of the engine. */
static void look(uint32_t seen[2 * HANDLES + 2], uint32_t at)
{
  for (int i = 0; i < HANDLES; i++) {
    seen[2 * i] = callers[i].there ? (uint32_t)slots[i].handle.result : 0;
    seen[2 * i + 1] = callers[i].there
                          ? slots[i].handle.phase |
                                (fairlock_engine_remaining_ms(&slots[i].handle, at) > 0 ? 256U : 0U)
                          : 0;
  }
  seen[2 * HANDLES] = fairlock_engine_wants(&engine, at) & ~(unsigned)FAIRLOCK_SEND;
  seen[2 * HANDLES + 1] = engine.first != NULL && fairlock_handle_may_send(engine.first);
}

/* Nothing is due before the deadline: ticks until the last moment before it, and back. */
static void check_deadline(void)
{
  static struct fairlock_engine engine_kept;
  static struct fairlock_shared slots_kept[HANDLES];
  static struct caller callers_kept[HANDLES];
  static struct fairlock_topology topology_kept;
  static struct fairlock_credentials credentials_kept;
  uint32_t before[2 * HANDLES + 2];
  uint32_t after[2 * HANDLES + 2];
  if (engine.broken) return;
  fairlock_engine_tick(&engine, now);
  uint32_t left = fairlock_engine_deadline(&engine, now);
  CHECK(left <= FAIRLOCK_DURATION_MAX_MS);
  CHECK(left > 0 || engine.broken || drained != now);
  if (left < 2) return;
  uint32_t then = now + left - 1;
  engine_kept = engine;
  memcpy(slots_kept, slots, sizeof slots);
  memcpy(callers_kept, callers, sizeof callers);
  topology_kept = topology;
  credentials_kept = credentials;
  look(before, now);
  fairlock_engine_tick(&engine, then);
  look(after, then);
  CHECK(memcmp(before, after, sizeof before) == 0);
  engine = engine_kept;
  memcpy(slots, slots_kept, sizeof slots);
  memcpy(callers, callers_kept, sizeof callers);
  topology = topology_kept;
  credentials = credentials_kept;
}

static void check(void)
{
  static const struct fairlock nobody;
  check_lists();
  for (unsigned i = 0; i < HANDLES; i++)
    if (callers[i].there) check_downgrade(&slots[i].handle, i);
  for (int i = 0; i < HANDLES; i++) {
    if (!callers[i].there) {
      CHECK(memcmp(&slots[i].handle, &nobody, sizeof nobody) == 0);
      continue;
    }
    check_hold(&slots[i].handle, &callers[i]);
    check_verdict(&slots[i].handle, &callers[i]);
  }
  check_deadline();
}

static void step(void)
{
  unsigned what = next();
  switch (what % 16) {
  case 0:
    connect();
    break;
  case 1:
    disconnect();
    break;
  case 2:
    now += next() * 8;
    break;
  case 3:
    drain(what < 128);
    break;
  case 4:
    say(HOSTILE_RAW);
    deliver(SIZE_MAX);
    break;
  case 5:
    say(HOSTILE_ERROR);
    deliver(what < 192 ? SIZE_MAX : next());
    break;
  case 6:
    say(HOSTILE_PUSH);
    deliver(what < 192 ? SIZE_MAX : next());
    break;
  case 7:
    say(HOSTILE_ANSWER);
    deliver(what < 192 ? SIZE_MAX : next());
    break;
  case 8:
  case 9:
  case 10:
    drain(true);
    say(HOSTILE_HONEST);
    deliver(what < 192 ? SIZE_MAX : next());
    break;
  case 11:
    say(what < 128 ? HOSTILE_GREETING : HOSTILE_INSPECTION);
    deliver(what % 128 < 96 ? SIZE_MAX : next());
    break;
  case 12:
    if (follows) {
      say(HOSTILE_MOVE);
      deliver(what < 192 ? SIZE_MAX : next());
      break;
    }
    /* fallthrough */
  default:
    if (downgrades && what & 16) {
      downgrade(next());
      break;
    }
    operate(what / 32 % 8, next() % HANDLES);
    break;
  }
}

static bool aim(void *context, const char *where)
{
  CHECK(context == &topology);
  was_redirected = where != NULL && goes_anywhere;
  if (where == NULL) {
    turn = (turn + 1) % seeds;
    return turn != 0;
  }
  CHECK(where == topology.address && memchr(where, 0, topology.address_size) != NULL);
  return goes_anywhere;
}

/* Servers that move, as the input says. */
static void follow(void)
{
  unsigned choices = next();
  seeds = 1 + choices % 2;
  turn = 0;
  goes_anywhere = !(choices & 2);
  topology.address_size = choices & 4 ? 2 + next() % 64 : 32;
  topology.address = malloc(topology.address_size);
  CHECK(topology.address != NULL);
  if (choices & 8) topology.service = "doors";
  if (choices & 16 && topology.service != NULL) topology.sentinel_password = "other";
  else if (choices & 16) topology.cluster = true;
  topology.replicas = choices & 32 ? 1 + choices / 128 : 0;
  topology.replicas_ms = choices & 64 ? 70 : 0;
  CHECK(fairlock_engine_follow(&engine, &topology, aim, &topology) == FAIRLOCK_OK);
  witness.replicas = topology.replicas;
}

static bool give(struct fairlock_login *login, void *context)
{
  static const uint32_t valid[] = {0, 1, 1000, 5000, 60000, UINT32_MAX};
  CHECK(context == &credentials);
  CHECK(login->sentinel == (follows && topology.service != NULL && !was_redirected));
  free(given);
  given = malloc(64);
  CHECK(given != NULL);
  (void)snprintf(given, 64, "password %u, which is longer than 32 characters", asked);
  login->user = asked % 3 == 0 ? "user" : NULL;
  login->password = asked % 5 != 4 ? given : NULL;
  login->valid_ms = valid[asked % 6];
  return ++asked % 4 != 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  hostile.input = data;
  hostile.left = size;
  hostile.witness = &witness;
  memset(&config, 0, sizeof config);
  unsigned choices = next();
  unsigned spare = next();
  config.receive_size = FAIRLOCK_RECEIVE_SIZE(3U, 2U) + spare % RECEIVE_SPARE;
  unsigned room = next();
  config.send_size = FAIRLOCK_SEND_MIN + room;
  config.receive_buffer = malloc(config.receive_size);
  config.send_buffer = malloc(config.send_size);
  config.client_id = "id";
  config.offline_ms = choices & 1 ? FAIRLOCK_FOREVER : 0;
  config.password = choices & 2 ? "secret" : NULL;
  config.user = choices & 4 ? "me" : NULL;
  config.client_name = choices & 8 ? "name" : NULL;
  config.database = choices & 16 ? 3 : 0;
  hostile.selects = config.database > 0;
  config.lost = choices & 32 ? NULL : lost;
  config.lost_context = &config;
  config.ended = ended;
  config.ended_context = &config;
  config.asked = choices & 128 ? was_asked : NULL;
  config.asked_context = &config;
  start = now = 0xfffff000U;
  unseen = 0;
  backlog_start = backlog_end = 0;
  memset(slots, 0, sizeof slots);
  memset(callers, 0, sizeof callers);
  witness_init(&witness, now);
  CHECK(config.receive_buffer != NULL && config.send_buffer != NULL);
  drained = due = now;
  slept = false;
  longest_trip = 0;
  CHECK(fairlock_engine_init(&engine, &config) == FAIRLOCK_OK);
  memset(&topology, 0, sizeof topology);
  follows = (choices & 64) != 0;
  if (follows) follow();
  changes = (choices & 128) != 0;
  asked = choices / 2;
  credentials.function = give;
  credentials.context = &credentials;
  if (changes) fairlock_engine_use_credentials(&engine, &credentials);
  witness.credentials = changes;
  keeps = spare >= 3 * RECEIVE_SPARE;
  keep.keep_ms = 1 + spare * 70;
  if (keeps) CHECK(fairlock_engine_keep(&engine, &keep) == FAIRLOCK_OK);
  witness.keeps = keeps;
  downgrades = room == 251 || room == 252;
  all_share = downgrades || room == 253 || room == 254;
  if (downgrades) witness.names[1] = witness.names[0];
  if (room == 252) witness.names[2] = witness.names[0];
  if (all_share) fairlock_engine_use_downgrading(&engine, &sharing);
  while (hostile.left > 0) {
    witness_step(&witness);
    for (int i = 0; i < HANDLES; i++)
      witness.heirs[i].waits = callers[i].there && waiting(&slots[i].handle);
    step();
    look_for_bytes();
    notice_sleep();
    fairlock_engine_tick(&engine, now);
    /* a wait that ends leaves the queue first, and is over then */
    fairlock_engine_tick(&engine, now);
    check();
    due = now + fairlock_engine_deadline(&engine, now);
  }
  free(config.receive_buffer);
  free(config.send_buffer);
  free(topology.address);
  free(given);
  given = NULL;
  return 0;
}
