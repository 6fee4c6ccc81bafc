/* SPDX-License-Identifier: Apache-2.0 */
/* Signals, in a form for which poll() can wait. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/*
 * To be called first: ignores SIGXFSZ. From now on, a write to a file that has reached its limit
 * (ulimit -f) fails instead of ending this process.
 */
void signals_outlive_limits(void);

/*
 * From now on SIGCHLD, SIGCONT and the signals that the command has to get are queued. Returns a
 * descriptor that is readable when one is in the queue, or -1 with errno set.
 */
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

/*
 * Ends this process by a signal, so that its parent sees that, and without a core file. Returns
 * only if this is process 1 of a container, which a signal cannot end.
 */
void signals_end_by(int number);

#endif
