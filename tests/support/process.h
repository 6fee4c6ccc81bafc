/*
 * Processes that end with the program that started them, however that ends: by its end, by a signal
 * of the usual ones, or killed. A SIGALRM, for which a test may wind up alarm(), ends it as a
 * failure.
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

/* Waits for its end. Returns its exit status, or -1 if it did not end well within SOON. */
int reap(pid_t pid);

/* SIGKILL, and waits for the end. Harmless for one that was reaped. */
void slay(pid_t pid);

/* slay() for all but one. */
void slay_all_but(pid_t pid);

/* Has the kernel end this process, just forked by parent, when that one dies, of whatever. */
void die_with(pid_t parent);

/* A new folder below /tmp, with a log and a dump.rdb at most, that goes with the program. */
void own_folder(char folder[40]);
void remove_folder(const char *folder);

/* Zeroed memory that processes share. */
void *share(size_t size);

/* Ends the program: what the tests need does not work. */
_Noreturn void give_up(const char *why);

#endif
