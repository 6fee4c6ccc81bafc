/* A client of the server that the command line names. */
#ifndef SESSION_H
#define SESSION_H

#include <stdbool.h>

#include "fairlock.h"
#include "options.h"
#include "posix.h"
#include "url.h"

struct session {
  struct url url;
  char password[1024];
  struct port_posix socket;
  struct fairlock_config config;
  struct fairlock_client client;
  unsigned char receive[FAIRLOCK_RECEIVE_SIZE(FAIRLOCK_NAME_MAX, FAIRLOCK_ID_MAX)];
  unsigned char send[2048];
};

/*
 * Finds out where the server is and with which password. Opens nothing. Returns EXIT_DONE, or a
 * status after a complaint.
 */
int session_prepare(struct session *session, const struct command_line *line);

/*
 * Makes the client, after session->config got what it needs beyond that. Returns a status of the
 * library's.
 */
int session_open(struct session *session);

/* Connects. Returns EXIT_DONE, or a status after a complaint. */
int session_connect(struct session *session);

/* The exit status that stands for a status of the library's. */
int exit_status_of(int status);

/*
 * Says that the server did not do its part, in its own words (error, may be ""), and what to do.
 * Returns the exit status.
 */
int session_failed(const struct session *session, int status, const char *error);

/* The same, with the client's error text. */
int session_complain(struct session *session, int status);

#endif
