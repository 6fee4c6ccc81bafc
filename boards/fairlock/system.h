/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What systems do differently. system.c has one implementation for Linux, and one for all others
 * that needs POSIX alone. FAIRLOCK_PLAIN_POSIX chooses the latter on Linux, for a test.
 */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* To be called in a child: the system kills it when its parent dies (Linux), or has died. */
void system_die_with(pid_t parent);

/*
 * From now on, a descendant of this process whose parent has ended becomes a child of this process
 * instead of process 1. Returns false where the system cannot do that (other than Linux, FreeBSD).
 */
bool system_adopt(void);

/*
 * Sends a signal to each process that descends from root, and then SIGCONT, so that stopped
 * processes notice it. Leaves out the process `except` (0: none) and the process group `group` (0:
 * none). With `holder`, leaves out the children of root, and what descends from them, that were not
 * executed under the hold of this id (FAIRLOCK_HOLDERS): the program that has executed fairlock may
 * have had children, who may have some. number 0: sends no signal.
 *
 * Returns how many descendants there are, those of `group` included; -1 if that cannot be known (no
 * system_adopt(), no /proc, or one that shows another PID namespace). Processes that are forked
 * meanwhile may be missed, so to kill all, repeat it until none is left. Those that have ended and
 * were not reaped count, too: one that ended meanwhile may have forked another one before. So reap
 * what there is before each call.
 */
int system_signal_below(pid_t root, pid_t except, pid_t group, const char *holder, int number);

/*
 * True while a process of the group may still run. Zombies do not count, because they stay for ever
 * if process 1 does not reap them. Where they cannot be told from running processes (no /proc),
 * they do.
 */
bool system_group_lives(pid_t group);

/*
 * Hides the memory of this process, and of processes that it forks, from core files and from other
 * processes of the same user (Linux). It does not hide the memory of programs that they execute.
 */
void system_hide_memory(void);

/*
 * Opens /dev/null for each standard descriptor that is closed, so that none of our pipes and
 * sockets gets its number. Reading or writing it still fails, and a program that we execute finds
 * it closed. Returns false if that failed.
 */
bool system_fill_standard(void);

/* Closes all descriptors but those in keep, and makes the standard ones /dev/null. */
void system_let_go(const int *keep, size_t count);

#define SYSTEM_WAIT_MOST 3

/*
 * Waits until one of at most SYSTEM_WAIT_MOST descriptors can be read, or ms have passed (negative:
 * without a limit). Negative descriptors are ignored. Returns true if one can be read, and can_read
 * says which; it may return false early. Time during which the machine is suspended counts; systems
 * other than Linux notice it up to PORT_WAIT_MAX_MS after the machine has woken.
 */
bool system_wait(const int *descriptors, bool *can_read, size_t count, int ms);

#endif
