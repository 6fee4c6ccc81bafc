/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private servers on free ports of 127.0.0.1. They keep nothing on disk, and end with the program.
 */
#ifndef SUPPORT_SERVER_H
#define SUPPORT_SERVER_H

#include <sys/types.h>

struct server {
  pid_t pid;
  int port;
  const char *const *options;
  char port_text[8];
  char folder[40];
};

/* options: pairs such as "--maxmemory", "2mb", ended by NULL, or NULL; kept. */
void server_start(struct server *server, const char *const options[]);
void server_stop(struct server *server);

/*
 * Kills it and starts it again, empty, on the same port. server_kill() and server_revive() are the
 * two halves.
 */
void server_restart(struct server *server);
void server_kill(struct server *server);
void server_revive(struct server *server);

#endif
