/*
 * The guard: a child of the keeper, in a separate session, that does nothing but wait.
 *
 * The keeper ends the command in time, and `fairlock run` does if the keeper dies. But either or
 * both of them can be stopped or killed, and then the lease ends while the command runs. The guard
 * knows what they know: the time at which the command must be dead, which the keeper writes down
 * after each renewal, and the command's process group. If the keeper has not ended the command in
 * time, the guard ends it a little later; if both of them are gone, at once.
 *
 * What they know is in memory that all of them share, not in messages: a process that was stopped
 * for an hour must find what is true now, not what was true then; and none may have to wait because
 * another does not read. A byte in the pipe wakes the guard when there is something new to look at.
 * A renewal does not wake it: it looks again when the old deadline comes.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "port.h"
#include "system.h"

#define DEATH_MS      5000U /* killed processes are gone by then, unless they cannot be killed */
#define DEATH_STEP_MS 5

enum state {
  RESTING, /* no deadline                                */
  HELD,    /* SIGTERM is due at kill_at - grace          */
  ENDING   /* the keeper has sent it                     */
};

struct guard_shared {
  _Atomic int group;
  _Atomic int state;
  _Atomic uint32_t kill_at;
  _Atomic bool acted;
};

/* What the guard alone knows. */
struct watch {
  struct guard *guard;
  const struct guard_orders *orders;
  bool termed;
  bool done;
  uint32_t kill_at; /* fixed once termed: a renewal does not postpone it */
};

int guard_prepare(struct guard *guard)
{
  guard->pid = 0;
  guard->shared =
      mmap(NULL, sizeof *guard->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (guard->shared == MAP_FAILED) return -1;
  if (pipe(guard->alive) == 0) {
    for (int i = 0; i < 2; i++) {
      (void)fcntl(guard->alive[i], F_SETFD, FD_CLOEXEC);
      (void)fcntl(guard->alive[i], F_SETFL, O_NONBLOCK);
    }
    return 0;
  }
  int error = errno;
  (void)munmap(guard->shared, sizeof *guard->shared);
  errno = error;
  return -1;
}

/* Telling it */

static void wake(struct guard *guard)
{
  ssize_t written = write(guard->alive[1], "", 1); /* full: then the guard wakes up anyway */
  (void)written;
}

static void set_state(struct guard *guard, enum state state)
{
  if (atomic_exchange(&guard->shared->state, (int)state) != (int)state) wake(guard);
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

void guard_set_group(struct guard *guard, pid_t group)
{
  atomic_store(&guard->shared->group, (int)group);
  wake(guard);
}

/* Asking it */

pid_t guard_group(const struct guard *guard)
{
  return (pid_t)atomic_load(&guard->shared->group);
}

bool guard_acted(const struct guard *guard)
{
  return atomic_load(&guard->shared->acted);
}

/* The deadline was that long ago; later: ms, negative ones as uint32_t does them. */
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

void guard_signal(const struct guard *guard, int number)
{
  pid_t group = guard_group(guard);
  if (group == 0) return;
  (void)kill(-group, number);
  if (number != SIGKILL) (void)kill(-group, SIGCONT); /* a stopped command would not notice */
}

bool guard_kill(struct guard *guard)
{
  struct timespec step = {0, DEATH_STEP_MS * 1000000L};
  pid_t group = guard_group(guard);
  if (group == 0) return true;
  guard_signal(guard, SIGKILL);
  for (unsigned waited = 0; waited < DEATH_MS; waited += DEATH_STEP_MS) {
    if (!system_group_lives(group)) {
      guard_set_group(guard, 0);
      return true;
    }
    nanosleep(&step, NULL);
  }
  return false;
}

/* The guard itself */

/* The deadline has passed, and it was up to us to end the command. */
static void note_action(struct watch *watch)
{
  if (atomic_load(&watch->guard->shared->state) == HELD)
    atomic_store(&watch->guard->shared->acted, true);
}

/* Does what is due. Returns the milliseconds until the next thing is, or -1 if nothing is. */
static int look(struct watch *watch)
{
  const struct guard_orders *orders = watch->orders;
  int state = atomic_load(&watch->guard->shared->state);
  if (watch->done || state == RESTING || guard_group(watch->guard) == 0) return -1;
  if (!watch->termed)
    watch->kill_at = atomic_load(&watch->guard->shared->kill_at) + orders->slack_ms;
  int32_t left = (int32_t)(watch->kill_at - port_clock_ms());
  if (left <= 0) {
    note_action(watch);
    if (orders->kill) (void)guard_kill(watch->guard);
    watch->done = true;
    return -1;
  }
  if (!orders->term || watch->termed || state == ENDING) return left;
  int32_t until_term = left - (int32_t)orders->grace_ms;
  if (until_term > 0) return until_term;
  note_action(watch);
  guard_signal(watch->guard, SIGTERM);
  watch->termed = true;
  return left;
}

static void stand(struct guard *guard, const struct guard_orders *orders)
{
  struct watch watch = {.guard = guard, .orders = orders};
  char bytes[64];
  for (;;) {
    if (!system_wait(guard->alive[0], look(&watch))) continue;
    if (read(guard->alive[0], bytes, sizeof bytes) != 0) continue;
    (void)guard_kill(guard); /* both are gone */
    _exit(0);
  }
}

bool guard_start(struct guard *guard, const struct guard_orders *orders)
{
  guard->pid = fork();
  if (guard->pid == 0) {
    (void)setsid();
    system_close_others(&guard->alive[0], 1);
    stand(guard, orders);
  }
  return guard->pid > 0;
}

void guard_end(struct guard *guard)
{
  if (guard->pid <= 0) return;
  (void)kill(guard->pid, SIGKILL);
  (void)waitpid(guard->pid, NULL, 0);
  guard->pid = 0;
}
