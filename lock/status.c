/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statuses in words, in a file of their own, so that only firmware that prints them links them.
 */
#include "fairlock.h"
#include "port_flash.h"

static const char *const names[] = {
    "OK",       "BUSY",        "TIMEOUT",     "CANCELLED", "LOST",
    "NOT_HELD", "WRONG_TASK",  "IN_PROGRESS", "UNKNOWN",   "UNREACHABLE",
    "DENIED",   "UNSUPPORTED", "UNAVAILABLE", "READONLY",  "OOM",
    "MISCONF",  "UNSYNCED",    "REFUSED",     "PROTOCOL",  "INVALID",
    "TOO_LONG", "WRONG_SHARD", "UNTRUSTED",   "FORKED",    "NOT_LISTENING",
    "OUTDATED",
};

/* One after the other, each ended by a 0. */
static const PORT_FLASH char texts[] =
    "done\0"
    "somebody else holds the lock or is first in line\0"
    "the wait timed out\0"
    "the wait was cancelled\0"
    "the lock was lost before it was released\0"
    "the lock is not held by this handle\0"
    "another task acquired this handle\0"
    "the handle is in use\0"
    "no answer came: the release was carried out, or the lease will end the hold\0"
    "the server cannot be reached\0"
    "the server refuses this user\0"
    "the server lacks RESP3, or a command of Redis 6.2\0"
    "the server cannot serve now\0"
    "the server is a read-only replica\0"
    "the server is out of memory\0"
    "the server refuses writes\0"
    "too few replicas acknowledge\0"
    "the server refused the request\0"
    "the server sent an answer that is not valid\0"
    "an argument is out of its range\0"
    "a name or id does not fit the buffers\0"
    "another node of the cluster has this lock\0"
    "the server's certificate is not trusted, or ours is not\0"
    "the client belongs to the parent process\0"
    "its holder does not listen, so it cannot be asked\0"
    "a later release uses the lock in a way that this one does not know";

_Static_assert(sizeof names / sizeof names[0] == 1 - FAIRLOCK_OUTDATED, "a name for each status");

const char *fairlock_status_name(int status)
{
  if (status == FAIRLOCK_PENDING) return "PENDING";
  return status <= 0 && status >= FAIRLOCK_OUTDATED ? names[-status] : "?";
}

const char *fairlock_status_text(int status)
{
  if (status == FAIRLOCK_PENDING) return "still going on";
  if (status > 0 || status < FAIRLOCK_OUTDATED) return "no status";
  const PORT_FLASH char *text = texts;
  for (int before = status; before < 0; before++) {
    while (*text++ != 0) {
    }
  }
  return port_flash_text(text);
}
