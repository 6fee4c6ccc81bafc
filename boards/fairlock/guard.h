/* The process that the command and all that it starts descend from, and that ends them. */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "child.h"

struct guard_shared;

struct guard {
  struct guard_shared *shared; /* shared by all processes of a run */

  /*
   * Between the guard, which has the second end of both, and `fairlock run`; and the keeper. A byte
   * means: look. Its end means that the other is gone; -1: that is known
   */
  int run[2];
  int keeper[2];

  pid_t pid; /* 0: it is gone */
};

/* How the command is to be ended. */
struct guard_orders {
  bool term;         /* SIGTERM first                                                   */
  bool kill;         /* SIGKILL; if false, the end of the hold is only noted            */
  uint32_t grace_ms; /* between the two                                                 */
  uint32_t slack_ms; /* how much later than the keeper should have, the guard acts     */
  uint32_t end_ms;   /* between the two when guard_end_all() asks; 0: SIGKILL at once  */
};

/*
 * In `fairlock run`, before the keeper is made: makes the guard, and by it the process of the
 * command. Returns NULL, or what failed, with errno set.
 */
const char *guard_start(struct guard *guard, const struct guard_orders *orders,
                        const struct child *child);

/* In the keeper. */
void guard_enter_keeper(struct guard *guard);

/* In `fairlock run`, when the keeper has been made; and at its end. */
void guard_enter_run(struct guard *guard);
void guard_dismiss(struct guard *guard);

/* Takes the bytes that have come to an end of ours. Returns false, and closes it, if there is nobody else. */
bool guard_hear(int *end);

/* The command must be dead at kill_at, in port_clock_ms(), unless this is called again before. */
void guard_deadline(struct guard *guard, uint32_t kill_at);

/* The keeper has sent SIGTERM and is going to send SIGKILL at kill_at. */
void guard_ending(struct guard *guard, uint32_t kill_at);

/* There is no longer a deadline. */
void guard_rest(struct guard *guard);

/* The command begins; it, or what it has left, is nobody's business any more. */
void guard_begin(struct guard *guard);
void guard_leave(struct guard *guard);

/* Has the guard end the command and all that descends from it, whatever the deadline is. */
void guard_end_all(struct guard *guard);

/* Has it go on if it was stopped. */
void guard_rouse(const struct guard *guard);

/* The command's process, and the number of its group. */
pid_t guard_command(const struct guard *guard);

/* The signal that has stopped the command since the last call; 0: none has. */
int guard_take_stop(struct guard *guard);

/* True when the command has ended, with this status of waitpid(). */
bool guard_has_ended(const struct guard *guard, int *status);

/*
 * True when nothing is left of the command, or nothing is to be ended: of its descendants where
 * system_adopt() works, of its process group elsewhere.
 */
bool guard_is_empty(const struct guard *guard);

/* True when there is a deadline and it leaves time for SIGTERM and what follows. */
bool guard_has_time(const struct guard *guard, const struct guard_orders *orders);

/* True when the deadline passed spare_ms ago, and no keeper has done anything about it. */
bool guard_ran_out(const struct guard *guard, uint32_t spare_ms);

/* True when the guard had to end the command, or would have had to. */
bool guard_acted(const struct guard *guard);

/* Sends a signal to the command's group, without more. */
void guard_forward(const struct guard *guard, int number);

/* The same, and SIGCONT, so that a stopped one notices it. */
void guard_signal_group(const struct guard *guard, int number);

/* The same to all that descend from the command, once it has begun. */
void guard_signal(const struct guard *guard, int number);

/*
 * When the guard is gone: kills the command's group, and waits until none of it runs any more.
 * Returns false if some of it still runs after a while.
 */
bool guard_kill_group(const struct guard *guard);

#endif
