/* SPDX-License-Identifier: Apache-2.0 */
/* The command that runs under the lock. */
#ifndef CHILD_H
#define CHILD_H

#include <stdint.h>
#include <sys/types.h>

struct child {
  char *const *arguments;
  const char *name; /* of the lock, for its environment                                 */
  int gate[2];      /* a pipe from `fairlock run`, at which it waits before exec        */
};

/* To be called in `fairlock run` before guard_start(). Returns 0, or -1 with errno set. */
int child_prepare(struct child *child, char *const *arguments, const char *name);

/*
 * To be called in the guard: forks the command's process, in a new process group, which closes the
 * `count` descriptors in `others`. After child_go() it executes the arguments; if that fails, it
 * complains and exits with EXIT_NO_EXEC. If `fairlock run` ends before child_go(), it executes
 * nothing. Returns its id, or -1 with errno set.
 */
pid_t child_start(const struct child *child, const int *others, int count);

/* To be called in `fairlock run` when the lock is held: lets the process execute the command. */
void child_go(struct child *child, const char *holder, uint64_t token);

#endif
