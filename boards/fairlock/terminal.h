/* The terminal that we share with the command: only one process group at a time can read it. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
  int descriptor; /* -1: no terminal   */
  bool lent;      /* to the command    */
};

void terminal_open(struct terminal *terminal);

/* True when input and output are the terminal's: the command is interactive. */
bool terminal_talks(const struct terminal *terminal);

/*
 * Makes group the terminal's foreground group, if that is ours at present. Returns whether it did.
 */
bool terminal_lend(struct terminal *terminal, pid_t group);

/* Undoes that. */
void terminal_take_back(struct terminal *terminal);

#endif
