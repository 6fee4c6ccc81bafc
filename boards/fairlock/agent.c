/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: the process that holds the lock. It has a session of its own, so that the terminal
 * cannot stop or signal it.
 *
 * `fairlock run` and the agent are two processes because each has to survive the other. If
 * `fairlock run` is stopped, the agent goes on renewing the lease. If `fairlock run` is killed,
 * the agent makes the guard end the command, and then releases the lock. If the agent is killed,
 * its end of the link closes, and `fairlock run` makes the guard end the command. The guard, a
 * third process, is the parent of the command. It ends the command by itself if the others cannot
 * ask for it, because they are stopped or killed.
 *
 * The agent has two threads. One services the client, and wakes the other after each turn. The
 * other waits for that, for orders and for time, and looks at the state of the lock. When the lock
 * is lost, it ends the command early enough that nobody else can hold the lock while the command
 * lives: SIGTERM at (end of the hold, as the client knows it - kill-after - reserve), SIGKILL at
 * (that end - reserve), or earlier if it takes long to signal so many processes. It reports the
 * lock as acquired only when at least that much time is left.
 *
 * It must never release the lock while the command may still run, and never run on without a
 * purpose. If a release is not answered, it goes on when `fairlock run` has ended, until it is, or
 * until the lease is over.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "agent.h"
#include "fairlock_log.h"
#include "fairlock_operate.h"
#include "fairlock_share.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "system.h"
#include "text.h"

#define MOST_RESERVE_MS 500U

/*
 * PATIENCE_MS: a wait without a limit ends if no server serves us for so long, as in a fail-over.
 * LEAST_OFFLINE_MS: a release may take so long, or longer with a long lease.
 */
#define PATIENCE_MS      60000U
#define LEAST_OFFLINE_MS 10000U
#define LEAST_CONNECT_MS 1000U
#define RETRY_MS         250
#define AWAY_MS          3000U /* shorter breaks of the connection are not reported */
#define ASKING_MS        1000U /* so long the server may take to say who holds the lock */

/* While the command is being ended: how often to look, and how long killed processes may take. */
#define CLEARING_STEP_MS 50U
#define CLEARING_MS      5000U

struct order {
  int32_t kind;
};

enum phase {
  WAITING,   /* until the lock is held with enough of its lease left                     */
  ASKING,    /* it was not acquired in time: who holds it? Until `until`                 */
  HOLDING,   /* the lock is held                                                         */
  ENDING,    /* the lock is lost: SIGTERM was sent, SIGKILL is due at `until`            */
  ENDED,     /* the lock is lost, and nothing is left to do                              */
  CLEARING,  /* fairlock was killed: the command is being ended before the lock is released */
  LASTING,   /* the command has ended after that; the lock is held until at_least_ms are over */
  RELEASING, /* all that are held; what comes then says `failed`                       */
  LINGERING  /* `fairlock run` was told the result; the server may still have something of ours */
};

/* A lock. */
struct place {
  struct fairlock_shared lock; /* its handle is used also if it is not shared               */
  uint32_t name;               /* which of the names it has                                 */
  int status;                  /* RELEASING: its status; FAIRLOCK_PENDING: it goes on       */
  bool out;                    /* the handle is out of its client                           */
};

struct hold {
  struct session *session;
  const struct agent_options *options;
  struct place places[MOST_LOCKS]; /* in the order in which all take them */
  size_t count;
  size_t held; /* so many are; WAITING: the next one is waited for */
  int link;    /* -1: the other end is gone */
  int wake[2];
  struct fairlock_log log;
  struct guard *guard;
  uint32_t began;      /* when the wait for the lock began */
  atomic_int refused;  /* the last status with which a server refused us; FAIRLOCK_OK: none has */
  atomic_bool settled; /* the search for a server is over; set by the thread that ends it first */
  int found[2];        /* a pipe, whose second end is closed when a server serves us */
  int told;            /* the last reason for waiting that was reported */
  uint32_t reached_at; /* when the server was last known to be reachable */
  bool cancelled;      /* the wait is to end */
  enum phase phase;
  atomic_bool asked;            /* an operator has asked for a lock */
  uint32_t asked_for;           /* which of the names it has; `shared` guards it, too */
  pthread_mutex_t shared;       /* guards `words`, `broken`, and messages from two threads */
  char words[AGENT_TEXT_SIZE];  /* of the last one who has asked                 */
  char broken[AGENT_TEXT_SIZE]; /* who says that a hold was broken: "0", and words; "": nobody */
  bool guards;                  /* the command has begun; it may have ended since */
  bool hurried;                 /* at_least_ms no longer counts */
  struct agent_message rival;   /* ASKING: what is then reported */
  bool unasked;                 /* RELEASING: `fairlock run` has not asked for it yet */
  int64_t acquired_at;          /* in long_clock_ms() */
  uint32_t until; /* ENDING: when to send SIGKILL; CLEARING: to give up; RELEASING: to report */
  pthread_mutex_t start; /* the other thread locks it before it services the client */
  /*
   * RELEASING: FAIRLOCK_OK: `fairlock run` is told of the release; FAIRLOCK_PENDING: then the wait
   * begins again; else it is told that the locks were not acquired, and why
   */
  int failed;
};

/* Messages to `fairlock run` */

static void count(const struct hold *hold)
{
  if (hold->options->metrics.path == NULL) return;
  struct fairlock_counters counters;
  fairlock_read_counters(&hold->session->client, &counters, sizeof counters);
  metrics_count(&hold->options->metrics, &counters);
}

/*
 * Sends a message. One that may come any number of times is dropped while `fairlock run` is stopped
 * and the link fills up: we must not wait here instead of renewing. poll() calls a socket writable
 * only while much of its buffer is free, so there is room for messages that must not be dropped.
 */
static void put(struct hold *hold, const struct agent_message *message, bool may_drop)
{
  (void)pthread_mutex_lock(&hold->shared);
  struct pollfd link = {.fd = hold->link, .events = POLLOUT};
  bool room = !may_drop || (poll(&link, 1, 0) > 0 && (link.revents & POLLOUT) != 0);
  /* if `fairlock run` is gone, we notice that when we next read orders */
  ssize_t written = hold->link >= 0 && room ? write(hold->link, message, sizeof *message) : 0;
  (void)written;
  (void)pthread_mutex_unlock(&hold->shared);
}

static void tell(struct hold *hold, const struct agent_message *message)
{
  count(hold);
  put(hold, message, false);
}

static struct agent_message message_of(struct hold *hold, enum agent_news news, int status)
{
  struct agent_message message = {.news = (int32_t)news, .status = status};
  session_error(hold->session, status, message.text);
  session_address(hold->session, status, message.address);
  if (status != FAIRLOCK_LOST) return message;
  (void)pthread_mutex_lock(&hold->shared);
  memcpy(message.text, hold->broken, sizeof message.text);
  (void)pthread_mutex_unlock(&hold->shared);
  return message;
}

/* The least that is left of what is held: 0 if one is lost, UINT32_MAX if none is held. */
static uint32_t least_left(struct hold *hold, size_t *which)
{
  uint32_t least = UINT32_MAX;
  for (size_t i = 0; i < hold->held; i++) {
    uint32_t left = fairlock_remaining_ms(&hold->places[i].lock.handle);
    if (left >= least) continue;
    least = left;
    if (which != NULL) *which = i;
  }
  return least;
}

static void tell_status(struct hold *hold, enum agent_news news, int status)
{
  struct agent_message message = message_of(hold, news, status);
  tell(hold, &message);
}

/* A log function: called inside the client, in either thread. */
static void on_event(enum fairlock_log_event kind, int status, const char *text, void *context)
{
  struct hold *hold = context;
  if (kind == FAIRLOCK_LOG_BROKEN) {
    (void)pthread_mutex_lock(&hold->shared);
    snprintf(hold->broken, sizeof hold->broken, "%s", text);
    (void)pthread_mutex_unlock(&hold->shared);
  }
  if (!hold->options->verbose) return;
  struct agent_message message = {
      .news = AGENT_EVENT, .at_ms = time_of_day_ms(), .event = (int32_t)kind, .status = status};
  bool failed = status == FAIRLOCK_UNREACHABLE || status == FAIRLOCK_UNTRUSTED;
  session_current(hold->session, message.address);
  /* for these two the log's text only repeats the status; the transport has a better reason */
  bool ended = kind == FAIRLOCK_LOG_NOT_CONNECTED || kind == FAIRLOCK_LOG_DISCONNECTED;
  if (ended && failed) session_current_reason(hold->session, message.text);
  else if (ended && status == FAIRLOCK_DENIED) session_no_password(hold->session, message.text);
  else if (!ended && text != NULL) snprintf(message.text, sizeof message.text, "%s", text);
  put(hold, &message, true);
}

/* Reads exactly size bytes. */
static bool read_all(int from, void *data, size_t size)
{
  char *to = data;
  while (size > 0) {
    ssize_t got = read(from, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= (size_t)got;
  }
  return true;
}

/* Ending the command */

static uint32_t reserve_ms(const struct agent_options *options)
{
  uint32_t tenth = options->lease_ms / 10;
  return tenth < MOST_RESERVE_MS ? tenth : MOST_RESERVE_MS;
}

/* How long the hold must still last when the command is dead. */
static uint32_t spare_ms(const struct agent_options *options)
{
  return options->on_lost == ON_LOST_IGNORE ? 0 : reserve_ms(options);
}

static struct guard_orders guard_orders(const struct agent_options *options)
{
  bool term = options->on_lost == ON_LOST_TERM;
  return (struct guard_orders){.term = term,
                               .kill = options->on_lost != ON_LOST_IGNORE,
                               .grace_ms = term ? options->kill_after_ms : 0,
                               .slack_ms = reserve_ms(options) / 2,
                               .end_ms =
                                   options->on_lost == ON_LOST_KILL ? 0 : options->kill_after_ms};
}

/* How long the hold must still last when the ending of the command begins. */
static uint32_t needed_ms(const struct agent_options *options)
{
  return guard_orders(options).grace_ms + spare_ms(options);
}

/* Begins to end the command, because the hold ends in `left` ms, or has ended (0). */
static void begin_ending(struct hold *hold, uint32_t left)
{
  const struct agent_options *options = hold->options;
  int why = fairlock_server_status(&hold->session->client);
  size_t which = 0;
  if (why == FAIRLOCK_OK) why = FAIRLOCK_UNREACHABLE;
  struct agent_message message = message_of(hold, AGENT_LOST, left > 0 ? why : FAIRLOCK_LOST);
  (void)least_left(hold, &which);
  message.lock = hold->places[which].name;
  tell(hold, &message);
  hold->phase = ENDED;
  if (options->on_lost == ON_LOST_TERM) {
    uint32_t reserve = reserve_ms(options);
    uint32_t grace = left == 0 ? options->kill_after_ms : left > reserve ? left - reserve : 0;
    hold->phase = ENDING;
    hold->until = port_clock_ms() + grace;
    guard_ending(hold->guard, hold->until);
    hold->until -= guard_term(hold->guard);
    guard_ending(hold->guard, hold->until);
    return;
  }
  if (options->on_lost == ON_LOST_KILL) {
    guard_ending(hold->guard, port_clock_ms()); /* the guard repeats SIGKILL */
    guard_signal(hold->guard, SIGKILL);
  } else {
    guard_rest(hold->guard);
  }
}

/* An `asked` callback: called inside the client, in either thread. Wakes the thread that looks. */
static void on_asked(struct fairlock *handle, const struct fairlock_asking *asking, void *context)
{
  struct hold *hold = context;
  (void)pthread_mutex_lock(&hold->shared);
  for (size_t i = 0; i < hold->count; i++)
    if (handle == &hold->places[i].lock.handle) hold->asked_for = hold->places[i].name;
  snprintf(hold->words, sizeof hold->words, "%.*s", (int)asking->size, asking->words);
  (void)pthread_mutex_unlock(&hold->shared);
  atomic_store(&hold->asked, true);
  ssize_t written = write(hold->wake[1], "", 1); /* if the pipe is full, it wakes anyway */
  (void)written;
}

/* Tells `fairlock run` and the command that an operator has asked, once the command has begun. */
static void pass_on_asked(struct hold *hold)
{
  if (!hold->guards || !atomic_exchange(&hold->asked, false)) return;
  struct agent_message message = {.news = AGENT_ASKED};
  (void)pthread_mutex_lock(&hold->shared);
  memcpy(message.text, hold->words, sizeof message.text);
  message.lock = hold->asked_for;
  (void)pthread_mutex_unlock(&hold->shared);
  put(hold, &message, true);
  if (hold->options->on_ask != 0) guard_signal_group(hold->guard, hold->options->on_ask);
}

/* The state of the lock */

/* Reports, and ends the agent. The other thread is inside the client, so nothing is freed. */
static void end_hold(struct hold *hold, enum agent_news news, int status)
{
  tell_status(hold, news, status);
  _exit(0);
}

/* The same when the system has refused `what`, before anything was sent. error: an errno value. */
static void give_up(struct hold *hold, const char *what, int error)
{
  struct agent_message message = {.news = AGENT_UNABLE, .status = error};
  snprintf(message.text, sizeof message.text, "%s", what);
  tell(hold, &message);
  _exit(1);
}

/* Begins to release all that is held. failed: as in struct hold. */
static void give_back(struct hold *hold, int failed)
{
  bool late = true;
  for (size_t i = 0; i < hold->held; i++) {
    struct place *place = &hold->places[i];
    place->status = fairlock_start_release(&place->lock.handle);
    late = late && place->status != FAIRLOCK_PENDING;
  }
  late = late || hold->phase == ENDING || hold->phase == ENDED;
  hold->until = port_clock_ms() + (late ? AGENT_LATE_RELEASE_MS : AGENT_RELEASE_MS);
  hold->failed = failed;
  hold->phase = RELEASING;
  guard_rest(hold->guard);
}

static void begin_release(struct hold *hold)
{
  give_back(hold, FAIRLOCK_OK);
}

/*
 * True if something of ours may be left on the server, which the library then goes on removing.
 * While the server answers, an operation has a result only when nothing is left, unless the hold
 * was lost.
 */
static bool leaves_something(struct hold *hold, struct place *place)
{
  bool answers = fairlock_server_status(&hold->session->client) == FAIRLOCK_OK;
  if (place->status == FAIRLOCK_PENDING) return true;
  if (place->out || place->status == FAIRLOCK_OK) return false;
  if (answers && place->status != FAIRLOCK_LOST) return false;
  place->out = fairlock_start_deinit(&place->lock.handle) != FAIRLOCK_PENDING;
  return !place->out;
}

/* Reports a result. If something is left, the agent goes on without `fairlock run`. */
static void finish(struct hold *hold, enum agent_news news, int status, bool left)
{
  if (!left) end_hold(hold, news, status);
  struct agent_message message = message_of(hold, news, status);
  message.lingers = true;
  tell(hold, &message);
  hold->phase = LINGERING;
}

/* Why a release is not done: what the server last said, or, if it said nothing of that kind, that it is unknown. */
static int why_unreleased(struct hold *hold)
{
  int why = fairlock_server_status(&hold->session->client);
  return why < FAIRLOCK_OK && why != FAIRLOCK_UNREACHABLE ? why : FAIRLOCK_UNKNOWN;
}

/* Tells the guard until when the command may run: counted from `now`, so rather too early. */
static void note_deadline(struct hold *hold, uint32_t now, uint32_t left)
{
  guard_deadline(hold->guard, now + left - spare_ms(hold->options));
}

/* True if the library asks again after a server has refused with this status. */
static bool asks_again(int why)
{
  return why == FAIRLOCK_UNAVAILABLE || why == FAIRLOCK_READONLY || why == FAIRLOCK_OOM ||
         why == FAIRLOCK_MISCONF || why == FAIRLOCK_UNSYNCED || why == FAIRLOCK_DENIED ||
         why == FAIRLOCK_UNTRUSTED || why == FAIRLOCK_PROTOCOL;
}

/* Reports once why no server serves us. An unreachable one is reported only after AWAY_MS. */
static void tell_why(struct hold *hold)
{
  int why = fairlock_server_status(&hold->session->client);
  uint32_t now = port_clock_ms();
  if (why != FAIRLOCK_UNREACHABLE) hold->reached_at = now;
  bool away = now - hold->reached_at >= AWAY_MS;
  if ((!asks_again(why) && !away) || hold->cancelled) return;
  if (why == hold->told || hold->options->wait_ms == 0) return;
  hold->told = why;
  struct agent_message message = message_of(hold, AGENT_RETRYING, why);
  put(hold, &message, true);
}

/* How much of wait_ms is left: at least 1, because 0 would mean not to wait. */
static uint32_t rest_of_wait(const struct hold *hold)
{
  uint32_t wait = hold->options->wait_ms;
  uint32_t waited = port_clock_ms() - hold->began;
  if (wait == FAIRLOCK_FOREVER || wait == 0) return wait;
  return waited < wait ? wait - waited : 1;
}

/* Waits for the next one. */
static void begin_wait(struct hold *hold)
{
  struct place *place = &hold->places[hold->held];
  hold->reached_at = port_clock_ms();
  hold->phase = WAITING;
  place->status = fairlock_start_acquire(&place->lock.handle, rest_of_wait(hold), FAIRLOCK_RENEW);
  if (place->status != FAIRLOCK_PENDING) give_back(hold, place->status);
}

/*
 * One hold has ended before the command began, perhaps because we were stopped, or by a break: all are
 * given back, and the wait begins again.
 */
static void wait_again(struct hold *hold)
{
  atomic_store(&hold->asked, false); /* the operator asked for the hold that has ended */
  (void)pthread_mutex_lock(&hold->shared);
  hold->broken[0] = 0;
  (void)pthread_mutex_unlock(&hold->shared);
  give_back(hold, FAIRLOCK_PENDING);
}

/* A report function: notes the first holder. Called inside the client, in the other thread. */
static bool note_rival(const struct fairlock_report *report, void *context)
{
  struct agent_message *rival = context;
  int size = report->id != NULL ? (int)report->id_size : 0;
  rival->holders = report->holder_count;
  rival->waiters = report->waiter_count;
  rival->token = report->token;
  snprintf(rival->holder, sizeof rival->holder, "%.*s", size, size > 0 ? report->id : "");
  return false;
}

/* Begins to ask who holds the lock, which was not acquired in time. */
static void begin_asking(struct hold *hold, struct place *place, int status)
{
  hold->rival = (struct agent_message){.news = AGENT_FAILED, .status = status, .lock = place->name};
  hold->phase = ASKING;
  hold->until = port_clock_ms() + ASKING_MS;
  (void)fairlock_start_inspect(&place->lock.handle, note_rival, &hold->rival);
}

static void look_asking(struct hold *hold, bool due)
{
  int status = fairlock_result(&hold->places[hold->held].lock.handle);
  bool pending = status == FAIRLOCK_PENDING;
  if (pending && !due && !hold->cancelled && hold->link >= 0) return;
  if (pending) end_hold(hold, AGENT_FAILED, hold->rival.status); /* the other thread may write */
  hold->rival.known = status == FAIRLOCK_OK;
  tell(hold, &hold->rival);
  _exit(0);
}

/* All were given back, or the time for that is over, because no lock was acquired, or one was lost. */
static void after_failure(struct hold *hold, bool left)
{
  int failed = hold->failed;
  bool late = failed == FAIRLOCK_BUSY || failed == FAIRLOCK_TIMEOUT;
  bool cancelled = hold->cancelled || hold->link < 0;
  if (failed == FAIRLOCK_PENDING) {
    hold->held = 0;
    begin_wait(hold);
  } else if (late && !left && !cancelled && !hold->options->quiet &&
             fairlock_server_status(&hold->session->client) == FAIRLOCK_OK) {
    begin_asking(hold, &hold->places[hold->held], failed);
  } else {
    finish(hold, AGENT_FAILED, failed, left);
  }
}

static void look_releasing(struct hold *hold, bool due)
{
  int status = FAIRLOCK_OK;
  bool pending = false;
  bool left = false;
  bool again = hold->failed == FAIRLOCK_PENDING;
  if (again && (hold->cancelled || hold->link < 0)) {
    hold->failed = FAIRLOCK_CANCELLED;
    again = false;
  }
  if (again && due) hold->until += AGENT_RELEASE_MS; /* only the library limits it */
  for (size_t i = 0; i < hold->count; i++) {
    struct place *place = &hold->places[i];
    if (place->status == FAIRLOCK_PENDING) place->status = fairlock_result(&place->lock.handle);
    pending = pending || place->status == FAIRLOCK_PENDING;
    if (!again && leaves_something(hold, place)) left = true;
    if (status == FAIRLOCK_OK || status == FAIRLOCK_PENDING) status = place->status;
  }
  bool waits = hold->failed == FAIRLOCK_OK ? left : pending;
  if (waits && (again || !due)) return;
  if (hold->failed != FAIRLOCK_OK) after_failure(hold, left);
  else finish(hold, AGENT_RELEASED, pending ? why_unreleased(hold) : status, left);
}

static void look_lingering(struct hold *hold)
{
  bool left = false;
  for (size_t i = 0; i < hold->count; i++) {
    struct place *place = &hold->places[i];
    if (place->out || place->status == FAIRLOCK_OK) continue;
    if (fairlock_result(&place->lock.handle) != FAIRLOCK_PENDING)
      place->out = fairlock_start_deinit(&place->lock.handle) != FAIRLOCK_PENDING;
    left = left || !place->out;
  }
  if (!left) _exit(0);
}

/* One message for each lock, in the order of the names. */
static void tell_acquired(struct hold *hold)
{
  for (uint32_t name = 0; name < hold->count; name++) {
    struct agent_message message = {.news = AGENT_ACQUIRED, .lock = name};
    struct place *place = hold->places;
    while (place->name != name)
      place++;
    message.token = fairlock_token(&place->lock.handle);
    fairlock_id(&place->lock.handle, message.holder, sizeof message.holder);
    session_current(hold->session, message.address);
    tell(hold, &message);
  }
}

static void look_waiting(struct hold *hold)
{
  uint32_t now = port_clock_ms();
  struct place *place = &hold->places[hold->held];
  int status = fairlock_result(&place->lock.handle);
  bool lost = least_left(hold, NULL) == 0; /* one of those that are held already */
  if (status == FAIRLOCK_PENDING) {
    if (lost) (void)fairlock_cancel(&place->lock.handle);
    tell_why(hold);
    return;
  }
  place->status = status;
  if (status != FAIRLOCK_OK) {
    if (lost && !hold->cancelled) wait_again(hold);
    else give_back(hold, status);
    return;
  }
  hold->held++;
  uint32_t left = least_left(hold, NULL);
  if (hold->link < 0 || hold->cancelled) {
    begin_release(hold);
  } else if (left == 0) {
    wait_again(hold);
  } else if (hold->held < hold->count) {
    begin_wait(hold);
  } else if (left <= needed_ms(hold->options)) {
    /* a handover is a short hold; its confirmation, which is under way, gives it the full lease */
    hold->held--;
  } else {
    hold->phase = HOLDING;
    hold->acquired_at = long_clock_ms();
    note_deadline(hold, now, left);
    tell_acquired(hold);
  }
}

/* True if on_ask is a signal that asks the command to end: then at_least_ms does not count. */
static bool asking_hurries(const struct agent_options *options)
{
  return options->on_ask == SIGINT || options->on_ask == SIGTERM || options->on_ask == SIGQUIT ||
         options->on_ask == SIGHUP || options->on_ask == SIGKILL;
}

/* The command and `fairlock run` have ended. The lock is still held until --at-least is over. */
static void look_lasting(struct hold *hold, uint32_t left)
{
  const struct agent_options *options = hold->options;
  bool asked = atomic_exchange(&hold->asked, false) && asking_hurries(options);
  bool lasts = hold->guards && !hold->hurried && !asked &&
               long_clock_ms() - hold->acquired_at < options->at_least_ms;
  hold->phase = LASTING;
  hold->until = (uint32_t)hold->acquired_at + options->at_least_ms;
  guard_rest(hold->guard);
  if (!lasts || left == 0) begin_release(hold);
}

/*
 * Kills the command if the guard might be too late. If the guard is gone, processes outside of the
 * command's group cannot be found: then the lock is left to its lease.
 */
static void help_to_clear(struct hold *hold, uint32_t left)
{
  if (hold->guard->pid == 0) _exit(1);
  guard_rouse(hold->guard);
  if (left <= spare_ms(hold->options)) guard_signal(hold->guard, SIGKILL);
}

static void look_clearing(struct hold *hold, uint32_t left, bool due)
{
  if (guard_is_empty(hold->guard)) {
    look_lasting(hold, left);
    return;
  }
  if (due) _exit(1); /* the command cannot be ended, so the lock is left to its lease */
  note_deadline(hold, port_clock_ms(), left);
  help_to_clear(hold, left);
}

/* The ms until max_hold_ms are over. They count only while the command runs: until then, for ever. */
static uint32_t until_overdue_ms(const struct hold *hold)
{
  int64_t held = long_clock_ms() - hold->acquired_at;
  uint32_t most = hold->options->max_hold_ms;
  if (most == 0 || !hold->guards) return UINT32_MAX;
  return held < most ? most - (uint32_t)held : 0;
}

/* Has the command ended when it is overdue, and then releases: `fairlock run` may be stopped. */
static void look_overdue(struct hold *hold)
{
  if (until_overdue_ms(hold) > 0) return;
  hold->unasked = guard_is_empty(hold->guard);
  if (hold->unasked) {
    begin_release(hold);
    return;
  }
  guard_overdue(hold->guard);
  guard_rouse(hold->guard);
}

static void look(struct hold *hold)
{
  uint32_t now = port_clock_ms();
  uint32_t left = least_left(hold, NULL);
  bool due = (int32_t)(now - hold->until) >= 0;
  switch (hold->phase) {
  case WAITING:
    look_waiting(hold);
    break;
  case ASKING:
    look_asking(hold, due);
    break;
  case HOLDING:
    if (left > needed_ms(hold->options)) note_deadline(hold, now, left);
    else begin_ending(hold, left);
    if (hold->phase == HOLDING) pass_on_asked(hold);
    if (hold->phase == HOLDING) look_overdue(hold);
    break;
  case ENDING:
    if (!due) break;
    guard_signal(hold->guard, SIGKILL);
    hold->phase = ENDED;
    break;
  case CLEARING:
    look_clearing(hold, left, due);
    break;
  case LASTING:
    look_lasting(hold, left);
    break;
  case RELEASING:
    if (!hold->unasked) look_releasing(hold, due);
    break;
  case LINGERING:
    look_lingering(hold);
    break;
  default:
    break;
  }
}

/* The ms until look() is due; never long, because the machine may be suspended meanwhile. */
static int next_look_ms(struct hold *hold)
{
  uint32_t wait = PORT_WAIT_MAX_MS;
  uint32_t other = wait;
  uint32_t left = least_left(hold, NULL);
  uint32_t now = port_clock_ms();
  if (hold->phase == HOLDING)
    other = left > needed_ms(hold->options) ? left - needed_ms(hold->options) : 0;
  if (hold->phase == HOLDING && !guard_is_overdue(hold->guard) && until_overdue_ms(hold) < other)
    other = until_overdue_ms(hold);
  if (hold->phase == WAITING) other = fairlock_remaining_ms(&hold->places[hold->held].lock.handle);
  if (hold->phase == WAITING && (other == 0 || left < other)) other = left;
  if (hold->phase == CLEARING) other = CLEARING_STEP_MS;
  if (hold->phase == ASKING || hold->phase == ENDING || hold->phase == LASTING ||
      (hold->phase == RELEASING && !hold->unasked)) {
    other = (int32_t)(hold->until - now) > 0 ? hold->until - now : 0;
  }
  return (int)(other < wait ? other : wait);
}

/* Orders */

/* `fairlock run` is gone: makes the guard end the command, and then releases the lock. */
static void abandoned(struct hold *hold)
{
  (void)pthread_mutex_lock(&hold->shared); /* the other thread may send on it */
  (void)close(hold->link);
  hold->link = -1;
  (void)pthread_mutex_unlock(&hold->shared);
  hold->unasked = false;
  if (hold->phase == WAITING || hold->phase == ASKING) {
    (void)fairlock_cancel(&hold->places[hold->held].lock.handle);
  } else if (hold->phase < RELEASING) {
    guard_end_all(hold->guard);
    hold->phase = CLEARING;
    hold->until = port_clock_ms() + hold->options->kill_after_ms + CLEARING_MS;
  }
}

static void obey(struct hold *hold)
{
  struct order order;
  if (!read_all(hold->link, &order, sizeof order)) {
    abandoned(hold);
    return;
  }
  switch (order.kind) {
  case AGENT_GUARD:
    hold->guards = true;
    if (hold->phase == ENDING) guard_signal(hold->guard, SIGTERM);
    if (hold->phase == ENDED && hold->options->on_lost != ON_LOST_IGNORE)
      guard_signal(hold->guard, SIGKILL);
    break;
  case AGENT_HURRY:
    hold->hurried = true;
    break;
  case AGENT_CANCEL:
    hold->cancelled = true;
    if (hold->held < hold->count) (void)fairlock_cancel(&hold->places[hold->held].lock.handle);
    break;
  case AGENT_RELEASE:
    if (hold->unasked) hold->until = port_clock_ms() + AGENT_RELEASE_MS;
    else begin_release(hold);
    hold->unasked = false;
    break;
  default:
    break;
  }
}

/* Locks that we would wait for for ever */

struct search {
  const char *holders;
  bool found;
};

static bool search_holder(const struct fairlock_report *report, void *context)
{
  struct search *search = context;
  if (report->place != 0) return false;                 /* the waiters do not matter */
  if (report->holder_index == 0) search->found = false; /* it begins again after a break */
  search->found |= report->id != NULL && report->id_size > 0 &&
                   has_word(search->holders, report->id, report->id_size);
  return true;
}

/*
 * True if a `fairlock run` under which we run holds the lock, and so waits for our end. If both
 * share it we might get it, but not if somebody between us wants it exclusively, or the limit is
 * reached: that is refused, too. Ids tell, because no two holds anywhere have the same. If the
 * holder cannot be read, the acquire that follows reports why.
 */
static bool is_nested(struct hold *hold, uint32_t *which)
{
  const struct agent_options *options = hold->options;
  if (options->holders == NULL || options->wait_ms == 0) return false;
  for (uint32_t i = 0; options->names[i] != NULL; i++) {
    struct search search = {.holders = options->holders};
    const char *name = options->names[i];
    int status =
        fairlock_inspect(&hold->session->client, name, strlen(name), search_holder, &search);
    *which = i;
    if (status == FAIRLOCK_OK && search.found) return true;
  }
  return false;
}

/* Finding a server */

/* How long to search for a server that serves us. */
static uint32_t patience_ms(const struct agent_options *options)
{
  return options->wait_ms == FAIRLOCK_FOREVER ? PATIENCE_MS : options->wait_ms;
}

/* Connects. If waiting is allowed, repeats that until a server serves us. */
static int connect_to_any(struct hold *hold)
{
  uint32_t patience = patience_ms(hold->options);
  struct pollfd link = {.fd = hold->link, .events = POLLIN};
  for (bool told = false;; told = true) {
    int status = fairlock_connect(&hold->session->client);
    atomic_store(&hold->refused, status);
    if (!session_may_pass(hold->session, status) || port_clock_ms() - hold->began >= patience)
      return status;
    if (!told) tell_status(hold, AGENT_RETRYING, status);
    if (poll(&link, 1, RETRY_MS) > 0) _exit(0); /* `fairlock run` is gone; it sends no order yet */
  }
}

/*
 * A thread that ends the agent when the time for the search is over, because a single attempt to
 * connect may take longer than that. No request was sent yet, so nothing is left on a server.
 */
static void *limit_search(void *context)
{
  struct hold *hold = context;
  uint32_t patience = patience_ms(hold->options);
  /* RETRY_MS more, so that an attempt which ends at the limit can still report why it failed */
  uint32_t limit = (patience < LEAST_CONNECT_MS ? LEAST_CONNECT_MS : patience) + RETRY_MS;
  struct pollfd found = {.fd = hold->found[0]};
  for (;;) {
    uint32_t passed = port_clock_ms() - hold->began;
    uint32_t left = passed < limit ? limit - passed : 0;
    if (poll(&found, 1, (int)(left < PORT_WAIT_MAX_MS ? left : PORT_WAIT_MAX_MS)) > 0) return NULL;
    if (left == 0) break;
  }
  if (atomic_exchange(&hold->settled, true)) return NULL;
  int why = atomic_load(&hold->refused);
  end_hold(hold, AGENT_FAILED, why != FAIRLOCK_OK ? why : FAIRLOCK_UNREACHABLE);
  return NULL;
}

/* Finds a server, and ends the agent if there is none, or if we would wait for ourselves. */
static void find_server(struct hold *hold)
{
  const struct agent_options *options = hold->options;
  pthread_t limiter;
  bool limited = options->wait_ms > 0 && pipe(hold->found) == 0 &&
                 pthread_create(&limiter, NULL, limit_search, hold) == 0;
  int status = connect_to_any(hold);
  uint32_t which = 0;
  bool nested = status == FAIRLOCK_OK && is_nested(hold, &which);
  while (atomic_exchange(&hold->settled, true))
    (void)poll(NULL, 0, -1); /* the time is over, and limit_search() ends the process */
  if (nested) {
    struct agent_message message = {.news = AGENT_NESTED, .lock = which};
    tell(hold, &message);
    _exit(0);
  }
  if (status != FAIRLOCK_OK) end_hold(hold, AGENT_FAILED, status);
  if (!limited) return;
  (void)close(hold->found[1]);
  (void)pthread_join(limiter, NULL);
  (void)close(hold->found[0]);
}

/* The two threads */

static void *service_client(void *context)
{
  struct hold *hold = context;
  (void)pthread_mutex_lock(&hold->start);
  for (;;) {
    fairlock_poll(&hold->session->client, PORT_WAIT_MAX_MS);
    ssize_t written =
        write(hold->wake[1], "", 1); /* if it is full, the other thread wakes anyway */
    (void)written;
  }
  return NULL;
}

/* True if we were stopped since the last call. SIGCONT, which has ended that, is blocked. */
static bool was_stopped(void)
{
  sigset_t set;
  int number;
  if (sigpending(&set) != 0 || !sigismember(&set, SIGCONT)) return false;
  sigemptyset(&set);
  sigaddset(&set, SIGCONT);
  return sigwait(&set, &number) == 0;
}

static void watch_over(struct hold *hold)
{
  for (;;) {
    look(hold);
    count(hold);
    struct pollfd sources[] = {{.fd = hold->wake[0], .events = POLLIN},
                               {.fd = hold->link, .events = POLLIN},
                               {.fd = hold->guard->agent[0], .events = POLLIN}};
    int ready = poll(sources, 3, next_look_ms(hold));
    bool prompt = !was_stopped();
    if (ready <= 0) continue;
    char turns[64];
    if (sources[2].revents != 0 && !guard_hear(&hold->guard->agent[0]))
      guard_gone(hold->guard, prompt);
    if (sources[0].revents != 0 && read(hold->wake[0], turns, sizeof turns) < 0) continue;
    if (sources[1].revents != 0) obey(hold);
  }
}

/* Closes all but the link and the guard's: the agent must not keep somebody's pipe open. */
static void detach(int link, struct guard *guard)
{
  int kept[] = {link, guard->agent[0]};
  sigset_t all;
  sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, NULL);
  (void)setsid();
  guard_enter_agent(guard);
  system_let_go(kept, sizeof kept / sizeof kept[0]);
}

static bool make_wake(struct hold *hold)
{
  if (pipe(hold->wake) != 0) return false;
  return fcntl(hold->wake[0], F_SETFL, O_NONBLOCK) == 0 &&
         fcntl(hold->wake[1], F_SETFL, O_NONBLOCK) == 0;
}

/* Does all that the system can refuse, before any request is sent. */
static void prepare(struct hold *hold)
{
  pthread_t thread;
  if (!make_wake(hold)) give_up(hold, "make a pipe", errno);
  int error = pthread_mutex_init(&hold->start, NULL);
  if (error == 0) error = pthread_mutex_lock(&hold->start);
  if (error == 0) error = pthread_create(&thread, NULL, service_client, hold);
  if (error != 0) give_up(hold, "start a thread", error);
}

/* Makes the handles, in the order of the bytes of their names: all who take several have that one. */
static int make_handles(struct hold *hold)
{
  const struct agent_options *options = hold->options;
  struct fairlock_client *client = &hold->session->client;
  int status = FAIRLOCK_OK;
  for (uint32_t i = 0; options->names[i] != NULL; i++) {
    size_t at = hold->count++;
    for (; at > 0 && strcmp(options->names[hold->places[at - 1].name], options->names[i]) > 0; at--)
      hold->places[at].name = hold->places[at - 1].name;
    hold->places[at].name = i;
  }
  for (size_t i = 0; i < hold->count && status == FAIRLOCK_OK; i++) {
    struct fairlock_shared *lock = &hold->places[i].lock;
    const char *name = options->names[hold->places[i].name];
    status = options->shared ? fairlock_init_shared(lock, client, name, options->limit)
                             : fairlock_init(&lock->handle, client, name);
  }
  return status;
}

static void hold_lock(struct hold *hold)
{
  struct session *session = hold->session;
  struct order order;
  int error = pthread_mutex_init(&hold->shared, NULL);
  if (error != 0) _exit(1); /* it cannot even say so */
  int status = session_open(session);
  if (status == FAIRLOCK_OK) status = fairlock_set_log(&session->client, &hold->log);
  if (status != FAIRLOCK_OK) end_hold(hold, AGENT_FAILED, status);
  prepare(hold);
  find_server(hold);
  status = make_handles(hold);
  if (status != FAIRLOCK_OK) end_hold(hold, AGENT_FAILED, status);
  tell_status(hold, AGENT_CONNECTED, FAIRLOCK_OK);
  if (!read_all(hold->link, &order, sizeof order)) _exit(0);
  begin_wait(hold);
  (void)pthread_mutex_unlock(&hold->start);
  watch_over(hold);
}

/* Sets the client's timeouts, which have to be short if the lease is. */
static void configure(struct fairlock_config *config, const struct agent_options *options)
{
  uint32_t response_ms = options->lease_ms / 6;
  uint32_t connect_ms = options->wait_ms == 0 ? 5000 : options->wait_ms;
  uint32_t offline_ms = patience_ms(options);
  config->lease_ms = options->lease_ms;
  config->claim_ms = options->claim_ms;
  config->response_ms = response_ms < 500 ? 500 : response_ms > 2000 ? 2000 : response_ms;
  config->offline_ms = offline_ms < LEAST_OFFLINE_MS ? LEAST_OFFLINE_MS : offline_ms;
  config->connect_ms = connect_ms < LEAST_CONNECT_MS ? LEAST_CONNECT_MS
                       : connect_ms > 5000           ? 5000
                                                     : connect_ms;
}

static void become_agent(struct agent *agent, struct session *session, int link)
{
  detach(link, &agent->guard);
  configure(&session->config, agent->options);
  struct hold hold = {.session = session,
                      .options = agent->options,
                      .link = link,
                      .log = {.function = on_event},
                      .guard = &agent->guard,
                      .began = port_clock_ms()};
  hold.log.context = &hold;
  session->config.asked = on_asked;
  session->config.asked_context = &hold;
  hold_lock(&hold);
}

/* Forks the agent; the guard exists already. Returns NULL, or what failed, with errno set. */
static const char *fork_agent(struct agent *agent, struct session *session)
{
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return "make a pipe";
  (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  agent->link = ends[0];
  agent->pid = fork();
  if (agent->pid == 0) become_agent(agent, session, ends[1]);
  int error = errno;
  (void)close(ends[1]);
  guard_enter_run(&agent->guard);
  errno = error;
  return agent->pid < 0 ? "start a process" : NULL;
}

/*
 * The guard, and by it the command's process, is made before the link. Otherwise that process would
 * inherit the agent's end of the link, and nobody would notice when the agent is gone.
 */
const char *agent_start(struct agent *agent, struct session *session,
                        const struct agent_options *options, const struct child *child)
{
  struct guard_orders orders = guard_orders(options);
  agent->options = options;
  const char *failed = guard_start(&agent->guard, &orders, child);
  if (failed != NULL) return failed;
  failed = fork_agent(agent, session);
  if (failed == NULL) return NULL;
  int error = errno;
  guard_dismiss(&agent->guard);
  errno = error;
  return failed;
}

/* In `fairlock run` */

struct agent_message agent_news(struct agent *agent)
{
  struct agent_message message;
  if (!read_all(agent->link, &message, sizeof message)) {
    memset(&message, 0, sizeof message);
    message.news = AGENT_GONE;
  }
  message.text[sizeof message.text - 1] = 0;
  message.address[sizeof message.address - 1] = 0;
  message.holder[sizeof message.holder - 1] = 0;
  return message;
}

void agent_order(struct agent *agent, enum agent_order order)
{
  struct order what = {.kind = (int32_t)order};
  /* if the agent is gone, agent_news() says so */
  ssize_t written = write(agent->link, &what, sizeof what);
  (void)written;
}

void agent_guard(struct agent *agent)
{
  guard_begin(&agent->guard);
  agent_order(agent, AGENT_GUARD);
}

bool agent_may_begin(const struct agent *agent)
{
  struct guard_orders orders = guard_orders(agent->options);
  return guard_has_time(&agent->guard, &orders);
}

bool agent_let_it_end(const struct agent *agent)
{
  return guard_ran_out(&agent->guard, spare_ms(agent->options));
}

bool agent_is_stopped(const struct agent *agent)
{
  siginfo_t info = {0};
  return agent->pid > 0 &&
         waitid(P_PID, (id_t)agent->pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

void agent_kill(struct agent *agent)
{
  if (agent->pid > 0) (void)kill(agent->pid, SIGKILL);
}
