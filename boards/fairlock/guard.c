/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard: the parent of the command. On systems that can do it, a process whose parent has ended
 * becomes the guard's child, in whatever process group or session it is. So every process that the
 * command has started descends from the guard and can be found, and when the guard has no child
 * left, all of them have ended.
 *
 * Normally the agent ends the command in time when the lock is lost. But the agent, `fairlock
 * run` or both can be stopped or killed, and then the lease ends while the command runs. So the
 * agent writes down, after each renewal, the time at which the command must be dead. The guard
 * ends the command a little after that time if the agent has not done so; at once if both other
 * processes are gone; and when one of them asks for it.
 *
 * The three processes share this state in memory and send no messages, for two reasons. A process
 * that was stopped for an hour has to find what is true now, not what was true then. And nobody may
 * have to wait because another one does not read. A byte in a pipe only wakes another process when
 * the state has changed. A renewal does not wake the guard, which looks again at the old deadline.
 *
 * The guard is in the session of `fairlock run`, so that the command can use the terminal. It has a
 * process group of its own, and blocks all signals.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "port.h"
#include "signals.h"
#include "system.h"

#define DEATH_MS      5000U /* after SIGKILL, a process that can be killed is gone by then     */
#define DEATH_STEP_MS 5
#define KILL_STEP_MS  20   /* repeats SIGKILL, for processes that were forked meanwhile         */
#define GROUP_STEP_MS 50   /* looks whether a group is empty whose processes are not our children */
#define KILLING       2    /* killing all takes at most so many times as long as sending SIGTERM */
#define STUBBORN_MS   1000 /* repeats SIGKILL for processes that it does not end                */

enum state {
  RESTING, /* no deadline                                */
  HELD,    /* SIGTERM is due at kill_at - grace          */
  ENDING   /* the agent has sent SIGTERM                */
};

struct guard_shared {
  _Atomic int error;    /* the errno with which the guard could not start; 0: none */
  _Atomic bool no_pipe; /* that error came from making a pipe                      */
  _Atomic int command;  /* its process id; stays after the process was reaped      */
  _Atomic int group;    /* its process group; 0: the system may reuse that number  */
  _Atomic int stop;
  _Atomic int status;
  _Atomic bool ended; /* the command has ended, and status is its status */
  _Atomic bool empty;
  _Atomic bool begun;
  _Atomic bool termed; /* SIGTERM was sent to all */
  _Atomic bool ending_all;
  _Atomic bool overdue;
  _Atomic int state;
  _Atomic uint32_t kill_at;
  _Atomic bool acted;
};

/*
 * What the guard itself has done about the command. It begins with WATCHING. With the second or
 * the last it sends SIGTERM, and then repeats SIGKILL from kill_at on.
 */
enum step {
  WATCHING, /* nothing: kill_at is the deadline, which a renewal postpones                   */
  TERMED,   /* SIGTERM, because of the deadline: kill_at may come nearer, and never later    */
  NOTED,    /* the deadline has passed, and the orders say to end nothing                    */
  ORDERED   /* it ends all, because of guard_end_all() or because it is alone: as TERMED      */
};

/* What the guard alone knows. */
struct watch {
  struct guard *guard;
  const struct guard_orders *orders;
  int children; /* becomes readable when a child has stopped or ended */
  bool adopts;
  enum step step;
  uint32_t kill_at; /* when SIGKILL is due */
};

/* What the other processes tell the guard */

static void wake(int end)
{
  ssize_t written =
      end < 0 ? 0 : write(end, "", 1); /* if the pipe is full, the reader wakes up anyway */
  (void)written;
}

static void wake_guard(const struct guard *guard)
{
  wake(guard->run[0]);
  wake(guard->agent[0]);
}

static void set_state(struct guard *guard, enum state state)
{
  if (atomic_exchange(&guard->shared->state, (int)state) != (int)state) wake_guard(guard);
}

void guard_deadline(struct guard *guard, uint32_t kill_at)
{
  atomic_store(&guard->shared->kill_at, kill_at);
  set_state(guard, HELD);
}

void guard_ending(struct guard *guard, uint32_t kill_at)
{
  atomic_store(&guard->shared->kill_at, kill_at);
  set_state(guard, ENDING);
}

void guard_rest(struct guard *guard)
{
  set_state(guard, RESTING);
}

void guard_begin(struct guard *guard)
{
  atomic_store(&guard->shared->begun, true);
  wake_guard(guard);
}

void guard_leave(struct guard *guard)
{
  atomic_store(&guard->shared->begun, false);
  wake_guard(guard);
}

void guard_end_all(struct guard *guard)
{
  if (!atomic_exchange(&guard->shared->ending_all, true)) wake_guard(guard);
}

void guard_overdue(struct guard *guard)
{
  atomic_store(&guard->shared->overdue, true);
  guard_end_all(guard);
}

bool guard_is_overdue(const struct guard *guard)
{
  return atomic_load(&guard->shared->overdue);
}

void guard_rouse(const struct guard *guard)
{
  if (guard->pid > 0) (void)kill(guard->pid, SIGCONT);
}

bool guard_hear(int *end)
{
  char bytes[64];
  if (*end < 0) return false;
  ssize_t got = read(*end, bytes, sizeof bytes);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return true;
  (void)close(*end);
  *end = -1;
  return false;
}

/* What they ask it */

pid_t guard_command(const struct guard *guard)
{
  return (pid_t)atomic_load(&guard->shared->command);
}

int guard_take_stop(struct guard *guard)
{
  return atomic_exchange(&guard->shared->stop, 0);
}

bool guard_has_ended(const struct guard *guard, int *status)
{
  bool ended = atomic_load(&guard->shared->ended);
  *status = atomic_load(&guard->shared->status);
  return ended;
}

bool guard_is_empty(const struct guard *guard)
{
  return atomic_load(&guard->shared->empty) || !atomic_load(&guard->shared->begun);
}

bool guard_acted(const struct guard *guard)
{
  return atomic_load(&guard->shared->acted);
}

/* True if kill_at + later has passed. later is in ms; negative values wrap around, as uint32_t. */
static bool is_past(const struct guard *guard, uint32_t later)
{
  uint32_t due = atomic_load(&guard->shared->kill_at) + later;
  return (int32_t)(port_clock_ms() - due) >= 0;
}

bool guard_has_time(const struct guard *guard, const struct guard_orders *orders)
{
  return atomic_load(&guard->shared->state) == HELD &&
         !is_past(guard, orders->slack_ms - orders->grace_ms);
}

bool guard_ran_out(const struct guard *guard, uint32_t spare_ms)
{
  return atomic_load(&guard->shared->state) == HELD && is_past(guard, spare_ms);
}

/* Signalling */

/* 0: it has none, or nobody knows any more, because the guard is gone. */
static pid_t group_of(const struct guard *guard)
{
  return guard->pid > 0 ? (pid_t)atomic_load(&guard->shared->group) : 0;
}

void guard_forward(const struct guard *guard, int number)
{
  pid_t group = group_of(guard);
  if (group != 0) (void)kill(-group, number);
}

void guard_signal_group(const struct guard *guard, int number)
{
  guard_forward(guard, number);
  if (number != SIGKILL) guard_forward(guard, SIGCONT);
}

/* The system signals a group at once, so no fork escapes. Others are searched for. */
void guard_signal(const struct guard *guard, int number)
{
  pid_t group = group_of(guard);
  if (!atomic_load(&guard->shared->begun)) return;
  if (number == SIGTERM) atomic_store(&guard->shared->termed, true);
  guard_signal_group(guard, number);
  if (guard->pid > 0) (void)system_signal_below(guard->pid, 0, group, NULL, number);
}

uint32_t guard_term(const struct guard *guard)
{
  uint32_t began = port_clock_ms();
  guard_signal(guard, SIGTERM);
  return KILLING * (port_clock_ms() - began);
}

void guard_gone(struct guard *guard, bool prompt)
{
  if (prompt && !guard_is_empty(guard)) guard_forward(guard, SIGKILL);
  guard->pid = 0;
}

bool guard_group_ends(const struct guard *guard)
{
  struct timespec step = {0, DEATH_STEP_MS * 1000000L};
  pid_t group = (pid_t)atomic_load(&guard->shared->group);
  if (group == 0 || guard_is_empty(guard)) return true;
  for (unsigned waited = 0; waited < DEATH_MS; waited += DEATH_STEP_MS) {
    if (!system_group_lives(group)) return true;
    nanosleep(&step, NULL);
  }
  return false;
}

/* The command's process */

/*
 * The command's process. It is forked before the server is asked for anything, so that fork()
 * cannot fail when the lock is held. Until the lock is held it waits at a gate, which is a pipe.
 * The guard is its parent. On Linux, the kernel kills it if the guard is killed.
 */
/* Waits until the holds are written to the gate, and the process may go on. Returns how many. */
static size_t wait_at(int gate, struct grant grants[MOST_LOCKS])
{
  ssize_t got;
  do
    got = read(gate, grants, MOST_LOCKS * sizeof *grants);
  while (got < 0 && errno == EINTR);
  if (got < (ssize_t)sizeof *grants) _exit(EXIT_SYSTEM);
  return (size_t)got / sizeof *grants;
}

static bool put_into_environment(const char *name, const struct grant *grants, size_t count)
{
  char token[24];
  char tokens[MOST_LOCKS * sizeof token];
  const char *outer = getenv("FAIRLOCK_HOLDERS");
  if (outer == NULL) outer = "";
  size_t room = strlen(outer) + 1 + count * (sizeof grants->holder + 1);
  char *holders = malloc(room);
  if (holders == NULL) return false;
  size_t size = (size_t)snprintf(holders, room, "%s", outer);
  size_t written = 0;
  for (size_t i = 0; i < count; i++) {
    snprintf(token, sizeof token, "%llu", (unsigned long long)grants[i].token);
    written += (size_t)snprintf(tokens + written, sizeof tokens - written, "%s%s", i > 0 ? " " : "",
                                token);
    size += (size_t)snprintf(holders + size, room - size, "%s%s", size > 0 ? " " : "",
                             grants[i].holder);
  }
  bool done = setenv("FAIRLOCK_HOLDERS", holders, 1) == 0;
  free(holders);
  snprintf(token, sizeof token, "%llu", (unsigned long long)grants[0].token);
  return done && setenv("FAIRLOCK_NAME", name, 1) == 0 &&
         setenv("FAIRLOCK_HOLDER", grants[0].holder, 1) == 0 &&
         setenv("FAIRLOCK_TOKEN", token, 1) == 0 && setenv("FAIRLOCK_TOKENS", tokens, 1) == 0;
}

static void exec_child(const struct child *child, pid_t parent)
{
  struct grant grants[MOST_LOCKS];
  (void)setpgid(0, 0);
  system_die_with(parent);
  (void)close(child->gate[1]);
  size_t count = wait_at(child->gate[0], grants);
  if (child->arguments == NULL) {
    signals_restore();
    _exit(child->keep(child->context, grants, count));
  }
  if (!put_into_environment(child->name, grants, count)) {
    complain("cannot set the environment of %s: %s", child->arguments[0], strerror(errno));
    _exit(EXIT_SYSTEM);
  }
  signals_restore();
  execvp(child->arguments[0], child->arguments);
  complain("cannot execute %s: %s", child->arguments[0], strerror(errno));
  _exit(EXIT_NO_EXEC);
}

int child_prepare(struct child *child, char *const *arguments, const char *name)
{
  child->arguments = arguments;
  child->name = name;
  if (pipe(child->gate) != 0) return -1;
  for (int i = 0; i < 2; i++)
    (void)fcntl(child->gate[i], F_SETFD, FD_CLOEXEC);
  return 0;
}

/*
 * Forks the command's process, in a new process group; it closes the `count` descriptors in others.
 * After child_go() it executes the arguments, or complains and exits with EXIT_NO_EXEC. Returns its
 * id, or -1 with errno set.
 */
static pid_t child_start(const struct child *child, const int *others, int count)
{
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; i < count; i++)
      (void)close(others[i]);
    exec_child(child, parent);
  }
  if (pid > 0) (void)setpgid(pid, pid); /* the child does it, too: either may come first */
  return pid;
}

void child_go(struct child *child, const struct grant *grants, size_t count)
{
  ssize_t written = write(child->gate[1], grants, count * sizeof *grants);
  (void)written; /* the pipe has room; if the child is gone, the guard says so */
  (void)close(child->gate[1]);
}

/* The guard itself: its children */

static int children[2] = {-1, -1};

static void on_child(int number)
{
  int saved = errno;
  (void)number;
  wake(children[1]);
  errno = saved;
}

/*
 * Reaps the command. From then on the system may give its number to another process group, unless
 * processes of the old group are left. So the number is hidden during that moment.
 */
static void note_end(struct watch *watch, pid_t command)
{
  struct guard_shared *shared = watch->guard->shared;
  int status = 0;
  atomic_store(&shared->group, 0);
  if (waitpid(command, &status, 0) != command) return;
  if (kill(-command, 0) == 0 || errno == EPERM) atomic_store(&shared->group, (int)command);
  atomic_store(&shared->status, status);
  atomic_store(&shared->ended, true);
  wake(watch->guard->run[1]);
}

static void note_stop(struct watch *watch, pid_t child)
{
  siginfo_t info = {0};
  if (waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOHANG) != 0 || info.si_pid == 0) return;
  if (child != guard_command(watch->guard)) return;
  atomic_store(&watch->guard->shared->stop, info.si_status);
  wake(watch->guard->run[1]);
}

static void note_empty(struct watch *watch)
{
  if (atomic_exchange(&watch->guard->shared->empty, true)) return;
  wake(watch->guard->run[1]);
  wake(watch->guard->agent[1]);
}

/*
 * Looks at each child that has ended or was stopped. Returns false if there is no child any more.
 */
static bool look_at_children(struct watch *watch)
{
  for (;;) {
    siginfo_t info = {0};
    if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0)
      return errno != ECHILD;
    if (info.si_pid == 0) return true;
    if (info.si_code == CLD_STOPPED) note_stop(watch, info.si_pid);
    else if (info.si_pid == guard_command(watch->guard)) note_end(watch, info.si_pid);
    else (void)waitpid(info.si_pid, NULL, WNOHANG);
  }
}

static void look_for_empty(struct watch *watch)
{
  struct guard_shared *shared = watch->guard->shared;
  pid_t group = group_of(watch->guard);
  bool children_left = look_at_children(watch);
  if (!atomic_load(&shared->ended)) return;
  bool group_left = group != 0 && system_group_lives(group);
  if (!group_left) atomic_store(&shared->group, 0);
  if (watch->adopts ? !children_left : !group_left) note_empty(watch);
}

/* The guard itself: the deadline */

/* Notes that the deadline has passed and that the guard, not the agent, had to end the command. */
static void note_action(struct watch *watch)
{
  if (watch->step != ORDERED && atomic_load(&watch->guard->shared->state) == HELD)
    atomic_store(&watch->guard->shared->acted, true);
}

/* Sends SIGTERM, unless somebody else has done it. */
static void begin_term(struct watch *watch)
{
  if (!atomic_load(&watch->guard->shared->termed)) watch->kill_at -= guard_term(watch->guard);
}

/* Begins to end all processes, if somebody has asked for that or both other processes are gone. */
static void take_order(struct watch *watch)
{
  const struct guard_orders *orders = watch->orders;
  struct guard *guard = watch->guard;
  bool alone = guard->run[1] < 0 && guard->agent[1] < 0;
  if (watch->step == ORDERED || (!alone && !atomic_load(&guard->shared->ending_all))) return;
  uint32_t now = port_clock_ms();
  bool earlier = watch->step == TERMED && (int32_t)(watch->kill_at - now - orders->end_ms) < 0;
  if (!earlier) watch->kill_at = now + orders->end_ms;
  watch->step = ORDERED;
  wake(guard->run[1]); /* it reports that the command is overdue */
  if (orders->end_ms > 0) begin_term(watch);
}

/* Takes the deadline over. It is slack_ms after the agent's, so that the agent can act first. */
static void follow_deadline(struct watch *watch)
{
  uint32_t deadline = atomic_load(&watch->guard->shared->kill_at) + watch->orders->slack_ms;
  bool nearer = watch->orders->kill && (int32_t)(deadline - watch->kill_at) < 0;
  if (watch->step == WATCHING || nearer) watch->kill_at = deadline;
}

/* Sends SIGKILL to all that is left. Returns the ms after which to repeat it; -1: never. */
static int kill_all(struct watch *watch, int32_t late)
{
  note_action(watch);
  if (!watch->orders->kill && watch->step != ORDERED) {
    watch->step = NOTED;
    return -1;
  }
  guard_signal(watch->guard, SIGKILL);
  return late < (int32_t)DEATH_MS ? KILL_STEP_MS : STUBBORN_MS;
}

/*
 * Does what is due. Returns the ms until something is due again; -1: nothing is. What is due
 * follows from the step that the guard has taken and from whether there is a deadline.
 */
static int look(struct watch *watch)
{
  const struct guard_orders *orders = watch->orders;
  int state = atomic_load(&watch->guard->shared->state);
  if (guard_is_empty(watch->guard)) return -1;
  take_order(watch);
  if (state != RESTING) follow_deadline(watch);
  else if (watch->step != ORDERED) return -1;
  if (watch->step == NOTED) return -1;
  int32_t left = (int32_t)(watch->kill_at - port_clock_ms());
  if (left <= 0) return kill_all(watch, -left);
  bool agent_terms = state == ENDING;
  if (watch->step != WATCHING || !orders->term || agent_terms) return left;
  int32_t until_term = left - (int32_t)orders->grace_ms;
  if (until_term > 0) return until_term;
  note_action(watch);
  watch->step = TERMED;
  begin_term(watch);
  return 0;
}

/* The guard itself */

/* True when `fairlock run` is gone and nothing is left that the guard would have to end. */
static bool is_over(const struct watch *watch)
{
  const struct guard *guard = watch->guard;
  if (guard->run[1] >= 0) return false;
  return atomic_load(&guard->shared->empty) ||
         (atomic_load(&guard->shared->ended) && !atomic_load(&guard->shared->begun));
}

static void stand(struct watch *watch)
{
  struct guard *guard = watch->guard;
  char bytes[64];
  for (;;) {
    look_for_empty(watch);
    int ms = look(watch);
    if (is_over(watch)) _exit(0);
    bool polled =
        !watch->adopts && atomic_load(&guard->shared->ended) && !atomic_load(&guard->shared->empty);
    if (polled && (ms < 0 || ms > GROUP_STEP_MS)) ms = GROUP_STEP_MS;
    int sources[] = {watch->children, guard->run[1], guard->agent[1]};
    bool can_read[3];
    if (!system_wait(sources, can_read, 3, ms)) continue;
    ssize_t got = can_read[0] ? read(watch->children, bytes, sizeof bytes) : 0;
    (void)got;
    if (can_read[1]) (void)guard_hear(&guard->run[1]);
    if (can_read[2]) (void)guard_hear(&guard->agent[1]);
  }
}

static bool make_pair(int ends[2], bool is_pipe)
{
  if ((is_pipe ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) != 0) return false;
  for (int i = 0; i < 2; i++) {
    (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[i], F_SETFL, O_NONBLOCK);
  }
  return true;
}

/* Blocks all signals but SIGCHLD, which writes to a pipe. The command restores its own mask. */
static bool watch_children(void)
{
  struct sigaction action = {.sa_handler = on_child};
  sigset_t others;
  sigemptyset(&action.sa_mask);
  sigfillset(&others);
  sigdelset(&others, SIGCHLD);
  return make_pair(children, true) && sigaction(SIGCHLD, &action, NULL) == 0 &&
         sigprocmask(SIG_SETMASK, &others, NULL) == 0;
}

static void serve(struct guard *guard, const struct guard_orders *orders, const struct child *child)
{
  struct watch watch = {.guard = guard, .orders = orders};
  int ends[] = {guard->run[0], guard->run[1], guard->agent[0], guard->agent[1]};
  guard->pid = getpid();
  (void)setpgid(0, 0);
  watch.adopts = system_adopt();
  bool watches = watch_children();
  pid_t command = watches ? child_start(child, ends, 4) : -1;
  if (command < 0) {
    atomic_store(&guard->shared->no_pipe, !watches);
    atomic_store(&guard->shared->error, errno);
    _exit(1);
  }
  watch.children = children[0];
  guard->run[0] = -1;
  guard->agent[0] = -1;
  atomic_store(&guard->shared->command, (int)command);
  atomic_store(&guard->shared->group, (int)command);
  int kept[] = {children[0], children[1], guard->run[1], guard->agent[1]};
  system_let_go(kept, sizeof kept / sizeof kept[0]);
  wake(guard->run[1]);
  stand(&watch);
}

/* Waits until the guard has made the command's process. Returns an error number, or 0. */
static int await_start(struct guard *guard)
{
  bool can_read = false;
  while (!can_read)
    (void)system_wait(&guard->run[0], &can_read, 1, -1);
  if (guard_hear(&guard->run[0])) return 0;
  int error = atomic_load(&guard->shared->error);
  return error != 0 ? error : ECHILD;
}

const char *guard_start(struct guard *guard, const struct guard_orders *orders,
                        const struct child *child)
{
  guard->shared =
      mmap(NULL, sizeof *guard->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (guard->shared == MAP_FAILED) return "share memory";
  if (!make_pair(guard->run, false) || !make_pair(guard->agent, false)) return "make a pipe";
  guard->pid = fork();
  if (guard->pid == 0) serve(guard, orders, child);
  if (guard->pid < 0) return "start a process";
  pid_t made = guard->pid;
  (void)close(guard->run[1]);
  guard->run[1] = -1;
  (void)close(guard->agent[1]);
  guard->agent[1] = -1;
  int error = await_start(guard);
  if (error == 0) return NULL;
  (void)waitpid(made, NULL, 0);
  errno = error;
  return atomic_load(&guard->shared->no_pipe) ? "make a pipe" : "start a process";
}

void guard_enter_agent(struct guard *guard)
{
  (void)close(guard->run[0]);
  guard->run[0] = -1;
}

void guard_enter_run(struct guard *guard)
{
  (void)close(guard->agent[0]);
  guard->agent[0] = -1;
}

void guard_dismiss(struct guard *guard)
{
  if (guard->pid <= 0) return;
  (void)kill(guard->pid, SIGKILL);
  (void)waitpid(guard->pid, NULL, 0);
  guard->pid = 0;
}
