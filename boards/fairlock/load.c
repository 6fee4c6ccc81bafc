/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fairlock load`: loads the scripts of this release into servers, for clients that have only their
 * hashes.
 *
 * A server forgets its scripts when it restarts, and since Redis 7 it does not replicate them. So
 * if the URL names Sentinels or a cluster, this loads them into every server that may become the
 * master, too.
 */
#define _DEFAULT_SOURCE 1 /* what -std=c11 hides */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "nodes.h"
#include "text.h"
#include "texts.h"

#define USAGE            "fairlock load [--json] [--interval SECONDS] [OPTION]..."
#define SHORTEST_MS      100U
#define MOST_INTERVAL_MS 86400000U

static const char *const help[] = {
    "usage: " USAGE "\n"
    "\n"
    "Loads the scripts of this release into the server, for firmware that is built without\n"
    "their texts, and prints their hashes. With redis+sentinel:// and redis+cluster:// it also\n"
    "loads them into the replicas, because one of these may become the master. A server\n"
    "forgets its scripts when it restarts.\n"
    "\n"
    "  -i, --interval SECONDS\n"
    "                       stay, and load them again so often; what has failed is reported\n"
    "                       once, and tried again\n"
    "  --json               print a JSON object for each server, one per line\n",
    common_help,
    "\n"
    "Exit status: 0 all servers have them, or 64 usage, 66 no password file, 71 no output, 75\n"
    "server unreachable or unable to serve, 76 protocol error, 77 denied, 78 a replica, or the\n"
    "wrong node of a cluster.\n",
    NULL,
};

enum { OPTION_JSON = OPTION_OWN };

static const struct option options[] = {COMMON_OPTIONS,
                                        {"json", no_argument, NULL, OPTION_JSON},
                                        {"interval", required_argument, NULL, 'i'},
                                        {0}};

static const struct {
  const char *name;
  const struct fairlock_script *script;
} scripts[] = {
    {"lock", &fairlock_lock_script},           {"break", &fairlock_break_script},
    {"inspect", &fairlock_inspect_script},     {"shared", &fairlock_shared_script},
    {"downgrade", &fairlock_downgrade_script},
};

#define SCRIPTS (sizeof scripts / sizeof scripts[0])

struct load {
  struct session session; /* finds the master */
  struct session second;  /* loads */
  struct query query;
  bool json;
  uint32_t interval_ms; /* 0: once */
  struct nodes loaded;  /* servers whose success was printed */
  struct nodes failed;  /* servers whose failure was printed */
  int status;           /* the exit status of this round, so far */
  bool beside;    /* what is loaded now are the other servers; the first one has accepted us */
  bool done_once; /* a round has loaded the scripts, if perhaps not into each replica */
};

/* Messages: one for each server when its state changes */

/* Moves an address to the list `to`. Returns true if it was not there before. */
static bool moves(struct nodes *from, struct nodes *to, const char *address)
{
  bool news = !nodes_have(to, address);
  nodes_take_out(from, address);
  nodes_add(to, address);
  return news;
}

static void say_loaded(struct load *load, const char *address)
{
  const char *server = *address != 0 ? address : load->session.server.shown;
  if (!moves(&load->failed, &load->loaded, address)) return;
  if (load->json) {
    putchar('{');
    print_json_bytes(stdout, "server", server, strlen(server));
    fputs(",\"scripts\":{", stdout);
  } else {
    char *shown = bytes_shown(server, strlen(server));
    printf("%s:", shown);
    free(shown);
  }
  for (size_t i = 0; i < SCRIPTS; i++) {
    const char *before = !load->json ? " " : i > 0 ? "," : "";
    printf(load->json ? "%s\"%s\":\"%s\"" : "%s%s %s", before, scripts[i].name,
           scripts[i].script->sha1);
  }
  puts(load->json ? "}}" : "");
}

static void say_failed(struct load *load, int status)
{
  struct query *query = &load->query;
  load->status = exit_status_of(status);
  if (!moves(&load->loaded, &load->failed, query->address)) return;
  if (status == FAIRLOCK_UNREACHABLE || status == FAIRLOCK_UNTRUSTED)
    session_reason(&load->second, query->connected, query->error);
  (void)(load->beside ? session_other_failed : session_failed)(&load->session, status,
                                                               query->address, query->error);
}

/* Loading */

static int ask_to_load(struct query *query, const struct fairlock_script *script)
{
  static unsigned char text[QUERY_REQUEST_MAX];
  struct resp_writer writer;
  resp_writer_init(&writer, text, sizeof text, 0);
  fairlock_script_unpack(&writer, script);
  const struct word words[] = {{"SCRIPT", 6}, {"LOAD", 4}, {text, writer.used}};
  return query_ask(query, words, 3);
}

/* Reads the answer, which has to be the script's hash. */
static int take_hash(struct query *query, const struct fairlock_script *script)
{
  struct resp_event event;
  int status = query_event(query, &event);
  if (status != FAIRLOCK_OK) return status;
  if (query_is_error(&event)) return query_refused(query, &event);
  bool same = event.type == RESP_BULK_STRING && event.size == strlen(script->sha1) &&
              memcmp(event.data, script->sha1, event.size) == 0;
  return same ? FAIRLOCK_OK : FAIRLOCK_PROTOCOL;
}

/* Loads the scripts into the server to which the query is connected. Returns a status. */
static int load_scripts(struct load *load)
{
  int status = FAIRLOCK_OK;
  for (size_t i = 0; i < SCRIPTS && status == FAIRLOCK_OK; i++) {
    status = ask_to_load(&load->query, scripts[i].script);
    if (status == FAIRLOCK_OK) status = take_hash(&load->query, scripts[i].script);
  }
  if (status == FAIRLOCK_OK) say_loaded(load, load->query.address);
  else say_failed(load, status);
  return status;
}

static void load_into(struct load *load, const char *address)
{
  int status = query_open(&load->query, address);
  if (status != FAIRLOCK_OK) {
    say_failed(load, status);
    return;
  }
  (void)load_scripts(load);
  query_close(&load->query);
}

/* Adds the servers that may replace the query's server as the master. Returns a status. */
static int find_others(struct load *load, struct nodes *others)
{
  int status = FAIRLOCK_OK;
  if (load->query.cluster) status = nodes_of_cluster(others, &load->query, true);
  else if (load->session.server.service != NULL) status = nodes_of_master(others, &load->query);
  if (status != FAIRLOCK_OK) say_failed(load, status);
  return status;
}

/*
 * Loads the scripts into the server at address, and into those that may replace it as the master.
 * Returns the status of the former, or of finding the latter.
 */
static int load_into_all(struct load *load, const char *address)
{
  struct nodes others = {0};
  int status = query_open(&load->query, address);
  if (status != FAIRLOCK_OK) {
    say_failed(load, status);
    return status;
  }
  status = load_scripts(load);
  int found = find_others(load, &others);
  query_close(&load->query);
  load->beside = true;
  for (size_t i = 0; i < others.count; i++)
    if (strcmp(others.address[i], address) != 0) load_into(load, others.address[i]);
  load->beside = false;
  nodes_forget(&others);
  return status != FAIRLOCK_OK ? status : found;
}

/* Finds the server and loads the scripts. Returns the status of that, replicas apart. */
static int load_once(struct load *load)
{
  char address[ADDRESS_SIZE];
  load->status = EXIT_DONE;
  int status = session_open(&load->session);
  if (status == FAIRLOCK_OK) status = fairlock_connect(&load->session.client);
  session_address(&load->session, status, address);
  if (status == FAIRLOCK_OK) {
    status = load_into_all(load, address);
    nodes_take_out(&load->failed, "");
    return status;
  }
  load->status = exit_status_of(status);
  if (moves(&load->loaded, &load->failed, "")) (void)session_complain(&load->session, status);
  nodes_forget(&load->loaded); /* they may have restarted */
  return status;
}

static int load_servers(struct load *load)
{
  struct timespec pause = {load->interval_ms / 1000, (long)(load->interval_ms % 1000) * 1000000L};
  for (;;) {
    int status = load_once(load);
    /* if a server refuses what it has done before, a password may be changing, and that passes */
    load->done_once |= status == FAIRLOCK_OK;
    bool passes = load->done_once || session_may_pass(&load->session, status);
    session_close(&load->session);
    if (load->interval_ms == 0 || !passes || end_output(EXIT_DONE) != EXIT_DONE)
      return end_output(load->status);
    nanosleep(&pause, NULL);
  }
}

int load_command(int argc, char **argv)
{
  static struct load load;
  struct command_line line = {.command = "load", .usage = USAGE};
  int option;
  while ((option = next_option(&line, argc, argv, ":hi:", options, help)) != -1) {
    if (option == OPTION_JSON) load.json = true;
    else if (option != 'i' ||
             !parse_seconds(&line, "-i", optarg, SHORTEST_MS, MOST_INTERVAL_MS, &load.interval_ms))
      return EXIT_USAGE;
  }
  if (optind < argc)
    return misused(&line, "it takes no arguments: '%s' is one too many", argv[optind]);
  int status = session_prepare(&load.session, &line);
  if (status == EXIT_DONE) status = session_second(&load.second, &load.session, &line);
  load.query.session = &load.second;
  if (status == EXIT_DONE) status = load_servers(&load);
  nodes_forget(&load.loaded);
  nodes_forget(&load.failed);
  free(line.url);
  return status;
}
