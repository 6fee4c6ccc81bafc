/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler writes the signal's number to a pipe, so that poll() can wait for signals and none is
 * missed between a look and a wait. We catch also signals that were ignored when we were started,
 * because the command, which gets the old dispositions, may handle them. signals_ignored_before()
 * tells which they were.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#include "system.h"

static const int caught[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                             SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};
/* the agent may be gone (SIGPIPE), and the terminal may not be ours (SIGTTOU) */
static const int ignored[] = {SIGPIPE, SIGTTOU};

#define CAUGHT  (sizeof caught / sizeof caught[0])
#define IGNORED (sizeof ignored / sizeof ignored[0])

static struct sigaction before[CAUGHT];
static struct sigaction before_ignored[IGNORED];
static struct sigaction before_limits;
static sigset_t mask_before;
static volatile sig_atomic_t continued;
static int queue[2] = {-1, -1};

static void handle(int number)
{
  int saved = errno;
  unsigned char byte = (unsigned char)number;
  if (number == SIGCONT) continued = 1;
  ssize_t written = write(queue[1], &byte, 1); /* if it is full, thousands are queued already */
  (void)written;
  errno = saved;
}

static bool prepare_descriptor(int descriptor)
{
  return fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 && fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0;
}

void signals_outlive_limits(void)
{
  struct sigaction action = {0};
  sigemptyset(&action.sa_mask);
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, &before_limits);
}

int signals_catch(void)
{
  struct sigaction action = {0};
  if (pipe(queue) != 0 || !prepare_descriptor(queue[0]) || !prepare_descriptor(queue[1])) return -1;
  sigset_t wanted;
  sigemptyset(&wanted);
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = handle;
  for (size_t i = 0; i < CAUGHT; i++) {
    sigaction(caught[i], &action, &before[i]);
    sigaddset(&wanted, caught[i]);
  }
  action.sa_handler = SIG_IGN;
  for (size_t i = 0; i < IGNORED; i++)
    sigaction(ignored[i], &action, &before_ignored[i]);
  sigprocmask(SIG_UNBLOCK, &wanted, &mask_before);
  return queue[0];
}

int signals_next(void)
{
  unsigned char byte;
  return read(queue[0], &byte, 1) == 1 ? byte : 0;
}

bool signals_ignored_before(int number)
{
  for (size_t i = 0; i < CAUGHT; i++) {
    if (caught[i] == number) return before[i].sa_handler == SIG_IGN;
  }
  return false;
}

void signals_restore(void)
{
  for (size_t i = 0; i < CAUGHT; i++)
    sigaction(caught[i], &before[i], NULL);
  for (size_t i = 0; i < IGNORED; i++)
    sigaction(ignored[i], &before_ignored[i], NULL);
  sigaction(SIGXFSZ, &before_limits, NULL);
  sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

bool signals_stop_group(void)
{
  struct sigaction action = {0};
  struct sigaction own;
  sigemptyset(&action.sa_mask);
  action.sa_handler = SIG_DFL;
  continued = 0;
  sigaction(SIGTSTP, &action, &own);
  (void)kill(0, SIGTSTP); /* SIGTSTP is not blocked, so it stops us before this returns */
  sigaction(SIGTSTP, &own, NULL);
  return continued != 0;
}

void signals_tell_group(int number)
{
  struct sigaction action = {0};
  struct sigaction own;
  sigemptyset(&action.sa_mask);
  action.sa_handler = SIG_IGN;
  sigaction(number, &action, &own);
  (void)kill(0, number);
  sigaction(number, &own, NULL);
}

void signals_end_by(int number)
{
  const struct rlimit none = {0, 0};
  struct sigaction action = {.sa_handler = SIG_DFL};
  sigset_t own;
  sigemptyset(&action.sa_mask);
  sigemptyset(&own);
  sigaddset(&own, number);
  (void)setrlimit(RLIMIT_CORE, &none);
  system_hide_memory(); /* a program that collects core files does not care for the limit */
  (void)sigaction(number, &action, NULL);
  (void)sigprocmask(SIG_UNBLOCK, &own, NULL);
  (void)raise(number);
}

/* The terminal */

/*
 * The command runs in a process group of its own. To the terminal it is a background job, which is
 * stopped when it reads. So we make its group the terminal's foreground group: at the start, if the
 * command seems to be interactive, and otherwise when it was stopped by reading. Not sooner,
 * because another program of the same pipeline (fairlock run ... | less) may be reading from the
 * terminal.
 */
void terminal_open(struct terminal *terminal)
{
  terminal->descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  terminal->lent = false;
}

bool terminal_talks(const struct terminal *terminal)
{
  return terminal->descriptor >= 0 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

bool terminal_lend(struct terminal *terminal, pid_t group)
{
  if (terminal->descriptor < 0 || tcgetpgrp(terminal->descriptor) != getpgrp()) return false;
  if (tcsetpgrp(terminal->descriptor, group) != 0) return false;
  terminal->lent = true;
  return true;
}

void terminal_take_back(struct terminal *terminal)
{
  if (terminal->lent) (void)tcsetpgrp(terminal->descriptor, getpgrp());
  terminal->lent = false;
}
