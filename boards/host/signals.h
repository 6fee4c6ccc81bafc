/* Signals as something to wait for, along with everything else that run.c waits for. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/*
 * From now on the signals that concern us are queued: SIGCHLD, SIGCONT, and those that are passed
 * on to the command. Returns a descriptor that can be read when there are some, or -1 with errno
 * set.
 */
int signals_catch(void);

/* The next one; 0: none is there. */
int signals_next(void);

/*
 * True for a signal that whoever started us wants to be ignored (nohup, a shell's background job).
 */
bool signals_ignored_before(int number);

/* In a child before exec: puts everything back as we found it. */
void signals_restore(void);

/*
 * Stops our process group by SIGTSTP, as the terminal would. Returns true when somebody had us
 * continue, or false, at once, when the system does not stop us because nobody could.
 */
bool signals_stop_group(void);

/* Sends a signal to the rest of our process group. */
void signals_tell_group(int number);

#endif
