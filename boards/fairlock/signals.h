/* Signals as something to wait for, along with everything else that run.c waits for. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/*
 * To be called first. From now on a write to a file that may not grow any more (ulimit -f) fails,
 * and no longer ends us.
 */
void signals_outlive_limits(void);

/*
 * From now on the signals that concern us are queued: SIGCHLD, SIGCONT, and those that are passed
 * on to the command. Returns a descriptor that is readable when there are any, or -1 with errno
 * set.
 */
int signals_catch(void);

/* The next one; 0: none is there. */
int signals_next(void);

/* True for a signal that was ignored when we were started (nohup, a shell's background job). */
bool signals_ignored_before(int number);

/* In a child before exec: restores the dispositions that we found. */
void signals_restore(void);

/*
 * Stops our process group by SIGTSTP, as the terminal would. Returns true when we were continued,
 * or false, at once, when the system does not stop us because nobody could continue us.
 */
bool signals_stop_group(void);

/* Sends a signal to the rest of our process group. */
void signals_tell_group(int number);

/*
 * Ends this process by a signal, as whoever waits for it relies on, and leaves no core file. Returns
 * only if the system does not let it: process 1 of a container is not ended so.
 */
void signals_end_by(int number);

#endif
