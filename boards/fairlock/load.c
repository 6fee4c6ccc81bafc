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

#include "command.h"
#include "query.h"
#include "text.h"
#include "texts.h"

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
  int status;  /* the exit status so far */
  bool beside; /* what is loaded now are the other servers; the first one has accepted us */
};

static const struct option_row options[] = {
    {"json", 0, OPTION_FLAG, offsetof(struct load, json), NULL,
     .help = "print a JSON object for each server, one per line"},
    {0},
};

static const struct command_line usage = {
    .command = "load",
    .usage = "fairlock load [--json] [OPTION]...",
    .about =
        "\n"
        "Loads the scripts of this release into the server, for firmware that is built without\n"
        "their texts, and prints their hashes. With redis+sentinel:// and redis+cluster:// it "
        "also\n"
        "loads them into the replicas, because one of these may become the master. A server\n"
        "forgets its scripts when it restarts.\n",
    .statuses = "Exit status: 0 all servers have them, or",
    .options = options,
};

static void say_loaded(const struct load *load, const char *address)
{
  const char *server = *address != 0 ? address : load->session.server.shown;
  if (load->json) {
    putchar('{');
    print_json_bytes(stdout, "server", server, strlen(server));
    fputs(",\"scripts\":{", stdout);
  } else {
    char *shown = printable(server, strlen(server));
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
  load->status = query_failed(&load->query, &load->session, status, load->beside);
}

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

/* Loads the scripts into the server to which the query is connected. */
static void load_scripts(struct load *load)
{
  int status = FAIRLOCK_OK;
  for (size_t i = 0; i < SCRIPTS && status == FAIRLOCK_OK; i++) {
    status = ask_to_load(&load->query, scripts[i].script);
    if (status == FAIRLOCK_OK) status = take_hash(&load->query, scripts[i].script);
  }
  if (status == FAIRLOCK_OK) say_loaded(load, load->query.address);
  else say_failed(load, status);
}

/* Finds the servers that may replace the query's server as the master. */
static void find_others(struct load *load, struct nodes *others)
{
  int status = FAIRLOCK_OK;
  if (load->query.cluster) status = nodes_of_cluster(others, &load->query, MASTERS | REPLICAS);
  else if (load->session.server.service != NULL) status = nodes_of_master(others, &load->query);
  if (status != FAIRLOCK_OK) say_failed(load, status);
}

/* Loads the scripts into a server; if others is not NULL, also finds those that may replace it. */
static void load_into(struct load *load, const char *address, struct nodes *others)
{
  int status = query_open(&load->query, address);
  if (status != FAIRLOCK_OK) {
    say_failed(load, status);
    return;
  }
  load_scripts(load);
  if (others != NULL) find_others(load, others);
  query_close(&load->query);
}

static int load_servers(struct load *load)
{
  char address[ADDRESS_SIZE];
  struct nodes others = {0};
  load->status = session_connect(&load->session);
  if (load->status != EXIT_DONE) return load->status;
  session_address(&load->session, FAIRLOCK_OK, address);
  load_into(load, address, &others);
  load->beside = true;
  for (size_t i = 0; i < others.count; i++)
    if (strcmp(others.address[i], address) != 0) load_into(load, others.address[i], NULL);
  nodes_forget(&others);
  session_close(&load->session);
  return end_output(load->status);
}

int load_command(int argc, char **argv)
{
  static struct load load;
  struct command_line line = usage;
  if (parse_options(&line, &load, argc, argv) != EXIT_DONE) return EXIT_USAGE;
  if (line.count > 0)
    return misused(&line, "it takes no arguments: '%s' is one too many", line.arguments[0]);
  int status = session_prepare(&load.session, &line);
  if (status == EXIT_DONE) status = session_second(&load.second, &load.session, &line);
  load.query.session = &load.second;
  if (status == EXIT_DONE) status = load_servers(&load);
  free(line.url);
  return status;
}
