/*
 * `fairlock break`: ends the hold of a lock, for an operator who knows that it should no longer be
 * there.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "inspection.h"
#include "text.h"

#define USAGE "fairlock break [OPTION]... NAME"

static const char *const help[] = {
    "usage: " USAGE "\n"
    "\n"
    "Ends the hold of the lock NAME, whoever has it, and hands the lock to the next in line.\n"
    "Prints who held it. The holder is not asked; it finds out when it next renews or releases,\n"
    "and acts as the holder until then: only the fencing tokens tell the two holders apart.\n"
    "\n",
    common_help,
    "\n"
    "Exit status: 0, or 1 the lock was free, 64 usage, 66 no password file, 75 server\n"
    "unreachable or unable to serve, 76 protocol error, 77 denied, 78 a replica, or\n"
    "the wrong node of a cluster.\n",
    NULL,
};

static const struct option options[] = {COMMON_OPTIONS, {0}};

static int break_lock(struct session *session, const char *name)
{
  struct inspection before = {0};
  int status = inspection_read(&before, session, name, strlen(name));
  bool readable = status == FAIRLOCK_OK;
  /* what makes no sense can be broken, too */
  if (readable || status == FAIRLOCK_PROTOCOL)
    status = fairlock_force_release(&session->client, name, strlen(name));
  char *shown = bytes_shown(name, strlen(name));
  if (status == FAIRLOCK_NOT_HELD) {
    complain("%s is free: there was nothing to break", shown);
    status = EXIT_CONFLICT;
  } else if (status != FAIRLOCK_OK) {
    status = session_complain(session, status);
  } else if (!readable) {
    printf("%s: broken; its holder could not be read\n", shown);
    status = EXIT_DONE;
  } else {
    printf("%s: broken; it was ", shown);
    inspection_print_holder(stdout, &before, true);
    printf("; %zu waiting\n", before.waiter_count);
    status = EXIT_DONE;
  }
  free(shown);
  inspection_clear(&before);
  return end_output(status);
}

int break_command(int argc, char **argv)
{
  static struct session session;
  struct command_line line = {.command = "break", .usage = USAGE};
  if (next_option(&line, argc, argv, ":", options, help) != -1) return EXIT_USAGE;
  if (optind == argc) return misused(&line, "the NAME of a lock is missing");
  if (optind + 1 < argc)
    return misused(&line, "one lock at a time: '%s' is one too many", argv[optind + 1]);
  if (!good_name(&line, argv[optind])) return EXIT_USAGE;
  int status = session_prepare(&session, &line);
  if (status == EXIT_DONE) status = session_connect(&session);
  if (status == EXIT_DONE) {
    status = break_lock(&session, argv[optind]);
    fairlock_client_deinit(&session.client);
  }
  free(line.url);
  return status;
}
