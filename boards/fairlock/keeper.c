/*
 * The keeper: the process that holds the lock, in a separate session, out of reach of the
 * terminal.
 *
 * It is not the process that runs the command, because each has to survive the other. If that
 * process is stopped, by the terminal or otherwise, the keeper goes on renewing the lease; if it is
 * killed, the keeper has the command ended and then releases the lock. If the keeper is killed, its
 * end of the link closes, and the other process has the command ended. A third one, the guard, is
 * the parent of the command and ends it; also when neither of them can ask for that, because it is
 * stopped or both are killed.
 *
 * Two threads. One services the client and wakes the other after each turn; the other waits for
 * that, for orders and for time, and looks at the state of the lock. The command is ended so that
 * it is dead before anybody else can hold the lock: SIGTERM at (end of the hold, as the client
 * knows it - kill-after - reserve), SIGKILL at (that end - reserve). The lock is reported as
 * acquired only when at least that much time is left.
 *
 * What it must never do: release the lock while the command may still run, or outlive its purpose.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "keeper.h"

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

#define MOST_RESERVE_MS 500U

/*
 * How long a wait without end goes on while no server serves us: where servers move, one that does
 * may be found only after a fail-over. And how long a release at least may take.
 */
#define PATIENCE_MS      60000U
#define LEAST_OFFLINE_MS 10000U
#define LEAST_CONNECT_MS 1000U
#define RETRY_MS         250
#define AWAY_MS          3000U /* what takes no longer is not worth a line */

/* While the command is ended: how often to look, and how long what is killed may take to be gone. */
#define CLEARING_STEP_MS 50U
#define CLEARING_MS      5000U

enum order_kind { ORDER_ACQUIRE = 1, ORDER_GUARD, ORDER_HURRY, ORDER_CANCEL, ORDER_RELEASE };

struct order {
  int32_t kind;
};

enum phase {
  WAITING,  /* for the lock, and for enough time on it       */
  KEEPING,  /* the lock is held                               */
  ENDING,   /* lost: SIGTERM was sent, SIGKILL will be        */
  ENDED,    /* lost, and nothing more to do about it          */
  CLEARING, /* fairlock was killed: its command is being ended, then the lock is released */
  LASTING,  /* the same, when it has been: the lock is kept until at_least_ms are over */
  RELEASING
};

struct hold {
  struct session *session;
  const struct keeper_options *options;
  struct fairlock handle;
  int link; /* -1: the other end is gone */
  int wake[2];
  int events; /* where they are written; -1: nowhere */
  struct fairlock_log log;
  struct guard *guard;
  uint32_t began;      /* when the wait did */
  atomic_int refused;  /* why no server served us so far; FAIRLOCK_OK: none has said so */
  atomic_bool settled; /* whether one serves us: the thread that sets this has found out */
  int found[2];        /* a pipe; its second end is closed when one does */
  int told;            /* the last reason for having to wait that was told */
  uint32_t reached_at; /* when the server was, last: known until it cannot be */
  bool cancelled;      /* the wait is to end */
  enum phase phase;
  atomic_bool asked; /* for the lock, by an operator */
  bool guards;       /* the command has begun, and may have ended */
  bool hurried;      /* at_least_ms does not count */
  uint32_t acquired_at;
  uint32_t until;        /* ENDING: when to send SIGKILL; CLEARING, RELEASING: when to give up */
  pthread_mutex_t start; /* the other thread waits for it before it services the client */
  int released;          /* RELEASING: what came of it; FAIRLOCK_PENDING: nothing yet */
};

/* Talking */

static void count(const struct hold *hold)
{
  if (hold->options->metrics.path == NULL) return;
  struct fairlock_counters counters = fairlock_read_counters(&hold->session->client);
  metrics_count(&hold->options->metrics, &counters);
}

static void tell(struct hold *hold, const struct keeper_message *message)
{
  count(hold);
  if (hold->link < 0) return;
  /* it fits; if nobody reads, the next look notices that */
  ssize_t written = write(hold->link, message, sizeof *message);
  (void)written;
}

static void tell_status(struct hold *hold, enum keeper_news news, int status)
{
  struct keeper_message message = {.news = (int32_t)news, .status = status};
  session_error(hold->session, status, message.error);
  session_address(hold->session, status, message.address);
  tell(hold, &message);
}

/*
 * What may come any number of times is left out while fairlock, stopped, reads nothing: the link
 * would fill up, and we would wait in tell() instead of renewing. A system calls a socket writable
 * only while much of its buffer is free, so there is always room for what has to be told.
 */
static void tell_in_passing(struct hold *hold, enum keeper_news news, int status)
{
  struct pollfd link = {.fd = hold->link, .events = POLLOUT};
  if (poll(&link, 1, 0) > 0 && (link.revents & POLLOUT) != 0) tell_status(hold, news, status);
}

/* Called inside the client, by either thread. */
static void on_event(enum fairlock_log_event kind, int status, const char *text, void *context)
{
  struct hold *hold = context;
  struct keeper_event event = {.at_ms = time_of_day_ms(), .event = (int32_t)kind, .status = status};
  bool failed = status == FAIRLOCK_UNREACHABLE || status == FAIRLOCK_UNTRUSTED;
  session_current(hold->session, event.address);
  /* what a log is told of these are only the status's words */
  bool ended = kind == FAIRLOCK_LOG_NOT_CONNECTED || kind == FAIRLOCK_LOG_DISCONNECTED;
  if (ended && failed) session_current_reason(hold->session, event.text);
  else if (ended && status == FAIRLOCK_DENIED) session_no_password(hold->session, event.text);
  else if (!ended && text != NULL) snprintf(event.text, sizeof event.text, "%s", text);
  _Static_assert(sizeof event <= _POSIX_PIPE_BUF, "a pipe takes it whole, or not at all");
  ssize_t written = write(hold->events, &event, sizeof event);
  (void)written;
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

static uint32_t reserve_ms(const struct keeper_options *options)
{
  uint32_t tenth = options->lease_ms / 10;
  return tenth < MOST_RESERVE_MS ? tenth : MOST_RESERVE_MS;
}

static uint32_t grace_ms(const struct keeper_options *options)
{
  return options->on_lost == ON_LOST_TERM ? options->kill_after_ms : 0;
}

/* How long the hold must still last when the command is dead. */
static uint32_t spare_ms(const struct keeper_options *options)
{
  return options->on_lost == ON_LOST_IGNORE ? 0 : reserve_ms(options);
}

/* How long the hold must still last when the ending of the command begins. */
static uint32_t needed_ms(const struct keeper_options *options)
{
  return grace_ms(options) + spare_ms(options);
}

static struct guard_orders guard_orders(const struct keeper_options *options)
{
  return (struct guard_orders){.term = options->on_lost == ON_LOST_TERM,
                               .kill = options->on_lost != ON_LOST_IGNORE,
                               .grace_ms = grace_ms(options),
                               .slack_ms = reserve_ms(options) / 2,
                               .end_ms =
                                   options->on_lost == ON_LOST_KILL ? 0 : options->kill_after_ms};
}

/* The hold is over, or will be soon; left: how long it still lasts. */
static void begin_ending(struct hold *hold, uint32_t left)
{
  const struct keeper_options *options = hold->options;
  int why = fairlock_last_error(&hold->session->client);
  if (why == FAIRLOCK_OK) why = FAIRLOCK_UNREACHABLE;
  tell_status(hold, KEEPER_LOST, left > 0 ? why : FAIRLOCK_LOST);
  hold->phase = ENDED;
  if (options->on_lost == ON_LOST_TERM) {
    uint32_t reserve = reserve_ms(options);
    uint32_t grace = left == 0 ? options->kill_after_ms : left > reserve ? left - reserve : 0;
    hold->phase = ENDING;
    hold->until = port_clock_ms() + grace;
    guard_ending(hold->guard, hold->until);
    guard_signal(hold->guard, SIGTERM);
    return;
  }
  if (options->on_lost == ON_LOST_KILL) {
    guard_ending(hold->guard, port_clock_ms()); /* it goes on until nothing is left */
    guard_signal(hold->guard, SIGKILL);
  } else {
    guard_rest(hold->guard);
  }
}

/* Called inside the client, by either thread: the other one is to look. */
static void on_asked(struct fairlock *handle, void *context)
{
  struct hold *hold = context;
  (void)handle;
  atomic_store(&hold->asked, true);
  ssize_t written = write(hold->wake[1], "", 1); /* full: it will wake anyway */
  (void)written;
}

/* Passes that on, once the command has begun. Whether it ends is its own affair. */
static void pass_on_asked(struct hold *hold)
{
  if (!hold->guards || !atomic_exchange(&hold->asked, false)) return;
  tell_in_passing(hold, KEEPER_ASKED, FAIRLOCK_OK);
  if (hold->options->on_ask != 0) guard_signal_group(hold->guard, hold->options->on_ask);
}

/* The state of the lock */

/* The other thread is inside the client; the system closes the connection. */
static void finish(struct hold *hold, enum keeper_news news, int status)
{
  tell_status(hold, news, status);
  _exit(0);
}

/* Before anything was asked of the server. error: a number of the system's. */
static void give_up(struct hold *hold, const char *what, int error)
{
  struct keeper_message message = {.news = KEEPER_UNABLE, .status = error};
  snprintf(message.error, sizeof message.error, "%s", what);
  tell(hold, &message);
  _exit(1);
}

static void begin_release(struct hold *hold)
{
  hold->released = fairlock_start_release(&hold->handle);
  bool late = hold->phase == ENDING || hold->phase == ENDED || hold->released != FAIRLOCK_PENDING;
  hold->until = port_clock_ms() + (late ? KEEPER_LATE_RELEASE_MS : KEEPER_RELEASE_MS);
  hold->phase = RELEASING;
  guard_rest(hold->guard);
}

/*
 * Ends the keeper when the release has an outcome. Of a hold that was lost, something may be left on
 * the server: it is told before we end, if it can be.
 */
static void look_releasing(struct hold *hold, bool due)
{
  if (hold->released == FAIRLOCK_PENDING) hold->released = fairlock_result(&hold->handle);
  if (hold->released == FAIRLOCK_PENDING && due) hold->released = FAIRLOCK_UNKNOWN;
  if (hold->released == FAIRLOCK_PENDING) return;
  bool lost = hold->released == FAIRLOCK_LOST;
  if (lost && !due && fairlock_start_deinit(&hold->handle) == FAIRLOCK_PENDING) return;
  finish(hold, KEEPER_RELEASED, hold->released);
}

/*
 * Writes down for the guard until when the command may run. The caller has read the clocks before,
 * so an error makes it early.
 */
static void note_deadline(struct hold *hold, uint32_t now, uint32_t left)
{
  guard_deadline(hold->guard, now + left - spare_ms(hold->options));
}

/* Whether the library goes on asking a server that does not serve us for this reason. */
static bool asks_again(int why)
{
  return why == FAIRLOCK_UNAVAILABLE || why == FAIRLOCK_READONLY || why == FAIRLOCK_OOM ||
         why == FAIRLOCK_MISCONF || why == FAIRLOCK_UNSYNCED || why == FAIRLOCK_DENIED ||
         why == FAIRLOCK_UNTRUSTED || why == FAIRLOCK_PROTOCOL;
}

/* Reports once why a server does not serve us. One that cannot be reached may soon be back. */
static void tell_why(struct hold *hold)
{
  int why = fairlock_last_error(&hold->session->client);
  uint32_t now = port_clock_ms();
  if (why != FAIRLOCK_UNREACHABLE) hold->reached_at = now;
  bool away = now - hold->reached_at >= AWAY_MS;
  if ((!asks_again(why) && !away) || hold->cancelled) return;
  if (why == hold->told || hold->options->wait_ms == 0) return;
  hold->told = why;
  tell_in_passing(hold, KEEPER_RETRYING, why);
}

/* What is left of the wait; not 0, which would mean not to wait. */
static uint32_t rest_of_wait(const struct hold *hold)
{
  uint32_t wait = hold->options->wait_ms;
  uint32_t waited = port_clock_ms() - hold->began;
  if (wait == FAIRLOCK_FOREVER || wait == 0) return wait;
  return waited < wait ? wait - waited : 1;
}

static void begin_wait(struct hold *hold)
{
  hold->reached_at = port_clock_ms();
  int status = fairlock_start_acquire(&hold->handle, rest_of_wait(hold), FAIRLOCK_RENEW);
  if (status != FAIRLOCK_PENDING) finish(hold, KEEPER_FAILED, status);
}

/*
 * The hold has ended before the command began, as when we were stopped while the lock was handed to
 * us. Nobody has used it, so the wait goes on.
 */
static void wait_again(struct hold *hold)
{
  (void)fairlock_start_release(&hold->handle);
  atomic_store(&hold->asked, false); /* which meant that hold */
  begin_wait(hold);
}

static void look_waiting(struct hold *hold)
{
  uint32_t now = port_clock_ms();
  int status = fairlock_result(&hold->handle);
  if (status == FAIRLOCK_PENDING) {
    tell_why(hold);
    return;
  }
  if (status != FAIRLOCK_OK) finish(hold, KEEPER_FAILED, status);
  if (hold->link < 0 || hold->cancelled) {
    begin_release(hold);
    return;
  }
  uint32_t left = fairlock_remaining_ms(&hold->handle);
  if (left == 0) {
    wait_again(hold);
    return;
  }
  /* a handover whose confirmation, for a full lease, is under way */
  if (left <= needed_ms(hold->options)) return;
  struct keeper_message message = {.news = KEEPER_ACQUIRED, .token = fairlock_token(&hold->handle)};
  fairlock_id(&hold->handle, message.owner);
  hold->phase = KEEPING;
  hold->acquired_at = now;
  note_deadline(hold, now, left);
  tell(hold, &message);
}

/* Whoever sends the command one of these when somebody asks for the lock wants it soon. */
static bool asking_hurries(const struct keeper_options *options)
{
  return options->on_ask == SIGINT || options->on_ask == SIGTERM || options->on_ask == SIGQUIT ||
         options->on_ask == SIGHUP || options->on_ask == SIGKILL;
}

/* The command is over, and so is fairlock. What --at-least has promised to other machines is not. */
static void look_lasting(struct hold *hold, uint32_t left)
{
  const struct keeper_options *options = hold->options;
  bool asked = atomic_exchange(&hold->asked, false) && asking_hurries(options);
  bool lasts = hold->guards && !hold->hurried && !asked &&
               port_clock_ms() - hold->acquired_at < options->at_least_ms;
  hold->phase = LASTING;
  hold->until = hold->acquired_at + options->at_least_ms;
  guard_rest(hold->guard);
  if (!lasts || left == 0) begin_release(hold);
}

/*
 * Ends the command itself, if the hold does not last until the guard has. Without the guard nobody
 * can find what has left the command's group, so the lease ends the hold.
 */
static void help_to_clear(struct hold *hold, uint32_t left)
{
  guard_rouse(hold->guard);
  if (hold->guard->pid > 0) {
    if (left <= spare_ms(hold->options)) guard_signal(hold->guard, SIGKILL);
    return;
  }
  (void)guard_kill_group(hold->guard);
  _exit(1);
}

static void look_clearing(struct hold *hold, uint32_t left, bool due)
{
  if (guard_is_empty(hold->guard)) {
    look_lasting(hold, left);
    return;
  }
  if (due) _exit(1); /* it cannot be ended: the lease ends the hold */
  note_deadline(hold, port_clock_ms(), left);
  help_to_clear(hold, left);
}

static void look(struct hold *hold)
{
  uint32_t now = port_clock_ms();
  uint32_t left = fairlock_remaining_ms(&hold->handle);
  bool due = (int32_t)(now - hold->until) >= 0;
  switch (hold->phase) {
  case WAITING:
    look_waiting(hold);
    break;
  case KEEPING:
    if (left > needed_ms(hold->options)) note_deadline(hold, now, left);
    else begin_ending(hold, left);
    if (hold->phase == KEEPING) pass_on_asked(hold);
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
    look_releasing(hold, due);
    break;
  default:
    break;
  }
}

/*
 * Milliseconds until a look is due even if nothing happens. Never long, because the machine may
 * have slept.
 */
static int next_look_ms(struct hold *hold)
{
  uint32_t wait = PORT_WAIT_MAX_MS;
  uint32_t other = wait;
  uint32_t left = fairlock_remaining_ms(&hold->handle);
  uint32_t now = port_clock_ms();
  if (hold->phase == KEEPING)
    other = left > needed_ms(hold->options) ? left - needed_ms(hold->options) : 0;
  if (hold->phase == WAITING && left > 0) other = left;
  if (hold->phase == CLEARING) other = CLEARING_STEP_MS;
  if (hold->phase == ENDING || hold->phase == RELEASING || hold->phase == LASTING) {
    other = (int32_t)(hold->until - now) > 0 ? hold->until - now : 0;
  }
  return (int)(other < wait ? other : wait);
}

/* Orders */

/* The other end is gone: has the command ended, then releases the lock. */
static void abandoned(struct hold *hold)
{
  close(hold->link);
  hold->link = -1;
  if (hold->phase == WAITING) {
    fairlock_cancel(&hold->handle);
  } else if (hold->phase != RELEASING) {
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
  case ORDER_GUARD:
    hold->guards = true;
    if (hold->phase == ENDING) guard_signal(hold->guard, SIGTERM);
    if (hold->phase == ENDED && hold->options->on_lost != ON_LOST_IGNORE)
      guard_signal(hold->guard, SIGKILL);
    break;
  case ORDER_HURRY:
    hold->hurried = true;
    break;
  case ORDER_CANCEL:
    hold->cancelled = true;
    fairlock_cancel(&hold->handle);
    break;
  case ORDER_RELEASE:
    begin_release(hold);
    break;
  default:
    break;
  }
}

/* Holds that we run under */

struct search {
  const char *owners;
  bool found;
};

static bool is_listed(const char *list, const char *id, size_t size)
{
  while (*list != 0) {
    size_t length = strcspn(list, " ");
    if (length == size && memcmp(list, id, size) == 0) return true;
    list += length;
    list += strspn(list, " ");
  }
  return false;
}

static void search_holder(const struct fairlock_report *report, void *context)
{
  struct search *search = context;
  if (report->place != 0) return;
  search->found = report->id != NULL && report->id_size > 0 &&
                  is_listed(search->owners, report->id, report->id_size);
}

/*
 * True if the lock is held by a `fairlock run` that waits for our own end: we would never get it.
 * The same name on another server, or in another database, has another holder; no two holds
 * anywhere have the same id. If the server does not tell who holds, asking for the lock will show
 * why.
 */
static bool is_nested(struct hold *hold)
{
  const struct keeper_options *options = hold->options;
  struct search search = {.owners = options->owners};
  if (options->owners == NULL || options->wait_ms == 0) return false;
  int status = fairlock_inspect(&hold->session->client, options->name, strlen(options->name),
                                search_holder, &search);
  return status == FAIRLOCK_OK && search.found;
}

/* Finding a server */

/* How long to go on without a server that serves us. */
static uint32_t patience_ms(const struct keeper_options *options)
{
  return options->wait_ms == FAIRLOCK_FOREVER ? PATIENCE_MS : options->wait_ms;
}

/* Connects; if it may wait, tries until a server serves us. */
static int connect_to_any(struct hold *hold)
{
  uint32_t patience = patience_ms(hold->options);
  struct pollfd link = {.fd = hold->link, .events = POLLIN};
  for (bool told = false;; told = true) {
    int status = fairlock_connect(&hold->session->client);
    atomic_store(&hold->refused, status);
    if (!session_may_pass(hold->session, status) || port_clock_ms() - hold->began >= patience)
      return status;
    if (!told) tell_status(hold, KEEPER_RETRYING, status);
    if (poll(&link, 1, RETRY_MS) > 0) _exit(0); /* the other end is gone: there are no orders yet */
  }
}

/*
 * A thread: one attempt to connect may take longer than the whole wait, so it is cut short here.
 * Nothing can be left behind, as nothing was asked for.
 */
static void *limit_search(void *context)
{
  struct hold *hold = context;
  uint32_t patience = patience_ms(hold->options);
  /* an attempt that ends together with the wait may still say why it has failed */
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
  finish(hold, KEEPER_FAILED, why != FAIRLOCK_OK ? why : FAIRLOCK_UNREACHABLE);
  return NULL;
}

/* Finds a server, and asks it whether we would wait for ourselves. Returns, or ends the keeper. */
static void find_server(struct hold *hold)
{
  const struct keeper_options *options = hold->options;
  pthread_t limiter;
  bool limited = options->wait_ms > 0 && pipe(hold->found) == 0 &&
                 pthread_create(&limiter, NULL, limit_search, hold) == 0;
  int status = connect_to_any(hold);
  bool nested = status == FAIRLOCK_OK && is_nested(hold);
  while (atomic_exchange(&hold->settled, true))
    (void)poll(NULL, 0, -1); /* time is up: the other thread ends us */
  if (nested) finish(hold, KEEPER_NESTED, FAIRLOCK_BUSY);
  if (status != FAIRLOCK_OK) finish(hold, KEEPER_FAILED, status);
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
    ssize_t written = write(hold->wake[1], "", 1); /* full: the other thread will wake anyway */
    (void)written;
  }
  return NULL;
}

static void watch_over(struct hold *hold)
{
  for (;;) {
    look(hold);
    count(hold);
    struct pollfd sources[] = {{.fd = hold->wake[0], .events = POLLIN},
                               {.fd = hold->link, .events = POLLIN},
                               {.fd = hold->guard->keeper[0], .events = POLLIN}};
    if (poll(sources, 3, next_look_ms(hold)) <= 0) continue;
    char turns[64];
    if (sources[2].revents != 0 && !guard_hear(&hold->guard->keeper[0])) hold->guard->pid = 0;
    if (sources[0].revents != 0 && read(hold->wake[0], turns, sizeof turns) < 0) continue;
    if (sources[1].revents != 0) obey(hold);
  }
}

/*
 * Shares only the link, the guard's and the pipe of events with the process that started us: a
 * pipe that somebody reads from must not stay open because of the keeper.
 */
static void detach(int link, int events, struct guard *guard)
{
  int kept[] = {link, events, guard->keeper[0]};
  sigset_t all;
  sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, NULL);
  (void)setsid();
  guard_enter_keeper(guard);
  system_let_go(kept, sizeof kept / sizeof kept[0]);
}

static bool make_wake(struct hold *hold)
{
  if (pipe(hold->wake) != 0) return false;
  return fcntl(hold->wake[0], F_SETFL, O_NONBLOCK) == 0 &&
         fcntl(hold->wake[1], F_SETFL, O_NONBLOCK) == 0;
}

/* All that the system can refuse, before anything is asked of the server. */
static void prepare(struct hold *hold)
{
  pthread_t thread;
  if (!make_wake(hold)) give_up(hold, "make a pipe", errno);
  int error = pthread_mutex_init(&hold->start, NULL);
  if (error == 0) error = pthread_mutex_lock(&hold->start);
  if (error == 0) error = pthread_create(&thread, NULL, service_client, hold);
  if (error != 0) give_up(hold, "start a thread", error);
}

static void keep(struct hold *hold)
{
  struct session *session = hold->session;
  const struct keeper_options *options = hold->options;
  struct order order;
  int status = session_open(session);
  if (status != FAIRLOCK_OK) finish(hold, KEEPER_FAILED, status);
  if (hold->events >= 0) fairlock_keep_log(&session->client, &hold->log);
  prepare(hold);
  find_server(hold);
  status = fairlock_init(&hold->handle, &session->client, options->name);
  if (status != FAIRLOCK_OK) finish(hold, KEEPER_FAILED, status);
  tell_status(hold, KEEPER_CONNECTED, FAIRLOCK_OK);
  if (!read_all(hold->link, &order, sizeof order)) _exit(0);
  begin_wait(hold);
  (void)pthread_mutex_unlock(&hold->start);
  watch_over(hold);
}

/* The client's times that follow from the lease: a short one leaves no time to wait long. */
static void configure(struct fairlock_config *config, const struct keeper_options *options)
{
  uint32_t response_ms = options->lease_ms / 6;
  uint32_t connect_ms = options->wait_ms == 0 ? 5000 : options->wait_ms;
  uint32_t offline_ms = patience_ms(options);
  config->lease_ms = options->lease_ms;
  config->response_ms = response_ms < 500 ? 500 : response_ms > 2000 ? 2000 : response_ms;
  config->offline_ms = offline_ms < LEAST_OFFLINE_MS ? LEAST_OFFLINE_MS : offline_ms;
  config->connect_ms = connect_ms < LEAST_CONNECT_MS ? LEAST_CONNECT_MS
                       : connect_ms > 5000           ? 5000
                                                     : connect_ms;
}

/* Makes the pipe of events, if there is to be one. Returns 0, or -1 with errno set. */
static int make_events(bool verbose, int ends[2])
{
  ends[0] = -1;
  ends[1] = -1;
  if (!verbose) return 0;
  if (pipe(ends) != 0) return -1;
  for (int i = 0; i < 2; i++) {
    (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[i], F_SETFL, O_NONBLOCK);
  }
  return 0;
}

static void become_keeper(struct keeper *keeper, struct session *session, int link, int events)
{
  detach(link, events, &keeper->guard);
  configure(&session->config, keeper->options);
  struct hold hold = {.session = session,
                      .options = keeper->options,
                      .link = link,
                      .events = events,
                      .log = {.function = on_event},
                      .guard = &keeper->guard,
                      .began = port_clock_ms()};
  hold.log.context = &hold;
  session->config.asked = on_asked;
  session->config.asked_context = &hold;
  keep(&hold);
}

/* Makes the keeper, when there is a guard. Returns NULL, or what failed, with errno set. */
static const char *fork_keeper(struct keeper *keeper, struct session *session)
{
  int ends[2];
  int events[2];
  if (make_events(keeper->options->verbose, events) != 0 ||
      socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    return "make a pipe";
  (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  keeper->link = ends[0];
  keeper->events = events[0];
  keeper->pid = fork();
  if (keeper->pid == 0) become_keeper(keeper, session, ends[1], events[1]);
  int error = errno;
  (void)close(ends[1]);
  if (events[1] >= 0) (void)close(events[1]);
  guard_enter_run(&keeper->guard);
  errno = error;
  return keeper->pid < 0 ? "start a process" : NULL;
}

/*
 * The guard comes first: the command's process, which waits until the lock is held, must not have
 * the keeper's end of the link, or nobody would notice that the keeper is gone.
 */
const char *keeper_start(struct keeper *keeper, struct session *session,
                         const struct keeper_options *options, const struct child *child)
{
  struct guard_orders orders = guard_orders(options);
  keeper->options = options;
  const char *failed = guard_start(&keeper->guard, &orders, child);
  if (failed != NULL) return failed;
  failed = fork_keeper(keeper, session);
  if (failed == NULL) return NULL;
  int error = errno;
  guard_dismiss(&keeper->guard);
  errno = error;
  return failed;
}

/* The other side */

struct keeper_message keeper_news(struct keeper *keeper)
{
  struct keeper_message message;
  if (!read_all(keeper->link, &message, sizeof message)) {
    memset(&message, 0, sizeof message);
    message.news = KEEPER_GONE;
  }
  message.error[sizeof message.error - 1] = 0;
  message.owner[sizeof message.owner - 1] = 0;
  return message;
}

bool keeper_event(struct keeper *keeper, struct keeper_event *event)
{
  if (keeper->events < 0) return false;
  ssize_t got = read(keeper->events, event, sizeof *event);
  if (got == (ssize_t)sizeof *event) {
    event->address[sizeof event->address - 1] = 0;
    event->text[sizeof event->text - 1] = 0;
    return true;
  }
  if (got >= 0 || (errno != EAGAIN && errno != EINTR)) {
    (void)close(keeper->events);
    keeper->events = -1;
  }
  return false;
}

static void give_order(struct keeper *keeper, enum order_kind kind)
{
  struct order what = {.kind = (int32_t)kind};
  /* if the keeper is gone, its news will say so */
  ssize_t written = write(keeper->link, &what, sizeof what);
  (void)written;
}

void keeper_acquire(struct keeper *keeper)
{
  give_order(keeper, ORDER_ACQUIRE);
}

void keeper_guard(struct keeper *keeper)
{
  guard_begin(&keeper->guard);
  give_order(keeper, ORDER_GUARD);
}

void keeper_hurry(struct keeper *keeper)
{
  give_order(keeper, ORDER_HURRY);
}

void keeper_unguard(struct keeper *keeper)
{
  guard_leave(&keeper->guard);
}

bool keeper_may_begin(const struct keeper *keeper)
{
  struct guard_orders orders = guard_orders(keeper->options);
  return guard_has_time(&keeper->guard, &orders);
}

bool keeper_let_it_end(const struct keeper *keeper)
{
  return guard_ran_out(&keeper->guard, spare_ms(keeper->options));
}

bool keeper_is_stopped(const struct keeper *keeper)
{
  siginfo_t info = {0};
  return waitid(P_PID, (id_t)keeper->pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

bool keeper_failed_to_end(const struct keeper *keeper)
{
  return guard_acted(&keeper->guard);
}

void keeper_cancel(struct keeper *keeper)
{
  give_order(keeper, ORDER_CANCEL);
}

void keeper_release(struct keeper *keeper)
{
  give_order(keeper, ORDER_RELEASE);
}

void keeper_kill(struct keeper *keeper)
{
  (void)kill(keeper->pid, SIGKILL);
}
