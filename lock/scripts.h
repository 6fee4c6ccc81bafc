/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts, as the engine uses them. Two files define all that is declared here, and a program
 * links one of them:
 *
 *   texts.c           with their texts (scripts.c), which a server that does not know them is sent
 *   scripts/hashes.c  their hashes alone: somebody else has to load them, such as `fairlock load`
 *
 * Private to the engine.
 */
#ifndef FAIRLOCK_SCRIPTS_H
#define FAIRLOCK_SCRIPTS_H

#include "resp.h"

struct fairlock_engine;

/* After how long the scripts take a silent waiter of Redisson for dead. scripts.c checks it. */
#define FAIRLOCK_REDISSON_TIMEOUT_MS 5000U

struct fairlock_script;

/*
 * Acquire and release are one script. The others are separate, so that firmware which does not
 * break or inspect locks does not link them.
 */
extern const struct fairlock_script fairlock_lock_script;
extern const struct fairlock_script fairlock_break_script;
extern const struct fairlock_script fairlock_inspect_script;
extern const struct fairlock_script fairlock_shared_script;
extern const struct fairlock_script fairlock_downgrade_script;

/* Begins a command of `words` words: EVALSHA and the script's hash, or EVAL and its text. */
void fairlock_script_write(struct resp_writer *writer, const struct fairlock_script *script,
                           bool eval, int words);

/*
 * The server does not know the script of the oldest request, which is of this kind, or 0 if no handle
 * cares about it any more. Returns the status of that request:
 * FAIRLOCK_PENDING, if it is sent again with the text. The event becomes what the log is told.
 */
int fairlock_script_unknown(struct fairlock_engine *engine, struct resp_event *event, uint8_t kind);

#endif
