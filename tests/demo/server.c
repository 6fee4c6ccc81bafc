/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of the demo: one of its own on a free port of 127.0.0.1, that keeps nothing on disk
 * and ends with the demo, or one that a URL names: also a master that Sentinels know, or a
 * cluster.
 */
#include "demo.h"
#include "support/loopback.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool use_url(struct server *server, const char *text)
{
  const char *wrong = port_posix_url(&server->at, text);
  if (wrong != NULL) {
    fprintf(stderr, "demo: the URL cannot be used: %s\n", wrong);
    return false;
  }
  server->config.user = server->at.user;
  server->config.password = server->at.password;
  server->config.database = server->at.database;
  server->topology.service = server->at.service;
  server->topology.cluster = server->at.cluster;
  if (server->at.moves) server->config.lease_ms = MOVING_LEASE_MS;
  return true;
}

static _Noreturn void become_redis(const struct server *server, const char *program, pid_t parent)
{
  char log[sizeof server->folder + 8];
  const char *port = server->at.socket.service;
  belong_to(parent);
  snprintf(log, sizeof log, "%s/log", server->folder);
  int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  execl(program, program, "--bind", "127.0.0.1", "--port", port, "--dir", server->folder, "--save",
        "", "--appendonly", "no", (char *)NULL);
  perror(program);
  _exit(1);
}

static bool start_private(struct server *server, const char *program)
{
  const char *temporary = getenv("TMPDIR");
  snprintf(server->folder, sizeof server->folder, "%.200s/fairlock-demo-XXXXXX",
           temporary != NULL ? temporary : "/tmp");
  if (mkdtemp(server->folder) == NULL) {
    perror(server->folder);
    return false;
  }
  char text[32];
  snprintf(text, sizeof text, "redis://127.0.0.1:%d", free_port());
  if (!use_url(server, text)) return false;
  pid_t parent = getpid();
  server->pid = fork();
  if (server->pid == 0) become_redis(server, program, parent);
  return server->pid > 0;
}

bool server_start(struct server *server, const char *program, const char *url)
{
  memset(server, 0, sizeof *server);
  server->config.lease_ms = LEASE_MS;
  server->config.client_name = "demo";
  return url == NULL ? start_private(server, program) : use_url(server, url);
}

bool server_ended(struct server *server)
{
  if (server->pid == 0 || waitpid(server->pid, NULL, WNOHANG) != server->pid) return false;
  server->pid = 0;
  return true;
}

/* Ends a private server, and removes what it wrote. */
void server_stop(struct server *server)
{
  char log[sizeof server->folder + 8];
  if (server->pid > 0) {
    kill(server->pid, SIGKILL); /* it has nothing to save */
    waitpid(server->pid, NULL, 0);
  }
  server->pid = 0;
  if (server->folder[0] == 0) return;
  snprintf(log, sizeof log, "%s/log", server->folder);
  unlink(log);
  rmdir(server->folder);
}

int server_client(struct server *server, struct fairlock_client *client)
{
  static char received[512];
  static char sent[1024];
  server->config.receive_buffer = received;
  server->config.receive_size = sizeof received;
  server->config.send_buffer = sent;
  server->config.send_size = sizeof sent;
  int status = fairlock_client_init(client, &server->config, server->at.transport);
  if (status != FAIRLOCK_OK || !server->at.moves) return status;
  server->topology.address = server->at.address;
  server->topology.address_size = sizeof server->at.address;
  return fairlock_follow(client, &server->topology);
}
