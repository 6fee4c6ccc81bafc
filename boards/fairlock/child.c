/*
 * The command's process. Between fork and exec it waits at a gate, a pipe, so that the keeper,
 * which ends it if we die, knows its number before the command does anything. Where the system can,
 * the kernel also kills it when we die.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "signals.h"
#include "system.h"

static void wait_at(int gate)
{
  char byte;
  ssize_t got;
  do
    got = read(gate, &byte, 1);
  while (got < 0 && errno == EINTR);
  if (got != 1) _exit(EXIT_SYSTEM);
}

static void exec_child(char *const *arguments, int gate, pid_t parent)
{
  (void)setpgid(0, 0);
  system_die_with(parent);
  wait_at(gate);
  signals_restore();
  execvp(arguments[0], arguments);
  complain("cannot execute %s: %s", arguments[0], strerror(errno));
  _exit(EXIT_NO_EXEC);
}

int child_start(struct child *child, char *const *arguments)
{
  int gate[2];
  pid_t parent = getpid();
  if (pipe(gate) != 0) return -1;
  (void)fcntl(gate[0], F_SETFD, FD_CLOEXEC);
  (void)fcntl(gate[1], F_SETFD, FD_CLOEXEC);
  child->pid = fork();
  if (child->pid == 0) {
    (void)close(gate[1]);
    exec_child(arguments, gate[0], parent);
  }
  int error = errno;
  (void)close(gate[0]);
  child->gate = gate[1];
  if (child->pid < 0) (void)close(gate[1]);
  else (void)setpgid(child->pid, child->pid); /* as the child does itself: either may come first */
  errno = error;
  return child->pid < 0 ? -1 : 0;
}

void child_go(struct child *child)
{
  ssize_t written = write(child->gate, "", 1);
  (void)written;
  (void)close(child->gate);
}
