/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts' hashes without their texts, for firmware that has no room for these. It is linked
 * instead of lock/scripts.c and lock/texts.c.
 *
 * If the server does not know a script, that counts as unavailable, as while it loads its data:
 * waiters and holders ask again. Any other client of the same release loads the scripts that it
 * uses, and `fairlock load` loads all of them.
 */
#include "hashes.h"
#include "internal.h"

struct fairlock_script {
  char sha1[sizeof FAIRLOCK_LOCK_SHA1];
};

const struct fairlock_script fairlock_lock_script = {FAIRLOCK_LOCK_SHA1};
const struct fairlock_script fairlock_break_script = {FAIRLOCK_BREAK_SHA1};
const struct fairlock_script fairlock_shared_script = {FAIRLOCK_SHARED_SHA1};
const struct fairlock_script fairlock_downgrade_script = {FAIRLOCK_DOWNGRADE_SHA1};
const struct fairlock_script fairlock_inspect_script = {FAIRLOCK_INSPECT_SHA1};

void fairlock_script_write(struct resp_writer *writer, const struct fairlock_script *script,
                           bool eval, int words)
{
  (void)eval; /* there is no text to send */
  fairlock_request_write_command(writer, "EVALSHA", words);
  fairlock_request_write_text(writer, script->sha1);
}

int fairlock_script_unknown(struct fairlock_engine *engine, struct resp_event *event, uint8_t kind)
{
  static const char what_to_do[] = "NOSCRIPT: run fairlock load";
  (void)engine;
  (void)kind;
  event->data = (const uint8_t *)what_to_do;
  event->size = sizeof what_to_do - 1;
  return FAIRLOCK_UNAVAILABLE;
}
