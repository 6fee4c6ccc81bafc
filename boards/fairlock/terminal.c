/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command runs in a process group of its own. To the terminal it is a background job, which is
 * stopped when it reads. So we make its group the terminal's foreground group: at the start, if the
 * command seems to be interactive, and otherwise when it was stopped by reading. Not sooner,
 * because another program of the same pipeline (fairlock run ... | less) may be reading from the
 * terminal.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

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
