/* SPDX-License-Identifier: Apache-2.0 */
/* Signals, in a form for which poll() can wait. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Ignores SIGXFSZ: a write beyond the limit of ulimit -f fails, and does not end us. */
void signals_outlive_limits(void);

/* From now on signals are queued. Returns a descriptor that tells, or -1 with errno set. */
int signals_catch(void);

/* Returns the next signal from the queue; 0: there is none. */
int signals_next(void);

/* True for a signal that was ignored when we were started (nohup, a shell's background job). */
bool signals_ignored_before(int number);

/* To be called in a child before exec: restores the dispositions with which we were started. */
void signals_restore(void);

/*
 * Stops our process group by SIGTSTP, as the terminal would. Returns true after we were continued.
 * If nobody could continue us, the system does not stop us, and this returns false at once.
 */
bool signals_stop_group(void);

/* Sends a signal to the rest of our process group. */
void signals_tell_group(int number);

/* Ends us by a signal, without a core file. It returns only to process 1 of a container. */
void signals_end_by(int number);

/* The terminal, which only one process group at a time can read: it is lent to the command. */

struct terminal {
  int descriptor; /* -1: no terminal   */
  bool lent;      /* to the command    */
};

void terminal_open(struct terminal *terminal);

/* True if standard input and output are the terminal: the command seems to be interactive. */
bool terminal_talks(const struct terminal *terminal);

/* Makes `group` the foreground group, if ours is that. Returns true if so. */
bool terminal_lend(struct terminal *terminal, pid_t group);

/* Undoes that. */
void terminal_take_back(struct terminal *terminal);

#endif
