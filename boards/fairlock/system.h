/*
 * What systems do differently. system.c has the way of Linux, and a plain POSIX way for
 * all others. FAIRLOCK_PLAIN_POSIX chooses the latter on Linux, too: a test builds and tries it.
 */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * In a child just forked: makes the system kill it when its parent dies (Linux), and ends it if
 * that has happened already.
 */
void system_die_with(pid_t parent);

/*
 * True while a process of the group may still run. A zombie does not run, and may stay for ever if
 * process 1 does not reap it; systems that cannot tell it from a living process (no /proc) count it
 * as living.
 */
bool system_group_lives(pid_t group);

/*
 * Hides the memory of this process, and of those that it forks, from other processes of the same
 * user and from core files; not that of programs that they execute. Linux alone.
 */
void system_hide_memory(void);

/*
 * Gives each standard descriptor that is closed to /dev/null, which none of our pipes and sockets can
 * then take the place of. It still fails when it is read or written, and a program that we execute
 * finds it closed. Returns whether all are open now.
 */
bool system_fill_standard(void);

/* Closes all descriptors from 3 on, except the `count` ones in keep. */
void system_close_others(const int *keep, size_t count);

/*
 * Waits until descriptor can be read, or ms have passed; negative: without end. Returns whether it
 * can be read; it may return false early. A suspended machine counts as time that passes; except on
 * Linux, that is noticed up to PORT_WAIT_MAX_MS after it has woken.
 */
bool system_wait(int descriptor, int ms);

#endif
