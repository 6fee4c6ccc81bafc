/*
 * The statuses in words, in a file of their own, so that only firmware that prints them links them.
 */
#include "fairlock.h"

static const char *const names[] = {
    "OK",       "BUSY",        "TIMEOUT",     "CANCELLED", "LOST",
    "NOT_HELD", "WRONG_TASK",  "IN_PROGRESS", "UNKNOWN",   "UNREACHABLE",
    "DENIED",   "UNSUPPORTED", "UNAVAILABLE", "READONLY",  "OOM",
    "MISCONF",  "UNSYNCED",    "REFUSED",     "PROTOCOL",  "INVALID",
    "TOO_LONG", "WRONG_SHARD", "UNTRUSTED",   "FORKED",    "OTHER_LIMIT",
};

static const char *const texts[] = {
    "done",
    "somebody else holds the lock or is first in line",
    "the wait timed out",
    "the wait was cancelled",
    "the lock was lost before it was released",
    "the lock is not held by this handle",
    "another task acquired this handle",
    "the handle is in use",
    "no answer came: the release was carried out, or the lease will end the hold",
    "the server cannot be reached",
    "the server refuses this user",
    "the server lacks RESP3, or a command of Redis 6.2",
    "the server cannot serve now",
    "the server is a read-only replica",
    "the server is out of memory",
    "the server refuses writes",
    "too few replicas acknowledge",
    "the server refused the request",
    "the server sent an answer that is not valid",
    "an argument is out of its range",
    "a name or id does not fit the buffers",
    "another node of the cluster has this lock",
    "the server's certificate is not trusted, or ours is not",
    "the client belongs to the parent process",
    "others share the lock with another limit",
};

_Static_assert(sizeof names / sizeof names[0] == 1 - FAIRLOCK_OTHER_LIMIT,
               "a name for each status");
_Static_assert(sizeof texts / sizeof texts[0] == 1 - FAIRLOCK_OTHER_LIMIT,
               "a text for each status");

const char *fairlock_status_name(int status)
{
  if (status == FAIRLOCK_PENDING) return "PENDING";
  return status <= 0 && status >= FAIRLOCK_OTHER_LIMIT ? names[-status] : "?";
}

const char *fairlock_status_text(int status)
{
  if (status == FAIRLOCK_PENDING) return "still going on";
  return status <= 0 && status >= FAIRLOCK_OTHER_LIMIT ? texts[-status] : "no status";
}
