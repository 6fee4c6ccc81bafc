/* SPDX-License-Identifier: Apache-2.0 */
/* Lends the terminal to the command. Only one process group at a time can read a terminal. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
  int descriptor; /* -1: no terminal   */
  bool lent;      /* to the command    */
};

void terminal_open(struct terminal *terminal);

/* True if standard input and output are the terminal: the command seems to be interactive. */
bool terminal_talks(const struct terminal *terminal);

/* Makes `group` the foreground group, if ours is that. Returns true if so. */
bool terminal_lend(struct terminal *terminal, pid_t group);

/* Undoes that. */
void terminal_take_back(struct terminal *terminal);

#endif
