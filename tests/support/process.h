/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that end with the program that started them, however that ends: by returning, by one of
 * the usual signals, or killed. A test may set alarm(): a SIGALRM ends the program as a failure.
 */
#ifndef SUPPORT_PROCESS_H
#define SUPPORT_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/* Runs a function in a process of its own, which ends when it returns. */
pid_t spawn(void (*run)(int index, void *context), int index, void *context);

/* Runs a program. in, out: where its ends of two pipes are to be, or NULL for /dev/null. */
pid_t spawn_program(const char *const *words, int *in, int *out);

/* A pipe that is closed on exec. */
void open_pipe(int ends[2]);

/*
 * Waits for the process to end. Returns its exit status, or -1 if a signal ended it or it took
 * longer than SOON.
 */
int reap(pid_t pid);

/* SIGKILL, and waits for the end. Does nothing to a process that was reaped. */
void slay(pid_t pid);

/* slay() for all but one. */
void slay_all_but(pid_t pid);

/*
 * Makes the kernel end this process, just forked by parent, when the parent dies, for whatever
 * reason.
 */
void die_with(pid_t parent);

/*
 * A new folder below /tmp, for a log and a dump.rdb at most, which is removed when the program
 * ends.
 */
void own_folder(char folder[40]);
void remove_folder(const char *folder);

/* Zeroed memory that processes share. */
void *share(size_t size);

/* Ends the program: what the tests need does not work. */
_Noreturn void give_up(const char *why);

#endif
