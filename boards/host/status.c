/*
 * `fairlock status`: who holds each lock and who waits for it, for people or as JSON. Changes
 * nothing on the server.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "inspection.h"
#include "text.h"

#define USAGE "fairlock status [--json] [OPTION]... NAME..."

static const char *const help[] = {
    "usage: " USAGE "\n"
    "\n"
    "Prints who holds each of the locks, how often, for how long, with which fencing token,\n"
    "and who waits, first in line first, and since when at the earliest: its client is as\n"
    "old as that. A waiter listens, or is silent (cut off, but its place is kept), or dead\n"
    "(it will be skipped).\n"
    "\n"
    "  --json               print a JSON object on a line of its own for each lock\n",
    common_help,
    "\n"
    "Exit status: 0, or 64 usage, 66 no password file, 75 server unreachable or unable to\n"
    "serve, 76 protocol error, 77 denied, 78 a replica, or the wrong node of a cluster.\n",
    NULL,
};

enum { OPTION_JSON = OPTION_OWN };

static const struct option options[] = {
    COMMON_OPTIONS, {"json", no_argument, NULL, OPTION_JSON}, {0}};

static void print_text(const char *name, const struct inspection *inspection, const char *server)
{
  inspection_print_name(stdout, name, strlen(name));
  inspection_print_holder(stdout, inspection, true);
  fputs(inspection->waiter_count == 0 ? ", nobody waits" : "", stdout);
  char *shown = bytes_shown(server, strlen(server));
  printf(", read from %s\n", shown);
  free(shown);
  inspection_print_waiters(stdout, inspection, SIZE_MAX, NULL);
}

static const char *json_bool(bool value)
{
  return value ? "true" : "false";
}

static void print_json(const char *name, const struct inspection *inspection, const char *server)
{
  inspection_print_json(stdout, inspection, name, strlen(name), server);
  fputs(",\"waiters\":[", stdout);
  for (size_t i = 0; i < inspection->waiter_count; i++) {
    const struct party *waiter = &inspection->waiters[i];
    printf("%s{\"place\":%zu,", i > 0 ? "," : "", i + 1);
    print_json_bytes(stdout, "id", waiter->id, waiter->id_size);
    printf(",\"kind\":\"%s\",\"alive\":%s,\"listens\":%s,\"client_since_ms\":", party_kind(waiter),
           json_bool(waiter->alive), json_bool(waiter->listens));
    int64_t since = party_client_since_ms(waiter);
    if (since < 0) fputs("null}", stdout);
    else printf("%" PRId64 "}", since);
  }
  puts("]}");
}

static int print_status(struct session *session, char **names, bool json)
{
  char address[ADDRESS_SIZE];
  struct inspection inspection = {0};
  int status = session_connect(session);
  for (; *names != NULL && status == EXIT_DONE; names++) {
    int result = inspection_read(&inspection, session, *names, strlen(*names));
    session_address(session, result, address);
    const char *server = *address != 0 ? address : session->url.shown;
    if (result != FAIRLOCK_OK) status = session_complain(session, result);
    else if (json) print_json(*names, &inspection, server);
    else print_text(*names, &inspection, server);
    inspection_clear(&inspection);
  }
  fairlock_client_deinit(&session->client);
  return end_output(status);
}

int status_command(int argc, char **argv)
{
  static struct session session;
  struct command_line line = {.command = "status", .usage = USAGE};
  bool json = false;
  int option;
  while ((option = next_option(&line, argc, argv, ":", options, help)) != -1) {
    if (option != OPTION_JSON) return EXIT_USAGE;
    json = true;
  }
  if (optind == argc) return misused(&line, "the NAME of a lock is missing");
  for (int i = optind; i < argc; i++) {
    if (!good_name(&line, argv[i])) return EXIT_USAGE;
  }
  int status = session_prepare(&session, &line);
  if (status == EXIT_DONE) status = print_status(&session, argv + optind, json);
  free(line.url);
  return status;
}
