/* The command that runs under the lock. */
#ifndef CHILD_H
#define CHILD_H

#include <stdint.h>
#include <sys/types.h>

struct child {
  char *const *arguments;
  const char *name; /* of the lock, for its environment                             */
  int gate[2];      /* where it waits before exec; `fairlock run` has the second end */
};

/* In `fairlock run`, before the guard is made. Returns 0, or -1 with errno set. */
int child_prepare(struct child *child, char *const *arguments, const char *name);

/*
 * In the guard: makes the process, in a new process group. It executes the arguments when it is told
 * child_go(), and never if `fairlock run` ends before that. If they cannot be executed, it complains
 * and exits with EXIT_NO_EXEC. It has closed the `count` descriptors of `others` by then. Returns its
 * id, or -1 with errno set.
 */
pid_t child_start(const struct child *child, const int *others, int count);

/* In `fairlock run`: the lock is held. */
void child_go(struct child *child, const char *owner, uint64_t token);

#endif
