/* SPDX-License-Identifier: Apache-2.0 */
/* Private servers; see server.h. */
#include "server.h"
#include "clock.h"
#include "loopback.h"
#include "process.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef REDIS_SERVER
#define REDIS_SERVER "build/redis-server"
#endif

static pid_t run_server(const struct server *started)
{
  const char *words[40] = {REDIS_SERVER, "--port",        started->port_text,
                           "--bind",     "127.0.0.1",     "--save",
                           "",           "--appendonly",  "no",
                           "--dir",      started->folder, "--logfile",
                           "log",        "--daemonize",   "no"};
  for (size_t i = 0; started->options != NULL && started->options[i] != NULL; i++)
    words[15 + i] = started->options[i];
  return spawn_program(words, NULL, NULL);
}

/*
 * Whether it is ready, by its own log: on its port the server of another suite may answer, which
 * was started there a moment before.
 */
static bool answers(const struct server *started)
{
  char name[80], text[8192];
  (void)snprintf(name, sizeof name, "%s/log", started->folder);
  int64_t until = now_ms() + SOON;
  while (now_ms() < until) {
    FILE *log = fopen(name, "r");
    size_t size = log != NULL ? fread(text, 1, sizeof text - 1, log) : 0;
    if (log != NULL) (void)fclose(log);
    text[size] = 0;
    if (strstr(text, "eady to accept connections") != NULL) return true;
    if (waitpid(started->pid, NULL, WNOHANG) != 0) return false;
    sleep_ms(10);
  }
  return false;
}

void server_revive(struct server *started)
{
  char name[80];
  (void)snprintf(name, sizeof name, "%s/log", started->folder);
  (void)unlink(name); /* an earlier one's */
  started->pid = run_server(started);
}

void server_start(struct server *started, const char *const options[])
{
  started->options = options;
  own_folder(started->folder);
  /* somebody else may have taken the port meanwhile */
  for (int attempt = 0; attempt < 5; attempt++) {
    started->port = free_port();
    (void)snprintf(started->port_text, sizeof started->port_text, "%d", started->port);
    server_revive(started);
    if (answers(started)) return;
    slay(started->pid);
  }
  give_up("redis-server does not start");
}

void server_kill(struct server *started)
{
  slay(started->pid);
}

void server_restart(struct server *started)
{
  int64_t until = now_ms() + SOON;
  do { /* another program's connection may use the port as its own end for a moment */
    server_kill(started);
    server_revive(started);
    if (answers(started)) return;
    sleep_ms(50);
  } while (now_ms() < until);
  give_up("redis-server does not start again");
}

void server_stop(struct server *started)
{
  server_kill(started);
  remove_folder(started->folder);
}
