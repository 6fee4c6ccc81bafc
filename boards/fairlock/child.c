/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command's process. It is forked before the server is asked for anything, so that fork()
 * cannot fail when the lock is held. Until the lock is held it waits at a gate, which is a pipe.
 * The guard is its parent. On Linux, the kernel kills it if the guard is killed.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "fairlock.h"
#include "signals.h"
#include "system.h"

/* What is written to the gate when the process may go on. */
struct hold_words {
  uint64_t token;
  char holder[FAIRLOCK_HOLDER_ID_SIZE];
};

static void wait_at(int gate, struct hold_words *words)
{
  ssize_t got;
  do
    got = read(gate, words, sizeof *words);
  while (got < 0 && errno == EINTR);
  if (got != (ssize_t)sizeof *words) _exit(EXIT_SYSTEM);
}

static bool put_into_environment(const char *name, const struct hold_words *words)
{
  char token[24];
  snprintf(token, sizeof token, "%llu", (unsigned long long)words->token);
  const char *outer = getenv("FAIRLOCK_HOLDERS");
  if (outer == NULL) outer = "";
  size_t size = strlen(outer) + 1 + strlen(words->holder) + 1;
  char *holders = malloc(size);
  if (holders == NULL) return false;
  snprintf(holders, size, "%s%s%s", outer, *outer != 0 ? " " : "", words->holder);
  bool done = setenv("FAIRLOCK_HOLDERS", holders, 1) == 0;
  free(holders);
  return done && setenv("FAIRLOCK_NAME", name, 1) == 0 &&
         setenv("FAIRLOCK_HOLDER", words->holder, 1) == 0 &&
         setenv("FAIRLOCK_TOKEN", token, 1) == 0;
}

static void exec_child(const struct child *child, pid_t parent)
{
  struct hold_words words;
  (void)setpgid(0, 0);
  system_die_with(parent);
  (void)close(child->gate[1]);
  wait_at(child->gate[0], &words);
  if (!put_into_environment(child->name, &words)) {
    complain("cannot set the environment of %s: %s", child->arguments[0], strerror(errno));
    _exit(EXIT_SYSTEM);
  }
  signals_restore();
  execvp(child->arguments[0], child->arguments);
  complain("cannot execute %s: %s", child->arguments[0], strerror(errno));
  _exit(EXIT_NO_EXEC);
}

int child_prepare(struct child *child, char *const *arguments, const char *name)
{
  child->arguments = arguments;
  child->name = name;
  if (pipe(child->gate) != 0) return -1;
  for (int i = 0; i < 2; i++)
    (void)fcntl(child->gate[i], F_SETFD, FD_CLOEXEC);
  return 0;
}

pid_t child_start(const struct child *child, const int *others, int count)
{
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; i < count; i++)
      (void)close(others[i]);
    exec_child(child, parent);
  }
  if (pid > 0) (void)setpgid(pid, pid); /* the child does it, too: either may come first */
  return pid;
}

void child_go(struct child *child, const char *holder, uint64_t token)
{
  struct hold_words words = {.token = token};
  snprintf(words.holder, sizeof words.holder, "%s", holder);
  ssize_t written = write(child->gate[1], &words, sizeof words);
  (void)written; /* the pipe has room; if the child is gone, the guard says so */
  (void)close(child->gate[1]);
}
