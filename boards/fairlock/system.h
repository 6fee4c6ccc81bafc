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
 * Sends a signal, and then SIGCONT, to each process that descends from root, but not to `except`
 * (0: none) and the group `group` (0: none). With `holder`, only to children of root that were
 * executed under the hold of this id (FAIRLOCK_HOLDERS), and what descends from them: the program
 * that has executed fairlock may have had children. number 0: sends nothing.
 *
 * Returns how many descendants there are, those of `group` included; -1: not known (no
 * system_adopt(), no /proc, or that of another PID namespace). Some may be forked meanwhile, so to
 * kill all, repeat it until none is left. Those that were not reaped count, because one that ended
 * may have forked another before: reap what there is before each call.
 */
int system_signal_below(pid_t root, pid_t except, pid_t group, const char *holder, int number);

/*
 * True while a process of the group may run. Zombies do not count, where they can be told (/proc),
 * because they stay for ever if process 1 does not reap them.
 */
bool system_group_lives(pid_t group);

/*
 * Hides the memory of this process, and of processes that it forks, from core files and from other
 * processes of the same user (Linux). It does not hide the memory of programs that they execute.
 */
void system_hide_memory(void);

/*
 * Opens /dev/null for each standard descriptor that is closed, so that nothing of ours gets its
 * number. Using it still fails, and a program that we execute finds it closed. Returns false if
 * that failed.
 */
bool system_fill_standard(void);

/*
 * Returns a descriptor that can be read when the process has ended; -1, with errno set: there is none,
 * or the system cannot tell (others than Linux).
 */
int system_watch(pid_t pid);

/* Closes all descriptors but those in keep, and makes the standard ones /dev/null. */
void system_let_go(const int *keep, size_t count);

#define SYSTEM_WAIT_MOST 3

/*
 * Waits until one of at most SYSTEM_WAIT_MOST descriptors (negative: none) can be read, or ms have
 * passed (negative: no limit). Returns true if one can be read, and can_read says which; it may
 * return early. Time while the machine is suspended counts; other systems than Linux notice it
 * PORT_WAIT_MAX_MS later.
 */
bool system_wait(const int *descriptors, bool *can_read, size_t count, int ms);

#endif
