/* SPDX-License-Identifier: Apache-2.0 */
/* What holds in place of a command: `fairlock hold` and `fairlock acquire`. */
#ifndef HOLD_H
#define HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guard.h"
#include "options.h"

struct holding {
  uint32_t pid;      /* the process for which it is held; 0: none                        */
  const char *state; /* acquire: the socket at which `fairlock release` asks; NULL: hold */
  int listener;      /* that socket; -1: none                                            */
  int owner;         /* readable when that process has ended; -1: none, or not known     */
};

/*
 * Leaves the caller's session, which the foreground process of acquire waits for: it does not return
 * there. Otherwise returns EXIT_DONE, or an exit status after a complaint.
 */
int hold_prepare(struct holding *holding, const struct command_line *line);

/* For struct child: prints the holds, and returns when they are to end. */
int hold_keep(const void *holding, const struct grant *grants, size_t count);

/* acquire: the caller's output is no longer ours. */
void hold_let_go(void);

/* Tells those who have asked for the release how it has ended, by an exit status. */
void hold_answer(const struct holding *holding, bool was_held, int status);

#endif
