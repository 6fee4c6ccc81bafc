/* The process that ends the command when neither the keeper nor `fairlock run` itself can. */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guard_shared;

struct guard {
  struct guard_shared *shared; /* shared by all processes of a run                               */
  /* a pipe written by the keeper and by run; its end means that both are gone */
  int alive[2];
  /* in the keeper; 0: there is no guard yet */
  pid_t pid;
};

/* How the command is to be ended. */
struct guard_orders {
  bool term;         /* SIGTERM first                                                   */
  bool kill;         /* SIGKILL; if false, the end of the hold is only noted            */
  uint32_t grace_ms; /* between the two                                                 */
  uint32_t slack_ms; /* how much later than the keeper should have, the guard acts     */
};

/* Called before the keeper is made. Returns 0, or -1 with errno set. */
int guard_prepare(struct guard *guard);

/* Called in the keeper, while it has one thread. Returns false if there can be no guard. */
bool guard_start(struct guard *guard, const struct guard_orders *orders);

/* Called in the keeper, at its end. */
void guard_end(struct guard *guard);

/* The command must be dead at kill_at, in port_clock_ms(), unless this is called again before. */
void guard_deadline(struct guard *guard, uint32_t kill_at);

/* The keeper has sent SIGTERM and is going to send SIGKILL at kill_at. */
void guard_ending(struct guard *guard, uint32_t kill_at);

/* There is no longer a deadline. */
void guard_rest(struct guard *guard);

/*
 * The command's process group; 0: there is nothing to end, and the number may soon be given to
 * others.
 */
void guard_set_group(struct guard *guard, pid_t group);
pid_t guard_group(const struct guard *guard);

/* True when there is a deadline and it leaves time for SIGTERM and what follows. */
bool guard_has_time(const struct guard *guard, const struct guard_orders *orders);

/* True when the deadline passed spare_ms ago, and no keeper has done anything about it. */
bool guard_ran_out(const struct guard *guard, uint32_t spare_ms);

/* True when the guard had to end the command, or would have had to. */
bool guard_acted(const struct guard *guard);

/* Sends a signal to the command's group, and SIGCONT, so that a stopped one notices it. */
void guard_signal(const struct guard *guard, int number);

/*
 * Kills the command's group, and waits until none of it runs any more. Then it clears the group, so
 * that no process that wakes up much later signals another group of the same number. Returns false
 * if some of it still runs after a while.
 */
bool guard_kill(struct guard *guard);

#endif
