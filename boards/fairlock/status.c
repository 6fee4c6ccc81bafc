/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fairlock status`: prints who holds each lock and who waits for it, as text or as JSON. It
 * changes nothing on the server.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "inspection.h"
#include "query.h"
#include "text.h"

struct report {
  struct session session; /* reads locks */
  struct session second;  /* asks for the time */
  struct query query;
  bool json, quiet;
};

static const struct option_row options[] = {
    {"json", 0, OPTION_FLAG, offsetof(struct report, json), NULL,
     .help = "print a JSON object for each lock, one per line"},
    {"quiet", 'q', OPTION_FLAG, offsetof(struct report, quiet), NULL,
     .help = "print nothing; exit status: 0 held (of several\nlocks: all), 1 free"},
    {0},
};

static const struct command_line usage = {
    .command = "status",
    .usage = "fairlock status [--json|--quiet] [OPTION]... NAME...",
    .about =
        "\n"
        "Prints for each lock its holder, the hold count, for how long it has been held and the\n"
        "fencing token, or all that if several share it, first the one whose lease ends last; "
        "then\n"
        "the waiters, in order, and since when each may have waited: when its client first\n"
        "connected. A waiter listens, or is silent (cut off, but it has its place), or dead (it\n"
        "will be skipped), or unknown (of a later release, which this one cannot read).\n",
    .statuses = "Exit status: 0, also for a lock that is free (see --quiet), or",
    .options = options,
};

static void print_text(const char *name, const struct inspection *inspection, const char *server)
{
  inspection_print_name(stdout, name, strlen(name));
  inspection_print_hold(stdout, inspection, true);
  fputs(inspection_waiters(inspection) == 0 ? ", nobody waits" : "", stdout);
  char *shown = printable(server, strlen(server));
  printf(", read from %s\n", shown);
  free(shown);
  inspection_print_sharers(stdout, inspection, SIZE_MAX);
  inspection_print_waiters(stdout, inspection, SIZE_MAX, NULL);
}

static const char *json_bool(bool value)
{
  return value ? "true" : "false";
}

static bool has_token(const struct inspection *inspection)
{
  size_t i = 0;
  while (i < inspection->holder_count && inspection->holders[i].token == 0)
    i++;
  return i < inspection->holder_count;
}

/* The server's time, by which holds began; -1: of no use. The library has no function for it. */
static int64_t server_ms(struct report *report, const struct inspection *inspection,
                         const char *address)
{
  static const struct word time[] = {{"TIME", 4}};
  struct query *query = &report->query;
  int64_t now = 0;
  query->session = &report->second;
  if (!has_token(inspection) || query_open(query, address) != FAIRLOCK_OK) return -1;
  int status = query_ask(query, time, 1);
  if (status == FAIRLOCK_OK) status = query_time(query, &now);
  query_close(query);
  return status == FAIRLOCK_OK ? now : -1;
}

static void print_json(struct report *report, const char *name, const struct inspection *inspection,
                       const char *address)
{
  const struct inspected of = {
      name, strlen(name), *address != 0 ? address : report->session.server.shown,
      server_ms(report, inspection, address), inspection_waiters(inspection)};
  inspection_print_json(stdout, inspection, &of);
  fputs(",\"waiters\":[", stdout);
  for (size_t i = 0; i < inspection->waiter_count; i++) {
    const struct party *waiter = &inspection->waiters[i];
    printf("%s{\"place\":%zu,", i > 0 ? "," : "", i + 1);
    print_json_bytes(stdout, "id", waiter->id, waiter->id_size);
    printf(",\"kind\":\"%s\",\"alive\":%s,\"listens\":%s,\"shares\":%s", party_kind(waiter),
           waiter->later ? "null" : json_bool(waiter->alive), json_bool(waiter->listens),
           waiter->later ? "null" : json_bool(waiter->shares));
    inspection_print_seconds(stdout, "client_start_time_seconds", party_client_since_ms(waiter));
    putchar('}');
  }
  puts("]}");
}

static int print_status(struct report *report, char **names)
{
  char address[ADDRESS_SIZE];
  struct inspection inspection = {0};
  struct session *session = &report->session;
  bool all_held = true;
  int status = session_connect(session);
  for (; *names != NULL && status == EXIT_DONE; names++) {
    int result = inspection_read(&inspection, session, *names, strlen(*names));
    session_address(session, result, address);
    all_held = all_held && inspection.holder_count > 0;
    if (result != FAIRLOCK_OK) status = session_complain(session, result);
    else if (report->json) print_json(report, *names, &inspection, address);
    else if (!report->quiet)
      print_text(*names, &inspection, *address != 0 ? address : session->server.shown);
    inspection_clear(&inspection);
  }
  fairlock_client_deinit(&session->client);
  if (status == EXIT_DONE && report->quiet && !all_held) return EXIT_CONFLICT;
  return end_output(status);
}

int status_command(int argc, char **argv)
{
  static struct report report;
  struct command_line line = usage;
  if (parse_options(&line, &report, argc, argv) != EXIT_DONE) return EXIT_USAGE;
  if (report.json && report.quiet)
    return misused(&line, "--quiet prints nothing, --json does: give one of them");
  if (line.count == 0) return misused(&line, "the NAME of a lock is missing");
  for (int i = 0; i < line.count; i++) {
    if (!good_name(&line, line.arguments[i])) return EXIT_USAGE;
  }
  int status = session_prepare(&report.session, &line);
  if (status == EXIT_DONE && report.json)
    status = session_second(&report.second, &report.session, &line);
  if (status == EXIT_DONE) status = print_status(&report, line.arguments);
  free(line.url);
  return status;
}
