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
 * From now on, processes below this one whose parent has ended become its children, instead of
 * process 1's (Linux, FreeBSD). Returns whether.
 */
bool system_adopt(void);

/*
 * Signals each process that descends from root, but neither `except` (0: nobody) nor those of
 * `group` (0: none), and has those that are stopped continue to notice it. number 0: signals nobody.
 * Returns how many of all descendants run, or -1 if that cannot be known (no system_adopt(), or no
 * /proc). Descendants that are forked meanwhile may be missed: whoever kills does it until none is
 * left.
 */
int system_signal_below(pid_t root, pid_t except, pid_t group, int number);

/*
 * Leaves out of system_signal_below(), from now on, what descends from this process now, and what
 * those start: a process that has become fairlock may have had children. Returns false if it has
 * some and they cannot be told from later ones.
 */
bool system_spare_present(void);

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

/*
 * Lets go of all descriptors but the `count` ones in keep, which are 3 or more: the standard ones
 * become /dev/null.
 */
void system_let_go(const int *keep, size_t count);

#define SYSTEM_WAIT_MOST 3

/*
 * Waits until one of at most SYSTEM_WAIT_MOST descriptors can be read, or ms have passed; negative:
 * without end. Negative descriptors are left out. Returns whether one can be read, and in can_read
 * which; it may return false early. A suspended machine counts as time that passes; except on Linux,
 * that is noticed up to PORT_WAIT_MAX_MS after it has woken.
 */
bool system_wait(const int *descriptors, bool *can_read, size_t count, int ms);

#endif
