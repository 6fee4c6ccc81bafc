/* The command that runs under the lock. */
#ifndef CHILD_H
#define CHILD_H

#include <sys/types.h>

struct child {
  pid_t pid; /* and the number of its process group */
  int gate;  /* open: it waits before exec           */
};

/*
 * Makes the process for arguments, in a new process group. It executes them when child_go()
 * is called, and never if we end before that. If they cannot be executed, it complains and exits
 * with EXIT_NO_EXEC. Returns 0, or -1 with errno set.
 */
int child_start(struct child *child, char *const *arguments);

void child_go(struct child *child);

#endif
