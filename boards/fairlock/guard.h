/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard: the process from which the command and all that it starts descend, and that ends them.
 */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fairlock.h"

#define MOST_LOCKS 16 /* that one command runs under */

/* A hold of a lock. */
struct grant {
  uint64_t token;
  char holder[FAIRLOCK_HOLDER_ID_SIZE];
};

/* The command that runs under the lock. */
struct child {
  char *const *arguments; /* NULL: `keep` is called instead, and returns its status */
  int (*keep)(const void *context, const struct grant *grants, size_t count);
  const void *context;
  const char *name; /* of the lock, or of the first, for its environment                */
  int gate[2];      /* a pipe from `fairlock run`, at which it waits before exec        */
};

/* To be called in `fairlock run` before guard_start(). Returns 0, or -1 with errno set. */
int child_prepare(struct child *child, char *const *arguments, const char *name);

/* To be called in `fairlock run` when the locks are held: lets the process execute the command. */
void child_go(struct child *child, const struct grant *grants, size_t count);

struct guard_shared;

struct guard {
  struct guard_shared *shared; /* shared by all processes of a run */

  /*
   * Socket pairs, of which the guard has the second ends. A byte: look at the shared memory. End of
   * file: the other process is gone; -1: we know that, and have closed our end.
   */
  int run[2];
  int agent[2];

  pid_t pid; /* 0: it is gone */
};

/* How the command is to be ended. */
struct guard_orders {
  bool term;         /* SIGTERM first                                                  */
  bool kill;         /* SIGKILL; if false, the end of the hold is only noted           */
  uint32_t grace_ms; /* from SIGTERM to SIGKILL                                        */
  uint32_t slack_ms; /* the guard acts this much later than the agent should have     */
  uint32_t end_ms;   /* grace_ms when guard_end_all() asks; 0: SIGKILL at once         */
};

/* Makes the guard and the command's process. Returns NULL, or what failed, with errno set. */
const char *guard_start(struct guard *guard, const struct guard_orders *orders,
                        const struct child *child);

/* To be called in the agent, when it has been forked: closes the ends that are not the agent's. */
void guard_enter_agent(struct guard *guard);

/* The same in `fairlock run`. */
void guard_enter_run(struct guard *guard);

/* To be called in `fairlock run`, when nothing is to be guarded any more: kills the guard. */
void guard_dismiss(struct guard *guard);

/* Reads what has come to our end of a pair. Returns false, and closes it, if the other is gone. */
bool guard_hear(int *end);

/* The command must be dead at kill_at, in port_clock_ms(), unless this is called again before. */
void guard_deadline(struct guard *guard, uint32_t kill_at);

/* The agent has sent SIGTERM and is going to send SIGKILL at kill_at. */
void guard_ending(struct guard *guard, uint32_t kill_at);

/* Removes the deadline. */
void guard_rest(struct guard *guard);

/* guard_begin(): the command begins. guard_leave(): whatever it has left running may go on. */
void guard_begin(struct guard *guard);
void guard_leave(struct guard *guard);

/* Makes the guard end the command and all that descends from it, whatever the deadline is. */
void guard_end_all(struct guard *guard);

/* The same because --max-hold is over; and whether that was said. */
void guard_overdue(struct guard *guard);
bool guard_is_overdue(const struct guard *guard);

/* Continues the guard if it was stopped. */
void guard_rouse(const struct guard *guard);

/* The command's process id, which is also the number of its group. */
pid_t guard_command(const struct guard *guard);

/* The signal that has stopped the command since the last call; 0: none has. */
int guard_take_stop(struct guard *guard);

/* True when the command has ended, with this status of waitpid(). */
bool guard_has_ended(const struct guard *guard, int *status);

/* True when no descendant of the command runs (without system_adopt(): none of its group). */
bool guard_is_empty(const struct guard *guard);

/* True when there is a deadline, and SIGTERM is not due yet. */
bool guard_has_time(const struct guard *guard, const struct guard_orders *orders);

/* True when the deadline passed at least spare_ms ago, and the agent has done nothing about it. */
bool guard_ran_out(const struct guard *guard, uint32_t spare_ms);

/* True when the guard had to end the command, or would have had to if the orders let it. */
bool guard_acted(const struct guard *guard);

/* Sends a signal to the command's group. */
void guard_forward(const struct guard *guard, int number);

/* The same, and then SIGCONT, so that stopped processes notice it. */
void guard_signal_group(const struct guard *guard, int number);

/* The same to all processes that descend from the command, once it has begun. */
void guard_signal(const struct guard *guard, int number);

/* SIGTERM. Returns by how many ms SIGKILL has to come earlier, because they are so many. */
uint32_t guard_term(const struct guard *guard);

/* The guard is gone. Kills the command's group if `prompt`; later its number may be another's. */
void guard_gone(struct guard *guard, bool prompt);

/* After guard_gone(): waits for the end of the group. Returns false if some of it goes on. */
bool guard_group_ends(const struct guard *guard);

#endif
